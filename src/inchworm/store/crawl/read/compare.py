"""Comparing two runs of a crawl, URL by URL: resources left out, alternates included."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import NamedTuple

from inchworm.model import Change, Note, RunInfo
from inchworm.rules.change import change as rules
from inchworm.rules.change import groups
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.joins import IS_GONE, ITSELF, SETTLED, SETTLING, TELLING, line_from
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Row

_PRESENT = (
    "SELECT f.url_id, v.payload, v.text_hash, v.link_hash, v.reader, v.change, v.note, v.request_url FROM frontier f"
    f" JOIN {SETTLING}"
    " WHERE f.run_id = ? AND f.state = 'done' AND v.kind = 'page' AND v.outcome IN ('page', 'duplicate')"
    " AND f.url_id > ? AND f.url_id <= ?"
)
_BOTH = (
    "SELECT u.url_id, COALESCE(v.request_url, a.request_url, u.url), a.payload, a.text_hash, a.link_hash, a.reader, f.state, f.reason, v.outcome, v.failure,"
    " v.change, v.note, v.payload, v.text_hash, v.link_hash, v.reader"
    f" FROM ({_PRESENT}) a JOIN url u USING (url_id) LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = a.url_id"
    f" LEFT JOIN {SETTLING} AND v.url_id = f.url_id ORDER BY a.url_id"
)
_ONLY_LATER = (
    f"SELECT u.url_id, COALESCE(b.request_url, u.url), b.change, b.note FROM ({_PRESENT}) b JOIN url u USING (url_id) WHERE NOT EXISTS (SELECT 1 FROM frontier f"
    f" JOIN {SETTLING} WHERE f.run_id = ? AND f.url_id = b.url_id"
    " AND f.state = 'done' AND v.outcome IN ('page', 'duplicate')) ORDER BY b.url_id"
)
_BETWEEN = (
    f"SELECT {IS_GONE}, v.outcome, v.change, v.note, v.alike FROM {SETTLED} JOIN run r ON r.run_id = v.run_id WHERE v.url_id = ? AND /*sqlite +*/v.run_id IN ({line_from(ITSELF)})"
    " AND r.horizon > ? ORDER BY v.run_id"
)


_LAST_HEARD = (
    f"SELECT {IS_GONE} FROM visit v WHERE v.url_id = ? AND /*sqlite +*/v.run_id IN ({line_from(ITSELF)})"
    f" AND {TELLING} ORDER BY v.run_id DESC, v.seq DESC LIMIT 1"
)
_STEP = 2_000
"""Numbers of URLs that are looked at together."""

_MOST_STEPS = 10
_BACKWARDS = {Change.NEW: Change.DELETED, Change.DELETED: Change.NEW, Change.UNKNOWN: Change.NEW}


class Compared(NamedTuple):
    """One page by its address as it was requested, what became of it between two runs, and why nothing certain is
    known. `alike`: modified pages that have this number in common changed in the same way."""

    url: str
    change: Change
    why: str = ""
    alike: int | None = None


class _Finding(NamedTuple):
    """What a run found out about a page."""

    is_gone: bool
    outcome: str
    change: Change | None
    notes: str
    alike: int | None

    @property
    def is_heard_of(self) -> bool:
        return self.is_gone or self.change is not None

    @property
    def is_as_before(self) -> bool:
        return self.change is not None and rules.is_as_before(self.change, self.notes)


class ComparisonReader:
    """Two runs side by side; `first` is the earlier one."""

    def __init__(self, store: CrawlStore, first: RunInfo, second: RunInfo) -> None:
        self._db = store.db
        self._first = first
        self._second = second
        self._by_bytes = second.settings.get("compare_by") == "bytes"
        # What the runs of a line found out is told against the one before; of a branch they know nothing.
        line = self._db.execute(line_from(ITSELF), (second.run_id,)).fetchall()
        self._is_one_line = (first.run_id,) in line

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside, both runs stay as they are at this moment, whatever is committed meanwhile."""
        return self._db.snapshot()

    def __iter__(self) -> Iterator[Compared]:
        """Every page of either run, in the order of the numbers of their URLs. Only a part of them is in memory."""
        return (one for _, one in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Compared]]:
        """The same, each with the number of its URL."""
        (last,) = self._db.execute("SELECT COALESCE(MAX(url_id), 0) FROM url").fetchone()
        for after in range(0, last, _STEP):
            yield from self.part(after, after + _STEP)

    def part(self, after: int, until: int) -> list[tuple[int, Compared]]:
        """The pages whose URLs have numbers behind `after` and up to `until`, in the order of their numbers."""
        first, second = self._first.run_id, self._second.run_id
        both = self._db.execute(_BOTH, (first, after, until, second)).fetchall()
        later = self._db.execute(_ONLY_LATER, (second, after, until, first)).fetchall()
        found = [(row[0], self._judged(row)) for row in both]
        found += [(url_id, Compared(url, self._came_back(url_id, change, note))) for url_id, url, change, note in later]
        return sorted(found)

    def unchanged(self, after: int, last: int, limit: int) -> tuple[list[int], int | None]:
        """Numbers of URLs that both runs have alike, from behind one on, and behind which one it goes on. Looks at a
        part of them only, so there may be fewer than the limit though there are more."""
        found: list[int] = []
        for _ in range(_MOST_STEPS):
            until = min(after + _STEP, last)
            found += [url_id for url_id, one in self.part(after, until) if one.change is Change.UNCHANGED]
            if len(found) > limit:
                return found[:limit], found[limit - 1]
            if until >= last:
                return found, None
            after = until
        return found, after

    def _judged(self, row: Sequence[Row]) -> Compared:
        url_id, url, payload, *then, state, reason, outcome, failure, change, note, payload_now = row[:13]
        now = list(row[13:])
        if outcome in ("page", "duplicate"):
            if payload == payload_now or (then == now and not self._by_bytes):
                return Compared(url, Change.UNCHANGED)
            found = self._between(url_id)
            verdict = Change.MODIFIED if self._by_bytes else _verdict(found)
            if verdict is Change.MODIFIED:
                return Compared(url, verdict, alike=_alike(found))
            return Compared(url, verdict, note or "" if verdict is Change.UNKNOWN else "")
        if outcome == "redirect" and change == Change.UNCHANGED:
            found = self._between(url_id)
            if any(one.change is Change.MODIFIED for one in found):
                return Compared(url, Change.MODIFIED, note or "", _alike(found))
        if outcome == "redirect" and change:
            return Compared(url, Change(change), note or "")
        if outcome == "deleted" or self._was_deleted(url_id):
            return Compared(url, Change.DELETED)
        why = failure or reason or ("redirect" if outcome == "redirect" else state) or "not_reached"
        return Compared(url, Change.UNKNOWN, why)

    def _came_back(self, url_id: int, change: str | None, notes: str | None) -> Change:
        """A page that only the later run has is new, unless the earlier one did not get to it though it was known."""
        before = self._db.execute(_LAST_HEARD, (url_id, self._first.run_id)).fetchone()
        if change is None or before is None or before[0]:
            return Change.NEW
        found = Change(change)
        if found is Change.NEW and Note.BACK in (notes or "").split():
            return Change.UNCHANGED if rules.is_as_before(found, notes or "") else Change.MODIFIED
        return found

    def _between(self, url_id: int) -> list[_Finding]:
        """What the runs after the first one, up to the second, found out about a page."""
        if not self._is_one_line:
            return []
        rows = self._db.execute(_BETWEEN, (url_id, self._second.run_id, self._first.run_id)).fetchall()
        return [
            _Finding(bool(gone), outcome, Change(change) if change else None, notes or "", alike)
            for gone, outcome, change, notes, alike in rows
        ]

    def _was_deleted(self, url_id: int) -> bool:
        """Whether the last that was heard of it is that it is gone."""
        heard = [one for one in self._between(url_id) if one.is_heard_of]
        return bool(heard) and heard[-1].is_gone


