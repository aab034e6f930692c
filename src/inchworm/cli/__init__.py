"""The command line: parse, call one verb of `app`, print."""

from inchworm.cli import changes, output, past, repeat, report, search
from inchworm.cli.commands import main

__all__ = ["changes", "main", "output", "past", "repeat", "report", "search"]
