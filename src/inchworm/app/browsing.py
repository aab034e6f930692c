"""Looking around: one page with its history and its links, what the archive has of it, the site by folders, full text
for as long as somebody waits."""

from __future__ import annotations

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from inchworm.app.desk import identity
from inchworm.app.looking import Looking, visit_json
from inchworm.app.searching import Texts, snippet
from inchworm.archive import reader as warc_reader
from inchworm.engine.own.bodies import Bodies
from inchworm.errors import Unknown, WrongUse
from inchworm.fetch import replay
from inchworm.model import CrawlInfo, Failure, Response, RunInfo
from inchworm.rules.formats import media
from inchworm.rules.words.explain import REASONS, explanation
from inchworm.rules.words.times import iso
from inchworm.store.crawl import browse
from inchworm.store.crawl.browse import LINK_STEP, TREE_STEP, Browse
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.follow import search as index
from inchworm.store.follow.follower import Page

MOST_LINKS = 100
MOST_RUNS = 100
MOST_TEXT = 20_000
"""Characters of a text that are shown."""

SEARCH_SECONDS = 1.0
LINK_SECONDS = 0.1
TREE_SECONDS = 0.2
WAITING_SECONDS = 1.0
"""How long one look may take to read on; what is missing then comes with the next one."""

MATTER = (
    *("content-type", "content-language", "content-encoding", "last-modified", "etag", "cache-control", "expires"),
    *("age", "vary", "location", "link", "x-robots-tag", "retry-after", "server"),
)
"""The headers that say something of a page."""


class Stored(NamedTuple):
    """What the archive has of a page."""

    url: str
    body: bytes
    content_type: str


