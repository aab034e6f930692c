"""Commands that write out what a crawl has."""

from __future__ import annotations

from pathlib import Path

import click

from inchworm.app import FORMATS, Target, Written
from inchworm.app.exports import Exports
from inchworm.cli.commands import main
from inchworm.cli.door import paragraph, print_json, say
from inchworm.cli.options import json_flag, opened, opened_file
from inchworm.cli.words import counted
from inchworm.errors import WrongUse
from inchworm.rules.explain import LONGEST
from inchworm.rules.url import shorten

_SHOWN_LOST = 20


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None, help="File or folder to write. [default: stdout]"
)
@click.option("--run", "number", type=int, default=None, metavar="N", help="Which run. [default: the last]")
@click.option(
    "--type", "wanted", multiple=True, metavar="TYPE", help="With files: only these, as pdf or image/*; repeatable."
)
@json_flag
def export(
    word: str, format_name: str, output: Path | None, number: int | None, wanted: tuple[str, ...], as_json: bool
) -> None:
    """Write a run's record and pages in other forms.

    \b
      urls          every URL requested, one per line, in the order of record
      jsonl csv parquet   every visit with all that is known of it
      fingerprints  JSON by URL: hashes, validators, sizes
      sitemap       sitemap.xml; into a folder when it takes more than one file
      markdown      a folder of pages as Markdown, one file each
      files         a folder of bodies as they were served, one file each
      warc          one WARC file

    The run as it stands now, also while it is being crawled.
    """
    if wanted and format_name != "files":
        raise WrongUse("--type goes with the format `files`.", "Leave it out.")
    target = FORMATS[format_name].target
    with opened(Exports) as app:
        if target is Target.FOLDER or (target is Target.EITHER and output is not None and output.is_dir()):
            written = _to_folder(app, word, format_name, output, number, wanted)
        else:
            written = _to_file(app, word, format_name, output, number)
    if written.lost and (output is None or not as_json):
        _tell_lost(written)
    if output is None:
        return
    if as_json:
        told = {"path": str(output), "count": written.files, "skipped": written.skipped, "lost": list(written.lost)}
        print_json(told)
        return
    paragraph(f"{counted(written.files, FORMATS[format_name].thing)} to {output}")


def _tell_lost(written: Written) -> None:
    pages = counted(written.skipped, "page")
    say(f"{pages} left out: the archive does not have them, or is damaged there.", err=True)
    for url in written.lost[:_SHOWN_LOST]:
        say(f"  {shorten(url, LONGEST)}", err=True)
    if written.skipped > _SHOWN_LOST:
        say(f"  … and {written.skipped - _SHOWN_LOST:,} more; --json lists them", err=True)
    say("  `inchworm doctor` tells more.", err=True)


def _to_file(app: Exports, word: str, format_name: str, output: Path | None, number: int | None) -> Written:
    with opened_file(output, FORMATS[format_name].is_binary) as out:
        return app.export(word, format_name, out, number)


def _to_folder(
    app: Exports, word: str, format_name: str, output: Path | None, number: int | None, wanted: tuple[str, ...]
) -> Written:
    if output is None:
        raise WrongUse(f"The format {format_name!r} writes a folder.", "Say where: -o FOLDER")
    return app.export_folder(word, format_name, output, number, wanted)
