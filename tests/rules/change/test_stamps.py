"""Which differences are stamps: the same one in the same place on most pages."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.model import Substance
from inchworm.rules.change import stamps
from inchworm.rules.change.stamps import describe, differences, explained, recurring

COMMANDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "GRANT", "REVOKE", "LOCK", "MOVE")
PROSE = {name: f"{name} does what its name says. Number {len(name) * 7} is its own." for name in COMMANDS}

Pages = dict[str, tuple[Substance, Substance]]
Write = Callable[[str, str], Substance]


def verdicts(pages: Pages) -> dict[str, bool]:
    """For every page whether its differences are stamps only."""
    found = {name: differences(old, new) for name, (old, new) in pages.items()}
    known = recurring((one for one in found.values() if one), len(pages))
    return {name: one is not None and explained(one, known) for name, one in found.items()}


def modified(pages: Pages) -> list[str]:
    return [name for name, is_stamp in verdicts(pages).items() if not is_stamp]


def rebuilt(write: Write, old: str = "15.3", new: str = "15.4") -> Pages:
    return {name: (write(name, old), write(name, new)) for name in COMMANDS}


# What is written where: the stamp touches what is the page's own on one side, or stands at an end.
STAMPED: dict[str, Write] = {
    "title first": lambda page, stamp: Substance(f"PostgreSQL {stamp}: {page}", PROSE[page]),
    "title last": lambda page, stamp: Substance(f"{page} — PostgreSQL {stamp}", PROSE[page]),
    "title alone at its end": lambda page, stamp: Substance(f"{page} {stamp}", PROSE[page]),
    "title alone at its beginning": lambda page, stamp: Substance(f"{stamp} {page}", PROSE[page]),
    "title between": lambda page, stamp: Substance(f"{page} (Manual {stamp}) {page}", PROSE[page]),
    "text first": lambda page, stamp: Substance(page, f"{stamp} {PROSE[page]}"),
    "text first after a word": lambda page, stamp: Substance(page, f"Version {stamp} {page} {PROSE[page]}"),
    "text last": lambda page, stamp: Substance(page, f"{PROSE[page]} {page} {stamp}"),
    "text in the middle": lambda page, stamp: Substance(page, f"{page}, of release {stamp}. {PROSE[page]}"),
    "text without white space": lambda page, stamp: Substance(page, f"{PROSE[page]}UpManual{stamp}Next{page}"),
    "twice": lambda page, stamp: Substance(f"{page} {stamp}", f"{PROSE[page]} Built for {stamp}."),
    "twice, a word between": lambda page, stamp: Substance(page, f"{PROSE[page]} Manual {stamp} {page} {stamp}"),
    "far back": lambda page, stamp: Substance(page, f"{PROSE[page] * 500} This is release {stamp}."),
}


@pytest.mark.parametrize("write", STAMPED.values(), ids=STAMPED)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("15.3", "15.4"),
        ("15.9", "15.10"),
        ("15.3", "16beta1"),
        ("v2.3.1-rc1", "v2.3.1"),
        ("3f2a9c1b7d", "9ab04e11c2"),
        ("Bookworm", "Trixie"),
        ("release one of many", "the second release"),
        ("2023", "2024"),
    ],
)
def test_a_stamp_on_every_page_is_no_change(write: Write, old: str, new: str) -> None:
    assert all(verdicts(rebuilt(write, old, new)).values())


@pytest.mark.parametrize("write", STAMPED.values(), ids=STAMPED)
def test_a_change_beside_a_stamp_is_a_change(write: Write) -> None:
    pages = rebuilt(write)
    old, new = pages["GRANT"]
    pages["GRANT"] = old, new._replace(text=new.text.replace("Number 35", "Number 36", 1))
    old, new = pages["MOVE"]
    pages["MOVE"] = old._replace(targets=("https://h.test/a",)), new._replace(targets=("https://h.test/b",))
    assert modified(pages) == ["GRANT", "MOVE"]


@pytest.mark.parametrize(
    ("changed", "compared", "is_stamp"),
    [(3, 3, True), (3, 5, True), (3, 6, False), (2, 2, False), (2, 3, False), (6, 10, True), (5, 10, False)],
)
def test_most_pages_and_three_at_least(changed: int, compared: int, is_stamp: bool) -> None:
    pages = dict(list(rebuilt(STAMPED["title first"]).items())[:compared])
    for name in list(pages)[changed:]:
        pages[name] = pages[name][0], pages[name][0]
    assert all(list(verdicts(pages).values())[:changed]) is is_stamp


def test_prices_that_changed_on_every_page_are_changes() -> None:
    pages = {
        name: (Substance(name, f"{name} costs € {10 + n} today"), Substance(name, f"{name} costs € {12 + n} today"))
        for n, name in enumerate(COMMANDS)
    }
    assert not any(verdicts(pages).values())


def test_the_same_words_in_another_place_are_a_change() -> None:
    pages = rebuilt(lambda page, stamp: Substance(page, f"Manual {stamp} — {page}"))
    pages["LOCK"] = (
        Substance("LOCK", "Manual 15.3 — LOCK. It needs the library in 15.3 or later."),
        Substance("LOCK", "Manual 15.4 — LOCK. It needs the library in 15.4 or later."),
    )
    assert modified(pages) == ["LOCK"]


def test_a_stamp_of_the_title_says_nothing_about_the_text() -> None:
    pages = rebuilt(lambda page, stamp: Substance(f"Manual {stamp}", page))
    old, new = pages["MOVE"]
    pages["MOVE"] = old._replace(text="Manual 15.3"), new._replace(text="Manual 15.4")
    assert modified(pages) == ["MOVE"]


DATES = {
    "iso": "2024-05-{n:02}",
    "iso with a time": "2024-05-01T10:00:{n:02}Z",
    "iso with a time and a zone": "2024-05-01 10:{n:02}:59 +0200",
    "basic": "20240501T1000{n:02}Z",
    "slashes": "2024/05/{n:02}",
    "dots": "{n}.5.2024",
    "american": "05/{n:02}/2024",
    "short": "5/{n}/24",
    "month first": "May {n}, 2024",
    "month first, with a time": "May {n}, 2024 at 10:{n:02} p.m.",
    "month abbreviated": "Sept. {n}, 2024",
    "day first": "{n} May 2024",
    "day of month": "{n}th of May, 2024",
    "no year": "May {n}",
    "month and year": "May 20{n:02}",
    "hyphens": "{n:02}-May-2024",
    "mail": "Wed, {n:02} May 2024 10:00:00 GMT",
    "unix": "Wed May {n} 10:00:{n:02} CEST 2024",
    "german": "{n}. März 2024, 10:00",
    "french": "{n} août 2024",
    "spanish": "{n} de mayo de 2024",
    "russian": "{n} мая 2024",
    "japanese": "2024年5月{n}日",
    "korean": "2024년 5월 {n}일",
    "time": "10:{n:02}",
    "time to the second": "10:00:{n:02}",
    "ago": "{n} hours ago",
}


@pytest.mark.parametrize("form", DATES.values(), ids=DATES)
def test_pages_stamped_at_slightly_different_times(form: str) -> None:
    pages = {
        name: (
            Substance(name, f"{PROSE[name]} Last updated on {form.format(n=10 + n)} by us"),
            Substance(name, f"{PROSE[name]} Last updated on {form.format(n=29 - n // 2)} by us"),
        )
        for n, name in enumerate(COMMANDS)
    }
    assert all(verdicts(pages).values())


@pytest.mark.parametrize(
    "form", ["{n}", "1.{n}", "{n}.99", "1.2.{n}", "2024-{n}", "{n} seconds", "1:{n}:3", "100{n}", "99:{n}", "mayor {n}"]
)
def test_numbers_that_differ_from_page_to_page_are_changes(form: str) -> None:
    pages = {
        name: (
            Substance(name, f"{PROSE[name]} In stock {form.format(n=10 + n)} pieces"),
            Substance(name, f"{PROSE[name]} In stock {form.format(n=29 - n // 2)} pieces"),
        )
        for n, name in enumerate(COMMANDS)
    }
    assert not any(verdicts(pages).values())


def test_a_date_elsewhere_on_one_page_is_a_change() -> None:
    def write(page: str, day: int) -> Substance:
        return Substance(page, f"{PROSE[page]} Built on {day} May 2024, by a machine.")

    pages = {name: (write(name, 1 + n), write(name, 12 + n)) for n, name in enumerate(COMMANDS)}
    old, new = pages["DROP"]
    pages["DROP"] = (
        old._replace(text="Closes on 3 May 2024! " + old.text),
        new._replace(text="Closes on 7 May 2024! " + new.text),
    )
    assert modified(pages) == ["DROP"]


def test_a_date_that_came_or_went_counts_by_its_words() -> None:
    pages = {
        name: (Substance(name, "Closed until further notice"), Substance(name, f"Closed until {n + 1} May 2024"))
        for n, name in enumerate(COMMANDS)
    }
    assert not any(verdicts(pages).values())


# Links


def linking(*targets: str) -> Substance:
    return Substance("A page", "Its text", tuple(f"https://h.test/{target}" for target in targets))


def test_an_entry_of_the_navigation_added_everywhere_is_no_change() -> None:
    pages = {name: (linking("home", name, "about"), linking("home", "new", name, "about")) for name in COMMANDS}
    assert all(verdicts(pages).values())


def test_a_link_changed_everywhere_is_no_change_and_one_of_a_page_is() -> None:
    pages = {name: (linking("15.3", name), linking("15.4", name)) for name in COMMANDS}
    pages["MOVE"] = linking("15.3", "MOVE"), linking("15.4", "elsewhere")
    pages["DROP"] = linking("15.3", "DROP"), linking("15.4")
    pages["LOCK"] = linking("15.3", "LOCK", "a", "b"), linking("15.4", "LOCK", "b", "a")
    assert modified(pages) == ["DROP", "LOCK", "MOVE"]


def test_a_version_in_the_address_of_each_link_is_not_the_same_difference() -> None:
    pages = {name: (linking(f"15.3/{name}"), linking(f"15.4/{name}")) for name in COMMANDS}
    assert not any(verdicts(pages).values())


def test_long_addresses_are_compared_as_a_whole() -> None:
    path = "x" * 3_000
    pages = {name: (linking(name, path + "1"), linking(name, path + "2")) for name in COMMANDS}
    assert all(verdicts(pages).values())
    assert len(describe(*pages["DROP"])) <= 80


# The same substance, and too much of a difference


WHITE_SPACE = [
    ("a +485 b", "a + 485 b", '"+485" → "+ 485"'),
    ("x $$DECLARE y", "x $$ DECLARE y", '"$DECLARE" → "$ DECLARE"'),
    ("a foot note b", "a footnote b", '"foot note" → "footnote"'),
    ("in Post Script", "in PostScript", '"Post Script" → "PostScript"'),
    ("( b )", "(b)", '"( b )" → "(b)"'),
    ("due 1 May 2024", "due 1May 2024", '"1 May 2024" → "1May 2024"'),
    ("def f():\n  return 1", "def f():\n    return 1", '":↵  return" → ":↵    return"'),
    ("one\ntwo", "one two", '"one↵two" → "one two"'),
    ("one\ntwo", "one\n\ntwo", '"one↵two" → "one↵↵two"'),
]


@pytest.mark.parametrize(("old", "new", "note"), WHITE_SPACE)
def test_white_space_that_shows_counts_and_is_told(old: str, new: str, note: str) -> None:
    found = differences(Substance("", old), Substance("", new))
    assert found
    assert describe(Substance("", old), Substance("", new)) == note


def test_white_space_on_every_page_is_a_stamp() -> None:
    assert all(verdicts(rebuilt(STAMPED["text in the middle"], "+485", "+ 485")).values())


def test_the_same_words_with_other_white_space_are_another_difference() -> None:
    pages = rebuilt(lambda page, stamp: Substance(page, f"{PROSE[page]} Value {stamp} of it."), "+485", "+ 485")
    old, new = pages["LOCK"]
    pages["LOCK"] = old._replace(text=old.text.replace("+485", "+\n485")), new
    assert modified(pages) == ["LOCK"]


def test_white_space_that_came_everywhere_is_no_stamp() -> None:
    assert differences(Substance("", "a b " * 5_000), Substance("", "ab" * 5_000)) is None


def test_the_same_is_the_same() -> None:
    assert differences(Substance("", ""), Substance("", "")) == ()
    assert explained((), frozenset())


def numbered(count: int, between: str = " and ") -> str:
    return between.join(f"word{n}" for n in range(count))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", numbered(200)),
        (numbered(200), ""),
        ("before after", f"before {numbered(stamps.MAX_WORDS)} after"),
        (numbered(10, " 15.3 "), numbered(10, " 15.4 ")),
        (numbered(5_000, " of "), numbered(5_000, " or ")),
    ],
    ids=["all new", "all gone", "long", "many places", "everywhere"],
)
def test_so_much_is_no_stamp(old: str, new: str) -> None:
    assert differences(Substance("", old), Substance("", new)) is None
    assert describe(Substance("", old), Substance("", new))


def test_many_links_that_changed_are_no_stamp() -> None:
    old, new = (linking(*(f"{site}/{n}" for n in range(100))) for site in ("a", "b"))
    assert differences(old, new) is None


def test_the_same_stamp_many_times_is_one() -> None:
    old, new = (Substance("", f"Install postgresql-{version}.tar.gz now. " * 30) for version in ("15.3", "15.4"))
    found = differences(old, new)
    assert found is not None
    assert len(found) <= 2 * 3  # at the beginning, in the middle, at the end


def test_a_large_page_with_stamps_at_both_ends() -> None:
    middle = numbered(500_000)
    old, new = (Substance("", f"Manual {version}. {middle} Manual {version}") for version in ("15.3", "15.4"))
    found = differences(old, new)
    assert found is not None
    assert len(found) == 4


# What is kept


def test_signatures_can_be_stored() -> None:
    found = differences(*rebuilt(STAMPED["twice"])["LOCK"])
    assert found is not None
    assert len(found) == 4
    assert all(-(2**63) <= one < 2**63 for one in found)
    assert explained(json.loads(json.dumps(found)), frozenset(found))


def test_either_neighbour_is_enough() -> None:
    assert explained((1, 2, 3, 4), frozenset({1, 4}))
    assert not explained((1, 2, 3, 4), frozenset({1, 2}))


def test_a_page_counts_once() -> None:
    assert recurring([(1, 2, 1, 2, 1, 2)], 1) == frozenset()
    assert recurring([(1, 2), (1, 3), (1, 1)], 3) == {1}


def test_what_recurs_on_most_of_very_many_pages_is_found_however_late() -> None:
    count = 150_000
    pages = ((n + 10, -1 if n % 5 < 3 else -2, -3 if n > count * 0.45 else -4) for n in range(count))
    assert recurring(pages, count) == {-1, -3}


# For people's eyes


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (Substance("", "Version 15.3 of it"), Substance("", "Version 15.4 of it"), '"15.3" → "15.4"'),
        (Substance("Cats", ""), Substance("Dogs", ""), 'title "Cats" → "Dogs"'),
        (Substance("", "one two three"), Substance("", "one three"), 'gone: "two"'),
        (Substance("", "one three"), Substance("", "one two, three"), 'new: "two,"'),
        (Substance("", "due 1 May 2024"), Substance("", "due 12 June 2024"), '"1 May 2024" → "12 June 2024"'),
        (linking("a"), linking("b"), 'link "https://h.test/a" → "https://h.test/b"'),
        (linking(), linking("b"), 'link new: "https://h.test/b"'),
        (Substance("", "a \x1b[31m"), Substance("", "a b"), '"\ufffd[31m" → "b"'),
    ],
)
def test_a_note(old: Substance, new: Substance, note: str) -> None:
    assert describe(old, new) == note


def test_a_note_passes_over_stamps() -> None:
    old, new = Substance("Manual 15.3", "Rows: 100"), Substance("Manual 15.4", "Rows: 101")
    stamp = differences(old._replace(text=""), new._replace(text=""))
    assert stamp
    assert describe(old, new, frozenset(stamp)) == '"100" → "101"'


# Whatever there is

TEXTS = (
    st.text(st.characters())
    | st.text("ab1.-: \n/M", max_size=60)
    | st.lists(
        st.sampled_from(["a", "b", "the", "May", "3", "2024", "12:30", "15.3", ",", "Word", "\n"]), max_size=60
    ).map(" ".join)
)
TARGETS = st.lists(st.sampled_from([f"https://h.test/{name}" for name in "abcdef"]), max_size=12).map(tuple)
SUBSTANCES = st.builds(Substance, TEXTS, TEXTS, TARGETS)


@effort(database=None)
@given(SUBSTANCES, SUBSTANCES)
def test_anything_can_be_compared(old: Substance, new: Substance) -> None:
    found = differences(old, new)
    assert (found == ()) is (old == new)
    assert found is None or (len(found) % 2 == 0 and len(found) <= 2 * stamps.MAX_PLACES)
    assert found == differences(old, new)
    assert bool(describe(old, new)) is (found != ())
    assert len(describe(old, new)) <= 80


@effort(database=None)
@given(SUBSTANCES)
def test_nothing_differs_from_itself(page: Substance) -> None:
    assert differences(page, page) == ()


WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "Delta", "zeta", "the", "of", "1", "2", ",", "."]), min_size=1
)


@effort(database=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=3, max_size=8))
def test_whatever_stands_around_it_a_stamp_is_found(pages: list[tuple[list[str], list[str]]]) -> None:
    def write(page: tuple[list[str], list[str]], stamp: str) -> Substance:
        return Substance("", " ".join([*page[0], "Release", stamp, *page[1]]))

    assert all(verdicts({str(n): (write(page, "15.3"), write(page, "15.4")) for n, page in enumerate(pages)}).values())
