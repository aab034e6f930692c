"""When something does not go: a message and a way on; and nothing that another site could make a browser do."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.dashboard.browser import Visitor, login_of, routes, visiting
from tests.dashboard.filled import Filled

from inchworm.service.dashboard.frame import PageRoute

FOREIGN = "https://elsewhere.example"


@pytest.fixture(scope="module")
def visitor(browser: Browser, shown: Filled) -> Iterator[Visitor]:
    with visiting(browser, shown.service) as one:
        yield one


@pytest.fixture(scope="module")
def client(browser: Browser, shown: Filled) -> Iterator[httpx.Client]:
    """Who has the cookie of somebody who is logged in."""
    cookies = {one["name"]: one["value"] for one in login_of(browser, shown.service)["cookies"]}
    with httpx.Client(base_url=shown.service.url, cookies=cookies, timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def stranger(shown: Filled) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shown.service.url, timeout=60) as made:
        yield made


def key_of(client: httpx.Client) -> str:
    found = re.search(r'name="key" value="(\w+)"', client.get("/").text)
    assert found
    return found[1]


# A way on


def test_a_button_that_is_out_of_date_says_so(visitor: Visitor, shown: Filled) -> None:
    """The run has ended meanwhile; the page does not know yet."""
    crawl = f"/crawls/{shown.names['crawl_id']}"
    page = visitor.open(crawl)
    page.evaluate(
        """(action) => {
          const button = document.createElement("button");
          button.setAttribute("form", "act");
          button.setAttribute("formaction", action);
          button.textContent = "Pause, from before";
          document.querySelector("main").append(button);
        }""",
        f"{crawl}/pause",
    )
    page.get_by_role("button", name="Pause, from before").click()
    expect(page.get_by_role("alert")).to_contain_text(re.compile("nothing|not running|no run|complete", re.IGNORECASE))
    expect(page).to_have_url(re.compile(f"{crawl}$"))
    page.reload()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


@pytest.mark.parametrize("path", ["/crawls/nothing", "/jobs/nothing", "/executions/999999", "/nowhere"])
def test_what_is_not_there(visitor: Visitor, path: str) -> None:
    page = visitor.context.new_page()
    answer = page.goto(path)
    assert answer and answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.get_by_role("main").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.close()


def test_a_wrong_address_keeps_what_was_typed(visitor: Visitor) -> None:
    page = visitor.open("/")
    page.get_by_label("Address of the site").fill("ftp://example.com/")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert (
        page.get_by_role("textbox", name=re.compile("address", re.IGNORECASE)).first.input_value()
        == "ftp://example.com/"
    )
    page.close()


# What others cannot make a browser do


@pytest.mark.parametrize("route", routes("POST"), ids=lambda route: route.path)
def test_a_form_without_the_key(client: httpx.Client, shown: Filled, route: PageRoute) -> None:
    before, key, path = books(client), key_of(client), shown.paths(route)[0]
    own = {"Origin": shown.service.url}
    for one in shown.paths(route):
        for body in ({}, {"key": ""}, {"key": "0" * 64}, {"back": "/crawls"}):
            assert_refused(client.post(one, data=body, headers=own))
    for headers in ({"Origin": FOREIGN}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}, {}):
        assert client.post(path, data={"key": key}, headers=headers).status_code == 403
    assert books(client) == before


def assert_refused(answer: httpx.Response) -> None:
    """As a page, or on the page that the form names."""
    if answer.status_code == 303:
        assert answer.headers["location"] == "/crawls"
        assert "inchworm_said" in answer.headers["set-cookie"]
    else:
        assert answer.status_code == 403 and "out of date" in answer.text, answer.text


def test_nobody_else_puts_words_into_our_mouth(client: httpx.Client, shown: Filled) -> None:
    """Whatever listens on another port of this host can set cookies for it."""
    said = json.dumps(["Your session is over.", "Log in at evil.test.", True])
    forged = base64.urlsafe_b64encode(said.encode()).decode()
    for value in (forged, f"{forged}.", f"{forged}.{'0' * 64}"):
        assert "evil.test" not in client.get("/", headers={"Cookie": _with(client, value)}).text
    answer = client.post("/jobs", data={"back": "/crawls"}, headers={"Origin": shown.service.url})
    ours = answer.cookies["inchworm_said"]
    assert "out of date" in client.get("/", headers={"Cookie": _with(client, ours)}).text
    assert "out of date" not in client.get("/", headers={"Cookie": _with(client, ours[:-1] + "x")}).text


def _with(client: httpx.Client, said: str) -> str:
    return f"inchworm={client.cookies['inchworm']}; inchworm_said={said}"


def books(client: httpx.Client) -> object:
    """What there is, as far as a form could change it."""
    crawls = client.get("/api/v1/crawls").json()["items"]
    jobs = client.get("/api/v1/jobs").json()["items"]
    told = ("id", "status", "is_paused", "interval_minutes", "max_retries")
    return crawls, [{name: one[name] for name in told} for one in jobs if one["status"] not in ("running", "pending")]


@pytest.mark.parametrize(
    "back",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example/",
        "\\\\elsewhere.example",
        "/\t/elsewhere.example/",
        "javascript:alert(1)",
        "%2f%2felsewhere.example",
    ],
)
def test_back_leads_nowhere_else(client: httpx.Client, shown: Filled, back: str) -> None:
    path = f"/crawls/{shown.names['crawl_id']}/pause"
    body = {"key": key_of(client), "back": back}
    answer = client.post(path, data=body, headers={"Origin": shown.service.url})
    where = httpx.URL(shown.service.url).join(answer.headers.get("location", "/"))
    assert where.host == "127.0.0.1" and where.scheme == "http"


@pytest.mark.parametrize("route", routes("GET"), ids=lambda route: route.path)
def test_looking_changes_nothing(client: httpx.Client, shown: Filled, route: PageRoute) -> None:
    before = books(client)
    for path in shown.paths(route):
        assert client.get(path).status_code == 200
        assert client.head(path).status_code in (200, 405)
    assert books(client) == before


@pytest.mark.parametrize("route", routes("GET"), ids=lambda route: route.path)
def test_nobody_sees_it_who_is_not_logged_in(stranger: httpx.Client, shown: Filled, route: PageRoute) -> None:
    path = shown.paths(route)[0]
    answer = stranger.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 303 and answer.headers["location"].startswith("/login?next=")
    assert stranger.get(path, headers={"Accept": "*/*"}).status_code == 401
