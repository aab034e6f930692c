"""Writing WARC files: valid by everybody's reading, synced before anybody relies on them, mended after a crash."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import os
import re
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from inchworm.archive import warc
from inchworm.archive.reader import OpenFiles, record_at, records
from inchworm.archive.warc import WarcWriter, copy_prefix, digest, is_digest, recover
from inchworm.errors import Broken, WrongUse
from inchworm.model import Record, Spot
from inchworm.ports import Original

with warnings.catch_warnings():
    # fastwarc 1.1 warns of its own shims when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator

A = "http://a.test"
NOW_MS = 1_767_225_600_123
INFO = {"software": "inchworm", "isPartOf": "a crawl"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
ORIGINAL = Original(f"{A}/first", NOW_MS - 1)


def page(payload: bytes, url: str = f"{A}/", head: bytes = HEAD, truncated: str = "") -> Record:
    return Record(url, head, payload, hashlib.sha256(payload).digest(), truncated)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


@pytest.fixture
def writer(folder):
    made = WarcWriter(folder, "run0000-t000001", INFO)
    yield made
    made.close()


def write(writer: WarcWriter, *pages: Record) -> list[Spot]:
    spots = [writer.append(one, NOW_MS, None) for one in pages]
    writer.sync()
    return spots


def by_warcio(path: Path) -> Iterator[tuple[str, dict[str, str], bytes]]:
    """Type, headers and content of every record; a wrong digest is an error."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file, no_record_parse=False, check_digests="raise", arc2warc=False):
            yield record.rec_type, dict(record.rec_headers.headers), record.raw_stream.read()


def by_fastwarc(path: Path) -> list[tuple[str, bool]]:
    """Type of every record, and whether its block is what its digest says."""
    with path.open("rb") as file:
        return [
            (record.headers["WARC-Type"], "WARC-Block-Digest" not in record.headers or record.verify_block_digest())
            for record in FastIterator(file, parse_http=False)
        ]


def plain(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


# What is written


def test_everybody_can_read_what_we_write(writer, folder):
    payloads = [b"hello", b"", bytes(range(256)) * 1000, b"WARC/1.1\r\n\r\n", b"x" * 3_000_000]
    spots = write(writer, *(page(payload, f"{A}/{number}") for number, payload in enumerate(payloads)))
    path = folder / spots[0].file
    assert [body for _, _, body in by_warcio(path)][1:] == payloads
    assert by_fastwarc(path) == [("warcinfo", True)] + [("response", True)] * 5
    with path.open("rb") as file:
        assert all(r.verify_payload_digest() for r in FastIterator(file) if r.headers["WARC-Type"] == "response")
    ours = list(records(path))
    assert [one.content for one in ours][1:] == [HEAD + payload for payload in payloads]
    assert [(one.offset, one.length) for one in ours][1:] == [(spot.offset, spot.length) for spot in spots]
    assert [record_at(path, spot.offset).headers["warc-target-uri"] for spot in spots] == [f"{A}/{n}" for n in range(5)]


def test_a_response_record_says_what_when_and_its_digests(writer, folder):
    (spot,) = write(writer, page(b"hello", truncated="length"))
    _, headers, _ = list(by_warcio(folder / spot.file))[1]
    assert re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", headers.pop("WARC-Record-ID"))
    assert headers == {
        "WARC-Type": "response",
        "WARC-Date": "2026-01-01T00:00:00.123Z",
        "WARC-Target-URI": f"{A}/",
        "Content-Type": "application/http; msgtype=response",
        "WARC-Payload-Digest": digest(hashlib.sha256(b"hello").digest()),
        "WARC-Block-Digest": digest(hashlib.sha256(HEAD + b"hello").digest()),
        "WARC-Truncated": "length",
        "Content-Length": str(len(HEAD) + 5),
    }
    assert plain(folder / spot.file).startswith(b"WARC/1.1\r\n")


def test_a_digest_is_written_as_warc_writes_it():
    sha256 = hashlib.sha256(b"hello").digest()
    assert digest(sha256) == "sha256:" + base64.b32encode(sha256).decode()


@pytest.mark.parametrize("at_ms", [0, 999, 1_767_225_599_999, NOW_MS, 4_102_444_800_001])
def test_dates_are_exact_to_the_millisecond(at_ms):
    moment = datetime.fromisoformat(warc._date(at_ms))
    assert round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000) == at_ms


