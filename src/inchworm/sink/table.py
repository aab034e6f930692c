"""Pages as a table: JSON lines, CSV and Parquet, all three from one list of columns (`columns`).

Pages are read once, in the order in which they come, and written as they come.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from csv import writer
from typing import TYPE_CHECKING, Any, BinaryIO

from inchworm.page import Page
from inchworm.rules.words.times import iso
from inchworm.sink.arrow import batches, schema
from inchworm.sink.columns import CONTENT, Column, Type, as_json, chosen, nested

if TYPE_CHECKING:
    import pyarrow

ROW_GROUP_BYTES = 8_000_000
"""A row group of Parquet is held in memory until it is this large."""

# What spreadsheets take for a formula, also behind white space and what cannot be seen; full-width signs count too.
_FORMULA = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\x9f\\xad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*"
    "[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20]|[\\t\\r]"
)


def jsonl(pages: Iterable[Page], columns: Sequence[Column], out: BinaryIO) -> int:
    """One JSON object per page."""
    count, as_object = 0, nested(columns)
    for page in pages:
        out.write(as_json(as_object(page)).encode("utf-8", "replace") + b"\n")
        count += 1
    return count


_found = nested(chosen(("url", "canonical_url", "fetched_at")))
_DATA = ("json_ld", "microdata", "open_graph")


def data(pages: Iterable[Page], out: BinaryIO) -> int:
    """One JSON object per page that says something for machines: JSON-LD, microdata and Open Graph as they stand."""
    count = 0
    for page in pages:
        found = {} if page.is_gone or page.is_lost else page.data
        if found:
            told = _found(page) | {name: found.get(name) for name in _DATA}
            out.write(as_json(told).encode("utf-8", "replace") + b"\n")
            count += 1
    return count


def csv(pages: Iterable[Page], columns: Sequence[Column], out: BinaryIO, mark: bool = False) -> int:
    """A line of names, then one line per page, as RFC 4180 has it, and harmless in a spreadsheet. `mark`: with the byte
    order mark by which some spreadsheets know UTF-8."""
    if mark:
        out.write(codecs.BOM_UTF8)
    lines = writer(codecs.getwriter("utf-8")(out, "replace"), lineterminator="\r\n")
    lines.writerow([column.flat for column in columns])
    count = 0
    for page in pages:
        lines.writerow([cell(column.type, column.get(page)) for column in columns])
        count += 1
    return count


def cell(kind: Type, value: Any) -> Any:
    if value is None or kind in (Type.INTEGER, Type.NUMBER):
        return value
    if kind is Type.TIME:
        return iso(value)
    text = value if kind is Type.TEXT else as_json(value)
    if _FORMULA.match(text):
        text = "'" + text
    # Programs written in C end a cell here.
    return text.replace("\0", "\ufffd")


def parquet(pages: Iterable[Page], columns: Sequence[Column], out: BinaryIO) -> int:
    """The same columns with their types, a bounded number of rows at a time."""
    arrow_schema = schema(columns)
    from pyarrow.parquet import ParquetWriter

    count = 0
    # What pages hold is hardly ever the same: to look for equal values would only take time and memory.
    repeated = [column.flat for column in columns if column not in CONTENT]
    with ParquetWriter(out, arrow_schema, compression="zstd", use_dictionary=repeated) as file:
        for group in _row_groups(batches(pages, columns)):
            file.write_table(group)
            count += group.num_rows
    return count


def _row_groups(found: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Batches gathered into tables, each of which makes one row group."""
    import pyarrow

    held: list[pyarrow.RecordBatch] = []
    size = 0
    for batch in found:
        held.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pyarrow.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pyarrow.Table.from_batches(held)
