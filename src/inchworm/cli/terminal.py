"""Live progress on a terminal: a few lines that stay in place and fit 80 columns."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from inchworm.cli import display
from inchworm.model import CrawlInfo, RunInfo
from inchworm.rules.url import shorten
from inchworm.session import Progress

_SHOWN_URLS = 5


class Terminal:
    """Draws a session while it works, and says how it ended."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._name = ""
        self._spinner = Spinner("dots")

    def __enter__(self) -> Terminal:
        self._live.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._live.stop()

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None:
        self._name = crawl.name
        self._console.print(Text(display.opening(crawl, run, session), style="bold"))

    def progress(self, progress: Progress) -> None:
        self._live.update(self.picture(progress))

    def finished(self, summary: Any) -> None:
        first, *rest = display.closing(summary)
        self._console.print(Text(first, style="bold green" if summary.run_state == "completed" else "bold yellow"))
        for text in rest:
            self._console.print(Text(text))

    def picture(self, progress: Progress) -> RenderableType:
        """The lines of one moment."""
        counters = progress.counters
        done = counters.known - counters.pending - counters.refused
        total = max(1, counters.known - counters.refused)
        rate = progress.requests / progress.seconds if progress.seconds > 0.5 else 0.0
        left = f"about {display.clock(counters.pending / rate)} for what is known" if rate and counters.pending else ""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(self._spinner, ProgressBar(total=total, completed=done, width=40), f"{done:,} of {total:,}")
        numbers = Text.assemble(
            (f"  {counters.pages:,}", "bold green"),
            " pages   ",
            (f"{counters.pending:,}", "bold"),
            " pending   ",
            (f"{counters.failed:,}", "bold red" if counters.failed else ""),
            f" failed   {rate:,.1f}/s   {display.size(progress.size)}   {display.clock(progress.seconds)}",
        )
        return Group(bar, numbers, *self._urls(progress), Text(f"  {left}  Ctrl-C pauses.".rstrip(), style="dim"))

    def _urls(self, progress: Progress) -> list[Text]:
        width = self._console.width - 6
        shown = [
            Text(f"  → {shorten(url, width)}", style="dim", no_wrap=True) for url in progress.in_flight[:_SHOWN_URLS]
        ]
        more = len(progress.in_flight) - _SHOWN_URLS
        return [*shown, *([Text(f"    and {more} more", style="dim")] if more > 0 else [])]
