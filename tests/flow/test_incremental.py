"""Crawling again: what changed is found, what did not is not downloaded, and the record does not depend on how."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.crash import checker
from tests.flow.crawling import PATIENCE, Home, page, path_of
from tests.flow.test_checkpoints import assert_same, folder_of, go_on, written
from warcio.archiveiterator import ArchiveIterator

from inchworm.app import Start, Summary
from inchworm.app.read.checkpoints import Back
from inchworm.archive import reader
from inchworm.model import WarcRecord
from inchworm.rules.change import validators
from inchworm.rules.words.json_form import json_object
from inchworm.testing import Answer, Hit, Page, Served, Site, linked_site, redirect

Pages = dict[str, Answer | Callable[[Hit], Answer]]

CHANGES = ("new", "modified", "unchanged", "deleted", "unknown")


# Crawling again, and what came of it


LATER = ("/a", "/b", "/new", "/old", "/news", "/x", "/y")
"""Pages that a test may add while the site is served."""


@contextmanager
def serving(site: Site, runs: int = 6, most: int = 0) -> Iterator[Served]:
    """Serve a site where chance has no part: at a port where of its pages so many at most are asked for as a sample."""
    while True:
        with site.serve() as served:
            every = itertools.product({*site.pages, *LATER}, range(1, runs + 1))
            if sum(validators.is_sampled(served.url(path), run) for path, run in every) <= most:
                yield served
                return


def crawl(home: Home, served: Served, mode: str = "", **given: Any) -> Summary:
    """The next run of the site, or the next session of the run that is open; the record is sound after it."""
    summary = sit(home, served, mode, **given)
    assert not (found := unsound(home)), found
    return summary


def sit(home: Home, served: Served, mode: str = "", **given: Any) -> Summary:
    settings = {"delay": 0, "allow_private": True, "sitemap": False, **given}
    start = Start((served.url("/"),), given=settings, mode=mode)
    return asyncio.run(asyncio.wait_for(home.app.sessions.work(home.app.plan.crawl(start)), PATIENCE))


def back(home: Home, number: int, as_new_run: bool = False, **given: Any) -> Summary:
    """`inchworm continue`, from a checkpoint on."""
    named = {"delay": 0, "allow_private": True, "checkpoint_every": EVERY, **given}
    session = home.app.sessions.work(home.app.plan.continue_from(home.word, Back(number, as_new_run), named))
    summary = asyncio.run(asyncio.wait_for(session, PATIENCE))
    assert not (found := unsound(home)), found
    return summary


def unsound(home: Home) -> list[str]:
    """What `doctor` and the checker find wrong. The size of a page that was not modified is that of the body we have:
    nothing came for it."""
    with tempfile.TemporaryDirectory() as scratch:
        db = checker.copy_store(folder_of(home), Path(scratch))
        assert db is not None
        with closing(db):
            db.execute("UPDATE visit SET size = 0 WHERE status = 304")
            found = checker.store_problems(db)
            if checker.value(db, "SELECT COUNT(*) FROM undone"):
                # Log numbers are not given again, and a session did what it did.
                found = [text for text in found if not text.startswith(("log_id has gaps", "session "))]
            # A branch shares the records that it began with; whoever wrote them owns them.
            if db.execute("UPDATE visit SET requested = 0 WHERE session = 0").rowcount:
                found = [text for text in found if "two visits that own one record" not in text]
            found += checker.archive_problems(db, folder_of(home))
    return [*home.faults(), *found]


def numbers(summary: Summary) -> tuple[int, ...]:
    """New, modified, unchanged, deleted, unknown."""
    return tuple(getattr(summary, name) for name in CHANGES)


class Verdict(NamedTuple):
    """What the last visit to a page came to in a run."""

    outcome: str
    change: str | None
    notes: frozenset[str]
    status: int


def verdicts(home: Home, run: int | None = None) -> dict[str, Verdict]:
    return {
        path_of(visit["url"]): Verdict(
            visit["failure"] or visit["outcome"],
            visit["change"],
            frozenset((visit["note"] or "").split()),
            visit["status"],
        )
        for visit in home.record(run)
    }


def changes(home: Home, run: int | None = None) -> dict[str, str | None]:
    return {path: verdict.change for path, verdict in verdicts(home, run).items()}


def compared(home: Home, *runs: int) -> dict[str, list[str]]:
    """What `inchworm compare` says, by paths."""
    found = home.app.changes.compare(home.word, *runs)
    return {name: sorted(map(path_of, getattr(found, f"{name}_documents"))) for name in CHANGES}


def asked_for(served: Served, since: int = 0) -> list[str]:
    """The pages that the server was asked for, each as often as it was."""
    return [hit.path for hit in served.log[since:] if hit.path != "/robots.txt"]


def star(count: int, **more: Answer) -> Pages:
    """A home page that leads to so many others."""
    paths = [f"/p{number}" for number in range(count)]
    return {"/": page("home", *paths), **{path: page(path) for path in paths}, **more}


# What counts as a change


def test_e10_a_page_that_goes_back_and_forth_is_flapping_and_archived_once_per_body(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a"), "/a": page("A")}
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        for name, flaps in (("B", False), ("A", True), ("B", True)):
            pages["/a"] = page(name)
            assert numbers(crawl(home, served)) == (0, 1, 1, 0, 0)
            assert verdicts(home)["/a"][1:3] == ("modified", {"flapping"} if flaps else set())
        records = [one for one in archived(home) if one.headers["warc-target-uri"] == served.url("/a")]
        assert [one.headers["warc-type"] for one in records] == ["response", "response", "revisit", "revisit"]
        assert compared(home, 0, 2)["unchanged"] == compared(home, 1, 3)["unchanged"] == ["/", "/a"]


def archived(home: Home) -> list[WarcRecord]:
    files = sorted((folder_of(home) / "archive").iterdir())
    return [one for path in files for one in reader.records(path) if one.headers["warc-type"] != "warcinfo"]


def test_e10_a_page_whose_links_changed_does_not_flap(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a"), "/a": page("A", body='<a href="/x">more</a>'), "*": ""}
    with serving(Site(pages)) as served:
        crawl(home, served)
        pages["/a"] = page("A", body='<a href="/y">more</a>')
        crawl(home, served)
        assert verdicts(home)["/a"][1:3] == ("modified", frozenset())


NOISE = {
    "footer-time": "<footer>Built at {0} o'clock</footer>",
    "script-nonce": '<script nonce="n{0}">var t = {0};</script>',
    "csrf-token": '<form><input type="hidden" name="csrf" value="t{0}"></form>',
    "aside-counter": "<aside>Seen {0} times</aside>",
    "comment": "<!-- {0} -->",
    "attribute": '<p data-n="{0}" style="--x: {0}">always</p>',
}


def test_e11_what_is_no_content_is_no_change(home: Home) -> None:
    hits = iter(range(1000))
    pages: Pages = {"/": page("home", *(f"/{name}" for name in NOISE))}
    for name, text in NOISE.items():
        pages[f"/{name}"] = lambda _, name=name, text=text: page(name, body=text.format(next(hits)))
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        assert numbers(crawl(home, served)) == (0, 0, 1 + len(NOISE), 0, 0)
        assert {path for path, verdict in verdicts(home).items() if "bytes" in verdict.notes} == set(pages) - {"/"}
        assert compared(home)["unchanged"] == sorted(pages)


STAMPS = {
    "version": ("Manual 1.0", "Manual 1.1"),
    "date": ("Built on 2026-01-02 03:04:05", "Built on 2026-02-03 04:05:06"),
}


@pytest.mark.parametrize("name", STAMPS)
def test_stamps_that_most_pages_share_are_no_change(home: Home, name: str) -> None:
    old, new = STAMPS[name]
    pages = star(8)
    stamp(pages, old)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        stamp(pages, new)
        pages["/p3"] = str(pages["/p3"]).replace("sentence 2", "sentence two")
        assert numbers(crawl(home, served)) == (0, 1, 8, 0, 0)
        assert {path for path, verdict in verdicts(home).items() if "stamp" in verdict.notes} == set(pages) - {"/p3"}
        assert compared(home)["modified"] == ["/p3"]


def stamp(pages: Pages, text: str) -> None:
    """Every page bears this text, instead of the one it bore."""
    for path, body in pages.items():
        bare = re.sub("<p class=stamp>.*?</p>", "", str(body))
        pages[path] = bare.replace("</main>", f"<p class=stamp>{text}</p></main>")


def test_texts_beside_the_pages_are_no_reason_to_see_no_stamps(home: Home) -> None:
    """Manuals come with the sources of their pages, which bear no stamps."""
    pages = star(6)
    stamp(pages, "Manual 1.0")
    texts: Pages = {f"/p{n}.txt": Page(f"Source {n}", headers={"content-type": "text/plain"}) for n in range(9)}
    pages["/"] = str(pages["/"]).replace("<ul>", "<ul>" + "".join(f"<li><a href={path}>x</a>" for path in texts))
    with serving(Site(both := pages | texts)) as served:
        crawl(home, served)
        stamp(pages, "Manual 1.1")
        both.update(pages)
        assert numbers(crawl(home, served)) == (0, 0, len(both), 0, 0)


def test_a_page_that_came_late_bears_the_same_stamp(home: Home) -> None:
    pages = star(8)
    stamp(pages, "Manual 1.0")
    with serving(Site(pages)) as served:
        crawl(home, served)
        stamp(pages, "Manual 1.1")
        late, pages["/p3"] = pages["/p3"], Page("oops", 500)
        assert numbers(crawl(home, served, max_retries=0)) == (0, 0, 8, 0, 1)
        pages["/p3"] = late
        assert home.app.queue.retry(home.word) == 1
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)


def test_by_bytes_whatever_differs_is_a_change(home: Home) -> None:
    pages = star(2)
    with serving(Site(pages)) as served:
        crawl(home, served, compare_by="bytes")
        pages["/p1"] = f"{pages['/p1']}<!-- new -->"
        assert numbers(crawl(home, served)) == (0, 1, 2, 0, 0)
        assert changes(home)["/p1"] == "modified"


def test_compare_goes_by_bytes_where_the_run_does(home: Home) -> None:
    pages = star(2)
    with serving(Site(pages)) as served:
        crawl(home, served, compare_by="bytes")
        pages["/p1"] = f"{pages['/p1']}<!-- new -->"
        crawl(home, served)
        assert compared(home)["modified"] == ["/p1"]


# Text that does not count


def counted(pages: Pages, seen: int) -> None:
    """Every page but the first tells in its text how often it was seen, each another number."""
    for number, path in enumerate(list(pages)[1:]):
        bare = re.sub("<p class=seen>.*?</p>", "", str(pages[path]))
        pages[path] = bare.replace("</main>", f"<p class=seen>Seen {seen + number} times.</p></main>")


def test_text_that_is_to_be_ignored_is_no_change(home: Home) -> None:
    pages = star(5)
    counted(pages, 10)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served, ignore_text=["Seen * times"])
        counted(pages, 50)
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0)
        pages["/p3"] = str(pages["/p3"]).replace("sentence 2", "sentence two")
        counted(pages, 90)
        assert numbers(crawl(home, served)) == (0, 1, 5, 0, 0)
        (group,) = home.ask("compare", home.word)["modified_groups"]
        assert [(one["before"], one["after"]) for one in group["difference"]] == [("2", "two")]
        assert "Seen 93 times" in home.cli("show", home.word, served.url("/p3"), "--text").stdout


def test_another_rule_of_what_counts_makes_no_page_modified_by_itself(home: Home) -> None:
    pages = star(5)
    counted(pages, 10)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        for given in (["Seen * times"], ["Seen * times", "/p*::re:[0-9]+"], []):
            before = len(served.log)
            assert numbers(crawl(home, served, ignore_text=given)) == (0, 0, 6, 0, 0)
            assert {hit.status for hit in served.log[before:] if hit.path in pages} <= {200, 304}
            assert compared(home)["modified"] == []
        counted(pages, 50)
        assert numbers(crawl(home, served, ignore_text=["Seen * times"])) == (0, 0, 6, 0, 0)


# The same difference on many pages

NOTICE = "<p>This manual is for an old version. You may want to see the same page of the current one.</p>"


def noticed(pages: Pages, paths: list[str]) -> None:
    """These pages bear a notice from now on."""
    for path in paths:
        pages[path] = str(pages[path]).replace("<main>", f"<main>{NOTICE}")


def test_pages_that_changed_in_the_same_way_are_one_group(home: Home) -> None:
    pages = star(14)
    many = [f"/p{number}" for number in range(2, 7)]
    with serving(Site(pages)) as served:
        crawl(home, served)
        noticed(pages, many)
        pages["/p9"] = str(pages["/p9"]).replace("sentence 2", "sentence two")
        crawl(home, served)
        first, second = home.ask("compare", home.word)["modified_groups"]
        assert [path_of(url) for url in first["urls"]] == many
        assert (first["pages"], second["pages"], [path_of(url) for url in second["urls"]]) == (5, 1, ["/p9"])
        (passage,) = first["difference"]
        assert (passage["where"], passage["before"]) == ("text", "")
        assert passage["after"].startswith("This manual is for an old version.")
        said = home.cli("compare", home.word).stdout
        assert said.count("This manual is for an old version") == 1
        assert "/p2 and 4 more" in said
        feed = home.cli("feed", home.word).stdout
        assert feed.count("This manual is for an old version") == 1
        assert "and 4 more" in feed
        # Backwards, and over a run in which others changed as well.
        pages["/p11"] = str(pages["/p11"]).replace("sentence 2", "sentence two")
        crawl(home, served)
        back = home.ask("compare", home.word, "1", "0")["modified_groups"][0]
        assert (back["pages"], back["difference"][0]["after"]) == (5, "")
        groups = home.ask("compare", home.word, "0", "2")["modified_groups"]
        assert [one["pages"] for one in groups] == [5, 2]


# Pages that come back


@pytest.mark.parametrize("gone", [Page("not found", 404), redirect("/other", 301)], ids=["404", "moved"])
@pytest.mark.parametrize("text", ["same", "other"])
def test_a_page_that_is_there_again_is_new_and_back(home: Home, gone: Page, text: str) -> None:
    pages = star(4, **{"/other": page("elsewhere")})
    pages["/"] = page("home", *pages)
    with serving(Site(pages)) as served:
        crawl(home, served)
        before, pages["/p1"] = pages["/p1"], gone
        assert numbers(crawl(home, served)) == (0, 0, 5, 1, 0)
        assert numbers(crawl(home, served)) == (0, 0, 5, 0, 0)
        assert compared(home, 0, 2)["deleted"] == ["/p1"], "it stays gone, though nobody says so again"
        pages["/p1"] = before if text == "same" else page("p1", body="<p>Other text.</p>")
        assert numbers(crawl(home, served)) == (1, 0, 5, 0, 0)
        assert verdicts(home)["/p1"].change == "new"
        assert "back" in verdicts(home)["/p1"].notes
        assert compared(home, 2, 3)["new"] == ["/p1"]
        assert compared(home, 0, 3)["unchanged" if text == "same" else "modified"].count("/p1") == 1
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0)


# News under a page limit


@pytest.mark.parametrize("where", ["early", "middle", "last"])
def test_news_are_found_though_the_old_pages_would_fill_the_limit(homes: list[Home], where: str) -> None:
    limit = 12
    pages = star(20)
    number = {"early": 0, "middle": 5, "last": limit - 2}[where]
    with serving(Site(pages, validators=True)) as served:
        for home in homes[:2]:
            assert crawl(home, served, page_limit=limit).pages == limit
        pages |= {f"/p{number}": page("changed", "/new1", "/new2"), "/new1": page("n1", "/new3")}
        pages |= {"/new2": page("n2"), "/new3": page("n3")}
        for home, workers in zip(homes, (1, 8), strict=False):
            summary = crawl(home, served, workers=workers)
            assert (summary.pages, summary.new, summary.modified) == (limit, 3, 1)
        assert record(homes[0]) == record(homes[1])


def test_old_pages_that_made_way_are_back_after_going_back(home: Home) -> None:
    limit, pages = 12, star(20)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served, page_limit=limit)
        pages |= {f"/p{limit - 2}": page("changed", "/new1", "/new2"), "/new1": page("n1"), "/new2": page("n2")}
        summary = crawl(home, served, checkpoint_every=1)
        assert (summary.pages, summary.new, summary.modified, summary.unknown) == (limit, 2, 1, 2)
        whole = written(home, 1)
        points = [one["checkpoint_number"] for one in home.checkpoints() if one["run"] == 1]
        for number in (points[-1], points[limit - 3], points[0]):
            assert numbers(go_on(home, number, checkpoint_every=1)) == numbers(summary)
            assert_same(written(home, 1), whole)


def test_seeds_and_what_others_are_copies_of_make_no_way(home: Home) -> None:
    pages = star(6)
    pages["/p3"] = pages["/p2"]
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served, page_limit=4)
        pages |= {"/p4": page("changed", *(f"/new{number}" for number in range(6)))}
        pages |= {f"/new{number}": page(f"new{number}") for number in range(6)}
        crawl(home, served)
    kept = {path for path, one in verdicts(home).items() if one.outcome == "page"}
    assert len(kept) == 4 and {"/", "/p2"} <= kept


def test_news_of_news_come_first_too(home: Home) -> None:
    pages = star(8)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served, page_limit=8)
        pages |= {"/p0": page("changed", "/n0")}
        pages |= {f"/n{number}": page(f"n{number}", f"/n{number + 1}") for number in range(20)}
        summary = crawl(home, served)
        assert (summary.pages, summary.new, summary.unknown) == (8, 6, 6)
        assert list(verdicts(home)) == ["/", "/p0", *(f"/n{number}" for number in range(6))]


def test_news_come_first_though_the_disk_is_slow(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing old is asked for while it is being written down what a page brought."""

    def slowly(descriptor: int) -> None:
        time.sleep(0.4)
        sync(descriptor)

    sync, pages = os.fdatasync, star(8)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served, page_limit=8)
        pages |= {"/p0": page("changed", "/n0")}
        pages |= {f"/n{number}": page(f"n{number}", f"/n{number + 1}") for number in range(20)}
        monkeypatch.setattr(os, "fdatasync", slowly)
        since = len(served.log)
        summary = crawl(home, served)
        assert (summary.pages, summary.new, summary.unknown) == (8, 6, 6)
        assert asked_for(served, since) == ["/", "/p0", *(f"/n{number}" for number in range(6))]


