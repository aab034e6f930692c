"""Two runs side by side, a part at a time: cheap enough to be asked every second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from inchworm.app.memory import Memory
from inchworm.app.read.content.differences import Difference, Differences
from inchworm.app.workspace import Workspace
from inchworm.errors import NotNow, WrongUse
from inchworm.model import Change, CrawlInfo, RunInfo, RunState
from inchworm.rules.change.groups import GroupPlace
from inchworm.rules.words import explain, failures
from inchworm.store.crawl.read.compare import ComparisonReader, Tally
from inchworm.store.crawl.read.progress import AlikeReader, ChangedPage, ProgressReader, Whole
from inchworm.store.crawl.store import CrawlStore

_STEADY = 10_000
"""Counts of a run that goes on are as old as so many of its steps."""

COUNT_SECONDS = 0.12
_SIFTED = 5_000
_CHUNK = 500
_MOST_GROUPS = 50
"""What differs is read from the archive: of so many groups at once."""

_NOT_REACHED = {
    "pending": "it waits for its turn",
    "not_reached": "no page led to it",
    "redirect": "it redirects now",
    "done": "it brought no page",
}


class Counting:
    """A tally that several threads go on with, one at a time."""

    def __init__(self, is_backwards: bool) -> None:
        self.tally = Tally(is_backwards)
        self.lock = threading.Lock()


_TALLIES: Memory[Counting] = Memory(8)
_DIFFERENCES: Memory[Difference] = Memory(1_000)


class PagesWanted(NamedTuple):
    """Which pages of a comparison are wanted: those with which this happened, with this in their URL, behind this
    number, at most so many. Without a change: those of the first one that there is. `alike`: only modified pages that
    have this in common; `behind`: groups of modified pages from behind this one on."""

    change: str = ""
    text: str = ""
    after: int = 0
    limit: int = 50
    alike: int | None = None
    behind: GroupPlace | None = None


class PageGroup(NamedTuple):
    """Modified pages that changed in the same way: how many, the first of them, what they have in common, and what
    differs on them."""

    pages: int
    first: ChangedPage
    alike: int | None
    difference: Difference


@dataclass(frozen=True, slots=True)
class ComparisonPart:
    """Two runs side by side: how many pages came to what, and a part of those that are wanted. `looked_at` of `urls`
    says how far they are counted. `groups`: of modified pages, when nothing else is asked for, the largest groups, of
    which there are more behind `next_group`."""

    baseline: int
    current: int
    counts: Mapping[str, int]
    is_on_record: bool
    looked_at: int
    urls: int
    change: str
    rows: Sequence[ChangedPage]
    next_after: int | None
    groups: Sequence[PageGroup] = ()
    next_group: GroupPlace | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a crawl, and the store they are in."""

    store: CrawlStore
    first: RunInfo
    second: RunInfo

    @property
    def is_backwards(self) -> bool:
        return self.first.run_id > self.second.run_id

    @property
    def is_on_record(self) -> bool:
        """Whether the second run noted down itself what it found changed since the first."""
        return self.second.parent == self.first.number

    def comparison(self) -> ComparisonReader:
        earlier, later = sorted((self.first, self.second), key=lambda one: one.run_id)
        return ComparisonReader(self.store, earlier, later)

    def key(self) -> Hashable:
        return (str(self.store.path), *map(stamp, (self.first, self.second)))


