"""How far a crawl goes, what redirects do to it, where its URLs come from, and why it left others out."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from tests.flow.crawling import Home, asked, page, path_of
from tests.flow.test_checkpoints import checkpoints, go_on

from inchworm.testing import Answer, Hit, Page, Served, Site, redirect


def port_of(site: Site, served: Served) -> None:
    """Put the port that the site got into its pages: they name it PORT."""
    for pages in (site.pages, *site.hosts.values()):
        for path, answer in pages.items():
            if isinstance(answer, str):
                pages[path] = answer.replace("PORT", str(served.port))  # type: ignore[index]
            elif isinstance(answer, Page) and "Location" in answer.headers:
                target = answer.headers["Location"].replace("PORT", str(served.port))
                pages[path] = Page(status=answer.status, headers={"Location": target}, delay=answer.delay)  # type: ignore[index]


# Scope


LINKS = ("/docs/a", "/docs", "/docs-old", "/docs/sub/b", "/other", "http://127.0.0.2:PORT/docs/a", "/")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"/docs/", "/docs/a", "/docs/sub/b"}),
        ({"loose_paths": True}, {"/docs/", "/docs/a", "/docs/sub/b", "/docs-old"}),
        ({"scope": "host"}, {"/docs/", "/docs/a", "/docs/sub/b", "/docs-old", "/other", "/"}),
        ({"exclude": "*/sub/*"}, {"/docs/", "/docs/a"}),
        ({"include": "re:/docs/a$"}, {"/docs/", "/docs/a"}),
        ({"scope": "host", "include": ("*/docs/?", "re:/other$"), "exclude": "*-old"}, {"/docs/", "/docs/a", "/other"}),
    ],
)
def test_scope(home: Home, settings: dict[str, Any], expected: set[str]) -> None:
    site = Site({"/docs/": page("docs", *LINKS), "*": lambda hit: page(hit.path)})
    with site.serve() as served:
        port_of(site, served)
        home.crawl(served.url("/docs/"), sitemap=False, robots=False, **settings)
        assert set(served.paths()) == set(home.paths()) == expected
        assert {hit.host for hit in served.log} == {f"127.0.0.1:{served.port}"}
        assert home.reason(f"http://127.0.0.2:{served.port}/docs/a") in ("out_of_scope", "not_included")


def test_domain_and_any(homes: list[Home]) -> None:
    """The domain of a.one.localhost is one.localhost as far as public suffixes go; `any` knows no end."""
    links = ("http://b.one.localhost:PORT/b", "http://two.localhost:PORT/c")
    site = Site({"*": lambda hit: page(f"{hit.host} {hit.path}")}, {"a.one.localhost": {"/x/": page("start", *links)}})
    with site.serve() as served:
        port_of(site, served)
        seed = served.url("/x/", "a.one.localhost")
        expected = {"path": ["/x/"], "host": ["/x/"], "domain": ["/x/", "/b"], "any": ["/x/", "/b", "/c"]}
        for home, scope in zip(homes, expected, strict=True):
            home.crawl(seed, scope=scope, sitemap=False)
            assert home.paths() == expected[scope]
        assert homes[2].reason(served.url("/c", "two.localhost")) == "out_of_scope"


def test_a_file_stands_for_its_directory(home: Home) -> None:
    site = {"/docs/index.html": page("index", "a.html", "sub/b.html", "/other.html", "/docs")}
    with Site({**site, "*": lambda hit: page(hit.path)}).serve() as served:
        home.crawl(served.url("/docs/index.html"), sitemap=False)
        assert home.paths() == ["/docs/index.html", "/docs/a.html", "/docs/sub/b.html", "/docs"]
        assert home.reason(served.url("/other.html")) == "out_of_scope"


def test_reasons_can_be_asked_for(home: Home) -> None:
    site = {
        "/robots.txt": "User-agent: *\nDisallow: /in/private",
        "/in/": page("in", "/in/private", "/in/skip.zip", "/out", "/in/deep", "/in/" + "x" * 9000),
        "/in/deep": page("deep", "/in/deeper"),
        "/in/deeper": page("deeper", "/in/deepest"),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/in/"), exclude="*.zip", max_depth=2)
        expected = {
            "/in/private": "robots",
            "/in/skip.zip": "excluded",
            "/out": "out_of_scope",
            "/in/deepest": "max_depth",
            "/in/" + "x" * 9000: "url_too_long",
        }
        assert {path: home.reason(served.url(path)) for path in expected} == expected
        why = home.ask("why", home.word, served.url("/out"))
        assert (why["state"], why["reason"]) == ("refused", "out_of_scope")
        assert "outside the crawl's scope" in home.cli("why", home.word, served.url("/out")).stdout
        shown = home.ask("show", home.word, served.url("/in/deep"))
        assert (shown["state"], shown["source"], shown["depth"]) == ("done", "spider", 1)
        assert shown["found_on"] == served.url("/in")
        never_met = home.cli("why", home.word, served.url("/never-met"), code=2)
        assert "not known" in never_met.stderr


@pytest.mark.parametrize(
    ("hops", "expected", "refused"),
    [(0, ["/"], "/b1"), (1, ["/", "/b1"], "/c1"), (2, ["/", "/b1", "/c1", "/back"], "/d1")],
)
def test_external_hops(home: Home, hops: int, expected: list[str], refused: str) -> None:
    """A base page, one host away, two away; and a link back into the scope, which is no hop at all."""
    hosts = {
        "a.localhost": {"/": page("a", "http://b.localhost:PORT/b1"), "/back": page("back")},
        "b.localhost": {"/b1": page("b1", "http://c.localhost:PORT/c1")},
        "c.localhost": {"/c1": page("c1", "http://d.localhost:PORT/d1", "http://a.localhost:PORT/back")},
        "d.localhost": {"/d1": page("d1")},
    }
    site = Site({}, hosts)
    with site.serve() as served:
        port_of(site, served)
        home.crawl(served.url("/", "a.localhost"), external_hops=hops, sitemap=False)
        assert home.paths() == expected
        name = f"{refused[1]}.localhost"
        shown = home.show(served.url(refused, name))
        assert (shown["reason"], shown["hops"]) == ("hops" if hops else "out_of_scope", hops + 1)


# Redirects


def test_a_seed_that_redirects_takes_its_scope_along(home: Home) -> None:
    """From /old/start on one host to /new/home on another: there, the scope has both of these, and no more."""
    hosts: dict[str, dict[str, Answer]] = {
        "a.localhost": {"/old/start": redirect("http://b.localhost:PORT/new/home"), "/old/x": page("x")},
        "b.localhost": {
            "/new/home": page(
                "home", "/new/home/1", "/old/start/2", "/new/1", "/old/2", "/3", "http://a.localhost:PORT/old/x"
            ),
            "*": lambda hit: page(hit.path),  # type: ignore[dict-item]
        },
    }
    site = Site({}, hosts)
    with site.serve() as served:
        port_of(site, served)
        ended = home.crawl(served.url("/old/start", "a.localhost"), sitemap=False)
        assert home.paths() == ["/old/start", "/new/home", "/new/home/1", "/old/start/2"]
        (said,) = ended.moved
        assert said.endswith(f" redirects to b.localhost:{served.port}; its scope now has /new/home/ too.")
        assert home.reason(served.url("/old/x", "a.localhost")) == "out_of_scope"
        hop = home.show(served.url("/old/start", "a.localhost"))["visits"][0]
        assert (hop["outcome"], hop["redirect"]) == ("redirect", served.url("/new/home", "b.localhost"))
        target = home.show(served.url("/new/home", "b.localhost"))
        assert (target["source"], target["depth"], target["chain"]) == ("redirect", 0, 1)


def test_a_seed_that_redirects_within_its_host_does_not_take_in_all_of_it(home: Home) -> None:
    site: dict[str, Answer] = {
        "/seedredir": redirect("/moved/here/"),
        "/moved/here/": page("here", "/moved/here/a", "/seedredir/b", "/moved/c", "/"),
        "*": lambda hit: page(hit.path),
    }
    with Site(site).serve() as served:
        done = home.cli("crawl", served.url("/seedredir"), "--delay", "0", "--no-sitemap")
        assert "redirects to" in done.output
        assert "its scope now has /moved/here/ too" in done.output
        assert home.paths() == ["/seedredir", "/moved/here/", "/moved/here/a", "/seedredir/b"]
        assert {home.reason(served.url(path)) for path in ("/moved/c", "/")} == {"out_of_scope"}
        # The next run starts where the user started, and finds the same.
        home.crawl(served.url("/seedredir"), sitemap=False)
        assert home.paths(1) == home.paths(0)


def test_going_back_takes_a_seed_back_to_where_it_was(home: Home) -> None:
    """A page, then a seed that redirects: from before it the crawl goes the same way once more."""
    site: dict[str, Answer] = {"/c": page("c", "/b/y"), "/a": redirect("/b/"), "/b/": page("b"), "/b/y": page("y")}
    with Site(site).serve() as served:

        def paths() -> list[list[str]]:
            with home.app.workspace.reading(home.app.workspace.find(home.word)) as store:
                current = store.runs.get(0)
            assert current is not None
            return [seed.paths for seed in current.seeds]

        home.crawl(served.url("/c"), served.url("/a"), sitemap=False, checkpoint_every=1, workers=1)
        assert (home.paths(), paths()) == (["/c", "/a", "/b/", "/b/y"], [["/c"], ["/a", "/b"]])
        story = home.story()
        before = len(served.log)
        go_on(home, min(number for number, _ in checkpoints(home)))
        assert served.paths()[before:] == ["/a", "/b/", "/b/y"]
        assert (home.story(), paths()) == (story, [["/c"], ["/a", "/b"]])


def test_x6_what_only_a_sitemap_names_is_no_hop(home: Home) -> None:
    """One hop is a link away from a page of ours. What a page links to as well is one, whoever named it first."""
    map_ = (
        "<urlset><url><loc>http://b.localhost:PORT/only</loc></url><url><loc>http://b.localhost:PORT/both</loc></url>"
    )
    hosts: dict[str, dict[str, Answer]] = {
        "a.localhost": {
            "/": page("a", "/late"),
            "/late": page("late", "/later"),
            "/later": page("later", "http://b.localhost:PORT/both", "http://b.localhost:PORT/linked"),
            "/sitemap.xml": f"{map_}<url><loc>http://a.localhost:PORT/mapped</loc></url></urlset>",
            "/mapped": page("mapped"),
        },
        "b.localhost": {path: page(path) for path in ("/only", "/both", "/linked")},
    }
    site = Site({}, hosts)
    with site.serve() as served:
        port_of(site, served)
        home.crawl(served.url("/", "a.localhost"), external_hops=1, workers=1)
        assert sorted(home.paths()) == ["/", "/both", "/late", "/later", "/linked", "/mapped"]
        shown = home.show(served.url("/only", "b.localhost"))
        assert (shown["reason"], shown["source"]) == ("hops", "sitemap")
        assert home.show(served.url("/both", "b.localhost"))["hops"] == 1


def test_a_seed_keeps_its_path_when_it_redirects_deeper(home: Home) -> None:
    site = {"/docs": redirect("/docs/en/start.html"), "/docs/en/start.html": page("start", "/docs/de/", "/blog")}
    with Site({**site, "/docs/de/": page("de")}).serve() as served:
        home.crawl(served.url("/docs"), sitemap=False)
        assert home.paths() == ["/docs", "/docs/en/start.html", "/docs/de/"]
        assert home.reason(served.url("/blog")) == "out_of_scope"


@pytest.mark.parametrize("hops", [0, 1])
def test_links_refused_before_a_seed_moved_are_judged_again(home: Home, hops: int) -> None:
    """The slow seed moves to b.localhost after links there were refused; then they belong to the crawl."""
    hosts = {
        "a.localhost": {"/": page("a", "http://b.localhost:PORT/1")},
        "b.localhost": {"/": page("b"), "/1": page("b1", "/2"), "/2": page("b2", "/3"), "/3": page("b3")},
        "slow.localhost": {"/": Page(status=302, headers={"Location": "http://b.localhost:PORT/"}, delay=0.7)},
    }
    site = Site({}, hosts)
    with site.serve() as served:
        port_of(site, served)
        seeds = [served.url("/", name) for name in ("a.localhost", "slow.localhost")]
        home.crawl(*seeds, external_hops=hops, sitemap=False)
        assert sorted(home.paths()) == ["/", "/", "/", "/1", "/2", "/3"]
        assert home.reasons() == {}
        assert home.show(served.url("/2", "b.localhost"))["hops"] == 0


def test_a_sitemap_refused_before_the_seed_moved_is_read_after(home: Home) -> None:
    """example.org and www.example.org name the same sitemap, on www. The usual thing."""
    named = "Sitemap: http://www.localhost:PORT/map-sitemap.xml"
    hosts: dict[str, dict[str, Answer]] = {
        "bare.localhost": {"/robots.txt": named, "/": redirect("http://www.localhost:PORT/", 301)},
        "www.localhost": {
            "/robots.txt": named,
            "/": page("home"),
            "/map-sitemap.xml": "<urlset><url><loc>http://www.localhost:PORT/only-in-the-map</loc></url></urlset>",
            "/only-in-the-map": page("hidden"),
        },
    }
    site = Site({}, hosts)
    with site.serve() as served:
        port_of(site, served)
        home.crawl(served.url("/", "bare.localhost"))
        assert home.paths() == ["/", "/", "/only-in-the-map"]


def test_a_chain_of_redirects(homes: list[Home]) -> None:
    """Ten redirects in a row are followed, the eleventh is one too many."""
    for home, length, end in ((homes[0], 10, "page"), (homes[1], 11, "too_many_redirects")):
        site: dict[str, Answer] = {f"/r{number}": redirect(f"/r{number + 1}") for number in range(length)}
        site |= {"/": page("home", "/r0"), f"/r{length}": page("end")}
        with Site(site).serve() as served:
            home.crawl(served.url("/"), sitemap=False)
        middle = [(f"/r{number}", "redirect") for number in range(10)]
        assert home.outcomes() == [("/", "page"), *middle, ("/r10", end)]


def test_redirects_that_lead_nowhere(home: Home) -> None:
    site = {
        "/": page("home", "/self", "/a", "/none", "/mail", "/empty"),
        "/self": redirect("/self"),
        "/a": redirect("/b"),
        "/b": redirect("/a"),
        "/none": Page("", 302),
        "/mail": redirect("mailto:somebody@example.org"),
        "/empty": redirect(""),
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        found = {path: end for path, end in home.outcomes() if end not in ("page", "redirect")}
        assert found == {
            "/self": "redirect_loop",
            "/b": "redirect_loop",
            "/none": "bad_redirect",
            "/mail": "bad_redirect",
            "/empty": "bad_redirect",
        }
        assert (ended.failed, ended.run_state) == (5, "completed")
        assert len(asked(served)) == 7


def test_a_loop_whose_pages_are_linked_is_a_failure_too(home: Home) -> None:
    """No page stands behind /a and /b. A run that shows no failure would be silently short."""
    site = {"/": page("home", "/a", "/b"), "/a": redirect("/b"), "/b": redirect("/a")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
    assert ended.failed > 0
    assert "redirect_loop" in [end for _, end in home.outcomes()]


@pytest.mark.parametrize(
    ("first", "second"),
    [("/docs", "/docs/"), ("/docs/", "/docs"), ("/docs?utm_source=x", "/docs"), ("/docs?b=1&a=2", "/docs?a=2&b=1")],
)
def test_a_redirect_to_another_spelling_is_one_url(home: Home, first: str, second: str) -> None:
    """One row, two requests; the page is known by what answered."""
    site = {"/": page("home", first, "/last"), first: redirect(second, 301), second: page("docs", "/more")}
    with Site({**site, "/last": page("last"), "/more": page("more")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert home.outcomes() == [
            ("/", "page"),
            (first, "redirect"),
            ("/last", "page"),
            (second, "page"),
            ("/more", "page"),
        ]
        assert (ended.known, ended.pages, ended.fetched, ended.failed) == (4, 4, 5, 0)
        shown = home.show(served.url(first))
        assert (shown["request_url"] or shown["url"]) == served.url(second)
        assert [visit["outcome"] for visit in shown["visits"]] == ["redirect", "page"]


def test_two_spellings_that_redirect_to_each_other(home: Home) -> None:
    site = {"/": page("home", "/docs"), "/docs": redirect("/docs/"), "/docs/": redirect("/docs")}
    with Site(site).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        assert home.outcomes() == [("/", "page"), ("/docs", "redirect"), ("/docs/", "redirect_loop")]


@pytest.mark.parametrize("robots", [True, False])
def test_a_bare_host_falls_back_to_http(home: Home, robots: bool) -> None:
    site = {"/": page("home", "/a"), "/a": page("a")}
    with Site(site).serve() as served:
        ended = home.crawl(f"127.0.0.1:{served.port}", robots=robots, connect_timeout=0.4, max_retries=1)
        assert (ended.run_state, ended.pages) == ("completed", 2)
        assert home.show(served.url("/a"))["state"] == "done"


# Where URLs come from


def test_sitemaps(home: Home) -> None:
    """Named in robots.txt: an index, a packed one, a plain text one; what is out of scope stays out."""
    site: dict[str, Answer] = {
        "/robots.txt": "Sitemap: http://127.0.0.1:PORT/sitemap-index.xml\nSitemap: http://127.0.0.1:PORT/sitemap.txt",
        "/sitemap-index.xml": "<sitemapindex><sitemap><loc>http://127.0.0.1:PORT/sitemap-1.xml.gz</loc></sitemap></sitemapindex>",
        "/sitemap.txt": "http://127.0.0.1:PORT/docs/text\nhttp://127.0.0.1:PORT/blog\n",
        "/docs/": page("docs", "/docs/linked"),
        "*": lambda hit: page(hit.path),  # type: ignore[dict-item]
    }
    served_site = Site(site)
    with served_site.serve() as served:
        port_of(served_site, served)
        urls = "".join(
            f"<url><loc>{served.url(path)}</loc><lastmod>{day}</lastmod></url>"
            for path, day in (("/docs/one", "2024-05-01"), ("/docs/linked", "2024-06-01T10:00:00Z"))
        )
        site["/sitemap-1.xml.gz"] = gzip.compress(f"<urlset>{urls}</urlset>".encode())
        ended = home.crawl(served.url("/docs/"))
        assert sorted(home.paths()) == ["/docs/", "/docs/linked", "/docs/one", "/docs/text"]
        shown = home.show(served.url("/docs/one"))
        assert (shown["source"], shown["depth"], shown["lastmod"]) == ("sitemap", 0, "2024-05-01")
        assert home.show(served.url("/docs/text"))["source"] == "sitemap"
        assert home.reason(served.url("/blog")) == "out_of_scope"
        assert (ended.fetched, ended.known) == (4, 5)


def test_the_usual_sitemap_is_looked_for(homes: list[Home]) -> None:
    site = {"/": page("home"), "/only-in-the-map": page("hidden")}
    pages = {**site, "/sitemap.xml": "<urlset><url><loc>http://127.0.0.1:PORT/only-in-the-map</loc></url></urlset>"}
    served_site = Site(pages)
    with served_site.serve() as served:
        port_of(served_site, served)
        seen = [["/", "/only-in-the-map"], ["/", "/only-in-the-map"], ["/"]]
        for home, given, expected in zip(homes, ({}, {"robots": False}, {"sitemap": False}), seen, strict=False):
            home.crawl(served.url("/"), **given)
            assert home.paths() == expected


def test_resources(homes: list[Home]) -> None:
    head = '<link rel="stylesheet" href="/s/style.css"><script src="/s/code.js"></script>'
    site = {
        "/docs/": page("docs", "/docs/a", head=head, body='<img src="/i/one.png">'),
        "/docs/a": page("a", head=head),
        "/s/style.css": "@import 'more.css'; body { background: url(/i/back.png) }",
        "/s/more.css": "@font-face { src: url('font.woff2') }",
        "/s/code.js": "code()",
        "/i/one.png": b"one",
        "/i/back.png": b"back",
        "/s/font.woff2": b"font",
    }
    with Site(site).serve() as served:
        ended = homes[0].crawl(served.url("/docs/"), resources=True, sitemap=False)
        assert sorted(homes[0].paths()) == sorted(site)
        assert (ended.pages, ended.fetched) == (2, 8)
        outcomes = dict(homes[0].outcomes())
        assert {path for path, end in outcomes.items() if end == "resource"} == set(site) - {"/docs/", "/docs/a"}
        assert homes[0].show(served.url("/i/back.png"))["source"] == "resource"
        assert homes[0].show(served.url("/i/back.png"))["found_on"] == served.url("/s/style.css")
        homes[1].crawl(served.url("/docs/"), sitemap=False)
        assert homes[1].paths() == ["/docs/", "/docs/a"]


def test_nofollow_of_a_page(homes: list[Home]) -> None:
    """Its links are not followed, unless another page links there too, or robots are ignored."""
    site = {
        "/": page("home", "/quiet", "/last"),
        "/quiet": page("quiet", "/a", "/b", head='<meta name="robots" content="noindex, nofollow">'),
        "/last": page("last", "/b"),
        "/a": page("a"),
        "/b": page("b"),
    }
    with Site(site).serve() as served:
        homes[0].crawl(served.url("/"), sitemap=False)
        assert homes[0].paths() == ["/", "/quiet", "/last", "/b"]
        assert homes[0].reason(served.url("/a")) == "nofollow"
        homes[1].crawl(served.url("/"), sitemap=False, robots=False)
        assert sorted(homes[1].paths()) == sorted(site)


# One content, many URLs


def test_duplicates_are_alternates_and_their_links_are_followed(home: Home) -> None:
    site: dict[str, Answer] = {
        "/": page("home", "/one", "/two", "/three"),
        "/one": page("same", "/from-one"),
        "/two": page("same", "/from-two"),
        "/three": page("same", "/from-three"),
        "*": lambda hit: page(hit.path),  # type: ignore[dict-item]
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, workers=8)
        assert (ended.pages, ended.duplicates) == (5, 2)
        assert sorted(home.paths())[1:4] == ["/from-one", "/from-three", "/from-two"]
        urls = [served.url(path) for path in ("/one", "/two", "/three")]
        for url in urls:
            assert home.show(url)["visits"][0]["alternate_urls"] == urls
        lists = {path_of(visit["url"]): visit["alternate_urls"] for visit in home.record()}
        assert (lists["/one"], lists["/"], lists["/two"]) == (urls, [served.url("/")], [])


def test_small_and_other_bodies_are_compared_byte_by_byte(home: Home) -> None:
    site = {
        "/": page("home", "/a.txt", "/b.txt", "/c.txt", "/tiny1", "/tiny2"),
        "/a.txt": b"the same",
        "/b.txt": b"the same",
        "/c.txt": b"another",
        "/tiny1": "<p>hi",
        "/tiny2": "<p>hi ",
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.duplicates) == (5, 1)
        assert home.show(served.url("/b.txt"))["visits"][0]["outcome"] == "duplicate"


def test_what_came_into_scope_by_a_moved_seed_is_followed_from_the_first_page_that_allows_it(home: Home) -> None:
    """/x was outside, and then inside but linked with nofollow only; a plain link to it comes last."""
    hosts: dict[str, Any] = {
        "a.localhost": {"/": lambda hit: page("a", x_of(hit), head="<meta name=robots content=nofollow>")},
        "c.localhost": {"/": lambda hit: redirect(x_of(hit).removesuffix("x"))},
        "b.localhost": {"/": page("b", "/x"), "/x": page("x")},
    }
    with Site({}, hosts).serve() as served:
        seeds = [served.url("/", "a.localhost"), served.url("/", "c.localhost")]
        home.crawl(*seeds, scope="host", sitemap=False, strict_order=True, workers=1)
    assert [outcome for path, outcome in home.outcomes() if path == "/x"] == ["page"]


def x_of(hit: Hit) -> str:
    return f"http://b.localhost:{hit.host.partition(':')[2]}/x"
