"""Commands about one page: what a crawl has of it, or what the web has."""

from __future__ import annotations

import mimetypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inchworm import settings
from inchworm.app.read.content.single import (
    MOST_URLS,
    PARTS,
    USUAL_PARTS,
    SinglePages,
    page_facts,
    refuse_unknown_parts,
)
from inchworm.app.workspace import base_settings_of, home_folder
from inchworm.cli.commands import main
from inchworm.cli.options import frame_option, given, json_flag, opened, opened_file, setting_options, several
from inchworm.cli.screen import display
from inchworm.cli.screen.door import paragraph, print_json
from inchworm.cli.screen.progress import ProgressLine
from inchworm.cli.screen.words import counted
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.page import Page
from inchworm.page import read as read_document
from inchworm.rules.words.figures import clip

if TYPE_CHECKING:
    from inchworm.rules.text.fates import BlockFate

_ASKING = ("robots", "user_agent", "timeout", "max_body", "proxies", "allow_private")


@main.command()
@click.argument("source", metavar="URL|FILE|-")
@click.option("--text", "part", flag_value="text", default=True, help="Its main text. [default]")
@click.option("--markdown", "part", flag_value="markdown", help="Its main part as Markdown.")
@click.option("--html", "part", flag_value="html", help="Its main part as HTML.")
@click.option("--raw-html", "part", flag_value="raw_html", help="The document as it came.")
@click.option("--comments", "part", flag_value="comments", help="What readers wrote below it.")
@click.option("--blocks", "part", flag_value="blocks", help="Its blocks: which are text, and why others are not.")
@click.option(
    "--with",
    "parts",
    multiple=True,
    callback=several,
    metavar="NAMES",
    help=f"With --json: these parts, of {', '.join(PARTS)}. [default: {','.join(USUAL_PARTS)}]",
)
@click.option("--url", "base", default="", metavar="URL", help="Of a file: what its links are relative to.")
@click.option("--type", "content_type", default="", metavar="TYPE", help="Of a file: its media type, as text/html.")
@setting_options(_ASKING)
@json_flag
def read(source: str, part: str, parts: tuple[str, ...], base: str, content_type: str, **rest: Any) -> None:
    """Read one page, without a crawl: from the web, from a file, or from standard input (-).

    \b
      inchworm read https://example.org/docs
      inchworm read https://example.org/docs --markdown > docs.md
      inchworm read page.html --url https://example.org/docs --json
      curl -s https://example.org/docs | inchworm read - --text

    One polite request that obeys robots.txt; nothing is stored.
    """
    as_json = rest.pop("as_json")
    refuse_unknown_parts(parts)
    if source == "-":
        page = read_document(sys.stdin.buffer.read(), base, content_type)
    elif Path(source).is_file():
        page = read_document(Path(source).read_bytes(), base, content_type or mimetypes.guess_type(source)[0] or "")
    else:
        page = _asked_for(source, given(rest))
    if as_json:
        print_json(page_facts(page, parts or USUAL_PARTS))
        if page.is_gone:
            raise SystemExit(1)
        return
    _refuse_failed(page)
    _print_part(page, part)


@main.command("map")
@click.argument("url")
@click.option("--limit", type=click.IntRange(1), default=MOST_URLS, show_default=True, help="URLs at most.")
@setting_options(_ASKING)
@json_flag
def map_site(url: str, limit: int, as_json: bool, **values: Any) -> None:
    """List the URLs that a site names, without a crawl.

    \b
      inchworm map https://example.org/ | cut -f1

    Those of its sitemaps, as robots.txt names them, and those of one page: a line each, with where it was found and,
    from sitemaps, when it was last modified, separated by tabs. Nothing is stored.
    """
    found = _pages(given(values)).map(url, limit, progress=ProgressLine("Reading sitemaps", is_patient=True))
    if found.failure and not found.urls:
        raise InchwormError(f"{found.url} could not be read: {found.failure}.", _HINT)
    if as_json:
        print_json(found)
        return
    with opened_file(None) as out:
        for one in found.urls:
            out.write("\t".join(filter(None, (one.url, one.source, one.lastmod))).encode() + b"\n")
    for note in (*([f"{found.url}: {found.failure}"] if found.failure else ()), *found.notes):
        paragraph(note, err=True)
    if found.is_cut:
        paragraph(f"There are more than {limit:,}; --limit takes more.", err=True)


