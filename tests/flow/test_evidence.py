"""Nothing is called deleted unless the server says so; what could not be reached is unknown, with the reason why."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.flow.crawling import Home, page
from tests.flow.test_checkpoints import folder_of
from tests.flow.test_incremental import (
    Pages,
    asked_for,
    changes,
    compared,
    crawl,
    numbers,
    serving,
    star,
    verdicts,
)

from inchworm.rules.text import content
from inchworm.testing import Answer, Page, Site, redirect

QUICK = {"max_retries": 0}


def why(home: Home) -> dict[str, int]:
    """Why nothing is known of pages, and of how many."""
    return dict(home.app.changes.compare(home.word).counts.unknown_reasons)


def hubs() -> Pages:
    """A home page, two hubs, and three pages on each of them."""
    pages: Pages = {"/": page("home", "/h1", "/h2")}
    for hub in ("/h1", "/h2"):
        leaves = [f"{hub}/{leaf}" for leaf in "abc"]
        pages |= {hub: page(hub, *leaves), **{leaf: page(leaf) for leaf in leaves}}
    return pages


# What is no evidence


def test_a_hub_that_times_out_takes_none_of_its_pages_along(home: Home) -> None:
    pages = hubs()
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/h1"] = Page("late", delay=10)
        since = len(served.log)
        assert numbers(crawl(home, served, first_byte_timeout=1.5, **QUICK)) == (0, 0, 8, 0, 1)
        assert (compared(home)["unknown"], why(home)) == (["/h1"], {"timeout": 1})
        assert sorted(asked_for(served, since)) == sorted(pages)
        assert not any("unlinked" in verdict.notes for verdict in verdicts(home).values())


@pytest.mark.parametrize("robots", [200, 500], ids=["pages-only", "robots-too"])
def test_a_server_that_fails_for_everything_has_deleted_nothing(home: Home, robots: int) -> None:
    pages = hubs()
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {**dict.fromkeys(hubs(), Page("oops", 500)), "/robots.txt": Page("", robots)}
        summary = crawl(home, served, **QUICK)
        assert (summary.deleted, summary.alarm, summary.run_state, summary.ended_by) == (0, "", "paused", "error")
        assert ("answered 500" in summary.message) and ("robots" in summary.message) == (robots == 500)
        pages |= {**hubs(), "/robots.txt": ""}
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)


def test_a_server_that_is_gone_has_deleted_nothing(home: Home) -> None:
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
    summary = crawl(home, served, max_wait=0.1, **QUICK)
    assert (summary.deleted, summary.failed, summary.alarm) == (0, 0, "")
    assert (summary.run_state, summary.ended_by) == ("paused", "waiting")


def test_what_robots_txt_forbids_now_is_unknown(home: Home) -> None:
    pages = hubs()
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/robots.txt"] = "User-agent: *\nDisallow: /h1/\n"
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 3)
        assert (compared(home)["unknown"], why(home)) == (["/h1/a", "/h1/b", "/h1/c"], {"robots": 3})
        assert not any(path.startswith("/h1/") for path in asked_for(served, since))


NARROWER: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "exclude": ({"exclude": ("*/h1/*",)}, {"excluded": 3}),
    "include": ({"include": ("re:/$", "re:/h.$", "*/h2/*")}, {"not_included": 3}),
    "max-depth": ({"max_depth": 1}, {"max_depth": 6}),
    "page-limit": ({"page_limit": 4}, {"page_limit": 5}),
}


@pytest.mark.parametrize("name", NARROWER)
def test_what_a_narrower_run_leaves_out_is_unknown(home: Home, name: str) -> None:
    given, reasons = NARROWER[name]
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
        since = len(served.log)
        summary = crawl(home, served, **given)
        left = sum(reasons.values())
        assert numbers(summary) == (0, 0, 9 - left, 0, left)
        assert home.reasons() == reasons
        assert len(asked_for(served, since)) == 9 - left


@pytest.mark.parametrize("name", list(NARROWER))
def test_compare_says_why_what_a_narrower_run_leaves_out_is_unknown(home: Home, name: str) -> None:
    given, reasons = NARROWER[name]
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
        crawl(home, served, **given)
        assert why(home) == reasons


def test_what_a_narrower_scope_leaves_out_is_unknown(home: Home) -> None:
    other = {"/": page("elsewhere", "/more"), "/more": page("more")}
    pages = star(2)
    with serving(Site(pages, {"localhost": other}, validators=True)) as served:
        pages["/"] = page("home", "/p0", "/p1", served.url("/", "localhost"))
        crawl(home, served, scope="any")
        assert numbers(crawl(home, served, scope="host")) == (0, 0, 3, 0, 2)
        assert home.reasons() == {"out_of_scope": 2}


def test_a_wider_run_finds_what_a_narrower_one_left_out_unchanged(home: Home) -> None:
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
        crawl(home, served, exclude=("*/h1/*",))
        assert numbers(crawl(home, served, exclude=("*/none/*",))) == (0, 0, 9, 0, 0)


def test_what_comes_back_after_a_run_that_did_not_reach_it_is_not_new(home: Home) -> None:
    pages = hubs()
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        leaf, pages["/h1/a"] = pages["/h1/a"], Page("oops", 500)
        crawl(home, served, **QUICK)
        pages["/h1/a"] = leaf
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)
        assert (compared(home)["new"], compared(home, 2, 1)["deleted"]) == ([], [])


# E9: what is evidence


def test_e9_410_404_a_soft_404_and_a_failure_on_known_pages(home: Home) -> None:
    pages = star(6)
    with serving(Site(pages)) as served:
        crawl(home, served)
        missing = page("Page not found", body="<p>Sorry, this page does not exist.</p>").replace("This is what", "Oh:")
        pages |= {"/p0": Page("gone", 410), "/p1": Page("not found", 404), "/p2": missing, "/p3": Page("oops", 503)}
        pages["*"] = missing
        summary = crawl(home, served, **QUICK)
        assert numbers(summary) == (0, 0, 3, 2, 2)
        found = verdicts(home)
        assert [found[path][:2] for path in ("/p0", "/p1")] == [("deleted", "deleted")] * 2
        assert [found[path][:2] for path in ("/p2", "/p3")] == [("soft_404", None), ("http_5xx", None)]
        assert (compared(home)["deleted"], why(home)) == (["/p0", "/p1"], {"soft_404": 1, "http_5xx": 1})
        # What we have of them stays.
        for path in ("/p0", "/p2", "/p3"):
            assert home.show(served.url(path), 0)["visits"][0]["title"] == path


def test_e9_a_page_that_is_not_found_is_asked_for_in_three_runs_and_may_come_back(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        gone = {path: pages.pop(path) for path in ("/p0", "/p1")}
        pages["/"] = page("home", "/p2")
        for missing in (1, 2, 3):
            since = len(served.log)
            # It is news once.
            assert numbers(crawl(home, served))[3] == (2 if missing == 1 else 0)
            assert {"/p0", "/p1"} <= set(asked_for(served, since))
            (visit,) = home.show(served.url("/p1"))["visits"]
            assert (visit["outcome"], visit["missing"]) == ("deleted", missing)
        since = len(served.log)
        pages |= gone
        assert numbers(crawl(home, served)) == (0, 0, 2, 0, 0)
        assert not {"/p0", "/p1"} & set(asked_for(served, since))
        pages["/"] = page("home", "/p1", "/p2")
        assert numbers(crawl(home, served)) == (1, 0, 2, 0, 0)
        assert verdicts(home)["/p1"] == ("page", "new", {"back", "asked_in_full"}, 200)


def test_e9_a_page_that_is_gone_for_good_is_not_asked_for_again(home: Home) -> None:
    pages = star(2)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/p0": Page("gone", 410), "/": page("home", "/p1")}
        assert numbers(crawl(home, served)) == (0, 0, 2, 1, 0)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 2, 0, 0)
        assert asked_for(served, since) == ["/", "/p1"]
        assert compared(home, 0, 2)["deleted"] == ["/p0"]


# E13


@pytest.mark.parametrize("status", [429, 503])
def test_e13_a_server_that_wants_to_be_left_alone_has_deleted_nothing(home: Home, status: int) -> None:
    pages = star(2)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/p0"] = Page("slow down", status, {"Retry-After": "0"})
        assert numbers(crawl(home, served, max_retries=0)) == (0, 0, 2, 0, 1)
        assert why(home) == {"http_429" if status == 429 else "http_5xx": 1}
        tries = iter([Page("slow down", status, {"Retry-After": "0"})])
        pages["/p0"] = lambda _: next(tries, page("/p0"))
        assert numbers(crawl(home, served, max_retries=1)) == (0, 0, 3, 0, 0)


# E14 and other redirects


LOGIN = "<title>Hello</title><main><p>Who are you?</p><form><input type=password name=p></form></main>"
OTHER = page("quite another thing")

REDIRECTS: dict[str, tuple[Answer, Pages, tuple[str | None, str]]] = {
    "moved": (redirect("/new", 301), {"/new": page("/p0")}, ("unchanged", "moved")),
    "moved-for-a-while": (redirect("/new", 302), {"/new": page("/p0")}, ("unchanged", "moved")),
    "moved-in-two-steps": (
        redirect("/hop", 308),
        {"/hop": redirect("/new", 301), "/new": page("/p0")},
        ("unchanged", "moved"),
    ),
    "other-text": (redirect("/new", 301), {"/new": OTHER}, ("deleted", "moved")),
    "other-text-for-a-while": (redirect("/new", 302), {"/new": OTHER}, ("unknown", "moved")),
    "other-text-in-the-end": (
        redirect("/hop", 301),
        {"/hop": redirect("/new", 302), "/new": OTHER},
        ("unknown", "moved"),
    ),
    "other-text-after-a-while": (
        redirect("/hop", 302),
        {"/hop": redirect("/new", 301), "/new": OTHER},
        ("unknown", "moved"),
    ),
    "home": (redirect("/", 301), {}, ("deleted", "moved")),
    "to-nothing": (redirect("/nowhere", 301), {}, ("unknown", "moved")),
    "to-a-failure": (redirect("/new", 301), {"/new": Page("oops", 500)}, ("unknown", "moved")),
    "out-of-scope": (redirect("http://localhost/new", 301), {}, ("unknown", "moved")),
    "login": (redirect("/login?next=/p0", 301), {"/login": OTHER}, ("unknown", "login")),
    "sign-in-elsewhere": (redirect("http://localhost/sso/start", 301), {}, ("unknown", "login")),
    "password": (redirect("/members", 301), {"/members": LOGIN}, ("unknown", "login")),
}


@pytest.mark.parametrize("name", REDIRECTS)
def test_e14_a_known_page_that_redirects_is_judged_by_where_it_leads(home: Home, name: str) -> None:
    answer, more, (change, note) = REDIRECTS[name]
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/p0": answer, **more}
        summary = crawl(home, served, max_retries=0)
        assert verdicts(home)["/p0"][:3] == ("redirect", change, {note})
        assert (summary.deleted, summary.unknown) == (change == "deleted", change == "unknown")
        assert "/p0" in compared(home)[change]


def test_e14_a_redirect_that_becomes_a_page_has_a_history_under_both_urls(home: Home) -> None:
    pages: Pages = {"/": page("home", "/old"), "/old": redirect("/new", 301), "/new": page("text")}
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/old"] = page("another text")
        assert numbers(crawl(home, served)) == (1, 0, 2, 0, 0)
        assert changes(home) == {"/": "unchanged", "/old": "new", "/new": "unchanged"}
        pages["/old"] = redirect("/new", 301)
        assert numbers(crawl(home, served)) == (0, 0, 2, 1, 0)
        assert home.show(served.url("/old"), 1)["visits"][-1]["title"] == "another text"
        assert home.show(served.url("/old"), 2)["visits"][-1]["redirect"] == served.url("/new")


@pytest.mark.parametrize("where", ["path", "host"])
def test_e14_a_site_that_moved_as_a_whole_is_unchanged(home: Home, where: str) -> None:
    count = 5
    pages, moved = star(count), {}
    with serving(Site(pages, {"localhost": moved}, validators=True)) as served:
        crawl(home, served, scope="any")
        prefix = "/v2" if where == "path" else served.url("", "localhost")
        found = {path: str(body).replace('href="/', f'href="{prefix}/') for path, body in pages.items()}
        if where == "path":
            pages |= {f"/v2{path}": body for path, body in found.items()}
        else:
            moved |= found
        pages |= {path: redirect(prefix + path, 301) for path in found}
        since = len(served.log)
        summary = crawl(home, served, scope="any")
        # The texts are where they were, and there are as many URLs that nobody knew.
        assert (numbers(summary), summary.alarm) == ((count + 1, 0, count + 1, 0, 0), "")
        assert verdicts(home)["/p3"][:3] == ("redirect", "unchanged", {"moved"}) or where == "host"
        assert len(asked_for(served, since)) == 2 * (count + 1)
        assert sorted(compared(home)["unchanged"]) == sorted(found)
        assert numbers(crawl(home, served, scope="any")) == (0, 0, 2 * (count + 1), 0, 0)


def test_a_page_that_gave_way_to_another_text_is_deleted_once(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/p0": redirect("/new", 301), "/new": OTHER}
        assert numbers(crawl(home, served)) == (1, 0, 3, 1, 0)
        assert numbers(crawl(home, served)) == (0, 0, 4, 0, 0)


# Pages that nobody links to any more


def test_a_page_that_lost_its_links_is_asked_for_in_three_runs(home: Home) -> None:
    pages = star(3)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages["/"] = page("home", "/p0")
        for _ in range(3):
            since = len(served.log)
            assert numbers(crawl(home, served)) == (0, 0, 4, 0, 0)
            assert sorted(asked_for(served, since)) == ["/", "/p0", "/p1", "/p2"]
            assert verdicts(home)["/p2"] == ("page", "unchanged", {"unlinked"}, 304)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 2, 0, 2)
        assert sorted(asked_for(served, since)) == ["/", "/p0"]
        assert home.reason(served.url("/p2")) == "unlinked"
        assert why(home) == {"unlinked": 2}
        pages["/"] = page("home", "/p0", "/p1")
        assert numbers(crawl(home, served)) == (0, 0, 3, 0, 1)
        assert verdicts(home)["/p1"] == ("page", "unchanged", frozenset(), 304)


def test_a_run_in_which_the_hub_failed_does_not_count_for_pages_that_lost_their_links(home: Home) -> None:
    pages = hubs()
    hub, empty, failing = pages["/h1"], page("/h1"), Page("oops", 500)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        for answer in (failing, empty, failing, empty, failing, empty):
            pages["/h1"] = answer
            since = len(served.log)
            crawl(home, served, **QUICK)
            assert len([path for path in asked_for(served, since) if path.startswith("/h1/")]) == 3
        crawl(home, served, **QUICK)
        assert home.reason(served.url("/h1/a")) == "unlinked"
        pages["/h1"] = hub
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)


# Alarm


def test_more_than_half_gone_is_said_aloud_and_is_no_error(home: Home) -> None:
    pages = star(6)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {f"/p{number}": Page("not found", 404) for number in range(4)}
        done = home.cli("recrawl", home.word, "--delay", "0", "--allow-private", "--json", code=0)
        assert "ATTENTION" in done.stderr
        assert "4 of 7 known pages are gone" in done.stderr
        assert "4 of 7 known pages are gone" in home.ask("runs", home.word)["runs"][-1]["alarm"]
        assert "ATTENTION" in home.cli("runs", home.word).stdout
        assert crawl(home, served).alarm == ""


def test_half_gone_is_no_alarm(home: Home) -> None:
    pages = star(5)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {f"/p{number}": Page("not found", 404) for number in range(3)}
        summary = crawl(home, served)
        assert (numbers(summary), summary.alarm) == ((0, 0, 3, 3, 0), "")


# Another reader


def upgraded(home: Home) -> None:
    """As if everything so far had been read by an older reader, which saw other texts in the same bytes."""
    with closing(sqlite3.connect(folder_of(home) / "crawl.db")) as db:
        db.execute("UPDATE visit SET reader = '0 old', text_hash = randomblob(32), link_hash = randomblob(8)")
        db.commit()


def test_another_reader_changes_nothing(home: Home) -> None:
    pages = hubs()
    turns = iter(range(100))
    pages["/h2/a"] = lambda _: page("/h2/a") + f"<!-- {next(turns)} -->"
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        before = home.urls()
        upgraded(home)
        summary = crawl(home, served)
        assert numbers(summary) == (0, 0, 9, 0, 0)
        assert home.urls() == before
        summary = crawl(home, served)
        assert (numbers(summary), summary.saved_bytes > 0) == ((0, 0, 9, 0, 0), True)
        assert compared(home, 0, 2)["unchanged"] == sorted(pages)


def test_another_reader_reads_again_what_is_stored_and_downloads_nothing_for_it(home: Home) -> None:
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
        since = len(served.log)
        upgraded(home)
        summary = crawl(home, served)
        answers = [hit.status for hit in served.log[since:] if not hit.path.startswith("/robots")]
    assert (numbers(summary), sorted(answers)) == ((0, 0, 9, 0, 0), [200] + 8 * [304]), "the seed is asked in full"
    with closing(sqlite3.connect(folder_of(home) / "crawl.db")) as db:
        readers = db.execute("SELECT reader = '0 old', count(*) FROM visit WHERE kind = 'page' GROUP BY run_id, 1")
        assert readers.fetchall() == [(1, 9), (0, 9)]


def test_another_reader_changes_nothing_while_it_is_new(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site(hubs(), validators=True)) as served:
        crawl(home, served)
        monkeypatch.setattr(content, "READER", "next")
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)
        monkeypatch.undo()
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)
        assert compared(home, 0, 1)["unchanged"] == sorted(hubs())


def test_a_change_is_found_by_another_reader_too(home: Home) -> None:
    pages = hubs()
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        upgraded(home)
        pages["/h1/b"] = page("/h1/b", body="<p>And that is new.</p>")
        assert numbers(crawl(home, served)) == (0, 1, 8, 0, 0)


def test_a_page_that_moved_is_where_it_was_for_another_reader(home: Home) -> None:
    pages = star(2)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/p0": redirect("/new", 301), "/new": page("/p0")}
        assert numbers(crawl(home, served)) == (1, 0, 3, 0, 0)
        upgraded(home)
        assert numbers(crawl(home, served)) == (0, 0, 4, 0, 0)


def test_a_page_that_moved_is_unknown_where_its_text_cannot_be_compared(home: Home) -> None:
    """Another reader read it, and it is too large to be read again: that the target reads otherwise says nothing."""
    pages = {**star(2), "/p0": page("/p0", body=f"<!--{' ' * content.LARGE_BYTES}-->")}
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        upgraded(home)
        pages |= {"/p0": redirect("/new", 301), "/new": page("/p0")}
        summary = crawl(home, served)
        assert verdicts(home)["/p0"][:2] == ("redirect", "unknown")
        assert (summary.deleted, summary.unknown) == (0, 1)


def test_a_run_that_found_nothing_but_deletions_is_complete_though_a_page_failed(home: Home) -> None:
    pages = star(2)
    with serving(Site(pages, validators=True)) as served:
        crawl(home, served)
        pages |= {"/": Page("gone", 410), "/p0": Page("gone", 410), "/p1": Page("out of order", 500)}
        summary = crawl(home, served, max_retries=0)
    assert (summary.deleted, summary.failed, summary.pages, summary.run_state) == (2, 1, 0, "completed")


# U9: pages that say that they are not there


EXCUSE = "<title>Page not found</title><main><p>Sorry, the page you are looking for does not exist.</p></main>"


def test_u9_a_page_that_is_not_there_is_no_page_whatever_its_status(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a", "/dead1", "/dead2"), "/a": page("a"), "*": EXCUSE, "/robots.txt": ""}
    with serving(Site(pages)) as served:
        summary = crawl(home, served)
        assert (summary.pages, summary.duplicates, summary.failed) == (2, 0, 2)
        assert [verdicts(home)[path].outcome for path in ("/dead1", "/dead2")] == ["soft_404"] * 2
        assert numbers(crawl(home, served)) == (0, 0, 2, 0, 0)


@pytest.mark.parametrize(
    "workers",
    [1, 8],
)
def test_u9_a_page_about_404s_stays_a_page_and_an_honest_server_is_asked_once(home: Home, workers: int) -> None:
    about = [f"/error-{number}" for number in range(404, 410)]
    text = "<title>404 not found</title><main><p>What the status {0} means, and what to do about it.</p></main>"
    pages: Pages = {"/": page("home", *about), **{path: text.format(path) for path in about}}
    with serving(Site(pages)) as served:
        summary = crawl(home, served, workers=workers)
        assert (summary.pages, summary.failed) == (1 + len(about), 0)
        assert len([hit for hit in served.log if "is-not-here" in hit.path]) == 1


@pytest.mark.parametrize("status", [500, 503])
def test_u9_a_server_that_fails_to_answer_whether_it_is_honest_is_asked_again(home: Home, status: int) -> None:
    answers: list[Answer] = [Page("oops", status)]
    pages: Pages = {"/": page("home", "/dead"), "/dead": EXCUSE, "/robots.txt": ""}
    pages["*"] = lambda _: answers.pop() if answers else EXCUSE
    with serving(Site(pages)) as served:
        summary = crawl(home, served, max_retries=1)
        assert (summary.pages, summary.failed, verdicts(home)["/dead"].outcome) == (1, 1, "soft_404")


def test_u9_the_question_whether_a_server_is_honest_obeys_robots_txt(home: Home) -> None:
    pages: Pages = {"/": page("home", "/about"), "/about": EXCUSE}
    pages["/robots.txt"] = "User-agent: *\nAllow: /$\nAllow: /about\nDisallow: /\n"
    with serving(Site(pages)) as served:
        crawl(home, served)
        assert served.paths() == ["/robots.txt", "/", "/about"]
