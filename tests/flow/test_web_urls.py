"""URLs and texts as the web writes them: monsters, odd spellings, loops, bases, look-alikes and wrong charsets."""

from __future__ import annotations

import itertools

import pytest
from tests.flow.crawling import Home, asked, page
from tests.flow.hostile import again, sound

from inchworm.testing import Answer, Hit, Page, Site, redirect

# Monsters


def test_u2_a_url_of_a_megabyte_is_refused_and_shown_shortened(home: Home) -> None:
    long = "/" + "x" * 1_000_000
    site: dict[str, Answer] = {"/": page("home", long, "/good"), "/good": page("good")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.refused, ended.failed) == ("completed", 2, 1, 0)
        assert home.reason(served.url(long)) == "url_too_long"
        assert home.reasons() == {"url_too_long": 1}
        for verb in ("why", "queue", "status"):
            told = home.cli(verb, home.word, *([served.url(long)] if verb == "why" else []))
            assert len(told.output) < 2_000
        assert served.paths() == ["/robots.txt", "/", "/good"]
        sound(home)
        again(home, served.url("/"), sitemap=False)


def test_u2_a_location_of_100_kb_is_refused(home: Home) -> None:
    long = "/" + "x" * 100_000
    site: dict[str, Answer] = {"/": page("home", "/moved", "/good"), "/moved": redirect(long), "/good": page("good")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.refused) == ("completed", 2, 1)
        assert home.reason(served.url(long)) == "url_too_long"
        assert served.paths() == ["/robots.txt", "/", "/moved", "/good"]
        sound(home)
        again(home, served.url("/"), sitemap=False)


@pytest.mark.parametrize("verb", ["why", "show"])
def test_u2_a_location_of_100_kb_is_shown_shortened(home: Home, verb: str) -> None:
    with Site({"/": page("home", "/moved"), "/moved": redirect("/" + "x" * 100_000)}).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        assert len(home.cli(verb, home.word, served.url("/moved")).output) < 5_000


# Spellings

