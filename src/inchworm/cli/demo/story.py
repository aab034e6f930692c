"""`inchworm demo`: crawl a small site in sessions, kill the crawler half way, resume; go back; see what changed.

The site is served by this process, which keeps a log of every request. The crawler runs as child processes, by
the commands that are printed, in a home that is removed afterwards. Nothing is said that was not checked: the
first claim that is not true ends the demo with exit code 1.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from inchworm import settings
from inchworm.testing import Hit, Served, Site, linked_site

PAGES = 240
BUDGET = 70
KILL_AT = 55
"""The request of the second session at which it is killed."""

_SLOW = (0.04, 0.08)
_FAST = (0.0, 0.005)
_CONTROL = ("/robots.txt", "/sitemap.xml")
_CHANGED = ("/p7", "/p58", "/p131")
_NEW, _GONE = "/news", "/p200"
_STAMP = "<p>Built by the site's own robot, version {}.</p>"
_MOST_SESSIONS = 10
_CHILD_SECONDS = 120.0


def run() -> int:
    """Play the demo. 0 when everything it says turned out to be true."""
    console = _Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    pages, trap = linked_site(PAGES), _Trap()
    for path, page in pages.items():
        pages[path] = page + _STAMP.format("1.0")
    site = Site(pages, latency=_SLOW, validators=True)
    with (
        tempfile.TemporaryDirectory(prefix="inchworm-demo-") as folder,
        site.serve(on_hit=trap.spring) as served,
    ):
        demo = _Demo(console, Path(folder), served, pages, trap)
        try:
            demo.play()
            # What is left compares whole crawls, and nobody needs to watch the server think.
            site.latency = _FAST
            demo.compare()
        except _UntrueError as untrue:
            console.print(Text(f"   NOT TRUE: {untrue}", style="bold red"))
            return 1
    return 0


class _Console(Console):
    """What is shown; whoever has seen enough (`| head`) ends it without an error."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _UntrueError(Exception):
    """Something that the demo was about to say is not so."""


