"""The command that brings a search server up to date with a crawl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, opened
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json, say
from inchworm.cli.screen.progress import ProgressLine
from inchworm.cli.screen.words import counted, quoted
from inchworm.rules.words.figures import clip
from inchworm.rules.words.json_form import json_object

if TYPE_CHECKING:
    from inchworm.app.act.content.index import IndexUpdate, PageSetAside

_WIDTH = 200


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--rebuild", is_flag=True, help="Delete the index and make it anew, from what was crawled.")
@click.option("--set-aside", "aside", is_flag=True, help="Only list the pages that the server does not take, and why.")
@click.option("--status", is_flag=True, help="Only tell how far the server has been told, without asking it.")
@json_flag
def index(word: str, rebuild: bool, aside: bool, status: bool, as_json: bool) -> None:
    """Bring Elasticsearch or OpenSearch up to date with a crawl.

    The server is the one that the crawl was given with --index, or that INCHWORM_INDEX names; the index is called after
    the crawl, NAME_raw_content. It gets a document for every page that is new or changed, and loses those of pages that
    are gone. Works while the crawl runs, too.
    """
    with opened() as app:
        if aside:
            listed = app.index.set_aside(word)
            print_json({"set_aside": listed}) if as_json else _list(listed, word)
            return
        if status:
            found = app.index.status(word)
            print_json(found) if as_json else display.numbers(json_object(found))
            return
        done = app.index.update(word, rebuild, ProgressLine("Reading pages to index"))
    print_json(done) if as_json else _tell(done, word)


def _tell(done: IndexUpdate, word: str) -> None:
    say(
        f"{done.indexed:,} indexed, {done.deleted:,} deleted: {done.index} on {done.server}"
        f" has {counted(done.documents, 'document')}."
    )
    if done.set_aside:
        said = f"{done.set_aside:,} set aside, for the server does not take them."
        say(f"{said} See why: inchworm index {quoted(word)} --set-aside")
    if done.newer:
        said = f"{done.newer:,} left as they are, for the server has newer ones from elsewhere."
        say(f"{said} Make it anew: inchworm index {quoted(word)} --rebuild")
    if done.behind:
        say(f"The crawl goes on: its log has {counted(done.behind, 'new entry', 'new entries')}.")


def _list(listed: Sequence[PageSetAside], word: str) -> None:
    for one in listed:
        say(f"{clip(one.url, _WIDTH)}\n   {clip(one.reason, _WIDTH)}")
    if not listed:
        say(f"Nothing of {quoted(word)} is set aside.")
