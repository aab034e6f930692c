"""A crawl as a table in memory, and as files."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from tests.flow.crawling import page as made

from inchworm import Crawl
from inchworm.app import FORMATS
from inchworm.errors import Unknown, WrongUse
from inchworm.sink import arrow, columns
from inchworm.testing import Served, Site

NAMES = [column.flat for column in columns.USUAL]


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    said = "<meta property=og:type content=article>"
    pages = {f"/p{n}": made(f"p{n}", head=said) for n in range(9)}
    return {"/": made("home", *pages, head=said), **pages}


@pytest.fixture(scope="module")
def served(site: dict[str, Any]) -> Iterator[Served]:
    with Site(site).serve() as serving:
        yield serving


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory, served: Served, site: dict[str, Any]) -> Crawl:
    home = tmp_path_factory.mktemp("home")
    one = Crawl(served.url("/"), home=home, delay=0, sitemap=False)
    one.run_sync()
    site["/p3"] = made("p3", body="<p>News of it.</p>", head="<meta property=og:type content=article>")
    one.run_sync()
    return one


def test_a_table_in_memory_is_the_one_that_is_exported(crawl: Crawl, tmp_path: Path) -> None:
    crawl.export("parquet", tmp_path / "pages.parquet", with_="markdown,links")
    found = crawl.to_arrow(with_=("markdown", "links"))
    assert found.column_names == [*NAMES, "markdown", "links"]
    assert found.equals(pyarrow.parquet.read_table(tmp_path / "pages.parquet"))
    assert found.num_rows == 10
    assert all(text.startswith("This is what") for text in found["text"].to_pylist())
    assert str(found.schema.field("fetched_at").type) == "timestamp[ms, tz=UTC]"


def test_which_pages_and_columns(crawl: Crawl, served: Served) -> None:
    assert crawl.to_arrow(columns=["url", "change"], since=0).to_pylist() == [
        {"url": served.url("/p3"), "change": "modified"}
    ]
    assert crawl.to_arrow(columns="url", run=0).num_rows == 10
    with pytest.raises(WrongUse, match="no column 'colour'"):
        crawl.to_arrow(columns="colour")
    with pytest.raises(Unknown, match="no run 9"):
        crawl.to_batches(run=9)


def test_batches_are_made_while_they_are_read(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", 4)
    reader = crawl.to_batches(columns="title,text")
    assert [batch.num_rows for batch in reader] == [4, 4, 2]
    dropped = crawl.to_batches()
    assert dropped.read_next_batch().num_rows == 4
    del dropped
    gc.collect()
    assert not [link for link in Path("/proc/self/fd").iterdir() if str(crawl._home) in _target(link)]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_pandas(crawl: Crawl) -> None:
    pandas = pytest.importorskip("pandas")
    frame = crawl.to_pandas(columns="title,text,fetched_at,bytes,alternate_urls")
    assert isinstance(frame, pandas.DataFrame)
    assert sorted(frame["title"]) == ["home", *(f"p{n}" for n in range(9))]
    assert str(frame["fetched_at"].dt.tz) == "UTC"
    assert frame[frame.title == "p3"].text.str.contains("News").all()
    assert frame.bytes.sum() > 1000


def test_polars(crawl: Crawl) -> None:
    polars = pytest.importorskip("polars")
    frame = crawl.to_polars(columns="title,text,fetched_at,bytes")
    assert isinstance(frame, polars.DataFrame)
    assert frame.filter(polars.col("text").str.contains("News"))["title"].to_list() == ["p3"]
    assert frame["bytes"].sum() > 1000


def test_duckdb_reads_batches(crawl: Crawl) -> None:
    pages = crawl.to_batches(columns="title,text")
    assert duckdb.sql("SELECT title FROM pages WHERE text LIKE '%News%'").fetchall() == [("p3",)]
    del pages


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("to_pandas", "pandas", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_arrow", "pyarrow", "parquet"),
        ("to_batches", "pyarrow", "parquet"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, method: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(WrongUse) as raised:
        getattr(crawl, method)()
    assert package in raised.value.message
    assert f"pip install 'inchworm[{extra}]'" in raised.value.hint


# Files


def test_an_export_to_a_file_is_whole_and_packed(crawl: Crawl, tmp_path: Path) -> None:
    done = crawl.export("jsonl", tmp_path / "pages.jsonl.gz", columns=["url", "text"])
    assert (done.count, done.skipped, done.lost, done.next_since) == (10, 0, (), 1)
    lines = [json.loads(line) for line in gzip.decompress((tmp_path / "pages.jsonl.gz").read_bytes()).splitlines()]
    assert [one["url"] for one in lines] == [page.url for page in crawl.pages()]
    assert [one.name for one in tmp_path.iterdir()] == ["pages.jsonl.gz"]


def test_an_export_to_an_open_file(crawl: Crawl) -> None:
    out = io.BytesIO()
    crawl.export("csv", out, columns="title", since=0, only="modified", bom=True)
    assert list(csv.reader(io.StringIO(out.getvalue().decode("utf-8-sig")))) == [["title"], ["p3"]]
    assert out.getvalue().startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_can_be_written(crawl: Crawl, tmp_path: Path, format_name: str) -> None:
    done = crawl.export(format_name, str(tmp_path / "out"))
    assert done.count >= 10
    assert (tmp_path / "out").exists()


def test_a_folder_of_files(crawl: Crawl, tmp_path: Path) -> None:
    assert crawl.export("files", tmp_path / "files", types="text/html").count == 10
    (tmp_path / "maps").mkdir()
    assert crawl.export("sitemap", tmp_path / "maps").count == 10
    assert (tmp_path / "maps" / "sitemap.xml").exists()


@pytest.mark.parametrize(
    ("format_name", "wanted", "message"),
    [
        ("nonsense", {}, "no export format 'nonsense'"),
        ("urls", {"columns": "url"}, "no columns to choose"),
        ("jsonl", {"types": "pdf"}, "goes with the format 'files'"),
        ("jsonl", {"bom": True}, "goes with the format 'csv'"),
    ],
)
def test_what_cannot_be_exported(
    crawl: Crawl, tmp_path: Path, format_name: str, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        crawl.export(format_name, tmp_path / "out", **wanted)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WrongUse, match="writes a folder"):
        crawl.export("markdown", io.BytesIO())