# The record


def record(home: Home, run: int | None = None) -> list[tuple[Any, ...]]:
    """Every visit in order: what it was, what it came to, and what had changed."""
    return [
        tuple(visit[name] for name in ("seq", "url", "outcome", "failure", "status", "change", "note"))
        for visit in home.record(run)
    ]


def grow(pages: Pages, count: int) -> None:
    """Everything that can happen to a page of a linked site of so many happens to some."""
    for number in range(3, count):
        path = f"/p{number}"
        body, new = str(pages[path]), f"/new/{number}"
        if number % 12 == 3:
            pages[path] = body.replace("<p>", "<p>News. ")
        elif number % 12 == 5:
            pages[path] = body.replace("</ul>", f'<li><a href="{new}">new</a></li></ul>')
            pages |= {new: page(new, "/p1", f"{new}/more"), f"{new}/more": page(f"{new}/more")}
        elif number % 12 == 8:
            del pages[path]
        elif number % 12 == 10:
            pages |= {path: redirect(f"/moved/{number}", 301), f"/moved/{number}": body}
    # Two pages that lead nowhere any more.
    pages |= {path: page(path) for path in ("/p1", "/p2")}


COUNT = 120
EVERY = 9


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twice]:
    """A site that was crawled, and has changed since."""
    folder = tmp_path_factory.mktemp("twice")
    pages: Pages = dict(linked_site(COUNT, duplicates=8))
    with Site(pages, validators=True).serve() as served:
        before = Home(folder / "before")
        crawl(before, served, checkpoint_every=EVERY)
        before.app.close()
        grow(pages, COUNT)
        shutil.copytree(before.folder, folder / "after")
        after = Home(folder / "after")
        crawl(after, served, checkpoint_every=EVERY)
        yield Twice(served, before, after)
        after.app.close()


