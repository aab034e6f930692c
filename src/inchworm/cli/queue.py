"""`inchworm queue`: the frontier of a crawl, in numbers and row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from inchworm.app.read.frontier import EntryLine, not_followed
from inchworm.app.root import App
from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, opened
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say
from inchworm.cli.screen.table import table
from inchworm.errors import WrongUse
from inchworm.model import Reason, State
from inchworm.rules.web.url import shorten
from inchworm.rules.words.explain import LONGEST
from inchworm.rules.words.json_form import json_object

_COLUMNS = ("id", "state", "reason", "depth", "url")
_ACTIONS = {
    "listed": "--list",
    "not_followed": "--not-followed",
    "added": "--add",
    "taken_out": "--take-out",
    "dismissed": "--dismiss",
    "clear": "--clear",
}


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--list", "listed", is_flag=True, help="List URLs, in the order in which the crawl first met them.")
@click.option("--not-followed", is_flag=True, help="List links that were not followed, but for those dismissed.")
@click.option("--state", type=click.Choice([one.value for one in State]), help="List only URLs in this state.")
@click.option("--reason", type=click.Choice([one.value for one in Reason]), help="List only URLs refused for this.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", default=50, help="List at most so many. [default: 50]"
)
@click.option("--add", "added", metavar="URL", help="Add a URL to the last run. It is judged like any other.")
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="With --add: as if so many links from a seed.")
@click.option("--take-out", "taken_out", metavar="URL|ID", help="Refuse a pending URL, so that it is not visited.")
@click.option("--dismiss", "dismissed", metavar="URL|ID", help="Let nothing make the run follow this link any more.")
@click.option("--clear", is_flag=True, help="Refuse every pending URL and complete the run; pages stay.")
@json_flag
def queue(word: str, as_json: bool, **asked: Any) -> None:
    """The frontier of a crawl: in numbers, as a list, or changed by hand.

    What is added while the crawl runs is taken by the session that runs. To take out and to dismiss, pause it first.
    """
    _refuse_muddle(asked)
    with opened() as app:
        if asked["added"] is not None:
            _add(app, word, asked, as_json)
        elif asked["taken_out"] is not None:
            entry_id = app.frontier.entry_id(app.workspace.find(word), asked["taken_out"])
            app.queue.take_out(entry_id)
            print_json({"taken_out": entry_id}) if as_json else say(f"{asked['taken_out']} is taken out.")
        elif asked["dismissed"] is not None:
            entry_id = app.frontier.entry_id(app.workspace.find(word), asked["dismissed"])
            app.queue.dismiss(entry_id)
            print_json({"dismissed": entry_id}) if as_json else say(f"{asked['dismissed']} is dismissed.")
        elif asked["listed"] or asked["not_followed"] or asked["state"] or asked["reason"]:
            _list(app, word, asked, as_json)
        else:
            _count(app, word, asked["clear"], as_json)


def _refuse_muddle(asked: Mapping[str, Any]) -> None:
    chosen = [flag for name, flag in _ACTIONS.items() if asked[name]]
    if len(chosen) > 1:
        raise WrongUse(f"{' and '.join(chosen)} do not go together.", "Give one of them.")
    if asked["depth"] is not None and asked["added"] is None:
        raise WrongUse("--depth goes with --add.", "Leave it out.")
    if (asked["state"] or asked["reason"]) and chosen not in ([], ["--list"], ["--not-followed"]):
        raise WrongUse("--state and --reason say what is listed.", f"Leave them out with {chosen[0]}.")
    if asked["state"] and asked["not_followed"]:
        raise WrongUse("What was not followed is refused.", "Leave --state out.")


def _count(app: App, word: str, clear: bool, as_json: bool) -> None:
    cleared = app.queue.clear(word) if clear else None
    found = app.frontier.numbers(app.workspace.find(word))
    if not as_json:
        display.queue(found, cleared)
        return
    print_json(found if cleared is None else {**json_object(found), "cleared": cleared})


def _list(app: App, word: str, asked: Mapping[str, Any], as_json: bool) -> None:
    crawl, limit = app.workspace.find(word), asked["limit"]
    if asked["not_followed"]:
        found = app.frontier.list(crawl, not_followed(asked["reason"]), limit=limit + 1)
    else:
        wanted = {name: asked[name] for name in ("state", "reason") if asked[name]}
        found = app.frontier.list(crawl, wanted, limit=limit + 1)
    shown, is_cut = found[:limit], len(found) > limit
    if as_json:
        print_json({"entries": shown, "is_cut": is_cut})
    elif not shown:
        say("There are none.")
    else:
        table(_COLUMNS, [_row(one) for one in shown], "url")
        if is_cut:
            say(f"… and more; --limit {10 * limit} lists more of them.")


def _row(one: EntryLine) -> tuple[str, str, str, int, str]:
    return one.id, one.facts.state, one.facts.reason or "", one.facts.depth, one.url


def _add(app: App, word: str, asked: Mapping[str, Any], as_json: bool) -> None:
    made = app.queue.add(app.workspace.find(word), asked["added"], asked["depth"] or 0)
    if as_json:
        print_json(made)
        return
    say(f"{shorten(made.entry.url, LONGEST)}: {made.message}")
