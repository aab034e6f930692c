"""What every command shows fits the terminal it is shown on, and nothing is left out to make it so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.flow.crawling import Home, page

from inchworm.cli import main
from inchworm.job import Job
from inchworm.rules.schedule import occurrence
from inchworm.rules.schedule.occurrence import Ended
from inchworm.testing import Page, Site

LONG = "a-rather-long-name-such-as-generators-of-sites-make-them-from-the-titles-of-their-articles"
NAME = "the documentation of a project with a long name"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A crawl with long addresses, runs, a branch, checkpoints, failures, jobs and what they did."""
    made = Home(tmp_path_factory.mktemp("widths") / "home")
    pages = {f"/{LONG}/{number}": page(f"page {number}", f"/gone/{LONG}", "/twin") for number in range(5)}
    site = Site({"/": page("home", *pages, "/turns"), **pages, "/twin": page("page 3"), "/turns": Page("", 302)})
    with site.serve() as served:
        made.seed = served.url("/")
        made.crawl(made.seed, name=NAME, max_retries=0, budget=3)
        made.crawl(made.seed, name=NAME, max_retries=0)
        site.pages[f"/{LONG}/1"] = page("page 1, which is another one now", "/new")
        site.pages["/new"] = page("new")
        made.crawl(made.seed, name=NAME, max_retries=0)
        made.cli("checkpoint", NAME)
        made.cli("continue", NAME, "--checkpoint", "0", "--as-new-run", "--delay", "0")
        made.cli("crawl", made.seed, "--name", "second", "--budget", "2", "--delay", "0")
    made.cli("jobs", "add", NAME, "--every", "6h")
    made.job = made.ask("jobs", "list")[0]["id"]
    made.cli("jobs", "run", made.job)
    (execution,) = made.app.dispatch.claim("s", 1)
    error, now_ms = f"it is down, and that for a long time already, says {LONG}", made.app.clock.now_ms()

    def decide(job: Job) -> Job:
        return occurrence.after_failure(job, error, now_ms)

    made.app.dispatch.claims.finish(
        execution.execution_id, execution.token, Ended("error", error=error), decide, now_ms
    )
    made.cli("jobs", "add", "https://docs.example.org/manual/", "--after", made.job)
    yield made
    made.app.close()


def looks(home: Home, tmp_path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Every command that shows something, as it is used to look; nothing here crawls or changes anything much."""
    seed, url, job = home.seed, f"{home.seed}{LONG}/1", home.job
    reports = ("broken-links", "redirects", "duplicates", "errors", "slow")
    return {
        "list": [()],
        "status": [(NAME,), ("second",)],
        "runs": [(NAME,), (NAME, "--stats")],
        "compare": [(NAME,), (NAME, "0", "1", "--all")],
        "diff": [(NAME, url, "0", "1"), (NAME, url, "0", "1", "--words")],
        "feed": [(NAME, "-o", str(tmp_path / "feed"))],
        "checkpoint": [(NAME,)],
        "checkpoints": [(NAME,), (NAME, "--stats")],
        "show": [(NAME, seed), (NAME, url), (NAME, f"{seed}gone/{LONG}"), (NAME, f"{seed}robots.txt")],
        "why": [(NAME, url), (NAME, f"{seed}gone/{LONG}"), (NAME, f"{seed}nobody/links/here")],
        "failed": [(NAME,)],
        "retry": [("second",)],
        "queue": [(NAME,), (NAME, "--list"), (NAME, "--not-followed")],
        "search": [(NAME, "page")],
        "report": [(NAME, name) for name in reports],
        "extract": [
            (NAME, url, "--extract", "all=main", "--extract", "links_=a@href | list"),
            (NAME, "--try", "--each", "p", "--extract", "all=:scope", "--extract", "nothing=.nothing"),
            ("second", "--extract", "a_field_with_a_rather_long_name=h1", "--extract", "heading=title"),
        ],
        "notifications": [()],
        "show-settings": [(NAME,)],
        "configure": [(NAME,)],
        "doctor": [()],
        "export": [(NAME, "--format", "urls", "-o", str(tmp_path / "urls"))],
        "jobs list": [()],
        "jobs show": [(job,)],
        "jobs executions": [(job,)],
        "jobs logs": [(job,)],
        "jobs stats": [()],
        "jobs distribution": [()],
        "jobs rebalance": [("--preview",)],
        "jobs sync": [()],
        "jobs pause": [(job,)],
        "jobs resume": [(job,)],
    }


NOT_LOOKED_AT = {
    *("crawl", "resume", "pause", "cancel", "recrawl", "repeat", "continue", "index", "serve", "token", "delete"),
    *(
        "demo",
        "demo-serve",
        "read",
        "map",
        "jobs add",
        "jobs change",
        "jobs cancel",
        "jobs retry",
        "jobs run",
        "jobs delete",
    ),
}
"""They work, and say a sentence or draw what other tests measure."""


def shown(home: Home, command: list[str], width: int) -> str:
    """What a terminal of so many columns gets from a command, without the codes for colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    got: list[bytes] = []
    reading = threading.Thread(target=_read_all, args=(ours, got))
    reading.start()
    with (
        pytest.MonkeyPatch.context() as patch,
        os.fdopen(theirs, "w", encoding="utf-8") as screen,
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
        contextlib.suppress(SystemExit),
    ):
        patch.setenv("INCHWORM_HOME", str(home.folder))
        main.main(command)
    reading.join()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", b"".join(got).decode())


def _read_all(terminal: int, got: list[bytes]) -> None:
    # A terminal whose other end is closed is an error and not an end.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65_536):
            got.append(piece)


def every_command() -> set[str]:
    jobs = main.get_command(click.Context(main), "jobs")
    assert isinstance(jobs, click.Group)
    return {*main.list_commands(), *(f"jobs {name}" for name in jobs.commands)} - {"jobs"}


@pytest.mark.parametrize("width", [80, 120])
def test_every_command_fits_its_terminal(home: Home, tmp_path: Path, width: int) -> None:
    """A line is longer than the terminal only when it is one word, such as an address, that can be copied as it is."""
    tried = looks(home, tmp_path)
    assert tried.keys() | NOT_LOOKED_AT == every_command()
    too_long = []
    for name, arguments in tried.items():
        for more in arguments:
            command = [*name.split(), *more]
            said = shown(home, command, width)
            assert (said.strip() or name in ("feed", "jobs logs")) and "Traceback" not in said
            lines = [line for line in said.splitlines() if len(line) > width and not _is_address(line)]
            too_long += [(name, line) for line in lines]
    assert not too_long


def _is_address(line: str) -> bool:
    """One word, with at most its name before it."""
    return len(line.split()) <= 3 and LONG in line


@pytest.mark.parametrize("name", ["runs", "jobs list", "checkpoints", "jobs executions"])
def test_a_narrow_table_says_all_that_a_wide_one_does(home: Home, name: str) -> None:
    command = [*name.split(), *{"runs": [NAME], "checkpoints": [NAME], "jobs executions": [home.job]}.get(name, [])]
    wide, narrow = home.cli(*command).stdout, shown(home, command, 80)
    values = set(re.findall(r"[\w-]+", "\n".join(wide.splitlines()[1:])))
    assert values - set(NAME.split()) <= set(re.findall(r"[\w-]+", narrow)), (wide, narrow)
