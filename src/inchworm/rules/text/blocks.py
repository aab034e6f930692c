"""The blocks of a page's main part: paragraphs, headings, items, rows, in their order, each known by what it says.

A block is the text that stands in one block of the page and in none inside of that, however it is marked up inside. The
same cut serves whoever counts which blocks recur on the pages of a host (`recurring`), and leaves them out here: out of
the tree, so that text, Markdown and HTML all lack them.

Not every block that recurs may go. A heading goes with all that stands under it, and what announces something ("For
example:") with what it announces. Items of a list and rows of a table go together or not at all: one of them alone is a
fact that many pages share, as is "Status: stable". The title and code stay. So does the whole page, if next to nothing
of it were left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from turbohtml import Element, Node, Text
from xxhash import xxh3_64_intdigest

from inchworm.rules.text.recurring import SHORT, Block, Frame

MOST = 5_000
"""What a page has beyond so many blocks is not for people, and is left as it is."""

NEXT_TO_NOTHING = 32
"""With fewer characters than this, headings aside, a page has lost its text."""

_DEEPEST = 50
_MOST_INSIDE = 20 * MOST
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"dl", "menu", "ol", "ul"})
_TABLES = frozenset({"caption", "table", "tbody", "tfoot", "thead", "tr"})
_PARAGRAPHS = frozenset(
    {*_LEVELS, "address", "blockquote", "dd", "dt", "figcaption", "legend", "li", "p", "pre", "summary"}
)
_BOXES = frozenset({"article", "aside", "body", "center", "details", "dialog", "div", "fieldset", "figure", "footer"})
_BOXES |= {"form", "header", "hgroup", "html", "main", "nav", "search", "section", "summary"}
_BLOCKS = _LISTS | _TABLES | _PARAGRAPHS | _BOXES
_INSIDE = tuple(sorted(_BLOCKS))
_SHOWN = ("audio", "canvas", "iframe", "img", "math", "object", "svg", "video")
_BOLD = frozenset({"b", "strong"})
_FACT = re.compile(r"[^:：]+[:：] ?[^\s:：]")


class PlacedBlock(NamedTuple):
    """A block as it stands in its page. `level`: of a heading; `announces`: it says that something follows; `stays`: it
    never goes; `group`: the list or table that it is part of, 0 for none."""

    hash: int
    size: int
    level: int = 0
    announces: bool = False
    stays: bool = False
    group: int = 0


class Cut(NamedTuple):
    """The blocks that a main part had, in their order, and how many of them went."""

    blocks: Sequence[Block]
    left_out: int


def blocks(part: Node) -> Sequence[Block]:
    """The blocks of a main part, in their order."""
    return [_block(piece) for piece in _pieces(part)]


def leave_out(part: Node, frame: Frame) -> Cut:
    """Take the blocks of a frame out of a main part."""
    pieces = list(_pieces(part))
    found = list(map(_block, pieces))
    if frame.isdisjoint(block.hash for block in found):
        return Cut(found, 0)
    going = left_out(_placed(pieces, found, part), frame)
    for number in going:
        _take(pieces[number], part)
    return Cut(found, len(going))


def left_out(page: Sequence[PlacedBlock], frame: Frame) -> list[int]:
    """The blocks of a page that go, by their numbers."""
    wanted = {number for number, block in enumerate(page) if block.hash in frame and not block.stays}
    staying = {block.group for number, block in enumerate(page) if block.group and number not in wanted}
    wanted = {number for number in wanted if page[number].group not in staying}
    going = _with_what_they_announce(page, wanted)
    left = sum(block.size for number, block in enumerate(page) if number not in going and not block.level)
    return sorted(going) if left >= NEXT_TO_NOTHING else []


_NOTHING, _GOES, _STAYS = range(3)


def _with_what_they_announce(page: Sequence[PlacedBlock], wanted: set[int]) -> set[int]:
    """Of what may go what can go: headings only with all of their section, announcements only with what follows."""
    going: set[int] = set()
    # By level: what stands between here and the next heading of that level or above it.
    under = [_NOTHING] * 7
    for number in range(len(page) - 1, -1, -1):
        block, goes = page[number], number in wanted
        if block.level:
            goes = goes and under[block.level] == _GOES
            under[block.level :] = [_NOTHING] * (7 - block.level)
        elif block.announces and not block.group:
            goes = goes and number + 1 in going
        if goes:
            going.add(number)
        above = block.level or 7
        under[:above] = [max(what, _GOES if goes else _STAYS) for what in under[:above]]
    return going


# ---- cutting


@dataclass(slots=True)
class _Piece:
    """A block in the tree: what holds it, and its nodes there with what they say; `is_all`: it is all that its holder
    says."""

    holder: Node
    nodes: list[Element | Text] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    is_all: bool = False

    @property
    def text(self) -> str:
        return " ".join("".join(self.said).split())


def _block(piece: _Piece) -> Block:
    text = piece.text
    return Block(xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")), len(text))


def _pieces(part: Node) -> Iterator[_Piece]:
    """What stands in one block without another between, in the order of the page."""
    return islice(_cut(part), MOST)


def _cut(part: Node) -> Iterator[_Piece]:
    around_blocks = _around_blocks(part)
    piece = _Piece(part)
    levels: list[tuple[Node, Iterator[Node]]] = [(part, iter(part.children))]
    while levels:
        holder, nodes = levels[-1]
        if piece.holder is not holder:
            if piece.nodes:
                yield piece
            piece = _Piece(holder)
        for node in nodes:
            if isinstance(node, Text):
                _add(piece, node, node.data)
            elif isinstance(node, Element):
                is_block = node.tag in _BLOCKS
                if node in around_blocks:
                    # What is no block and has some inside lets them through.
                    levels.append((node if is_block else holder, iter(node.children)))
                    break
                if not is_block:
                    _add(piece, node, node.text)
                elif text := node.text.strip():
                    if piece.nodes:
                        yield piece
                        piece = _Piece(holder)
                    yield _Piece(node, [node], [text], True)
        else:
            levels.pop()
    if piece.nodes:
        yield piece


def _around_blocks(part: Node) -> set[Node]:
    """What has blocks inside, but for what lies deeper than anybody would nest."""
    found = {part}
    for block in islice(part.iter_elements(_INSIDE), _MOST_INSIDE):
        around, path = block.parent, list[Node]()
        while around is not None and around not in found and len(path) < _DEEPEST:
            path.append(around)
            around = around.parent
        if around in found:
            found.update(path)
    return found


def _add(piece: _Piece, node: Element | Text, text: str) -> None:
    if text and not text.isspace():
        piece.nodes.append(node)
    if piece.nodes:
        piece.said.append(text)


# ---- as it stands in its page


def _placed(pieces: Sequence[_Piece], found: Sequence[Block], part: Node) -> list[PlacedBlock]:
    groups: dict[Node, int] = {}
    placed = [_with_place(piece, block, part, groups) for piece, block in zip(pieces, found, strict=True)]
    titles = [number for number, block in enumerate(placed) if block.level == 1]
    if titles:
        # The last one, as the first may be the name of the site.
        placed[titles[-1]] = placed[titles[-1]]._replace(stays=True)
    return placed


def _with_place(piece: _Piece, block: Block, part: Node, groups: dict[Node, int]) -> PlacedBlock:
    tag = piece.holder.tag if isinstance(piece.holder, Element) else ""
    container = _container(piece.holder, part)
    group = groups.setdefault(container, len(groups) + 1) if container is not None else 0
    announces = piece.text.endswith((":", "：")) or _is_bold(piece)
    stays = tag == "pre" or (block.size < SHORT and _FACT.match(piece.text) is not None)
    return PlacedBlock(*block, _LEVELS.get(tag, 0), announces, stays, group)


def _is_bold(piece: _Piece) -> bool:
    nodes = [node for node in piece.nodes[0].children if not _is_blank(node)] if piece.is_all else piece.nodes
    return all(isinstance(node, Element) and node.tag in _BOLD for node in nodes)


def _is_blank(node: Node) -> bool:
    return isinstance(node, Text) and (not node.data or node.data.isspace())


def _container(holder: Node, part: Node) -> Node | None:
    """The list, or the table that is no layout, of which a block is an item, or lies in one."""
    around: Node | None = holder
    for _ in range(_DEEPEST):
        if around is None or around == part:
            return None
        if isinstance(around, Element) and (
            around.tag in _LISTS or (around.tag == "table" and _is_data(around, holder))
        ):
            return around
        around = around.parent
    return None


def _is_data(table: Element, holder: Node) -> bool:
    in_row = isinstance(holder, Element) and holder.tag == "tr"
    return in_row or next(table.iter_elements(("caption", "th", "thead")), None) is not None


# ---- taking out


def _take(piece: _Piece, part: Node) -> None:
    for node in piece.nodes:
        _extract(node, part)


def _extract(node: Element | Text, part: Node) -> None:
    """Take a node out, and what around it then shows nothing."""
    around = node.parent
    node.extract()
    for _ in range(_DEEPEST):
        if not isinstance(around, Element) or around == part or _shows(around):
            return
        emptied, around = around, around.parent
        emptied.extract()


def _shows(element: Element) -> bool:
    return (
        next(iter(element.stripped_strings), None) is not None or next(element.iter_elements(_SHOWN), None) is not None
    )
