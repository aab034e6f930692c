"""The commands. Each one reads its arguments, calls a verb of `app` and prints what came of it.

Exit codes: 0 finished, stopped at a limit, or paused from outside; 1 error; 2 wrong use; 3 the run is owned by
another process; 130 paused by Ctrl-C; 143 paused by SIGTERM (129 by SIGHUP).
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from inchworm import __version__, settings
from inchworm.app import App, Start
from inchworm.cli import display
from inchworm.engine import Hooks, Summary
from inchworm.errors import InchwormError
from inchworm.rules import failures

_FORMATS = ("urls", "jsonl", "warc")


class _Group(click.Group):
    """Lists commands in the order of use, and turns our errors into one sentence and an exit code."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(self.commands)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except InchwormError as error:
            display.error(error)
            code = error.exit_code
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            code = 130
        except BrokenPipeError:
            sys.stderr.close()
            code = 1
        except OSError as error:
            display.error(InchwormError(f"{error.strerror}: {error.filename}."))
            code = 1
        raise SystemExit(code if isinstance(code, int) else 0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="inchworm")
def main() -> None:
    """A web crawler that never loses its place.

    \b
      inchworm crawl https://example.org/docs     crawl a site; stop it any way you like
      inchworm crawl https://example.org/docs     the same command goes on where it was

    CRAWL is a crawl's name, its id, or its seed URL. Everything is kept in ~/.inchworm (INCHWORM_HOME).

    \b
    Exit codes: 0 finished, stopped at a limit or paused from outside; 1 error; 2 wrong use;
    3 the run is owned by another process; 130 paused by Ctrl-C; 143 paused by SIGTERM.
    """


