"""The verbs of inchworm, shared by library, command line and service. The only module that picks adapters."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from inchworm import fault, run, settings
from inchworm.archive import reader as warc_reader
from inchworm.archive import warc
from inchworm.checkpoint import Committed, Ledger
from inchworm.checkpoint import Session as LedgerSession
from inchworm.errors import InchwormError, Lost, NotNow, Owned, Unknown, WrongUse
from inchworm.fetch.guard import Guard
from inchworm.fetch.http import HttpFetcher, HttpOptions
from inchworm.fetch.replay import ReplayFetcher
from inchworm.model import (
    CrawlInfo,
    EndedBy,
    Reason,
    RunInfo,
    RunState,
    SessionInfo,
    SessionState,
    Visit,
)
from inchworm.ports import Clock, Fetcher
from inchworm.rules import url as urls
from inchworm.session import Ended, Progress, Session, Watch
from inchworm.settings import RUN, SESSION, Settings
from inchworm.sink import export
from inchworm.store.crawl import CrawlStore
from inchworm.store.home import Home
from inchworm.store.lock import Life, OwnerLock, ReadingMark, network_file_system
from inchworm.store.view import View
from inchworm.visit import Tools

ANSWER_SECONDS = 30.0


class SystemClock:
    """The real time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def home_folder() -> Path:
    """Where crawls are kept: INCHWORM_HOME, or ~/.inchworm."""
    return Path(os.environ.get("INCHWORM_HOME") or Path.home() / ".inchworm")


@dataclass(frozen=True, slots=True)
class Start:
    """What the user asked to crawl. `given` holds only the settings that were named explicitly."""

    seeds: tuple[str, ...]
    name: str = ""
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """How a session went and how its run stands."""

    crawl_id: str
    name: str
    run: int
    session: int
    run_state: str
    session_state: str
    ended_by: str
    fetched: int
    bytes: int
    seconds: float
    pages: int
    duplicates: int
    unchanged: int
    failed: int
    refused: int
    pending: int
    known: int
    order: str
    word: str = ""
    message: str = ""
    seeds: tuple[tuple[str, int], ...] = ()
    signal: int = 0


@dataclass(slots=True)
class Hooks:
    """How a caller takes part in a session: plain functions, all optional."""

    started: Callable[[CrawlInfo, RunInfo, int], None] | None = None
    progress: Callable[[Progress], None] | None = None
    visited: Callable[[Visit], None] | None = None
    signals: bool = False


class Owner:
    """The one process that may write to a crawl: lock, token, recovered archive."""

    def __init__(self, folder: Path, stale_seconds: float) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        folder.mkdir(parents=True, exist_ok=True)
        if kind := network_file_system(folder):
            raise WrongUse(
                f"{folder} lies on a network file system ({kind}), where locks cannot be trusted.",
                "Set INCHWORM_HOME to a folder on a local disk.",
            )
        self._lock = OwnerLock(folder)
        asleep = self._acquire(stale_seconds)
        try:
            self.store = CrawlStore(folder / "crawl.db")
            self.mark = ReadingMark(folder)
            self.token = self.store.take(Life.of_this_process())
            self._recover(asleep)
        except BaseException:
            self._lock.release()
            raise

    def _acquire(self, stale_seconds: float) -> bool:
        """Take the lock. True when it was taken from an owner that may still be alive."""
        if self._lock.acquire():
            return False
        life = _last_life(self.folder)
        if life is None or not life.stood_still(stale_seconds):
            who = f"process {life.pid} on {life.machine}" if life else "another process"
            raise Owned(
                f"This crawl is being worked on by {who}.",
                "Watch it with `inchworm status`, pause it with `inchworm pause`, or wait for it to end.",
            )
        self._lock.replace()
        return True

    def _recover(self, asleep: bool) -> None:
        """Bring the archive to what was committed, and blame what was being read when the last owner died."""
        fault.point("in_recovery")
        if asleep:
            self._leave_old_files()
        committed = {name: length for _, _, name, length in self.store.files()}
        warc.recover(self.archive, committed)
        open_run = self.store.run()
        if (url_id := self.mark.get()) and open_run is not None:
            self.store.blame(self.token, open_run.run_id, [url_id])
        self.mark.clear()
        fault.point("after_recovery")

    def _leave_old_files(self) -> None:
        """An owner that is only asleep may still append to its files; ours must be others."""
        for file_id, token, name, length in self.store.files():
            if token == self.token - 1:
                new_name = f"t{self.token:06}-copy-of-{name}"
                (self.archive / new_name).unlink(missing_ok=True)
                warc.copy_prefix(self.archive, name, length, new_name)
                self.store.rename_file(self.token, file_id, new_name)

    def close(self) -> None:
        self.mark.close()
        self.store.close()
        self._lock.release()


