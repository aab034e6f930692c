"""Changing a run outside of a session: by its ledger, which keeps every count."""

from __future__ import annotations

from inchworm import settings
from inchworm.app.workspace import settings_of_run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import CrawlOwner, NoArchive
from inchworm.model import RunInfo
from inchworm.settings import Settings


def ledger_of(owner: CrawlOwner, current: RunInfo) -> Ledger:
    """The ledger of a run, to change something in it outside of a session."""
    values = settings.changed(Settings(), settings_of_run(current))
    return Ledger(owner.store, NoArchive(), current, Author(0, owner.token), values)
