"""frames.db: which pages are read for a frame, how many, and that kills and others at work change nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.store.test_search_index import Diary

from inchworm.rules.text.recurring import Block, Frame
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import frames, log
from inchworm.store.follow.frames import FrameSource, RunEnd, frame_of, run_ends
from inchworm.store.follow.log import CrawlLog, LoggedPage

HOST = "a.test"


def text(number: int) -> bytes:
    return b"%032d" % number


def number_of(page: LoggedPage) -> int:
    return int(page.text_hash or b"0")


def blocks(page: LoggedPage) -> Sequence[Block]:
    """Each page says something of its own; the even ones and every seventh have a notice, all have a line."""
    number = number_of(page)
    notice = [Block(1, 90)] if number % 2 == 0 or number % 7 == 0 else []
    return [Block(1_000 + number, 200), Block(2, 40), *notice]


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    with contextlib.closing(Diary(tmp_path)) as made:
        yield made


def fill(diary: Diary, count: int, first: int = 1) -> None:
    for number in range(first, first + count):
        diary.visit(f"p{number}", text=text(number))


def end(diary: Diary) -> RunEnd:
    found = run_ends(CrawlLog(diary.reading))[diary.run.run_id]
    assert found is not None
    return found


def find(diary: Diary, read: list[int] | None = None, host: str = HOST) -> Frame:
    def blocks_of(page: LoggedPage) -> Sequence[Block]:
        if read is not None:
            read.append(number_of(page))
        return blocks(page)

    path = diary.path.with_name("frames.db")
    return frame_of(path, FrameSource(diary.reading, blocks_of), end(diary), host)


def test_a_frame_is_found_once(diary: Diary) -> None:
    fill(diary, 20)
    diary.complete()
    read: list[int] = []
    assert find(diary, read) == {1, 2}
    assert sorted(read) == list(range(1, 21))
    assert find(diary, read) == {1, 2}
    assert len(read) == 20
    assert find(diary, read, "b.test") == frozenset()


def test_a_host_costs_the_same_however_many_pages_it_has(diary: Diary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_PAGES", 10)
    monkeypatch.setattr(log, "STEP", 7)
    for number in reversed(range(1, 31)):
        diary.visit(f"p{number}", text=text(number))
        diary.visit(f"copy{number}", "duplicate", text(number))
    diary.complete()
    read: list[int] = []
    assert find(diary, read) == {2}
    assert sorted(read) == list(range(1, 11)), "those with the lowest hashes, each text once"


def test_copies_count_where_a_host_has_nothing_of_its_own(diary: Diary) -> None:
    for number in range(1, 21):
        diary.visit(f"p{number}", "duplicate", text(number))
    diary.complete()
    assert find(diary) == {1, 2}


def test_only_complete_runs_have_an_end(diary: Diary) -> None:
    log = CrawlLog(diary.reading)
    fill(diary, 10)
    assert run_ends(log)[1] is None
    diary.complete()
    assert run_ends(log)[1] == RunEnd(1, 10)
    point = diary.mark()
    diary.new_run()
    fill(diary, 5, 50)
    assert run_ends(log)[2] == RunEnd(1, 10), "that of the run before it"
    diary.complete()
    assert run_ends(log)[2] == RunEnd(2, 15)
    assert run_ends(log)[1] == RunEnd(1, 10)
    assert point is not None


def test_going_back_is_another_end(diary: Diary) -> None:
    fill(diary, 9)
    point = diary.mark()
    fill(diary, 9, 10)
    diary.complete()
    first = end(diary)
    assert find(diary) == {1, 2}
    diary.go_back(point)
    assert run_ends(CrawlLog(diary.reading))[1] is None
    for number in range(10, 19):
        diary.visit(f"q{number}", text=text(2 * number + 1))
    diary.complete()
    assert end(diary) != first
    assert find(diary) == {2}


def test_a_lost_page_says_nothing(diary: Diary) -> None:
    fill(diary, 20)
    diary.complete()
    path = diary.path.with_name("frames.db")
    source = FrameSource(diary.reading, lambda page: blocks(page) if number_of(page) < 10 else ())
    assert frame_of(path, source, end(diary), HOST) == {2}


KILLED = """\
import os, signal, sys
from pathlib import Path
from tests.store.test_frames_found import blocks
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import frames, log
from inchworm.store.follow.log import CrawlLog

folder, after = Path(sys.argv[1]), int(sys.argv[2])
frames._CHUNK = 7
read = 0

def blocks_of(page):
    global read
    read += 1
    if read > after:
        os.kill(os.getpid(), signal.SIGKILL)
    return blocks(page)

store = CrawlStore(folder / "crawl.db", read_only=True)
source = frames.FrameSource(store, blocks_of)
frames.frame_of(folder / "frames.db", source, frames.run_ends(CrawlLog(store))[1], "a.test")
"""


def test_killed_in_the_middle_it_goes_on_where_it_was(diary: Diary) -> None:
    fill(diary, 40)
    diary.complete()
    for after in (0, 3, 10, 20):
        command = [sys.executable, "-c", KILLED, str(diary.path.parent), str(after)]
        done = subprocess.run(command, check=False, timeout=60, cwd=Path(__file__).parents[2])
        assert done.returncode == -9
    read: list[int] = []
    assert find(diary, read) == {1, 2}
    assert len(read) == 40 - 7 - 14, "what was read for good is not read again"


def test_many_at_once_find_the_same(diary: Diary) -> None:
    fill(diary, 120)
    diary.complete()
    found: list[Frame] = []

    def work() -> None:
        with contextlib.closing(CrawlStore(diary.path.with_name("crawl.db"), read_only=True)) as store:
            path = diary.path.with_name("frames.db")
            found.append(frame_of(path, FrameSource(store, blocks), RunEnd(1, 120), HOST))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{1, 2}] * 4


def test_what_is_known_takes_no_room(diary: Diary) -> None:
    """Of a run that came to another end only that is kept, and no page that was read."""
    fill(diary, 20)
    diary.complete()
    find(diary)
    fill(diary, 1, 60)
    diary.complete()
    find(diary)
    assert chosen(diary) == [(1, 21)]
    with contextlib.closing(sqlite3.connect(diary.path.with_name("frames.db"))) as db:
        assert db.execute("SELECT COUNT(*) FROM page").fetchone() == (0,)
        assert db.execute("SELECT run_id, host FROM frame").fetchall() == [(1, HOST)]


def test_another_log_is_another_file(tmp_path: Path) -> None:
    """Somebody put an older crawl.db in the place of the one that was read."""
    for count in (30, 20):
        folder = tmp_path / str(count)
        folder.mkdir()
        with contextlib.closing(Diary(folder)) as diary:
            diary.path = tmp_path / "search.db"
            fill(diary, count)
            diary.complete()
            assert find(diary) == {1, 2}
    assert chosen(diary) == [(1, 20)]


def chosen(diary: Diary) -> list[tuple[int, int]]:
    with contextlib.closing(sqlite3.connect(diary.path.with_name("frames.db"))) as db:
        return db.execute("SELECT run_id, end_id FROM chosen").fetchall()
