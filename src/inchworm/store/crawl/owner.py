"""Who may write to a crawl: the one who took it last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from inchworm.errors import Broken, Lost
from inchworm.store.database import Database
from inchworm.store.lock import Life, boot_ms


class Ownership:
    """The one row that names the owner. Every change carries its token and is refused when somebody else has taken a newer
    one."""

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self._path = path

    def take(self, me: Life) -> int:
        """Become the owner: a new token, after which no older one can commit."""
        with self._db.transaction():
            self._db.execute(
                "UPDATE owner SET token = token + 1, heartbeat = heartbeat + 1, beat_ms = ?, boot = ?, pid = ?, machine = ?",
                (me.beat_ms, me.boot, me.pid, me.machine),
            )
            return int(self._db.execute("SELECT token FROM owner").fetchone()[0])

    def life(self) -> Life:
        """The last owner's last sign of life."""
        return Life(*self._db.execute("SELECT pid, machine, boot, beat_ms FROM owner").fetchone())

    def beat(self, token: int) -> None:
        """Show that the owner lives."""
        with self.transaction(token):
            pass

    @contextlib.contextmanager
    def transaction(self, token: int) -> Iterator[None]:
        """All that is written in here, or nothing; `Lost` with an old token."""
        with self._db.transaction():
            self._fence(token)
            yield

    def _fence(self, token: int) -> None:
        if not self._db.is_same():
            raise Broken(
                f"{self._path} was deleted or replaced while it was in use.",
                "What was not in the archive before is lost; restore the file, or start over with --fresh.",
            )
        changed = self._db.execute(
            "UPDATE owner SET heartbeat = heartbeat + 1, beat_ms = ? WHERE token = ?", (boot_ms(), token)
        ).rowcount
        if changed != 1:
            now = self.life()
            raise Lost(
                f"This run was taken over by process {now.pid} on {now.machine} while this one stood still.",
                "Nothing is lost: the other process goes on. `inchworm status` shows it.",
            )
