"""home.db: the services of a home, and how they are."""

from __future__ import annotations

from typing import NamedTuple

from inchworm.store.home.home import Home


class Service(NamedTuple):
    """A service of this home, as it last wrote of itself."""

    service_id: str
    machine: str
    pid: int
    started_ms: int
    seen_ms: int
    beats: int
    scheduler: bool
    executions: int
    poll_s: float


class Services:
    """The services of one home. Each shows that it lives by counting `beats`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def add(self, service: Service) -> None:
        with self._home.writing() as db:
            db.execute("INSERT INTO service VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", service)

    def beat(self, service_id: str, now_ms: int) -> bool:
        """Show that a service lives; False when it is not entered any more."""
        with self._home.writing() as db:
            query = "UPDATE service SET beats = beats + 1, seen_ms = ? WHERE service_id = ?"
            return db.execute(query, (now_ms, service_id)).rowcount > 0

    def remove(self, service_id: str) -> None:
        with self._home.writing() as db:
            db.execute("DELETE FROM service WHERE service_id = ?", (service_id,))

    def all(self) -> list[Service]:
        with self._home.reading() as db:
            rows = db.execute(
                "SELECT service_id, machine, pid, started_ms, seen_ms, beats, scheduler, executions, poll_s"
                " FROM service ORDER BY started_ms"
            ).fetchall()
        return [Service(*row)._replace(scheduler=bool(row[6])) for row in rows]
