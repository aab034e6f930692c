"""Idempotency-Key: a POST under a key is carried out once, and its answer is given again to whoever sends it again."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inchworm.app.act.admit import Given, Unanswered
from inchworm.service.api.web import Verbs, trouble

_LONGEST = 200


class Once:
    """Put around an application whose bodies are small."""

    def __init__(self, app: ASGIApp, verbs: Verbs) -> None:
        self._app = app
        self._verbs = verbs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key", "") if scope["type"] == "http" else ""
        # Whoever was not let in leaves no trace.
        if not key or scope["method"] != "POST" or scope.get("state", {}).get("identity") is None:
            await self._app(scope, receive, send)
        elif len(key) > _LONGEST or not key.isprintable():
            said = f"An Idempotency-Key has at most {_LONGEST} printable characters."
            await trouble(400, "bad_key", said, "A UUID is a good one.")(scope, receive, send)
        else:
            await self._carry_out(key, scope, receive, send)

    async def _carry_out(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        words = (scope["method"].encode(), scope["raw_path"], scope["query_string"], body)
        request = hashlib.sha256(b"\0".join(words)).digest()
        standing = await asyncio.to_thread(lambda: self._verbs.app.admission.begin_once(key, request))
        if standing is not Unanswered.FRESH:
            await _instead(standing)(scope, receive, send)
            return
        answer = _Kept()
        try:
            await self._app(scope, _again(body), answer.take)
        finally:
            # Before it is sent: whoever has got it may ask again at once.
            await asyncio.to_thread(lambda: self._verbs.app.admission.end_once(key, answer.status, answer.text))
        for message in answer.messages:
            await send(message)


def _instead(standing: Given | Unanswered) -> Response:
    if isinstance(standing, Given):
        headers = {"Idempotency-Replayed": "true"}
        return Response(standing.body, standing.status, headers, "application/json")
    if standing is Unanswered.OTHER_REQUEST:
        return trouble(422, "key_reused", "This Idempotency-Key was used for another request.", "Use a new one.")
    return trouble(409, "in_hand", "The same request is being carried out.", "Ask again in a moment.")


class _Kept:
    """An answer, held back until it is whole."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"]) if self.messages else 500

    @property
    def text(self) -> str:
        return b"".join(one.get("body", b"") for one in self.messages).decode("utf-8", "replace")

    async def take(self, message: Message) -> None:
        self.messages.append(message)


async def _body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    more = True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


def _again(body: bytes) -> Any:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
