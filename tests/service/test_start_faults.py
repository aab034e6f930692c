"""A service that cannot start: its home, its disk, its database or its file of settings is wrong.

Each says in one sentence what is wrong and what to do, ends with a code of its own, and never shows a traceback.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.running import PATIENCE, serving

from inchworm.app import App

HOME_CODE = 6
HOME_CODES = (1, 2, HOME_CODE)
WRONG_USE_CODE = 2


def refused(home: Path) -> tuple[int, str]:
    """Exit code and words of a service that cannot start."""
    command = [sys.executable, "-m", "inchworm", "serve", "--port", "0"]
    whole = {**os.environ, "INCHWORM_HOME": str(home)}
    done = subprocess.run(command, check=False, env=whole, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in done.stderr, done.stderr
    assert "/login?code=" not in done.stderr, done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, 2 MB large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


def fill(path: Path) -> None:
    """Take all the space there is."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


class TestHome:
    def test_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        code, said = refused(tmp_path / "file" / "home")
        assert code in HOME_CODES, said
        assert "INCHWORM_HOME" in said

    def test_a_new_one_on_a_disk_that_is_read_only(self, small_disk: Path) -> None:
        remount(small_disk, "ro")
        code, said = refused(small_disk / "home")
        assert code in HOME_CODES, said
        assert "ead-only" in said

    def test_one_that_became_read_only(self, small_disk: Path) -> None:
        App(small_disk / "home").home.close()
        remount(small_disk, "ro")
        code, said = refused(small_disk / "home")
        assert code in HOME_CODES, said
        assert "may be written to" in said

    def test_a_secret_that_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "home" / "secret").mkdir(parents=True)
        code, said = refused(tmp_path / "home")
        assert code == 4, said
        assert "AUTH_JWT_SECRET" in said


class TestDisk:
    def test_a_new_home_on_a_full_one(self, small_disk: Path) -> None:
        fill(small_disk / "filler")
        code, said = refused(small_disk / "home")
        assert code in HOME_CODES, said
        assert "space" in said or "full" in said

    def test_a_home_whose_disk_became_full(self, small_disk: Path) -> None:
        App(small_disk / "home").home.close()
        fill(small_disk / "filler")
        code, said = refused(small_disk / "home")
        assert code in HOME_CODES, said
        assert "space" in said or "full" in said
        (small_disk / "filler").unlink()
        with serving(small_disk / "home") as service:
            assert service.get("/health")["status"] == "ok"


@pytest.mark.parametrize("fault", ["below a file", "damaged"])
def test_the_exit_code_of_a_home_that_cannot_be_used(tmp_path: Path, fault: str) -> None:
    home = tmp_path / "file" / "home"
    (tmp_path / "file").write_text("not a folder")
    if fault == "damaged":
        home = tmp_path / "home"
        home.mkdir()
        (home / "home.db").write_bytes(b"this is no database" * 400)
    assert refused(home)[0] == HOME_CODE


class TestDatabase:
    @pytest.mark.parametrize("content", [b"this is no database" * 400, b"SQLite format 3\0" + b"\xff" * 8176])
    def test_it_is_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "home.db").write_bytes(content)
        code, said = refused(tmp_path / "home")
        assert code in HOME_CODES, said
        assert "home.db" in said
        assert (tmp_path / "home" / "home.db").read_bytes() == content, "what is damaged is left for whoever repairs it"

    def test_its_first_page_is_damaged(self, tmp_path: Path) -> None:
        App(tmp_path / "home").home.close()
        path = tmp_path / "home" / "home.db"
        whole = bytearray(path.read_bytes())
        whole[100:4000] = b"\xff" * 3900
        path.write_bytes(whole)
        code, said = refused(tmp_path / "home")
        assert code in HOME_CODES, said
        assert "home.db" in said

    def test_it_was_cut_off(self, tmp_path: Path) -> None:
        App(tmp_path / "home").home.close()
        path = tmp_path / "home" / "home.db"
        path.write_bytes(path.read_bytes()[:5000])
        code, said = refused(tmp_path / "home")
        assert code in HOME_CODES, said
        assert "home.db" in said

    def test_it_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "home" / "home.db").mkdir(parents=True)
        code, said = refused(tmp_path / "home")
        assert code in HOME_CODES, said
        assert "home.db" in said


class TestSettings:
    @pytest.mark.parametrize(
        ("text", "word"),
        [
            (b"poll = ", "config.toml"),
            (b"\xff\xfe", "config.toml"),
            (b"nothing_like_it = 1\n", "nothing_like_it"),
            (b'poll = "never"\n', "poll"),
            (b"[poll]\nseconds = 1\n", "poll"),
        ],
    )
    def test_a_file_that_is_wrong(self, tmp_path: Path, text: bytes, word: str) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.toml").write_bytes(text)
        code, said = refused(tmp_path / "home")
        assert code == WRONG_USE_CODE, said
        assert word in said

    def test_a_file_that_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "home" / "config.toml").mkdir(parents=True)
        code, said = refused(tmp_path / "home")
        assert code == WRONG_USE_CODE, said
        assert "config.toml" in said
