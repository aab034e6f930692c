"""The commands. Each one reads its arguments, calls a verb of `app` and prints what came of it.

Exit codes: 0 finished, stopped at a limit, or paused from outside; 1 error; 2 wrong use; 3 the run is owned by
another process; 130 paused by Ctrl-C; 143 paused by SIGTERM (129 by SIGHUP).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from inchworm import __version__, settings
from inchworm.cli.options import (
    RUN_OPTIONS,
    SESSION_OPTIONS,
    given,
    json_flag,
    mode_option,
    opened,
    setting_options,
    work,
)
from inchworm.cli.screen import display
from inchworm.cli.screen.door import paragraph, print_json, say, while_heard
from inchworm.cli.screen.words import quoted
from inchworm.engine.run import refuse_words
from inchworm.errors import InchwormError, WrongUse
from inchworm.rules.words import failures

_ORDER = (
    *("crawl", "resume", "pause", "cancel", "status", "list"),
    *("recrawl", "repeat", "notifications", "runs", "compare", "diff", "feed"),
    *("checkpoint", "checkpoints", "continue"),
    *("show", "why", "failed", "retry", "queue", "search", "index", "report", "extract", "export"),
    *("read", "map"),
    *("serve", "token", "jobs"),
    *("show-settings", "configure", "delete", "doctor", "demo", "demo-serve", "execute"),
)
_ELSEWHERE = {
    "recrawl": "changes",
    "runs": "changes",
    "compare": "changes",
    "diff": "changes",
    "feed": "changes",
    "checkpoint": "checkpoints",
    "checkpoints": "checkpoints",
    "continue": "checkpoints",
    "repeat": "repeat",
    "queue": "queue",
    "configure": "configure",
    "notifications": "notifications",
    "search": "content.search",
    "index": "content.index",
    "report": "content.report",
    "extract": "content.extract",
    "export": "content.export",
    "show": "content.pages",
    "read": "content.pages",
    "map": "content.pages",
    "jobs": "jobs",
    "execute": "jobs",
    "serve": "serve",
    "token": "serve",
    "demo-serve": "demo.serve",
}


class _Group(click.Group):
    """Lists commands in the order of use, and turns our errors into one sentence and an exit code."""

    def list_commands(self, _: click.Context | None = None) -> list[str]:
        for name in _ELSEWHERE:
            self._load(name)
        return sorted((name for name, one in self.commands.items() if not one.hidden), key=_ORDER.index)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load(cmd_name)
        return super().get_command(ctx, cmd_name)

    def _load(self, name: str) -> None:
        """Commands of other modules are loaded when they are asked for: nobody waits for what he does not use."""
        if name in _ELSEWHERE and name not in self.commands:
            importlib.import_module(f"inchworm.cli.{_ELSEWHERE[name]}")

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with while_heard():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with while_heard():
            return super().invoke(ctx)

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


@main.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--name", default="", help="Name of the crawl. [default: host and path]")
@click.option("--fresh", is_flag=True, help="Give up a run that is open and start over. History stays.")
@mode_option
@setting_options(SESSION_OPTIONS[:4] + RUN_OPTIONS + SESSION_OPTIONS[4:])
@json_flag
def crawl(urls: tuple[str, ...], name: str, fresh: bool, mode: str | None, as_json: bool, **values: Any) -> None:
    """Crawl a site: start, go on where it was, or see what changed.

    The same command again resumes a paused run; when the run is complete it starts the next one, which downloads only
    what changed and says what that was.
    """
    named = given(values)
    if "replay" in named:
        # `--replay a.warc.gz b.warc.gz` reads naturally; the second file looks like a seed to the parser.
        files = tuple(text for text in urls if text.endswith((".warc", ".warc.gz")) and Path(text).is_file())
        urls, named["replay"] = tuple(text for text in urls if text not in files), (*named["replay"], *files)
    refuse_words(urls)
    from inchworm.app.act.plan import Start  # whoever only looks does not wait for it

    start = Start(urls, name, named, fresh, mode or "")
    for note in settings.notes(os.environ):
        say(note, err=True)
    with opened() as app:
        work(app, app.plan.crawl(start), as_json)


@main.command()
@click.argument("word", metavar="CRAWL")
@setting_options(SESSION_OPTIONS)
@json_flag
def resume(word: str, as_json: bool, **values: Any) -> None:
    """Go on with the paused run of a crawl."""
    with opened() as app:
        work(app, app.plan.resume(word, given(values)), as_json)


@main.command()
@click.argument("word", metavar="CRAWL")
@json_flag
def pause(word: str, as_json: bool) -> None:
    """Pause a crawl that another process works on."""
    with opened() as app:
        _say(app.steer.pause(word), as_json, "The run is {}.")


@main.command()
@click.argument("word", metavar="CRAWL")
@json_flag
def cancel(word: str, as_json: bool) -> None:
    """End a crawl's run for good; its pages stay."""
    with opened() as app:
        _say(app.steer.cancel(word), as_json, "The run is {}.")


