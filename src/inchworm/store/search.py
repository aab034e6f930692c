"""search.db: full-text search over the pages of a crawl, in a file of its own.

The index follows the crawl's log and is never part of a commit. What it is to hold follows from the log alone: of each
URL the newest visit that tells whether the page is there, and its text. So whatever happens to a URL, it is only noted
in `todo`, and later looked up anew. How far the log was followed is written together with what was noted, and what was
looked up together with the texts that came of it: a process that dies at any moment leaves an index that is behind.

Words are cut and folded here and not by SQLite, so that a text, a query and the marks in a snippet always agree.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from inchworm.errors import Broken, WrongUse
from inchworm.rules.content import READER
from inchworm.store.commit import marks
from inchworm.store.crawl import CrawlStore
from inchworm.store.sqlite import BUSY_SECONDS, plain_errors, snapshot

VERSION = f"1 reader={READER} unicode={unicodedata.unidata_version}"
"""An index of another version is made anew: it has other words."""

MAX_TEXT = 1_000_000
MAX_WORDS = 100
TITLE_WEIGHT = 8.0
_STEP = 5_000
_CHUNK = 500
_CHUNK_CHARS = 8_000_000

_SCHEMA = """
CREATE TABLE followed (
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  version  TEXT NOT NULL,
  log_id   INTEGER NOT NULL,  -- the last entry of the log that was seen
  turn     INTEGER NOT NULL   -- one more with every transaction
);
CREATE TABLE step (           -- up to which seq of each run it was seen which visits got another verdict
  run_id   INTEGER PRIMARY KEY,
  seq      INTEGER NOT NULL
);
CREATE TABLE judged (         -- the verdicts that going back takes back: seq is the step that gave them
  run_id   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  url_id   INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq, url_id)
) WITHOUT ROWID;
CREATE TABLE todo (           -- URLs to be looked up
  url_id   INTEGER PRIMARY KEY
);
CREATE TABLE page (           -- the newest visit of each URL that tells whether the page is there
  url_id   INTEGER PRIMARY KEY,
  url      TEXT NOT NULL,
  log_id   INTEGER NOT NULL,
  run_id   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  run      INTEGER NOT NULL,
  at_ms    INTEGER NOT NULL,
  is_copy  INTEGER NOT NULL,
  content_id INTEGER          -- none: it is gone
);
CREATE INDEX page_seq ON page (run_id, seq);
CREATE INDEX page_content ON page (content_id) WHERE content_id IS NOT NULL;
CREATE TABLE content (        -- each text once, however many URLs have it
  content_id INTEGER PRIMARY KEY AUTOINCREMENT,
  key      BLOB NOT NULL UNIQUE,
  title    TEXT NOT NULL,
  text     BLOB NOT NULL      -- zlib
);
CREATE VIRTUAL TABLE words USING fts5 (title, body, content = '', tokenize = 'ascii');
"""

_TELLING = (
    "v.kind = 'page' AND (v.outcome IN ('page', 'duplicate', 'deleted')"
    " OR (v.outcome = 'redirect' AND v.change = 'deleted'))"
)
_DAMAGE = {1, 11, 26}
"""SQLite's codes for a table that is not there, a malformed file, and no database at all."""

Progress = Callable[[int, int], None]
"""How many URLs were looked up, of how many."""


class Page(NamedTuple):
    """What the crawl has last on a URL."""

    url_id: int
    url: str
    log_id: int
    run_id: int
    seq: int
    run: int
    at_ms: int
    outcome: str
    text_hash: bytes | None
    payload: bytes | None
    content_type: str
    title: str
    request_url: str

    @property
    def is_there(self) -> bool:
        return self.outcome in ("page", "duplicate")


class Result(NamedTuple):
    """One content that was found. `urls` has the primary one first; the snippet is what was asked for of its text."""

    urls: list[str]
    title: str
    snippet: str
    run: int
    at_ms: int
    score: float


_Texts = dict[bytes, str | None]
"""Texts by key: empty where none is needed, None where it is lost."""


class Found(NamedTuple):
    """The best results, and how many there are in all."""

    total: int
    results: list[Result]


class Source(NamedTuple):
    """What the index is made of: a crawl's log, and a way to get the text of a page (None: it is lost)."""

    store: CrawlStore
    text_of: Callable[[Page], str | None]
    progress: Progress = lambda _done, _total: None


