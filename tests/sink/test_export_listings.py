"""Exports by URL: fingerprints and sitemaps."""

from __future__ import annotations

import io
import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.rules.web import sitemap as reading
from inchworm.sink import export, listing

VISIT = {
    "url": "https://a.test/x", "request_url": "https://a.test/x/", "kind": "page", "outcome": "page", "status": 200,
    "at_ms": 1_767_225_600_123, "size": 12, "content_type": "text/html", "etag": '"1"',
    "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT", "text_hash": "ab", "payload": "cd", "title": "Title",
    "canonical": None, "meta": {},
}  # fmt: skip


# Fingerprints


def fingerprints(*visits: dict[str, object]) -> dict[str, object]:
    out = io.BytesIO()
    count = export.fingerprints(iter(visits), out)
    found = json.loads(out.getvalue())
    assert len(found) == count
    return found


def test_a_fingerprint():
    assert fingerprints(VISIT) == {
        "https://a.test/x": {
            "url": "https://a.test/x",
            "content_hash": "ab",
            "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            "etag": '"1"',
            "file_size": 12,
            "crawled_at": "2026-01-01T00:00:00.123Z",
            "metadata": {"content_type": "text/html", "title": "Title"},
        }
    }


@pytest.mark.parametrize(
    ("outcome", "count"),
    [("page", 1), ("duplicate", 1), ("resource", 1), ("redirect", 0), ("failed", 0), ("retry", 0), ("control", 0)],
)
def test_only_what_was_fetched_has_a_fingerprint(outcome, count):
    assert len(fingerprints({**VISIT, "outcome": outcome})) == count


def test_a_resource_is_told_apart_by_its_bytes():
    (found,) = fingerprints({**VISIT, "outcome": "resource", "text_hash": None}).values()
    assert found["content_hash"] == "cd"


def test_many_are_one_object_in_the_order_of_record():
    visits = [{**VISIT, "url": f"https://a.test/{number}"} for number in (3, 1, 2)]
    assert list(fingerprints(*visits)) == ["https://a.test/3", "https://a.test/1", "https://a.test/2"]
    assert fingerprints() == {}


@effort(max_examples=100, database=None)
@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_in_a_fingerprint(title, etag):
    (found,) = fingerprints({**VISIT, "title": title, "etag": etag}).values()
    assert found["metadata"]["title"] == title.encode("utf-8", "replace").decode()


# Sitemaps

SPACE = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}


def entries(data: bytes) -> list[tuple[str | None, str | None]]:
    root = ElementTree.fromstring(data)
    assert root.tag == f"{{{SPACE['s']}}}urlset"
    return [(one.findtext("s:loc", None, SPACE), one.findtext("s:lastmod", None, SPACE)) for one in root]


def sitemap(*visits: dict[str, object]) -> list[tuple[str | None, str | None]]:
    out = io.BytesIO()
    count = export.sitemap(iter(visits), out)
    found = entries(out.getvalue())
    assert len(found) == count
    return found


def test_a_page_as_it_was_requested():
    assert sitemap(VISIT) == [("https://a.test/x/", "2026-01-01T00:00:00Z")]


LEFT_OUT = {
    "duplicate": {"outcome": "duplicate"},
    "failed": {"outcome": "failed"},
    "redirect": {"outcome": "redirect"},
    "resource": {"outcome": "resource", "kind": "resource"},
    "resource that is a page": {"kind": "resource"},
    "not 200": {"status": 203},
    "noindex": {"meta": {"noindex": True}},
    "canonical elsewhere": {"canonical": "https://a.test/y"},
    "canonical on another host": {"canonical": "https://b.test/x"},
    "canonical that is no address": {"canonical": "mailto:x"},
    "too long": {"request_url": "https://a.test/" + "x" * 2_040},
}


