"""The library: which crawl a `Crawl` means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import chain, path_of

from inchworm import Crawl
from inchworm.errors import Unknown, WrongUse
from inchworm.testing import Served, Site

Sites = tuple[Served, Served]


@pytest.fixture
def sites() -> Iterator[Sites]:
    with Site(chain(3, "/a")).serve() as one, Site(chain(5, "/b")).serve() as other:
        yield one, other


def crawl(home: Path, *seeds: str, **given: Any) -> Crawl:
    return Crawl(*seeds, home=home, delay=0, scope="host", **given)


def paths(one: Crawl) -> list[str]:
    return [path_of(url) for url in one.urls()]


def test_a_crawl_is_found_by_all_its_seeds(tmp_path: Path, sites: Sites) -> None:
    a, b = sites[0].url("/a0"), sites[1].url("/b0")
    one, both = crawl(tmp_path, a), crawl(tmp_path, a, b)
    assert one.run_sync().crawl_id != both.run_sync().crawl_id
    assert (one.status()["pages"], both.status()["pages"]) == (3, 8)
    assert (paths(one), sorted(paths(both))) == (["/a0", "/a1", "/a2"], [*paths(one), *(f"/b{n}" for n in range(5))])
    assert len(list(both.visits())) == 8
    assert both.search("sentence")["count"] == 8
    assert len(both.runs()) == 1
    one.run_sync()
    assert one.compare()["total_changes"] == 0
    assert (len(one.runs()), len(both.runs())) == (2, 1)
    assert crawl(tmp_path, b, a).status()["crawl_id"] == both.status()["crawl_id"], "in any order"


def test_a_crawl_that_was_not_run_is_no_other_one(tmp_path: Path, sites: Sites) -> None:
    a, b = sites[0].url("/a0"), sites[1].url("/b0")
    crawl(tmp_path, a).run_sync()
    crawl(tmp_path, a, b).run_sync()
    for other in (crawl(tmp_path, b), crawl(tmp_path, a, name="another"), crawl(tmp_path, a, b, sites[0].url("/a1"))):
        for act in (
            other.status,
            other.runs,
            other.pause,
            lambda one=other: list(one.urls()),
            lambda one=other: one.search("x"),
        ):
            with pytest.raises(Unknown) as raised:
                act()
            assert "run" in raised.value.hint


def test_a_crawl_with_a_name_is_found_by_that(tmp_path: Path, sites: Sites) -> None:
    a, b = sites[0].url("/a0"), sites[1].url("/b0")
    crawl(tmp_path, a).run_sync()
    named = crawl(tmp_path, b, name="docs")
    named.run_sync()
    crawl(tmp_path, a, name="twin").run_sync()
    assert (named.status()["name"], named.status()["pages"]) == ("docs", 5)
    assert crawl(tmp_path, a, name="twin").status()["name"] == "twin"
    with pytest.raises(WrongUse, match="other seeds"):
        crawl(tmp_path, a, name="docs").status()
