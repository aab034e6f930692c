"""A page block by block: what is its text, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from turbohtml import Element, Node, Text

from inchworm.rules.page import main_text
from inchworm.rules.page.trim import WhyDropped

MOST = 5_000
_LONGEST = 200
_DEEPEST = 200
_BOXES = frozenset({"article", "body", "center", "div", "fieldset", "form", "header", "html", "main", "section"})
_IN_BOXES = ("article", "div", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "section", "table", "ul")


class BlockFate(NamedTuple):
    """A block of a page: whether it is text, why not, what it is called in the source, and how it begins."""

    kept: bool
    why: str
    element: str
    characters: int
    begins: str


def fates(found: main_text.MainPart) -> list[BlockFate]:
    """The blocks of a page in their order, and what became of each. What was taken out is put back for it."""
    taken = {cutting.node: cutting.why for cutting in found.cuttings.put_back()}
    around: set[Node] = {above for node in (*taken, found.node) for above in node.ancestors}
    return list(islice(_walk(found, taken, around), MOST))


def _walk(found: main_text.MainPart, taken: dict[Node, WhyDropped], around: set[Node]) -> Iterator[BlockFate]:
    waiting = [(found.body, found.body == found.node, 0)]
    while waiting:
        node, is_inside, depth = waiting.pop()
        if why := taken.get(node):
            yield from _block(node, why)
        elif depth < _DEEPEST and (node in around or node == found.node or _is_box(node)):
            inner = ((child, is_inside or child == found.node, depth + 1) for child in node.children)
            waiting += reversed(list(inner))
        else:
            yield from _block(node, None if is_inside else WhyDropped.OUTSIDE)


def _is_box(node: Node) -> bool:
    return isinstance(node, Element) and node.tag in _BOXES and next(node.iter_elements(_IN_BOXES), None) is not None


def _block(node: Node, why: WhyDropped | None) -> Iterator[BlockFate]:
    if not isinstance(node, (Element, Text)):
        return
    said = " ".join((node.text if isinstance(node, Element) else node.data).split())
    if said:
        yield BlockFate(why is None, why.value if why else "", _called(node), len(said), said[:_LONGEST])


def _called(node: Element | Text) -> str:
    """An element as a selector would name it."""
    if isinstance(node, Text):
        return ""
    name, classes = node.attr("id") or "", (node.attr("class") or "").split()
    return (node.tag + f"#{name}" * bool(name) + "".join(f".{one}" for one in classes))[:_LONGEST]
