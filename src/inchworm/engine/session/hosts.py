"""When each host may be asked again."""

from __future__ import annotations

from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.ports import Clock, HostFacts
from inchworm.rules.web import politeness
from inchworm.rules.web.url import host_of
from inchworm.settings import Settings

ROBOTS_SECONDS = 86_400.0
"""How long a robots.txt holds before it is asked for again."""


class Hosts:
    """When each host may be asked again. `robots`: what may be asked there."""

    def __init__(self, settings: Settings, verdicts: RobotsVerdicts) -> None:
        self.robots = verdicts
        self._settings = settings
        self._next: dict[str, float] = {}
        self._quiet: dict[str, float] = {}
        self._paces: dict[str, politeness.Pace] = {}
        self._asked_before = float("-inf")

    def take_turn(self, url: str, now: float) -> float:
        """In how many seconds this URL's host may be asked. Whoever asks this has that turn."""
        turn = max(now, self.turn(url))
        self.started(url, turn)
        return turn - now

    def turn(self, url: str) -> float:
        """The monotonic time from which this URL's host may be asked."""
        host = host_of(url)
        turn = self._next[host] if host in self._next else self._asked_before + self._delay(url)
        return max(turn, self._quiet[host]) if host in self._quiet else turn

    def started(self, url: str, now: float) -> None:
        """A request to this host starts now."""
        self._next[host_of(url)] = now + self._delay(url)

    def answered(self, url: str, seconds: float) -> None:
        """A request to this host was answered in this time."""
        host = host_of(url)
        self._paces[host] = politeness.answered(self._paces.get(host, politeness.Pace()), seconds)

    def pushed_back(self, url: str, sent_at: float, now: float) -> None:
        """This host answered a request of that time that it is asked too much."""
        host = host_of(url)
        self._paces[host] = politeness.pushed_back(self._paces.get(host, politeness.Pace()), sent_at, now)

    def keep_quiet(self, host: str, until: float) -> None:
        """This host is left alone until a monotonic time."""
        self._quiet[host] = max(until, self._quiet.get(host, until))

    def rest_from(self, moment: float) -> None:
        """An earlier session may have asked any host until this moment; its pause counts from there."""
        self._asked_before = moment

    def _delay(self, url: str) -> float:
        wanted = self.robots.delay(url)
        pace = self._paces.get(host_of(url))
        extra = politeness.extra_delay(pace) if pace else 0.0
        return politeness.delay(self._settings.delay, wanted, self._settings.max_delay) + extra


def known_hosts(facts: HostFacts, run_id: int, settings: Settings, clock: Clock) -> Hosts:
    """The hosts as earlier sessions of a run have left them."""
    hosts = Hosts(settings, RobotsVerdicts(settings, facts.robots(run_id)))
    now, now_ms = clock.monotonic(), clock.now_ms()
    for host, until_ms, wait_ms in facts.quiet():
        # Never longer than they asked for, whatever the clock says.
        hosts.keep_quiet(host, now + max(0, min(until_ms - now_ms, wait_ms)) / 1000)
    for origin, at_ms in facts.robots_times(run_id):
        hosts.robots.trust_until(origin, now + ROBOTS_SECONDS - max(0, now_ms - at_ms) / 1000)
    return hosts
