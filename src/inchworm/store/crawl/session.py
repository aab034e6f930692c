"""crawl.db: one crawl, its runs, their frontier and visits.

One writer ever: the owner of the crawl's run. Everybody else opens the file read-only. Every commit carries
the owner's token and is refused when somebody else has taken a newer one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from inchworm import fault
from inchworm.errors import Broken, Lost
from inchworm.model import (
    Choice,
    Cookie,
    Counters,
    DownHost,
    EndedBy,
    FoundUrl,
    FrontierEntry,
    Kind,
    Probe,
    Reason,
    RunInfo,
    RunState,
    Seed,
    SessionInfo,
    SessionState,
    Source,
    State,
)
from inchworm.ports import Commit, Known, Original, RowState, StoredRow, VisitRow
from inchworm.rules.order.order import CONTROL
from inchworm.rules.web.url import hash64
from inchworm.settings import NamedSettings
from inchworm.store.crawl import commit, votes
from inchworm.store.crawl.commit import COOKIE, COUNTERS, LINKS, marks, unpack
from inchworm.store.crawl.earlier import IS_WHOLE, AcrossRuns
from inchworm.store.database import Database
from inchworm.store.lock import Life, boot_ms
from inchworm.store.sqlite import open_file

_RUN = "run_id, number, mode, parent, state, seq, settings, disturbed, created_ms, ended_ms, origin, origin_seq,"
_RUN += f" horizon, swept, concluded, alarm, follows, beside, {', '.join(COUNTERS)}"
_WORKED_ON = "GREATEST(token, COALESCE((SELECT MAX(s.token) FROM session s WHERE s.run_id = run.run_id), 0))"
"""The token of the last owner that made a run or worked on it."""

_NEWEST_ROBOTS = "r.seq = (SELECT MAX(seq) FROM robots n WHERE n.run_id = r.run_id AND n.origin = r.origin)"
_SESSION = "run_id, number, token, state, ended_by, started_ms, ended_ms, requests, size, message, unanswered"
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
_VISIT = ", ".join(f'v."{name}"' for name in VisitRow._fields)
_MOST = 1 << 62

# Words of the store as members of their enums: a dict is several times faster than asking the enum. No row: pending.
_STATES: dict[str | None, State] = {None: State.PENDING, **{state.value: state for state in State}}
_REASONS: dict[str | None, Reason | None] = {None: None, **{reason.value: reason for reason in Reason}}
_KINDS: dict[str, Kind] = {kind.value: kind for kind in Kind}
_SOURCES: dict[str, Source] = {source.value: source for source in Source}


class CrawlStore(AcrossRuns):
    """One crawl's file, for its owner or for a reader."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self.db: Database = open_file(path, "crawl", read_only)
        self._log_id = 0
        self._cache_for = 20_000

    def close(self) -> None:
        self.db.close()

    # Who may write

    def take(self, me: Life) -> int:
        """Become the owner: a new token, after which no older one can commit."""
        with self.db.transaction():
            self.db.execute(
                "UPDATE owner SET token = token + 1, heartbeat = heartbeat + 1, beat_ms = ?, boot = ?, pid = ?, machine = ?",
                (me.beat_ms, me.boot, me.pid, me.machine),
            )
            token = self.db.execute("SELECT token FROM owner").fetchone()[0]
        self.read_log()
        return int(token)

    def read_log(self) -> None:
        """Go on counting where the log ends."""
        newest = "SELECT GREATEST((SELECT COALESCE(MAX(log_id), 0) FROM visit), (SELECT COALESCE(MAX(log_id), 0) FROM undone))"
        self._log_id = self._max(newest)

    def owner(self) -> Life:
        """The last owner's last sign of life."""
        return Life(*self.db.execute("SELECT pid, machine, boot, beat_ms FROM owner").fetchone())

    def beat(self, token: int) -> None:
        with self.db.transaction():
            self._fence(token)

    def _fence(self, token: int) -> None:
        if not self.db.is_same():
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

    def runs(self, before: int | None = None, limit: int | None = None) -> list[RunInfo]:
        """Runs in their order: all, or the last so many before the one of this number."""
        query = f"SELECT {_RUN} FROM run WHERE number < ? ORDER BY number DESC LIMIT ?"
        rows = self.db.execute(query, (_MOST if before is None else before, _MOST if limit is None else limit))
        return [self._run(row) for row in rows][::-1]

    def run(self, number: int | None = None) -> RunInfo | None:
        """The run of this number. Without one: the run that was worked on last, while it is open; else the last one of
        the line."""
        if number is not None:
            return self._one_run("WHERE number = ?", number)
        last = self._one_run(f"ORDER BY {_WORKED_ON} DESC, number DESC LIMIT 1")
        is_open = last is not None and last.state in (RunState.IN_PROGRESS, RunState.PAUSED)
        return last if is_open else self.line_end()

    def newest_branch(self, number: int) -> RunInfo | None:
        """The last run that branched off from this one."""
        return self._one_run("WHERE origin = ? ORDER BY number DESC LIMIT 1", number)

    def newest_number(self) -> int:
        return self._max("SELECT MAX(number) FROM run")

    def line_end(self) -> RunInfo | None:
        """The last run of the line, on which the next one follows."""
        return self._one_run("WHERE beside = 0 ORDER BY number DESC LIMIT 1")

    def _one_run(self, which: str, *arguments: object) -> RunInfo | None:
        row = self.db.execute(f"SELECT {_RUN} FROM run {which}", arguments).fetchone()
        return self._run(row) if row else None

    def last_change(self) -> RunInfo | None:
        """The last run of the line that found something new, modified or deleted."""
        return self._one_run(
            "WHERE mode != 'baseline' AND beside = 0 AND new + modified + deleted > 0 ORDER BY number DESC LIMIT 1"
        )

    def last_session(self, run_id: int) -> SessionInfo | None:
        query = f"SELECT {_SESSION} FROM session WHERE run_id = ? ORDER BY number DESC LIMIT 1"
        row = self.db.execute(query, (run_id,)).fetchone()
        return _session(row) if row else None

    def session_settings(self, run_id: int) -> NamedSettings:
        """What the last session of a run was told; nothing when there was none."""
        query = "SELECT settings FROM session WHERE run_id = ? ORDER BY number DESC LIMIT 1"
        row = self.db.execute(query, (run_id,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def _run(self, row: tuple[Any, ...]) -> RunInfo:
        run_id, number, mode, parent, state, seq, settings, disturbed, created, ended, *rest = row
        origin, origin_seq, horizon, swept, concluded, alarm, follows, beside, *numbers = rest
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
            origin,
            origin_seq,
            horizon,
            swept,
            concluded,
            alarm,
            follows,
            bool(beside),
        )

    def create_run(self, token: int, run: RunInfo, changes: Commit) -> None:
        """A run and its seeds, in one transaction: there is no run without its first URLs."""
        with self.db.transaction():
            self._fence(token)
            self.db.execute(
                "INSERT INTO run (run_id, number, mode, parent, state, settings, created_ms, horizon, follows, token)"
                f" VALUES ({marks(10)})",
                (
                    run.run_id,
                    run.number,
                    run.mode,
                    run.parent,
                    run.state,
                    json.dumps(dict(run.settings)),
                    run.created_ms,
                    run.horizon,
                    run.follows,
                    token,
                ),
            )
            self.db.executemany(
                "INSERT INTO seed (run_id, number, url, host, path) VALUES (?, ?, ?, ?, ?)",
                [(run.run_id, s.number, s.url, s.host, s.path) for s in changes.seeds],
            )
            self.write(changes)

    def set_run_state(self, token: int, run_id: int, state: RunState, now_ms: int) -> None:
        ended = now_ms if state in (RunState.COMPLETED, RunState.CANCELLED) else None
        with self.db.transaction():
            self._fence(token)
            self.db.execute("UPDATE run SET state = ?, ended_ms = ? WHERE run_id = ?", (state, ended, run_id))

    def sessions(self, run_id: int) -> list[SessionInfo]:
        rows = self.db.execute(f"SELECT {_SESSION} FROM session WHERE run_id = ? ORDER BY number", (run_id,))
        return [_session(row) for row in rows]

    def all_sessions(self) -> list[SessionInfo]:
        return [_session(row) for row in self.db.execute(f"SELECT {_SESSION} FROM session ORDER BY token")]

    def is_unfinished(self, run_id: int) -> bool:
        """Whether a session of this run was begun and never ended: its process died."""
        query = "SELECT 1 FROM session WHERE run_id = ? AND state = 'in_progress' LIMIT 1"
        return self.db.execute(query, (run_id,)).fetchone() is not None

    def start_session(self, token: int, run: RunInfo, settings: str, now_ms: int) -> int:
        """A new session of a run; sessions that nobody ended are marked as crashed. Its number in the run."""
        with self.db.transaction():
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
        with self.db.transaction():
            self._fence(token)
            self.db.execute(
                "UPDATE session SET state = ?, ended_by = ?, ended_ms = ?, message = ?, unanswered = ?"
                " WHERE run_id = ? AND number = ?",
                (
                    session.state,
                    session.ended_by,
                    session.ended_ms,
                    session.message,
                    session.unanswered,
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

    def pending(self, run_id: int, lane: int, after: FrontierEntry | None, limit: int) -> list[FrontierEntry]:
        start = (*after.place, after.url_id) if after else (-2, 0, 0)
        return [_entry(row) for row in self.db.execute(_PENDING, (run_id, lane, *start, limit))]

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
            for row in self.db.execute(query, (run_id, lane, *arguments, len(skip) + 1)):
                if row[0] not in skip:
                    return _entry(row)
        return None

    def count(self, run_id: int, upto: int) -> int:
        return votes.count_some(self.db, run_id, upto)

    def is_only_run(self, run_id: int) -> bool:
        return self.db.execute("SELECT 1 FROM run WHERE run_id <> ? LIMIT 1", (run_id,)).fetchone() is None

    def was_full(self, number: int, page_limit: int) -> bool:
        query = "SELECT 1 FROM run r JOIN seed s USING (run_id) WHERE r.number = ? AND s.kept >= ? LIMIT 1"
        return self.db.execute(query, (number, page_limit)).fetchone() is not None

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
        for url, url_id in self.db.among("SELECT url, url_id FROM url WHERE hash = ANY (?)", hashes):
            if url in asked:
                found[url] = Known(url_id, True, State.PENDING, None, 0, 0)
        return found

    def _known(self, run_id: int, asked: set[str], hashes: list[int]) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for url, *standing in self.db.among(_KNOWN, hashes, run_id):
            if url in asked:
                found[url] = _known(*standing)
        return found

    def links(self, run_id: int, earlier: int, url_ids: Iterable[int]) -> list[tuple[FoundUrl, Known]]:
        found: list[tuple[FoundUrl, Known]] = []
        for url_id, url, request_url, kind, rank, *standing in self.db.among(_LINKS, url_ids, run_id, earlier):
            source = Source.RESOURCE if kind == Kind.RESOURCE else Source.SPIDER
            link = FoundUrl(url, request_url or url, _KINDS[kind], source, rank=rank)
            found.append((link, _known(url_id, *standing)))
        return found

    def rows(self, run_id: int, url_ids: Sequence[int]) -> list[StoredRow]:
        return [
            _row(row) for row in self.db.among(f"{_ROW} WHERE f.run_id = ? AND f.url_id = ANY (?)", url_ids, run_id)
        ]

    def all_rows(self, run_id: int) -> list[StoredRow]:
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

    def _rows(self, where: str, *arguments: object) -> list[StoredRow]:
        return [_row(row) for row in self.db.execute(f"{_ROW} WHERE {where}", arguments)]

    def visit_of(self, run_id: int, url_id: int) -> VisitRow | None:
        row = self.db.execute(
            f"SELECT {_VISIT} FROM frontier f JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            " WHERE f.run_id = ? AND f.url_id = ? AND f.state = 'done'",
            (run_id, url_id),
        ).fetchone()
        return _visit_row(row) if row else None

    def owners_of(self, run_id: int, hashes: Iterable[bytes]) -> set[bytes]:
        query = "SELECT text_hash FROM visit WHERE run_id = ? AND outcome = 'page' AND text_hash = ANY (?)"
        return {text_hash for (text_hash,) in self.db.among(query, sorted(hashes), run_id)}

    def originals(self, payloads: Iterable[bytes]) -> dict[bytes, Original]:
        rows = self.db.among(
            "SELECT v.payload, COALESCE(v.request_url, u.url), v.at_ms, a.name FROM visit v JOIN url u USING (url_id)"
            " JOIN archive a USING (file_id)"
            f" WHERE v.file_id IS NOT NULL AND v.revisit = 0 AND v.payload = ANY (?) AND {IS_WHOLE} ORDER BY v.log_id",
            sorted(payloads),
        )
        return {payload: Original(url, at_ms, file=name) for payload, url, at_ms, name in rows}

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
            f"SELECT {COOKIE} FROM cookie c WHERE run_id = ? AND seq = (SELECT MAX(seq) FROM cookie n"
            " WHERE n.run_id = c.run_id AND n.domain = c.domain AND n.path = c.path AND n.name = c.name"
            " AND n.host_only = c.host_only) ORDER BY seq, idx",
            (run_id,),
        )
        return [
            Cookie(domain, path, name, value, bool(host_only), bool(secure), expires_ms)
            for domain, path, name, host_only, value, secure, expires_ms in rows
        ]

    def probes(self, run_id: int) -> list[Probe]:
        rows = self.db.execute("SELECT directory, status, is_excuse, text_hash FROM probe WHERE run_id = ?", (run_id,))
        return [Probe(directory, status, bool(excuse), text_hash) for directory, status, excuse, text_hash in rows]

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

    def answered(self) -> list[str]:
        return [origin for (origin,) in self.db.execute("SELECT origin FROM origin")]

    def down(self) -> list[DownHost]:
        query = (
            "SELECT origin, down_kind, down_message, down_since_ms, down_sessions FROM origin"
            " WHERE down_since_ms > 0 ORDER BY down_since_ms, origin"
        )
        return [DownHost(*row) for row in self.db.execute(query)]

    def carried_out(self, run_id: int) -> int:
        """The last request of another process that a commit of this run carried out."""
        return self._max("SELECT inbox_id FROM run WHERE run_id = ?", run_id)

    def suspects(self, run_id: int) -> dict[int, int]:
        return dict(self.db.execute("SELECT url_id, deaths FROM suspect WHERE run_id = ?", (run_id,)))

    def blame(self, token: int, run_id: int, url_ids: Sequence[int]) -> None:
        """The process died while reading these."""
        with self.db.transaction():
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
        with self.db.transaction():
            self._fence(token)
            self.db.execute("UPDATE archive SET name = ?, token = ? WHERE file_id = ?", (name, token, file_id))

    # The commit

    @contextlib.contextmanager
    def committing(self, token: int) -> Iterator[None]:
        with self.db.transaction():
            self._fence(token)
            yield
            fault.point("in_commit")

    def write(self, changes: Commit) -> None:
        if changes.counters.known > 1.25 * self._cache_for:
            self._cache_for = changes.counters.known
            self.db.expect(self._cache_for)
        self._log_id = commit.write(self.db, changes, self._log_id)

    def log(self) -> int:
        """The next number of the log, for an entry that is no visit."""
        self._log_id += 1
        return self._log_id

    def _max(self, query: str, *arguments: object) -> int:
        return int(self.db.execute(query, arguments).fetchone()[0] or 0)


def _entry(row: tuple[Any, ...]) -> FrontierEntry:
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


def _row(row: Sequence[Any]) -> StoredRow:
    url_id, url, kind, source, found_on, *rest = row
    return StoredRow(url_id, url, _KINDS[kind], _SOURCES[source], found_on, _standing(rest))


def _standing(row: Sequence[Any]) -> RowState:
    state, reason, *rest = row
    return RowState(_STATES[state], _REASONS[reason], *rest)


def _session(row: tuple[Any, ...]) -> SessionInfo:
    run_id, number, token, state, ended_by, *rest = row
    by = EndedBy(ended_by) if ended_by else None
    return SessionInfo(run_id, number, token, SessionState(state), by, *rest)


def _visit_row(row: Sequence[Any]) -> VisitRow:
    return VisitRow._make((*row[:LINKS], tuple(unpack(row[LINKS])), *row[LINKS + 1 :]))
