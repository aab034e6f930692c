"""Rows of the frontier one by one, for people who look at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Row

_SELECT = (
    "SELECT f.url_id, u.url, COALESCE(f.request_url, u.url), f.not_before_ms, f.state, f.reason, f.kind, f.source, s.url,"
    " f.depth, f.hops, on_page.url, f.found, f.done, f.attempts, f.lastmod, f.seed, f.place_seq, f.place_idx, f.chain"
    " FROM frontier f /*sqlite CROSS*/ JOIN url u ON u.url_id = f.url_id LEFT JOIN url on_page ON on_page.url_id = f.found_on"
    " LEFT JOIN seed s ON s.run_id = f.run_id AND s.number = f.seed WHERE f.run_id = ?"
)
_FILTERS = {
    "state": "/*sqlite +*/f.state = ?",
    "reason": "/*sqlite +*/f.reason = ?",
    "source": "/*sqlite +*/f.source = ?",
    "reason_other_than": "/*sqlite +*/f.reason <> ?",
}
"""The plus signs keep SQLite on the order of the ids: no page of a list costs more than the first."""


class EntryFacts(NamedTuple):
    """How a URL stands in the frontier of a run, and how it was found."""

    state: str
    reason: str | None
    kind: str
    source: str
    seed_url: str | None
    depth: int
    hops: int
    found_on: str | None
    found: int
    done: int | None
    attempts: int
    lastmod: str | None


class LanePlace(NamedTuple):
    """Where a URL stands in its lane: behind which visit, of which seed, after how many redirects."""

    seed: int | None
    place_seq: int
    place_idx: int
    chain: int


class FrontierRow(NamedTuple):
    """A URL in the frontier of a run, with the addresses that its numbers stand for."""

    url_id: int
    url: str
    request_url: str
    not_before_ms: int | None
    facts: EntryFacts
    place: LanePlace


class FrontierReader:
    """The rows of one run's frontier."""

    def __init__(self, store: CrawlStore, run_id: int) -> None:
        self._store = store
        self._db = store.db
        self._run_id = run_id

    def rows(self, wanted: Mapping[str, str], after: int, limit: int) -> Sequence[FrontierRow]:
        """Pages and resources, in the order in which the crawl first met them. `wanted` has names of `_FILTERS`."""
        conditions = "".join(f" AND {_FILTERS[name]}" for name in wanted)
        return self._read(
            f"f.url_id > ? AND f.kind IN ('page', 'resource'){conditions} ORDER BY f.url_id LIMIT ?",
            after,
            *wanted.values(),
            limit,
        )

    def row(self, url_id: int) -> FrontierRow | None:
        """What the run knows of a URL, whatever kind it is."""
        found = self._read("f.url_id = ?", url_id)
        return found[0] if found else None

    def find(self, url: str) -> FrontierRow | None:
        """The same by its canonical form."""
        known = self._store.frontier.known(self._run_id, [url]).get(url)
        return self.row(known.url_id) if known and known.in_run else None

    def _read(self, where: str, *values: int | str) -> Sequence[FrontierRow]:
        return [_row(row) for row in self._db.execute(f"{_SELECT} AND {where}", (self._run_id, *values))]


_FACTS = len(EntryFacts._fields)


def _row(row: Row) -> FrontierRow:
    url_id, url, request_url, not_before_ms, *rest = row
    return FrontierRow(url_id, url, request_url, not_before_ms, EntryFacts(*rest[:_FACTS]), LanePlace(*rest[_FACTS:]))
