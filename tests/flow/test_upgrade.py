"""Going on with what a version before has left behind, which read pages otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from tests.flow.crawling import Home, page, path_of
from tests.flow.test_incremental import serving

from inchworm.rules.text import content
from inchworm.testing import Served, Site

Pages = dict[str, str]
LARGE = page("large", body="<p>And so it goes on and on, one line after the other.</p>\n" * 85_000)


def crawl_db(home: Home) -> Path:
    (found,) = home.folder.rglob("crawl.db")
    return found


def age(home: Home) -> None:
    """Make it look as if a version before had read all that is on record: equal texts have equal hashes, but others."""
    with closing(sqlite3.connect(crawl_db(home))) as db, db:
        db.create_function("old", 1, lambda data: data and sha256(b"old" + data).digest(), deterministic=True)
        db.execute(
            "UPDATE visit SET reader = '4' || SUBSTR(reader, 2), text_hash = old(text_hash), link_hash = old(link_hash)"
        )


def readers(home: Home) -> set[str]:
    with closing(sqlite3.connect(crawl_db(home))) as db:
        return {reader for (reader,) in db.execute("SELECT reader FROM visit WHERE outcome = 'page'")}


def full(served: Served, since: int) -> list[str]:
    return sorted(hit.path for hit in served.log[since:] if hit.status == 200 and hit.path != "/robots.txt")


def site() -> Pages:
    pages: Pages = {path: page(path) for path in ("/a", "/b", "/c")}
    return {"/": page("home", *pages, "/large"), "/large": LARGE, **pages}


def test_a_new_reader_finds_nothing_modified_and_downloads_nothing(home: Home) -> None:
    with serving(Site(site(), validators=True)) as served:
        assert home.crawl(served.url("/")).pages == 5
        age(home)
        since = len(served.log)
        summary = home.recrawl()
        assert (summary.unchanged, summary.modified, summary.unknown) == (5, 0, 0)
        assert len([hit for hit in served.log[since:] if hit.status == 304]) == 4, "the seed is asked for in full"
        assert {reader.split()[0] for reader in readers(home)} == {"4", content.READER}


@pytest.mark.parametrize("changed", ["/a", "/large"])
def test_what_changed_since_is_told_across_readers(home: Home, changed: str) -> None:
    pages = site()
    with serving(Site(pages)) as served:
        home.crawl(served.url("/"))
        age(home)
        pages[changed] = pages[changed].replace("in sentence 2", "in sentence two")
        summary = home.recrawl()
        assert (summary.unchanged, summary.modified) == (4, 1)
        shown = home.show(served.url(changed))
        assert '"2" → "two"' in str(shown)


def test_nothing_is_modified_because_its_last_version_is_lost(home: Home) -> None:
    pages = site()
    with serving(Site(pages)) as served:
        home.crawl(served.url("/"))
        age(home)
        for file in home.folder.rglob("*.warc.gz"):
            file.unlink()
        pages |= {path: f"{text}<!-- -->" for path, text in pages.items()}
        home.cli("recrawl", home.word, "--delay", "0", "--allow-private")
        run = home.runs()[-1]
        assert (run.modified, run.deleted, run.unknown) == (0, 0, 5)


def copies() -> Pages:
    """Pages, copies of them and more pages, in the order in which they are found."""
    own = {f"/p{number}": page(f"p{number}") for number in range(6)}
    same = {f"/c{number}": own[f"/p{number}"] for number in range(6)}
    more = {f"/q{number}": page(f"q{number}") for number in range(6)}
    return {"/": page("home", *own, *same, *more), **own, **same, **more}


@pytest.mark.parametrize("stop_after", [2, 7, 9])
@pytest.mark.parametrize("workers", [1, 8])
def test_limits_are_exact_in_a_run_that_was_paused_under_another_reader(
    homes: list[Home], stop_after: int, workers: int
) -> None:
    with serving(Site(copies())) as served:
        one, other = homes[:2]
        one.crawl(served.url("/"), page_limit=10, workers=workers)
        other.crawl(served.url("/"), page_limit=10, workers=workers, budget=stop_after)
        age(other)
        summary = other.resume(budget=0)
        assert summary.pages == 10
        assert other.outcomes() == one.outcomes()
        told = {path_of(visit["url"]): visit["alternate_of"] for visit in other.record() if visit["alternate_of"]}
        assert told == {f"/c{number}": served.url(f"/p{number}") for number in range(6) if f"/c{number}" in told}
        assert len(told) == sum(outcome == "duplicate" for _, outcome in one.outcomes()) > 0
