"""Ranking by votes: in a run with a query, every page that links to a URL has a say in when that has its turn.

A run without a query has no `Ranking`, and this module is not even loaded. With one, the ledger asks it for the rank of
what is new and for what a page says of its links, the window whether the votes are counted that a turn may know of, and
the session has them counted between two commits. `rules.order` says why votes are counted a block of turns at a time,
`store.crawl.votes` how they are kept.
"""

from __future__ import annotations

from inchworm.engine.ledger.draft.draft import Committed, Draft
from inchworm.engine.ledger.transaction import Transaction
from inchworm.model import FinishedVisit, FoundUrl, FrontierEntry, Kind, Source
from inchworm.ports import Ranks, VisitRow
from inchworm.rules.order import focus, order


class Ranking:
    """The ranks of one run, for as long as one session works on it. `wanted`: up to which seq votes have to be counted
    before anything more is chosen, if so."""

    def __init__(self, ranks: Ranks, draft: Draft, transaction: Transaction, run_id: int, query: str) -> None:
        self._ranks = ranks
        self._draft = draft
        self._transaction = transaction
        self._run_id = run_id
        self._query = focus.FocusQuery(query)
        self._share = 0
        self._counted = -1
        self.wanted: int | None = order.counted(draft.steps.seq + 1)

    # What is found

    def found_on(self, visit: FinishedVisit | None) -> None:
        """What comes now was found on this page, and gets its share of what the page promises; or it was on none."""
        self._share = _share(visit) if visit else 0

    def rank(self, found: FoundUrl, parent: FrontierEntry, url_id: int, index: int) -> int:
        """The rank of a new URL as long as nobody but its finder has voted."""
        if found.source is Source.REDIRECT and parent.rank and parent.rank > 0:
            # It is what was chosen for that rank.
            return parent.rank
        own = self._query.own(found.anchor, found.url, (self._draft.steps.seq, index))
        first = focus.rank(own, focus.Votes(1, found.parts, self._share))
        self._draft.frontier.promise(url_id, own, first)
        return first

    def vote(self, visit: FinishedVisit, row: VisitRow) -> VisitRow:
        """The row of a visit with what its page says of its links."""
        links = visit.reading.links
        if not links or visit.known_links is not None or visit.entry.kind is not Kind.PAGE:
            return row
        parts = bytes(found.parts for found in links)
        return row._replace(share=_share(visit), parts=parts if max(parts) > 1 else None)

    # What is chosen

    def is_ready(self, turn: int) -> bool:
        """Whether this turn may be chosen: the votes that it goes by are counted. Otherwise they are wanted now."""
        upto = order.counted(turn)
        if self._counted >= upto:
            return True
        self.wanted = upto
        return False

    def count(self, upto: int) -> Committed:
        """Let the votes of pages up to this seq count, and of none after it. In as many commits as it takes."""
        while self._count_some(upto) != upto:
            pass
        self._counted, self.wanted = upto, None
        return self._draft.committed()

    def _count_some(self, upto: int) -> int:
        with self._transaction.whole():
            return self._ranks.count(self._run_id, upto)


def _share(visit: FinishedVisit) -> int:
    return focus.share(visit.relevance, len(visit.reading.links))
