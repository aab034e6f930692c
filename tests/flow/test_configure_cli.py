"""`inchworm configure`, as a user would type it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.flow.crawling import Home, chain

from inchworm.testing import Served, Site

QUICK = ("--delay", "0")


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(6)).serve() as made:
        yield made


@pytest.fixture
def crawl(home: Home, served: Served) -> str:
    home.cli("crawl", served.url("/c0"), "--name", "manual", "--scope", "host", "--budget", "1", *QUICK)
    return "manual"


def test_what_holds_is_shown(home: Home, crawl: str) -> None:
    lines = home.cli("configure", crawl).stdout.splitlines()
    assert lines == [
        f"crawl        manual  ({home.word})",
        "enabled      yes",
        "incremental  yes",
        "settings     delay = 0.0",
    ]
    told = home.ask("configure", crawl)
    assert (told["name"], told["enabled"], told["defaults"]) == ("manual", True, {"delay": 0.0})


def test_what_the_first_start_names_belongs_to_the_crawl(home: Home, served: Served) -> None:
    url = served.url("/c0")
    home.cli("crawl", url, "--delay", "0.01", "--workers", "2", "--checkpoint-every", "2", "--budget", "1")
    sessions = [used(home)]
    for later in (("--budget", "1"), ("--delay", "0.02", "--budget", "1"), ()):
        home.cli("crawl", url, *later)
        sessions.append(used(home))
    home.cli("recrawl", home.word)
    sessions.append(used(home))
    assert [one["delay"] for one in sessions] == [0.01, 0.01, 0.02, 0.01, 0.01], "a later start is for its session"
    assert {(one["workers"], one["checkpoint_every"]) for one in sessions} == {(2, 2)}
    assert [one["budget"] for one in sessions] == [1, 1, 1, 0, 0], "what ends a session is about that session"
    home.cli("configure", home.word, "--delay", "0", "--unset", "workers")
    home.cli("crawl", url)
    assert (used(home)["delay"], used(home)["workers"]) == (0.0, 5)


def test_a_permission_is_given_anew(home: Home, served: Served) -> None:
    home.cli("crawl", served.url("/c0"), "--allow-private", *QUICK)
    home.cli("crawl", served.url("/c0"))
    assert used(home)["allow_private"] is False


def used(home: Home) -> dict[str, Any]:
    """The settings that the last session worked with."""
    with home.app.workspace.reading(home.app.workspace.find(home.word)) as store:
        (text,) = store.db.execute("SELECT settings FROM session ORDER BY rowid DESC LIMIT 1").fetchone()
    found: dict[str, Any] = json.loads(text)
    return found


def test_settings_hold_for_every_session(home: Home, crawl: str) -> None:
    said = home.cli("configure", crawl, "--budget", "2", *QUICK, "--exclude", "*/print/*", "--exclude", "*/x").stdout
    assert "budget = 2" in said and "exclude = ['*/print/*', '*/x']" in said
    defaults = home.ask("configure", crawl)["defaults"]
    assert defaults == {"budget": 2, "delay": 0.0, "exclude": ["*/print/*", "*/x"]}
    assert home.ask("resume", crawl)["fetched"] == 2
    assert home.ask("resume", crawl, "--budget", "1")["fetched"] == 1, "what a start names wins"


def test_settings_are_taken_away(home: Home, crawl: str) -> None:
    home.cli("configure", crawl, "--budget", "2", "--max-depth", "3", "--no-sitemap", "--proxy", "http://p.test:1")
    left = home.ask("configure", crawl, "--unset", "max_depth", "--unset", "--no-sitemap", "--unset", "proxy")
    assert left["defaults"] == {"budget": 2, "delay": 0.0}
    assert home.ask("configure", crawl, "--unset", "budget", "--unset", "delay")["defaults"] == {}


def test_a_name(home: Home, crawl: str) -> None:
    home.cli("configure", crawl, "--name", "the book")
    assert home.ask("status", "the book")["pages"] == 1
    assert "no crawl called" in home.cli("configure", crawl, code=2).stderr
    home.cli("crawl", "https://other.invalid/", "--max-retries", "0", *QUICK, "--name", "other", code=1)
    assert "another crawl called 'other'" in home.cli("configure", "the book", "--name", "other", code=1).stderr


def test_its_jobs_are_paused_and_go_on(home: Home, crawl: str) -> None:
    job = home.ask("jobs", "add", crawl, "--every", "6h")
    assert "its jobs are paused" in home.cli("configure", crawl, "--disable").stdout
    assert home.ask("jobs", "show", job["id"])["status"] == "paused"
    assert home.ask("configure", crawl, "--enable")["enabled"]
    assert home.ask("jobs", "show", job["id"])["status"] == "scheduled"


def test_every_start_a_new_run(home: Home, crawl: str) -> None:
    assert "every start begins a new run" in home.cli("configure", crawl, "--no-incremental").stdout
    (seed,) = home.app.workspace.find(crawl).seeds
    assert home.ask("crawl", seed, "--name", crawl, "--scope", "host", *QUICK)["run"] == 1
    assert home.ask("configure", crawl, "--incremental")["incremental_crawling_enabled"]


WRONG = {
    "a value": (("--max-depth", "deep"), "max_depth cannot be 'deep'"),
    "a pattern": (("--exclude", "re:("), "re:("),
    "an unknown setting": (("--unset", "speed"), "no setting called 'speed'"),
    "a setting of the service": (("--unset", "poll"), "no setting called 'poll'"),
    "both": (("--budget", "5", "--unset", "budget"), "budget is to be set and not to be set"),
    "a name that cannot be read": (("--name", "\x1b[31m"), "cannot be called"),
    "best for nothing": (("--order", "best"), "Best for what?"),
}


@pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG)
def test_nothing_changes_when_anything_is_wrong(home: Home, crawl: str, options: tuple[str, ...], said: str) -> None:
    before = home.app.workspace.find(crawl)
    done = home.cli("configure", crawl, "--disable", "--workers", "3", *options, code=2)
    assert said in done.stderr and len(done.stderr.splitlines()) == 2 and not done.stdout
    assert home.app.workspace.find(crawl) == before


@pytest.mark.parametrize("secret", [("--proxy", "http://me:secret@p.test:1"), ("--index", "http://me:secret@i.test")])
def test_no_password_is_kept(home: Home, crawl: str, secret: tuple[str, str]) -> None:
    said = home.cli("configure", crawl, *secret, code=2).stderr
    assert "password" in said and "secret" not in said and "config.toml" in said
    assert b"secret" not in (home.folder / "home.db").read_bytes()
