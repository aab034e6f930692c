"""The command that repeats a crawl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inchworm import settings
from inchworm.app.act.repeat import Listener, Repetition
from inchworm.cli.commands import main
from inchworm.cli.options import (
    SESSION_OPTIONS,
    given,
    json_flag,
    mode_option,
    opened,
    run_loop,
    setting_options,
)
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say
from inchworm.cli.screen.words import counted, ending
from inchworm.engine.caller import Hooks, Summary
from inchworm.errors import WrongUse
from inchworm.rules.schedule.repetition import OWN_ENDINGS, Occasion, Stop
from inchworm.rules.words.figures import clock, size

if TYPE_CHECKING:
    from inchworm.app.read.runs import RunLine, RunOutcome

_ENDINGS: Mapping[Stop, str] = {
    Stop.ENOUGH: "The crawl has made {} after its first one: that is all.",
    Stop.NO_CHANGES: "Nothing changed any more: that is all.",
    Stop.PAUSED: "The run was paused from outside, and so is the repetition. The same command goes on.",
    Stop.CANCELLED: "The run was cancelled, and so is the repetition.",
    Stop.SIGNAL: "Stopped. The same command goes on from here.",
}


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option(
    "--every",
    metavar="DURATION",
    default=None,
    help="Run again so long after the last run began, such as 6h or 7d. [default: one run and no more]",
)
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    metavar="N",
    default=None,
    help="End when the crawl has, in all, so many complete runs after its first. [default: never]",
)
@click.option("--stop-if-no-changes", is_flag=True, help="End after a complete run that found no changes.")
@mode_option
@click.option(
    "--notify",
    multiple=True,
    metavar="URL",
    help="Tell this web hook what a run found; with inchworm[notify], any address of apprise.",
)
@click.option(
    "--notify-on",
    type=click.Choice([occasion.value for occasion in Occasion]),
    default=Occasion.CHANGES.value,
    help="When to tell: after complete runs that found changes, or after all complete runs. [default: changes]",
)
@click.option(
    "--notify-if",
    multiple=True,
    metavar="CONDITION",
    help="Tell only if this holds: 5% for more than so many of the pages, text:WORDS for what came or went. Of several,"
    " one is enough.",
)
@click.option(
    "--notify-secret-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=None,
    help="Sign what is sent to web hooks with the secret in this file. [default: notify-secret in the home, or"
    " INCHWORM_NOTIFY_SECRET]",
)
@setting_options(SESSION_OPTIONS)
@json_flag
def repeat(
    word: str,
    every: str | None,
    max_runs: int | None,
    stop_if_no_changes: bool,
    mode: str | None,
    notify: tuple[str, ...],
    notify_on: str,
    notify_if: tuple[str, ...],
    notify_secret_file: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Run a crawl again and again, and tell what changed.

    The next run starts now, or the open one goes on; then one every interval, counted from start to start. Stop it any
    way you like: the same command goes on, and waits for what is left of the interval. A run that fails is told of, and
    the next interval tries again. A notification that does not arrive is tried again for three days, by this command
    or by `inchworm notifications --deliver`.
    """
    wanted = Repetition(
        word,
        _seconds(every),
        max_runs,
        stop_if_no_changes,
        mode or "",
        given(values),
        notify,
        notify_on,
        notify_secret_file,
        notify_if,
    )
    with opened() as app:
        app.plan.trusted(app.workspace.find(word))
        ended = run_loop(app.repeat.repeat(wanted, _listener(as_json, every is None)))
    if ended.why in _ENDINGS:
        _say(_ENDINGS[ended.why].format(counted(ended.iterations, "run")))
    if ended.signal:
        raise SystemExit(128 + ended.signal)


def _seconds(every: str | None) -> float | None:
    try:
        return None if every is None else settings.duration(every)
    except ValueError:
        raise WrongUse(f"--every cannot be {every!r}.", "It takes a duration such as 90s, 6h or 7d.") from None


def _listener(as_json: bool, is_single: bool) -> Listener:
    def ran(found: RunOutcome, summary: Summary) -> None:
        print_json(found) if as_json else say(_line(found.line))
        if found.line.alarm:
            _say(f"ATTENTION: {found.line.alarm}")
        if summary.ended_by in OWN_ENDINGS:
            _say(
                ending(summary)
                if is_single
                else f"Run {found.line.run} is not complete yet; the next interval goes on."
            )

    return Listener(_watched, ran, _waits, display.error, _say, signals=True)


@contextmanager
def _watched() -> Iterator[Hooks]:
    """A session as people see it. Its place is given back while the crawl waits for its next run."""
    with display.live() as shown:
        yield Hooks(shown.started, shown.progress, None, signals=True)


def _line(found: RunLine) -> str:
    """A run in one line."""
    cost = f"{counted(found.requests, 'request')}, {size(found.bytes)}"
    if found.parent is None:
        return f"Run {found.run}: {counted(found.pages, 'page')}; {cost}."
    changes = ", ".join(f"{getattr(found, kind):,} {kind}" for kind in ("new", "modified", "deleted", "unknown"))
    return f"Run {found.run}: {changes}; {cost}, {size(found.saved_bytes)} saved."


def _waits(until_ms: int, seconds: float) -> None:
    moment = datetime.fromtimestamp(until_ms / 1000, UTC).astimezone()
    _say(f"Next run at {moment:%Y-%m-%d %H:%M:%S %Z}, in {clock(seconds)}.")


def _say(text: str) -> None:
    say(text, err=True)
