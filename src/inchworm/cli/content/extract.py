"""The command that takes fields out of a crawl's pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from inchworm.app.fields import NAMES
from inchworm.cli.commands import main
from inchworm.cli.options import given, json_flag, opened, setting_options
from inchworm.cli.screen.door import columns, paragraph, print_json, say
from inchworm.cli.screen.progress import ProgressLine
from inchworm.cli.screen.table import table
from inchworm.cli.screen.words import counted, quoted, unmatched
from inchworm.errors import WrongUse
from inchworm.rules.words.figures import clip

if TYPE_CHECKING:
    from inchworm.app.act.content.extract import Extraction, FieldTrial
    from inchworm.model import Json

_LEAST = 20
_MOST_ROWS = 20


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url", required=False)
@setting_options(NAMES)
@click.option("--try", "is_try", is_flag=True, help="Only show what some pages have; keep nothing.")
@click.option("--rebuild", is_flag=True, help="Take those again, too, that were taken by the same rules.")
@json_flag
def extract(word: str, url: str | None, is_try: bool, rebuild: bool, as_json: bool, **values: Any) -> None:
    """Take fields out of the pages of a crawl, without a request.

    \b
      name=h1                       the text of the first element that a CSS selector finds
      price='.price::text | number' its own text, as a number
      link=a.more@href              an attribute; addresses become absolute
      by="//span[@rel='author']"    XPath, when it begins with /, ./, ( or xpath:
      tags='.tag | list'            all that are found
      sku='.id | re:([0-9]+)'       what a regular expression finds in it

    Filters are text, number, integer, date, url, json, list and re:. With --each every match makes a row of its own,
    and selectors look below it.

    \b
      inchworm extract CRAWL URL --extract price='.price | number'   try it on one page
      inchworm extract CRAWL --try --extract price='.price | number' on some pages
      inchworm extract CRAWL --extract price='.price | number'       on all, from now on

    What is given without a page and without --try is kept with the crawl, instead of what it had; its exports have the
    fields as columns.
    """
    rules = given(values)
    if rebuild and (url or is_try):
        raise WrongUse("Nothing is kept when fields are tried.", "Leave --rebuild out.")
    with opened() as app:
        if url or is_try:
            tried = app.extract.try_fields(word, _address(word, url) if url else "", rules)
            print_json(tried) if as_json else _show(tried)
            return
        done = app.extract.extract(word, rules, rebuild, ProgressLine("Taking fields"))
    print_json(done) if as_json else _tell(done, word)


def _show(tried: FieldTrial) -> None:
    for page in tried.pages:
        say(page.url)
        if page.failure:
            paragraph(page.failure, 2)
        for number, row in enumerate(page.rows[:_MOST_ROWS], 1):
            _show_row(row, f"{number}. " if tried.each else "  ")
        if len(page.rows) > _MOST_ROWS:
            say(f"  … and {len(page.rows) - _MOST_ROWS:,} more rows; --json lists them")
    if tried.tried > 1 or not tried.pages:
        say(f"{counted(tried.tried, 'page')} tried.")
    _tell_unmatched(tried.unmatched_fields if tried.tried else ())


def _show_row(row: Mapping[str, Json], mark: str) -> None:
    width = max(map(len, row))
    for at, (name, value) in enumerate(row.items()):
        shown = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        head = f"{mark if not at else '':>5}{name:<{width}}  "
        say(head + clip(shown, max(_LEAST, columns() - len(head))))


def _tell(done: Extraction, word: str) -> None:
    heads = ("field", "type", "pages")
    table(heads, [[one.name, one.type or "", one.pages] for one in done.fields])
    rows = f", {counted(done.rows, 'row')}" if done.each else ""
    say(f"Run {done.run} has {counted(done.pages, 'page')}{rows}.")
    if done.failed:
        said = f"{counted(done.failed, 'page has', 'pages have')} no fields, because they could not be read."
        paragraph(f"{said} Try again: inchworm extract {quoted(word)} --rebuild", err=True)
    _tell_unmatched(done.unmatched_fields)


def _tell_unmatched(names: Sequence[str]) -> None:
    if names:
        paragraph(f"ATTENTION: {unmatched(names)}", err=True)


def _address(word: str, part: str) -> str:
    with opened() as app:
        return app.pages.url_of(word, part)
