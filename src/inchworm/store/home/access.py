"""home.db: who may come in no more, who may come in once, and what was answered already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inchworm.store.home.home import Home

DAY_MS = 24 * 60 * 60 * 1000
_GRACE_MS = DAY_MS
"""How long a revoked token is remembered beyond its end: those who check it may be late, or have clocks that are."""


class KeyState(StrEnum):
    """What is known of a request that bears a key, as long as there is no answer to give."""

    FRESH = "fresh"
    IN_HAND = "in_hand"
    OTHER_REQUEST = "other_request"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What was answered to a request, to be given again."""

    status: int
    body: str


class Access:
    """Revoked tokens, one-time codes, and the keys of requests that must not be carried out twice.

    A service asks for revoked tokens all the time: it does well to give this a Home of its own, so that it never waits
    for somebody else's commit.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def revoke(self, token_id: str, until_ms: int) -> None:
        """Let a token in no more. It may be forgotten when it has come to its end, which is `until_ms`."""
        with self._home.writing() as db:
            db.execute(
                "INSERT INTO revoked (token_id, until_ms) VALUES (?, ?)"
                " ON CONFLICT (token_id) DO UPDATE SET until_ms = GREATEST(revoked.until_ms, excluded.until_ms)",
                (token_id, until_ms),
            )

    def is_revoked(self, token_id: str) -> bool:
        with self._home.reading() as db:
            return db.execute("SELECT 1 FROM revoked WHERE token_id = ?", (token_id,)).fetchone() is not None

    def add_login(self, code_digest: bytes, until_ms: int, now_ms: int) -> None:
        """A code that lets somebody in once, until then."""
        with self._home.writing() as db:
            db.execute("DELETE FROM login WHERE until_ms <= ?", (now_ms,))
            db.execute("INSERT INTO login (code, until_ms) VALUES (?, ?)", (code_digest, until_ms))

    def take_login(self, code_digest: bytes, now_ms: int) -> bool:
        """Whether this code lets in now. It never does again, whoever else asks at the same moment."""
        with self._home.reading() as db:
            # Guesses cost a look and no turn at the lock that all processes of the home share.
            if not db.execute("SELECT 1 FROM login WHERE code = ?", (code_digest,)).fetchone():
                return False
        with self._home.writing() as db:
            db.execute("DELETE FROM login WHERE until_ms <= ?", (now_ms,))
            return db.execute("DELETE FROM login WHERE code = ?", (code_digest,)).rowcount == 1

    def begin(self, key: str, request_digest: bytes, now_ms: int) -> KeyState | KeptAnswer:
        """What to do with a request that bears this key: carry it out when it is fresh, and then call `end`.

        One that nobody ended, because its process died, stays in hand for a day: nobody knows how far it came.
        """
        with self._home.writing() as db:
            db.execute("DELETE FROM answered WHERE key = ? AND created_ms <= ?", (key, now_ms - DAY_MS))
            added = db.execute(
                "INSERT INTO answered (key, request, created_ms) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                (key, request_digest, now_ms),
            )
            if added.rowcount == 1:
                return KeyState.FRESH
            request, status, body = db.execute(
                "SELECT request, status, body FROM answered WHERE key = ?", (key,)
            ).fetchone()
        if request != request_digest:
            return KeyState.OTHER_REQUEST
        return KeyState.IN_HAND if status is None else KeptAnswer(status, body)

    def end(self, key: str, status: int, body: str) -> None:
        """The answer to the request that bears this key. The first one stands."""
        with self._home.writing() as db:
            db.execute("UPDATE answered SET status = ?, body = ? WHERE key = ? AND status IS NULL", (status, body, key))

    def forget(self, key: str) -> None:
        """The request failed by our fault and may be tried again under the same key."""
        with self._home.writing() as db:
            db.execute("DELETE FROM answered WHERE key = ? AND status IS NULL", (key,))

    def prune(self, now_ms: int) -> None:
        """Remove what is of no use any more."""
        with self._home.writing() as db:
            db.execute("DELETE FROM answered WHERE created_ms <= ?", (now_ms - DAY_MS,))
            db.execute("DELETE FROM login WHERE until_ms <= ?", (now_ms,))
            db.execute("DELETE FROM revoked WHERE until_ms <= ?", (now_ms - _GRACE_MS,))
