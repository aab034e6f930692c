"""Values as JSON has them: what the API sends and `--json` prints, by the names of their fields.

What `app` answers with are frozen dataclasses and named tuples. Every edge makes them JSON by this one rule, so that
all of them say the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import NamedTuple, cast

from inchworm.model import Json, JsonObject

_FORM = "json"
_FLAT, _OPTIONAL = "flat", "optional"

FLAT: Mapping[str, str] = {_FORM: _FLAT}
"""`field(metadata=FLAT)`: the fields of this value, or what this mapping has, stand among those around it; of none,
nothing does."""

OPTIONAL: Mapping[str, str] = {_FORM: _OPTIONAL}
"""`field(metadata=OPTIONAL)`: left out where it is None."""


def named(name: str) -> Mapping[str, str]:
    """`field(metadata=named("from"))`: a name that no field can have."""
    return {_FORM: f"={name}"}


class _Field(NamedTuple):
    name: str
    key: str
    form: str


_PLAIN = frozenset((bool, int, float, str, type(None)))
"""What nearly all fields are: they are not looked at any further."""

_FIELDS: dict[type, tuple[_Field, ...]] = {}
"""What is known of types that were seen."""


def json_form(value: object) -> Json:
    """A value as JSON. What it is made of has to be known here: anything else is a mistake of ours."""
    if type(value) in _PLAIN:
        return cast(Json, value)
    if isinstance(value, (int, float, str)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Mapping):
        return json_object(value)
    if fields := _fields_of(type(value)):
        return _object(value, fields)
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray | memoryview):
        return [json_form(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def json_object(value: object) -> JsonObject:
    """The same of a mapping, or of a value that has fields."""
    if isinstance(value, Mapping):
        return {str(name): json_form(one) for name, one in value.items()}
    if fields := _fields_of(type(value)):
        return _object(value, fields)
    raise TypeError(f"{type(value).__name__} is no object in JSON")


def _object(value: object, fields: Sequence[_Field]) -> JsonObject:
    found: JsonObject = {}
    for name, key, form in fields:
        one = getattr(value, name)
        if form == _FLAT:
            found.update(json_object(one) if one is not None else {})
        elif form != _OPTIONAL or one is not None:
            found[key] = one if type(one) in _PLAIN else json_form(one)
    return found


def _fields_of(kind: type) -> tuple[_Field, ...]:
    """The fields of a dataclass or a named tuple; none of anything else."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = _looked_up(kind)
    return found


def _looked_up(kind: type) -> tuple[_Field, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(_field(one.name, str(one.metadata.get(_FORM, ""))) for one in dataclasses.fields(kind))
    return tuple(_Field(name, name, "") for name in getattr(kind, "_fields", ()))


def _field(name: str, form: str) -> _Field:
    return _Field(name, form[1:] if form.startswith("=") else name, form)
