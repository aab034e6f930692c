"""Which blocks are the frame of a host: those that stand on most of its pages, whatever they look like.

Pages that say next to nothing but what most pages say would make their common text look like a frame: the days of a
calendar, one text in a hundred variants. So a block has to stand on most pages of all, and on most of those that say
something of their own. A frame stands once on a page: what recurs inside of pages, too ("Note", "Returns"), is part of
how they are written. And what is short may be a fact that many pages share, so it has to stand on nearly all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Frame = frozenset[int]
"""The blocks that are the frame of a host, by their hashes."""

NO_FRAME: Frame = frozenset()

FRAMES = "1"
"""Raised whenever the blocks that we cut pages into change, or which of them recur, or which of those go."""

LEAST_PAGES = 8
"""On fewer pages than this nobody can tell what recurs."""

MOST_PAGES = 300
"""So many pages of a host tell what recurs on all of them."""

MOST = 1 / 2
SHORT = 40
MOST_SHORT = 3 / 4
"""On more than such a share of the pages stands what is frame, and what is shorter than this."""

OWN_SHARE = 0.1
OWN_SIZE = 60
"""A page says something of its own if so much of its text, and so many characters, do not stand on most pages."""


class Block(NamedTuple):
    """A block of a page: the hash of what it says, white space folded, and how long that is."""

    hash: int
    size: int


_Page = Mapping[Block, int]
"""The blocks of a page, and how many times it has each."""


def recurring(pages: Iterable[Sequence[Block]]) -> Frame:
    """The blocks that are the frame of these pages, all of one host."""
    # Pages that have the same blocks are one.
    distinct = list({frozenset(page): Counter(page) for page in pages if page}.values())
    often = _on_most(distinct)
    telling = [page for page in distinct if _says_something(page, often)] if often else []
    return frozenset(block.hash for block in often & _on_most(telling))


def _on_most(pages: Sequence[_Page]) -> frozenset[Block]:
    counts = Counter(block for page in pages for block, times in page.items() if times == 1)
    return frozenset(block for block, count in counts.items() if _is_most(block, count, len(pages)))


def _is_most(block: Block, count: int, pages: int) -> bool:
    return count >= LEAST_PAGES and count > (MOST_SHORT if block.size < SHORT else MOST) * pages


def _says_something(page: _Page, often: frozenset[Block]) -> bool:
    own = sum(block.size for block in page if block not in often)
    return own >= max(OWN_SIZE, OWN_SHARE * sum(block.size for block in page))