def test_a_revisit_refers_to_the_first_record_and_has_no_payload(writer, folder):
    writer.append(page(b"same", f"{A}/first"), NOW_MS - 1, None)
    spot = writer.append(page(b"same", f"{A}/second"), NOW_MS, ORIGINAL)
    writer.sync()
    path = folder / spot.file
    kind, headers, body = list(by_warcio(path))[2]
    assert (kind, body) == ("revisit", b"")
    assert headers["WARC-Profile"].endswith("/warc/1.1/revisit/identical-payload-digest")
    assert headers["WARC-Refers-To-Target-URI"] == f"{A}/first"
    assert headers["WARC-Refers-To-Date"] == "2026-01-01T00:00:00.122Z"
    assert headers["WARC-Payload-Digest"] == digest(hashlib.sha256(b"same").digest())
    assert by_fastwarc(path)[2] == ("revisit", True)
    assert record_at(path, spot.offset).content == HEAD


def test_every_file_begins_with_what_made_it(writer, folder):
    (spot,) = write(writer, page(b"1"))
    kind, headers, body = next(by_warcio(folder / spot.file))
    assert (kind, headers["WARC-Filename"], headers["Content-Type"]) == (
        "warcinfo",
        spot.file,
        "application/warc-fields",
    )
    assert body == b"software: inchworm\r\nisPartOf: a crawl\r\n"


def test_nothing_to_write_makes_no_file(writer, folder):
    writer.sync()
    writer.close()
    assert not folder.exists()


@settings(max_examples=40, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payloads=st.lists(st.binary(max_size=2000), min_size=1, max_size=5), number=st.integers(0))
def test_any_bytes_come_back(tmp_path, payloads, number):
    writer = WarcWriter(tmp_path / os.urandom(4).hex(), f"x{number % 1000}", INFO, rotate_bytes=1500)
    spots = write(writer, *map(page, payloads))
    writer.close()
    found = [record_at(writer._folder / spot.file, spot.offset) for spot in spots]
    assert [one.content for one in found] == [HEAD + payload for payload in payloads]
    files = OpenFiles(writer._folder)
    assert [files.record(spot.file, spot.offset, spot.length) for spot in spots] == found
    assert [files.record(spot.file, spot.offset, 0) for spot in spots] == found, "whoever does not know the length"


def test_files_that_are_kept_open_are_few_and_closed_in_the_end(folder):
    writer = WarcWriter(folder, "many", INFO, rotate_bytes=1)
    spots = write(writer, *(page(b"%d" % number) for number in range(20)))
    writer.close()
    assert len({spot.file for spot in spots}) == 20
    before, files = len(list(Path("/proc/self/fd").iterdir())), OpenFiles(folder)
    for spot in (*spots, *reversed(spots)):
        assert files.record(spot.file, spot.offset, spot.length) == record_at(folder / spot.file, spot.offset)
    assert before < len(list(Path("/proc/self/fd").iterdir())) < before + 10
    del files
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_record_that_is_not_whole_any_more_is_none(writer, folder):
    first, second = write(writer, page(b"first" * 100), page(b"second" * 100))
    path, files = folder / first.file, OpenFiles(folder)
    whole = path.read_bytes()
    for at in range(first.offset, first.offset + first.length):
        # The head of a gzip member says when and on what it was made, which nobody minds.
        if at - first.offset in range(4, 10):
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(WrongUse):
            files.record(first.file, first.offset, first.length)
        assert files.record(second.file, second.offset, second.length).content.endswith(b"second")
    path.write_bytes(whole[:-1])
    with pytest.raises(WrongUse):
        files.record(second.file, second.offset, second.length)
    with pytest.raises(WrongUse):
        files.record("missing.warc.gz", 0, 10)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_a_digest_is_told_from_others(one, other):
    assert is_digest(digest(one), one)
    assert is_digest(digest(one), other) == (one == other)
    for said in ("", "sha256:", "sha256:!", digest(one)[:-6], f"sha1:{digest(one)[7:]}", digest(one)[7:]):
        assert not is_digest(said, one)


# Nobody can put lines into our headers

EVIL = "\r\nWARC-Type: request\r\nX-Evil: 1\r\n\r\nWARC/1.1\r\n"


