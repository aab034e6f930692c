"""Admitting: who may come in, and requests that must not be carried out twice."""

from __future__ import annotations

from inchworm.app.desk import Desk
from inchworm.store.access import Access, Answer, Standing

_NOT_NOW = 409
Given = Answer
"""What was answered already."""

Unanswered = Standing
"""How a request stands that has no answer yet."""


class Admitting(Desk):
    """Verbs about access to the service."""

    @property
    def access(self) -> Access:
        return Access(self.home)

    def invite(self, digest: bytes, seconds: float) -> None:
        """A code lets somebody in once, for so long."""
        now_ms = self.clock.now_ms()
        self.access.add_login(digest, now_ms + round(seconds * 1000), now_ms)

    def begin_once(self, key: str, request: bytes) -> Given | Unanswered:
        """What to do with a request under this key: only one that is fresh is carried out."""
        return self.access.begin(key, request, self.clock.now_ms())

    def end_once(self, key: str, status: int, body: str) -> None:
        """Keep its answer. Where nothing was done, because it failed or was not the time, it can be tried again."""
        if status >= 500 or status == _NOT_NOW:
            self.access.forget(key)
        else:
            self.access.end(key, status, body)
