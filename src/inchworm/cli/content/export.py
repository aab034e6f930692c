"""Commands that write out what a crawl has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from inchworm.app import FORMATS, Target, Written
from inchworm.app.act.content.export import CHARACTERS, CONTENT, TOKENS, TOLD, ExportOptions, FieldsTaken
from inchworm.cli.commands import main
from inchworm.cli.options import frame_option, json_flag, opened, opened_file, several
from inchworm.cli.screen.door import paragraph, print_json, say
from inchworm.cli.screen.progress import ProgressLine
from inchworm.cli.screen.words import counted, unmatched
from inchworm.errors import WrongUse
from inchworm.rules.web.url import shorten
from inchworm.rules.words.explain import LONGEST

_SHOWN_LOST = 20
_PACKED = (".gz", ".zst")
_USUAL = "jsonl"
_STDOUT = Path("-")


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default=None,
    help=f"What to write. [default: as the file's ending says, or {_USUAL}]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None, help="File or folder to write. [default: stdout]"
)
@click.option("--run", type=int, default=None, metavar="N", help="The record of one run. [default: the crawl now]")
@click.option("--since", metavar="RUN|DATE", default=None, help="Only what changed since then: 3, 2026-01-31, 36h, 7d.")
@click.option(
    "--only", multiple=True, callback=several, metavar="CHANGES", help=f"Only these changes: {', '.join(TOLD)}."
)
@click.option("--unique", is_flag=True, help="Each content once, whatever URLs have it.")
@click.option("--columns", multiple=True, callback=several, metavar="NAMES", help="Exactly these columns.")
@click.option(
    "--with",
    "more",
    multiple=True,
    callback=several,
    metavar="NAMES",
    help=f"These too: {', '.join(column.name for column in CONTENT)}.",
)
@click.option("--bom", "mark", is_flag=True, help="With csv: begin with the mark by which Excel knows UTF-8.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="With files: only these, as pdf or image/*; repeatable."
)
@click.option("--images", is_flag=True, help="With markdown: also the images that the crawl has.")
@click.option(
    "--chunk-size",
    type=int,
    default=0,
    metavar="N",
    help=f"With chunks: characters at most. [default: {CHARACTERS}, or {TOKENS} tokens]",
)
@click.option(
    "--chunk-overlap", type=int, default=0, metavar="N", help="With chunks: how much of the one before to begin with."
)
@click.option(
    "--tokenizer",
    type=click.Path(),
    default="",
    metavar="FILE",
    help="With chunks: count the tokens of this model, by its tokenizer.json.",
)
@frame_option
@json_flag
def export(word: str, format_name: str | None, output: Path | None, as_json: bool, **wanted: Any) -> None:
    """Write the pages of a crawl in other forms.

    \b
      jsonl csv parquet   a row per page: its text, its fields and all that is known of it
      chunks        JSON lines: pages cut at headings and paragraphs, for retrieval
      data          JSON lines: JSON-LD, microdata and Open Graph of the pages that have any
      markdown      a folder of pages as Markdown, with links from file to file
      files         a folder of bodies as they were served, one file each
      sitemap       sitemap.xml; into a folder when it takes more than one file
      urls          every URL that a run requested, one per line
      fingerprints  JSON by URL: hashes, validators, sizes of a run
      warc          a run as one WARC file

    The crawl as it is now: the newest version of every page that is there, whichever run saw it. --run takes the
    record of one run instead, failures and redirects included. Works while the crawl runs, too. A file that ends in .gz
    or .zst is compressed, and a folder may be one file that ends in .zip.

    \b
      inchworm export CRAWL -o pages.parquet
      inchworm export CRAWL --columns url,title,text -o pages.jsonl.gz
      inchworm export CRAWL --since yesterday -o changes.jsonl

    Whoever follows a crawl takes each row of --since for the new state of its page, and deletes what is deleted.
    """
    output = None if output == _STDOUT else output
    format_name = format_name or _format_of(output)
    asked = ExportOptions(**wanted | {"frame": wanted["frame"] or ""})
    target, progress, fields = FORMATS[format_name].target, ProgressLine("Writing", is_patient=True), FieldsTaken()
    with opened() as app:
        app.export.find_frame(word, format_name, asked, ProgressLine("Finding the frame", is_patient=True))
        if target is Target.FOLDER and output is not None and output.suffix.lower() == ".zip":
            with opened_file(output, is_binary=True) as out:
                written = app.export.to_folder(word, format_name, out, asked, progress)
        elif target is Target.FOLDER or (target is Target.EITHER and output is not None and output.is_dir()):
            if output is None:
                raise WrongUse(f"The format {format_name!r} writes a folder.", "Say where: -o FOLDER, or -o FILE.zip")
            written = app.export.to_folder(word, format_name, output, asked, progress)
        else:
            if FORMATS[format_name].has_columns:
                fields = app.export.take_fields(word, asked, ProgressLine("Taking fields", is_patient=True))
            with opened_file(output, FORMATS[format_name].is_binary) as out:
                written = app.export.to_file(word, format_name, out, asked, progress)
        since = app.export.next_since(word)
    if written.lost and (output is None or not as_json):
        _tell_lost(written)
    _tell_fields(fields)
    if output is not None and as_json:
        print_json(_as_json(written, output) | {"unmatched_fields": list(fields.unmatched), "next_since": since})
    elif output is not None:
        _tell_written(written, format_name, output, since if asked.is_about_changes else None)


def _format_of(output: Path | None) -> str:
    """The format that the name of a file asks for."""
    endings = [ending.lower() for ending in output.suffixes if ending.lower() not in _PACKED] if output else []
    name = endings[-1].removeprefix(".") if endings else ""
    return {"ndjson": "jsonl", "txt": "urls", "xml": "sitemap"}.get(name, name if name in FORMATS else _USUAL)


def _as_json(written: Written, output: Path) -> dict[str, Any]:
    told = {"path": str(output), "count": written.files, "skipped": written.skipped, "lost": list(written.lost)}
    return {**told, "left_out": {reason: left._asdict() for reason, left in written.left_out.items()}}


def _tell_written(written: Written, format_name: str, output: Path, since: int | None) -> None:
    paragraph(f"{counted(written.files, FORMATS[format_name].thing)} to {output}")
    if others := _left_out(written):
        paragraph(f"Left out: {others}.")
    if since is not None:
        paragraph(f"What changes from now on: --since {since}")


def _tell_fields(fields: FieldsTaken) -> None:
    if fields.unmatched:
        paragraph(f"ATTENTION: {unmatched(fields.unmatched)}", err=True)
    if fields.failed:
        say(f"{counted(fields.failed, 'page has', 'pages have')} no fields: they could not be read.", err=True)


_REASONS = {"duplicate": "with the text of another", "without_text": "without text", "unreadable": "unreadable"}


def _left_out(written: Written) -> str:
    """What else was left out, and why. Of what is lost more is said."""
    left = written.left_out
    return ", ".join(
        f"{counted(left[reason].pages, 'page')} {words}" for reason, words in _REASONS.items() if reason in left
    )


def _tell_lost(written: Written) -> None:
    pages = counted(written.skipped, "page")
    say(f"{pages} left out: the archive does not have them, or is damaged there.", err=True)
    for url in written.lost[:_SHOWN_LOST]:
        say(f"  {shorten(url, LONGEST)}", err=True)
    if written.skipped > _SHOWN_LOST:
        say(f"  … and {written.skipped - _SHOWN_LOST:,} more; --json lists them", err=True)
    say("  `inchworm doctor` tells more.", err=True)
