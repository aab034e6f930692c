"""What the next commit will write: rows as they gather, and the run's totals kept in step with them.

`checkpoint` decides, this writes down. Ids are given here, one after the other, because the owner is the only writer.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import NamedTuple

from inchworm.model import (
    CheckpointType,
    Cookie,
    Counters,
    Entry,
    Outcome,
    Place,
    Reason,
    RunInfo,
    Seed,
    Spot,
    State,
    Substate,
    Turn,
)
from inchworm.ports import Changes, Judgement, Known, NewCheckpoint, Row, Standing, Store
from inchworm.rules.web import control
from inchworm.rules.web import url as urls

_CACHE_SIZE = 50_000
_AGAIN = 1 << 20
"""Index of what is put in its place by a decision rather than by a link: behind every link of that visit."""


Outcomes = tuple[tuple[Turn, Outcome | Reason], ...]
"""What each turn came to, in their order."""


class Committed(NamedTuple):
    """What a commit came to, for those who plan the next fetches."""

    seq: int
    counters: Counters
    seeds: tuple[Seed, ...]
    requests: int
    size: int
    disturbed: str
    lanes: frozenset[int]
    robots: tuple[tuple[str, str, bytes | None], ...]
    cookies: tuple[Cookie, ...]
    outcomes: Outcomes
    ahead: frozenset[int] = frozenset()
    counted: int | None = None


def link_index(place: Place) -> int:
    """Which one of its page's links was put in this place, be it ahead of others or behind them."""
    return place[1] % _AGAIN


