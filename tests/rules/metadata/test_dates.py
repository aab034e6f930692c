"""Dates as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.rules.metadata.dates import standard


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-17", "2024-05-17"),
        ("20240517", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        (" 2024-05-17T10:20:30Z ", "2024-05-17T10:20:30.000Z"),
        ("2024-05-17T10:20:30+02:00", "2024-05-17T08:20:30.000Z"),
        ("2024-05-17T10:20:30.123456-0500", "2024-05-17T15:20:30.123Z"),
        ("2024-05-17 10:20", "2024-05-17T10:20:00.000Z"),
        ("Fri, 17 May 2024 10:20:30 GMT", "2024-05-17T10:20:30.000Z"),
        ("Friday, 17-May-24 10:20:30 GMT", "2024-05-17T10:20:30.000Z"),
        ("Fri, 17 May 2024 10:20:30 +0200", "2024-05-17T08:20:30.000Z"),
        ("0001-01-01T00:00:00+14:00", None),
        ("0000", None),
        ("2024-13", None),
        ("2024-02-30", None),
        ("yesterday", None),
        ("17.05.2024", None),
        ("", None),
        ("٢٠٢٤", None),
        ("9" * 10_000, None),
    ],
    ids=range(20),
)
def test_dates(text: str, expected: str | None) -> None:
    assert standard(text) == expected


@given(st.text() | st.text(st.sampled_from("0123456789-:+TZW., GMTJanFeb"), max_size=40))
def test_nothing_breaks_it_and_what_comes_out_is_a_date(text: str) -> None:
    found = standard(text)
    assert found is None or standard(found) == found


@given(st.datetimes(timezones=st.timezones()))
def test_moments_stay_what_they_are(moment: datetime) -> None:
    try:
        expected = moment.astimezone(UTC)
    except OverflowError:
        return
    found = standard(moment.isoformat())
    # A zone whose offset has seconds is read as well.
    assert found is None or abs(datetime.fromisoformat(found) - expected).total_seconds() < 0.001
