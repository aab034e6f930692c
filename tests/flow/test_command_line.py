"""What the command line asks before it does harm, and what it refuses; how it behaves on terminals and in pipes."""

from __future__ import annotations

import contextlib
import logging
import os
import pty
import subprocess
import sys

import pytest
from tests.flow.crawling import PATIENCE, Home, page

from inchworm.service.serve import PlainLines
from inchworm.testing import Page, Site, redirect

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


EVIL = "\x1b]0;owned\x07 \x9b2J \x1b[35mRED \u202edesrever \u2066isolated\u2069 \x7f"
STEERING = ("\x1b]", "\x07", "\x9b", "\x1b[35m", "\x1b[2J", "\u202e", "\u2066", "\x7f")
HEADER = EVIL.encode().decode("latin-1")


def evil_page(name: str, *links: str) -> str:
    said = f"<h1>{name} {EVIL}</h1><p>{EVIL} and all that {name} has to say in its garden.</p>"
    head = f"<meta name=description content='{EVIL}'><link rel=canonical href='/{EVIL}'>"
    return page(f"{name} {EVIL}", *links, head=head, body=said)


EVIL_SITE = {
    "/": evil_page("home", "/a", f"/{EVIL}", "/turns", "/gone", "/twin", "//other.example/x"),
    "/a": Page(evil_page("a"), headers={"ETag": f'"{HEADER}"'}),
    "/twin": evil_page("a"),
    "/turns": redirect(f"http://[{HEADER}"),
    "/sitemap.xml": f"<urlset>{EVIL}",
}


def test_nothing_a_page_says_steers_the_terminal(home: Home) -> None:
    """Every command that shows what pages and servers made, on a terminal: none of its control characters arrive."""
    site = Site(dict(EVIL_SITE))
    with site.serve() as served:
        seed = served.url("/")
        said = [on_terminal(home, "crawl", seed, "--delay", "0", "--name", "evil")[1]]
        site.pages["/a"] = evil_page("a", "/new").replace("has to say", "had to say")
        site.pages["/new"] = evil_page("new")
        said.append(on_terminal(home, "crawl", seed, "--name", "evil", "--delay", "0", "--mode", "full")[1])
        looks = [
            *(("show", "evil", served.url(path)) for path in ("/", "/a", "/turns", "/sitemap.xml")),
            *(("why", "evil", served.url(path)) for path in ("/twin", "/turns", "/gone")),
            *(("report", "evil", name) for name in ("broken-links", "redirects", "duplicates", "errors", "slow")),
            *(("export", "evil", "--format", name) for name in ("urls", "jsonl", "csv", "fingerprints", "sitemap")),
            ("report", "evil", "duplicates", "--csv"),
            ("search", "evil", "garden"),
            ("compare", "evil", "--all"),
            ("diff", "evil", served.url("/a")),
            ("queue", "evil", "--list"),
            ("failed", "evil"),
        ]
        shown = {" ".join(command): on_terminal(home, *command) for command in looks}
    assert not {name: got for name, got in shown.items() if got[0]}
    for name, (_, text) in {**shown, "crawl": (0, said[0]), "again": (0, said[1])}.items():
        assert not [mark for mark in STEERING if mark in text], (name, text)
    assert "RED" in shown[f"show evil {seed}"][1], "it is shown, and does nothing"


def test_json_says_the_same_without_steering_the_terminal(home: Home) -> None:
    with Site(dict(EVIL_SITE)).serve() as served:
        home.crawl(served.url("/"), name="evil")
        seed, titles = served.url("/"), [visit["title"] for visit in home.show(served.url("/"))["visits"]]
    assert any("\u202e" in title and "\x1b" in title for title in titles)
    for command in (("show", "evil", seed), ("search", "evil", "garden"), ("report", "evil", "duplicates")):
        said = home.cli(*command, "--json").stdout
        assert said.rstrip("\n").isprintable()
    assert [visit["title"] for visit in home.ask("show", "evil", seed)["visits"]] == titles


def test_a_file_or_a_pipe_gets_every_byte_of_an_export(home: Home) -> None:
    with Site(dict(EVIL_SITE)).serve() as served:
        home.crawl(served.url("/"), name="evil")
    for name in ("jsonl", "csv"):
        assert home.cli("export", "evil", "--format", name).stdout_bytes == home.export(name)
        assert "\u202e".encode() in home.export(name)


def test_nor_does_the_log_of_the_service() -> None:
    record = logging.LogRecord("inchworm", logging.WARNING, "", 0, "it said %s", (f"{EVIL}\nand on",), None)
    said = PlainLines("%(message)s").format(record)
    assert all(line.isprintable() for line in said.split("\n"))
    assert said.endswith("\nand on")
