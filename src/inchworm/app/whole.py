"""All verbs together."""

from __future__ import annotations

from inchworm.app.checkpoints import Checkpoints
from inchworm.app.entries import Entries
from inchworm.app.exports import Exports
from inchworm.app.indexing import Indexing
from inchworm.app.iterating import Iterating
from inchworm.app.looking import Looking
from inchworm.app.repeating import Repeating
from inchworm.app.reporting import Reporting
from inchworm.app.scheduling import Scheduling
from inchworm.app.searching import Searching
from inchworm.app.steering import Steering


class App(
    Steering,
    Entries,
    Repeating,
    Scheduling,
    Iterating,
    Checkpoints,
    Exports,
    Looking,
    Searching,
    Indexing,
    Reporting,
):
    """Everything that can be done in one home."""