class Twice(NamedTuple):
    """A site that has changed, a home that saw it before, and one that has seen it since."""

    served: Served
    before: Home
    after: Home


@pytest.fixture
def once(twice: Twice, tmp_path: Path) -> Iterator[Home]:
    """A home that has crawled the site before it changed."""
    shutil.copytree(twice.before.folder, tmp_path / "once")
    home = Home(tmp_path / "once")
    yield home
    home.app.close()


@pytest.fixture
def again(twice: Twice, tmp_path: Path) -> Iterator[Home]:
    """A home that has crawled the site before it changed and after it."""
    shutil.copytree(twice.after.folder, tmp_path / "again")
    home = Home(tmp_path / "again")
    yield home
    home.app.close()


def totals(home: Home) -> dict[str, Any]:
    """A run in numbers, without times."""
    passing = ("started_at", "ended_at")
    last = json_object(home.runs()[-1])
    return {name: value for name, value in last.items() if name not in passing}


def assert_as_ever(home: Home, twice: Twice) -> None:
    assert totals(home) == totals(twice.after)
    assert record(home) == record(twice.after)
    assert unsound(home) == []
    assert compared(home) == compared(twice.after)


def test_the_site_has_a_bit_of_everything(twice: Twice) -> None:
    found = totals(twice.after)
    assert all(found[name] for name in CHANGES if name != "unknown")
    assert found["unknown"] == 0
    notes = {note for verdict in verdicts(twice.after).values() for note in verdict.notes}
    assert {"moved", "unlinked", "sampled"} <= notes


