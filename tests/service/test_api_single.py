"""Pages that no crawl has, over HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.flow.hostile import names
from tests.gaps import gap_but_one
from tests.service.in_process import VALUES, Api, serving

from inchworm.service.api import single
from inchworm.testing import Served, Site


@pytest.fixture
def served() -> Iterator[Served]:
    words = "Words that say what this page is about, and enough of them."
    with Site({"/": f"<title>One</title><main><p>{words}<a href=/b>b</a>", "/b": "b"}).serve() as made:
        yield made


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path / "home", single.routes, jobs=False) as made:
        yield made


def test_a_page_is_read(api: Api, served: Served) -> None:
    page = api.post("/read", body={"url": served.url("/")})
    assert (page["title"], page["status"], page["failure"]) == ("One", 200, None)
    assert page["text"].startswith("Words that say")
    assert page["links"] == [{"url": served.url("/b"), "text": "b"}]
    assert set(api.post("/read", body={"url": served.url("/"), "with": ["markdown"]})) & {"text", "markdown"} == {
        "markdown"
    }
    assert api.app.workspace.crawls.all() == []


def test_what_cannot_be_had_is_an_answer(api: Api, served: Served) -> None:
    page = api.post("/read", body={"url": served.url("/none")})
    assert (page["failure"], page["message"], page["text"]) == ("http_4xx", "the server answered 404", None)


def test_whoever_asks_a_host_has_its_pauses(api: Api, served: Served) -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: api.post("/read", body={"url": served.url("/")}), range(3)))
    assert served.paths().count("/") == 3
    assert gap_but_one([hit.time for hit in served.log]) > 0.4


def test_a_site_is_mapped(api: Api, served: Served) -> None:
    found = api.get("/map", url=served.url("/"))
    assert [(one["url"], one["source"]) for one in found["urls"]] == [(served.url("/b"), "spider")]
    assert api.get("/map", 422, url=served.url("/"), limit=0)


@pytest.mark.parametrize("address", ["http://127.0.0.1/", "localhost:8000", "http://[::1]/", "http://0x7f.1/"])
def test_private_addresses_are_refused(tmp_path: Path, address: str) -> None:
    values = dataclasses.replace(VALUES, allow_private=False)
    with serving(tmp_path / "careful", single.routes, values=values, jobs=False) as careful:
        assert "private network" in careful.post("/read", 422, {"url": address})["message"]
        assert "private network" in careful.get("/map", 422, url=address)["message"]


def test_names_that_lead_into_a_private_network_are_refused_when_they_are_dialled(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = dataclasses.replace(VALUES, allow_private=False)
    with serving(tmp_path / "careful", single.routes, values=values, jobs=False) as careful:
        names({"public.example": ["127.0.0.1"]}, monkeypatch)
        page = careful.post("/read", body={"url": f"http://public.example:{served.port}/"})
    assert page["failure"] == "address_refused"
    assert served.log == []


def test_mistakes_are_told(api: Api) -> None:
    assert "not a web address" in api.post("/read", 422, {"url": "ftp://example.org/"})["message"]
    assert "no part 'x'" in api.post("/read", 422, {"url": "http://127.0.0.1:1/", "with": ["x"]})["message"]
