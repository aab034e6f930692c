"""The frontier as a session works with it: what is pending, and what is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set

from inchworm.model import Choice, FoundUrl, FrontierEntry, Kind, Reason, Source, State
from inchworm.ports import Known, RowState, StoredRow
from inchworm.rules.order.order import CONTROL
from inchworm.rules.web.url import hash64
from inchworm.store.database import Database, Row

_ENTRY = (
    "SELECT f.url_id, u.url, f.request_url, f.kind, f.source, f.seed, f.depth, f.hops, f.lane, f.place_seq,"
    " f.place_idx, f.attempts, f.not_before_ms, f.chain, f.tried, f.unlinked, f.rank"
    " FROM frontier f JOIN url u USING (url_id) WHERE f.run_id = ? AND f.lane = ? AND f.state = 'pending'"
)
_PENDING = (
    f"{_ENTRY} AND (f.place_seq, f.place_idx, f.url_id) > (?, ?, ?) ORDER BY f.place_seq, f.place_idx, f.url_id LIMIT ?"
)
_KNOWN = (
    "SELECT u.url, u.url_id, f.state, f.reason, f.depth, f.hops FROM url u"
    " LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = u.url_id WHERE u.hash = ANY (?)"
)
_LINKS = (
    "SELECT e.url_id, u.url, e.request_url, e.kind, e.rank, f.state, f.reason, f.depth, f.hops"
    " FROM frontier e JOIN url u USING (url_id) LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = e.url_id"
    " WHERE e.run_id = ? AND e.url_id = ANY (?)"
)
_ROW = (
    f"SELECT f.url_id, u.url, f.kind, f.source, f.found_on, {', '.join(f'f.{name}' for name in RowState._fields)}"
    " FROM frontier f JOIN url u USING (url_id)"
)

# Words of the store as members of their enums: a dict is several times faster than asking the enum. No row: pending.
_STATES: dict[str | None, State] = {None: State.PENDING, **{state.value: state for state in State}}
_REASONS: dict[str | None, Reason | None] = {None: None, **{reason.value: reason for reason in Reason}}
_KINDS: dict[str, Kind] = {kind.value: kind for kind in Kind}
_SOURCES: dict[str, Source] = {source.value: source for source in Source}


class QueueTable:
    """What is pending, lane by lane. `ports.PendingRows` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def lanes(self, run_id: int) -> list[int]:
        rows = self._db.execute("SELECT lane FROM lane WHERE run_id = ? AND pending > 0 ORDER BY lane", (run_id,))
        return [lane for (lane,) in rows]

    def has_several_lanes(self, run_id: int) -> bool:
        return len(self._db.execute("SELECT 1 FROM lane WHERE run_id = ? LIMIT 2", (run_id,)).fetchall()) > 1

    def pending(self, run_id: int, lane: int, after: FrontierEntry | None, limit: int) -> list[FrontierEntry]:
        start = (*after.place, after.url_id) if after else (-2, 0, 0)
        return [_entry(row) for row in self._db.execute(_PENDING, (run_id, lane, *start, limit))]

    def choose(self, run_id: int, lane: int, choice: Choice, skip: Set[int]) -> FrontierEntry | None:
        ranked, best = f"{_ENTRY} AND f.rank IS NOT NULL", "f.rank DESC, f.place_seq, f.place_idx, f.url_id LIMIT ?"
        # Nothing that an index knows: by that SQLite would find far too many rows, and sort them.
        since = "GREATEST(f.found, f.place_seq)"
        # Sitemaps are found by files behind which nothing is chosen, so they may be taken however new they are.
        tries: list[tuple[str, tuple[int, ...]]] = [
            (f"{ranked} AND f.rank >= ? AND f.kind = 'sitemap' ORDER BY {best}", (CONTROL,))
        ]
        if choice.news:
            tries.append((f"{ranked} AND f.rank <= 0 AND {since} < ? ORDER BY {best}", (choice.before,)))
        tries.append((f"{ranked} AND {since} < ? ORDER BY {best}", (choice.before,)))
        tries.append((f"{ranked} ORDER BY {since}, {best}", ()))
        for query, arguments in tries:
            for row in self._db.execute(query, (run_id, lane, *arguments, len(skip) + 1)):
                if row[0] not in skip:
                    return _entry(row)
        return None

    def news_waiting(self, run_id: int, seed: int) -> int:
        query = "SELECT COUNT(*) FROM frontier WHERE run_id = ? AND state = 'pending' AND seed = ? AND place_seq = -1"
        return int(self._db.execute(f"{query} AND kind = 'page'", (run_id, seed)).fetchone()[0])


