"""Redirects: where they lead to becomes a row of its own, seeds take their scope along, and circles end."""

from __future__ import annotations

import json

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.discovery import Discovery
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.rejudging import Rejudging
from inchworm.model import FinishedVisit, FoundUrl, FrontierEntry, Outcome
from inchworm.settings import Settings


class Redirects:
    """Follows the redirects of one run."""

    def __init__(
        self, draft: Draft, bounds: Bounds, discovery: Discovery, rejudging: Rejudging, settings: Settings
    ) -> None:
        self._draft = draft
        self._bounds = bounds
        self._discovery = discovery
        self._rejudging = rejudging
        self._most = settings.max_redirects

    def leads_back(self, entry: FrontierEntry, target: FoundUrl | None) -> bool:
        """Whether the target is known to lead back to the entry by redirects alone."""
        known = self._draft.known.get(target.url) if target else None
        if known is None or not known.in_run or known.url_id == entry.url_id:
            return False
        url_id = known.url_id
        for _ in range(self._most):
            visit = self._draft.visit_of(url_id)
            if visit is None or visit.redirect is None:
                return False
            url_id = visit.redirect
            if url_id == entry.url_id:
                return True
        return False

    def broken(self, visit: FinishedVisit, leads_back: bool) -> FinishedVisit:
        """The visit, as a failure where it leads to where it came from, and no cookie was set on the way that might
        change that.

        What counts is what the answers of this chain set, and not what else is in the jar by now: that depends on when
        other pages were read.
        """
        entry, target = visit.entry, visit.redirect
        if target is None or not (leads_back or target.request_url in (entry.request_url, *entry.tried)):
            return visit
        if visit.cookies and rows.cookies_mark(visit.cookies) not in entry.tried:
            return visit
        said = f"{target.request_url} leads back to it"
        return visit._replace(outcome=Outcome.FAILED, failure="redirect_loop", message=said, redirect=None)

    def follow(self, visit: FinishedVisit, entry: FrontierEntry, leads_back: bool) -> int:
        """The id of where it leads to; that of the entry itself where it leads to another form of the same URL."""
        target = visit.redirect
        assert target is not None
        tried = _tried_by_now(visit)
        if target.url == entry.url:
            row, seq = self._draft.row_of(entry), self._draft.steps.seq
            again = row.standing._replace(place_seq=seq, place_idx=0, request_url=target.request_url)
            self._draft.frontier.move(row, again._replace(chain=entry.chain + 1, tried=json.dumps(tried)))
            return entry.url_id
        if self._bounds.is_seed(entry) and self._bounds.move_seed(entry.seed, target.url):
            self._rejudging.by_moved_seed(entry)
        url_id = self._discovery.follow(target, entry, 0, tried)
        if leads_back:
            self._ask_again(url_id, visit)
        return url_id

    def _ask_again(self, url_id: int, visit: FinishedVisit) -> None:
        """A URL that redirected here to be given a cookie has one now: it gets a new place."""
        for row in self._draft.rows([url_id]):
            standing = row.standing._replace(chain=visit.entry.chain + 1, tried=json.dumps(_tried_by_now(visit)))
            self._draft.frontier.reopen(row, standing, self._draft.steps.place_behind())
            self._draft.totals.add(redirects=-1, pending=1)


def _tried_by_now(visit: FinishedVisit) -> tuple[str, ...]:
    """The requests of a chain of redirects, and the marks of the cookies that were set on the way."""
    marks = (rows.cookies_mark(visit.cookies),) if visit.cookies else ()
    return (*visit.entry.tried, visit.entry.request_url, *marks)