def _last_life(folder: Path) -> Life | None:
    with contextlib.suppress(InchwormError):
        store = CrawlStore(folder / "crawl.db", read_only=True)
        try:
            return store.owner()
        finally:
            store.close()
    return None


class Inbox:
    """What other processes ask of this session."""

    def __init__(self, home: Home, crawl_id: str, ledger: Ledger, clock: Clock) -> None:
        self._home = home
        self._crawl_id = crawl_id
        self._ledger = ledger
        self._clock = clock

    def poll(self) -> EndedBy | Callable[[], Committed] | None:
        for asked in self._home.asked(self._crawl_id):
            if asked.verb == "retry":
                return lambda asked=asked: self._retry(asked.inbox_id, asked.argument)  # type: ignore[misc]
            self._home.answer(asked.inbox_id, "stopping", self._clock.now_ms())
            return EndedBy.CANCELLED if asked.verb == "cancel" else EndedBy.PAUSED
        return None

    def _retry(self, inbox_id: int, argument: Mapping[str, Any]) -> Committed:
        committed = self._ledger.reopen(argument.get("kind"), argument.get("url"), inbox_id)
        self._home.answer(inbox_id, "reopened", self._clock.now_ms())
        return committed


class App:
    """Everything that can be done in one home."""

    def __init__(self, folder: Path | None = None, clock: Clock | None = None) -> None:
        self.folder = folder or home_folder()
        self.clock: Clock = clock or SystemClock()
        self.home = Home(self.folder)

    def close(self) -> None:
        self.home.close()

    # Crawling

    async def crawl(self, start: Start, hooks: Hooks | None = None) -> Summary:
        """Crawl these seeds: resume the run that is open, or start the next one."""
        for name in start.given:
            settings.check(name, start.given[name])
        crawl = self._find_or_make(start)
        return await self._sit(crawl, start, hooks or Hooks(), must_resume=False)

    async def resume(self, word: str, given: Mapping[str, Any] | None = None, hooks: Hooks | None = None) -> Summary:
        """Go on with the run of a crawl that is paused."""
        crawl = self.find(word)
        start = Start(crawl.seeds, crawl.name, {**_session_part(crawl.settings), **(given or {})})
        return await self._sit(crawl, start, hooks or Hooks(), must_resume=True)

    def _find_or_make(self, start: Start) -> CrawlInfo:
        if not start.seeds:
            raise WrongUse("There is nothing to crawl.", "Give at least one URL: inchworm crawl https://example.org/")
        seeds = run.seeds_of(start.seeds)
        key = run.seeds_key(seeds)
        crawl = self.home.find(start.name) if start.name else self.home.find("", key)
        if crawl is None:
            crawl = self._make(start, seeds, key)
        elif run.seeds_key(run.seeds_of(crawl.seeds)) != key:
            raise WrongUse(
                f"The crawl {crawl.name!r} has other seeds: {', '.join(crawl.seeds)}.",
                "Use its seeds, or another --name.",
            )
        run_part = {name: value for name, value in crawl.settings.items() if settings.belongs_to_run(name)}
        remembered = {**run_part, **start.given}
        self.home.remember(crawl.crawl_id, remembered)
        return dataclasses.replace(crawl, settings=remembered)

    def _make(self, start: Start, seeds: Sequence[Any], key: str) -> CrawlInfo:
        settings.make({**self._ground(), **start.given})
        name, number = start.name or run.default_name(seeds), 2
        while not start.name and self.home.find(name):
            name, number = f"{run.default_name(seeds)} ({number})", number + 1
        crawl = CrawlInfo(uuid.uuid4().hex[:10], name, tuple(start.seeds), dict(start.given), self.clock.now_ms())
        self.home.add(crawl, key)
        return crawl

    def _ground(self) -> dict[str, Any]:
        """What file and environment say, below everything that the user names."""
        return {**settings.from_file(self.folder / "config.toml"), **settings.from_environment(os.environ)}

    async def _sit(self, crawl: CrawlInfo, start: Start, hooks: Hooks, must_resume: bool) -> Summary:
        values = settings.make({**self._ground(), **crawl.settings, **start.given})
        with self._owning(crawl, values.stale) as owner:
            current, values = self._open_run(owner, crawl, start, values, must_resume)
            number = owner.store.start_session(
                owner.token, current, json.dumps(settings.to_json(values, SESSION)), self.clock.now_ms()
            )
            if hooks.started:
                hooks.started(crawl, current, number)
            sitting = Sitting(self, crawl, owner, current, values, number)
            return await sitting.work(hooks)

    def _open_run(
        self, owner: Owner, crawl: CrawlInfo, start: Start, values: Settings, must_resume: bool
    ) -> tuple[RunInfo, Settings]:
        store = owner.store
        last = store.run()
        if start.fresh and last is not None and run.is_open(last):
            store.set_run_state(owner.token, last.run_id, RunState.CANCELLED, self.clock.now_ms())
            last = store.run()
        if last is not None and run.is_open(last):
            asked = {name: value for name, value in start.given.items() if settings.belongs_to_run(name)}
            run.refuse_changes(last.settings, {name: settings.check(name, value) for name, value in asked.items()})
            return last, dataclasses.replace(values, **settings_of_run(last))
        if must_resume:
            raise NotNow(
                f"The crawl {crawl.name!r} has no paused run to resume.",
                f"`inchworm crawl {' '.join(crawl.seeds)}` starts its next run.",
            )
        return self._start_run(owner, crawl, values, fresh=start.fresh), values

    def _start_run(self, owner: Owner, crawl: CrawlInfo, values: Settings, fresh: bool) -> RunInfo:
        store = owner.store
        runs = store.runs()
        seeds = run.seeds_of(crawl.seeds)
        last = runs[-1] if runs else None
        frozen = settings.to_json(values, RUN)
        new = run.next_run(last, [] if fresh else runs, frozen, self.clock.now_ms())
        new = dataclasses.replace(new, run_id=max((r.run_id for r in runs), default=0) + 1, seeds=run.seed_rows(seeds))
        ledger = Ledger(store, _NoArchive(), new, LedgerSession(0, owner.token), values)
        store.create_run(owner.token, new, ledger.seed(seeds))
        made = store.run(new.number)
        assert made is not None
        return made

    @contextlib.contextmanager
    def _owning(self, crawl: CrawlInfo, stale_seconds: float) -> Iterator[Owner]:
        owner = Owner(self.crawl_folder(crawl), stale_seconds)
        try:
            yield owner
        finally:
            owner.close()

    def crawl_folder(self, crawl: CrawlInfo) -> Path:
        return self.folder / "crawls" / crawl.crawl_id

    # From another process

    def pause(self, word: str) -> str:
        """Ask the owner to pause its run, and wait until it did."""
        return self._ask(word, "pause", {}, "has nothing running to pause")

    def cancel(self, word: str) -> str:
        """End a run for good; its pages stay."""
        crawl = self.find(word)
        if self.is_running(crawl):
            return self._ask(word, "cancel", {}, "has nothing to cancel")
        with self._owning(crawl, self._stale()) as owner:
            last = owner.store.run()
            if last is None or not run.is_open(last):
                raise NotNow(
                    f"The crawl {crawl.name!r} has no open run to cancel.",
                    "`inchworm list` shows the crawls.",
                )
            owner.store.set_run_state(owner.token, last.run_id, RunState.CANCELLED, self.clock.now_ms())
        return RunState.CANCELLED

    def retry(self, word: str, kind: str | None = None, url: str | None = None) -> int:
        """Re-open failed URLs; how many. The next session fetches them."""
        crawl = self.find(word)
        address = urls.canonicalize(url) if url else None
        if url and address is None:
            raise WrongUse(f"{url!r} is not a web address.", "Give the URL as `inchworm failed` prints it.")
        with self.reading(crawl) as store:
            last = self._last(crawl, store)
            count = len(store.failed(last.run_id, kind, address))
        if not count:
            return 0
        if self.is_running(crawl):
            self._ask(word, "retry", {"kind": kind, "url": address}, "")
            return count
        with self._owning(crawl, self._stale()) as owner:
            last = self._last(crawl, owner.store)
            self._ledger(owner, last).reopen(kind, address)
            owner.store.set_run_state(owner.token, last.run_id, RunState.PAUSED, self.clock.now_ms())
        return count

    def clear_queue(self, word: str) -> int:
        """Refuse every pending URL and complete the run; how many."""
        crawl = self.find(word)
        with self._owning(crawl, self._stale()) as owner:
            last = self._last(crawl, owner.store)
            pending = last.counters.pending
            self._ledger(owner, last).clear()
            owner.store.set_run_state(owner.token, last.run_id, RunState.COMPLETED, self.clock.now_ms())
        return pending

    def _ledger(self, owner: Owner, current: RunInfo) -> Ledger:
        values = dataclasses.replace(Settings(), **settings_of_run(current))
        return Ledger(owner.store, _NoArchive(), current, LedgerSession(0, owner.token), values)

    def delete(self, word: str) -> None:
        """Remove a crawl: its record, its archive, everything."""
        crawl = self.find(word)
        folder = self.crawl_folder(crawl)
        if folder.exists():
            with self._owning(crawl, self._stale()):
                shutil.rmtree(folder, ignore_errors=True)
        self.home.remove(crawl.crawl_id)

    def _ask(self, word: str, verb: str, argument: Mapping[str, Any], otherwise: str) -> str:
        crawl = self.find(word)
        if not self.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} {otherwise}.", "`inchworm list` shows what is running.")
        inbox_id = self.home.ask(crawl.crawl_id, verb, argument, self.clock.now_ms())
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline and self.is_running(crawl):
            if verb == "retry" and self.home.answer_to(inbox_id) is not None:
                break
            time.sleep(0.1)
        else:
            self.home.answer(inbox_id, "too late", self.clock.now_ms())
        if verb != "retry" and self.is_running(crawl):
            raise NotNow(
                f"The owner of {crawl.name!r} was asked to {verb} and has not done so in {ANSWER_SECONDS:.0f} seconds.",
                "It may be waiting for a slow server; look again with `inchworm status`.",
            )
        return str(self.status(crawl)["run_state"])

    def _stale(self) -> float:
        return settings.make(self._ground()).stale

    # Looking

    def find(self, word: str) -> CrawlInfo:
        """A crawl by name, id, or seed URL."""
        forms = urls.seed(word)
        keys = [key for form in forms or () if (key := urls.canonicalize(form))]
        for key in keys or [""]:
            if crawl := self.home.find(word, key or None):
                return crawl
        matching = [crawl for crawl in self.home.crawls() if any(key in _seed_urls(crawl) for key in keys)]
        if len(matching) == 1:
            return matching[0]
        names = ", ".join(crawl.name for crawl in self.home.crawls()[:10]) or "none yet"
        raise Unknown(f"There is no crawl called {word!r}.", f"The crawls in {self.folder}: {names}.")

    def is_running(self, crawl: CrawlInfo) -> bool:
        folder = self.crawl_folder(crawl)
        return folder.exists() and OwnerLock(folder).is_held()

    @contextlib.contextmanager
    def reading(self, crawl: CrawlInfo) -> Iterator[CrawlStore]:
        path = self.crawl_folder(crawl) / "crawl.db"
        if not path.exists():
            raise NotNow(f"The crawl {crawl.name!r} has not started yet.", f"inchworm crawl {' '.join(crawl.seeds)}")
        store = CrawlStore(path, read_only=True)
        try:
            yield store
        finally:
            store.close()

    def _last(self, crawl: CrawlInfo, store: CrawlStore, number: int | None = None) -> RunInfo:
        found = store.run(number)
        if found is None:
            which = f"run {number}" if number is not None else "run"
            raise Unknown(f"The crawl {crawl.name!r} has no {which}.", "`inchworm status` shows its runs.")
        return found

    def crawls(self) -> list[dict[str, Any]]:
        """Every crawl with the state of its last run."""
        listed = []
        for crawl in self.home.crawls():
            try:
                listed.append(self.status(crawl))
            except InchwormError as error:
                listed.append({"crawl_id": crawl.crawl_id, "name": crawl.name, "run_state": "", "note": error.message})
        return listed

    def status(self, crawl: CrawlInfo) -> dict[str, Any]:
        """Where a crawl stands. A run whose owner is dead is paused."""
        with self.reading(crawl) as store:
            current = self._last(crawl, store)
            sessions = store.sessions(current.run_id)
            owner = store.owner()
        state, running = current.state, self.is_running(crawl)
        if state is RunState.IN_PROGRESS and not running:
            state = RunState.PAUSED
        last = sessions[-1] if sessions else None
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "seeds": list(crawl.seeds),
            "run": current.number,
            "mode": current.mode,
            "run_state": str(state),
            "word": run.word_for(dataclasses.replace(current, state=state)),
            "owner": {"pid": owner.pid, "machine": owner.machine} if running else None,
            "sessions": [_session_json(one, running) for one in sessions],
            "ended_by": str(last.ended_by) if last and last.ended_by else None,
            "order": current.disturbed or None,
            "created_at": export.iso(current.created_ms),
            **dataclasses.asdict(current.counters),
            "seed_pages": {seed.url: seed.kept for seed in current.seeds},
        }

    def queue(self, word: str) -> dict[str, Any]:
        """The frontier in numbers."""
        crawl = self.find(word)
        status = self.status(crawl)
        with self.reading(crawl) as store:
            current = self._last(crawl, store)
            counts = View(store).queue_counts(current.run_id)
        visited = status["known"] - status["pending"] - status["refused"]
        can_resume = status["run_state"] == RunState.PAUSED and status["pending"] > 0
        return {
            "crawl_id": crawl.crawl_id,
            "has_queue": status["known"] > 0,
            "visited": visited,
            "pending": status["pending"],
            "refused": status["refused"],
            "total": status["known"],
            "can_resume": can_resume,
            "current_run": status["run"],
            "run_state": status["run_state"],
            "sessions": [one["session"] for one in status["sessions"]],
            "counts": counts,
        }

    def show(self, word: str, url: str, number: int | None = None) -> dict[str, Any]:
        """What is known of one URL."""
        crawl, address = self.find(word), urls.canonicalize(url)
        if address is None:
            raise WrongUse(f"{url!r} is not a web address.", "Give a full URL such as https://example.org/page.")
        with self.reading(crawl) as store:
            current = self._last(crawl, store, number)
            entry = View(store).entry(current.run_id, address)
        if entry is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.",
                "Check the spelling, or look whether the page that should link to it was reached.",
            )
        return entry

    def failed(self, word: str, kind: str | None = None) -> list[dict[str, Any]]:
        crawl = self.find(word)
        with self.reading(crawl) as store:
            return list(View(store).failures(self._last(crawl, store).run_id, kind))

    def effective_settings(self, word: str) -> dict[str, Any]:
        """The settings that the open run, or the next one, works with."""
        crawl = self.find(word)
        values = settings.make({**self._ground(), **crawl.settings})
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            last = store.run()
            if last is not None and run.is_open(last):
                values = dataclasses.replace(values, **settings_of_run(last))
        return settings.to_json(values)

    def check(self, crawl: CrawlInfo, store: CrawlStore) -> list[str]:
        """What is wrong with a crawl's store and archive; nothing for a healthy one."""
        view, problems = View(store), []
        if (said := view.integrity()) != "ok":
            problems.append(f"the database is damaged: {said}")
        for current in store.runs():
            problems += [f"run {current.number}: {fault_found}" for fault_found in view.faults(current.run_id)]
            kept, counted = dataclasses.asdict(current.counters), view.recount(current.run_id)
            wrong = [
                f"{name} {kept[name]} (counted {counted[name]})" for name in counted if kept[name] != counted[name]
            ]
            if wrong and not self.is_running(crawl):
                problems.append(f"run {current.number}: counters differ from a recount: {', '.join(wrong)}")
        archive = self.crawl_folder(crawl) / "archive"
        for _, _, name, length in store.files():
            path = archive / name
            if not path.exists() or path.stat().st_size < length:
                problems.append(f"the archive file {name} is missing or shorter than what was committed")
        return problems

    def export(self, word: str, format_name: str, out: BinaryIO, number: int | None = None) -> int:
        """Write a run's record, as it stands now; how many lines or files."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self._last(crawl, store, number)
            view = View(store)
            if format_name == "urls":
                return export.urls(view.requested_urls(current.run_id, current.seq), out)
            if format_name == "jsonl":
                return export.jsonl(view.record(current.run_id, current.seq), view.alternates, out)
            if format_name == "warc":
                ranges = view.archive_ranges(current.run_id)
                return export.warc(self.crawl_folder(crawl) / "archive", ranges, out)
        raise WrongUse(f"There is no export format {format_name!r}.", f"Known ones: {', '.join(export.FORMATS)}.")


class Sitting:
    """One session with everything it needs, from its first fetch to its last word."""

    def __init__(
        self, app: App, crawl: CrawlInfo, owner: Owner, current: RunInfo, values: Settings, number: int
    ) -> None:
        self._app = app
        self._crawl = crawl
        self._owner = owner
        self._run = current
        self._values = values
        self._number = number
        self._signal = 0

    async def work(self, hooks: Hooks) -> Summary:
        owner, clock = self._owner, self._app.clock
        writer = self._archive_writer()
        # The writer thread owns `owner.store`; the loop reads through a connection of its own.
        reading = CrawlStore(owner.store.path, read_only=True)
        fetcher = self._fetcher()
        started = clock.monotonic()
        try:
            ledger = Ledger(owner.store, writer, self._run, LedgerSession(self._number, owner.token), self._values)
            tools = Tools(
                self._values,
                fetcher,
                clock,
                owner.mark,
                random.random,
                reading.suspects(self._run.run_id),
                run.bare_seeds(self._crawl.seeds),
            )
            watch = Watch(hooks.progress or (lambda _: None), hooks.visited)
            inbox = Inbox(self._app.home, self._crawl.crawl_id, ledger, clock)
            session = Session(self._run, reading, ledger, tools, inbox, watch)
            if self._number > 1:
                session.hosts.rest(clock.monotonic())
            with self._stopped_by_signals(session, hooks.signals):
                ended = await session.work()
        finally:
            await fetcher.close()
            reading.close()
            writer.close()
        return self._close(ended, session, clock.monotonic() - started)

    def _fetcher(self) -> Fetcher:
        values = self._values
        if values.replay:
            return ReplayFetcher([Path(name) for name in values.replay], warc_reader.records, warc_reader.record_at)
        typed = (urls.seed(text) or () for text in self._crawl.seeds)
        allowed = frozenset(_address(form) for forms in typed for form in forms)
        guard = Guard(values.allow_private, allowed)
        return HttpFetcher(
            HttpOptions(
                values.user_agent,
                guard,
                values.connect_timeout,
                values.first_byte_timeout,
                max(64, values.workers),
            )
        )

    def _archive_writer(self) -> warc.WarcWriter:
        prefix = f"run{self._run.number:04}-t{self._owner.token:06}"
        info = {
            "software": "inchworm",
            "format": "WARC File Format 1.1",
            "isPartOf": self._crawl.name,
            "http-header-user-agent": self._values.user_agent,
            "robots": "obeyed" if self._values.robots else "ignored",
        }
        return warc.WarcWriter(self._owner.archive, prefix, info)

    @contextlib.contextmanager
    def _stopped_by_signals(self, session: Session, wanted: bool) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if wanted else ()

        def stop(number: int) -> None:
            self._signal = self._signal or number
            session.stop(EndedBy.PAUSED)

        for number in numbers:
            loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _close(self, ended: Ended, session: Session, seconds: float) -> Summary:
        store, token = self._owner.store, self._owner.token
        progress = session.progress()
        by = ended.by
        if by is EndedBy.FINISHED and View(store).has_refused(self._run.run_id, Reason.PAGE_LIMIT):
            by = EndedBy.PAGE_LIMIT
        run_state, session_state = run.states_after(by)
        if isinstance(ended.error, Lost):
            raise ended.error
        info = SessionInfo(
            self._run.run_id,
            self._number,
            token,
            session_state,
            by,
            0,
            self._app.clock.now_ms(),
            progress.requests,
            progress.size,
            ended.message,
        )
        with contextlib.suppress(InchwormError) if ended.error else contextlib.nullcontext():
            store.end_session(token, info, run_state)
        if ended.error:
            raise ended.error
        return self._summary(info, run_state, progress, seconds)

    def _summary(self, info: SessionInfo, run_state: RunState, progress: Progress, seconds: float) -> Summary:
        counters = progress.counters
        return Summary(
            self._crawl.crawl_id,
            self._crawl.name,
            self._run.number,
            self._number,
            run_state,
            info.state,
            str(info.ended_by),
            progress.requests,
            progress.size,
            round(seconds, 3),
            counters.pages,
            counters.duplicates,
            counters.unchanged,
            counters.failed,
            counters.refused,
            counters.pending,
            counters.known,
            progress.order,
            run.word_for(dataclasses.replace(self._run, state=run_state, counters=counters)),
            info.message,
            progress.seeds,
            self._signal,
        )


class _NoArchive:
    """For commits that archive nothing."""

    def append(self, *_: Any) -> Any:
        raise AssertionError("nothing to archive here")

    def sync(self) -> None: ...

    def close(self) -> None: ...


def settings_of_run(current: RunInfo) -> dict[str, Any]:
    """The frozen settings of a run, as typed values."""
    return {name: settings.check(name, value) for name, value in current.settings.items() if name in settings.FIELDS}


def _session_part(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if not settings.belongs_to_run(name)}


def _address(url: str) -> tuple[str, int]:
    """Host name and port of a URL in its normal form."""
    parts = urlsplit(url)
    return (parts.hostname or "").strip("[]"), parts.port or (443 if parts.scheme == "https" else 80)


def _seed_urls(crawl: CrawlInfo) -> set[str]:
    return {seed.url for seed in run.seeds_of(crawl.seeds)}


def _session_json(one: SessionInfo, running: bool) -> dict[str, Any]:
    crashed = one.state is SessionState.IN_PROGRESS and not running
    return {
        "session": one.number,
        "state": str(SessionState.FAILED if crashed else one.state),
        "ended_by": str(EndedBy.CRASHED) if crashed else (str(one.ended_by) if one.ended_by else None),
        "requests": one.requests,
        "bytes": one.size,
        "started_at": export.iso(one.started_ms),
        "ended_at": export.iso(one.ended_ms) if one.ended_ms else None,
        "message": one.message,
    }
