"""Which words of two lines differ."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from inchworm.rules.change import words

LINES = st.lists(st.lists(st.sampled_from(["a", "bb", "the", ".", "5"]), max_size=8).map(" ".join), max_size=6)


def test_both_versions_of_a_line_in_one() -> None:
    (one,) = words.replaced(["It costs 485 euros a day."], ["It costs 490 euros a day."])
    assert "".join(words.woven(one)) == "It costs [-485-] {+490+} euros a day."


def test_what_came_and_what_is_gone_stand_alone() -> None:
    assert ["".join(words.woven(one)) for one in words.replaced(["all of it"], [])] == ["[-all of it-]"]
    assert ["".join(words.woven(one)) for one in words.replaced([], ["", "new"])] == ["", "{+new+}"]


def test_lines_that_are_alike_stand_beside_each_other_to_the_last() -> None:
    old, last = "It costs 485 euros a day.", "It costs 490 euros a day."
    assert words.beside([old], ["Something else entirely", last]) == [(None, 0), (0, 1)]
    assert words.beside(["Title", old], ["Title", "Something else", last]) == [(0, 0), (None, 1), (1, 2)]


@given(LINES, LINES)
def test_nothing_is_lost_and_nothing_is_said_twice(old: list[str], new: list[str]) -> None:
    found = words.replaced(old, new)
    for side, lines in ((0, old), (1, new)):
        assert ["".join(piece.text for piece in one[side]) for one in found if one[side]] == lines
    assert all(words.woven(one) is not None for one in found)


def test_lines_without_end_take_no_time_without_end() -> None:
    begun = time.process_time()
    words.replaced(["a b " * 5_000] * 3, ["c d " * 5_000] * 3)
    words.replaced(["a"] * 3_000, ["b"] * 3_000)
    assert time.process_time() - begun < 20
