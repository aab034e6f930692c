"""Names of indexes: legal whatever a crawl is called, and never two crawls with the same."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from inchworm.rules.words.slug import MAX_BYTES, SUFFIX, index_name

ID = "0123abcdef"
OTHER = "fedcba3210"

_NAMES = st.text() | st.text(st.sampled_from('abZé .-_+/\\*?"<>|,#:0\x00\ud800ß東İ'), max_size=300)
_IDS = st.text("0123456789abcdef", min_size=10, max_size=10)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs", "docs"),
        ("example.org", "example.org"),
        ("my_crawl-2", "my_crawl-2"),
        ("example.org/docs", f"example.org-docs-{ID}"),
        ("Docs", f"docs-{ID}"),
        ("docs (2)", f"docs-2-{ID}"),
        ("Crème brûlée", f"creme-brulee-{ID}"),
        ("東京", f"crawl-{ID}"),
        ("..", f"crawl-{ID}"),
        (".hidden", f"hidden-{ID}"),
        ("_system", f"system-{ID}"),
        ("-x-", f"x-{ID}"),
        ("", f"crawl-{ID}"),
        ("crawl", "crawl"),
        ("localhost:8000/a?b=c#d", f"localhost-8000-a-b-c-d-{ID}"),
        ("a" * 243, "a" * 243),
        ("a" * 244, "a" * 232 + f"-{ID}"),
        (f"docs-{OTHER}", f"docs-{OTHER}-{ID}"),
        ("ſtraße", f"stra-e-{ID}"),
    ],
    ids=range(19),
)
def test_names(name: str, expected: str) -> None:
    assert index_name(name, ID) == expected + SUFFIX


def is_legal(name: str) -> bool:
    """As the documentation of Elasticsearch has it."""
    return (
        name == name.lower()
        and not set(name) & set('\\/*?"<>| ,#:\x00' + string.whitespace)
        and not name.startswith(("-", "_", "+"))
        and name not in (".", "..")
        and 0 < len(name.encode()) <= 255
    )


@given(_NAMES, _IDS)
@example("İ" * 300, ID)
def test_every_name_is_legal(name: str, crawl_id: str) -> None:
    made = index_name(name, crawl_id)
    assert is_legal(made)
    assert made.isascii() and made.endswith(SUFFIX) and len(made) <= MAX_BYTES and not made.startswith(".")


@given(_NAMES, _NAMES, _IDS, _IDS)
@example("Docs", f"docs-{ID}", ID, OTHER)
@example(f"docs-{OTHER}", "Docs", ID, OTHER)
@example("a" * 300, "a" * 301, ID, OTHER)
def test_crawls_that_differ_never_share(first: str, second: str, one: str, other: str) -> None:
    assume(first != second and one != other)
    assert index_name(first, one) != index_name(second, other)


@given(_NAMES, _IDS, _IDS)
def test_a_crawl_that_takes_anothers_index_for_its_name(name: str, one: str, other: str) -> None:
    assume(one != other)
    taken = index_name(name, one)
    assert index_name(taken.removesuffix(SUFFIX), other) != taken or taken.removesuffix(SUFFIX) == name


@given(_NAMES, _IDS)
def test_a_crawl_always_comes_to_the_same(name: str, crawl_id: str) -> None:
    assert index_name(name, crawl_id) == index_name(name, crawl_id)
