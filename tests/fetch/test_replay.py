"""Reading WARC files that others wrote, and answering requests from them."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.fetch.server import ok, send, serving
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from inchworm.archive.reader import record_at, records
from inchworm.errors import WrongUse
from inchworm.fetch.replay import ReplayFetcher
from inchworm.model import Failure, Reply, Request, Response

NOISE = random.Random(2).randbytes(3_000_000)
ORIGINAL_DATE = "2026-01-01T00:00:00Z"
CHUNKED = b"4\r\nWiki\r\n6;x=y\r\npedia \r\n3\r\nfor\r\n0\r\n\r\n"

Field = tuple[str, str]


class Writer(WARCWriter):  # type: ignore[misc]
    """warcio, without the temporary files that it does not close."""

    def _create_temp_file(self) -> io.BytesIO:
        return io.BytesIO()


class Written:
    """A WARC file made by warcio, record by record."""

    def __init__(self, path: Path, zipped: bool) -> None:
        self.path = path
        self._file = path.open("wb")
        self._writer = Writer(self._file, gzip=zipped)

    def add(
        self,
        url: str,
        body: bytes,
        *fields: Field,
        status: str = "200 OK",
        warc: Iterable[Field] = (),
        kind: str = "response",
    ) -> None:
        head = StatusAndHeaders(status, list(fields), protocol="HTTP/1.1")
        headers = {"WARC-Date": ORIGINAL_DATE, **dict(warc)}
        self._writer.write_record(
            self._writer.create_warc_record(url, kind, io.BytesIO(body), http_headers=head, warc_headers_dict=headers)
        )

    def add_info(self) -> None:
        self._writer.write_record(self._writer.create_warcinfo_record(self.path.name, {"software": "a test"}))

    def add_revisit(self, url: str, digest: str, refers_to: str, date: str, head: StatusAndHeaders | None) -> None:
        self._writer.write_record(self._writer.create_revisit_record(url, digest, refers_to, date, http_headers=head))

    def close(self) -> Path:
        self._file.close()
        return self.path


@pytest.fixture(params=["warc", "warc.gz"])
def warc(request, tmp_path):
    written = Written(tmp_path / f"site.{request.param}", request.param.endswith("gz"))
    written.add_info()
    yield written
    written.close()


def replay(paths: Iterable[Path], url: str, limit: int = 0) -> Reply:
    return asyncio.run(ReplayFetcher(list(paths), records, record_at).fetch(Request(url, (), limit)))


def good(reply: Reply) -> Response:
    assert isinstance(reply, Response), reply
    return reply


def bad(reply: Reply) -> Failure:
    assert isinstance(reply, Failure), reply
    return reply


# Reading


def test_records_lie_where_warcio_finds_them(warc):
    for number, size in enumerate((0, 10, 300_000, 3_000_000, 1)):
        warc.add(f"http://h.test/{number}", NOISE[:size])
    path = warc.close()
    found = list(records(path))
    with path.open("rb") as file:
        reference = ArchiveIterator(file, no_record_parse=True)
        expected = [
            (record.rec_headers.get_header("WARC-Record-ID"), record.content_stream().read(), offset(reference))
            for record in reference
        ]
    assert [(r.headers["warc-record-id"], r.content, r.offset) for r in found] == expected
    assert sum(record.length for record in found) == path.stat().st_size
    assert [record_at(path, record.offset) for record in found] == found


def offset(reference: ArchiveIterator) -> int:
    reference.get_record_length()  # which is what makes it read on to the end of the record
    return int(reference.get_record_offset())


def test_f6_a_torn_tail_takes_nothing_with_it(warc):
    for number in range(3):
        warc.add(f"http://h.test/{number}", b"text %d" % number)
    path = warc.close()
    whole = path.read_bytes()
    found = list(records(path))
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        complete = [record for record in found if record.offset + record.length <= end]
        left = list(records(path))
        assert [record.content for record in left[: len(complete)]] == [r.content for r in complete]
        assert len(left) <= len(complete) + 1


def test_f6_damage_in_the_middle_is_told_and_costs_as_little_as_possible(warc):
    for number in range(3):
        warc.add(f"http://h.test/{number}", b"text %d" % number)
    path = warc.close()
    whole = bytearray(path.read_bytes())
    second = list(records(path))[1].offset
    whole[second : second + 4] = b"junk"
    path.write_bytes(whole)
    damaged = []
    found = [record.content for record in records(path, damaged.append)]
    is_packed = path.suffix == ".gz"
    assert len(found) == (3 if is_packed else 1) and damaged == [second]
    assert [content[-1:] for content in found[1:]] == ([b"1", b"2"] if is_packed else [])
    with pytest.raises(WrongUse):
        record_at(path, second)


def test_a_record_that_is_not_what_its_digest_says_is_no_record(tmp_path):
    content = b"HTTP/1.1 200 OK\r\n\r\nhello"
    for name, said in (
        ("sha1", base64.b32encode(hashlib.sha1(content).digest()).decode()),
        ("sha256", hashlib.sha256(content).hexdigest()),
        ("new-one", "of which we know nothing"),
        ("sha1", "not one at all"),
    ):
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Block-Digest: {name}:{said}\r\nContent-Length: {len(content)}"
        path = tmp_path / "one.warc"
        path.write_bytes(head.encode() + b"\r\n\r\n" + content + b"\r\n\r\n")
        assert record_at(path, 0).content == content
        path.write_bytes(path.read_bytes().replace(b"hello", b"hullo"))
        if name == "new-one" or said.startswith("not"):
            record_at(path, 0)
        else:
            with pytest.raises(WrongUse):
                record_at(path, 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.html", b"<html>"),
        ("page.gz", gzip.compress(b"<html>" * 100, mtime=0)),
        ("image.warc", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        ("whole.warc.gz", gzip.compress(b"WARC/1.0\r\nContent-Length: 1\r\n\r\nx\r\n\r\n" * 2, mtime=0)),
    ],
)
def test_what_is_not_a_warc_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(WrongUse, match=name):
        ReplayFetcher([path], records, record_at)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(WrongUse, match=r"missing\.warc"):
        ReplayFetcher([tmp_path / "missing.warc"], records, record_at)


def test_an_empty_file_is_an_archive_of_nothing(tmp_path):
    (tmp_path / "empty.warc.gz").touch()
    assert bad(replay([tmp_path / "empty.warc.gz"], "http://h.test/")).kind == "not_in_archive"


def test_a_length_that_lies_costs_no_memory(tmp_path):
    path = tmp_path / "lies.warc"
    path.write_bytes(b"WARC/1.0\r\nContent-Length: 1152921504606846976\r\n\r\nabc")
    assert list(records(path)) == []


def test_no_record_at_a_place(tmp_path):
    path = tmp_path / "one.warc"
    path.write_bytes(b"WARC/1.0\r\nContent-Length: 1\r\n\r\nx\r\n\r\n")
    with pytest.raises(WrongUse, match=r"one\.warc"):
        record_at(path, path.stat().st_size)


# Replaying


def test_an_answer_comes_back_as_it_went_in(warc):
    body = b"<p>hello</p>"
    fields = (("Content-Type", "text/html"), ("X-Two", "a"), ("X-Two", "b"), ("Content-Encoding", "gzip"))
    warc.add("http://h.test/", gzip.compress(body), *fields)
    reply = good(replay([warc.close()], "http://h.test/"))
    assert (reply.status, reply.body, reply.payload) == (200, body, gzip.compress(body))
    assert reply.headers["x-two"] == "a, b"
    assert reply.head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    assert reply.head.endswith(b"\r\n\r\n")


def test_a_url_that_was_not_archived(warc):
    warc.add("http://h.test/", b"x")
    assert bad(replay([warc.close()], "http://h.test/other")).kind == "not_in_archive"


def test_the_last_record_of_a_url_counts(warc, tmp_path):
    warc.add("http://h.test/", b"first")
    warc.add("http://h.test/", b"second")
    later = Written(tmp_path / "later.warc.gz", True)
    later.add("http://h.test/", b"third")
    first, second = warc.close(), later.close()
    assert good(replay([first], "http://h.test/")).body == b"second"
    assert good(replay([first, second], "http://h.test/")).body == b"third"
    assert good(replay([second, first], "http://h.test/")).body == b"second"


def test_urls_are_found_as_written_first_and_by_their_canonical_form_else(warc):
    warc.add("http://h.test/a?x=1&y=2", b"sorted")
    warc.add("http://h.test/dir/", b"slash")
    warc.add("http://h.test/dir", b"no slash")
    path = warc.close()
    assert good(replay([path], "http://h.test/a?y=2&x=1#part")).body == b"sorted"
    assert good(replay([path], "http://h.test/dir/")).body == b"slash"
    assert good(replay([path], "http://h.test/dir")).body == b"no slash"


def test_records_of_other_types_are_no_answers(warc):
    warc.add("http://h.test/", b"x", status="GET / HTTP/1.1", kind="request")
    warc.add("dns:h.test", b"x")
    assert bad(replay([warc.close()], "http://h.test/")).kind == "not_in_archive"


def test_limits_hold_as_they_do_on_the_web(warc):
    warc.add("http://h.test/big", b"x" * 1000)
    warc.add("http://h.test/bomb", gzip.compress(bytes(1_000_000)), ("Content-Encoding", "gzip"))
    warc.add("http://h.test/moved", b"x" * 100, ("Location", "/big"), status="301 Moved")
    path = warc.close()
    assert bad(replay([path], "http://h.test/big", 999)).kind == "too_large"
    assert bad(replay([path], "http://h.test/bomb", 2000)).kind == "too_large"
    moved = good(replay([path], "http://h.test/moved", 2000))
    assert (moved.status, moved.headers["location"], moved.body) == (301, "/big", b"")


def test_chunks_that_are_still_there_are_taken_off(warc):
    warc.add("http://h.test/kept", CHUNKED, ("Transfer-Encoding", "chunked"))
    warc.add("http://h.test/gone", b"<p>Wikipedia for", ("Transfer-Encoding", "chunked"))
    warc.add("http://h.test/text", b"abc\r\ndef", ("Transfer-Encoding", "chunked"))
    warc.add("http://h.test/cut", CHUNKED[:-5], ("Transfer-Encoding", "chunked"))
    path = warc.close()
    kept = good(replay([path], "http://h.test/kept"))
    assert (kept.payload, kept.body) == (b"Wikipedia for", b"Wikipedia for")
    assert b"\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\n" in kept.head
    assert good(replay([path], "http://h.test/gone")).body == b"<p>Wikipedia for"
    assert good(replay([path], "http://h.test/text")).body == b"abc\r\ndef"
    assert bad(replay([path], "http://h.test/cut")).kind == "truncated"


@pytest.mark.parametrize(("reason", "kind"), [("length", "too_large"), ("disconnect", "truncated")])
def test_what_the_archive_cut_is_not_whole(warc, reason, kind):
    warc.add("http://h.test/", b"part", warc=[("WARC-Truncated", reason)])
    warc.add("http://h.test/404", b"part", status="404 Not Found", warc=[("WARC-Truncated", reason)])
    path = warc.close()
    assert bad(replay([path], "http://h.test/")).kind == kind
    assert good(replay([path], "http://h.test/404")).truncated


def test_a_record_without_http_in_it(tmp_path):
    path = tmp_path / "odd.warc"
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.test/\r\nContent-Length: 4\r\n\r\n"
    path.write_bytes(head + b"what\r\n\r\n")
    assert bad(replay([path], "http://h.test/")).kind == "protocol_error"


def test_a_revisit_stands_for_the_record_it_names(warc):
    warc.add("http://h.test/original", b"the text", ("X-Head", "original"))
    head = StatusAndHeaders("200 OK", [("X-Head", "revisit")], protocol="HTTP/1.1")
    warc.add_revisit("http://h.test/copy", "sha1:UNKNOWN", "http://h.test/original", ORIGINAL_DATE, head)
    reply = good(replay([warc.close()], "http://h.test/copy"))
    assert (reply.body, reply.headers["x-head"]) == (b"the text", "revisit")


def test_a_revisit_without_a_name_is_resolved_by_its_digest(warc):
    warc.add("http://h.test/original", b"the text")
    head = StatusAndHeaders("200 OK", [], protocol="HTTP/1.1")
    digest = "sha1:" + base64.b32encode(hashlib.sha1(b"the text").digest()).decode()
    warc.add_revisit("http://h.test/copy", digest, "", "", head)
    assert good(replay([warc.close()], "http://h.test/copy")).body == b"the text"


def test_a_revisit_of_a_304_is_the_page_as_it_was(warc):
    warc.add("http://h.test/", b"the text", ("X-Head", "original"))
    head = StatusAndHeaders("304 Not Modified", [("X-Head", "revisit")], protocol="HTTP/1.1")
    warc.add_revisit("http://h.test/", "sha1:UNKNOWN", "http://h.test/", ORIGINAL_DATE, head)
    reply = good(replay([warc.close()], "http://h.test/"))
    assert (reply.status, reply.body, reply.headers["x-head"]) == (200, b"the text", "original")


def test_a_revisit_of_something_that_is_not_here(warc):
    warc.add_revisit("http://h.test/copy", "sha1:ABC", "http://h.test/elsewhere", ORIGINAL_DATE, None)
    assert bad(replay([warc.close()], "http://h.test/copy")).kind == "not_in_archive"


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
@pytest.mark.parametrize("options", [[], ["--no-warc-compression"]], ids=["gz", "plain"])
def test_files_of_wget(tmp_path, options):
    routes = {
        "/robots.txt": ok(b"", status="404 Not Found"),
        "/page": ok(b"<p>a page</p>", "Content-Type: text/html", "Connection: close"),
        "/chunks": send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED),
        "/moved": ok(b"over there", "Location: /page", status="302 Found"),
    }

    async def scenario() -> dict[str, Reply]:
        async with asyncio.timeout(10), serving(routes) as server:
            urls = [server.url(path) for path in ("/page", "/chunks", "/moved")]
            command = [
                "wget",
                "--no-config",
                "-q",
                "-t1",
                "-T5",
                "--warc-file=out",
                *options,
                "-O/dev/null",
                *urls,
            ]
            wget = await asyncio.create_subprocess_exec(*command, cwd=tmp_path)
            await wget.wait()
            fetcher = ReplayFetcher(list(tmp_path.glob("out.warc*")), records, record_at)
            return {path: await fetcher.fetch(Request(server.url(path))) for path in routes}

    replies = asyncio.run(scenario())
    page = good(replies["/page"])
    assert (page.status, page.body, page.headers["content-type"]) == (200, b"<p>a page</p>", "text/html")
    assert good(replies["/chunks"]).body == b"Wikipedia for"
    assert good(replies["/moved"]).headers["location"] == "/page"
    assert bad(replies["/robots.txt"]).kind == "not_in_archive"
