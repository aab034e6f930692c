"""Columns of every type, made of their buffers: what was written is what other programs read."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pyarrow import parquet

from inchworm.page import Page
from inchworm.sink import arrow, export
from inchworm.sink.columns import Column, Type

Values = Mapping[str, Any]

COLUMNS = tuple(Column(kind.value, kind, lambda page, name=kind.value: page.record[name], "") for kind in Type)
NAMES = tuple(column.name for column in COLUMNS)
NOTHING: Values = dict.fromkeys(NAMES)

FIRST_DAY, LAST_DAY = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, as Python has them."""

texts = st.sampled_from(
    ("", " ", "\0", "a\0b", "\ud800", "x\udfff", "\U0010ffff", "👩‍👧", "שלום", "é", "\ufeff")
) | st.text(st.characters(exclude_categories=()), max_size=20)
numbers = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
cells: dict[Type, st.SearchStrategy[Any]] = {
    Type.TEXT: texts,
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.NUMBER: numbers,
    Type.TIME: st.integers(FIRST_DAY, LAST_DAY),
    Type.LIST: st.lists(texts, max_size=4),
    Type.JSON: nested.filter(lambda value: value is not None),
}
rows = st.fixed_dictionaries({column.name: st.none() | cells[column.type] for column in COLUMNS})
FULL: Values = {
    "text": "a", "integer": 2**63 - 1, "number": -0.5, "time": 1_767_225_600_123, "list": ["", "b"], "json": {"a": [1]}
}  # fmt: skip


def pages(table: Sequence[Values]) -> Iterator[Page]:
    return (Page("http://a.test/", "text/html", lambda: b"", row) for row in table)


def held(text: str) -> str:
    """As UTF-8 holds it."""
    return text.encode("utf-8", "replace").decode()


def expected(row: Values) -> list[Any]:
    told = [None if row[column.name] is None else row[column.name] for column in COLUMNS]
    for at, column in enumerate(COLUMNS):
        if (value := told[at]) is None:
            continue
        if column.type is Type.TEXT:
            told[at] = held(value)
        elif column.type is Type.LIST:
            told[at] = [held(one) for one in value]
        elif column.type is Type.JSON:
            told[at] = held(json.dumps(value, ensure_ascii=False))
        elif column.type is Type.NUMBER:
            told[at] = float(value)
    return told


def by_pyarrow(path: Path) -> list[list[Any]]:
    return table_rows(parquet.read_table(path))


def table_rows(found: pyarrow.Table) -> list[list[Any]]:
    found.validate(full=True)
    at = found.schema.get_field_index("time")
    found = found.set_column(at, "time", found["time"].cast(pyarrow.int64()))
    return [list(row.values()) for row in found.to_pylist()]


def by_duckdb(path: Path) -> list[list[Any]]:
    chosen = ", ".join("epoch_ms(time)" if name == "time" else f'"{name}"' for name in NAMES)
    with duckdb.connect(config={"threads": 1}) as database:
        return [list(row) for row in database.execute(f"SELECT {chosen} FROM read_parquet('{path}')").fetchall()]


def by_pandas(path: Path) -> list[list[Any]]:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    frame["time"] = frame["time"].astype("int64[pyarrow]")
    return [[plain(value) for value in row] for row in frame.itertuples(index=False)]


def plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return None if value is sys.modules["pandas"].NA else value


READERS = (by_pyarrow, by_duckdb, by_pandas)


@pytest.mark.parametrize("reader", READERS, ids=[one.__name__ for one in READERS])
def test_what_was_written_is_what_is_read(reader: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"

    @effort(max_examples=60, database=None)
    @given(st.lists(rows, max_size=20))
    @example([NOTHING])
    @example([FULL])
    @example([NOTHING, FULL] * 9)
    @example([FULL] * 8 + [NOTHING])
    @example([{**NOTHING, "list": [], "text": ""}, {**FULL, "number": math.inf, "integer": -(2**63)}])
    def check(table: list[Values]) -> None:
        with path.open("wb") as out:
            assert export.parquet(pages(table), COLUMNS, out) == len(table)
        assert reader(path) == [expected(row) for row in table]

    check()


@effort(max_examples=100, database=None)
@given(st.lists(rows, min_size=1, max_size=20))
def test_batches_are_as_arrow_wants_them(table: list[Values]) -> None:
    made = list(arrow.batches(pages(table), COLUMNS))
    found = pyarrow.Table.from_batches(made)
    assert found.schema == arrow.schema(COLUMNS)
    assert table_rows(found) == [expected(row) for row in table]
    # The same arrays as Arrow makes of the same values, with the same nulls.
    for at, column in enumerate(COLUMNS):
        same = pyarrow.array([expected(row)[at] for row in table], found.schema.field(column.name).type)
        assert found[column.name].combine_chunks().equals(same)
        assert found[column.name].null_count == same.null_count


def test_not_a_number_stays_what_it_is() -> None:
    out = io.BytesIO()
    export.parquet(pages([{**FULL, "number": math.nan}, NOTHING]), COLUMNS, out)
    first, second = parquet.read_table(io.BytesIO(out.getvalue()))["number"].to_pylist()
    assert math.isnan(first)
    assert second is None


def test_what_does_not_fit_into_a_column_is_an_error() -> None:
    with pytest.raises(OverflowError):
        list(arrow.batches(pages([{**FULL, "integer": 2**63}]), COLUMNS))


def test_writing_does_not_load_pandas() -> None:
    """It would take a quarter of the memory that an export may have."""
    pytest.importorskip("pandas")
    code = (
        "import io, sys; from tests.sink import test_arrow as t; from inchworm.sink import export;"
        "assert export.parquet(t.pages([t.FULL, t.NOTHING]), t.COLUMNS, io.BytesIO()) == 2;"
        "assert 'pandas' not in sys.modules, 'pandas'"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
