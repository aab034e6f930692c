"""F2: signals stop a session in peace, with an exit code of their own, within the grace time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.reference import Reference, assert_same_record
from tests.crash.trial import Running, Trial, Twist
from tests.crash.website import Web, Website, article

from inchworm.testing import Page

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def hanging() -> Iterator[Web]:
    """A site with one page that takes a second, and one that takes for ever."""
    pages = {
        "/": article("home", ("/quick", "/slow", "/hangs")),
        "/quick": article("quick"),
        "/slow": Page(article("slow"), delay=1.0),
        "/hangs": Page(article("hangs"), delay=60.0),
    }
    with website.serving(Website(pages, {})) as web:
        yield web


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 1), (signal.SIGINT, 32), (signal.SIGTERM, 32), (signal.SIGHUP, 5)]
)
def test_a_signal_pauses(number: int, workers: int, web: Web, trial: Trial, reference: Reference) -> None:
    undisturbed = reference.of()

    def during(running: Running) -> None:
        running.wait_for(90)
        running.send(number)

    with web.slowly(0.002, 0.006):
        ended = trial.sit("--workers", str(workers), during=during)
    assert ended.code == CODES[number], ended
    assert (ended.summary["run_state"], ended.summary["ended_by"]) == ("paused", "paused")
    assert (ended.summary["session_state"]) == "completed"
    assert "Traceback" not in ended.err
    trial.assert_sound(ended=True)
    trial.complete()
    trial.check()
    assert_same_record(trial, undisturbed)


def _interrupt(running: Running, times: int) -> float:
    """Ctrl-C so many times when everything is under way; how long it took to end."""
    running.wait_for(6)
    time.sleep(0.2)
    started = time.monotonic()
    for _ in range(times):
        running.send(signal.SIGINT)
        time.sleep(0.2)
    running.wait()
    return time.monotonic() - started


def test_what_is_in_flight_may_finish(hanging: Web, trials: Trials) -> None:
    trial = trials("--grace", "2", web=hanging)
    running = trial.start()
    seconds = _interrupt(running, 1)
    ended = trial.note(running)
    assert ended.code == 130, ended
    assert 1.5 < seconds < 15
    assert ended.summary["pages"] == 3, "the page that takes a second was kept"
    assert ended.summary["pending"] == 1, "the one that hangs waits for the next session"
    trial.assert_sound(ended=True)


def test_a_second_ctrl_c_does_not_wait(hanging: Web, trials: Trials) -> None:
    trial = trials("--grace", "30", web=hanging)
    running = trial.start()
    seconds = _interrupt(running, 2)
    ended = trial.note(running)
    assert ended.code == 130, ended
    assert seconds < 15, "it did not wait for the grace time"
    assert "Traceback" not in ended.err
    assert ended.summary["pending"] == 2
    trial.assert_sound(ended=True)


def test_many_signals_at_once(web: Web, trial: Trial, reference: Reference) -> None:
    def during(running: Running) -> None:
        running.wait_for(60)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGINT):
            running.send(number)

    with web.slowly(0.002, 0.006):
        ended = trial.sit(during=during)
    assert ended.code in CODES.values(), ended
    assert "Traceback" not in ended.err
    trial.asked[-1] = replace(trial.asked[-1], killed=True)  # asking twice gives up what is in flight
    trial.complete()
    trial.check()
    assert_same_record(trial, reference.of())


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(signal.SIGINT, 0.05), (signal.SIGTERM, 0.15), (signal.SIGINT, 0.25), (signal.SIGTERM, 0.35)],
)
def test_a_signal_at_the_start(number: int, seconds: float, web: Web, trial: Trial) -> None:
    """Whenever it comes, also before anything is set up: the same command goes on."""

    def during(running: Running) -> None:
        time.sleep(seconds)
        running.send(number)

    with web.slowly(0.01, 0.02):
        ended = trial.sit(during=during)
    assert ended.code not in (0, -signal.SIGKILL), ended
    trial.complete()
    trial.check()


def test_nohup_goes_on(trial: Trial) -> None:
    def during(running: Running) -> None:
        running.wait_for(20)
        running.send(signal.SIGHUP)

    ended = trial.sit(twist=Twist(prefix=("nohup",)), during=during)
    assert ended.code == 0 and ended.has_completed, ended
    trial.check()
