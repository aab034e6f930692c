"""Pages as batches of Arrow, for Parquet and for other programs.

The arrays are made of their buffers. `pyarrow.array` makes the same ones, but its first call in a process imports
pandas where that is installed, which takes 50 MB and half a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from inchworm.errors import WrongUse
from inchworm.page import Page
from inchworm.sink.columns import Column, Type, as_json

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 10_000
BATCH_CHARS = 1_000_000
"""So many rows or characters make a batch."""

_NUMBERS = {Type.INTEGER: "q", Type.NUMBER: "d", Type.TIME: "q"}
"""The columns with values of eight bytes, and which."""


def schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """The columns as Arrow has them."""
    try:
        import pyarrow
    except ImportError as error:
        raise WrongUse(
            "Parquet, and tables for other programs, need pyarrow.", "Install it: pip install 'inchworm[parquet]'"
        ) from error
    types = {
        Type.TEXT: pyarrow.string(),
        Type.INTEGER: pyarrow.int64(),
        Type.NUMBER: pyarrow.float64(),
        Type.TIME: pyarrow.timestamp("ms", "UTC"),
        Type.LIST: pyarrow.list_(pyarrow.string()),
        Type.JSON: pyarrow.string(),
    }
    return pyarrow.schema([(column.flat, types[column.type]) for column in columns])


def batches(pages: Iterable[Page], columns: Sequence[Column]) -> Iterator[pyarrow.RecordBatch]:
    """Pages as batches of Arrow, each of a bounded size."""
    arrow_schema = schema(columns)
    import pyarrow

    for group in _groups(pages, columns):
        found = zip(columns, arrow_schema, zip(*group, strict=True), strict=True)
        arrays = [_array(column.type, field.type, values) for column, field, values in found]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=arrow_schema)


def _groups(pages: Iterable[Page], columns: Sequence[Column]) -> Iterator[list[list[Any]]]:
    """As many rows as make a batch. Texts are bytes already, as Arrow has them."""
    group: list[list[Any]] = []
    size = 0
    for page in pages:
        row = [None if (value := column.get(page)) is None else _stored(column.type, value) for column in columns]
        group.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(group) == BATCH_ROWS or size >= BATCH_CHARS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _stored(kind: Type, value: Any) -> Any:
    if kind in _NUMBERS:
        return value
    if kind is Type.LIST:
        return [text.encode("utf-8", "replace") for text in value]
    return (value if kind is Type.TEXT else as_json(value)).encode("utf-8", "replace")


# Arrays, made of their buffers


def _array(kind: Type, arrow_type: pyarrow.DataType, values: Sequence[Any]) -> pyarrow.Array:
    """A column of a batch."""
    import pyarrow

    if kind is Type.LIST:
        lists = [value or () for value in values]
        children = [_array(Type.TEXT, arrow_type.value_type, [text for texts in lists for text in texts])]
        return pyarrow.Array.from_buffers(arrow_type, len(values), [_valid(values), _ends(lists)], children=children)
    if kind in _NUMBERS:
        numbers = array(_NUMBERS[kind], [0 if value is None else value for value in values])
        return pyarrow.Array.from_buffers(arrow_type, len(values), [_valid(values), pyarrow.py_buffer(numbers)])
    texts = [value or b"" for value in values]
    buffers = [_valid(values), _ends(texts), pyarrow.py_buffer(b"".join(texts))]
    return pyarrow.Array.from_buffers(arrow_type, len(values), buffers)


def _ends(values: Sequence[Sequence[Any]]) -> pyarrow.Buffer:
    """Where each value ends, after a first 0."""
    import pyarrow

    return pyarrow.py_buffer(array("i", accumulate(map(len, values), initial=0)))


def _valid(values: Sequence[Any]) -> pyarrow.Buffer | None:
    """A bit for each value, the first one the lowest of its byte: whether it is there. None where all are."""
    import pyarrow

    if None not in values:
        return None
    bits = "".join("0" if value is None else "1" for value in reversed(values))
    return pyarrow.py_buffer(int(bits, 2).to_bytes(-(-len(values) // 8), "little"))
