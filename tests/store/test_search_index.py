"""The search index: words, queries and snippets; and that it ends up with what the log says, whatever happens."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.errors import Broken, WrongUse
from inchworm.model import CheckpointType, Counters, Kind, RunInfo, RunState, Seed, State
from inchworm.model import Source as FoundBy
from inchworm.ports import Commit, Judgement, NewFrontierRow, RowState, VisitRow
from inchworm.rules.text.recurring import NO_FRAME, Frame
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.history import History
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database, DatabaseFailed
from inchworm.store.follow import log, search, timed
from inchworm.store.follow.follower import FollowerFile, use
from inchworm.store.follow.framed import FrameAt, ReadText
from inchworm.store.follow.frames import RunEnd
from inchworm.store.follow.log import LoggedPage
from inchworm.store.follow.search import MAX_WORDS, SearchQuestion, SearchSource, parsed, words
from inchworm.store.lock import Life

SEED = Seed(0, "http://a.test/", "a.test", "/")
RUN = RunInfo(1, 0, "baseline", None, RunState.IN_PROGRESS, 0, {}, Counters(), (SEED,), "", 10, None)
TEXTS = {
    b"%032d" % number: f"It is all about {name}. " * 3
    for number, name in enumerate(("apples", "bears", "clouds", "dunes", "eagles"))
}
LOST = b"%032d" % 9


def as_read(text: str | None, frame: Frame = NO_FRAME) -> ReadText | None:
    """A text whose blocks are numbers that it stands for, without those that are frame."""
    if text is None:
        return None
    blocks = frozenset({len(text) % 3, 10 + len(text) % 2, 20})
    return ReadText(f"{text} Kept: {sorted(blocks - frame)}", blocks)


def no_frames(_end: RunEnd | None, _url: str, _progress: object) -> Frame:
    return NO_FRAME


def frames_by_end(end: RunEnd | None, _url: str, _progress: object) -> Frame:
    """Some frame that depends on the end of a run alone."""
    return NO_FRAME if end is None else frozenset({end.log_id % 3, 10 + end.run_id % 2})


@contextlib.contextmanager
def kept_file(path: Path) -> Iterator[None]:
    """Meanwhile nobody may put another file in the place of one that is there: what follows it heals like this whatever
    is wrong with it, and takes its time."""
    with contextlib.ExitStack() as stack:
        before = stack.enter_context(path.open("rb")) if path.exists() else None
        yield
        assert before is None or os.path.samestat(os.fstat(before.fileno()), path.stat()), "it was made anew"


class Diary:
    """A crawl's store, and short ways to let things happen in its last run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "search.db"
        self.frame_at: FrameAt = no_frames
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")
        self.token = self.store.take(Life(4711, "a machine", "a boot", 1))
        self.history = History(self.store)
        self.run = RUN
        self.store.runs.create(self.token, RUN, Commit(1, 0, seeds=(SEED,)))
        self.reading = CrawlStore(folder / "crawl.db", read_only=True)

    def close(self) -> None:
        self.reading.close()
        self.store.close()

    def write(self, **changes: object) -> None:
        with self.store.commits.committing(self.token):
            self.store.commits.write(Commit(self.run.run_id, 1, seeds=(SEED,), **changes))

    def next_seq(self) -> int:
        found = self.store.runs.get(self.run.number)
        assert found is not None
        return found.seq + 1

    def visit(self, path: str, outcome: str = "page", text: bytes | None = None, **values: object) -> None:
        seq, address = self.next_seq(), f"http://a.test/{path}"
        known = self.store.frontier.known(self.run.run_id, [address]).get(address)
        url_id = known.url_id if known else self.store.commits.next_ids()[0]
        standing = RowState(State.PENDING, None, 0, 0, 0, 1, seq, 0, None, 0, 0, 0, None, None)
        entry = NewFrontierRow(url_id, Kind.PAGE, FoundBy.SPIDER, seq, None, None, standing)
        row = dict.fromkeys(VisitRow._fields) | {"kind": Kind.PAGE, "at_ms": seq, "requested": 1, "status": 200}
        row |= {"millis": 5, "size": 7, "links": (), "revisit": 0, "missing": 0, "seq": seq, "url_id": url_id}
        row |= {"outcome": outcome, "text_hash": text, "payload": text, "title": f"Title {text!r}"}
        self.write(
            seq=seq,
            urls=[] if known else [(url_id, hash64(address), address)],
            entries=[] if known and known.in_run else [entry],
            settled=[(State.DONE, None, seq, url_id)],
            visits=[VisitRow(**{**row, **values})],
        )

    def judge(self, path: str, outcome: str, change: str | None) -> None:
        """Give the last visit of a URL in this run another verdict, in a step of its own."""
        rows = self.store.db.execute(
            "SELECT v.seq, v.outcome, v.change, v.note, v.message FROM visit v JOIN url u USING (url_id)"
            " WHERE v.run_id = ? AND u.url = ? ORDER BY v.seq DESC LIMIT 1",
            (self.run.run_id, f"http://a.test/{path}"),
        ).fetchall()
        seq = self.next_seq()
        for judged, *before in rows:
            undo = (seq, "visit", judged, json.dumps(Judgement(*before)._asdict()))
            self.write(seq=seq, undo=[undo], judged=[(judged, Judgement(outcome, change, None, None))])

    def last_outcome(self, path: str) -> str:
        rows = self.store.db.execute(
            "SELECT v.outcome FROM visit v JOIN url u USING (url_id) WHERE v.run_id = ? AND u.url = ?"
            " ORDER BY v.seq DESC LIMIT 1",
            (self.run.run_id, f"http://a.test/{path}"),
        ).fetchall()
        return rows[0][0] if rows else ""

    def mark(self) -> int:
        current = self.store.runs.get(self.run.number)
        assert current is not None
        return self.history.add(self.token, current, CheckpointType.MANUAL, 1).number

    def new_run(self) -> None:
        run_id = len(self.store.runs.list()) + 1
        before = self.run
        self.run = replace(
            RUN, run_id=run_id, number=run_id - 1, mode="incremental", parent=before.number, follows=before.run_id
        )
        self.store.runs.create(self.token, self.run, Commit(run_id, 0, seeds=(SEED,)))

    def complete(self) -> None:
        self.store.runs.set_state(self.token, self.run.run_id, RunState.COMPLETED, 1)

    def go_back(self, number: int) -> None:
        point, current = self.history.checkpoint(number), self.store.runs.get(self.run.number)
        assert point is not None and current is not None
        self.history.go_back(self.token, current, point, 0)

    def branch(self, number: int) -> None:
        point = self.history.checkpoint(number)
        assert point is not None
        run_id = len(self.store.runs.list()) + 1
        self.run = replace(RUN, run_id=run_id, number=run_id - 1, mode="incremental", parent=None)
        with self.store.commits.committing(self.token):
            self.history.branch(point, self.run)

    # What the index should have, and what it has

    def truth(self) -> dict[str, set[str]]:
        """Which URLs have each text, by reading the whole record."""
        there: dict[str, bytes | None] = {}
        for url, outcome, change, text in self.store.db.execute(
            "SELECT u.url, v.outcome, v.change, v.text_hash FROM visit v JOIN url u USING (url_id) ORDER BY v.log_id"
        ):
            if outcome in ("page", "duplicate"):
                there[url] = text
            elif outcome == "deleted" or (outcome == "redirect" and change == "deleted"):
                there[url] = None
        return {TEXTS[key]: {url for url, text in there.items() if text == key} for key in TEXTS}

    def found(self, texts: dict[bytes, str] = TEXTS) -> dict[str, set[str]]:
        source = SearchSource(
            self.reading, lambda page, frame: as_read(texts.get(page.payload or b""), frame), frame_at=self.frame_at
        )
        answers = {}
        for text in TEXTS.values():
            found = search.search(self.path, source, SearchQuestion(parsed(text.split()[4]), 10))
            assert found.total == len(found.results)
            assert found.total <= 1 or self.frame_at != no_frames, "a text is one result, however many URLs have it"
            answers[text] = {url for result in found.results for url in result.urls}
            assert sum(len(result.urls) for result in found.results) == len(answers[text])
        return answers

    def rows(self) -> list[tuple[object, ...]]:
        """All that the index holds, but for its own numbers."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
            return db.execute(
                "SELECT p.url_id, url, log_id, run_id, seq, run, at_ms, is_copy, key, title, text FROM page p"
                " LEFT JOIN content USING (content_id) ORDER BY 1"
            ).fetchall()

    def check(self) -> None:
        with kept_file(self.path):
            assert self.found() == self.truth()
        followed = self.rows()
        self.path.unlink()
        assert self.found() == self.truth()
        assert [row for row in followed if row[8]] == [row for row in self.rows() if row[8]], "as if made anew"


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    made = Diary(tmp_path)
    yield made
    made.close()


ONE, TWO, THREE, *_ = TEXTS


# ---- words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("snake_case and kebab-case v2.0", ["snake", "case", "and", "kebab", "case", "v2", "0"]),
        ("Crème BRÛLÉE Straße", ["creme", "brulee", "strasse"]),
        ("Cre\u0300me", ["creme"]),
        ("ΑΘΉΝΑ Москва", ["αθηνα", "москва"]),
        ("東京タワー Tokyo", ["東", "京", "タ", "ワ", "ー", "tokyo"]),
        ("서울에서", ["서", "울", "에", "서"]),
        ("กินข้าว", list("กินข้าว")),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שָׁלוֹם السَّلام", ["שָׁלוֹם", "السَّلام"]),
        ("ＡＢＣ ① ﬁne", ["abc", "1", "fine"]),
        ("", []),
        ("«…» -- \x00\x1b[2J", ["2j"]),
    ],
    ids=range(13),
)
def test_words(text: str, found: list[str]) -> None:
    expected = [unicodedata.normalize("NFKD", word) if not word.isascii() else word for word in found]
    assert [unicodedata.normalize("NFKD", word) for word in words(search.plain(text))] == expected


def test_halves_of_characters_do_no_harm() -> None:
    assert words(search.plain("one\ud800two")) == ["one", "two"]
    assert parsed("one \udcff two").expression == '("one" AND "two")'


@given(st.text())
def test_words_are_found_by_themselves(text: str) -> None:
    """Whatever a text consists of: SQLite takes our words one by one, and finds the text by each of them."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (title, body, content = '', tokenize = 'ascii')")
        found = words(search.plain(text))
        db.execute("INSERT INTO words (rowid, title, body) VALUES (1, '', ?)", (" ".join(found),))
        for word in found:
            assert db.execute("SELECT rowid FROM words WHERE words MATCH ?", (f'"{word}"',)).fetchall() == [(1,)]


