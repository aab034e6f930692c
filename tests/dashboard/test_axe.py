"""Every page, with real data on it, is one that people can use who cannot see it, or not well, or have no mouse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.dashboard.browser import AXE, Visitor, routes, visiting
from tests.dashboard.filled import Filled

from inchworm.service.dashboard.frame import PageRoute

GRAVE = ("serious", "critical")
SOME = """() => { for (const one of document.querySelectorAll("main *"))
    while (one.children.length > 20) one.lastElementChild.remove(); }"""
"""Of a hundred rows that are alike some are enough."""


@pytest.fixture(scope="module")
def visitor(browser: Browser, shown: Filled) -> Iterator[Visitor]:
    with visiting(browser, shown.service) as one:
        yield one


@pytest.mark.parametrize("route", routes("GET"), ids=lambda route: route.path)
def test_page(visitor: Visitor, shown: Filled, route: PageRoute) -> None:
    for path in shown.paths(route):
        page = visitor.show("/login")
        answer = page.goto(path)
        assert answer and answer.status == 200, page.inner_text("main")
        check(page)


@pytest.mark.parametrize("path", ["/login", "/crawls/nothing", "/nowhere"])
def test_page_beside_them(visitor: Visitor, path: str) -> None:
    page = visitor.open(path)
    check(page)
    page.close()


def check(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.evaluate(SOME)
    page.evaluate(AXE.read_text())
    assert problems(page, {}) == []
    page.emulate_media(color_scheme="dark")
    # Nothing but colours depends on it.
    assert problems(page, {"runOnly": ["color-contrast", "link-in-text-block"]}) == []


def problems(page: Page, options: dict[str, Any]) -> list[str]:
    """What is wrong, and with what."""
    found = page.evaluate("(options) => axe.run(document, {...options, resultTypes: ['violations']})", options)
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}: {node['failureSummary'][:300]}"
        for one in found["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]
