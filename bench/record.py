"""A large record without a crawl: fills a home with one crawl of many pages in three runs, in a minute.

Run 0 is complete and has failures of several kinds, run 1 builds on it and found changes, run 2 is paused half way. For
looking at how long questions and pages of the dashboard take.

    python bench/record.py HOME [--pages 100000] [--hosts 40]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from inchworm import settings
from inchworm.engine import run as runs
from inchworm.model import (
    CheckpointType,
    Counters,
    CrawlInfo,
    EndedBy,
    Kind,
    Mode,
    Reason,
    RunInfo,
    SessionInfo,
    Source,
    State,
    Substate,
)
from inchworm.ports import Commit, NewCheckpoint, NewFrontierRow, RowState, VisitRow
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.home import Home
from inchworm.store.lock import Life

SEED = "https://host-0.scale.test/"
BATCH = 2_000
EVERY = 100
"""Pages from one checkpoint to the next."""

FAILURES = (("http_4xx", 404), ("http_4xx", 410), ("http_5xx", 503), ("timeout", 0), ("redirect_loop", 302))
PACE_MS = 70


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one page in one run."""

    outcome: str = "page"
    failure: str | None = None
    status: int = 200
    change: str | None = None
    note: str | None = None
    version: int = 0
    is_lost: bool = False
    """It was there in the run before, and now nobody knows."""


