"""What we know of each host: what its robots.txt allows, and when it may be asked again."""

from __future__ import annotations

from collections.abc import Iterable

from inchworm.model import Reason
from inchworm.rules import politeness, robots
from inchworm.rules.url import host_of, origin_of
from inchworm.settings import Settings


class Hosts:
    """The hosts of one session. Robots verdicts come from committed rows only."""

    def __init__(self, settings: Settings, verdicts: Iterable[tuple[str, str, bytes | None]]) -> None:
        self._settings = settings
        self._rules: dict[str, robots.Robots | None] = {}
        self._next: dict[str, float] = {}
        self.learn(verdicts)

    def learn(self, verdicts: Iterable[tuple[str, str, bytes | None]]) -> None:
        """Take in committed robots.txt files: origin, verdict, rules."""
        for origin, verdict, rules in verdicts:
            self._rules[origin] = None if verdict == "disallow" else robots.parse(rules or b"")

    def is_known(self, url: str) -> bool:
        """Whether the robots.txt for this URL was read."""
        return not self._settings.robots or origin_of(url) in self._rules

    def refusal(self, url: str) -> Reason | None:
        """Why robots.txt forbids this URL, if it does."""
        if not self._settings.robots:
            return None
        rules = self._rules[origin_of(url)]
        if rules is None:
            return Reason.ROBOTS_UNAVAILABLE
        return None if rules.allows(self._settings.user_agent, url) else Reason.ROBOTS

    def turn(self, url: str) -> float:
        """The monotonic time from which this URL's host may be asked."""
        return self._next.get(host_of(url), 0.0)

    def started(self, url: str, now: float) -> None:
        """A request to this host starts now."""
        self._next[host_of(url)] = now + self._delay(url)

    def rest(self, now: float) -> None:
        """Hosts that an earlier session may have asked a moment ago get their full pause first."""
        for origin in self._rules:
            self.started(origin + "/", now)

    def _delay(self, url: str) -> float:
        rules = self._rules.get(origin_of(url))
        wanted = rules.delay(self._settings.user_agent) if rules else None
        return politeness.delay(self._settings.delay, wanted, self._settings.max_delay)
