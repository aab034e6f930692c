"""Crawls: which there are, and how each of them stands."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inchworm import settings
from inchworm.app.read.runs import Runs, SessionLine, iteration_id, session_line
from inchworm.app.workspace import Workspace, defaults_of, presentable, settings_of_run
from inchworm.engine import run
from inchworm.errors import InchwormError, NotNow
from inchworm.model import Counters, CrawlInfo, DownHost, RunInfo, RunState, SessionInfo
from inchworm.rules.order import order
from inchworm.rules.words.json_form import FLAT
from inchworm.rules.words.times import iso
from inchworm.settings import SERVICE, NamedSettings
from inchworm.store.crawl.read.failures import FailureReader
from inchworm.store.crawl.store import CrawlStore

if TYPE_CHECKING:
    from inchworm.app.read.jobs import JobLine, JobReads


@dataclass(frozen=True, slots=True)
class DownHostLine:
    """A host that cannot be reached."""

    host: str
    kind: str
    message: str
    since: str
    sessions: int


@dataclass(frozen=True, slots=True)
class ChangesOfRun:
    """What a run found changed, in a line."""

    crawl_id: str
    name: str
    run: int
    run_id: str
    at: str
    new: int
    modified: int
    deleted: int


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """A crawl in lists: its last run and that run's last session, the last run that found changes, and the hosts that
    cannot be reached. `note` says why it cannot be read."""

    crawl_id: str
    name: str
    seeds: Sequence[str]
    enabled: bool
    created_at: str
    run: int | None = None
    run_id: str | None = None
    mode: str | None = None
    run_started_at: str | None = None
    run_ended_at: str | None = None
    alarm: str | None = None
    note: str | None = None
    session: SessionLine | None = None
    changed: ChangesOfRun | None = None
    pages: int = 0
    duplicates: int = 0
    failed: int = 0
    pending: int = 0
    new: int = 0
    modified: int = 0
    deleted: int = 0
    unchanged: int = 0
    unknown: int = 0
    state: str = ""
    down: Sequence[DownHostLine] = ()


@dataclass(frozen=True, slots=True)
class WorkingProcess:
    """The process that works on a crawl."""

    pid: int | None
    machine: str | None


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """Where a crawl stands: its last run, and the sessions of that."""

    crawl_id: str
    name: str
    seeds: Sequence[str]
    run: int
    mode: str
    branch_of: int | None
    on_line: bool
    line_end: int | None
    run_state: str
    word: str
    owner: WorkingProcess | None
    sessions: Sequence[SessionLine]
    ended_by: str | None
    order: str
    created_at: str
    counters: Counters = field(metadata=FLAT)
    seed_pages: Mapping[str, int]
    message: str
    blocked: int
    down: Sequence[DownHostLine]
    lost_files: Sequence[str]


@dataclass(frozen=True, slots=True)
class UnreadableCrawl:
    """A crawl whose record cannot be read, and why."""

    crawl_id: str
    name: str
    run_state: str
    note: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a crawl goes on from session to session."""

    incremental_crawling_enabled: bool
    crawl_budget: int


