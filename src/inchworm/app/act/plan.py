"""Plans: which session somebody wants. Each act that starts one is planned here, whoever asks for it; `work` has a plan
worked on in this process, `jobs.hand_over` leaves it to the service."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inchworm import settings
from inchworm.app.refuse import refuse_aimless, refuse_odd_name, refuse_private, refuse_secrets, refuse_unusable
from inchworm.app.workspace import Workspace, refuse_other_seeds
from inchworm.engine import run
from inchworm.errors import WrongUse
from inchworm.job import Task, Verb
from inchworm.model import CrawlInfo, FoundUrl
from inchworm.rules.web import url as urls
from inchworm.settings import NamedSettings

if TYPE_CHECKING:
    from inchworm.app.read.checkpoints import Back


@dataclass(frozen=True, slots=True)
class Hints:
    """How to put right what is refused, where not in the words of the command line."""

    query: str = "Add --query TEXT."
    frozen: str = ""
    next_run: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for a session, and what follows from that."""

    typed: bool = True
    """The user of this machine, who may crawl what he types; others may not send us into a private network."""

    allow_private: bool = True
    """Otherwise seeds there are refused at once, unless the user of this machine has typed them before."""

    on_line: bool = False
    """Means the runs that build on each other, and never a branch that was left open."""

    is_repeating: bool = False
    """Names a mode for the runs that are to come, and not for one that is open."""

    ends_open_run: bool = True
    """Has the next run begin though the last one is open, which then ends as it is."""

    hints: Hints = Hints()


TERMINAL = Caller()
"""The user of this machine, by the command line or the library."""

SCHEDULE = Caller(typed=False, on_line=True, is_repeating=True)
"""What repeats a crawl, or carries out what was asked for before."""


def over_http(allow_private: bool) -> Caller:
    """Somebody who asks the service."""
    hints = Hints(
        "Send a `query`.",
        'Leave it out to go on, or send "fresh": true to start over with it.',
        "Start it: that begins its next run.",
    )
    return Caller(typed=False, allow_private=allow_private, on_line=True, ends_open_run=False, hints=hints)


@dataclass(frozen=True, slots=True)
class Start:
    """What somebody wants crawled. `given` holds only the settings that were named explicitly."""

    seeds: tuple[str, ...]
    name: str = ""
    given: NamedSettings = dataclasses.field(default_factory=dict)
    fresh: bool = False
    mode: str = ""
    caller: Caller = TERMINAL
    defaults: NamedSettings = dataclasses.field(default_factory=dict)
    """What holds for every session, should the crawl be new."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A session of a crawl: which run it is to work on, and with what. `crawl` has the settings that its last session
    went by, as far as they hold for this one; `seeds` are as they were typed, should they bear passwords."""

    crawl: CrawlInfo
    task: Task
    caller: Caller = TERMINAL
    seeds: tuple[str, ...] = ()

    @property
    def given(self) -> NamedSettings:
        return self.task.settings


class Planner:
    """Plans sessions. All that can be known to be wrong without looking at the runs of the crawl is refused here."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def crawl(self, start: Start) -> Plan:
        """Crawl these seeds: go on with the run that is open, or begin the next one."""
        if not start.caller.typed:
            if start.name:
                refuse_odd_name(start.name)
            refuse_secrets(start.seeds)
        values = settings.make({**self._workspace.base_settings(), **start.given})
        refuse_unusable(values)
        refuse_aimless(values, start.caller.hints.query)
        verb = Verb.FRESH if start.fresh else Verb.CRAWL
        crawl = self.find_or_make(start)
        return Plan(crawl, Task(verb, start.mode, settings=start.given), start.caller, start.seeds)

    def resume(
        self, word: str, given: NamedSettings | None = None, caller: Caller = TERMINAL, seeds: tuple[str, ...] = ()
    ) -> Plan:
        """Go on with the run of a crawl that is paused, and no other."""
        return self._of_crawl(word, Task(Verb.RESUME, settings=given or {}), caller, seeds)

    def recrawl(
        self,
        word: str,
        mode: str = "",
        given: NamedSettings | None = None,
        caller: Caller = TERMINAL,
        seeds: tuple[str, ...] = (),
    ) -> Plan:
        """Begin the next run of a crawl, and go on with none that is open."""
        plan = self._of_crawl(word, Task(Verb.RECRAWL, mode, settings=given or {}), caller, seeds)
        return dataclasses.replace(plan, crawl=for_a_new_start(plan.crawl))

    def continue_from(
        self, word: str, back: Back, given: NamedSettings | None = None, caller: Caller = TERMINAL
    ) -> Plan:
        """Continue a crawl from a checkpoint: its run goes back to it, or a new one branches off there. Without a
        checkpoint the run goes on where it is."""
        checkpoint = None if back.checkpoint is None else str(back.checkpoint)
        verb = Verb.RESUME if checkpoint is None and not back.as_new_run else Verb.CONTINUE
        task = Task(verb, "", checkpoint, back.as_new_run, back.validate, given or {})
        return self._of_crawl(word, task, caller, ())

    def _of_crawl(self, word: str, task: Task, caller: Caller, seeds: tuple[str, ...]) -> Plan:
        crawl = self._workspace.find(word)
        return Plan(self.trusted(crawl) if caller.typed else crawl, task, caller, seeds or (word,))

    def find_or_make(self, start: Start) -> CrawlInfo:
        """The crawl of these seeds and this name."""
        if not start.seeds:
            raise WrongUse("There is nothing to crawl.", "Give at least one URL: inchworm crawl https://example.org/")
        seeds = run.seeds_of(start.seeds)
        key = run.seeds_key(seeds)
        crawl = self._workspace.find_by_seeds(start.seeds, start.name)
        if not start.caller.allow_private and not (crawl and crawl.typed):
            _refuse_private_seeds(start.seeds)
        crawl = crawl or self._workspace.crawls.find_or_add(self._new(start, seeds), key, bool(start.name))
        refuse_other_seeds(crawl, key)
        return for_a_new_start(self.trusted(crawl) if start.caller.typed else crawl)

    def trusted(self, crawl: CrawlInfo) -> CrawlInfo:
        """The user of this machine names a crawl, which is as good as typing its seeds: they may lie in a private
        network."""
        if not crawl.typed:
            self._workspace.crawls.change(crawl.crawl_id, typed=True)
        return dataclasses.replace(crawl, typed=True)

    def _new(self, start: Start, seeds: Sequence[FoundUrl]) -> CrawlInfo:
        return CrawlInfo(
            uuid.uuid4().hex[:10],
            start.name or run.default_name(seeds),
            tuple(run.without_secrets(text) for text in start.seeds),
            {},
            self._workspace.clock.now_ms(),
            dict(start.defaults),
            typed=start.caller.typed,
        )


def for_a_new_start(crawl: CrawlInfo) -> CrawlInfo:
    """What was set for an earlier session is not meant for this one; what was set for a run stays."""
    run_part = {name: value for name, value in crawl.settings.items() if settings.belongs_to_run(name)}
    return dataclasses.replace(crawl, settings=run_part)


def _refuse_private_seeds(seeds: Sequence[str]) -> None:
    for text in seeds:
        for form in urls.seed(text) or ():
            refuse_private(form, run.shown(text))
