"""What the commands share: options made from the settings, the app, a session that is watched, JSON for machines."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from inchworm import settings
from inchworm.app import whole_file
from inchworm.app.root import App
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say, standard_output
from inchworm.engine.caller import Hooks, Summary
from inchworm.model import CrawlInfo, EndedBy, Mode, RunInfo

if TYPE_CHECKING:
    from inchworm.app.act.plan import Plan


def setting_options(names: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options made from the table of settings; what is not given stays None and overrules nothing."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for name in reversed(names):
            function = _option(name)(function)
        return function

    return decorate


def _option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    field = settings.FIELDS[name]
    flag, meta = settings.flag_of(name), field.metadata
    said = str(meta["help"])
    help_text = f"Do not {said}" if field.default is True else said[:1].upper() + said[1:]
    if isinstance(field.default, bool):
        value = not field.default
        return click.option(flag, name, is_flag=True, flag_value=value, default=None, help=help_text + ".")
    shown = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    default = f" [default: {shown}]" if field.default not in ((), 0, 0.0, "") and name != "user_agent" else ""
    metavar = "|".join(meta["choices"]) if "choices" in meta else str(meta["unit"]).upper()
    multiple = isinstance(field.default, tuple)
    return click.option(
        flag, name, metavar=metavar, default=None, multiple=multiple, help=f"{help_text}.{default}", type=str
    )


RUN_OPTIONS = tuple(name for name in settings.FIELDS if settings.belongs_to_run(name))
SESSION_OPTIONS = tuple(name for name in settings.FIELDS if settings.belongs_to(name, settings.SESSION))
SERVICE_OPTIONS = tuple(name for name in settings.FIELDS if settings.belongs_to(name, settings.SERVICE))
mode_option = click.option(
    "--mode",
    type=click.Choice([Mode.INCREMENTAL.value, Mode.FULL.value]),
    default=None,
    help="How to crawl again: download what changed, or all. [default: incremental]",
)
frame_option = setting_options(("frame",))
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def several(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Names that may be given one by one or with commas between them."""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


def given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


_Result = TypeVar("_Result")


@contextmanager
def opened() -> Iterator[App]:
    """The user's home."""
    app = App()
    try:
        yield app
    finally:
        app.close()


def work(app: App, plan: Plan, as_json: bool) -> None:
    """Work on a session here, watched; its end is the exit code."""
    with display.live() as shown:

        def started(crawl: CrawlInfo, run: RunInfo, session: int) -> None:
            shown.started(crawl, run, session)
            for text in settings.cautions(run.settings):
                say(text, err=True)

        hooks = Hooks(started, shown.progress, None, signals=True, extracting=shown.extracting)
        summary = run_loop(app.sessions.work(plan, hooks))
    shown.finished(summary)
    if as_json:
        print_json(_summary_json(summary))
    if summary.signal:
        raise SystemExit(128 + summary.signal)
    if summary.ended_by == EndedBy.ERROR:
        raise SystemExit(1)


def run_loop(work: Coroutine[Any, Any, _Result]) -> _Result:
    # A crawl makes many short-lived values and hardly any cycles: look for those less often.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run(work)
    result: _Result = uvloop.run(work)
    return result


def _summary_json(summary: Summary) -> dict[str, Any]:
    fields = dataclasses.asdict(summary)
    fields.pop("signal")
    fields["seeds"] = dict(summary.seeds)
    return fields


@contextmanager
def opened_file(path: Path | None, is_binary: bool = False) -> Iterator[BinaryIO]:
    """A file that is there when it is whole; without a path, standard output."""
    if path is None:
        with standard_output(is_binary) as out:
            yield out
        return
    with whole_file(path, is_binary) as out:
        yield out
