"""F7: the wall clock may jump; nothing freezes, nothing bursts, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.reference import Reference, assert_same_record
from tests.crash.trial import Running, Trial, Twist
from tests.crash.website import Answer, Web, Website, article
from tests.gaps import gap_but_one

from inchworm.testing import Hit, Page

JUMPS = ["-1h", "-400d", "+10y"]


def shifted(jump: str) -> Twist:
    """A process whose wall clock is wrong by so much. The clocks that only count go on as they are."""
    return Twist(prefix=("faketime", "--exclude-monotonic", "-f", jump))


def steered(file: Path) -> Twist:
    """A process whose wall clock is wrong by what a file says at the moment."""
    setting = (f"FAKETIME_TIMESTAMP_FILE={file}", "FAKETIME_NO_CACHE=1")
    return Twist(prefix=("faketime", "--exclude-monotonic", "-f", "+0", "env", "-u", "FAKETIME", *setting))


def jump(file: Path, by: str) -> None:
    """Let the clock of a running process jump."""
    fresh = file.with_suffix(".new")
    fresh.write_text(by)
    fresh.replace(file)


@pytest.fixture
def failing() -> Iterator[Web]:
    """A site where every third page fails at first, so that there is always something that has to wait a little."""
    leaves = [f"/{number}" for number in range(30)]
    pages: dict[str, Answer | Callable[[Hit], Answer]] = {"/": article("home", tuple(leaves))}
    pages |= {path: article(f"page {path}") for path in leaves}
    pages |= {path: _fails_once(article(f"page {path}")) for path in leaves[::3]}
    with website.serving(Website(pages, dict.fromkeys(pages, "page"))) as web:
        yield web


def _fails_once(text: str) -> Callable[[Hit], Answer]:
    asked: list[Hit] = []

    def answer(hit: Hit) -> Answer:
        asked.append(hit)
        return text if len(asked) > 1 else Page("not now", 500)

    return answer


def test_a_jump_between_sessions(trials: Trials, reference: Reference) -> None:
    """Without robots.txt, which is rightly asked for again when a day seems to have passed."""
    trial = trials("--ignore-robots")
    for by in JUMPS:
        ended = trial.sit("--budget", "40", twist=shifted(by))
        assert ended.code == 0, ended
    trial.complete()
    trial.check(reference.ends("--ignore-robots"))
    assert_same_record(trial, reference.of("--ignore-robots"))


@pytest.mark.parametrize("by", ["-400d", "+10y"])
def test_a_jump_while_pages_wait_to_be_tried_again(by: str, failing: Web, trials: Trials) -> None:
    """A page that failed is due within a second or two, whatever the clock on the wall says after a restart."""
    trial = trials(web=failing)
    trial.sit("--budget", "31")
    ended = trial.sit(twist=shifted(by))
    assert ended.code == 0 and ended.has_completed, ended
    assert ended.summary["seconds"] < 10
    trial.check()


@pytest.mark.parametrize("by", ["-1h", "+10y"])
def test_a_jump_in_the_middle(by: str, failing: Web, trials: Trials) -> None:
    trial = trials(web=failing)
    file = trial.folder / "clock"
    file.write_text("+0")

    def during(running: Running) -> None:
        running.wait_for(32)
        jump(file, by)

    with failing.slowly(0.01, 0.02):
        ended = trial.sit(twist=steered(file), during=during)
    assert ended.code == 0 and ended.has_completed, ended
    assert ended.summary["seconds"] < 15
    trial.check()


def test_no_burst_when_the_clock_jumps(trials: Trials) -> None:
    """Politeness is counted on a clock that cannot be set."""
    leaves = [f"/{number}" for number in range(8)]
    pages = {"/": article("home", tuple(leaves)), **{path: article(f"page {path}") for path in leaves}}
    with website.serving(Website(pages, dict.fromkeys(pages, "page"))) as web:
        trial = trials("--delay", "0.3", web=web)
        file = trial.folder / "clock"
        file.write_text("+0")

        def during(running: Running) -> None:
            for count, by in ((3, "+10y"), (5, "-1h"), (7, "-400d")):
                running.wait_for(count)
                jump(file, by)

        assert trial.sit(twist=steered(file), during=during).has_completed
        trial.check()
        assert gap_but_one([hit.time for hit in web.hits()]) > 0.18


def test_a_sleeping_owner_is_judged_by_the_clock_that_counts(web: Web, trial: Trial) -> None:
    """A contender whose wall clock is years ahead does not take a living owner for asleep."""
    with web.slowly(0.02, 0.03):
        first = trial.start("--workers", "2")
        first.wait_for(10)
        second = trial.start(twist=Twist(sabotage="clock:315360000")).wait()
    assert second.code == 3, second
    assert trial.note(first).has_completed
    trial.check()
