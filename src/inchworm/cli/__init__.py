"""The command line: parse, call one verb of `app`, print.

Rooms: `content` (what a crawl has), `screen` (what people see), `demo`. `commands` lists every command, `options` has
what they share. Start with `commands`.
"""

from inchworm.cli.commands import main

__all__ = ["main"]