class _Trap:
    """Kills a process with SIGKILL when the server gets its n-th request."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.left = 0

    def spring(self, hit: Hit) -> None:
        if self.process is None or hit.path in _CONTROL:
            return
        self.left -= 1
        if self.left == 0:
            self.process.kill()


@dataclass(frozen=True, slots=True)
class _Ran:
    """A command that ended."""

    code: int
    out: str
    said: tuple[str, ...]


class _Demo:
    def __init__(self, console: Console, folder: Path, served: Served, pages: dict[str, str], trap: _Trap) -> None:
        self._console = console
        self._folder = folder
        self._served = served
        self._pages = pages
        self._trap = trap
        self._url = served.url("/")
        self._home = folder / "home"
        self._step = 0
        self._started = time.monotonic()
        self._record: list[str] = []
        self._tick = "✓" if console.encoding.lower().startswith("utf") else "+"

    def play(self) -> None:
        """Crawl in sessions, with a kill."""
        self._console.print(
            f"A site of {PAGES} pages is served on {self._url} from memory.\n"
            "The checks below go by its server's own log of requests.\n"
            "Everything happens in a temporary folder."
        )
        self._session()
        in_flight = self._killed_session()
        self._rest(in_flight)

    def compare(self) -> None:
        """Hold the result against an undisturbed crawl, its own archive, and a site that changes."""
        self._record = self._recorded()
        self._undisturbed()
        self._replayed()
        self._changed()
        self._stamped()
        seconds = time.monotonic() - self._started
        self._console.print(Text(f"\nAll of this was checked and is true. {seconds:.0f} seconds.", style="bold green"))

    # The steps

    def _session(self) -> None:
        self._title(f"Crawl it, {BUDGET} requests at a time")
        asked = len(self._asked())
        summary = _summary(self._crawl("--budget", str(BUDGET)))
        used = len(self._asked()) - asked
        self._check(summary["ended_by"] == "budget" and used == BUDGET, f"The server got exactly {BUDGET} requests.")

    def _killed_session(self) -> frozenset[str]:
        """A session that is killed; the pages that were under way then."""
        self._title("The same command, killed with SIGKILL half way")
        self._trap.left = KILL_AT
        ran = self._crawl("--budget", str(BUDGET), trapped=True)
        self._check(ran.code == -signal.SIGKILL, f"Killed when the server got request {KILL_AT} of this session.")
        recorded, asked = self._recorded(), self._asked()
        in_flight = frozenset(asked) - set(recorded)
        self._check(
            len(asked) == len(set(asked)) and set(recorded) < set(asked) and len(recorded) == len(set(recorded)),
            f"{len(recorded)} pages are on record. {len(in_flight)} more were asked for and not yet committed.",
        )
        status = json.loads(self._inchworm("status", self._url, "--json").out)
        self._check(status["run_state"] == "paused", "The run counts as paused. There is nothing to repair.")
        return in_flight

    def _rest(self, in_flight: frozenset[str]) -> None:
        self._title("The same command again, until it is complete")
        for _ in range(_MOST_SESSIONS):
            asked = len(self._asked())
            summary = _summary(self._crawl("--budget", str(BUDGET)))
            used = len(self._asked()) - asked
            self._check(used == BUDGET or summary["run_state"] == "completed", f"{used} requests.")
            if summary["run_state"] == "completed":
                break
        counts = Counter(self._served.paths())
        self._check(set(self._asked()) == set(self._pages), f"All {PAGES} pages were fetched.")
        twice = {path for path, count in counts.items() if count > 1}
        self._check(
            twice == in_flight and all(counts[path] == 2 for path in twice),
            f"{PAGES - len(twice)} of them once. {len(twice)} twice: those that were under way at the kill.",
        )
        self._check(self._inchworm("doctor").code == 0, "`inchworm doctor`: store and archive are sound.")

    def _undisturbed(self) -> None:
        self._title("The same site in another home: one worker, no budget, no kill")
        recorded = self._elsewhere("undisturbed", "--workers", "1")
        self._check(recorded == self._record, f"The same {len(recorded)} URLs, in the same order.")
        self._title("There, back to the checkpoint after 100 pages, and on from it with 16 workers")
        asked = len(self._asked())
        before, self._home = self._home, self._folder / "undisturbed"
        self._say_and_run("continue", self._url, "--checkpoint", "0", "--workers", "16", "--delay", "0")
        recorded = self._recorded()
        self._home = before
        self._check(
            recorded == self._record and len(self._asked()) - asked == PAGES - 100,
            f"{PAGES - 100} pages were undone and fetched again. The same URLs, in the same order.",
        )

    def _replayed(self) -> None:
        self._title("The archive, written across the kill, crawled instead of the site")
        archive = self._folder / "site.warc.gz"
        self._inchworm("export", self._url, "--format", "warc", "-o", str(archive))
        asked = len(self._served.log)
        recorded = self._elsewhere("replayed", "--replay", str(archive))
        self._check(
            recorded == self._record and len(self._served.log) == asked,
            f"The same {len(recorded)} URLs, without one request to the server.",
        )

    def _changed(self) -> None:
        self._title(f"A week later {len(_CHANGED)} pages have changed, one is new, one is gone. The same command again")
        for path in _CHANGED:
            self._pages[path] = self._pages[path].replace("<p>", "<p>This is new. ", 1)
        self._pages[_CHANGED[0]] += f'<a href="{_NEW}">News</a>'
        self._pages[_NEW] = f"<title>News</title><p>{'Something happened. ' * 10}</p>"
        del self._pages[_GONE]
        summary = _summary(self._crawl())
        self._check(summary["run"] == 1 and summary["run_state"] == "completed", "Run 1 is complete, run 0 is kept.")
        found = json.loads(self._inchworm("compare", self._url, "--json").out)
        told = {
            kind: [self._path(url) for url in found[f"{kind}_documents"]] for kind in ("new", "modified", "deleted")
        }
        self._check(
            told == {"new": [_NEW], "modified": list(_CHANGED), "deleted": [_GONE]},
            f"New: {_NEW}. Modified: {' '.join(_CHANGED)}. Deleted: {_GONE}. That is exactly what was done.",
        )
        share = summary["saved_bytes"] / (summary["saved_bytes"] + summary["bytes"])
        self._check(share > 0.9, f"{share:.0%} of the bytes did not have to be downloaded.")

    def _stamped(self) -> None:
        self._title("The site is built anew, with another version number on every page. The same command again")
        for path, page in self._pages.items():
            self._pages[path] = page.replace("version 1.0", "version 1.1")
        summary = _summary(self._crawl())
        changes = summary["new"] + summary["modified"] + summary["deleted"]
        self._check(
            changes == 0 and summary["unchanged"] == PAGES,
            "They were downloaded, and none of them counts as changed: they bear a new stamp, no more.",
        )

    def _elsewhere(self, home: str, *options: str) -> list[str]:
        """What a crawl of the same site in another home records."""
        before, self._home = self._home, self._folder / home
        self._crawl(*options)
        recorded = self._recorded()
        self._home = before
        return recorded

    # What they are made of

    def _title(self, text: str) -> None:
        self._step += 1
        self._console.print(Text(f"\n{self._step}. {text}", style="bold"))

    def _check(self, is_true: bool, claim: str) -> None:
        if not is_true:
            raise _UntrueError(claim)
        self._console.print(Text.assemble("   ", (self._tick, "bold green"), f" {claim}"))

    def _crawl(self, *options: str, trapped: bool = False) -> _Ran:
        """Crawl the site and show what the crawler says."""
        return self._say_and_run("crawl", self._url, "--delay", "0", *options, trapped=trapped)

    def _say_and_run(self, *arguments: str, trapped: bool = False) -> _Ran:
        shown = shlex.join(["inchworm", *arguments]).replace(f"{self._folder}{os.sep}", "")
        self._console.print(Text(f"   $ {shown}", style="cyan"))
        with self._console.status("crawling"):
            ran = self._inchworm(*arguments, "--json", trapped=trapped)
        for line in ran.said:
            self._console.print(Text(f"     {line}", style="dim"))
        self._check_code(ran, 0, -signal.SIGKILL if trapped else 0)
        return ran

    def _inchworm(self, *arguments: str, trapped: bool = False) -> _Ran:
        command = [sys.executable, "-P", "-m", "inchworm", *arguments]
        with subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment()
        ) as process:
            self._trap.process = process if trapped else None
            try:
                out, said = process.communicate(timeout=_CHILD_SECONDS)
            except BaseException:
                process.kill()
                raise
            finally:
                self._trap.process = None
        return _Ran(process.returncode, out, tuple(said.splitlines()))

    def _environment(self) -> dict[str, str]:
        """Ours, without settings that would change what is shown."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("INCHWORM_") and name not in settings.ALIASES
        }
        return {**kept, "INCHWORM_HOME": str(self._home)}

    def _check_code(self, ran: _Ran, *codes: int) -> None:
        if ran.code not in codes:
            raise _UntrueError(f"the command ended with {ran.code}")

    def _asked(self) -> list[str]:
        """The paths of pages in the server's log, in the order they came in."""
        return [path for path in self._served.paths() if path not in _CONTROL]

    def _recorded(self) -> list[str]:
        """The paths in the crawl's own record."""
        ran = self._inchworm("export", self._url, "--format", "urls")
        self._check_code(ran, 0)
        return [self._path(url) for url in ran.out.splitlines()]

    def _path(self, url: str) -> str:
        return "/" + url.removeprefix(self._url)


def _summary(ran: _Ran) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(ran.out)
    return summary
