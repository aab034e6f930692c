"""How a run goes, and two runs side by side, for people who watch: cheap enough to be asked every second."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from inchworm.app.changes import Changes
from inchworm.app.checkpoints import as_json
from inchworm.app.looking import session_json
from inchworm.app.memory import Memory
from inchworm.engine import run
from inchworm.errors import NotNow, WrongUse
from inchworm.model import Change, Checkpoint, CheckpointType, CrawlInfo, RunInfo, RunState, SessionInfo, SessionState
from inchworm.rules.words import explain, failures
from inchworm.rules.words.times import iso
from inchworm.store.crawl.compare import Comparison, Tally
from inchworm.store.crawl.history import History
from inchworm.store.crawl.progress import Changed, Progress, Whole
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

SAMPLES = 120
FEW = 20
_FEW_HOSTS = 10
COUNT_SECONDS = 0.12
_LATELY_MS = 30_000
_MOST_KEPT = 64
_MANY_FAILURES = 5_000
_STEADY = 10_000
"""Counts of a run that goes on are as old as so many of its steps."""

_SIFTED = 5_000
_CHUNK = 500
_ALL = 1 << 62
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


_FAILURES: Memory[dict[str, int]] = Memory(_MOST_KEPT)
_DOWNLOADED: Memory[dict[str, int]] = Memory(_MOST_KEPT)
_TALLIES: Memory[Counting] = Memory(8)


class Sought(NamedTuple):
    """Which pages of a comparison are wanted: those with which this happened, with this in their URL. Without a change:
    those of the first one that there is."""

    change: str = ""
    text: str = ""


class Place(NamedTuple):
    """Which part of a list is wanted: behind this number, at most so much."""

    after: int = 0
    limit: int = 50


@dataclasses.dataclass(frozen=True, slots=True)
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

    def comparison(self) -> Comparison:
        earlier, later = sorted((self.first, self.second), key=lambda one: one.run_id)
        return Comparison(self.store, earlier, later)

    def key(self) -> Hashable:
        return (str(self.store.path), *map(_stamp, (self.first, self.second)))


class Progressing(Changes):
    """Verbs for whoever watches a run."""

    def run_progress(self, crawl: CrawlInfo, number: int) -> dict[str, Any]:
        """All that changes while a run goes on."""
        with self.reading(crawl) as store:
            current, last, end = self.run_of(crawl, store, number), self.run_of(crawl, store), store.line_end()
            is_last = current.number == last.number
            running = is_last and self.is_running(crawl)
            progress, now_ms = Progress(store, current.run_id), self.clock.now_ms()
            sessions = _sessions(progress, store.sessions(current.run_id), current, running, now_ms)
            return {
                **_about(current, running),
                "is_last": is_last,
                "is_running": running,
                "newest_run": store.newest_number(),
                "line_end": end.number if end else None,
                "sessions": sessions,
                "seconds": sum(one["seconds"] for one in sessions),
                "pace": _pace(progress, current, sessions, now_ms if running else None),
                "failures": _failures(progress, store, current),
                "hosts": _hosts(progress, now_ms),
                **_marked(progress, crawl, store, current),
            }

    def downloaded(self, crawl: CrawlInfo, number: int) -> dict[str, int]:
        """Why pages were downloaded that turned out to be unchanged, once a run is complete."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            if current.parent is None or current.state is not RunState.COMPLETED:
                return {}
            key = (str(store.path), _stamp(current))
            return _DOWNLOADED.get(key, lambda: View(store).why_downloaded(current.run_id))

    # Checkpoints

    def checkpoints_before(self, crawl: CrawlInfo, before: int | None, limit: int) -> dict[str, Any]:
        """A part of the checkpoints of a crawl, the newest first, and all of them in numbers."""
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            whole, history, runs = Whole(store), History(store), {one.number: one for one in store.runs()}
            numbers = whole.checkpoints(_ALL if before is None else before, limit)
            points = [point for number in numbers if (point := history.checkpoint(number))]
            types = whole.checkpoint_types()
            return {
                "rows": [_point(crawl, point, history, runs[point.run].seq) for point in points],
                "types": {kind.value: types.get(kind.value, (0, 0))[0] for kind in CheckpointType},
                "count": sum(count for count, _ in types.values()),
                "size": sum(size for _, size in types.values()),
                "runs": len(runs),
                "is_running": self.is_running(crawl),
            }
        return {"rows": [], "types": {}, "count": 0, "size": 0, "runs": 0, "is_running": False}

    # Two runs

    def run_list(self, crawl: CrawlInfo, most: int) -> list[dict[str, Any]]:
        """The last runs of a crawl, the newest first: number, mode, beginning."""
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            newest = reversed(store.runs()[-most:])
            return [{"run": one.number, "mode": one.mode, "started_at": iso(one.created_ms)} for one in newest]
        return []

    def compare_part(
        self, crawl: CrawlInfo, runs: tuple[int | None, int | None], sought: Sought, place: Place
    ) -> dict[str, Any]:
        """Two runs side by side: how many pages came to what, and a part of those that are wanted. Where the later run
        did not note it down itself, it is counted a while at a time; `looked_at` of `urls` says how far."""
        with self.reading(crawl) as store:
            pair, last = self._pair(crawl, store, runs), Whole(store).last_url()
            needs_count = not pair.is_on_record or sought.change == Change.UNKNOWN
            tally = _go_on(pair, last) if needs_count else None
            counts = _on_record(pair.second) if pair.is_on_record or tally is None else tally.counts()
            change = _chosen(sought.change, counts)
            rows, next_after = _sifted(_source(pair, change, tally), sought.text, place)
            return {
                "baseline": pair.first.number,
                "current": pair.second.number,
                "counts": counts,
                "is_on_record": pair.is_on_record,
                "looked_at": tally.looked_at if tally else last,
                "urls": last,
                "change": change.value,
                "rows": _told(pair, change, rows),
                "next_after": next_after,
            }

    def _pair(self, crawl: CrawlInfo, store: CrawlStore, runs: tuple[int | None, int | None]) -> Pair:
        """The runs of these numbers; else the last one, and the one that it builds on or that comes before it. What
        builds on none is compared with its last branch."""
        first, second = runs
        later = self.run_of(crawl, store, second)
        found = (first, later.parent, later.origin, later.number - 1 if later.number else None)
        before = next((number for number in found if number is not None), None)
        if before is None and second is None and (branch := store.newest_branch(later.number)) is not None:
            return Pair(store, later, branch)
        if before is None:
            raise NotNow("There is no run before the first one.", "Choose a later one.")
        return Pair(store, self.run_of(crawl, store, before), later)


