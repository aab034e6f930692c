"""From nothing to the text: inchworm is installed into a bare environment as the README says, crawls a site, and others
open what it exports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, served

from inchworm.testing import Served

SECONDS = 900
NEEDED_TO_INSTALL = ("pyproject.toml", "README.md", "LICENSE", "src")
TITLES = ["Docs", "export", "install", "limits", "print/all", "start"]


class Bare:
    """An environment with nothing in it but what `pip install .` brings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        inherited = {"PATH", "LANG", "TMPDIR", "http_proxy", "https_proxy", "no_proxy"}
        self.environment = {
            name: value for name, value in os.environ.items() if name in inherited or name.startswith("PIP_")
        }

    def run(self, *command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{self.environment.get('PATH', '')}"
        done = subprocess.run(
            [str(self.folder / "venv" / "bin" / command[0]), *command[1:]],
            cwd=self.folder,
            env={**self.environment, "PATH": path, "HOME": str(self.folder), "INCHWORM_DELAY": "0"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    folder = tmp_path_factory.mktemp("bare")
    made = Bare(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=SECONDS)
    try:
        made.run("pip", "download", "--quiet", "--no-deps", "--dest", str(folder / "reached"), "setuptools>=77")
    except AssertionError:
        pytest.skip("no package index can be reached from here")
    # pip builds where the sources are, and nothing is to be left there.
    source = folder / "inchworm"
    source.mkdir()
    for name in NEEDED_TO_INSTALL:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    made.run("pip", "install", "--quiet", "--disable-pip-version-check", str(source))
    return made


@pytest.fixture(scope="module")
def serving() -> Iterator[Served]:
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def exported(bare: Bare, serving: Served) -> Path:
    """The folder with what was exported."""
    url = serving.url("/docs")
    bare.run("inchworm", "crawl", url)
    bare.run("inchworm", "export", url, "-o", "pages.jsonl")
    bare.run("inchworm", "export", url, "-o", "pages.csv")
    return bare.folder


def test_what_is_not_there_is_asked_for(bare: Bare, exported: Path, serving: Served) -> None:
    said = bare.run("inchworm", "export", serving.url("/docs"), "-o", "pages.parquet", code=2).stderr
    assert "pip install 'inchworm[parquet]'" in " ".join(said.split())
    program = (
        "import sys; from inchworm import Crawl; crawl = Crawl(sys.argv[1]); print(len([*crawl.pages()][1].text));"
        "crawl.to_pandas()"
    )
    told = bare.run("python", "-c", program, serving.url("/docs"), code=1)
    assert int(told.stdout) > 100
    assert "This needs pandas" in told.stderr
    assert not (exported / "pages.parquet").exists()


def test_duckdb(exported: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    for name in ("pages.jsonl", "pages.csv"):
        rows = duckdb.sql(f"SELECT title, text FROM '{exported / name}' ORDER BY title").fetchall()
        assert [title for title, _ in rows] == TITLES
        assert rows[2][1].startswith("All about install. All about install.")


def test_pandas(exported: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for frame in (
        pandas.read_json(exported / "pages.jsonl", lines=True),
        pandas.read_csv(exported / "pages.csv"),
    ):
        assert sorted(frame["title"]) == TITLES
        assert frame.set_index("title").text["install"].startswith("All about install.")
        assert pandas.to_datetime(frame["fetched_at"]).dt.year.min() >= 2024


def test_polars(exported: Path) -> None:
    polars = pytest.importorskip("polars")
    for frame in (polars.read_ndjson(exported / "pages.jsonl"), polars.read_csv(exported / "pages.csv")):
        assert sorted(frame["title"]) == TITLES
        assert frame.filter(polars.col("title") == "install")["text"][0].startswith("All about install.")


def test_jq(exported: Path) -> None:
    command = ["jq", "-r", 'select(.title == "install") | .text', str(exported / "pages.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("All about install. All about install.")
    told = [json.loads(line) for line in (exported / "pages.jsonl").read_text().splitlines()]
    assert sorted(one["title"] for one in told) == TITLES
