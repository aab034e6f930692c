"""Plans: which run a session is to work on, and what has to be done to have it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from inchworm import fault, settings
from inchworm.app.act.edit import ledger_of
from inchworm.app.read.checkpoints import Back, Past
from inchworm.app.workspace import Workspace, command, settings_of_run
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import CrawlOwner, NoArchive
from inchworm.errors import NotNow, WrongUse
from inchworm.model import CheckpointInfo, CheckpointType, CrawlInfo, EndedBy, Mode, RunInfo, RunState
from inchworm.ports import Unreached
from inchworm.rules.order import freshness, order
from inchworm.rules.web import proxies
from inchworm.rules.web.scope import Patterns
from inchworm.settings import RUN, NamedSettings, Settings, to_json
from inchworm.store.crawl.history import History


@dataclass(frozen=True, slots=True)
class Start:
    """What the user asked to crawl. `given` holds only the settings that were named explicitly."""

    seeds: tuple[str, ...]
    name: str = ""
    given: NamedSettings = dataclasses.field(default_factory=dict)
    fresh: bool = False
    mode: str = ""
    typed: bool = True
    """By the user of this machine, who may crawl it; others may not send us into a private network."""

    allow_private: bool = True
    """Otherwise seeds there are refused at once, unless the user of this machine has typed them before."""

    defaults: NamedSettings = dataclasses.field(default_factory=dict)
    """What holds for every session, should the crawl be new."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which run a session is to work on: its frozen settings, and what to do to have it."""

    settings: NamedSettings
    begin: Callable[[Settings], RunInfo]


Planner = Callable[[CrawlOwner, CrawlInfo, Start], Plan]


