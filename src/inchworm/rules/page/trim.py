"""What stands beside the text inside the main part of a page, and goes: small blocks that are called so, blocks of
links on pages of prose, and what has a heading such as "Related articles".

Everything that goes is noted, and can be put back where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from turbohtml import Element, Node, Text

from inchworm.rules.kinds.kind import DOCUMENTATION, FORUM
from inchworm.rules.page import frame
from inchworm.rules.page.prose import PARAGRAPHS, Prose, Sized, solid

_SMALL = 0.4
_SMALL_TOGETHER = 0.3
_SMALL_OF_KIND = 0.6
_MOSTLY = 0.5
_LINKS = 0.6
_BESIDE = 0.25
_AS_LONG_AS_ITS_HEADING = 1.5
# More than this is not for people; each look at a block costs all that is in it.
_MOST = 500
_DEEPEST = 100

_MOST_AT_THE_END = 3
_MOST_QUOTES = 200
_CORE = 30

_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
_OF_LINKS = frozenset({"article", "div", "ol", "p", "section", "span", "table", "ul"})


class WhyDropped(Enum):
    """Why a block is no text, in words that follow "dropped:"."""

    CONTROL = "it is for choosing or typing something, or says what no screen shows"
    HIDDEN = "the page hides it"
    TAG = "its tag or role says that it is frame: nav, footer, aside, …"
    FRAME_NAME = "it is called as frames are: menu, sidebar, footer, …"
    SMALL_NAME = "it is small and called as such blocks are: byline, tags, share, …"
    AROUND = "it stands around the block that holds nearly all paragraphs"
    OUTSIDE = "it is outside of the main part"
    LINKS = "it is mostly links, on a page of prose"
    HEADING = "its heading says that it is something else: related articles, newsletter, …"
    COMMENTS = "readers wrote it: see the comments of the page"
    LEFT_ALONE = "it is a heading, and what stood under it is gone"
    SAID_BEFORE = "it quotes what stands elsewhere on the page"
    KIND = "it is no text on a page of this kind"


_NONE: frozenset[str] = frozenset()
_BESIDE_PROSE = frame.SMALL_ANYWHERE | frame.SMALL_BESIDE_PROSE

Small = Sequence[tuple[Element, frozenset[str]]]
"""Elements with what their names tell."""


class Cutting(NamedTuple):
    """A node taken out, where it was, and why it went."""

    node: Node
    parent: Element
    after: Node | None
    why: WhyDropped


class Cuttings:
    """What was taken out of a page so far."""

    def __init__(self) -> None:
        self.taken: list[Cutting] = []

    def take(self, node: Element | Text, why: WhyDropped) -> None:
        parent = node.parent
        # What lies in a template right under it has no element around it, and is not seen anyway.
        if isinstance(parent, Element):
            self.taken.append(Cutting(node, parent, node.next_sibling, why))
            node.extract()

    def since(self, count: int) -> list[Node]:
        """What was taken after so many."""
        return [cutting.node for cutting in self.taken[count:]]

    def put_back(self) -> list[Cutting]:
        """Everything where it was; and what that is."""
        taken = self.taken
        for node, parent, after, _ in reversed(taken):
            if after is not None:
                after.insert_before(node)
            else:
                parent.append(node)
        self.taken = []
        return taken


def trim(
    part: Node, words: Sized, prose: Prose, small: Small, title: frame.Title, cuttings: Cuttings, kind: str
) -> None:
    """Take what is no text out of the main part; never its title. `small`: what is called as small blocks are."""
    length = len(words.text)
    is_prose = prose.is_share(_MOSTLY, part, words)
    for block in _called_small(part, length, is_prose, small, kind):
        if not frame.is_title(block, title.heading):
            cuttings.take(block, WhyDropped.COMMENTS if frame.is_called_comments(block) else WhyDropped.SMALL_NAME)
    for quote in _said_before(part):
        cuttings.take(quote, WhyDropped.SAID_BEFORE)
    if is_prose:
        for block in _of_links(part, prose, length):
            if not title.is_in(block) and not (kind == DOCUMENTATION or says_where_to_read_on(block)):
                cuttings.take(block, WhyDropped.LINKS)
        for node in _with_headings(part, prose, length):
            if not (isinstance(node, Element) and says_where_to_read_on(node)):
                cuttings.take(node, WhyDropped.HEADING)
        for node in _said_like_headings(part, prose):
            cuttings.take(node, WhyDropped.HEADING)
        for heading in _at_the_end(part, {cutting.parent for cutting in cuttings.taken}):
            cuttings.take(heading, WhyDropped.LEFT_ALONE)


# ---- by name


def _called_small(part: Node, size: int, is_prose: bool, small: Small, kind: str) -> list[Element]:
    """Blocks whose names say that they are no text, if they are small, and all of that name together."""
    found: list[tuple[Element, frozenset[str], int]] = []
    together: Counter[str] = Counter()
    of_kind = frame.SMALL_BY_KIND.get(kind, _NONE)
    wanted = of_kind | (_BESIDE_PROSE if is_prose else frame.SMALL_ANYWHERE)
    wanted -= frame.COMMENTS if kind == FORUM else _NONE
    for block, words in small[:_MOST]:
        if not is_prose and block.tag in frame.SMALL_TAGS:
            continue
        told = words & wanted
        if told and _is_in(block, part) and (length := len(block.text)):
            found.append((block, told, length))
            together.update(dict.fromkeys(told, length))
    return [
        block
        for block, told, length in found
        if (length < _SMALL * size and min(together[word] for word in told) < _SMALL_TOGETHER * size)
        or (length < _SMALL_OF_KIND * size and not told.isdisjoint(of_kind))
    ]


def _is_in(block: Element, part: Node) -> bool:
    return part in list(block.ancestors)


# ---- quotes


def _said_before(part: Node) -> list[Element]:
    """Quotes of what is said on the same page: of posts before, or of the text itself."""
    quotes = list(part.iter_elements("blockquote"))[:_MOST_QUOTES]
    if not quotes:
        return []
    text = "".join(part.text.split())
    return [quote for quote in quotes if _is_twice("".join(quote.text.split()), text)]


def _is_twice(said: str, text: str) -> bool:
    """Whether the middle of what is said stands there once more: quotes have words around them, and leave some out."""
    middle = len(said) // 2
    core = said[max(0, middle - _CORE) : middle + _CORE]
    return len(core) > 1.5 * _CORE and text.count(core) > said.count(core)


# ---- by links


def _of_links(part: Node, prose: Prose, most: int) -> list[Element]:
    """Blocks that are mostly links. Those in paragraphs are part of the text."""
    inked: dict[Element, int] = {}
    for link in part.iter_elements("a"):
        parent = link.parent
        if isinstance(parent, Element) and parent.tag in PARAGRAPHS and prose.of(parent):
            continue
        if size := len(link.text.strip()):
            for around in _blocks_around(link, part, prose):
                inked[around] = inked.get(around, 0) + size
    found: list[Element] = []
    for block, size in inked.items():
        if block.tag in _OF_LINKS and len(found) < _MOST:
            text = block.text
            if len(text) < _MOSTLY * most and size > _LINKS * solid(text):
                found.append(block)
    return found


def says_where_to_read_on(block: Element) -> bool:
    """Whether it has a list of what to see also. All pages of a manual keep it, however much else they say."""
    return block.matches(_SEE_ALSO) or block.select_one(_SEE_ALSO) is not None


_SEE_ALSO = "[class*=seealso],[class*=see-also],[id=see-also],[id=seealso]"


def _blocks_around(link: Element, part: Node, prose: Prose) -> Iterable[Element]:
    around, depth = link.parent, 0
    while isinstance(around, Element) and around != part and depth < _DEEPEST:
        if around.tag in PARAGRAPHS and prose.of(around):
            return
        yield around
        around, depth = around.parent, depth + 1


# ---- by heading


def _with_headings(part: Node, prose: Prose, most: int) -> list[Element | Text]:
    """What stands under headings that say that it is no text: their block, or all up to the next heading."""
    found: list[Element | Text] = []
    for heading in list(part.iter_elements(_HEADINGS))[:_MOST]:
        text = heading.text
        if frame.is_beside(text):
            blocks = _under(heading, part, len(text.strip()))
            size = sum(len(block.text) for block in blocks if isinstance(block, Element))
            said = sum(prose.of(block) for block in blocks)
            if size < _BESIDE * most and said < _MOSTLY * size:
                found += blocks
    return found


def _under(heading: Element, part: Node, length: int) -> list[Element | Text]:
    block = heading
    while (around := block.parent) is not None and around != part and isinstance(around, Element):
        if any(_says(before) for before in block.previous_siblings):
            break
        block = around
    blocks: list[Element | Text] = [block]
    if solid(block.text) > _AS_LONG_AS_ITS_HEADING * length:
        return blocks
    for after in block.next_siblings:
        if isinstance(after, Element) and after.tag in ("h1", *_HEADINGS) and after.tag <= heading.tag:
            break
        if isinstance(after, (Element, Text)):
            blocks.append(after)
    return blocks


def _says(node: Node) -> bool:
    return bool((node.text if isinstance(node, Element) else node.data if isinstance(node, Text) else "").strip())


def _said_like_headings(part: Node, prose: Prose) -> list[Element]:
    """Paragraphs that say what such headings say, and nothing else."""
    return [one for one in prose.short if one.tag == "p" and frame.is_beside(one.text) and _is_in(one, part)]


def _at_the_end(part: Node, cut: set[Element]) -> list[Element]:
    """The headings that nothing comes after, though something did. `cut`: what something was taken out of."""
    found: list[Element] = []
    for heading in reversed(list(part.iter_elements(_HEADINGS))[-_MOST_AT_THE_END:]):
        at: Node = heading
        while at != part and at.parent is not None:
            if any(_says(after) and after not in found for after in at.next_siblings):
                return found
            at = at.parent
        if cut.isdisjoint((heading, *heading.ancestors)):
            break
        found.append(heading)
    return found