@pytest.mark.parametrize("changes", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_does_not_want_to_be_found(changes):
    assert sitemap({**VISIT, **changes}) == []


SELF = ["https://a.test/x", "https://a.test/x/", "https://A.test/x/#top", "https://a.test/x?utm_source=y", None, ""]


@pytest.mark.parametrize("canonical", SELF)
def test_a_page_may_name_itself(canonical):
    assert len(sitemap({**VISIT, "canonical": canonical})) == 1


def test_a_page_may_name_itself_where_a_run_keeps_what_others_drop():
    visit = {**VISIT, "url": "https://a.test/x?sid=1&utm_id=2", "request_url": "https://a.test/x?sid=1&utm_id=2"}
    assert len(sitemap({**visit, "canonical": "https://a.test/x?sid=1&utm_id=2"})) == 1


DATES = {
    "Sun, 06 Nov 1994 08:49:37 GMT": "1994-11-06T08:49:37Z",
    "Sunday, 06-Nov-94 08:49:37 GMT": "1994-11-06T08:49:37Z",
    "Sun Nov  6 08:49:37 1994": "1994-11-06T08:49:37Z",
    "Sun, 06 Nov 1994 08:49:37 +0200": "1994-11-06T06:49:37Z",
    "Fri, 02 Jan 2026 00:00:00 GMT": "2026-01-02T00:00:00Z",
    "Sat, 03 Jan 2026 00:00:00 GMT": None,
    "Thu, 01 Jan 1970 00:00:00 GMT": None,
    "Sun, 06 Nov 9999 08:49:37 GMT": None,
    "Sun, 31 Feb 2021 00:00:00 GMT": None,
    "Sun, 06 Nov 1994 25:49:37 GMT": None,
    "Sun, 06 Nov 1994 08:49:37 +9999999": None,
    "2020-01-01": None,
    "0": None,
    "-1": None,
    "never": None,
    "<script>": None,
    "Mon, \x00": None,
    "": None,
    None: None,
}


@pytest.mark.parametrize(("said", "lastmod"), DATES.items(), ids=range(len(DATES)))
def test_dates_that_can_be_believed(said, lastmod):
    assert sitemap({**VISIT, "last_modified": said}) == [("https://a.test/x/", lastmod)]


@effort(max_examples=200, database=None)
@given(st.text(max_size=40) | st.text("SunMoJa,: 0123456789+-GMT", max_size=40).map(lambda text: "Sun, " + text))
def test_no_date_breaks_it(said):
    ((_, lastmod),) = sitemap({**VISIT, "last_modified": said})
    assert lastmod is None or "1990-01-01" <= lastmod <= "2026-01-02T00:00:01Z"


@pytest.mark.parametrize(
    ("url", "loc"),
    [
        ("https://a.test/?a=1&b=<2>", "https://a.test/?a=1&b=<2>"),
        ("https://a.test/'\"", "https://a.test/'\""),
        ("https://a.test/]]>", "https://a.test/]]>"),
        ("https://a.test/ü\x00\ud800", "https://a.test/%C3%BC%00?"),
        ("https://a.test/%41%zz", "https://a.test/%41%zz"),
    ],
)
def test_any_address_can_be_written(url, loc):
    assert sitemap({**VISIT, "request_url": url}) == [(loc, "2026-01-01T00:00:00Z")]


def pages(count: int) -> list[dict[str, object]]:
    return [{**VISIT, "request_url": f"https://a.test/{number}", "last_modified": None} for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 6, 7])
def test_a_folder_holds_as_many_files_as_it_takes(tmp_path, monkeypatch, count):
    monkeypatch.setattr(listing, "MAX_URLS", 3)
    assert export.sitemaps(iter(pages(count)), tmp_path / "out") == count
    files = max(1, -(-count // 3))
    names = [f"sitemap-{number}.xml" for number in range(1, files + 1)]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*names, "sitemap.xml"])
    found = [loc for name in names for loc, _ in entries((tmp_path / "out" / name).read_bytes())]
    assert found == [f"https://a.test/{number}" for number in range(count)]
    root = "https://a.test/" if count else "/"
    assert index(tmp_path / "out") == [root + name for name in names]


def index(folder: Path) -> list[str | None]:
    root = ElementTree.fromstring((folder / "sitemap.xml").read_bytes())
    assert root.tag == f"{{{SPACE['s']}}}sitemapindex"
    return [one.findtext("s:loc", None, SPACE) for one in root]


def test_files_are_bounded_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_BYTES", 400)
    assert export.sitemaps(pages(20), tmp_path) == 20
    sizes = [path.stat().st_size for path in tmp_path.glob("sitemap-*.xml")]
    assert len(sizes) > 2
    assert max(sizes) <= 400


def test_a_folder_may_lie_anywhere_on_the_web(tmp_path):
    export.sitemaps(pages(1), tmp_path, "https://cdn.test/maps?a&b")
    assert index(tmp_path) == ["https://cdn.test/maps?a&b/sitemap-1.xml"]


def test_too_many_for_one_file_is_said(monkeypatch):
    monkeypatch.setattr(listing, "MAX_URLS", 3)
    out = io.BytesIO()
    assert export.sitemap(pages(3), out) == 3
    with pytest.raises(WrongUse) as raised:
        export.sitemap(pages(4), io.BytesIO())
    assert "folder" in raised.value.hint


def test_we_can_read_what_we_write():
    out = io.BytesIO()
    export.sitemap([*pages(3), VISIT], out)
    found = reading.read(out.getvalue(), "https://a.test/sitemap.xml", date(2026, 1, 2))
    assert [page.url for page in found.pages] == [
        "https://a.test/0",
        "https://a.test/1",
        "https://a.test/2",
        VISIT["request_url"],
    ]
