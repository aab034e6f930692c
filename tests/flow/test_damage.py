"""A damaged archive: it is noticed, the pages that are lost are named, and the rest is used all the same."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.flow.crawling import Home, chain, path_of
from warcio.archiveiterator import ArchiveIterator

from inchworm.archive import reader
from inchworm.testing import Site

PAGES = 12
LOST = "/c5"


def spot(home: Home, path: str, run: int = 0) -> tuple[Path, int, int]:
    """File, offset and length of the record of a page."""
    crawl = home.app.workspace.find(home.word)
    where = next(one["archive"] for one in home.record(run) if path_of(one["url"]) == path)
    return home.app.workspace.place(crawl).folder / "archive" / where["file"], where["offset"], where["length"]


def damage(home: Home, path: str, bytes_: int = 100, run: int = 0) -> Path:
    """Flip so many bytes in the middle of a page's record."""
    file, offset, length = spot(home, path, run)
    data = bytearray(file.read_bytes())
    start = offset + max(0, length - bytes_) // 2
    for at in range(start, min(start + bytes_, offset + length)):
        data[at] ^= 0x5A
    file.write_bytes(data)
    return file


@pytest.fixture
def crawled(home: Home) -> Home:
    with Site(chain(PAGES)).serve() as served:
        home.crawl(served.url("/c0"), scope="host")
        yield home


def named(text: str) -> set[str]:
    return {f"/c{number}" for number in range(PAGES) if f"/c{number} " in text or f"/c{number}\n" in text}


# doctor


@pytest.mark.parametrize("bytes_", [1, 100])
def test_doctor_reads_every_record(crawled: Home, bytes_: int) -> None:
    assert "every record of the archive" in crawled.cli("doctor").stdout
    file = damage(crawled, LOST, bytes_)
    said = crawled.cli("doctor", code=1).stdout
    assert file.name in said and named(said) == {LOST}
    found = [one for one in json.loads(crawled.cli("doctor", "--json", code=1).stdout)["findings"] if not one["ok"]]
    assert len(found) == 1 and LOST in found[0]["text"] and "backup" in found[0]["hint"]


def test_quick_looks_at_what_is_cheap_only(crawled: Home) -> None:
    file = damage(crawled, LOST)
    said = crawled.cli("doctor", "--quick").stdout
    assert "not read" in said
    file.unlink()
    assert file.name in crawled.cli("doctor", "--quick", code=1).stdout


def test_doctor_names_the_pages_whose_body_lay_in_a_lost_record(home: Home) -> None:
    site = Site(chain(4))
    with site.serve() as served:
        home.crawl(served.url("/c0"), scope="host")
        home.recrawl("full")
    damage(home, "/c2")
    found = json.loads(home.cli("doctor", "--json", code=1).stdout)["findings"]
    lost = [one["text"] for one in found if not one["ok"]]
    assert len(lost) == 2 and all("/c2" in text for text in lost)
    assert {"run 0" in text for text in lost} == {True, False}


def test_doctor_names_some_and_counts_the_rest(home: Home) -> None:
    with Site(chain(60)).serve() as served:
        home.crawl(served.url("/c0"), scope="host")
    file, *_ = spot(home, "/c0")
    file.unlink()
    bad = [one for one in json.loads(home.cli("doctor", "--json", code=1).stdout)["findings"] if not one["ok"]]
    assert any("missing" in one["text"] for one in bad)
    assert sum("has lost http://" in one["text"] for one in bad) == 20
    assert "more pages" in bad[-1]["text"]


def test_doctor_shows_how_far_it_is(crawled: Home) -> None:
    from inchworm.cli import doctor

    seen: list[tuple[str, int, int]] = []
    doctor.examine(crawled.app, progress=lambda name, done, total: seen.append((name, done, total)))
    total = len(crawled.record())
    assert seen and seen[-1][1] == seen[-1][2] >= total


# Exports


