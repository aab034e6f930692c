"""One crawl from its first start to its end, through any number of deaths, with the books kept beside it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.crash import checker
from tests.crash.website import Web

from inchworm.cli import main

SABOTEUR = Path(__file__).with_name("saboteur.py")
PATIENCE = 60.0
"""No session of this suite takes this many seconds unless it hangs."""


@dataclass(frozen=True, slots=True)
class Twist:
    """What is different about one process: a fault point, a sabotage, variables, a program in front, limits."""

    fault: str = ""
    sabotage: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    limits: Mapping[int, int] = field(default_factory=dict)
    stderr: str = ""

    def command(self, arguments: Sequence[str]) -> list[str]:
        program = [str(SABOTEUR), self.sabotage] if self.sabotage else ["-m", "inchworm"]
        return [*self.prefix, sys.executable, *program, *arguments]

    def environment(self, home: Path) -> dict[str, str]:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("INCHWORM_")}
        fault = {"INCHWORM_FAULT": self.fault} if self.fault else {}
        return {**inherited, "INCHWORM_HOME": str(home), **fault, **self.env}

    def limit(self) -> None:
        for what, most in self.limits.items():
            resource.setrlimit(what, (most, most))


PLAIN = Twist()


@dataclass(slots=True)
class Running:
    """A process under way."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    web: Web
    hits: int
    """How many requests the server had seen before it began."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def asked(self) -> int:
        """How many requests the server has seen since."""
        return self.web.count() - self.hits

    def wait_for(self, requests: int) -> None:
        """Wait until the server has seen so many requests since, or until it is dead."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and self.asked() < requests:
            assert time.monotonic() < deadline, f"{self.asked()} requests in {PATIENCE:.0f} s:\n{self.err.read_text()}"
            time.sleep(0.001)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> Ended:
        """How it ended. A process that hangs is killed, and the test fails."""
        if not self._has_ended_within(seconds):
            self.end()
            raise AssertionError(f"still running after {seconds:.0f} s:\n{self.err.read_text()}")
        return Ended(self.process.wait(), self.out.read_text(), self.err.read_text() if self.err.is_file() else "")

    def _has_ended_within(self, seconds: float) -> bool:
        """Like Popen.wait, but without looking every 50 ms."""
        if self.process.poll() is not None:
            return True
        descriptor = os.pidfd_open(self.pid)
        try:
            return bool(select.select([descriptor], [], [], seconds)[0])
        finally:
            os.close(descriptor)

    def end(self) -> None:
        """Kill it if it lives, with the child that a program in front may have started."""
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def summary(self) -> dict[str, Any]:
        """What --json printed last; nothing when it did not come to that."""
        lines = self.out.strip().splitlines()
        return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}

    @property
    def has_completed(self) -> bool:
        return self.summary.get("run_state") == "completed"

    def assert_plain(self, *words: str) -> None:
        """One sentence with these words, and no traceback."""
        told = [line for line in self.err.splitlines() if line.startswith("inchworm: ")]
        assert len(told) == 1 and "Traceback" not in self.err, self
        for word in words:
            assert word in self.err, f"{word!r} is missing:\n{self}"

    def __str__(self) -> str:
        return f"exit {self.code}\n{self.out}{self.err}"


