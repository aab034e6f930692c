"""What was taken out of pages: that it is what the log says, whatever happens, and which pages are read for it."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.test_search_index import _EVENTS, ONE, TEXTS, THREE, TWO, Diary, _happen, kept_file

from inchworm.errors import Broken, NotNow
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import fields, log
from inchworm.store.follow.fields import LOST, ExtractedRows, FieldSource
from inchworm.store.follow.log import LoggedPage

PAGES = "SELECT v.log_id, v.run_id, v.text_hash, u.url FROM visit v JOIN url u USING (url_id)"
THERE = " WHERE v.kind = 'page' AND v.outcome IN ('page', 'duplicate') ORDER BY v.log_id"


def row_of(text: bytes | None, url: str) -> list[object]:
    """What a page with this text has: its first field only where the text is the first one."""
    return ["first" if text == ONE else None, url, []]


class Kept:
    """A diary, and what was taken out of its pages."""

    def __init__(self, folder: Path) -> None:
        self.diary = Diary(folder)
        self.path = folder / "fields.db"
        self.read: list[str] = []

    def close(self) -> None:
        self.diary.close()

    def take(self, page: LoggedPage) -> ExtractedRows:
        self.read.append(page.url)
        return ExtractedRows([row_of(page.text_hash, page.url)])

    def source(self, take: Callable[[LoggedPage], ExtractedRows] | None = None, digest: str = "one") -> FieldSource:
        return FieldSource(self.diary.reading, take or self.take, digest)

    def catch_up(self) -> int:
        """Take what is missing; how many pages were read for it."""
        before = len(self.read)
        fields.catch_up(self.path, self.source())
        return len(self.read) - before

    def truth(self) -> dict[int, list[list[object]]]:
        rows = self.diary.store.db.execute(PAGES + THERE)
        return {log_id: [row_of(text, url)] for log_id, _, text, url in rows}

    def held(self, digest: str = "one") -> dict[int, list[list[object]] | None]:
        numbers = [log_id for (log_id,) in self.diary.store.db.execute("SELECT log_id FROM visit")]
        with fields.lookup(self.path, digest) as look:
            found = {number: look(number) for number in numbers}
        return {number: taken.rows for number, taken in found.items() if taken}

    def rows(self) -> list[tuple[object, ...]]:
        """All that the file holds, but for its own numbers."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            pages = db.execute(
                'SELECT log_id, run_id, seq, key, matched, "rows", failure FROM page JOIN content USING (content_id)'
                " ORDER BY log_id"
            ).fetchall()
            assert db.execute("SELECT COUNT(*) FROM content").fetchone()[0] == len({key for _, _, _, key, *_ in pages})
            return pages + db.execute("SELECT * FROM tally WHERE count ORDER BY run_id, what").fetchall()

    def check(self, is_fit: bool = True) -> None:
        with kept_file(self.path) if is_fit else contextlib.nullcontext():
            self.catch_up()
        assert self.held() == self.truth()
        self.check_counts()
        followed = self.rows()
        self.path.unlink()
        self.catch_up()
        assert followed == self.rows(), "as if made anew"
        assert self.catch_up() == 0, "what is up to date stays as it is"

    def check_counts(self) -> None:
        pages = self.diary.store.db.execute(PAGES + THERE).fetchall()
        for run in self.diary.store.runs.list():
            texts = [text for _, run_id, text, _ in pages if run_id == run.run_id]
            found = fields.counts(self.path, self.source(), run.run_id)
            expected = Counter({0: texts.count(ONE), 1: len(texts)})
            assert (found.pages, found.rows, found.failed) == (len(texts), len(texts), 0)
            assert Counter(found.matched) == expected, "a field that is an empty list is not there"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with contextlib.closing(Kept(tmp_path)) as made:
        yield made


def test_every_visit_that_found_a_page_has_its_rows(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", "duplicate", ONE)
    kept.diary.visit("c", "redirect")
    kept.diary.visit("d", "failed")
    kept.check()
    assert len(kept.truth()) == 2


def test_an_unchanged_page_is_not_read_again(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO)
    assert kept.catch_up() == 2
    kept.diary.new_run()
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=THREE)
    assert kept.catch_up() == 1
    assert len(kept.truth()) == 4
    kept.check()


