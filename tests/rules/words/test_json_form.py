"""Values as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from inchworm.model import RunState
from inchworm.rules.words.json_form import FLAT, OPTIONAL, json_form, json_object, named


class Point(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True, slots=True)
class Counts:
    pages: int
    failed: int


@dataclass(frozen=True, slots=True)
class Line:
    run: int
    state: RunState
    counts: Counts | None = field(metadata=FLAT)
    since: int = field(metadata=named("from"))
    alarm: str | None = field(default=None, metadata=OPTIONAL)
    note: str | None = None
    points: tuple[Point, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)


def test_fields_have_their_names_and_flat_ones_stand_among_them() -> None:
    line = Line(1, RunState.PAUSED, Counts(3, 0), 5, points=(Point(1, 2.5),), extra={"a": [Point(0, 0.0)]})
    assert json_form(line) == {
        "run": 1,
        "state": "paused",
        "pages": 3,
        "failed": 0,
        "from": 5,
        "note": None,
        "points": [{"x": 1, "y": 2.5}],
        "extra": {"a": [{"x": 0, "y": 0.0}]},
    }
    assert json.loads(json.dumps(json_form(line))) == json_form(line)


def test_what_a_flat_mapping_has_stands_among_the_fields() -> None:
    @dataclass(frozen=True, slots=True)
    class Row:
        run: int
        parts: Mapping[str, object] = field(metadata=FLAT)

    assert json_form(Row(1, {"text": "a", "at": Point(1, 0.5)})) == {"run": 1, "text": "a", "at": {"x": 1, "y": 0.5}}


def test_what_is_optional_is_left_out_only_where_it_is_none() -> None:
    line = json_object(Line(1, RunState.PAUSED, None, 5, alarm=""))
    assert line["alarm"] == "" and "pages" not in line and "alarm" not in json_object(Line(1, RunState.PAUSED, None, 5))


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "text", [1, "a"], {"a": [None]}])
def test_plain_values_stay_what_they_are(value: object) -> None:
    assert json_form(value) == value


def test_members_of_enums_are_their_values() -> None:
    assert type(json_form(RunState.PAUSED)) is str
    assert json_form(frozenset({3})) == [3]
    assert json_form(()) == []


@pytest.mark.parametrize("value", [object(), b"bytes", {"a": [bytearray(b"bytes")]}])
def test_what_has_no_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        json_form(value)


@pytest.mark.parametrize("value", ["text", 1, None, [1], object()])
def test_what_has_no_fields_is_no_object(value: object) -> None:
    with pytest.raises(TypeError, match="is no object in JSON"):
        json_object(value)