_HINT = "Try it in a browser; `inchworm read --help` tells what can be set."


def _pages(values: dict[str, Any]) -> SinglePages:
    return SinglePages(settings.make({**base_settings_of(home_folder()), **values}))


def _asked_for(source: str, values: dict[str, Any]) -> Page:
    if _names_a_file(source):
        raise WrongUse(f"There is no file {source}.", "Give the path of a file, a URL, or - for standard input.")
    return _pages(values).read(source)


def _names_a_file(source: str) -> bool:
    return source.startswith(("/", "./", "../", "~"))


def _refuse_failed(page: Page) -> None:
    if page.is_gone:
        said = page.record["message"] or "it brought nothing that could be read"
        raise InchwormError(f"{page.url} could not be read: {said}.", _HINT)


def _print_part(page: Page, part: str) -> None:
    if part == "links":
        text = "\n".join(f"{link.url}\t{link.text}".rstrip() for link in page.links)
    elif part == "headers":
        text = "\n".join(f"{name}: {value}" for name, value in page.headers.items())
    elif part == "blocks":
        text = "\n".join(map(_block_line, page.blocks))
    else:
        text = str(getattr(page, part) or "")
    if not text.strip():
        kind = page.content_type.partition(";")[0] or "a document of an unknown type"
        paragraph(f"There is nothing to show: {page.unreadable or f'this is {kind}'}.", err=True)
        return
    with opened_file(None) as out:
        out.write(text.rstrip("\n").encode("utf-8", "replace") + b"\n")


def _block_line(block: BlockFate) -> str:
    """What became of a block: kept, or why not; what it is, and how it begins."""
    fate = "kept   " if block.kept else "dropped"
    lines = [f"{fate} {block.characters:>7,}  {clip(block.begins, _BEGINS)}"]
    if not block.kept:
        lines.append(f"{'':<17}{clip(block.element, _BEGINS)}: {block.why}")
    return "\n".join(lines)


_BEGINS = 90


@main.command()
@click.argument("word", metavar="CRAWL")
@click.argument("url")
@click.option("--run", "number", type=int, default=None, metavar="N", help="Which run. [default: the last]")
@click.option("--text", "part", flag_value="text", help="Its main text, in the newest version that the crawl has.")
@click.option("--markdown", "part", flag_value="markdown", help="Its main part as Markdown.")
@click.option("--html", "part", flag_value="html", help="Its main part as HTML.")
@click.option("--raw-html", "part", flag_value="raw_html", help="The document as it came.")
@click.option("--headers", "part", flag_value="headers", help="The headers of the answer.")
@click.option("--links", "part", flag_value="links", help="Every link, with its text.")
@click.option("--comments", "part", flag_value="comments", help="What readers wrote below it.")
@click.option("--blocks", "part", flag_value="blocks", help="Its blocks: which are text, and why others are not.")
@frame_option
@json_flag
def show(word: str, url: str, number: int | None, part: str | None, frame: str | None, as_json: bool) -> None:
    """What is known of one URL, or what its page says.

    \b
      inchworm show CRAWL https://example.org/docs/install
      inchworm show CRAWL install --text

    State, place, source, depth, where it was found, status, hashes, alternates, where its body is; or a part of the
    page as it is in the archive. A part of the address will do when it is unique.
    """
    with opened() as app:
        address = app.pages.url_of(word, url, number)
        found = None if part else app.pages.one(word, address, number)
    if found is not None:
        print_json(found) if as_json else display.entry(found)
        return
    assert part is not None
    with opened() as app:
        page = app.bodies.page(word, address, number, frame=frame or "")
    _refuse_absent(page)
    if as_json:
        print_json(page_facts(page, [part]))
        return
    _print_part(page, part)
    if part in _MAIN_PARTS and (count := page.left_out):
        blocks = counted(count, "block")
        paragraph(f"{blocks} left out, for most pages of the host have the same. --frame keep shows all.", err=True)


_MAIN_PARTS = ("text", "markdown", "html")


def _refuse_absent(page: Page) -> None:
    if page.is_gone:
        raise Unknown(f"There is no page at {page.url}: {page.record['outcome']}.", "`inchworm why` tells more.")
    if page.is_lost:
        raise InchwormError(f"The archive has lost {page.url}.", "`inchworm doctor` tells more.")
