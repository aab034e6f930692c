"""Limits hold to the page, at any number of workers, and nothing is fetched that will not be kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.flow.crawling import Home, asked, chain, page

from inchworm.testing import Answer, Hit, Page, Served, Site, linked_site, redirect

WORKERS = [1, 8, 64]


def trouble(top: str, unique: int, name: str = "") -> dict[str, Answer]:
    """So many pages below a directory, and between them copies, dead links, server errors and redirects."""
    site: dict[str, Answer] = {}
    links = []
    for number in range(unique):
        links += [f"{top}/{number}", f"{top}/copy{number}", f"{top}/gone{number}", f"{top}/to{number}"]
        site[f"{top}/{number}"] = page(f"{name}{top} {number}", f"{top}/{number}/deep", f"{top}/broken{number}")
        site[f"{top}/copy{number}"] = page(f"{name}{top} {number // 2}")
        site[f"{top}/to{number}"] = redirect(f"{top}/{unique - 1 - number}")
        site[f"{top}/broken{number}"] = Page("broken", 500)
    site[f"{top}/"] = page(f"{name}{top} home", *links)
    return site


def only_what_is_recorded(home: Home, served: Served) -> None:
    """Every request that the server saw is in the record, and nothing else is."""
    requested = [visit["url"] for visit in home.record()]
    assert Counter(asked(served)) == Counter(requested)


@pytest.mark.parametrize("workers", WORKERS)
def test_budget_is_exact(home: Home, workers: int) -> None:
    with Site(trouble("", 25), latency=(0.0, 0.01)).serve() as served:
        seen = 0
        for budget in (1, 7, 50):
            ended = home.crawl(served.url("/"), budget=budget, workers=workers, max_retries=0)
            seen += budget
            assert (ended.fetched, ended.ended_by, ended.run_state) == (budget, "budget", "paused")
            assert len(asked(served)) == seen
        ended = home.crawl(served.url("/"), budget=1000, workers=workers, max_retries=0)
        assert (ended.ended_by, ended.run_state, ended.pending) == ("finished", "completed", 0)
        assert (ended.pages, ended.duplicates) == (26, 25)
        only_what_is_recorded(home, served)


@pytest.mark.parametrize("workers", WORKERS)
def test_page_limit_is_exact_for_seeds_on_one_host(home: Home, workers: int) -> None:
    """Three seeds have more pages than the limit, the last one fewer: it gets all it has."""
    site = {**trouble("/a", 20), **trouble("/b", 15), **trouble("/a/inner", 12), **trouble("/few", 3)}
    with Site(site, latency=(0.0, 0.01)).serve() as served:
        seeds = [served.url(f"{top}/") for top in ("/a", "/b", "/a/inner", "/few")]
        ended = home.crawl(*seeds, page_limit=9, workers=workers, max_retries=0)
        assert [kept for _, kept in ended.seeds] == [9, 9, 9, 4]
        assert (ended.pages, ended.pending, ended.ended_by, ended.run_state) == (31, 0, "page_limit", "completed")
        only_what_is_recorded(home, served)
    assert set(home.reasons()) == {"page_limit"}


@pytest.mark.parametrize("workers", WORKERS)
def test_page_limit_is_exact_for_seeds_on_many_hosts(home: Home, workers: int) -> None:
    names = [f"h{number}.localhost" for number in range(6)]
    hosts = {name: trouble("", 4 + 3 * number, name) for number, name in enumerate(names)}
    with Site({}, hosts, latency=(0.0, 0.01)).serve() as served:
        seeds = [served.url("/", name) for name in names]
        ended = home.crawl(*seeds, page_limit=10, workers=workers, max_retries=0)
        assert [kept for _, kept in ended.seeds] == [5, 8, 10, 10, 10, 10]
        assert (ended.run_state, ended.pending) == ("completed", 0)
        only_what_is_recorded(home, served)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("strict", [False, True])
def test_two_seeds_whose_pages_mix_on_two_hosts(home: Home, workers: int, strict: bool) -> None:
    """Either seed waits for pages of the other on both hosts; nobody may wait for ever."""
    ports: dict[str, int] = {}

    def crossing(own: str, other: str) -> dict[str, Any]:
        def answer(hit: Hit) -> str:
            number = int(hit.path.rpartition("/")[2] or 0)
            there = f"http://{other}:{ports['']}"
            links = [f"/{own}/{number + 1}", f"{there}/{own}/{number + 1}", f"{there}/{own}/{number * 2 + 2}"]
            text = f"{own} {number // 2}" if number % 5 else f"{hit.host} {own} {number}"
            return page(text, *links, f"{there}/missing/{number}")

        return {"/missing": Page("no", 404), "*": answer}

    hosts = {"x.localhost": crossing("x", "y.localhost"), "y.localhost": crossing("y", "x.localhost")}
    with Site({}, hosts, latency=(0.0, 0.005)).serve() as served:
        ports[""] = served.port
        seeds = [served.url(f"/{name}/0", f"{name}.localhost") for name in "xy"]
        ended = home.crawl(
            *seeds, page_limit=12, external_hops=5, workers=workers, sitemap=False, robots=False, strict_order=strict
        )
        assert [kept for _, kept in ended.seeds] == [12, 12]
        assert (ended.run_state, ended.pending) == ("completed", 0)
        only_what_is_recorded(home, served)


@pytest.mark.parametrize("workers", WORKERS)
def test_mostly_duplicates(home: Home, workers: int) -> None:
    """A seed that finds the same text again and again stops after ten requests per page of its limit."""
    site = {f"/{number}": page("always the same") for number in range(60)}
    site["/"] = page("home", *site)
    with Site(site, latency=(0.0, 0.005)).serve() as served:
        ended = home.crawl(served.url("/"), page_limit=3, workers=workers)
        assert (ended.fetched, len(asked(served)), ended.pages, ended.duplicates) == (30, 30, 2, 28)
        assert (ended.run_state, ended.pending) == ("completed", 0)
        assert home.reasons() == {"mostly_duplicates": 31}
        only_what_is_recorded(home, served)


def test_resources_use_up_no_page_of_the_limit(home: Home) -> None:
    """Forty images are not forty duplicates: the seed still gets its three pages."""
    images = {f"/i{number}.png": b"image %d" % number for number in range(40)}
    shown = "".join(f'<img src="{path}">' for path in images)
    site = {"/": page("home", "/hub", body=shown), "/hub": page("hub", "/a", "/b"), "/a": page("a"), "/b": page("b")}
    with Site({**site, **images}).serve() as served:
        ended = home.crawl(served.url("/"), page_limit=3, resources=True)
    assert (ended.pages, ended.ended_by, home.reasons()) == (3, "page_limit", {"page_limit": 1})


def flaky(times: int) -> Any:
    """A page that fails so often before it answers."""
    failed: Counter[str] = Counter()

    def answer(hit: Hit) -> Answer:
        failed[hit.path] += 1
        return Page("not now", 503) if failed[hit.path] <= times else page(hit.path)

    return answer


def test_budget_counts_redirects_and_retries(homes: list[Home]) -> None:
    """Five requests: home, a redirect and its target, a failure and its repetition. robots.txt is free."""
    for home, budget, end in ((homes[0], 5, "finished"), (homes[1], 4, "budget"), (homes[2], 0, "finished")):
        site = {"/": page("home", "/flaky", "/r"), "/flaky": flaky(1), "/r": redirect("/t"), "/t": page("target")}
        with Site(site).serve() as served:
            ended = home.crawl(served.url("/"), budget=budget, max_retries=1)
            assert (ended.ended_by, ended.fetched, len(asked(served))) == (end, budget or 5, budget or 5)
            assert ended.pending == (1 if end == "budget" else 0)
            if end == "budget":
                ended = home.crawl(served.url("/"), max_retries=1)
                assert (ended.ended_by, ended.fetched, len(asked(served))) == ("finished", 1, 5)
            assert ended.order == "disturbed at 4 by http_5xx"
            only_what_is_recorded(home, served)


@pytest.mark.parametrize("workers", [1, 8])
def test_bytes(home: Home, workers: int) -> None:
    body = "x" * 10_000
    site = {f"/{number}": page(f"{number}", body=body) for number in range(40)}
    site["/"] = page("home", *site)
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_bytes=100_000, workers=workers)
        assert (ended.ended_by, ended.run_state, ended.session_state) == ("bytes", "paused", "completed")
        assert 100_000 <= ended.bytes < 100_000 + 11_000 * workers
        ended = home.crawl(served.url("/"), workers=workers)
        assert (ended.ended_by, ended.pages, len(asked(served))) == ("finished", 41, 41)


def test_time(home: Home) -> None:
    with Site(linked_site(200), latency=(0.02, 0.03)).serve() as served:
        ended = home.crawl(served.url("/"), max_time=0.6, workers=2)
        assert (ended.ended_by, ended.run_state, ended.session_state) == ("time", "paused", "completed")
        assert 0.6 <= ended.seconds < 5
        assert 0 < ended.pages < 100
        ended = home.crawl(served.url("/"), workers=64)
        assert (ended.ended_by, ended.pages) == ("finished", 200)


def test_time_is_up_though_a_page_hangs(home: Home) -> None:
    """What is under way when the time is up gets the grace time, not the time limit of a request."""
    with Site({"/": page("home", "/hangs"), "/hangs": Page("late", delay=20)}).serve() as served:
        ended = home.crawl(served.url("/"), max_time=0.4, grace=0.4)
        assert (ended.ended_by, ended.pending) == ("time", 1)
        assert ended.seconds < 5


def test_nothing_left_wins_over_the_budget(homes: list[Home]) -> None:
    with Site(linked_site(12)).serve() as served:
        ended = homes[0].crawl(served.url("/"), budget=12)
        assert (ended.ended_by, ended.run_state, ended.fetched) == ("finished", "completed", 12)
    site = {"/robots.txt": "User-agent: *\nDisallow: /no", "/": page("home", "/a", "/no/1", "/no/2"), "/a": page("a")}
    with Site(site).serve() as served:
        ended = homes[1].crawl(served.url("/"), budget=2)
        assert (ended.ended_by, ended.run_state, ended.refused) == ("finished", "completed", 2)
    with Site(linked_site(30)).serve() as served:
        ended = homes[2].crawl(served.url("/"), budget=10, page_limit=10, workers=8)
        assert (ended.ended_by, ended.run_state, ended.fetched) == ("page_limit", "completed", 10)


def test_what_must_wait_too_long_pauses_the_run(home: Home) -> None:
    with Site({"/": page("home", "/flaky"), "/flaky": flaky(1)}).serve() as served:
        ended = home.crawl(served.url("/"), max_wait=0.1)
        assert (ended.ended_by, ended.run_state, ended.session_state) == ("waiting", "paused", "completed")
        assert (ended.pages, ended.pending) == (1, 1)
        ended = home.crawl(served.url("/"))
        assert (ended.ended_by, ended.pages, ended.failed) == ("finished", 2, 0)


def test_a_run_says_why_it_is_partial(home: Home) -> None:
    site = {"/": page("home", "/a", "/broken", "/gone"), "/a": page("a"), "/broken": Page("x", 500)}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_retries=0)
    assert (ended.run_state, ended.word, ended.failed, ended.pages) == ("completed", "completed_with_errors", 2, 2)
    kinds = {one.record.url: one.record.failure for one in home.app.pages.failed(home.word)}
    assert kinds == {served.url("/broken"): "http_5xx", served.url("/gone"): "http_4xx"}


# Depth


def depths(home: Home, served: Served, *paths: str) -> dict[str, int]:
    return {path: home.show(served.url(path))["depth"] for path in paths}


def test_depth(homes: list[Home]) -> None:
    with Site(chain(8)).serve() as served:
        for home, limit in zip(homes, (1, 2, 5, 0), strict=True):
            ended = home.crawl(served.url("/c0"), scope="host", max_depth=limit)
            assert (ended.ended_by, ended.pages) == ("finished", limit + 1 if limit else 8)
            assert home.paths() == [f"/c{number}" for number in range(limit + 1 if limit else 8)]
            assert home.reasons() == ({"max_depth": 1} if limit else {})


LONG = {
    "/": page("home", "/a", "/b"),
    "/a": page("a", "/a2"),
    "/a2": page("a2", "/x"),
    "/b": page("b", "/b2"),
    "/b2": page("b2", "/one"),
}
"""/x lies three links from home this way."""


def late_sitemap(site: dict[str, Any], served: Served, *paths: str) -> None:
    """These paths in a sitemap that four others stand in front of: it is read when /x was visited already."""
    for number in range(1, 5):
        following = served.url(f"/sitemap{number + 1}.xml")
        site[f"/sitemap{number}.xml"] = f"<sitemapindex><sitemap><loc>{following}</loc></sitemap></sitemapindex>"
    listed = "".join(f"<url><loc>{served.url(path)}</loc></url>" for path in paths)
    site["/sitemap5.xml"] = f"<urlset>{listed}</urlset>"
    site["/robots.txt"] = f"Sitemap: {served.url('/sitemap1.xml')}"


@pytest.mark.parametrize("workers", [1, 16])
def test_a_shorter_way_through_a_sitemap(home: Home, workers: int) -> None:
    """/x is done, at the greatest depth, when it turns out to be near: what it links to is judged again."""
    site: dict[str, Any] = {**LONG, "/x": page("x", "/one", "/two"), "/one": page("one"), "/two": page("two", "/three")}
    site["/three"] = page("three")
    with Site(site).serve() as served:
        late_sitemap(site, served, "/x")
        ended = home.crawl(served.url("/"), max_depth=3, workers=workers)
        assert (ended.pages, ended.refused, ended.pending) == (9, 0, 0)
        assert depths(home, served, "/x", "/one", "/two", "/three") == {"/x": 0, "/one": 1, "/two": 1, "/three": 2}
        only_what_is_recorded(home, served)


@pytest.mark.parametrize("workers", [1, 16])
def test_a_shorter_way_met_twice(home: Home, workers: int) -> None:
    """/two is refused, and a shorter way leads to it by /x and by /one at once: it is re-opened once."""
    site: dict[str, Any] = {**LONG, "/x": page("x", "/one", "/two"), "/one": page("one", "/two"), "/two": page("two")}
    with Site(site).serve() as served:
        late_sitemap(site, served, "/x")
        ended = home.crawl(served.url("/"), max_depth=3, workers=workers)
        assert (ended.pages, ended.refused, ended.pending) == (8, 0, 0)
        assert depths(home, served, "/x", "/one", "/two") == {"/x": 0, "/one": 1, "/two": 1}


@pytest.mark.parametrize("workers", [1, 16])
def test_a_shorter_way_by_redirects(home: Home, workers: int) -> None:
    """Redirects add no depth, but they come late: /x was reached by links before they lead to it."""
    hops = {"/r0": redirect("/r1"), "/r1": redirect("/r2"), "/r2": redirect("/r3"), "/r3": redirect("/x")}
    site = {**LONG, **hops, "/": page("home", "/a", "/r0"), "/x": page("x", "/one"), "/one": page("one", "/two")}
    site["/two"] = page("two")
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_depth=3, workers=workers)
        assert (ended.pages, ended.refused) == (6, 0)
        assert depths(home, served, "/x", "/one", "/two") == {"/x": 1, "/one": 2, "/two": 3}


@pytest.mark.parametrize("workers", [1, 16])
def test_a_shorter_way_to_a_redirect(home: Home, workers: int) -> None:
    """/x is a redirect that was followed: the page it leads to is as near as /x is."""
    site: dict[str, Any] = {**LONG, "/x": redirect("/target"), "/target": page("target", "/two"), "/two": page("two")}
    site["/one"] = page("one")
    with Site(site).serve() as served:
        late_sitemap(site, served, "/x")
        ended = home.crawl(served.url("/"), max_depth=3, workers=workers)
        assert depths(home, served, "/x", "/target", "/two") == {"/x": 0, "/target": 0, "/two": 1}
        assert (ended.pages, ended.refused) == (8, 0)


def test_a_shorter_way_to_a_page_of_the_same_commit(home: Home) -> None:
    """/x was answered while /slow was not; both are committed at once, and /slow makes /x nearer just before."""
    site: dict[str, Any] = {"/": page("home", "/a", "/to"), "/a": page("a", "/a2"), "/a2": page("a2", "/x")}
    site |= {"/to": redirect("/slow"), "/slow": Page(page("slow", "/x"), delay=0.3), "/x": page("x", "/y")}
    site["/y"] = page("y")
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), max_depth=3, sitemap=False)
        assert (ended.pages, ended.pending, ended.refused) == (6, 0, 0)
        assert depths(home, served, "/x", "/y") == {"/x": 2, "/y": 3}
        only_what_is_recorded(home, served)


def test_a_shorter_way_does_not_overrule_nofollow(home: Home) -> None:
    """A page that says nofollow says so from near and from far."""
    site: dict[str, Any] = {**LONG, "/x": page("x", "/two", head='<meta name="robots" content="nofollow">')}
    site |= {"/one": page("one"), "/two": page("two")}
    with Site(site).serve() as served:
        late_sitemap(site, served, "/x")
        home.crawl(served.url("/"), max_depth=3)
        assert home.reason(served.url("/two")) == "nofollow"
        assert "/two" not in served.paths()


def test_a_shorter_way_is_the_same_record_at_any_number_of_workers(homes: list[Home]) -> None:
    site: dict[str, Any] = {**LONG, **linked_site(60, fan=2), "/": page("home", "/a", "/b", "/p1", "/r")}
    site |= {
        "/x": page("x", "/p40", "/p50"),
        "/one": page("one", "/p30"),
        "/r": redirect("/r2"),
        "/r2": redirect("/p9"),
    }
    with Site(site, latency=(0.0, 0.01)).serve() as served:
        late_sitemap(site, served, "/x", "/p20")
        for home, workers in zip(homes[:3], WORKERS, strict=True):
            home.crawl(served.url("/"), max_depth=4, workers=workers)
        while homes[3].crawl(served.url("/"), max_depth=4, workers=8, budget=5).run_state == "paused":
            pass
    first = homes[0].story()
    assert [home.story() == first for home in homes] == [True] * 4
