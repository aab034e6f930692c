"""F13: a page that kills its reader every time is set aside after three deaths, and only that page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.trial import Trial, Twist
from tests.crash.website import Building, Web, Website, article

POISON = "0xdeadbeef"
DEATHS = 3


@pytest.fixture
def poisoned() -> Iterator[Web]:
    """A good site with two pages that no reader survives."""
    made = Building(100, 5)
    made.link("/poison/1", "/poison/2")
    for number in (1, 2):
        made.add(f"/poison/{number}", article(f"poison {number} {POISON}", (f"/behind/{number}",)), "failed")
    with website.serving(Website(made.pages, made.ends)) as web:
        yield web


def _failures(trial: Trial) -> dict[str, str]:
    with trial.store() as db:
        return dict(
            db.execute(
                "SELECT u.url, v.failure FROM visit v JOIN url u USING (url_id) WHERE v.outcome = 'failed' ORDER BY seq"
            )
        )


@pytest.mark.parametrize("workers", [1, 32])
def test_a_page_that_kills_its_reader(workers: int, poisoned: Web, trials: Trials) -> None:
    trial = trials(web=poisoned)
    died = 0
    while trial.sit("--workers", str(workers), twist=Twist(sabotage=f"poison:{POISON}")).was_killed:
        died += 1
        assert died <= 2 * DEATHS, trial.report(["it dies for ever"])
    assert died == 2 * DEATHS, trial.report([f"{died} deaths for two pages"])
    assert trial.has_completed, trial.report(["not completed"])
    assert _failures(trial) == {poisoned.url(f"/poison/{number}"): "reader_crashed" for number in (1, 2)}
    trial.check()


@pytest.mark.parametrize("workers", [1, 32])
def test_dying_at_the_same_page(workers: int, trials: Trials) -> None:
    """The same through the named fault point: the first page that is read, three times over."""
    leaves = [f"/{number}" for number in range(60)]
    pages = {"/": article("home", tuple(leaves)), **{path: article(f"page {path}") for path in leaves}}
    with website.serving(Website(pages, dict.fromkeys(pages, "page") | {"/19": "failed"})) as web:
        trial = trials(web=web)
        trial.sit("--budget", "20", "--workers", str(workers))
        for _ in range(DEATHS):
            assert trial.sit("--workers", "1", twist=Twist(fault="while_reading:1")).was_killed
        trial.complete("--workers", str(workers))
        assert _failures(trial) == {web.url("/19"): "reader_crashed"}
        trial.check()


def test_two_deaths_are_forgiven(trial: Trial) -> None:
    trial.sit("--budget", "40")
    for _ in range(DEATHS - 1):
        assert trial.sit("--workers", "1", twist=Twist(fault="while_reading:1")).was_killed
    trial.complete()
    trial.check()


def test_a_page_set_aside_can_be_tried_again(poisoned: Web, trials: Trials) -> None:
    """After the reader was mended: `retry` opens it like any other failure."""
    trial = trials(web=poisoned)
    while trial.sit(twist=Twist(sabotage=f"poison:{POISON}")).was_killed:
        pass
    assert trial.say("retry", poisoned.url("/"), "--kind", "reader_crashed", "--json").summary == {"reopened": 2}
    trial.has_completed = False
    trial.complete()
    ends = {url: "page" if "/poison/" in url else end for url, end in poisoned.ends.items()}
    ends |= {poisoned.url(f"/behind/{number}"): "failed" for number in (1, 2)}
    trial.check(ends)


def test_a_sitemap_that_kills_its_reader(trials: Trials) -> None:
    """It is set aside as well, and is no page, so it counts as none."""
    made = Building(30, 0)
    made.pages["/sitemap.xml"] = f"<urlset><url><loc>/{POISON}</loc></url></urlset>"
    with website.serving(Website(made.pages, made.ends)) as web:
        trial = trials(web=web)
        died = 0
        while trial.sit(twist=Twist(sabotage=f"poison:{POISON}")).was_killed:
            died += 1
            assert died <= DEATHS, trial.report(["it dies for ever"])
        assert died == DEATHS
        trial.check()