# ---- queries


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("garden", '("garden")'),
        ("Garden TOOLS", '("garden" AND "tools")'),
        ('"garden tools" shed', '("garden tools" AND "shed")'),
        ("“garden tools”", '("garden tools")'),
        ("gard*", '("gard"*)'),
        ('"garden to"*', '("garden to"*)'),
        ("garden -winter", '("garden") NOT ("winter")'),
        ('garden -winter -"deep snow" -ic*', '("garden") NOT ("winter" OR "deep snow" OR "ic"*)'),
        ("well-known", '("well known")'),
        ('"never closed', '("never closed")'),
        ("東京", '("東 京")'),
        ("a AND b OR NOT c NEAR(d)", '("a" AND "and" AND "b" AND "or" AND "not" AND "c" AND "near d")'),
        ("title:secret ^start {x y}: +", '("title secret" AND "start" AND "x" AND "y")'),
        ("it's \"\"\" * ** -* 'quoted'", '("it s" AND "quoted")'),
    ],
    ids=range(14),
)
def test_queries(text: str, expression: str) -> None:
    assert parsed(text).expression == expression


@pytest.mark.parametrize("text", ["", "  ", '"', "-", "*", "!?", "-only -these", '-"not this"', "\x00", "\ud800"])
def test_a_query_needs_a_word(text: str) -> None:
    with pytest.raises(WrongUse, match="no word"):
        parsed(text)


