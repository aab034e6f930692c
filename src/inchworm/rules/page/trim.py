"""What stands beside the text inside the main part of a page, and goes: small blocks that are called so, blocks of
links on pages of prose, and what has a heading such as "Related articles".

Everything that goes is noted, and can be put back where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turbohtml import Element, Node, Text

from inchworm.rules.page import frame
from inchworm.rules.page.prose import PARAGRAPHS, Prose, solid

_SMALL = 0.4
_SMALL_TOGETHER = 0.3
_MOSTLY = 0.5
_LINKS = 0.6
_BESIDE = 0.25
_AS_LONG_AS_ITS_HEADING = 1.5
# More than this is not for people; each look at a block costs all that is in it.
_MOST = 500
_DEEPEST = 100

_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
_OF_LINKS = frozenset({"article", "div", "ol", "p", "section", "span", "table", "ul"})


Small = Sequence[tuple[Element, frozenset[str]]]
"""Elements with what their names tell."""


class _Removed(NamedTuple):
    """A node taken out, and where it was."""

    node: Node
    parent: Element
    after: Node | None


class Cuttings:
    """What was taken out of a page so far."""

    def __init__(self) -> None:
        self._removed: list[_Removed] = []

    @property
    def nodes(self) -> list[Node]:
        return [removed.node for removed in self._removed]

    def take(self, node: Element | Text) -> None:
        parent = node.parent
        # What lies in a template right under it has no element around it, and is not seen anyway.
        if isinstance(parent, Element):
            self._removed.append(_Removed(node, parent, node.next_sibling))
            node.extract()

    def put_back(self) -> None:
        for node, parent, after in reversed(self._removed):
            if after is not None:
                after.insert_before(node)
            else:
                parent.append(node)
        self._removed.clear()


def trim(part: Node, prose: Prose, small: Small, title: frame.Title, cuttings: Cuttings) -> None:
    """Take what is no text out of the main part; never its title. `small`: what is called as small blocks are."""
    text = part.text
    is_prose = prose.is_share(_MOSTLY, part, text)
    for block in _called_small(part, len(text), is_prose, small):
        if not frame.is_title(block, title.heading):
            cuttings.take(block)
    if is_prose:
        for block in _of_links(part, prose, len(text)):
            if not title.is_in(block):
                cuttings.take(block)
        for node in _with_headings(part, prose, len(text)):
            cuttings.take(node)


# ---- by name


def _called_small(part: Node, size: int, is_prose: bool, small: Small) -> list[Element]:
    """Blocks whose names say that they are no text, if they are small, and all of that name together."""
    found: list[tuple[Element, frozenset[str], int]] = []
    together: Counter[str] = Counter()
    for block, words in small[:_MOST]:
        told = words if is_prose else words & frame.SMALL_ANYWHERE
        if told and _is_in(block, part) and (length := len(block.text)):
            found.append((block, told, length))
            together.update(dict.fromkeys(told, length))
    return [
        block
        for block, told, length in found
        if length < _SMALL * size and min(together[word] for word in told) < _SMALL_TOGETHER * size
    ]


def _is_in(block: Element, part: Node) -> bool:
    return any(around == part for around in block.ancestors)


# ---- by links


def _of_links(part: Node, prose: Prose, most: int) -> list[Element]:
    """Blocks that are mostly links. Those in paragraphs are part of the text."""
    inked: dict[Element, int] = {}
    for link in part.iter_elements("a"):
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
