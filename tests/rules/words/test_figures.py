"""Numbers, sizes, times and texts as people read them."""

from __future__ import annotations

import pytest

from inchworm.rules.words import figures


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (59.94, "59.9s"), (61, "1m01s"), (3599, "59m59s"), (7380, "2h03m"), (590_400, "6d20h")],
)
def test_clock(seconds: float, text: str) -> None:
    assert figures.clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.1, "1s"), (7.4, "7s"), (98, "98s"), (240, "4m"), (7800, "2h10m")])
def test_about(seconds: float, text: str) -> None:
    assert figures.about(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2 * 10**15, "2000.0 TB")])
def test_size(count: int, text: str) -> None:
    assert figures.size(count) == text


def test_clip_keeps_one_line() -> None:
    assert figures.clip("one\ntwo\x1b[2J", 100) == "one two [2J"
    assert figures.clip("abcdef", 4) == "abc…"
