"""What is known of hosts: which were met, which are quiet or down, what their robots.txt says, their cookies."""

from __future__ import annotations

from inchworm.model import Cookie, DownHost, Probe
from inchworm.store.crawl.commit import COOKIE
from inchworm.store.database import Database

_NEWEST_ROBOTS = "r.seq = (SELECT MAX(seq) FROM robots n WHERE n.run_id = r.run_id AND n.origin = r.origin)"


class HostTable:
    """What servers said, beside pages. `ports.HostFacts` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> dict[str, int]:
        return dict(self._db.execute("SELECT name, host_id FROM host"))

    def quiet(self) -> list[tuple[str, int, int]]:
        return list(self._db.execute("SELECT name, wait_until_ms, wait_ms FROM host WHERE wait_until_ms > 0"))

    def answered(self) -> list[str]:
        return [origin for (origin,) in self._db.execute("SELECT origin FROM origin")]

    def down(self) -> list[DownHost]:
        query = (
            "SELECT origin, down_kind, down_message, down_since_ms, down_sessions FROM origin"
            " WHERE down_since_ms > 0 ORDER BY down_since_ms, origin"
        )
        return [DownHost(*row) for row in self._db.execute(query)]

    def robots(self, run_id: int, origin: str | None = None) -> list[tuple[str, str, bytes | None]]:
        which = "" if origin is None else " AND origin = ?"
        query = f"SELECT origin, verdict, rules FROM robots r WHERE run_id = ? AND {_NEWEST_ROBOTS}{which}"
        return list(self._db.execute(query, (run_id,) if origin is None else (run_id, origin)))

    def robots_times(self, run_id: int) -> list[tuple[str, int]]:
        query = (
            "SELECT r.origin, v.at_ms FROM robots r JOIN visit v ON v.run_id = r.run_id AND v.seq = r.seq"
            f" WHERE r.run_id = ? AND {_NEWEST_ROBOTS}"
        )
        return list(self._db.execute(query, (run_id,)))

    def cookies(self, run_id: int) -> list[Cookie]:
        rows = self._db.execute(
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
        rows = self._db.execute("SELECT directory, status, is_excuse, text_hash FROM probe WHERE run_id = ?", (run_id,))
        return [Probe(directory, status, bool(excuse), text_hash) for directory, status, excuse, text_hash in rows]
