"""Modified pages by what they have in common: groups, in their order, and what differs on the pages of one.

What differs, and the number that stands for it, is found by `alike`; whoever only passes groups on does not load that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, islice
from typing import NamedTuple


class Passage(NamedTuple):
    """What stood in the title, the text or the links of a page, and what stands there now; one of them may be empty."""

    where: str
    before: str
    after: str


class GroupPlace(NamedTuple):
    """Where a group stands in a list, the largest first: how many pages it has, and its first one."""

    pages: int
    first: int


class AlikePages(NamedTuple):
    """Pages that changed in the same way: how many they are, the first of them, and what they have in common. Of a page
    about which that is not known, None: it is alone."""

    pages: int
    first: int
    alike: int | None

    @property
    def place(self) -> GroupPlace:
        return GroupPlace(self.pages, self.first)


@dataclass(frozen=True, slots=True)
class ModifiedGroup:
    """Modified pages that changed in the same way, as people are told: how many they are, the first of them, and what
    changed. `note`: what a run said of the first one."""

    pages: int
    urls: Sequence[str]
    difference: Sequence[Passage]
    difference_is_cut: bool = False
    note: str = ""


def grouped(numbers: Sequence[int], differences: Sequence[int]) -> Iterator[AlikePages]:
    """Pages by what they have in common, the largest groups first; then those that are alone, in their order. Both
    sequences go together, page by page; a difference of 0 is not known. Little memory is used: most pages of a million
    may be alone."""
    counts = dict(_counted_twice(differences))
    firsts: dict[int, int] = {}
    for page, alike in zip(numbers, differences, strict=True):
        if alike in counts:
            firsts.setdefault(alike, page)
    found = (AlikePages(counts[alike], first, alike) for alike, first in firsts.items())
    yield from sorted(found, key=lambda one: (-one.pages, one.first))
    for page, alike in zip(numbers, differences, strict=True):
        if alike not in counts:
            yield AlikePages(1, page, alike or None)


def _counted_twice(differences: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What is there more than once, and how often."""
    for alike, same in groupby(sorted(differences)):
        count = sum(1 for _ in same)
        if alike and count > 1:
            yield alike, count


def behind(groups: Iterable[AlikePages], after: GroupPlace | None, limit: int) -> list[AlikePages]:
    """So many groups from behind one on."""
    rest = groups if after is None else dropwhile(lambda one: _order(one.place) <= _order(after), groups)
    return list(islice(rest, limit))


def _order(place: GroupPlace) -> tuple[int, int]:
    return -place.pages, place.first