@pytest.mark.parametrize(
    ("record", "original"),
    [
        (page(b"1", f"{A}/{EVIL}"), None),
        (page(b"1", f"{A}/\nX-Evil: 1"), None),
        (page(b"1", f"{A}/\rX-Evil: 1"), None),
        (page(b"1", truncated=f"length{EVIL}"), None),
        (page(b"1"), Original(f"{A}/{EVIL}", NOW_MS)),
    ],
    ids=["url", "line feed", "carriage return", "truncated", "original"],
)
def test_line_breaks_in_what_a_record_says_add_no_headers(writer, folder, record, original):
    spot = writer.append(record, NOW_MS, original)
    writer.sync()
    content = gzip.decompress((folder / spot.file).read_bytes()[spot.offset :])
    names = [line.partition(b":")[0] for line in re.split(b"\r\n|\r|\n", content.partition(b"\r\n\r\n")[0])]
    assert b"X-Evil" not in names
    assert names.count(b"WARC-Type") == 1
    assert len(list(by_warcio(folder / spot.file))) == 2


def test_line_breaks_in_the_info_add_no_fields(folder):
    writer = WarcWriter(folder, "x", {"isPartOf": f"a crawl{EVIL}", "robots": "obeyed"})
    (spot,) = write(writer, page(b"1"))
    writer.close()
    _, _, body = next(by_warcio(folder / spot.file))
    names = [line.partition(b":")[0] for line in re.split(b"\r\n|\r|\n", body)]
    assert names == [b"isPartOf", b"robots", b""]


# Rotation


def test_a_full_file_is_followed_by_the_next(folder):
    writer = WarcWriter(folder, "run0000-t000001", INFO, rotate_bytes=2000)
    noise = [os.urandom(600) for _ in range(5)]
    spots = write(writer, *map(page, noise))
    writer.close()
    names = [f"run0000-t000001-{number:05}.warc.gz" for number in (1, 2, 3)]
    assert [spot.file for spot in spots] == [names[0], names[0], names[1], names[1], names[2]]
    assert sorted(file.name for file in folder.iterdir()) == names
    for name in names:
        assert next(by_warcio(folder / name))[0] == "warcinfo"
    assert [record_at(folder / s.file, s.offset).content for s in spots] == [HEAD + payload for payload in noise]
    assert (folder / names[0]).stat().st_size == spots[1].offset + spots[1].length


def test_a_file_that_is_there_is_never_appended_to(writer, folder):
    folder.mkdir()
    (folder / "run0000-t000001-00001.warc.gz").write_bytes(b"another owner's")
    with pytest.raises(Broken) as raised:
        writer.append(page(b"1"), NOW_MS, None)
    assert raised.value.hint
    assert (folder / "run0000-t000001-00001.warc.gz").read_bytes() == b"another owner's"


def test_a_link_in_the_way_is_not_followed(writer, folder, tmp_path):
    folder.mkdir()
    (tmp_path / "precious").write_bytes(b"precious")
    (folder / "run0000-t000001-00001.warc.gz").symlink_to(tmp_path / "precious")
    with pytest.raises(Broken):
        writer.append(page(b"1"), NOW_MS, None)
    assert (tmp_path / "precious").read_bytes() == b"precious"


# Durability


