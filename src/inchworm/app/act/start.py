"""Starting: a session of a crawl in this process, of the run that is open or of the next one."""

from __future__ import annotations

import dataclasses
import functools
import json
import uuid
from collections.abc import Sequence

from inchworm import settings
from inchworm.app.act.plan import Plan, Planner, Plans, Start
from inchworm.app.read.checkpoints import Back
from inchworm.app.refuse import refuse_fields, refuse_private, refuse_unusable
from inchworm.app.workspace import Workspace, defaults_of, presentable, refuse_other_seeds
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.own.owner import CrawlOwner
from inchworm.errors import WrongUse
from inchworm.model import CheckpointType, CrawlInfo, FoundUrl, RunInfo
from inchworm.rules.order import order
from inchworm.rules.web import url as urls
from inchworm.settings import SESSION, NamedSettings, Settings


class Starter:
    """Starts sessions in this process."""

    def __init__(self, workspace: Workspace, plans: Plans) -> None:
        self._workspace = workspace
        self._plans = plans

    async def crawl(self, start: Start, hooks: Hooks | None = None) -> Summary:
        """Crawl these seeds: resume the run that is open, or start the next one."""
        values = settings.make({**self._workspace.base_settings(), **start.given})
        refuse_unusable(values)
        if values.order == order.BEST and not values.query:
            raise WrongUse("Best for what? The order `best` goes by a query.", "Add --query TEXT.")
        return await self.sit(self.find_or_make(start), start, hooks or Hooks(), self._plans.to_crawl)

    async def resume(
        self,
        word: str,
        given: NamedSettings | None = None,
        hooks: Hooks | None = None,
        seeds: tuple[str, ...] = (),
    ) -> Summary:
        """Go on with the run of a crawl that is paused. `seeds`: as they were typed, should they bear passwords."""
        crawl = self._workspace.find(word)
        start = Start(seeds or (word,), crawl.name, given or {})
        return await self.sit(crawl, start, hooks or Hooks(), self._plans.to_resume)

    async def recrawl(
        self,
        word: str,
        mode: str,
        given: NamedSettings,
        hooks: Hooks | None = None,
        seeds: tuple[str, ...] = (),
    ) -> Summary:
        """Start the next run of a crawl that is complete. `seeds`: as for `resume`."""
        crawl = for_a_new_start(self._workspace.find(word))
        start = Start(seeds or (word,), crawl.name, given, mode=mode)
        return await self.sit(crawl, start, hooks or Hooks(), self._plans.to_recrawl)

    async def continue_line(self, crawl: CrawlInfo, mode: str, given: NamedSettings, hooks: Hooks) -> Summary:
        """One session on the line: of the run that is open, whatever its mode, else of the next one."""
        start = Start((crawl.crawl_id,), crawl.name, given, mode=mode)
        return await self.sit(crawl, start, hooks, self._plans.for_the_line)

    async def go_on(self, word: str, back: Back, given: NamedSettings, hooks: Hooks | None = None) -> Summary:
        """Continue a crawl from a checkpoint: the run goes back to it, or a new run branches off there."""
        crawl = self._workspace.find(word)
        start = Start((word,), crawl.name, given)
        return await self.sit(crawl, start, hooks or Hooks(), functools.partial(self._plans.to_go_back, back))

    def go_back(self, word: str, back: Back, given: NamedSettings) -> RunInfo:
        """The same without crawling on: the next session does that."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl):
            pass  # one that never started has nothing to go back to
        named = {**crawl.settings, **given}
        with self._workspace.owning(crawl, self._values(crawl, named).stale) as owner:
            plan = self._plans.to_go_back(back, owner, crawl, Start((word,), crawl.name, given))
            self._note_crash(owner)
            return plan.begin(self._values(crawl, named, plan))

    def find_or_make(self, start: Start) -> CrawlInfo:
        """The crawl of these seeds and this name."""
        if not start.seeds:
            raise WrongUse("There is nothing to crawl.", "Give at least one URL: inchworm crawl https://example.org/")
        seeds = run.seeds_of(start.seeds)
        key = run.seeds_key(seeds)
        crawl = self._workspace.find_by_seeds(start.seeds, start.name)
        if not start.allow_private and not (crawl and crawl.typed):
            _refuse_private(start.seeds)
        crawl = crawl or self._workspace.crawls.find_or_add(self._new(start, seeds), key, bool(start.name))
        refuse_other_seeds(crawl, key)
        return for_a_new_start(self._meant(crawl) if start.typed else crawl)

    def trust(self, word: str) -> None:
        """The user of this machine names a crawl, which is as good as typing its seeds: they may lie in a private
        network."""
        self._meant(self._workspace.find(word))

    def _meant(self, crawl: CrawlInfo) -> CrawlInfo:
        if not crawl.typed:
            self._workspace.crawls.change(crawl.crawl_id, typed=True)
        return dataclasses.replace(crawl, typed=True)

    def _new(self, start: Start, seeds: Sequence[FoundUrl]) -> CrawlInfo:
        name = start.name or run.default_name(seeds)
        typed = tuple(run.without_secrets(text) for text in start.seeds)
        return CrawlInfo(
            uuid.uuid4().hex[:10],
            name,
            typed,
            {},
            self._workspace.clock.now_ms(),
            dict(start.defaults),
            typed=start.typed,
        )

    async def sit(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner) -> Summary:
        """One session of the run that is planned, its pages indexed beside it and fields taken after it, if that is
        wanted."""
        given = {**self._workspace.base_settings(), **defaults_of(crawl), **crawl.settings, **start.given}
        if not start.given.keys().isdisjoint(("extract", "each")):
            refuse_fields(settings.texts(given, "extract"), str(given.get("each", "")))
        index = str(given.get("index") or "")
        if not given.get("extract"):
            return await self._indexed(crawl, start, hooks, planned, index)
        from inchworm.app import fields  # whoever takes none does not wait for it

        rules = fields.rules_of(self._workspace, crawl, start.given)
        summary = await self._indexed(crawl, start, hooks, planned, index)
        return await fields.after_session(self._workspace, crawl, rules, summary, hooks) if rules else summary

    async def _indexed(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner, index: str) -> Summary:
        if not index:
            return await self._session(crawl, start, hooks, planned)
        from inchworm.app.act.content.index import indexed  # whoever does not index does not wait for it

        async with indexed(self._workspace, crawl, index) as report:
            summary = await self._session(crawl, start, hooks, planned)
            report.hurry = bool(summary.signal)
        note = " ".join(filter(None, (summary.note, report.note)))
        return dataclasses.replace(summary, indexed=report.indexed, note=note)

    async def _session(self, crawl: CrawlInfo, start: Start, hooks: Hooks, planned: Planner) -> Summary:
        """One session. Nothing is changed before all that was typed is known to be right."""
        # Whoever only looks does not wait for curl and parsers.
        from inchworm.engine.fetching import fetching
        from inchworm.engine.opening import SessionStart
        from inchworm.engine.work import work

        remembered = {**crawl.settings, **start.given}
        with self._workspace.owning(crawl, self._values(crawl, remembered).stale, start.fresh) as owner:
            plan = planned(owner, crawl, start)
            values = self._values(crawl, remembered, plan)
            async with fetching(crawl.seeds if crawl.typed else (), values, run.credentials(start.seeds)) as fetcher:
                # From here on nothing that the user typed can be wrong any more.
                self._keep_what_made_it(owner, crawl, start)
                self._note_crash(owner)
                current = plan.begin(values)
                if not crawl.started:
                    self._workspace.crawls.change(crawl.crawl_id, started=True)
                if not current.beside:  # What a branch is tried with is not meant for the runs of the line.
                    self._workspace.crawls.change(crawl.crawl_id, settings=presentable(remembered))
                session_part = json.dumps(presentable(settings.to_json(values, SESSION)))
                number = owner.store.sessions.start(owner.token, current, session_part, self._workspace.clock.now_ms())
                if hooks.started:
                    hooks.started(crawl, current, number)
                requests, clock = self._workspace.requests, self._workspace.clock
                session = SessionStart(crawl, owner, current, number, values, requests, clock)
                summary = await work(session, fetcher, hooks)
                note = " ".join(filter(None, (summary.note, _about_lost(owner.lost_files))))
                return dataclasses.replace(summary, note=note)

    def _values(self, crawl: CrawlInfo, named: NamedSettings, plan: Plan | None = None) -> Settings:
        """What a session goes by, with what was named for it; the run that is planned has settings of its own."""
        values = settings.make(
            {**self._workspace.base_settings(), **self._plans.unmasked({**defaults_of(crawl), **named})}
        )
        return settings.changed(values, plan.settings) if plan is not None else values

    def _keep_what_made_it(self, owner: CrawlOwner, crawl: CrawlInfo, start: Start) -> None:
        """What the first start of a crawl names belongs to the crawl, until somebody changes it there. Some of it does
        whenever it is named."""
        is_first = owner.store.runs.get() is None
        kept = {
            name: value
            for name, value in start.given.items()
            if settings.belongs_to_crawl(name) and (is_first or settings.is_kept(name))
        }
        if kept:
            typed = {name: settings.check(name, value) for name, value in kept.items()}
            self._workspace.crawls.change(crawl.crawl_id, defaults={**crawl.defaults, **presentable(typed)})

    def _note_crash(self, owner: CrawlOwner) -> None:
        """When the last session crashed: there it stood, should anybody want to know or come back."""
        last = owner.store.runs.get()
        if last is not None and run.is_open(last) and owner.store.sessions.is_unfinished(last.run_id):
            owner.checkpoint(CheckpointType.ERROR, self._workspace.clock.now_ms())


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
