"""index.db: what a search server outside was told of a crawl, in a file of its own.

It follows the crawl's log (`follower.py`). The server has one document for each content, under the URL that had it first
in the newest run. URLs whose documents have to change are written down before the server is told, and crossed off when
it has taken them: a crash of either side means that it is told again, as things stand then. Each time it is told bears
a version that no earlier one had, and the server keeps the highest: whatever arrives late cannot overwrite what is
newer, also where going back made an older visit the newest.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from inchworm.errors import NotNow
from inchworm.model import JsonObject
from inchworm.rules.formats.pdf import is_readable
from inchworm.rules.text.content import READER
from inchworm.rules.text.recurring import FRAMES, Frame
from inchworm.store.crawl.commit import marks
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Database, DatabaseFailed
from inchworm.store.follow import framed
from inchworm.store.follow.follower import Follower, FollowerFile, Progress, make_anew, number, use, work_off
from inchworm.store.follow.framed import FrameAt, Framed, HeldPages, ReadText, frame_of, framed_name
from inchworm.store.follow.frames import packed, run_ends
from inchworm.store.follow.log import CrawlLog, LoggedPage
from inchworm.store.sqlite import open_own

VERSION = f"3 reader={READER} frames={FRAMES} pdf={int(is_readable())}"
"""What was told by another version is told anew: pages read otherwise, or other documents."""

MAX_ALTERNATES = 1_000
_CHUNK = 500

_SCHEMA = f"""
{framed.SCHEMA}
CREATE TABLE server (         -- which index on which server this is about
  only     INTEGER PRIMARY KEY CHECK (only = 1),
  generation TEXT NOT NULL,   -- names the index as it was made; it bears this name too
  address  TEXT NOT NULL,     -- without user and password
  name     TEXT NOT NULL,
  version  INTEGER NOT NULL,  -- the highest that was given to a document
  told_ms  INTEGER NOT NULL   -- when the server was last told everything
);
CREATE TABLE page (           -- the newest visit of each URL that tells whether the page is there
  url_id   INTEGER PRIMARY KEY,
  url      TEXT NOT NULL,
  log_id   INTEGER NOT NULL,
  run_id   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  is_copy  INTEGER NOT NULL,
  key      BLOB               -- names its content; none: it is gone
);
CREATE INDEX page_seq ON page (run_id, seq);
CREATE INDEX page_key ON page (key) WHERE key IS NOT NULL;
CREATE TABLE document (       -- what the server is to have: each content, under one of its URLs
  key      BLOB PRIMARY KEY,
  url      TEXT NOT NULL,
  blocks   BLOB,              -- the hashes of all blocks of its page; none: the server was not told yet
  told     BLOB               -- names the text that it was told, without the frame of its host
) WITHOUT ROWID;
CREATE INDEX document_url ON document (url);
CREATE TABLE under_way (      -- URLs whose document the server has to be told of, or may have been in vain
  url      TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE set_aside (      -- what the server does not take
  url      TEXT PRIMARY KEY,
  reason   TEXT NOT NULL,
  at_ms    INTEGER NOT NULL
);
"""

T = TypeVar("T")


_HELD = HeldPages(
    "SELECT p.seq, d.url, p.url, d.key, d.blocks, d.told FROM page p JOIN document d ON d.key = p.key AND d.url = p.url"
    " WHERE p.run_id = ? AND p.seq > ? AND d.blocks IS NOT NULL ORDER BY p.seq LIMIT ?",
    "INSERT OR IGNORE INTO under_way VALUES (?)",
)


class IndexedContent(NamedTuple):
    """What a document is made of: the page, its text, all else that its visit says, and every URL with this content."""

    page: LoggedPage
    text: str
    fields: JsonObject
    urls: list[str]


class DocumentOrder(NamedTuple):
    """What the server is to be told of the document of a URL. No content: it is to be deleted."""

    url: str
    version: int
    content: IndexedContent | None


class ServerRefusal(NamedTuple):
    """A document that the server does not take, and why."""

    url: str
    reason: str


class DocumentSetAside(NamedTuple):
    """A document that the server has not taken, why, and since when."""

    url: str
    reason: str
    at_ms: int


Deliver = Callable[[Iterable[DocumentOrder]], Sequence[ServerRefusal]]
"""Tells the server all this, or raises; what it does not take."""


class IndexSource(NamedTuple):
    """What the server is told of: a crawl's log, a way to get the text of a page without the frame of its host (None:
    it is lost), and the frames, unless nothing is to be left out; and who tells it."""

    store: CrawlStore
    deliver: Deliver
    now_ms: int
    text_of: Callable[[LoggedPage, Frame], ReadText | None]
    progress: Progress = lambda _done, _total: None
    frame_at: FrameAt | None = None


class IndexState(NamedTuple):
    """How an index stands."""

    generation: str
    address: str
    name: str
    updated_ms: int
    documents: int
    set_aside: int
    behind: int


# ---- the file


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process at a time tells a server of a crawl."""
    descriptor = os.open(folder / "index.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotNow(
                "Another process is indexing this crawl.", "It will be up to date when that one is done."
            ) from None
        yield
    finally:
        os.close(descriptor)


