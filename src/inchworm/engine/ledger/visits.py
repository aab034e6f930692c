"""One visit after the other becomes part of the record: its row, its bytes, and what its URL and its links come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.bodies import BodyRecords, KeptTexts
from inchworm.engine.ledger.discovery import Discovery
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.redirects import Redirects
from inchworm.engine.ledger.robots import RobotsRecord
from inchworm.model import FinishedVisit, FrontierEntry, Kind, Outcome, State, Substate
from inchworm.rules.order import order
from inchworm.rules.text import content
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.settings import Settings

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking

_KEPT = (Outcome.PAGE, Outcome.DUPLICATE)
_COUNTED = {
    Outcome.PAGE: "pages",
    Outcome.DUPLICATE: "duplicates",
    Outcome.RESOURCE: "resources",
    Outcome.REDIRECT: "redirects",
    Outcome.FAILED: "failed",
}


class VisitRecords:
    """Records the visits of one session. `ranking`: there in a run with a query."""

    def __init__(
        self,
        draft: Draft,
        discovery: Discovery,
        redirects: Redirects,
        robots: RobotsRecord,
        bodies: BodyRecords,
        texts: KeptTexts,
        ranking: Ranking | None,
        settings: Settings,
    ) -> None:
        self._draft = draft
        self._discovery = discovery
        self._redirects = redirects
        self._robots = robots
        self._bodies = bodies
        self._texts = texts
        self._ranking = ranking
        self._settings = settings
        self._path_matters = discovery.path_matters
        self._reader = content.fingerprint(settings)

    def expect(self, visits: Sequence[FinishedVisit]) -> None:
        """These come next: what has to be known of them is looked up together."""
        wanted = {found.url for visit in visits for found in visit.reading.links}
        wanted |= {visit.redirect.url for visit in visits if visit.redirect}
        if self._path_matters:
            wanted |= {visit.entry.url for visit in visits}
        self._draft.known.look_up(wanted, self._path_matters)
        self._discovery.expect([visit.known_links for visit in visits if visit.known_links])
        self._texts.expect(visits)
        self._bodies.expect(visits)

    def add(self, visit: FinishedVisit) -> Outcome:
        """Put a visit on record, in its turn."""
        draft = self._draft
        draft.steps.next()
        entry = self._nearest(visit.entry)
        if visit.status:
            draft.learned.answered(urls.origin_of(entry.request_url))
        if visit.cookies:
            draft.learned.cookies(visit)
        leads_back = self._redirects.leads_back(entry, visit.redirect)
        visit = self._redirects.broken(visit, leads_back)
        outcome = self._texts.outcome(visit)
        self._count(visit, entry, outcome)
        redirect = self._redirects.follow(visit, entry, leads_back) if outcome is Outcome.REDIRECT else None
        links = self._follow_links(visit, entry)
        if visit.quiet_ms:
            draft.learned.quiet(visit)
        if outcome is Outcome.RETRY:
            self._again(entry, visit)
        elif outcome is not Outcome.REDIRECT or redirect != entry.url_id:
            self._settle(visit, entry, outcome)
        if visit.probe:
            self._bodies.add_probe(visit.probe)
        stored = self._bodies.add(visit)
        # Also of what was not read again: what another reader has read is.
        row = rows.of_visit(draft.steps.seq, visit, outcome, stored, links, redirect, self._reader)
        if self._ranking is not None:
            row = self._ranking.vote(visit, row)
        draft.add_visit(row)
        if outcome in _KEPT:
            self._checkpoint(visit.at_ms)
        return outcome

    def _nearest(self, entry: FrontierEntry) -> FrontierEntry:
        """The entry with the depth it has by now: a shorter way may have been found since it was dispatched."""
        known = self._draft.known.get(entry.url) if self._path_matters else None
        return entry._replace(depth=known.depth, hops=known.hops) if known else entry

    def _count(self, visit: FinishedVisit, entry: FrontierEntry, outcome: Outcome) -> None:
        if entry.kind in control.KINDS:
            return
        if visit.requested:
            size = 0 if visit.is_version else visit.size
            self._draft.totals.requested(size, saved=visit.size - size)
        else:
            self._draft.totals.add(saved=visit.size)
        requests = visit.requested and entry.kind is Kind.PAGE
        self._draft.seeds.use(entry.seed, kept=outcome is Outcome.PAGE, requests=requests)

    def _follow_links(self, visit: FinishedVisit, entry: FrontierEntry) -> Sequence[int]:
        if self._ranking is None:
            return self._links_of(visit, entry)
        self._ranking.found_on(visit)
        links = self._links_of(visit, entry)
        self._ranking.found_on(None)
        return links

    def _links_of(self, visit: FinishedVisit, entry: FrontierEntry) -> Sequence[int]:
        if (known := visit.known_links) is None:
            return self._discovery.follow_all(visit.reading.links, entry)
        forbidden = self._settings.robots and rows.forbids_following(known.meta)
        return self._discovery.follow_known(known, entry, forbidden)

    def _again(self, entry: FrontierEntry, visit: FinishedVisit) -> None:
        """A passing failure: a new place at the end of the lane. A robots.txt stays ahead of its host's pages."""
        place = entry.place if entry.kind is Kind.ROBOTS else (self._draft.steps.seq, 0)
        rank = entry.rank if entry.kind in control.KINDS or entry.rank is None else order.LAST
        row = self._draft.row_of(entry)
        again = row.standing._replace(place_seq=place[0], place_idx=place[1], rank=rank)
        again = again._replace(attempts=entry.attempts + 1, not_before_ms=visit.retry_at_ms)
        self._draft.frontier.move(row, again)
        self._draft.milestones.disturb(visit.failure)

    def _settle(self, visit: FinishedVisit, entry: FrontierEntry, outcome: Outcome) -> None:
        self._draft.frontier.settle(entry, State.DONE, None)
        if outcome in _COUNTED:
            self._draft.totals.add_one(_COUNTED[outcome])
        if visit.change is not None:
            self._draft.totals.add_one(visit.change.value)
        if entry.kind is Kind.ROBOTS:
            self._robots.learn(visit)

    def _checkpoint(self, at_ms: int) -> None:
        """Every so many pages, counted over the whole run, so that checkpoints are the same however it is cut up."""
        every, number = self._settings.checkpoint_every, self._draft.totals.number
        if every and (number("pages") + number("duplicates")) % every == 0:
            substate = Substate.FINISHING if self._draft.milestones.is_swept else Substate.DOWNLOADING_PAGES
            self._draft.add_checkpoint(substate, at_ms)
