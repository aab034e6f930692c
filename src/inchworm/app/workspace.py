"""Where every part of `app` works: the home, its crawls, who works on them, and asking the owner of one."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inchworm import settings
from inchworm.engine import run
from inchworm.engine.clock import SystemClock
from inchworm.engine.own.owner import CrawlOwner
from inchworm.errors import Broken, NotNow, Unknown, WrongUse
from inchworm.model import CrawlInfo, Json, RunInfo
from inchworm.ports import Clock
from inchworm.rules.web import proxies
from inchworm.rules.web import url as urls
from inchworm.settings import NamedSettings, Settings, SettingValue
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.home import Home
from inchworm.store.home.inbox import OwnerRequests

ANSWER_SECONDS = 30.0

ENDING = ("pause", "cancel")
"""What the owner has done only when its session is over."""


def home_folder() -> Path:
    """Where crawls are kept: INCHWORM_HOME, or ~/.inchworm."""
    return Path(os.environ.get("INCHWORM_HOME") or Path.home() / ".inchworm")


def base_settings_of(folder: Path) -> NamedSettings:
    """What file and environment say, below everything that the user names."""
    return {**settings.from_file(folder / "config.toml"), **settings.from_environment(os.environ)}


class Workspace:
    """One home, and what every part of `app` needs to find its way in it."""

    def __init__(self, folder: Path | None = None, clock: Clock | None = None) -> None:
        self.folder = folder or home_folder()
        self.clock: Clock = clock or SystemClock()
        self.home = Home(self.folder)
        self.crawls = KnownCrawls(self.home)
        self.requests = OwnerRequests(self.home)

    def close(self) -> None:
        self.home.close()

    def base_settings(self) -> NamedSettings:
        """What file and environment say, below everything that the user names."""
        return base_settings_of(self.folder)

    def service_settings(self) -> Settings:
        """What file and environment say of a service, and of what runs in it."""
        return settings.make(self.base_settings())

    def find(self, word: str) -> CrawlInfo:
        """A crawl by name, id, or seed URL."""
        forms = urls.seed(word)
        keys = [key for form in forms or () if (key := urls.canonicalize(form))]
        for key in keys or [""]:
            if crawl := self.crawls.find(word, key or None):
                return crawl
        matching = [crawl for crawl in self.crawls.all() if any(key in _seed_urls(crawl) for key in keys)]
        if len(matching) == 1:
            return matching[0]
        names = ", ".join(crawl.name for crawl in self.crawls.all()[:10]) or "none yet"
        raise Unknown(f"There is no crawl called {run.shown(word)!r}.", f"The crawls in {self.folder}: {names}.")

    def find_by_seeds(self, seeds: Sequence[str], name: str = "") -> CrawlInfo | None:
        """The crawl of this name, or else of exactly these seeds."""
        key = run.seeds_key(run.seeds_of(seeds))
        crawl = self.crawls.find(name) if name else self.crawls.find("", key)
        if crawl is not None:
            refuse_other_seeds(crawl, key)
        return crawl

    def is_running(self, crawl: CrawlInfo) -> bool:
        return self.place(crawl).is_worked_on()

    def last_written(self, crawl_id: str = "") -> tuple[int, ...]:
        """A mark of the home, and of one crawl in it, that stays the same as long as nothing happens there; none when
        something has just happened."""
        home = self.home.mark()
        crawl = self.crawls.find(crawl_id) if crawl_id else None
        if crawl is None:
            return home
        there = self.place(crawl).mark()
        return (*home, *there) if home and there else ()

    @contextlib.contextmanager
    def reading(self, crawl: CrawlInfo) -> Iterator[CrawlStore]:
        place = self.place(crawl)
        self._refuse_if_lost(crawl)
        if not place.has_started():
            raise NotNow(f"The crawl {crawl.name!r} has not started yet.", f"Start it: {command(crawl)}")
        store = place.open()
        try:
            yield store
        finally:
            store.close()

    def run_of(self, crawl: CrawlInfo, store: CrawlStore, number: int | None = None) -> RunInfo:
        """The run of this number, or the last one."""
        found = store.runs.get(number)
        if found is None:
            which = f"run {number}" if number is not None else "run"
            raise Unknown(f"The crawl {crawl.name!r} has no {which}.", "`inchworm status` shows its runs.")
        return found

    def _refuse_if_lost(self, crawl: CrawlInfo) -> None:
        """Somebody deleted the record of a crawl: nothing begins anew unless that is wanted."""
        place = self.place(crawl)
        if crawl.started and place.is_lost():
            path = place.path
            raise Broken(
                f"The record of {crawl.name!r} is gone: {path} is missing or empty, though it was crawled before.",
                f"Put {place.folder} back from a backup, or start again from the seeds: {command(crawl)} --fresh",
            )

    @contextlib.contextmanager
    def owning(
        self, crawl: CrawlInfo, stale_seconds: float | None = None, is_anew: bool = False
    ) -> Iterator[CrawlOwner]:
        """`stale_seconds`: how long an owner may be silent before it counts as gone, if not as long as in the whole
        home; `is_anew`: though its record may be gone."""
        if not is_anew:
            self._refuse_if_lost(crawl)
        stale = self.service_settings().stale if stale_seconds is None else stale_seconds
        owner = CrawlOwner(self.place(crawl), stale)
        try:
            yield owner
        finally:
            owner.close()

    def place(self, crawl: CrawlInfo) -> CrawlPlace:
        """Where a crawl lies."""
        return self.home.place(crawl.crawl_id)

    def ask(self, crawl: CrawlInfo, verb: str, argument: Mapping[str, Json]) -> str | None:
        """Ask the owner of a crawl's run for something, and wait for its answer; None when its session ended first."""
        inbox_id = self.requests.ask(crawl.crawl_id, verb, argument, self.clock.now_ms())
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline and self.is_running(crawl):
            if (answer := self.requests.answer_to(inbox_id)) is not None and verb not in ENDING:
                return answer
            time.sleep(0.1)
        self.requests.answer(inbox_id, "too late", self.clock.now_ms())
        if self.is_running(crawl):
            raise NotNow(
                f"The owner of {crawl.name!r} was asked to {verb} and has not done so in {ANSWER_SECONDS:.0f} seconds.",
                "It may be waiting for a slow server; look again with `inchworm status`.",
            )
        return None


