"""What a search server is told: that it ends up with what the log says, whatever happens to either side."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.test_search_index import _EVENTS, ONE, TEXTS, THREE, TWO, Diary, _happen

from inchworm.errors import NotNow
from inchworm.store.database import Database
from inchworm.store.follow import follower, index, log
from inchworm.store.follow.follower import FollowerFile, use
from inchworm.store.follow.index import DocumentOrder, IndexMirror, IndexSource, ServerRefusal


class Away(Exception):
    """The server is not there."""


class Remote:
    """What a server keeps: of each document the highest version."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, tuple[str, ...] | None, bytes | None]] = {}
        self.taken: list[DocumentOrder] = []
        self.lost: list[DocumentOrder] = []
        self.dies_after = -1
        self.refuses: set[str] = set()

    def take(self, orders: Iterable[DocumentOrder]) -> Sequence[ServerRefusal]:
        orders = list(orders)
        assert len({order.url for order in orders}) == len(orders), "each URL once"
        for number, order in enumerate(orders):
            if number == self.dies_after:
                self.dies_after = -1
                self.lost += orders
                raise Away
            self.put(order)
        self.taken += orders
        return [ServerRefusal(order.url, "not that one") for order in orders if order.url in self.refuses]

    def put(self, order: DocumentOrder) -> None:
        if order.url not in self.refuses and order.version >= self.held.get(order.url, (-1,))[0]:
            content = order.content
            urls, key = (tuple(content.urls), content.page.key) if content else (None, None)
            self.held[order.url] = (order.version, urls, key)

    def arrive_late(self) -> None:
        """What was under way when the server died turns up after all."""
        for order in self.lost:
            self.put(order)

    def documents(self) -> dict[bytes, tuple[str, set[str]]]:
        """Each content with the URL of its document, and all its URLs."""
        found = [(url, urls, key) for url, (_, urls, key) in self.held.items() if urls and key]
        assert len({key for _, _, key in found}) == len(found), "a content has one document"
        return {key: (url, set(urls)) for url, urls, key in found}


