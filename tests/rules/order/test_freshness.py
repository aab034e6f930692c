"""Which pages most likely changed, and what a budgeted run finds by asking for those first."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.order.freshness import ANNOUNCED, VisitHistory, likelihood, order, rate

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 20_000 * DAY


def seen(visits: int, changes: int, every: int = DAY, ago: int = DAY) -> VisitHistory:
    """A page that was visited again so many times, and last so long ago."""
    return VisitHistory(visits, changes, NOW - ago - visits * every, NOW - ago)


# The estimate


def test_the_rate_comes_near_the_truth() -> None:
    rng = random.Random(1)
    for truth in (0.05, 0.3, 1.0, 2.0):
        days = 2_000
        changes = sum(rng.random() < -math.expm1(-truth) for _ in range(days))
        assert rate(seen(days, changes)) == pytest.approx(truth, rel=0.15)


def test_changes_that_were_missed_are_counted_in() -> None:
    assert rate(seen(100, 90)) > 2
    assert rate(seen(100, 100)) < 6


def test_a_page_seen_once_is_likelier_than_one_that_never_changed_and_less_than_one_that_did() -> None:
    new, still, lively = seen(0, 0), seen(3, 0), seen(3, 2)
    assert likelihood(still, NOW) < likelihood(new, NOW) < likelihood(lively, NOW)


def test_one_change_in_an_hour_is_not_taken_for_the_rule() -> None:
    assert rate(seen(1, 1, every=HOUR)) < 0.2


@pytest.mark.parametrize(
    ("lastmod", "is_announced"),
    [
        (0, False),
        (NOW - DAY, False),
        (NOW - DAY + 1, True),
        (NOW, True),
        (NOW + DAY, True),
        (NOW + DAY + 1, False),
        (-5, False),
    ],
)
def test_a_sitemap_that_says_so_is_believed_up_to_tomorrow(lastmod: int, is_announced: bool) -> None:
    found = likelihood(seen(50, 0)._replace(lastmod_ms=lastmod), NOW)
    assert (found >= ANNOUNCED) is is_announced


def test_a_sitemap_that_says_so_of_every_page_does_not_hide_which_ones_change() -> None:
    still, lively = seen(9, 0)._replace(lastmod_ms=NOW), seen(9, 8)._replace(lastmod_ms=NOW)
    assert likelihood(still, NOW) < likelihood(lively, NOW)


# Properties

MOMENTS = st.integers(0, 2 * NOW)
COUNTS = st.integers(0, 10_000)
SANE = st.builds(
    lambda visits, changes, first, known, lastmod: VisitHistory(
        visits, min(visits, changes), first, first + known, lastmod
    ),
    COUNTS,
    COUNTS,
    MOMENTS,
    MOMENTS,
    st.just(0) | MOMENTS,
)
ANY_NUMBER = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
ABSURD = st.builds(VisitHistory, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER)


@effort(database=None)
@given(SANE | ABSURD, ANY_NUMBER)
def test_a_likelihood_is_one_whatever_the_clock_says(history: VisitHistory, now: int) -> None:
    assert 0 <= likelihood(history, now) <= 1
    assert 0 < rate(history) < math.inf


@effort(database=None)
@given(SANE, MOMENTS, MOMENTS)
def test_it_grows_with_the_time_since_last_seen(history: VisitHistory, waited: int, more: int) -> None:
    now = history.last_ms + waited
    history = history._replace(lastmod_ms=min(history.lastmod_ms, now))
    assert likelihood(history, now + more) >= likelihood(history, now)
    if waited == 0 and history.lastmod_ms <= history.last_ms:
        assert likelihood(history, now) == 0


@effort(database=None)
@given(SANE, st.integers(1, NOW))
def test_it_grows_with_the_changes_seen(history: VisitHistory, waited: int) -> None:
    more = history._replace(visits=history.visits + 1, changes=history.changes + 1)
    history = history._replace(visits=history.visits + 1)
    now = history.last_ms + waited
    assert likelihood(more, now) >= likelihood(history, now)
    assert rate(more) > rate(history)


@effort(database=None)
@given(SANE, SANE, st.integers(1, DAY))
def test_what_is_announced_comes_before_what_is_guessed(
    announced: VisitHistory, guessed: VisitHistory, after: int
) -> None:
    now = max(announced.last_ms, guessed.last_ms) + 2 * DAY
    announced = announced._replace(lastmod_ms=announced.last_ms + after)
    assert likelihood(announced, now) >= likelihood(guessed._replace(lastmod_ms=0), now)


PAGES = st.dictionaries(st.integers(0, 50), SANE, max_size=30)


@effort(database=None)
@given(PAGES, st.randoms(use_true_random=False))
def test_the_order_has_every_page_once_and_does_not_depend_on_how_they_came(
    pages: dict[int, VisitHistory], rng: random.Random
) -> None:
    shuffled = rng.sample(list(pages.items()), len(pages))
    found = order(shuffled, 3 * NOW)
    assert sorted(found) == sorted(pages)
    assert found == order(pages.items(), 3 * NOW)


@effort(database=None)
@given(PAGES)
def test_the_longest_unseen_come_soon(pages: dict[int, VisitHistory]) -> None:
    places = {name: place for place, name in enumerate(order(pages.items(), 3 * NOW), 1)}
    oldest = sorted(pages, key=lambda name: (pages[name].last_ms, name))
    assert all(places[name] <= 5 * rank for rank, name in enumerate(oldest, 1))


def test_order_of_a_few() -> None:
    pages = {"never": seen(9, 0), "often": seen(9, 8), "new": seen(0, 0), "announced": seen(9, 0, ago=HOUR)}
    pages["announced"] = pages["announced"]._replace(lastmod_ms=NOW)
    assert order(pages.items(), NOW) == ["announced", "often", "new", "never"]
    assert order([("b", seen(1, 0)), ("a", seen(1, 0)), ("c", seen(1, 0))], NOW) == ["a", "b", "c"]
    assert order([], NOW) == []


# Runs with a budget

PAGE_COUNT = 1_000
BUDGET = PAGE_COUNT // 10
RUNS = 10
SEEDS = range(10)

Order = Callable[[Sequence[VisitHistory], int, int], Sequence[int]]


def by_freshness(pages: Sequence[VisitHistory], now: int, run: int) -> Sequence[int]:
    """A fifth of the budget is kept for new URLs."""
    return order(enumerate(pages), now)[: BUDGET * 4 // 5]


def by_breadth(pages: Sequence[VisitHistory], now: int, run: int) -> Sequence[int]:
    return range(BUDGET)


def in_turn(pages: Sequence[VisitHistory], now: int, run: int) -> Sequence[int]:
    return [(run * BUDGET + n) % PAGE_COUNT for n in range(BUDGET)]


class Site:
    """Pages that change at their rates, per run of usual length; and what was found of it."""

    def __init__(self, rates: Sequence[float], seed: int) -> None:
        self._rng = random.Random(seed)
        self.rates = self._rng.sample(list(rates), len(rates))
        self.pages = [VisitHistory(0, 0, 0, 0)] * len(rates)
        self.changed = [False] * len(rates)
        self.found = 0

    def pass_time(self, runs: float) -> None:
        for page, often in enumerate(self.rates):
            self.changed[page] |= self._rng.random() < -math.expm1(-often * runs)

    def visit(self, pages: Sequence[int], now: int) -> None:
        for page in pages:
            visits, changes, first, _, _ = self.pages[page]
            self.pages[page] = VisitHistory(visits + 1, changes + self.changed[page], first, now)
            self.found += self.changed[page]
            self.changed[page] = False


def crawl(site: Site, choose: Order, intervals: Sequence[float], length: int) -> int:
    """The number of changed pages that runs found which came after such intervals."""
    for run, (interval, passed) in enumerate(zip(intervals, accumulate(intervals), strict=True)):
        site.pass_time(interval)
        now = round(passed * length)
        site.visit(choose(site.pages, now, run), now)
    return site.found


def some(share: float, often: float, rest: float = 0.0) -> list[float]:
    few = round(PAGE_COUNT * share)
    return [often] * few + [rest] * (PAGE_COUNT - few)


RATES = {
    "a few all the time": some(0.05, 3.0),
    "a few often": some(0.05, 1.0),
    "a few often, the rest hardly": some(0.05, 1.0, 0.01),
    "more, less often": some(0.1, 0.5),
    "heavy tail": [min(5.0, 0.001 * (PAGE_COUNT / (n + 0.5)) ** 2) for n in range(PAGE_COUNT)],
}
REGULAR = (1.0,) * RUNS
IRREGULAR = (0.2, 2.0, 1.0, 0.1, 3.0, 0.5, 0.5, 1.5, 0.2, 1.0)


def total(choose: Order, rates: Sequence[float], intervals: Sequence[float], length: int) -> int:
    return sum(crawl(Site(rates, seed), choose, intervals, length) for seed in SEEDS)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("length", [HOUR, DAY, 30 * DAY], ids=["hourly", "daily", "monthly"])
def test_freshness_finds_three_times_the_changes_of_breadth(rates: list[float], length: int) -> None:
    found = total(by_freshness, rates, REGULAR, length)
    assert found >= 3 * total(by_breadth, rates, REGULAR, length)
    assert found > total(in_turn, rates, REGULAR, length)


def test_irregular_runs_find_as_much() -> None:
    found = total(by_freshness, RATES["a few often"], IRREGULAR, DAY)
    assert found >= 3 * total(by_breadth, RATES["a few often"], IRREGULAR, DAY)


@pytest.mark.parametrize("length", [HOUR, 30 * DAY], ids=["hourly", "monthly"])
def test_no_page_waits_for_ever_even_when_more_change_than_can_be_visited(length: int) -> None:
    site = Site(some(0.3, 3.0), seed=1)
    runs = 5 * PAGE_COUNT // (BUDGET * 4 // 5) + 1
    crawl(site, by_freshness, (1.0,) * runs, length)
    assert min(page.visits for page in site.pages) >= 1
