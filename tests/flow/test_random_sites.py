"""The same crawl, always: random sites have one record at any number of workers, in one sitting, cut up, and killed.

`INCHWORM_TEST_SITES=1000` makes it long (`make soak`), `INCHWORM_TEST_SITES_FROM=N` begins with another site. What
differs is told with the number of its site, which is all that it takes to make it again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.flow import random_sites
from tests.flow.crawling import Home
from tests.flow.random_sites import RandomSite

from inchworm.testing import Served, Site

COUNT = int(os.environ.get("INCHWORM_TEST_SITES", "8"))
FIRST = int(os.environ.get("INCHWORM_TEST_SITES_FROM", "0"))
WORKERS = (1, 8, 40)
POINTS = ("after_fetch", "before_commit", "after_commit")

PASSING = ("session", "message")
"""Which sitting it was, and words of libcurl's that are for reading only."""

Record = list[tuple[Any, ...]]


def record(home: Home) -> Record:
    """What must not differ: every step of the run, and where one can go back to."""
    story = [tuple((k, v) for k, v in visit.items() if k not in PASSING) for visit in map(_plain, home.story())]
    places = [(one["checkpoint_type"], one["seq"]) for one in home.checkpoints()]
    refused = sorted((reason, count) for reason, count in home.reasons().items())
    return [*story, *(place for place in places if place[0] == "auto"), *refused]


def _plain(visit: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in visit.items()}


def plain(home: Home, site: RandomSite, served: Served, workers: int) -> None:
    home.crawl(served.url("/"), workers=workers, **site.settings)


def cut(home: Home, site: RandomSite, served: Served, workers: int) -> None:
    """In sessions of a few requests each."""
    chance = random.Random(site.seed)
    for _ in range(200):
        if (
            home.crawl(served.url("/"), workers=workers, **site.settings, budget=chance.randint(1, 9)).run_state
            != "paused"
        ):
            return
    raise AssertionError("it never ends")


def killed(home: Home, site: RandomSite, served: Served, workers: int) -> None:
    """By SIGKILL at a few places, then to the end."""
    chance = random.Random(site.seed)
    words = ["crawl", served.url("/"), "--delay", "0", "--no-sitemap", "--workers", str(workers), "--json"]
    for name in ("page_limit", "max_depth", "query", "checkpoint_every", "max_retries"):
        if name in site.settings:
            words += [f"--{name.replace('_', '-')}", str(site.settings[name])]
    for _ in range(2):
        fault = f"{chance.choice(POINTS)}:{chance.randint(1, 12)}"
        with home.running(*words, INCHWORM_FAULT=fault) as process:
            process.communicate(timeout=60)
        if process.returncode != -9:
            break
    if process.returncode == -9:
        home.process(*words)


@pytest.mark.parametrize("number", range(FIRST, FIRST + COUNT))
def test_one_site_has_one_record(number: int, tmp_path: Path) -> None:
    site = random_sites.make(number)
    found: dict[str, Record] = {}
    with Site(site.pages).serve() as served:
        # Kills start processes, which take a hundred times as long: in the short version only every fourth site's.
        ways = (plain, cut, killed) if COUNT > 100 or number % 4 == 0 else (plain, cut)
        for way in ways:
            for workers in WORKERS:
                home = Home(tmp_path / f"{way.__name__}{workers}")
                way(home, site, served, workers)
                found[f"{way.__name__} with {workers}"] = record(home)
                home.app.close()
    first, *others = found.items()
    for name, other in others:
        assert other == first[1], f"site {number}: {name} differs from {first[0]}: {_difference(first[1], other)}"


def _difference(one: Record, other: Record) -> str:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"at {index}: {set(a) ^ set(b)}"
    return f"{len(one)} and {len(other)} steps"
