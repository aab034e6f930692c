"""Open pages stay true by themselves: numbers grow, a service that is gone is missed, and comes back; in many tabs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.dashboard.browser import Visitor, heap, link_for, login_of, visiting
from tests.service.running import QUICK, Service, serving, wait_for

from inchworm.app.root import App
from inchworm.store.home.logs import LogLine
from inchworm.testing import Served, Site, linked_site

TABS = 10
LINES = int(os.environ.get("INCHWORM_LOG_LINES", "4000"))
MOST_NODES = 12_000
SLOWLY = {"delay": 0.1, "workers": 1}


class Live:
    """A crawl that goes on all the time, and its service."""

    def __init__(self, service: Service, web: Served) -> None:
        self.service = service
        self.web = web
        job = service.post("/api/v1/jobs", {"url": web.url(), "settings": SLOWLY}, 201)
        look = lambda: service.get(f"/api/v1/jobs/{job['id']}/executions")["items"]  # noqa: E731
        self.execution_id: int = wait_for(look, "an execution")[0]["id"]
        self.path = f"/crawls/{job['crawl_id']}"
        wait_for(lambda: service.get(f"/api/v1/crawl/{job['crawl_id']}")["pages"], "a page")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    home = tmp_path_factory.mktemp("live") / "home"
    with Site(linked_site(3000, fan=60)).serve() as web, serving(home) as service:
        yield Live(service, web)


@pytest.fixture
def visitor(browser: Browser, live: Live) -> Iterator[Visitor]:
    with visiting(browser, live.service) as one:
        yield one


def figure(page: Page, name: str) -> int:
    """The number that stands under a name."""
    named = page.get_by_role("term").filter(has_text=re.compile(f"^{name}$")).first
    return int(named.locator("xpath=following-sibling::*[1]").inner_text().replace(",", ""))


def grows(page: Page) -> None:
    before = figure(page, "Pages")
    wait_for(lambda: pause(page) or figure(page, "Pages") > before, "more pages")


def pause(page: Page) -> None:
    """Playwright hears of what happens in the browser only while it is asked to wait."""
    page.wait_for_timeout(20)


def banner(page: Page, text: str) -> Locator:
    return page.get_by_role("status").filter(has_text=text)


def test_numbers_grow_and_nothing_is_lost(visitor: Visitor, live: Live) -> None:
    """Neither the page, nor the focus, nor a question that is open."""
    page = visitor.open(live.path)
    page.evaluate("window.stayed = true")
    page.get_by_text("Cancel the run…").click()
    page.get_by_role("button", name="Make a checkpoint").focus()
    grows(page)
    grows(page)
    assert page.evaluate("window.stayed")
    expect(page.get_by_role("button", name="Make a checkpoint")).to_be_focused()
    expect(page.get_by_text("The run ends here")).to_be_visible()
    link = page.get_by_role("link", name=re.compile("^Run 0$")).first
    link.focus()
    grows(page)
    expect(link).to_be_focused()
    assert visitor.trouble == []


def test_a_button_that_is_held_gets_the_news_when_it_is_let_go(visitor: Visitor, live: Live) -> None:
    page = visitor.open(live.path)
    page.get_by_role("button", name="Make a checkpoint").hover()
    page.mouse.down()
    before = figure(page, "Pages")
    page.wait_for_timeout(1500)
    assert figure(page, "Pages") == before
    page.mouse.move(0, 0)
    page.mouse.up()
    wait_for(lambda: pause(page) or figure(page, "Pages") > before, "more pages")


def test_ten_tabs(visitor: Visitor, live: Live) -> None:
    """Browsers open six connections to one service, and a stream would hold one for each tab."""
    tabs = [visitor.open(path) for path in ("/", live.path) for _ in range(TABS // 2)]
    for tab in tabs[TABS // 2 :]:
        grows(tab)
    shown = [tab.get_by_text(re.compile(r"[\d,]+ pages · [\d,]+ pending")) for tab in tabs[: TABS // 2]]
    before = [one.inner_text() for one in shown]
    for tab, one, text in zip(tabs, shown, before, strict=False):
        wait_for(lambda tab=tab, one=one, text=text: pause(tab) or one.inner_text() != text, "news")
    answer = tabs[-1].goto("/crawls")
    assert answer and answer.ok, "an ordinary request gets through"
    assert visitor.trouble == []


def test_a_long_log(visitor: Visitor, live: Live) -> None:
    """Whatever comes, the page holds a screenful or some; the end of it is in sight."""
    page = visitor.open(f"/executions/{live.execution_id}")
    first, half = 1_000_000, LINES // 2
    _write_lines(live, range(first, first + half))
    expect(page.get_by_text(f"This is line {first + half - 1}.")).to_be_in_viewport()
    before = heap(page)
    _write_lines(live, range(first + half, first + LINES))
    expect(page.get_by_text(f"This is line {first + LINES - 1}.")).to_be_in_viewport()
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    assert heap(page) < before + 1_000_000, "memory is flat, too"
    assert visitor.trouble == []


def _write_lines(live: Live, numbers: range) -> None:
    app = App(live.service.home)
    try:
        execution, now_ms = app.executions.store.get(live.execution_id), time.time_ns() // 1_000_000
        for start in range(0, len(numbers), 5000):
            lines = [LogLine(one, now_ms, "info", f"This is line {one}.") for one in numbers[start : start + 5000]]
            app.executions.logs.add(live.execution_id, execution.token, lines)
    finally:
        app.close()


def test_a_crawl_that_is_deleted_meanwhile(visitor: Visitor, live: Live) -> None:
    with Site(linked_site(3)).serve() as web:
        crawl_id = live.service.once(web.url())["crawl_id"]
        page = visitor.open(f"/crawls/{crawl_id}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        app = App(live.service.home)
        wait_for(lambda: not app.workspace.is_running(app.workspace.find(crawl_id)), "the session to end")
        app.configure.delete(crawl_id)
        app.close()
    expect(banner(page, "has been deleted")).to_be_visible()
    page.get_by_role("link", name="All crawls").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Crawls")


def test_without_any_script(browser: Browser, live: Live) -> None:
    """Links and forms are enough."""
    state = login_of(browser, live.service)
    context = browser.new_context(base_url=live.service.url, java_script_enabled=False, storage_state=state)
    try:
        page = context.new_page()
        page.goto("/")
        page.get_by_role("link", name=re.compile(r"^127\.0\.0\.1")).first.click()
        page.get_by_role("button", name="Make a checkpoint").click()
        expect(page.get_by_role("status").filter(has_text=re.compile(r"Checkpoint \d+ is made"))).to_be_visible()
        page.goto("/")
        with Site(linked_site(3)).serve() as web:
            page.get_by_label("Address of the site").fill(web.url())
            page.get_by_role("button", name="Start", exact=True).click()
            expect(page).to_have_url(re.compile("/crawls/"))
    finally:
        context.close()


def test_logged_out_in_another_tab(browser: Browser, live: Live) -> None:
    """With a login of its own: it ends here."""
    visitor = Visitor(browser, live.service.url)
    try:
        page = visitor.open(link_for(live.service))
        other = visitor.open("/crawls")
        other.get_by_role("button", name="Log out").click()
        expect(banner(page, "Your login has ended.")).to_be_visible()
        page.get_by_role("link", name="Log in again").click()
        expect(page).to_have_url(re.compile(r"/login\?next=%2F$"))
    finally:
        visitor.close()


def test_logged_out_elsewhere(browser: Browser, live: Live) -> None:
    """The stream ends with the login, also where nothing else asks for anything."""
    visitor = Visitor(browser, live.service.url)
    try:
        page, other = visitor.open(link_for(live.service)), visitor.open("/")
        other.get_by_role("button", name="Log out").click()
        expect(banner(page, "Your login has ended.")).to_be_visible()
    finally:
        visitor.close()


def test_a_page_is_not_set_back(visitor: Visitor, live: Live) -> None:
    """What it showed at first is younger than what the service knew when it looked the last time."""
    seen = """() => { window.seen = []; setInterval(() => window.seen.push(
        document.querySelector("#standing h2 a")?.textContent), 20); }"""
    with Site(linked_site(4)).serve() as web:
        crawl_id = live.service.once(web.url())["crawl_id"]
        page = visitor.open(f"/crawls/{crawl_id}")
        for number in (1, 2):
            page.get_by_role("button", name="Crawl again now").click()
            expect(page.get_by_role("status").filter(has_text=f"Run {number} has begun.")).to_be_visible()
            page.evaluate(seen)
            page.wait_for_timeout(1500)
            assert set(page.evaluate("window.seen")) == {f"Run {number}"}
            expect(page.get_by_role("row").filter(has_text=f"Run {number}")).to_contain_text("completed")


def test_the_service_is_killed_and_comes_back(visitor: Visitor, live: Live, tmp_path: Path) -> None:
    """The last test here, since it is another service afterwards."""
    page = visitor.open(live.path)
    grows(page)
    port = live.service.url.rpartition(":")[2]
    live.service.kill()
    expect(banner(page, "The service does not answer.")).to_be_visible()
    before = figure(page, "Pages")
    back = Service(live.service.home, *QUICK, "--port", port)
    try:
        expect(banner(page, "The service does not answer.")).to_be_hidden()
        wait_for(lambda: pause(page) or figure(page, "Pages") > before, "more pages")
    finally:
        back.stop()
