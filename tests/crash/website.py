"""The site that the crash suite crawls, and how every one of its URLs must end.

The ends are written down here from what the server does, so nothing of the crawler is needed to know them.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from inchworm.testing import Answer, Hit, Page, Served, Site, linked_site, redirect

CONTROL = ("/robots.txt", "/sitemap.xml")
_BARRIER = "/barrier"


@dataclass(frozen=True, slots=True)
class Website:
    """Pages to serve, and the end of each URL by its canonical form: an outcome, or the reason of a refusal."""

    pages: Mapping[str, Answer | Callable[[Hit], Answer]]
    ends: Mapping[str, str]


class Building:
    """A site in the making: pages, what they link to, and how each URL ends."""

    def __init__(self, pages: int, duplicates: int) -> None:
        linked = linked_site(pages, duplicates=duplicates)
        self.pages: dict[str, Answer | Callable[[Hit], Answer]] = dict(linked)
        self.ends = {path: "duplicate" if path.startswith("/dup/") else "page" for path in linked}
        self._homes = [f"/p{number}" for number in range(duplicates, pages)]
        self._used = 0

    def link(self, *paths: str) -> None:
        """Link these from one page each, spread over the whole site."""
        for path in paths:
            home = self._homes[self._used * 37 % len(self._homes)]
            self._used += 1
            text = self.pages[home]
            assert isinstance(text, str)
            self.pages[home] = text.replace("</ul>", f'<li><a href="{path}">more</a></li></ul>')

    def add(self, path: str, answer: Answer | Callable[[Hit], Answer], end: str) -> None:
        self.pages[path] = answer
        self.ends[path.rstrip("/") or "/"] = end


def article(name: str, links: tuple[str, ...] = ()) -> str:
    words = " ".join(f"The page about {name} says {name} {number} times." for number in range(12))
    items = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return f"<!doctype html><title>{name}</title><main><h1>{name}</h1><p>{words}</p></main><nav>{items}</nav>"


def build(pages: int = 170, duplicates: int = 12, flaky: int = 0) -> Website:
    """A site with a bit of everything: copies, dead links, redirects of every kind, refusals, a sitemap."""
    made = Building(pages, duplicates)
    for number in range(4):
        made.link(f"/dead/{number}", f"/old/{number}", f"/moved/{number}", f"/dir{number}", f"/private/{number}")
        made.add(f"/dead/{number}", Page("gone", 404), "failed")
        made.add(f"/old/{number}", redirect(f"/p{number * 9 + 3}"), "redirect")
        made.add(f"/moved/{number}", redirect(f"/new/{number}", 301), "redirect")
        made.add(f"/new/{number}", article(f"new {number}"), "page")
        made.add(f"/dir{number}/", article(f"folder {number}", (f"/dir{number}/inside",)), "page")
        made.pages[f"/dir{number}"] = redirect(f"/dir{number}/", 301)
        made.add(f"/dir{number}/inside", article(f"inside {number}"), "page")
        made.ends[f"/private/{number}"] = "robots"
    _add_odd_ones(made)
    for number in range(flaky):
        made.link(f"/flaky/{number}")
        made.add(f"/flaky/{number}", _fails_once(article(f"flaky {number}")), "page")
    return Website(made.pages, made.ends)


def _add_odd_ones(made: Building) -> None:
    made.link("/hop/1", "/loop/a", "/empty", "/large", "/packed", "http://elsewhere.invalid/")
    made.add("/hop/1", redirect("/hop/2"), "redirect")
    made.add("/hop/2", redirect("/hop/3"), "redirect")
    made.add("/hop/3", article("the last hop"), "page")
    made.add("/loop/a", redirect("/loop/b"), "redirect")
    made.add("/loop/b", redirect("/loop/a"), "failed")
    made.add("/empty", "", "page")
    made.add("/large", article("large") + "<!-- " + "0123456789" * 20_000 + " -->", "page")
    made.add("/packed", Page(article("packed"), gzip=True), "page")
    made.add("/listed", article("listed only in the sitemap"), "page")
    made.ends["http://elsewhere.invalid/"] = "out_of_scope"
    made.pages["/robots.txt"] = "User-agent: *\nDisallow: /private/\n"
    made.pages["/sitemap.xml"] = lambda hit: (
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<url><loc>http://{hit.host}/listed</loc></url><url><loc>http://{hit.host}/p5</loc></url></urlset>"
    )


def _fails_once(text: str) -> Callable[[Hit], Answer]:
    asked: Counter[str] = Counter()

    def answer(hit: Hit) -> Answer:
        asked[hit.host] += 1
        return Page("not now", 500) if asked[hit.host] == 1 else text

    return answer


@dataclass(slots=True)
class Web:
    """A site while it is served, and the log of its server."""

    site: Site
    served: Served
    website: Website
    log: list[Hit]

    def url(self, path: str = "/") -> str:
        return self.served.url(path)

    @property
    def ends(self) -> dict[str, str]:
        """How every URL must end, by its full canonical form."""
        return {path if "://" in path else self.url(path): end for path, end in self.website.ends.items()}

    def count(self) -> int:
        return len(self.log)

    def hits(self, first: int = 0) -> list[Hit]:
        """The requests since a count, our own ones left out."""
        return [hit for hit in self.log[first:] if hit.path != _BARRIER]

    def asked(self, first: int = 0) -> list[str]:
        """The page URLs that were asked for since a count."""
        return [f"http://{hit.host}{hit.path}" for hit in self.hits(first) if hit.path not in CONTROL]

    def settle(self) -> None:
        """Return when every request that was sent before this call is in the log."""
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=10)
            connection.request("GET", _BARRIER)
            connection.getresponse().read()
            connection.close()

    @contextmanager
    def slowly(self, least: float, most: float) -> Iterator[None]:
        """Answer every request after a time in this range of seconds."""
        before, self.site.latency = self.site.latency, (least, most)
        try:
            yield
        finally:
            self.site.latency = before


@contextmanager
def serving(website: Website) -> Iterator[Web]:
    site, log = Site(website.pages), []
    with site.serve(on_hit=log.append) as served:
        yield Web(site, served, website, log)


@contextmanager
def two_hosts() -> Iterator[Web]:
    """Two sites, one on 127.0.0.1 and one on localhost, that link to each other."""
    here = Building(90, 6)
    here.link("/bridge")
    here.add("/bridge", lambda hit: article("the bridge", (_over(hit, "localhost") + "/p7",)), "page")
    there: dict[str, Any] = dict(linked_site(60, seed=2))
    there["/bridge"] = lambda hit: article("the way back", (_over(hit, "127.0.0.1") + "/p9",))
    there["/p3"] = there["/p3"].replace("</ul>", '<li><a href="/bridge">over</a></li></ul>')
    site, log = Site(here.pages, {"localhost": there}), []
    with site.serve(on_hit=log.append) as served:
        ends = {served.url(path): end for path, end in here.ends.items()}
        ends |= {served.url(path, "localhost"): "page" for path in there}
        yield Web(site, served, Website(here.pages, ends), log)


def _over(hit: Hit, host: str) -> str:
    return f"http://{host}:{hit.host.partition(':')[2]}"