def _stamp(one: RunInfo) -> tuple[int, int, int | None]:
    """What tells a run from what it was or will be; of one that goes on, roughly."""
    seq = one.seq // _STEADY if one.state is RunState.IN_PROGRESS else one.seq
    return one.run_id, seq, one.ended_ms


# One run


def _about(one: RunInfo, running: bool) -> dict[str, Any]:
    counters = dataclasses.asdict(one.counters)
    return {
        "run": one.number,
        "mode": one.mode,
        "parent": one.parent,
        "branch_of": one.origin,
        "on_line": not one.beside,
        "branch_seq": one.origin_seq,
        "state": run.state_of(one, running).value,
        "seq": one.seq,
        "alarm": one.alarm,
        "is_concluded": bool(one.concluded),
        "started_at": iso(one.created_ms),
        "ended_at": iso(one.ended_ms) if one.ended_ms else None,
        **counters,
        "done": one.counters.known - one.counters.pending - one.counters.refused,
    }


def _sessions(
    progress: Progress, sessions: Iterable[SessionInfo], current: RunInfo, running: bool, now_ms: int
) -> list[dict[str, Any]]:
    """The sessions of a run, each with the steps of the record that are its own, and how long it worked."""
    starts = progress.starts()
    told: list[dict[str, Any]] = []
    end = current.seq
    for one in reversed(list(sessions)):
        start = min(starts[one.number], end)
        shown = session_json(one, running)
        ended_ms = _end_of(progress, one, (start, end), now_ms if running else None)
        told.append({**shown, "from": start, "to": end, "seconds": max(0, ended_ms - one.started_ms) / 1000})
        told[-1]["started_ms"] = one.started_ms
        end = start
    return told[::-1]


