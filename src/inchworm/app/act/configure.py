"""Configuring: what holds for a crawl from session to session, and deleting it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from inchworm import settings
from inchworm.app.act.jobs.change import JobActs
from inchworm.app.act.plan import Caller, Planner, Start
from inchworm.app.read.crawls import Continuation, continuation
from inchworm.app.read.executions import ExecutionReads
from inchworm.app.refuse import refuse_aimless, refuse_odd_name, refuse_secrets, refuse_unusable
from inchworm.app.workspace import Workspace, presentable
from inchworm.errors import Broken, NotNow, WrongUse
from inchworm.model import CrawlInfo
from inchworm.rules.words.json_form import FLAT
from inchworm.settings import SettingValue
from inchworm.store.home.crawls import CrawlChange


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is to hold for a crawl. None: as it is. Of `defaults`, a setting that is None is taken away."""

    name: str | None = None
    defaults: Mapping[str, SettingValue | None] | None = None
    incremental: bool | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class ConfiguredCrawl:
    """The crawl of a URL, and how it goes on."""

    crawl_id: str
    name: str
    url: str
    goes_on: Continuation = field(metadata=FLAT)


class Configurer:
    """Configures and deletes crawls."""

    def __init__(self, workspace: Workspace, executions: ExecutionReads, planner: Planner, schedule: JobActs) -> None:
        self._workspace = workspace
        self._executions = executions
        self._planner = planner
        self._schedule = schedule

    # Configuring

    def for_url(self, url: str, incremental: bool | None, budget: int | None, caller: Caller) -> ConfiguredCrawl:
        """Set how the crawl of a URL goes on from session to session, and make it if there is none."""
        refuse_secrets((url,))
        if budget is not None:
            settings.check("budget", budget)
        defaults = None if budget is None else {"budget": budget or None}
        crawl = self._planner.find_or_make(Start((url,), caller=caller))
        crawl = self.change(crawl.crawl_id, Configuration(defaults=defaults, incremental=incremental))
        return ConfiguredCrawl(crawl.crawl_id, crawl.name, crawl.seeds[0], continuation(crawl))

    def change(self, crawl_id: str, wanted: Configuration) -> CrawlInfo:
        """Change what holds for a crawl. Nothing is changed when anything is wrong."""
        crawl = self._workspace.find(crawl_id)
        values: CrawlChange = {}
        if wanted.name is not None and wanted.name != crawl.name:
            self._refuse_taken(wanted.name)
            values["name"] = wanted.name
        if wanted.defaults is not None:
            values |= self._with_defaults(crawl, wanted.defaults)
        if wanted.incremental is not None:
            values["incremental"] = wanted.incremental
        self._workspace.crawls.change(crawl.crawl_id, **values)
        if wanted.enabled is not None:
            self._schedule.set_enabled(crawl.crawl_id, wanted.enabled)
        return self._workspace.find(crawl.crawl_id)

    def _with_defaults(self, crawl: CrawlInfo, changes: Mapping[str, SettingValue | None]) -> CrawlChange:
        wanted = {
            name: settings.plain(settings.check(name, value)) for name, value in changes.items() if value is not None
        }
        if presentable(wanted) != wanted:
            raise WrongUse(
                "A password is not kept for every session.",
                "Name it at each start, or put it into config.toml or the environment.",
            )
        defaults = {name: value for name, value in crawl.defaults.items() if name not in changes} | wanted
        # What an earlier start named would win over it.
        remembered = {name: value for name, value in crawl.settings.items() if name not in changes}
        values = settings.make({**self._workspace.base_settings(), **defaults, **remembered})
        refuse_unusable(values)
        refuse_aimless(values, "Send a `query`.")
        return {"defaults": defaults, "settings": remembered}

    def _refuse_taken(self, name: str) -> None:
        refuse_odd_name(name)
        if (other := self._workspace.crawls.find(name)) is not None:
            raise NotNow(f"There is another crawl called {name!r}: {other.crawl_id}.", "Give it another name.")

    def remove(self, crawl: CrawlInfo) -> None:
        """Delete a crawl with its jobs, unless somebody works on it."""
        self._executions.let_end(crawl)
        if self._workspace.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} is being worked on.", "Cancel it first.")
        self.delete(crawl.crawl_id)

    def delete(self, word: str) -> None:
        """Remove a crawl: its record, its archive, everything."""
        crawl = self._workspace.find(word)
        folder = self._workspace.place(crawl).folder
        if not folder.exists():
            self._workspace.crawls.remove(crawl.crawl_id)
            return
        try:
            with self._workspace.owning(crawl):
                self._erase(crawl)
        except Broken:
            # What cannot be read cannot be worked on either, and has to go all the same.
            if self._workspace.is_running(crawl):
                raise
            self._erase(crawl)

    def _erase(self, crawl: CrawlInfo) -> None:
        self._workspace.crawls.remove(crawl.crawl_id)
        shutil.rmtree(self._workspace.place(crawl).folder, ignore_errors=True)
