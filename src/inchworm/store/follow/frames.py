"""frames.db: the blocks that stand on most pages of a host, by runs that were complete, in a file of its own.

A frame depends on nothing but the record of its run: the pages of a host with the lowest hashes of their texts are read
(`rules.text.recurring`), however many there are, so it costs the same for a million pages. It is found when somebody
first asks, and is the same whenever that is. A run that went back and was completed anew is another `RunEnd`, and has
another frame; going on with a run that was complete takes its frame away until it is complete again.

Whoever reads a page does so by the frame of the run that saw it, or, while that run is not complete, of the last one
before it that is. So what follows the log need not be told when a frame has changed: it looks whether the run of a page
has come to another end (`framed.py`).
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from inchworm.rules.text.content import READER
from inchworm.rules.text.recurring import FRAMES, LEAST_PAGES, MOST_PAGES, NO_FRAME, Block, Frame, recurring
from inchworm.rules.web import url as urls
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database
from inchworm.store.follow.follower import FollowerFile, Progress, UnfitFile, number, use, work_off
from inchworm.store.follow.log import CrawlLog, LoggedPage, pages_by_text
from inchworm.store.follow.log import run_ends as log_run_ends

VERSION = f"{FRAMES} reader={READER}"
"""Frames of another version are found anew."""

_CHUNK = 50

_SCHEMA = """
CREATE TABLE chosen (         -- runs of which it is known which pages are read
  run_id   INTEGER PRIMARY KEY,
  end_id   INTEGER NOT NULL   -- the last entry of the run in the log: which state of it is meant
);
CREATE TABLE page (           -- the pages that are still needed to find frames
  run_id   INTEGER NOT NULL,
  host     TEXT NOT NULL,
  key      BLOB NOT NULL,     -- the hash of its text
  log_id   INTEGER NOT NULL,
  blocks   BLOB,              -- hashes and sizes; none: not read yet
  PRIMARY KEY (run_id, host, key)
) WITHOUT ROWID;
CREATE TABLE frame (          -- of hosts that were asked about
  run_id   INTEGER NOT NULL,
  host     TEXT NOT NULL,
  blocks   BLOB NOT NULL,     -- hashes
  PRIMARY KEY (run_id, host)
) WITHOUT ROWID;
"""


class RunEnd(NamedTuple):
    """A run as it was when it was complete: it and its last entry of the log, which no other state of it has."""

    run_id: int
    log_id: int


RunEnds = Mapping[int, RunEnd | None]
"""Of each run the state of a run by which its pages are read: its own, or, while it is not complete, that of the last one
before it on its line that is. None: no run is complete."""


def run_ends(log: CrawlLog) -> RunEnds:
    """As it is now."""
    ends: dict[int, RunEnd | None] = {}
    for run_id, follows, is_complete, log_id in log_run_ends(log):
        ends[run_id] = RunEnd(run_id, log_id or 0) if is_complete else ends.get(follows or 0)
    return ends


class FrameSource(NamedTuple):
    """What frames are found in: a crawl's log, and a way to get the blocks of a page (none where it is lost)."""

    store: CrawlStore
    blocks_of: Callable[[LoggedPage], Sequence[Block]]
    progress: Progress = lambda _done, _total: None


def frame_of(path: Path, source: FrameSource, end: RunEnd, host: str) -> Frame:
    """The frame of a host as a run had it, found where that was not done yet."""
    file = FollowerFile(path, VERSION, _SCHEMA, path.with_suffix(".lock"))
    return use(file, lambda db: FrameTable(db, end).find(host, source))


