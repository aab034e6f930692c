"""crawl.db: one crawl, its runs, their frontier and visits.

One writer ever: the owner of the crawl's run. Everybody else opens the file read-only. Every commit carries
the owner's token and is refused when somebody else has taken a newer one.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from inchworm import fault
from inchworm.errors import Broken, Lost
from inchworm.model import (
    Cookie,
    Counters,
    EndedBy,
    Entry,
    Found,
    Kind,
    Reason,
    RunInfo,
    RunState,
    Seed,
    SessionInfo,
    SessionState,
    Source,
    State,
)
from inchworm.ports import Changes, Known, NewEntry, Original, Row, Standing, VisitRow
from inchworm.rules.url import hash64
from inchworm.store.lock import Life, boot_ms
from inchworm.store.sqlite import open_file, plain_errors, size_cache, transaction

_LINKS = VisitRow._fields.index("links")
_COUNTERS = tuple(Counters.__slots__)
_MUTABLE = ", ".join(Standing._fields)
_VISIT = ", ".join(f'"{name}"' for name in VisitRow._fields)
_RUN = f"run_id, number, mode, parent, state, seq, settings, disturbed, created_ms, ended_ms, {', '.join(_COUNTERS)}"
_NEWEST_ROBOTS = "r.seq = (SELECT MAX(seq) FROM robots n WHERE n.run_id = r.run_id AND n.origin = r.origin)"
_COOKIE = "domain, path, name, host_only, value, secure, expires_ms"
_SESSION = "run_id, number, token, state, ended_by, started_ms, ended_ms, requests, size, message"


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_ADD_ENTRY = (
    f"INSERT INTO frontier (run_id, url_id, kind, source, found, found_on, lastmod, {_MUTABLE})"
    f" VALUES ({_marks(7 + len(Standing._fields))})"
)
_MOVE_ENTRY = f"UPDATE frontier SET ({_MUTABLE}) = ({_marks(len(Standing._fields))}) WHERE run_id = ? AND url_id = ?"
_SETTLE = "UPDATE frontier SET state = ?, reason = ?, done = ? WHERE run_id = ? AND url_id = ?"
_ADD_VISIT = f"INSERT INTO visit (log_id, run_id, session, {_VISIT}) VALUES ({_marks(3 + len(VisitRow._fields))})"
_PENDING = (
    "SELECT f.url_id, u.url, f.request_url, f.kind, f.source, f.seed, f.depth, f.hops, f.lane, f.place_seq,"
    " f.place_idx, f.attempts, f.not_before_ms, f.chain, f.tried"
    " FROM frontier f JOIN url u USING (url_id)"
    " WHERE f.run_id = ? AND f.lane = ? AND f.state = 'pending' AND (f.place_seq, f.place_idx, f.url_id) > (?, ?, ?)"
    " ORDER BY f.place_seq, f.place_idx, f.url_id LIMIT ?"
)
_KNOWN = (
    "SELECT u.url, u.url_id, f.state, f.reason, f.depth, f.hops FROM url u"
    " LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = u.url_id WHERE u.hash IN ({marks})"
)

# Words of the store as members of their enums: a dict is several times faster than asking the enum. No row: pending.
_STATES: dict[str | None, State] = {None: State.PENDING, **{state.value: state for state in State}}
_REASONS: dict[str | None, Reason | None] = {None: None, **{reason.value: reason for reason in Reason}}
_KINDS: dict[str, Kind] = {kind.value: kind for kind in Kind}
_SOURCES: dict[str, Source] = {source.value: source for source in Source}


class CrawlStore:
    """One crawl's file, for its owner or for a reader."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self.db = open_file(path, "crawl", read_only)
        self._stat = path.stat()
        self._log_id = 0
        self._cache_for = 20_000

    def close(self) -> None:
        self.db.close()

    # Who may write

    def take(self, me: Life) -> int:
        """Become the owner: a new token, after which no older one can commit."""
        with plain_errors(self.path), transaction(self.db):
            self.db.execute(
                "UPDATE owner SET token = token + 1, heartbeat = heartbeat + 1, beat_ms = ?, boot = ?, pid = ?, machine = ?",
                (me.beat_ms, me.boot, me.pid, me.machine),
            )
            token = self.db.execute("SELECT token FROM owner").fetchone()[0]
        newest = (
            "SELECT MAX(log_id) FROM (SELECT MAX(log_id) AS log_id FROM visit UNION ALL SELECT MAX(log_id) FROM undone)"
        )
        self._log_id = self._max(newest)
        return int(token)

    def owner(self) -> Life:
        """The last owner's last sign of life."""
        return Life(*self.db.execute("SELECT pid, machine, boot, beat_ms FROM owner").fetchone())

    def beat(self, token: int) -> None:
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)

    def _fence(self, token: int) -> None:
        if not _is_same_file(self._stat, self.path):
            raise Broken(
                f"{self.path} was deleted or replaced while it was in use.",
                "What was not in the archive before is lost; restore the file, or start over with --fresh.",
            )
        changed = self.db.execute(
            "UPDATE owner SET heartbeat = heartbeat + 1, beat_ms = ? WHERE token = ?", (boot_ms(), token)
        ).rowcount
        if changed != 1:
            now = self.owner()
            raise Lost(
                f"This run was taken over by process {now.pid} on {now.machine} while this one stood still.",
                "Nothing is lost: the other process goes on. `inchworm status` shows it.",
            )

    # Runs and sessions

    def runs(self) -> list[RunInfo]:
        return [self._run(row) for row in self.db.execute(f"SELECT {_RUN} FROM run ORDER BY number")]

    def run(self, number: int | None = None) -> RunInfo | None:
        """The run of this number, or the last one."""
        where = "number = ?" if number is not None else "? IS NULL ORDER BY number DESC LIMIT 1"
        row = self.db.execute(f"SELECT {_RUN} FROM run WHERE {where}", (number,)).fetchone()
        return self._run(row) if row else None

    def _run(self, row: tuple[Any, ...]) -> RunInfo:
        run_id, number, mode, parent, state, seq, settings, disturbed, created, ended, *numbers = row
        seeds = self.db.execute(
            "SELECT number, url, host, path, kept, requests FROM seed WHERE run_id = ? ORDER BY number",
            (run_id,),
        )
        return RunInfo(
            run_id,
            number,
            mode,
            parent,
            RunState(state),
            seq,
            json.loads(settings),
            Counters(*numbers),
            tuple(Seed(*seed) for seed in seeds),
            disturbed,
            created,
            ended,
        )

    def create_run(self, token: int, run: RunInfo, changes: Changes) -> None:
        """A run and its seeds, in one transaction: there is no run without its first URLs."""
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.execute(
                "INSERT INTO run (run_id, number, mode, parent, state, settings, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    run.run_id,
                    run.number,
                    run.mode,
                    run.parent,
                    run.state,
                    json.dumps(dict(run.settings)),
                    run.created_ms,
                ),
            )
            self.db.executemany(
                "INSERT INTO seed (run_id, number, url, host, path) VALUES (?, ?, ?, ?, ?)",
                [(run.run_id, s.number, s.url, s.host, s.path) for s in changes.seeds],
            )
            self.write(changes)

    def set_run_state(self, token: int, run_id: int, state: RunState, now_ms: int) -> None:
        ended = now_ms if state in (RunState.COMPLETED, RunState.CANCELLED) else None
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.execute("UPDATE run SET state = ?, ended_ms = ? WHERE run_id = ?", (state, ended, run_id))

    def sessions(self, run_id: int) -> list[SessionInfo]:
        rows = self.db.execute(f"SELECT {_SESSION} FROM session WHERE run_id = ? ORDER BY number", (run_id,))
        return [_session(row) for row in rows]

    def all_sessions(self) -> list[SessionInfo]:
        return [_session(row) for row in self.db.execute(f"SELECT {_SESSION} FROM session ORDER BY token")]

    def start_session(self, token: int, run: RunInfo, settings: str, now_ms: int) -> int:
        """A new session of a run; sessions that nobody ended are marked as crashed. Its number in the run."""
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.execute(
                "UPDATE session SET state = 'failed', ended_by = 'crashed', ended_ms = ? WHERE state = 'in_progress'",
                (now_ms,),
            )
            number = self._max("SELECT MAX(number) FROM session WHERE run_id = ?", run.run_id) + 1
            self.db.execute(
                "INSERT INTO session (run_id, number, token, state, settings, start_seq, started_ms)"
                " VALUES (?, ?, ?, 'in_progress', ?, ?, ?)",
                (run.run_id, number, token, settings, run.seq, now_ms),
            )
            self.db.execute("UPDATE run SET state = 'in_progress', ended_ms = NULL WHERE run_id = ?", (run.run_id,))
            return number

    def end_session(self, token: int, session: SessionInfo, run_state: RunState) -> None:
        """Close a session and say how its run stands, in one transaction."""
        ended = session.ended_ms if run_state in (RunState.COMPLETED, RunState.CANCELLED) else None
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.execute(
                "UPDATE session SET state = ?, ended_by = ?, ended_ms = ?, message = ? WHERE run_id = ? AND number = ?",
                (
                    session.state,
                    session.ended_by,
                    session.ended_ms,
                    session.message,
                    session.run_id,
                    session.number,
                ),
            )
            self.db.execute(
                "UPDATE run SET state = ?, ended_ms = ? WHERE run_id = ?", (run_state, ended, session.run_id)
            )

    # What a session reads

    def lanes(self, run_id: int) -> list[int]:
        rows = self.db.execute("SELECT lane FROM lane WHERE run_id = ? AND pending > 0 ORDER BY lane", (run_id,))
        return [lane for (lane,) in rows]

    def has_several_lanes(self, run_id: int) -> bool:
        return len(self.db.execute("SELECT 1 FROM lane WHERE run_id = ? LIMIT 2", (run_id,)).fetchall()) > 1

    def pending(self, run_id: int, lane: int, after: Entry | None, limit: int) -> list[Entry]:
        start = (*after.place, after.url_id) if after else (-1, 0, 0)
        return [_entry(row) for row in self.db.execute(_PENDING, (run_id, lane, *start, limit))]

    def is_only_run(self, run_id: int) -> bool:
        return self.db.execute("SELECT 1 FROM run WHERE run_id <> ? LIMIT 1", (run_id,)).fetchone() is None

    def has_nofollow(self, run_id: int) -> bool:
        return bool(self._max("SELECT MAX(nofollow) FROM run WHERE run_id = ?", run_id))

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

    def _ids(self, _: int, asked: set[str], hashes: list[int]) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for chunk in _chunks(hashes, 200):
            query = f"SELECT url, url_id FROM url WHERE hash IN ({_marks(len(chunk))})"
            for url, url_id in self.db.execute(query, chunk):
                if url in asked:
                    found[url] = Known(url_id, True, State.PENDING, None, 0, 0)
        return found

    def _known(self, run_id: int, asked: set[str], hashes: list[int]) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for chunk in _chunks(hashes, 200):
            marks = _marks(len(chunk))
            for url, url_id, state, reason, depth, hops in self.db.execute(
                _KNOWN.format(marks=marks), (run_id, *chunk)
            ):
                if url in asked:
                    found[url] = Known(url_id, state is not None, _STATES[state], _REASONS[reason], depth, hops)
        return found

    def rows(self, run_id: int, url_ids: Sequence[int]) -> list[Row]:
        found: list[Row] = []
        for chunk in _chunks(url_ids, 200):
            found += self._rows(f"f.run_id = ? AND f.url_id IN ({_marks(len(chunk))})", run_id, *chunk)
        return found

    def outside(self, run_id: int) -> list[Row]:
        return self._rows("f.run_id = ? AND f.hops > 0 ORDER BY f.place_seq, f.place_idx, f.url_id", run_id)

    def failed(self, run_id: int, kind: str | None = None, url: str | None = None) -> list[Row]:
        where = (
            "f.run_id = ? AND f.state = 'done' AND f.kind IN ('page', 'resource') AND EXISTS (SELECT 1 FROM visit v"
            " WHERE v.run_id = f.run_id AND v.seq = f.done AND v.outcome = 'failed' AND v.failure = COALESCE(?, v.failure))"
            " AND u.url = COALESCE(?, u.url) ORDER BY f.done"
        )
        return self._rows(where, run_id, kind, url)

    def _rows(self, where: str, *arguments: Any) -> list[Row]:
        columns = ", ".join(f"f.{name}" for name in Standing._fields)
        rows = self.db.execute(
            f"SELECT f.url_id, u.url, f.kind, f.source, f.found_on, {columns} FROM frontier f JOIN url u USING (url_id) WHERE {where}",
            arguments,
        )
        return [
            Row(url_id, url, _KINDS[kind], _SOURCES[source], found_on, _standing(rest))
            for url_id, url, kind, source, found_on, *rest in rows
        ]

    def visit_of(self, run_id: int, url_id: int) -> VisitRow | None:
        columns = ", ".join(f'v."{name}"' for name in VisitRow._fields)
        row = self.db.execute(
            f"SELECT {columns} FROM frontier f JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " WHERE f.run_id = ? AND f.url_id = ? AND f.state = 'done'",
            (run_id, url_id),
        ).fetchone()
        return _visit_row(row) if row else None

    def owners_of(self, run_id: int, hashes: Iterable[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        for chunk in _chunks(sorted(hashes), 200):
            rows = self.db.execute(
                f"SELECT text_hash FROM visit WHERE run_id = ? AND outcome = 'page' AND text_hash IN ({_marks(len(chunk))})",
                (run_id, *chunk),
            )
            found.update(row[0] for row in rows)
        return found

    def originals(self, payloads: Iterable[bytes]) -> dict[bytes, Original]:
        found: dict[bytes, Original] = {}
        for chunk in _chunks(sorted(payloads), 200):
            rows = self.db.execute(
                "SELECT v.payload, COALESCE(v.request_url, u.url), v.at_ms FROM visit v JOIN url u USING (url_id)"
                f" WHERE v.file_id IS NOT NULL AND v.revisit = 0 AND v.payload IN ({_marks(len(chunk))})",
                chunk,
            )
            found |= {payload: Original(url, at_ms) for payload, url, at_ms in rows}
        return found

    def earlier_page(self, url_id: int, run_id: int, since_ms: int) -> tuple[VisitRow, list[Found]] | None:
        row = self.db.execute(
            f"SELECT {_VISIT} FROM visit WHERE url_id = ? AND run_id <> ? AND at_ms >= ?"
            " AND outcome IN ('page', 'duplicate', 'resource') ORDER BY at_ms DESC LIMIT 1",
            (url_id, run_id, since_ms),
        ).fetchone()
        if row is None:
            return None
        visit = _visit_row(row)
        return visit, self.found_of(visit)

    def found_of(self, visit: VisitRow) -> list[Found]:
        """A stored page's links, as they were found."""
        ids = visit.links
        by_id: dict[int, Found] = {}
        for chunk in _chunks(ids, 200):
            rows = self.db.execute(
                "SELECT url_id, u.url, MAX(f.request_url), MIN(f.kind) FROM frontier f JOIN url u USING (url_id)"
                f" WHERE url_id IN ({_marks(len(chunk))}) GROUP BY url_id",
                chunk,
            )
            for url_id, url, request_url, kind in rows:
                source = Source.RESOURCE if kind == Kind.RESOURCE else Source.SPIDER
                by_id[url_id] = Found(url, request_url or url, Kind(kind), source)
        return [by_id[url_id] for url_id in ids if url_id in by_id]

    def robots(self, run_id: int, origin: str | None = None) -> list[tuple[str, str, bytes | None]]:
        which = "" if origin is None else " AND origin = ?"
        query = f"SELECT origin, verdict, rules FROM robots r WHERE run_id = ? AND {_NEWEST_ROBOTS}{which}"
        return list(self.db.execute(query, (run_id,) if origin is None else (run_id, origin)))

    def robots_times(self, run_id: int) -> list[tuple[str, int]]:
        query = (
            "SELECT r.origin, v.at_ms FROM robots r JOIN visit v ON v.run_id = r.run_id AND v.seq = r.seq"
            f" WHERE r.run_id = ? AND {_NEWEST_ROBOTS}"
        )
        return list(self.db.execute(query, (run_id,)))

    def cookies(self, run_id: int) -> list[Cookie]:
        rows = self.db.execute(
            f"SELECT {_COOKIE}, MAX(seq) FROM cookie WHERE run_id = ? GROUP BY 1, 2, 3, 4 ORDER BY seq, idx", (run_id,)
        )
        return [
            Cookie(domain, path, name, value, bool(host_only), bool(secure), expires_ms)
            for domain, path, name, host_only, value, secure, expires_ms, _ in rows
        ]

    def last_index(self, run_id: int, seq: int) -> int:
        return self._max("SELECT MAX(place_idx) FROM frontier WHERE run_id = ? AND place_seq = ?", run_id, seq)

    def next_ids(self) -> tuple[int, int, int]:
        return (
            self._max("SELECT MAX(url_id) FROM url") + 1,
            self._max("SELECT MAX(host_id) FROM host") + 1,
            self._max("SELECT MAX(file_id) FROM archive") + 1,
        )

    def hosts(self) -> dict[str, int]:
        return dict(self.db.execute("SELECT name, host_id FROM host"))

    def quiet_hosts(self) -> list[tuple[str, int, int]]:
        return list(self.db.execute("SELECT name, wait_until_ms, wait_ms FROM host WHERE wait_until_ms > 0"))

    def carried_out(self, run_id: int) -> int:
        """The last request of another process that a commit of this run carried out."""
        return self._max("SELECT inbox_id FROM run WHERE run_id = ?", run_id)

    def suspects(self, run_id: int) -> dict[int, int]:
        return dict(self.db.execute("SELECT url_id, deaths FROM suspect WHERE run_id = ?", (run_id,)))

    def blame(self, token: int, run_id: int, url_ids: Sequence[int]) -> None:
        """The process died while reading these."""
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.executemany(
                "INSERT INTO suspect (run_id, url_id, deaths) VALUES (?, ?, 1)"
                " ON CONFLICT (run_id, url_id) DO UPDATE SET deaths = suspect.deaths + 1",
                [(run_id, url_id) for url_id in url_ids],
            )

    def files(self) -> list[tuple[int, int, str, int]]:
        """file_id, token, name and committed length of every archive file."""
        return list(self.db.execute("SELECT file_id, token, name, length FROM archive ORDER BY file_id"))

    def rename_file(self, token: int, file_id: int, name: str) -> None:
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            self.db.execute("UPDATE archive SET name = ?, token = ? WHERE file_id = ?", (name, token, file_id))

    # The commit

    @contextlib.contextmanager
    def committing(self, token: int) -> Iterator[None]:
        with plain_errors(self.path), transaction(self.db):
            self._fence(token)
            yield
            fault.point("in_commit")

    def write(self, changes: Changes) -> None:
        run_id, many = changes.run_id, self.db.executemany
        many("INSERT INTO url (url_id, hash, url) VALUES (?, ?, ?)", changes.urls)
        many("INSERT INTO host (host_id, name) VALUES (?, ?)", changes.hosts)
        many(_ADD_ENTRY, [_entry_row(run_id, entry) for entry in changes.entries])
        # What is moved and settled in one commit was moved first.
        many(_MOVE_ENTRY, [(*standing, run_id, url_id) for url_id, standing in changes.moved])
        settled = [(s._value_, r and r._value_, done, run_id, url_id) for s, r, done, url_id in changes.settled]
        many(_SETTLE, settled)
        many(
            "INSERT INTO undo (run_id, seq, subject, subject_id, before) VALUES (?, ?, ?, ?, ?)",
            [(run_id, *undo) for undo in changes.undo],
        )
        for visit in changes.visits:
            self._log_id += 1
            values = (*visit[:_LINKS], _pack(visit.links), *visit[_LINKS + 1 :])
            self.db.execute(_ADD_VISIT, (self._log_id, run_id, changes.session, *values))
        many(
            "INSERT INTO lane (run_id, lane, pending) VALUES (?, ?, ?)"
            " ON CONFLICT (run_id, lane) DO UPDATE SET pending = lane.pending + excluded.pending",
            [(run_id, lane, change) for lane, change in changes.lanes.items() if change],
        )
        many(
            "INSERT INTO robots (run_id, origin, seq, verdict, rules) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (run_id, origin, seq) DO UPDATE SET verdict = excluded.verdict, rules = excluded.rules",
            [(run_id, *row) for row in changes.robots],
        )
        many(
            "INSERT INTO archive (file_id, run_id, token, name, length) VALUES (?, ?, (SELECT token FROM owner), ?, ?)"
            " ON CONFLICT (file_id) DO UPDATE SET length = excluded.length",
            [(file_id, run_id, name, length) for name, (file_id, length) in changes.files.items()],
        )
        many("UPDATE host SET wait_until_ms = ?, wait_ms = ? WHERE host_id = ?", changes.quiet)
        many("DELETE FROM suspect WHERE run_id = ? AND url_id = ?", [(run_id, url_id) for url_id in changes.pardoned])
        many(
            f"INSERT OR REPLACE INTO cookie (run_id, seq, idx, {_COOKIE}) VALUES ({_marks(10)})",
            [
                (run_id, seq, idx, c.domain, c.path, c.name, c.host_only, c.value, c.secure, c.expires_ms)
                for seq, idx, c in changes.cookies
            ],
        )
        self._write_totals(changes)

    def _write_totals(self, changes: Changes) -> None:
        if changes.counters.known > 1.25 * self._cache_for:
            self._cache_for = changes.counters.known
            size_cache(self.db, self._cache_for)
        numbers = [getattr(changes.counters, name) for name in _COUNTERS]
        self.db.execute(
            "UPDATE run SET seq = ?, disturbed = ?, inbox_id = MAX(inbox_id, ?), nofollow = MAX(nofollow, ?),"
            f" {', '.join(f'{name} = ?' for name in _COUNTERS)} WHERE run_id = ?",
            (changes.seq, changes.disturbed, changes.inbox_id, changes.nofollow, *numbers, changes.run_id),
        )
        self.db.executemany(
            "UPDATE seed SET host = ?, path = ?, kept = ?, requests = ? WHERE run_id = ? AND number = ?",
            [(s.host, s.path, s.kept, s.requests, changes.run_id, s.number) for s in changes.seeds],
        )
        self.db.execute(
            "UPDATE session SET requests = ?, size = ? WHERE run_id = ? AND number = ?",
            (changes.requests, changes.size, changes.run_id, changes.session),
        )

    def _max(self, query: str, *arguments: Any) -> int:
        return int(self.db.execute(query, arguments).fetchone()[0] or 0)


def _is_same_file(known: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(known, path.stat())
    except OSError:
        return False


def _pack(ids: Sequence[int]) -> bytes | None:
    packed = array.array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes() or None


def _unpack(blob: bytes | None) -> list[int]:
    packed = array.array("I", blob or b"")
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _entry_row(run_id: int, entry: NewEntry) -> tuple[Any, ...]:
    # Plain strings: SQLite's binding looks long at a member of an enum before it takes it for one.
    url_id, kind, source, found, found_on, lastmod, (state, reason, *rest) = entry
    why = reason and reason._value_
    return run_id, url_id, kind._value_, source._value_, found, found_on, lastmod, state._value_, why, *rest


def _entry(row: tuple[Any, ...]) -> Entry:
    url_id, url, request_url, kind, source, seed, depth, hops, lane, place_seq, place_idx, *rest = row
    attempts, not_before_ms, chain, tried = rest
    return Entry(
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
    )


def _standing(row: Sequence[Any]) -> Standing:
    state, reason, *rest = row
    return Standing(_STATES[state], _REASONS[reason], *rest)


def _session(row: tuple[Any, ...]) -> SessionInfo:
    run_id, number, token, state, ended_by, started, ended, requests, size, message = row
    by = EndedBy(ended_by) if ended_by else None
    return SessionInfo(run_id, number, token, SessionState(state), by, started, ended, requests, size, message)


def _visit_row(row: Sequence[Any]) -> VisitRow:
    return VisitRow._make((*row[:_LINKS], tuple(_unpack(row[_LINKS])), *row[_LINKS + 1 :]))
