"""Draws docs/pictures/session.svg: a real crawl of a local site, killed half way and resumed.

    python docs/pictures/session.py

The crawler runs as a child process (this file with `--child`) and passes on what it would show; the parent draws
it with the code that draws the terminal, kills the child with SIGKILL, and runs the same command again.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from inchworm.app import App, Start
from inchworm.cli.screen.live import Terminal
from inchworm.cli.screen.words import opening
from inchworm.engine.caller import Hooks, Summary
from inchworm.model import Counters, LiveProgress
from inchworm.testing import Site, linked_site

PAGES = 900
WORKERS = 12
PORT = 8000
TARGET = Path(__file__).with_name("session.svg")

# No fonts from elsewhere: whatever monospaced font the reader has is stretched to fit.
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A crawl that is
killed half way and resumed with the same command">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""

_NORMAL = "3c4048 e06c75 7ec480 e0be6e 61a5ec c682dc 60bac4 c8ccd2"
_BRIGHT = "6e737d f0828a 96d796 f0d087 82b9f5 d79beb 78cdd6 ebeef2"


def _colours(text: str) -> list[tuple[int, int, int]]:
    return [(code >> 16, code >> 8 & 255, code & 255) for code in (int(word, 16) for word in text.split())]


THEME = TerminalTheme((30, 32, 38), (214, 217, 222), _colours(_NORMAL), _colours(_BRIGHT))


def main(pages_wanted: int = PAGES, port: int = PORT, target: Path = TARGET, kill_at: int = PAGES * 55 // 100) -> None:
    console = Console(record=True, width=80, force_terminal=True, color_system="truecolor", highlight=False)
    pages = {_rename(path): _rename(text) for path, text in linked_site(pages_wanted).items()}
    site = Site(pages, latency=(0.05, 0.2))
    with tempfile.TemporaryDirectory() as home, site.serve(port) as served:
        url = served.url("/", "manual.localhost")
        _watch(console, home, url, kill_at)
        console.print()
        _watch(console, home, url)
    svg = console.export_svg(title="inchworm", theme=THEME, code_format=FORMAT, unique_id="session")
    target.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


def _rename(text: str) -> str:
    """Addresses as a manual would have them."""
    return re.sub(r"/p(\d+)\b", lambda found: f"/{'guide' if int(found[1]) % 3 else 'reference'}/{found[1]}", text)


def _watch(console: Console, home: str, url: str, kill_at: int = 0) -> None:
    """One command: what a terminal shows of it, and its end. It is killed when it has so many pages."""
    console.print(Text.assemble(("$ ", "bold green"), (f"inchworm crawl {url} --delay 0 --workers {WORKERS}", "bold")))
    command = [sys.executable, __file__, "--child", home, url]
    terminal = Terminal(console)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - this very file
        last: LiveProgress | None = None
        for word, value in _messages(child):
            if word == "opening":
                console.print(Text(value, style="bold"))
            elif word == "summary":
                terminal.finished(Summary(**{**value, "seeds": ()}))
            else:
                last = _progress(value)
                if kill_at and last.counters.pages > kill_at:
                    child.kill()
        if kill_at and last is not None:
            console.print(terminal.picture(last), end="")
            console.print(Text.assemble(("Killed", "bold red"), ("   by `kill -9`", "dim")))
    if child.returncode != (-signal.SIGKILL if kill_at else 0):
        raise SystemExit("The crawl did not end as it should; there is no picture.")


def _messages(child: subprocess.Popen[str]) -> Iterator[tuple[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        yield tuple(json.loads(line))


def _progress(value: dict[str, Any]) -> LiveProgress:
    counters = Counters(**value["counters"])
    return LiveProgress(**{**value, "counters": counters, "in_flight": tuple(value["in_flight"]), "seeds": ()})


def crawl(home: str, url: str) -> None:
    """The child: a session that says as JSON what it would show."""

    def say(word: str, value: Any) -> None:
        print(json.dumps([word, value]), flush=True)

    hooks = Hooks(
        started=lambda crawl, run, session: say("opening", opening(crawl, run, session)),
        progress=lambda progress: say("progress", {**progress._asdict(), "counters": asdict(progress.counters)}),
    )
    app = App(Path(home))
    summary = asyncio.run(
        app.sessions.work(app.plan.crawl(Start((url,), given={"delay": 0, "workers": WORKERS})), hooks)
    )
    app.close()
    say("summary", asdict(summary))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        crawl(*sys.argv[2:])
    else:
        main()
