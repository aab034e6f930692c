"""Writing the rows of one commit."""

from __future__ import annotations

import array
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from inchworm import fault
from inchworm.model import Counters, Probe, Spot
from inchworm.ports import Commit, Judgement, NewCheckpoint, NewFrontierRow, RowState, VisitRow
from inchworm.store.crawl.owner import Ownership
from inchworm.store.database import Database

COUNTERS = tuple(Counters.__slots__)
COOKIE = "domain, path, name, host_only, value, secure, expires_ms"
STANDING = ", ".join(RowState._fields)
VISIT = ", ".join(f'"{name}"' for name in VisitRow._fields)
LINKS = VisitRow._fields.index("links")


PROBE = 'directory, seq, request_url, status, is_excuse, text_hash, payload, size, file_id, "offset", length'


def marks(count: int) -> str:
    return ", ".join("?" * count)


MOVE_ENTRY = f"UPDATE frontier SET ({STANDING}) = ({marks(len(RowState._fields))}) WHERE run_id = ? AND url_id = ?"
JUDGE_VISIT = f"UPDATE visit SET ({', '.join(Judgement._fields)}) = ({marks(len(Judgement._fields))}) WHERE run_id = ? AND seq = ?"
ADD_CHECKPOINT = (
    "INSERT INTO checkpoint (number, run_id, state, seq, type, substate, created_ms, totals)"
    f" VALUES ((SELECT COALESCE(MAX(number) + 1, 0) FROM checkpoint), {marks(7)})"
)
_ADD_ENTRY = (
    f"INSERT INTO frontier (run_id, url_id, kind, source, found, found_on, lastmod, unlinked, {STANDING})"
    f" VALUES ({marks(8 + len(RowState._fields))})"
)
_SETTLE = "UPDATE frontier SET state = ?, reason = ?, done = ? WHERE run_id = ? AND url_id = ?"
_ADD_VISIT = f"INSERT INTO visit (log_id, run_id, session, {VISIT}) VALUES ({marks(3 + len(VisitRow._fields))})"


class CommitWriter:
    """Puts what a session found into the tables, under the next numbers of the log."""

    def __init__(self, db: Database, owner: Ownership) -> None:
        self._db, self._owner = db, owner
        self._log_id = 0
        self._cache_for = 20_000

    @contextlib.contextmanager
    def committing(self, token: int) -> Iterator[None]:
        """One durable transaction around several `write`s."""
        with self._owner.transaction(token):
            yield
            fault.point("in_commit")

    def write(self, changes: Commit) -> None:
        """Put rows into the open transaction."""
        if changes.counters.known > 1.25 * self._cache_for:
            self._cache_for = changes.counters.known
            self._db.expect(self._cache_for)
        self._log_id = write(self._db, changes, self._log_id)

    def next_log_id(self) -> int:
        """The next number of the log, for an entry that is no visit."""
        self._log_id += 1
        return self._log_id

    def read_log(self) -> None:
        """Go on counting where the log ends."""
        newest = "SELECT GREATEST((SELECT COALESCE(MAX(log_id), 0) FROM visit), (SELECT COALESCE(MAX(log_id), 0) FROM undone))"
        self._log_id = largest(self._db, newest)

    def next_ids(self) -> tuple[int, int, int]:
        """The next free url_id, host_id and file_id."""
        return (
            largest(self._db, "SELECT MAX(url_id) FROM url") + 1,
            largest(self._db, "SELECT MAX(host_id) FROM host") + 1,
            largest(self._db, "SELECT MAX(file_id) FROM archive") + 1,
        )


def largest(db: Database, query: str, *values: object) -> int:
    """The one number that a query brings; 0 where there is none."""
    return int(db.execute(query, values).fetchone()[0] or 0)


def write(db: Database, changes: Commit, log_id: int) -> int:
    """Put rows into the open transaction. `log_id` is the last one given; the new last one comes back."""
    _write_frontier(db, changes)
    log_id = _write_visits(db, changes, log_id)
    _write_knowledge(db, changes)
    _write_totals(db, changes)
    return log_id


def _write_frontier(db: Database, changes: Commit) -> None:
    run_id, many = changes.run_id, db.executemany
    many("INSERT INTO url (url_id, hash, url) VALUES (?, ?, ?)", changes.urls)
    many("INSERT INTO host (host_id, name) VALUES (?, ?)", changes.hosts)
    many(_ADD_ENTRY, [_entry_row(run_id, entry) for entry in changes.entries])
    # What is moved and settled in one commit was moved first.
    many(MOVE_ENTRY, [(*standing, run_id, url_id) for url_id, standing in changes.moved])
    settled = [(s._value_, r and r._value_, done, run_id, url_id) for s, r, done, url_id in changes.settled]
    many(_SETTLE, settled)
    many(
        "INSERT INTO promise (run_id, url_id, own, first) VALUES (?, ?, ?, ?)",
        [(run_id, *promise) for promise in changes.promises],
    )
    many(
        "INSERT INTO undo (run_id, seq, subject, subject_id, before) VALUES (?, ?, ?, ?, ?)",
        [(run_id, *undo) for undo in changes.undo],
    )
    many(
        "INSERT INTO lane (run_id, lane, pending, opened) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run_id, lane) DO UPDATE SET pending = lane.pending + excluded.pending",
        [
            (run_id, lane, change, changes.opened.get(lane, changes.seq))
            for lane, change in changes.lanes.items()
            if change
        ],
    )


