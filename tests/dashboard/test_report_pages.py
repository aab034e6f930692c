"""The page of reports: broken links, redirects, duplicates, errors, what is slow."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator

import pytest
from tests.crash.website import article
from tests.service.in_process import Api, serving, wait_for

from inchworm.app.memory import Memory
from inchworm.app.read import reports as reporting
from inchworm.app.read.reports import REPORTS
from inchworm.testing import Page, Site, redirect

ROOT = "http://inchworm.test"
EVIL = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("reports") / "home") as made:
        yield made


@pytest.fixture(scope="module")
def crawl(api: Api) -> Iterator[str]:
    links = tuple(f"/{name}" for name in ("gone", "old", "same", "copy", "broken"))
    pages = {
        "/": article("home", links).replace("<title>home", f"<title>{html.escape(EVIL)}"),
        "/old": redirect("/same", 301),
        "/same": article("twice"),
        "/copy": article("twice"),
        "/broken": Page(EVIL, 500),
        **{f"/{number}": article(str(number), ("/gone",)) for number in range(8)},
    }
    pages["/same"] = article("twice", tuple(f"/{number}" for number in range(8)))
    pages["/copy"] = pages["/same"]
    with Site(pages).serve() as site:
        yield api.crawled(site.url("/"), max_retries=0)


def shown(api: Api, path: str, status: int = 200) -> str:
    answer = api.request("GET", ROOT + path)
    assert answer.status_code == status, answer.text
    assert "<script>alert" not in answer.text
    text: str = answer.text
    return text


def whole(api: Api, path: str) -> str:
    """The page, when the report is made."""
    found: str = wait_for(lambda: text if "being made" not in (text := shown(api, path)) else None, "the report")
    return found


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("broken-links", ("/gone", "http_4xx", "9 pages", "and 4 more", "/broken", "http_5xx")),
        ("redirects", ("/old", "301", "/same", "permanent, ends as page")),
        ("duplicates", ("/same", "/copy", "twice")),
        ("errors", ("http_4xx", "404", "http_5xx", "500", "/gone")),
        ("slow", ("Half of them within", "The slowest", "The largest", "/same")),
    ],
)
def test_a_report_is_what_the_record_says(api: Api, crawl: str, kind: str, told: tuple[str, ...]) -> None:
    text = whole(api, f"/crawls/{crawl}/reports?kind={kind}")
    assert [one for one in told if one not in text] == []
    found = api.get(f"/crawl/{crawl}/reports/{kind}")
    assert f"<small>{found['count']}</small>" in text
    assert f"/api/v1/crawl/{crawl}/reports/{kind}?format=csv&amp;run=0" in text


def test_the_file_has_all_of_it(api: Api, crawl: str) -> None:
    answer = api.request("GET", f"/crawl/{crawl}/reports/broken-links?format=csv&limit=1")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == f'attachment; filename="{crawl}-broken-links.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sum(row["url"].endswith("/gone") for row in rows) == 9
    assert any(row["page_title"] == EVIL for row in rows)


def test_while_it_is_made_the_page_says_so(api: Api, crawl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_PATIENCE_SECONDS", 0)
    monkeypatch.setattr(reporting, "_MADE", Memory(1))
    answer = api.request("GET", f"{ROOT}/crawls/{crawl}/reports?kind=errors")
    assert "is being made" in answer.text and answer.headers["refresh"] == "1"
    assert "http_5xx" in whole(api, f"/crawls/{crawl}/reports?kind=errors")


def test_where_nothing_is_wrong_it_says_so(api: Api) -> None:
    with Site({"/": article("home")}).serve() as site:
        crawl = api.crawled(site.url("/"))
    for kind in REPORTS:
        text = whole(api, f"/crawls/{crawl}/reports?kind={kind}")
        assert ("There are none" in text) == (kind != "slow")


def test_what_is_not_there(api: Api, crawl: str) -> None:
    assert "There is no report" in shown(api, f"/crawls/{crawl}/reports?kind=weather", 404)
    assert "There is no run" in shown(api, f"/crawls/{crawl}/reports?run=x", 404)
    assert 'role="alert"' in shown(api, f"/crawls/{crawl}/reports?run=77", 404)
    assert 'role="alert"' in shown(api, f"/crawls/{crawl}/reports?run=77", 404), "the same again"
    assert 'role="alert"' in shown(api, f"/crawls/{api.make('http://new.example/')}/reports", 409)
    assert 'role="alert"' in shown(api, "/crawls/nothing/reports", 404)