@pytest.fixture
def calls(monkeypatch, folder):
    """What the writer asks of the system, in order."""
    made: list[str] = []

    def spy(name: str) -> None:
        real = getattr(os, name)

        def call(descriptor: int, *arguments: object) -> object:
            made.append(f"{name} {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
            return real(descriptor, *arguments)

        monkeypatch.setattr(warc.os, name, call)

    for name in ("write", "fdatasync", "fsync"):
        spy(name)
    return made


def test_bytes_are_synced_before_their_name_and_a_name_only_once(writer, folder, calls):
    name = "run0000-t000001-00001.warc.gz"
    write(writer, page(b"1"), page(b"2"))
    assert calls == [f"write {name}", f"fdatasync {name}", "fsync archive", f"fsync {folder.parent.name}"]
    calls.clear()
    writer.sync()
    assert calls == []
    write(writer, page(b"3"))
    assert calls == [f"write {name}", f"fdatasync {name}"]


def test_a_full_file_is_synced_before_the_next_is_begun(folder, calls):
    writer = WarcWriter(folder, "x", INFO, rotate_bytes=100)
    for payload in (b"1", b"2"):
        writer.append(page(payload), NOW_MS, None)
    folders = ["fsync archive", f"fsync {folder.parent.name}"]
    assert calls == ["write x-00001.warc.gz", "fdatasync x-00001.warc.gz", *folders]
    writer.sync()
    assert calls[4:] == ["write x-00002.warc.gz", "fdatasync x-00002.warc.gz", *folders]
    writer.close()


def test_what_was_appended_lies_in_memory_until_it_is_synced(writer, folder):
    spot = writer.append(page(b"1"), NOW_MS, None)
    assert (folder / spot.file).stat().st_size == 0
    writer.sync()
    assert (folder / spot.file).stat().st_size == spot.offset + spot.length


def test_a_write_that_takes_only_a_part_is_continued(writer, folder, monkeypatch):
    real = os.write
    monkeypatch.setattr(warc.os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    (spot,) = write(writer, page(b"hello"))
    assert [body for _, _, body in by_warcio(folder / spot.file)][1:] == [b"hello"]


@pytest.mark.parametrize("name", ["write", "fdatasync", "fsync"])
def test_a_disk_that_fails_is_told_with_a_way_out(writer, monkeypatch, name):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer.append(page(b"1"), NOW_MS, None)
    monkeypatch.setattr(warc.os, name, fail)
    with pytest.raises(Broken) as raised:
        writer.sync()
    assert "No space left" in raised.value.message
    assert "disk space" in raised.value.hint


# After a crash


def test_recovery_leaves_exactly_what_was_committed(writer, folder):
    committed, _, last = write(writer, page(b"1"), page(b"2"), page(b"3"))
    length = committed.offset + committed.length
    path = folder / committed.file
    with path.open("ab") as file:
        file.write(b"\x1f\x8btorn")
    (folder / "unknown-00001.warc.gz").write_bytes(b"nobody committed this")
    (folder / "notes.txt").write_text("not ours")
    assert recover(folder, {committed.file: length}) == []
    assert sorted(file.name for file in folder.iterdir()) == ["notes.txt", committed.file]
    assert path.stat().st_size == length < last.offset
    assert [body for _, _, body in by_warcio(path)][1:] == [b"1"]
    assert recover(folder, {committed.file: length}) == []


def test_every_committed_prefix_is_a_valid_file(writer, folder):
    spots = write(writer, *(page(str(number).encode()) for number in range(5)))
    path = folder / spots[0].file
    for number in range(5, 0, -1):
        spot = spots[number - 1]
        recover(folder, {spot.file: spot.offset + spot.length})
        assert [kind for kind, ok in by_fastwarc(path) if ok] == ["warcinfo"] + ["response"] * number


def test_recovery_names_what_no_crash_can_have_caused(folder):
    assert recover(folder, {"b": 1, "a": 2}) == ["a", "b"]
    assert recover(folder, {}) == []
    folder.mkdir()
    (folder / "short.warc.gz").write_bytes(b"123")
    (folder / "good.warc.gz").write_bytes(b"123")
    committed = {"short.warc.gz": 4, "missing.warc.gz": 1, "good.warc.gz": 3}
    assert recover(folder, committed) == ["missing.warc.gz", "short.warc.gz"]
    assert (folder / "short.warc.gz").read_bytes() == b"123"


def test_recovery_without_any_commit_empties_the_archive(writer, folder):
    (spot,) = write(writer, page(b"1"))
    assert recover(folder, {}) == []
    assert not (folder / spot.file).exists()


def test_a_copy_has_the_committed_part_and_is_synced(writer, folder, calls):
    first, _ = write(writer, page(b"1"), page(b"2"))
    calls.clear()
    copy_prefix(folder, first.file, first.offset + first.length, "copy.warc.gz")
    assert [body for _, _, body in by_warcio(folder / "copy.warc.gz")][1:] == [b"1"]
    assert [call for call in calls if call.startswith("fsync")] == ["fsync copy.warc.gz", "fsync archive"]
    # The old owner wakes up and goes on: only its own file grows.
    before = (folder / "copy.warc.gz").read_bytes()
    write(writer, page(b"3"))
    assert (folder / "copy.warc.gz").read_bytes() == before


def test_a_large_file_is_copied_whole(folder):
    folder.mkdir()
    content = os.urandom(2_500_000)
    (folder / "a").write_bytes(content)
    copy_prefix(folder, "a", 2_400_000, "b")
    assert (folder / "b").read_bytes() == content[:2_400_000]


@pytest.mark.parametrize("content", [b"123", None], ids=["short", "missing"])
def test_a_copy_of_what_is_not_there_is_told(folder, content):
    folder.mkdir()
    if content is not None:
        (folder / "a").write_bytes(content)
    with pytest.raises(Broken) as raised:
        copy_prefix(folder, "a", 10, "b")
    assert "doctor" in raised.value.hint


def test_a_copy_never_overwrites(folder):
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(name.encode())
    with pytest.raises((FileExistsError, Broken)):
        copy_prefix(folder, "a", 1, "b")
    assert (folder / "b").read_bytes() == b"b"