class Comparisons:
    """Two runs side by side."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def part(self, crawl: CrawlInfo, runs: tuple[int | None, int | None], wanted: PagesWanted) -> ComparisonPart:
        """Two runs side by side. Where the later run did not note down itself what changed, it is counted a while at a
        time."""
        with self._workspace.reading(crawl) as store:
            pair, last = self._pair(crawl, store, runs), Whole(store).last_url()
            needs_count = not pair.is_on_record or wanted.change == Change.UNKNOWN
            tally = _go_on(pair, last) if needs_count else None
            counts = _on_record(pair.second) if pair.is_on_record or tally is None else tally.counts()
            change = _chosen(wanted.change, counts)
            groups, next_group = self._groups(crawl, pair, tally, wanted) if _has_groups(change, wanted) else ([], None)
            rows, next_after = ([], None) if groups else _sifted(_source(pair, change, tally, wanted.alike), wanted)
            return ComparisonPart(
                pair.first.number,
                pair.second.number,
                counts,
                pair.is_on_record,
                tally.looked_at if tally else last,
                last,
                change.value,
                _pages(pair, change, rows),
                next_after,
                groups,
                next_group,
            )

    def _groups(
        self, crawl: CrawlInfo, pair: Pair, tally: Tally | None, wanted: PagesWanted
    ) -> tuple[list[PageGroup], GroupPlace | None]:
        """Modified pages by what they have in common, and behind which group it goes on."""
        limit = min(wanted.limit, _MOST_GROUPS)
        differences = Differences(pair.store, self._workspace.place(crawl), (pair.first, pair.second))
        if tally is None:
            reader = AlikeReader(pair.store, pair.second.run_id)
            found = reader.groups(wanted.behind, limit + 1)
            pages = {one.number: one for one in reader.at([one.first for one in found], pair.first.run_id)}
        else:
            found = tally.groups(wanted.behind, limit + 1)
            pages = {one.number: one for one in _titled(pair, [one.first for one in found])}
        shown, groups = found[:limit], []
        for one in shown:
            first = pages[one.first]
            key = (pair.key(), first.url_id)
            told = _DIFFERENCES.get(key, partial(differences.of, first.url_id, first.url))
            groups.append(PageGroup(one.pages, first, one.alike, told))
        return groups, shown[-1].place if len(found) > limit else None

    def _pair(self, crawl: CrawlInfo, store: CrawlStore, runs: tuple[int | None, int | None]) -> Pair:
        """The runs of these numbers; else the last one, and the one that it builds on or that comes before it. What
        builds on none is compared with its last branch."""
        first, second = runs
        later = self._workspace.run_of(crawl, store, second)
        found = (first, later.parent, later.origin, later.number - 1 if later.number else None)
        before = next((number for number in found if number is not None), None)
        if before is None and second is None and (branch := store.runs.newest_branch(later.number)) is not None:
            return Pair(store, later, branch)
        if before is None:
            raise NotNow("There is no run before the first one.", "Choose a later one.")
        return Pair(store, self._workspace.run_of(crawl, store, before), later)


def stamp(one: RunInfo) -> tuple[int, int, int | None]:
    """What tells a run from what it was or will be; of one that goes on, roughly."""
    seq = one.seq // _STEADY if one.state is RunState.IN_PROGRESS else one.seq
    return one.run_id, seq, one.ended_ms


# Two runs
Source = Callable[[int, int], tuple[list[ChangedPage], int | None]]
"""Gives a part of a list: behind a number, at most so much; and behind which number it goes on."""


def _on_record(one: RunInfo) -> dict[str, int]:
    return {change.value: getattr(one.counters, change.value) for change in Change}


def _go_on(pair: Pair, last: int) -> Tally:
    """The tally of two runs, counted a little further."""
    counting = _TALLIES.get(pair.key(), lambda: Counting(pair.is_backwards))
    with counting.lock:
        counting.tally.count(pair.comparison(), last, COUNT_SECONDS)
    return counting.tally


def _chosen(wanted: str, counts: Mapping[str, int]) -> Change:
    if wanted and wanted not in {change.value for change in Change}:
        raise WrongUse(f"Nothing is {wanted!r}.", f"Known ones: {', '.join(Change)}.")
    first = (Change.MODIFIED, Change.NEW, Change.DELETED)
    return Change(wanted) if wanted else next((one for one in first if counts[one.value]), Change.MODIFIED)


def _has_groups(change: Change, wanted: PagesWanted) -> bool:
    return change is Change.MODIFIED and not wanted.text and wanted.alike is None


def _source(pair: Pair, change: Change, tally: Tally | None, number: int | None) -> Source:
    last = Whole(pair.store).last_url()
    if number is not None:
        return _same(pair, tally, number)
    if tally is None or (pair.is_on_record and change is not Change.UNKNOWN):
        return _recorded(pair, change)
    return _unchanged(pair, last) if change is Change.UNCHANGED else _tallied(pair, change, tally, last)


def _recorded(pair: Pair, change: Change) -> Source:
    progress = ProgressReader(pair.store, pair.second.run_id)

    def source(after: int, limit: int) -> tuple[list[ChangedPage], int | None]:
        found = progress.changed(change.value, pair.first.run_id, after, limit + 1)
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    return source


def _same(pair: Pair, tally: Tally | None, number: int) -> Source:
    """Modified pages that have this in common."""
    reader = AlikeReader(pair.store, pair.second.run_id)

    def source(after: int, limit: int) -> tuple[list[ChangedPage], int | None]:
        if tally is None:
            found = reader.alike(number, pair.first.run_id, after, limit + 1)
        else:
            found = _titled(pair, tally.alike(number, after, limit + 1))
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    return source


def _unchanged(pair: Pair, last: int) -> Source:
    comparison = pair.comparison()

    def source(after: int, limit: int) -> tuple[list[ChangedPage], int | None]:
        numbers, next_after = comparison.unchanged(after, last, limit)
        return _titled(pair, numbers), next_after

    return source


def _tallied(pair: Pair, change: Change, tally: Tally, last: int) -> Source:
    def source(after: int, limit: int) -> tuple[list[ChangedPage], int | None]:
        numbers = tally.listed(change, after, limit + 1)
        more = numbers[limit - 1] if len(numbers) > limit else None
        # What comes behind the last one is perhaps not counted yet.
        unsure = tally.looked_at if tally.looked_at < last else None
        return _titled(pair, numbers[:limit]), more if more is not None else unsure

    return source


def _titled(pair: Pair, numbers: list[int]) -> list[ChangedPage]:
    return Whole(pair.store).titled(numbers, (pair.first.run_id, pair.second.run_id))


def _sifted(source: Source, wanted: PagesWanted) -> tuple[list[ChangedPage], int | None]:
    """A part of a list with only those that have this text in their URL. Looks at a bounded number of them, so there
    may be less than is wanted though there is more."""
    text = wanted.text.lower()
    if not text:
        return source(wanted.after, wanted.limit)
    found: list[ChangedPage] = []
    after: int | None = wanted.after
    for _ in range(_SIFTED // _CHUNK):
        if after is None or len(found) >= wanted.limit:
            break
        part, after = source(after, _CHUNK)
        found += [one for one in part if text in one.url.lower()]
    if len(found) > wanted.limit:
        found = found[: wanted.limit]
        after = found[-1].number
    return found, after


def _pages(pair: Pair, change: Change, rows: Iterable[ChangedPage]) -> list[ChangedPage]:
    comparison = pair.comparison()
    found = []
    for one in rows:
        part = comparison.part(one.number - 1, one.number) if change is Change.UNKNOWN else []
        note = _why(part[0][1].why) if part else one.note
        found.append(one._replace(note=note))
    return found


def _why(word: str) -> str:
    if word in failures.KINDS:
        return failures.KINDS[word].sentence
    return explain.REASONS.get(word) or _NOT_REACHED.get(word, word)