class Plans:
    """Which run a session is to work on."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def to_crawl(self, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the run that is open, or start the next one."""
        last = owner.store.runs.get()
        if last is None or not run.is_open(last):
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start))
        if start.fresh or not crawl.incremental:
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start, self._cancel_open))
        return self._to_go_on(last, start)

    def for_the_line(self, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the line, whatever its mode: nobody who repeats a crawl means a branch that was left open."""
        last = owner.store.runs.line_end()
        if last is None or not run.is_open(last):
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start))
        if crawl.incremental:
            return self._to_go_on(last, dataclasses.replace(start, mode=""))
        return Plan(
            {}, lambda values: self._start_run(owner, crawl, values, start, lambda owner: self.cancel(owner, last))
        )

    def _to_go_on(self, last: RunInfo, start: Start) -> Plan:
        frozen, wanted = {**last.settings, "mode": last.mode}, settings.of_run(start.given)
        run.refuse_changes(frozen, {**wanted, "mode": start.mode} if start.mode else wanted)
        return Plan(settings_of_run(last), lambda _: last)

    def to_resume(self, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the run that is open, and no other."""
        last = owner.store.runs.get()
        if last is None or not run.is_open(last):
            raise NotNow(
                f"The crawl {crawl.name!r} has no paused run to resume.",
                f"`{command(crawl)}` starts its next run.",
            )
        plan = self._to_go_on(last, start)
        return self._as_before(plan, owner, last, start) if last.beside else plan

    def _as_before(self, plan: Plan, owner: CrawlOwner, last: RunInfo, start: Start) -> Plan:
        """With what the last session of a branch was told: the crawl remembers only what holds for the line."""
        told = owner.store.sessions.settings(last.run_id).items()
        own = {name: value for name, value in told if name in settings.FIELDS and name not in start.given}
        return Plan({**self.unmasked(own), **plan.settings}, plan.begin)

    def to_recrawl(self, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> Plan:
        """Start a new run, and no other. One that used up its budget and was left open ends here; a branch stays."""
        last = owner.store.runs.line_end()
        if last is not None and run.is_open(last) and last.mode == Mode.BASELINE:
            raise NotNow(
                f"Run {last.number} of {crawl.name!r} is not complete yet, so no other can build on it.",
                f"Finish it: inchworm resume {shlex.quote(crawl.name)}",
            )
        return Plan({}, lambda values: self._start_run(owner, crawl, values, start, self._end_early))

    def to_go_back(self, back: Back, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> Plan:
        if back.checkpoint is None and not back.as_new_run:
            return self.to_resume(owner, crawl, start)
        past, given = Past(owner.store, owner.archive, crawl), settings.of_run(start.given)
        way = WayBack(owner, past, self._workspace.clock.now_ms())
        point = past.point(back)
        frozen = settings_of_run(past.run(point))
        if back.as_new_run:
            branched = {**frozen, **given}
            if given.get("query") and "order" not in given:
                branched["order"] = order.BEST
            return Plan(branched, lambda values: way.branch(point, values))
        run.refuse_changes(past.run(point).settings, given)
        return Plan(frozen, lambda _: way.go_back(point))

    def _end_early(self, owner: CrawlOwner) -> None:
        """Complete the last run of the line as it is; its rest is the next one's."""
        last = owner.store.runs.line_end()
        if last is not None and run.is_open(last):
            ledger_of(owner, last).end_early()
            owner.store.runs.set_state(owner.token, last.run_id, RunState.COMPLETED, self._workspace.clock.now_ms())

    def _cancel_open(self, owner: CrawlOwner) -> None:
        """End what is open, a branch and the line, for good."""
        while (current := owner.store.runs.get()) is not None and run.is_open(current):
            self.cancel(owner, current)

    def cancel(self, owner: CrawlOwner, current: RunInfo) -> None:
        """End a run for good, but so that one can come back."""
        now_ms = self._workspace.clock.now_ms()
        owner.checkpoint(CheckpointType.PAUSE, now_ms, current)
        owner.store.runs.set_state(owner.token, current.run_id, RunState.CANCELLED, now_ms)

    def _start_run(
        self,
        owner: CrawlOwner,
        crawl: CrawlInfo,
        values: Settings,
        start: Start,
        close: Callable[[CrawlOwner], None] | None = None,
    ) -> RunInfo:
        """The next run of a crawl. `close` ends what is still open."""
        store = owner.store
        if close is not None:
            close(owner)
        seeds = run.seeds_of(crawl.seeds, values.drop_params)
        frozen = settings.to_json(values, RUN)
        new = run.next_run(
            store.runs.list(), Mode(start.mode or Mode.INCREMENTAL), frozen, self._workspace.clock.now_ms()
        )
        new = run.with_seeds(run.as_baseline(new) if start.fresh else new, seeds)
        known: list[Unreached] = []
        if new.parent is not None and values.order == order.FRESHNESS:
            histories = {page.url_id: (page, history) for page, history in store.earlier.histories(new.follows)}
            aged = ((url_id, history) for url_id, (_, history) in histories.items())
            known = [histories[url_id][0] for url_id in freshness.order(aged, self._workspace.clock.now_ms())]
        changes = Ledger(store, NoArchive(), new, Author(0, owner.token), values).seed(seeds, known)
        if new.parent is not None:
            changes.distrusted += store.evidence.shared_validators(
                self._workspace.run_of(crawl, store, new.parent).run_id
            )
        store.runs.create(owner.token, new, changes)
        made = store.runs.get(new.number)
        assert made is not None
        return made

    def unmasked(self, values: NamedSettings) -> NamedSettings:
        """Without a proxy whose password nobody remembers. Going on without any would show the user's own address to
        the site, so there has to be another one."""
        named, ground = dict(values), self._workspace.base_settings()
        if "proxies" in named:
            # Callers of the API name those that the operator has with user and password.
            listed, wanted = (settings.texts(*one) for one in ((ground, "allowed_proxies"), (named, "proxies")))
            named["proxies"] = [proxies.among(one, listed) or one for one in wanted]
        if not any(map(proxies.is_masked, settings.texts(named, "proxies"))):
            return named
        if "proxies" not in ground:
            raise WrongUse("This crawl went through a proxy with a password.", "Give it again: --proxy URL.")
        return {name: value for name, value in named.items() if name != "proxies"}


class WayBack:
    """The way back to a checkpoint, for the owner of a crawl."""

    def __init__(self, owner: CrawlOwner, past: Past, now_ms: int) -> None:
        self._owner, self._store, self._history = owner, owner.store, History(owner.store)
        self._past = past
        self._now_ms = now_ms

    def go_back(self, point: CheckpointInfo) -> RunInfo:
        """Undo what came after a checkpoint; its run is open again."""
        current = self._past.run(point)
        if current.seq != point.seq or not run.is_open(current):
            self._history.go_back(self._owner.token, current, point, self._now_ms)
            fault.point("gone_back")
            self._owner.cut_archive()
        return self._past.run(point)

    def branch(self, point: CheckpointInfo, values: Settings) -> RunInfo:
        """A new run that has everything up to the checkpoint, and goes on by settings of its own."""
        Patterns(values.include, values.exclude)
        old = self._past.run(point)
        new = run.branch_of(old, self._store.runs.list(), to_json(values, RUN), self._now_ms)
        if (made := self._made_before(point, new)) is not None:
            return made
        with self._store.commits.committing(self._owner.token):
            self._history.branch(point, new)
            if dict(new.settings) != dict(old.settings):
                made = self._store.runs.get(new.number)
                assert made is not None
                same_scope = all(new.settings[name] == old.settings[name] for name in ("scope", "loose_paths"))
                ledger = Ledger(self._store, NoArchive(), made, Author(0, self._owner.token), values)
                ledger.edits.judge_again(same_scope)
        found = self._store.runs.get(new.number)
        assert found is not None
        return found

    def _made_before(self, point: CheckpointInfo, new: RunInfo) -> RunInfo | None:
        """The same branch, when whoever made it died before it got anywhere: this is the second try."""
        last = self._store.runs.list()[-1]
        if last.origin is None or dict(last.settings) != dict(new.settings):
            return None
        is_same = (last.origin, last.origin_seq) == (point.run, point.seq)
        is_same = is_same or (point.number < 0 and last.number == point.run)
        # One step may have been taken: judging by settings of its own.
        has_moved = last.seq > (last.origin_seq or 0) + 1
        ended = [one.ended_by for one in self._store.sessions.of(last.run_id)]
        has_moved = has_moved or any(by not in (None, EndedBy.CRASHED) for by in ended)
        return last if is_same and not has_moved and run.is_open(last) else None
