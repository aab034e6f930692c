"""A connection that has begun a request and does not get on with it is closed: it costs others their place."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class PatientProtocol(H11Protocol):
    """Waits so long for the head of a request, and no longer."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The clock runs while we wait for a head, from its first byte on and however slowly the others come."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        # Between two requests the connection may rest, as long as keep-alive lets it.
        if self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            self.transport.close()
