"""Reports on small sites: what they say to people, to machines and to spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any, cast

import pytest
from tests.flow.crawling import Home, page, path_of

from inchworm.app.read.reports import REPORTS
from inchworm.errors import Unknown, WrongUse
from inchworm.rules.words.failures import KINDS
from inchworm.rules.words.json_form import json_object
from inchworm.testing import Page, Site, redirect

SITE: dict[str, Any] = {
    "/": page("start", "/a", "/b", "/gone", "/old", "/loop", "/far0", "/slow"),
    "/a": page("=HYPERLINK(A)", "/gone", "/broken", "/old"),
    "/b": page("b", "/gone", "/copy", "/to-gone"),
    "/copy": page("b", "/gone", "/copy", "/to-gone"),
    "/broken": Page("oops", 500),
    "/old": redirect("/older", 301),
    "/older": redirect("/a", 302),
    "/to-gone": redirect("/gone", 301),
    "/loop": redirect("/loop2"),
    "/loop2": redirect("/loop"),
    **{f"/far{n}": redirect(f"/far{n + 1}") for n in range(30)},
    "/slow": Page(page("slow", body="<p>long</p>" * 500), delay=0.4),
}


@pytest.fixture
def crawled(home: Home) -> Home:
    with Site(SITE).serve() as served:
        home.crawl(served.url("/"), max_retries=0)
    return home


def rows(home: Home, name: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(home, name, **options)["rows"]
    return found


def report(home: Home, name: str, **options: Any) -> dict[str, Any]:
    """A report as JSON has it."""
    return cast(dict[str, Any], json_object(home.app.reports.one(home.word, name, **options)))


def table(home: Home, *arguments: str) -> list[dict[str, str]]:
    out = io.StringIO(home.cli("report", home.word, *arguments, "--csv").stdout, newline="")
    return list(csv.DictReader(out))


def test_broken_links(crawled: Home) -> None:
    found = {path_of(one["url"]): one for one in rows(crawled, "broken-links")}
    assert set(found) == {"/gone", "/broken", "/loop2"} | {path for path in found if path.startswith("/far")}
    gone = found["/gone"]
    assert (gone["status"], gone["kind"], gone["pages"]) == (404, "http_4xx", 6)
    direct = [(path_of(page["url"]), page["title"]) for page in gone["linked_from"] if not page["through"]]
    assert direct == [("/", "start"), ("/a", "=HYPERLINK(A)"), ("/b", "b"), ("/copy", "b")]
    assert [path_of(page["through"]) for page in gone["linked_from"] if page["through"]] == ["/to-gone", "/to-gone"]
    assert (found["/broken"]["status"], found["/broken"]["kind"]) == (500, "http_5xx")
    assert [path_of(page["url"]) for page in found["/loop2"]["linked_from"]] == ["/"]


def test_redirects(crawled: Home) -> None:
    found = {path_of(one["url"]): one for one in rows(crawled, "redirects")}
    old = found["/old"]
    assert [(path_of(hop["url"]), hop["status"]) for hop in old["hops"]] == [("/old", 301), ("/older", 302)]
    assert (path_of(old["final_url"]), old["final_status"], old["final_outcome"]) == ("/a", 200, "page")
    assert (old["permanent"], old["trouble"], old["pages"]) == (False, None, 2)
    assert found["/to-gone"]["permanent"]
    assert found["/to-gone"]["final_outcome"] == "http_4xx"
    assert found["/loop"]["trouble"] == "redirect_loop"
    assert found["/far0"]["trouble"] == "too_many_redirects"
    assert len(found["/far0"]["hops"]) == 10
    assert "/older" not in found, "it is a part of another chain"


def test_duplicates(crawled: Home) -> None:
    (one,) = rows(crawled, "duplicates")
    assert [path_of(url) for url in one["alternate_urls"]] == ["/b", "/copy"]
    assert (path_of(one["url"]), one["title"], one["count"]) == ("/b", "b", 2)


def test_errors(crawled: Home) -> None:
    found = report(crawled, "errors")
    kinds = {(one["kind"], one["status"]): one for one in found["rows"]}
    assert set(kinds) == {("http_4xx", 404), ("http_5xx", 500), ("redirect_loop", 302), ("too_many_redirects", 302)}
    assert found["count"] == sum(one["count"] for one in found["rows"]) == 4
    assert kinds[("http_5xx", 500)]["meaning"].startswith(KINDS["http_5xx"].sentence)
    assert [path_of(url) for url in kinds[("http_5xx", 500)]["examples"]] == ["/broken"]


def test_slow(crawled: Home) -> None:
    found = report(crawled, "slow", limit=2)
    assert found["count"] == 5
    assert path_of(found["rows"][0]["url"]) == "/slow"
    assert found["rows"][0]["millis"] >= 400
    assert path_of(found["largest"][0]["url"]) == "/slow"
    assert list(found["percentiles"]) == ["p50", "p90", "p99"]
    assert found["percentiles"]["p99"] == found["rows"][0]["millis"]
    assert len(found["rows"]) == len(found["largest"]) == 2


@pytest.mark.parametrize("name", REPORTS)
def test_people_get_lines_that_fit(crawled: Home, name: str) -> None:
    shown = crawled.cli("report", crawled.word, name).stdout
    lines = shown.splitlines()
    assert all(len(line) <= 80 for line in lines), max(lines, key=len)
    assert f"in run 0 of {crawled.word}" in lines[0]
    assert len(lines) > 3


@pytest.mark.parametrize("name", REPORTS)
def test_machines_get_json_and_spreadsheets_tables(crawled: Home, name: str) -> None:
    found = crawled.ask("report", crawled.word, name)
    assert (found["report"], found["run"], found["crawl_id"]) == (name, 0, crawled.word)
    assert found["count"] and found["rows"]
    lines, columns = table(crawled, name), crawled.app.reports.one(crawled.word, name).columns
    assert lines and all(tuple(line) == columns for line in lines)
    crawled.cli("report", crawled.word, name, "--csv", "--json", code=2)
    crawled.cli("report", crawled.word, name, "--limit", "0", code=2)


def test_tables_have_a_row_for_each_page_and_no_formulas(crawled: Home) -> None:
    lines = [line for line in table(crawled, "broken-links") if path_of(line["url"]) == "/gone"]
    assert [path_of(line["page"]) for line in lines] == ["/", "/a", "/b", "/copy", "/b", "/copy"]
    assert [line["page_title"] for line in lines][:2] == ["start", "'=HYPERLINK(A)"]
    assert {(line["status"], line["kind"], line["pages"]) for line in lines} == {("404", "http_4xx", "6")}
    old = next(line for line in table(crawled, "redirects") if path_of(line["url"]) == "/old")
    assert (old["statuses"], old["permanent"], old["trouble"]) == ("301 302", "no", "")
    assert [path_of(line["url"]) for line in table(crawled, "duplicates")] == ["/b", "/copy"]


def test_limits_shorten_lists_but_not_counts(crawled: Home) -> None:
    whole = crawled.ask("report", crawled.word, "broken-links")
    assert whole["count"] == len(whole["rows"]) > 2
    short = crawled.ask("report", crawled.word, "broken-links", "--limit", "1")
    assert (short["count"], short["rows"]) == (whole["count"], whole["rows"][:1])
    assert "more; --limit" in crawled.cli("report", crawled.word, "broken-links", "--limit", "1").stdout


def test_each_run_has_reports_of_its_own(home: Home) -> None:
    site: dict[str, Any] = {"/": page("start", "/x", "/y"), "/x": page("x"), "/y": page("y")}
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
        site["/x"] = Page("no more", 410)
        home.crawl(served.url("/"))
    assert rows(home, "broken-links", number=0) == []
    (one,) = rows(home, "broken-links")
    assert (path_of(one["url"]), one["kind"], one["status"], one["pages"]) == ("/x", "deleted", 410, 1)
    (error,) = rows(home, "errors")
    assert (error["kind"], error["status"], error["count"]) == ("deleted", 410, 1)
    assert "gone" in error["meaning"]
    assert home.cli("report", home.word, "errors", "--run", "0").stdout == f"0 errors in run 0 of {home.word}\n"
    with pytest.raises(Unknown):
        home.app.reports.one(home.word, "errors", 7)
    with pytest.raises(WrongUse):
        home.app.reports.one(home.word, "weather")


def test_hostile_titles_and_addresses_steer_nothing(home: Home) -> None:
    title = "\x1b[31mred \u202e" + "very " * 100
    site = {"/": f"<title>{title}</title><main><a href='/{'x' * 300}\u202e?q=<b>'>x</a></main>"}
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    for name in REPORTS:
        for line in home.cli("report", home.word, name).stdout.splitlines():
            assert line.isprintable()
            assert len(line) <= 80


def test_while_it_is_paused(home: Home) -> None:
    with Site(SITE).serve() as served:
        home.crawl(served.url("/"), budget=3, max_retries=0)
        for name in REPORTS:
            assert home.ask("report", home.word, name)["run"] == 0
