"""Fields over HTTP: named with a crawl, changed at any time, in its exports and with its pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import page, path_of
from tests.service.in_process import Api, serving

from inchworm.service.api import checkpoints, crawls, exports, jobs, pages
from inchworm.testing import Served, Site

QUICK = {"delay": 0, "grace": 0.1}


@pytest.fixture
def served() -> Iterator[Served]:
    items = {f"/p{number}": page(f"p{number}", "/", body=f"<b class=price>{number}.50</b>") for number in range(4)}
    with Site({"/": page("start", *items), **items}).serve() as made:
        yield made


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(
        tmp_path / "home", crawls.routes, jobs.routes, pages.routes, exports.routes, checkpoints.routes
    ) as made:
        yield made


def rows(api: Api, crawl_id: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.request("GET", f"/crawl/{crawl_id}/export", params={"format": "jsonl", **query})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_fields_are_named_changed_and_exported(api: Api, served: Served) -> None:
    body = {"url": served.url("/"), **QUICK, "extract": {"price": ".price | number"}}
    begun = api.post("/crawl", 202, body)
    api.ended(begun["job_id"])
    crawl_id = begun["crawl_id"]
    prices = {path_of(row["url"]): row["price"] for row in rows(api, crawl_id)}
    assert prices == {"/": None, "/p0": 0.5, "/p1": 1.5, "/p2": 2.5, "/p3": 3.5}
    assert api.get(f"/crawl/{crawl_id}")["settings"]["extract"] == ["price=.price | number"]
    assert api.get(f"/crawl/{crawl_id}/page", url=served.url("/p2"))["fields"] == [{"price": 2.5}]

    requests = len(served.log)
    changed = {"settings": {"extract": ["item=a"], "each": "li"}}
    api.ask("PATCH", f"/crawl/{crawl_id}", 200, json=changed)
    found = rows(api, crawl_id)
    assert [(path_of(row["url"]), row["row"], row["item"]) for row in found][:2] == [("/", 1, "/p0"), ("/", 2, "/p1")]
    assert api.get(f"/crawl/{crawl_id}/page", url=served.url("/p2"), run=0)["fields"] == [{"item": "/"}]
    api.ask("PATCH", f"/crawl/{crawl_id}", 200, json={"settings": {"extract": None, "each": None}})
    assert "item" not in rows(api, crawl_id)[0]
    assert api.get(f"/crawl/{crawl_id}/page", url=served.url("/p2"))["fields"] is None
    assert len(served.log) == requests


@pytest.mark.parametrize("wrong", [["price=b["], ["url=b"], ["b"], {"a b": "b"}, {"a": "//b["}])
def test_wrong_fields_are_refused_wherever_they_are_named(api: Api, served: Served, wrong: Any) -> None:
    api.post("/crawl", 422, {"url": served.url("/"), **QUICK, "extract": wrong})
    assert not api.app.workspace.crawls.all()
    crawl_id = api.crawled(served.url("/"))
    api.ask("PATCH", f"/crawl/{crawl_id}", 422, json={"settings": {"extract": wrong}})
    api.post("/jobs", 422, {"source_id": crawl_id, "settings": {"extract": wrong}})
    api.post(f"/crawl/{crawl_id}/continue", 422, {"checkpoint": 1, "settings": {"extract": wrong}})
    assert api.get(f"/crawl/{crawl_id}")["settings"]["extract"] == []