def test_the_same_body_under_another_address_is_another_page(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=ONE)
    kept.diary.visit("c", text=ONE, content_type="text/html")
    assert kept.catch_up() == 3
    kept.check()


def test_the_same_body_under_another_label_is_read_again(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE, content_type="text/plain")
    assert kept.catch_up() == 1
    kept.diary.new_run()
    kept.diary.visit("a", text=ONE, content_type="text/html")
    assert kept.catch_up() == 1
    kept.check()


def test_going_back_and_on(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    point = kept.diary.mark()
    kept.diary.visit("b", text=TWO)
    kept.check()
    kept.diary.go_back(point)
    kept.check()
    kept.diary.visit("c", text=TWO)
    kept.diary.visit("b", text=TWO)
    kept.check()


def test_a_verdict_that_is_taken_back(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    point = kept.diary.mark()
    kept.catch_up()
    kept.diary.judge("a", "retry", None)
    kept.check()
    assert not kept.truth()
    kept.diary.go_back(point)
    kept.check()
    assert len(kept.truth()) == 1


def test_a_branch_has_its_fields_without_reading(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    point = kept.diary.mark()
    kept.diary.visit("b", text=TWO)
    kept.catch_up()
    kept.diary.branch(point)
    assert kept.catch_up() == 0
    assert len(kept.truth()) == 3
    kept.check()


@given(st.lists(_EVENTS, max_size=50))
@settings(max_examples=60)
def test_whatever_happens_it_holds_what_the_log_says(events: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Kept(Path(folder))) as kept:
        for event in events:
            kind, *rest = event
            if kind == "look":
                kept.catch_up()
                assert kept.held() == kept.truth()
            elif kind == "die":
                _die(kept, rest[0])
            else:
                _happen(kept.diary, event)
        kept.check()


class _Death(BaseException):
    pass


def _die(kept: Kept, after: object) -> None:
    """Catching up ends in the middle."""
    read: list[LoggedPage] = []

    def take(page: LoggedPage) -> ExtractedRows:
        read.append(page)
        if len(read) > after:
            raise _Death
        return kept.take(page)

    with contextlib.suppress(_Death):
        fields.catch_up(kept.path, kept.source(take))


# ---- rules


def test_other_rules_take_the_place_of_all_rows(kept: Kept) -> None:
    for number in range(5):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number])
    kept.catch_up()
    assert kept.held("two") == {}, "rows are never those of other rules"
    other = kept.source(lambda page: ExtractedRows([["other"]]), "two")
    with fields.lookup(kept.path, "one") as look:
        before = {number: look(number) for number in kept.truth()}
        fields.catch_up(kept.path, other)
        assert {number: look(number) for number in kept.truth()} == before, "whoever reads goes on with what was there"
    assert kept.held("two") == {number: [["other"]] for number in kept.truth()}
    assert kept.held("one") == {}
    assert fields.counts(kept.path, other, 1).matched == {0: 5}
    kept.check()


def test_rules_that_change_while_fields_are_taken(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_CHUNK", 2)
    for number in range(5):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number])
    other = kept.source(lambda page: ExtractedRows([["other"]]), "two")

    def take(page: LoggedPage) -> ExtractedRows:
        fields.catch_up(kept.path, other)
        return ExtractedRows([["mine"]])

    with pytest.raises(NotNow):
        fields.catch_up(kept.path, kept.source(take))
    assert kept.held("two") == {number: [["other"]] for number in kept.truth()}, "nothing of both"


# ---- what cannot be read


def test_a_page_that_cannot_be_read_has_no_fields_and_is_counted(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO)
    kept.diary.new_run()
    kept.diary.visit("a", text=ONE)
    tried: list[str] = []

    def take(page: LoggedPage) -> ExtractedRows:
        tried.append(page.url)
        return ExtractedRows(None, "it broke the reader") if page.text_hash == ONE else kept.take(page)

    source = kept.source(take)
    assert fields.counts(kept.path, source, 1)[:3] == (2, 1, 1)
    assert fields.counts(kept.path, source, 2)[:3] == (1, 0, 1)
    assert len(tried) == 2, "it is not tried again by itself"
    assert list(kept.held().values()).count(None) == 2
    with fields.lookup(kept.path, "one") as look:
        assert look(1) == ExtractedRows(None, "it broke the reader")
    fields.forget(kept.path)
    kept.check()


