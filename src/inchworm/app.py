"""The verbs of inchworm, shared by library and command line. With `engine` the only module that picks adapters."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from inchworm import run, settings
from inchworm.checkpoint import Ledger
from inchworm.draft import Session as LedgerSession
from inchworm.engine import Hooks, NoArchive, Owner, Sitting, Summary, SystemClock, fetching
from inchworm.errors import InchwormError, NotNow, Unknown, WrongUse
from inchworm.model import (
    CrawlInfo,
    EndedBy,
    RunInfo,
    RunState,
    SessionInfo,
    SessionState,
)
from inchworm.ports import Clock
from inchworm.rules import control, order, proxies
from inchworm.rules import url as urls
from inchworm.rules.scope import Patterns
from inchworm.settings import RUN, SESSION, Settings
from inchworm.sink import export
from inchworm.store.crawl import CrawlStore
from inchworm.store.home import Home
from inchworm.store.lock import OwnerLock
from inchworm.store.sqlite import plain_errors
from inchworm.store.view import View

ANSWER_SECONDS = 30.0


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
        values = settings.make({**self._ground(), **start.given})
        Patterns(values.include, values.exclude)
        return await self._sit(self._find_or_make(start), start, hooks or Hooks(), must_resume=False)

    async def resume(self, word: str, given: Mapping[str, Any] | None = None, hooks: Hooks | None = None) -> Summary:
        """Go on with the run of a crawl that is paused."""
        crawl = self.find(word)
        return await self._sit(crawl, Start((word,), crawl.name, given or {}), hooks or Hooks(), must_resume=True)

    def _find_or_make(self, start: Start) -> CrawlInfo:
        if not start.seeds:
            raise WrongUse("There is nothing to crawl.", "Give at least one URL: inchworm crawl https://example.org/")
        seeds = run.seeds_of(start.seeds)
        key = run.seeds_key(seeds)
        crawl = self.home.find(start.name) if start.name else self.home.find("", key)
        crawl = crawl or self._make(start, seeds, key)
        if run.seeds_key(run.seeds_of(crawl.seeds)) != key:
            raise WrongUse(
                f"The crawl {crawl.name!r} has other seeds: {', '.join(crawl.seeds)}.",
                "Use its seeds, or another --name.",
            )
        # What was set for an earlier session is not meant for this one; what was set for a run stays.
        run_part = {name: value for name, value in crawl.settings.items() if settings.belongs_to_run(name)}
        return dataclasses.replace(crawl, settings=run_part)

    def _make(self, start: Start, seeds: Sequence[Any], key: str) -> CrawlInfo:
        name, number = start.name or run.default_name(seeds), 2
        while not start.name and self.home.find(name):
            name, number = f"{run.default_name(seeds)} ({number})", number + 1
        typed = tuple(run.without_secrets(text) for text in start.seeds)
        crawl = CrawlInfo(uuid.uuid4().hex[:10], name, typed, {}, self.clock.now_ms())
        return self.home.add(crawl, key)

    def _ground(self) -> dict[str, Any]:
        """What file and environment say, below everything that the user names."""
        return {**settings.from_file(self.folder / "config.toml"), **settings.from_environment(os.environ)}

    async def _sit(self, crawl: CrawlInfo, start: Start, hooks: Hooks, must_resume: bool) -> Summary:
        ground = self._ground()
        remembered = {**crawl.settings, **start.given}
        if any(map(proxies.is_masked, remembered.get("proxies", ()))):
            # Going on without it would show the user's own address to the site.
            remembered.pop("proxies")
            if "proxies" not in ground:
                raise WrongUse("This crawl went through a proxy with a password.", "Give it again: --proxy URL.")
        values = settings.make({**ground, **remembered})
        with self._owning(crawl, values.stale) as owner:
            current = self._open_run(owner, crawl, start, must_resume)
            if current is not None:
                values = dataclasses.replace(values, **settings_of_run(current))
            async with fetching(crawl, values, run.credentials(start.seeds)) as fetcher:
                # From here on nothing that the user typed can be wrong any more.
                current = current or self._start_run(owner, crawl, values, start.fresh)
                self.home.remember(crawl.crawl_id, _presentable(remembered))
                session_part = json.dumps(_presentable(settings.to_json(values, SESSION)))
                number = owner.store.start_session(owner.token, current, session_part, self.clock.now_ms())
                if hooks.started:
                    hooks.started(crawl, current, number)
                sitting = Sitting(self.home, self.clock, owner, crawl, current, values, number)
                return await sitting.work(fetcher, hooks)

    def _open_run(self, owner: Owner, crawl: CrawlInfo, start: Start, must_resume: bool) -> RunInfo | None:
        """The run to go on with; None when a new one has to be made."""
        last = owner.store.run()
        if start.fresh and last is not None and run.is_open(last):
            owner.store.set_run_state(owner.token, last.run_id, RunState.CANCELLED, self.clock.now_ms())
            return None
        if last is not None and run.is_open(last):
            asked = {name: value for name, value in start.given.items() if settings.belongs_to_run(name)}
            run.refuse_changes(last.settings, {name: settings.check(name, value) for name, value in asked.items()})
            return last
        if must_resume:
            raise NotNow(
                f"The crawl {crawl.name!r} has no paused run to resume.",
                f"`{_command(crawl)}` starts its next run.",
            )
        return None

    def _start_run(self, owner: Owner, crawl: CrawlInfo, values: Settings, fresh: bool) -> RunInfo:
        store = owner.store
        seeds = run.seeds_of(crawl.seeds, values.drop_params)
        frozen = settings.to_json(values, RUN)
        new = run.next_run(store.runs(), frozen, self.clock.now_ms())
        new = run.with_seeds(run.as_baseline(new) if fresh else new, seeds)
        ledger = Ledger(store, NoArchive(), new, LedgerSession(0, owner.token), values)
        store.create_run(owner.token, new, ledger.seed(seeds))
        made = store.run(new.number)
        assert made is not None
        return made

    @contextlib.contextmanager
    def _owning(self, crawl: CrawlInfo, stale_seconds: float) -> Iterator[Owner]:
        owner = Owner(self.crawl_folder(crawl), stale_seconds)
        try:
            with plain_errors(owner.folder):
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
        with self.reading(crawl) as store:
            last = self.run_of(crawl, store)
            address = _identity(last, url) if url else None
            count = len(store.failed(last.run_id, kind, address))
        if not count:
            return 0
        if self.is_running(crawl):
            self._ask(word, "retry", {"kind": kind, "url": address}, "")
            return count
        with self._owning(crawl, self._stale()) as owner:
            last = self.run_of(crawl, owner.store)
            self._ledger(owner, last).reopen(kind, address)
            owner.store.set_run_state(owner.token, last.run_id, RunState.PAUSED, self.clock.now_ms())
        return count

    def clear_queue(self, word: str) -> int:
        """Refuse every pending URL and complete the run; how many."""
        crawl = self.find(word)
        with self._owning(crawl, self._stale()) as owner:
            last = self.run_of(crawl, owner.store)
            pending = last.counters.pending
            self._ledger(owner, last).clear()
            owner.store.set_run_state(owner.token, last.run_id, RunState.COMPLETED, self.clock.now_ms())
        return pending

    def _ledger(self, owner: Owner, current: RunInfo) -> Ledger:
        values = dataclasses.replace(Settings(), **settings_of_run(current))
        return Ledger(owner.store, NoArchive(), current, LedgerSession(0, owner.token), values)

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
        raise Unknown(f"There is no crawl called {run.shown(word)!r}.", f"The crawls in {self.folder}: {names}.")

    def is_running(self, crawl: CrawlInfo) -> bool:
        folder = self.crawl_folder(crawl)
        return folder.exists() and OwnerLock(folder).is_held()

    @contextlib.contextmanager
    def reading(self, crawl: CrawlInfo) -> Iterator[CrawlStore]:
        path = self.crawl_folder(crawl) / "crawl.db"
        if not path.exists():
            raise NotNow(f"The crawl {crawl.name!r} has not started yet.", f"Start it: {_command(crawl)}")
        store = CrawlStore(path, read_only=True)
        try:
            with plain_errors(path):
                yield store
        finally:
            store.close()

    def run_of(self, crawl: CrawlInfo, store: CrawlStore, number: int | None = None) -> RunInfo:
        """The run of this number, or the last one."""
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
            current = self.run_of(crawl, store)
            sessions = store.sessions(current.run_id)
            owner = store.owner()
            several = store.has_several_lanes(current.run_id)
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
            "order": order.word(current.disturbed, several),
            "created_at": export.iso(current.created_ms),
            **dataclasses.asdict(current.counters),
            "seed_pages": {seed.url: seed.kept for seed in current.seeds},
        }

    def queue(self, word: str) -> dict[str, Any]:
        """The frontier in numbers."""
        crawl = self.find(word)
        status = self.status(crawl)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store)
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
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            address = _identity(current, url)
            names = (address, control.robots_file(urls.origin_of(address)).url, control.sitemap_file(address).url)
            found = (View(store).entry(current.run_id, name) for name in names if name.endswith(address))
            entry = next((one for one in found if one), None)
        if entry is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.",
                "Check the spelling, or look whether the page that should link to it was reached.",
            )
        return entry

    def failed(self, word: str, kind: str | None = None) -> list[dict[str, Any]]:
        crawl = self.find(word)
        with self.reading(crawl) as store:
            return list(View(store).failures(self.run_of(crawl, store).run_id, kind))

    def effective_settings(self, word: str) -> dict[str, Any]:
        """The settings that the open run, or the next one, works with."""
        crawl = self.find(word)
        values = settings.make({**self._ground(), **crawl.settings})
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            last = store.run()
            if last is not None and run.is_open(last):
                values = dataclasses.replace(values, **settings_of_run(last))
        return _presentable(settings.to_json(values))

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

    def requested_urls(self, word: str, number: int | None = None) -> Iterator[str]:
        """Every URL a run requested, as requested, once, in the order of record."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            yield from View(store).requested_urls(current.run_id, current.seq)

    def visits(self, word: str, number: int | None = None) -> Iterator[dict[str, Any]]:
        """Every visit of a run to a page or resource, in the order of record."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            yield from View(store).record(current.run_id, current.seq)

    def export(self, word: str, format_name: str, out: BinaryIO, number: int | None = None) -> int:
        """Write a run's record, as it stands now; how many lines or files."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            view = View(store)
            if format_name == "urls":
                return export.urls(view.requested_urls(current.run_id, current.seq), out)
            if format_name == "jsonl":
                run_id, seq = current.run_id, current.seq
                return export.jsonl(view.record(run_id, seq), lambda text: view.alternates(run_id, text, seq), out)
            if format_name == "warc":
                ranges = view.archive_ranges(current.run_id)
                return export.warc(self.crawl_folder(crawl) / "archive", ranges, out)
        raise WrongUse(f"There is no export format {format_name!r}.", f"Known ones: {', '.join(export.FORMATS)}.")


def settings_of_run(current: RunInfo) -> dict[str, Any]:
    """The frozen settings of a run, as typed values."""
    return {name: settings.check(name, value) for name, value in current.settings.items() if name in settings.FIELDS}


def _presentable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings to be stored and shown: no proxy with its password."""
    if "proxies" not in values:
        return dict(values)
    return {**values, "proxies": [proxies.masked(one) for one in values["proxies"]]}


def _identity(current: RunInfo, url: str) -> str:
    """What a run calls a URL that somebody typed."""
    address = urls.canonicalizer(tuple(current.settings.get("drop_params", ()))).canonicalize(url)
    if address is None:
        raise WrongUse(f"{url!r} is not a web address.", "Give a full URL such as https://example.org/page.")
    return address


def _command(crawl: CrawlInfo) -> str:
    """The command that works on a crawl, to be copied."""
    name = [] if crawl.name == run.default_name(run.seeds_of(crawl.seeds)) else ["--name", crawl.name]
    return shlex.join(["inchworm", "crawl", *crawl.seeds, *name])


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
