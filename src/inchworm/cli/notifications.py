"""The command about notifications: what was sent, what waits, what failed, and sending it again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inchworm.app.read.notifications import LIMIT, NotificationDetail, NotificationLine
from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, opened, run_loop
from inchworm.cli.screen.door import print_json, say
from inchworm.errors import WrongUse
from inchworm.rules.web.url import shorten
from inchworm.rules.words.figures import clip

if TYPE_CHECKING:
    from inchworm.app.act.deliver import Sent
    from inchworm.app.root import App

_WIDTH = 80


@main.command()
@click.argument("word", metavar="[CRAWL]", required=False)
@click.option("--failed", is_flag=True, help="Only those that nobody tries any more.")
@click.option("--waiting", is_flag=True, help="Only those that have not arrived yet and are tried again.")
@click.option("--after", type=int, default=None, metavar="ID", help="Only those that are older than this one.")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, metavar="N", help=f"How many. [default: {LIMIT}]")
@click.option("--show", type=int, default=None, metavar="ID", help="Show the body of one, and every try.")
@click.option("--replay", type=int, default=None, metavar="ID", help="Have one sent again, whatever became of it.")
@click.option("--deliver", is_flag=True, help="Try everything that is due now, and say what came of it.")
@click.option(
    "--notify-secret-file",
    "secret_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=None,
    help="Sign with the secret in this file. [default: notify-secret in the home, or INCHWORM_NOTIFY_SECRET]",
)
@json_flag
def notifications(
    word: str | None,
    failed: bool,
    waiting: bool,
    after: int | None,
    limit: int,
    show: int | None,
    replay: int | None,
    deliver: bool,
    secret_file: Path | None,
    as_json: bool,
) -> None:
    """What was told to others, and what did not arrive.

    What does not arrive is tried again, first after seconds, then up to an hour apart, and given up after three days.
    Everything arrives at least once, and twice only when the answer was lost; its X-Inchworm-Delivery stays the same.
    """
    if failed and waiting:
        raise WrongUse("--failed and --waiting exclude each other.", "Leave one out.")
    with opened() as app:
        if show is not None:
            found = app.notifications.one(show)
            print_json(found) if as_json else _show(found)
            return
        replayed = app.deliver.replay(replay) if replay is not None else None
        if deliver:
            _tell(_deliver(app, word, secret_file), as_json)
        elif replayed is not None:
            print_json(replayed) if as_json else say(f"{replay} is due now. Send it: {_SEND}")
        else:
            state = "failed" if failed else "waiting" if waiting else None
            listed = app.notifications.listed(word, state, after, limit)
            print_json({"notifications": listed}) if as_json else _list(listed, limit)


_SEND = "inchworm notifications --deliver"


def _deliver(app: App, word: str | None, secret_file: Path | None) -> list[NotificationLine]:
    """One round, and how what was tried stands after it."""

    async def work() -> list[Sent]:
        app.deliver.prune()
        return await app.deliver.send_due(f"command line {os.getpid()}", word, secret_file)

    return [app.notifications.one(one.delivery_id).line for one in run_loop(work())]


def _tell(sent: Sequence[NotificationLine], as_json: bool) -> None:
    if as_json:
        print_json({"tried": sent})
        return
    for one in sent:
        say(clip(f"{one.id:>6}  {one.state:<9}  {one.address}", _WIDTH))
        _trouble(one)
    arrived = sum(one.state == "delivered" for one in sent)
    say(f"{arrived} of {len(sent)} arrived." if sent else "Nothing is due.")


def _list(listed: Sequence[NotificationLine], limit: int) -> None:
    if not listed:
        say("No notifications. `inchworm repeat CRAWL --notify URL` sends some.")
        return
    say(f"{'ID':>6}  {'TIME':<19}  {'STATE':<9} {'TRIES':>5}  CRAWL, ADDRESS")
    for one in listed:
        name, when = one.crawl or one.crawl_id, _time(one.created_at)
        where = f"{shorten(name, 18)}, {one.address}"
        say(clip(f"{one.id:>6}  {when}  {one.state:<9} {one.tries:>5}  {where}", _WIDTH))
        _trouble(one)
    if len(listed) == limit:
        say(f"Older ones: --after {listed[-1].id}")


def _trouble(one: NotificationLine) -> None:
    """Why it has not arrived, and when it is tried again."""
    if one.state == "delivered":
        return
    again = f"next try {_time(one.next_try_at)}" if one.next_try_at else ""
    if said := "; ".join(filter(None, (one.trouble, again))):
        say(" " * 8 + clip(said, _WIDTH - 8))


def _show(found: NotificationDetail) -> None:
    for name in ("id", "event_id", "crawl", "crawl_id", "job_id", "address", "state", "created_at", "next_try_at"):
        if (value := getattr(found.line, name)) is not None:
            say(f"{name.replace('_', ' '):<12} {value}")
    for tried in found.log:
        said = tried.trouble or "it arrived"
        say(clip(f"try {tried.number:<8} {_time(tried.at)}  {tried.status or '-'}  {said}", _WIDTH))
    print_json(found.body, indent=2)


def _time(text: str) -> str:
    return text[:19].replace("T", " ")
