"""A real Chromium before a real service: contexts of several widths, logged in; pictures of what they showed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, FloatRect, Page, expect, sync_playwright
from tests.service.running import Service

from inchworm.app.root import App
from inchworm.service import build
from inchworm.service.access import auth
from inchworm.service.dashboard.frame import PageRoute

CHROMIUM = "/usr/bin/chromium"
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (1440, 768, 390)
PATIENCE_MS = 20_000
_HEIGHT = 900
_MOST_HEIGHT = 2400
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """One browser. While it is open this thread can run no event loop of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody with a browser of this width who is logged in; notes what goes wrong in it."""

    def __init__(self, browser: Browser, url: str, state: Any = None, width: int = 1440, dark: bool = False) -> None:
        self.url = url
        self.context: BrowserContext = browser.new_context(
            base_url=url,
            viewport={"width": width, "height": _HEIGHT},
            color_scheme="dark" if dark else "light",
            storage_state=state,
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.trouble: list[str] = []
        self._tab: Page | None = None

    def show(self, path: str) -> Page:
        """A page in the tab that is open already: a new one costs a process."""
        if self._tab is None:
            self._tab = self.open(path)
        else:
            self._tab.goto(path)
        return self._tab

    def open(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def close(self) -> None:
        self.context.close()


@contextmanager
def visiting(browser: Browser, service: Service, width: int = 1440, dark: bool = False) -> Iterator[Visitor]:
    visitor = Visitor(browser, service.url, login_of(browser, service), width, dark)
    try:
        yield visitor
    finally:
        visitor.close()


_LOGINS: dict[str, Any] = {}


def login_of(browser: Browser, service: Service) -> Any:
    """The cookies of somebody who opened the link that this service printed. It is good once, so they are kept."""
    if service.url not in _LOGINS:
        visitor = Visitor(browser, service.url)
        try:
            visitor.open(f"/login?code={service.code}").get_by_role("heading", name="Overview").wait_for()
            _LOGINS[service.url] = visitor.context.storage_state()
        finally:
            visitor.close()
    return _LOGINS[service.url]


def link_for(service: Service) -> str:
    """Another way in, good once."""
    app = App(service.home)
    try:
        code, digest = auth.login_code()
        app.admission.invite(digest, 60)
    finally:
        app.close()
    return f"/login?code={code}"


# What is seen


def heap(page: Page) -> int:
    """How many bytes the scripts of a page hold, when what nobody needs is gone."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    used: int = devtools.send("Runtime.getHeapUsage")["usedSize"]
    devtools.detach()
    return used


def is_too_wide(page: Page) -> str:
    """What sticks out of the screen on the right, if anything."""
    found: str = page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= wide) return "";
          const sticks = (one) => one.getBoundingClientRect().right > wide + 1;
          const out = [...document.querySelectorAll("body *")].filter(sticks);
          return out.slice(0, 3).map((one) => one.outerHTML.slice(0, 200)).join("\\n") || "something";
        }"""
    )
    return found


_FOLDERS: list[Path] = []


def keep_pictures(folder: Path) -> None:
    _FOLDERS[:] = [folder]


def picture(page: Page, name: str) -> None:
    """Of the whole page, unless it is very long."""
    size = page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
    clip: FloatRect = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], _MOST_HEIGHT)}
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "overview"
    page.screenshot(path=_FOLDERS[0] / f"{plain}.png", full_page=True, clip=clip)


# What there is


def routes(method: str) -> list[PageRoute]:
    """Every route for people, as the application has them."""
    routers = [getattr(import_module(f"inchworm.service.{module}"), name) for module, name in build._TOPICS]
    found = [one for router in routers for one in router.routes if isinstance(one, PageRoute)]
    return [one for one in found if method in one.methods]
