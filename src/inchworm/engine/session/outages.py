"""Hosts that have answered in this crawl and cannot be reached now, and how it is noticed that they are back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from inchworm.engine.session.ending import SessionEnding
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.visit import PUSHING_BACK, Tools, check_host
from inchworm.model import DownHost, FinishedVisit, Unanswered
from inchworm.rules.web import outage
from inchworm.rules.web.url import host_of, origin_of


class Outages:
    """Hosts, by origin, that have answered in this crawl and cannot be reached now. `patience`: for how many seconds
    they are waited for before their URLs fail."""

    def __init__(self, answered: Iterable[str], down: Iterable[DownHost], patience: float) -> None:
        self._answered = set(answered)
        self._patience = patience
        self._in_vain: Counter[str] = Counter()
        self._down = {one.origin: one for one in down}
        self._checks: Counter[str] = Counter()
        self._check_at = dict.fromkeys(self._down, float("-inf"))
        self._given_up: set[str] = set()
        self._news: dict[str, DownHost | None] = {}

    def __bool__(self) -> bool:
        return bool(self._down)

    def has_answered(self, origin: str) -> bool:
        return origin in self._answered

    def is_down(self, origin: str) -> bool:
        """Whether nothing is to be asked there until it answers again."""
        return origin in self._down and origin not in self._given_up

    def given_up(self, origin: str) -> DownHost | None:
        """What is wrong with a host whose URLs fail."""
        return self._down[origin] if origin in self._given_up else None

    def all(self) -> tuple[DownHost, ...]:
        return tuple(self._down.values())

    def unanswered(self, origin: str, kind: str, message: str, now: float, now_ms: int) -> None:
        """A request could not be sent there. After a few of them in a row the host is down."""
        self._in_vain[origin] += 1
        if origin not in self._down and self._in_vain[origin] >= outage.DOWN_AFTER:
            self._check_at[origin] = now + outage.pause(0)
            self._checks[origin] = 1
            self._note(DownHost(origin, kind, message, now_ms, 1))

    def answered(self, origin: str) -> bool:
        """A host answered. True: it was down until now."""
        self._answered.add(origin)
        if origin in self._in_vain:
            del self._in_vain[origin]
        if self._down.pop(origin, None) is None:
            return False
        self._given_up.discard(origin)
        del self._check_at[origin], self._checks[origin]
        self._news[origin] = None
        return True

    def due(self, now: float) -> list[str]:
        """Hosts to ask now whether they are up: each is named once, until it is known what came of it."""
        found = [origin for origin, at in self._check_at.items() if at <= now]
        self._check_at.update(dict.fromkeys(found, float("inf")))
        return found

    def next_check(self) -> float:
        return min(self._check_at.values(), default=float("inf"))

    def still_down(self, origin: str, now: float, now_ms: int) -> None:
        """It is down still. Once in a session that counts, and in the end the host is given up."""
        down = self._down[origin]
        if not self._checks[origin]:
            down = down._replace(sessions=down.sessions + 1)
            self._note(down)
        self._check_at[origin] = now + outage.pause(self._checks[origin])
        self._checks[origin] += 1
        if outage.is_hopeless(down, now_ms, self._patience):
            self._given_up.add(origin)

    def take_news(self) -> tuple[list[DownHost], list[str]]:
        """What is to be stored: the hosts that are down, and those that are up again."""
        news, self._news = self._news, {}
        return [one for one in news.values() if one], [origin for origin, one in news.items() if one is None]

    def has_news(self) -> bool:
        return bool(self._news)

    def _note(self, down: DownHost) -> None:
        self._down[down.origin] = self._news[down.origin] = down


class HostWatch:
    """Notices from answers how fast a host is, whether it is asked too much, and whether it is down; asks hosts that
    are down for their robots.txt, with growing pauses. Whatever they answer, they are up again.

    `changed` is called when a host may be up again, or given up.
    """

    def __init__(
        self, outages: Outages, hosts: Hosts, tools: Tools, ending: SessionEnding, changed: Callable[[], None]
    ) -> None:
        self._outages = outages
        self._hosts = hosts
        self._tools = tools
        self._clock = tools.clock
        self._ending = ending
        self._changed = changed
        self.tasks: set[asyncio.Task[None]] = set()

    def note_answer(self, visit: FinishedVisit) -> None:
        """A request came to something. Noticed before anything else is sent there."""
        url, now = visit.entry.request_url, self._clock.monotonic()
        if visit.status and self._outages.answered(origin_of(url)):
            self._changed()
        if visit.status in PUSHING_BACK or visit.failure == "blocked":
            self._hosts.pushed_back(url, now - visit.millis / 1000, now)
            self._hosts.keep_quiet(host_of(url), now + visit.quiet_ms / 1000)
        elif visit.requested:
            self._hosts.answered(url, visit.millis / 1000)

    def note_unanswered(self, turn: Unanswered) -> None:
        """A request could not be sent."""
        origin, now = origin_of(turn.entry.request_url), self._clock.monotonic()
        self._outages.unanswered(origin, turn.kind, turn.message, now, self._clock.now_ms())

    def check_due(self) -> None:
        """Start to ask every host that is down and for which it is time."""
        now = self._clock.monotonic()
        for origin in self._outages.due(now):
            self._hosts.started(f"{origin}/", now)
            task = asyncio.get_running_loop().create_task(self._check(origin))
            self.tasks.add(task)
            task.add_done_callback(self._checked)

    async def _check(self, origin: str) -> None:
        if await check_host(origin, self._tools) is None:
            self._outages.answered(origin)
        else:
            self._outages.still_down(origin, self._clock.monotonic(), self._clock.now_ms())

    def _checked(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ending.fail(error, repr(error))
        self._changed()

    def cancel(self) -> None:
        """Break off what is under way."""
        for task in self.tasks:
            task.cancel()