class Browsing(Looking):
    """Verbs for those who look around."""

    def some_runs(self, crawl: CrawlInfo) -> list[dict[str, Any]]:
        """The newest runs, as many as fit into a list to choose from."""
        with self.reading(crawl) as store:
            return Browse(store).runs(MOST_RUNS)

    def counts(self, crawl: CrawlInfo, number: int | None = None) -> dict[str, Any]:
        """The counters of a run."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            last = store.run()
        counters = {name: getattr(current.counters, name) for name in _COUNTED}
        return {"run": current.number, "is_last": last is not None and last.number == current.number, **counters}

    # One page

    def leaf(self, crawl: CrawlInfo, url: str, number: int | None = None) -> dict[str, Any]:
        """All that is known of one URL: in a run, in the others, where it leads, and what came with it."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            found = self._known(crawl, store, current, url)
            url_id = store.known(current.run_id, [found["url"]], rows=False)[found["url"]].url_id
            look, visits = Browse(store), found.pop("visits")
            last = visits[-1] if visits else None
            ids = look.links_of(current.run_id, last["seq"]) if last else []
            return {
                **found,
                "run": current.number,
                "why": explanation({**found, "visits": visits}),
                "not_before": iso(found["not_before_ms"]) if found["not_before_ms"] else None,
                "visit": _whole(last) if last else None,
                "tries": [visit_json(one) for one in visits[:-1]],
                "history": _with_baselines(look.history(url_id, MOST_RUNS)),
                "links": look.standing(current.run_id, ids[:MOST_LINKS]),
                "link_count": len(ids),
                "headers": self._headers(crawl, last) if last else {},
            }

    def _known(self, crawl: CrawlInfo, store: CrawlStore, current: RunInfo, url: str) -> dict[str, Any]:
        address = identity(current, url)
        found = Browse(store).entry(current.run_id, address)
        if found is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.",
                "Look whether another run knows it.",
            )
        return found

    def _headers(self, crawl: CrawlInfo, visit: Mapping[str, Any]) -> dict[str, str]:
        """The headers that matter, of this visit's own answer."""
        if not visit["file"]:
            return {}
        try:
            record = warc_reader.record_at(self.crawl_folder(crawl) / "archive" / visit["file"], visit["offset"])
        except WrongUse:
            return {}
        reply = replay.answer_of(record)
        response = reply.answer if isinstance(reply, Failure) else reply
        return {name: response.headers[name] for name in MATTER if name in response.headers} if response else {}

    def links_to(
        self, crawl: CrawlInfo, url: str, number: int | None = None, after: int = 0
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Pages of a run that link to a URL, from behind a step on; and behind which step there is more to see. As many
        as are found in a moment."""
        until = time.monotonic() + LINK_SECONDS
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            address = identity(current, url)
            known = store.known(current.run_id, [address], rows=False).get(address)
            if known is None:
                return [], None
            look = Browse(store)
            found: list[tuple[int, int]] = []
            while after < current.seq and len(found) <= MOST_LINKS and time.monotonic() < until:
                found += look.linking_to(current.run_id, known.url_id, after, after + LINK_STEP)
                after += LINK_STEP
            if len(found) > MOST_LINKS:
                found = found[:MOST_LINKS]
                after = found[-1][0]
            ids = list(dict.fromkeys(url_id for _, url_id in found))
            return look.standing(current.run_id, ids), after if after < current.seq else None

    # What the archive has

    def stored(self, crawl: CrawlInfo, url: str, number: int | None = None) -> Stored:
        """The body of a page as a run has it, decoded."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            visit, response = self._response(crawl, store, current, url)
        if visit is None or response is None:
            raise Unknown(f"The archive has nothing of {url} in run {current.number}.", "Another run may have it.")
        return Stored(visit["url"], response.body or response.payload, visit["content_type"] or "")

    def text(self, crawl: CrawlInfo, url: str, number: int | None = None, at_any_cost: bool = False) -> str | None:
        """The main text of a page; None where there is none, or where only another process may read it: that takes
        longer, and is done `at_any_cost` only."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            visit, response = self._response(crawl, store, current, url)
            if visit is None or response is None or visit["outcome"] not in ("page", "duplicate"):
                return None
            if media.is_risky(response.body, visit["content_type"] or "") and not at_any_cost:
                return None
            return Texts(store, self.crawl_folder(crawl) / "archive").of(_as_page(visit, current))

    def _response(
        self, crawl: CrawlInfo, store: CrawlStore, current: RunInfo, url: str
    ) -> tuple[dict[str, Any] | None, Response | None]:
        visits = self._known(crawl, store, current, url)["visits"]
        visit = next((one for one in reversed(visits) if one["payload"]), None)
        if visit is None:
            return None, None
        bodies = Bodies(store, self.crawl_folder(crawl) / "archive")
        return visit, bodies.of(bytes.fromhex(visit["payload"]))

    # Full text

    def search_a_while(
        self, crawl: CrawlInfo, text: str, limit: int, seconds: float = SEARCH_SECONDS
    ) -> dict[str, Any]:
        """The pages that say something, best first, of those that are in the index after so many seconds. `missing`:
        how many are not in it yet, because there was no time."""
        query, folder = index.parsed(text), self.crawl_folder(crawl)
        with self.reading(crawl) as store:
            source = index.Source(store, Texts(store, folder / "archive").of)
            question = index.Question(query, limit, snippet)
            found, missing = browse.search(folder / "search.db", source, question, seconds)
            known = store.run()
        results = [
            {
                "url": one.urls[0],
                "title": one.title,
                "snippet": pieces(one.snippet),
                "run": one.run,
                "fetched_at": iso(one.at_ms),
                "alternates": len(one.urls) - 1,
            }
            for one in found.results
        ]
        total = max(missing, known.counters.pages + known.counters.duplicates) if known else missing
        return {"query": text, "count": found.total, "results": results, "missing": missing, "total": total}

    # The site by folders

    def folders(self, crawl: CrawlInfo, number: int | None = None, at: str = "", offset: int = 0) -> dict[str, Any]:
        """One level of a site: folders with what is below them, the fullest first, then what lies in this one. A run is
        counted through once and remembered; what one look has no time for, the next one goes on with."""
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            key = (str(self.crawl_folder(crawl)), current.run_id)
            tally = _SHELF.tally(key, Browse(store).stamp(current.run_id), self.is_running(crawl))
            # Who has been told that it takes a while waits longer, and seldomer.
            tally.count(Browse(store), current.run_id, WAITING_SECONDS if tally.counted else TREE_SECONDS)
            told = {"run": current.number, "at": at, "counted": tally.counted, "known": current.counters.known}
            if not tally.is_complete:
                return {**told, "is_complete": False}
            whole, below = tally.below(at)
            shown = below[offset : offset + MOST_LINKS]
            first = max(0, offset - len(below))
            ids = tally.inside(at)[first : first + MOST_LINKS - len(shown)]
            pages = Browse(store).standing(current.run_id, ids)
        end, total = offset + len(shown) + len(ids), len(below) + len(tally.inside(at))
        return {
            **told,
            "is_complete": True,
            "seconds_ago": tally.age(),
            "sum": whole,
            "folders": shown,
            "pages": pages,
            "next_offset": end if end < total else None,
        }


_COUNTED = (
    *("known", "pending", "pages", "duplicates", "resources", "redirects", "failed", "refused"),
    *("new", "modified", "unchanged", "deleted", "unknown"),
)


def pieces(marked: str) -> list[tuple[str, bool]]:
    """A snippet as pieces of text, each with whether it was looked for."""
    parts: list[tuple[str, bool]] = []
    for piece in marked.split("«"):
        hit, mark, rest = piece.rpartition("»")
        parts += [(hit, True), (rest, False)] if mark else [(piece, False)]
    return [(text, is_hit) for text, is_hit in parts if text]


def _whole(visit: dict[str, Any]) -> dict[str, Any]:
    return {
        **visit_json(visit),
        "alternates": [url for url in visit["alternate_urls"] if url != visit["url"]],
        "is_stored": bool(visit["payload"]) and bool(visit["size"]),
        "requested": bool(visit["requested"]),
    }


def _with_baselines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row with the run before it that has a text to compare with, if both have one."""
    before: int | None = None
    for row in reversed(rows):
        has_text = row["outcome"] in ("page", "duplicate")
        row["baseline"] = before if has_text else None
        row["at"] = iso(row.pop("at_ms")) if row["at_ms"] else None
        row["why"] = REASONS.get(row["reason"]) if row["reason"] else None
        before = row["run"] if has_text else before
    return rows


def _as_page(visit: Mapping[str, Any], current: RunInfo) -> Page:
    return Page(
        0,
        visit["url"],
        0,
        current.run_id,
        visit["seq"],
        current.number,
        visit["at_ms"],
        visit["outcome"],
        None,
        bytes.fromhex(visit["payload"]),
        visit["content_type"] or "",
        visit["title"] or "",
        visit["request_url"],
    )


# ---- counting a run by folders

_FRESH_SECONDS = 30.0
"""For so long a count of a run that goes on is good enough."""

_MOST_COUNTED = 4_000_000
"""URLs in all counts that are remembered."""

_PLACES = {"page": 0, "failed": 1, "pending": 2, "refused": 3}
_OTHER, _BYTES, _CHANGED, _WIDTH = 4, 5, 6, 7
_CHANGES = ("new", "modified", "deleted")


class Sum(NamedTuple):
    """What lies in and below a folder."""

    name: str
    pages: int = 0
    failed: int = 0
    pending: int = 0
    refused: int = 0
    other: int = 0
    bytes: int = 0
    changed: int = 0

    @property
    def urls(self) -> int:
        return self.pages + self.failed + self.pending + self.refused + self.other


class Tally:
    """The URLs of a run by the folders in which they lie: how many of which kind, and which."""

    def __init__(self, stamp: tuple[int, ...]) -> None:
        self.stamp = stamp
        self.counted = 0
        self.is_complete = False
        self._begun = time.monotonic()
        self._after = 0
        self._numbers: dict[str, list[int]] = {}
        self._inside: dict[str, array[int]] = {}
        self._mutex = threading.Lock()

    def count(self, look: Browse, run_id: int, seconds: float) -> None:
        """Go on for so long. Who finds another at it waits for it."""
        until = time.monotonic() + seconds
        if not self.is_complete and self._mutex.acquire(timeout=seconds):
            try:
                while not self.is_complete and time.monotonic() < until:
                    self._step(look.tree_rows(run_id, self._after, TREE_STEP))
            finally:
                self._mutex.release()

    def _step(self, rows: list[tuple[int, str, str | None, int | None, str | None]]) -> None:
        numbers, inside = self._numbers, self._inside
        for url_id, url, what, size, change in rows:
            folder = folder_of(url)
            sums = numbers.get(folder)
            if sums is None:
                sums = numbers[folder] = [0] * _WIDTH
                inside[folder] = array("I")
            sums[_PLACES.get(what or "", _OTHER)] += 1
            sums[_BYTES] += size or 0
            sums[_CHANGED] += change in _CHANGES
            inside[folder].append(url_id)
        self.counted += len(rows)
        self._after = rows[-1][0] if rows else self._after
        self.is_complete = len(rows) < TREE_STEP

    def age(self) -> float:
        return time.monotonic() - self._begun

    def below(self, at: str) -> tuple[Sum, list[Sum]]:
        """All that lies in a folder, and the folders right below it, the fullest first; of the whole: its hosts."""
        found: dict[str, list[int]] = {}
        start = len(at) or len("https://")
        for folder, numbers in self._numbers.items():
            if folder.startswith(at):
                # The folder itself has no further slash and comes to "".
                name = folder[: folder.find("/", start) + 1]
                _add(found.setdefault(name, [0] * _WIDTH), numbers)
        whole = [sum(column) for column in zip(*found.values(), strict=True)]
        found.pop("", None)
        sums = [Sum(name, *numbers) for name, numbers in found.items()]
        return Sum(at, *whole), sorted(sums, key=lambda one: (one.refused - one.urls, -one.refused, one.name))

    def inside(self, at: str) -> array[int]:
        """The numbers of the URLs right in this folder, in the order in which the crawl met them."""
        return self._inside.get(at, array("I"))


def _add(numbers: list[int], more: Iterable[int]) -> None:
    for place, count in enumerate(more):
        numbers[place] += count


def folder_of(url: str) -> str:
    """Where a URL lies: all of it up to the last slash of its path."""
    return url[: url.rfind("/", 0, url.find("?") if "?" in url else None) + 1]


class _Shelf:
    """The counts that are remembered, the latest used last. The same for all who ask in this process."""

    def __init__(self) -> None:
        self._tallies: OrderedDict[tuple[str, int], Tally] = OrderedDict()
        self._mutex = threading.Lock()

    def tally(self, key: tuple[str, int], stamp: tuple[int, ...], goes_on: bool) -> Tally:
        """The count of a run; a new one where the run has changed since."""
        with self._mutex:
            found = self._tallies.get(key)
            if found is None or _is_old(found, stamp, goes_on):
                found = self._tallies[key] = Tally(stamp)
            self._tallies.move_to_end(key)
            while len(self._tallies) > 1 and sum(one.counted for one in self._tallies.values()) > _MOST_COUNTED:
                self._tallies.popitem(last=False)
            return found


def _is_old(tally: Tally, stamp: tuple[int, ...], goes_on: bool) -> bool:
    if tally.stamp == stamp:
        return False
    if not goes_on:
        return True
    # A large run changes while it is counted; to begin again each time would never end.
    return tally.is_complete and tally.age() > _FRESH_SECONDS


_SHELF = _Shelf()
