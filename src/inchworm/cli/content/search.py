"""The command that searches the text of a crawl's pages."""

from __future__ import annotations

import re
import textwrap

import click

from inchworm.app.read.content.search import LIMIT, SearchResult, SearchResults
from inchworm.cli.commands import main
from inchworm.cli.options import frame_option, json_flag, opened
from inchworm.cli.screen.door import Styled, print_json, say, styled
from inchworm.cli.screen.progress import ProgressLine
from inchworm.cli.screen.words import quoted
from inchworm.rules.web.url import shorten
from inchworm.rules.words.figures import clip

_WIDTH = 80
_INDENT = "   "
_SHOWN_ALTERNATES = 3


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("text", nargs=-1, required=True)
@click.option("--limit", type=int, default=LIMIT, metavar="N", help=f"How many results to show. [default: {LIMIT}]")
@frame_option
@json_flag
def search(word: str, text: tuple[str, ...], limit: int, frame: str | None, as_json: bool) -> None:
    """Find the pages of a crawl that say something.

    \b
      garden tools       both words, anywhere on the page
      '"garden tools"'   one after the other
      gard*              words that begin so
      'garden -winter'   not with this one

    The newest version of each page counts, whichever run has it; pages that are gone are not found. Pages with the same
    text are one result. Works while the crawl runs, too. The first search of a crawl reads all its pages, later ones
    only what is new.
    """
    with opened() as app:
        found = app.search.find(
            word, " ".join(text), limit, progress=ProgressLine("Reading pages to search"), frame=frame or ""
        )
    if as_json:
        print_json(found)
        return
    for number, one in enumerate(found.results, 1):
        _show(number, one)
    _close(found, word)


def _show(number: int, one: SearchResult) -> None:
    head = f"{number}. "
    say(head, styled(clip(one.title or "(no title)", _WIDTH - len(head)), bold=True))
    room = _WIDTH - len(_INDENT)
    say(_INDENT, styled(shorten(one.url, room), fg="green"))
    is_hit = False
    for line in textwrap.wrap(one.snippet, room):
        shown, is_hit = _bold(line, is_hit)
        say(_INDENT, *shown)
    others = one.alternate_urls[1:]
    for url in others[:_SHOWN_ALTERNATES]:
        say(f"{_INDENT}also {shorten(url, room - 5)}")
    if len(others) > _SHOWN_ALTERNATES:
        say(f"{_INDENT}and {len(others) - _SHOWN_ALTERNATES:,} more with the same text")
    say(f"{_INDENT}run {one.run}, {one.fetched_at[:16].replace('T', ' ')}\n")


def _bold(line: str, is_hit: bool) -> tuple[list[str | Styled], bool]:
    """A line of a snippet with its hits in bold, and whether a hit goes on in the next one."""
    shown: list[str | Styled] = []
    for part in re.split("([«»])", line):
        if part in ("«", "»"):
            is_hit = part == "«"
        elif part:
            shown.append(styled(part, bold=True) if is_hit else part)
    return shown, is_hit


def _close(found: SearchResults, word: str) -> None:
    count, shown = found.count, len(found.results)
    if not count:
        say(f"Nothing found in {quoted(word)}.")
    elif shown < count:
        say(f"{shown:,} of {count:,} results; --limit shows more.")
    else:
        say(f"{count:,} result{'s' if count > 1 else ''}.")
