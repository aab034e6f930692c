"""Indexing: a crawl's pages on a search server, Elasticsearch or OpenSearch.

The server follows the crawl and never holds it up: whatever it has to be told is read from the crawl's own files by a
process of its own, now and again while a session goes on, and once after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from inchworm import settings
from inchworm.app.frames import DROP, CrawlFrames, choice_of
from inchworm.app.read.content.search import Texts
from inchworm.app.workspace import Workspace, defaults_of
from inchworm.errors import Broken, WrongUse
from inchworm.model import CrawlInfo, JsonObject
from inchworm.rules.web import proxies
from inchworm.rules.words.slug import index_name
from inchworm.rules.words.times import iso
from inchworm.sink.servers.elastic import ServerAddress, refuse_without_client
from inchworm.sink.servers.index import WAITS, Delivered, DocumentUpdate, Server, Unreachable, Vanished, document
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import index as stored
from inchworm.store.follow.follower import Progress
from inchworm.store.follow.framed import FrameAt
from inchworm.store.follow.index import DocumentOrder, IndexMirror, ServerRefusal

MADE_BY = "inchworm"

EVERY_SECONDS = 60.0
"""How often the server is told while a session goes on."""

HURRY_SECONDS = 5.0
"""How long telling it may take when somebody wants the process to end."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What a search server was told, and what it has now. `newer`: documents that it has newer from elsewhere;
    `behind`: entries of the log that have come since."""

    crawl_id: str
    name: str
    index: str
    server: str
    indexed: int
    deleted: int
    set_aside: int
    newer: int
    behind: int
    documents: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How far a search server has been told."""

    crawl_id: str
    name: str
    index: str
    server: str | None
    documents: int
    set_aside: int
    behind: int | None
    up_to_date_at: str | None


@dataclass(frozen=True, slots=True)
class PageSetAside:
    """A page that a search server does not take, and why."""

    url: str
    reason: str
    at: str


