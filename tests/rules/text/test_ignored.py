"""Text that does not count."""

from __future__ import annotations

import time

import pytest

from inchworm.errors import WrongUse
from inchworm.model import Substance
from inchworm.rules.text.content import fingerprint, reads_texts_alike, text_reader
from inchworm.rules.text.ignored import IgnoredText
from inchworm.settings import Settings

URL = "http://a.test/blog/worms"

FOUND = {
    "words": ("Seen * times", "A page. Seen 1,234 times. The end.", "A page. . The end."),
    "spaced otherwise": ("Seen * times", "A page. Seen\n 7  times", "A page. "),
    "not too far": ("Seen * times", f"Seen {'x' * 500} times", f"Seen {'x' * 500} times"),
    "signs": ("[$] 5 (a day)?", "It costs [$] 5 (a day)? Yes.", "It costs  Yes."),
    "an expression": (r"re:\d+ people", "12 people and 7 people, 3 cats", " and , 3 cats"),
    "here": ("/blog/*::Seen * times", "Seen 5 times", ""),
    "elsewhere": ("/docs/*::Seen * times", "Seen 5 times", "Seen 5 times"),
    "no path": ("/a/b costs", "the path /a/b costs", "the path "),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_matches_is_left_out(name: str) -> None:
    pattern, text, wanted = FOUND[name]
    assert IgnoredText((pattern,)).without(text, URL) == wanted


def test_title_and_text_are_freed_of_it_and_links_are_not() -> None:
    ignored = IgnoredText(("Seen * times", "re:[0-9]+"))
    found = ignored.substance(Substance("3 new", "Seen 4 times, 5", ("http://5",)), URL)
    assert found == Substance(" new", ", ", ("http://5",))


@pytest.mark.parametrize("pattern", ["re:(", "re:(?=a)", "*", "re:a*", "", " ", "/blog/*::", "/blog/*::*"])
def test_what_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(WrongUse):
        IgnoredText((pattern,))


def test_no_pattern_makes_reading_slow() -> None:
    begun = time.process_time()
    IgnoredText(("re:(a+)+$", "a * b * c")).without("a" * 100_000, URL)
    assert time.process_time() - begun < 20


def test_readings_by_other_patterns_cannot_be_compared() -> None:
    assert len({fingerprint(Settings(ignore_text=given)) for given in ((), ("a",), ("b",), ("a", "b"))}) == 4
    assert fingerprint(Settings(drop_params=("a",))) != fingerprint(Settings(ignore_text=("a",)))


def test_texts_are_read_alike_whatever_is_done_with_links() -> None:
    usual, ignoring, resources = (
        fingerprint(Settings(**given)) for given in ({}, {"ignore_text": ("a",)}, {"resources": True})
    )
    assert reads_texts_alike(usual, resources)
    assert not reads_texts_alike(usual, ignoring)
    assert reads_texts_alike(f"{text_reader(Settings())} again", usual)
