"""The pages about content: lists of URLs, full text, one page, what is stored of it, the site as a tree."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from markupsafe import escape
from tests.flow.crawling import page
from tests.service.in_process import Api, serving
from tests.service.test_gate import SECRET, bearer

from inchworm.app import FORMATS
from inchworm.app.read.content import pages as page_reads
from inchworm.app.read.content import site as site_tree
from inchworm.job import Task
from inchworm.service import build
from inchworm.service.access.gate import STORED_HEADERS, Gate, Keys
from inchworm.service.api.web import Verbs
from inchworm.service.dashboard import content
from inchworm.service.dashboard.content import PREVIEW_BYTES, kind_of, results
from inchworm.service.dashboard.tree import crumbs
from inchworm.settings import Settings
from inchworm.store.home.access import Access
from inchworm.store.home.home import Home
from inchworm.testing import Page, Served, Site, redirect

EVIL = "<script>alert(1)</script>\"'&{{7*7}}"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HOSTILE = f"<title>{html.escape(EVIL)}</title><p>hostile words about worms</p><script>top.location='/'</script>"
FILES = {
    "/pic.svg": Page(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", headers={"Content-Type": "image/svg+xml"}
    ),
    "/data.json": Page('{"a": "<b>é</b>"}', headers={"Content-Type": "application/json"}),
    "/file.bin": Page(b"\x00\x01<script>", headers={"Content-Type": "application/octet-stream"}),
    "/west.html": Page("<p>café</p>".encode("latin-1"), headers={"Content-Type": "text/html; charset=iso-8859-1"}),
    "/huge.txt": Page(b"x" * (PREVIEW_BYTES + 1), headers={"Content-Type": "text/plain"}),
}


class Pages(dict[str, object]):
    """A site with something of everything."""

    def __init__(self) -> None:
        many = [f"/many/{number:03}.html" for number in range(120)]
        names = ["/evil.html", "/old", "/gone", "/copy", "/docs/a", "/docs/deep/b", *FILES]
        super().__init__({"/": page("start of a garden", *names, "https://away.test/x?<b>"), **FILES})
        self["/evil.html"] = HOSTILE
        self["/old"] = redirect("/docs/a")
        self["/gone"] = Page("not here", status=404)
        self["/docs/a"] = page("the same words in two places", *many)
        self["/copy"] = self["/docs/a"]
        self["/docs/deep/b"] = page("version one of a leaf", "/")
        self |= {name: page(f"leaf {name}") for name in many}


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


@pytest.fixture(scope="module")
def served(pages: Pages) -> Iterator[Served]:
    with Site(pages).serve() as made:
        yield made


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def crawl(api: Api, served: Served, pages: Pages) -> str:
    """A crawl with two runs; in the second one a page was modified."""
    crawl_id = api.crawled(served.url("/"), max_body=2 * PREVIEW_BYTES)
    pages["/docs/deep/b"] = page("version two of a leaf", "/")
    api.run_once(crawl_id, Task("recrawl"))
    return crawl_id


@pytest.fixture(scope="module")
def partial(api: Api, served: Served) -> str:
    """A crawl that was stopped by its budget, so that something waits."""
    return api.crawled(served.url("/docs/a"), budget=2, scope="host")


def get(api: Api, path: str, status: int = 200, **query: object) -> str:
    answer = api.request("GET", f"http://inchworm.test{path}", params=query or None)
    assert answer.status_code == status, answer.text[:3000]
    assert answer.headers["content-type"].startswith("text/html")
    assert EVIL not in answer.text
    return answer.text


def do(api: Api, path: str, fields: Mapping[str, str]) -> str:
    """Press a button, and read the page that follows."""
    answer = api.request("POST", f"http://inchworm.test{path}", content=urlencode(fields), headers=FORM)
    assert answer.status_code == 303, answer.text[:3000]
    return get(api, answer.headers["location"])


def stored(api: Api, crawl_id: str, url: str, status: int = 200, **query: object) -> httpx.Response:
    answer = api.request("GET", f"http://inchworm.test/crawls/{crawl_id}/body", params={"url": url, **query})
    assert answer.status_code == status, answer.text[:1000]
    assert {name: answer.headers[name] for name in STORED_HEADERS} == STORED_HEADERS
    return answer


def more(text: str) -> str:
    """Where the button for more of a list leads."""
    found = re.search(r'href="([^"]*)" rel="next"', text)
    assert found, "there is no more"
    return html.unescape(found[1])


# Lists


def test_every_url_is_listed_with_what_became_of_it(api: Api, crawl: str, served: Served) -> None:
    text = get(api, f"/crawls/{crawl}/pages")
    assert escape(EVIL) in text
    assert "leads to" in text and 'aria-current="page">Pages' in text
    rest = get(api, more(text))
    assert "From the beginning" in rest and len(re.findall("<tr>", text)) == 51


@pytest.mark.parametrize(
    ("outcome", "said", "not_said"),
    [
        ("failed", "/gone", "/evil.html"),
        ("redirect", "/old", "/gone"),
        ("duplicate", "/docs/a", "/evil.html"),
        ("refused", "it lies outside the crawl&#39;s scope", "/evil.html"),
        ("deleted", "Nothing fits", "/evil.html"),
        ("pending", "Nothing waits", "/evil.html"),
    ],
)
def test_a_list_of_what_came_to_one_thing(api: Api, crawl: str, outcome: str, said: str, not_said: str) -> None:
    text = get(api, f"/crawls/{crawl}/pages", outcome=outcome, run="", kind="", change="", reason="", q="")
    assert said in text and not_said not in text


def test_filters_by_kind_change_reason_run_and_part_of_the_url(api: Api, crawl: str) -> None:
    path = f"/crawls/{crawl}/pages"
    assert "/gone" in get(api, path, outcome="failed", kind="http_4xx")
    assert "Nothing fits" in get(api, path, outcome="failed", kind="dns")
    assert "deep/b" in get(api, path, change="modified")
    assert "Nothing fits" in get(api, path, change="modified", run="0")
    assert "away.test" in get(api, path, outcome="refused", reason="out_of_scope")
    found = get(api, path, q="DEEP")
    assert "deep/b" in found and "/gone" not in found
    assert f'value="{escape(EVIL)}"' in get(api, path, q=EVIL)


@pytest.mark.parametrize(
    "query",
    [{"outcome": "x"}, {"kind": EVIL}, {"change": "x"}, {"reason": "x"}, {"run": "99"}, {"run": "-1"}, {"cursor": "!"}],
)
def test_what_there_is_not_has_an_error_page(api: Api, crawl: str, query: dict[str, str]) -> None:
    answer = api.request("GET", f"http://inchworm.test/crawls/{crawl}/pages", params=query)
    assert answer.status_code in (400, 404, 422) and "<main" in answer.text and EVIL not in answer.text


@pytest.mark.parametrize("name", ["pages", "search?q=a", "page?url=http://a.test/", "tree"])
def test_a_crawl_that_is_not_there(api: Api, name: str) -> None:
    assert "There is no crawl" in get(api, f"/crawls/nothing/{name}", 404)


@pytest.mark.parametrize("name", ["pages", "search?q=a", "page?url=http://a.test/", "tree"])
def test_a_crawl_that_never_ran_says_so(api: Api, served: Served, name: str) -> None:
    crawl_id = api.make(served.url("/?never"))
    assert "has not started yet" in get(api, f"/crawls/{crawl_id}/{name}", 409)


def test_exports_are_linked(api: Api, crawl: str) -> None:
    links = re.findall(r'href="(/api/v1/crawl/[^"]*export[^"]*)"', get(api, f"/crawls/{crawl}/pages", run="0"))
    assert len(links) == len(FORMATS)
    answer = api.request("GET", f"http://inchworm.test{html.unescape(links[0])}")
    assert answer.status_code == 200 and "evil.html" in answer.text


# Actions


def test_a_failed_url_is_opened_again(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/?retry"), page_limit=3)
    path = f"/crawls/{crawl_id}/pages"
    listed = f"{path}?outcome=failed"
    text = do(api, f"{path}/retry", {"url": served.url("/gone"), "back": listed})
    assert "1 URL is open again" in text and "Resume the crawl" in text
    assert "Nothing that failed" in do(api, f"{path}/retry", {"url": served.url("/gone"), "back": listed})
    assert "/gone" in get(api, path, outcome="pending")


def test_what_waits_can_be_taken_out_and_what_was_refused_dismissed(api: Api, partial: str) -> None:
    path = f"/crawls/{partial}/pages"
    waiting = get(api, path, outcome="pending")
    entry = re.findall(r'name="entry" value="([^"]*)"', waiting)[0]
    assert "It is out of the queue" in do(api, f"{path}/take-out", {"entry": entry, "back": path})
    assert f'value="{entry}"' not in get(api, path, outcome="pending")
    assert "somebody took it out of the queue" in get(api, path, outcome="refused", reason="cleared")


def test_one_can_ask_about_a_url(api: Api, crawl: str, served: Served) -> None:
    text = get(api, f"/crawls/{crawl}/pages")
    assert f'action="/crawls/{crawl}/page"' in text and "Why is a page here, or not?" in text
    assert "no page it read links to it" in get(
        api, f"/crawls/{crawl}/page", status=404, url=served.url("/unheard"), run=""
    )


def test_the_queue_is_cleared_when_one_is_sure(api: Api, served: Served) -> None:
    crawl = api.crawled(served.url("/?clear"), budget=1)
    path = f"/crawls/{crawl}/pages"
    assert "Clear the queue…" in get(api, path, outcome="pending")
    assert "asked for once more" in do(api, f"{path}/clear", {"back": path})
    assert api.status(crawl)["pending"] > 0
    assert "will not be visited" in do(api, f"{path}/clear", {"back": path, "sure": "yes"})
    assert (api.status(crawl)["run_state"], api.status(crawl)["pending"]) == ("completed", 0)
    assert "Clear the queue…" not in get(api, path, outcome="pending")


def test_an_action_that_is_refused_is_said_on_the_page_one_came_from(api: Api, crawl: str, partial: str) -> None:
    path = f"/crawls/{crawl}/pages"
    back = f"{path}?outcome=refused"
    refused = get(api, path, outcome="refused")
    entry = re.findall(r'name="entry" value="([^"]*)"', refused)[0]
    assert "not pending" in do(api, f"{path}/take-out", {"entry": entry, "back": back})
    assert "is no link" in do(api, f"{path}/dismiss", {"entry": re.sub(r"_\d+$", "_1", entry), "back": back})
    assert "There is no entry" in do(api, f"{path}/take-out", {"entry": EVIL, "back": back})
    other = f"/crawls/{partial}/pages/dismiss"
    assert "another crawl" in do(api, other, {"entry": entry, "back": back})
    assert "history" in do(api, f"{path}/dismiss", {"entry": entry.replace("_1_", "_0_"), "back": back})
    assert "is dismissed" in do(api, f"{path}/dismiss", {"entry": entry, "back": back})


def test_a_url_is_added_by_hand(api: Api, partial: str, served: Served) -> None:
    path = f"/crawls/{partial}/pages"
    add = {"back": path}
    assert "It waits for its turn" in do(api, f"{path}/add", {"url": served.url("/by-hand"), **add})
    assert "known already" in do(api, f"{path}/add", {"url": served.url("/by-hand"), **add})
    assert "It is refused (out_of_scope)" in do(api, f"{path}/add", {"url": "http://b.test/", **add})
    assert "is not a web address" in do(api, f"{path}/add", {"url": EVIL, **add})
    assert "has visited" in do(api, f"{path}/add", {"url": served.url("/docs/a"), **add})
    assert "by-hand" in get(api, f"/crawls/{partial}/page", url=served.url("/by-hand"))


# Full text


def test_search_marks_what_was_looked_for(api: Api, crawl: str) -> None:
    text = get(api, f"/crawls/{crawl}/search", q="worms hostile", wait=1)
    assert "<mark>hostile</mark>" in text and "<mark>worms</mark>" in text and "1 page" in text
    assert "No page says that" in get(api, f"/crawls/{crawl}/search", q="nothingofthekind", wait=1)


def test_search_without_words_and_with_too_many(api: Api, crawl: str) -> None:
    assert "All words must occur" in get(api, f"/crawls/{crawl}/search")
    assert "There is no word to look for" in get(api, f"/crawls/{crawl}/search", q="-", wait=1)
    assert "more than 100 words" in get(api, f"/crawls/{crawl}/search", q="a " * 101, wait=1)


def test_search_in_an_index_that_is_being_made_says_how_far_it_is(
    api: Api, crawl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inchworm.store.follow.timed.INDEX_STEP", 20)
    monkeypatch.setattr(content, "_AT_ONCE_SECONDS", 0.0)
    (api.folder / "crawls" / crawl / "search.db").unlink(missing_ok=True)
    answer = api.request("GET", f"http://inchworm.test/crawls/{crawl}/search", params={"q": "leaf"})
    assert "pages can be searched so far" in answer.text and f'data-view="search:{crawl}:leaf"' in answer.text
    for _ in range(20):
        told = results(api.app, f"{crawl}:leaf")["results"]
    assert "so far" not in told and "leaf" in told
    assert "data-view" not in get(api, f"/crawls/{crawl}/search", q="leaf")


# One page


def test_one_page_with_its_history_links_and_text(api: Api, crawl: str, served: Served) -> None:
    text = get(api, f"/crawls/{crawl}/page", url=served.url("/docs/deep/b"))
    assert "version two of a leaf" in text and "modified" in text
    assert f"/crawls/{crawl}/diff?url=" in text and "baseline=0&amp;current=1" in text
    assert "Pages that link here" in text and "First found on" in text and "start of a garden" in text
    assert "<iframe" in text and ' sandbox src="' in text and "allow-" not in text
    before = get(api, f"/crawls/{crawl}/page", url=served.url("/docs/deep/b"), run="0")
    assert "version one of a leaf" in before


def test_a_hostile_page_is_text_and_nothing_else(api: Api, crawl: str, served: Served) -> None:
    text = get(api, f"/crawls/{crawl}/page", url=served.url("/evil.html"))
    assert "top.location" not in text and "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/gone", "the server answered 404"),
        ("/old", "it redirects to"),
        ("/copy", "other URL"),
        ("/file.bin", "that is not shown here"),
        ("/huge.txt", "too much to be shown"),
    ],
)
def test_pages_of_other_kinds(api: Api, crawl: str, served: Served, path: str, said: str) -> None:
    assert said in get(api, f"/crawls/{crawl}/page", url=served.url(path))


def test_a_failed_page_can_be_tried_again_in_the_last_run_only(api: Api, crawl: str, served: Served) -> None:
    assert "Try again" in get(api, f"/crawls/{crawl}/page", url=served.url("/gone"))
    assert "Try again" not in get(api, f"/crawls/{crawl}/page", url=served.url("/gone"), run="0")


def test_a_refused_url_has_a_page_that_says_why(api: Api, crawl: str) -> None:
    text = get(api, f"/crawls/{crawl}/page", url="https://away.test/x?<b>")
    assert "refused" in text and "It has not been read" in text and "<iframe" not in text


def test_a_url_that_is_not_known(api: Api, crawl: str, served: Served) -> None:
    assert "is not known to run" in get(api, f"/crawls/{crawl}/page", 404, url=served.url("/nowhere"))
    assert "is not a web address" in get(api, f"/crawls/{crawl}/page", 422, url=EVIL)
    get(api, f"/crawls/{crawl}/page", 422)


def test_who_links_to_a_page_is_looked_up_bit_by_bit(
    api: Api, crawl: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reads, "LINK_STEP", 1)
    monkeypatch.setattr(page_reads, "MOST_LINKS", 1)
    text = get(api, f"/crawls/{crawl}/page", url=served.url("/many/007.html"))
    assert "Look further" in text
    for _ in range(50):
        if "Look further" not in text:
            break
        text = get(api, more(text).partition("#")[0])
    assert "From the beginning" in text


# What is stored


def test_what_is_stored_never_comes_without_its_sandbox(api: Api, crawl: str, served: Served) -> None:
    answer = stored(api, crawl, served.url("/evil.html"))
    assert answer.text == HOSTILE and answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    source = stored(api, crawl, served.url("/evil.html"), show="source")
    assert source.text == HOSTILE and source.headers["content-type"] == "text/plain; charset=utf-8"
    download = stored(api, crawl, served.url("/evil.html"), show="download")
    assert download.headers["content-disposition"] == 'attachment; filename="evil.html"'


def test_each_kind_of_file_is_what_it_can_safely_be(api: Api, crawl: str, served: Served) -> None:
    def kind(path: str) -> str:
        return stored(api, crawl, served.url(path)).headers["content-type"]

    assert kind("/pic.svg") == "image/svg+xml"
    assert kind("/data.json") == "text/plain; charset=utf-8"
    assert stored(api, crawl, served.url("/data.json")).text == '{"a": "<b>é</b>"}'
    assert kind("/west.html") == "text/html; charset=iso-8859-1"
    assert kind("/file.bin") == "application/octet-stream"
    assert "attachment" in stored(api, crawl, served.url("/file.bin")).headers["content-disposition"]


def test_what_is_too_large_is_only_downloaded(api: Api, crawl: str, served: Served) -> None:
    assert "Download it instead" in stored(api, crawl, served.url("/huge.txt"), 413).text
    assert len(stored(api, crawl, served.url("/huge.txt"), show="download").content) == PREVIEW_BYTES + 1


def test_what_is_not_stored_is_said_in_plain_text(api: Api, crawl: str, served: Served) -> None:
    for url, run in (
        (served.url("/nowhere"), ""),
        ("https://away.test/x?<b>", ""),
        (served.url("/"), "99"),
        (served.url("/"), EVIL),
    ):
        answer = stored(api, crawl, url, 404, run=run)
        assert answer.headers["content-type"].startswith("text/plain")
    stored(api, "nothing", served.url("/"), 404)


def test_a_body_that_the_archive_has_lost(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/?lost"), page_limit=1)
    for file in (api.folder / "crawls" / crawl_id / "archive").iterdir():
        file.unlink()
    assert "has nothing" in stored(api, crawl_id, served.url("/?lost"), 404).text
    assert "In run 0" in get(api, f"/crawls/{crawl_id}/page", url=served.url("/?lost"))


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", "html"),
        ("TEXT/HTML; charset=utf-8", "html"),
        ("application/xhtml+xml", "html"),
        ("text/javascript", "text"),
        ("application/json", "text"),
        ("image/png", "image"),
        ("image/svg+xml", "image"),
        ("image/unknown", ""),
        ("application/pdf", ""),
        ("multipart/x-mixed-replace", ""),
        ("", ""),
    ],
)
def test_how_types_are_shown(content_type: str, kind: str) -> None:
    assert kind_of(content_type) == kind


def test_the_gate_gives_stored_bodies_a_sandbox_and_nothing_else_a_frame(tmp_path: Path) -> None:
    """Even for an application that forgets it, and for errors."""
    with closing(Home(tmp_path)) as home, closing(Verbs(tmp_path, Settings(), lambda: None)) as verbs:
        keys = Keys(SECRET, Access(home))
        transport = httpx.ASGITransport(Gate(build.api(verbs, keys), keys), raise_app_exceptions=False)

        async def ask(path: str) -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
                return await browser.get(path, headers=bearer())

        for path in ("/crawls/x/body?url=http://a.test/", "/crawls/x/body", "/crawls/x%2F/body"):
            answer = asyncio.run(ask(path))
            is_frame = "%2F" not in path
            assert answer.headers["x-frame-options"] == ("SAMEORIGIN" if is_frame else "DENY"), path
            assert answer.headers["content-security-policy"].startswith("sandbox;") is is_frame
            assert answer.headers["x-content-type-options"] == "nosniff"
        for path in ("/", "/crawls/x/pages", "/crawls/body", "/crawls/x/body/y", "/api/v1/crawl/x/body"):
            assert asyncio.run(ask(path)).headers["x-frame-options"] == "DENY"


# The tree


def test_the_tree_goes_down_level_by_level(api: Api, crawl: str, served: Served) -> None:
    path = f"/crawls/{crawl}/tree"
    top = get(api, path)
    assert "All hosts" in top and served.url("/") in top and "https://away.test/" in top
    root = get(api, path, at=served.url("/"))
    assert "docs/" in root and "many/" in root and "evil.html" in root
    assert html.escape(served.url("/docs/"), quote=False) in html.unescape(get(api, path, at=served.url("/docs/")))
    assert "deep/" in get(api, path, at=served.url("/docs/"))
    assert "Nothing is here" in get(api, path, at="https://nowhere.test/")


def test_a_long_level_of_the_tree_goes_on_by_cursor(api: Api, crawl: str, served: Served) -> None:
    text = get(api, f"/crawls/{crawl}/tree", at=served.url("/many/"))
    rest = get(api, more(text))
    names = re.findall(r">(\d{3}\.html)</a>", text + rest)
    assert len(names) == 120 == len(set(names)) and len(re.findall(r">\d{3}\.html<", text)) == 100
    assert "From the beginning" in rest


def test_the_tree_of_an_earlier_run(api: Api, crawl: str) -> None:
    assert "Changed in run 0" in get(api, f"/crawls/{crawl}/tree", run="0")
    assert "has no run 7" in get(api, f"/crawls/{crawl}/tree", 404, run="7")


@pytest.mark.parametrize("at", [EVIL, "docs", "javascript:alert(1)/", "http://a.test"])
def test_a_place_that_is_no_folder(api: Api, crawl: str, at: str) -> None:
    assert "is no folder of a site" in get(api, f"/crawls/{crawl}/tree", 404, at=at)


def test_a_tree_that_is_being_counted_says_how_far_it_is(api: Api, crawl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_tree, "_SHELF", site_tree._Shelf())
    monkeypatch.setattr(site_tree, "TREE_SECONDS", 0.0)
    answer = api.request("GET", f"http://inchworm.test/crawls/{crawl}/tree")
    assert "0 of" in answer.text and answer.headers["refresh"] == "0"
    monkeypatch.setattr(site_tree, "TREE_SECONDS", 60.0)
    assert "All that lies here" in get(api, f"/crawls/{crawl}/tree")


def test_the_tree_follows_what_is_done_to_a_run(api: Api, partial: str, served: Served) -> None:
    at = served.url("/")
    before = get(api, f"/crawls/{partial}/tree", at=at)
    assert "late.html" not in before
    do(api, f"/crawls/{partial}/pages/add", {"url": served.url("/late.html")})
    assert "late.html" in get(api, f"/crawls/{partial}/tree", at=at)


def test_the_way_up_from_a_folder() -> None:
    assert crumbs("") == []
    assert crumbs("https://a.test:8/") == [("https://a.test:8/", "a.test:8")]
    assert crumbs("http://a.test/x//y/")[1:] == [
        ("http://a.test/x/", "x"),
        ("http://a.test/x//", ""),
        ("http://a.test/x//y/", "y"),
    ]
