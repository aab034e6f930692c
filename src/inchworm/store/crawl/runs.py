"""Runs and their sessions: how they stand, and how they begin and end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from inchworm.model import Counters, EndedBy, RunInfo, RunState, Seed, SessionInfo, SessionState
from inchworm.ports import Commit
from inchworm.settings import NamedSettings
from inchworm.store.crawl.commit import COUNTERS, CommitWriter, largest, marks
from inchworm.store.crawl.owner import Ownership
from inchworm.store.database import NO_LIMIT, Database, Row

_RUN = "run_id, number, mode, parent, state, seq, settings, disturbed, created_ms, ended_ms, origin, origin_seq,"
_RUN += f" horizon, swept, concluded, alarm, follows, beside, {', '.join(COUNTERS)}"
_WORKED_ON = "GREATEST(token, COALESCE((SELECT MAX(s.token) FROM session s WHERE s.run_id = run.run_id), 0))"
"""The token of the last owner that made a run or worked on it."""

_SESSION = "run_id, number, token, state, ended_by, started_ms, ended_ms, requests, size, message, unanswered"


class RunTable:
    """The runs of a crawl."""

    def __init__(self, db: Database, owner: Ownership, commits: CommitWriter) -> None:
        self._db, self._owner, self._commits = db, owner, commits

    def list(self, before: int | None = None, limit: int | None = None) -> Sequence[RunInfo]:
        """Runs in their order: all, or the last so many before the one of this number."""
        query = f"SELECT {_RUN} FROM run WHERE number < ? ORDER BY number DESC LIMIT ?"
        rows = self._db.execute(query, (NO_LIMIT if before is None else before, NO_LIMIT if limit is None else limit))
        return [self._run(row) for row in rows][::-1]

    def get(self, number: int | None = None) -> RunInfo | None:
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
        """The highest number of a run."""
        return largest(self._db, "SELECT MAX(number) FROM run")

    def line_end(self) -> RunInfo | None:
        """The last run of the line, on which the next one follows."""
        return self._one_run("WHERE beside = 0 ORDER BY number DESC LIMIT 1")

    def last_change(self) -> RunInfo | None:
        """The last run of the line that found something new, modified or deleted."""
        return self._one_run(
            "WHERE mode != 'baseline' AND beside = 0 AND new + modified + deleted > 0 ORDER BY number DESC LIMIT 1"
        )

    def is_only(self, run_id: int) -> bool:
        """Whether the crawl has no other run."""
        return self._db.execute("SELECT 1 FROM run WHERE run_id <> ? LIMIT 1", (run_id,)).fetchone() is None

    def was_full(self, number: int, page_limit: int) -> bool:
        """Whether a seed of the run of this number kept as many pages as this limit allows."""
        query = "SELECT 1 FROM run r JOIN seed s USING (run_id) WHERE r.number = ? AND s.kept >= ? LIMIT 1"
        return self._db.execute(query, (number, page_limit)).fetchone() is not None

    def has_nofollow(self, run_id: int) -> bool:
        """Whether the run may have refused a URL because of nofollow."""
        return bool(largest(self._db, "SELECT MAX(nofollow) FROM run WHERE run_id = ?", run_id))

    def carried_out(self, run_id: int) -> int:
        """The last request of another process that a commit of this run carried out."""
        return largest(self._db, "SELECT inbox_id FROM run WHERE run_id = ?", run_id)

    def create(self, token: int, run: RunInfo, changes: Commit) -> None:
        """A run and its seeds, in one transaction: there is no run without its first URLs."""
        with self._owner.transaction(token):
            self._db.execute(
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
            self._db.executemany(
                "INSERT INTO seed (run_id, number, url, host, path) VALUES (?, ?, ?, ?, ?)",
                [(run.run_id, s.number, s.url, s.host, s.path) for s in changes.seeds],
            )
            self._commits.write(changes)

    def set_state(self, token: int, run_id: int, state: RunState, now_ms: int) -> None:
        """How a run stands now, whatever its sessions say."""
        ended = now_ms if state in (RunState.COMPLETED, RunState.CANCELLED) else None
        with self._owner.transaction(token):
            self._db.execute("UPDATE run SET state = ?, ended_ms = ? WHERE run_id = ?", (state, ended, run_id))

    def _one_run(self, which: str, *arguments: object) -> RunInfo | None:
        row = self._db.execute(f"SELECT {_RUN} FROM run {which}", arguments).fetchone()
        return self._run(row) if row else None

    def _run(self, row: Row) -> RunInfo:
        run_id, number, mode, parent, state, seq, settings, disturbed, created, ended, *rest = row
        origin, origin_seq, horizon, swept, concluded, alarm, follows, beside, *numbers = rest
        seeds = self._db.execute(
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


class SessionTable:
    """The sessions of a crawl, and which URLs they died of."""

    def __init__(self, db: Database, owner: Ownership) -> None:
        self._db, self._owner = db, owner

    def of(self, run_id: int) -> Sequence[SessionInfo]:
        """Those of a run, in their order."""
        rows = self._db.execute(f"SELECT {_SESSION} FROM session WHERE run_id = ? ORDER BY number", (run_id,))
        return [_session(row) for row in rows]

    def all(self) -> Sequence[SessionInfo]:
        """Those of all runs, in the order of their owners."""
        return [_session(row) for row in self._db.execute(f"SELECT {_SESSION} FROM session ORDER BY token")]

    def last(self, run_id: int) -> SessionInfo | None:
        """The newest of a run."""
        query = f"SELECT {_SESSION} FROM session WHERE run_id = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (run_id,)).fetchone()
        return _session(row) if row else None

    def settings(self, run_id: int) -> NamedSettings:
        """What the last session of a run was told; nothing when there was none."""
        query = "SELECT settings FROM session WHERE run_id = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (run_id,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def is_unfinished(self, run_id: int) -> bool:
        """Whether a session of this run was begun and never ended: its process died."""
        query = "SELECT 1 FROM session WHERE run_id = ? AND state = 'in_progress' LIMIT 1"
        return self._db.execute(query, (run_id,)).fetchone() is not None

    def start(self, token: int, run: RunInfo, settings: str, now_ms: int) -> int:
        """A new session of a run; sessions that nobody ended are marked as crashed. Its number in the run."""
        with self._owner.transaction(token):
            self._db.execute(
                "UPDATE session SET state = 'failed', ended_by = 'crashed', ended_ms = ? WHERE state = 'in_progress'",
                (now_ms,),
            )
            number = largest(self._db, "SELECT MAX(number) FROM session WHERE run_id = ?", run.run_id) + 1
            self._db.execute(
                "INSERT INTO session (run_id, number, token, state, settings, start_seq, started_ms)"
                " VALUES (?, ?, ?, 'in_progress', ?, ?, ?)",
                (run.run_id, number, token, settings, run.seq, now_ms),
            )
            self._db.execute("UPDATE run SET state = 'in_progress', ended_ms = NULL WHERE run_id = ?", (run.run_id,))
            return number

    def end(self, token: int, session: SessionInfo, run_state: RunState) -> None:
        """Close a session and say how its run stands, in one transaction."""
        ended = session.ended_ms if run_state in (RunState.COMPLETED, RunState.CANCELLED) else None
        with self._owner.transaction(token):
            self._db.execute(
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
            self._db.execute(
                "UPDATE run SET state = ?, ended_ms = ? WHERE run_id = ?", (run_state, ended, session.run_id)
            )

    def suspects(self, run_id: int) -> dict[int, int]:
        """Which URLs were being read when a process died, and how often."""
        return dict(self._db.execute("SELECT url_id, deaths FROM suspect WHERE run_id = ?", (run_id,)))

    def blame(self, token: int, run_id: int, url_ids: Sequence[int]) -> None:
        """The process died while reading these."""
        with self._owner.transaction(token):
            self._db.executemany(
                "INSERT INTO suspect (run_id, url_id, deaths) VALUES (?, ?, 1)"
                " ON CONFLICT (run_id, url_id) DO UPDATE SET deaths = suspect.deaths + 1",
                [(run_id, url_id) for url_id in url_ids],
            )


def _session(row: Row) -> SessionInfo:
    run_id, number, token, state, ended_by, *rest = row
    by = EndedBy(ended_by) if ended_by else None
    return SessionInfo(run_id, number, token, SessionState(state), by, *rest)
