"""F1: SIGKILL at every named point, at any request, any time, any SQL statement and any file call (I1 to I6).

Ten kills per test; INCHWORM_KILLS says how many in all, INCHWORM_SEED repeats a run. A crawl is killed, started
again by the same command, killed again, …, and must in the end equal one that nobody disturbed.
"""

from __future__ import annotations

import pytest
from tests.crash import kills
from tests.crash.conftest import Trials
from tests.crash.kills import PER_TRIAL, Plan
from tests.crash.reference import Reference, assert_same
from tests.crash.trial import Trial
from tests.crash.website import Web


@pytest.mark.parametrize("plan", kills.plans(), ids=str)
def test_a_killed_crawl_equals_an_undisturbed_one(plan: Plan, web: Web, trials: Trials, reference: Reference) -> None:
    undisturbed = reference.of()

    def settle(trial: Trial) -> None:
        if not trial.has_completed:
            trial.complete("--workers", str(plan.workers))
        trial.check()
        assert_same(trial, undisturbed)

    with web.slowly(0.0, 0.004):
        for trial in kills.carry_out(plan, trials):
            settle(trial)


def test_the_suite_kills_often_enough() -> None:
    assert len(kills.plans()) * PER_TRIAL >= kills.KILLS