def _write_visits(db: Database, changes: Commit, log_id: int) -> int:
    added = [
        (log_id + number, changes.run_id, changes.session, *visit[:LINKS], _pack(visit.links), *visit[LINKS + 1 :])
        for number, visit in enumerate(changes.visits, 1)
    ]
    db.executemany(_ADD_VISIT, added)
    judged = [(*judgement, changes.run_id, seq) for seq, judgement in changes.judged]
    db.executemany(JUDGE_VISIT, judged)
    db.executemany(
        "INSERT INTO archive (file_id, run_id, token, name, length) VALUES (?, ?, (SELECT token FROM owner), ?, ?)"
        " ON CONFLICT (file_id) DO UPDATE SET length = excluded.length",
        [(file_id, changes.run_id, name, length) for name, (file_id, length) in changes.files.items()],
    )
    return log_id + len(added)


def _probe_row(probe: Probe, seq: int, file_id: int, spot: Spot) -> tuple[object, ...]:
    record = probe.record
    assert record is not None, "what is kept was asked for"
    said = (probe.status, probe.is_excuse, probe.text_hash, record.digest, len(record.payload))
    return probe.directory, seq, record.url, *said, file_id, spot.offset, spot.length


def _write_knowledge(db: Database, changes: Commit) -> None:
    """What was learned of hosts and pages on the way."""
    run_id, many = changes.run_id, db.executemany
    many(
        "INSERT INTO robots (run_id, origin, seq, verdict, rules) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run_id, origin, seq) DO UPDATE SET verdict = excluded.verdict, rules = excluded.rules",
        [(run_id, *row) for row in changes.robots],
    )
    many(
        "INSERT INTO origin (origin) VALUES (?) ON CONFLICT (origin) DO NOTHING",
        [(origin,) for origin in changes.answered],
    )
    many(
        "UPDATE origin SET down_kind = ?, down_message = ?, down_since_ms = ?, down_sessions = ? WHERE origin = ?",
        [(d.kind, d.message, d.since_ms, d.sessions, d.origin) for d in changes.down],
    )
    many("UPDATE origin SET down_since_ms = 0, down_sessions = 0 WHERE origin = ?", [(one,) for one in changes.up])
    # A quiet that was asked for is not shortened by an answer to a request that was under way then.
    many(
        "UPDATE host SET wait_until_ms = ?, wait_ms = ? WHERE host_id = ? AND wait_until_ms < ?",
        [(until_ms, wait_ms, host_id, until_ms) for until_ms, wait_ms, host_id in changes.quiet],
    )
    many("DELETE FROM suspect WHERE run_id = ? AND url_id = ?", [(run_id, url_id) for url_id in changes.pardoned])
    many(
        f"INSERT INTO cookie (run_id, seq, idx, {COOKIE}) VALUES ({marks(10)})"
        " ON CONFLICT (run_id, domain, path, name, host_only, seq) DO UPDATE SET idx = excluded.idx,"
        " value = excluded.value, secure = excluded.secure, expires_ms = excluded.expires_ms",
        [
            (run_id, seq, idx, c.domain, c.path, c.name, c.host_only, c.value, c.secure, c.expires_ms)
            for seq, idx, c in changes.cookies
        ],
    )
    many(
        f"INSERT INTO probe (run_id, {PROBE}) VALUES ({marks(12)})", [(run_id, *_probe_row(*p)) for p in changes.probes]
    )
    many(
        "INSERT INTO distrust (run_id, host_id, validator, seq, why) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run_id, host_id, validator) DO NOTHING",
        [(run_id, *row) for row in changes.distrusted],
    )
    many(ADD_CHECKPOINT, [checkpoint_row(run_id, "crawling", one) for one in changes.checkpoints])


def _write_totals(db: Database, changes: Commit) -> None:
    numbers = [getattr(changes.counters, name) for name in COUNTERS]
    db.execute(
        "UPDATE run SET seq = ?, disturbed = ?, inbox_id = GREATEST(inbox_id, ?), nofollow = GREATEST(nofollow, ?), swept = ?,"
        f" concluded = ?, alarm = ?, {', '.join(f'{name} = ?' for name in COUNTERS)} WHERE run_id = ?",
        (
            changes.seq,
            changes.disturbed,
            changes.inbox_id,
            changes.nofollow,
            changes.swept,
            changes.concluded,
            changes.alarm,
            *numbers,
            changes.run_id,
        ),
    )
    db.executemany(
        "UPDATE seed SET host = ?, path = ?, kept = ?, requests = ? WHERE run_id = ? AND number = ?",
        [(s.host, s.path, s.kept, s.requests, changes.run_id, s.number) for s in changes.seeds],
    )
    db.execute(
        "UPDATE session SET requests = ?, size = ? WHERE run_id = ? AND number = ?",
        (changes.requests, changes.size, changes.run_id, changes.session),
    )


def checkpoint_row(run_id: int, state: str, new: NewCheckpoint) -> tuple[object, ...]:
    totals = json.dumps({**asdict(new.counters), "disturbed": new.disturbed})
    return run_id, state, new.seq, new.type.value, new.substate.value, new.created_ms, totals


def _entry_row(run_id: int, entry: NewFrontierRow) -> tuple[object, ...]:
    # Plain strings: SQLite's binding looks long at a member of an enum before it takes it for one.
    url_id, kind, source, found, found_on, lastmod, (state, reason, *rest), unlinked = entry
    why = reason and reason._value_
    first = run_id, url_id, kind._value_, source._value_, found, found_on, lastmod, unlinked
    return *first, state._value_, why, *rest


def _pack(ids: Sequence[int]) -> bytes | None:
    packed = array.array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes() or None


def unpack(blob: bytes | None) -> list[int]:
    """The ids that a visit's links were packed from."""
    packed = array.array("I", blob or b"")
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()