class Book:
    """Writes runs of a crawl, page by page."""

    def __init__(self, folder: Path, pages: int, hosts: int) -> None:
        self.pages, self.hosts = pages, hosts
        self.chance = random.Random(1)
        folder.mkdir(parents=True, exist_ok=True)
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")
        self.token = self.store.take(Life.of_this_process())
        self.values = settings.to_json(settings.make({"scope": "host"}), settings.RUN)
        self.start_ms = int(time.time() * 1000) - 4 * 86_400_000

    def write(self, number: int, fates: dict[int, Fate], sessions: tuple[EndedBy, ...], found: int) -> None:
        """A run that came to these fates of pages, in so many sessions; `found` pages it met in all."""
        current = self._begin(number)
        counters, seq, at_ms = Counters(), 0, current.created_ms
        share = -(-len(fates) // len(sessions))
        items = list(fates.items())
        for index, ended_by in enumerate(sessions):
            current = self._reread(number)
            session = self.store.sessions.start(self.token, current, "{}", at_ms)
            part = items[index * share : (index + 1) * share]
            for start in range(0, len(part), BATCH):
                changes, seq, at_ms = self._batch(current, session, part[start : start + BATCH], seq, at_ms)
                counters = changes.counters = self._counted(counters, changes, found if number else 0)
                with self.store.commits.committing(self.token):
                    self.store.commits.write(changes)
            self._end(current, session, ended_by, at_ms)
            at_ms += 3_600_000
        counters = replace(counters, unknown=sum(one.is_lost for one in fates.values()))
        self._rest(current, range(len(fates) + 1, found + 1), counters, seq)

    def _begin(self, number: int) -> RunInfo:
        new = runs.next_run(self.store.runs.list(), Mode.INCREMENTAL, self.values, self.start_ms + number * 86_400_000)
        new = runs.with_seeds(new, runs.seeds_of([SEED]))
        first = Commit(new.run_id, 0, seeds=new.seeds)
        if not number:
            first.hosts = [(host + 1, f"host-{host}.scale.test") for host in range(self.hosts)]
            first.urls = [(page, hash64(address(page, self.hosts)), address(page, self.hosts)) for page in self._ids()]
        self.store.runs.create(self.token, new, first)
        return self._reread(number)

    def _ids(self) -> Iterator[int]:
        return iter(range(1, self.pages + 1))

    def _reread(self, number: int) -> RunInfo:
        found = self.store.runs.get(number)
        assert found is not None
        return found

    def _batch(
        self, current: RunInfo, session: int, part: list[tuple[int, Fate]], seq: int, at_ms: int
    ) -> tuple[Commit, int, int]:
        changes = Commit(current.run_id, session, seeds=current.seeds)
        for page, fate in part:
            seq, at_ms = seq + 1, at_ms + self.chance.randrange(PACE_MS)
            changes.entries.append(self._entry(page, State.DONE, seq))
            changes.visits.append(self._visit(page, fate, seq, at_ms))
            if seq % EVERY == 0:
                totals = (replace(changes.counters, known=self.pages, pending=self.pages - seq, pages=seq), "")
                place = (seq, CheckpointType.AUTO, Substate.DOWNLOADING_PAGES, at_ms)
                changes.checkpoints.append(NewCheckpoint(*place, *totals))
        changes.seq, changes.requests, changes.size = seq, seq, 14_000 * seq
        return changes, seq, at_ms

    def _entry(self, page: int, state: State, seq: int | None) -> NewFrontierRow:
        reason = Reason.EXCLUDED if state is State.REFUSED else None
        lane = page % self.hosts + 1
        standing = RowState(state, reason, 0, 3, 0, lane, page, 0, None, 0, 0, 0, None, seq)
        return NewFrontierRow(page, Kind.PAGE, Source.SPIDER, 0, 1, None, standing)

    def _visit(self, page: int, fate: Fate, seq: int, at_ms: int) -> VisitRow:
        digest = hashlib.sha256(f"{page} {fate.version}".encode()).digest()
        is_page = fate.outcome == "page"
        links = tuple(self.chance.randrange(1, self.pages) for _ in range(40)) if is_page else ()
        row = dict.fromkeys(VisitRow._fields) | {"seq": seq, "url_id": page, "kind": "page", "at_ms": at_ms}
        row |= {"outcome": fate.outcome, "requested": 1, "failure": fate.failure, "status": fate.status, "millis": 40}
        row |= {"message": "it did not work" if fate.failure else None, "size": 14_000, "links": links, "revisit": 0}
        row |= {"change": fate.change, "note": fate.note, "missing": 0, "reader": "2"}
        row |= {"payload": digest, "text_hash": digest, "title": f"Page {page} of the manual"} if is_page else {}
        return VisitRow(**row)

    def _counted(self, before: Counters, changes: Commit, known: int) -> Counters:
        def count(name: str, value: str) -> int:
            return sum(getattr(one, name) == value for one in changes.visits)

        return replace(
            before,
            known=max(known, changes.seq),
            pages=before.pages + count("outcome", "page"),
            failed=before.failed + count("outcome", "failed"),
            requests=changes.seq,
            size=changes.size,
            new=before.new + count("change", "new"),
            modified=before.modified + count("change", "modified"),
            unchanged=before.unchanged + count("change", "unchanged"),
            deleted=before.deleted + count("change", "deleted"),
        )

    def _end(self, current: RunInfo, session: int, by: EndedBy, at_ms: int) -> None:
        state, how = runs.states_after(by)
        told = SessionInfo(current.run_id, session, self.token, how, by, 0, at_ms, 0, 0, "")
        self.store.sessions.end(self.token, told, state)

    def _rest(self, current: RunInfo, pages: range, counters: Counters, seq: int) -> None:
        """What a run has found and not visited."""
        changes = Commit(current.run_id, 0, seq=seq, seeds=current.seeds)
        changes.entries = [self._entry(page, State.PENDING, None) for page in pages]
        for page in pages:
            lane = page % self.hosts + 1
            changes.lanes[lane] = changes.lanes.get(lane, 0) + 1
        changes.counters = replace(counters, known=seq + len(pages), pending=len(pages))
        with self.store.commits.committing(self.token):
            self.store.commits.write(changes)


def address(page: int, hosts: int) -> str:
    return f"https://host-{page % hosts}.scale.test/manual/chapter-{page % 97}/section-{page}.html"


def baseline(pages: int, chance: random.Random) -> dict[int, Fate]:
    fates = {}
    for page in range(1, pages + 1):
        failed = chance.random() < 0.03
        kind, status = chance.choice(FAILURES)
        fates[page] = Fate("failed", kind, status) if failed else Fate()
    return fates


def later(before: dict[int, Fate], pages: int, chance: random.Random) -> dict[int, Fate]:
    """The same pages again, a few of them changed, and some new ones."""
    fates = {}
    for page, fate in before.items():
        dice = chance.random()
        if fate.outcome != "page":
            fates[page] = fate
        elif dice < 0.01:
            fates[page] = Fate(change="modified", version=fate.version + 1)
        elif dice < 0.013:
            fates[page] = Fate("deleted", status=410, change="deleted")
        elif dice < 0.015:
            fates[page] = Fate("failed", "timeout", 0, is_lost=True)
        else:
            note = "no_validators" if dice < 0.3 else None
            fates[page] = Fate(status=200 if note else 304, change="unchanged", note=note, version=fate.version)
    for page in range(len(before) + 1, pages + 1):
        fates[page] = Fate(change="new")
    return fates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=40)
    arguments = parser.parse_args()
    pages, chance = arguments.pages, random.Random(2)
    home = Home(arguments.home)
    info = CrawlInfo("5ca1e00000", f"{pages:,} pages", (SEED,), {}, int(time.time() * 1000))
    crawl = KnownCrawls(home).find_or_add(info, runs.seeds_key(runs.seeds_of([SEED])), True)
    home.close()
    book = Book(arguments.home / "crawls" / crawl.crawl_id, pages, arguments.hosts)
    old = pages - pages // 200
    first = baseline(old, chance)
    book.write(0, first, (EndedBy.BUDGET, EndedBy.CRASHED, EndedBy.FINISHED), old)
    second = later(first, pages, chance)
    book.write(1, second, (EndedBy.FINISHED,), pages)
    third = dict(list(later(second, pages, chance).items())[: pages * 3 // 5])
    book.write(2, third, (EndedBy.TIME, EndedBy.PAUSED), pages)
    book.store.close()
    print(f"{crawl.crawl_id}: {pages:,} pages in three runs")


if __name__ == "__main__":
    main()