def _verdict(found: Sequence[_Finding]) -> Change:
    """What all runs in between found a page to be, whatever its bytes or its reader."""
    looks = [one for one in found if one.change and one.outcome in ("page", "duplicate")]
    if not looks or not all(one.is_as_before or one.change is Change.UNKNOWN for one in looks):
        return Change.MODIFIED
    return Change.UNKNOWN if any(one.change is Change.UNKNOWN for one in looks) else Change.UNCHANGED


def _alike(found: Sequence[_Finding]) -> int | None:
    """What all the changes of a page in between have in common with those of others; None where one is not known."""
    numbers = [one.alike for one in found if one.change is Change.MODIFIED]
    if not numbers or None in numbers:
        return None
    return numbers[0] if len(numbers) == 1 else hash64(" ".join(map(str, numbers)))


# Bit by bit


def turned(change: Change) -> Change:
    """Backwards in time: what came then is gone now."""
    return _BACKWARDS.get(change, change)


class Tally:
    """Counts what became of the pages between two runs, a while at a time, and remembers where it saw a change. One
    thread at a time."""

    def __init__(self, is_backwards: bool) -> None:
        self._is_backwards = is_backwards
        self._seen: dict[Change, array[int]] = {one: array("q") for one in Change if one is not Change.UNCHANGED}
        self._alike = array("q")
        self._unchanged = 0
        self.looked_at = 0

    def count(self, comparison: ComparisonReader, last: int, seconds: float) -> None:
        """Go on counting up to the URL of this number, for so long at most."""
        until = time.monotonic() + seconds
        while self.looked_at < last and time.monotonic() < until:
            after, self.looked_at = self.looked_at, min(self.looked_at + _STEP, last)
            for url_id, one in comparison.part(after, self.looked_at):
                self._note(url_id, one._replace(change=turned(one.change)) if self._is_backwards else one)

    def _note(self, url_id: int, one: Compared) -> None:
        if one.change is Change.UNCHANGED:
            self._unchanged += 1
            return
        self._seen[one.change].append(url_id)
        if one.change is Change.MODIFIED:
            self._alike.append(one.alike or 0)

    def counts(self) -> dict[str, int]:
        found = {change.value: len(seen) for change, seen in self._seen.items()}
        return {**found, Change.UNCHANGED.value: self._unchanged}

    def listed(self, change: Change, after: int, limit: int) -> list[int]:
        """The numbers of the URLs that came to this, from behind one on."""
        seen = self._seen[change]
        start = bisect_right(seen, after)
        return list(seen[start : start + limit])

    def groups(self, after: groups.GroupPlace | None, limit: int) -> list[groups.AlikePages]:
        """Modified pages by what they have in common, from behind one group on; the numbers are those of their URLs."""
        return groups.behind(groups.grouped(self._seen[Change.MODIFIED], self._alike), after, limit)

    def alike(self, number: int, after: int, limit: int) -> list[int]:
        """The numbers of the URLs that changed in this way, from behind one on."""
        pairs = zip(self._seen[Change.MODIFIED], self._alike, strict=True)
        return list(islice((url_id for url_id, found in pairs if found == number and url_id > after), limit))
