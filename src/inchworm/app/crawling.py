"""Crawling: starting a run, going on with one, and stopping it from outside."""

from __future__ import annotations

import dataclasses
import functools
import json
import shlex
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inchworm import settings
from inchworm.app.admitting import refuse_private
from inchworm.app.checking import refuse_fields, refuse_unusable
from inchworm.app.checkpoints import Back, WayBack
from inchworm.app.desk import (
    Desk,
    command,
    defaults_of,
    identity,
    presentable,
    refuse_other_seeds,
    settings_of_run,
)
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft import Session as LedgerSession
from inchworm.engine.own.owner import NoArchive, Owner
from inchworm.errors import Broken, NotNow, WrongUse
from inchworm.model import CheckpointType, CrawlInfo, Mode, RunInfo, RunState
from inchworm.ports import Unreached
from inchworm.rules.order import freshness, order
from inchworm.rules.web import proxies
from inchworm.rules.web import url as urls
from inchworm.settings import RUN, SESSION, Settings
from inchworm.store.crawl.history import History


@dataclass(frozen=True, slots=True)
class Start:
    """What the user asked to crawl. `given` holds only the settings that were named explicitly."""

    seeds: tuple[str, ...]
    name: str = ""
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fresh: bool = False
    mode: str = ""
    typed: bool = True
    """By the user of this machine, who may crawl it; others may not send us into a private network."""

    guarded: bool = False
    """Refuse seeds there at once, unless the user of this machine has typed them before."""

    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What holds for every session, should the crawl be new."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which run a session is to work on: its frozen settings, and what to do to have it."""

    settings: Mapping[str, Any]
    begin: Callable[[Settings], RunInfo]


Planner = Callable[[Owner, CrawlInfo, Start], Plan]