def update(folder: Path, work: Callable[[IndexMirror], T]) -> T:
    """Work with the file in this folder, made anew where it is of no use. Only for who has it `locked`."""
    return use(_file(folder), lambda db: work(IndexMirror(db)))


def forget(folder: Path) -> None:
    """Begin anew: as if the server had been told nothing."""
    make_anew(_file(folder))


def _file(folder: Path) -> FollowerFile:
    return FollowerFile(folder / "index.db", VERSION, _SCHEMA)


def read(folder: Path, look: Callable[[IndexMirror], T]) -> T | None:
    """What somebody wants to know of the file, while others may work with it; None when there is none of use."""
    path = folder / "index.db"
    with contextlib.suppress(DatabaseFailed), contextlib.closing(open_own(path, read_only=True)) as db:
        if db.execute("SELECT version FROM followed").fetchone() == (VERSION,):
            return look(IndexMirror(db))
    return None


# ---- what the server was told


class IndexMirror:
    """What a server was told of one crawl, open."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._follower = Follower(db)
        self._framed = Framed(db, _HELD)

    def generation(self) -> str:
        """The index that was told of; empty when none was."""
        row = self._db.execute("SELECT generation FROM server").fetchone()
        return str(row[0]) if row else ""

    def begin(self, generation: str, address: str, name: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO server VALUES (1, ?, ?, ?, 0, 0)", (generation, address, name))

    def catch_up(self, source: IndexSource) -> None:
        """Tell the server everything up to where the log ends now."""
        # What was told must not be forgotten, not even in a power cut.
        self._db.execute("PRAGMA synchronous = FULL")
        log = CrawlLog(source.store)
        self._follower.follow(log)
        self._framed.follow(log, source.frame_at, source.progress)

        def step() -> None:
            self._look_up(log)
            self._send(source, log)

        work_off(self.left, step, source.progress)
        self._db.execute("UPDATE server SET told_ms = ?", (source.now_ms,))

    def left(self) -> int:
        """How many URLs have to be looked up, and documents to be told of."""
        return self._follower.left() + number(self._db, "SELECT COUNT(*) FROM under_way")

    def state(self, store: CrawlStore) -> IndexState:
        row = self._db.execute("SELECT generation, address, name, told_ms FROM server").fetchone()
        documents, aside = (number(self._db, f"SELECT COUNT(*) FROM {table}") for table in ("document", "set_aside"))
        generation, address, name, told_ms = row or ("", "", "", 0)
        return IndexState(generation, address, name, told_ms, documents, aside, self.behind(store))

    def behind(self, store: CrawlStore) -> int:
        """How many entries of the log, and URLs that were noted, the server has not been told of."""
        return max(0, CrawlLog(store).end() - self._follower.position()) + self.left()

    def set_aside(self) -> list[DocumentSetAside]:
        rows = self._db.execute("SELECT url, reason, at_ms FROM set_aside ORDER BY url").fetchall()
        return [DocumentSetAside(*row) for row in rows]

    # Looking URLs up

    def _look_up(self, log: CrawlLog) -> None:
        """Find out which documents change by what became of some URLs."""
        url_ids = self._follower.todo(_CHUNK)
        with log.snapshot():
            pages = log.newest(url_ids)
        with self._db.transaction():
            for key in {key for url_id in url_ids for key in self._settle(url_id, pages.get(url_id))}:
                self._place(key)
            self._follower.cross_off(url_ids)

    def _settle(self, url_id: int, page: LoggedPage | None) -> set[bytes]:
        """Put a URL to where it belongs; which contents that changes."""
        row = self._db.execute("SELECT key FROM page WHERE url_id = ?", (url_id,)).fetchone()
        now = page.key if page and page.is_there else None
        if page is None:
            self._db.execute("DELETE FROM page WHERE url_id = ?", (url_id,))
        else:
            values = (*page[:5], page.outcome == "duplicate", now)
            self._db.execute(f"INSERT OR REPLACE INTO page VALUES ({marks(7)})", values)
        return {key for key in (row[0] if row else None, now) if key is not None}

    def _place(self, key: bytes) -> None:
        """Give a content the document that it is to have."""
        rows = self._db.execute("SELECT url FROM document WHERE key = ?", (key,)).fetchall()
        members = self._members(key)
        if members:
            rows.append((members[0][1],))
            self._db.execute("INSERT OR REPLACE INTO document (key, url) VALUES (?, ?)", (key, members[0][1]))
        else:
            self._db.execute("DELETE FROM document WHERE key = ?", (key,))
        self._db.executemany("INSERT OR IGNORE INTO under_way VALUES (?)", rows)

    def _members(self, key: bytes) -> list[tuple[int, str]]:
        """Visit and URL of the pages with a content, the primary one first."""
        return self._db.execute(
            "SELECT log_id, url FROM page WHERE key = ? ORDER BY run_id DESC, is_copy, seq LIMIT ?",
            (key, MAX_ALTERNATES),
        ).fetchall()

    # Sending

    def _send(self, source: IndexSource, log: CrawlLog) -> None:
        """Tell the server of some documents, as they are to be now."""
        urls = [url for (url,) in self._db.execute("SELECT url FROM under_way LIMIT ?", (_CHUNK,))]
        if not urls:
            return
        version = self._next_version(log)
        contents = self._contents(urls, log)
        ends = run_ends(log)
        frames = {
            url: frame_of(source.frame_at, ends[content.page.run_id], source.progress, url)
            for url, content in contents.items()
        }
        told: list[tuple[bytes, bytes, bytes, str]] = []

        def orders() -> Iterator[DocumentOrder]:
            # One text after the other: all together may be more than there is room for.
            for url in urls:
                content = contents.get(url)
                if content is not None:
                    read = source.text_of(content.page, frames[url]) or ReadText("")
                    key = content.page.key
                    told.append((packed(sorted(read.blocks)), framed_name(key, read.blocks, frames[url]), key, url))
                    content = content._replace(text=read.text)
                yield DocumentOrder(url, version, content)

        # Finding frames takes a while, in which the index may vanish: so it is done before.
        refused = source.deliver(orders())
        with self._db.transaction():
            self._db.executemany("UPDATE document SET blocks = ?, told = ? WHERE key = ? AND url = ?", told)
            sent = [(url,) for url in urls]
            self._db.executemany("DELETE FROM under_way WHERE url = ?", sent)
            self._db.executemany("DELETE FROM set_aside WHERE url = ?", sent)
            rows = [(one.url, one.reason, source.now_ms) for one in refused]
            self._db.executemany("INSERT OR REPLACE INTO set_aside VALUES (?, ?, ?)", rows)

    def _next_version(self, log: CrawlLog) -> int:
        """Written down before it is used: after a crash nobody knows whether it was."""
        self._db.execute("UPDATE server SET version = MAX(version + 1, ?)", (log.end(),))
        return number(self._db, "SELECT version FROM server")

    def _contents(self, urls: Sequence[str], log: CrawlLog) -> dict[str, IndexedContent]:
        """What the documents of these URLs are to hold. Going back gives numbers of URLs anew, so that for a while two
        may stand for one URL; a visit that is still there tells which."""
        keys = [row for url in urls for row in self._db.execute("SELECT key FROM document WHERE url = ?", (url,))]
        groups = [self._members(key) for (key,) in keys]
        found = log.visited([rows[0][0] for rows in groups])
        contents = {}
        for rows in groups:
            if rows[0][0] in found:
                page, fields = found[rows[0][0]]
                contents[page.url] = IndexedContent(page, "", fields, list(dict.fromkeys(url for _, url in rows)))
        return contents
