"""Rows of the frontier as they are entered, settled and moved."""

from __future__ import annotations

import json
from collections.abc import Collection

from inchworm.engine.ledger.draft.known import KnownUrls
from inchworm.engine.ledger.draft.steps import Steps
from inchworm.engine.ledger.draft.totals import Totals
from inchworm.model import FrontierEntry, Place, Reason, State
from inchworm.ports import Commit, Known, NewFrontierRow, RowState, StoredRow
from inchworm.rules.web import control


class FrontierDraft:
    """What becomes of rows of the frontier in the next commit, and which lanes that concerns."""

    def __init__(self, changes: Commit, steps: Steps, known: KnownUrls, totals: Totals) -> None:
        self._changes = changes
        self._steps = steps
        self._known = known
        self._totals = totals
        self._lanes: set[int] = set()
        self._unwritten: set[int] = set()

    def begin(self) -> None:
        """A new commit."""
        self._lanes.clear()

    def enter(self, entry: NewFrontierRow) -> None:
        """A URL that the run meets for the first time."""
        standing = entry.standing
        self._changes.entries.append(entry)
        self._unwritten.add(entry.url_id)
        if standing.state is State.PENDING:
            self._count(standing.lane, 1)
        if entry.kind not in control.KINDS:
            self._totals.entered(standing.state)

    def settle(self, entry: FrontierEntry, state: State, reason: Reason | None) -> None:
        """A pending row is done or refused."""
        self._changes.settled.append((state, reason, self._steps.seq, entry.url_id))
        self._unwritten.add(entry.url_id)
        self._count(entry.lane, -1)
        if entry.kind not in control.KINDS:
            self._totals.add(pending=-1)

    def refuse(self, entry: FrontierEntry, reason: Reason) -> None:
        """A pending row is refused."""
        self.settle(entry, State.REFUSED, reason)
        if entry.kind not in control.KINDS:
            self._totals.add_one("refused")

    def move(self, row: StoredRow, standing: RowState) -> None:
        """A row changes in place; what it was is kept for going back."""
        before = row.standing
        self._changes.undo.append((self._steps.seq, "frontier", row.url_id, json.dumps(before._asdict())))
        self._changes.moved.append((row.url_id, standing))
        self._unwritten.add(row.url_id)
        self._lanes.add(standing.lane)
        known = Known(row.url_id, True, standing.state, standing.reason, standing.depth, standing.hops)
        self._known.note(row.url, known)
        was_waiting, waits = before.state is State.PENDING, standing.state is State.PENDING
        if was_waiting and (not waits or before.lane != standing.lane):
            self._count(before.lane, -1)
        if waits and (not was_waiting or before.lane != standing.lane):
            self._count(standing.lane, 1)

    def reopen(self, row: StoredRow, standing: RowState, place: Place) -> None:
        """A row that was settled is pending again, at a new place."""
        again = standing._replace(state=State.PENDING, reason=None, done=None)
        self.move(row, again._replace(place_seq=place[0], place_idx=place[1]))

    def promise(self, url_id: int, own: int, first: int) -> None:
        """What a URL promises by itself, and its rank as long as nobody but its finder has voted."""
        self._changes.promises.append((url_id, own, first))

    def pardon(self, url_id: int) -> None:
        """Processes that died while reading it are forgotten."""
        self._changes.pardoned.append(url_id)

    def lanes(self) -> frozenset[int]:
        """Lanes whose rows the present commit changes."""
        return frozenset(self._lanes)

    def is_unwritten(self, url_ids: Collection[int]) -> bool:
        """Whether the store has one of these rows otherwise than it is by now."""
        return not self._unwritten.isdisjoint(url_ids)

    def written(self) -> None:
        self._unwritten.clear()

    def _count(self, lane: int, change: int) -> None:
        self._lanes.add(lane)
        self._changes.opened.setdefault(lane, self._steps.seq)
        self._changes.lanes[lane] = self._changes.lanes.get(lane, 0) + change