def test_what_the_archive_lost_may_still_be_elsewhere(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    fields.catch_up(kept.path, kept.source(lambda _: LOST))
    assert list(kept.held().values()) == [None]
    kept.diary.new_run()
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO, payload=None)
    fields.catch_up(kept.path, kept.source(lambda page: kept.take(page) if page.payload else LOST))
    assert list(kept.held().values()) == [None, [["first", "http://a.test/a", []]], None]
    assert fields.counts(kept.path, kept.source(), 2)[:3] == (2, 1, 1)


def test_much_is_taken_in_small_bites(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_CHUNK_CHARS", 1)
    monkeypatch.setattr(log, "STEP", 2)
    told: list[tuple[int, int]] = []
    for number in range(12):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number % 5])
    fields.catch_up(kept.path, kept.source()._replace(progress=lambda done, total: told.append((done, total))))
    assert told == [(number, 12) for number in range(13)]
    kept.check()


# ---- the file


def _stamp(path: Path, change: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(change)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "no-database": lambda path: path.write_bytes(b"something else " * 2000),
    "cut-off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage-inside": lambda path: path.write_bytes(
        path.read_bytes()[:100] + random.Random(1).randbytes(path.stat().st_size - 100)
    ),
    "table-gone": lambda path: _stamp(path, "DROP TABLE page"),
    "older": lambda path: _stamp(path, "UPDATE followed SET version = '0'"),
    "newer": lambda path: _stamp(path, "UPDATE followed SET version = '999'"),
    "of-another-log": lambda path: _stamp(path, "UPDATE followed SET log_id = 1000"),
    "contents-gone": lambda path: _stamp(path, "DELETE FROM content"),
    "garbage-in-contents": lambda path: _stamp(path, "UPDATE content SET matched = '['"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_file_of_no_use_is_made_anew(kept: Kept, how: str) -> None:
    for number in range(8):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number % 5])
    point = kept.diary.mark()
    kept.diary.visit("later", text=ONE)
    kept.catch_up()
    DAMAGE[how](kept.path)
    with fields.lookup(kept.path, "one") as look:
        assert all(found is None or found.rows == kept.truth()[at] for at in kept.truth() for found in [look(at)])
    kept.diary.go_back(point)
    kept.check(is_fit=False)


def test_a_damaged_crawl_is_no_reason_to_throw_fields_away(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.catch_up()
    before = kept.path.stat().st_ino
    kept.diary.store.db.execute("DROP TABLE undone")
    with pytest.raises(Broken, match=r"crawl\.db"):
        kept.catch_up()
    assert kept.path.stat().st_ino == before


@pytest.mark.parametrize("how", ["missing", "older", "no-database"])
def test_several_at_once(kept: Kept, how: str) -> None:
    kept.catch_up()
    DAMAGE[how](kept.path)
    for number in range(60):
        kept.diary.visit(f"p{number}", text=b"%032d" % (100 + number))

    def work() -> None:
        with contextlib.closing(CrawlStore(kept.diary.reading.path, read_only=True)) as store:
            fields.catch_up(kept.path, FieldSource(store, kept.take, "one"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.check()


KILLED = """
import os, signal, sys
from pathlib import Path
from inchworm.store.follow import fields
from inchworm.store.crawl.store import CrawlStore

folder, after = Path(sys.argv[1]), int(sys.argv[2])
fields._CHUNK = 7
read = 0

def take(page):
    global read
    read += 1
    if read > after:
        os.kill(os.getpid(), signal.SIGKILL)
    return fields.ExtractedRows([[None, page.url, []]])

fields.catch_up(folder / "fields.db", fields.FieldSource(CrawlStore(folder / "crawl.db", read_only=True), take, "one"))
"""


def test_killed_in_the_middle_it_goes_on_where_it_was(kept: Kept) -> None:
    for number in range(30):
        kept.diary.visit(f"p{number}", text=b"%032d" % (100 + number))
    for after in (0, 3, 10):
        command = [sys.executable, "-c", KILLED, str(kept.path.parent), str(after)]
        assert subprocess.run(command, check=False, timeout=60).returncode == -9
    assert kept.catch_up() == 30 - 7, "ten pages were read before the last death, seven of them for good"
    kept.check()
