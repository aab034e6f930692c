"""Commands about checkpoints: listing and making them, and continuing from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inchworm.app.read.checkpoints import Back
from inchworm.cli.commands import main
from inchworm.cli.options import (
    RUN_OPTIONS,
    SESSION_OPTIONS,
    given,
    json_flag,
    opened,
    opened_file,
    setting_options,
    work,
)
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say
from inchworm.cli.screen.words import counted
from inchworm.errors import WrongUse
from inchworm.rules.words.json_form import json_object


@main.command()
@click.argument("word", metavar="CRAWL")
@json_flag
def checkpoint(word: str, as_json: bool) -> None:
    """Make a checkpoint now: a place to come back to.

    It costs the same however large the crawl is. Works while the crawl runs, too.
    """
    with opened() as app:
        made = app.steer.checkpoint(word)
    print_json(made) if as_json else display.checkpoints([made])


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--stats", is_flag=True, help="Only the numbers: how many, of which types, how large.")
@click.option("--delete", "deleted", metavar="ID", default=None, help="Delete this one.")
@click.option("--keep-last", type=int, metavar="N", default=None, help="Delete all but the last N.")
@click.option("--export", "exported", metavar="ID", default=None, help="Write the whole state at this one (.json.gz).")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Where to. [default: stdout]")
@json_flag
def checkpoints(word: str, as_json: bool, **asked: Any) -> None:
    """The checkpoints of a crawl.

    One is made every 100 pages (--checkpoint-every), at every stop, and whenever you ask for it. Each is a position in
    the run's record, so it takes a few hundred bytes; `inchworm continue` goes back to one.
    """
    with opened() as app:
        if asked["exported"] is not None:
            _export(word, asked["exported"], asked["output"], as_json)
        elif asked["deleted"] is not None:
            number = app.steer.delete_checkpoint(word, asked["deleted"])
            print_json({"deleted": number}) if as_json else say(f"Checkpoint {number} is deleted.")
        elif asked["keep_last"] is not None:
            count = app.steer.keep_checkpoints(word, asked["keep_last"])
            print_json({"deleted": count}) if as_json else say(f"{counted(count, 'checkpoint')} deleted.")
        elif asked["stats"]:
            found = app.checkpoints.stats(app.workspace.find(word))
            print_json(found) if as_json else display.numbers(json_object(found))
        else:
            listed = app.checkpoints.list(app.workspace.find(word))
            print_json({"checkpoints": listed}) if as_json else display.checkpoints(listed)


def _export(word: str, number: str, output: Path | None, as_json: bool) -> None:
    with opened() as app, opened_file(output, is_binary=True) as out:
        count = app.checkpoints.export(app.workspace.find(word), number, out)
    if output is not None:
        print_json({"path": str(output), "count": count}) if as_json else say(f"{counted(count, 'URL')} to {output}")


@main.command("continue")
@click.argument("word", metavar="CRAWL")
@click.option("--checkpoint", "number", metavar="ID", default=None, help="Go back to this one. [default: go on]")
@click.option("--validate/--no-validate", default=True, help="Check state and archive first. [default: yes]")
@click.option("--as-new-run", is_flag=True, help="Leave the run as it is and branch off a new one.")
@setting_options(SESSION_OPTIONS[:4] + RUN_OPTIONS + SESSION_OPTIONS[4:])
@json_flag
def continue_(word: str, number: str | None, validate: bool, as_new_run: bool, as_json: bool, **values: Any) -> None:
    """Continue a crawl from a checkpoint.

    What came after the checkpoint is undone, pages, discoveries and archive, and the crawl goes on from there. Without
    --checkpoint nothing is undone: it goes on where it was. With --as-new-run the run stays as it is, and a new one
    with settings of its own starts from there; `inchworm compare` tells the two apart.
    """
    named = given(values)
    if not as_new_run and "replay" in named:
        raise WrongUse("--replay cannot change half way.", "Add --as-new-run.")
    back = Back(number, as_new_run, validate)
    with opened() as app:
        work(app, app.plan.continue_from(word, back, named), as_json)
