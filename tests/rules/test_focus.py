"""What a crawl with a query takes first: pages and links compared with words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.rules.focus import MOST, Query, share

TERMS = ("logical", "replication", "slot")
texts = st.text(max_size=200)
queries = texts.filter(lambda text: any(char.isalnum() for char in text))


@pytest.mark.parametrize("text", ["", " ", "\t\n", "-", '" "', "... !?", "___"], ids=repr)
def test_a_query_needs_words(text):
    with pytest.raises(WrongUse) as raised:
        Query(text)
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
    assert Query(query).matches(text) is matches


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
    focus = Query(query)
    assert (focus.link(words, "https://h.test/x") > focus.link("", "https://h.test/x")) is is_named
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
    score = Query(query).link("", url)
    assert (score > Query("nothing of the kind").link("", url)) is is_named


def test_a_term_in_both_anchor_and_address_counts_once():
    focus = Query("logical replication")
    here = focus.link("Replication", "https://h.test/replication")
    assert here == focus.link("", "https://h.test/replication")
    assert here < focus.link("Logical", "https://h.test/replication")


def test_the_order_of_links():
    focus = Query("logical replication")
    links = [
        ("Logical Replication", "https://h.test/logical-replication.html", 0.0),
        ("Logical Decoding", "https://h.test/logicaldecoding.html", share(1.0, 1)),
        ("Logical Decoding", "https://h.test/logicaldecoding.html", 0.0),
        ("Next", "https://h.test/replication", 0.0),
        ("Next", "https://h.test/backup.html", share(1.0, 5)),
        ("Next", "https://h.test/backup.html", share(1.0, 500)),
        ("Next", "https://h.test/backup.html", 0.0),
        ("Next", "https://h.test/backup/of/a/kind/nobody/has/heard/of.html", 0.0),
    ]
    scores = [focus.link(*link) for link in links]
    best_first = [0, 1, 3, 2, 4, 5, 6, 7]
    assert sorted(range(len(links)), key=lambda at: -scores[at]) == best_first


def test_the_order_of_pages():
    focus = Query("logical replication")
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
    assert Query("replication").page("", text) == pytest.approx(1, abs=0.01)
    assert Query("logical replication").page("", text) == pytest.approx(1 / 4, abs=0.01)


def test_saying_a_term_twice_changes_nothing():
    once, twice = Query("replication slot"), Query("replication slots Replication")
    assert once.link("Slots", "https://h.test/a") == twice.link("Slots", "https://h.test/a")


def test_only_the_beginning_of_an_endless_anchor_is_read():
    focus = Query("replication")
    assert focus.link("x" * 1_000_000 + " replication", "https://h.test/a") == focus.link("", "https://h.test/a")


@given(queries, texts, texts)
def test_pages_are_bounded_and_never_raise(query, title, text):
    focus = Query(query)
    assert 0 <= focus.page(title, text) < 1
    assert focus.matches(text) in (True, False)


@given(queries, texts, texts, st.floats(0, 1), st.integers(0, 100_000))
def test_links_are_bounded_and_never_raise(query, anchor, url, page, links):
    focus = Query(query)
    for address in (url, f"https://h.test/{url}", f"https://h.test/{url * 100}"):
        score = focus.link(anchor, address, share(page, links))
        assert isinstance(score, int)
        assert 0 <= score <= MOST


@given(st.sets(st.sampled_from(TERMS)), st.sets(st.sampled_from(TERMS)), st.sampled_from(TERMS))
def test_more_terms_in_an_anchor_never_score_less(some, others, in_url):
    focus = Query(" ".join(TERMS))
    url = f"https://h.test/{in_url}"
    fewer, more = " ".join(sorted(some)), " ".join(sorted(some | others))
    assert focus.link(fewer, url) <= focus.link(more, url)
    named = len(some | {in_url})
    assert (focus.link(fewer, url) < focus.link(more, url)) is (len(some | others | {in_url}) > named)


@given(texts, texts, st.sampled_from(TERMS))
def test_a_term_added_to_any_anchor_never_costs(anchor, url, term):
    focus = Query(" ".join(TERMS))
    assert focus.link(anchor, url) <= focus.link(f"{anchor} {term}", url)


@given(st.text(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_better_page_never_makes_a_link_worse(anchor, one, other):
    focus = Query("replication")
    worse, better = sorted((one, other))
    assert focus.link(anchor, "https://h.test/a", worse) <= focus.link(anchor, "https://h.test/a", better)


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_a_share_shrinks_with_every_link(page, links):
    assert 0 <= share(page, links + 1) <= share(page, links) <= page


@given(queries)
def test_a_text_that_is_the_query_matches_it(query):
    assert Query(query).matches(query)


@given(queries, texts, texts)
def test_the_same_question_has_the_same_answer(query, anchor, text):
    one, other = Query(query), Query(query)
    assert one.page(anchor, text) == other.page(anchor, text)
    assert [one.link(anchor, text)] * 2 == [other.link(anchor, text), other.link(anchor, text)]
