"""Commands that write out what a crawl has."""

from __future__ import annotations

from pathlib import Path

import click

from inchworm.app import FORMATS, Target
from inchworm.app.exports import Exports
from inchworm.cli.commands import main
from inchworm.cli.door import paragraph, print_json, say
from inchworm.cli.options import json_flag, opened, opened_file
from inchworm.cli.words import counted
from inchworm.errors import WrongUse


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
            count, skipped = _to_folder(app, word, format_name, output, number, wanted)
        else:
            count, skipped = _to_file(app, word, format_name, output, number), 0
    if output is None:
        return
    if as_json:
        print_json({"path": str(output), "count": count, "skipped": skipped})
        return
    paragraph(f"{counted(count, FORMATS[format_name].thing)} to {output}")
    if skipped:
        say(f"{skipped:,} left out: their bodies are not in the archive.")


def _to_file(app: Exports, word: str, format_name: str, output: Path | None, number: int | None) -> int:
    with opened_file(output, FORMATS[format_name].is_binary) as out:
        return app.export(word, format_name, out, number)


def _to_folder(
    app: Exports, word: str, format_name: str, output: Path | None, number: int | None, wanted: tuple[str, ...]
) -> tuple[int, int]:
    if output is None:
        raise WrongUse(f"The format {format_name!r} writes a folder.", "Say where: -o FOLDER")
    written = app.export_folder(word, format_name, output, number, wanted)
    return written.files, written.skipped
