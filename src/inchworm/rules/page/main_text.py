"""The part of a page that holds its text, without the frame around it and inside it.

A page that says which part is its main one is believed. Otherwise we begin with the whole body. Either way what says
of itself that it is frame (`<nav>`, a role, a class called "footer") is taken out of the tree, so that words, links
and the laid-out text all come from the same part. A body is then narrowed down: as long as one block holds nearly all
prose (text that is not a link) and the blocks beside it are no title, it stands for the page.

Frame goes only as long as text remains. A page whose text is all in what looks like frame keeps it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from turbohtml import Document, Element, Node, Text

NEXT_TO_NOTHING = 32
"""With fewer characters than this a page has lost its text, and not its frame."""

_MOST = 0.8
_FAIR_SHARE = 0.1
_LONGEST_SEPARATOR = 30
_LONGEST_SLOGAN = 80
# A page can be nested deeper, and be full of more frames, than anybody would write: each look at one costs its depth.
_DEEPEST = 50
_MOST_FRAMES = 500
_LONGEST_NAME = 40
_LONGEST_NAMES = 500


@dataclass(slots=True)
class Marks:
    """What the pass over the elements of a page met that says what it is."""

    mains: list[Element] = field(default_factory=list)
    articles: list[Element] = field(default_factory=list)
    frames: list[Element] = field(default_factory=list)
    named: list[Element] = field(default_factory=list)
    unseen: list[Element] = field(default_factory=list)
    heading: Element | None = None


class MainPart(NamedTuple):
    """The part, and its text as it stands in the source: laying it out takes four times as long."""

    node: Node
    words: str


def find(document: Document, marks: Marks, title: str = "") -> MainPart:
    """The main part. Whatever else is wanted of the tree has to be taken before: the frame is gone from it."""
    for element in marks.unseen:
        if element.attr("shadowrootmode") is None:
            element.decompose()
        elif isinstance(element.parent, Element):
            # A browser shows what is in this kind of template, unless that is itself not shown.
            element.replace_with(*element.children)
    _mark_roles(document, marks)
    body = document.find("body") or document
    said = marks.mains[0] if len(marks.mains) == 1 else None
    if said is not None and (main := _inside(said, marks)).words.strip():
        return main
    return _inside_body(body, marks, title)


def _inside(said: Element, marks: Marks) -> MainPart:
    cut = _cut(_frames(said, marks), said)
    if _is_next_to_nothing(words := said.text):
        _put_back(cut)
        words = said.text
    return MainPart(said, words)


def _inside_body(body: Node, marks: Marks, title: str) -> MainPart:
    cut = _cut(_frames(body, marks), None)
    part = _article(body, marks.articles) or _narrowed(body, title)
    if _is_next_to_nothing(words := part.text):
        _put_back(cut)
        part, words = body, body.text
    return MainPart(part, words)


def laid_out(part: Node) -> str:
    """The text of a part as people would see it. The tree is put in order for it, as nothing is read from it after."""
    for caption in list(part.iter_elements("caption")):
        table = caption.parent
        # Tables are laid out without their captions.
        if isinstance(table, Element) and table != part:
            caption.tag = "p"
            table.insert_before(caption)
    return part.to_text()


def _is_next_to_nothing(words: str) -> bool:
    return _solid(words.strip()[:1_000]) < NEXT_TO_NOTHING


def _solid(text: str) -> int:
    """How many characters are not white space: sources are indented, and that says nothing."""
    return len("".join(text.split()))


# ---- what says that it is frame

FRAME_TAGS = ("aside", "dialog", "footer", "header", "nav", "noscript", "search")
UNSEEN_TAGS = ("datalist", "script", "style", "template")

_ROLES = frozenset({"alertdialog", "banner", "complementary", "contentinfo", "dialog", "main", "navigation", "search"})
_WHERE = "site page main global top bottom primary secondary left right side mobile desktop sticky app layout"
_WHOSE = "local docs? blog post entry article print"
_WHAT = "nav navbar navheader navfooter navigation menu menubar breadcrumbs? crumbs sidebar footer colophon toolbar"
_WHAT += " pagination pager search comments comment-?list share sharing social related recommended recommendations"
_WHAT += " newsletter subscribe adverts? advertisements? advertising sponsored cookies? consent gdpr catlinks skip"
_SHAPE = "area banner bar block box buttons column container content icons inner left links? list menu nav"
_SHAPE += " notice popup posts right section stories topics widgets? wrap wrapper top bottom"


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_NAME = re.compile(
    rf"(?:(?:{_any(_WHERE + ' ' + _WHOSE)}[-_]*)*{_any(_WHAT)}"
    rf"|(?:{_any(_WHERE)}[-_]*)*(?P<banner>header|masthead|banner))"
    rf"(?:[-_]*{_any(_SHAPE)})*",
    re.IGNORECASE,
)
_NOTE = re.compile("note|warn|tip|hint|caution|important|danger|info|admonition|callout|example", re.IGNORECASE)
_SEARCH = re.compile("search|suche|recherche|busca|ricerca|zoek", re.IGNORECASE)


@lru_cache(maxsize=4_096)
def is_frame_name(names: str) -> bool:
    """Whether one of these class names (or an id) is what people call the frame of a page."""
    return len(names) <= _LONGEST_NAMES and any(
        len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) for name in names.split()
    )


def is_search(form: Element) -> bool:
    return any(_SEARCH.search(form.attr(name) or "") for name in ("role", "action", "id", "class"))


def _mark_roles(document: Document, marks: Marks) -> None:
    by_role = []
    for element in document.select("[role],[hidden]"):
        role = _role(element)
        hidden = element.attr("hidden")
        if hidden is not None and hidden.lower() != "until-found":
            by_role.append(element)
        elif role == "main" and element.tag != "main":
            marks.mains.append(element)
        elif role in _ROLES:
            by_role.append(element)
    marks.frames += by_role


def _role(element: Element) -> str:
    return (element.attr("role") or "").lower().strip().partition(" ")[0]


def _frames(part: Node, marks: Marks) -> list[Element]:
    frames = [element for element in marks.frames[:_MOST_FRAMES] if _is_frame(element, marks.heading)]
    if named := marks.named[:_MOST_FRAMES]:
        # A name is only a hint: what holds most of the text is not its frame, whatever it is called.
        most, heading = len(part.text) // 2, marks.heading
        frames += [element for element in named if len(element.text) <= most and _is_called_frame(element, heading)]
    return frames


def _is_called_frame(element: Element, heading: Element | None) -> bool:
    if _is_title(element, heading):
        return False
    names = f"{element.attr('class') or ''} {element.attr('id') or ''}"
    said = [_NAME.fullmatch(name) for name in names[:_LONGEST_NAMES].split()]
    # Sections and articles have headers of their own, and those are text.
    is_banner = all(match is None or match["banner"] for match in said) and any(said)
    return not (is_banner and element.closest("article,main,section"))


def _is_frame(element: Element, heading: Element | None) -> bool:
    tag = element.tag
    if element.attr("hidden") is not None:
        return tag not in ("body", "html")
    if tag == "aside":
        return not _NOTE.search(element.attr("class") or "")
    if tag == "footer":
        return not element.closest("blockquote,figure")
    if tag == "header" or _role(element) == "banner":
        return not (element.closest("article,main,section") or _is_title(element, heading))
    if tag == "dialog":
        return element.attr("open") is None
    return tag not in ("body", "html", "main", "article")


def _is_title(element: Element, heading: Element | None) -> bool:
    """Whether it holds the heading of the page: the last one, as the first may be the name of the site."""
    return heading is not None and any(found == heading for found in element.iter_elements("h1"))


class _Removed(NamedTuple):
    """An element taken out, and where it was."""

    element: Element
    parent: Element
    after: Node | None


def _cut(frames: list[Element], said: Element | None) -> list[_Removed]:
    around = {said, *said.ancestors} if said is not None else ()
    cut = []
    for element in frames:
        parent = element.parent
        # What lies in a template right under it has no element around it, and is not seen anyway.
        if isinstance(parent, Element) and element not in around:
            cut.append(_Removed(element, parent, element.next_sibling))
            element.extract()
    return cut


def _put_back(cut: list[_Removed]) -> None:
    for element, parent, after in reversed(cut):
        if after is not None:
            after.insert_before(element)
        else:
            parent.append(element)


# ---- where the text is

_PROSE = frozenset({"blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre"})
_LAYOUT = frozenset({"center", "table", "tbody", "td", "tr"})
_NOT_INTO = frozenset({"a", "button", "details", "figure", "label", "li", "ol", "select", "span", "ul"})
_ROWS = frozenset({"tbody", "tfoot", "thead", "tr"})
_TITLES = ("h1", "h2", "h3")
_BETWEEN_TITLES = re.compile(r"\s[|·»–—-]\s")
_SHORTEST_TOPIC = 6
_NO_TOPIC = "\n"


def _article(body: Node, articles: list[Element]) -> Element | None:
    """The one article of a page, others inside it being comments; unless it is a card on a page of something else."""
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
    return heading is not None and (heading.tag == "h1" or 2 * prose >= _solid(block.text))


def _is_peer(block: Element, main: Element) -> bool:
    """Whether it is one of a series, as posts and sections are. Rows and cells without a name are only layout."""
    name = block.attr("class")
    if block.tag != main.tag or name != main.attr("class"):
        return False
    return name is not None or (block.tag not in _LAYOUT and block.attr("id") is None)


def _names(topic: str, block: Element, main: Element) -> bool:
    """Whether it has the title of the page, in whatever form, and the main block does not."""
    return topic in " ".join(block.text.split()) and topic not in " ".join(main.text.split())


def _topic(title: str) -> str:
    """What a page says it is about: its title without the name of the site."""
    topic = max(_BETWEEN_TITLES.split(" ".join(title[:1_000].split())), key=len)
    return topic if len(topic) >= _SHORTEST_TOPIC else _NO_TOPIC


def _prose(block: Element) -> int:
    prose = _solid(block.text)
    for link in block.iter_elements("a", include_self=True):
        # Links can lie in links, and each look at one costs all that is in it.
        if prose <= 0:
            return 0
        prose -= _solid(link.text)
    return max(prose, 0)
