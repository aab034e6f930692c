"""What becomes of the URLs that a visit found: entered into the frontier, or looked at a second time.

Each gets its place when its finder is committed and keeps it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.entering import Entering
from inchworm.engine.ledger.rejudging import Rejudging
from inchworm.model import FoundUrl, FrontierEntry, Kind, Outcome, Reason, RunInfo, State, Version
from inchworm.ports import RunFacts, Store
from inchworm.rules.order import order
from inchworm.settings import Settings

_MADE_WAY = "it made way for a page that no run had met before"


class Discovery:
    """Follows found URLs, for one run, in the order it is given them.

    `new_first`: what no run has met before comes before what is only looked at again, because the old pages alone would
    fill the page limit, and news would never be found.
    """

    def __init__(
        self,
        store: Store,
        draft: Draft,
        bounds: Bounds,
        entering: Entering,
        rejudging: Rejudging,
        run: RunInfo,
        settings: Settings,
    ) -> None:
        self._store = store
        self._draft = draft
        self._known = draft.known
        self._bounds = bounds
        self._entering = entering
        self._rejudging = rejudging
        self._run_id = run.run_id
        self._page_limit = settings.page_limit
        self.path_matters = bounds.path_matters
        self._may_change = bounds.path_matters or settings.order == order.FRESHNESS
        self.new_first = is_new_first(store.runs, run, settings)
        self._links: dict[int, dict[int, FoundUrl | None]] = {}

    def follow_all(self, links: Sequence[FoundUrl], parent: FrontierEntry) -> list[int]:
        """The ids of a page's links, those new to the run entered. Most links are known, so they go the short way."""
        known, may_change = self._known.get, self._may_change
        found_ids: list[int] = []
        for index, found in enumerate(links):
            seen = known(found.url)
            if seen is None or may_change or not seen.in_run or seen.reason is not None:
                found_ids.append(self.follow(found, parent, index))
            else:
                found_ids.append(seen.url_id)
        return found_ids

    def follow(self, found: FoundUrl, parent: FrontierEntry, index: int, tried: tuple[str, ...] = ()) -> int:
        """The id of a link, the so-manieth of its page."""
        known = self._known.get(found.url)
        if known is not None and known.in_run:
            self._rejudging.by_link(known, found, parent)
            return known.url_id
        verdict, place = self._bounds.judge(found, parent), (self._draft.steps.seq, index)
        if known is None and self.new_first and verdict.reason is None and found.kind is Kind.PAGE:
            place = self._draft.steps.place_ahead(index, self._entering.lane_of(found.request_url))
            self._make_room(verdict.seed)
        return self._entering.enter(found, parent, place, verdict, tried)

    def _make_room(self, number: int) -> None:
        """A page that no run has met before gets a place in a limit that is full: the last page that was only looked at
        again, and is as it was, gives its own back. Its server may say the same of it in the next run."""
        limit, draft = self._page_limit, self._draft
        kept = draft.seeds.seed(number).kept
        if kept + draft.totals.number("pending") < limit:
            return
        store = draft.store()
        if kept + store.queue.news_waiting(self._run_id, number) < limit:
            return
        old = store.evidence.last_unchanged(self._run_id, number)
        for row in draft.rows([old.url_id]) if old else ():
            assert old is not None
            after = old.judgement._replace(outcome=Outcome.RETRY.value, change=None, message=_MADE_WAY)
            draft.judge(old.seq, old.judgement, after)
            refused = row.standing._replace(state=State.REFUSED, reason=Reason.PAGE_LIMIT, done=draft.steps.seq)
            draft.frontier.move(row, refused)
            draft.totals.add(pages=-1, unchanged=-1, refused=1, saved=-old.saved)
            draft.seeds.use(number, kept=-1)

    # Links of a page as an earlier run has them

    def expect(self, versions: Iterable[Version]) -> None:
        """The links of these pages are followed next: they are looked up together."""
        self._links = {}
        fresh: dict[int, set[int]] = {}
        for version in versions:
            fresh.setdefault(version.run_id, set()).update(self._fresh(version.links))
        for run_id, ids in fresh.items():
            self._look_up(run_id, ids)

    def follow_known(self, version: Version, parent: FrontierEntry, nofollow: bool) -> Sequence[int]:
        """The ids of its links. Those that this run knows already go the shortest way."""
        fresh = version.links if nofollow else self._fresh(version.links)
        if not fresh:
            return version.links
        found = self._links.setdefault(version.run_id, {})
        self._look_up(version.run_id, [url_id for url_id in fresh if url_id not in found])
        wanted = set(fresh)
        for index, url_id in enumerate(version.links):
            if url_id in wanted and (one := found.get(url_id)) is not None:
                self.follow(one._replace(nofollow=True) if nofollow else one, parent, index)
        self._known.note_in_run(fresh)
        return version.links

    def _fresh(self, ids: Sequence[int]) -> Sequence[int]:
        """Those that have to be looked at: where the way there matters that is all of them."""
        if self.path_matters or self._known.has_nofollow:
            return ids
        return self._known.not_in_run(ids)

    def _look_up(self, run_id: int, ids: Collection[int]) -> None:
        if not ids:
            return
        found = self._links.setdefault(run_id, {})
        found.update(dict.fromkeys(ids))
        for link, known in self._store.frontier.links(self._run_id, run_id, ids):
            found[known.url_id] = link
            self._known.note_unless_known(link.url, known)


def is_new_first(runs: RunFacts, run: RunInfo, settings: Settings) -> bool:
    """Whether the pages of the parent alone would fill the page limit of a run."""
    return run.parent is not None and settings.page_limit > 0 and runs.was_full(run.parent, settings.page_limit)
