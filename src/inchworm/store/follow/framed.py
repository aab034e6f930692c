"""What followers hold of pages is without the frame of their hosts, and frames change when runs come to an end.

Each page is held by the frame of the run that saw it (`frames.py`). A follower notes to which end each run had come when
it looked; where that is another one now, it goes through what it holds of that run, and has what would be told otherwise
looked up anew. Which pages that are their blocks tell, so nothing is read for it that does not change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from inchworm.rules.text.recurring import NO_FRAME, Frame
from inchworm.store.database import Database
from inchworm.store.follow.follower import Progress
from inchworm.store.follow.frames import RunEnd, packed, run_ends, unpacked
from inchworm.store.follow.log import CrawlLog

SCHEMA = """
CREATE TABLE framed (         -- the state of each run by whose frame its pages are held; none: no frame
  run_id   INTEGER PRIMARY KEY,
  end_run  INTEGER NOT NULL,
  end_id   INTEGER NOT NULL
);
"""

_STEP = 5_000
_NO_END = RunEnd(0, 0)

FrameAt = Callable[[RunEnd | None, str, Progress], Frame]
"""The frame of the host of a URL, as a run had it when it was complete."""


class ReadText(NamedTuple):
    """The text of a page without the frame of its host, and the hashes of all its blocks."""

    text: str
    blocks: frozenset[int] = frozenset()


class HeldPages(NamedTuple):
    """How a follower is asked for what it holds of a run, from behind a seq on (seq, what is noted, URL, what names the
    text as the crawl has it, blocks, what names it as it is held), and told to look one up anew."""

    query: str
    note: str


class Framed:
    """By which frames a follower holds its pages."""

    def __init__(self, db: Database, held: HeldPages) -> None:
        self._db, self._held = db, held

    def follow(self, log: CrawlLog, frame_at: FrameAt | None, progress: Progress) -> None:
        """Note what is held by another frame than it should be. Without `frame_at` nothing is frame."""
        ends = run_ends(log)
        for run_id, end in (ends if frame_at else dict.fromkeys(ends)).items():
            if self._noted(run_id) != (end or _NO_END):
                self._look_through(run_id, partial(frame_of, frame_at, end, progress))
                with self._db.transaction():
                    self._db.execute("INSERT OR REPLACE INTO framed VALUES (?, ?, ?)", (run_id, *(end or _NO_END)))

    def _noted(self, run_id: int) -> RunEnd:
        row = self._db.execute("SELECT end_run, end_id FROM framed WHERE run_id = ?", (run_id,)).fetchone()
        return RunEnd(*row) if row else _NO_END

    def _look_through(self, run_id: int, frame_of: Callable[[str], Frame]) -> None:
        after = 0
        while rows := self._db.execute(self._held.query, (run_id, after, _STEP)).fetchall():
            found = [
                (subject,)
                for _, subject, url, source, blocks, name in rows
                if framed_name(source, unpacked(blocks), frame_of(url)) != name
            ]
            with self._db.transaction():
                self._db.executemany(self._held.note, found)
                # Whoever read one of these pages meanwhile did so by the frame of before.
                self._db.execute("UPDATE followed SET turn = turn + 1")
            after = rows[-1][0]


def frame_of(frame_at: FrameAt | None, end: RunEnd | None, progress: Progress, url: str) -> Frame:
    """The frame by which a page is held."""
    return frame_at(end, url, progress) if frame_at else NO_FRAME


def framed_name(source: bytes, blocks: Iterable[int], frame: Frame) -> bytes:
    """What names a text without the blocks that are frame. One that has none of them keeps its name."""
    common = frame.intersection(blocks) if frame else frame
    return hashlib.sha256(source + packed(sorted(common))).digest() if common else source