def _say(state: str, as_json: bool, text: str) -> None:
    if as_json:
        print_json({"run_state": str(state)})
    else:
        say(text.format(state))


@main.command()
@click.argument("word", metavar="CRAWL")
@json_flag
def status(word: str, as_json: bool) -> None:
    """Where a crawl stands."""
    with opened() as app:
        found = app.crawls.status(app.workspace.find(word))
    print_json(found) if as_json else display.status(found)


@main.command("list")
@json_flag
def list_(as_json: bool) -> None:
    """Every crawl in this home."""
    with opened() as app:
        found = app.crawls.statuses()
    print_json({"crawls": found}) if as_json else display.crawls(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url")
@json_flag
def why(word: str, url: str, as_json: bool) -> None:
    """Why a URL was or was not crawled."""
    with opened() as app:
        found = app.pages.why(word, url)
    print_json(found) if as_json else paragraph(found.why)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--kind", default=None, metavar="KIND", help=f"Only this kind: {', '.join(failures.KINDS)}.")
@click.option("--all", "show_all", is_flag=True, help="List every URL, not only the first of each kind and host.")
@json_flag
def failed(word: str, kind: str | None, show_all: bool, as_json: bool) -> None:
    """URLs that failed, and why, by kind and host."""
    with opened() as app:
        found = app.pages.failed(word, kind)
    print_json({"failed": found}) if as_json else display.failed(found, word, show_all)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--kind", default=None, metavar="KIND", help="Only failures of this kind.")
@click.option("--url", default=None, help="Only this URL.")
@json_flag
def retry(word: str, kind: str | None, url: str | None, as_json: bool) -> None:
    """Re-open failed URLs; the next session fetches them."""
    with opened() as app:
        count = app.queue.retry(word, kind, url)
    if as_json:
        print_json({"reopened": count})
    else:
        say(f"{count:,} re-opened." + (f" Fetch with: inchworm resume {quoted(word)}" if count else ""))


@main.command("show-settings")
@click.argument("word", metavar="CRAWL")
@json_flag
def show_settings(word: str, as_json: bool) -> None:
    """The settings a crawl works with."""
    with opened() as app:
        found = app.crawls.settings_of(app.workspace.find(word))
    print_json(found) if as_json else display.settings_table(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_flag
def delete(word: str, yes: bool, as_json: bool) -> None:
    """Delete a crawl: its record and its archive."""
    with opened() as app:
        found = app.workspace.find(word)
        if not yes:
            _confirm(f"Delete {found.name!r} with all its pages?")
        app.configure.delete(word)
    print_json({"deleted": found.crawl_id}) if as_json else say(f"Deleted {found.name!r}.")


def _confirm(question: str) -> None:
    """Ask whoever sits there; where nobody does, silence is no consent."""
    if not sys.stdin.isatty():
        raise WrongUse("Nothing is deleted: there is nobody to ask whether it is meant.", "If it is, add --yes.")
    click.confirm(question, abort=True, err=True)


@main.command("doctor")
@click.option("--quick", is_flag=True, help="Only what is quickly seen: do not read the archives.")
@json_flag
def doctor_(quick: bool, as_json: bool) -> None:
    """Check versions, settings, stores and archives.

    Reads every record of every archive, and names the pages that are lost. Says what to do about what is wrong; exit
    code 1 when anything is.
    """
    from inchworm.cli.doctor import Meter, examine  # it loads what no other command needs

    with opened() as app, contextlib.closing(Meter()) as meter:
        findings = examine(app, quick, meter)
    healthy = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": healthy, "findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        display.findings(findings)
    if not healthy:
        raise SystemExit(1)


@main.command()
def demo() -> None:
    """Crawl a small site, kill the crawler half way, resume.

    Everything happens on this machine; what it claims is checked against the web server's own log.
    """
    from inchworm.cli.demo import story as show_it

    raise SystemExit(show_it.run())