class Kept:
    """A diary, a server, and what the server was told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.diary = Diary(folder)
        self.remote = Remote()
        index.update(folder, lambda mirror: mirror.begin("one", "http://h:1", "x"))

    def close(self) -> None:
        self.diary.close()

    def tell(self) -> None:
        source = IndexSource(self.diary.reading, self.remote.take, 77, lambda _page, _frame: None)
        index.update(self.folder, lambda mirror: mirror.catch_up(source))

    def truth(self) -> dict[str, set[str]]:
        return {text: urls for text, urls in self.diary.truth().items() if urls}

    def held(self) -> dict[str, set[str]]:
        documents = self.remote.documents()
        assert all(url in urls for url, urls in documents.values())
        return {TEXTS[key]: urls for key, (_, urls) in documents.items()}

    def check(self) -> None:
        self.remote.dies_after = -1
        self.tell()
        assert self.held() == self.truth()
        self.remote.arrive_late()
        assert self.held() == self.truth(), "what is late overwrites nothing"
        assert not index.update(self.folder, lambda mirror: mirror.behind(self.diary.reading))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with contextlib.closing(Kept(tmp_path)) as made:
        yield made


def test_a_content_has_one_document(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", "duplicate", ONE)
    kept.diary.visit("c", text=TWO)
    kept.check()
    url, urls = kept.remote.documents()[ONE]
    assert (url[-1], {one[-1] for one in urls}) == ("a", {"a", "b"})
    kept.diary.new_run()
    kept.diary.visit("a", "deleted")
    kept.check()
    assert kept.remote.documents()[ONE] == ("http://a.test/b", {"http://a.test/b"})


def test_only_what_changed_is_told(kept: Kept) -> None:
    for number, key in enumerate(TEXTS):
        kept.diary.visit(f"p{number}", text=key)
    kept.check()
    kept.remote.taken.clear()
    kept.check()
    assert not kept.remote.taken
    kept.diary.visit("more", "duplicate", TWO)
    kept.check()
    assert [order.url for order in kept.remote.taken] == ["http://a.test/p1"]


def test_a_document_says_all_that_is_known(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE, change="new", etag='"x"', meta='{"author": "Ada"}', content_type="text/html")
    kept.diary.visit("a", text=ONE, language="en")
    kept.tell()
    (order,) = kept.remote.taken
    assert order.content
    assert order.content.fields == {
        "status": 200,
        "size": 7,
        "language": "en",
        "canonical": None,
        "etag": None,
        "last_modified": None,
        "change": None,
        "meta": {},
        "source": "spider",
        "depth": 0,
        "seed": "http://a.test/",
        "first_ms": 1,
    }
    assert (order.content.page.at_ms, order.content.page.run) == (2, 0)


def test_going_back_makes_older_visits_the_newest(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    point = kept.diary.mark()
    kept.diary.visit("a", text=TWO)
    kept.diary.visit("b", text=THREE)
    kept.check()
    kept.diary.go_back(point)
    kept.check()
    assert kept.held() == {TEXTS[ONE]: {"http://a.test/a"}}


def test_numbers_of_urls_that_are_given_again(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    point = kept.diary.mark()
    kept.diary.visit("b", text=TWO)
    kept.diary.visit("c", text=THREE)
    kept.check()
    kept.diary.go_back(point)
    kept.diary.visit("c", text=TWO)
    kept.diary.visit("b", text=THREE)
    kept.check()


def test_a_page_that_is_deleted_again_after_going_back_is_told_at_once(kept: Kept) -> None:
    """Go back, look, go on: the same verdict at the same step is news."""
    kept.diary.visit("a", text=ONE)
    kept.diary.new_run()
    kept.diary.visit("a", "redirect")
    point = kept.diary.mark()
    for _ in range(3):
        kept.diary.judge("a", "redirect", "deleted")
        kept.check()
        kept.diary.go_back(point)
        kept.check()
    kept.diary.judge("a", "redirect", "deleted")
    kept.check()


def test_what_may_have_arrived_is_taken_back(kept: Kept) -> None:
    """The server has it, nobody knows that, and then it is undone."""
    point = kept.diary.mark()
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO)
    kept.remote.dies_after = 1
    with pytest.raises(Away):
        kept.tell()
    assert len(kept.held()) == 1
    kept.diary.go_back(point)
    kept.check()
    assert not kept.held()


@pytest.mark.parametrize("chunk", [1, 2, 500])
def test_in_small_bites(kept: Kept, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_CHUNK", chunk)
    monkeypatch.setattr(log, "STEP", 2)
    point = kept.diary.mark()
    for number in range(9):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number % 4])
    kept.check()
    kept.diary.go_back(point)
    for number in reversed(range(9)):
        kept.diary.visit(f"p{number}", text=list(TEXTS)[number % 3])
    kept.check()
    versions = [order.version for order in kept.remote.taken]
    assert versions == sorted(versions)


def test_alternates_have_an_end(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_ALTERNATES", 3)
    for number in range(6):
        kept.diary.visit(f"p{number}", text=ONE)
    kept.tell()
    assert len(kept.remote.documents()[ONE][1]) == 3


# ---- trouble


def test_nothing_is_crossed_off_before_the_server_has_it(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO)
    kept.remote.dies_after = 1
    with pytest.raises(Away):
        kept.tell()
    assert index.update(kept.folder, lambda mirror: mirror.behind(kept.diary.reading)) == 2
    kept.check()


def test_every_try_has_a_version_of_its_own(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    for _ in range(3):
        kept.remote.dies_after = 0
        with pytest.raises(Away):
            kept.tell()
    kept.check()
    assert [order.version for order in (*kept.remote.lost, *kept.remote.taken)] == [1, 2, 3, 4]


def test_what_is_refused_is_set_aside_until_it_is_taken(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.diary.visit("b", text=TWO)
    kept.remote.refuses = {"http://a.test/a"}
    kept.tell()
    aside = [("http://a.test/a", "not that one", 77)]
    assert index.read(kept.folder, IndexMirror.set_aside) == aside
    assert kept.held().keys() == {TEXTS[TWO]}
    kept.tell()
    assert len(kept.remote.taken) == 2, "it is not tried again before it changes"
    kept.remote.refuses.clear()
    kept.diary.visit("a", text=THREE)
    kept.check()
    assert index.read(kept.folder, IndexMirror.set_aside) == []


def test_only_one_process_at_a_time(tmp_path: Path) -> None:
    with index.locked(tmp_path), pytest.raises(NotNow, match="Another process is indexing"), index.locked(tmp_path):
        pass
    with index.locked(tmp_path):
        pass


def test_a_file_of_no_use_begins_anew(kept: Kept) -> None:
    kept.diary.visit("a", text=ONE)
    kept.tell()
    path = kept.folder / "index.db"
    path.write_bytes(b"something else " * 1000)
    for name in ("index.db-wal", "index.db-shm"):
        (kept.folder / name).unlink(missing_ok=True)
    assert index.read(kept.folder, IndexMirror.generation) is None
    assert index.update(kept.folder, IndexMirror.generation) == ""
    path.unlink()
    assert index.read(kept.folder, IndexMirror.generation) is None


KILLED = """
import os, signal, sys
from pathlib import Path
from inchworm.store.follow import index
from inchworm.store.crawl.store import CrawlStore

