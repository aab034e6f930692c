"""A folder that is written into and never out of."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from inchworm.errors import Broken, InchwormError, WrongUse
from inchworm.sink.files.folder import Folder


@pytest.fixture
def outside(tmp_path) -> Path:
    """What must stay as it is."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    return tmp_path / "outside"


def untouched(outside: Path) -> bool:
    return [path.name for path in outside.iterdir()] == ["precious"] and (
        outside / "precious"
    ).read_text() == "precious"


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def test_files_and_their_folders_are_made(tmp_path):
    with Folder(tmp_path / "new" / "deep") as folder:
        folder.write("a/b/c.md", b"1")
        folder.write("a/b/d.md", b"2")
        folder.write("a/e.md", b"3")
        folder.write("f.md", b"4")
    assert files_in(tmp_path / "new" / "deep") == ["a/b/c.md", "a/b/d.md", "a/e.md", "f.md"]
    assert (tmp_path / "new/deep/a/b/c.md").read_bytes() == b"1"


def test_a_file_is_replaced_and_others_are_left_alone(tmp_path):
    with Folder(tmp_path) as folder:
        folder.write("a/b", b"old")
        folder.write("a/c", b"old")
    with (tmp_path / "a/b").open("rb") as reader, Folder(tmp_path) as folder:
        folder.write("a/b", b"new")
        assert reader.read() == b"old", "whoever had it open keeps what was there"
    assert (tmp_path / "a/b").read_bytes() == b"new"
    assert files_in(tmp_path) == ["a/b", "a/c"]


def test_what_was_not_finished_leaves_no_trace(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt), Folder(tmp_path) as folder, folder.replacing("a") as out:
        out.write(b"half of it")
        out.flush()
        raise KeyboardInterrupt
    assert files_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


BAD = ["", ".", "..", "../x", "/x", "a/../x", "a//b", "a/", "/", "a/./b", "a\0b", "a/.."]


@pytest.mark.parametrize("name", BAD, ids=range(len(BAD)))
def test_no_name_leads_out(tmp_path, name):
    with Folder(tmp_path / "in") as folder, pytest.raises(WrongUse):
        folder.write(name, b"")
    assert files_in(tmp_path) == []


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path, outside):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").symlink_to(outside / "precious")
    (tmp_path / "in" / "b.md").symlink_to(outside / "new")
    os.link(outside / "precious", tmp_path / "in" / "c.md")
    with Folder(tmp_path / "in") as folder:
        for name in ("a.md", "b.md", "c.md"):
            folder.write(name, b"x")
    assert not any((tmp_path / "in" / name).is_symlink() for name in ("a.md", "b.md", "c.md"))
    assert untouched(outside)


@pytest.mark.parametrize("name", ["link/x.md", "link/deep/x.md", "real/link/x.md"])
def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path, outside, name):
    (tmp_path / "in" / "real").mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to(outside)
    (tmp_path / "in" / "real" / "link").symlink_to(outside)
    with Folder(tmp_path / "in") as folder, pytest.raises(WrongUse) as raised:
        folder.write(name, b"x")
    assert name in raised.value.message
    assert untouched(outside)
    assert files_in(tmp_path / "in") == ["link", "real/link"]


@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_link_in_the_place_of_the_whole_folder_is_refused(tmp_path, outside, target):
    (tmp_path / "in").symlink_to(tmp_path / target)
    with pytest.raises(WrongUse), Folder(tmp_path / "in"):
        pass
    assert untouched(outside)


def test_a_link_put_there_meanwhile_is_not_followed(tmp_path, outside):
    with Folder(tmp_path / "in") as folder:
        folder.write("a/x", b"1")
        (tmp_path / "in").rename(tmp_path / "moved")
        (tmp_path / "in").symlink_to(outside)
        folder.write("b/y", b"2")
        (tmp_path / "moved" / "b" / "y").unlink()
        (tmp_path / "moved" / "b").rmdir()
        (tmp_path / "moved" / "b").symlink_to(outside)
        folder.write("a/z", b"3")
        with pytest.raises(WrongUse):
            folder.write("b/y", b"4")
    assert untouched(outside)
    assert files_in(tmp_path / "moved") == ["a/x", "a/z", "b"]


def test_what_is_in_the_way_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with Folder(tmp_path) as folder:
        for name in ("file/x", "folder"):
            with pytest.raises(WrongUse) as raised:
                folder.write(name, b"")
            assert name in raised.value.message
    with pytest.raises(WrongUse), Folder(tmp_path / "file"):
        pass
    assert files_in(tmp_path) == ["file"]


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    with (
        Folder(tmp_path) as folder,
        pytest.raises(Broken) as raised,
        folder.plain_errors("a"),
        folder.replacing("a") as out,
    ):
        out.write(b"some")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "No space left" in raised.value.message
    assert isinstance(raised.value, InchwormError)
    assert files_in(tmp_path) == []


def test_no_descriptor_stays_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with Folder(tmp_path) as folder:
            (tmp_path / "f").write_text("")
            for name in ("a/b/c", "a/d/e", "g"):
                folder.write(name, b"")
            with pytest.raises(WrongUse):
                folder.write("f/x/y", b"")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
