"""The site by folders: what lies where, and how much of it."""

from __future__ import annotations

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inchworm.app.read.content.pages import MOST_LINKS
from inchworm.app.workspace import Workspace
from inchworm.model import CrawlInfo
from inchworm.store.crawl.read.urls import TREE_STEP, UrlInTree, UrlReader, UrlState

TREE_SECONDS = 0.2

WAITING_SECONDS = 1.0
"""How long one look may take to read on; what is missing then comes with the next one."""


class FolderSum(NamedTuple):
    """What lies in and below a folder."""

    name: str
    pages: int = 0
    failed: int = 0
    pending: int = 0
    refused: int = 0
    other: int = 0
    bytes: int = 0
    changed: int = 0

    @property
    def urls(self) -> int:
        return self.pages + self.failed + self.pending + self.refused + self.other


class TreeLevel(NamedTuple):
    """One level of a site, as it was counted so many seconds ago: all of it in numbers, some of its folders, the
    fullest first, then what lies in this one; and where the next part of that begins. While it is being counted, only
    how many of the URLs that are known have been."""

    run: int
    at: str
    counted: int
    known: int
    is_complete: bool = False
    seconds_ago: float = 0.0
    sum: FolderSum = FolderSum("")
    folders: Sequence[FolderSum] = ()
    pages: Sequence[UrlState] = ()
    next_offset: int | None = None


class SiteTree:
    """A site by folders."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def level(self, crawl: CrawlInfo, number: int | None = None, at: str = "", offset: int = 0) -> TreeLevel:
        """One level of a site. A run is counted through once and remembered; what one look has no time for, the next
        one goes on with."""
        with self._workspace.reading(crawl) as store:
            current, reader = self._workspace.run_of(crawl, store, number), UrlReader(store)
            key = (str(self._workspace.place(crawl).folder), current.run_id)
            count = _SHELF.count_of(key, reader.stamp(current.run_id), self._workspace.is_running(crawl))
            # Who has been told that it takes a while waits longer, and seldomer.
            count.go_on(reader, current.run_id, WAITING_SECONDS if count.counted else TREE_SECONDS)
            known = current.counters.known
            if not count.is_complete:
                return TreeLevel(current.number, at, count.counted, known)
            whole, below = count.below(at)
            inside, shown = count.inside(at), below[offset : offset + MOST_LINKS]
            first = max(0, offset - len(below))
            ids = inside[first : first + MOST_LINKS - len(shown)]
            pages = reader.states(current.run_id, ids)
        end = offset + len(shown) + len(ids)
        return TreeLevel(
            current.number,
            at,
            count.counted,
            known,
            True,
            count.age(),
            whole,
            shown,
            pages,
            end if end < len(below) + len(inside) else None,
        )


# ---- counting a run by folders


_FRESH_SECONDS = 30.0
"""For so long a count of a run that goes on is good enough."""

_MOST_COUNTED = 4_000_000
"""URLs in all counts that are remembered."""

_PLACES = {"page": 0, "failed": 1, "pending": 2, "refused": 3}
_OTHER, _BYTES, _CHANGED, _WIDTH = 4, 5, 6, 7
_CHANGES = ("new", "modified", "deleted")


class FolderCount:
    """The URLs of a run by the folders in which they lie: how many of which kind, and which."""

    def __init__(self, stamp: tuple[int, ...]) -> None:
        self.stamp = stamp
        self.counted = 0
        self.is_complete = False
        self._begun = time.monotonic()
        self._after = 0
        self._numbers: dict[str, list[int]] = {}
        self._inside: dict[str, array[int]] = {}
        self._mutex = threading.Lock()

    def go_on(self, reader: UrlReader, run_id: int, seconds: float) -> None:
        """Go on for so long. Who finds another at it waits for it."""
        until = time.monotonic() + seconds
        if not self.is_complete and self._mutex.acquire(timeout=seconds):
            try:
                while not self.is_complete and time.monotonic() < until:
                    self._step(reader.of_run(run_id, self._after, TREE_STEP))
            finally:
                self._mutex.release()

    def _step(self, rows: Sequence[UrlInTree]) -> None:
        numbers, inside = self._numbers, self._inside
        for url_id, url, what, size, change in rows:
            folder = folder_of(url)
            sums = numbers.get(folder)
            if sums is None:
                sums = numbers[folder] = [0] * _WIDTH
                inside[folder] = array("I")
            sums[_PLACES.get(what or "", _OTHER)] += 1
            sums[_BYTES] += size or 0
            sums[_CHANGED] += change in _CHANGES
            inside[folder].append(url_id)
        self.counted += len(rows)
        self._after = rows[-1].url_id if rows else self._after
        self.is_complete = len(rows) < TREE_STEP

    def age(self) -> float:
        return time.monotonic() - self._begun

    def below(self, at: str) -> tuple[FolderSum, list[FolderSum]]:
        """All that lies in a folder, and the folders right below it, the fullest first; of the whole: its hosts."""
        found: dict[str, list[int]] = {}
        start = len(at) or len("https://")
        for folder, numbers in self._numbers.items():
            if folder.startswith(at):
                # The folder itself has no further slash and comes to "".
                name = folder[: folder.find("/", start) + 1]
                _add(found.setdefault(name, [0] * _WIDTH), numbers)
        whole = [sum(column) for column in zip(*found.values(), strict=True)]
        found.pop("", None)
        sums = [FolderSum(name, *numbers) for name, numbers in found.items()]
        return FolderSum(at, *whole), sorted(sums, key=lambda one: (one.refused - one.urls, -one.refused, one.name))

    def inside(self, at: str) -> array[int]:
        """The numbers of the URLs right in this folder, in the order in which the crawl met them."""
        return self._inside.get(at, array("I"))


def _add(numbers: list[int], more: Iterable[int]) -> None:
    for place, count in enumerate(more):
        numbers[place] += count


def folder_of(url: str) -> str:
    """Where a URL lies: all of it up to the last slash of its path."""
    return url[: url.rfind("/", 0, url.find("?") if "?" in url else None) + 1]


class _Shelf:
    """The counts that are remembered, the latest used last. The same for all who ask in this process."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, int], FolderCount] = OrderedDict()
        self._mutex = threading.Lock()

    def count_of(self, key: tuple[str, int], stamp: tuple[int, ...], goes_on: bool) -> FolderCount:
        """The count of a run; a new one where the run has changed since."""
        with self._mutex:
            found = self._counts.get(key)
            if found is None or _is_old(found, stamp, goes_on):
                found = self._counts[key] = FolderCount(stamp)
            self._counts.move_to_end(key)
            while len(self._counts) > 1 and sum(one.counted for one in self._counts.values()) > _MOST_COUNTED:
                self._counts.popitem(last=False)
            return found


def _is_old(count: FolderCount, stamp: tuple[int, ...], goes_on: bool) -> bool:
    if count.stamp == stamp:
        return False
    if not goes_on:
        return True
    # A large run changes while it is counted; to begin again each time would never end.
    return count.is_complete and count.age() > _FRESH_SECONDS


_SHELF = _Shelf()
