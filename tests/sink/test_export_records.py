"""The export as one WARC file: record by record, in the order of record, readable by other people's programs."""

from __future__ import annotations

import gzip
import io
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from inchworm.archive.reader import is_whole, records
from inchworm.archive.warc import WarcWriter
from inchworm.errors import Broken
from inchworm.model import Record, Spot
from inchworm.sink import export

with warnings.catch_warnings(action="ignore"):  # it warns of its own old names when it is imported
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecordType


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> tuple[Path, list[Spot]]:
    """Two files with five records each: a0 … a4, b0 … b4."""
    folder = tmp_path_factory.mktemp("archive")
    spots = []
    for name in "ab":
        writer = WarcWriter(folder, name, {"software": "a test"})
        for number in range(5):
            body = f"{name}{number}".encode()
            record = Record(f"http://{name}.test/{number}", b"HTTP/1.1 200 OK\r\n\r\n", body, bytes(32))
            spots.append(writer.append(record, 0, None))
        writer.sync()
        writer.close()
    return folder, spots


def warc(folder: Path, spots: list[Spot], out: io.BytesIO) -> export.Written:
    return export.warc(folder, ((*spot, f"http://a.test/{n}") for n, spot in enumerate(spots)), out, is_whole)


def exported(folder: Path, spots: list[Spot], count: int) -> bytes:
    out = io.BytesIO()
    assert warc(folder, spots, out) == export.Written(count)
    return out.getvalue()


def bodies(data: bytes) -> list[str]:
    return [one.raw_stream.read().decode() for one in ArchiveIterator(io.BytesIO(data)) if one.rec_type == "response"]


ORDERS = {
    "as they lie": [0, 1, 2, 3, 4],
    "across files": [0, 5, 1, 6, 2, 7],
    "backwards": [9, 8, 4, 3, 0],
    "with gaps": [0, 2, 3, 9],
    "some twice": [1, 1, 0, 2, 1, 0, 7, 7],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_records_come_in_the_order_of_record_and_once(archive, order):
    folder, spots = archive
    wanted = list(dict.fromkeys(order))
    data = exported(folder, [spots[at] for at in order], len(wanted))
    assert bodies(data) == [f"{'ab'[at // 5]}{at % 5}" for at in wanted]


@effort(max_examples=60, database=None)
@given(order=st.lists(st.integers(0, 9), max_size=30))
def test_any_order_gives_each_record_once_as_it_lies_in_the_archive(archive, order):
    folder, spots = archive
    wanted = list(dict.fromkeys(order))
    data = exported(folder, [spots[at] for at in order], len(wanted))
    members = [(folder / s.file).read_bytes()[s.offset : s.offset + s.length] for s in (spots[at] for at in wanted)]
    assert data.endswith(b"".join(members))


def test_it_begins_with_a_warcinfo_of_its_own(archive):
    folder, spots = archive
    head = next(iter(ArchiveIterator(io.BytesIO(exported(folder, spots, 10)))))
    assert head.rec_type == "warcinfo"
    assert b"software: inchworm/" in head.content_stream().read()


def test_an_empty_record_is_a_valid_file(archive):
    data = exported(archive[0], [], 0)
    assert [record.rec_type for record in ArchiveIterator(io.BytesIO(data))] == ["warcinfo"]


def test_other_programs_can_read_it_and_jump_to_each_record(archive, tmp_path):
    folder, spots = archive
    data = exported(folder, spots, 10)
    fast = list(FastIterator(io.BytesIO(data), parse_http=False))
    assert [record.record_type for record in fast] == [WarcRecordType.warcinfo] + [WarcRecordType.response] * 10
    places = [record.stream_pos for record in fast]
    for start, end in pairwise([*places, len(data)]):
        assert gzip.decompress(data[start:end]).startswith(b"WARC/1.1\r\n"), "a record is a gzip member of its own"
    (tmp_path / "whole.warc.gz").write_bytes(data)
    ours = list(records(tmp_path / "whole.warc.gz"))
    assert [record.offset for record in ours] == places
    responses = FastIterator(io.BytesIO(data), record_types=WarcRecordType.response, parse_http=False)
    assert [record.verify_block_digest() for record in responses] == [True] * 10


def test_neighbours_are_copied_in_one_go(archive):
    """Not a hundred small reads: the output gets the warcinfo and one piece for each file."""
    folder, spots = archive
    pieces = []

    class Pieces(io.BytesIO):
        def write(self, data) -> int:
            pieces.append(len(data))
            return super().write(data)

    warc(folder, spots, Pieces())
    assert len(pieces) == 3


@pytest.mark.parametrize("left", [b"", b"short", None], ids=["empty", "short", "gone"])
def test_an_archive_that_lost_bytes_is_never_exported_silently(archive, tmp_path, left):
    _, spots = archive
    if left is not None:
        (tmp_path / spots[0].file).write_bytes(left)
    written = warc(tmp_path, spots, io.BytesIO())
    assert written[:3] == (0, len(spots), tuple(f"http://a.test/{n}" for n in range(len(spots))))


def test_a_place_where_no_record_begins_is_never_exported_silently(archive):
    folder, spots = archive
    file, offset, length = spots[3]
    out = io.BytesIO()
    assert warc(folder, [(file, offset + 1, length), (file, offset, length)], out)[:3] == (1, 1, ("http://a.test/0",))
    assert bodies(out.getvalue()) == ["a3"]


def test_a_file_that_is_cut_while_it_is_exported_is_told(archive, tmp_path):
    folder, spots = archive
    file, offset, length = spots[3]
    (tmp_path / file).write_bytes((folder / file).read_bytes()[: offset + length - 1])
    with pytest.raises(Broken) as raised:
        export.warc(tmp_path, [(file, offset, length, "http://a.test/3")], io.BytesIO(), lambda *_: True)
    assert file in raised.value.message
