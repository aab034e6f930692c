"""Every page on a desk, a tablet and a phone, by day and by night: nothing sticks out, nothing goes wrong.

With INCHWORM_ARTEFACTS all of them are kept as pictures, otherwise two of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.dashboard.browser import WIDTHS, Visitor, is_too_wide, picture, routes, visiting
from tests.dashboard.filled import Filled

from inchworm.service.dashboard.frame import PageRoute

HEIGHT = 900
KEEPS_ALL = "INCHWORM_ARTEFACTS" in os.environ


@pytest.fixture(scope="module")
def visitor(browser: Browser, shown: Filled) -> Iterator[Visitor]:
    with visiting(browser, shown.service) as one:
        yield one


@pytest.mark.parametrize("route", routes("GET"), ids=lambda route: route.path)
def test_page(visitor: Visitor, shown: Filled, route: PageRoute) -> None:
    visitor.trouble.clear()
    for path in shown.paths(route):
        look(visitor, path, path.partition("?")[0].replace(shown.names["crawl_id"], "crawl"))
    assert visitor.trouble == []


@pytest.mark.parametrize(("path", "name"), [("/login", "login"), ("/crawls/nothing", "unknown crawl")])
def test_page_beside_them(visitor: Visitor, path: str, name: str) -> None:
    look(visitor, path, name)


def look(visitor: Visitor, path: str, name: str) -> None:
    page = visitor.show(path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            assert is_too_wide(page) == "", f"at {width} px"
            if KEEPS_ALL or (width, scheme) in ((1440, "light"), (390, "dark")):
                picture(page, f"{name} {width} {scheme}")
    check_night(page)


def check_night(page: Page) -> None:
    """What is dark is really dark: a page that forgets it has black on white, or white on white."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(part) for part in colour.strip("rgba()").split(",")[:3]) < 150, colour
