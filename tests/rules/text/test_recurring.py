"""Which blocks are the frame of a host, from the blocks of its pages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.rules.text.recurring import LEAST_PAGES, NO_FRAME, Block, recurring

NOTICE, LEGAL = Block(1, 120), Block(2, 200)


def own(number: int, size: int = 300) -> Block:
    return Block(1_000 + number, size)


def site(count: int, *common: Block, size: int = 300) -> list[list[Block]]:
    return [[own(number, size), *common] for number in range(count)]


def test_a_block_on_most_pages_is_frame() -> None:
    assert recurring(site(20, NOTICE, LEGAL)) == {1, 2}


@pytest.mark.parametrize(("having", "frame"), [(10, NO_FRAME), (11, {1})], ids=["half", "more"])
def test_it_takes_more_than_half(having: int, frame: frozenset[int]) -> None:
    pages = [[own(number), *([NOTICE] if number < having else [])] for number in range(20)]
    assert recurring(pages) == frame


@pytest.mark.parametrize(("count", "frame"), [(LEAST_PAGES - 1, NO_FRAME), (LEAST_PAGES, {1})], ids=["few", "enough"])
def test_few_pages_tell_nothing(count: int, frame: frozenset[int]) -> None:
    assert recurring(site(count, NOTICE)) == frame


def test_many_times_on_one_page_is_one_page() -> None:
    assert recurring([[own(number)] for number in range(10)] + [[own(99), *[NOTICE] * 50]]) == NO_FRAME


def test_pages_with_the_same_blocks_are_one() -> None:
    same = [[own(1), NOTICE]] * 30
    assert recurring([*same, *([own(number)] for number in range(2, 12))]) == NO_FRAME


def test_one_text_in_many_variants_is_no_frame() -> None:
    """The days of a calendar say the same but for a line, and are more than all other pages together."""
    calendar = [[Block(7, 900), Block(8, 700), own(number, 12)] for number in range(40)]
    articles = site(20, NOTICE)
    assert recurring(calendar + articles) == NO_FRAME
    assert recurring([[*page, NOTICE] for page in calendar] + articles) == {1}


def test_short_pages_under_a_long_frame_say_something() -> None:
    """The description of a product is shorter than the terms of delivery below each."""
    assert recurring(site(20, Block(3, 2_000), size=250)) == {3}


def test_nothing_is_made_of_nothing() -> None:
    assert recurring([]) == recurring([[]] * 50) == recurring([[NOTICE]] * 50) == NO_FRAME


_PAGES = st.lists(st.lists(st.builds(Block, st.integers(0, 30), st.just(100)), max_size=12), max_size=60)


@settings(deadline=None)
@given(_PAGES, st.randoms())
def test_the_order_of_pages_and_blocks_says_nothing(pages: list[list[Block]], chance: random.Random) -> None:
    found = recurring(pages)
    mixed = [chance.sample(page, len(page)) for page in pages]
    chance.shuffle(mixed)
    assert recurring(mixed) == found


@settings(deadline=None)
@given(_PAGES)
def test_what_is_frame_stands_on_most_pages(pages: list[list[Block]]) -> None:
    distinct = {frozenset(page) for page in pages if page}
    for name in recurring(pages):
        count = sum(any(block.hash == name for block in page) for page in distinct)
        assert count >= LEAST_PAGES
        assert count > len(distinct) / 2