def _end_of(progress: Progress, one: SessionInfo, steps: tuple[int, int], now_ms: int | None) -> int:
    """When a session ended. Of one that crashed nobody wrote that down, so its last visit tells."""
    is_open = one.state is SessionState.IN_PROGRESS
    if is_open and now_ms is not None:
        return now_ms
    if one.ended_ms is not None and one.ended_by != "crashed":
        return one.ended_ms
    start, end = steps
    found = progress.last_before(end) if end > start else None
    return found.at_ms if found and found.session == one.number else one.started_ms


def _pace(progress: Progress, current: RunInfo, sessions: list[dict[str, Any]], now_ms: int | None) -> dict[str, Any]:
    """How fast a run goes: steps over time worked, of a sample; and lately, if it goes on."""
    before = {}
    worked = 0.0
    for one in sessions:
        before[one["session"]] = (worked, one["started_ms"])
        worked += one["seconds"]
    points = []
    for moment in progress.moments(_sample(current.seq)):
        if moment.session in before and moment.seq <= current.seq:
            offset, started_ms = before[moment.session]
            points.append((offset + max(0, moment.at_ms - started_ms) / 1000, moment.seq))
    lately = _lately(progress, current, sessions[-1], now_ms) if sessions and now_ms is not None else None
    left = current.counters.pending / lately if lately and current.counters.pending else None
    first = current.origin_seq or 0
    requests = sum(one["requests"] for one in sessions)
    average = requests / worked if worked > 0 else None
    return {"points": points, "first": first, "average": average, "lately": lately, "seconds_left": left}


def _sample(seq: int) -> list[int]:
    """Steps of a run, evenly spread; the same ones again while it grows, until they are too many."""
    stride = 1
    while seq > SAMPLES * stride:
        stride *= 2
    return [*range(stride, seq, stride), seq] if seq else []


def _lately(progress: Progress, current: RunInfo, session: Mapping[str, Any], now_ms: int) -> float:
    """Steps a second, in the last half minute."""
    since_ms = max(now_ms - _LATELY_MS, int(session["started_ms"]))
    count = progress.since(since_ms, session["from"] + 1, current.seq)
    return count / max(1.0, (now_ms - since_ms) / 1000)


