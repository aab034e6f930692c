"""The record as a table: CSV and Parquet hold what JSON lines hold, and other programs read it so."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import duckdb
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pyarrow import parquet
from tests.sink.pages import pages_of

from inchworm.errors import WrongUse
from inchworm.rules.words.times import iso
from inchworm.sink import arrow, export, table
from inchworm.sink.columns import USUAL as COLUMNS
from inchworm.sink.columns import Type

NAMES = tuple(column.flat for column in COLUMNS)

VISIT = {
    "run_id": 1, "seq": 7, "url": "http://a.test/x", "request_url": "http://a.test/x/", "outcome": "page",
    "failure": None, "message": None, "status": 200, "at_ms": 1_767_225_600_123, "millis": 250, "size": 12,
    "content_type": "text/html", "etag": '"1"', "last_modified": None, "text_hash": "ab", "payload": "cd",
    "title": "Grün, \"rot\"\r\nund blau", "language": "de", "canonical": None, "meta": {"author": "A", "n": [1, None]},
    "redirect": None, "source": "spider", "depth": 2, "hops": 0, "found_on": "http://a.test/", "links": 3,
    "file": "x.warc.gz", "offset": 10, "length": 20, "change": "new", "note": None, "run": 3,
    "alternate_urls": ["http://a.test/ab", "http://a.test/ü"],
}  # fmt: skip
FAILED = {
    **dict.fromkeys(VISIT), "seq": 8, "url": "http://a.test/y", "outcome": "failed", "failure": "dns", "status": 0,
    "at_ms": 0, "millis": 0, "size": 0, "meta": {}, "links": 0, "request_url": "http://a.test/y", "alternate_urls": [],
}  # fmt: skip
HOSTILE = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\n=1", " \n\t +1", "\xa0=1", "\u200b=1", "\ufeff=1",
    "\x00=1", "＝1", "＋1", "－1", "＠1", "=cmd|'/c calc'!A1", '"=1"', "'=1", "a\x00b", "\ud800", "a\udfffb",
    "\x1b[2J", "\u202eabc", "שלום", "😀", "\u2028", ",", '"', '""', "\r", "\n", "\r\n", " ", "", "null", "NULL",
    "NaN", "1e5", "007", "true", ";=1",
]  # fmt: skip


def as_csv(visits: Iterable[dict[str, object]]) -> bytes:
    out = io.BytesIO()
    export.csv(pages_of(visits), COLUMNS, out)
    return out.getvalue()


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


def as_parquet(visits: Iterable[dict[str, object]]) -> pyarrow.Table:
    out = io.BytesIO()
    export.parquet(pages_of(visits), COLUMNS, out)
    return parquet.read_table(io.BytesIO(out.getvalue()))


def as_lines(visits: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    out = io.BytesIO()
    export.jsonl(pages_of(visits), COLUMNS, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def flat(line: dict[str, object]) -> dict[str, object]:
    """A JSON line as one level, the way the tables have it."""
    place, text = line.pop("archive"), line.pop("text")
    return {**line, **{f"archive_{name}": value for name, value in place.items()}, "text": text}


# CSV


def test_a_line_of_names_and_a_line_for_each_visit():
    data = as_csv([VISIT, FAILED])
    assert data.startswith(",".join(NAMES).encode() + b"\r\n")
    first, second = rows(data)
    assert first == {
        "url": "http://a.test/x/", "canonical_url": "http://a.test/x", "run": "3", "seq": "7", "outcome": "page",
        "failure": "",
        "message": "", "change": "new", "note": "", "status": "200", "fetched_at": "2026-01-01T00:00:00.123Z",
        "seconds": "0.25", "bytes": "12", "content_type": "text/html", "etag": '"1"', "last_modified": "",
        "content_hash": "ab", "payload_hash": "cd", "title": "Grün, \"rot\"\r\nund blau",
        "full_title": "Grün, \"rot\"\r\nund blau", "language": "de",
        "author": "A", "published": "", "modified": "", "description": "", "canonical": "",
        "kind": "", "confidence": "",
        "meta": '{"author": "A", "n": [1, null]}', "redirect": "", "source": "spider", "depth": "2",
        "hops": "0", "found_on": "http://a.test/", "link_count": "3", "alternate_of": "",
        "alternate_urls": '["http://a.test/ab", "http://a.test/ü"]', "text": "The text of a page.",
        "archive_file": "x.warc.gz", "archive_offset": "10", "archive_length": "20",
    }  # fmt: skip
    assert (second["fetched_at"], second["failure"], second["archive_offset"]) == (
        "1970-01-01T00:00:00.000Z",
        "dns",
        "",
    )


def test_every_line_ends_as_the_standard_has_it_and_nothing_is_in_between():
    data = as_csv([{**VISIT, "title": "one"}, {**VISIT, "title": "two"}])
    assert data.count(b"\r\n") == data.count(b"\n") == 3
    assert not data.startswith(b"\xef\xbb\xbf")


def test_nothing_is_a_line_of_names():
    out = io.BytesIO()
    assert export.csv([], COLUMNS, out) == 0
    assert out.getvalue() == ",".join(NAMES).encode() + b"\r\n"


def test_a_visit_that_knows_little_has_empty_cells():
    (row,) = rows(as_csv([{"url": "http://a.test/", "outcome": "failed"}]))
    assert {name for name, value in row.items() if value} == {"url", "canonical_url", "outcome"}


FORMULAS = [text for text in HOSTILE if text.strip("\x00\ufeff\u200b \t\r\n\xa0")[:1] in tuple("=+-@＝＋－＠")]


@pytest.mark.parametrize("title", FORMULAS, ids=range(len(FORMULAS)))
def test_no_cell_is_a_formula(title):
    (row,) = rows(as_csv([{**VISIT, "title": title}]))
    assert row["full_title"] == "'" + title.replace("\0", "\ufffd")


@pytest.mark.parametrize("title", ["a=1", "1-2", "(=1)", "'=1", "x@y", "\xb7 -", '"=1"'])
def test_what_is_no_formula_stays_as_it_is(title):
    assert rows(as_csv([{**VISIT, "title": title}]))[0]["title"] == title


def test_numbers_stay_numbers():
    (row,) = rows(as_csv([{**VISIT, "status": -1, "millis": -250}]))
    assert (row["status"], row["seconds"]) == ("-1", "-0.25")


def harmless(text: str) -> bool:
    seen = text.lstrip("".join(map(chr, range(0x21))) + "\x7f\x85\xa0\xad\u200b\u2028\u2029\u2060\ufeff\u3000")
    return not seen.startswith(tuple("=+-@＝＋－＠")) and not text.startswith(("\t", "\r"))


words = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=()), max_size=12)
several = st.lists(words, max_size=4).map("".join)


@effort(max_examples=300, database=None)
@given(several, several, st.dictionaries(words, words, max_size=2))
@example("\r", "\n", {})
@example("=\x00", '"', {"=": "\ud800"})
def test_any_text_comes_back_and_none_is_a_formula(title, message, meta):
    data = as_csv([{**VISIT, "title": title, "message": message, "meta": meta}, VISIT])
    first, second = rows(data)
    assert second == rows(as_csv([VISIT]))[0], "the next row is not touched"
    for name, text in (("full_title", title), ("message", message)):
        held = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        assert first[name] in (held, "'" + held)
        assert harmless(first[name])
    assert json.loads(first["meta"]) == json.loads(json.dumps(meta, ensure_ascii=False).encode("utf-8", "replace"))
    assert b"\0" not in data


# Parquet


def test_columns_have_real_types():
    types = dict(zip(NAMES, as_parquet([VISIT]).schema.types, strict=True))
    assert types["fetched_at"] == pyarrow.timestamp("ms", "UTC")
    assert types["alternate_urls"] == pyarrow.list_(pyarrow.string())
    assert types["seconds"] == types["confidence"] == pyarrow.float64()
    assert {name for name, one in types.items() if one == pyarrow.int64()} == {
        "run", "seq", "status", "bytes", "depth", "hops", "link_count", "archive_offset", "archive_length",
    }  # fmt: skip
    others = set(types) - {"fetched_at", "alternate_urls", "seconds", "confidence"}
    assert {types[name] for name in others} == {pyarrow.string(), pyarrow.int64()}


def test_values_come_back():
    first, second = as_parquet([VISIT, FAILED]).to_pylist()
    assert first["fetched_at"] == datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)
    assert first["title"] == VISIT["title"]
    assert json.loads(first["meta"]) == VISIT["meta"]
    assert (second["title"], second["archive_offset"], second["alternate_urls"]) == (None, None, [])


def test_nothing_is_an_empty_table():
    found = as_parquet([])
    assert (found.num_rows, found.schema.names) == (0, list(NAMES))


@effort(max_examples=100, database=None)
@given(several, st.dictionaries(words, words, max_size=2))
def test_any_text_fits_into_parquet(title, meta):
    (row,) = as_parquet([{**VISIT, "title": title, "meta": meta}]).to_pylist()
    assert row["full_title"] == title.encode("utf-8", "replace").decode()


def test_row_groups_are_bounded(monkeypatch):
    """By rows, and by characters: what waits in memory is not much, however long the record and its texts."""
    monkeypatch.setattr(arrow, "BATCH_ROWS", 10)
    monkeypatch.setattr(arrow, "BATCH_CHARS", 20_000)
    monkeypatch.setattr(table, "ROW_GROUP_BYTES", 1)
    out = io.BytesIO()
    beginnings = []

    def visits() -> Iterator[dict[str, object]]:
        for seq in range(95):
            beginnings.append(out.tell())
            yield {**VISIT, "seq": seq, "canonical": "x" * (10_000 if seq >= 90 else 10)}

    assert export.parquet(pages_of(visits()), COLUMNS, out) == 95
    found = parquet.ParquetFile(io.BytesIO(out.getvalue()))
    sizes = [found.metadata.row_group(number).num_rows for number in range(found.metadata.num_row_groups)]
    assert sizes == [10] * 9 + [2, 2, 1]
    assert [seq for seq in range(1, 95) if beginnings[seq] > beginnings[seq - 1]] == [*range(10, 91, 10), 92, 94]
    assert found.read()["seq"].to_pylist() == list(range(95))


def test_batches_are_gathered_into_row_groups(monkeypatch):
    """Many small groups would be slow to read."""
    monkeypatch.setattr(arrow, "BATCH_ROWS", 10)
    monkeypatch.setattr(table, "ROW_GROUP_BYTES", 100_000)
    out = io.BytesIO()
    visits = ({**VISIT, "seq": seq, "canonical": "x" * 1_900} for seq in range(95))
    assert export.parquet(pages_of(visits), COLUMNS, out) == 95
    found = parquet.ParquetFile(io.BytesIO(out.getvalue()))
    sizes = [found.metadata.row_group(number).num_rows for number in range(found.metadata.num_row_groups)]
    assert sizes == [50, 45]
    assert found.read()["seq"].to_pylist() == list(range(95))


def test_the_stream_stays_open():
    out = io.BytesIO()
    export.parquet(pages_of([VISIT]), COLUMNS, out)
    assert not out.closed


def test_without_pyarrow_the_way_to_get_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(WrongUse) as raised:
        export.parquet(pages_of([VISIT]), COLUMNS, io.BytesIO())
    assert (raised.value.message, raised.value.hint) == (
        "Parquet, and tables for other programs, need pyarrow.",
        "Install it: pip install 'inchworm[parquet]'",
    )


# All three


def test_all_three_say_the_same():
    visits = [VISIT, FAILED, {**VISIT, "seq": 9, "outcome": "duplicate"}]
    lines, cells, columns = as_lines(visits), rows(as_csv(visits)), as_parquet(visits).to_pylist()
    for line, cell, row in zip(map(flat, lines), cells, columns, strict=True):
        assert list(line) == list(cell) == list(row) == list(NAMES)
        for column, name in zip(COLUMNS, NAMES, strict=True):
            said = line[name]
            assert (cell[name] or None) == as_text(said)
            assert parsed(column.type, row[name]) == said


def as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def parsed(kind: Type, value: object) -> object:
    if kind is Type.TIME:
        return iso(round(value.timestamp() * 1000))
    return json.loads(value) if kind is Type.JSON and value is not None else value


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_duckdb_finds_the_types_by_itself(kind, tmp_path, database):
    path = tmp_path / f"record.{kind}"
    with path.open("wb") as out:
        getattr(export, kind)(pages_of([VISIT, FAILED] * 20), COLUMNS, out)
    query = (
        "SELECT epoch_ms(fetched_at), status + 1, seconds * 2, bytes, title, meta->>'author', archive_offset"
        f" FROM '{path}' WHERE outcome = 'page' AND failure IS NULL AND fetched_at < TIMESTAMPTZ '2026-01-02 00:00:00Z'"
    )
    found = database.execute(query).fetchall()
    assert found == [(1_767_225_600_123, 201, 0.5, 12, VISIT["title"], "A", 10)] * 20


def test_duckdb_reads_any_text_out_of_csv(tmp_path, database):
    path = tmp_path / "record.csv"
    with path.open("wb") as out:
        visits = ({**VISIT, "seq": seq, "title": title} for seq, title in enumerate(HOSTILE))
        export.csv(pages_of(visits), COLUMNS, out)
    found = database.execute(
        f"SELECT seq, title FROM read_csv('{path}', all_varchar = true) ORDER BY seq::INT"
    ).fetchall()
    assert [(int(seq), title or "") for seq, title in found] == [
        (int(row["seq"]), row["title"]) for row in rows(path.read_bytes())
    ]
