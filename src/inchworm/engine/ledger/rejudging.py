"""URLs that are known are judged again: another page's link, a seed that moved or other settings may judge them better.

A refusal that another page's link may overrule (too deep, too many hops, nofollow) is judged again when such a link
comes, and a shorter way is passed on to what a page gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.entering import Entering
from inchworm.model import FoundUrl, FrontierEntry, Kind, Reason, RunInfo, Source, State
from inchworm.ports import Known, RowState, StoredRow
from inchworm.rules.order import freshness, order
from inchworm.rules.web import control
from inchworm.rules.web.scope import ScopeVerdict
from inchworm.settings import Settings

_DEPENDS_ON_PATH = (Reason.MAX_DEPTH, Reason.HOPS, Reason.NOFOLLOW)
"""Refusals that another page's link may overrule."""


class Rejudging:
    """Judges rows of one run again."""

    def __init__(self, draft: Draft, bounds: Bounds, entering: Entering, run: RunInfo, settings: Settings) -> None:
        self._draft = draft
        self._frontier = draft.frontier
        self._bounds = bounds
        self._entering = entering
        self._run = run
        self._settings = settings

    # Because of another link

    def by_link(self, known: Known, found: FoundUrl, parent: FrontierEntry) -> None:
        """A page links to a URL that the run has already."""
        if found.lastmod and self._settings.order == order.FRESHNESS and known.state is State.PENDING:
            self._put_ahead(found, known)
        depends_on_path = known.state is State.REFUSED and known.reason in _DEPENDS_ON_PATH
        if not (depends_on_path or self._bounds.path_matters):
            return
        verdict = self._bounds.judge(found, parent)
        if known.state is State.REFUSED:
            is_better = depends_on_path and verdict.reason is None
        else:
            is_better = verdict.reason is None and (verdict.depth < known.depth or verdict.hops < known.hops)
        if is_better:
            self._apply(known.url_id, verdict)

    def _put_ahead(self, found: FoundUrl, known: Known) -> None:
        """A sitemap says that a known page changed after we last saw it: it comes ahead of what we only guess."""
        version = self._draft.version(known.url_id)
        if version is None or not freshness.is_later(found.lastmod, version.at_ms):
            return
        for row in self._draft.rows([known.url_id]):
            rank = row.standing.rank or 0
            if row.standing.state is State.PENDING and rank < order.ANNOUNCED:
                self._frontier.move(row, row.standing._replace(rank=order.ANNOUNCED + rank))

    def forbids_following(self, url_id: int | None) -> bool:
        """Whether a page that is done says that its links are not to be followed."""
        visit = self._draft.visit_of(url_id) if url_id and self._settings.robots else None
        return visit is not None and rows.forbids_following(visit.meta)

    # Because a seed moved

    def by_moved_seed(self, entry: FrontierEntry) -> None:
        """What was outside of the scope before is judged again. `entry`: the seed that moved."""
        for row in self._draft.store().frontier.outside(self._run.run_id):
            nofollow = row.source is Source.SPIDER and self.forbids_following(row.found_on)
            found = FoundUrl(row.url, row.standing.request_url or row.url, row.kind, row.source, nofollow)
            depth = row.standing.depth - 1 if row.source is Source.SPIDER else row.standing.depth
            verdict = self._bounds.judge(found, entry._replace(depth=depth))
            if verdict.hops or row.kind is Kind.ROBOTS:
                continue
            if verdict.reason in _DEPENDS_ON_PATH and row.standing.reason is Reason.OUT_OF_SCOPE:
                # Inside by now, and refused for what another page's link may overrule.
                self._draft.known.note_nofollow()
                self._frontier.move(row, row.standing._replace(reason=verdict.reason, hops=0, seed=verdict.seed))
            else:
                self._apply(row.url_id, verdict)

    # A better verdict

    def _apply(self, url_id: int, verdict: ScopeVerdict) -> None:
        """Take it, and pass a shorter way on to what a page that is done already gave."""
        todo = deque([(url_id, verdict)])
        while todo:
            url_id, verdict = todo.popleft()
            for row in self._draft.rows([url_id]):
                if self._improve(row, verdict) and row.standing.state is State.DONE:
                    todo.extend(self._verdicts_on_links(row, verdict))

    def _verdicts_on_links(self, row: StoredRow, verdict: ScopeVerdict) -> Iterator[tuple[int, ScopeVerdict]]:
        """The verdicts that a done row's new place among the pages means for what it gave."""
        visit, parent = self._draft.visit_of(row.url_id), rows.as_parent(row, verdict)
        if visit is None:
            return
        nofollow = self.forbids_following(row.url_id)
        ids = visit.links if visit.redirect is None else (visit.redirect,)
        for given in self._draft.rows(ids):
            source = Source.RESOURCE if given.kind is Kind.RESOURCE else Source.SPIDER
            source = source if visit.redirect is None else Source.REDIRECT
            found = FoundUrl(given.url, given.url, given.kind, source, nofollow)
            yield given.url_id, self._bounds.judge(found, parent)

    def _improve(self, row: StoredRow, verdict: ScopeVerdict) -> bool:
        old = row.standing
        too_nested = row.kind is Kind.SITEMAP and old.reason is Reason.MAX_DEPTH
        if verdict.reason or too_nested:
            return False
        if old.state is State.REFUSED:
            may_overrule = old.reason in (*_DEPENDS_ON_PATH, Reason.OUT_OF_SCOPE)
            if not may_overrule or self._bounds.exhausted(verdict.seed, row.kind):
                return False
            self._open(row, _nearer(old, verdict)._replace(seed=verdict.seed), verdict)
            return True
        if verdict.depth >= old.depth and verdict.hops >= old.hops:
            return False
        self._frontier.move(row, _nearer(old, verdict))
        return True

    def _open(self, row: StoredRow, standing: RowState, verdict: ScopeVerdict) -> None:
        """A refused row is pending after all."""
        place, address = self._draft.steps.place_behind(), standing.request_url or row.url
        self._frontier.reopen(row, standing._replace(lane=self._entering.lane_of(address)), place)
        if row.kind not in control.KINDS:
            self._draft.totals.add(refused=-1, pending=1)
        self._entering.open_origin(address, verdict, rows.as_parent(row, verdict), place)

    # Because of other settings

    def by_settings(self, same_scope: bool) -> bool:
        """Judge every row that is not done by the rules of this run, in the order of their places. Did it matter?

        A row has the least depth at which it was found, and in the same scope the fewest hops; in another one its hops
        go by the page that found it.
        """
        parents: dict[int, FrontierEntry] = {}
        mattered = False
        lacks_ranks = self._settings.order != order.BREADTH
        for found in self._draft.store().frontier.all(self._run.run_id):
            row = self._with_rank(found) if lacks_ranks and found.standing.rank is None else found
            mattered = mattered or row is not found
            verdict = self._verdict_on(row, parents.get(row.found_on or 0), same_scope)
            parents[row.url_id] = rows.as_parent(row, verdict)
            if row.standing.state is not State.DONE and row.kind not in control.KINDS:
                mattered = self._judge_anew(row, verdict) or mattered
        return mattered

    def _with_rank(self, row: StoredRow) -> StoredRow:
        """A row of a run that had no use for ranks: without one it would never be chosen."""
        old = row.standing
        found = FoundUrl(row.url, old.request_url or row.url, row.kind, row.source)
        parent = rows.as_parent(row, ScopeVerdict(old.seed, old.depth, old.hops, None))
        rank = self._entering.rank_of(found, parent, row.url_id, (old.place_seq, old.place_idx))
        ranked = old._replace(rank=rank)
        self._frontier.move(row, ranked)
        return row._replace(standing=ranked)

    def _verdict_on(self, row: StoredRow, finder: FrontierEntry | None, same_scope: bool) -> ScopeVerdict:
        old, source = row.standing, row.source
        if source is Source.SITEMAP and old.hops and old.reason not in (Reason.HOPS, Reason.OUT_OF_SCOPE):
            # A sitemap named it first, and a link led there.
            source = Source.SPIDER
        linked = source is Source.SPIDER
        if source is Source.INITIAL:
            return ScopeVerdict(old.seed, 0, 0, None)
        hops = max(0, old.hops - linked) if same_scope or finder is None else finder.hops
        parent = rows.as_parent(row, ScopeVerdict(old.seed, old.depth - linked, hops, None))
        found = FoundUrl(row.url, old.request_url or row.url, row.kind, source, old.reason is Reason.NOFOLLOW)
        return self._bounds.judge(found, parent)

    def _judge_anew(self, row: StoredRow, verdict: ScopeVerdict) -> bool:
        """Whether a row that is not done stands differently now."""
        old, reason = row.standing, verdict.reason or self._bounds.exhausted(verdict.seed, row.kind)
        if old.reason is Reason.CLEARED or (old.reason is Reason.ROBOTS and self._settings.robots):
            return False
        standing = old._replace(seed=verdict.seed, depth=verdict.depth, hops=verdict.hops)
        if old.state is State.PENDING and reason is None:
            return self._stay_pending(row, standing, verdict)
        if reason == old.reason:
            return False
        if old.state is State.PENDING:
            seq = self._draft.steps.seq
            self._frontier.move(row, standing._replace(state=State.REFUSED, reason=reason, done=seq))
            self._draft.totals.add(pending=-1, refused=1)
        elif reason is not None:
            self._frontier.move(row, standing._replace(reason=reason))
        else:
            self._open(row, standing, verdict)
        return True

    def _stay_pending(self, row: StoredRow, standing: RowState, verdict: ScopeVerdict) -> bool:
        """A row that stays pending may be in another lane now, and there may be a robots.txt to be read before it."""
        address, place = standing.request_url or row.url, (standing.place_seq, standing.place_idx)
        has_opened = self._entering.open_origin(address, verdict, rows.as_parent(row, verdict), place)
        lane = self._entering.lane_of(address)
        if lane == standing.lane:
            return has_opened
        self._frontier.move(row, standing._replace(lane=lane))
        return True


def _nearer(old: RowState, verdict: ScopeVerdict) -> RowState:
    return old._replace(depth=min(old.depth, verdict.depth), hops=min(old.hops, verdict.hops))
