"""Group commit: how visits become part of the record, and why nothing can be lost between two of them.

The theory, in four sentences. A run is a sequence of steps numbered by `seq`: visits, refusals in turn, and orders
such as a retry. Marking a URL done, storing its
page and adding the URLs it gave is one transaction, so a URL is always pending, done or refused and never in
between. Whatever a visit finds gets its place (seq, index) here and keeps it, and all decisions that depend on
others (is this text new? is this URL known? may its seed keep another page?) are made here, one visit after the
other; the record therefore depends on the order of commits only, never on who fetched what when. Bodies go to
the archive and are synced before the transaction ends, so every committed page has its bytes.

Rows are added and settled with the seq at which that happened. A row that changes in place leaves its old
values in `undo`. So a position in the sequence is all that a checkpoint needs to be: going back to it deletes what was
found later, restores what was changed later, and makes pending what was settled later (`store.crawl.history`).

When anything here fails, the session ends and memory is rebuilt from the store: there is no half-done state
to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inchworm import fault
from inchworm.engine.ledger.bodies import BodyRecords, KeptTexts
from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.discovery import Discovery
from inchworm.engine.ledger.draft.draft import Committed, Draft, Outcomes
from inchworm.engine.ledger.edits import FrontierEdits
from inchworm.engine.ledger.entering import Entering
from inchworm.engine.ledger.redirects import Redirects
from inchworm.engine.ledger.rejudging import Rejudging
from inchworm.engine.ledger.robots import RobotsRecord
from inchworm.engine.ledger.sweep import Sweep
from inchworm.engine.ledger.transaction import Transaction
from inchworm.engine.ledger.visits import VisitRecords
from inchworm.model import (
    DownHost,
    FinishedVisit,
    FoundUrl,
    FrontierEntry,
    Kind,
    Mode,
    Outcome,
    Reason,
    RunInfo,
    Source,
    Turn,
)
from inchworm.ports import ArchiveWriter, Commit, Store, Unreached
from inchworm.rules.order import order
from inchworm.rules.web.scope import ScopeVerdict
from inchworm.settings import Settings

if TYPE_CHECKING:
    from inchworm.engine.ranking import Ranking


class Author(NamedTuple):
    """Whose commits these are: a session of the run, and the token of its owner."""

    session: int
    token: int


class Ledger:
    """Commits the turns of one session, in the order it is given them. `edits`: what people change in the frontier;
    `ranking`: there in a run with a query."""

    def __init__(self, store: Store, archive: ArchiveWriter, run: RunInfo, author: Author, settings: Settings) -> None:
        self._store = store
        self._token = author.token
        self._builds_on_others = run.mode != Mode.BASELINE
        self._draft = draft = Draft(store, run, author.session)
        self._transaction = Transaction(store.commits, author.token, draft)
        self.ranking = _ranking(store, draft, self._transaction, run, settings)
        bounds = Bounds(settings, draft.seeds)
        self._entering = Entering(draft, bounds, settings, self.ranking)
        rejudging = Rejudging(draft, bounds, self._entering, run, settings)
        discovery = Discovery(store, draft, bounds, self._entering, rejudging, run, settings)
        self._robots = RobotsRecord(store, draft, run.run_id)
        redirects = Redirects(draft, bounds, discovery, rejudging, settings)
        self._bodies, texts = BodyRecords(store, archive, draft, run.run_id), KeptTexts(store.visits, run.run_id)
        self._visits = VisitRecords(
            draft, discovery, redirects, self._robots, self._bodies, texts, self.ranking, settings
        )
        self._sweep = Sweep(store, draft, bounds, self._entering, run)
        self.edits = FrontierEdits(
            store, draft, self._transaction, bounds, self._entering, rejudging, self._robots, run.run_id
        )
        self.new_first = discovery.new_first

    # Turns

    def commit(self, turns: Sequence[Turn]) -> Committed:
        """All of these turns, durably, or none of them. In one go; a session takes the three steps one by one."""
        self.begin()
        return self.finish(self.apply(turns))

    def begin(self) -> None:
        """Open the transaction. May wait for a lock."""
        self._transaction.open()

    def apply(self, turns: Sequence[Turn]) -> Outcomes:
        """Decide what the turns come to and write their rows. Waits for nobody; the transaction stays open."""
        with self._transaction.step():
            self._visits.expect([turn for turn in turns if isinstance(turn, FinishedVisit)])
            outcomes = tuple((turn, self._outcome(turn)) for turn in turns)
            self._draft.write()
        return outcomes

    def _outcome(self, turn: Turn) -> Outcome | Reason:
        if isinstance(turn, FinishedVisit):
            return self._visits.add(turn)
        self._draft.steps.next()
        self._draft.frontier.refuse(turn.entry, turn.reason)
        return turn.reason

    def finish(self, outcomes: Outcomes) -> Committed:
        """Make it last: first the archive, then the rows that point into it. Waits for the disk."""
        with self._transaction.step():
            fault.point("before_archive")
            self._bodies.sync()
            fault.point("before_commit")
        self._transaction.close()
        fault.point("after_commit")
        return self._draft.committed(outcomes)

    # The beginning of a run

    def seed(self, seeds: Sequence[FoundUrl], known: Sequence[Unreached] = ()) -> Commit:
        """The first entries of a new run, to be written in the transaction that makes the run: its seeds, and the pages
        of earlier runs that it is to begin with."""
        self._draft.known.look_up(seed.url for seed in seeds)
        for number, seed in enumerate(seeds):
            place = (0, number)
            parent = FrontierEntry(0, seed.url, seed.request_url, Kind.PAGE, Source.INITIAL, number, 0, 0, 0, place)
            self._entering.enter(seed, parent, place, ScopeVerdict(number, 0, 0, None))
        self._sweep.start_from(known)
        return self._draft.changes()

    # Its end

    def closing(self) -> Callable[[], Committed] | None:
        """What is left to do for a run with nothing pending: ask for what was not reached, decide what changed."""
        if not self._builds_on_others or self._draft.milestones.is_concluded:
            return None
        return self._conclude if self._draft.milestones.is_swept else self._ask_for_unreached

    def end_early(self) -> None:
        """What is pending is left to the next run; what is known by now is decided."""
        self.edits.clear()
        if self._builds_on_others:
            self._conclude()

    def _ask_for_unreached(self) -> Committed:
        with self._transaction.whole():
            self._sweep.enter_unreached()
        return self._draft.committed()

    def _conclude(self) -> Committed:
        with self._transaction.whole():
            self._sweep.conclude()
        return self._draft.committed()

    # In between

    def refresh_robots(self, origins: Iterable[str]) -> Committed | None:
        """These were read too long ago: they are asked for again, ahead of everything else. None: all of them are
        asked for already."""
        settled = self._robots.settled(origins)
        if not settled:
            return None
        with self._transaction.whole():
            self._draft.steps.next()
            self._draft.milestones.disturb("robots")
            self._robots.refresh(settled)
        return self._draft.committed()

    def note_hosts(self, down: Sequence[DownHost], up: Sequence[str]) -> Committed:
        """Hosts that cannot be reached any more, or can again."""
        with self._transaction.whole():
            self._draft.learned.outages(down, up)
        return self._draft.committed()

    def beat(self) -> None:
        """Show that the owner lives, when there is nothing to commit."""
        self._store.owner.beat(self._token)


def _ranking(store: Store, draft: Draft, transaction: Transaction, run: RunInfo, settings: Settings) -> Ranking | None:
    if settings.order != order.BEST:
        return None
    from inchworm.engine.ranking import Ranking

    return Ranking(store.ranks, draft, transaction, run.run_id, settings.query)
