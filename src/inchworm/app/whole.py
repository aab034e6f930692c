"""All verbs together."""

from __future__ import annotations

from inchworm.app.changes import Changes
from inchworm.app.checkpoints import Checkpoints
from inchworm.app.crawling import Crawling
from inchworm.app.exports import Exports
from inchworm.app.looking import Looking
from inchworm.app.repeating import Repeating
from inchworm.app.reporting import Reporting
from inchworm.app.searching import Searching


class App(Repeating, Crawling, Checkpoints, Changes, Exports, Looking, Searching, Reporting):
    """Everything that can be done in one home."""
