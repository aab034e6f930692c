"""Rows of the frontier one by one, for people who look at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inchworm.store.crawl.session import CrawlStore

_SELECT = (
    "SELECT f.url_id, u.url, COALESCE(f.request_url, u.url), f.state, f.reason, f.kind, f.source, f.seed, s.url, f.depth,"
    " f.hops, on_page.url, f.found, f.place_seq, f.place_idx, f.done, f.attempts, f.not_before_ms, f.chain, f.lastmod"
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


class FrontierRow(NamedTuple):
    """A URL in the frontier of a run, with the addresses that its numbers stand for."""

    url_id: int
    url: str
    request_url: str
    state: str
    reason: str | None
    kind: str
    source: str
    seed: int
    seed_url: str | None
    depth: int
    hops: int
    found_on: str | None
    found: int
    place_seq: int
    place_idx: int
    done: int | None
    attempts: int
    not_before_ms: int | None
    chain: int
    lastmod: str | None


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
        known = self._store.known(self._run_id, [url]).get(url)
        return self.row(known.url_id) if known and known.in_run else None

    def _read(self, where: str, *values: int | str) -> Sequence[FrontierRow]:
        return [FrontierRow(*row) for row in self._db.execute(f"{_SELECT} AND {where}", (self._run_id, *values))]
