"""The command that sums up what a run found wrong with a site, and what is slow."""

from __future__ import annotations

import textwrap

import click

from inchworm.app.read.reports import (
    EXAMPLES,
    REPORTS,
    SLOWEST,
    BrokenLinksReport,
    DuplicatesReport,
    ErrorsReport,
    RedirectsReport,
    Report,
    SlowReport,
)
from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, opened, opened_file
from inchworm.cli.screen.door import print_json, say
from inchworm.cli.screen.words import counted, quoted
from inchworm.errors import WrongUse
from inchworm.rules.web.url import shorten
from inchworm.rules.words.figures import clip, size

_WIDTH = 80
_SHOWN = 20
_SHOWN_PAGES = 5
_TROUBLE = {
    "redirect_loop": "LOOP: it leads back to where it started",
    "too_many_redirects": "TOO LONG: nobody follows that far",
    "bad_redirect": "NOWHERE: it leads to no usable address",
}


_HELP = "\n\n".join(
    (
        "What is wrong with a site, and what is slow, as a run found it.",
        "\b\n" + "\n".join(f"  {name:<14} {kind.help}" for name, kind in REPORTS.items()),
        "The run as it stands now, also while it is being crawled.",
    )
)


@main.command(help=_HELP)
@click.argument("word", metavar="CRAWL")
@click.argument("name", metavar="REPORT", type=click.Choice(list(REPORTS)))
@click.option("--run", "number", type=int, default=None, metavar="N", help="Which run. [default: the last]")
@click.option(
    "--limit",
    type=int,
    default=None,
    metavar="N",
    help=f"How many to list; of errors, examples of each. [default: {_SHOWN}, in JSON and CSV all; slow {SLOWEST},"
    f" errors {EXAMPLES}]",
)
@json_flag
@click.option("--csv", "as_csv", is_flag=True, help="Print a table for spreadsheets.")
def report(word: str, name: str, number: int | None, limit: int | None, as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise WrongUse("--json and --csv exclude each other.", "Leave one out.")
    with opened() as app:
        if as_csv:
            with opened_file(None) as out:
                app.reports.csv(word, name, out, number, limit)
            return
        wanted = limit if as_json or limit is not None else REPORTS[name].shown
        found = app.reports.one(word, name, number, wanted)
    print_json(found) if as_json else _show(found, word)


def _show(found: Report, word: str) -> None:
    kind = REPORTS[found.about.report]
    say(clip(f"{counted(found.count, kind.one, kind.several)} in run {found.about.run} of {quoted(word)}", _WIDTH))
    if not found.count:
        return
    match found:
        case BrokenLinksReport():
            _broken_links(found)
        case RedirectsReport():
            _redirects(found)
        case DuplicatesReport():
            _duplicates(found)
        case ErrorsReport():
            _errors(found)
        case SlowReport():
            _slow(found)
        case _:
            _lines(found)


def _broken_links(found: BrokenLinksReport) -> None:
    for one in found.rows:
        say(f"\n{one.status or '-':>5}  {_address(one.url, 7)}")
        _line(f"{one.kind}: {one.message}", 7)
        pages = one.linked_from
        _line(counted(len(pages), "page links here", "pages link here") + (":" if pages else ""), 7)
        for page in pages[:_SHOWN_PAGES]:
            say(f"{'':9}{_address(page.url, 9)}")
            _line(page.title, 11)
            if page.through:
                say(f"{'':11}through {_address(page.through, 19)}")
        _more(len(pages) - _SHOWN_PAGES, 9)
    _rest(found)


def _redirects(found: RedirectsReport) -> None:
    for one in found.rows:
        first, *others = one.hops
        say(f"\n{first.status or '-':>5}  {_address(first.url, 7)}")
        for hop in others:
            say(f"{hop.status or '-':>5}  → {_address(hop.url, 9)}")
        if one.final_url != one.hops[-1].url:
            say(f"{one.final_status or '-':>5}  → {_address(one.final_url, 9)}")
        lasting = "permanent" if one.permanent else "temporary"
        said = _TROUBLE.get(one.trouble or "", f"{lasting}, ends as {one.final_outcome}")
        _line(f"{said}; {counted(one.pages, 'page links', 'pages link')} to it", 7)
    _rest(found)


def _duplicates(found: DuplicatesReport) -> None:
    for one in found.rows:
        say(f"\n{one.count:>5}  {clip(one.title or '(no title)', _WIDTH - 7)}")
        urls = one.alternate_urls
        for url in urls[: _SHOWN_PAGES + 1]:
            say(f"{'':7}{_address(url, 7)}")
        _more(len(urls) - _SHOWN_PAGES - 1, 7)
    _rest(found)


def _errors(found: ErrorsReport) -> None:
    for one in found.rows:
        status = f" {one.status}" if one.status else ""
        say(f"\n{one.count:>5}  {one.kind}{status}")
        for line in textwrap.wrap(one.meaning, _WIDTH - 7):
            _line(line, 7)
        for url in one.examples:
            say(f"{'':9}{_address(url, 9)}")


def _slow(found: SlowReport) -> None:
    half, most, nearly_all = (found.percentiles[name] for name in ("p50", "p90", "p99"))
    say(f"half of them within {half:,} ms, 90 % within {most:,} ms, 99 % within {nearly_all:,} ms")
    for title, rows in (("slowest", found.rows), ("largest", found.largest)):
        say(f"\n{'MS':>7} {'SIZE':>9}  THE {title.upper()}")
        for one in rows:
            say(f"{one.millis:>7,} {size(one.size):>9}  {_address(one.url, 19)}")


def _lines(found: Report) -> None:
    """A report that has no form of its own: the columns and lines of its file."""
    say(clip("  ".join(name.replace("_", " ").upper() for name in found.columns), _WIDTH))
    for line in found.lines():
        say(clip("  ".join("-" if value is None else str(value) for value in line), _WIDTH))


def _address(url: str, indent: int) -> str:
    return shorten(url, _WIDTH - indent)


def _line(text: str, indent: int) -> None:
    if text:
        say(" " * indent + clip(text, _WIDTH - indent))


def _more(number: int, indent: int) -> None:
    if number > 0:
        say(f"{'':{indent}}… and {number:,} more")


def _rest(found: Report) -> None:
    if (left := found.count - len(found.rows)) > 0:
        say(f"\n… and {left:,} more; --limit, --json and --csv list them.")
