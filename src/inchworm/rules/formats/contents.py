"""What a document holds that is no HTML: its text, and where it has a structure its paragraphs, headings and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from inchworm.rules.metadata.describe import MAX_FIELD, MAX_ITEMS, clean

MAX_LINKS = 100_000
MAX_TITLE = 1_000
MAX_TEXT = 10_000_000
"""What is kept of a document, whatever it is."""

_NOTHING: Mapping[str, object] = MappingProxyType({})
_LINKS = ("http://", "https://", "mailto:")
_MOST_CELLS = 500_000
_FIELDS = ("description", "author", "published", "modified")


class TextRun(NamedTuple):
    """Some words of a paragraph, and where they lead."""

    text: str
    href: str = ""


class Paragraph(NamedTuple):
    """A paragraph, or a heading: 1 to 6 say how far up it stands."""

    runs: tuple[TextRun, ...]
    level: int = 0

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs).strip()


class TableRow(NamedTuple):
    """A row of a table."""

    cells: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\t".join(" ".join(cell.split()) for cell in self.cells).rstrip()


Block = Paragraph | TableRow


class Contents(NamedTuple):
    """What was read. `markdown` is there for what is a text, `blocks` for what has a structure. `is_thin`: so little
    text for what it is that it does not tell the document from others."""

    title: str = ""
    text: str = ""
    markdown: str = ""
    language: str = ""
    meta: Mapping[str, object] = _NOTHING
    links: tuple[TextRun, ...] = ()
    blocks: tuple[Block, ...] = ()
    is_thin: bool = False


def laid_out(blocks: Iterable[Block]) -> str:
    """Blocks as text: paragraphs apart, the rows of a table line by line with tabs between the cells."""
    return "\n\n".join("\n".join(filter(None, group)) for group in _groups(blocks))


def _groups(blocks: Iterable[Block]) -> Iterator[list[str]]:
    for is_table, group in groupby(blocks, lambda block: isinstance(block, TableRow)):
        texts = [block.text for block in group]
        if is_table:
            yield texts
        else:
            yield from ([text] for text in texts if text)


def as_html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML, in which nothing is left that the document could have smuggled in."""
    parts = ["<article>"]
    for is_table, group in groupby(blocks, lambda block: isinstance(block, TableRow)):
        if is_table:
            parts += ["<table>", *_rows([block for block in group if isinstance(block, TableRow)]), "</table>"]
        else:
            parts += map(_paragraph, group)
    return "\n".join((*parts, "</article>"))


def _rows(rows: list[TableRow]) -> Iterator[str]:
    """A table whose first row is its head, as most are, and whose rows are of one length. One with more cells than
    anybody reads is cut."""
    width = max(len(row.cells) for row in rows)
    for number, row in enumerate(rows[: _MOST_CELLS // (width or 1)]):
        tag = "td" if number else "th"
        cells = (*row.cells, *[""] * (width - len(row.cells)))
        yield "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _paragraph(block: Block) -> str:
    assert isinstance(block, Paragraph)
    tag = f"h{block.level}" if block.level else "p"
    return f"<{tag}>{''.join(map(_run, block.runs))}</{tag}>"


def _run(run: TextRun) -> str:
    text = escape(run.text).replace("\n", "<br>")
    is_link = run.href[:8].lower().startswith(_LINKS)
    return f'<a href="{escape(run.href)}">{text}</a>' if is_link else text


def about(said: Mapping[str, str]) -> dict[str, object]:
    """What a document says of itself, in the words that pages have for it."""
    fields: dict[str, object] = {name: text for name in _FIELDS if (text := clean(said.get(name, "")))}
    words = said.get("keywords", "")[: 10 * MAX_FIELD].replace(";", ",").split(",")
    if keywords := list(dict.fromkeys(filter(None, map(clean, words))))[:MAX_ITEMS]:
        fields["keywords"] = keywords
    return fields