@pytest.mark.parametrize("workers", [1, 16])
def test_the_record_does_not_depend_on_the_number_of_workers(once: Home, twice: Twice, workers: int) -> None:
    crawl(once, twice.served, workers=workers, checkpoint_every=EVERY)
    assert_as_ever(once, twice)


@pytest.mark.parametrize("budget", [7, 50])
def test_the_record_does_not_depend_on_sessions(once: Home, twice: Twice, budget: int) -> None:
    while crawl(once, twice.served, budget=budget, checkpoint_every=EVERY).run_state != "completed":
        assert len(once.status()["sessions"]) < COUNT
    assert_as_ever(once, twice)


OPTIONS = ("--delay", "0", "--allow-private", "--no-sitemap", "--checkpoint-every", str(EVERY))


def die_and_go_on(home: Home, twice: Twice, fault: str) -> int:
    """The same command, again and again, in processes that are killed there; how many were."""
    for killed in itertools.count():
        with home.running("crawl", twice.served.url("/"), *OPTIONS, INCHWORM_FAULT=fault) as process:
            process.communicate(timeout=PATIENCE)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            return killed
    raise AssertionError("it never ends")


@pytest.mark.parametrize("fault", ["before_commit:3", "after_commit:3"])
def test_the_record_does_not_depend_on_deaths(once: Home, twice: Twice, fault: str) -> None:
    assert die_and_go_on(once, twice, fault) > 0
    assert_as_ever(once, twice)


@pytest.mark.parametrize("fault", ["in_commit:3", "in_commit:4"])
def test_the_record_does_not_depend_on_deaths_at_its_end(once: Home, twice: Twice, fault: str) -> None:
    """What was not reached is asked for, and what changed is decided, as a whole or not at all. A process begins
    with a commit of its own, and makes one or two more before it dies in the next."""
    unlinked = sum("unlinked" in verdict.notes for verdict in verdicts(twice.after).values())
    crawl(once, twice.served, budget=totals(twice.after)["requests"] - unlinked - 10, checkpoint_every=EVERY)
    assert die_and_go_on(once, twice, fault) > 0
    assert_as_ever(once, twice)


