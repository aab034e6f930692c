"""Folders as one zip file: what others read out of it is what was put in."""

from __future__ import annotations

import io
import subprocess
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.sink.files.zipped import Zipped

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/\\"), min_size=1, max_size=20)


def zipped(found: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with Zipped(out) as target:
        for name, data in found.items():
            target.write(name, data)
    return out.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


@effort(max_examples=100, database=None)
@given(st.dictionaries(NAMES.filter(lambda name: name not in (".", "..")), st.binary(max_size=3000)))
def test_what_is_put_in_comes_out(found):
    assert unzipped(zipped(found)) == found
    assert zipped(found) == zipped(found)


def test_others_can_open_it(tmp_path):
    found = {"a.test/über uns.md": "Grün".encode(), "a.test/x/empty.md": b"", "images/b.png": bytes(range(256)) * 999}
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(found))
    if not Path("/usr/bin/unzip").exists():
        pytest.skip("unzip is not there")
    subprocess.run(["/usr/bin/unzip", "-q", path, "-d", tmp_path / "out"], check=True, env={"LANG": "C.UTF-8"})
    files = {str(one.relative_to(tmp_path / "out")): one for one in (tmp_path / "out").rglob("*") if one.is_file()}
    assert {name: one.read_bytes() for name, one in files.items()} == found
    assert all(one.stat().st_mode & 0o777 == 0o644 for one in files.values())


def test_a_file_is_written_while_others_are():
    out = io.BytesIO()
    with Zipped(out) as target, target.replacing("index") as index:
        for number in range(3):
            target.write(f"{number}", b"x" * number)
            with target.plain_errors("index"):
                index.write(b"%d\n" % number)
    assert unzipped(out.getvalue()) == {"0": b"", "1": b"x", "2": b"xx", "index": b"0\n1\n2\n"}


def test_what_breaks_off_is_no_zip_file():
    out = io.BytesIO()
    with pytest.raises(RuntimeError), Zipped(out) as target, target.replacing("index") as index:
        target.write("a", b"a")
        index.write(b"a")
        raise RuntimeError
    assert not zipfile.is_zipfile(out)


def test_more_files_than_fit_into_sixteen_bits():
    found = {f"{number}": b"" for number in range(66_000)}
    assert unzipped(zipped(found)) == found


def test_beyond_four_gigabytes(tmp_path):
    path = tmp_path / "far.zip"
    with path.open("wb") as out, Zipped(out) as target:
        target.write("near", b"near")
        # As if four gigabytes had been written; the file has a hole there.
        out.seek(5_000_000_000)
        target._offset = 5_000_000_000
        target.write("far", b"far")
        target.write("farther", b"farther")
    with zipfile.ZipFile(path) as file:
        assert {name: file.read(name) for name in file.namelist()} == {
            "near": b"near",
            "far": b"far",
            "farther": b"farther",
        }


def test_memory_does_not_grow_with_the_number_of_files():
    class Nowhere(io.RawIOBase):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            return len(data)

    def peak(files: int) -> int:
        tracemalloc.start()
        with Zipped(Nowhere()) as target:  # type: ignore[arg-type]
            for number in range(files):
                target.write(f"some/folder/with/a/long/name/page-{number}.md", b"x")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(40_000) < peak(15_000) + 1_500_000
