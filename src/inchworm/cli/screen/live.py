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

from inchworm.cli.screen.words import closing, counted, opening, taking
from inchworm.model import CrawlInfo, LiveProgress, RunInfo
from inchworm.rules.web.url import shorten
from inchworm.rules.words.figures import about, clock, plain, size

_SHOWN_URLS = 4
_BAR = 40
_STATES = ("pending", "failed", "refused")


class Terminal:
    """Draws a session while it works, and says how it ended."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._spinner = Spinner("dots")
        self._recent: dict[str, None] = {}

    def __enter__(self) -> Terminal:
        self._live.start()
        # A process that is killed cannot bring the cursor back, so it is never taken away.
        self._console.show_cursor(True)
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._live.stop()

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None:
        self._console.print(Text(plain(opening(crawl, run, session)), style="bold"))

    def progress(self, progress: LiveProgress) -> None:
        self._live.update(self.picture(progress))

    def extracting(self, done: int, total: int) -> None:
        """Called by another thread, which `rich` minds."""
        if done < total:
            self._live.update(Text(f"  {taking(done, total)}", style="dim", no_wrap=True))

    def finished(self, summary: Any) -> None:
        first, *rest = map(plain, closing(summary))
        is_well = summary.run_state == "completed" and not summary.failed
        self._console.print(Text(first, style="bold green" if is_well else "bold yellow"))
        for text in rest:
            self._console.print(Text(text))

    def picture(self, progress: LiveProgress) -> RenderableType:
        """The lines of one moment."""
        counters = progress.counters
        done = counters.known - counters.pending - counters.refused
        total = max(1, counters.known - counters.refused)
        width = max(5, min(_BAR, self._console.width - 40))
        bar = ProgressBar(total, done, width, complete_style="green", finished_style="green")
        first = Table.grid(padding=(0, 1))
        first.add_row(self._spinner, bar, f"{done:,} of {total:,} URLs")
        return Group(first, _numbers(progress), *self._urls(progress), _session_line(progress), _hint(progress), Text())

    def _urls(self, progress: LiveProgress) -> list[Text]:
        """The last that were asked for, the newest at the end; above them what was a moment ago, so that the lines
        neither jump nor flicker. What takes long does not stand in the way of what comes after it."""
        width = self._console.width - 6
        under_way = dict.fromkeys(progress.in_flight[-_SHOWN_URLS:])
        before = [url for url in self._recent if url not in under_way]
        earlier = before[len(before) + len(under_way) - _SHOWN_URLS :] if len(under_way) < _SHOWN_URLS else []
        self._recent = {**dict.fromkeys(earlier), **under_way}
        lines = [Text(f"    {shorten(url, width)}", style="dim", no_wrap=True) for url in earlier]
        return lines + [Text(f"  → {shorten(url, width)}", style="cyan", no_wrap=True) for url in under_way]


def _hint(progress: LiveProgress) -> Text:
    if progress.is_ending:
        return Text("  Pausing: what is under way may finish. Ctrl-C again stops now.", style="yellow", no_wrap=True)
    return Text("  Ctrl-C pauses. The same command goes on from there.", style="dim", no_wrap=True)


def _numbers(progress: LiveProgress) -> Text:
    """How the run stands."""
    counters = progress.counters
    text = Text("  ", no_wrap=True, overflow="ellipsis")
    for count, word, style in (
        (counters.pages, "page", "bold green"),
        (counters.pending, "pending", "bold"),
        (counters.failed, "failed", "bold red"),
        (counters.duplicates, "duplicate", "bold"),
        (counters.refused, "refused", "bold"),
    ):
        if count or word in ("page", "pending"):
            number, _, what = counted(count, word, word if word in _STATES else "").partition(" ")
            text.append(number, style).append(f" {what}   ")
    return text


def _session_line(progress: LiveProgress) -> Text:
    """What this session did, and how long it may take."""
    rate = progress.requests / progress.seconds if progress.seconds > 0.5 else 0.0
    text = f"  {clock(progress.seconds)}   {rate:,.1f} requests/s   {size(progress.size)}"
    if rate and progress.counters.pending:
        text += f"   about {about(progress.counters.pending / rate)} left for what is known"
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")
