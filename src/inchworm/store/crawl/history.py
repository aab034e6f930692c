"""Checkpoints: making them, going back to one, and branching off from one.

A checkpoint is a position in a run's sequence. Rows know the seq at which they were found and settled, and what was
changed in place left its old values in `undo`. Going back therefore touches only what came later, however much there is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from inchworm import fault
from inchworm.model import (
    CRAWLING,
    CheckpointInfo,
    CheckpointType,
    Counters,
    RunInfo,
    RunState,
    Substate,
)
from inchworm.ports import Judgement, NewCheckpoint, RowState
from inchworm.rules.order import order
from inchworm.store.crawl import votes
from inchworm.store.crawl.commit import (
    ADD_CHECKPOINT,
    COUNTERS,
    JUDGE_VISIT,
    MOVE_ENTRY,
    PROBE,
    STANDING,
    VISIT,
    checkpoint_row,
)
from inchworm.store.crawl.joins import ADDRESS, ROW
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import Row

_CHECKPOINT = (
    "SELECT c.number, c.run_id, r.number, c.seq, c.type, c.state, c.substate, c.created_ms, c.totals FROM checkpoint c"
    " JOIN run r USING (run_id) WHERE c.deleted = 0"
)
_OLDEST = (
    "SELECT subject_id, before FROM undo WHERE undo_id IN"
    " (SELECT MIN(undo_id) FROM undo WHERE run_id = ? AND seq > ? AND subject = ? GROUP BY subject_id)"
)
_WITHDRAW = (
    f"INSERT INTO withdrawn SELECT DISTINCT CAST(:now AS BIGINT), v.run_id, u.url, {ADDRESS}"
    " FROM visit v JOIN url u USING (url_id) WHERE v.run_id = :run AND v.kind = 'page' AND (v.seq > :seq OR v.seq IN"
    " (SELECT subject_id FROM undo WHERE run_id = :run AND seq > :seq AND subject = 'visit'))"
)
"""What a run has told of pages after a seq, or judged anew."""
_LATER = ("visit", "robots", "cookie", "probe", "distrust", "undo")
"""Tables whose rows of a run go when their seq is undone."""

_TOUCHED = "CREATE TEMP TABLE IF NOT EXISTS touched (url_id BIGINT PRIMARY KEY) /*sqlite WITHOUT ROWID*/"

_STATE = ("state", "done", "place_seq", "place_idx")

# CROSS JOIN tells SQLite to begin with the left table, which is small: what is undone, or the runs there are.


class History:
    """The past of a crawl's runs."""

    def __init__(self, store: CrawlStore) -> None:
        self._store = store
        self._db = store.db

    # Checkpoints

    def checkpoints(self) -> list[CheckpointInfo]:
        """All there are, oldest first."""
        return [_checkpoint(row) for row in self._db.execute(f"{_CHECKPOINT} ORDER BY c.number")]

    def checkpoint(self, number: int) -> CheckpointInfo | None:
        row = self._db.execute(f"{_CHECKPOINT} AND c.number = ?", (number,)).fetchone()
        return _checkpoint(row) if row else None

    def add(self, token: int, run: RunInfo, kind: CheckpointType, now_ms: int) -> CheckpointInfo:
        """A checkpoint of the run as it stands; the one that is there already when nothing happened since."""
        state = _state(run)
        same = f"{_CHECKPOINT} AND c.run_id = ? AND c.seq = ? AND c.type = ? AND c.state = ?"
        with self._store.commits.committing(token):
            found = self._db.execute(same, (run.run_id, run.seq, kind, state)).fetchone()
            if found is None:
                new = NewCheckpoint(run.seq, kind, self._substate(run), now_ms, run.counters, run.disturbed)
                self._db.execute(ADD_CHECKPOINT, checkpoint_row(run.run_id, state, new))
                found = self._db.execute(f"{_CHECKPOINT} ORDER BY c.number DESC LIMIT 1").fetchone()
        return _checkpoint(found)

    def now(self, run: RunInfo) -> CheckpointInfo:
        """The run as it stands, as if a checkpoint had been made."""
        substate, totals = self._substate(run), (run.counters, run.disturbed)
        return CheckpointInfo(
            -1,
            run.run_id,
            run.number,
            run.seq,
            CheckpointType.MANUAL,
            _state(run),
            substate,
            run.created_ms,
            *totals,
            0,
        )

    def _substate(self, run: RunInfo) -> Substate:
        if not run.seq:
            return Substate.SEEDING
        if not run.counters.pending:
            return Substate.FINISHING
        kind = self._db.execute(
            "SELECT kind FROM visit WHERE run_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1", (run.run_id, run.seq)
        ).fetchone()
        return Substate.SITEMAPS if kind and kind[0] in ("robots", "sitemap") else Substate.DOWNLOADING_PAGES

    def forget(self, token: int, numbers: list[int]) -> None:
        """Delete checkpoints. What they stood for stays; their numbers are not given again."""
        with self._store.commits.committing(token):
            self._db.executemany("UPDATE checkpoint SET deleted = 1 WHERE number = ?", [(one,) for one in numbers])

    # Going back

    def obstacle(self, point: CheckpointInfo) -> int | None:
        """The run because of which this one cannot go back: it builds on it, or was worked on since, and what it archived
        then may refer to what would go."""
        row = self._db.execute(
            "SELECT r.number FROM run r WHERE r.run_id <> :id AND (r.parent = :number OR (r.follows = :id AND r.origin IS NULL)"
            " OR (SELECT v.log_id FROM visit v WHERE v.run_id = r.run_id ORDER BY v.seq DESC LIMIT 1)"
            " > (SELECT w.log_id FROM visit w WHERE w.run_id = :id AND w.seq > :seq ORDER BY w.seq LIMIT 1))"
            " ORDER BY r.number DESC LIMIT 1",
            {"id": point.run_id, "number": point.run, "seq": point.seq},
        ).fetchone()
        return int(row[0]) if row else None

    def go_back(self, token: int, run: RunInfo, point: CheckpointInfo, now_ms: int) -> None:
        """Undo everything of a run after a checkpoint, in one transaction. The files are cut afterwards."""
        with self._store.commits.committing(token):
            self._touch(run.run_id, point.seq)
            self._db.execute(_WITHDRAW, {"now": now_ms, "run": run.run_id, "seq": point.seq})
            seeds, lanes = self._used_later(run.run_id, point.seq), self._pending_by_lane(run.run_id)
            self._cut_archive(run.run_id, point.seq)
            self._take_back(run.run_id, point.seq)
            fault.point("going_back")
            self._correct_lanes(run.run_id, point.seq, lanes)
            for number, kept, requests in seeds:
                self._db.execute(
                    "UPDATE seed SET kept = kept - ?, requests = requests - ? WHERE run_id = ? AND number = ?",
                    (kept, requests, run.run_id, number),
                )
            self._set_totals(run.run_id, point)
            self._db.execute(
                "INSERT INTO undone (log_id, run_id, from_seq, to_seq) VALUES (?, ?, ?, ?)",
                (self._store.commits.next_log_id(), run.run_id, point.seq + 1, run.seq),
            )

    def _touch(self, run_id: int, seq: int) -> None:
        """Note every row that is not what it was at this seq."""
        self._db.execute(_TOUCHED)
        self._db.execute("DELETE FROM touched")
        self._db.execute(
            "INSERT INTO touched SELECT url_id FROM frontier WHERE run_id = :run AND found > :seq"
            " UNION SELECT url_id FROM frontier WHERE run_id = :run AND done > :seq"
            " UNION SELECT subject_id FROM undo WHERE run_id = :run AND seq > :seq AND subject = 'frontier'",
            {"run": run_id, "seq": seq},
        )

    def _used_later(self, run_id: int, seq: int) -> list[tuple[int, int, int]]:
        """What each seed used of its limits after this seq: pages kept, and requests."""
        rows = self._db.execute(
            "SELECT f.seed, COUNT(*) FILTER (WHERE v.outcome = 'page'),"
            " COUNT(*) FILTER (WHERE v.requested = 1 AND v.kind = 'page')"
            f" FROM visit v JOIN {ROW}"
            " WHERE v.run_id = ? AND v.seq > ? AND v.kind IN ('page', 'resource') GROUP BY f.seed",
            (run_id, seq),
        )
        used = {seed: (kept, requests) for seed, kept, requests in rows}
        # Pages that were taken back later count again.
        doubted = self._db.execute(
            "SELECT f.seed, COUNT(DISTINCT v.seq) FROM undo u JOIN visit v ON v.run_id = u.run_id AND v.seq = u.subject_id"
            f" JOIN {ROW} WHERE u.run_id = :run AND u.seq > :seq"
            " AND u.subject = 'visit' AND v.seq <= :seq AND v.outcome <> 'page' AND json_extract(u.before, '$.outcome') = 'page'"
            " GROUP BY f.seed",
            {"run": run_id, "seq": seq},
        )
        for seed, count in doubted:
            kept, requests = used.get(seed, (0, 0))
            used[seed] = (kept - count, requests)
        return [(seed, *counts) for seed, counts in used.items()]

    def _pending_by_lane(self, run_id: int) -> dict[int, int]:
        rows = self._db.execute(
            "SELECT f.lane, COUNT(*) FROM touched t /*sqlite CROSS*/ JOIN frontier f ON f.run_id = ? AND f.url_id = t.url_id"
            " WHERE f.state = 'pending' GROUP BY f.lane",
            (run_id,),
        )
        return dict(rows.fetchall())

    def _correct_lanes(self, run_id: int, seq: int, before: dict[int, int]) -> None:
        after = self._pending_by_lane(run_id)
        for lane in before.keys() | after.keys():
            change = after.get(lane, 0) - before.get(lane, 0)
            self._db.execute(
                "UPDATE lane SET pending = pending + ? WHERE run_id = ? AND lane = ?", (change, run_id, lane)
            )
        self._db.execute("DELETE FROM lane WHERE run_id = ? AND opened > ?", (run_id, seq))

    def _cut_archive(self, run_id: int, seq: int) -> None:
        """The archive of the run ends with the last record that stays."""
        row = self._db.execute(
            'SELECT v.file_id, v."offset" + v.length FROM visit v JOIN archive a USING (file_id)'
            " WHERE v.run_id = :run AND v.seq <= :seq AND a.run_id = :run ORDER BY v.seq DESC LIMIT 1",
            {"run": run_id, "seq": seq},
        ).fetchone()
        file_id, length = row or (0, 0)
        self._db.execute("DELETE FROM archive WHERE run_id = ? AND file_id > ?", (run_id, file_id))
        self._db.execute("UPDATE archive SET length = ? WHERE file_id = ?", (length, file_id))

    def _take_back(self, run_id: int, seq: int) -> None:
        """Rows as they were: what was found later goes, what was changed later is restored, the settled is pending."""
        execute = self._db.execute
        execute("DELETE FROM frontier WHERE run_id = ? AND found > ?", (run_id, seq))
        # A URL that no run knows must not be taken for known.
        execute(
            "DELETE FROM url WHERE url_id IN (SELECT url_id FROM touched) AND NOT EXISTS"
            " (SELECT 1 FROM run r /*sqlite CROSS*/ JOIN frontier f ON f.run_id = r.run_id AND f.url_id = url.url_id)"
        )
        self._restore(run_id, run_id, seq)
        execute(
            "DELETE FROM promise WHERE run_id = :run AND url_id IN (SELECT url_id FROM touched) AND NOT EXISTS"
            " (SELECT 1 FROM frontier f WHERE f.run_id = :run AND f.url_id = promise.url_id)",
            {"run": run_id},
        )
        # Here, because it needs the rows as they were, and the votes as they are.
        votes.count_back(self._db, run_id, order.counted(seq + 1))
        # What was restored has the rank that it had when it was changed; others may have been counted since.
        votes.rank(self._db, run_id, [url_id for (url_id,) in execute("SELECT url_id FROM touched")])
        # Numbers of URLs are given again; what was blamed on them is not.
        execute("DELETE FROM suspect WHERE run_id = ? AND url_id IN (SELECT url_id FROM touched)", (run_id,))
        for table in _LATER:
            execute(f"DELETE FROM {table} WHERE run_id = ? AND seq > ?", (run_id, seq))
        # They stay as rows, so that whoever noted one of their numbers never gets another one for it.
        execute("UPDATE checkpoint SET deleted = 1 WHERE run_id = ? AND seq > ?", (run_id, seq))

    def _restore(self, run_id: int, source: int, seq: int) -> None:
        """Bring a run's rows to where those of `source` were at a seq, by the oldest of the later undo entries."""
        moved = self._db.execute(_OLDEST, (source, seq, "frontier")).fetchall()
        rows = [(*_values(before, RowState._fields), run_id, url_id) for url_id, before in moved]
        self._db.executemany(MOVE_ENTRY, rows)
        seeds = self._db.execute(_OLDEST, (source, seq, "seed")).fetchall()
        self._db.executemany(
            "UPDATE seed SET host = ?, path = ? WHERE run_id = ? AND number = ?",
            [(*_values(before, ("host", "path")), run_id, number) for number, before in seeds],
        )
        judged = self._db.execute(_OLDEST, (source, seq, "visit")).fetchall()
        self._db.executemany(
            JUDGE_VISIT, [(*_values(before, Judgement._fields), run_id, number) for number, before in judged]
        )
        self._db.execute(
            "UPDATE frontier SET state = 'pending', reason = NULL, done = NULL WHERE run_id = ? AND done > ?",
            (run_id, seq),
        )

    def _set_totals(self, run_id: int, point: CheckpointInfo) -> None:
        numbers = [getattr(point.counters, name) for name in COUNTERS]
        self._db.execute(
            "UPDATE run SET seq = ?, disturbed = ?, state = 'paused', ended_ms = NULL, alarm = '',"
            " swept = CASE WHEN swept > ? THEN 0 ELSE swept END, concluded = 0,"
            f" {', '.join(f'{name} = ?' for name in COUNTERS)} WHERE run_id = ?",
            (point.seq, point.disturbed, point.seq, *numbers, run_id),
        )

    # The line

    def set_line(self, token: int, run_ids: Sequence[int], now_ms: int) -> None:
        """Make these runs the line; all others lie beside it."""
        with self._store.commits.committing(token):
            is_other = "CASE WHEN r.run_id = ANY (?) THEN 1 ELSE 0 END = r.beside"
            self._db.execute(
                f"INSERT INTO withdrawn SELECT DISTINCT CAST(? AS BIGINT), v.run_id, u.url, {ADDRESS} FROM run r"
                f" JOIN visit v USING (run_id) JOIN url u USING (url_id) WHERE {is_other} AND v.kind = 'page'",
                (now_ms, run_ids),
            )
            self._db.execute("UPDATE run SET beside = 1")
            self._db.executemany("UPDATE run SET beside = 0 WHERE run_id = ?", [(one,) for one in run_ids])

    # Branching off

    def branch(self, point: CheckpointInfo, new: RunInfo) -> None:
        """Make `new` of what a checkpoint's run was there, inside the open transaction. Archive records are shared."""
        execute, old = self._db.execute, point.run_id
        execute(
            "INSERT INTO run (run_id, number, mode, parent, state, settings, created_ms, nofollow, origin, origin_seq,"
            " horizon, swept, follows, beside, token) SELECT ?, ?, ?, ?, 'paused', ?, ?, nofollow, number, ?, horizon, swept,"
            " follows, 1, (SELECT token FROM owner) FROM run WHERE run_id = ?",
            (
                new.run_id,
                new.number,
                new.mode,
                new.parent,
                json.dumps(dict(new.settings)),
                new.created_ms,
                point.seq,
                old,
            ),
        )
        execute(
            "INSERT INTO seed SELECT ?, number, url, host, path, kept, requests FROM seed WHERE run_id = ?",
            (new.run_id, old),
        )
        for number, kept, requests in self._used_later(old, point.seq):
            execute(
                "UPDATE seed SET kept = kept - ?, requests = requests - ? WHERE run_id = ? AND number = ?",
                (kept, requests, new.run_id, number),
            )
        self._copy(
            "frontier", f"url_id, kind, source, found, found_on, lastmod, unlinked, {STANDING}", "found", point, new
        )
        self._copy("robots", "origin, seq, verdict, rules", "seq", point, new)
        self._copy("cookie", "domain, path, name, host_only, seq, idx, value, secure, expires_ms", "seq", point, new)
        self._copy("probe", PROBE, "seq", point, new)
        self._copy("distrust", "host_id, validator, seq, why", "seq", point, new)
        self._copy("undo", "seq, subject, subject_id, before", "seq", point, new)
        self._copy_visits(point, new)
        self._restore(new.run_id, old, point.seq)
        votes.copy(self._db, old, new.run_id)
        execute(
            "INSERT INTO lane SELECT run_id, lane, COUNT(*) FILTER (WHERE state = 'pending'), MIN(found) FROM frontier"
            " WHERE run_id = ? AND (lane > 0 OR state = 'pending') GROUP BY run_id, lane",
            (new.run_id,),
        )
        self._set_totals(new.run_id, point)

    def _copy(self, table: str, columns: str, position: str, point: CheckpointInfo, new: RunInfo) -> None:
        self._db.execute(
            f"INSERT INTO {table} (run_id, {columns}) SELECT ?, {columns} FROM {table} WHERE run_id = ? AND {position} <= ?",
            (new.run_id, point.run_id, point.seq),
        )

    def _copy_visits(self, point: CheckpointInfo, new: RunInfo) -> None:
        """They get numbers of their own in the log, so that followers learn of them."""
        before = self._store.commits.next_log_id() - 1
        self._db.execute(
            f"INSERT INTO visit (log_id, run_id, session, {VISIT})"
            f" SELECT ? + ROW_NUMBER() OVER (ORDER BY seq), ?, 0, {VISIT} FROM visit WHERE run_id = ? AND seq <= ?",
            (before, new.run_id, point.run_id, point.seq),
        )
        self._store.commits.read_log()

    # Looking

    def state_at(self, point: CheckpointInfo) -> list[tuple[str, str, str]]:
        """URL, state and outcome of every page and resource as they were at a checkpoint, in the order of their places."""
        later = {
            url_id: json.loads(before)
            for url_id, before in self._db.execute(_OLDEST, (point.run_id, point.seq, "frontier"))
        }
        rows = self._db.execute(
            "SELECT f.url_id, u.url, f.state, f.done, f.place_seq, f.place_idx FROM frontier f JOIN url u USING (url_id)"
            " WHERE f.run_id = ? AND f.found <= ? AND f.kind IN ('page', 'resource')",
            (point.run_id, point.seq),
        )
        found = []
        for url_id, url, *standing in rows.fetchall():
            was = later.get(url_id) or dict(zip(_STATE, standing, strict=True))
            is_settled = was["done"] is not None and was["done"] <= point.seq
            state = was["state"] if is_settled else "pending"
            outcome = self._outcome(point.run_id, was["done"]) if state == "done" else ""
            found.append(((was["place_seq"], was["place_idx"], url_id), (url, state, outcome)))
        return [told for _, told in sorted(found)]

    def _outcome(self, run_id: int, seq: int) -> str:
        row = self._db.execute("SELECT outcome FROM visit WHERE run_id = ? AND seq = ?", (run_id, seq)).fetchone()
        return str(row[0]) if row else ""


def _state(run: RunInfo) -> str:
    return CRAWLING if run.state in (RunState.IN_PROGRESS, RunState.PAUSED) else run.state.value


def _values(before: str, names: tuple[str, ...]) -> list[object]:
    kept = json.loads(before)
    return [kept.get(name) for name in names]


def _checkpoint(row: Row) -> CheckpointInfo:
    number, run_id, run, seq, kind, state, substate, created_ms, totals = row
    numbers = json.loads(totals)
    disturbed = numbers.pop("disturbed")
    size = len(totals) + len(kind) + len(state) + len(substate) + 24
    kept = Counters(**{name: numbers.get(name, 0) for name in COUNTERS})
    return CheckpointInfo(
        number, run_id, run, seq, CheckpointType(kind), state, Substate(substate), created_ms, kept, disturbed, size
    )
