"""The paragraphs of a page, and how much of them lies in which of its blocks.

A page says most of what it has to say in paragraphs that are not links. Where nobody wrote paragraphs, the text that
stands right in a block is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from turbohtml import Element, Node, Text

PARAGRAPHS = ("p", "pre", "blockquote")
SHORTEST = 40

_BLOCKS = ("article", "center", "dd", "div", "figcaption", "font", "li", "main", "section", "span", "td")
_IN_LINE = frozenset({"b", "code", "em", "font", "i", "span", "strong", "sub", "sup", "u"})
_SHORTEST_OWN = 140
_MOST_LINKED = 0.4
_FEW = 0.6
# A page can be nested deeper, and be made of more, than anybody would write: what is beyond is not looked at.
_DEEPEST = 100
_LOOKS = 30


class Sized(NamedTuple):
    """The text of a part as it stands in the source, and how many characters of it are not white space."""

    text: str
    size: int

    @classmethod
    def of(cls, part: Node) -> Sized:
        return cls(text := part.text, solid(text))

    def left(self, part: Node, cut: Iterable[Node]) -> Sized:
        """Those of a part that is left of the one with these words. `cut`: what was taken out of that.

        Counting takes longer than all else that is done with a text: if that is all that is missing, it is what is
        counted."""
        text = part.text
        gone = [node.data if isinstance(node, Text) else node.text for node in cut]
        if len(text) == len(self.text) - sum(map(len, gone)):
            return Sized(text, self.size - sum(map(solid, gone)))
        return Sized(text, solid(text))


class Prose(NamedTuple):
    """How many characters of prose each element holds, every one that holds any; and the paragraphs that are too short
    for any."""

    mass: dict[Node, int]
    short: list[Element]

    def of(self, element: Node) -> int:
        return self.mass.get(element, 0)

    def is_share(self, share: float, part: Node, words: Sized) -> bool:
        """Whether so much of the words of a part is prose."""
        return self.of(part) > share * words.size


def solid(text: str) -> int:
    """How many characters are not white space: sources are indented, and that says nothing."""
    return len(text) - text.count(" ") - text.count("\n") - text.count("\t")


def linked(block: Node, room: int) -> int:
    """How many characters of a block are links, out of so many. They can lie in links, and each look at one costs all
    that is in it."""
    size = 0
    for link in block.iter_elements("a"):
        size += len(link.text)
        if size >= room:
            return room
    return size


def gather(part: Node, words: Sized) -> Prose:
    """The prose of a part, by the elements that hold it. `words`: all that is in it."""
    total, room = 0, _LOOKS * len(words.text)
    found: list[tuple[Element, int]] = []
    short: list[Element] = []
    for paragraph in part.iter_elements(PARAGRAPHS):
        length = len(paragraph.text)
        if length < SHORTEST:
            short.append(paragraph)
            continue
        room -= 2 * length
        if room < 0:
            break
        in_links = linked(paragraph, length) if paragraph.find("a") is not None else 0
        is_quote = paragraph.tag == "blockquote"
        if in_links < _MOST_LINKED * length and not (is_quote and _is_made_of_paragraphs(paragraph)):
            found.append((paragraph, length - in_links))
            total += length - in_links
    if total < _FEW * words.size:
        found += _own_texts(part)
    return Prose(_added_up(part, found), short)


def _is_made_of_paragraphs(paragraph: Element) -> bool:
    return next(paragraph.iter_elements("p"), None) is not None


def _own_texts(part: Node) -> Iterator[tuple[Element, int]]:
    """The blocks that have text of their own, as long as a paragraph."""
    for block in part.iter_elements(_BLOCKS):
        size = 0
        for child in block.children:
            if isinstance(child, Text):
                size += len(child.data.strip())
            elif size and isinstance(child, Element) and child.tag in _IN_LINE:
                size += len(child.text)
        if size >= _SHORTEST_OWN and block.closest("a,p,pre,blockquote") is None:
            yield block, size


def _added_up(part: Node, found: list[tuple[Element, int]]) -> dict[Node, int]:
    """What is in a paragraph is in all that is around it. What is in a link is no prose."""
    mass: dict[Node, int] = {}
    level: dict[Node, int] = {}
    for element, size in found:
        level[element] = level.get(element, 0) + size
    for _ in range(_DEEPEST):
        above: dict[Node, int] = {}
        around: Node | None = None
        for node, size in level.items():
            mass[node] = mass.get(node, 0) + size
            if node == part:
                continue
            # Most have the same around them as the one before.
            if (parent := node.parent) is around:
                if around is not None:
                    above[around] += size
            elif parent is not None and not (type(parent) is Element and parent.tag == "a"):
                around = parent
                above[around] = above.get(around, 0) + size
        if not above:
            break
        level = above
    return mass
