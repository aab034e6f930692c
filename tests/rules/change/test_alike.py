"""Which pages changed in the same way."""

from __future__ import annotations

import random
import time
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.model import Substance
from inchworm.rules.change import alike, groups
from inchworm.rules.change.groups import AlikePages, GroupPlace, Passage

NOTICE = "This manual is for an old version. You may want to see the same page of the current one, which has more."
URL = "http://a.test/docs/9/sql-select.html"


def text(old: str, new: str, url: str = URL) -> tuple[list[Passage], int | None]:
    found = alike.passages(Substance("", old), Substance("", new))
    return found, alike.number(found, url)


def written(seed: int, sentences: int = 40) -> str:
    """Some text that no other page has."""
    chance = random.Random(seed)
    words = ("This", "worm", "soil", "leaf", "The", "a", "grows", "burrow", "slowly", str(seed))
    return " ".join(" ".join(chance.choice(words) for _ in range(9)) + "." for _ in range(sentences))


@pytest.mark.parametrize("where", ["above", "below", "between"])
def test_a_long_notice_is_the_same_on_every_page_whatever_stands_around_it(where: str) -> None:
    pages = [(written(seed), written(seed + 100)) for seed in range(30)]
    with_it = [
        {"above": f"{NOTICE} {a} {b}", "below": f"{a} {b} {NOTICE}", "between": f"{a} {NOTICE} {b}"}[where]
        for a, b in pages
    ]
    gone = {text(old, f"{a} {b}")[1] for old, (a, b) in zip(with_it, pages, strict=True)}
    came = {text(f"{a} {b}", new)[1] for new, (a, b) in zip(with_it, pages, strict=True)}
    assert (len(gone), len(came), gone & came) == (1, 1, set())
    assert text(*reversed([with_it[0], " ".join(pages[0])]))[0] == [Passage("text", "", NOTICE)]


DIFFERENCES: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "a number": ("It costs 485 a day", "It costs 486 a day", [("485", "486")]),
    "a version": ("Manual 15.3 of it", "Manual 15.4 of it", [("15.3", "15.4")]),
    "put in before the same word": ("It is so. The end.", "It is so. The middle. The end.", [("", "The middle.")]),
    "put in at the end": ("It /is so. So it is.", "It is so. So it is. Yes.", [("/", ""), ("", "Yes.")]),
    "a date beside it": (
        "Built on 3 May 2026. It costs 5 a day.",
        "Built on 8 June 2026. It costs 6 a day.",
        [("5", "6")],
    ),
    "nothing but a date": ("Built on 3 May 2026 for all", "Built on 8 May 2026 for all", [("3", "8")]),
    "two places": (f"one {written(1)} two", f"uno {written(1)} due", [("one", "uno"), ("two", "due")]),
    "all of it": ("alpha beta", "gamma delta", [("alpha beta", "gamma delta")]),
    "white space": ("x += 485", "x +=  485", [("x += 485", "x +=  485")]),
    "nothing": ("alpha", "alpha", []),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_what_differs(name: str) -> None:
    old, new, wanted = DIFFERENCES[name]
    assert [(one.before, one.after) for one in text(old, new)[0]] == wanted


def test_links_to_the_same_page_elsewhere_are_the_same_link() -> None:
    def of(name: str, old: str, new: str) -> int | None:
        pages = [Substance(name, NOTICE, (f"http://a.test/docs/{version}/{name}",)) for version in (old, new)]
        return alike.number(alike.passages(*pages), f"http://a.test/docs/9/{name}")

    assert of("a.html", "8", "9") == of("b.html", "8", "9")
    assert of("a.html", "8", "9") != of("b.html", "9", "10")


def test_titles_and_links_are_told_apart_from_text() -> None:
    old, new = (
        Substance("A 1", "t", ("http://a.test/1", "http://a.test/2")),
        Substance("A 2", "t", ("http://a.test/1",)),
    )
    assert alike.passages(old, new) == [Passage("title", "1", "2"), Passage("link", "http://a.test/2", "")]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "The", "worm", "3 May 2026", "5.1", "."]), max_size=60).map(" ".join)


@given(WORDS, WORDS)
def test_what_differs_differs_and_what_does_not_does_not(old: str, new: str) -> None:
    found, number = text(old, new)
    assert bool(found) == (old != new) == (number is not None)
    assert all(one.before != one.after for one in found)
    for one in found:
        assert one.before in old
        assert one.after in new


def test_a_page_that_was_written_anew_takes_time_in_proportion_to_its_length() -> None:
    took = []
    for sentences in (1_000, 8_000):
        old, new = written(1, sentences), written(2, sentences)
        begun = time.process_time()
        alike.passages(Substance("", old), Substance("", new))
        took.append(time.process_time() - begun)
    assert took[1] < 40 * max(took[0], 0.01), took


def test_the_largest_group_comes_first_and_what_is_alone_last() -> None:
    pages, numbers = array("q", range(1, 9)), array("q", [7, 0, 5, 7, 5, 5, 3, 0])
    wanted = [
        AlikePages(3, 3, 5),
        AlikePages(2, 1, 7),
        AlikePages(1, 2, None),
        AlikePages(1, 7, 3),
        AlikePages(1, 8, None),
    ]
    assert list(groups.grouped(pages, numbers)) == wanted
    for index, one in enumerate(wanted):
        assert groups.behind(groups.grouped(pages, numbers), one.place, 2) == wanted[index + 1 : index + 3]
    assert wanted[0].place == GroupPlace(3, 3)
