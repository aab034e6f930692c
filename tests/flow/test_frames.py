"""The frame of a host: what exports, search and pages leave out, what stays, and that the record ignores it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, path_of
from tests.flow.test_search import check_against_new, found, go_on, index_of

from inchworm import Crawl
from inchworm.app.act.content.selection import ExportOptions
from inchworm.errors import WrongUse
from inchworm.testing import Site

NOTICE = "Every parcel leaves our stores in Kassel within two working days of the order, whatever the weather."
OTHER = "From now on parcels leave our stores in Bremen on the very day of the order, except on holidays."
SUBJECTS = [
    "anvils",
    "bellows",
    "candles",
    "drums",
    "easels",
    "flutes",
    "grills",
    "hammers",
    "inkwells",
    "jugs",
    "kettles",
    "lamps",
    "mirrors",
    "nets",
]


def about(subject: str, *links: str, common: str = NOTICE) -> str:
    """A page whose notice stands in its text like any other paragraph: nobody who sees this page alone could tell."""
    said = [
        f"<p>Our {subject} are number {n} of their kind, and those who own {subject} say so gladly.</p>"
        for n in range(3)
    ]
    notice = f"<p>{common}</p>" if common else ""
    anchors = "".join(f"<p>See also <a href='{link}'>what belongs to {subject}</a>.</p>" for link in links)
    return (
        f"<!doctype html><title>About {subject}</title><body><h1>All about {subject}</h1>"
        f"{said[0]}{notice}{said[1]}{said[2]}{anchors}</body>"
    )


def shop(common: str | Mapping[str, str] = NOTICE) -> dict[str, Any]:
    paths = [f"/{subject}" for subject in SUBJECTS]
    notice_of = common if isinstance(common, Mapping) else dict.fromkeys(SUBJECTS, common)
    pages = {
        path: about(subject, following, common=notice_of.get(subject, ""))
        for path, subject, following in zip(paths, SUBJECTS, [*paths[1:], paths[0]], strict=True)
    }
    return {
        "/": "<!doctype html><title>Shop</title><p>Come in and look at <a href='/anvils'>anvils</a>, please.</p>",
        **pages,
    }


def texts(home: Home, **wanted: Any) -> dict[str, str]:
    out = io.BytesIO()
    home.app.export.to_file(home.word, "jsonl", out, ExportOptions(**wanted, columns=("url", "text")))
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    return {path_of(row["url"]): row["text"] or "" for row in rows}


def with_notice(home: Home, notice: str = NOTICE, **wanted: Any) -> set[str]:
    """The subjects whose text has it."""
    return {path[1:] for path, text in texts(home, **wanted).items() if notice in text}


@pytest.fixture
def crawled(home: Home) -> Home:
    with Site(shop()).serve() as served:
        home.crawl(served.url("/"))
    return home


# ---- what is left out


def test_tables_lack_what_most_pages_say(crawled: Home) -> None:
    assert with_notice(crawled) == set()
    assert with_notice(crawled, frame="keep") == set(SUBJECTS)
    for path, text in texts(crawled).items():
        assert path == "/" or text.count(f"Our {path[1:]} are number") == 3, "all else is there"
    out = io.BytesIO()
    crawled.app.export.to_file(crawled.word, "csv", out, ExportOptions(columns=("markdown", "html")))
    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode())))
    assert len(rows) == len(SUBJECTS) + 1
    assert not any(NOTICE in row["markdown"] + row["html"] for row in rows)
    assert all("All about" in row["html"] for row in rows[1:])


def test_chunks_and_folders_lack_it_too(crawled: Home, tmp_path: Path) -> None:
    for frame, is_there in (("drop", False), ("keep", True)):
        out = io.BytesIO()
        crawled.app.export.to_file(crawled.word, "chunks", out, ExportOptions(frame=frame))
        assert (NOTICE in out.getvalue().decode()) == is_there
        folder = tmp_path / frame
        crawled.cli("export", crawled.word, "--format", "markdown", "-o", str(folder), "--frame", frame)
        files = "".join(file.read_text() for file in folder.rglob("*.md"))
        assert (NOTICE in files, "number 2 of their kind" in files) == (is_there, True)
    crawled.cli("export", crawled.word, "--format", "markdown", "-o", str(tmp_path / "all.zip"))
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        assert NOTICE not in "".join(packed.read(name).decode() for name in packed.namelist())


def test_search_does_not_find_it(crawled: Home) -> None:
    assert found(crawled, "kassel parcel") == []
    assert found(crawled, "hammers gladly") == ["/hammers"]
    assert len(found(crawled, "kassel parcel", limit=50, frame="keep")) == len(SUBJECTS)
    assert "14 results" in crawled.cli("search", crawled.word, "kassel", "--limit", "20", "--frame", "keep").stdout
    check_against_new(crawled)


def test_showing_a_page_says_that_something_was_left_out(crawled: Home) -> None:
    done = crawled.cli("show", crawled.word, "/lamps", "--text")
    assert NOTICE not in done.stdout
    assert "1 block left out" in done.stderr
    assert crawled.ask("show", crawled.word, "/lamps", "--markdown")["left_out"] == 1
    kept = crawled.cli("show", crawled.word, "/lamps", "--markdown", "--frame", "keep")
    assert NOTICE in kept.stdout
    assert not kept.stderr
    assert NOTICE in crawled.cli("show", crawled.word, "/lamps", "--raw-html").stdout


def test_pages_of_the_library(crawled: Home) -> None:
    crawl = Crawl(name=crawled.app.workspace.find(crawled.word).name, home=crawled.folder)
    pages = {path_of(page.url): page for page in crawl.pages()}
    assert not any(NOTICE in page.text + page.markdown + page.html for page in pages.values())
    assert NOTICE in pages["/nets"].raw_html
    assert (pages["/nets"].left_out, pages["/"].left_out) == (1, 0)
    assert NOTICE in "\n".join(pages["/nets"].lines()), "versions are compared as they are"
    kept = next(page for page in crawl.pages(frame="keep") if page.url.endswith("/nets"))
    assert NOTICE in kept.text
    assert kept.left_out == 0
    assert NOTICE in crawl.page(kept.url, frame="keep").text
    assert NOTICE not in crawl.page(kept.url).text
    assert crawl.search("kassel")["count"] == 0
    assert crawl.search("kassel", frame="keep")["count"] == len(SUBJECTS)


def test_what_cannot_be_meant_is_refused(crawled: Home, tmp_path: Path) -> None:
    assert "has no text" in crawled.cli("export", crawled.word, "--format", "urls", "--frame", "keep", code=2).stderr
    crawled.cli("export", crawled.word, "--frame", "away", code=2)
    with pytest.raises(WrongUse, match="away"):
        crawled.app.search.find(crawled.word, "kassel", frame="away")


# ---- what stays


def test_a_page_that_says_little_else_keeps_it(home: Home) -> None:
    site = shop()
    site["/lamps"] = f"<!doctype html><title>Lamps</title><h1>Lamps</h1><p>{NOTICE}</p><p><a href='/mirrors'>on</a></p>"
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    assert with_notice(home) == {"lamps"}


def test_one_text_in_many_variants_stays(home: Home) -> None:
    """The days of a calendar are most pages of the host, and say the same."""
    day = "<!doctype html><title>Day {0}</title><h1>Day {0}</h1><p>{1}</p><p>On this day we are here until five.</p>"
    site = shop("") | {f"/day{n}": day.format(n, NOTICE) for n in range(30)}
    site["/"] += "".join(f"<a href='/day{n}'>{n}</a>" for n in range(30))
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    assert with_notice(home) == {f"day{n}" for n in range(30)}


def test_what_is_frame_on_one_host_is_text_on_another(home: Home) -> None:
    site = shop()
    with Site(site).serve() as served:
        other = served.url("/page").replace("127.0.0.1", "localhost")
        site["/page"] = about("other things")
        home.crawl(served.url("/"), other, include=["*"])
    assert with_notice(home) == {"page"}


def test_a_few_pages_tell_nothing(home: Home) -> None:
    site = shop()
    site["/grills"] = about("grills")
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    assert with_notice(home) == set(SUBJECTS[:7])


# ---- when it is known


def test_a_run_that_is_not_complete_has_no_frame_of_its_own(home: Home) -> None:
    with Site(shop()).serve() as served:
        home.crawl(served.url("/"), budget=12)
        assert with_notice(home) >= set(SUBJECTS[:8]), "nobody knows yet"
        home.resume(budget=0)
        assert with_notice(home) == set()
        home.recrawl(budget=5)
        assert with_notice(home) == set(), "the run before it is complete"


def test_each_run_has_its_own(home: Home) -> None:
    site = shop()
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
        site.update(shop(OTHER))
        home.recrawl()
    assert with_notice(home) | with_notice(home, OTHER) == set()
    assert with_notice(home, run=0) | with_notice(home, OTHER, run=1) == set()
    assert with_notice(home, run=0, frame="keep") == with_notice(home, OTHER, run=1, frame="keep") == set(SUBJECTS)


def rows(home: Home) -> list[str]:
    """The whole record of a crawl."""
    with sqlite3.connect(index_of(home).with_name("crawl.db")) as db:
        found = list(db.iterdump())
    db.close()
    return found


def test_the_record_and_its_verdicts_know_nothing_of_it(tmp_path: Path) -> None:
    """One home is exported and searched between its runs, the other is not."""
    looking, blind = Home(tmp_path / "looking"), Home(tmp_path / "blind")
    site = shop(dict.fromkeys(SUBJECTS[:9], NOTICE))
    with Site(site, validators=True).serve() as served:
        for common in ({}, dict.fromkeys(SUBJECTS, NOTICE), dict.fromkeys(SUBJECTS, OTHER)):
            site.update(shop(common) if common else {})
            for home in (looking, blind):
                home.crawl(served.url("/")) if not common else home.recrawl()
            before = rows(looking)
            texts(looking)
            found(looking, "parcel")
            assert rows(looking) == before
    assert [looking.story(run) for run in range(3)] == [blind.story(run) for run in range(3)]
    looking.app.close()
    blind.app.close()


# ---- along the way


def test_an_index_along_the_way_is_as_if_made_anew(home: Home) -> None:
    site = shop(dict.fromkeys(SUBJECTS[:6], NOTICE))
    with Site(site).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=4)
        assert len(found(home, "kassel", limit=50)) == 6, "on less than half of the pages it is text"
        check_against_new(home)
        site.update(shop())
        home.crawl(served.url("/"), checkpoint_every=4)
        assert found(home, "kassel") == []
        check_against_new(home)
        site.update(shop(dict.fromkeys(SUBJECTS[:10], OTHER)))
        home.crawl(served.url("/"), checkpoint_every=4)
        assert found(home, "bremen") == []
        check_against_new(home)
        second = [one for one in home.checkpoints() if one["run"] == 2]
        go_on(home, second[1]["checkpoint_number"], budget=2)
        assert found(home, "bremen") != [], "the run is open again, and goes by the frame of the one before"
        check_against_new(home)
        go_on(home, second[0]["checkpoint_number"], as_new_run=True, budget=3)
        check_against_new(home)
        site.update(shop(OTHER))
        home.resume(budget=0)
        assert found(home, "bremen") == []
        check_against_new(home)
        home.crawl(served.url("/"))
        check_against_new(home)


def test_only_pages_that_have_the_block_are_read_again(home: Home) -> None:
    site = shop(dict.fromkeys(SUBJECTS[:9], NOTICE))
    with Site(site).serve() as served:
        home.crawl(served.url("/"), budget=14, sitemap=False)
        assert home.status()["run_state"] == "paused"
        assert len(found(home, "kassel", limit=50)) == 9
        before = contents(home)
        home.resume(budget=0)
    assert found(home, "kassel") == []
    after = contents(home)
    assert {path for path in before if before[path] != after[path]} == {f"/{subject}" for subject in SUBJECTS[:9]}
    check_against_new(home)


def contents(home: Home) -> dict[str, int]:
    """Under which number the index has the text of each page."""
    with sqlite3.connect(index_of(home)) as db:
        rows = db.execute("SELECT url, content_id FROM page").fetchall()
    db.close()
    return {path_of(url): content_id for url, content_id in rows}


def test_frames_are_found_anew_where_the_file_is_of_no_use(crawled: Home) -> None:
    first = texts(crawled)
    file = index_of(crawled).with_name("frames.db")
    for damage in (b"", b"something else " * 2000):
        file.write_bytes(damage)
        assert texts(crawled) == first
    file.unlink()
    assert texts(crawled) == first


def test_a_crawl_may_keep_it_for_good(crawled: Home) -> None:
    crawled.cli("configure", crawled.word, "--frame", "keep")
    assert with_notice(crawled) == set(SUBJECTS)
    assert len(found(crawled, "kassel", limit=50)) == len(SUBJECTS)
    assert with_notice(crawled, frame="drop") == set(), "whoever asks for it gets it"
    crawled.cli("configure", crawled.word, "--unset", "frame")
    assert with_notice(crawled) == set()