def _failures(progress: Progress, store: CrawlStore, current: RunInfo) -> list[dict[str, Any]]:
    """What failed, by kind, the most frequent first."""
    counts = progress.failures()
    if (total := sum(counts.values())) != current.counters.failed:
        # Some were tried again. Which ones still stand is dearer to know, so with many it is not asked at every step.
        seq = current.seq // (1000 if total > _MANY_FAILURES else 1)
        key = (str(store.path), current.run_id, seq, current.counters.failed)
        counts = _FAILURES.get(key, progress.lasting_failures)
    return [
        {"kind": kind, "count": count, "meaning": _meaning(kind)}
        for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _meaning(kind: str) -> str:
    known = failures.KINDS.get(kind)
    return f"{known.sentence} {known.advice}" if known else ""


def _hosts(progress: Progress, now_ms: int) -> dict[str, Any]:
    count, busy = progress.hosts()
    rows = [
        {
            "host": one.host or "all hosts, in one order",
            "pending": one.pending,
            "waits_until": iso(one.wait_until_ms) if one.wait_until_ms > now_ms else None,
        }
        for one in progress.waiting(_FEW_HOSTS)
    ]
    return {"count": count, "busy": busy, "rows": rows}


def _marked(progress: Progress, crawl: CrawlInfo, store: CrawlStore, current: RunInfo) -> dict[str, Any]:
    """The checkpoints of a run: where all of them are, and the last few in full."""
    marks, history = progress.marks(), History(store)
    newest = [point for number, _ in reversed(marks[-FEW:]) if (point := history.checkpoint(number))]
    return {"marks": marks, "checkpoints": [_point(crawl, point, history, current.seq) for point in newest]}


def _point(crawl: CrawlInfo, point: Checkpoint, history: History, seq: int) -> dict[str, Any]:
    """A checkpoint, whether its run, which is at this seq, can go back to it, and how many steps that would undo."""
    return {**as_json(crawl, point, history), "undoes": max(0, seq - point.seq)}


# Two runs

Source = Callable[[int, int], tuple[list[Changed], int | None]]
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


def _source(pair: Pair, change: Change, tally: Tally | None) -> Source:
    last = Whole(pair.store).last_url()
    if tally is None or (pair.is_on_record and change is not Change.UNKNOWN):
        return _recorded(pair, change)
    return _alike(pair, last) if change is Change.UNCHANGED else _tallied(pair, change, tally, last)


def _recorded(pair: Pair, change: Change) -> Source:
    progress = Progress(pair.store, pair.second.run_id)

    def source(after: int, limit: int) -> tuple[list[Changed], int | None]:
        found = progress.changed(change.value, pair.first.run_id, after, limit + 1)
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    return source


def _alike(pair: Pair, last: int) -> Source:
    comparison = pair.comparison()

    def source(after: int, limit: int) -> tuple[list[Changed], int | None]:
        numbers, next_after = comparison.unchanged(after, last, limit)
        return _titled(pair, numbers), next_after

    return source


def _tallied(pair: Pair, change: Change, tally: Tally, last: int) -> Source:
    def source(after: int, limit: int) -> tuple[list[Changed], int | None]:
        numbers = tally.listed(change, after, limit + 1)
        more = numbers[limit - 1] if len(numbers) > limit else None
        # What comes behind the last one is perhaps not counted yet.
        unsure = tally.looked_at if tally.looked_at < last else None
        return _titled(pair, numbers[:limit]), more if more is not None else unsure

    return source


def _titled(pair: Pair, numbers: list[int]) -> list[Changed]:
    return Whole(pair.store).titled(numbers, (pair.first.run_id, pair.second.run_id))


def _sifted(source: Source, text: str, place: Place) -> tuple[list[Changed], int | None]:
    """A part of a list with only those that have this text in their URL. Looks at a bounded number of them, so there
    may be less than is wanted though there is more."""
    if not text:
        return source(place.after, place.limit)
    found: list[Changed] = []
    after: int | None = place.after
    for _ in range(_SIFTED // _CHUNK):
        if after is None or len(found) >= place.limit:
            break
        part, after = source(after, _CHUNK)
        found += [one for one in part if text.lower() in one.url.lower()]
    if len(found) > place.limit:
        found = found[: place.limit]
        after = found[-1].number
    return found, after


def _told(pair: Pair, change: Change, rows: Iterable[Changed]) -> list[dict[str, Any]]:
    """Pages as they are shown; of those of which nothing certain is known, why."""
    comparison = pair.comparison()
    told = []
    for one in rows:
        part = comparison.part(one.number - 1, one.number) if change is Change.UNKNOWN else []
        note = _why(part[0][1].why) if part else one.note
        told.append({"url": one.url, "title": one.title, "note": note, "number": one.number})
    return told


def _why(word: str) -> str:
    if word in failures.KINDS:
        return failures.KINDS[word].sentence
    return explain.REASONS.get(word) or _NOT_REACHED.get(word, word)
