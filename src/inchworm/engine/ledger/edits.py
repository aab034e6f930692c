"""What people change in the frontier of a run: each change a commit of its own."""

from __future__ import annotations

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.draft.draft import Committed, Draft
from inchworm.engine.ledger.entering import Entering
from inchworm.engine.ledger.rejudging import Rejudging
from inchworm.engine.ledger.robots import RobotsRecord
from inchworm.engine.ledger.transaction import Transaction
from inchworm.model import FoundUrl, FrontierEntry, Kind, Reason, Source, State
from inchworm.ports import Known, Store, StoredRow
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import ScopeVerdict


class FrontierEdits:
    """Retry, add, dismiss, clear, and judging by other settings."""

    def __init__(
        self,
        store: Store,
        draft: Draft,
        transaction: Transaction,
        bounds: Bounds,
        entering: Entering,
        rejudging: Rejudging,
        robots: RobotsRecord,
        run_id: int,
    ) -> None:
        self._store = store
        self._draft = draft
        self._transaction = transaction
        self._bounds = bounds
        self._entering = entering
        self._rejudging = rejudging
        self._robots = robots
        self._run_id = run_id

    def reopen(self, kind: str | None = None, url: str | None = None, inbox_id: int = 0) -> Committed:
        """Failed rows become pending again, at the end of their lanes."""
        draft, failed = self._draft, self._store.frontier.failed(self._run_id, kind, url)
        with self._transaction.whole(inbox_id):
            if failed:
                draft.steps.next()
            self._robots.forget({urls.origin_of(row.standing.request_url or row.url) for row in failed})
            for row in failed:
                draft.frontier.reopen(row, rows.untried(row.standing), draft.steps.place_behind())
                draft.frontier.pardon(row.url_id)
                draft.totals.add(failed=-1, pending=1)
        return draft.committed()

    def add(self, found: FoundUrl, depth: int, inbox_id: int = 0) -> Committed:
        """A URL that somebody wants to be visited. One that is refused by now is judged again."""
        draft = self._draft
        with self._transaction.whole(inbox_id):
            draft.known.look_up_anew({found.url})
            known = draft.known.get(found.url)
            # Judged like a link from a page right above it.
            linked = found._replace(source=Source.SPIDER if depth else found.source)
            above = FrontierEntry(0, found.url, found.request_url, Kind.PAGE, Source.MANUAL, 0, depth - 1, 0, 0, (0, 0))
            verdict = self._bounds.judge(linked, above)
            if known is None or not known.in_run:
                draft.steps.next()
                self._entering.enter(found, above, (draft.steps.seq, 0), verdict)
            elif known.state is State.REFUSED and known.reason is not Reason.ROBOTS and self._may_be_open(verdict):
                self._open_again(known, linked, above)
        return draft.committed()

    def _may_be_open(self, verdict: ScopeVerdict) -> bool:
        return not (verdict.reason or self._bounds.exhausted(verdict.seed, Kind.PAGE))

    def _open_again(self, known: Known, linked: FoundUrl, above: FrontierEntry) -> None:
        self._draft.steps.next()
        for row in self._draft.rows([known.url_id]):
            # Whatever it was refused for: now it is for something that a better link overrules.
            self._draft.frontier.move(row, row.standing._replace(reason=Reason.NOFOLLOW))
        self._rejudging.by_link(known._replace(reason=Reason.NOFOLLOW), linked, above)

    def dismiss(self, row: StoredRow) -> Committed:
        """A refused row is refused for good."""
        with self._transaction.whole():
            if row.standing.state is State.REFUSED and row.standing.reason is not Reason.CLEARED:
                self._draft.steps.next()
                self._draft.frontier.move(row, row.standing._replace(reason=Reason.CLEARED))
        return self._draft.committed()

    def clear(self) -> Committed:
        """Every pending row is refused: the queue is empty, the pages stay."""
        draft = self._draft
        with self._transaction.whole():
            draft.steps.next()
            for lane in self._store.queue.lanes(self._run_id):
                last: FrontierEntry | None = None
                while entries := self._store.queue.pending(self._run_id, lane, last, 1000):
                    last = entries[-1]
                    for entry in entries:
                        draft.frontier.refuse(entry, Reason.CLEARED)
                    # There may be more of them than memory should hold.
                    draft.write()
        return draft.committed()

    def judge_again(self, same_scope: bool) -> None:
        """A branch has settings of its own: what is not done yet is judged by them, inside the open transaction."""
        self._draft.begin()
        self._draft.steps.next()
        if not self._rejudging.by_settings(same_scope):
            self._draft.steps.forget()
        self._draft.write()
