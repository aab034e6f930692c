"""What the command line asks before it does harm, and what it refuses; how it behaves on terminals and in pipes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.flow.crawling import PATIENCE, Home, chain, page

from inchworm.cli.screen import display
from inchworm.service.serve import PlainLines
from inchworm.testing import Page, Site, redirect

ROOT = Path(__file__).parent.parent.parent
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


def into_closed_pipe(home: Home, *arguments: str, both: bool = False) -> tuple[int, str]:
    """Run a command whose reader has gone; its exit code, and what it said on standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "inchworm", *arguments],
            env={**os.environ, "INCHWORM_HOME": str(home.folder)},
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing if both else subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writing)
    return done.returncode, (done.stderr or b"").decode()


def test_a_pipe_that_closes_early_is_no_error(home: Home) -> None:
    """`| head` has what it wanted: exit code 0, and nothing is said about it, whatever the command."""
    with Site(SMALL).serve() as served:
        seed = served.url("/")
        home.crawl(seed, name="mine")
        home.crawl(seed, name="mine")
        home.cli("jobs", "add", "mine", "--every", "6h")
        job = home.ask("jobs", "list")[0]["id"]
        commands = [
            *(("--help",), ("--version",), ("crawl", "--help"), ("list",), ("status", "mine"), ("doctor",), ("demo",)),
            *(("show", "mine", seed), ("why", "mine", seed), ("failed", "mine"), ("queue", "mine", "--list")),
            *(("runs", "mine"), ("compare", "mine", "--all"), ("checkpoint", "mine"), ("checkpoints", "mine")),
            *(("diff", "mine", seed), ("search", "mine", "home"), ("report", "mine", "slow"), ("notifications",)),
            *(("report", "mine", "errors", "--csv"), ("show-settings", "mine"), ("configure", "mine"), ("token",)),
            *(("export", "mine", "--format", name) for name in ("urls", "jsonl", "csv", "parquet", "warc")),
            *(("export", "mine", "--format", name) for name in ("fingerprints", "sitemap")),
            *(("jobs", "list"), ("jobs", "show", job), ("jobs", "executions", job), ("jobs", "stats")),
            *(("retry", "mine", "--json"), ("resume", "mine", "--delay", "0", "--json"), ("crawl", seed, "--json")),
            ("checkpoints", "mine", "--export", "0"),
        ]
        ended = {" ".join(command): into_closed_pipe(home, *command) for command in commands}
    quiet = {name: (code, said) for name, (code, said) in ended.items() if "--json" not in name}
    assert {name: got for name, got in quiet.items() if got != (0, "")} == {}
    assert {name: got for name, got in ended.items() if got[0] or "Error" in got[1]} == {}


def test_a_crawl_goes_on_when_nobody_listens(home: Home) -> None:
    with Site(chain(20)).serve() as served:
        assert into_closed_pipe(home, "crawl", served.url("/c0"), "--scope", "host", "--delay", "0", both=True) == (
            0,
            "",
        )
    assert home.status()["run_state"] == "completed"
    assert home.status()["pages"] == 20


@pytest.mark.parametrize("name", ["warc", "parquet"])
def test_what_only_programs_read_is_not_written_to_a_terminal(home: Home, name: str) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine")
    code, said = on_terminal(home, "export", "mine", "--format", name)
    assert code == 2
    assert "-o" in said and "PAR1" not in said and "\x1f" not in said
    assert home.cli("export", "mine", "--format", name).stdout_bytes[:2] in (b"\x1f\x8b", b"PA")


def test_nor_is_a_checkpoint(home: Home) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine")
    home.cli("checkpoint", "mine")
    code, said = on_terminal(home, "checkpoints", "mine", "--export", "0")
    assert code == 2
    assert "-o" in said and "\x1f" not in said


@pytest.mark.parametrize(
    "command",
    [
        ("export", "mine", "--format", "jsonl"),
        ("export", "mine", "--format", "warc"),
        ("checkpoints", "mine", "--export", "0"),
    ],
)
def test_a_file_in_a_missing_folder_names_the_folder(home: Home, tmp_path: Path, command: tuple[str, ...]) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine")
    home.cli("checkpoint", "mine")
    missing = tmp_path / "not" / "there"
    said = home.cli(*command, "-o", str(missing / "file"), code=2).stderr
    assert f"There is no folder {missing}." in said
    assert not missing.parent.exists()


# What failed


def test_failures_are_told_by_kind_and_host(home: Home) -> None:
    """With the page that leads there, a few of each, and the number of the rest; JSON has all of them."""
    pages = {f"/gone{number}": Page("", 404) for number in range(14)} | {"/broken": Page("", 500)}
    site = Site({"/": page("home", "/a"), "/a": page("a", *pages), **pages})
    with site.serve() as served:
        home.crawl(served.url("/"), name="mine", max_retries=0)
        said = home.cli("failed", "mine").stdout
        host = f"127.0.0.1:{served.port}"
        assert f"http_4xx on {host}: 14 URLs" in said
        assert f"http_5xx on {host}: 1 URL\n" in said
        assert said.count("/gone") == 10
        assert "… and 4 more" in said
        assert said.count(f"found on {served.url('/a')}") == 11
        assert said.index("http_4xx on") < said.index("http_5xx on"), "the most frequent first"
        assert home.cli("failed", "mine", "--all").stdout.count("/gone") == 14
        assert "/gone" not in home.cli("failed", "mine", "--kind", "http_5xx").stdout
    assert len(home.ask("failed", "mine")["failed"]) == 15