class Draft:
    """One run's totals and the rows of the commit that is being put together."""

    def __init__(self, store: Store, run: RunInfo, session: int) -> None:
        self._store = store
        self._run_id = run.run_id
        self._session = session
        self.seq = run.seq
        self.seeds = {seed.number: seed for seed in run.seeds}
        self.requests = 0
        self.size = 0
        self.disturbed = run.disturbed
        self.swept, self.concluded, self.alarm = run.swept, run.concluded, run.alarm
        self.nofollow = store.has_nofollow(run.run_id)
        self._is_only_run = store.is_only_run(run.run_id)
        self.numbers = asdict(run.counters)
        self.known: dict[str, Known] = {}
        self.known_ids: set[int] = set()
        self._next_url, self._next_host, self._next_file = store.next_ids()
        self._hosts = dict(store.hosts())
        self._files: dict[str, int] = {}
        self._answered = set(store.answered())
        self.begin()

    def begin(self) -> None:
        """A new commit."""
        self.changes = Changes(self._run_id, self._session)
        self._touched: set[int] = set()
        self._ahead: set[int] = set()
        self._robots: list[tuple[str, str, bytes | None]] = []
        self._cookies: list[Cookie] = []
        self._again_index = _AGAIN
        if len(self.known) > _CACHE_SIZE:
            self.known.clear()
        if len(self.known_ids) > _CACHE_SIZE:
            self.known_ids.clear()

    def next_step(self) -> None:
        """Whatever is written from here on belongs to the next number of the sequence."""
        self.seq += 1
        self._again_index = _AGAIN

    def forget_step(self) -> None:
        """Nothing came of it, and its number is the next one's."""
        self.seq -= 1

    def disturb(self, by: str) -> None:
        """From here on the record is not the one that an undisturbed run would have."""
        self.disturbed = self.disturbed or f"disturbed at {self.seq} by {by}"

    def next_place(self) -> Place:
        """A place behind everything that the present visit's links have got."""
        self._again_index += 1
        return self.seq, self._again_index

    def place_ahead(self, index: int, lane: int) -> Place:
        """A place ahead of everything but what was put ahead before."""
        self._ahead.add(lane)
        return -1, self.seq * 2 * _AGAIN + index

    # Ids

    def new_url(self, url: str) -> int:
        url_id = self._next_url
        self._next_url += 1
        self.changes.urls.append((url_id, urls.hash64(url), url))
        return url_id

    def host_id(self, url: str) -> int:
        host = urls.host_of(url)
        host_id = self._hosts.get(host)
        if host_id is None:
            host_id = self._hosts[host] = self._next_host
            self._next_host += 1
            self.changes.hosts.append((host_id, host))
        return host_id

    def file_id(self, spot: Spot) -> int:
        """The number of an archive file, which now reaches to the end of this record."""
        if spot.file not in self._files:
            self._files[spot.file] = self._next_file
            self._next_file += 1
        file_id = self._files[spot.file]
        self.changes.files[spot.file] = (file_id, spot.offset + spot.length)
        return file_id

    # Rows

    def look_up(self, wanted: set[str], path_matters: bool = True) -> None:
        """Learn what the store knows of these URLs. How they stand is asked only where it can make a difference,
        because it costs as much again as finding them."""
        if wanted:
            rows = path_matters or self.nofollow or not self._is_only_run
            self.known |= self._store.known(self._run_id, wanted, rows)

    def settle(self, entry: Entry, state: State, reason: Reason | None) -> None:
        """A pending row is done or refused."""
        self.changes.settled.append((state, reason, self.seq, entry.url_id))
        self.lane(entry.lane, -1)
        if entry.kind not in control.KINDS:
            self.add(pending=-1)

    def move(self, row: Row, standing: Standing) -> None:
        """A row changes in place; what it was is kept for going back."""
        self.changes.undo.append((self.seq, "frontier", row.url_id, json.dumps(row.standing._asdict())))
        self.changes.moved.append((row.url_id, standing))
        self._touched.add(standing.lane)
        self.known[row.url] = Known(row.url_id, True, standing.state, standing.reason, standing.depth, standing.hops)

    def reopen(self, row: Row, standing: Standing, place: Place) -> None:
        """A row that was settled is pending again, at a new place."""
        again = standing._replace(state=State.PENDING, reason=None, done=None)
        self.move(row, again._replace(place_seq=place[0], place_idx=place[1]))
        self.lane(again.lane, 1)

    def learn_robots(self, origin: str, verdict: str, rules: bytes | None) -> None:
        self.changes.robots.append((origin, self.seq, verdict, rules))
        self._robots.append((origin, verdict, rules))

    def judge(self, seq: int, before: Judgement, after: Judgement) -> None:
        """A visit that is on record gets another verdict; what it was is kept for going back."""
        self.changes.undo.append((self.seq, "visit", seq, json.dumps(before._asdict())))
        self.changes.judged.append((seq, after))

    def distrust(self, lane: int, validator: str, why: str) -> None:
        self.changes.distrusted.append((lane, validator, self.seq, why))

    def learn_answered(self, origin: str) -> None:
        """A host that has answered once may be down later; one that never did is not there."""
        if origin not in self._answered:
            self._answered.add(origin)
            self.changes.answered.append(origin)

    def learn_cookie(self, cookie: Cookie) -> None:
        self.changes.cookies.append((self.seq, len(self.changes.cookies), cookie))
        self._cookies.append(cookie)

    def add_checkpoint(self, substate: Substate, at_ms: int) -> None:
        """The run as it is right after the present step can be gone back to."""
        totals = Counters(**self.numbers), self.disturbed
        self.changes.checkpoints.append(NewCheckpoint(self.seq, CheckpointType.AUTO, substate, at_ms, *totals))

    # Totals

    def add(self, **changes: int) -> None:
        for name, change in changes.items():
            self.numbers[name] += change

    def lane(self, lane: int, change: int) -> None:
        self._touched.add(lane)
        self.changes.opened.setdefault(lane, self.seq)
        self.changes.lanes[lane] = self.changes.lanes.get(lane, 0) + change

    # Writing

    def write(self) -> None:
        """Put what there is into the open transaction, so that reads see it."""
        self._store.write(self.with_totals())
        self.changes.clear_rows()

    def with_totals(self) -> Changes:
        changes = self.changes
        changes.seq = self.seq
        changes.counters = Counters(**self.numbers)
        changes.seeds = tuple(self.seeds.values())
        changes.nofollow = self.nofollow
        changes.swept, changes.concluded, changes.alarm = self.swept, self.concluded, self.alarm
        changes.requests, changes.size, changes.disturbed = self.requests, self.size, self.disturbed
        return changes

    def committed(self, outcomes: Outcomes = (), counted: int | None = None) -> Committed:
        return Committed(
            self.seq,
            Counters(**self.numbers),
            tuple(self.seeds.values()),
            self.requests,
            self.size,
            self.disturbed,
            frozenset(self._touched),
            tuple(self._robots),
            tuple(self._cookies),
            outcomes,
            frozenset(self._ahead),
            counted,
        )
