"""What a commit learns on the way: of hosts, of cookies, of servers that say what is not so."""

from __future__ import annotations

from collections.abc import Sequence

from inchworm.engine.ledger.draft.ids import Ids
from inchworm.engine.ledger.draft.steps import Steps
from inchworm.model import Cookie, DownHost, FinishedVisit, Probe, Spot
from inchworm.ports import Commit, Store
from inchworm.rules.web import cookies


class Learned:
    """Knowledge that later requests and later runs go by."""

    def __init__(self, store: Store, changes: Commit, steps: Steps, ids: Ids) -> None:
        self._changes = changes
        self._steps = steps
        self._ids = ids
        self._answered = set(store.hosts.answered())
        self._jar = cookies.Jar(store.hosts.cookies(changes.run_id))
        self._robots: list[tuple[str, str, bytes | None]] = []
        self._cookies: list[Cookie] = []

    def begin(self) -> None:
        """A new commit."""
        self._robots.clear()
        self._cookies.clear()

    def robots(self, origin: str, verdict: str, rules: bytes | None) -> None:
        self._changes.robots.append((origin, self._steps.seq, verdict, rules))
        self._robots.append((origin, verdict, rules))

    def cookies(self, visit: FinishedVisit) -> None:
        """The cookies that an answer set, as far as its server may set them."""
        address = visit.record.url if visit.record else visit.entry.request_url
        for cookie in visit.cookies:
            if self._jar.accepts(cookie, address) and self._jar.put(cookie):
                self._changes.cookies.append((self._steps.seq, len(self._changes.cookies), cookie))
                self._cookies.append(cookie)

    def answered(self, origin: str) -> None:
        """A host that has answered once may be down later; one that never did is not there."""
        if origin not in self._answered:
            self._answered.add(origin)
            self._changes.answered.append(origin)

    def outages(self, down: Sequence[DownHost], up: Sequence[str]) -> None:
        """Hosts that cannot be reached any more, or can again."""
        for one in down:
            self.answered(one.origin)
        self._changes.down.extend(down)
        self._changes.up.extend(up)

    def quiet(self, visit: FinishedVisit) -> None:
        """A host asked to be left alone for a while."""
        until_ms = visit.at_ms + visit.millis + visit.quiet_ms
        self._changes.quiet.append((until_ms, visit.quiet_ms, self._ids.host(visit.entry.request_url)))

    def probe(self, probe: Probe, spot: Spot) -> None:
        """What a server says of a page that cannot be there."""
        self._changes.probes.append((probe, self._steps.seq, self._ids.file(spot), spot))

    def distrust(self, lane: int, validator: str, why: str) -> None:
        """What a server says by this validator is of no use."""
        self._changes.distrusted.append((lane, validator, self._steps.seq, why))

    def new_robots(self) -> tuple[tuple[str, str, bytes | None], ...]:
        """What the present commit says of each robots.txt."""
        return tuple(self._robots)

    def new_cookies(self) -> tuple[Cookie, ...]:
        return tuple(self._cookies)
