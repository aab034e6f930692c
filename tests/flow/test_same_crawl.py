"""The same crawl, always: the record does not depend on workers, on sessions, or on how long answers take."""

from __future__ import annotations

import gzip
from itertools import groupby
from typing import Any

import pytest
from tests.flow.crawling import Home, asked, is_control, page, path_of

from inchworm.testing import Answer, Page, Served, Site, linked_site, redirect


def mixed_site(pages: int) -> dict[str, Answer]:
    """Pages with copies, dead links, redirects, directories without their slash, sitemaps and forbidden ones."""
    site: dict[str, Answer] = dict(linked_site(pages, duplicates=pages // 8))
    for number in range(0, pages, 6):
        path = f"/p{number}" if number else "/"
        links = [f"/{kind}/{number}" for kind in ("gone", "old", "dir", "private")]
        more = "".join(f'<li><a href="{link}">x</a>' for link in [*links, f"/p1?utm_source={number}"])
        site[path] = str(site[path]).replace("</ul>", f"{more}</ul>")
        site[f"/old/{number}"] = redirect(f"/older/{number}", 301)
        site[f"/older/{number}"] = redirect(f"/p{pages - 1 - number}")
        site[f"/dir/{number}"] = redirect(f"/dir/{number}/", 301)
        site[f"/dir/{number}/"] = page(f"directory {number}", "sub", "../p1", "/loop")
        site[f"/dir/{number}/sub"] = page(f"below directory {number}")
        site[f"/private/{number}"] = page(f"private {number}")
    site["/loop"] = redirect("/loop2")
    site["/loop2"] = redirect("/loop")
    return site


def add_sitemaps(site: dict[str, Answer], served: Served) -> None:
    """A robots.txt, an index of two sitemaps (one of them packed) and pages that only they know."""
    hidden = {f"/hidden/{number}": page(f"hidden {number}", f"/hidden/{number}/more") for number in range(20)}
    site.update(hidden)
    halves = [list(hidden)[:10], [*list(hidden)[10:], "/p3", "/gone/sitemap"]]
    lists = ["".join(f"<url><loc>{served.url(path)}</loc></url>" for path in half) for half in halves]
    site["/robots.txt"] = f"User-agent: *\nDisallow: /private/\nSitemap: {served.url('/sitemap-index.xml')}\n"
    site["/sitemap-index.xml"] = "<sitemapindex>" + "".join(
        f"<sitemap><loc>{served.url(name)}</loc></sitemap>" for name in ("/sitemap-a.xml", "/sitemap-b.xml.gz")
    )
    site["/sitemap-a.xml"] = f"<urlset>{lists[0]}</urlset>"
    site["/sitemap-b.xml.gz"] = gzip.compress(f"<urlset>{lists[1]}</urlset>".encode(), mtime=0)


def below(top: str, site: dict[str, Answer]) -> dict[str, Answer]:
    """The same site, one directory down."""

    def moved(answer: Answer) -> Answer:
        if isinstance(answer, Page):
            return redirect(top + answer.headers["Location"])
        return str(answer).replace('href="/', f'href="{top}/')

    return {top + path: moved(answer) for path, answer in site.items()}


def frontier(home: Home, served: Served, paths: list[str]) -> list[Any]:
    """Where each of these URLs stands and why."""
    names = ("url", "state", "reason", "source", "depth", "found_on", "place_seq", "place_idx", "done")
    shown = (home.show(served.url(path)) for path in paths)
    return [tuple(one[name] for name in names) for one in shown]


def test_workers_sessions_and_latency_change_nothing(homes: list[Home]) -> None:
    pages = mixed_site(260)
    site = Site(pages)
    one, cut, slow, _ = homes
    with site.serve() as served:
        add_sitemaps(pages, served)
        seed = served.url("/")
        first = one.crawl(seed, budget=300, workers=1)
        for _ in range(3):
            assert cut.crawl(seed, budget=100, workers=16).fetched == 100
        site.latency = (0.0, 0.2)
        slow.crawl(seed, budget=300, workers=64)
        assert (first.ended_by, first.fetched, first.order) == ("budget", 300, "exact")
        assert one.export("urls") == cut.export("urls") == slow.export("urls")
        assert one.story() == cut.story() == slow.story()

        site.latency = (0.0, 0.01)
        last = [home.crawl(seed, workers=workers) for home, workers in ((one, 1), (cut, 16), (slow, 64))]
        assert [end.ended_by for end in last] == ["finished"] * 3
        assert one.export("urls") == cut.export("urls") == slow.export("urls")
        assert one.story() == cut.story() == slow.story()
        refused = [f"/private/{number}" for number in range(0, 260, 6)]
        assert frontier(one, served, refused) == frontier(cut, served, refused) == frontier(slow, served, refused)
    outcomes = {kind for _, kind in one.outcomes()}
    assert outcomes == {"page", "duplicate", "redirect", "http_4xx", "redirect_loop"}
    assert one.reasons() == {"robots": len(refused)}
    assert not any(path.startswith("/private/") for path in served.paths())


def test_every_cut_gives_the_same_record(homes: list[Home]) -> None:
    pages = mixed_site(40)
    whole, ones, sevens, _ = homes
    with Site(pages, latency=(0.0, 0.003)).serve() as served:
        add_sitemaps(pages, served)
        seed = served.url("/")
        assert whole.crawl(seed, workers=5).order == "exact"
        for home, budget in ((ones, 3), (sevens, 7)):
            while home.crawl(seed, budget=budget, workers=5).run_state == "paused":
                pass
    assert whole.export("urls") == ones.export("urls") == sevens.export("urls")
    assert whole.story() == ones.story() == sevens.story()


def test_page_limits_per_seed_keep_the_record(homes: list[Home]) -> None:
    """Which pages a limit keeps depends on the order of the record alone, copies and failures or not."""
    pages: dict[str, Answer] = {}
    for top in ("/a", "/b", "/c"):
        pages |= below(top, mixed_site(40))
    site = Site(pages)
    one, many, cut, _ = homes
    with site.serve() as served:
        seeds = [served.url(f"/{top}/") for top in "abc"]
        settings: dict[str, Any] = {"page_limit": 17, "max_retries": 0}
        ended = one.crawl(*seeds, workers=1, **settings)
        site.latency = (0.0, 0.02)
        many.crawl(*seeds, workers=64, **settings)
        while cut.crawl(*seeds, workers=8, budget=13, **settings).run_state == "paused":
            pass
    assert (ended.ended_by, [kept for _, kept in ended.seeds]) == ("page_limit", [17, 17, 17])
    assert one.export("urls") == many.export("urls") == cut.export("urls")
    assert one.story() == many.story() == cut.story()
    assert one.reasons() == many.reasons() == cut.reasons()


HOSTS = [f"a{number}.localhost" for number in range(1, 21)]
SLOW, POLITE = HOSTS[3], HOSTS[11]


def many_hosts() -> Site:
    """Twenty hosts of a dozen pages; one is slow, one asks for a pause between two requests."""
    hosts: dict[str, dict[str, Answer]] = {
        name: dict(linked_site(12, fan=3, seed=number, duplicates=2)) for number, name in enumerate(HOSTS)
    }
    hosts[SLOW] = {path: Page(str(body), delay=0.15) for path, body in hosts[SLOW].items()}
    hosts[POLITE]["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.25\n"
    return Site({}, hosts)


def by_host(urls: list[str]) -> dict[str, list[str]]:
    ordered = sorted(urls, key=lambda url: url.split("/")[2])
    return {host: list(group) for host, group in groupby(ordered, key=lambda url: url.split("/")[2].split(":")[0])}


def test_no_host_waits_for_another_and_each_keeps_its_order(homes: list[Home]) -> None:
    many, alone, limited, _ = homes
    with many_hosts().serve() as served:
        seeds = [served.url("/", host) for host in HOSTS]
        ended = many.crawl(*seeds, workers=16)
        log = served.log
        assert (ended.ended_by, ended.order, many.status()["order"]) == ("finished", "per host", "per host")
        for host in (*HOSTS[:3], SLOW, POLITE):
            alone.crawl(served.url("/", host), workers=1, max_delay=0)
            assert by_host(many.urls())[host] == alone.urls()

        before = len(asked(served))
        assert limited.crawl(*seeds, workers=16, budget=100).fetched == 100
        assert len(asked(served)) - before == 100
    last = {host: max(hit.time for hit in log if hit.host.startswith(host + ":")) for host in HOSTS}
    polite = [hit.time for hit in log if hit.host.startswith(POLITE + ":") and not is_control(hit.path)]
    others = max(time for host, time in last.items() if host not in (SLOW, POLITE))
    assert others < polite[5], "twenty hosts shall not wait for two of them"


def test_strict_order_over_many_hosts(homes: list[Home]) -> None:
    site = many_hosts()
    for number, name in enumerate(HOSTS):
        pages = site.hosts[name]
        for path in ("/p3", "/p7"):
            there = f"http://{HOSTS[(number * 7 + 1) % 20]}:PORT{path}"
            pages[path] = lambda hit, text=str(pages[path]), there=there: text.replace(  # type: ignore[index,misc]
                "</ul>", f'<li><a href="{there.replace("PORT", hit.host.split(":")[1])}">x</a></ul>'
            )
    one, many, cut, _ = homes
    with site.serve() as served:
        seeds = [served.url("/", host) for host in HOSTS[:4]]
        settings: dict[str, Any] = {"strict_order": True, "scope": "any", "max_delay": 0.02, "page_limit": 25}
        ended = one.crawl(*seeds, workers=1, **settings)
        many.crawl(*seeds, workers=16, **settings)
        while cut.crawl(*seeds, workers=16, budget=40, **settings).run_state == "paused":
            pass
    assert ended.order == "exact"
    assert len({url.split("/")[2] for url in one.urls()}) > 5
    assert one.export("urls") == many.export("urls") == cut.export("urls")
    assert one.story() == many.story() == cut.story()
    assert path_of(one.urls()[0]) == "/"


@pytest.mark.parametrize("workers", [1, 8, 40])
def test_soft_404s_are_told_by_directory_whichever_page_comes_first(home: Home, workers: int) -> None:
    slow = "<title>Page not found</title>" + "The page was not found. "
    pages = {
        "/": page("home", "/a/x", "/b/y", "/b/z"),
        "/a/x": Page(slow, delay=0.3),
        "/b/y": "<title>Not found</title>Page not found, y",
        "/b/z": "<title>Not found</title>Page not found, z",
        "*": lambda hit: "<title>Not found</title>Page not found" if hit.path.startswith("/b/") else Page("", 404),
    }
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False, workers=workers)
        assert home.outcomes() == [("/", "page"), ("/a/x", "page"), ("/b/y", "soft_404"), ("/b/z", "soft_404")]
        assert len([path for path in served.paths() if path.endswith("is-not-here")]) == 2
        warc = home.folder / "record.warc.gz"
        warc.write_bytes(home.export("warc"))
        before = home.outcomes()
    home.crawl(served.url("/"), name="again", sitemap=False, replay=(str(warc),))
    assert home.outcomes() == before, "what it was held against is in the archive"


@pytest.mark.parametrize("workers", [1, 16])
def test_a_loop_is_a_loop_whatever_cookies_other_pages_set(home: Home, workers: int) -> None:
    """Whether a cookie of another page is in the jar by then depends on timing, and must not decide."""
    cookie = {"Set-Cookie": "visitor=1"}
    pages = {
        "/": page("home", "/slow", "/loop", "/wall", "/a"),
        "/slow": Page(page("slow"), headers=cookie, delay=0.2),
        "/loop": redirect("/loop"),
        "/wall": lambda hit: (
            Page(page("behind the wall"))
            if "pass=1" in hit.headers.get("cookie", "")
            else Page("", 302, {"Location": "/wall", "Set-Cookie": "pass=1"})
        ),
        "/a": redirect("/b"),
        "/b": Page("", 302, {"Location": "/a", "Set-Cookie": "visitor=1"}),
    }
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False, workers=workers)
    assert home.outcomes() == [
        ("/", "page"),
        ("/slow", "page"),
        ("/loop", "redirect_loop"),
        ("/wall", "redirect"),
        ("/a", "redirect"),
        ("/wall", "page"),
        ("/b", "redirect"),
        ("/a", "redirect_loop"),
    ]
