"""The part of a page that holds its text, without the frame around it and inside it.

What says of itself that it is frame (`<nav>`, a role, a class called "footer") is taken out of the tree, so that words,
links and the laid-out text all come from the same part. What is left is narrowed down. Where paragraphs carry the page
that goes by them: as long as one block holds nearly all of them it stands for the page, with the title and the lead
before it. Other pages are narrowed by what their blocks hold: as long as one has nearly all text that is not a link and
the blocks beside it are no title. At last `trim` takes out what stands beside the text in the part that was found.

A page that says which part is its main one is believed, if a fair share of the paragraphs is there. Frame goes only as
long as text remains: a page whose text is all in what looks like frame keeps it, and one that shows next to nothing
without scripts is read with what it hides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from turbohtml import Document, Element, Node, Text

from inchworm.rules.kinds.kind import PRODUCT, THREADS, Counted, buys_in, judge, prices_in
from inchworm.rules.page import frame
from inchworm.rules.page.frame import Marks, Title
from inchworm.rules.page.prose import PARAGRAPHS, SHORTEST, Prose, Sized, gather, linked, solid
from inchworm.rules.page.trim import Cuttings, WhyDropped, says_where_to_read_on, trim

NEXT_TO_NOTHING = 32
"""With fewer characters than this a page has lost its text, and not its frame."""

_SHORTEST_DESCRIPTION = 100
_SHOWN = 0.5
_SURE = 0.6
_MOST = 0.8
_FAIR_SHARE = 0.1
_LONGEST_SEPARATOR = 30
_LONGEST_SLOGAN = 80
# A page can be nested deeper, and be full of more frames, than anybody would write: each look at one costs its depth.
_DEEPEST = 50
_MOST_FRAMES = 500


class MainPart(NamedTuple):
    """The part, and its text as it stands in the source: laying it out takes four times as long. The kind of the page,
    and how sure it is that this is its text, from 0 to 1."""

    node: Node
    words: str
    kind: str
    confidence: float
    body: Node
    cuttings: Cuttings


def find(document: Document, marks: Marks, title: str = "") -> MainPart:
    """The main part. Whatever else is wanted of the tree has to be taken before: the frame is gone from it."""
    for element in marks.unseen:
        if element.attr("shadowrootmode") is None:
            element.decompose()
        elif isinstance(element.parent, Element):
            # A browser shows what is in this kind of template, unless that is itself not shown.
            element.replace_with(*element.children)
    frame.mark_roles(document, marks)
    body = document.find("body") or document
    cuttings = Cuttings()
    words = _cut_frames(body, marks, cuttings)
    prose = gather(body, words)
    kind = judge(marks.types | marks.item_types, lambda: _counted(body, words, marks, prose))
    called = Title(marks.heading, _topic(title))
    said = _said_main(body, marks, prose)
    part: Node = said or body
    if part != body:
        words = Sized.of(part)
    count = len(cuttings.taken)
    if _carries(prose, part, words):
        part = _narrowed_to_prose(part, prose, called, cuttings)
    elif part == body:
        part = _article(body, marks.articles) or _narrowed(body, title)
    words = words.left(part, cuttings.since(count))
    count = len(cuttings.taken)
    trim(part, words, prose, marks.small, called, cuttings, kind)
    if kind == PRODUCT:
        _describe(part, marks.described)
        words = Sized.of(part)
    elif cut := cuttings.since(count):
        words = words.left(part, cut)
    if _is_next_to_nothing(words.text):
        cuttings.put_back()
        part = said or body
        return MainPart(part, part.text, kind, 0.0, body, cuttings)
    return MainPart(part, words.text, kind, _confidence(part, words, prose, body), body, cuttings)


def _describe(part: Node, said: str) -> None:
    """Add what the page says of a product only for machines, where scripts would show it to people."""
    if isinstance(part, Element) and len(said) >= _SHORTEST_DESCRIPTION:
        words, shown = set(said.lower().split()), set(part.text.lower().split())
        if len(words & shown) < _SHOWN * len(words):
            part.append(Element("p", {}, [Text(said)]))


def _confidence(part: Node, words: Sized, prose: Prose, body: Node) -> float:
    """How clear it is that this is the text: whether the paragraphs of the page are there, and little but text."""
    size, all_ = words.size, prose.of(body)
    here = min(prose.of(part), size)
    kept = min(1.0, here / all_) if all_ else 0.5
    unlinked = 1 - linked(part, size) / max(1, size)
    said = min(1.0, here / max(1, _SURE * size))
    return round(kept * unlinked * (1 + said) / 2, 2)


def comments(found: MainPart) -> str:
    """What readers wrote, laid out, each block of it."""
    said = (cutting.node.to_text().strip() for cutting in found.cuttings.taken if cutting.why is WhyDropped.COMMENTS)
    return "\n\n".join(text for text in said if text)


def _is_next_to_nothing(words: str) -> bool:
    # What is at the beginning is enough for most, and is there in the whole, too.
    return solid(words[:1_000].strip()) < NEXT_TO_NOTHING and solid(words.strip()[:1_000]) < NEXT_TO_NOTHING


def _counted(body: Node, words: Sized, marks: Marks, prose: Prose) -> Counted:
    text, size = words
    in_links = cards = 0
    for link in body.iter_elements("a"):
        in_links += len(link.text)
        cards += isinstance(around := link.parent, Element) and around.tag in _CARDS
        if in_links >= size:
            break
    found = [one.tag for one in body.iter_elements(("pre", "time"))]
    prices = prices_in(text)
    buys = buys_in(text) if prices else 0
    code, times = found.count("pre"), found.count("time")
    return Counted(size, prose.of(body), min(in_links, size), len(marks.posts), code, cards, prices, buys, times)


_CARDS = frozenset({"h2", "h3", "h4"})


# ---- the frame

_MUCH_MORE = 2
_AT_LEAST_HIDDEN = 200
_PART_OF_IT = 0.2
_MOST_COMMENTS = 0.6
_VEILED = 0.04
_VEILED_TOGETHER = 0.1


def _cut_frames(body: Node, marks: Marks, cuttings: Cuttings) -> Sized:
    """Take the frame out, and say what text is left. What is not shown stays if it is several times what else there
    is."""
    for control in marks.controls:
        cuttings.take(control, WhyDropped.CONTROL)
    frames = _frames(body, marks)
    _cut(frames, marks, cuttings)
    words = _without_veiled(body, marks, cuttings)
    hidden = [(element, solid(element.text)) for element in frames if frame.is_unseen(element)]
    most = max((size for _, size in hidden), default=0)
    if most > _AT_LEAST_HIDDEN and most > _MUCH_MORE * words.size:
        cuttings.put_back()
        shown = [element for element, size in hidden if size >= _PART_OF_IT * most]
        for element in shown:
            element.tag = "div"
            if element.attr("hidden") is not None:
                del element.attrs["hidden"]
        marks.frames = [element for element in marks.frames if element not in shown]
        _cut([element for element in frames if element not in shown], marks, cuttings)
        return Sized.of(body)
    if _is_next_to_nothing(words.text):
        cuttings.put_back()
        return Sized.of(body)
    return words


def _without_veiled(body: Node, marks: Marks, cuttings: Cuttings) -> Sized:
    """Take out what its class hides, unless it is text that some script shows: a style sheet is not read."""
    words, count = Sized.of(body), len(cuttings.taken)
    veiled = [(one, solid(one.text)) for one in marks.veiled[:_MOST_FRAMES] if not one.closest("h1")]
    together = Counter[str]()
    for one, size in veiled:
        together[one.attr("class") or ""] += size
    for one, size in veiled:
        if size < _VEILED * words.size and together[one.attr("class") or ""] < _VEILED_TOGETHER * words.size:
            cuttings.take(one, WhyDropped.HIDDEN)
    return words.left(body, cuttings.since(count)) if veiled else words


def _why_frame(element: Element) -> WhyDropped:
    if frame.is_unseen(element):
        return WhyDropped.HIDDEN
    if frame.is_called_comments(element):
        return WhyDropped.COMMENTS
    return WhyDropped.TAG if element.tag in frame.FRAME_TAGS or element.attr("role") else WhyDropped.FRAME_NAME


def _cut(frames: list[Element], marks: Marks, cuttings: Cuttings) -> None:
    said = marks.mains[0] if len(marks.mains) == 1 and not frame.is_unseen(marks.mains[0]) else None
    around = {said, *said.ancestors} if said is not None else set()
    for element in frames:
        if element not in around:
            cuttings.take(element, _why_frame(element))


def _frames(part: Node, marks: Marks) -> list[Element]:
    heading = marks.heading
    frames = [element for element in marks.frames[:_MOST_FRAMES] if frame.is_frame(element, heading)]
    if named := marks.named[:_MOST_FRAMES]:
        # A name is only a hint: what holds most of the text is not its frame, whatever it is called.
        most = len(part.text) // 2
        called = [one for one in named if len(one.text) <= most and frame.is_called_frame(one, heading)]
        comments = _outermost(one for one in called if frame.is_called_comments(one))
        if comments and (not marks.types.isdisjoint(THREADS) or _hold_the_prose(comments, part)):
            called = [one for one in called if one not in comments and comments.isdisjoint(one.ancestors)]
        frames += called
    return frames


def _outermost(elements: Iterable[Element]) -> set[Node]:
    found: set[Node] = set()
    for element in elements:
        if found.isdisjoint(element.ancestors):
            found.add(element)
    return found


def _hold_the_prose(blocks: set[Node], part: Node) -> bool:
    """Whether most of what there is to read is in these blocks, as in a forum, whose posts may be called comments."""
    prose = gather(part, Sized.of(part))
    return sum(prose.of(block) for block in blocks) > _MOST_COMMENTS * prose.of(part)


# ---- where the paragraphs are

_LEAST_PROSE = 300
_CARRYING = 0.3
_BELIEVED = 0.25
_NEARLY_ALL = 0.8
_NEARLY_ALL_NAMED = 0.6
_LEAD = 30
_LEAD_PROSE = 0.3
_PROSE_BEHIND = 0.7
_NO_BLOCKS = frozenset({*PARAGRAPHS, "li", "ol", "ul"})
_LEADS = frozenset({"b", "center", "div", "em", "header", "section", "span", "strong"})
_BODY_NAME = re.compile(
    r"(?:article|blog|entry|main|news|page|post|story)[-_]*(?:body|content|copy|detail|text)|"
    r"articlebody|\b(?:content|entry)\b|markdown|prose",
    re.IGNORECASE,
)


def _said_main(body: Node, marks: Marks, prose: Prose) -> Element | None:
    """What the page says is its main part, if a fair share of what there is to read is there."""
    mains = [main for main in marks.mains[:_DEEPEST] if any(around == body for around in main.ancestors)]
    if len(mains) != 1:
        return None
    has_prose = prose.of(body) >= _LEAST_PROSE
    here, all_ = (prose.of(one) if has_prose else solid(one.text) for one in (mains[0], body))
    return mains[0] if here and here >= _BELIEVED * all_ else None


def _carries(prose: Prose, part: Node, words: Sized) -> bool:
    return prose.of(part) >= _LEAST_PROSE and prose.is_share(_CARRYING, part, words)


def _narrowed_to_prose(part: Node, prose: Prose, title: Title, cuttings: Cuttings) -> Node:
    """Go down to the block that holds nearly all paragraphs. Of what is around it only the title, the lead and
    paragraphs right behind it stay."""
    outer, total, found = part, prose.of(part), part
    for _ in range(_DEEPEST):
        inner = _holder(found, prose, total)
        if inner is None:
            break
        has_more = _take_what_is_around(found, inner, prose, title, cuttings)
        outer = outer if has_more or outer != found else inner
        found = inner
    return _whole(outer)


def _holder(level: Node, prose: Prose, total: int) -> Element | None:
    """The block of a level that holds nearly all paragraphs; none if another one of its kind holds some, too."""
    blocks = [one for one in level.children if isinstance(one, Element) and prose.of(one)]
    main = max(blocks, key=prose.of, default=None)
    if main is None or main.tag in _NO_BLOCKS or (main.tag == "table" and _is_data(main)):
        return None
    here = prose.of(main)
    if here < _NEARLY_ALL * total and (here < _NEARLY_ALL_NAMED * total or not _is_named_body(main)):
        return None
    others = (one for one in level.children if isinstance(one, Element) and one != main)
    return None if any(_is_peer(one, main) and one.text.strip() for one in others) else main


def _is_named_body(block: Element) -> bool:
    if block.tag == "article" or block.attr("itemprop") == "articleBody":
        return True
    return _BODY_NAME.search(f"{block.attr('class') or ''} {block.attr('id') or ''}"[:_MOST_FRAMES]) is not None


def _take_what_is_around(level: Node, inner: Element, prose: Prose, title: Title, cuttings: Cuttings) -> bool:
    """Whether something stays beside the block."""
    has_more, is_before = False, True
    for one in list(level.children):
        if one == inner:
            is_before = False
        elif isinstance(one, Element) and _belongs(one, is_before, prose, title):
            has_more = True
        elif isinstance(one, Element) or (isinstance(one, Text) and len(one.data.strip()) < SHORTEST):
            cuttings.take(one, WhyDropped.AROUND)
    return has_more


def _belongs(block: Element, is_before: bool, prose: Prose, title: Title) -> bool:
    """Whether a block beside the one with the paragraphs is the title, the lead, or goes on with the text."""
    size = solid(block.text)
    if not size:
        return False
    if not is_before:
        return block.tag in PARAGRAPHS and prose.of(block) >= _PROSE_BEHIND * size
    if title.is_in(block) or prose.of(block) >= _LEAD_PROSE * size or _is_lead(block, size):
        return True
    return says_where_to_read_on(block)


def _is_lead(block: Element, size: int) -> bool:
    """Whether a block says something in a sentence, and is not called otherwise."""
    if size < _LEAD or not (block.tag in _LEADS or block.tag in PARAGRAPHS):
        return False
    names = frame.names_of(f"{block.attr('class') or ''} {block.attr('id') or ''}")
    text = block.text.rstrip()
    is_sentence = text.endswith((".", "!", "?", "…")) or ". " in text
    return is_sentence and not names.words - {"teaser"} and size - linked(block, size) >= _LEAD_PROSE * size


# ---- where the text is that has no paragraphs

_PROSE = frozenset({"blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre"})
_LAYOUT = frozenset({"center", "table", "tbody", "td", "tr"})
_NOT_INTO = frozenset({"a", "button", "details", "figure", "label", "li", "ol", "select", "span", "ul"})
_SERIES = frozenset({"article", "section"})
_ROWS = frozenset({"tbody", "tfoot", "thead", "tr"})
_TITLES = ("h1", "h2", "h3")
_BETWEEN_TITLES = re.compile(r"\s[|·»–—-]\s")
_SHORTEST_TOPIC = 6
_NO_TOPIC = "\n"


def _article(body: Node, articles: list[Element]) -> Element | None:
    """The one article of a page, others inside it being comments; unless it is a card on a page of something else."""
    articles = [one for one in articles[:_MOST_FRAMES] if any(around == body for around in one.ancestors)]
    if not articles or sum(1 for _ in articles[0].iter_elements("article")) != len(articles) - 1:
        return None
    return articles[0] if len(articles[0].text) > _FAIR_SHARE * len(body.text) else None


def _narrowed(part: Node, title: str) -> Node:
    """Go down to where the text begins. A table that is no layout is not taken apart."""
    topic = _topic(title)
    for _ in range(_DEEPEST):
        inner = _inner(part, topic)
        if inner is None:
            break
        part = inner
    return _whole(part)


def _whole(part: Node) -> Node:
    """Rows are laid out with their table."""
    while part.parent is not None and isinstance(part, Element) and part.tag in _ROWS:
        part = part.parent
    return part


def _inner(level: Node, topic: str) -> Element | None:
    """The block that stands for all of a level; None if there is prose beside it, or more than frame."""
    blocks = _blocks(level)
    inner = _dominant(blocks, topic) if len(blocks) > 1 else blocks[0] if blocks else None
    return None if inner is None or inner.tag in _NOT_INTO or (inner.tag == "table" and _is_data(inner)) else inner


def _dominant(blocks: list[Element], topic: str) -> Element | None:
    sizes = [len(block.text) for block in blocks]
    at = sizes.index(max(sizes))
    main, rest, most = blocks[at], 0, (1 - _MOST) / _MOST
    for place, other in enumerate(blocks):
        if place == at or not sizes[place]:
            continue
        prose = _prose(other)
        rest += prose
        if rest > most * sizes[at] or _is_text(other, prose) or _is_peer(other, main):
            return None
        if place < at and (prose > _LONGEST_SLOGAN or _names(topic, other, main)):
            return None
    return main if not rest or rest <= most * _prose(main) else None


def _is_data(table: Element) -> bool:
    """Whether it has a heading: then its first row is worth as much as its longest cell."""
    first = next(table.iter_elements(("caption", "tr")), None)
    if first is None or first.tag == "caption":
        return first is not None
    return any(isinstance(cell, Element) and cell.tag == "th" for cell in first.children)


def _blocks(level: Node) -> list[Element]:
    """The elements of a level that has nothing but elements; none if it has prose of its own."""
    blocks = []
    for child in level.children:
        if isinstance(child, Element):
            if child.tag in _PROSE:
                return []
            blocks.append(child)
        elif isinstance(child, Text) and len(child.data.strip()) > _LONGEST_SEPARATOR:
            return []
    return blocks


def _is_text(block: Element, prose: int) -> bool:
    """Whether it has a heading, and is not a list of links with one."""
    heading = next(block.iter_elements(_TITLES), None)
    return heading is not None and (heading.tag == "h1" or 2 * prose >= solid(block.text))


def _is_peer(block: Element, main: Element) -> bool:
    """Whether it is one of a series, as posts and sections are. Rows and cells without a name are only layout."""
    name = block.attr("class")
    if block.tag != main.tag or name != main.attr("class"):
        return False
    is_named = name is not None or block.tag in _SERIES
    return is_named or (block.tag not in _LAYOUT and block.attr("id") is None)


def _names(topic: str, block: Element, main: Element) -> bool:
    """Whether it has the title of the page, in whatever form, and the main block does not."""
    return topic in " ".join(block.text.split()) and topic not in " ".join(main.text.split())


def _topic(title: str) -> str:
    """What a page says it is about: its title without the name of the site."""
    topic = max(_BETWEEN_TITLES.split(" ".join(title[:1_000].split())), key=len)
    return topic if len(topic) >= _SHORTEST_TOPIC else _NO_TOPIC


def _prose(block: Element) -> int:
    prose = solid(block.text)
    for link in block.iter_elements("a", include_self=True):
        # Links can lie in links, and each look at one costs all that is in it.
        if prose <= 0:
            return 0
        prose -= solid(link.text)
    return max(prose, 0)
