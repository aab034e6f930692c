"""Which run a planned session works on, and what has to be done to have it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from inchworm import settings
from inchworm.app.act.edit import cancel_run, end_early
from inchworm.app.act.go_back import branch, go_back
from inchworm.app.act.plan import Plan
from inchworm.app.workspace import Workspace, command, defaults_of, settings_of_run
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import CrawlOwner, NoArchive
from inchworm.errors import Frozen, NotNow, WrongUse
from inchworm.job import Verb
from inchworm.model import CheckpointInfo, Mode, RunInfo
from inchworm.ports import Unreached
from inchworm.rules.order import freshness, order
from inchworm.rules.web import proxies
from inchworm.settings import RUN, NamedSettings, Settings, to_json
from inchworm.store.crawl.store import CrawlStore

Begin = Callable[[CrawlOwner, Settings], RunInfo]
"""What the owner of a crawl does to have a run, with the settings of its next session."""


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """Which run a session is to work on: its frozen settings, and what to do to have it. `open_run`: it is this one,
    which goes on where it is; `point`: it goes back to this checkpoint, or branches off there."""

    settings: NamedSettings
    begin: Begin
    open_run: RunInfo | None = None
    point: CheckpointInfo | None = None


class RunChooser:
    """Chooses runs, and refuses what cannot be done with them. Whoever may only read a crawl can choose, too, to know
    what would be refused."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def choose(self, plan: Plan, store: CrawlStore | None) -> ChosenRun:
        """`store`: none when the crawl has never started."""
        match plan.task.verb:
            case Verb.RESUME:
                return self._resumed(plan, store)
            case Verb.RECRAWL:
                return self._next(plan, store)
            case Verb.FRESH:
                return self._new(plan, self._cancel_open)
            case Verb.CONTINUE:
                return self._continued(plan, store)
        return self._crawled(plan, store)

    def named(self, plan: Plan) -> NamedSettings:
        """What was named for a session, for its crawl, or for an earlier session that it goes on from."""
        return {**defaults_of(plan.crawl), **plan.crawl.settings, **plan.given}

    def values(self, plan: Plan, choice: ChosenRun | None = None) -> Settings:
        """What a session goes by; the run that is chosen has settings of its own."""
        values = settings.make({**self._workspace.base_settings(), **self._unmasked(self.named(plan))})
        return settings.changed(values, choice.settings) if choice is not None else values

    # Going on

    def _crawled(self, plan: Plan, store: CrawlStore | None) -> ChosenRun:
        """Go on with the run that is open, or begin the next one."""
        last = _last_run(plan, store)
        if last is None or not run.is_open(last):
            return self._new(plan)
        if plan.crawl.incremental:
            return _gone_on_with(last, plan)
        if plan.caller.on_line:
            return self._new(plan, lambda owner: cancel_run(owner, last, self._workspace.clock.now_ms()))
        return self._new(plan, self._cancel_open)

    def _resumed(self, plan: Plan, store: CrawlStore | None) -> ChosenRun:
        """Go on with the run that is open, and no other."""
        last = store.runs.get() if store else None
        if store is None or last is None or not run.is_open(last):
            hint = plan.caller.hints.next_run or f"`{command(plan.crawl)}` starts its next run."
            raise NotNow(f"The crawl {plan.crawl.name!r} has no paused run to resume.", hint)
        choice = _gone_on_with(last, plan)
        return self._as_before(choice, store, last, plan) if last.beside else choice

    def _as_before(self, choice: ChosenRun, store: CrawlStore, last: RunInfo, plan: Plan) -> ChosenRun:
        """With what the last session of a branch was told: the crawl remembers only what holds for the line."""
        before = store.sessions.settings(last.run_id).items()
        own = {name: value for name, value in before if name in settings.FIELDS and name not in plan.given}
        return ChosenRun({**self._unmasked(own), **choice.settings}, choice.begin, last)

    # A new run

    def _next(self, plan: Plan, store: CrawlStore | None) -> ChosenRun:
        """Begin a new run, and go on with no other. One that used up its budget and was left open ends here; a branch
        stays."""
        if not plan.caller.ends_open_run:
            _refuse_open(plan, store)
        last = store.runs.line_end() if store else None
        if last is not None and run.is_open(last) and last.mode == Mode.BASELINE:
            raise NotNow(
                f"Run {last.number} of {plan.crawl.name!r} is not complete yet, so no other can build on it.",
                f"Finish it: inchworm resume {shlex.quote(plan.crawl.name)}",
            )
        return self._new(plan, self._end_line)

    def _new(self, plan: Plan, close: Callable[[CrawlOwner], None] | None = None) -> ChosenRun:
        """The next run of a crawl. `close` ends what is still open."""

        def begin(owner: CrawlOwner, values: Settings) -> RunInfo:
            if close is not None:
                close(owner)
            return self._started(plan, owner, values)

        return ChosenRun({}, begin)

    def _started(self, plan: Plan, owner: CrawlOwner, values: Settings) -> RunInfo:
        store, now_ms, is_fresh = owner.store, self._workspace.clock.now_ms(), plan.task.verb == Verb.FRESH
        seeds = run.seeds_of(plan.crawl.seeds, values.drop_params)
        new = run.next_run(store.runs.list(), Mode(plan.task.mode or Mode.INCREMENTAL), to_json(values, RUN), now_ms)
        new = run.with_seeds(run.as_baseline(new) if is_fresh else new, seeds)
        known: list[Unreached] = []
        if new.parent is not None and values.order == order.FRESHNESS:
            histories = {page.url_id: (page, history) for page, history in store.earlier.histories(new.follows)}
            aged = ((url_id, history) for url_id, (_, history) in histories.items())
            known = [histories[url_id][0] for url_id in freshness.order(aged, now_ms)]
        changes = Ledger(store, NoArchive(), new, Author(0, owner.token), values).seed(seeds, known)
        if new.parent is not None:
            changes.distrusted += store.evidence.shared_validators(
                self._workspace.run_of(plan.crawl, store, new.parent).run_id
            )
        store.runs.create(owner.token, new, changes)
        return self._workspace.run_of(plan.crawl, store, new.number)

    def _end_line(self, owner: CrawlOwner) -> None:
        """Complete the last run of the line as it is; its rest is the next one's."""
        last = owner.store.runs.line_end()
        if last is not None and run.is_open(last):
            end_early(owner, last, self._workspace.clock.now_ms())

    def _cancel_open(self, owner: CrawlOwner) -> None:
        """End what is open, a branch and the line, for good."""
        while (current := owner.store.runs.get()) is not None and run.is_open(current):
            cancel_run(owner, current, self._workspace.clock.now_ms())

    # From a checkpoint

    def _continued(self, plan: Plan, store: CrawlStore | None) -> ChosenRun:
        """Continue from a checkpoint: the run goes back to it, or a new run branches off there."""
        from inchworm.app.read.checkpoints import Back, Past  # most sessions start from none

        if store is None:
            raise NotNow(f"The crawl {plan.crawl.name!r} has not started yet.", "There is nothing to continue.")
        given, now_ms = settings.of_run(plan.given), self._workspace.clock.now_ms
        past = Past(store, self._workspace.place(plan.crawl).archive, plan.crawl)
        point = past.point(Back(plan.task.checkpoint, plan.task.as_new_run, plan.task.validate))
        current = past.run(point)
        frozen = settings_of_run(current)
        if plan.task.as_new_run:
            branched = {**frozen, **given}
            if given.get("query") and "order" not in given:
                branched["order"] = order.BEST
            return ChosenRun(branched, lambda owner, values: branch(owner, point, values, now_ms()), point=point)
        _refuse_changes(plan, current, given)
        return ChosenRun(frozen, lambda owner, _: go_back(owner, point, now_ms()), point=point)

    def _unmasked(self, values: NamedSettings) -> NamedSettings:
        """Without a proxy whose password nobody remembers. Going on without any would show the user's own address to
        the site, so there has to be another one."""
        named, base = dict(values), self._workspace.base_settings()
        if "proxies" in named:
            # Callers of the API name those that the operator has with user and password.
            listed, wanted = (settings.texts(*one) for one in ((base, "allowed_proxies"), (named, "proxies")))
            named["proxies"] = [proxies.among(one, listed) or one for one in wanted]
        if not any(map(proxies.is_masked, settings.texts(named, "proxies"))):
            return named
        if "proxies" not in base:
            raise WrongUse("This crawl went through a proxy with a password.", "Give it again: --proxy URL.")
        return {name: value for name, value in named.items() if name != "proxies"}


def _last_run(plan: Plan, store: CrawlStore | None) -> RunInfo | None:
    """The run that is open, or the last one; for some callers a branch does not count."""
    if store is None:
        return None
    return store.runs.line_end() if plan.caller.on_line else store.runs.get()


def _gone_on_with(last: RunInfo, plan: Plan) -> ChosenRun:
    wanted = settings.of_run(plan.given)
    if plan.task.mode and not plan.caller.is_repeating:
        wanted = {**wanted, "mode": plan.task.mode}
    _refuse_changes(plan, last, wanted)
    return ChosenRun(settings_of_run(last), lambda _owner, _values: last, last)


def _refuse_changes(plan: Plan, last: RunInfo, wanted: NamedSettings) -> None:
    try:
        run.refuse_changes({**last.settings, "mode": last.mode}, wanted)
    except Frozen as error:
        raise Frozen(error.message, plan.caller.hints.frozen or error.hint) from None


def _refuse_open(plan: Plan, store: CrawlStore | None) -> None:
    last = store.runs.get() if store else None
    if last is not None and run.is_open(last):
        raise NotNow(
            f"Run {last.number} of {plan.crawl.name!r} is not complete, so the next one cannot begin.",
            "Resume it, or cancel it.",
        )
