"""When people are told."""

from __future__ import annotations

import pytest

from inchworm.errors import WrongUse
from inchworm.model import Counters
from inchworm.rules.change.conditions import Conditions

FOUND = Counters(new=1, modified=2, deleted=2, unchanged=85, unknown=10)


@pytest.mark.parametrize(
    ("named", "holds"),
    [((), True), (("4%",), True), (("4.9 %",), True), (("5%",), False), (("5%", "1%"), True), (("text:a",), False)],
)
def test_by_number(named: tuple[str, ...], holds: bool) -> None:
    assert Conditions(named).hold_by_number(FOUND) == holds


def test_by_text() -> None:
    conditions = Conditions(("text:price * euro", "text:re:[0-9]{3}"))
    assert conditions.ask_for_text
    assert conditions.hold_by_text(["a", "the price\nis 5 euro"])
    assert conditions.hold_by_text(["a", "485"])
    assert not conditions.hold_by_text(["a", "price", "48"])
    assert conditions.hold_by_text(["a", None]), "nobody knows"


@pytest.mark.parametrize("one", ["", "5", "100%", "-1%", "text:", "text:*", "text:re:(", "field:price", "1e3%"])
def test_what_is_no_condition_is_refused(one: str) -> None:
    with pytest.raises(WrongUse):
        Conditions((one,))
