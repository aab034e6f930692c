"""Changing a run outside of a session: by its ledger, which keeps every count."""

from __future__ import annotations

from inchworm import settings
from inchworm.app.workspace import settings_of_run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import CrawlOwner, NoArchive
from inchworm.model import CheckpointType, RunInfo, RunState
from inchworm.settings import Settings


def ledger_of(owner: CrawlOwner, current: RunInfo) -> Ledger:
    """The ledger of a run, to change something in it outside of a session."""
    values = settings.changed(Settings(), settings_of_run(current))
    return Ledger(owner.store, NoArchive(), current, Author(0, owner.token), values)


def end_early(owner: CrawlOwner, current: RunInfo, now_ms: int) -> None:
    """Complete a run as it is: what is pending is refused."""
    ledger_of(owner, current).end_early()
    owner.store.runs.set_state(owner.token, current.run_id, RunState.COMPLETED, now_ms)


def cancel_run(owner: CrawlOwner, current: RunInfo, now_ms: int) -> None:
    """End a run for good, but so that one can come back."""
    owner.checkpoint(CheckpointType.PAUSE, now_ms, current)
    owner.store.runs.set_state(owner.token, current.run_id, RunState.CANCELLED, now_ms)