def test_many_hosts_are_listed_up_to_a_number(home: Home) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"))
    (gone,) = home.app.pages.failed(home.word)
    failed = gone.record._replace(failure="dns", message="name not found", found_on=None)
    addresses = (f"http://h{number}.test/" for number in range(50))
    records = [failed._replace(url=address, request_url=address) for address in addresses]
    found = [dataclasses.replace(gone, record=one) for one in records]
    runner = CliRunner()
    with runner.isolation() as (out, *_):
        display.failed(found, "mine")
        said = out.getvalue().decode()
    assert said.count("http://h") == 20
    assert "… and 30 more on 30 hosts; --all and --json list them." in said


@pytest.mark.parametrize("times", [1, 2])
def test_a_dead_host_is_named_with_the_cause(home: Home, times: int) -> None:
    """Beside a host that is there: a run that got nothing at all is another matter."""
    with Site({}).serve() as dead:
        pass
    with Site({"/": "<title>here</title>"}).serve() as served:
        for _ in range(times):
            home.crawl(served.url("/"), dead.url("/"), name="dead", max_retries=0)
    host = f"127.0.0.1:{dead.port}"
    for command in (("failed", "dead"), ("why", "dead", dead.url("/")), ("report", "dead", "broken-links")):
        said = " ".join(home.cli(*command).stdout.split())
        assert "robots.txt" not in said
        assert "connection refused" in said
    assert f"connect on {host}: 1 URL" in home.cli("failed", "dead").stdout


def test_a_name_that_nobody_knows_is_said_to_be_unknown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with Site({"/": "<title>here</title>"}).serve() as served:
        home.crawl(served.url("/"), "http://no-such-host.test/", name="dead", max_retries=0)
    said = home.cli("failed", "dead").stdout
    assert "dns on no-such-host.test: 1 URL" in said and "name not found" in said


@pytest.mark.parametrize("word", ["notaurl", "docs/index.html", "status", "localhosts", "a/b"])
def test_a_word_is_no_address(home: Home, word: str) -> None:
    """Refused as the dashboard refuses it, and nothing is made."""
    for command in (("crawl", word), ("jobs", "add", word), ("crawl", "http://127.0.0.1:1/", word)):
        said = home.cli(*command, code=2).stderr
        assert f"{word!r} is not the address of a site." in said
        assert f"http://{word}" in said
    assert home.ask("list") == {"crawls": []}
    assert home.ask("jobs", "list") == []


# Words


def test_status_uses_the_words_for_a_whole_run(home: Home) -> None:
    with Site(SMALL).serve() as served:
        home.crawl(served.url("/"), name="mine", budget=1)
        assert "0 (baseline): interrupted (paused)" in home.cli("status", "mine").stdout
        assert "1 request, " in home.cli("status", "mine").stdout
        home.crawl(served.url("/"), name="mine")
        said = home.cli("status", "mine").stdout
        assert "0 (baseline): completed_with_errors\n" in said
        assert "order" not in said, "it is exact, as it should be"
        home.crawl(served.url("/a"), name="other")
        assert "0 (baseline): completed\n" in home.cli("status", "other").stdout


def test_a_limit_that_ended_among_duplicates_says_so(home: Home) -> None:
    same = page("the same")
    pages = {f"/{number}": same for number in range(40)}
    with Site({"/": page("home", *pages), **pages}).serve() as served:
        ended = home.process("crawl", served.url("/"), "--page-limit", "3", "--delay", "0", "--json")
    assert json.loads(ended.stdout)["mostly_duplicates"]
    assert "mostly duplicates" in ended.stderr
    assert "nothing is left" not in ended.stderr


def test_a_slower_run_has_saved_no_time(home: Home) -> None:
    site = Site(SMALL, validators=True)
    with site.serve() as served:
        home.crawl(served.url("/"), name="mine")
        site.latency = (0.3, 0.4)
        home.crawl(served.url("/"), name="mine")
    told = home.ask("runs", "mine", "--stats")
    assert told["totals"]["seconds_saved_estimate"] == 0
    assert "-" not in home.cli("runs", "mine", "--stats").stdout


def test_why_says_what_would_become_of_a_url_that_nobody_found(home: Home) -> None:
    robots = "User-agent: *\nDisallow: /docs/secret"
    with Site({"/docs": page("docs"), "/robots.txt": robots}).serve() as served:
        home.crawl(served.url("/docs"), name="mine", exclude=("*/print/*",))
        for path, told in {
            "/docs/new": "If one did, it would be crawled.",
            "/blog": "it would be refused (out_of_scope): it lies outside the crawl's scope.",
            "/docs/secret/x": "it would be refused (robots): the site's robots.txt forbids it.",
            "/docs/print/x": "it would be refused (excluded)",
        }.items():
            said = home.cli("why", "mine", served.url(path), code=2).stderr
            assert "is not known to run 0 of 'mine': no page it read links to it." in said
            assert told in said
        home.crawl(served.url("/docs"), name="wide", scope="any")
        said = home.cli("why", "wide", "http://elsewhere.test/", code=2).stderr
        assert "unless the robots.txt of its host forbids it, which has not been read" in said


def test_make_crawl_without_an_address_says_how() -> None:
    made = subprocess.run(
        ["make", "-C", str(ROOT), "crawl", "PYTHON=false", "BIN=/nowhere"],
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert made.returncode
    assert "make crawl URL=https://example.org/docs" in made.stdout + made.stderr
    assert "/nowhere" not in made.stdout + made.stderr, "nothing is installed or started"