def _setting_options(names: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
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


_RUN_OPTIONS = tuple(name for name in settings.FIELDS if settings.belongs_to_run(name))
_SESSION_OPTIONS = tuple(name for name in settings.FIELDS if not settings.belongs_to_run(name))
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


@contextmanager
def _app() -> Iterator[App]:
    app = App()
    try:
        yield app
    finally:
        app.close()


@main.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--name", default="", help="Name of the crawl. [default: host and path]")
@click.option("--fresh", is_flag=True, help="Give up a run that is open and start over. History stays.")
@_setting_options(_SESSION_OPTIONS[:4] + _RUN_OPTIONS + _SESSION_OPTIONS[4:])
@_json
def crawl(urls: tuple[str, ...], name: str, fresh: bool, as_json: bool, **values: Any) -> None:
    """Crawl a site: start, or go on where it was.

    The same command again resumes a paused run; when the run is complete it starts the next one.
    """
    given = _given(values)
    if "replay" in given:
        # `--replay a.warc.gz b.warc.gz` reads naturally; the second file looks like a seed to the parser.
        files = tuple(text for text in urls if text.endswith((".warc", ".warc.gz")) and Path(text).is_file())
        urls, given["replay"] = tuple(text for text in urls if text not in files), (*given["replay"], *files)
    start = Start(urls, name, given, fresh)
    for note in settings.notes(os.environ):
        click.echo(note, err=True)
    with _app() as app:
        _sit(lambda hooks: app.crawl(start, hooks), as_json)


@main.command()
@click.argument("word", metavar="CRAWL")
@_setting_options(_SESSION_OPTIONS)
@_json
def resume(word: str, as_json: bool, **values: Any) -> None:
    """Go on with the paused run of a crawl."""
    with _app() as app:
        _sit(lambda hooks: app.resume(word, _given(values), hooks), as_json)


def _sit(work: Callable[[Hooks], Coroutine[Any, Any, Summary]], as_json: bool) -> None:
    with display.live() as shown:
        hooks = Hooks(shown.started, shown.progress, None, signals=True)
        summary = _run_loop(work(hooks))
    shown.finished(summary)
    if as_json:
        _print_json(_summary_json(summary))
    if summary.signal:
        raise SystemExit(128 + summary.signal)


def _run_loop(work: Coroutine[Any, Any, Summary]) -> Summary:
    # A crawl makes many short-lived values and hardly any cycles: look for those less often.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    result: Summary = uvloop.run(work)
    return result


def _summary_json(summary: Summary) -> dict[str, Any]:
    fields = dataclasses.asdict(summary)
    fields.pop("signal")
    fields["seeds"] = dict(summary.seeds)
    return fields


@main.command()
@click.argument("word", metavar="CRAWL")
@_json
def pause(word: str, as_json: bool) -> None:
    """Pause a crawl that another process works on."""
    with _app() as app:
        _say(app.pause(word), as_json, "The run is {}.")


@main.command()
@click.argument("word", metavar="CRAWL")
@_json
def cancel(word: str, as_json: bool) -> None:
    """End a crawl's run for good; its pages stay."""
    with _app() as app:
        _say(app.cancel(word), as_json, "The run is {}.")


def _say(state: str, as_json: bool, text: str) -> None:
    if as_json:
        _print_json({"run_state": str(state)})
    else:
        click.echo(text.format(state))


@main.command()
@click.argument("word", metavar="CRAWL")
@_json
def status(word: str, as_json: bool) -> None:
    """Where a crawl stands."""
    with _app() as app:
        found = app.status(app.find(word))
    _print_json(found) if as_json else display.status(found)


@main.command("list")
@_json
def list_(as_json: bool) -> None:
    """Every crawl in this home."""
    with _app() as app:
        found = app.crawls()
    _print_json({"crawls": found}) if as_json else display.crawls(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--clear", is_flag=True, help="Refuse every pending URL and complete the run; pages stay.")
@_json
def queue(word: str, clear: bool, as_json: bool) -> None:
    """The frontier of a crawl in numbers."""
    with _app() as app:
        cleared = app.clear_queue(word) if clear else None
        found = app.queue(word)
    if cleared is not None:
        found["cleared"] = cleared
    _print_json(found) if as_json else display.queue(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url")
@click.option("--run", "number", type=int, default=None, metavar="N", help="Which run. [default: the last]")
@_json
def show(word: str, url: str, number: int | None, as_json: bool) -> None:
    """What is known of one URL.

    State, place, source, depth, where it was found, status, hashes, alternates, where its body is.
    """
    with _app() as app:
        found = app.show(word, url, number)
    _print_json(found) if as_json else display.entry(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url")
@_json
def why(word: str, url: str, as_json: bool) -> None:
    """Why a URL was or was not crawled."""
    with _app() as app:
        found = app.show(word, url)
    said = display.explain(found)
    _print_json(
        {"url": found["url"], "state": found["state"], "reason": found["reason"], "why": said}
    ) if as_json else (click.echo(said))


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--kind", default=None, metavar="KIND", help=f"Only this kind: {', '.join(failures.KINDS)}.")
@_json
def failed(word: str, kind: str | None, as_json: bool) -> None:
    """URLs that failed, and why."""
    with _app() as app:
        found = app.failed(word, kind)
    _print_json({"failed": found}) if as_json else display.failed(found, word)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--kind", default=None, metavar="KIND", help="Only failures of this kind.")
@click.option("--url", default=None, help="Only this URL.")
@_json
def retry(word: str, kind: str | None, url: str | None, as_json: bool) -> None:
    """Re-open failed URLs; the next session fetches them."""
    with _app() as app:
        count = app.retry(word, kind, url)
    if as_json:
        _print_json({"reopened": count})
    else:
        click.echo(f"{count} re-opened." + (f" Fetch with: inchworm resume {word!r}" if count else ""))


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--format", "format_name", type=click.Choice(_FORMATS), required=True, help="What to write.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Where to. [default: stdout]")
@click.option("--run", "number", type=int, default=None, metavar="N", help="Which run. [default: the last]")
@_json
def export(word: str, format_name: str, output: Path | None, number: int | None, as_json: bool) -> None:
    """Write a run's record: urls, jsonl or warc.

    URLs in the order of record, JSON lines, or one WARC file, as the run stands now. Safe while crawling.
    """
    with _app() as app, _opened(output) as out:
        count = app.export(word, format_name, out, number)
    if output is not None:
        words = {"urls": "URLs", "jsonl": "lines", "warc": "archive files"}[format_name]
        _print_json({"path": str(output), "count": count}) if as_json else click.echo(f"{count} {words} to {output}")


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.with_name(path.name + ".part")
    with part.open("wb") as out:
        yield out
    part.replace(path)


@main.command("show-settings")
@click.argument("word", metavar="CRAWL")
@_json
def show_settings(word: str, as_json: bool) -> None:
    """The settings a crawl works with."""
    with _app() as app:
        found = app.effective_settings(word)
    _print_json(found) if as_json else display.settings_table(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_json
def delete(word: str, yes: bool, as_json: bool) -> None:
    """Delete a crawl: its record and its archive."""
    with _app() as app:
        found = app.find(word)
        if not yes and not as_json and sys.stdin.isatty():
            click.confirm(f"Delete {found.name!r} with all its pages?", abort=True)
        app.delete(word)
    _print_json({"deleted": found.crawl_id}) if as_json else click.echo(f"Deleted {found.name!r}.")


@main.command("doctor")
@_json
def doctor_(as_json: bool) -> None:
    """Check versions, settings, stores and archives.

    Says what to do about what is wrong; exit code 1 when anything is.
    """
    from inchworm.cli.doctor import examine  # it loads what no other command needs

    with _app() as app:
        findings = examine(app)
    healthy = all(finding.ok for finding in findings)
    if as_json:
        _print_json({"ok": healthy, "findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        display.findings(findings)
    if not healthy:
        raise SystemExit(1)


@main.command()
def demo() -> None:
    """Crawl a small site, kill the crawler half way, resume.

    Everything happens on this machine; what it claims is checked against the web server's own log.
    """
    from inchworm.cli import demo as show_it

    raise SystemExit(show_it.run())


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, default=str))
