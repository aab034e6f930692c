"""The command line: parse, call one verb of `app`, print."""

from inchworm.cli.commands import main

__all__ = ["main"]
