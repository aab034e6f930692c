"""SIGKILL on the way back to a checkpoint, and during the crawl that follows: nothing is lost, nothing is left over."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.crash.conftest import Trials
from tests.crash.kills import SEED, at_request
from tests.crash.trial import Ended, Running, Trial, Twist
from tests.crash.website import Web
from tests.flow.crawling import Home
from tests.flow.test_branches import assert_says_the_same
from tests.flow.test_checkpoints import assert_same, checkpoints, unsound, written

EVERY = ("--checkpoint-every", "20")
NOTHING_DONE = ("going_back:1", "in_commit:1", "in_recovery:1")
"""Deaths before the commit that takes everything back: the run is still what it was."""

ON_THE_WAY = (
    "gone_back:1",
    *("before_archive:1", "before_commit:2", "in_commit:2", "in_commit:4", "after_commit:1", "after_commit:3"),
)

Written = dict[str, list[Any]]


@pytest.fixture(scope="module")
def done(served: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """A crawl that nobody disturbed, complete."""
    trial = Trial(tmp_path_factory.mktemp("done"), served, *EVERY)
    trial.complete()
    yield trial
    trial.close()


@pytest.fixture(scope="module")
def undisturbed(done: Trial) -> Written:
    with_home = Home(done.home)
    found = written(with_home)
    with_home.app.close()
    return found


@pytest.fixture
def trial(done: Trial, trials: Trials) -> Trial:
    """A copy of that crawl, to be disturbed."""
    made = trials(*EVERY)
    shutil.copytree(done.home, made.home)
    return made


@pytest.fixture
def home(trial: Trial) -> Iterator[Home]:
    """The same crawl, for a look at it."""
    made = Home(trial.home)
    yield made
    made.app.close()


def go_on(trial: Trial, number: int = 2, *more: str, twist: Twist | None = None) -> Ended:
    named = ("continue", trial.seeds[0], "--checkpoint", str(number), "--delay", "0", *EVERY, *more, "--json")
    return trial.call(*named, twist=twist or Twist()).wait()


def resume(trial: Trial, twist: Twist | None = None, during: Callable[[Running], None] | None = None) -> Ended:
    running = trial.call("resume", trial.seeds[0], "--delay", "0", *EVERY, "--json", twist=twist or Twist())
    if during:
        during(running)
    return running.wait()


def assert_sound(home: Home, ended: bool) -> None:
    assert unsound(home, ended) == []
    assert home.cli("doctor").exit_code == 0


@pytest.mark.parametrize("fault", NOTHING_DONE)
def test_before_the_commit_nothing_has_happened(fault: str, trial: Trial, home: Home, undisturbed: Written) -> None:
    assert go_on(trial, twist=Twist(fault=fault)).was_killed
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed)
    assert resume(trial).code == 1, "there is nothing to resume"
    assert go_on(trial).has_completed
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed)


@pytest.mark.parametrize("fault", ON_THE_WAY)
def test_after_the_commit_the_run_goes_on_from_there(
    fault: str, trial: Trial, home: Home, undisturbed: Written
) -> None:
    assert go_on(trial, twist=Twist(fault=fault)).was_killed
    assert_sound(home, ended=False)
    assert home.status()["run_state"] == "paused"
    assert resume(trial).has_completed
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed)


def test_one_death_after_the_other(trial: Trial, home: Home, undisturbed: Written) -> None:
    deaths: list[tuple[Callable[..., Ended], str]] = [
        (lambda twist: go_on(trial, 4, twist=twist), "gone_back:1"),
        (lambda twist: resume(trial, twist), "in_recovery:1"),
        (lambda twist: resume(trial, twist), "before_commit:2"),
        (lambda twist: go_on(trial, 1, twist=twist), "going_back:1"),
        (lambda twist: go_on(trial, 1, twist=twist), "gone_back:1"),
        (lambda twist: go_on(trial, 0, twist=twist), "after_commit:2"),
    ]
    for death, fault in deaths:
        assert death(Twist(fault=fault)).was_killed
        assert_sound(home, ended=False)
    assert resume(trial, during=at_request(40, 0.0)).was_killed
    assert resume(trial).has_completed
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed)


@pytest.mark.parametrize("turn", range(4))
def test_at_any_statement_and_any_change_of_a_file(turn: int, trial: Trial, home: Home, undisturbed: Written) -> None:
    """Whether it was killed before or after the commit shows in the state of the run."""
    chance = random.Random(f"{SEED} going back {turn}")
    plan = f"die-sql:{chance.randint(20, 90)}" if turn % 2 else f"die-file:{chance.randint(1, 8)}"
    assert go_on(trial, chance.randint(0, 5), twist=Twist(sabotage=plan)).was_killed, plan
    assert_sound(home, ended=False)
    ended = resume(trial) if home.status()["run_state"] == "paused" else go_on(trial, 1)
    assert ended.has_completed, ended
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed)


@pytest.mark.parametrize("fault", ["in_commit:1", "after_commit:2"])
def test_a_branch_is_made_as_a_whole_or_not_at_all(fault: str, trial: Trial, home: Home, undisturbed: Written) -> None:
    assert go_on(trial, 3, "--as-new-run", twist=Twist(fault=fault)).was_killed
    assert_sound(home, ended=False)
    assert home.status()["run"] == (0 if fault == "in_commit:1" else 1)
    ended = go_on(trial, 3, "--as-new-run") if fault == "in_commit:1" else resume(trial)
    assert (ended.has_completed, ended.summary["run"]) == (True, 1)
    assert_sound(home, ended=True)
    assert_same(written(home), undisturbed, "url")
    assert_says_the_same(home, 1)


def test_automatic_checkpoints_survive_kills(trials: Trials, undisturbed: Written) -> None:
    trial = trials(*EVERY)
    for fault in ("in_commit:2", "after_fetch:60", "before_commit:3"):
        assert trial.start(twist=Twist(fault=fault)).wait().was_killed
    assert trial.start().wait().has_completed
    home = Home(trial.home)
    try:
        assert_sound(home, ended=True)
        assert_same(written(home), undisturbed)
        assert len(checkpoints(home, "error")) == 3
        number, _ = checkpoints(home, "error")[1]
        assert go_on(trial, number).has_completed
        assert_same(written(home), undisturbed)
    finally:
        home.app.close()