class Indexer:
    """Keeps a search server up to date."""

    waits: Sequence[float] = WAITS

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def update(self, word: str, rebuild: bool = False, progress: Progress = lambda _done, _total: None) -> IndexUpdate:
        """Tell the search server what happened since it was last told; with `rebuild` all there is, into an index made
        anew. `progress` is told how many URLs were looked up for that, of how many."""
        crawl = self._workspace.find(word)
        folder = self._workspace.place(crawl).folder
        with (
            self._workspace.reading(crawl) as store,
            stored.locked(folder),
            contextlib.closing(Server(address_of(self._workspace, crawl), self.waits)) as server,
        ):
            place = self._workspace.place(crawl)
            frame_at = CrawlFrames(place).at if choice_of(self._workspace, crawl) == DROP else None
            ends = _Ends(store, Texts(store, place.archive), frame_at, server)
            return _Teller(self._workspace, crawl, ends, progress).work(rebuild)

    def status(self, word: str) -> IndexStatus:
        """How far the search server has been told, without asking it."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            found = stored.read(self._workspace.place(crawl).folder, lambda mirror: mirror.state(store))
        name = found.name if found and found.name else index_name(crawl.name, crawl.crawl_id)
        if found is None:
            return IndexStatus(crawl.crawl_id, crawl.name, name, None, 0, 0, None, None)
        at = iso(found.updated_ms) if found.updated_ms else None
        numbers = (found.documents, found.set_aside, found.behind)
        return IndexStatus(crawl.crawl_id, crawl.name, name, found.address or None, *numbers, at)

    def set_aside(self, word: str) -> list[PageSetAside]:
        """The pages that the search server does not take, and why."""
        folder = self._workspace.place(self._workspace.find(word)).folder
        rows = stored.read(folder, IndexMirror.set_aside) or []
        return [PageSetAside(url, reason, iso(at_ms)) for url, reason, at_ms in rows]


def address_of(workspace: Workspace, crawl: CrawlInfo, wanted: str = "") -> str:
    """The server that a crawl is indexed on, with user and password where they are needed."""
    ground = workspace.base_settings()
    # One that was turned off for a session is still the one to ask for.
    levels = (crawl.settings, defaults_of(crawl), ground)
    address = wanted or next((str(level["index"]) for level in levels if level.get("index")), "")
    if not proxies.has_secret(address):
        # Callers of the API name one that the operator has with user and password.
        address = proxies.among(address, settings.texts(ground, "allowed_indexes")) or address
    if proxies.is_masked(address):
        # User and password are not kept; who has them gives them in the environment.
        address = str(ground.get("index") or "")
        if not address:
            raise WrongUse(
                f"The search server of {crawl.name!r} wants a user and a password, which are not kept.",
                "Give them again: INCHWORM_INDEX=https://user:password@host:9200",
            )
    if not address:
        raise WrongUse(
            f"No search server is set for {crawl.name!r}.",
            "Set INCHWORM_INDEX=http://localhost:9200, or crawl with --index http://localhost:9200",
        )
    return address


@dataclass(frozen=True, slots=True)
class _Ends:
    """Between what the teller stands."""

    store: CrawlStore
    texts: Texts
    frame_at: FrameAt | None
    server: Server


class _Teller:
    """Tells a server of one crawl."""

    def __init__(self, workspace: Workspace, crawl: CrawlInfo, ends: _Ends, progress: Progress) -> None:
        self._crawl = crawl
        self._folder = workspace.place(crawl).folder
        self._now_ms = workspace.clock.now_ms()
        self._ends = ends
        self._progress = progress
        self._name = index_name(crawl.name, crawl.crawl_id)
        self._generation = ""
        self._done = Delivered()

    def work(self, rebuild: bool) -> IndexUpdate:
        try:
            generation = self._prepared(rebuild)
            try:
                self._tell(generation)
            except Vanished:
                # Somebody deleted the index meanwhile, or what we knew of it is lost.
                self._tell(self._prepared(rebuild=True))
            if self._done != Delivered():
                self._ends.server.refresh(self._name)
        except Vanished:
            raise Broken(f"Somebody keeps deleting the index {self._name}.", "Find out who, and try again.") from None
        except Unreachable as error:
            raise Unreachable(f"{error.message[:-1]}; {self._count_behind()}.", error.hint) from None
        return self._result()

    def _prepared(self, rebuild: bool) -> str:
        """See to it that there is an index, and that it is the one that we know of; its generation."""
        server, name = self._ends.server, self._name
        meta = server.meta(name)
        if meta is not None and (meta.get("made_by"), meta.get("crawl_id")) != (MADE_BY, self._crawl.crawl_id):
            raise WrongUse(
                f"There is an index {name} on {server.address.url}, and it is not this crawl's.",
                "Delete or rename it there, or give the crawl another name or server.",
            )
        known = stored.update(self._folder, IndexMirror.generation)
        if not rebuild and meta is not None and known and known == meta.get("generation"):
            return known
        generation = uuid.uuid4().hex
        stored.forget(self._folder)
        server.delete(name)
        server.create(name, {"made_by": MADE_BY, "crawl_id": self._crawl.crawl_id, "generation": generation})
        stored.update(self._folder, lambda mirror: mirror.begin(generation, server.address.url, name))
        return generation

    def _tell(self, generation: str) -> None:
        def work(mirror: IndexMirror) -> None:
            if mirror.generation() != generation:
                raise Vanished
            ends = self._ends
            source = stored.IndexSource(
                ends.store, self._deliver, self._now_ms, ends.texts.of, self._progress, ends.frame_at
            )
            mirror.catch_up(source)

        self._generation = generation
        stored.update(self._folder, work)

    def _deliver(self, orders: Iterable[DocumentOrder]) -> Sequence[ServerRefusal]:
        # A server makes an index that is not there by itself, and then not ours.
        if (self._ends.server.meta(self._name) or {}).get("generation") != self._generation:
            raise Vanished
        done = self._ends.server.deliver(self._name, self._lines(orders))
        self._done += done
        return [ServerRefusal(one.url, one.reason) for one in done.refused]

    def _lines(self, orders: Iterable[DocumentOrder]) -> Iterator[DocumentUpdate]:
        for url, version, content in orders:
            yield DocumentUpdate(url, version, None if content is None else self._document(content))

    def _document(self, content: stored.IndexedContent) -> JsonObject:
        page, crawl = content.page, self._crawl
        visit = {**page._asdict(), **content.fields, "crawl_id": crawl.crawl_id, "crawl_name": crawl.name}
        return document(visit, content.text, content.urls)

    def _count_behind(self) -> str:
        behind = stored.update(self._folder, lambda mirror: mirror.behind(self._ends.store))
        return f"{behind:,} entries of the crawl's log are left for the next time"

    def _result(self) -> IndexUpdate:
        now = stored.update(self._folder, lambda mirror: mirror.state(self._ends.store))
        done = self._done
        return IndexUpdate(
            self._crawl.crawl_id,
            self._crawl.name,
            self._name,
            self._ends.server.address.url,
            done.indexed,
            done.deleted,
            len(done.refused),
            done.newer,
            now.behind,
            now.documents,
        )


# ---- beside a session


@dataclass(slots=True)
class Report:
    """What came of indexing beside a session: how much, and a note when something went wrong."""

    indexed: int = 0
    deleted: int = 0
    set_aside: int = 0
    note: str = ""
    hurry: bool = False
    """Set it when the process should end soon."""


@contextlib.asynccontextmanager
async def indexed(
    workspace: Workspace, crawl: CrawlInfo, address: str, every: float = EVERY_SECONDS
) -> AsyncIterator[Report]:
    """While a session goes on in here, its pages are indexed now and again, and once more after it. Only a wrong
    address is an error; whatever else goes wrong becomes a note, and is made good the next time."""
    report = Report()
    if not address:
        yield report
        return
    address = address_of(workspace, crawl, address)
    ServerAddress(address)
    refuse_without_client()
    helper = _Helper(workspace, crawl, address, report)
    working = asyncio.create_task(helper.now_and_again(every))
    try:
        yield report
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    try:
        async with asyncio.timeout(HURRY_SECONDS if report.hurry else None):
            await helper.once()
    except TimeoutError:
        report.note = f"The index is not up to date: inchworm index {crawl.crawl_id} goes on with it."


class _Helper:
    """Runs `inchworm index` in processes of its own: reading pages takes time that a crawl's process does not have."""

    def __init__(self, workspace: Workspace, crawl: CrawlInfo, address: str, report: Report) -> None:
        self._crawl_id = crawl.crawl_id
        self._report = report
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "INCHWORM_HOME": str(workspace.folder),
            "INCHWORM_INDEX": address,
        }

    async def now_and_again(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            await self.once()

    async def once(self) -> None:
        report = self._report
        try:
            code, out, err = await self._run()
        except OSError as error:
            report.note = f"Nothing was indexed: no process could be started ({error.strerror})."
            return
        if code:
            said = err.decode(errors="replace").removeprefix("inchworm: ")
            report.note = " ".join(said.split()) or f"Indexing ended with code {code}."
            return
        counts = json.loads(out)
        report.note = ""
        report.indexed += counts["indexed"]
        report.deleted += counts["deleted"]
        report.set_aside += counts["set_aside"]

    async def _run(self) -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "inchworm", "index", self._crawl_id, "--json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for us; we tell the child
        )
        try:
            out, err = await process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.communicate())
            raise
        return process.returncode or 0, out, err
