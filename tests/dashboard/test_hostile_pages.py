"""A site whose every title, address, link, header and error is an attack: all of it is shown as text, and fits."""

from __future__ import annotations

import html
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.browser import Visitor, is_too_wide, routes, visiting
from tests.dashboard.filled import Filled, asked_of, filled

from inchworm.service.dashboard.frame import PageRoute
from inchworm.testing import Page as Answer
from inchworm.testing import Site, redirect

ATTACKS = {
    "script": "<script>hit()</script>",
    "closing": "</title></textarea></pre></svg><script>hit()</script>",
    "image": '"><img src=x onerror=hit()>',
    "quotes": "' onmouseover='hit()' x=\"",
    "template": "x{{7*7}}x${7*7}x{% raw %}",
    "link": "javascript:hit()",
    "data": "data:text/html,<script>hit()</script>",
    "backwards": "\u202egnp.exe\u202c \u2066hidden\u2069",
    "pictures": "🐛🪱👩‍👩‍👧‍👦 e\u0301\u0301\u0301\u0301\u0301",
    "control": "a\x01b\x07c\x1b[31md\x7f",
    "long": "W" * 10_000,
    "comment": "<!-- --><style>body{display:none}</style>",
}
NEVER = (
    "script:not([src^='/static/']), style, object, embed, base, img:not([src^='/static/']), meta[http-equiv],"
    " iframe:not([sandbox='']), iframe:not([src^='/crawls/'])"
)
"""What is on none of our pages."""
HANDLERS = """() => [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames())
    .filter((name) => name.startsWith("on"))"""
ALIVE = (
    "<script>hit(); top.location = 'http://127.0.0.1:9/'; parent.document.title = 'theirs'</script>"
    "<img src=x onerror=hit()><svg onload=hit()></svg><iframe srcdoc='<script>hit()</script>'></iframe>"
    "<meta http-equiv=refresh content='0;url=javascript:hit()'><form action=/logout method=post></form>"
)
"""What runs where a page is shown as its site has made it."""
EXPECTED = ("/body?", "about:srcdoc", "Failed to load resource")
"""What a browser says of a page that is shown as it is stored, and of one that is not there."""
PHONE = 390


def page_of(title: str, links: str) -> str:
    said = html.escape(title)
    head = f"<!doctype html><title>{said}</title><h1>{said}</h1>"
    return f"{head}<p>All that one page has seen of it: {said}.</p>{links}{ALIVE}"


def hostile_site() -> dict[str, str | Answer]:
    anchors = "".join(f'<a href="{html.escape(path_of(text))}">{html.escape(text)}</a>' for text in ATTACKS.values())
    bad = "".join(f'<a href="{html.escape(text)}">{html.escape(text)}</a>' for text in ATTACKS.values())
    others = "".join(f'<a href="/{name}">{name}</a>' for name in ("raw", "phrase", "away", "type", "broken", "gone"))
    site: dict[str, str | Answer] = {"/": page_of(ATTACKS["script"], anchors + bad + others)}
    for name, text in ATTACKS.items():
        headers = {"X-Said": "<script>hit()</script>", "ETag": f'"<script>hit()</script>{name}"'}
        site[path_of(text)] = Answer(page_of(text, anchors), headers=headers)
    return site | {
        "/raw": Answer(raw=b"<script>hit()</script>\r\n\r\n"),
        "/phrase": Answer(raw=b"HTTP/1.1 500 <script>hit()</script>\r\nContent-Length: 0\r\n\r\n"),
        "/away": redirect("javascript:hit()//<script>"),
        "/type": Answer("x", headers={"Content-Type": 'text/html; charset="<script>hit()</script>"'}),
        "/broken": Answer("<script>hit()</script>", 503),
    }


