"""What the next commit will write: rows as they gather, and the run's totals kept in step with them.

The ledger decides, this writes down. Only here, and at the end of a commit, are rows put into the open transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.draft.frontier import FrontierDraft
from inchworm.engine.ledger.draft.ids import Ids
from inchworm.engine.ledger.draft.known import KnownUrls
from inchworm.engine.ledger.draft.learned import Learned
from inchworm.engine.ledger.draft.milestones import Milestones
from inchworm.engine.ledger.draft.seeds import Seeds
from inchworm.engine.ledger.draft.steps import Steps
from inchworm.engine.ledger.draft.totals import Totals
from inchworm.model import (
    CheckpointType,
    Cookie,
    Counters,
    FrontierEntry,
    Outcome,
    Reason,
    RunInfo,
    Seed,
    Substate,
    Turn,
    Version,
)
from inchworm.ports import Commit, Judgement, NewCheckpoint, Store, StoredRow, VisitRow

Outcomes = tuple[tuple[Turn, Outcome | Reason], ...]
"""What each turn came to, in their order."""


class Committed(NamedTuple):
    """What a commit came to, for those who plan the next fetches."""

    seq: int
    counters: Counters
    seeds: tuple[Seed, ...]
    requests: int
    size: int
    disturbed: str
    lanes: frozenset[int]
    robots: tuple[tuple[str, str, bytes | None], ...]
    cookies: tuple[Cookie, ...]
    outcomes: Outcomes
    ahead: frozenset[int] = frozenset()


class Draft:
    """The commit that is being put together. Its parts say what becomes of rows; rows as they stand by now, those that
    are not written yet among them, are asked for here."""

    def __init__(self, store: Store, run: RunInfo, session: int) -> None:
        self._store = store
        self._run_id, self._horizon = run.run_id, run.horizon
        self._changes = changes = Commit(run.run_id, session)
        self.steps = Steps(run.seq)
        self.ids = Ids(store, changes)
        self.totals = Totals(run.counters)
        self.seeds = Seeds(run.seeds, changes, self.steps)
        self.milestones = Milestones(run, self.steps)
        self.known = KnownUrls(store, run.run_id)
        self.frontier = FrontierDraft(changes, self.steps, self.known, self.totals)
        self.learned = Learned(store, changes, self.steps, self.ids)

    def begin(self, inbox_id: int = 0) -> None:
        """A new commit. `inbox_id`: the request of another process that it carries out."""
        self._changes.clear_rows()
        self._changes.inbox_id = inbox_id
        self.steps.begin()
        self.known.begin()
        self.frontier.begin()
        self.learned.begin()

    # Reading

    def rows(self, url_ids: Sequence[int]) -> list[StoredRow]:
        """These rows of the run as they stand by now; ids that the run does not know are left out."""
        if self.frontier.is_unwritten(url_ids):
            self.write()
        return self._store.frontier.rows(self._run_id, url_ids)

    def row_of(self, entry: FrontierEntry) -> StoredRow:
        """The row of a pending entry. Where it was chosen by rank, others may have voted since."""
        if entry.rank is None:
            return rows.of_entry(entry)
        (row,) = self.rows([entry.url_id])
        return row

    def visit_of(self, url_id: int) -> VisitRow | None:
        """The visit that settled a done row."""
        if self.frontier.is_unwritten((url_id,)):
            self.write()
        return self._store.visits.of(self._run_id, url_id)

    def version(self, url_id: int) -> Version | None:
        """The last good answer that an earlier run has for a URL."""
        return self._store.earlier.version(url_id, self._horizon)

    def store(self) -> Store:
        """The store as it is by now, for questions about many rows."""
        self.write()
        return self._store

    # Visits

    def add_visit(self, visit: VisitRow) -> None:
        self._changes.visits.append(visit)

    def judge(self, seq: int, before: Judgement, after: Judgement) -> None:
        """A visit that is on record gets another verdict; what it was is kept for going back."""
        self._changes.undo.append((self.steps.seq, "visit", seq, json.dumps(before._asdict())))
        self._changes.judged.append((seq, after))

    def add_checkpoint(self, substate: Substate, at_ms: int) -> None:
        """The run as it is right after the present step can be gone back to."""
        totals = self.totals.counters(), self.milestones.disturbed
        self._changes.checkpoints.append(NewCheckpoint(self.steps.seq, CheckpointType.AUTO, substate, at_ms, *totals))

    # Writing

    def write(self) -> None:
        """Put what there is into the open transaction."""
        self._store.commits.write(self.changes())
        self._changes.clear_rows()
        self.frontier.written()

    def changes(self) -> Commit:
        """What is not written yet, and all totals."""
        self.totals.put_into(self._changes)
        self.seeds.put_into(self._changes)
        self.milestones.put_into(self._changes)
        self.known.put_into(self._changes)
        return self._changes

    def committed(self, outcomes: Outcomes = ()) -> Committed:
        return Committed(
            self.steps.seq,
            self.totals.counters(),
            self.seeds.all(),
            self.totals.requests,
            self.totals.size,
            self.milestones.disturbed,
            self.frontier.lanes(),
            self.learned.new_robots(),
            self.learned.new_cookies(),
            outcomes,
            self.steps.lanes_ahead(),
        )
