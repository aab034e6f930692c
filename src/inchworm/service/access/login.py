"""The way in for browsers: a link that works once, or a token that is pasted, becomes a cookie."""

from __future__ import annotations

import math
import time
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from inchworm.errors import InchwormError, NoEntry
from inchworm.service.access import auth, gate
from inchworm.service.access.auth import Identity
from inchworm.service.access.gate import Keys, Refused, TooMany
from inchworm.service.templating import templates

_MAX_FIELDS = 8

_WELCOME = "Paste a token. `inchworm token` makes one."
_USED = "This link was used already, or it is too old. Ask for a new one, or paste a token."
_WRONG = "That is not a valid token, or it has expired. `inchworm token` makes a new one."
_FOREIGN = "That came from a page of another site. If it was you, paste the token here."
_TOO_MANY = "Too many wrong tokens came from your address. Wait a minute, then try again."


def routes(keys: Keys) -> list[Route]:
    """GET and POST /login, POST /logout."""

    async def show(request: Request) -> Response:
        target = gate.local_path(request.query_params.get("next", "/"))
        code = request.query_params.get("code")
        if code is None:
            return _page(_WELCOME, target)
        try:
            return _let_in(request, await _token_for_code(request, code, keys), target)
        except InchwormError as error:
            return _refused(error, _USED, target)

    async def enter(request: Request) -> Response:
        fields = _fields(await request.body())
        target = gate.local_path(fields.get("next", "/"))
        try:
            whose = _pasted(request, fields.get("token", "").strip(), keys)
        except InchwormError as error:
            return _refused(error, _WRONG, target)
        return _let_in(request, auth.issue_for_browser(keys.secret, whose, int(time.time())), target)

    async def leave(request: Request) -> Response:
        await run_in_threadpool(_end, request.headers, keys)
        response = RedirectResponse("/login", 303)
        gate.clear_cookie(response, request.scope)
        return response

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", enter, methods=["POST"]),
        Route("/logout", leave, methods=["POST"]),
    ]


async def _token_for_code(request: Request, code: str, keys: Keys) -> str:
    now_ms = time.time_ns() // 1_000_000
    if not await run_in_threadpool(keys.book.take_login, auth.digest_of(code), now_ms):
        gate.count_wrong(request.scope, keys)
        raise auth.no_entry()
    return auth.issue_for_browser(keys.secret, None, now_ms // 1000)


def _pasted(request: Request, token: str, keys: Keys) -> Identity:
    """Whose token was pasted. A page of another site must not log anybody in as somebody else; programs may."""
    if "origin" in request.headers or "sec-fetch-site" in request.headers:
        gate.check_page(request.scope)
    return gate.check_pasted(token, request.scope, keys)


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form; none of one that is not like ours."""
    try:
        return dict(parse_qsl(body.decode("latin-1"), max_num_fields=_MAX_FIELDS))
    except ValueError:
        return {}


def _let_in(request: Request, token: str, target: str) -> Response:
    response = RedirectResponse(target, 303)
    gate.set_cookie(response, token, request.scope)
    return response


def _end(headers: Headers, keys: Keys) -> None:
    """Revoke the token in the cookie, so that a copy of it ends as well."""
    try:
        whose = auth.verify(gate.cookie_of(headers) or "", keys.secret, keys.book.is_revoked)
    except NoEntry:
        return
    keys.book.revoke(whose.token_id, whose.expires_s * 1000)


def _refused(error: InchwormError, wrong: str, target: str) -> Response:
    """The page again, with what went wrong. What is not about who asks goes its usual way."""
    if isinstance(error, TooMany):
        response = _page(_TOO_MANY, target, error.status)
        response.headers["Retry-After"] = str(math.ceil(error.wait_seconds))
        return response
    if isinstance(error, NoEntry | Refused):
        return _page(wrong if isinstance(error, NoEntry) else _FOREIGN, target, error.status)
    raise error


def _page(text: str, target: str, status: int = 200) -> Response:
    page = templates().get_template("login.html")
    longest, is_refused = auth.MAX_TOKEN_BYTES, status >= 400
    # A form on a page that keeps quiet to everybody names no origin, not even to us.
    headers = {"Referrer-Policy": "same-origin"}
    return HTMLResponse(page.render(text=text, target=target, longest=longest, is_refused=is_refused), status, headers)
