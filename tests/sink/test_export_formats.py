"""Exports: which there are, URLs and JSON lines."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from tests.sink.pages import pages_of

from inchworm.rules.words.times import iso
from inchworm.sink import export
from inchworm.sink.columns import KNOWN, USUAL, VisitLine, visit_line
from inchworm.sink.export import FORMATS, Target

VISIT = {
    "run_id": 1, "seq": 7, "url": "http://a.test/x", "request_url": "http://a.test/x/", "outcome": "page",
    "failure": None, "message": None, "status": 200, "at_ms": 1_767_225_600_123, "millis": 250, "size": 12,
    "content_type": "text/html", "etag": '"1"', "last_modified": None, "text_hash": "ab", "payload": "cd",
    "title": "Grün\u2028\n", "language": "de", "canonical": None, "meta": {"author": "A"}, "redirect": None,
    "source": "spider", "depth": 2, "hops": 0, "found_on": "http://a.test/", "links": 3, "file": "x.warc.gz",
    "offset": 10, "length": 20, "run": 3, "alternate_urls": ["http://a.test/x"],
}  # fmt: skip


def lines(*visits: dict[str, object]) -> list[dict[str, object]]:
    out = io.BytesIO()
    assert export.jsonl(pages_of(visits), USUAL, out) == len(visits)
    assert out.getvalue().count(b"\n") == len(visits)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_urls_are_one_per_line():
    out = io.BytesIO()
    assert export.urls(iter(["http://a.test/", "http://b.test/?x=1"]), out) == 2
    assert out.getvalue() == b"http://a.test/\nhttp://b.test/?x=1\n"


def test_nothing_is_exported_as_nothing():
    out = io.BytesIO()
    assert (export.urls([], out), export.jsonl([], USUAL, out)) == (0, 0)
    assert out.getvalue() == b""


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_a_function_that_says_what_it_writes_to(name):
    assert callable(getattr(export, name))
    assert FORMATS[name].target in Target
    assert FORMATS[name].thing


def test_a_visit_is_one_json_object_with_names_for_people():
    (line,) = lines(VISIT)
    assert line == {
        "url": "http://a.test/x/", "canonical_url": "http://a.test/x", "run": 3, "seq": 7, "outcome": "page",
        "failure": None,
        "message": None, "change": None, "note": None, "status": 200,
        "fetched_at": "2026-01-01T00:00:00.123Z", "seconds": 0.25, "bytes": 12,
        "content_type": "text/html", "etag": '"1"', "last_modified": None, "content_hash": "ab", "payload_hash": "cd",
        "title": "Grün", "full_title": "Grün\u2028\n", "language": "de",
        "author": "A", "published": None, "modified": None, "kind": None, "confidence": None,
        "description": None, "canonical": None, "meta": {"author": "A"}, "redirect": None,
        "source": "spider", "depth": 2, "hops": 0, "found_on": "http://a.test/", "link_count": 3, "alternate_of": None,
        "alternate_urls": ["http://a.test/x"], "text": "The text of a page.",
        "archive": {"file": "x.warc.gz", "offset": 10, "length": 20},
    }  # fmt: skip


def test_a_visit_tells_the_columns_that_its_line_has_fields_for():
    line = visit_line({**VISIT, "session": 1, "kind": "page", "missing": 0, "millis": None, "hops": 4})
    assert (line.canonical_url, line.seconds, line.hops, line.archive.offset) == ("http://a.test/x", None, 4, 10)
    columns = {column.name.partition(".")[0] for column in KNOWN}
    assert columns - set(VisitLine._fields) >= {"run", "alternate_of", "alternate_urls"}
    # Of a visit `kind` is what it asked for, of a page what the page is.
    assert set(VisitLine._fields) - columns == {"session", "missing"}


def test_the_change_since_the_last_run_is_told():
    (line,) = lines({**VISIT, "change": "modified", "note": '"15.3" → "15.4"'})
    assert (line["change"], line["note"]) == ("modified", '"15.3" → "15.4"')


@pytest.mark.parametrize("outcome", ["redirect", "failed", "retry", "deleted"])
def test_what_is_no_page_has_no_text(outcome):
    (line,) = lines({**VISIT, "outcome": outcome})
    assert line["text"] is None


def test_visits_keep_their_order_and_any_text_can_be_written():
    titles = ["a", "\ud800 alone", "\x00\x1b", '"quoted"', "😀"]
    found = lines(*({**VISIT, "seq": seq, "title": title} for seq, title in enumerate(titles)))
    assert [line["seq"] for line in found] == [0, 1, 2, 3, 4]
    assert [line["title"] for line in found] == ["a", "? alone", "\x00\x1b", '"quoted"', "😀"]


@effort(max_examples=200, database=None)
@given(st.integers(0, 4_102_444_800_000))
def test_times_are_exact_to_the_millisecond(at_ms):
    text = iso(at_ms)
    assert text.endswith("Z")
    moment = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    assert round(moment.total_seconds() * 1000) == at_ms
