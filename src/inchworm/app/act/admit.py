"""Admitting: who may come in, and requests that must not be carried out twice."""

from __future__ import annotations

from inchworm.app.workspace import Workspace
from inchworm.store.home.access import Access, KeptAnswer, KeyState

_NOT_NOW = 409

Given = KeptAnswer
"""What was answered already."""

Unanswered = KeyState
"""How a request stands that has no answer yet."""


class Admission:
    """Access to the service."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.store = Access(workspace.home)

    def invite(self, digest: bytes, seconds: float) -> None:
        """A code lets somebody in once, for so long."""
        now_ms = self._workspace.clock.now_ms()
        self.store.add_login(digest, now_ms + round(seconds * 1000), now_ms)

    def begin_once(self, key: str, request: bytes) -> Given | Unanswered:
        """What to do with a request under this key: only one that is fresh is carried out."""
        return self.store.begin(key, request, self._workspace.clock.now_ms())

    def end_once(self, key: str, status: int, body: str) -> None:
        """Keep its answer. Where nothing was done, because it failed or was not the time, it can be tried again."""
        if status >= 500 or status == _NOT_NOW:
            self.store.forget(key)
        else:
            self.store.end(key, status, body)
