"""Full text for as long as somebody waits: the index is brought up to date for some seconds, and then asked."""

from __future__ import annotations

import time
from pathlib import Path

from inchworm.store.database import Database
from inchworm.store.follow import search as index
from inchworm.store.follow.follower import FollowerFile, use

INDEX_STEP = 100
"""So many URLs are entered into the index at a time: the clock is looked at in between."""


class _Enough(Exception):
    """The time that there was is over."""


def search(
    path: Path, source: index.SearchSource, question: index.SearchQuestion, seconds: float
) -> tuple[index.FoundContents, int]:
    """Bring the index at `path` up to date for so long, a first step at least, and ask it; how many URLs are missing."""
    until = time.monotonic() + seconds
    first = True

    def look_at_the_clock(_done: int, _total: int) -> None:
        nonlocal first
        if not first and time.monotonic() > until:
            raise _Enough
        first = False

    def work(db: Database) -> tuple[index.FoundContents, int]:
        found = index.SearchIndex(db, INDEX_STEP)
        missing = 0
        try:
            found.catch_up(source._replace(progress=look_at_the_clock))
        except _Enough:
            # While frames are looked for nobody knows yet how many pages have to be read again.
            missing = found.left() or 1
        return found.find(question), missing

    return use(FollowerFile(path, index.VERSION, index.SCHEMA, path.parent), work)
