"""`inchworm queue`, as a user would type it: numbers, lists, and rows changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.flow.crawling import Home, page

from inchworm.testing import Served, Site

OUT = "https://elsewhere.example/"
NAMES = ("/a", "/b", "/c")


@pytest.fixture
def served() -> Iterator[Served]:
    """A start page that leads to three others and out of scope. Nobody links to /hidden."""
    pages = {name: page(name, "/") for name in (*NAMES, "/hidden")}
    with Site({**pages, "/": page("start", *NAMES, OUT)}).serve() as made:
        yield made


@pytest.fixture
def crawl(home: Home, served: Served) -> str:
    home.cli("crawl", served.url("/"), "--name", "site", "--delay", "0", "--budget", "1")
    return "site"


def rows(home: Home, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.ask("queue", "site", *options)["entries"]
    return found


def row(home: Home, url: str) -> dict[str, Any]:
    (found,) = [one for one in rows(home, "--list") if one["url"] == url]
    return found


def resumed(home: Home) -> list[str]:
    home.cli("resume", "site", "--delay", "0", "--budget", "0")
    return home.paths()


# Looking


def test_numbers(home: Home, crawl: str) -> None:
    assert home.ask("queue", crawl)["pending"] == 3
    assert "can resume" in home.cli("queue", crawl).stdout


def test_the_list(home: Home, crawl: str, served: Served) -> None:
    found = rows(home, "--list")
    assert [one["url"] for one in found] == [served.url("/"), *map(served.url, NAMES), OUT]
    assert [one["state"] for one in found] == ["done", "pending", "pending", "pending", "refused"]
    lines = home.cli("queue", crawl, "--list").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "REASON", "DEPTH", "URL"] and len(lines) == 6
    assert lines[1].split() == [found[0]["id"], "done", "0", served.url("/")]


def test_a_part_of_the_list(home: Home, crawl: str, served: Served) -> None:
    assert [one["url"] for one in rows(home, "--state", "pending")] == [*map(served.url, NAMES)]
    assert [one["url"] for one in rows(home, "--list", "--reason", "out_of_scope")] == [OUT]
    assert home.cli("queue", crawl, "--reason", "robots").stdout == "There are none.\n"
    told = home.ask("queue", crawl, "--list", "--limit", "2")
    assert (len(told["entries"]), told["is_cut"]) == (2, True)
    assert home.cli("queue", crawl, "--list", "--limit", "2").stdout.endswith("--limit 20 lists more of them.\n")
    assert home.ask("queue", crawl, "--list", "--limit", "5")["is_cut"] is False


# Adding


def test_adding(home: Home, crawl: str, served: Served) -> None:
    url = served.url("/hidden")
    assert home.cli("queue", crawl, "--add", url).stdout == f"{url}: It waits for its turn.\n"
    assert home.cli("queue", crawl, "--add", url).stdout == f"{url}: It was known already, and waits for its turn.\n"
    assert (row(home, url)["source"], row(home, url)["depth"]) == ("manual", 0)
    assert "/hidden" in resumed(home)


def test_adding_deep(home: Home, crawl: str, served: Served) -> None:
    made = home.ask("queue", crawl, "--add", served.url("/hidden"), "--depth", "7")
    assert (made["added"], made["state"], made["depth"]) == (True, "pending", 7)


def test_what_is_added_may_be_refused(home: Home, crawl: str) -> None:
    said = home.cli("queue", crawl, "--add", "https://elsewhere.example/2").stdout
    assert said.startswith("https://elsewhere.example/2: It is refused (out_of_scope): ")


# Taking out


@pytest.mark.parametrize("by", ["url", "id"])
def test_taking_out(home: Home, crawl: str, served: Served, by: str) -> None:
    word = row(home, served.url("/b"))[by]
    assert home.cli("queue", crawl, "--take-out", word).stdout == f"{word} is taken out.\n"
    assert home.ask("queue", crawl, "--take-out", word) == {"taken_out": row(home, served.url("/b"))["id"]}
    assert row(home, served.url("/b"))["reason"] == "cleared"
    assert resumed(home)[-2:] == ["/a", "/c"]


# Links that were not followed


@pytest.mark.parametrize("by", ["url", "id"])
def test_dismissing(home: Home, crawl: str, by: str) -> None:
    (link,) = rows(home, "--not-followed")
    assert link["url"] == OUT
    assert home.cli("queue", crawl, "--dismiss", link[by]).stdout == f"{link[by]} is dismissed.\n"
    assert rows(home, "--not-followed") == []
    assert [one["id"] for one in rows(home, "--not-followed", "--reason", "cleared")] == [link["id"]]


# What cannot be


def refused(home: Home, *options: str, code: int) -> str:
    done = home.cli("queue", "site", *options, code=code)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 2, done.stderr
    return str(done.stderr)


def test_rows_that_are_not_there(home: Home, crawl: str, served: Served) -> None:
    for flag in ("--take-out", "--dismiss"):
        assert "not known to run 0 of 'site'" in refused(home, flag, served.url("/nowhere"), code=2)
        assert "not a web address" in refused(home, flag, "nothing", code=2)
        assert "no entry 'nobody_0_1'" in refused(home, flag, "nobody_0_1", code=2)
    home.cli("crawl", served.url("/a"), "--name", "other", "--delay", "0")
    other = home.ask("queue", "other", "--list")["entries"][0]["id"]
    assert "of another crawl" in refused(home, "--take-out", other, code=2)


def test_rows_that_are_something_else(home: Home, crawl: str, served: Served) -> None:
    assert "not pending" in refused(home, "--take-out", served.url("/"), code=1)
    assert "taken out" in refused(home, "--dismiss", served.url("/a"), code=2)
    assert "has visited" in refused(home, "--add", served.url("/"), code=1)
    assert "not a web address" in refused(home, "--add", "nothing", code=2)


MUDDLES = [
    ("--add", "https://a.test/", "--clear"),
    ("--list", "--not-followed"),
    ("--depth", "3"),
    ("--list", "--depth", "3"),
    ("--state", "pending", "--clear"),
    ("--not-followed", "--state", "done"),
]


@pytest.mark.parametrize("options", MUDDLES, ids=" ".join)
def test_one_thing_at_a_time(home: Home, crawl: str, options: tuple[str, ...]) -> None:
    refused(home, *options, code=2)
    assert home.ask("queue", crawl)["pending"] == 3