class Question(NamedTuple):
    """A query, how many results are wanted, and how to make a snippet of a text."""

    query: Query
    limit: int
    snippet: Callable[[str, Query], str] = lambda text, _: text


def search(path: Path, source: Source, question: Question) -> Found:
    """Bring the index at `path` up to date, making it anew where it is of no use, and ask it."""
    for is_last in (False, True):
        try:
            with _sharing(path), contextlib.closing(_opened(path)) as db:
                index = Index(db)
                index.catch_up(source)
                return index.find(question)
        except (_Unfit, sqlite3.DatabaseError) as error:
            if is_last or not _is_damage(error):
                with plain_errors(path):
                    raise
            _make_anew(path, keep_if_fit=isinstance(error, _Missing))
    raise AssertionError("the second try returns or raises")


# ---- the file


class _Unfit(Broken):
    """The index does not fit its crawl, or itself."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The search index is of no use: {why}.", "Delete search.db; it is made anew from the archive."
        )


class _Missing(_Unfit):
    """There is no index, or one of another version."""


def _is_damage(error: Exception) -> bool:
    return isinstance(error, _Unfit) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


@contextlib.contextmanager
def _sharing(path: Path, mode: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Whoever uses the index shares its folder with the others; whoever replaces it has it alone."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, mode)
        yield
    finally:
        os.close(descriptor)


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)


def _opened(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise _Missing("there is none")
    db = _connected(path)
    try:
        if not _is_fit(db):
            raise _Missing("it is of another version")
        # What a power cut takes away is read again; that the file stays whole is enough.
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def _is_fit(db: sqlite3.Connection) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'followed'").fetchone():
        return False
    return bool(db.execute("SELECT version FROM followed").fetchone() == (VERSION,))


def _make_anew(path: Path, keep_if_fit: bool) -> None:
    with _sharing(path, fcntl.LOCK_EX), plain_errors(path):
        if keep_if_fit:
            # Another process may have been faster.
            with contextlib.suppress(_Unfit, sqlite3.DatabaseError), contextlib.closing(_opened(path)):
                return
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
            path.with_name(name).unlink(missing_ok=True)
        with contextlib.closing(_connected(path)) as db:
            # Texts are a few thousand bytes each: on small pages, one of each would lie alone.
            db.execute("PRAGMA page_size = 16384")
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"BEGIN; {_SCHEMA} INSERT INTO followed VALUES (1, '{VERSION}', 0, 0); COMMIT")


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


# ---- the index


class Index:
    """One crawl's index, open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def catch_up(self, source: Source) -> None:
        """Bring the index to where the log ends now. Others may do the same at the same time."""
        log = _Log(source.store)
        seen, end = self._number("SELECT log_id FROM followed"), log.end()
        if seen > end:
            raise _Unfit("this is not the log that was followed, somebody put an older one in its place")
        if seen < end or self._new_steps(log):
            while self._follow(log) < end:
                pass
        total = left = self._number("SELECT COUNT(*) FROM todo")
        while left:
            source.progress(max(total - left, 0), total)
            self._work_off(source, log)
            left = self._number("SELECT COUNT(*) FROM todo")
        source.progress(total, total)

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    # Following the log

    def _follow(self, log: _Log) -> int:
        """Note which URLs some entries of the log, and verdicts given since, have something to say of; how far it came."""
        with _transaction(self._db, "IMMEDIATE"), log.snapshot():
            seen = self._number("SELECT log_id FROM followed")
            upto = log.step_from(seen)
            self._db.executemany(
                "INSERT OR IGNORE INTO todo SELECT ?1 WHERE NOT EXISTS"
                " (SELECT 1 FROM page WHERE url_id = ?1 AND log_id >= ?2)",
                log.visits(seen, upto),
            )
            for entry in log.undone(seen, upto):
                self._take_back(*entry)
            self._look_at_verdicts(log)
            self._db.execute("UPDATE followed SET log_id = ?, turn = turn + 1", (upto,))
        return upto

    def _take_back(self, log_id: int, run_id: int, from_seq: int) -> None:
        """Visits of a run are no more, nor are the verdicts that were given in those steps."""
        execute, later = self._db.execute, (run_id, from_seq)
        execute(
            "INSERT OR IGNORE INTO todo SELECT url_id FROM page WHERE run_id = ? AND seq >= ? AND log_id < ?",
            (*later, log_id),
        )
        execute("INSERT OR IGNORE INTO todo SELECT url_id FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("DELETE FROM judged WHERE run_id = ? AND seq >= ?", later)
        execute("UPDATE step SET seq = MIN(seq, ?) WHERE run_id = ?", (from_seq - 1, run_id))

    def _look_at_verdicts(self, log: _Log) -> None:
        """A step may have judged older visits anew, which leaves no entry in the log."""
        for run_id, seen, seq in self._new_steps(log):
            judged = log.judged(run_id, seen)
            self._db.executemany("INSERT OR IGNORE INTO judged VALUES (?, ?, ?)", judged)
            self._db.executemany("INSERT OR IGNORE INTO todo VALUES (?)", [(url_id,) for _, _, url_id in judged])
            self._db.execute("INSERT OR REPLACE INTO step VALUES (?, ?)", (run_id, seq))

    def _new_steps(self, log: _Log) -> list[tuple[int, int, int]]:
        """Each run with steps that were not looked at: up to where they were, and where it stands."""
        seen = dict(self._db.execute("SELECT run_id, seq FROM step").fetchall())
        return [(run_id, seen.get(run_id, 0), seq) for run_id, seq in log.runs() if seq > seen.get(run_id, 0)]

    # Looking URLs up

    def _work_off(self, source: Source, log: _Log) -> None:
        """Look some URLs up and read their pages. Should another process have been faster, that was for nothing."""
        with _transaction(self._db, "DEFERRED"):
            turn = self._number("SELECT turn FROM followed")
            url_ids = [url_id for (url_id,) in self._db.execute("SELECT url_id FROM todo LIMIT ?", (_CHUNK,))]
        with log.snapshot():
            pages = log.newest(url_ids)
        texts = self._texts(pages, source)
        gone = {url_id for url_id in url_ids if url_id not in pages or not pages[url_id].is_there}
        settled = [url_id for url_id in url_ids if url_id in gone or _key(pages[url_id]) in texts]
        with _transaction(self._db, "IMMEDIATE"):
            if self._number("SELECT turn FROM followed") != turn:
                return
            left = {self._settle(url_id, pages.get(url_id), texts) for url_id in settled}
            for content_id in left:
                self._drop_unless_used(content_id)
            self._db.executemany("DELETE FROM todo WHERE url_id = ?", [(url_id,) for url_id in settled])
            self._db.execute("UPDATE followed SET turn = turn + 1")

    def _texts(self, pages: dict[int, Page], source: Source) -> _Texts:
        """What is to be entered for each page that is there; for as many as there is room in memory."""
        texts: _Texts = {}
        room = _CHUNK_CHARS
        for page in pages.values():
            key = _key(page)
            if not page.is_there or texts.get(key) is not None:
                continue
            if room <= 0:
                break
            text = source.text_of(page) if self._content(key) is None else ""
            texts[key] = None if text is None else plain(text)[:MAX_TEXT]
            room -= len(text or "")
        return texts

    def _content(self, key: bytes) -> int | None:
        row = self._db.execute("SELECT content_id FROM content WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _settle(self, url_id: int, page: Page | None, texts: _Texts) -> int | None:
        """Put a URL to where it belongs; the content that it has left comes back."""
        row = self._db.execute("SELECT content_id FROM page WHERE url_id = ?", (url_id,)).fetchone()
        before = row[0] if row else None
        if page is None:
            self._db.execute("DELETE FROM page WHERE url_id = ?", (url_id,))
            return before
        now = self._enter(page, texts) if page.is_there else None
        self._db.execute(
            f"INSERT OR REPLACE INTO page VALUES ({marks(9)})",
            (*page[:7], page.outcome == "duplicate", now),
        )
        return before if before != now else None

    def _enter(self, page: Page, texts: _Texts) -> int:
        key = _key(page)
        title, text = plain(page.title), texts[key] or ""
        if texts[key] is None:
            # Another page with this text may still have it.
            key = b"lost %d" % page.url_id
        content_id = self._content(key)
        if content_id is not None:
            return content_id
        packed = zlib.compress(text.encode(), 3)
        cursor = self._db.execute("INSERT INTO content (key, title, text) VALUES (?, ?, ?)", (key, title, packed))
        content_id = int(cursor.lastrowid or 0)
        self._db.execute("INSERT INTO words (rowid, title, body) VALUES (?, ?, ?)", (content_id, *_cut(title, text)))
        return content_id

    def _drop_unless_used(self, content_id: int | None) -> None:
        used = "SELECT 1 FROM page WHERE content_id = ? LIMIT 1"
        if content_id is None or self._db.execute(used, (content_id,)).fetchone():
            return
        title, text = self._text(content_id)
        self._db.execute(
            "INSERT INTO words (words, rowid, title, body) VALUES ('delete', ?, ?, ?)", (content_id, *_cut(title, text))
        )
        self._db.execute("DELETE FROM content WHERE content_id = ?", (content_id,))

    def _text(self, content_id: int) -> tuple[str, str]:
        row = self._db.execute("SELECT title, text FROM content WHERE content_id = ?", (content_id,)).fetchone()
        if row is None:
            raise _Unfit("it has words without a text")
        try:
            return row[0], zlib.decompress(row[1]).decode()
        except (zlib.error, UnicodeDecodeError) as error:
            raise _Unfit("a text is damaged") from error

    # Asking

    def find(self, question: Question) -> Found:
        total = 0

        def ranked() -> Iterator[tuple[float, int]]:
            # Counted on the way: to ask a second time would cost a query with a beginning* as much again.
            nonlocal total
            weighed = f"SELECT bm25(words, {TITLE_WEIGHT}, 1.0), rowid FROM words WHERE words MATCH ?"
            for row in self._db.execute(weighed, (question.query.expression,)):
                total += 1
                yield row

        with _transaction(self._db, "DEFERRED"):
            best = heapq.nsmallest(question.limit, ranked())
            return Found(total, [self._result(content_id, -score, question) for score, content_id in best])

    def _result(self, content_id: int, score: float, question: Question) -> Result:
        title, text = self._text(content_id)
        pages = self._db.execute(
            "SELECT url, run, at_ms FROM page WHERE content_id = ? ORDER BY run_id DESC, is_copy, seq", (content_id,)
        ).fetchall()
        if not pages:
            raise _Unfit("it has a text without a page")
        _, run, at_ms = pages[0]
        urls = [url for url, _, _ in pages]
        return Result(urls, title, question.snippet(text, question.query), run, at_ms, score)


def _key(page: Page) -> bytes:
    """What names the content of a page. One without a hash has it for itself."""
    return page.text_hash or b"url %d" % page.url_id


# ---- the log


class _Log:
    """What the index asks of the crawl's own store."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db
        self._path = store.path

    def _rows(self, query: str, *arguments: Any) -> list[Any]:
        # What is wrong with the crawl's file must not be taken for damage to ours.
        with plain_errors(self._path):
            return self._db.execute(query, arguments).fetchall()

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything asked in here is as it was at one moment."""
        return snapshot(self._db)

    def end(self) -> int:
        newest = (
            "SELECT MAX(COALESCE((SELECT MAX(log_id) FROM visit), 0), COALESCE((SELECT MAX(log_id) FROM undone), 0))"
        )
        return int(self._rows(newest)[0][0])

    def step_from(self, seen: int) -> int:
        """Where a step of bounded size ends."""
        rows = self._rows("SELECT log_id FROM visit WHERE log_id > ? ORDER BY log_id LIMIT 1 OFFSET ?", seen, _STEP)
        return int(rows[0][0]) if rows else self.end()

    def visits(self, seen: int, upto: int) -> list[tuple[int, int]]:
        """URL and number of the entries that tell whether a page is there."""
        query = f"SELECT v.url_id, v.log_id FROM visit v WHERE v.log_id > ? AND v.log_id <= ? AND {_TELLING}"
        return self._rows(query, seen, upto)

    def undone(self, seen: int, upto: int) -> list[tuple[int, int, int]]:
        query = "SELECT log_id, run_id, from_seq FROM undone WHERE log_id > ? AND log_id <= ? ORDER BY log_id"
        return self._rows(query, seen, upto)

    def runs(self) -> list[tuple[int, int]]:
        return self._rows("SELECT run_id, seq FROM run")

    def judged(self, run_id: int, after: int) -> list[tuple[int, int, int]]:
        """Visits that later steps judged anew in a way that matters here: run, step and URL. Every such step has left
        what it changed in `undo`."""
        query = (
            "SELECT n.run_id, n.seq, v.url_id FROM undo n JOIN visit v ON v.run_id = n.run_id AND v.seq = n.subject_id"
            " WHERE n.run_id = ? AND n.seq > ? AND n.subject = 'visit' AND v.kind = 'page'"
            " AND v.outcome IN ('redirect', 'retry')"
        )
        return self._rows(query, run_id, after)

    def newest(self, url_ids: Sequence[int]) -> dict[int, Page]:
        """The newest visit of each URL that tells whether the page is there. A bare column comes from the row with the
        maximum."""
        query = (
            "SELECT v.url_id, u.url, MAX(v.log_id), v.run_id, v.seq, r.number, v.at_ms, v.outcome, v.text_hash, v.payload,"
            " COALESCE(v.content_type, ''), COALESCE(v.title, ''), COALESCE(v.request_url, u.url)"
            " FROM visit v INDEXED BY visit_url JOIN url u USING (url_id) JOIN run r USING (run_id)"
            f" WHERE v.url_id IN ({marks(len(url_ids))}) AND {_TELLING} GROUP BY v.url_id"
        )
        return {row[0]: Page._make(row) for row in self._rows(query, *url_ids)}


# ---- words

# Scripts that put no spaces between words, or whose words change at their end: every character is a word, and what is
# looked for is a sequence of them.
_SINGLE = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Signs that belong to the letter before them.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u200c\u200d"
)
_LETTER = rf"[^\W_{_SINGLE}]"
WORD = re.compile(rf"[{_SINGLE}]|{_LETTER}+(?:[{_SIGNS}]+{_LETTER}*)*")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Accents go, and so do the signs of ASCII that come of unfolding such as ⑴.
_UNWANTED = re.compile("[\u0300-\u036f\u200c\u200d\x00-/:-@[-`{-\x7f]+")


def plain(text: str) -> str:
    """Text in its composed form, with nothing that UTF-8 cannot hold."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())


def words(text: str) -> list[str]:
    """The words of a text, without regard to case and accents."""
    text = text.lower()
    if text.isascii():
        return _ASCII_WORD.findall(text)
    found = (word if word.isascii() else folded(word) for word in WORD.findall(text))
    return [word for word in found if word]


def folded(word: str) -> str:
    """A word as it is compared; empty when nothing of it can be."""
    if word.isascii():
        return word.lower()
    unfolded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return _UNWANTED.sub("", unfolded)


def _cut(title: str, text: str) -> tuple[str, str]:
    return " ".join(words(title)), " ".join(words(text))


# ---- queries


class Term(NamedTuple):
    """Words that have to follow each other. `is_prefix`: the last one may be the beginning of a word."""

    words: tuple[str, ...]
    is_prefix: bool


class Query(NamedTuple):
    """What somebody looks for: terms that must all occur, and as SQLite wants to be asked."""

    terms: tuple[Term, ...]
    expression: str


_PIECE = re.compile(r'-?"[^"]*"?\*?|[^\s"]+')
_QUOTES = str.maketrans("“”„", '"""')


def parsed(text: str) -> Query:
    """A query as people type it: words, "phrases", beginnings* and -words that must not occur."""
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for piece in _PIECE.findall(plain(text).translate(_QUOTES)):
        if found := tuple(words(piece)):
            (unwanted if piece.startswith("-") else wanted).append(Term(found, piece.endswith("*")))
    if sum(len(term.words) for term in (*wanted, *unwanted)) > MAX_WORDS:
        raise WrongUse(f"That is more than {MAX_WORDS} words.", "Look for fewer.")
    if not wanted:
        raise WrongUse("There is no word to look for.", "Give at least one that must occur, such as: garden -winter")
    expression = f"({_joined(wanted, 'AND')})"
    return Query(tuple(wanted), f"{expression} NOT ({_joined(unwanted, 'OR')})" if unwanted else expression)


def _joined(terms: Iterable[Term], operator: str) -> str:
    """Every word quoted, though none can hold a quote: whatever is typed, SQLite finds only words in it."""
    return f" {operator} ".join(
        '"' + " ".join(term.words).replace('"', '""') + '"' + ("*" if term.is_prefix else "") for term in terms
    )
