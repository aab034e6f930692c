"""Exports: URLs, JSON lines and one WARC file."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from inchworm.archive.warc import WarcWriter
from inchworm.errors import InchwormError
from inchworm.model import Record
from inchworm.sink import export

VISIT = {
    "run_id": 1, "seq": 7, "url": "http://a.test/x", "request_url": "http://a.test/x/", "outcome": "page",
    "failure": None, "message": None, "status": 200, "at_ms": 1_767_225_600_123, "millis": 250, "size": 12,
    "content_type": "text/html", "etag": '"1"', "last_modified": None, "text_hash": "ab", "payload": "cd",
    "title": "Grün\u2028\n", "language": "de", "canonical": None, "meta": {"author": "A"}, "redirect": None,
    "source": "spider", "depth": 2, "hops": 0, "found_on": "http://a.test/", "links": 3, "file": "x.warc.gz",
    "offset": 10, "length": 20,
}  # fmt: skip


def alternates(text_hash: str) -> list[str]:
    return [f"like {text_hash}"]


def lines(*visits: dict[str, object]) -> list[dict[str, object]]:
    out = io.BytesIO()
    assert export.jsonl(visits, alternates, out) == len(visits)
    assert out.getvalue().count(b"\n") == len(visits)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_urls_are_one_per_line():
    out = io.BytesIO()
    assert export.urls(iter(["http://a.test/", "http://b.test/?x=1"]), out) == 2
    assert out.getvalue() == b"http://a.test/\nhttp://b.test/?x=1\n"


def test_nothing_is_exported_as_nothing(tmp_path):
    out = io.BytesIO()
    assert (export.urls([], out), export.jsonl([], alternates, out), export.warc(tmp_path, [], out)) == (0, 0, 0)
    assert out.getvalue() == b""


def test_a_visit_is_one_json_object_with_names_for_people():
    (line,) = lines(VISIT)
    assert line == {
        "url": "http://a.test/x", "request_url": "http://a.test/x/", "seq": 7, "outcome": "page", "failure": None,
        "message": None, "status": 200, "fetched_at": "2026-01-01T00:00:00.123Z", "seconds": 0.25, "bytes": 12,
        "content_type": "text/html", "etag": '"1"', "last_modified": None, "content_hash": "ab", "payload_hash": "cd",
        "title": "Grün\u2028\n", "language": "de", "canonical": None, "meta": {"author": "A"}, "redirect": None,
        "source": "spider", "depth": 2, "hops": 0, "found_on": "http://a.test/", "links": 3,
        "alternate_urls": ["like ab"], "archive": {"file": "x.warc.gz", "offset": 10, "length": 20},
    }  # fmt: skip


@pytest.mark.parametrize("outcome", ["duplicate", "redirect", "failed", "retry", "resource"])
def test_only_the_page_that_owns_a_content_lists_its_urls(outcome):
    (line,) = lines({**VISIT, "outcome": outcome})
    assert line["alternate_urls"] == []


def test_visits_keep_their_order_and_any_text_can_be_written():
    titles = ["a", "\ud800 alone", "\x00\x1b", '"quoted"', "😀"]
    found = lines(*({**VISIT, "seq": seq, "title": title} for seq, title in enumerate(titles)))
    assert [line["seq"] for line in found] == [0, 1, 2, 3, 4]
    assert [line["title"] for line in found] == ["a", "? alone", "\x00\x1b", '"quoted"', "😀"]


@effort(max_examples=200, deadline=None, database=None)
@given(st.integers(0, 4_102_444_800_000))
def test_times_are_exact_to_the_millisecond(at_ms):
    text = export.iso(at_ms)
    assert text.endswith("Z")
    moment = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    assert round(moment.total_seconds() * 1000) == at_ms


@pytest.fixture
def archive(tmp_path):
    """Two files with two records each; of the second file only one record is committed."""
    ranges = []
    for name, committed in (("one", 2), ("two", 1)):
        writer = WarcWriter(tmp_path, name, {"software": "a test"})
        record = Record("http://a.test/", b"HTTP/1.1 200 OK\r\n\r\n", name.encode(), bytes(32))
        spots = [writer.append(record, 0, None) for _ in range(2)]
        writer.sync()
        writer.close()
        last = spots[committed - 1]
        ranges.append((last.file, last.offset + last.length))
    return tmp_path, ranges


def test_a_warc_export_is_one_valid_file_of_what_was_committed(archive):
    folder, ranges = archive
    out = io.BytesIO()
    assert export.warc(folder, iter(ranges), out) == 2
    assert len(out.getvalue()) == sum(length for _, length in ranges)
    out.seek(0)
    found = [record.raw_stream.read() for record in ArchiveIterator(out) if record.rec_type == "response"]
    assert found == [b"one", b"one", b"two"]


@pytest.mark.parametrize("left", [b"", b"short"], ids=["empty", "short"])
def test_an_archive_that_lost_bytes_is_never_exported_silently(archive, left):
    folder, ranges = archive
    (folder / ranges[0][0]).write_bytes(left)
    with pytest.raises(InchwormError) as raised:
        export.warc(folder, ranges, io.BytesIO())
    assert ranges[0][0] in raised.value.message