class FrameTable:
    """The frames of one run, in an open file. Others may work on them at the same time: all find the same."""

    def __init__(self, db: Database, end: RunEnd) -> None:
        self._db, self._end = db, end

    def find(self, host: str, source: FrameSource) -> Frame:
        log = CrawlLog(source.store)
        self._refuse_another(log)
        while True:
            with self._db.transaction():
                if not self._is_chosen():
                    self._choose(log)
            with self._db.snapshot():
                if self._is_chosen() and (known := self._known(host)) is not None:
                    return known
            work_off(lambda: self._left(host), lambda: self._read_some(host, log, source), source.progress)
            with self._db.transaction():
                # Somebody else may have been faster, or have seen the run come to another end.
                if self._is_chosen() and self._known(host) is None:
                    self._settle(host)

    def _refuse_another(self, log: CrawlLog) -> None:
        """Where an older crawl.db was put in the place of the one that was read, ends of runs may come again."""
        if number(self._db, "SELECT log_id FROM followed") > log.end():
            raise UnfitFile("this is not the log that was read, somebody put an older one in its place")

    def _is_chosen(self) -> bool:
        return (
            self._db.execute("SELECT 1 FROM chosen WHERE run_id = ? AND end_id = ?", self._end).fetchone() is not None
        )

    def _known(self, host: str) -> Frame | None:
        """The frame of a host; None where it has to be found."""
        which = self._end.run_id, host
        row = self._db.execute("SELECT blocks FROM frame WHERE run_id = ? AND host = ?", which).fetchone()
        if row is not None:
            return frozenset(unpacked(row[0]))
        has_pages = "SELECT 1 FROM page WHERE run_id = ? AND host = ? LIMIT 1"
        return NO_FRAME if self._db.execute(has_pages, which).fetchone() is None else None

    def _left(self, host: str) -> int:
        query = "SELECT COUNT(*) FROM page WHERE run_id = ? AND host = ? AND blocks IS NULL"
        return int(self._db.execute(query, (self._end.run_id, host)).fetchone()[0])

    def _choose(self, log: CrawlLog) -> None:
        """Note which pages are to be read: of each host so many, those with a text of their own first."""
        run_id, counts = self._end.run_id, Counter[str]()
        for name in ("page", "frame"):
            self._db.execute(f"DELETE FROM {name} WHERE run_id = ?", (run_id,))
        added = "INSERT OR IGNORE INTO page (run_id, host, key, log_id) VALUES (?, ?, ?, ?)"
        for page in chain.from_iterable(pages_by_text(log, *self._end, are_copies) for are_copies in (False, True)):
            host = urls.host_of(page.request_url)
            if counts[host] < MOST_PAGES:
                counts[host] += self._db.execute(added, (run_id, host, page.key, page.log_id)).rowcount
        few = [(run_id, host) for host, count in counts.items() if count < LEAST_PAGES]
        self._db.executemany("DELETE FROM page WHERE run_id = ? AND host = ?", few)
        self._db.execute("INSERT OR REPLACE INTO chosen VALUES (?, ?)", self._end)
        self._db.execute("UPDATE followed SET log_id = MAX(log_id, ?)", (self._end.log_id,))

    def _read_some(self, host: str, log: CrawlLog, source: FrameSource) -> None:
        run_id = self._end.run_id
        query = "SELECT key, log_id FROM page WHERE run_id = ? AND host = ? AND blocks IS NULL LIMIT ?"
        rows = self._db.execute(query, (run_id, host, _CHUNK)).fetchall()
        pages = log.pages([log_id for _, log_id in rows])
        read = {log_id: packed(chain.from_iterable(source.blocks_of(page))) for log_id, page in pages.items()}
        with self._db.transaction():
            self._db.executemany(
                "UPDATE page SET blocks = ? WHERE run_id = ? AND host = ? AND key = ? AND log_id = ?",
                [(read.get(log_id, b""), run_id, host, key, log_id) for key, log_id in rows],
            )

    def _settle(self, host: str) -> None:
        """Write down what was found, and forget how."""
        which = self._end.run_id, host
        rows = self._db.execute("SELECT blocks FROM page WHERE run_id = ? AND host = ?", which).fetchall()
        if any(blocks is None for (blocks,) in rows):
            return
        found = recurring(_blocks(blocks) for (blocks,) in rows)
        self._db.execute("INSERT INTO frame VALUES (?, ?, ?)", (*which, packed(sorted(found))))
        self._db.execute("DELETE FROM page WHERE run_id = ? AND host = ?", which)


def _blocks(blob: bytes) -> list[Block]:
    numbers = iter(unpacked(blob))
    return [Block(name, size) for name, size in zip(numbers, numbers, strict=True)]


def packed(numbers: Iterable[int]) -> bytes:
    """Numbers of 64 bits as bytes, the same on every machine."""
    found = array("Q", numbers)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def unpacked(blob: bytes) -> list[int]:
    found = array("Q", blob)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()
