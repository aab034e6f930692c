"""Reports on one run: broken links, redirects, duplicates, errors, what is slow. Reads only, as it stands at one moment.

What pages link to is packed into each visit, so who links to a URL is found by one pass over all of them. Only the
numbers of those that were asked for are kept meanwhile.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from inchworm.rules.change.change import PERMANENT
from inchworm.store.crawl.commit import unpack
from inchworm.store.crawl.joins import ADDRESS, ROW, SETTLED, SETTLING
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import NO_LIMIT as EVERYTHING

NO_LIMIT = -1
TROUBLE = ("redirect_loop", "too_many_redirects", "bad_redirect")
MOST_HOPS = 50
_ROWS = (
    f"frontier f JOIN {SETTLING} AND v.url_id = f.url_id"
    " JOIN url u ON u.url_id = f.url_id"
    " WHERE f.run_id = ? AND f.state = 'done' AND f.kind IN ('page', 'resource')"
)
_BROKEN = "v.outcome IN ('failed', 'deleted')"
_KIND = "CASE v.outcome WHEN 'deleted' THEN 'deleted' ELSE COALESCE(v.failure, '') END"
_FETCHED = "v.requested = 1 AND v.outcome IN ('page', 'duplicate', 'resource')"
_LINKING = "('page', 'duplicate', 'control')"


class Linking(NamedTuple):
    """A page, or a sitemap, that links to something. `through`: the address it names, where that redirects there."""

    url: str
    title: str
    through: str = ""


class BrokenLink(NamedTuple):
    """A URL that brought no page. `kind` is a kind of failure, or `deleted` for one that earlier runs have; `pages` is
    how many lead there, of which `linked_from` has as many as were wanted."""

    url: str
    status: int
    kind: str
    message: str
    pages: int
    linked_from: list[Linking]


class Hop(NamedTuple):
    """One redirect: what was asked for, and what the server answered."""

    url: str
    status: int


class Chain(NamedTuple):
    """Redirects from a first address to a last one, and what came of that: an outcome, a kind of failure, or why it was
    not fetched. `trouble` is a kind of failure of redirects."""

    hops: list[Hop]
    final_url: str
    final_status: int
    final_outcome: str
    is_permanent: bool
    trouble: str
    pages: int


class Group(NamedTuple):
    """URLs with the same content, the primary one first."""

    urls: list[str]
    title: str
    size: int


class Errors(NamedTuple):
    """How often something went wrong in one way, and where for example."""

    kind: str
    status: int
    urls: int
    examples: list[str]


class Fetched(NamedTuple):
    """How long one answer took and how large it was."""

    url: str
    millis: int
    size: int
    status: int
    content_type: str


class Reports:
    """Questions about one run. Where there may be many rows, the number of all comes with those that were asked for.
    `linking`: how many of the pages that lead somewhere are wanted."""

    def __init__(self, store: CrawlStore, run_id: int, linking: int = NO_LIMIT) -> None:
        self._db = store.db
        self._run_id = run_id
        self._linking = linking

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything asked in here is as it was at one moment."""
        return self._db.snapshot()

    # Broken links

    def broken_links(self, limit: int = NO_LIMIT) -> tuple[int, list[BrokenLink]]:
        """URLs that failed or are gone, with all pages that lead there; the most linked first."""
        rows = self._db.execute(
            f"SELECT f.url_id, v.seq, v.status, {_KIND}, COALESCE(v.message, '') FROM {_ROWS} AND {_BROKEN} ORDER BY v.seq",
            (self._run_id,),
        ).fetchall()
        leading = self._leading_to(row[0] for row in rows)
        linking = self._linking_to(leading)
        ways: dict[int, list[int]] = {row[0]: [] for row in rows}
        for url_id, target in leading.items():
            ways[target].append(url_id)
        pages = {url_id: sum(len(linking[way]) for way in found) for url_id, found in ways.items()}
        rows.sort(key=lambda row: -pages[row[0]])
        shown = rows if limit < 0 else rows[:limit]
        addresses = self._addresses({way for row in shown for way in ways[row[0]]})
        return len(rows), [
            BrokenLink(
                addresses[url_id],
                status,
                kind,
                message,
                pages[url_id],
                self._from(url_id, ways[url_id], linking, addresses),
            )
            for url_id, _, status, kind, message in shown
        ]

    def _leading_to(self, broken: Iterable[int]) -> dict[int, int]:
        """The broken URLs and those that redirect to one, each with the one it leads to. A pass per hop."""
        leading = {url_id: url_id for url_id in broken}
        query = f"SELECT f.url_id, v.redirect FROM {_ROWS} AND v.outcome = 'redirect'"
        for _ in range(MOST_HOPS):
            rows = self._db.execute(query, (self._run_id,))
            new = {one: leading[target] for one, target in rows if target in leading and one not in leading}
            if not new:
                break
            leading |= new
        return leading

    def _linking_to(self, wanted: Collection[int]) -> dict[int, array[int]]:
        """For each URL, the seq of every visit that links to it."""
        found = {url_id: array("Q") for url_id in wanted}
        known = found.keys()
        for seq, links in self._links():
            for url_id in known & set(links):
                found[url_id].append(seq)
        return found

    def _links(self) -> Iterator[tuple[int, list[int]]]:
        """Every page and sitemap with what it links to, in the order of record."""
        rows = self._db.stream(
            f"SELECT v.seq, v.links FROM {SETTLED} WHERE v.run_id = ? AND v.links IS NOT NULL AND v.outcome IN {_LINKING}"
            " AND v.kind IN ('page', 'sitemap') ORDER BY v.seq",
            (self._run_id,),
        )
        for seq, links in rows:
            yield seq, unpack(links)

    def _from(
        self, url_id: int, ways: list[int], linking: dict[int, array[int]], addresses: dict[int, str]
    ) -> list[Linking]:
        found: list[Linking] = []
        for way in ways:
            through = addresses[way] if way != url_id else ""
            wanted = linking[way] if self._linking < 0 else linking[way][: self._linking - len(found)]
            found += [Linking(url, title, through) for url, title in self._pages(wanted)]
        return found

    def _pages(self, seqs: Iterable[int]) -> Iterator[tuple[str, str]]:
        """Address and title of visits."""
        yield from self._db.among(
            f"SELECT CASE v.kind WHEN 'page' THEN u.url ELSE {ADDRESS} END, COALESCE(v.title, '')"
            " FROM visit v JOIN url u USING (url_id) WHERE v.run_id = ? AND v.seq = ANY (?) ORDER BY v.seq",
            seqs,
            self._run_id,
        )

    def _addresses(self, url_ids: Collection[int]) -> dict[int, str]:
        return dict(self._db.among("SELECT url_id, url FROM url WHERE url_id = ANY (?)", url_ids))

    # Redirects

    def redirects(self, limit: int = NO_LIMIT) -> tuple[int, list[Chain]]:
        """Chains of redirects from where they begin: where no redirect leads, or where a page links to. The most linked
        first."""
        hops, shown = self._hops()
        targets = {target for url_id, target in hops.items() if target != url_id}
        hops |= {url_id: url_id for url_id in self._troubled() if url_id not in targets and url_id not in hops}
        pages: Counter[int] = Counter()
        for _, links in self._links():
            pages.update(hops.keys() & set(links))
        heads = [url_id for url_id in hops if url_id not in targets or pages[url_id]]
        heads.sort(key=lambda url_id: -pages[url_id])
        wanted = heads if limit < 0 else heads[:limit]
        return len(heads), [self._chain(*_way(head, hops), shown, pages[head]) for head in wanted]

    def _troubled(self) -> list[int]:
        """URLs whose redirect leads nowhere."""
        rows = self._db.execute(
            f"SELECT f.url_id FROM {_ROWS} AND v.outcome = 'failed' AND v.failure = ANY (?) ORDER BY v.seq",
            (self._run_id, TROUBLE),
        )
        return [url_id for (url_id,) in rows]

    def _hops(self) -> tuple[dict[int, int], dict[int, list[Hop]]]:
        """Where each URL that redirects leads to, in the order of record; itself where only its address changed, as
        with a slash at its end that makes no difference to us. And each of its redirects."""
        rows = self._db.execute(
            f"SELECT v.url_id, v.redirect, {ADDRESS}, v.status FROM visit v JOIN url u USING (url_id)"
            f" JOIN {ROW}"
            " WHERE v.run_id = ? AND v.kind IN ('page', 'resource') AND v.outcome = 'redirect'"
            " AND (f.done = v.seq OR v.redirect = v.url_id) ORDER BY v.seq",
            (self._run_id,),
        )
        hops: dict[int, int] = {}
        shown: dict[int, list[Hop]] = {}
        for url_id, target, address, status in rows:
            hops[url_id] = target
            shown.setdefault(url_id, []).append(Hop(address, status))
        return hops, shown

    def _chain(self, way: Collection[int], end: int, shown: dict[int, list[Hop]], pages: int) -> Chain:
        address, status, outcome, failure = self._end(end)
        hops = [hop for url_id in way for hop in shown.get(url_id, ())] or [Hop(address, status)]
        is_permanent = all(hop.status in PERMANENT for hop in hops)
        trouble = failure if failure in TROUBLE else ""
        return Chain(hops, address, status, failure or outcome, is_permanent, trouble, pages)

    def _end(self, url_id: int) -> tuple[str, int, str, str]:
        """Where a chain ends: address, status, outcome, kind of failure."""
        row = self._db.execute(
            "SELECT COALESCE(v.request_url, f.request_url, u.url), v.status, COALESCE(v.outcome, f.reason, f.state), v.failure"
            " FROM url u LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = u.url_id"
            f" LEFT JOIN {SETTLING} WHERE u.url_id = ?",
            (self._run_id, url_id),
        ).fetchone()
        address, status, outcome, failure = row or ("", 0, "", "")
        return address, status or 0, outcome or "", failure or ""

    # Duplicates

    def duplicates(self, limit: int = NO_LIMIT) -> tuple[int, list[Group]]:
        """Contents that more than one URL has, the most frequent first."""
        rows = self._db.stream(
            "WITH page AS (SELECT v.text_hash AS hash, v.seq, u.url, COALESCE(v.title, '') AS title, v.size, v.outcome"
            f" FROM {_ROWS} AND v.kind = 'page' AND v.outcome IN ('page', 'duplicate') AND v.text_hash IS NOT NULL),"
            " several AS (SELECT hash, COUNT(*) AS urls, MIN(seq) AS first, COUNT(*) OVER () AS total FROM page GROUP BY hash"
            " HAVING COUNT(*) > 1 ORDER BY urls DESC, first LIMIT ?)"
            " SELECT s.total, s.first, p.url, p.title, p.size FROM several s JOIN page p USING (hash)"
            " ORDER BY s.urls DESC, s.first, p.outcome = 'duplicate', p.seq",
            (self._run_id, limit if limit >= 0 else EVERYTHING),
        )
        groups: dict[int, list[tuple[str, str, int]]] = {}
        total = 0
        for total, first, url, title, size in rows:  # noqa: B007 - each row has it
            groups.setdefault(first, []).append((url, title, size))
        return total, [Group([url for url, _, _ in group], group[0][1], group[0][2]) for group in groups.values()]

    # Errors

    def errors(self, examples: int) -> list[Errors]:
        """What went wrong, by kind and status, the most frequent first."""
        rows = self._db.execute(
            "SELECT kind, status, urls, url FROM (SELECT u.url, v.status, v.seq,"
            f" {_KIND} AS kind, COUNT(*) OVER same AS urls, ROW_NUMBER() OVER (same ORDER BY v.seq) AS number"
            f" FROM {_ROWS} AND {_BROKEN}"
            f" WINDOW same AS (PARTITION BY {_KIND}, v.status)) AS numbered WHERE number <= ? ORDER BY urls DESC, kind, status, seq",
            (self._run_id, max(examples, 1)),
        )
        found: dict[tuple[str, int], Errors] = {}
        for kind, status, urls, url in rows:
            found.setdefault((kind, status), Errors(kind, status, urls, [])).examples.append(url)
        return list(found.values())

    # What is slow

    def slowest(self, limit: int) -> list[Fetched]:
        return self._fetched("v.millis DESC, v.seq", limit)

    def largest(self, limit: int) -> list[Fetched]:
        return self._fetched("v.size DESC, v.seq", limit)

    def _fetched(self, order: str, limit: int) -> list[Fetched]:
        rows = self._db.execute(
            f"SELECT {ADDRESS}, v.millis, v.size, v.status, COALESCE(v.content_type, '')"
            f" FROM {_ROWS} AND {_FETCHED} ORDER BY {order} LIMIT ?",
            (self._run_id, limit if limit >= 0 else EVERYTHING),
        )
        return [Fetched(*row) for row in rows]

    def percentiles(self, wanted: Iterable[int]) -> tuple[int, dict[int, int]]:
        """How many answers there were, and how many milliseconds so many of a hundred took at most."""
        count = int(self._db.execute(f"SELECT COUNT(*) FROM {_ROWS} AND {_FETCHED}", (self._run_id,)).fetchone()[0])
        nth = f"SELECT v.millis FROM {_ROWS} AND {_FETCHED} ORDER BY v.millis LIMIT 1 OFFSET ?"
        found = {}
        for percent in wanted if count else ():
            rank = -(-count * percent // 100)
            found[percent] = int(self._db.execute(nth, (self._run_id, max(rank - 1, 0))).fetchone()[0])
        return count, found


def _way(head: int, hops: dict[int, int]) -> tuple[Collection[int], int]:
    """The URLs of a chain, and where it ends: at one that redirects no further, or one that it came by before."""
    way: dict[int, None] = {}
    end = head
    while end not in way and len(way) < MOST_HOPS:
        way[end] = None
        end = hops.get(end, end)
    return way, end
