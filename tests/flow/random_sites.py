"""Sites made of a number: a bit of everything that could make a record depend on timing.

Every answer depends on the request alone, so a crawl of one such site has one record, however it is crawled.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.flow.crawling import page

from inchworm.testing import Answer, Hit, Page, redirect

Pages = dict[str, Answer | Callable[[Hit], Answer]]
MISSING = "<title>Not found</title><p>Sorry, this page was not found.</p>"


@dataclass(slots=True)
class RandomSite:
    """What to serve, and how to crawl it."""

    seed: int
    pages: Pages
    settings: dict[str, Any] = field(default_factory=dict)


def make(seed: int) -> RandomSite:
    chance = random.Random(seed)
    site = RandomSite(seed, {}, _settings(chance))
    paths = ["/", *(_path(chance, number) for number in range(chance.randint(8, 40)))]
    for number, path in enumerate(paths):
        links = [chance.choice(paths) for _ in range(chance.randint(0, 6))]
        # A way to every page, so that most of them are met.
        links += paths[2 * number + 1 : 2 * number + 3]
        chance.shuffle(links)
        site.pages[path] = _answer(chance, path, links) if number else _slowly(chance, page("home", *links))
    if chance.random() < 0.3:
        site.pages["/robots.txt"] = f"User-agent: *\nDisallow: {chance.choice(paths[1:])}\n"
    site.pages["*"] = _missing
    return site


def _settings(chance: random.Random) -> dict[str, Any]:
    """Of each kind of limit sometimes one."""
    given: dict[str, Any] = {"sitemap": False, "max_retries": 0}
    if chance.random() < 0.25:
        given["page_limit"] = chance.randint(3, 15)
    if chance.random() < 0.2:
        given["max_depth"] = chance.randint(1, 4)
    if chance.random() < 0.15:
        given["query"] = "sentence home"
    given["checkpoint_every"] = chance.choice([3, 10, 100])
    return given


def _path(chance: random.Random, number: int) -> str:
    directory = chance.choice(["", "", "honest/", "soft/", "deep/er/"])
    query = chance.choice(["", "", "", f"?q={number % 3}"])
    return f"/{directory}p{number}{query}"


def _missing(hit: Hit) -> Answer:
    """What nobody made: one directory says so with status 200."""
    return MISSING if hit.path.startswith("/soft/") else Page("not here", 404)


def _answer(chance: random.Random, path: str, links: list[str]) -> Answer | Callable[[Hit], Answer]:
    kinds: dict[str, Callable[[], Answer | Callable[[Hit], Answer]]] = {
        "page": lambda: _slowly(chance, page(path, *links)),
        "copy": lambda: _slowly(chance, page(f"copy {len(path) % 3}", *links[:2])),
        "excuse": lambda: _slowly(chance, MISSING.replace("Sorry", f"Sorry {chance.randint(1, 3)}")),
        "gone": lambda: Page("gone", chance.choice([404, 410, 500])),
        "hop": lambda: _slowly(chance, redirect(chance.choice([*links, path]), chance.choice([301, 302]))),
        "loop": lambda: redirect(path),
        "wall": lambda: _wall(path, page(f"behind the wall {path}", *links)),
        "cookie": lambda: Page(page(path, *links), headers={"Set-Cookie": f"c{len(path) % 2}=1"}, delay=0.02),
        "cookie hop": lambda: Page("", 302, {"Location": links[0] if links else "/", "Set-Cookie": "hop=1"}),
        "reset": lambda: Page(raw=b""),
        "nothing": lambda: "",
    }
    weights = (40, 10, 6, 6, 10, 2, 3, 5, 3, 3, 2)
    return kinds[chance.choices(list(kinds), weights)[0]]()


def _slowly(chance: random.Random, answer: Answer) -> Page:
    """Some answers take longer than others that were asked for later."""
    made = answer if isinstance(answer, Page) else Page(answer)
    delay = chance.choice([0.0, 0.0, 0.0, 0.01, 0.04])
    return Page(made.body, made.status, made.headers, delay)


def _wall(path: str, behind: str) -> Callable[[Hit], Answer]:
    """A page that wants back a cookie that only it sets."""
    cookie = f"wall{abs(hash_of(path))}=1"

    def answer(hit: Hit) -> Answer:
        if cookie in hit.headers.get("cookie", ""):
            return behind
        return Page("", 302, {"Location": path, "Set-Cookie": cookie})

    return answer


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum(ord(mark) * 31**index for index, mark in enumerate(text)) % 1_000_003