SPELLINGS = {
    "tab": (["/tab", "/t&#9;ab", "/ta&#10;b", "/tab&#13;&#10;", " /tab"], "/tab"),
    "backslash": (["/back/slash", "\\back\\slash", "/back\\slash"], "/back/slash"),
    "escaped NUL": (["/nul%00x", "/./nul%00x"], "/nul%00x"),
    "NUL, which HTML replaces": (["/raw\0x", "/raw%ef%bf%bdx"], "/raw%EF%BF%BDx"),
    "lone percent": (["/lone%", "/a/../lone%"], "/lone%"),
    "broken escape": (["/bro%zzken"], "/bro%zzken"),
    "case of escapes": (["/case%2fx", "/case%2Fx"], "/case%2Fx"),
    "beyond ASCII": (["/größe", "/gr%c3%b6%c3%9fe", "/gr%C3%B6%C3%9Fe"], "/gr%C3%B6%C3%9Fe"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_u3_spellings_of_one_url_are_one_url(home: Home, name: str) -> None:
    spellings, canonical = SPELLINGS[name]
    pages: dict[str, Answer] = {"*": lambda hit: page(hit.path)}  # type: ignore[dict-item]
    with Site(pages).serve() as served:
        pages["/"] = page("home", *spellings)
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.known, ended.failed) == (2, 2, 0)
        assert len(asked(served)) == 2
        (row,) = (visit["canonical_url"] for visit in home.record() if visit["url"] != served.url("/"))
        assert row == served.url(canonical)
        sound(home)


def test_u3_what_is_on_record_is_its_own_canonical_form(homes: list[Home]) -> None:
    """All spellings on one page; the URLs on record, taken as seeds of another crawl, are those URLs again."""
    pages: dict[str, Answer] = {"*": lambda hit: page(hit.path)}  # type: ignore[dict-item]
    with Site(pages).serve() as served:
        pages["/"] = page("home", *itertools.chain(*(spellings for spellings, _ in SPELLINGS.values())))
        homes[0].crawl(served.url("/"), sitemap=False)
        urls = [visit["canonical_url"] for visit in homes[0].record()]
        assert sorted(urls) == sorted([served.url("/"), *(served.url(one) for _, one in SPELLINGS.values())])
        homes[1].crawl(*urls, sitemap=False)
        assert sorted(visit["canonical_url"] for visit in homes[1].record()) == sorted(urls)


# Redirects and refreshes


def test_u11_a_chain_of_fifty_redirects(home: Home) -> None:
    site: dict[str, Answer] = {f"/r{number}": redirect(f"/r{number + 1}") for number in range(50)}
    site |= {"/": page("home", "/r0", "/good"), "/r50": page("end"), "/good": page("good")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_redirects=7)
        assert (ended.pages, ended.failed) == (2, 1)
        hops = [end for path, end in home.outcomes() if path.startswith("/r")]
        assert hops == ["redirect"] * 7 + ["too_many_redirects"]
        sound(home)
        again(home, served.url("/"), sitemap=False, max_redirects=7)


def test_u11_a_redirect_to_itself_with_another_query_each_time(home: Home) -> None:
    count = itertools.count()
    pages: dict[str, Answer] = {"/": page("home", "/self", "/good"), "/good": page("good")}
    with Site({**pages, "/self": lambda _: redirect(f"?n={next(count)}")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_redirects=5)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 2, 1)
        (failed,) = home.ask("failed", home.word)["failed"]
        assert failed["failure"] == "too_many_redirects"
        assert len(asked(served)) == 2 + 6
        sound(home)


def test_u11_a_loop_of_two(home: Home) -> None:
    pages: dict[str, Answer] = {"/": page("home", "/a", "/good"), "/good": page("good")}
    with Site({**pages, "/a": redirect("/b"), "/b": redirect("/a")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.failed) == (2, 1)
        assert dict(home.outcomes())["/b"] == "redirect_loop"
        assert len(asked(served)) == 4
        again(home, served.url("/"), sitemap=False)


def refresh(name: str, content: str) -> str:
    return page(name, head=f'<meta http-equiv="Refresh" content="{content}">')


def test_u12_a_loop_of_refreshes_is_walked_once(home: Home) -> None:
    """As browsers read them: with quotes or without, with `url=` or without, and a time that is no number is none."""
    site = {
        "/": page("home", "/a", "/self", "/late", "/none"),
        "/a": refresh("a", "0; url=/b"),
        "/b": refresh("b", "0;URL='/c'"),
        "/c": refresh("c", "1, /a"),
        "/self": refresh("self", "0"),
        "/late": refresh("late", "86400; url=/behind"),
        "/behind": page("behind"),
        "/none": refresh("none", "soon; url=/never"),
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 8, 0)
        assert sorted(home.paths()) == ["/", "/a", "/b", "/behind", "/c", "/late", "/none", "/self"]
        assert len(asked(served)) == 8
        again(home, served.url("/"), sitemap=False)


def test_u12_a_refresh_that_counts_on_for_ever_ends_as_a_trap(home: Home) -> None:
    def next_one(hit: Hit) -> str:
        number = int(hit.path.partition("=")[2])
        return refresh(f"number {number}", f"0;url=/r?n={number + 1}")

    with Site({"/": page("home", "/r?n=0", "/good"), "/r": next_one, "/good": page("good")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, trap_depth=20)
        assert (ended.run_state, home.reasons()) == ("completed", {"trap": 1})
        assert (ended.pages, home.show(served.url("/good"))["state"]) == (22, "done")


# Bases and canonical links

BASES = {
    "U13 invalid": ('<base href="http://[">', "/dir/x"),
    "U13 empty": ('<base href="">', "/dir/x"),
    "U13 data:": ('<base href="data:,/other/">', "/dir/x"),
    "U13 javascript:": ('<base href="javascript:/other/">', "/dir/x"),
    "U13 two, the first counts": ('<base href="/first/"><base href="/second/">', "/first/x"),
    "U13 two, the first is invalid": ('<base href="http://["><base href="/second/">', "/dir/x"),
    "U13 two, the first has no href": ('<base target="_top"><base href="/second/">', "/second/x"),
    "U13 relative": ('<base href="../up/">', "/up/x"),
}


@pytest.mark.parametrize("name", BASES)
def test_a_base_is_what_browsers_make_of_it(home: Home, name: str) -> None:
    head, leads_to = BASES[name]
    pages: dict[str, Answer] = {"/dir/page": page("home", "x", head=head), leads_to: page("target")}
    with Site(pages).serve() as served:
        ended = home.crawl(served.url("/dir/page"), scope="host", sitemap=False)
        assert (home.paths(), ended.failed) == (["/dir/page", leads_to], 0)
        sound(home)


def test_u13_a_base_on_another_host_takes_its_links_out_of_scope(home: Home) -> None:
    pages: dict[str, Answer] = {}
    with Site(pages).serve() as served:
        pages["/"] = page("home", "x", head=f'<base href="{served.url("/", "other.localhost")}">')
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.pages, ended.known) == (1, 2)
        assert home.reason(served.url("/x", "other.localhost")) == "out_of_scope"
        assert {hit.host for hit in served.log} == {f"127.0.0.1:{served.port}"}


def canonical(name: str, target: str, *links: str) -> str:
    return page(name, *links, head=f'<link rel="canonical" href="{target}">')


def test_u14_a_canonical_link_is_recorded_and_not_believed(home: Home) -> None:
    """To another host, round in a circle, to nowhere: every page is crawled and kept under its own URL."""
    foreign = "http://foreign.test/page"
    site: dict[str, Answer] = {
        "/": page("home", "/foreign", "/a", "/b", "/code"),
        "/foreign": canonical("foreign", foreign),
        "/a": canonical("a", "/b"),
        "/b": canonical("b", "/a"),
        "/code": canonical("code", "javascript:alert(1)"),
    }
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, scope="any")
        assert (ended.pages, ended.duplicates, ended.failed, ended.known) == (5, 0, 0, 5)
        said = {visit["url"]: visit["canonical"] for visit in home.record()}
        assert said == {
            served.url("/"): None,
            served.url("/foreign"): foreign,
            served.url("/a"): served.url("/b"),
            served.url("/b"): served.url("/a"),
            served.url("/code"): None,
        }
        again(home, served.url("/"), sitemap=False, scope="any")


# Look-alikes

LOOK_ALIKES = {
    "аpple.localhost": "xn--pple-43d.localhost",  # the first letter is Cyrillic
    "раураl.localhost": "xn--l-7sba6dbr.localhost",  # five Cyrillic letters and a Latin one
    "bücher.localhost": "xn--bcher-kva.localhost",
}


def test_u15_look_alikes_are_hosts_of_their_own(home: Home) -> None:
    hosts: dict[str, dict[str, Answer]] = {ascii_name: {"/": page(ascii_name)} for ascii_name in LOOK_ALIKES.values()}
    pages: dict[str, Answer] = {}
    with Site({}, {**hosts, "apple.localhost": pages}).serve() as served:
        pages["/"] = page("apple", *(served.url("/", name) for name in LOOK_ALIKES))
        ended = home.crawl(served.url("/", "apple.localhost"), scope="any", sitemap=False)
        assert (ended.pages, ended.failed) == (4, 0)
        expected = {served.url("/", name) for name in ("apple.localhost", *LOOK_ALIKES.values())}
        assert set(home.urls()) == expected
        asked_for_robots = {hit.host for hit in served.log if hit.path == "/robots.txt"}
        assert asked_for_robots == {url.split("/")[2] for url in expected}
        for arguments in (
            ["export", home.word, "--format", "urls"],
            ["show", home.word, served.url("/", "аpple.localhost")],
        ):
            assert home.cli(*arguments).stdout.isascii()
        sound(home)


def test_u15_a_look_alike_is_not_the_host_of_the_seed(home: Home) -> None:
    pages: dict[str, Answer] = {}
    with Site(pages).serve() as served:
        pages["/"] = page("apple", served.url("/in", "аpple.localhost"))
        ended = home.crawl(served.url("/", "apple.localhost"), scope="host", sitemap=False)
        assert (ended.pages, home.reasons()) == (1, {"out_of_scope": 1})


def test_u15_names_that_are_no_names_lead_nowhere(home: Home) -> None:
    invalid = [f"http://{name}.localhost/" for name in ("xn--iñvalid", "a%00b", "a b", "a<b", "\u200d", "\ufffd")]
    with Site({"/": page("home", *invalid, "/good"), "/good": page("good")}).serve() as served:
        ended = home.crawl(served.url("/"), scope="any", sitemap=False)
        assert (ended.pages, ended.known, ended.failed) == (2, 2, 0)


@pytest.mark.parametrize("name", ["xn--a", "xn--a-yoc", "xn--", "xn--zn7c"])
def test_u15_punycode_that_says_nothing_is_a_name_like_any_other(home: Home, name: str) -> None:
    """Browsers take a name of ASCII as it is, for there are sites with such names. It is never decoded."""
    pages: dict[str, Answer] = {}
    with Site({}, {f"{name}.localhost": {"/": page("odd")}, "good.localhost": pages}).serve() as served:
        odd = served.url("/", f"{name}.localhost")
        pages["/"] = page("good", odd)
        ended = home.crawl(served.url("/", "good.localhost"), scope="any", sitemap=False)
        assert (ended.pages, ended.failed) == (2, 0)
        assert home.urls()[1] == odd
        assert odd in home.cli("show", home.word, odd).stdout
        sound(home)


# Charsets


def text_page(title: str, charset: str = "", pad: int = 0) -> str:
    meta = f"<meta charset={charset}>" if charset else ""
    return f"<!doctype html><!--{'-' * pad}-->{meta}<title>{title}</title><p>{title} {'and more of it ' * 10}"


UTF_8, GB = "Grüße aus Köln", "中文网页的标题"
ANY = None
"""Whatever comes out: valid text is all that is asked for."""

CHARSETS: dict[str, tuple[str, bytes, str | None]] = {
    "U17 missing": ("text/html", text_page(UTF_8).encode(), ANY),
    "U17 missing, said in the page": ("text/html", text_page(UTF_8, "utf-8").encode(), UTF_8),
    "U17 wrong: Latin-1 called UTF-8": ("text/html; charset=utf-8", text_page(UTF_8).encode("latin-1"), ANY),
    "U17 wrong: UTF-8 called Latin-1": ("text/html; charset=iso-8859-1", text_page("Grüße").encode(), "GrÃ¼ÃŸe"),
    "U17 no such charset": ("text/html; charset=os.system", text_page(UTF_8, "utf-8").encode(), UTF_8),
    "U17 UTF-16 without BOM, labelled": ("text/html; charset=utf-16", text_page(UTF_8).encode("utf-16-le"), UTF_8),
    "U17 UTF-16 without BOM or label": ("text/html", text_page(UTF_8).encode("utf-16-be"), ANY),
    "U17 UTF-16 with BOM called UTF-8": ("text/html; charset=utf-8", text_page(UTF_8).encode("utf-16"), UTF_8),
    "U17 meta after 1 kB": ("text/html", text_page(GB, "gb18030", pad=3000).encode("gb18030"), ANY),
    "U17 GB18030": ("text/html; charset=gb18030", text_page(GB).encode("gb18030"), GB),
    "U17 surrogates in UTF-8": (
        "text/html; charset=utf-8",
        text_page("lone \ud800").encode("utf-8", "surrogatepass"),
        ANY,
    ),
    "U17 surrogates in UTF-16": (
        "text/html; charset=utf-16le",
        text_page("lone \udc00").encode("utf-16-le", "surrogatepass"),
        "lone \ufffd",
    ),
    "U17 surrogates as references": ("text/html", text_page("lone &#xD800;&#xDFFF;").encode(), "lone \ufffd\ufffd"),
    "U17 surrogates in JSON": (
        "text/html",
        text_page("json", "utf-8").encode()
        + b'<script type="application/ld+json">{"@type": "Article", "author": "x \\ud800 y"}</script>',
        "json",
    ),
    "U17 bytes that are nothing": ("text/html", b"<title>odd</title>" + bytes(range(256)) * 20, "odd"),
}


@pytest.mark.parametrize("name", CHARSETS)
def test_any_text_is_kept_as_valid_utf_8(home: Home, name: str) -> None:
    content_type, body, title = CHARSETS[name]
    answer = Page(body, headers={"Content-Type": content_type})
    with Site({"/": page("home", "/odd", "/good"), "/odd": answer, "/good": page("good")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 3, 0)
        home.export("jsonl").decode("utf-8", "strict")
        (kept,) = (visit for visit in home.record() if visit["url"] == served.url("/odd"))
        str(kept).encode("utf-8", "strict")
        assert title is ANY or kept["title"] == title
        assert (kept["title"] or "") in home.cli("show", home.word, served.url("/odd")).stdout
        sound(home)
        again(home, served.url("/"), sitemap=False)