folder, after = Path(sys.argv[1]), int(sys.argv[2])
index._CHUNK = 7
told_so_far = 0

def deliver(orders):
    global told_so_far
    for order in orders:
        told_so_far += 1
        if told_so_far > after:
            os.kill(os.getpid(), signal.SIGKILL)
    return []

source = index.IndexSource(CrawlStore(folder / "crawl.db", read_only=True), deliver, 1, lambda page, frame: None)
index.update(folder, lambda mirror: mirror.catch_up(source))
"""


def test_killed_in_the_middle_it_goes_on_where_it_was(kept: Kept) -> None:
    for number in range(30):
        kept.diary.visit(f"p{number}", text=b"%032d" % (100 + number))
    for after in (0, 3, 10):
        command = [sys.executable, "-c", KILLED, str(kept.folder), str(after)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        assert subprocess.run(command, check=False, timeout=60, env=environment).returncode == -9
    kept.tell()
    assert len(kept.remote.taken) == 30 - 7, "ten were told before the last death, seven of them for good"


@given(st.lists(st.one_of(_EVENTS, st.tuples(st.just("away"), st.integers(0, 2))), max_size=50))
@settings(max_examples=60)
def test_whatever_happens_the_server_has_what_the_log_says(events: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Kept(Path(folder))) as kept:
        for event in events:
            if event[0] == "look":
                kept.check()
            elif event[0] in ("away", "die"):
                kept.remote.dies_after = event[1]
                with contextlib.suppress(Away):
                    kept.tell()
            else:
                _happen(kept.diary, event)
        kept.check()


def test_what_was_told_is_on_the_disk_before_more_is_told(kept: Kept) -> None:
    """Or a power cut made it forgotten, and a document stayed that nobody takes away. Of what can be read again it is
    enough that the file stays whole."""
    kept.diary.visit("a", text=ONE)

    def told(db: Database) -> list[int]:
        mirror, found = IndexMirror(db), [follower.number(db, "PRAGMA synchronous")]

        def take(orders: Iterable[DocumentOrder]) -> Sequence[ServerRefusal]:
            found.append(follower.number(db, "PRAGMA synchronous"))
            return kept.remote.take(orders)

        mirror.catch_up(IndexSource(kept.diary.reading, take, 77, lambda _page, _frame: None))
        return found

    file = FollowerFile(kept.folder / "index.db", index.VERSION, "")
    assert use(file, told) == [1, 2], "normal, then full"
