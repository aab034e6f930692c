"""F13: a page that kills or breaks its reader costs its own URL: at once, or after three deaths, and only that page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.parametrize("workers", [1, 32])
def test_a_page_that_breaks_its_reader_costs_itself_and_not_the_session(
    workers: int, poisoned: Web, trials: Trials
) -> None:
    trial = trials(web=poisoned)
    told = trial.sit("--workers", str(workers), twist=Twist(sabotage=f"break:{POISON}"))
    assert told.has_completed, told
    assert _failures(trial) == {poisoned.url(f"/poison/{number}"): "reader_crashed" for number in (1, 2)}
    trial.check()
    told = trial.say("failed", poisoned.url("/"), "--json")
    assert told.out.count("something that nobody thought of") == 2, told


def test_a_sitemap_that_breaks_its_reader(trials: Trials) -> None:
    made = Building(30, 0)
    made.pages["/sitemap.xml"] = f"<urlset><url><loc>/{POISON}</loc></url></urlset>"
    with website.serving(Website(made.pages, made.ends)) as web:
        trial = trials(web=web)
        assert trial.sit(twist=Twist(sabotage=f"break:{POISON}")).has_completed
        trial.check()


def test_a_robots_txt_that_breaks_its_reader_keeps_us_out(trials: Trials) -> None:
    """What cannot be read forbids everything, and the site's pages say why."""
    made = Building(3, 0)
    made.pages["/robots.txt"] = f"User-agent: {POISON}\nDisallow: /\n"
    with website.serving(Website(made.pages, {"/": "failed"})) as web:
        trial = trials(web=web)
        trial.sit(twist=Twist(sabotage=f"break:{POISON}"))
        assert _failures(trial) == {web.url("/"): "robots"}


def test_what_follows_a_crawl_does_not_stop_at_a_page_that_breaks_its_reader(trials: Trials, tmp_path: Path) -> None:
    """The crawl could read it; a later reader cannot. Search, Markdown, comparison: the others are there."""
    pages = {"/": article("home", ("/bad", "/good")), "/bad": article(POISON), "/good": article("good")}
    with website.serving(Website(pages, dict.fromkeys(pages, "page"))) as web:
        trial, twist = trials(web=web), Twist(sabotage=f"break:{POISON}")
        trial.complete()
        home = web.url("/")
        found = trial.call("search", home, "good", "--json", twist=twist).wait()
        assert web.url("/good") in found.out, found
        told = trial.call("export", home, "--format", "markdown", "-o", str(tmp_path / "md"), twist=twist).wait()
        assert told.code == 0 and sorted(path.name for path in (tmp_path / "md").rglob("*.md")) == [
            "good.md",
            "index.md",
        ]
        pages["/bad"] = article(f"{POISON} again")
        assert trial.say("recrawl", home, "--delay", "0").code == 0
        told = trial.call("diff", home, web.url("/bad"), twist=twist).wait()
        assert told.code == 0 and "cannot be read" in told.out, told
