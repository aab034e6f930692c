"""All verbs together."""

from __future__ import annotations

from inchworm.app.agenda import Agenda
from inchworm.app.browsing import Browsing
from inchworm.app.checkpoints import Checkpoints
from inchworm.app.entries import Entries
from inchworm.app.exports import Exports
from inchworm.app.extracting import Extracting
from inchworm.app.indexing import Indexing
from inchworm.app.iterating import Iterating
from inchworm.app.looking import Looking
from inchworm.app.overview import Overview
from inchworm.app.pages import Pages
from inchworm.app.progress import Progressing
from inchworm.app.repeating import Repeating
from inchworm.app.reporting import Reporting
from inchworm.app.scheduling import Scheduling
from inchworm.app.searching import Searching


class App(
    Extracting,
    Overview,
    Progressing,
    Entries,
    Repeating,
    Agenda,
    Scheduling,
    Iterating,
    Checkpoints,
    Exports,
    Pages,
    Browsing,
    Looking,
    Searching,
    Indexing,
    Reporting,
):
    """Everything that can be done in one home."""