def test_too_many_words_are_refused() -> None:
    assert parsed("a " * MAX_WORDS)
    with pytest.raises(WrongUse, match="more than"):
        parsed("a " * (MAX_WORDS + 1))


_TYPED = st.text() | st.text(st.sampled_from("abAB\"*-()^:+{}\\'% \t\n\x00東é«»,.~|&!ANDORNOTNEAR"))


@given(_TYPED, st.text())
@settings(max_examples=300)
def test_nothing_that_is_typed_is_an_error_of_the_database(typed: str, text: str) -> None:
    try:
        query = parsed(typed)
    except WrongUse:
        return
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (title, body, content = '', tokenize = 'ascii')")
        db.execute("INSERT INTO words (rowid, title, body) VALUES (1, '', ?)", (" ".join(words(search.plain(text))),))
        db.execute("SELECT rowid FROM words WHERE words MATCH ?", (query.expression,)).fetchall()


# ---- following the log


def test_a_page_is_found_by_its_newest_text(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.visit("b", text=TWO)
    diary.check()
    diary.new_run()
    diary.visit("a", text=TWO)
    diary.check()
    assert diary.found()[TEXTS[TWO]] == {"http://a.test/a", "http://a.test/b"}


@pytest.mark.parametrize("outcome", ["failed", "retry", "redirect", "control"])
def test_what_says_nothing_of_a_page_changes_nothing(diary: Diary, outcome: str) -> None:
    diary.visit("a", text=ONE)
    diary.new_run()
    diary.visit("a", outcome)
    diary.check()
    assert diary.found()[TEXTS[ONE]] == {"http://a.test/a"}


def test_deleted_pages_vanish_and_may_come_back(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.visit("b", "duplicate", ONE)
    diary.new_run()
    diary.visit("a", "deleted")
    diary.check()
    assert diary.found()[TEXTS[ONE]] == {"http://a.test/b"}
    diary.visit("b", "redirect", change="deleted")
    diary.check()
    diary.new_run()
    diary.visit("a", text=ONE)
    diary.check()
    assert diary.found()[TEXTS[ONE]] == {"http://a.test/a"}


def test_texts_that_nobody_has_leave_nothing_behind(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.found()
    diary.visit("a", text=TWO)
    with kept_file(diary.path):
        diary.found()
    with contextlib.closing(sqlite3.connect(diary.path)) as db:
        assert db.execute("SELECT key FROM content").fetchall() == [(TWO,)]
        assert db.execute("SELECT COUNT(*) FROM words WHERE words MATCH 'apples'").fetchone() == (0,)


def test_an_unchanged_text_is_not_read_again(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.found()
    for _ in range(3):
        diary.new_run()
        diary.visit("a", text=ONE)
    assert diary.found(texts={}) == diary.truth(), "nobody asked for the text"
    assert [row[5] for row in diary.rows()] == [3]


def test_a_redirect_is_judged_when_its_run_ends(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.new_run()
    diary.visit("a", "redirect")
    before = diary.mark()
    assert diary.found()[TEXTS[ONE]]
    diary.judge("a", "redirect", "deleted")
    diary.check()
    assert not diary.found()[TEXTS[ONE]]
    diary.go_back(before)
    diary.check()
    assert diary.found()[TEXTS[ONE]], "the verdict was taken back, though its visit was not"


def test_a_page_that_is_deleted_again_after_going_back_vanishes_at_once(diary: Diary) -> None:
    """Go back, look, go on: the same verdict at the same step is news."""
    diary.visit("a", text=ONE)
    diary.new_run()
    diary.visit("a", "redirect")
    before = diary.mark()
    for _ in range(3):
        diary.judge("a", "redirect", "deleted")
        assert not diary.found()[TEXTS[ONE]]
        diary.go_back(before)
        assert diary.found()[TEXTS[ONE]] == {"http://a.test/a"}
    diary.judge("a", "redirect", "deleted")
    diary.check()
    assert not diary.found()[TEXTS[ONE]]


def test_a_verdict_that_was_never_seen_is_taken_back(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.new_run()
    diary.visit("a", "redirect")
    before = diary.mark()
    diary.judge("a", "redirect", "deleted")
    diary.found()
    diary.go_back(before)
    diary.visit("b", text=TWO)
    diary.judge("b", "page", "unchanged")
    diary.check()


def test_a_server_that_lied_is_asked_again(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.new_run()
    diary.visit("a", text=ONE, status=304)
    diary.found()
    diary.judge("a", "retry", None)
    assert diary.found() == diary.truth()
    assert [row[5] for row in diary.rows()] == [0], "what the server said is not believed any more"
    diary.visit("a", text=TWO)
    diary.check()


def test_going_back_puts_older_versions_in_their_place(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.visit("b", text=TWO)
    diary.visit("c", text=THREE)
    diary.new_run()
    point = diary.mark()
    diary.visit("a", text=THREE)
    diary.visit("b", "deleted")
    diary.visit("d", text=TWO)
    diary.check()
    diary.go_back(point)
    diary.check()
    assert diary.found()[TEXTS[TWO]] == {"http://a.test/b"}
    diary.visit("e", text=TWO)
    diary.check()
    assert diary.found()[TEXTS[TWO]] == {"http://a.test/b", "http://a.test/e"}, "it has the number that d had"


def test_several_ways_back_between_two_looks(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    point = diary.mark()
    diary.visit("b", text=TWO)
    diary.found()
    diary.go_back(point)
    diary.visit("c", text=TWO)
    later = diary.mark()
    diary.visit("d", text=THREE)
    diary.go_back(later)
    diary.visit("b", text=THREE)
    diary.check()


def test_a_branch_is_newer_than_what_it_left(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    point = diary.mark()
    diary.visit("a", text=TWO)
    diary.found()
    diary.branch(point)
    diary.check()
    assert diary.found()[TEXTS[ONE]] == {"http://a.test/a"}
    assert [row[5] for row in diary.rows()] == [1]


def test_the_primary_url_comes_first(diary: Diary) -> None:
    for path, outcome in (("c", "page"), ("a", "duplicate"), ("b", "duplicate")):
        diary.visit(path, outcome, ONE)
    source = SearchSource(diary.reading, lambda page, _: as_read(TEXTS.get(page.payload or b"")))
    (result,) = search.search(diary.path, source, SearchQuestion(parsed("apples"), 10)).results
    assert [url[-1] for url in result.urls] == ["c", "a", "b"]
    assert (result.title, result.run, result.at_ms) == (f"Title {ONE!r}", 0, 1)
    diary.new_run()
    diary.visit("b", text=ONE)
    (result,) = search.search(diary.path, source, SearchQuestion(parsed("apples"), 10)).results
    assert [url[-1] for url in result.urls] == ["b", "c", "a"], "as the newest run has it"


def test_titles_weigh_more_than_text(diary: Diary) -> None:
    diary.visit("long", text=ONE, title="Something else")
    diary.visit("short", text=TWO, title="All about apples")
    source = SearchSource(diary.reading, lambda page, _: as_read(TEXTS.get(page.payload or b"")))
    found = search.search(diary.path, source, SearchQuestion(parsed("apples"), 1))
    assert (found.total, [result.urls for result in found.results]) == (2, [["http://a.test/short"]])
    assert found.results[0].score > 0


def test_what_the_archive_lost_is_found_by_its_title(diary: Diary) -> None:
    diary.visit("a", text=ONE, payload=LOST)
    source = SearchSource(diary.reading, lambda page, _: as_read(TEXTS.get(page.payload or b"")))
    assert search.search(diary.path, source, SearchQuestion(parsed("title"), 10)).total == 1
    assert search.search(diary.path, source, SearchQuestion(parsed("apples"), 10)).total == 0
    diary.visit("b", "duplicate", ONE)
    diary.new_run()
    diary.visit("a", text=ONE)
    (result,) = search.search(diary.path, source, SearchQuestion(parsed("apples"), 10)).results
    assert len(result.urls) == 2, "as soon as one of them has the text, the text is known"


def test_much_text_is_taken_in_small_bites(diary: Diary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_CHUNK_CHARS", 1)
    monkeypatch.setattr(log, "STEP", 2)
    for number in range(12):
        diary.visit(f"p{number}", text=list(TEXTS)[number % 5])
    told: list[tuple[int, int]] = []
    source = SearchSource(
        diary.reading, lambda page, _: as_read(TEXTS[page.payload or b""]), lambda *numbers: told.append(numbers)
    )
    assert search.search(diary.path, source, SearchQuestion(parsed("about"), 10)).total == 5
    assert told[0] == (0, 12) and told[-1] == (12, 12) and told == sorted(told) and len(told) > 3
    diary.check()


_PATHS = st.sampled_from("abc")
_EVENTS = st.one_of(
    st.tuples(st.just("page"), _PATHS, st.sampled_from(list(TEXTS)[:3])),
    st.tuples(st.sampled_from(["redirect", "redirect", "deleted"]), _PATHS),
    st.tuples(st.just("judge"), _PATHS, st.sampled_from(["deleted", "deleted", "unchanged"])),
    st.tuples(st.just("moved"), _PATHS),
    st.tuples(st.just("mark")),
    st.tuples(st.sampled_from(["back", "back", "branch"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["look", "look", "run", "complete"])),
    st.tuples(st.just("die"), st.integers(0, 3)),
)


class _Death(BaseException):
    pass


def _happen(diary: Diary, event: tuple[object, ...]) -> None:
    kind, *rest = event
    if kind == "page":
        diary.visit(str(rest[0]), "page", rest[1])
    elif kind in ("redirect", "deleted"):
        diary.visit(str(rest[0]), str(kind))
    elif kind == "moved":
        diary.visit(str(rest[0]), "redirect")
        diary.mark()
        diary.judge(str(rest[0]), "redirect", "deleted")
    elif kind == "judge":
        outcome = diary.last_outcome(str(rest[0]))
        if outcome in ("page", "redirect"):
            judged = ("redirect", rest[1]) if outcome == "redirect" else ("retry", None)
            diary.judge(str(rest[0]), *judged)
    elif kind == "mark":
        diary.mark()
    elif kind == "run":
        diary.new_run()
    elif kind == "complete":
        diary.complete()
    elif kind == "look":
        assert diary.found() == diary.truth()
    elif kind == "die":
        _die(diary, rest[0])
    else:
        points = [one for one in diary.history.checkpoints() if kind == "branch" or one.run_id == diary.run.run_id]
        if points:
            point = points[-1 - rest[0] % len(points)].number
            diary.go_back(point) if kind == "back" else diary.branch(point)


def _die(diary: Diary, after: object) -> None:
    """Catching up ends in the middle."""
    read = []

    def text_of(page: LoggedPage, frame: Frame) -> ReadText | None:
        read.append(page)
        if len(read) > after:
            raise _Death
        return as_read(TEXTS[page.payload or b""], frame)

    with contextlib.suppress(_Death):
        source = SearchSource(diary.reading, text_of, frame_at=diary.frame_at)
        search.search(diary.path, source, SearchQuestion(parsed("about"), 1))


@given(st.lists(_EVENTS, max_size=50))
@settings(max_examples=60)
@pytest.mark.parametrize("frame_at", [no_frames, frames_by_end])
def test_whatever_happens_the_index_has_what_the_log_says(frame_at: FrameAt, events: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Diary(Path(folder))) as diary:
        diary.frame_at = frame_at
        for event in events:
            _happen(diary, event)
        diary.check()


# ---- the file


def _stamp(path: Path, change: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(change)


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "no-database": lambda path: path.write_bytes(b"something else " * 2000),
    "cut-off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage-inside": lambda path: path.write_bytes(
        path.read_bytes()[:100] + random.Random(1).randbytes(path.stat().st_size - 100)
    ),
    "garbage-in-words": lambda path: _stamp(path, "UPDATE words_data SET block = x'ffffffffffffffff' WHERE id > 10"),
    "garbage-in-texts": lambda path: _stamp(path, "UPDATE content SET text = x'00'"),
    "texts-gone": lambda path: _stamp(path, "DELETE FROM content"),
    "pages-gone": lambda path: _stamp(path, "DELETE FROM page"),
    "table-gone": lambda path: _stamp(path, "DROP TABLE page"),
    "older": lambda path: _stamp(path, "UPDATE followed SET version = '0'"),
    "newer": lambda path: _stamp(path, "UPDATE followed SET version = '999'"),
    "of-another-log": lambda path: _stamp(path, "UPDATE followed SET log_id = 1000"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_an_index_of_no_use_is_made_anew(diary: Diary, how: str) -> None:
    for number in range(8):
        diary.visit(f"p{number}", text=list(TEXTS)[number % 5])
    diary.found()
    DAMAGE[how](diary.path)
    assert diary.found() == diary.truth()
    diary.check()


@pytest.mark.parametrize("kind", ["search", "fields", "index"])
def test_what_another_reader_took_out_of_pages_is_not_kept(kind: str) -> None:
    """Texts, links and fields of two readers cannot be held together: the file is of another version."""
    ask = "import sys; from inchworm.rules.text import content; content.READER = sys.argv[1] or content.READER; "
    ask += f"from inchworm.store.follow import {kind}; print({kind}.VERSION)"
    ours, others = (
        subprocess.run([sys.executable, "-c", ask, reader], capture_output=True, text=True, check=True).stdout
        for reader in ("", "another")
    )
    assert ours != others


def test_what_cannot_be_helped_is_said_in_our_words(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.path.mkdir()
    with pytest.raises((Broken, OSError)):
        diary.found()


def test_a_damaged_crawl_is_no_reason_to_throw_the_index_away(diary: Diary, tmp_path: Path) -> None:
    diary.visit("a", text=ONE)
    diary.found()
    before = diary.path.stat().st_ino
    diary.store.db.execute("DROP TABLE undone")
    with pytest.raises(Broken, match=r"crawl\.db"):
        diary.found()
    assert diary.path.stat().st_ino == before


def test_a_trouble_that_may_pass_is_no_reason_to_throw_the_index_away(diary: Diary) -> None:
    diary.visit("a", text=ONE)
    diary.found()
    file = FollowerFile(diary.path, search.VERSION, search.SCHEMA, diary.path.parent)

    def fail(db: Database) -> None:
        db.execute("INSERT INTO followed SELECT * FROM followed")

    before = diary.path.stat().st_ino
    with pytest.raises(DatabaseFailed):
        use(file, fail)
    assert diary.path.stat().st_ino == before


# ---- several at once, and death


@pytest.mark.parametrize("how", ["missing", "older", "garbage-in-words", "no-database"])
def test_several_at_once(diary: Diary, how: str) -> None:
    diary.found()
    DAMAGE[how](diary.path)
    for number in range(60):
        diary.visit(f"p{number}", text=b"%032d" % (100 + number))
    texts = {b"%032d" % (100 + number): f"something{number} shared" for number in range(60)}
    answers: list[int] = []

    def work() -> None:
        with contextlib.closing(CrawlStore(diary.reading.path, read_only=True)) as store:
            source = SearchSource(store, lambda page, _: ReadText(texts[page.payload or b""]))
            answers.append(search.search(diary.path, source, SearchQuestion(parsed("shared"), 100)).total)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [60] * 4
    assert len(diary.rows()) == 60


@pytest.mark.parametrize("has_time", [True, False], ids=["as long as it takes", "for some seconds"])
def test_who_searches_waits_for_who_replaces_the_index(diary: Diary, has_time: bool) -> None:
    """Or it would write to a file that nobody has any more."""
    diary.visit("a", text=ONE)
    diary.found()
    answers: list[int] = []

    def work() -> None:
        question = SearchQuestion(parsed("Title"), 100)
        with contextlib.closing(CrawlStore(diary.reading.path, read_only=True)) as store:
            source = SearchSource(store, lambda _: "")
            if has_time:
                found = search.search(diary.path, source, question)
            else:
                found, _ = timed.search(diary.path, source, question, 60.0)
        answers.append(found.total)

    folder = os.open(diary.path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    searching = threading.Thread(target=work)
    searching.start()
    searching.join(0.5)
    assert answers == []
    os.close(folder)
    searching.join()
    assert answers == [1]


KILLED = """
import os, signal, sys
from pathlib import Path
from inchworm.store.follow import search
from inchworm.store.crawl.store import CrawlStore

folder, after = Path(sys.argv[1]), int(sys.argv[2])
search._CHUNK = 7
read = 0

def text_of(page, frame):
    global read
    read += 1
    if read > after:
        os.kill(os.getpid(), signal.SIGKILL)
    return search.ReadText(f"{page.title} shared")

source = search.SearchSource(CrawlStore(folder / "crawl.db", read_only=True), text_of)
search.search(folder / "search.db", source, search.SearchQuestion(search.parsed("shared"), 1))
"""


def test_who_is_slower_does_not_overwrite_what_another_has_looked_up(diary: Diary) -> None:
    """While a text is read, the page gets another one, and somebody else brings the index up to date."""
    diary.visit("a", text=ONE)
    late = [TWO]

    def text_of(page: LoggedPage, frame: Frame) -> ReadText | None:
        if late:
            diary.visit("a", text=late.pop())
            diary.found()
        return as_read(TEXTS.get(page.payload or b""), frame)

    search.search(diary.path, SearchSource(diary.reading, text_of), SearchQuestion(parsed("apples"), 10))
    diary.check()


def test_killed_in_the_middle_it_goes_on_where_it_was(diary: Diary) -> None:
    for number in range(30):
        diary.visit(f"p{number}", text=b"%032d" % (100 + number))
    for after in (0, 3, 10):
        command = [sys.executable, "-c", KILLED, str(diary.path.parent), str(after)]
        assert subprocess.run(command, check=False, timeout=60).returncode == -9
    read: list[str] = []

    def text_of(page: LoggedPage, _frame: Frame) -> ReadText:
        read.append(page.url)
        return ReadText(f"{page.title} shared")

    found = search.search(diary.path, SearchSource(diary.reading, text_of), SearchQuestion(parsed("shared"), 100))
    assert found.total == 30
    assert len(read) == 30 - 7, "ten pages were read before the last death, seven of them for good"