def settings_of_run(current: RunInfo) -> NamedSettings:
    """The frozen settings of a run; those that this version does not know any more are left out."""
    return {name: value for name, value in current.settings.items() if name in settings.FIELDS}


def identity(current: RunInfo, url: str) -> str:
    """What a run calls a URL that somebody typed."""
    address = urls.canonicalizer(settings.texts(current.settings, "drop_params")).canonicalize(url)
    if address is None:
        raise WrongUse(f"{url!r} is not a web address.", "Give a full URL such as https://example.org/page.")
    return address


def presentable(values: NamedSettings) -> dict[str, SettingValue]:
    """Settings to be stored and shown: no proxy and no search server with its password."""
    shown = {name: settings.plain(value) for name, value in values.items()}
    for name in ("proxies", "allowed_proxies", "allowed_indexes"):
        if name in values:
            shown[name] = [proxies.masked(one) for one in settings.texts(values, name)]
    if "index" in values:
        shown["index"] = proxies.masked(str(values["index"]))
    return shown


def defaults_of(crawl: CrawlInfo) -> NamedSettings:
    """What holds for every session of a crawl. A budget is for those that go on where the last one stopped."""
    return {name: value for name, value in crawl.defaults.items() if name != "budget" or crawl.incremental}


def command(crawl: CrawlInfo) -> str:
    """The command that works on a crawl, to be copied."""
    name = [] if crawl.name == run.default_name(run.seeds_of(crawl.seeds)) else ["--name", crawl.name]
    return shlex.join(["inchworm", "crawl", *crawl.seeds, *name])


def refuse_other_seeds(crawl: CrawlInfo, key: str) -> None:
    """A name stands for one set of seeds."""
    if run.seeds_key(run.seeds_of(crawl.seeds)) != key:
        raise WrongUse(
            f"The crawl {crawl.name!r} has other seeds: {', '.join(crawl.seeds)}.", "Use its seeds, or another --name."
        )


def _seed_urls(crawl: CrawlInfo) -> set[str]:
    return {seed.url for seed in run.seeds_of(crawl.seeds)}
