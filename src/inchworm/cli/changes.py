"""Commands about what changed: crawling again, the runs, two of them side by side, one page in two runs."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from inchworm.cli.commands import main
from inchworm.cli.options import (
    SESSION_OPTIONS,
    given,
    json_flag,
    mode_option,
    opened,
    setting_options,
    work,
)
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say
from inchworm.rules.words.json_form import json_object


@main.command()
@click.argument("word", metavar="CRAWL")
@mode_option
@setting_options(SESSION_OPTIONS)
@json_flag
def recrawl(word: str, mode: str | None, as_json: bool, **values: Any) -> None:
    """Start the next run of a complete crawl, and see what changed."""
    with opened() as app:
        work(app, app.plan.recrawl(word, mode or "", given(values)), as_json)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--stats", is_flag=True, help="What all runs together cost, and what they saved against full crawls.")
@click.option("--make-line", "chosen", type=int, metavar="N", default=None, help="Have later runs build on this one.")
@json_flag
def runs(word: str, stats: bool, chosen: int | None, as_json: bool) -> None:
    """The runs of a crawl: what each found, and what it saved.

    Each run builds on the one before it: together they are the line. A branch (`inchworm continue --as-new-run`) lies
    beside it, to be compared and exported. With --make-line later runs build on a branch that is complete, or on an
    earlier run of the line, and go by its settings; the others stay, beside the line.
    """
    with opened() as app:
        if chosen is not None:
            made = app.steer.make_line(word, chosen)
            print_json(made) if as_json else say(f"Later runs build on run {made.line}.")
            return
        if stats:
            costs = app.iterations.costs(app.workspace.find(word))
            print_json(costs) if as_json else display.numbers(json_object(costs.totals))
            return
        found = app.runs.list(app.workspace.find(word))
    print_json({"runs": found}) if as_json else display.runs(found)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("first", metavar="[A]", type=int, required=False)
@click.argument("second", metavar="[B]", type=int, required=False)
@click.option("--all", "show_all", is_flag=True, help="List every URL, not only the first of each kind.")
@json_flag
def compare(word: str, first: int | None, second: int | None, show_all: bool, as_json: bool) -> None:
    """What changed between two runs: new, modified, deleted pages.

    Without numbers: the last run and the one it builds on. A page is deleted only when the server said so; one that
    could not be reached is unknown.
    """
    with opened() as app:
        shown = {} if as_json else {"most_groups": display.SHOWN_GROUPS}
        found = app.changes.compare(word, first, second, **shown)
    print_json(found) if as_json else display.comparison(found, show_all)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url")
@click.argument("first", metavar="[A]", type=int, required=False)
@click.argument("second", metavar="[B]", type=int, required=False)
@click.option("--words", "inline", is_flag=True, help="Both versions of a line in one: [-gone-] {+new+}.")
@json_flag
def diff(word: str, url: str, first: int | None, second: int | None, inline: bool, as_json: bool) -> None:
    """What changed on one page between two runs: its text, line by line; words that differ stand out."""
    with opened() as app:
        found = app.changes.diff(word, url, first, second)
    print_json(found) if as_json else display.difference(found, inline)


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--output", "-o", type=click.File("wb", atomic=True), default="-", help="Write it to this file.")
@json_flag
def feed(word: str, output: BinaryIO, as_json: bool) -> None:
    """The feed of what changed, for feed readers (Atom).

    The last ten runs that found changes, with what differs. The service has the same at
    /api/v1/crawl/CRAWL/changes.atom, for who can send a token.
    """
    with opened() as app:
        crawl = app.workspace.find(word)
        if as_json:
            print_json(app.feeds.of(crawl))
            return
        found = app.feeds.written(crawl)
    output.write(found)
