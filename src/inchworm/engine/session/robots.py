"""What the robots.txt of each origin allows."""

from __future__ import annotations

from collections.abc import Iterable

from inchworm.rules.web import robots
from inchworm.rules.web.url import origin_of
from inchworm.settings import Settings


class RobotsVerdicts:
    """What the robots.txt of each origin says. They come from committed rows only."""

    def __init__(self, settings: Settings, verdicts: Iterable[tuple[str, str, bytes | None]]) -> None:
        self._is_obeyed, self._user_agent = settings.robots, settings.user_agent
        self._rules: dict[str, robots.Robots] = {}
        self._trouble: dict[str, str] = {}
        self._asked_again: set[str] = set()
        self._fresh_until: dict[str, float] = {}
        self.learn(verdicts)

    def learn(self, verdicts: Iterable[tuple[str, str, bytes | None]], fresh_until: float = float("inf")) -> None:
        """Take in committed robots.txt files: origin, verdict, and the rules or what went wrong. They hold until a
        monotonic time."""
        for origin, verdict, said in verdicts:
            self._rules.pop(origin, None)
            self._trouble.pop(origin, None)
            self._asked_again.discard(origin)
            if verdict == "unreadable":
                self._trouble[origin] = (said or b"").decode("utf-8", "replace")
            elif verdict != "forgotten":
                self._rules[origin] = robots.parse(said or b"")
            if verdict == "refreshing":
                self._asked_again.add(origin)
            self._fresh_until[origin] = fresh_until

    def trust_until(self, origin: str, moment: float) -> None:
        """What this origin's robots.txt said holds until a monotonic time."""
        self._fresh_until[origin] = moment

    def is_outdated(self, url: str, now: float) -> bool:
        """Whether the robots.txt for this URL was read, but too long ago to go by it."""
        return self._is_obeyed and self._fresh_until.get(origin_of(url), now) < now

    def is_known(self, url: str) -> bool:
        """Whether the robots.txt for this URL was read."""
        origin = origin_of(url)
        if not self._is_obeyed:
            return True
        return origin in self._trouble or (origin in self._rules and origin not in self._asked_again)

    def trouble(self, url: str) -> str:
        """Why the robots.txt for this URL could not be read, if so; then nothing there may be asked for."""
        return self._trouble.get(origin_of(url), "") if self._is_obeyed else ""

    def allows(self, url: str) -> bool:
        """Whether a robots.txt that was read lets us ask for this URL."""
        if not self._is_obeyed:
            return True
        return self._rules[origin_of(url)].allows(self._user_agent, url)

    def may_ask(self, url: str) -> bool:
        """Whether the robots.txt for this URL was read and lets us ask for it."""
        return self.is_known(url) and not self.trouble(url) and self.allows(url)

    def delay(self, url: str) -> float | None:
        """How many seconds it wants between two requests, if it says so."""
        rules = self._rules.get(origin_of(url))
        return rules.delay(self._user_agent) if rules else None
