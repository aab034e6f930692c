"""The verbs of inchworm, shared by library and command line. With `engine` the only part that picks adapters."""

from __future__ import annotations

from inchworm.app.changes import Changes
from inchworm.app.checkpoints import Checkpoints
from inchworm.app.crawling import Crawling, Start
from inchworm.app.desk import home_folder
from inchworm.app.exports import Exports
from inchworm.app.looking import Looking
from inchworm.app.repeating import Repeating
from inchworm.app.reporting import Reporting
from inchworm.app.searching import Searching
from inchworm.engine import Hooks, Summary, SystemClock
from inchworm.sink.export import FORMATS, Target

__all__ = ["FORMATS", "App", "Hooks", "Start", "Summary", "SystemClock", "Target", "home_folder"]


class App(Repeating, Crawling, Checkpoints, Changes, Exports, Looking, Searching, Reporting):
    """Everything that can be done in one home."""