class Crawling(Desk):
    """Verbs that change a crawl."""

    async def crawl(self, start: Start, hooks: Hooks | None = None) -> Summary:
        """Crawl these seeds: resume the run that is open, or start the next one."""
        values = settings.make({**self.ground(), **start.given})
        refuse_unusable(values)
        if values.order == order.BEST and not values.query:
            raise WrongUse("Best for what? The order `best` goes by a query.", "Add --query TEXT.")
        return await self._sit(self.find_or_make(start), start, hooks or Hooks(), self._plan_to_crawl)

    async def resume(
        self,
        word: str,
        given: Mapping[str, Any] | None = None,
        hooks: Hooks | None = None,
        seeds: tuple[str, ...] = (),
    ) -> Summary:
        """Go on with the run of a crawl that is paused. `seeds`: as they were typed, should they bear passwords."""
        crawl = self.find(word)
        start = Start(seeds or (word,), crawl.name, given or {})
        return await self._sit(crawl, start, hooks or Hooks(), self._plan_to_resume)

    async def recrawl(
        self,
        word: str,
        mode: str,
        given: Mapping[str, Any],
        hooks: Hooks | None = None,
        seeds: tuple[str, ...] = (),
    ) -> Summary:
        """Start the next run of a crawl that is complete. `seeds`: as for `resume`."""
        crawl = for_a_new_start(self.find(word))
        start = Start(seeds or (word,), crawl.name, given, mode=mode)
        return await self._sit(crawl, start, hooks or Hooks(), self._plan_to_recrawl)

    async def go_on(self, word: str, back: Back, given: Mapping[str, Any], hooks: Hooks | None = None) -> Summary:
        """Continue a crawl from a checkpoint: the run goes back to it, or a new run branches off there."""
        crawl = self.find(word)
        start = Start((word,), crawl.name, given)
        return await self._sit(crawl, start, hooks or Hooks(), functools.partial(self._plan_to_go_back, back))

    def go_back(self, word: str, back: Back, given: Mapping[str, Any]) -> RunInfo:
        """The same without crawling on: the next session does that."""
        crawl = self.find(word)
        with self.reading(crawl):
            pass  # one that never started has nothing to go back to
        named = {**crawl.settings, **given}
        with self.owning(crawl, self._values(crawl, named).stale) as owner:
            plan = self._plan_to_go_back(back, owner, crawl, Start((word,), crawl.name, given))
            self._note_crash(owner)
            return plan.begin(self._values(crawl, named, plan))

    def _plan_to_go_back(self, back: Back, owner: Owner, crawl: CrawlInfo, start: Start) -> Plan:
        if back.checkpoint is None and not back.as_new_run:
            return self._plan_to_resume(owner, crawl, start)
        past, given = WayBack(owner, crawl, self.clock.now_ms()), _of_run(start.given)
        point = past.point(back)
        frozen = settings_of_run(past.run(point))
        if back.as_new_run:
            branched = {**frozen, **given}
            if given.get("query") and "order" not in given:
                branched["order"] = order.BEST
            return Plan(branched, lambda values: past.branch(point, values))
        run.refuse_changes(past.run(point).settings, given)
        return Plan(frozen, lambda _: past.go_back(point))

    def find_or_make(self, start: Start) -> CrawlInfo:
        """The crawl of these seeds and this name."""
        if not start.seeds:
            raise WrongUse("There is nothing to crawl.", "Give at least one URL: inchworm crawl https://example.org/")
        seeds = run.seeds_of(start.seeds)
        key = run.seeds_key(seeds)
        crawl = self.find_by_seeds(start.seeds, start.name)
        if start.guarded and not (crawl and crawl.typed):
            _refuse_private(start.seeds)
        crawl = crawl or self.home.find_or_add(self._new(start, seeds), key, bool(start.name))
        refuse_other_seeds(crawl, key)
        return for_a_new_start(self._meant(crawl) if start.typed else crawl)

    def mean(self, word: str) -> None:
        """The user of this machine names a crawl, which is as good as typing its seeds: they may lie in a private
        network."""
        self._meant(self.find(word))

    def _meant(self, crawl: CrawlInfo) -> CrawlInfo:
        if not crawl.typed:
            self.home.configure(crawl.crawl_id, typed=True)
        return dataclasses.replace(crawl, typed=True)

    def _new(self, start: Start, seeds: Sequence[Any]) -> CrawlInfo:
        name = start.name or run.default_name(seeds)
        typed = tuple(run.without_secrets(text) for text in start.seeds)
        return CrawlInfo(
            uuid.uuid4().hex[:10], name, typed, {}, self.clock.now_ms(), dict(start.defaults), typed=start.typed
        )

    async def _sit(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner) -> Summary:
        """One session of the run that is planned, its pages indexed beside it and fields taken after it, if that is
        wanted."""
        given = {**self.ground(), **defaults_of(crawl), **crawl.settings, **start.given}
        if not start.given.keys().isdisjoint(("extract", "each")):
            refuse_fields(settings.check("extract", given.get("extract", ())), str(given.get("each", "")))
        index = str(given.get("index") or "")
        if not given.get("extract"):
            return await self._indexed(crawl, start, hooks, planned, index)
        from inchworm.app import fields  # whoever takes none does not wait for it

        rules = fields.rules_of(self, crawl, start.given)
        summary = await self._indexed(crawl, start, hooks, planned, index)
        return await fields.after_session(self, crawl, rules, summary, hooks) if rules else summary

    async def _indexed(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner, index: str) -> Summary:
        if not index:
            return await self._session(crawl, start, hooks, planned)
        from inchworm.app.indexing import indexed  # whoever does not index does not wait for it

        async with indexed(self, crawl, index) as report:
            summary = await self._session(crawl, start, hooks, planned)
            report.hurry = bool(summary.signal)
        note = " ".join(filter(None, (summary.note, report.note)))
        return dataclasses.replace(summary, indexed=report.indexed, note=note)

    async def _session(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner) -> Summary:
        """One session. Nothing is changed before all that was typed is known to be right."""
        # Whoever only looks does not wait for curl and parsers.
        from inchworm.engine.fetching import fetching
        from inchworm.engine.work import Sitting

        remembered = {**crawl.settings, **start.given}
        with self.owning(crawl, self._values(crawl, remembered).stale, start.fresh) as owner:
            plan = planned(owner, crawl, start)
            values = self._values(crawl, remembered, plan)
            async with fetching(crawl.seeds if crawl.typed else (), values, run.credentials(start.seeds)) as fetcher:
                # From here on nothing that the user typed can be wrong any more.
                self._keep_what_made_it(owner, crawl, start)
                self._note_crash(owner)
                current = plan.begin(values)
                if not crawl.started:
                    self.home.configure(crawl.crawl_id, started=True)
                if not current.beside:  # What a branch is tried with is not meant for the runs of the line.
                    self.home.remember(crawl.crawl_id, presentable(remembered))
                session_part = json.dumps(presentable(settings.to_json(values, SESSION)))
                number = owner.store.start_session(owner.token, current, session_part, self.clock.now_ms())
                if hooks.started:
                    hooks.started(crawl, current, number)
                sitting = Sitting(self.home, self.clock, owner, crawl, current, values, number)
                summary = await sitting.work(fetcher, hooks)
                note = " ".join(filter(None, (summary.note, _about_lost(owner.lost_files))))
                return dataclasses.replace(summary, note=note)

    def _values(self, crawl: CrawlInfo, named: Mapping[str, Any], plan: Plan | None = None) -> Settings:
        """What a session goes by, with what was named for it; the run that is planned has settings of its own."""
        values = settings.make({**self.ground(), **self._unmasked({**defaults_of(crawl), **named})})
        return dataclasses.replace(values, **plan.settings) if plan is not None else values

    def _keep_what_made_it(self, owner: Owner, crawl: CrawlInfo, start: Start) -> None:
        """What the first start of a crawl names belongs to the crawl, until somebody changes it there. Some of it does
        whenever it is named."""
        is_first = owner.store.run() is None
        kept = {
            name: value
            for name, value in start.given.items()
            if settings.belongs_to_crawl(name) and (is_first or settings.is_kept(name))
        }
        if kept:
            typed = {name: settings.check(name, value) for name, value in kept.items()}
            self.home.configure(crawl.crawl_id, defaults={**crawl.defaults, **presentable(typed)})

    def _unmasked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Without a proxy whose password nobody remembers. Going on without any would show the user's own address to
        the site, so there has to be another one."""
        named, ground = dict(values), self.ground()
        if "proxies" in named:
            # Callers of the API name those that the operator has with user and password.
            listed, wanted = ground.get("allowed_proxies", ()), settings.check("proxies", named["proxies"])
            named["proxies"] = [proxies.among(one, listed) or one for one in wanted]
        if not any(map(proxies.is_masked, named.get("proxies", ()))):
            return named
        if "proxies" not in ground:
            raise WrongUse("This crawl went through a proxy with a password.", "Give it again: --proxy URL.")
        return {name: value for name, value in named.items() if name != "proxies"}

    def _note_crash(self, owner: Owner) -> None:
        """When the last session crashed: there it stood, should anybody want to know or come back."""
        last = owner.store.run()
        if last is not None and run.is_open(last) and owner.store.is_unfinished(last.run_id):
            owner.checkpoint(CheckpointType.ERROR, self.clock.now_ms())

    def _plan_to_crawl(self, owner: Owner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the run that is open, or start the next one."""
        last = owner.store.run()
        if last is None or not run.is_open(last):
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start))
        if start.fresh or not crawl.incremental:
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start, self._cancel_open))
        return self._plan_to_go_on(last, start)

    def _plan_for_the_line(self, owner: Owner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the line, whatever its mode: nobody who repeats a crawl means a branch that was left open."""
        last = owner.store.line_end()
        if last is None or not run.is_open(last):
            return Plan({}, lambda values: self._start_run(owner, crawl, values, start))
        if crawl.incremental:
            return self._plan_to_go_on(last, dataclasses.replace(start, mode=""))
        return Plan(
            {}, lambda values: self._start_run(owner, crawl, values, start, lambda owner: self._cancel(owner, last))
        )

    def _plan_to_go_on(self, last: RunInfo, start: Start) -> Plan:
        frozen, wanted = {**last.settings, "mode": last.mode}, _of_run(start.given)
        run.refuse_changes(frozen, {**wanted, "mode": start.mode} if start.mode else wanted)
        return Plan(settings_of_run(last), lambda _: last)

    def _plan_to_resume(self, owner: Owner, crawl: CrawlInfo, start: Start) -> Plan:
        """Go on with the run that is open, and no other."""
        last = owner.store.run()
        if last is None or not run.is_open(last):
            raise NotNow(
                f"The crawl {crawl.name!r} has no paused run to resume.",
                f"`{command(crawl)}` starts its next run.",
            )
        plan = self._plan_to_go_on(last, start)
        return self._as_before(plan, owner, last, start) if last.beside else plan

    def _as_before(self, plan: Plan, owner: Owner, last: RunInfo, start: Start) -> Plan:
        """With what the last session of a branch was told: the crawl remembers only what holds for the line."""
        told = owner.store.session_settings(last.run_id).items()
        own = {name: value for name, value in told if name in settings.FIELDS and name not in start.given}
        checked = {name: settings.check(name, value) for name, value in self._unmasked(own).items()}
        return Plan({**checked, **plan.settings}, plan.begin)

    def _plan_to_recrawl(self, owner: Owner, crawl: CrawlInfo, start: Start) -> Plan:
        """Start a new run, and no other. One that used up its budget and was left open ends here; a branch stays."""
        last = owner.store.line_end()
        if last is not None and run.is_open(last) and last.mode == Mode.BASELINE:
            raise NotNow(
                f"Run {last.number} of {crawl.name!r} is not complete yet, so no other can build on it.",
                f"Finish it: inchworm resume {shlex.quote(crawl.name)}",
            )
        return Plan({}, lambda values: self._start_run(owner, crawl, values, start, self._end_early))

    def _end_early(self, owner: Owner) -> None:
        """Complete the last run of the line as it is; its rest is the next one's."""
        last = owner.store.line_end()
        if last is not None and run.is_open(last):
            self.ledger(owner, last).end_early()
            owner.store.set_run_state(owner.token, last.run_id, RunState.COMPLETED, self.clock.now_ms())

    def _cancel_open(self, owner: Owner) -> None:
        """End what is open, a branch and the line, for good."""
        while (current := owner.store.run()) is not None and run.is_open(current):
            self._cancel(owner, current)

    def _cancel(self, owner: Owner, current: RunInfo) -> None:
        """End a run for good, but so that one can come back."""
        now_ms = self.clock.now_ms()
        owner.checkpoint(CheckpointType.PAUSE, now_ms, current)
        owner.store.set_run_state(owner.token, current.run_id, RunState.CANCELLED, now_ms)

    def _start_run(
        self,
        owner: Owner,
        crawl: CrawlInfo,
        values: Settings,
        start: Start,
        close: Callable[[Owner], None] | None = None,
    ) -> RunInfo:
        """The next run of a crawl. `close` ends what is still open."""
        store = owner.store
        if close is not None:
            close(owner)
        seeds = run.seeds_of(crawl.seeds, values.drop_params)
        frozen = settings.to_json(values, RUN)
        new = run.next_run(store.runs(), Mode(start.mode or Mode.INCREMENTAL), frozen, self.clock.now_ms())
        new = run.with_seeds(run.as_baseline(new) if start.fresh else new, seeds)
        known: list[Unreached] = []
        if new.parent is not None and values.order == order.FRESHNESS:
            histories = {page.url_id: (page, history) for page, history in store.histories(new.follows)}
            aged = ((url_id, history) for url_id, (_, history) in histories.items())
            known = [histories[url_id][0] for url_id in freshness.order(aged, self.clock.now_ms())]
        changes = Ledger(store, NoArchive(), new, LedgerSession(0, owner.token), values).seed(seeds, known)
        if new.parent is not None:
            changes.distrusted += store.shared_validators(self.run_of(crawl, store, new.parent).run_id)
        store.create_run(owner.token, new, changes)
        made = store.run(new.number)
        assert made is not None
        return made

    def make_line(self, word: str, number: int) -> dict[str, Any]:
        """Have later runs build on this one and go by its settings; which one they would have built on."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            _refuse_for_line(self.run_of(crawl, store, number))
        with self.owning(crawl, self.stale()) as owner:
            chosen, end = self.run_of(crawl, owner.store, number), owner.store.line_end()
            assert end is not None
            _refuse_for_line(chosen)
            others = {name: value for name, value in chosen.settings.items() if end.settings.get(name) != value}
            # The settings first: should we die here, the second try still sees the difference.
            self.home.remember(crawl.crawl_id, {**crawl.settings, **others})
            line = run.line_to(owner.store.runs(), chosen)
            History(owner.store).set_line(owner.token, [one.run_id for one in line], self.clock.now_ms())
        return {"crawl_id": crawl.crawl_id, "line": number, "before": end.number, "settings": others}

    # From another process

    def pause(self, word: str) -> str:
        """Ask the owner to pause its run, and wait until it did."""
        return self._end(self.find(word), "pause", "has nothing running to pause")

    def cancel(self, word: str) -> str:
        """End a run for good; its pages stay."""
        crawl = self.find(word)
        if self.is_running(crawl):
            return self._end(crawl, "cancel", "has nothing to cancel")
        with self.reading(crawl):
            pass  # one that never started has nothing to cancel
        with self.owning(crawl, self.stale()) as owner:
            last = owner.store.run()
            if last is None or not run.is_open(last):
                raise NotNow(
                    f"The crawl {crawl.name!r} has no open run to cancel.",
                    "`inchworm list` shows the crawls.",
                )
            self._cancel(owner, last)
        return RunState.CANCELLED

    def _end(self, crawl: CrawlInfo, verb: str, otherwise: str) -> str:
        if not self.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} {otherwise}.", "`inchworm list` shows what is running.")
        self.ask(crawl, verb, {})
        with self.reading(crawl) as store:
            return run.state_of(self.run_of(crawl, store), self.is_running(crawl))

    def retry(self, word: str, kind: str | None = None, url: str | None = None) -> int:
        """Re-open failed URLs; how many. The next session fetches them."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            last = self.run_of(crawl, store)
            address = identity(last, url) if url else None
            count = len(store.failed(last.run_id, kind, address))
        if not count:
            return 0
        if self.is_running(crawl):
            self.ask(crawl, "retry", {"kind": kind, "url": address})
            return count
        with self.owning(crawl, self.stale()) as owner:
            last = self.run_of(crawl, owner.store)
            self.ledger(owner, last).reopen(kind, address)
            owner.store.set_run_state(owner.token, last.run_id, RunState.PAUSED, self.clock.now_ms())
        return count

    def clear_queue(self, word: str) -> int:
        """Refuse every pending URL and complete the run; how many."""
        crawl = self.find(word)
        with self.reading(crawl):
            pass  # one that never started has no queue
        with self.owning(crawl, self.stale()) as owner:
            last = self.run_of(crawl, owner.store)
            pending = last.counters.pending
            self.ledger(owner, last).end_early()
            owner.store.set_run_state(owner.token, last.run_id, RunState.COMPLETED, self.clock.now_ms())
        return pending

    def delete(self, word: str) -> None:
        """Remove a crawl: its record, its archive, everything."""
        crawl = self.find(word)
        folder = self.crawl_folder(crawl)
        if not folder.exists():
            self.home.remove(crawl.crawl_id)
            return
        try:
            with self.owning(crawl, self.stale()):
                self._erase(crawl)
        except Broken:
            # What cannot be read cannot be worked on either, and has to go all the same.
            if self.is_running(crawl):
                raise
            self._erase(crawl)

    def _erase(self, crawl: CrawlInfo) -> None:
        self.home.remove(crawl.crawl_id)
        shutil.rmtree(self.crawl_folder(crawl), ignore_errors=True)


def for_a_new_start(crawl: CrawlInfo) -> CrawlInfo:
    """What was set for an earlier session is not meant for this one; what was set for a run stays."""
    run_part = {name: value for name, value in crawl.settings.items() if settings.belongs_to_run(name)}
    return dataclasses.replace(crawl, settings=run_part)


def _refuse_private(seeds: Sequence[str]) -> None:
    for text in seeds:
        for form in urls.seed(text) or ():
            refuse_private(form, run.shown(text))


def _about_lost(files: Sequence[str]) -> str:
    """What to say when parts of the archive are not there any more. The record is, so the crawl goes on."""
    if not files:
        return ""
    count = "1 file of the archive is" if len(files) == 1 else f"{len(files):,} files of the archive are"
    return (
        f"ATTENTION: {count} missing or cut off ({files[0]}), and the bodies with them. `inchworm doctor` names the"
        " pages. Put them back from a backup, or start again from the seeds with --fresh."
    )


def _refuse_for_line(chosen: RunInfo) -> None:
    if chosen.state is not RunState.COMPLETED:
        raise NotNow(
            f"Run {chosen.number} is {chosen.state}, and later runs can build only on one that is complete.",
            "Finish it first, or choose another: inchworm runs lists them.",
        )


def _of_run(given: Mapping[str, Any]) -> dict[str, Any]:
    """The run settings among those that were named, as typed values."""
    return {name: settings.check(name, value) for name, value in given.items() if settings.belongs_to_run(name)}