class Trial:
    """A home of its own, one crawl of a site in it, and what the server saw of each process."""

    def __init__(self, folder: Path, web: Web, *options: str, seeds: Sequence[str] = ()) -> None:
        self.folder = folder
        self.web = web
        self.home = folder / "home"
        self.seeds = seeds or (web.url("/"),)
        self.options = options if "--delay" in options else ("--delay", "0", *options)
        self.asked: list[checker.Asked] = []
        self.committed: list[checker.Committed] = []
        self.story: list[str] = []
        self.problems: list[str] = []
        self.deaths = 0
        self.has_completed = False
        self._processes: list[Running] = []
        folder.mkdir(parents=True, exist_ok=True)

    # Processes

    def start(self, *options: str, twist: Twist = PLAIN) -> Running:
        """The same command as every time, and these options."""
        return self.call("crawl", *self.seeds, *self.options, *options, "--json", twist=twist)

    def call(self, *arguments: str, twist: Twist = PLAIN) -> Running:
        """Any command, in this home."""
        number = len(self._processes) + 1
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        err = Path(twist.stderr) if twist.stderr else err
        hits = self.web.count()
        with out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                twist.command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                env=twist.environment(self.home),
                process_group=0,
                preexec_fn=twist.limit if twist.limits else None,  # noqa: PLW1509 - it calls nothing but setrlimit
            )
        running = Running(process, out, err, self.web, hits)
        self._processes.append(running)
        return running

    def say(self, *arguments: str) -> Ended:
        """A short command, to its end."""
        return self.call(*arguments).wait()

    def close(self) -> None:
        for running in self._processes:
            running.end()

    # Sessions, with their books

    def sit(self, *options: str, twist: Twist = PLAIN, during: Callable[[Running], None] | None = None) -> Ended:
        """One process to its end, by itself or by what `during` does to it."""
        running = self.start(*options, twist=twist)
        if during:
            during(running)
        ended = self.note(running)
        self.story.append(f"{' '.join(options)} {twist.fault}{twist.sabotage} -> {ended.code}".strip())
        return ended

    def note(self, running: Running) -> Ended:
        """Wait for a process and enter it in the books."""
        ended = running.wait()
        self.web.settle()
        db = checker.copy_store(self.crawl_folder, self.folder / "copy") if self.has_store else None
        before = max((one.session for one in self.asked), default=0)
        with closing(db) if db else _nothing():
            session = checker.newest_session(db)
            if db is not None:
                self.problems += [f"after {ended.code}: {text}" for text in checker.store_problems(db)]
            self.committed.append(checker.committed(db))
            self.has_completed = checker.has_completed(db)
            self.deaths = checker.deaths(self.crawl_folder, db) if db else 0
        urls = tuple(self.web.asked(running.hits))
        unfinished = ended.code not in (0, 130, 143, 129)
        self.asked.append(checker.Asked(session if session > before else 0, urls, unfinished))
        return ended

    def complete(self, *options: str) -> None:
        """The same command until it says completed, which takes one more session, whatever was before."""
        if not self.has_completed:
            ended = self.sit(*options)
            assert ended.code == 0, self.report([str(ended)])
            assert ended.has_completed, self.report([str(ended)])

    # Looking

    @property
    def crawl_folder(self) -> Path:
        (folder,) = (self.home / "crawls").iterdir()
        return folder

    @property
    def has_store(self) -> bool:
        return (self.home / "crawls").exists() and len(list((self.home / "crawls").glob("*/crawl.db"))) == 1

    @contextmanager
    def store(self) -> Iterator[sqlite3.Connection]:
        """A copy of the store as it stands."""
        db = checker.copy_store(self.crawl_folder, self.folder / "copy")
        assert db is not None
        with closing(db):
            yield db

    def export(self, format_name: str = "urls", *options: str) -> bytes:
        """What the command writes, in this process: only the crawl itself has to be killed."""
        target = self.folder / "export"
        words = ("export", self.seeds[0], "--format", format_name, "-o", str(target), *options)
        done = CliRunner().invoke(main, words, env={"INCHWORM_HOME": str(self.home)})
        assert done.exit_code == 0, done.output
        return target.read_bytes()

    # Judging

    def check(self, ends: Mapping[str, str] | None = None) -> None:
        """Everything that must hold after a run was completed; all that does not, in one message."""
        self.assert_sound(ended=True)
        with self.store() as db:
            found = [
                *checker.end_problems(db, self.web.ends if ends is None else ends),
                *checker.request_problems(db, self.asked),
                *checker.durability_problems(db, self.committed),
            ]
        assert not found, self.report(found)

    def assert_sound(self, ended: bool = False) -> None:
        """What must hold at any time. After a clean end the archive holds nothing but what is committed."""
        found = checker.check_folder(self.crawl_folder, self.folder / "copy", ended) if ended or self.has_store else []
        assert not [*self.problems, *found], self.report([*self.problems, *found])

    def report(self, found: Sequence[str]) -> str:
        return "\n".join(["", *found[:40], f"({len(found)} in all) after:", *self.story])


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def wait_until(question: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.01)
