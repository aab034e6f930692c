"""Fields as columns of a table: a row for each page, or for each match on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inchworm.page import Page
from inchworm.rules.fields.selectors import Field, Rules, ValueType
from inchworm.rules.words.times import iso
from inchworm.sink.columns import ALL, Column, Type

Values = Mapping[str, Any]

_FIELDS, _ROW = "fields", "row"
_TYPES = {
    ValueType.NUMBER: Type.NUMBER,
    ValueType.INTEGER: Type.INTEGER,
    ValueType.DATE: Type.TIME,
    ValueType.JSON: Type.JSON,
}

ROW = Column(_ROW, Type.INTEGER, lambda page: page.record.get(_ROW), "Which match on its page this is: 1, 2, 3, …")
OWN = Column(_FIELDS, Type.JSON, lambda page: page.record.get(_FIELDS), "What a function of yours took out of it.")

TAKEN = frozenset((*(column.flat for column in ALL), *(column.name.partition(".")[0] for column in ALL), _FIELDS, _ROW))
"""What no field can be called."""


def columns_of(rules: Rules) -> tuple[Column, ...]:
    """The columns of the fields; with rows of their own their number, too."""
    return (*((ROW,) if rules.each else ()), *map(_column, rules.fields))


def _column(field: Field) -> Column:
    name, is_times = field.name, field.is_list and field.kind is ValueType.DATE

    def get(page: Page) -> Any:
        value = (page.record.get(_FIELDS) or {}).get(name)
        return [iso(at_ms) for at_ms in value] if is_times and value is not None else value

    return Column(name, _type(field), get, f"A field: {field.as_written}")


def _type(field: Field) -> Type:
    if field.is_list:
        return Type.LIST if field.is_texts or field.kind is ValueType.DATE else Type.JSON
    return _TYPES.get(field.kind, Type.TEXT) if field.kind else Type.TEXT


def told(rules: Rules, row: list[Any]) -> dict[str, Any]:
    """A row as a JSON object."""
    page = Page("", "", lambda: None, {_FIELDS: dict(zip(rules.names, row, strict=True))})
    return {field.name: _column(field).json(page) for field in rules.fields}


class FieldRows(NamedTuple):
    """The rows of a page. `are_many`: it may have any number of them, none too, and they are counted."""

    values: Sequence[Values] = ()
    are_many: bool = False


def spread(pages: Iterable[Page], rows_of: Callable[[Page], FieldRows], keeps_all: bool) -> Iterator[Page]:
    """Each page as often as it has rows. It is the same page every time, with another row on record, so that what was
    read of it once need not be read again. `keeps_all`: a page that has none of many is told all the same."""
    for page in pages:
        rows, record = rows_of(page), page.record
        for number, values in enumerate(rows.values, 1):
            page.record = {**record, _FIELDS: values, _ROW: number if rows.are_many else None}
            yield page
        if not rows.values and (keeps_all or not rows.are_many):
            yield page