@dataclass(frozen=True, slots=True)
class CrawlDetail:
    """Everything that is known of a crawl, and of its last run if it has one."""

    summary: CrawlSummary = field(metadata=FLAT)
    status: CrawlStatus | None = field(metadata=FLAT)
    created_at: str
    enabled: bool
    goes_on: Continuation = field(metadata=FLAT)
    settings: NamedSettings
    defaults: NamedSettings
    jobs: Sequence[JobLine]


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of a crawl and its last session. `why_nothing`: what happened to the first page of a run that had
    none; `blocked`: how many pages were kept from us."""

    number: int
    mode: str
    alarm: str
    started_at: str
    ended_at: str | None
    counters: Counters
    state: RunState
    session: SessionLine | None
    why_nothing: str
    blocked: int
    down: Sequence[DownHostLine]


@dataclass(frozen=True, slots=True)
class CrawlNow:
    """A crawl at this moment: its last run, its newest jobs, and the job that is about to work on it. `note` says why
    the run cannot be read."""

    jobs: Sequence[JobLine]
    job_at_work: str | None
    run: LastRun | None
    note: str

    @property
    def state(self) -> str:
        return self.run.state if self.run else ""


class _Seen(NamedTuple):
    """What lists tell of a crawl, as it was read when its files last changed."""

    run: RunInfo
    session: SessionInfo | None
    changed: RunInfo | None
    down: Sequence[DownHost]


class Crawls:
    """How crawls stand."""

    def __init__(self, workspace: Workspace, runs: Runs, jobs: Callable[[], JobReads]) -> None:
        """`jobs`: asked for where they are told of, so that whoever lists crawls does not wait for them."""
        self._workspace = workspace
        self._runs = runs
        self._jobs = jobs

    # Many of them

    def list(
        self,
        beyond: tuple[str, str] | None = None,
        limit: int | None = None,
        text: str = "",
        newest_first: bool = False,
    ) -> Sequence[CrawlSummary]:
        """Crawls in the order in which they were made, with how they stand. `beyond`: when the last one that was seen
        was made, and its id; `text`: a part of the name, or of a seed."""
        made = sorted(((iso(one.created_ms), one.crawl_id, one) for one in self._workspace.crawls.all()), key=_place)
        if newest_first:
            made.reverse()
        if beyond is not None:
            made = [one for one in made if (_place(one) < beyond if newest_first else _place(one) > beyond)]
        return [self._summary(crawl) for *_, crawl in made if _fits(crawl, text.lower())][:limit]

    def statuses(self) -> Sequence[CrawlStatus | UnreadableCrawl]:
        """Where each crawl stands."""
        found: list[CrawlStatus | UnreadableCrawl] = []
        for crawl in self._workspace.crawls.all():
            try:
                found.append(self.status(crawl))
            except InchwormError as error:
                found.append(UnreadableCrawl(crawl.crawl_id, crawl.name, "", error.message))
        return found

    def hosts_down(self) -> int:
        """How many hosts that crawls wait for cannot be reached."""
        return sum(len(one.down) for one in self.list() if one.state in (RunState.IN_PROGRESS, RunState.PAUSED))

    # One of them

    def get(self, crawl: CrawlInfo) -> CrawlDetail:
        """Everything that is known of a crawl."""
        values = self.settings_of(crawl)
        return CrawlDetail(
            self._summary(crawl),
            self.status(crawl) if self._runs.last(crawl) else None,
            iso(crawl.created_ms),
            crawl.enabled,
            continuation(crawl),
            {name: value for name, value in values.items() if not settings.belongs_to(name, SERVICE)},
            presentable(crawl.defaults),
            self._jobs().of(crawl),
        )

    def status(self, crawl: CrawlInfo) -> CrawlStatus:
        """Where a crawl stands. A run whose owner is dead is paused."""
        with self._workspace.reading(crawl) as store:
            current, end = self._workspace.run_of(crawl, store), store.runs.line_end()
            sessions = store.sessions.of(current.run_id)
            owner = store.owner.life()
            down = store.hosts.down()
            blocked = _blocked(store, current)
            several = store.queue.has_several_lanes(current.run_id)
            lost = self.lost_files(crawl, store)
        running = self._workspace.is_running(crawl)
        state = run.state_of(current, running)
        last = sessions[-1] if sessions else None
        return CrawlStatus(
            crawl.crawl_id,
            crawl.name,
            crawl.seeds,
            current.number,
            current.mode,
            current.origin,
            not current.beside,
            end.number if end else None,
            state.value,
            run.word_for(dataclasses.replace(current, state=state)),
            WorkingProcess(owner.pid, owner.machine) if running else None,
            [session_line(one, running) for one in sessions],
            str(last.ended_by) if last and last.ended_by else None,
            order.word(current.disturbed, several),
            iso(current.created_ms),
            current.counters,
            {seed.url: seed.kept for seed in current.seeds},
            last.message if last else "",
            blocked,
            [_host_down(one) for one in down],
            lost,
        )

    def now(self, crawl: CrawlInfo) -> CrawlNow:
        """A crawl at this moment, in little time: whoever has its page open asks again and again."""
        at_work = self._jobs().at_work(crawl)
        last, note = None, ""
        try:
            last = self._last_run(crawl)
        except InchwormError as error:
            note = error.message
        return CrawlNow(self._jobs().newest(crawl), at_work.job_id if at_work else None, last, note)

    def lost_files(self, crawl: CrawlInfo, store: CrawlStore) -> Sequence[str]:
        """Files of the archive that are missing, or shorter than what was committed."""
        archive = self._workspace.place(crawl).archive
        files = [(name, length, archive / name) for _, _, name, length in store.archive.files()]
        return [name for name, length, path in files if not path.exists() or path.stat().st_size < length]

    def settings_of(self, crawl: CrawlInfo) -> NamedSettings:
        """The settings that the open run, or the next one, works with."""
        values = settings.make({**self._workspace.base_settings(), **defaults_of(crawl), **crawl.settings})
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            last = store.runs.get()
            if last is not None and run.is_open(last):
                values = settings.changed(values, settings_of_run(last))
        return presentable(settings.to_json(values))

    def _summary(self, crawl: CrawlInfo) -> CrawlSummary:
        line = CrawlSummary(crawl.crawl_id, crawl.name, crawl.seeds, crawl.enabled, iso(crawl.created_ms))
        try:
            seen = self._seen(crawl)
        except InchwormError as error:
            return dataclasses.replace(line, note=error.message)
        if seen is None:
            return line
        last, counters, running = seen.run, seen.run.counters, self._workspace.is_running(crawl)
        return dataclasses.replace(
            line,
            state=run.state_of(last, running).value,
            run=last.number,
            run_id=iteration_id(crawl, last.number),
            mode=last.mode,
            run_started_at=iso(last.created_ms),
            run_ended_at=iso(last.ended_ms) if last.ended_ms is not None else None,
            alarm=last.alarm or None,
            session=session_line(seen.session, running) if seen.session else None,
            changed=_changes(crawl, seen.changed) if seen.changed else None,
            pages=counters.pages,
            duplicates=counters.duplicates,
            failed=counters.failed,
            pending=counters.pending,
            new=counters.new,
            modified=counters.modified,
            deleted=counters.deleted,
            unchanged=counters.unchanged,
            unknown=counters.unknown,
            down=[_host_down(one) for one in seen.down],
        )

    def _seen(self, crawl: CrawlInfo) -> _Seen | None:
        """A crawl as it was read when its files last changed: lists are looked at all the time."""
        mark = self._workspace.place(crawl).mark()
        seen = self._kept.get(crawl.crawl_id)
        if seen is not None and seen[0] == mark:
            return seen[1]
        found = None
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            last = store.runs.get()
            if last is not None:
                found = _Seen(last, store.sessions.last(last.run_id), store.runs.last_change(), store.hosts.down())
        if mark:
            self._kept[crawl.crawl_id] = mark, found
        return found

    @functools.cached_property
    def _kept(self) -> dict[str, tuple[tuple[int, ...], _Seen | None]]:
        return {}

    def _last_run(self, crawl: CrawlInfo) -> LastRun | None:
        if self._runs.last(crawl) is None:
            return None
        with self._workspace.reading(crawl) as store:
            last = self._workspace.run_of(crawl, store)
            session = store.sessions.last(last.run_id)
            why_nothing = _why_nothing(store, last)
            blocked, down = _blocked(store, last), store.hosts.down()
        running = self._workspace.is_running(crawl)
        return LastRun(
            last.number,
            last.mode,
            last.alarm,
            iso(last.created_ms),
            iso(last.ended_ms) if last.ended_ms is not None else None,
            last.counters,
            run.state_of(last, running),
            session_line(session, running) if session else None,
            why_nothing,
            blocked,
            [_host_down(one) for one in down],
        )


def continuation(crawl: CrawlInfo) -> Continuation:
    budget = settings.check("budget", crawl.defaults.get("budget", 0))
    return Continuation(crawl.incremental, budget)


def _place(one: tuple[str, str, CrawlInfo]) -> tuple[str, str]:
    """When a crawl was made, and its id."""
    return one[:2]


def _fits(crawl: CrawlInfo, text: str) -> bool:
    return any(text in one.lower() for one in (crawl.name, *crawl.seeds))


def _blocked(store: CrawlStore, current: RunInfo) -> int:
    return FailureReader(store).count(current.run_id, "blocked") if current.counters.failed else 0


def _why_nothing(store: CrawlStore, last: RunInfo) -> str:
    """What happened to the first page of a run that brought none."""
    if last.counters.pages or last.counters.duplicates or not last.counters.failed:
        return ""
    first = next(iter(FailureReader(store).between(last.run_id, 0, last.seq)), None)
    return f"{first.url}: {first.message or first.kind}" if first else ""


def _changes(crawl: CrawlInfo, one: RunInfo) -> ChangesOfRun:
    counters = one.counters
    return ChangesOfRun(
        crawl.crawl_id,
        crawl.name,
        one.number,
        iteration_id(crawl, one.number),
        iso(one.created_ms),
        counters.new,
        counters.modified,
        counters.deleted,
    )


def _host_down(one: DownHost) -> DownHostLine:
    return DownHostLine(one.origin, one.kind, one.message, iso(one.since_ms), one.sessions)
