"""What the command line asks before it does harm, and what it refuses; how it behaves on terminals and in pipes."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import pytest
from tests.flow.crawling import PATIENCE, Home, page

from inchworm.testing import Site

SMALL = {"/": page("home", "/a", "/gone"), "/a": page("a")}


def on_terminal(home: Home, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Run a command on a terminal, type something; its exit code, and all that the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "inchworm", *arguments],
        env={**os.environ, "INCHWORM_HOME": str(home.folder), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    if typed:
        os.write(ours, typed.encode())
    said = b""
    # A terminal whose other end is closed is an error and not an end.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65_536):
            said += piece
    os.close(ours)
    return process.wait(PATIENCE), said.decode()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nothing_is_deleted_when_nobody_can_be_asked(home: Home, options: tuple[str, ...]) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine")
    refused = home.process("delete", "mine", *options, code=2)
    assert "--yes" in refused.stderr
    assert not refused.stdout
    assert home.ask("list")["crawls"][0]["pages"] == 2
    home.process("delete", "mine", "--yes", *options)
    assert home.ask("list")["crawls"] == []


@pytest.mark.parametrize(("typed", "is_deleted"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_on_a_terminal_it_is_asked_before_it_deletes(home: Home, typed: str, is_deleted: bool) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine")
    _, said = on_terminal(home, "delete", "mine", typed=typed)
    assert "Delete 'mine' with all its pages?" in said
    assert (home.ask("list")["crawls"] == []) is is_deleted
