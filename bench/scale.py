"""Scale of state: what a commit costs with ten thousand, a million and five million known URLs.

A synthetic site without HTTP: every page has 80 links, of which 8 are new, 12 known for long and 60 hot. Prints the
CPU time per committed page around each size, the time from resume to first dispatch, memory and bytes per URL; and of
checkpoints: how long making one takes, how long going back over a thousand pages takes from the command to the first
dispatch, and how large one is.

    python bench/scale.py [--most 5000000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from inchworm import settings
from inchworm.engine import run as runs
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.engine.session.window.window import Window
from inchworm.model import CheckpointType, FinishedVisit, FoundUrl, FrontierEntry, Mode, Outcome, Reading
from inchworm.store.crawl.history import History
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

NEW, COLD, HOT = 8, 12, 60
BATCH = 64
WINDOWS, WINDOW = 4, 20
"""Batches measured at each size."""

UNDONE = 16
"""Batches that are undone when going back."""


class Site:
    """Makes pages. `known` URLs exist so far; a page's links are drawn from them and from the next ones."""

    def __init__(self) -> None:
        self.chance = random.Random(1)
        self.known = 1

    def page(self, entry: FrontierEntry, at_ms: int) -> FinishedVisit:
        fresh = range(self.known, self.known + NEW)
        cold = (self.chance.randrange(self.known) for _ in range(COLD))
        hot = (self.chance.randrange(min(2000, self.known)) for _ in range(HOT))
        self.known += NEW
        numbers = dict.fromkeys((*hot, *cold, *fresh))
        links = tuple(FoundUrl(address(n), address(n)) for n in numbers)
        text_hash = hashlib.sha256(entry.url.encode()).digest()
        return FinishedVisit(
            entry, at_ms, Outcome.PAGE, status=200, size=14_000, text_hash=text_hash, reading=Reading(links)
        )


def address(number: int) -> str:
    return f"https://scale.test/manual/chapter-{number % 97}/section-{number}.html"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = CrawlStore(folder / "crawl.db")
        self.token = self.store.take(Life.of_this_process())
        values = settings.make({"scope": "host", "robots": False, "sitemap": False, "delay": 0})
        seeds = runs.seeds_of(["https://scale.test/manual/"])
        new = runs.next_run([], Mode.INCREMENTAL, settings.to_json(values, settings.RUN), 0)
        new = runs.with_seeds(new, seeds)
        ledger = Ledger(self.store, NoArchive(), new, Author(0, self.token), values)
        self.store.runs.create(self.token, new, ledger.seed(seeds))
        made = self.store.runs.get(0)
        assert made is not None
        self.run, self.values = made, values
        self.site = Site()
        self.sit()

    def sit(self) -> None:
        """Open the run, as a session does."""
        made = self.store.runs.get(0)
        assert made is not None
        number = self.store.sessions.start(self.token, made, "{}", 0)
        self.ledger = Ledger(self.store, NoArchive(), made, Author(number, self.token), self.values)
        self.window = Window(self.store.queue, made.run_id, made.seq)

    def batch(self) -> float:
        """Commit one batch; the CPU seconds of the commit alone."""
        visits = []
        for lane in list(self.window.lanes()):
            self.window.fill(lane)
            while lane.todo and len(visits) < BATCH:
                slot = lane.todo.popleft()
                slot.turn = self.site.page(slot.entry, len(visits))
                visits.append(slot.turn)
        turns = list(self.window.retire())
        before = time.process_time()
        committed = self.ledger.commit(turns)
        spent = time.process_time() - before
        self.window.committed([turn.entry for turn, _ in committed.outcomes], committed.lanes, committed.seq)
        return spent / max(1, len(turns))

    def grow(self, known: int) -> None:
        while self.site.known < known:
            self.batch()

    def measure(self) -> float:
        """Milliseconds of CPU per page around the present size: the best of a few windows, for other work on the
        machine can only make one slower."""
        return 1000 * min(statistics.median(self.batch() for _ in range(WINDOW)) for _ in range(WINDOWS))

    def resume(self) -> float:
        """Seconds from opening the store to the first entry to dispatch."""
        started = time.perf_counter()
        store = CrawlStore(self.folder / "crawl.db", read_only=True)
        current = store.runs.get()
        assert current is not None
        window = Window(store.queue, current.run_id)
        first = next(iter(window.lanes())).todo[0]
        assert first.entry.url
        seconds = time.perf_counter() - started
        store.close()
        return seconds

    def checkpoint(self) -> tuple[float, float, int]:
        """Seconds to make one, seconds to go back to it over some pages and see the first entry, and its size."""
        current, history = self.store.runs.get(0), History(self.store)
        assert current is not None
        started = time.perf_counter()
        point = history.add(self.token, current, CheckpointType.MANUAL, 0)
        made = time.perf_counter() - started
        for _ in range(UNDONE):
            self.batch()
        current = self.store.runs.get(0)
        assert current is not None
        started = time.perf_counter()
        history.go_back(self.token, current, point, 0)
        self.sit()
        assert next(iter(self.window.lanes())).todo[0].entry.url
        return made, time.perf_counter() - started, point.size

    def bytes_per_url(self) -> float:
        return sum(path.stat().st_size for path in self.folder.glob("crawl.db*")) / self.site.known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="inchworm-scale-"))
    bench = Bench(folder)
    print(
        f"{'known URLs':>12} {'commit ms/page':>15} {'resume s':>9} {'memory MB':>10} {'bytes/URL':>10}"
        f" {'checkpoint s':>13} {'going back s':>13} {'bytes':>6}"
    )
    try:
        for size in (1_000, 10_000, 100_000, 1_000_000, 5_000_000):
            if size > arguments.most:
                break
            bench.grow(size)
            cost = bench.measure()
            made, back, bytes_ = bench.checkpoint()
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{bench.site.known:>12,} {cost:>15.3f} {bench.resume():>9.3f} {memory:>10.0f}"
                f" {bench.bytes_per_url():>10.0f} {made:>13.4f} {back:>13.3f} {bytes_:>6}",
                flush=True,
            )
    finally:
        bench.store.close()
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
