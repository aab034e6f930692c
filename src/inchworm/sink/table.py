"""The record as a table: JSON lines, CSV and Parquet, all three from one list of columns.

Each takes visits as the record has them, and a question, `alternates`, which URLs share a text. They are read once,
in the order of record, and written as they come.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from csv import writer
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple

from inchworm.errors import WrongUse
from inchworm.rules.times import iso

Visit = Mapping[str, Any]
"""A visit of the record. What it does not have counts as None."""

Alternates = Callable[[str], list[str]]
"""All URLs that have the text with this hash, the primary one first."""


class Type(StrEnum):
    """What the values of a column are. Times are milliseconds since 1970, as visits have them."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TIME = "time"
    LIST = "list"
    JSON = "json"


class Column(NamedTuple):
    """A column, its type, and how to get its value from a visit. A dot in its name makes a level of its own in JSON."""

    name: str
    type: Type
    get: Callable[[Visit], Any]


def _column(name: str, kind: Type = Type.TEXT, key: str = "") -> Column:
    key = key or name
    return Column(name, kind, lambda visit: visit.get(key))


def _seconds(visit: Visit) -> float | None:
    millis = visit.get("millis")
    return None if millis is None else millis / 1000


COLUMNS = (
    _column("url"),
    _column("request_url"),
    _column("seq", Type.INTEGER),
    _column("outcome"),
    _column("failure"),
    _column("message"),
    _column("change"),
    _column("note"),
    _column("status", Type.INTEGER),
    _column("fetched_at", Type.TIME, "at_ms"),
    Column("seconds", Type.NUMBER, _seconds),
    _column("bytes", Type.INTEGER, "size"),
    _column("content_type"),
    _column("etag"),
    _column("last_modified"),
    _column("content_hash", key="text_hash"),
    _column("payload_hash", key="payload"),
    _column("title"),
    _column("language"),
    _column("canonical"),
    _column("meta", Type.JSON),
    _column("redirect"),
    _column("source"),
    _column("depth", Type.INTEGER),
    _column("hops", Type.INTEGER),
    _column("found_on"),
    _column("links", Type.INTEGER),
    _column("alternate_urls", Type.LIST),
    _column("archive.file", key="file"),
    _column("archive.offset", Type.INTEGER, "offset"),
    _column("archive.length", Type.INTEGER, "length"),
)

NAMES = tuple(column.name.replace(".", "_") for column in COLUMNS)
"""The columns' names where there are no levels."""

_PATHS = tuple(column.name for column in COLUMNS)
_TIMES = tuple(column.name for column in COLUMNS if column.type is Type.TIME)
_NESTED = tuple(path for path in _PATHS if "." in path)

ROW_GROUP_ROWS = 10_000
ROW_GROUP_CHARS = 8_000_000
"""A row group of Parquet is held in memory until it has this many rows or characters."""

# What spreadsheets take for a formula, also behind white space and what cannot be seen; full-width signs count too.
_FORMULA = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\x9f\\xad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*"
    "[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20]|[\\t\\r]"
)


def jsonl(visits: Iterable[Visit], alternates: Alternates, out: BinaryIO) -> int:
    """One JSON object per visit."""
    count = 0
    for row in _rows(visits, alternates):
        out.write(_as_json(_object(row)).encode("utf-8", "replace") + b"\n")
        count += 1
    return count


def _object(row: list[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(zip(_PATHS, row, strict=True))
    for name in _TIMES:
        fields[name] = None if fields[name] is None else iso(fields[name])
    for path in _NESTED:
        level, _, name = path.partition(".")
        fields.setdefault(level, {})[name] = fields.pop(path)
    return fields


def csv(visits: Iterable[Visit], alternates: Alternates, out: BinaryIO) -> int:
    """A line of names, then one line per visit, as RFC 4180 has it, and harmless in a spreadsheet."""
    lines = writer(codecs.getwriter("utf-8")(out, "replace"), lineterminator="\r\n")
    lines.writerow(NAMES)
    count = 0
    for row in _rows(visits, alternates):
        lines.writerow([cell(column.type, value) for column, value in zip(COLUMNS, row, strict=True)])
        count += 1
    return count


def parquet(visits: Iterable[Visit], alternates: Alternates, out: BinaryIO) -> int:
    """The same columns with their types, a bounded number of rows at a time."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise WrongUse("Parquet needs pyarrow.", "Install it: pip install 'inchworm[parquet]'") from error
    types = {
        Type.TEXT: pyarrow.string(),
        Type.INTEGER: pyarrow.int64(),
        Type.NUMBER: pyarrow.float64(),
        Type.TIME: pyarrow.timestamp("ms", "UTC"),
        Type.LIST: pyarrow.list_(pyarrow.string()),
        Type.JSON: pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[column.type]) for name, column in zip(NAMES, COLUMNS, strict=True)])
    count = 0
    with ParquetWriter(out, schema, compression="zstd") as file:
        for group in _groups(_rows(visits, alternates)):
            columns = [
                pyarrow.array(values, field.type)
                for values, field in zip(zip(*group, strict=True), schema, strict=True)
            ]
            file.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
            count += len(group)
    return count


def _rows(visits: Iterable[Visit], alternates: Alternates) -> Iterator[list[Any]]:
    """The values of each visit. The page that owns a content is the one that lists its URLs."""
    for visit in visits:
        text_hash = visit.get("text_hash") if visit.get("outcome") == "page" else None
        full = {**visit, "alternate_urls": [] if text_hash is None else alternates(text_hash)}
        yield [column.get(full) for column in COLUMNS]


def cell(kind: Type, value: Any) -> Any:
    if value is None or kind in (Type.INTEGER, Type.NUMBER):
        return value
    if kind is Type.TIME:
        return iso(value)
    text = value if kind is Type.TEXT else _as_json(value)
    if _FORMULA.match(text):
        text = "'" + text
    # Programs written in C end a cell here.
    return text.replace("\0", "\ufffd")


def _groups(rows: Iterable[list[Any]]) -> Iterator[list[list[Any]]]:
    """As many rows as make a row group, with values that Parquet can hold."""
    group: list[list[Any]] = []
    chars = 0
    for row in rows:
        plain = [_plain(column.type, value) for column, value in zip(COLUMNS, row, strict=True)]
        group.append(plain)
        chars += sum(len(value) for value in plain if isinstance(value, str))
        if len(group) == ROW_GROUP_ROWS or chars >= ROW_GROUP_CHARS:
            yield group
            group, chars = [], 0
    if group:
        yield group


def _plain(kind: Type, value: Any) -> Any:
    if value is None or kind in (Type.INTEGER, Type.NUMBER, Type.TIME):
        return value
    if kind is Type.LIST:
        return [_whole(text) for text in value]
    return _whole(value if kind is Type.TEXT else _as_json(value))


def _whole(text: str) -> str:
    """Text that UTF-8 can hold: no halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
