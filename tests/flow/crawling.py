"""Crawls for tests: a home in a folder, its verbs in this process, the command line in another, and small pages."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from click.testing import CliRunner, Result

from inchworm.app import App, Hooks, Start, Summary
from inchworm.app.act.content.selection import ExportOptions
from inchworm.app.read.runs import RunLine
from inchworm.cli import main
from inchworm.rules.words.json_form import json_form, json_object
from inchworm.sink.columns import KNOWN
from inchworm.testing import Served

PATIENCE = 120.0
"""Seconds after which a crawl of these tests is taken to hang."""


class Home:
    """A home of its own. Every session that ends in this process is followed by the checks that `doctor` makes."""

    patience = PATIENCE

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = App(folder)

    def crawl(
        self, *seeds: str, name: str = "", fresh: bool = False, hooks: Hooks | None = None, **given: Any
    ) -> Summary:
        start = Start(seeds, name, {"delay": 0, "allow_private": True, **given}, fresh)
        return self._sit(self.app.sessions.work(self.app.plan.crawl(start), hooks))

    def recrawl(self, mode: str = "", **given: Any) -> Summary:
        return self._sit(
            self.app.sessions.work(self.app.plan.recrawl(self.word, mode, {"delay": 0, "allow_private": True, **given}))
        )

    def resume(self, hooks: Hooks | None = None, **given: Any) -> Summary:
        return self._sit(
            self.app.sessions.work(self.app.plan.resume(self.word, {"delay": 0, "allow_private": True, **given}), hooks)
        )

    def _sit(self, session: Coroutine[Any, Any, Summary]) -> Summary:
        summary = asyncio.run(asyncio.wait_for(session, self.patience))
        faults = self.faults()
        assert not faults, faults
        return summary

    @property
    def word(self) -> str:
        """The id of the newest crawl."""
        return self.app.workspace.crawls.all()[-1].crawl_id

    def faults(self) -> list[str]:
        found: list[str] = []
        for crawl in self.app.workspace.crawls.all():
            with self.app.workspace.reading(crawl) as store:
                found += self.app.check.record(crawl, store)
        return found

    # What is known

    def export(self, format_name: str, run: int | None = None) -> bytes:
        out = io.BytesIO()
        self.app.export.to_file(self.word, format_name, out, ExportOptions(run))
        return out.getvalue()

    def urls(self, run: int | None = None) -> list[str]:
        return self.export("urls", run).decode().splitlines()

    def paths(self, run: int | None = None) -> list[str]:
        """The paths that were asked for, each once, in the order of record."""
        return [path_of(url) for url in self.urls(run)]

    def record(self, run: int | None = None) -> list[dict[str, Any]]:
        """What a run, or the last one, has on record, without the texts."""
        number = self.app.crawls.status(self.app.workspace.find(self.word)).run if run is None else run
        out = io.BytesIO()
        self.app.export.to_file(
            self.word, "jsonl", out, ExportOptions(number, columns=tuple(column.name for column in KNOWN))
        )
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def outcomes(self) -> list[tuple[str, str]]:
        """Every visit in the order of record: its path, and its outcome or the kind of its failure."""
        return [(path_of(visit["url"]), visit["failure"] or visit["outcome"]) for visit in self.record()]

    def story(self, run: int | None = None) -> list[dict[str, Any]]:
        """The whole record without what depends on time."""
        passing = ("fetched_at", "seconds", "archive", "run")
        return [{k: v for k, v in visit.items() if k not in passing} for visit in self.record(run)]

    def show(self, url: str, run: int | None = None) -> dict[str, Any]:
        return dict(json_object(self.app.pages.one(self.word, url, run)))

    def reason(self, url: str) -> str | None:
        """Why a URL was refused; None when it was not."""
        found: str | None = self.show(url)["reason"]
        return found

    def reasons(self) -> dict[str, int]:
        """How many URLs were refused, by reason."""
        numbers = self.app.frontier.numbers(self.app.workspace.find(self.word))
        return {one.reason: one.count for one in numbers.counts if one.reason}

    def status(self) -> dict[str, Any]:
        """As programs get it."""
        return cast(dict[str, Any], json_form(self.app.crawls.status(self.app.workspace.find(self.word))))

    def checkpoints(self) -> list[dict[str, Any]]:
        """As programs get them, oldest first."""
        return cast(list[dict[str, Any]], json_form(self.app.checkpoints.list(self.app.workspace.find(self.word))))

    def runs(self) -> Sequence[RunLine]:
        return self.app.runs.list(self.app.workspace.find(self.word))

    # The command line

    def cli(self, *arguments: str, code: int | None = 0) -> Result:
        """Run a command in this process and expect this exit code, or any."""
        done = CliRunner().invoke(main, arguments, env={"INCHWORM_HOME": str(self.folder)})
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert code is None or done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
        return done

    def ask(self, *arguments: str) -> Any:
        """What a command answers in JSON."""
        return json.loads(self.cli(*arguments, "--json").stdout)

    def process(self, *arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        with self.running(*arguments, **environment) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, (process.returncode, out, err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @contextmanager
    def running(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """A command under way, which does not outlive the block."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("INCHWORM_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "inchworm", *arguments],
            env={**inherited, "INCHWORM_HOME": str(self.folder), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


class FastClock:
    """A clock that goes ten times as fast as the real one, and can be set forward."""

    speed = 10

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._began_ms = time.time_ns() // 1_000_000
        self._skipped = 0.0

    def monotonic(self) -> float:
        return self.at(time.monotonic()) + self._skipped

    def now_ms(self) -> int:
        return self._began_ms + round(1000 * (self.monotonic() - self._began))

    def at(self, moment: float) -> float:
        """What this clock showed at a moment of the real one."""
        return self._began + self.speed * (moment - self._began)

    def skip(self, seconds: float) -> None:
        self._skipped += seconds


def page(name: str, *links: str, head: str = "", body: str = "") -> str:
    """A page whose text is its own, with these links."""
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    text = " ".join(f"This is what {name} says in sentence {number}." for number in range(4))
    return f"<!doctype html><title>{name}</title>{head}<main><p>{text}</p>{body}</main><nav><ul>{anchors}</ul></nav>"


def chain(length: int, prefix: str = "/c") -> dict[str, str]:
    """Pages that each link to the next one only."""
    return {
        f"{prefix}{number}": page(f"{prefix}{number}", *([f"{prefix}{number + 1}"] if number + 1 < length else []))
        for number in range(length)
    }


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def is_control(path: str) -> bool:
    """Whether this is a robots.txt or a sitemap, which no limit counts."""
    return path == "/robots.txt" or "sitemap" in path


def asked(served: Served) -> list[str]:
    """The URLs of pages and resources that the server was asked for, in the order they came in."""
    return [f"http://{hit.host}{hit.path}" for hit in served.log if not is_control(hit.path)]


def wait_until(is_true: Callable[[], object], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
