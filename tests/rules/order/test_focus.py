"""What a crawl with a query takes first: pages and links compared with words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.rules.order.focus import FocusQuery, Votes, rank, share

TERMS = ("logical", "replication", "slot")
texts = st.text(max_size=200)
queries = texts.filter(lambda text: any(char.isalnum() for char in text))


@pytest.mark.parametrize("text", ["", " ", "\t\n", "-", '" "', "... !?", "___"], ids=repr)
def test_a_query_needs_words(text):
    with pytest.raises(WrongUse) as raised:
        FocusQuery(text)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        ("logical replication", "Replication can be LOGICAL.", True),
        ("logical replication", "Replication can be physical.", False),
        ("point-in-time recovery", "Recovery: Point-in-Time", True),
        ("point-in-time recovery", "recovery at a point in time", False),
        ("indexes", "an index", False),
        ("index -", "indexes", True),
        ("c++", "C++ and Rust", True),
        ("STRASSE", "Straße", True),
        ("straße", "STRASSE", True),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("café", "cafe\u0301", True),
        ("逻辑复制", "关于逻辑复制的一章", True),
        ("逻辑复制", "关于物理复制的一章", False),
        ("file", "The ﬁle", True),
        ("sql", "\ud800 SQL \xa0", True),
    ],
)
def test_whether_a_text_contains_all_terms(query, text, matches):
    assert FocusQuery(query).matches(text) is matches


@pytest.mark.parametrize(
    ("query", "words", "is_named"),
    [
        ("index", "Partial Indexes", True),
        ("indexes", "CREATE INDEX", True),
        ("indexing", "Re-indexed", True),
        ("policies", "Row security policy", True),
        ("queries", "Query planning", True),
        ("shared", "Sharing", True),
        ("pooling", "connection pools", True),
        ("string", "Streams", False),
        ("series", "Server", False),
        ("redis", "Redirects", False),
        ("GPUs", "All gpus", True),
        ("createIndex", "create_index", True),
        ("create_index", "CreateIndex", True),
        ("JSONPath", "json path", True),
        ("point-in-time", "pointInTime", True),
        ("c", "C functions", True),
        ("c", "The libc_c.h file", True),
        ("c", "Functions", False),
        ("go", "MongoDB", False),
        ("3", "Python 3", True),
        ("3", "Python 2.13", False),
        ("ΤΟ", "αυτοκίνητο", False),
        ("复", "逻辑复制", True),
        ("逻辑复制", "第三十一章 逻辑复制", True),
        ("ΔΟΚΙΜΉ", "μια δοκιμή", True),
    ],
)
def test_what_names_a_term(query, words, is_named):
    focus = FocusQuery(query)
    assert (focus.own(words, "https://h.test/x") > focus.own("", "https://h.test/x")) is is_named
    assert (focus.page("", words) > 0) is is_named
    assert (focus.page(words, "") > 0) is is_named


@pytest.mark.parametrize(
    ("query", "url", "is_named"),
    [
        ("logical replication", "https://h.test/logical-replication.html", True),
        ("logical replication", "https://h.test/?q=LogicalReplication", True),
        ("逻辑", "https://h.test/%E9%80%BB%E8%BE%91", True),
        ("replication", "https://replication.test/a", False),
        ("replication", "https://replication.test", False),
        ("replication", "replication", False),
        ("replication", "", False),
        ("replication", "https://h.test/%%%ff%", False),
    ],
)
def test_an_address_names_terms_after_the_host(query, url, is_named):
    score = FocusQuery(query).own("", url)
    assert (score > FocusQuery("nothing of the kind").own("", url)) is is_named


def test_a_term_in_both_anchor_and_address_counts_once():
    focus = FocusQuery("logical replication")
    here = focus.own("Replication", "https://h.test/replication")
    assert here == focus.own("", "https://h.test/replication")
    assert here < focus.own("Logical", "https://h.test/replication")


def test_the_order_of_links():
    focus = FocusQuery("logical replication")
    links = [
        ("Logical Decoding", "https://h.test/logicaldecoding.html", share(1.0, 1)),
        ("Logical Replication", "https://h.test/logical-replication.html", 0),
        ("Next", "https://h.test/backup.html", share(1.0, 5)),
        ("Next", "https://h.test/replication", 0),
        ("Next", "https://h.test/backup.html", share(1.0, 500)),
        ("Logical Decoding", "https://h.test/logicaldecoding.html", 0),
        ("Next", "https://h.test/backup.html", 0),
        ("Next", "https://h.test/backup/of/a/kind/nobody/has/heard/of.html", 0),
    ]
    scores = [rank(focus.own(anchor, url), Votes(1, 1, part)) for anchor, url, part in links]
    assert sorted(scores, reverse=True) == scores
    assert len(set(scores)) == len(scores)


def test_the_order_of_pages():
    focus = FocusQuery("logical replication")
    filling = "Nothing to see here. " * 2_000
    pages = [
        ("Logical Replication", "Logical replication: how logical replication works."),
        ("Chapter 31", "Logical replication: how logical replication works."),
        ("Chapter 31", "Logical replication."),
        ("Chapter 31", "Logical replication." + filling),
        ("Chapter 31", "Replication." + filling),
        ("Chapter 31", filling),
    ]
    scores = [focus.page(*page) for page in pages]
    assert sorted(scores, reverse=True) == scores
    assert len(set(scores)) == len(scores)
    assert scores[-1] == 0


def test_half_of_the_terms_are_worth_a_quarter():
    text = "replication " * 1_000_000
    assert FocusQuery("replication").page("", text) == pytest.approx(1, abs=0.01)
    assert FocusQuery("logical replication").page("", text) == pytest.approx(1 / 4, abs=0.01)


def test_saying_a_term_twice_changes_nothing():
    once, twice = FocusQuery("replication slot"), FocusQuery("replication slots Replication")
    assert once.own("Slots", "https://h.test/a") == twice.own("Slots", "https://h.test/a")


def test_only_the_beginning_of_an_endless_anchor_is_read():
    focus = FocusQuery("replication")
    assert focus.own("x" * 1_000_000 + " replication", "https://h.test/a") == focus.own("", "https://h.test/a")


@given(queries, texts, texts)
def test_pages_are_bounded_and_never_raise(query, title, text):
    focus = FocusQuery(query)
    assert 0 <= focus.page(title, text) < 1
    assert focus.matches(text) in (True, False)


@given(queries, texts, texts, st.tuples(st.integers(0, 10**8), st.integers(0, 10**12)))
def test_what_a_url_promises_is_never_below_zero(query, anchor, url, place):
    focus = FocusQuery(query)
    for address in (url, f"https://h.test/{url}", f"https://h.test/{url * 100}"):
        assert isinstance(focus.own(anchor, address, place), int)
        assert focus.own(anchor, address, place) >= 0


def test_of_links_that_say_the_same_the_earlier_one_is_the_better_guess():
    focus = FocusQuery("replication")
    places = [(1, 0), (1, 1), (1, 2), (1, 100), (2000, 100)]
    assert sorted(places, key=lambda place: -focus.own("x", "https://h.test/a", place)) == places
    far = focus.own("Replication", "https://h.test/a", (2000, 100))
    assert far > focus.own("x", "https://h.test/a", (1, 0)), "but not than one that names what is asked for"


@given(st.sets(st.sampled_from(TERMS)), st.sets(st.sampled_from(TERMS)), st.sampled_from(TERMS))
def test_more_terms_in_an_anchor_never_score_less(some, others, in_url):
    focus = FocusQuery(" ".join(TERMS))
    url = f"https://h.test/{in_url}"
    fewer, more = " ".join(sorted(some)), " ".join(sorted(some | others))
    assert focus.own(fewer, url) <= focus.own(more, url)
    named = len(some | {in_url})
    assert (focus.own(fewer, url) < focus.own(more, url)) is (len(some | others | {in_url}) > named)


@given(texts, texts, st.sampled_from(TERMS))
def test_a_term_added_to_any_anchor_never_costs(anchor, url, term):
    focus = FocusQuery(" ".join(TERMS))
    assert focus.own(anchor, url) <= focus.own(f"{anchor} {term}", url)


votes = st.builds(
    lambda pages, parts, part: Votes(pages, pages + parts, pages * part),
    st.integers(1, 100_000),
    st.integers(0, 100_000),
    st.integers(0, 1_000_000),
)


@given(st.integers(0, 10_000), votes)
def test_a_vote_never_costs(own, votes):
    assert rank(own, Votes()) == own <= rank(own, votes)


@given(votes, st.integers(2, 1000))
def test_the_same_vote_many_times_says_nothing_new(votes, times):
    assert rank(0, Votes().plus(votes, times)) == rank(0, votes)


@given(votes, st.integers(0, 1_000_000), st.integers(0, 1_000_000))
def test_a_better_page_never_makes_a_vote_worse(votes, one, other):
    worse, better = sorted((one, other))
    assert rank(0, votes.plus(Votes(1, 1, worse))) <= rank(0, votes.plus(Votes(1, 1, better)))


@given(votes, st.integers(1, 100), st.integers(1, 100))
def test_links_into_more_places_never_make_a_vote_worse(votes, one, other):
    fewer, more = sorted((one, other))
    assert rank(0, votes.plus(Votes(1, fewer, 0))) <= rank(0, votes.plus(Votes(1, more, 0)))


@given(votes, votes)
def test_what_was_added_can_be_taken_off(before, more):
    assert before.plus(more).plus(more, -1) == before


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_a_share_shrinks_with_every_link(page, links):
    assert 0 <= share(page, links + 1) <= share(page, links) <= 1_000_000


@given(queries)
def test_a_text_that_is_the_query_matches_it(query):
    assert FocusQuery(query).matches(query)


@given(queries, texts, texts)
def test_the_same_question_has_the_same_answer(query, anchor, text):
    one, other = FocusQuery(query), FocusQuery(query)
    assert one.page(anchor, text) == other.page(anchor, text)
    assert [one.own(anchor, text)] * 2 == [other.own(anchor, text), other.own(anchor, text)]
