"""What an entry of the frontier may use up: a unit of the budget, a page of its seed's limit, its host's consent.

Everything is granted in the order of the lanes, so limits are exact and the same URLs are visited at any number of
workers; what an outcome does not use up is given back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.draft.draft import Outcomes
from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.outages import Outages
from inchworm.engine.session.window.lane import Slot
from inchworm.engine.visit import Tools, failed_with_host, reused, unreadable_robots
from inchworm.model import EndedBy, FinishedVisit, FrontierEntry, Kind, Outcome, Reason, RefusedEntry, Seed, Turn
from inchworm.rules.web import control
from inchworm.rules.web.limits import before_too_little, exhausted, is_too_little, is_worth_it, may_reserve
from inchworm.rules.web.url import origin_of


class Grants:
    """The grants of one session. `due`: how many were granted and are not sent yet."""

    def __init__(self, tools: Tools, hosts: Hosts, outages: Outages, seeds: Iterable[Seed]) -> None:
        self._settings = tools.settings
        self._tools = tools
        self._hosts = hosts
        self._outages = outages
        self._reserved: Counter[int] = Counter()
        self._worth: deque[bool] = deque(maxlen=tools.settings.stop_window)
        self._ahead = self._may_be_ahead()
        self._spent = 0
        self.due = 0
        self.limit_hit: EndedBy | None = None
        self.seeds = {seed.number: seed for seed in seeds}

    def learn(self, seeds: Iterable[Seed], outcomes: Outcomes) -> bool:
        """Take in what the seeds have used of their limits and what turns came to. True: the last pages brought too
        little."""
        self.seeds = {seed.number: seed for seed in seeds}
        for turn, _ in outcomes:
            self.give_back(turn)
        return self._weigh(outcomes)

    @property
    def is_budget_spent(self) -> bool:
        return bool(self._settings.budget) and self._spent >= self._settings.budget

    # Without a request

    def answer(self, slot: Slot) -> bool:
        """Whether the entry needs no request: refused, given up, or reused from an earlier run."""
        entry = slot.entry
        if self._outages and (down := self._outages.given_up(origin_of(entry.request_url))):
            slot.turn = failed_with_host(entry, down, self._tools)
            self._reserve(slot)
            return True
        if entry.kind is Kind.ROBOTS or (slot.granted and not self._is_forbidden(entry)):
            return False
        if slot.granted:
            self._revoke(slot)
        slot.turn = self._turn_without_request(entry)
        if isinstance(slot.turn, FinishedVisit):
            self._reserve(slot)
        elif slot.turn is not None:
            self._free(slot)
        return slot.turn is not None

    def _turn_without_request(self, entry: FrontierEntry) -> Turn | None:
        if entry.kind is Kind.PAGE and (reason := exhausted(self.seeds[entry.seed], self._settings.page_limit)):
            return RefusedEntry(entry, reason)
        if self._hosts.robots.is_known(entry.request_url):
            if trouble := self._hosts.robots.trouble(entry.request_url):
                return unreadable_robots(entry, trouble, self._tools)
            if not self._hosts.robots.allows(entry.request_url):
                return RefusedEntry(entry, Reason.ROBOTS)
        return self._reuse(entry) if self._may_reuse(entry) else None

    def _is_forbidden(self, entry: FrontierEntry) -> bool:
        """Whether a robots.txt that was read again says no to what was granted before."""
        return self._hosts.robots.is_known(entry.request_url) and not self._hosts.robots.may_ask(entry.request_url)

    def _may_reuse(self, entry: FrontierEntry) -> bool:
        return (
            self._tools.earlier is not None
            and self._settings.max_age > 0
            and not self._settings.skip_cache
            and entry.kind not in control.KINDS
            and self._may_reserve(entry)
        )

    def _reuse(self, entry: FrontierEntry) -> FinishedVisit | None:
        assert self._tools.earlier is not None
        version = self._tools.earlier.version(entry)
        since_ms = self._tools.clock.now_ms() - round(self._settings.max_age * 1000)
        if version is None or version.missing or version.at_ms < since_ms:
            return None
        if rows.is_read_otherwise(version, self._tools.fingerprint):
            return None
        return reused(entry, version, self._tools.compares)

    # For a request

    def grant(self, slot: Slot) -> bool:
        """Reserve what a request may use up."""
        entry = slot.entry
        if entry.kind is not Kind.ROBOTS and not self._hosts.robots.is_known(entry.request_url):
            return False
        if slot.granted:
            return True
        if entry.kind not in control.KINDS and not self._spend(slot):
            return False
        self.due += 1
        slot.granted = True
        return True

    def _spend(self, slot: Slot) -> bool:
        if self.is_budget_spent:
            self.limit_hit = EndedBy.BUDGET
            return False
        if slot.entry.kind is Kind.PAGE and not slot.reserved and not self._may_reserve(slot.entry):
            return False
        if self._ahead is not None and not slot.reserved and self._reserved.total() >= self._ahead:
            return False
        self._reserve(slot)
        self._spent += 1
        return True

    def use_up(self, slot: Slot) -> None:
        """A request came to nothing because its host is down: it is spent. The entry keeps its page of the limit."""
        slot.granted = False

    def give_back(self, turn: Turn) -> None:
        """A turn was committed: whatever it kept, its seed knows by now."""
        if isinstance(turn, FinishedVisit) and turn.entry.kind is Kind.PAGE:
            self._reserved[turn.entry.seed] -= 1

    # Whether it is worth it

    def _weigh(self, outcomes: Outcomes) -> bool:
        if not self._settings.stop_below:
            return False
        for turn, outcome in outcomes:
            if isinstance(turn, FinishedVisit) and isinstance(outcome, Outcome):
                worth = is_worth_it(turn, outcome, bool(self._settings.query))
                self._worth.extend([] if worth is None else [worth])
        self._ahead = self._may_be_ahead()
        return is_too_little(self._worth, self._settings.stop_window, self._settings.stop_below)

    def _may_be_ahead(self) -> int | None:
        """How many pages may be asked for before it is known what they bring; None: as many as one likes."""
        below = self._settings.stop_below
        return before_too_little(self._worth, self._settings.stop_window, below) if below else None

    # Pages of a seed's limit

    def _may_reserve(self, entry: FrontierEntry) -> bool:
        return may_reserve(self.seeds[entry.seed], self._reserved[entry.seed], self._settings.page_limit)

    def _reserve(self, slot: Slot) -> None:
        """A place within its seed's page limit, until it is known whether there is a page to be kept."""
        if slot.entry.kind is Kind.PAGE and not slot.reserved:
            self._reserved[slot.entry.seed] += 1
            slot.reserved = True

    def _revoke(self, slot: Slot) -> None:
        slot.granted = False
        self.due -= 1
        if slot.entry.kind not in control.KINDS:
            self._spent -= 1
        self._free(slot)

    def _free(self, slot: Slot) -> None:
        if slot.reserved:
            self._reserved[slot.entry.seed] -= 1
            slot.reserved = False