# Going back


def test_going_back_within_an_incremental_run_and_on_again_gives_the_same(again: Home, twice: Twice) -> None:
    points = [one for one in again.checkpoints() if one["run"] == 1]
    assert {one["current_substate"] for one in points} == {"downloading_pages", "finishing"}
    for point in reversed(points[::3]):
        back(again, point["checkpoint_number"], workers=3)
        assert_as_ever(again, twice)


def test_branching_off_within_an_incremental_run_gives_the_same(again: Home, twice: Twice) -> None:
    number = [one["checkpoint_number"] for one in again.checkpoints() if one["run"] == 1][4]
    back(again, number, as_new_run=True)
    ours, theirs = totals(again), totals(twice.after)
    for name in (*CHANGES, "pages", "duplicates", "failed", "requests", "parent"):
        assert ours[name] == theirs[name], name
    assert changes(again) == changes(twice.after)
    assert compared(again, 0, 2) == compared(twice.after, 0, 1)
    assert not any(found for name, found in compared(again, 1, 2).items() if name != "unchanged")
    # What comes after it builds on it as on any other.
    assert numbers(crawl(again, twice.served))[:2] == (0, 0)


def test_going_back_to_before_a_lie_was_found_out_gives_the_same(homes: list[Home]) -> None:
    pages = lying(12)
    with serving(Site(pages)) as served:
        for home in homes[:2]:
            crawl(home, served)
        pages["/"] = Page(page("other", *(f"/p{number}" for number in range(12))), headers={"ETag": '"/"'})
        for home in homes[:2]:
            assert numbers(crawl(home, served, checkpoint_every=3)) == (0, 1, 12, 0, 0)
        before = [one for one in homes[1].checkpoints() if one["run"] == 1][1]
        back(homes[1], before["checkpoint_number"], checkpoint_every=3)
        assert record(homes[1]) == record(homes[0])


def lying(count: int) -> Pages:
    """Pages whose entity tags never change."""
    bodies = star(count)

    def answer(hit: Hit) -> Page:
        tag = f'"{hit.path}"'
        return Page(str(bodies[hit.path]), 304 if hit.headers.get("if-none-match") == tag else 200, {"ETag": tag})

    return dict.fromkeys(bodies, answer)


def test_a_duplicate_of_a_page_that_was_taken_back_is_looked_at_again(home: Home) -> None:
    links = ("/p0", "/p1", "/copy")
    pages = lying(2)
    with serving(Site(pages)) as served:
        pages |= {"/": Page(page("home", *links), headers={"ETag": '"/"'}), "/copy": page("/p1")}
        assert crawl(home, served).duplicates == 1
        pages["/"] = Page(page("other", *links), headers={"ETag": '"/"'})
        pages["/p1"] = lambda hit: Page(page("anew"), 304 if "if-none-match" in hit.headers else 200, {"ETag": '"/p1"'})
        summary = crawl(home, served)
        assert (summary.pages, summary.duplicates) == (4, 0)


def test_the_record_of_lies_does_not_depend_on_workers_or_sessions(homes: list[Home]) -> None:
    pages = lying(20)
    with serving(Site(pages)) as served:
        for home in homes[:3]:
            crawl(home, served)
        pages["/"] = Page(page("other", *(f"/p{number}" for number in range(0, 20, 2))), headers={"ETag": '"/"'})
        crawl(homes[0], served, workers=1)
        crawl(homes[1], served, workers=16)
        while crawl(homes[2], served, budget=4).run_state != "completed":
            pass
        assert numbers_of(homes[0]) == numbers_of(homes[1]) == numbers_of(homes[2]) == (0, 1, 20, 0, 0)
        assert record(homes[0]) == record(homes[1]) == record(homes[2])