def path_of(text: str) -> str:
    """An address that bears an attack; as long as servers take them."""
    return f"/{quote(text[:1500], safe='')}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    pages = hostile_site()
    edited = path_of(ATTACKS["image"])

    def change() -> None:
        pages[edited] = page_of(ATTACKS["image"], f"<p>{html.escape(ATTACKS['closing'])} is new here.</p>")
        pages["/gone"] = page_of(ATTACKS["template"], "")
        del pages[path_of(ATTACKS["template"])]

    folder = tmp_path_factory.mktemp("hostile")
    with Site(pages).serve() as web, filled(folder / "home", web.url(), web.url(edited), change) as made:
        body = {"name": ATTACKS["image"]}
        made.service.client.patch(f"/api/v1/crawl/{made.names['crawl_id']}", json=body).raise_for_status()
        yield made


@pytest.fixture(scope="module")
def visitor(browser: Browser, hostile: Filled) -> Iterator[Visitor]:
    with visiting(browser, hostile.service, PHONE) as one:
        one.context.expose_function("hit", lambda: one.trouble.append("a script of theirs ran"))
        yield one


def check(page: Page, visitor: Visitor) -> None:
    """All that could be wrong with a page that shows such things."""
    assert page.title().endswith("· inchworm"), page.title()
    assert "x49x" not in page.content()
    assert [one.evaluate("(one) => one.outerHTML") for one in page.locator(NEVER).all()] == []
    links = page.evaluate("[...document.querySelectorAll('a, area')].map((one) => one.protocol)")
    assert set(links) <= {"http:", "https:"}
    assert page.evaluate(HANDLERS) == []
    assert is_too_wide(page) == ""
    assert [one for one in visitor.trouble if not any(word in one for word in EXPECTED)] == []


@pytest.mark.parametrize("route", routes("GET"), ids=lambda route: route.path)
def test_page(visitor: Visitor, hostile: Filled, route: PageRoute) -> None:
    visitor.trouble.clear()
    for path in hostile.paths(route):
        page = visitor.show(path)
        page.wait_for_timeout(50)
        check(page, visitor)


@pytest.mark.parametrize(
    "route", [one for one in routes("GET") if one.dependant.query_params], ids=lambda one: one.path
)
def test_questions(visitor: Visitor, hostile: Filled, route: PageRoute) -> None:
    """What comes back of what somebody was made to ask."""
    names = [one.alias for one in asked_of(route)]
    start = hostile.paths(route)[0].partition("?")[0]
    asked = {attack: "&".join(f"{name}={quote(text)}" for name in names) for attack, text in ATTACKS.items()}
    for attack in ("control", "backwards", "pictures", "script"):
        assert visitor.context.request.get(f"{start}?{asked[attack]}").status < 500, attack
    page = visitor.context.new_page()
    for attack in ("image", "template"):
        answer = page.goto(f"{start}?{asked[attack]}")
        assert answer and answer.status < 500, (attack, page.inner_text("main"))
        check(page, visitor)
    page.close()


def test_each_page_of_theirs(visitor: Visitor, hostile: Filled) -> None:
    """What is known of every such page."""
    visitor.trouble.clear()
    for attack in ATTACKS:
        page = visitor.show(f"/crawls/{hostile.names['crawl_id']}/page?url={address(hostile, attack)}")
        expect(page.get_by_role("navigation", name="Pages about this crawl")).to_be_visible()
        check(page, visitor)


def address(hostile: Filled, attack: str) -> str:
    return quote(hostile.names["url"].partition("/%")[0] + path_of(ATTACKS[attack]), safe="")


@pytest.mark.parametrize("show", ["", "source"])
@pytest.mark.parametrize("attack", ["script", "image"])
def test_what_is_stored(visitor: Visitor, hostile: Filled, attack: str, show: str) -> None:
    """Their page as it is, alone in a tab: nothing of it runs, and it is nobody's page."""
    visitor.trouble.clear()
    page = visitor.open(f"/crawls/{hostile.names['crawl_id']}/body?url={address(hostile, attack)}&show={show}")
    page.wait_for_timeout(100)
    assert page.url.startswith(f"{hostile.service.url}/crawls/")
    assert page.evaluate("origin") == "null"
    assert [one for one in visitor.trouble if "theirs" in one or "dialog" in one] == []
    page.close()
