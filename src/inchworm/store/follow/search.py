"""search.db: full-text search over the pages of a crawl, in a file of its own.

The index follows the crawl's log (`follower.py`): of each URL it has the newest visit that tells whether the page is
there, and its text without the frame of its host (`framed.py`). What was looked up is written together with the texts that came of it: a process that dies at any
moment leaves an index that is behind.

Words are cut and folded here and not by SQLite, so that a text, a query and the marks in a snippet always agree.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from inchworm.errors import WrongUse
from inchworm.rules.formats.pdf import is_readable
from inchworm.rules.text.content import READER
from inchworm.rules.text.recurring import FRAMES, Frame
from inchworm.store.crawl.commit import marks
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database
from inchworm.store.follow import framed
from inchworm.store.follow.follower import Follower, FollowerFile, Progress, UnfitFile, use, work_off
from inchworm.store.follow.framed import FrameAt, Framed, HeldPages, ReadText, frame_of, framed_name
from inchworm.store.follow.frames import RunEnds, packed, run_ends, unpacked
from inchworm.store.follow.log import CrawlLog, LoggedPage

VERSION = f"3 reader={READER} frames={FRAMES} pdf={int(is_readable())} unicode={unicodedata.unidata_version}"
"""An index of another version is made anew: it has other words."""

MAX_TEXT = 1_000_000
MAX_WORDS = 100
TITLE_WEIGHT = 8.0
_CHUNK = 500
_CHUNK_CHARS = 8_000_000

SCHEMA = f"""
{framed.SCHEMA}
CREATE TABLE page (           -- the newest visit of each URL that tells whether the page is there
  url_id   INTEGER PRIMARY KEY,
  url      TEXT NOT NULL,     -- as it was requested
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
  key      BLOB NOT NULL UNIQUE, -- names the text as it is here: without the frame of its host
  source   BLOB NOT NULL,     -- names it as the crawl has it
  blocks   BLOB NOT NULL,     -- the hashes of all its blocks
  title    TEXT NOT NULL,
  text     BLOB NOT NULL      -- zlib
);
CREATE INDEX content_source ON content (source);
CREATE VIRTUAL TABLE words USING fts5 (title, body, content = '', tokenize = 'ascii');
"""


_HELD = HeldPages(
    "SELECT p.seq, p.url_id, p.url, c.source, c.blocks, c.key FROM page p JOIN content c USING (content_id)"
    " WHERE p.run_id = ? AND p.seq > ? ORDER BY p.seq LIMIT ?",
    "INSERT OR IGNORE INTO todo VALUES (?)",
)


class FoundContent(NamedTuple):
    """One content that was found. `urls` has the primary one first; the snippet is what was asked for of its text."""

    urls: list[str]
    title: str
    snippet: str
    run: int
    at_ms: int
    score: float


class _Content(NamedTuple):
    """What is to be entered of a page: what names its text without the frame of its host, what names it as the crawl has
    it, and, where that is not known yet, the text and all its blocks."""

    key: bytes
    source: bytes
    blocks: frozenset[int] = frozenset()
    text: str = ""


class FoundContents(NamedTuple):
    """The best results, and how many there are in all."""

    total: int
    results: list[FoundContent]


class SearchSource(NamedTuple):
    """What the index is made of: a crawl's log, a way to get the text of a page without the frame of its host (None: it
    is lost), and the frames, unless nothing is to be left out."""

    store: CrawlStore
    text_of: Callable[[LoggedPage, Frame], ReadText | None]
    progress: Progress = lambda _done, _total: None
    frame_at: FrameAt | None = None


class SearchQuestion(NamedTuple):
    """A query, how many results are wanted, and how to make a snippet of a text."""

    query: SearchQuery
    limit: int
    snippet: Callable[[str, SearchQuery], str] = lambda text, _: text


def search(path: Path, source: SearchSource, question: SearchQuestion) -> FoundContents:
    """Bring the index at `path` up to date, making it anew where it is of no use, and ask it."""

    def work(db: Database) -> FoundContents:
        index = SearchIndex(db)
        index.catch_up(source)
        return index.find(question)

    return use(FollowerFile(path, VERSION, SCHEMA, path.parent), work)


class SearchIndex:
    """One crawl's index, open."""

    def __init__(self, db: Database, step: int | None = None) -> None:
        """`step`: so many URLs are looked up at a time."""
        self._db = db
        self._follower = Follower(db)
        self._framed = Framed(db, _HELD)
        self._step = step or _CHUNK

    def catch_up(self, source: SearchSource) -> None:
        """Bring the index to where the log ends now. Others may do the same at the same time."""
        log = CrawlLog(source.store)
        self._follower.follow(log)
        self._framed.follow(log, source.frame_at, source.progress)
        work_off(self.left, lambda: self._look_up(source, log), source.progress)

    def left(self) -> int:
        """How many URLs have to be looked up."""
        return self._follower.left()

    # Looking URLs up

    def _look_up(self, source: SearchSource, log: CrawlLog) -> None:
        """Look some URLs up and read their pages. Should another process have been faster, that was for nothing."""
        with self._db.snapshot():
            turn = self._follower.turn()
            url_ids = self._follower.todo(self._step)
        with log.snapshot():
            pages = log.newest(url_ids)
            ends = run_ends(log)
        there = [page for page in pages.values() if page.is_there]
        found = self._read(there, ends, source)
        gone = {url_id for url_id in url_ids if url_id not in pages or not pages[url_id].is_there}
        settled = [url_id for url_id in url_ids if url_id in gone or url_id in found]
        with self._follower.writing_after(turn) as is_first:
            if not is_first:
                return
            left = {self._settle(url_id, pages.get(url_id), found.get(url_id)) for url_id in settled}
            for content_id in left:
                self._drop_unless_used(content_id)
            self._follower.cross_off(settled)

    def _read(self, pages: Iterable[LoggedPage], ends: RunEnds, source: SearchSource) -> dict[int, _Content]:
        """What is to be entered for each URL; for as many as there is room in memory."""
        found: dict[int, _Content] = {}
        fresh: dict[bytes, frozenset[int]] = {}
        names: set[bytes] = set()
        lost: list[LoggedPage] = []
        room = _CHUNK_CHARS
        for page in pages:
            if room <= 0:
                break
            frame = frame_of(source.frame_at, ends[page.run_id], source.progress, page.request_url)
            blocks = fresh.get(page.key, self._blocks(page.key))
            name = None if blocks is None else framed_name(page.key, blocks, frame)
            if name is not None and (name in names or self._content(name) is not None):
                found[page.url_id] = _Content(name, page.key)
                continue
            read = source.text_of(page, frame)
            if read is None:
                lost.append(page)
                continue
            blocks = fresh.setdefault(page.key, read.blocks if blocks is None else blocks)
            name = framed_name(page.key, blocks, frame)
            names.add(name)
            found[page.url_id] = _Content(name, page.key, blocks, plain(read.text)[:MAX_TEXT])
            room -= len(read.text)
        for page in lost:
            # Another page with this text may still have it.
            key = page.key if page.key in names else b"lost %d" % page.url_id
            found[page.url_id] = _Content(key, key)
        return found

    def _content(self, key: bytes) -> int | None:
        row = self._db.execute("SELECT content_id FROM content WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _blocks(self, source: bytes) -> frozenset[int] | None:
        """The blocks of a text, where it is known."""
        row = self._db.execute("SELECT blocks FROM content WHERE source = ? LIMIT 1", (source,)).fetchone()
        return frozenset(unpacked(row[0])) if row else None

    def _settle(self, url_id: int, page: LoggedPage | None, content: _Content | None) -> int | None:
        """Put a URL to where it belongs; the content that it has left comes back."""
        row = self._db.execute("SELECT content_id FROM page WHERE url_id = ?", (url_id,)).fetchone()
        before = row[0] if row else None
        if page is None:
            self._db.execute("DELETE FROM page WHERE url_id = ?", (url_id,))
            return before
        now = self._enter(page, content) if content is not None else None
        self._db.execute(
            f"INSERT OR REPLACE INTO page VALUES ({marks(9)})",
            (*page._replace(url=page.request_url)[:7], page.outcome == "duplicate", now),
        )
        return before if before != now else None

    def _enter(self, page: LoggedPage, content: _Content) -> int:
        content_id = self._content(content.key)
        if content_id is not None:
            return content_id
        title, text = plain(page.title), content.text
        values = content.key, content.source, packed(sorted(content.blocks)), title, zlib.compress(text.encode(), 3)
        added = f"INSERT INTO content (key, source, blocks, title, text) VALUES ({marks(5)}) RETURNING content_id"
        content_id = self._db.insert(added, values)
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
            raise UnfitFile("it has words without a text")
        try:
            return row[0], zlib.decompress(row[1]).decode()
        except (zlib.error, UnicodeDecodeError) as error:
            raise UnfitFile("a text is damaged") from error

    # Asking

    def find(self, question: SearchQuestion) -> FoundContents:
        total = 0

        def ranked() -> Iterator[tuple[float, int]]:
            # Counted on the way: to ask a second time would cost a query with a beginning* as much again.
            nonlocal total
            weighed = f"SELECT bm25(words, {TITLE_WEIGHT}, 1.0), rowid FROM words WHERE words MATCH ?"
            for row in self._db.execute(weighed, (question.query.expression,)):
                total += 1
                yield row

        with self._db.snapshot():
            best = heapq.nsmallest(question.limit, ranked())
            return FoundContents(total, [self._result(content_id, -score, question) for score, content_id in best])

    def _result(self, content_id: int, score: float, question: SearchQuestion) -> FoundContent:
        title, text = self._text(content_id)
        pages = self._db.execute(
            "SELECT url, run, at_ms FROM page WHERE content_id = ? ORDER BY run_id DESC, is_copy, seq", (content_id,)
        ).fetchall()
        if not pages:
            raise UnfitFile("it has a text without a page")
        _, run, at_ms = pages[0]
        urls = [url for url, _, _ in pages]
        return FoundContent(urls, title, question.snippet(text, question.query), run, at_ms, score)


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


class SearchTerm(NamedTuple):
    """Words that have to follow each other. `is_prefix`: the last one may be the beginning of a word."""

    words: tuple[str, ...]
    is_prefix: bool


class SearchQuery(NamedTuple):
    """What somebody looks for: terms that must all occur, and as SQLite wants to be asked."""

    terms: tuple[SearchTerm, ...]
    expression: str


_PIECE = re.compile(r'-?"[^"]*"?\*?|[^\s"]+')
_QUOTES = str.maketrans("“”„", '"""')


def parsed(text: str) -> SearchQuery:
    """A query as people type it: words, "phrases", beginnings* and -words that must not occur."""
    wanted: list[SearchTerm] = []
    unwanted: list[SearchTerm] = []
    for piece in _PIECE.findall(plain(text).translate(_QUOTES)):
        if found := tuple(words(piece)):
            (unwanted if piece.startswith("-") else wanted).append(SearchTerm(found, piece.endswith("*")))
    if sum(len(term.words) for term in (*wanted, *unwanted)) > MAX_WORDS:
        raise WrongUse(f"That is more than {MAX_WORDS} words.", "Look for fewer.")
    if not wanted:
        raise WrongUse("There is no word to look for.", "Give at least one that must occur, such as: garden -winter")
    expression = f"({_joined(wanted, 'AND')})"
    return SearchQuery(tuple(wanted), f"{expression} NOT ({_joined(unwanted, 'OR')})" if unwanted else expression)


def _joined(terms: Iterable[SearchTerm], operator: str) -> str:
    """Every word quoted, though none can hold a quote: whatever is typed, SQLite finds only words in it."""
    return f" {operator} ".join(
        '"' + " ".join(term.words).replace('"', '""') + '"' + ("*" if term.is_prefix else "") for term in terms
    )