def numbers_of(home: Home) -> tuple[int, ...]:
    return tuple(totals(home)[name] for name in CHANGES)


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "max-depth": {"max_depth": 3},
    "page-limit": {"page_limit": 40},
    "exclude": {"exclude": ("*/p7*",)},
    "hops": {"external_hops": 2, "max_depth": 4},
    "strict": {"strict_order": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_an_incremental_run_finds_what_a_full_one_finds(homes: list[Home], way: str) -> None:
    pages, elsewhere = dict[str, Any](linked_site(60, duplicates=4)), {"*": page("elsewhere")}
    with Site(pages, {"localhost": elsewhere}, validators=True).serve() as served:
        for number in range(4, 60, 9):
            body = str(pages[f"/p{number}"]).replace("<head>", '<head><meta name="robots" content="nofollow">')
            pages[f"/p{number}"] = body.replace("</main>", f'<a href="{served.url("/x", "localhost")}">x</a></main>')
        for home in homes[:2]:
            crawl(home, served, **WAYS[way])
        grow(pages, 60)
        for _ in range(2):
            crawl(homes[0], served, mode="incremental", workers=7)
            crawl(homes[1], served, mode="full")
            assert numbers_of(homes[0]) == numbers_of(homes[1])
            assert ends(homes[0]) == ends(homes[1])
            assert compared(homes[0]) == compared(homes[1])
            pages |= linked_site(60, duplicates=4)
        assert (totals(homes[0])["saved_bytes"] > 0, totals(homes[1])["saved_bytes"]) == (True, 0)


def ends(home: Home) -> list[tuple[Any, ...]]:
    """How every URL of the last run ended, and how far from its seed."""
    with home.app.workspace.reading(home.app.workspace.find(home.word)) as store:
        return store.db.execute(
            "SELECT u.url, f.state, f.reason, f.kind, f.depth, f.hops, f.unlinked, v.outcome, v.failure, v.change"
            " FROM frontier f JOIN url u USING (url_id) LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " AND v.url_id = f.url_id WHERE f.run_id = (SELECT MAX(run_id) FROM run) ORDER BY 1"
        ).fetchall()


# Two runs side by side


def versions() -> list[Pages]:
    """A site as five runs met it. Its home page leads to every page there is, outside of its text."""
    first = {f"/{name}": page(name) for name in ("same", "edited", "gone", "flaky", "dropped", "back")}
    second = {**first, "/edited": page("edited", body="<p>Second.</p>"), "/new": page("new")}
    second |= {"/gone": Page("gone", 410), "/back": Page("not found", 404)}
    third = {
        **second,
        "/edited": page("edited", body="<p>Third.</p>"),
        "/newer": page("newer"),
        "/back": first["/back"],
    }
    third |= {"/flaky": Page("oops", 500), "/dropped": Page("not found", 404)}
    fourth = {**third, "/edited": first["/edited"], "/flaky": first["/flaky"]}
    return [{**one, "/": page("home", *one)} for one in (first, second, third, fourth)]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A crawl with four complete runs: 0, 1, 3 and 4. Run 2 was cancelled soon, run 5 branched off from run 4."""
    home, pages = Home(tmp_path_factory.mktemp("four") / "home"), versions()[0]
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        for number, version in enumerate(versions()[1:]):
            pages |= version
            crawl(home, served, max_retries=0, checkpoint_every=2)
            if number == 0:
                crawl(home, served, budget=3)
                home.app.steer.cancel(home.word)
        points = [one["checkpoint_number"] for one in home.checkpoints() if one["run"] == 4]
        back(home, points[1], as_new_run=True)
    yield home
    home.app.close()


def expected(old: Pages, new: Pages) -> dict[str, list[str]]:
    """What became of pages, by what the server said of them then and now."""

    def is_page(pages: Pages, path: str) -> bool:
        return isinstance(pages.get(path), str)

    def name(path: str) -> str:
        if is_page(old, path) and is_page(new, path):
            return "unchanged" if path == "/" or old[path] == new[path] else "modified"
        if is_page(new, path):
            return "new"
        answer = new[path]
        return "deleted" if isinstance(answer, Page) and answer.status in (404, 410) else "unknown"

    found: dict[str, list[str]] = {one: [] for one in CHANGES}
    for path in sorted(old.keys() | new.keys()):
        if is_page(old, path) or is_page(new, path):
            found[name(path)].append(path)
    return found


RUNS = {0: 0, 1: 1, 3: 2, 4: 3, 5: 3}
"""Which version of the site each run met."""

PAIRS = [(first, second) for first in RUNS for second in RUNS]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{first}-{second}" for first, second in PAIRS])
def test_any_two_runs_can_be_compared(four: Home, first: int, second: int) -> None:
    old, new = versions()[RUNS[first]], versions()[RUNS[second]]
    if first > second:
        # Backwards in time: what came then is gone now.
        wanted = expected(new, old)
        wanted |= {"deleted": wanted["new"], "new": sorted([*wanted["deleted"], *wanted["unknown"]]), "unknown": []}
    else:
        wanted = expected(old, new)
    found = compared(four, first, second)
    assert {name: sure(paths) for name, paths in found.items()} == {name: sure(paths) for name, paths in wanted.items()}
    assert ("/flaky" in found["unknown"]) == (first < 3 == second)


def sure(paths: list[str]) -> list[str]:
    """Without the page that failed in one of the runs."""
    return [path for path in paths if path != "/flaky"]


def test_a_run_that_was_cancelled_can_be_compared(four: Home) -> None:
    reached = set(verdicts(four, 2))
    assert 0 < len(reached) < 7
    found = compared(four, 1, 2)
    assert set(found["unchanged"]) == reached
    assert (found["new"], found["modified"], found["deleted"]) == ([], [], [])
    assert set(found["unknown"]) == {"/", "/same", "/edited", "/flaky", "/dropped", "/new"} - reached
    later = compared(four, 2, 3)
    assert not later["deleted"] or set(later["deleted"]) <= reached
    assert reached <= {*later["unchanged"], *later["modified"], *later["deleted"], *later["unknown"]}
    assert "/new" not in later["new"], "it is only the cancelled run that did not get there"


def test_compare_answers_in_json_with_everything_there_is(four: Home) -> None:
    found = four.ask("compare", four.word, "0", "3")
    documents = [f"{name}_documents" for name in CHANGES]
    assert {*documents, "total_changes", "has_changes", "summary", "unknown_reasons"} < set(found)
    assert found["baseline_iteration_id"] == f"{four.word}_iter_0"
    assert found["current_iteration_id"] == f"{four.word}_iter_3"
    counts = {name: len(found[f"{name}_documents"]) for name in CHANGES}
    assert found["total_changes"] == counts["new"] + counts["modified"] + counts["deleted"] == 5
    assert found["has_changes"] is True
    assert found["summary"] == "Iteration 3 vs 0: 2 new, 1 modified, 2 deleted, 3 unchanged, 1 unknown"
    assert found["unknown_reasons"] == {"http_5xx": 1}
    assert all(url.startswith("http://") for name in documents for url in found[name])
    same = four.ask("compare", four.word, "3", "3")
    assert (same["total_changes"], same["has_changes"], same["new_documents"]) == (0, False, [])


def test_compare_without_numbers_means_the_last_run_and_what_it_builds_on(four: Home) -> None:
    assert four.ask("compare", four.word) == four.ask("compare", four.word, "3", "4")
    assert four.ask("compare", four.word, "1") == four.ask("compare", four.word, "1", "4")


def test_compare_lists_what_changed_for_people(four: Home) -> None:
    said = four.cli("compare", four.word, "0", "3").stdout
    assert said.splitlines()[0] == "Iteration 3 vs 0: 2 new, 1 modified, 2 deleted, 3 unchanged, 1 unknown"
    assert "unknown (1): 1 http_5xx" in said
    assert "has no run 9" in four.cli("compare", four.word, "0", "9", code=2).stderr


def test_a_run_that_builds_on_no_other_has_nothing_to_be_compared_with(home: Home) -> None:
    with serving(Site(star(1))) as served:
        crawl(home, served)
        assert "nothing to compare it with" in home.cli("compare", home.word, code=1).stderr


def test_diff_shows_the_text_of_a_page_in_two_runs(four: Home) -> None:
    url = next(url for url in four.urls(0) if url.endswith("/edited"))
    found = four.ask("diff", four.word, url, "0", "1")
    assert (found["url"], found["baseline"], found["current"]) == (url, 0, 1)
    assert "+Second." in found["diff"]
    said = four.cli("diff", four.word, url, "0", "1").stdout.splitlines()
    assert said == found["diff"]
    assert " {+Second.+}" in four.cli("diff", four.word, url, "0", "1", "--words").stdout.splitlines()
    assert "-Second." in four.cli("diff", four.word, url, "1", "3").stdout.splitlines()
    assert four.ask("diff", four.word, url, "0", "4")["diff"] == []
    assert "the same in run 0 and run 4" in four.cli("diff", four.word, url, "0", "4").stdout
    gone, new = url.replace("/edited", "/gone"), url.replace("/edited", "/new")
    lost = four.ask("diff", four.word, gone, "0", "1")["diff"][2:]
    assert {line[0] for line in lost} == {"@", "-"}
    assert "+title: new" in four.ask("diff", four.word, new, "0", "1")["diff"]
    assert "Neither run 0 nor run 1" in four.cli("diff", four.word, url + "/none", "0", "1", code=2).stderr


def test_runs_lists_every_run_with_its_numbers(four: Home) -> None:
    found = four.ask("runs", four.word)["runs"]
    assert [one["run"] for one in found] == list(range(6))
    assert [one["mode"] for one in found] == ["baseline", *["incremental"] * 5]
    assert [one["parent"] for one in found] == [None, 0, 1, 1, 3, 3]
    assert [one["state"] for one in found] == [*["completed"] * 2, "cancelled", *["completed"] * 3]
    assert [one["branch_of"] for one in found] == [*[None] * 5, 4]
    assert [tuple(one[name] for name in CHANGES) for one in found if one["run"] in (1, 3)] == [
        (1, 1, 4, 2, 0),
        (2, 1, 3, 1, 1),
    ]
    said = four.cli("runs", four.word).stdout.splitlines()
    assert [line.split()[:3] for line in said if line.split()[0].isdecimal()][2] == ["2", "incremental", "cancelled"]
    assert "branched off from run 4; beside the line: later runs do not build on it" in map(str.strip, said)


# Starting the next run


def test_recrawl_closes_a_run_that_used_up_its_budget_and_starts_the_next(home: Home) -> None:
    pages = star(8)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/p7"] = page("p7 anew")
        assert crawl(home, served, budget=4).run_state == "paused"
        found = recrawl(home, "--budget", "0")
        assert (found["run"], found["run_state"], found["parent"]) == (2, "completed", 1)
        assert [found[name] for name in CHANGES] == [0, 1, 8, 0, 0]
        first, second = home.ask("runs", home.word)["runs"][1:]
        assert (first["state"], [first[name] for name in CHANGES]) == ("completed", [0, 0, 4, 0, 5])
        assert (second["mode"], unsound(home)) == ("incremental", [])
        assert home.app.changes.compare(home.word, 0, 1).counts.unknown_reasons == {"cleared": 5}
        assert compared(home, 0, 2)["modified"] == ["/p7"]


def recrawl(home: Home, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = home.ask("recrawl", home.word, "--delay", "0", "--allow-private", *options)
    return found


def test_recrawl_refuses_while_the_first_run_is_open(home: Home) -> None:
    with serving(Site(star(4), validators=True)) as served:
        crawl(home, served, budget=2)
        done = home.cli("recrawl", home.word, "--delay", "0", "--allow-private", code=1)
        assert "not complete yet" in done.stderr
        assert "inchworm resume" in done.stderr
        assert (home.status()["run"], home.status()["pending"]) == (0, 3)


def test_recrawl_in_full_downloads_everything_and_compares(home: Home) -> None:
    pages = star(4)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/p1"] = page("p1 anew")
        since = len(served.log)
        found = recrawl(home, "--mode", "full")
        assert (found["mode"], [found[name] for name in CHANGES]) == ("full", [0, 1, 4, 0, 0])
        assert not any("if-none-match" in hit.headers for hit in served.log[since:])
        assert found["downloaded"] == {"asked_in_full": 4}


def test_a_run_cannot_change_its_mode_half_way(home: Home) -> None:
    with serving(Site(star(4), validators=True)) as served:
        crawl(home, served)
        crawl(home, served, budget=2)
        command = ("crawl", served.url("/"), "--delay", "0", "--allow-private")
        assert "--mode" in home.cli(*command, "--mode", "full", code=2).stderr


def test_a_fresh_run_builds_on_no_other(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/p0": page("anew"), "/p1": Page("not found", 404)}
        summary = home.crawl(served.url("/"), fresh=True, sitemap=False)
        assert (summary.mode, summary.parent) == ("baseline", None)
        assert {path: verdict[:2] for path, verdict in verdicts(home).items()} == {
            "/": ("page", None),
            "/p0": ("page", None),
            "/p1": ("http_4xx", None),
            "/p2": ("page", None),
        }
        assert numbers_of(home) == (0, 0, 0, 0, 0)


def test_a_run_whose_queue_is_cleared_says_what_it_does_not_know(home: Home) -> None:
    with serving(Site(star(8), validators=True)) as served:
        crawl(home, served)
        crawl(home, served, budget=4)
        home.app.queue.clear(home.word)
        assert numbers_of(home) == (0, 0, 4, 0, 5)


def test_what_a_cancelled_run_saw_counts_against_the_last_complete_one(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/p0"] = page("anew")
        crawl(home, served, budget=3)
        assert changes(home)["/p0"] == "modified"
        home.app.steer.cancel(home.word)
        summary = crawl(home, served)
        assert (summary.parent, compared(home)["modified"]) == (0, ["/p0"])
        assert numbers(summary) == (0, 1, 3, 0, 0)


# Savings


class Counting(Site):
    """A site that counts the bytes of the bodies it sends."""

    sent = 0

    def answer(self, hit: Hit) -> Page:
        answer = super().answer(hit)
        if answer.status == 200:
            self.sent += len(str(answer.body))
        return answer


def test_a_site_that_did_not_change_is_hardly_downloaded_again(home: Home) -> None:
    site = Counting(linked_site(300), validators=True)
    with serving(site, runs=1, most=3) as served:
        crawl(home, served)
        first, site.sent = site.sent, 0
        done = home.cli("crawl", served.url("/"), "--delay", "0", "--allow-private")
        assert site.sent <= 0.02 * first
        assert sorted(home.urls(0)) == sorted(home.urls(1))
        (one,) = home.ask("runs", home.word)["runs"][1:]
        assert (one["unchanged"], one["bytes"], one["bytes"] + one["saved_bytes"]) == (300, site.sent, first)
        assert re.search(r"saved +\d+\.\d kB of \d+\.\d kB \(9[89]\.\d%\)", done.stderr)
        assert unsound(home) == []
        profiles = Counter(one.headers.get("warc-profile", "").rpartition("/")[2] for one in archived(home))
        assert profiles["server-not-modified"] == sum(hit.status == 304 for hit in served.log) > 290


def test_more_pages_than_are_looked_up_at_once_in_a_run_after_two_others(home: Home) -> None:
    """What the third run knows of a page is a record that refers to the first one's."""
    site = Site(star(150), validators=True)
    with serving(site, runs=2) as served:
        crawl(home, served)
        crawl(home, served)
        site.pages["/p70"] = page("other", "/p3")
        since = len(served.log)
        assert numbers(crawl(home, served, workers=9)) == (0, 1, 150, 0, 0)
        sent = [hit.path for hit in served.log[since:] if hit.status == 200 and hit.path != "/robots.txt"]
        assert sorted(sent) == ["/", "/p70"], "a seed is always asked for in full"
        assert sorted(asked_for(served, since)) == sorted(site.pages)
        assert Counter(verdict.status for verdict in verdicts(home).values()) == {304: 149, 200: 2}


def test_a_site_without_validators_is_downloaded_and_says_why(home: Home) -> None:
    site = Counting(linked_site(40))
    with serving(site) as served:
        crawl(home, served)
        first, site.sent = site.sent, 0
        done = home.cli("crawl", served.url("/"), "--delay", "0", "--allow-private")
        assert site.sent == first
        assert "40 unchanged pages: the server sends neither ETag nor Last-Modified" in done.stderr
        assert (numbers_of(home), totals(home)["saved_bytes"]) == ((0, 0, 40, 0, 0), 0)


def test_pages_that_are_young_enough_are_not_asked_for_at_all(home: Home) -> None:
    with serving(Site(star(4), validators=True)) as served:
        crawl(home, served)
        since = len(served.log)
        assert numbers(crawl(home, served, max_age=3600)) == (0, 0, 5, 0, 0)
        assert asked_for(served, since) == []
        assert {note for verdict in verdicts(home).values() for note in verdict.notes} == {"reused"}


@pytest.mark.parametrize("workers", [1, 8])
def test_pages_that_are_young_enough_keep_to_the_page_limit(home: Home, workers: int) -> None:
    """They need no request, but a place each, beside those of pages that are asked for."""
    bad, good = [f"/f{number}" for number in range(5)], [f"/p{number}" for number in range(9)]
    pages: Pages = {"/": page("home", *bad, *good), **{path: page(path) for path in good}}
    pages |= dict.fromkeys(bad, Page("oops", 500))
    with serving(Site(pages, validators=True)) as served:
        assert crawl(home, served, max_retries=0).pages == 10
        pages |= {path: page(path) for path in bad}
        since = len(served.log)
        summary = crawl(home, served, max_age=3600, page_limit=12, workers=workers)
        assert (summary.pages, summary.new, sorted(asked_for(served, since))) == (12, 5, bad)


def test_a_page_that_was_not_there_is_asked_for_however_young_that_is(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        gone = pages.pop("/p1")
        assert numbers(crawl(home, served)) == (0, 0, 3, 1, 0)
        since = len(served.log)
        summary = crawl(home, served, max_age=3600)
        assert (asked_for(served, since), summary.pages) == (["/p1"], 3)
        pages["/p1"] = gone
        assert crawl(home, served, max_age=3600).pages == 4


def test_pages_that_are_young_enough_are_read_anew_by_another_reader(home: Home) -> None:
    pages: Pages = {"/": page("home", body='<img src="/i.png">'), "/i.png": Page(b"\x89PNG")}
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        crawl(home, served, resources=True, max_age=3600)
        assert "/i.png" in asked_for(served)


def test_the_archive_of_an_incremental_run_holds_every_page(home: Home, tmp_path: Path) -> None:
    """A record of `not modified` has no head of its own, so that whoever replays it takes that of the page itself."""
    with serving(Site(star(6), validators=True)) as served:
        crawl(home, served)
        crawl(home, served)
        archive = tmp_path / "second.warc.gz"
        archive.write_bytes(home.export("warc", 1))
        other, asked = Home(tmp_path / "other"), len(served.log)
        other.crawl(served.url("/"), replay=(str(archive),))
        assert len(served.log) == asked
    assert [(visit["url"], visit["status"], visit["content_hash"]) for visit in other.record(0)] == [
        (visit["url"], visit["status"], visit["content_hash"]) for visit in home.record(0)
    ]
    with archive.open("rb") as file:
        blocks = [
            (record.rec_headers.get_header("WARC-Profile") or "", record.length) for record in ArchiveIterator(file)
        ]
    unmodified = [length for profile, length in blocks if profile.endswith("server-not-modified")]
    assert len(unmodified) >= 5 and set(unmodified) == {0}


def test_all_runs_together_in_numbers(home: Home) -> None:
    with serving(Site(star(6), validators=True)) as served:
        crawl(home, served)
        crawl(home, served)
    told = home.ask("runs", home.word, "--stats")
    assert (told["runs"], told["iterations"]) == (2, 1)
    assert told["totals"]["bytes_saved"] == home.ask("runs", home.word)["runs"][1]["saved_bytes"] > 0
    assert "bytes saved" in home.cli("runs", home.word, "--stats").stdout
