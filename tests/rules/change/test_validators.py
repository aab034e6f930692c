"""Entity tags and dates of last change: which are sent back, and when they are not believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.model import Version
from inchworm.rules.change import validators
from inchworm.rules.change.validators import ETAG, LAST_MODIFIED, SAMPLE, headers, is_sampled, same, shared, usable

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


def version(etag: str = "", last_modified: str = "") -> Version:
    """A version with these validators, and nothing else to it."""
    empty: dict[str, object] = dict.fromkeys(Version._fields, "")
    return Version(**{**empty, "etag": etag, "last_modified": last_modified, "links": (), "missing": 0})


@pytest.mark.parametrize(
    ("etag", "is_sent"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ('""', True),
        ('W/""', True),
        ('"a,b"', True),
        ('"\\"', True),
        ('"ä€"', False),
        (f'"{"x" * 1000}"', True),
        (f'"{"x" * 1001}"', False),
        ("", False),
        ("a", False),
        ('"', False),
        ('"a', False),
        ('a"', False),
        ('"a" ', False),
        ('"a b"', False),
        ('"a"b"', False),
        ('"a", "b"', False),
        ('w/"a"', False),
        ('W/ "a"', False),
        ('"a\x7f"', False),
        ('"a\r\nX: y"', False),
        ('"a\0"', False),
    ],
    ids=lambda one: repr(one[:12]) if isinstance(one, str) else "",
)
def test_e1_an_entity_tag_is_sent_as_it_came_or_not_at_all(etag: str, is_sent: bool) -> None:
    assert usable(version(etag)) == (ETAG if is_sent else "")
    assert headers(version(etag)) == ((("If-None-Match", etag),) if is_sent else ())


@pytest.mark.parametrize(
    ("date", "is_sent"),
    [
        (DATE, True),
        ("0", True),
        ("yesterday", True),
        ("", False),
        ("x" * 101, False),
        ("a\r\nX: y", False),
        ("é", False),
    ],
    ids=["date", "zero", "word", "none", "long", "two-lines", "accent"],
)
def test_e4_a_date_is_sent_where_there_is_no_entity_tag_to_send(date: str, is_sent: bool) -> None:
    sent = (("If-Modified-Since", date),) if is_sent else ()
    assert headers(version("", date)) == headers(version("no quotes", date)) == sent
    assert headers(version('"a"', date)) == (("If-None-Match", '"a"'),)


@given(st.text(), st.text())
def test_e1_only_one_of_them_is_sent_and_only_in_its_line(etag: str, date: str) -> None:
    sent = headers(version(etag, date))
    assert sent in ((), (("If-None-Match", etag),), (("If-Modified-Since", date),))
    assert not any(set(value) & set("\r\n\0") for _, value in sent)


@pytest.mark.parametrize(
    ("old", "etag", "date", "which"),
    [
        (version('"a"'), '"a"', "", ETAG),
        (version('"a"'), '"b"', "", ""),
        (version('"a"'), 'W/"a"', "", ""),
        (version('"a"', DATE), '"a"', "another", ETAG),
        (version('"a"', DATE), "", DATE, ""),
        (version("", DATE), "", DATE, LAST_MODIFIED),
        (version("", DATE), "", "another", ""),
        (version("", DATE), '"new"', DATE, ""),
        (version(), "", "", ""),
        (version("no quotes"), "no quotes", "", ""),
        (version("no quotes", DATE), "no quotes", DATE, LAST_MODIFIED),
    ],
    ids=[
        *("same-tag", "other-tag", "weak-and-strong", "tag-counts", "tag-gone", "same-date", "other-date", "tag-came"),
        *("nothing", "tag-of-no-use", "date-beside-tag-of-no-use"),
    ],
)
def test_e3_an_answer_claims_to_be_our_version_by_what_we_would_ask_by(
    old: Version, etag: str, date: str, which: str
) -> None:
    assert same(old, etag, date) == which


@pytest.mark.parametrize(
    ("pages", "most_common", "is_shared"),
    [
        *((1, 1, False), (2, 2, False), (3, 2, False), (3, 3, True), (5, 3, True), (6, 3, False), (6, 4, True)),
        *((1000, 500, False), (1000, 501, True), (1000, 1000, True)),
    ],
)
def test_what_most_pages_share_says_nothing_about_one(pages: int, most_common: int, is_shared: bool) -> None:
    assert shared(pages, most_common) is is_shared


def test_about_one_page_in_so_many_is_a_sample_and_others_in_the_next_run() -> None:
    urls = [f"http://a.test/{number}" for number in range(20_000)]
    samples = [{url for url in urls if is_sampled(url, run)} for run in (1, 2, 3)]
    wanted = len(urls) / SAMPLE
    assert all(0.7 * wanted < len(sample) < 1.3 * wanted for sample in samples)
    assert not samples[0] & samples[1] & samples[2]
    assert [is_sampled(url, 1) for url in urls[:500]] == [url in samples[0] for url in urls[:500]]


def test_three_tags_that_changed_for_nothing_are_enough() -> None:
    assert validators.USELESS == 3


def test_a_shared_validator_has_to_move_with_every_page_that_changed():
    assert [validators.has_proven_itself(*counts) for counts in ((0, 0), (1, 0), (9, 0), (9, 1), (0, 1))] == [
        *(False, True, True, False, False)
    ]