def test_the_warc_export_leaves_out_what_is_lost_and_says_so(crawled: Home, tmp_path: Path) -> None:
    damage(crawled, LOST)
    out = tmp_path / "out.warc.gz"
    done = crawled.cli("export", crawled.word, "--format", "warc", "-o", str(out))
    assert named(done.stderr + "\n") == {LOST} and "1 page" in done.stderr
    records = list(ArchiveIterator(io.BytesIO(out.read_bytes())))
    kept = {path_of(one.rec_headers.get_header("WARC-Target-URI")) for one in records if one.rec_type == "response"}
    assert kept >= {f"/c{number}" for number in range(PAGES)} - {LOST} and LOST not in kept
    asked = json.loads(crawled.cli("export", crawled.word, "--format", "warc", "-o", str(out), "--json").stdout)
    assert [path_of(url) for url in asked["lost"]] == [LOST] and asked["skipped"] == 1
    last = list(reader.records(out))[-1]
    assert last.headers["warc-type"] == "metadata" and LOST.encode() in last.content, "also where nobody is told"


def test_a_page_whose_body_lay_in_a_lost_record_is_lost_too(home: Home, tmp_path: Path) -> None:
    with Site(chain(4)).serve() as served:
        home.crawl(served.url("/c0"), scope="host")
        home.recrawl("full")
    damage(home, "/c2")
    out = tmp_path / "out.warc.gz"
    told = json.loads(home.cli("export", home.word, "--format", "warc", "-o", str(out), "--json").stdout)
    assert [path_of(url) for url in told["lost"]] == ["/c2"]


def test_a_file_of_the_archive_that_is_gone_takes_only_its_own_pages_along(home: Home, tmp_path: Path) -> None:
    with Site(chain(6)).serve() as served:
        home.crawl(served.url("/c0"), scope="host", budget=3)
        home.crawl(served.url("/c0"), budget=0)
    spot(home, "/c0")[0].unlink()
    out = tmp_path / "out.warc.gz"
    told = json.loads(home.cli("export", home.word, "--format", "warc", "-o", str(out), "--json").stdout)
    assert {"/c0", "/c1", "/c2"} <= {path_of(url) for url in told["lost"]}
    assert {path_of(record.headers.get("warc-target-uri", "")) for record in reader.records(out)} >= {"/c3", "/c5"}


@pytest.mark.parametrize("format_name", ["markdown", "files"])
def test_exports_that_read_bodies_name_what_is_lost(crawled: Home, tmp_path: Path, format_name: str) -> None:
    damage(crawled, LOST)
    done = crawled.cli("export", crawled.word, "--format", format_name, "-o", str(tmp_path / "out"))
    assert named(done.stderr + "\n") == {LOST}
    assert len((tmp_path / "out" / "index.jsonl").read_text().splitlines()) == PAGES - 1


# Replay


def test_a_crawl_from_a_damaged_archive_loses_only_the_damaged_pages(home: Home, tmp_path: Path) -> None:
    pages = {f"/p{number}": f"<title>{number}</title><p>This is page {number}." for number in range(10)}
    links = "".join(f'<a href="{path}">x</a>' for path in pages)
    with Site({**pages, "/": f"<title>home</title><p>All of them.{links}"}).serve() as served:
        home.crawl(served.url("/"), workers=1)
        url = served.url("/")
    file, offset, length = spot(home, "/p4")
    copy = tmp_path / "copy.warc.gz"
    data = bytearray(file.read_bytes())
    for at in range(offset + length // 2 - 50, offset + length // 2 + 50):
        data[at] ^= 0x5A
    copy.write_bytes(data)
    other = Home(tmp_path / "other")
    try:
        ended = other.crawl(url, replay=(str(copy),))
        assert ended.pages == 10
        failed = other.app.pages.failed(other.word)[0].record
    finally:
        other.app.close()
    assert path_of(failed.request_url) == "/p4" and failed.failure == "not_in_archive"
    assert "damaged" in failed.message
