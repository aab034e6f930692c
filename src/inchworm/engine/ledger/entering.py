"""How a URL that a run meets for the first time gets into its frontier: pending or refused, with a place, a lane and,
where turns are chosen by rank, a rank. The first one of an origin brings the robots.txt along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.draft.steps import link_index
from inchworm.model import FoundUrl, FrontierEntry, Kind, Place, Reason, State
from inchworm.ports import Known, NewFrontierRow, RowState
from inchworm.rules.order import order
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import ScopeVerdict
from inchworm.settings import Settings

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking

SITEMAP_DEPTH = 5


class Entering:
    """Enters URLs. `ranking`: there in a run with a query."""

    def __init__(self, draft: Draft, bounds: Bounds, settings: Settings, ranking: Ranking | None) -> None:
        self._draft = draft
        self._steps = draft.steps
        self._known = draft.known
        self._bounds = bounds
        self._settings = settings
        self._ranking = ranking
        self._is_ranked = settings.order != order.BREADTH
        self._origins: set[str] = set()

    def enter(
        self,
        found: FoundUrl,
        parent: FrontierEntry,
        place: Place,
        verdict: ScopeVerdict,
        tried: tuple[str, ...] = (),
        unlinked: int = 0,
    ) -> int:
        """Its id."""
        known = self._known.get(found.url)
        url_id = known.url_id if known else self._draft.ids.new_url(found.url)
        reason = verdict.reason
        if reason is None and self._settings.page_limit:
            reason = self._bounds.exhausted(verdict.seed, found.kind)
        if found.kind is Kind.SITEMAP and parent.kind is Kind.SITEMAP and parent.chain + 1 >= SITEMAP_DEPTH:
            reason = Reason.MAX_DEPTH
        state = State.REFUSED if reason else State.PENDING
        if reason is Reason.NOFOLLOW:
            self._known.note_nofollow()
        self._known.note(found.url, Known(url_id, True, state, reason, verdict.depth, verdict.hops))
        if state is State.PENDING and found.kind is not Kind.ROBOTS:
            self.open_origin(found.request_url, verdict, parent, place)
        request_url = found.request_url if found.request_url != found.url else None
        nested = found.kind is Kind.SITEMAP and parent.kind is Kind.SITEMAP
        chain = parent.chain + 1 if tried or nested else 0
        seq = self._steps.seq
        standing = RowState(
            state, reason, verdict.seed, verdict.depth, verdict.hops,
            self.lane_of(found.request_url) if state is State.PENDING else 0,
            *place, request_url, 0, 0, chain, json.dumps(tried) if tried else None,
            seq if reason else None, None,
        )  # fmt: skip
        if self._is_ranked:
            standing = standing._replace(rank=self.rank_of(found, parent, url_id, place))
        found_on, lastmod = parent.url_id or None, found.lastmod or None
        self._draft.frontier.enter(
            NewFrontierRow(url_id, found.kind, found.source, seq, found_on, lastmod, standing, unlinked)
        )
        return url_id

    def open_origin(self, url: str, verdict: ScopeVerdict, parent: FrontierEntry, place: Place) -> bool:
        """The first URL of an origin brings its robots.txt along, placed ahead of everything there. Does it?"""
        origin = urls.origin_of(url)
        if origin in self._origins:
            return False
        self._origins.add(origin)
        file = self._control_file(origin)
        if file is None:
            return False
        self._known.look_up_anew({file.url})
        known = self._known.get(file.url)
        if known is not None and known.in_run:
            return False
        ahead = (place[0], -1 - place[1]) if file.kind is Kind.ROBOTS else self._steps.place_behind()
        self.enter(file, parent, ahead, verdict._replace(depth=0))
        return True

    def _control_file(self, origin: str) -> FoundUrl | None:
        if self._settings.robots:
            return control.robots_file(origin)
        if self._settings.sitemap and self._bounds.is_seed_host(urls.host_of(origin + "/")):
            return control.sitemap_file(f"{origin}/sitemap.xml")
        return None

    def lane_of(self, url: str) -> int:
        return 0 if self._settings.strict_order else self._draft.ids.host(url)

    def rank_of(self, found: FoundUrl, parent: FrontierEntry, url_id: int, place: Place) -> int:
        """By what a URL is to be chosen, in a run that goes by that."""
        fixed = order.fixed_rank(found.kind, found.source)
        if fixed is not None:
            return fixed
        if found.rank is None and self._ranking is not None:
            return self._ranking.rank(found, parent, url_id, link_index(place))
        return found.rank or order.NEW