class FrontierTable:
    """What a run knows of URLs. `ports.KnownRows` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def known(self, run_id: int, urls: Iterable[str], rows: bool = True) -> dict[str, Known]:
        urls = list(urls)
        wanted = {hash64(url): url for url in urls}
        asked = set(wanted.values())
        # Two URLs of one batch with equal hashes: the second is asked for on its own.
        missed = [url for url in urls if url not in asked]
        look_up = self._known if rows else self._ids
        found = look_up(run_id, asked, sorted(wanted))
        for url in missed:
            found |= look_up(run_id, {url}, [hash64(url)])
        return found

    def links(self, run_id: int, earlier: int, url_ids: Iterable[int]) -> list[tuple[FoundUrl, Known]]:
        found: list[tuple[FoundUrl, Known]] = []
        for url_id, url, request_url, kind, rank, *standing in self._db.among(_LINKS, url_ids, run_id, earlier):
            source = Source.RESOURCE if kind == Kind.RESOURCE else Source.SPIDER
            link = FoundUrl(url, request_url or url, _KINDS[kind], source, rank=rank)
            found.append((link, _known(url_id, *standing)))
        return found

    def rows(self, run_id: int, url_ids: Sequence[int]) -> list[StoredRow]:
        return [
            _row(row) for row in self._db.among(f"{_ROW} WHERE f.run_id = ? AND f.url_id = ANY (?)", url_ids, run_id)
        ]

    def all(self, run_id: int) -> list[StoredRow]:
        return self._rows("f.run_id = ? ORDER BY f.place_seq, f.place_idx, f.url_id", run_id)

    def outside(self, run_id: int) -> list[StoredRow]:
        return self._rows("f.run_id = ? AND f.hops > 0 ORDER BY f.place_seq, f.place_idx, f.url_id", run_id)

    def failed(self, run_id: int, kind: str | None = None, url: str | None = None) -> list[StoredRow]:
        where = (
            "f.run_id = ? AND f.state = 'done' AND f.kind IN ('page', 'resource') AND EXISTS (SELECT 1 FROM visit v"
            " WHERE v.run_id = f.run_id AND v.seq = f.done AND v.outcome = 'failed' AND v.failure = COALESCE(?, v.failure))"
            " AND u.url = COALESCE(?, u.url) ORDER BY f.done"
        )
        return self._rows(where, run_id, kind, url)

    def _ids(self, _: int, asked: set[str], hashes: list[int]) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for url, url_id in self._db.among("SELECT url, url_id FROM url WHERE hash = ANY (?)", hashes):
            if url in asked:
                found[url] = Known(url_id, True, State.PENDING, None, 0, 0)
        return found

    def _known(self, run_id: int, asked: set[str], hashes: list[int]) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for url, *standing in self._db.among(_KNOWN, hashes, run_id):
            if url in asked:
                found[url] = _known(*standing)
        return found

    def _rows(self, where: str, *arguments: object) -> list[StoredRow]:
        return [_row(row) for row in self._db.execute(f"{_ROW} WHERE {where}", arguments)]


def _entry(row: Row) -> FrontierEntry:
    url_id, url, request_url, kind, source, seed, depth, hops, lane, place_seq, place_idx, *rest = row
    attempts, not_before_ms, chain, tried, unlinked, rank = rest
    return FrontierEntry(
        url_id,
        url,
        request_url or url,
        _KINDS[kind],
        _SOURCES[source],
        seed,
        depth,
        hops,
        lane,
        (place_seq, place_idx),
        attempts,
        not_before_ms,
        chain,
        tuple(json.loads(tried)) if tried else (),
        unlinked,
        rank,
    )


def _known(url_id: int, state: str | None, reason: str | None, depth: int, hops: int) -> Known:
    return Known(url_id, state is not None, _STATES[state], _REASONS[reason], depth, hops)


def _row(row: Row) -> StoredRow:
    url_id, url, kind, source, found_on, *rest = row
    return StoredRow(url_id, url, _KINDS[kind], _SOURCES[source], found_on, _standing(rest))


def _standing(row: Row) -> RowState:
    state, reason, *rest = row
    return RowState(_STATES[state], _REASONS[reason], *rest)
