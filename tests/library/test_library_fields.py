"""Fields in the library: by rules, by a function of the caller's; as rows, on pages, in tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import chain, path_of

from inchworm import Crawl, Page
from inchworm.errors import WrongUse
from inchworm.testing import Served, Site

RULES = {"name": "title", "next": "li a@href"}


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(5)).serve() as made:
        yield made


def crawl(home: Path, served: Served, **given: Any) -> Crawl:
    return Crawl(served.url("/c0"), home=home, delay=0, scope="host", **given)


def test_rows_of_fields(tmp_path: Path, served: Served) -> None:
    one = crawl(tmp_path, served, extract=RULES)
    summary = one.run_sync()
    assert summary.fields == {"name": 5, "next": 4}
    rows = list(one.rows())
    assert rows[0] == {"url": served.url("/c0"), "name": "/c0", "next": served.url("/c1")}
    assert [row["next"] is None for row in rows] == [False] * 4 + [True]
    assert list(one.rows(run=0)) == rows
    assert crawl(tmp_path, served).page(served.url("/c1")).fields == {"name": "/c1", "next": served.url("/c2")}
    assert [page.fields["name"] for page in one.pages()] == [row["name"] for row in rows]
    with pytest.raises(WrongUse, match="cannot be used"):
        crawl(tmp_path, served, extract={"name": "title["}).rows()
    with pytest.raises(WrongUse, match="there is a column"):
        crawl(tmp_path, served, extract={"url": "title"}).run_sync()


def test_they_are_columns_of_tables(tmp_path: Path, served: Served) -> None:
    one = crawl(tmp_path, served, extract=["name=title", "step=title | re:([0-9]+) | integer"])
    one.run_sync()
    assert one.to_arrow(columns="name,step").to_pylist() == [{"name": f"/c{n}", "step": n} for n in range(5)]
    assert {"text", "name", "step"} <= set(one.to_arrow().column_names)
    own = crawl(tmp_path, served, fields=lambda page: [{"x": 1}, {"x": 2}] if page.title == "/c0" else {"x": 3})
    found = own.to_arrow(columns="row,fields").to_pylist()
    assert found == [
        {"row": 1, "fields": '{"x": 1}'},
        {"row": 2, "fields": '{"x": 2}'},
        *({"row": None, "fields": '{"x": 3}'} for _ in range(4)),
    ]


def test_rules_are_tried_and_changed(tmp_path: Path, served: Served) -> None:
    one = crawl(tmp_path, served)
    one.run_sync()
    requests = len(served.log)
    with pytest.raises(WrongUse, match="No fields"):
        one.rows()
    tried = one.try_fields(served.url("/c1"), {"link": "@href"}, each="li a")
    assert tried["pages"] == [{"url": served.url("/c1"), "rows": [{"link": served.url("/c2")}], "failure": None}]
    assert one.page(served.url("/c1")).rows == [], "nothing of it is kept"
    assert crawl(tmp_path, served, extract={"name": "title"}).page(served.url("/c1")).fields == {"name": "/c1"}
    assert [row["name"] for row in crawl(tmp_path, served, extract=["name=title"]).rows()][:2] == ["/c0", "/c1"]
    done = one.extract({"name": "title", "nothing": ".nothing"})
    assert (done["pages"], done["unmatched_fields"]) == (5, ["nothing"])
    assert [field["pages"] for field in done["fields"]] == [5, 0]
    assert one.extract()["extract"] == ["name=title", "nothing=.nothing"], "it is kept"
    assert one.extract(rebuild=True)["pages"] == 5
    assert len(served.log) == requests


def test_a_function_takes_fields(tmp_path: Path, served: Served) -> None:
    def take(page: Page) -> dict[str, object]:
        if page.title == "/c2":
            raise ValueError(page.title)
        return {"title": page.title, "length": len(page.text)}

    one = crawl(tmp_path, served, fields=take, extract=RULES)
    one.run_sync()
    rows = list(one.rows())
    assert [row.get("title") for row in rows] == ["/c0", "/c1", None, "/c3", "/c4"], "not what the rules say"
    assert all(row["length"] > 100 for row in rows if "length" in row)
    assert one.field_errors == 1
    assert one.page(served.url("/c3")).fields["title"] == "/c3"
    each = crawl(tmp_path, served, fields=lambda page: [{"link": link.url} for link in page.links])
    assert [path_of(row["link"]) for row in each.rows()] == ["/c1", "/c2", "/c3", "/c4"]


def test_a_branch_has_the_function_of_its_crawl(tmp_path: Path, served: Served) -> None:
    one = crawl(tmp_path, served, budget=2, fields=lambda page: {"title": page.title})
    one.run_sync()
    assert one.branch().page(served.url("/c0")).fields == {"title": "/c0"}
