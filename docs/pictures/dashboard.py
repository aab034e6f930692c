"""Takes docs/pictures/dashboard.png: a crawl on the dashboard, after runs that found changes.

PYTHONPATH=. python docs/pictures/dashboard.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from tests.dashboard.browser import chromium, visiting
from tests.service.running import Service, serving

from inchworm.testing import Answer, Site, linked_site

PAGES = 400
WIDTH, HEIGHT = 1120, 1120
CHANGES = ((14, 9, 3), (0, 0, 0), (22, 31, 6), (0, 4, 0), (11, 12, 17))
"""By run: how many pages are new, modified and deleted."""

TARGET = Path(__file__).with_name("dashboard.png")


def main() -> None:
    all_pages = linked_site(PAGES + sum(new for new, _, _ in CHANGES))
    site: dict[str, Answer] = dict(list(all_pages.items())[:PAGES])
    with (
        tempfile.TemporaryDirectory() as home,
        Site(site, validators=True).serve() as web,
        serving(Path(home), env={"INCHWORM_DELAY": "0"}) as service,
    ):
        wanted = {"url": web.url("/", "manual.localhost"), "name": "The manual"}
        crawl_id = _ended(service, service.post("/api/v1/crawl", wanted, 202))
        for change in CHANGES:
            _change(site, all_pages, *change)
            _ended(service, service.post(f"/api/v1/crawl/{crawl_id}/iterations/next", status=202))
        with chromium() as browser, visiting(browser, service, WIDTH) as visitor:
            page = visitor.open(f"/crawls/{crawl_id}")
            page.get_by_role("link", name=f"Run {len(CHANGES)}").first.wait_for()
            page.screenshot(path=TARGET, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT})


def _change(site: dict[str, Answer], all_pages: dict[str, str], new: int, modified: int, deleted: int) -> None:
    chance = random.Random(new)  # noqa: S311 - the same picture every time
    at = list(all_pages).index(list(site)[-1])
    leaves = list(site)[PAGES // 2 :]
    for path in chance.sample(leaves, deleted):
        del site[path]
    for path in chance.sample(list(site)[1:], modified):
        site[path] = str(site[path]).replace("<main>", f"<main><p>News of {chance.random()}.</p>")
    site.update(list(all_pages.items())[at + 1 : at + 1 + new])


def _ended(service: Service, begun: dict[str, Any]) -> str:
    """The crawl whose session is over."""
    return str(service.ended(begun["job_id"])["crawl_id"])


if __name__ == "__main__":
    main()
