"""D2 and D5: a budget, a pause, a signal, a crash - one way to stop, one way to go on, one record in the end."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from tests.crash import checker, website
from tests.crash.conftest import Trials
from tests.crash.reference import Reference, assert_same
from tests.crash.trial import Ended, Running, Trial, Twist
from tests.crash.website import Web, Website, article
from tests.gaps import gap_but_one

STOP_AT = 80


def _budget(trial: Trial) -> Ended:
    return trial.sit("--budget", str(STOP_AT))


def _pause(trial: Trial) -> Ended:
    def during(running: Running) -> None:
        running.wait_for(10)
        paused = trial.say("pause", trial.seeds[0], "--json")
        assert (paused.code, paused.summary) == (0, {"run_state": "paused"}), paused

    with trial.web.slowly(0.02, 0.03):
        return trial.sit("--workers", "2", during=during)


def _signal(number: int) -> Callable[[Trial], Ended]:
    def stop(trial: Trial) -> Ended:
        def during(running: Running) -> None:
            running.wait_for(STOP_AT)
            running.send(number)

        return trial.sit(during=during)

    return stop


def _crash(trial: Trial) -> Ended:
    return trial.sit(twist=Twist(fault=f"after_fetch:{STOP_AT}"))


def _time(trial: Trial) -> Ended:
    return trial.sit("--max-time", "0.15")


def _bytes(trial: Trial) -> Ended:
    return trial.sit("--max-bytes", "60000")


STOPS = {
    "budget": _budget,
    "time": _time,
    "bytes": _bytes,
    "pause": _pause,
    "ctrl-c": _signal(signal.SIGINT),
    "terminate": _signal(signal.SIGTERM),
    "kill": _signal(signal.SIGKILL),
    "crash": _crash,
}


@pytest.mark.parametrize("stop", STOPS)
def test_every_stop_is_resumed_alike(stop: str, web: Web, trial: Trial, reference: Reference) -> None:
    undisturbed = reference.of()
    with web.slowly(0.003, 0.008):
        STOPS[stop](trial)
        status = trial.say("status", trial.seeds[0], "--json").summary
        assert status["run_state"] == "paused", status
        assert status["pending"] > 0 and not trial.has_completed
        trial.complete()
    trial.check()
    assert_same(trial, undisturbed)


def test_the_resume_command_goes_on_too(trial: Trial, reference: Reference) -> None:
    trial.sit(twist=Twist(fault="in_commit:3"))
    assert trial.say("doctor").code == 0, "a crash is nothing to worry about"
    ended = trial.note(trial.call("resume", trial.seeds[0], "--delay", "0", "--json"))
    assert ended.code == 0 and ended.has_completed, ended
    trial.check()
    assert_same(trial, reference.of())


@pytest.mark.parametrize("workers", [1, 5, 32])
def test_a_crawl_cut_into_budgets(workers: int, trial: Trial, reference: Reference) -> None:
    while not trial.has_completed:
        ended = trial.sit("--workers", str(workers), "--budget", "60")
        assert ended.code == 0, ended
        assert len(trial.asked[-1].urls) == ended.summary["fetched"] <= 60
        assert trial.has_completed or ended.summary["fetched"] == 60
        trial.assert_sound(ended=True)
    trial.check()
    assert_same(trial, reference.of())


def test_a_kill_costs_half_a_second_of_work(web: Web, trial: Trial) -> None:
    """D2: what was sent and not committed is asked for again; commits follow each other closely."""
    with web.slowly(0.02, 0.02):
        trial.sit("--workers", "1", during=_kill_at(70))
    with trial.store() as db:
        kept = checker.value(db, "SELECT requests FROM run")
    assert 70 - kept <= 45, f"only {kept} of 70 requests were committed"
    trial.complete()
    trial.check()


def _kill_at(requests: int) -> Callable[[Running], None]:
    def during(running: Running) -> None:
        running.wait_for(requests)
        running.send(signal.SIGKILL)

    return during


def test_a_resumed_crawl_is_as_polite_as_before(trials: Trials) -> None:
    """I5: no burst, neither within a session nor from one to the next."""
    paths = [f"/{number}" for number in range(5)]
    pages = {"/": article("home", tuple(paths)), **{path: article(f"page {path}") for path in paths}}
    with website.serving(Website(pages, dict.fromkeys(pages, "page"))) as web:
        trial = trials("--delay", "0.4", web=web)
        trial.sit(during=_kill_at(4))
        trial.sit(during=_kill_at(2))
        trial.complete()
        trial.check()
        assert gap_but_one([hit.time for hit in web.hits()]) > 0.25
