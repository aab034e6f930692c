"""Working: one session of a crawl in this process, as it was planned."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from inchworm import settings
from inchworm.app.act.choice import RunChooser
from inchworm.app.act.plan import Plan
from inchworm.app.refuse import refuse_fields
from inchworm.app.workspace import Workspace, presentable
from inchworm.engine import run
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.own.owner import CrawlOwner
from inchworm.job import Verb
from inchworm.model import CheckpointType, RunInfo
from inchworm.settings import SESSION


class SessionWorker:
    """Works on planned sessions in this process."""

    def __init__(self, workspace: Workspace, chooser: RunChooser) -> None:
        self._workspace = workspace
        self._chooser = chooser

    async def work(self, plan: Plan, hooks: Hooks | None = None) -> Summary:
        """One session of the run that is chosen, its pages indexed beside it and fields taken after it, if that is
        wanted."""
        hooks = hooks or Hooks()
        named = {**self._workspace.base_settings(), **self._chooser.named(plan)}
        if not plan.given.keys().isdisjoint(("extract", "each")):
            refuse_fields(settings.texts(named, "extract"), str(named.get("each", "")))
        index = str(named.get("index") or "")
        if not named.get("extract"):
            return await self._indexed(plan, hooks, index)
        from inchworm.app import fields  # whoever takes none does not wait for it

        rules = fields.rules_of(self._workspace, plan.crawl, plan.given)
        summary = await self._indexed(plan, hooks, index)
        return await fields.after_session(self._workspace, plan.crawl, rules, summary, hooks) if rules else summary

    def go_back(self, plan: Plan) -> RunInfo:
        """Only what comes before a session, which the next one goes on with: the run that is open then."""
        with self._workspace.reading(plan.crawl):
            pass  # one that never started has nothing to go back to
        with self._workspace.owning(plan.crawl, self._chooser.values(plan).stale) as owner:
            choice = self._chooser.choose(plan, owner.store)
            values = self._chooser.values(plan, choice)
            self._note_crash(owner)
            return choice.begin(owner, values)

    async def _indexed(self, plan: Plan, hooks: Hooks, index: str) -> Summary:
        if not index:
            return await self._session(plan, hooks)
        from inchworm.app.act.content.index import indexed  # whoever does not index does not wait for it

        async with indexed(self._workspace, plan.crawl, index) as report:
            summary = await self._session(plan, hooks)
            report.hurry = bool(summary.signal)
        note = " ".join(filter(None, (summary.note, report.note)))
        return dataclasses.replace(summary, indexed=report.indexed, note=note)

    async def _session(self, plan: Plan, hooks: Hooks) -> Summary:
        """One session. Nothing is changed before all that was typed is known to be right."""
        # Whoever only looks does not wait for curl and parsers.
        from inchworm.engine.fetching import fetching
        from inchworm.engine.opening import SessionStart
        from inchworm.engine.work import work

        crawl, is_anew = plan.crawl, plan.task.verb == Verb.FRESH
        with self._workspace.owning(crawl, self._chooser.values(plan).stale, is_anew) as owner:
            choice = self._chooser.choose(plan, owner.store)
            values = self._chooser.values(plan, choice)
            async with fetching(crawl.seeds if crawl.typed else (), values, run.credentials(plan.seeds)) as fetcher:
                # From here on nothing that the user typed can be wrong any more.
                self._keep_what_made_it(owner, plan)
                self._note_crash(owner)
                current = choice.begin(owner, values)
                if not crawl.started:
                    self._workspace.crawls.change(crawl.crawl_id, started=True)
                if not current.beside:  # What a branch is tried with is not meant for the runs of the line.
                    remembered = presentable({**crawl.settings, **plan.given})
                    self._workspace.crawls.change(crawl.crawl_id, settings=remembered)
                session_part = json.dumps(presentable(settings.to_json(values, SESSION)))
                number = owner.store.sessions.start(owner.token, current, session_part, self._workspace.clock.now_ms())
                if hooks.started:
                    hooks.started(crawl, current, number)
                requests, clock = self._workspace.requests, self._workspace.clock
                session = SessionStart(crawl, owner, current, number, values, requests, clock)
                summary = await work(session, fetcher, hooks)
                note = " ".join(filter(None, (summary.note, _about_lost(owner.lost_files))))
                return dataclasses.replace(summary, note=note)

    def _keep_what_made_it(self, owner: CrawlOwner, plan: Plan) -> None:
        """What the first start of a crawl names belongs to the crawl, until somebody changes it there. Some of it does
        whenever it is named."""
        is_first = owner.store.runs.get() is None
        kept = {
            name: value
            for name, value in plan.given.items()
            if settings.belongs_to_crawl(name) and (is_first or settings.is_kept(name))
        }
        if kept:
            typed = {name: settings.check(name, value) for name, value in kept.items()}
            defaults = {**plan.crawl.defaults, **presentable(typed)}
            self._workspace.crawls.change(plan.crawl.crawl_id, defaults=defaults)

    def _note_crash(self, owner: CrawlOwner) -> None:
        """When the last session crashed: there it stood, should anybody want to know or come back."""
        last = owner.store.runs.get()
        if last is not None and run.is_open(last) and owner.store.sessions.is_unfinished(last.run_id):
            owner.checkpoint(CheckpointType.ERROR, self._workspace.clock.now_ms())


def _about_lost(files: Sequence[str]) -> str:
    """What to say when parts of the archive are not there any more. The record is, so the crawl goes on."""
    if not files:
        return ""
    count = "1 file of the archive is" if len(files) == 1 else f"{len(files):,} files of the archive are"
    return (
        f"ATTENTION: {count} missing or cut off ({files[0]}), and the bodies with them. `inchworm doctor` names the"
        " pages. Put them back from a backup, or start again from the seeds with --fresh."
    )
