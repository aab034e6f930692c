"""F1: SIGKILL at every named point, at any request, any time, any SQL statement and any file call (I1 to I6).

Three kills per test; INCHWORM_KILLS says how many in all, INCHWORM_SEED repeats a run. A crawl is killed, started
again by the same command, killed again, …, and must in the end equal one that nobody disturbed.
"""

from __future__ import annotations

import pytest
from tests.crash import checker, kills, website
from tests.crash.conftest import Trials
from tests.crash.kills import PER_TRIAL, Plan
from tests.crash.reference import Reference, assert_same, written
from tests.crash.trial import Trial
from tests.crash.website import Web


@pytest.mark.parametrize("plan", kills.plans(), ids=str)
def test_a_killed_crawl_equals_an_undisturbed_one(plan: Plan, web: Web, trials: Trials, reference: Reference) -> None:
    undisturbed = reference.of()
    with web.slowly(0.0, 0.004):
        for trial in kills.carry_out(plan, trials):
            trial.complete("--workers", str(plan.workers))
            trial.check()
            assert_same(trial, undisturbed)


def test_the_suite_kills_often_enough() -> None:
    assert len(kills.plans()) * PER_TRIAL >= kills.KILLS


@pytest.mark.parametrize(
    ("limit", "workers"),
    [
        ("--page-limit=60", 1),
        ("--page-limit=60", 32),
        ("--max-depth=3", 5),
        ("--strict-order", 32),
        ("--query=castle candle", 5),
        ("--query=castle candle", 32),
    ],
)
def test_limits_are_the_same_however_often_it_is_killed(
    limit: str, workers: int, web: Web, trials: Trials, reference: Reference
) -> None:
    undisturbed, ends = reference.of(limit), reference.ends(limit)
    plan = Plan("request", int(limit.endswith("60")), workers, kills=3)
    with web.slowly(0.0, 0.004):
        for trial in kills.carry_out(plan, lambda: trials(limit)):
            trial.complete("--workers", str(workers))
            trial.check(ends)
            assert_same(trial, undisturbed)


@pytest.mark.parametrize("workers", [1, 32])
def test_pages_that_fail_at_first_are_kept_in_the_end(workers: int, trials: Trials) -> None:
    plan = Plan("request", 7, workers, kills=4)
    with website.serving(website.build(pages=120, flaky=6)) as web:
        for number, trial in enumerate(kills.carry_out(plan, lambda: trials(web=web))):
            trial.complete("--workers", str(workers))
            trial.check()
            with trial.store() as db:
                tries = checker.value(db, "SELECT COUNT(*) FROM visit WHERE outcome = 'retry'")
            assert number or tries <= 6, "the server fails once for each of six pages, and never again"


@pytest.mark.parametrize("order", ["--strict-order", "--scope=path"])
def test_two_hosts(order: str, trials: Trials) -> None:
    """In strict order the record is the same; by default each host's own order is, and so is the set."""
    with website.two_hosts() as web:
        seeds = [web.url("/"), web.served.url("/", "localhost")]

        def make() -> Trial:
            return trials(order, web=web, seeds=seeds)

        calm = make()
        calm.complete("--workers", "1")
        calm.check()
        undisturbed = written(calm)
        with web.slowly(0.0, 0.004):
            for trial in kills.carry_out(Plan("request", 3, 5, kills=3), make):
                trial.complete()
                trial.check()
                if order == "--strict-order":
                    assert_same(trial, undisturbed)
                for host in ("127.0.0.1", "localhost"):
                    assert _lines(trial.export(), host) == _lines(undisturbed.export, host)


def _lines(export: bytes, host: str) -> list[bytes]:
    return [line for line in export.splitlines() if line.startswith(f"http://{host}:".encode())]
