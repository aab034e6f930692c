"""What all pages share: the frame around them, what is said after an action, errors with a face, and forms.

A page changes nothing when it is looked at. Whatever does something is a form that is posted, with a key that only our
pages know; then the browser is sent back to a page, which says what came of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from inchworm.errors import InchwormError
from inchworm.service.access import gate
from inchworm.service.access.auth import Identity, Role
from inchworm.service.access.gate import Refused
from inchworm.service.templating import templates

SAID = "inchworm_said"
_SAID_SECONDS = 60
_MOST_SAID = 1000
_MOST_FIELDS = 500

log = logging.getLogger("inchworm.dashboard")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(APIRoute):
    """A route for people: what goes wrong is shown on a page, or on the page that one came from."""

    def get_route_handler(self) -> Handler:
        usual = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                response = await usual(request)
            except Exception as error:
                response = await run_in_threadpool(refused, request, error)
            if isinstance(response, _Back):
                response.keep(request)
            return response

        return handle


def pages() -> APIRouter:
    return APIRouter(include_in_schema=False, route_class=PageRoute, default_response_class=HTMLResponse)


# Pages


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page in its frame. `view` in the context names what is watched while it is open."""
    said = _said(request)
    whole = {"said": said, "view": "", **_about(request), **context}
    response = HTMLResponse(templates().get_template(template).render(whole), status)
    # A form on a page that keeps quiet to everybody names no origin, not even to us.
    response.headers["Referrer-Policy"] = "same-origin"
    if said is not None:
        response.delete_cookie(SAID, httponly=True, samesite="strict")
    return response


def part(template: str, **context: Any) -> str:
    """A part of a page that is renewed while the page is open. It is the same for everybody who watches, so its buttons
    belong to the one form of the frame, which has the key."""
    return templates().get_template(template).render(context)


def _about(request: Request) -> dict[str, Any]:
    identity: Identity | None = getattr(request.state, "identity", None)
    query = f"?{request.url.query}" if request.url.query else ""
    return {
        "path": request.url.path,
        "here": request.url.path + query,
        "form_key": form_key(request),
        "may_touch": identity is None or identity.role is not Role.READ_ONLY,
    }


# Saying what came of something


@dataclass(frozen=True, slots=True)
class Said:
    """What is said on the next page."""

    text: str
    hint: str = ""
    is_bad: bool = False


class _Back(RedirectResponse):
    """The way back to a page, with what that is to say."""

    def __init__(self, to: str, said: Said) -> None:
        super().__init__(gate.local_path(to), 303)
        self._said = said

    def keep(self, request: Request) -> None:
        """Have the browser keep what is said, signed: others on this host can set cookies, too, and must not put words
        into our mouth."""
        told = [self._said.text[:_MOST_SAID], self._said.hint[:_MOST_SAID], self._said.is_bad]
        value = base64.urlsafe_b64encode(json.dumps(told).encode()).decode()
        signed = f"{value}.{_signature(request, 'said ' + value)}"
        self.set_cookie(SAID, signed, _SAID_SECONDS, httponly=True, samesite="strict")


def back(to: str, text: str, hint: str = "", is_bad: bool = False) -> Response:
    """Send the browser to a page of ours, and have that say something."""
    return _Back(to, Said(text, hint, is_bad))


def _said(request: Request) -> Said | None:
    value, _, signature = request.cookies.get(SAID, "").rpartition(".")
    if not value or not hmac.compare_digest(signature.encode(), _signature(request, "said " + value).encode()):
        return None
    try:
        text, hint, is_bad = json.loads(base64.urlsafe_b64decode(value))
        f"{text}{hint}".encode()
        return Said(str(text), str(hint), bool(is_bad))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None


# Errors


def refused(request: Request, error: Exception) -> Response:
    """What is shown instead: after a form, the page it came from; else a page of its own."""
    status, message, hint = _told(error)
    if request.method == "POST" and (to := getattr(request.state, "back", "")):
        return back(to, message, hint, is_bad=True)
    return page(request, "error.html", status, message=message, hint=hint)


def _told(error: Exception) -> tuple[int, str, str]:
    if isinstance(error, InchwormError):
        return error.status, error.message, error.hint
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return 422, f"{first['loc'][-1]}: {first['msg']}.", "Go back and try again."
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail), ""
    number = uuid.uuid4().hex[:8]
    log.error("Unexpected error %s", number, exc_info=error)
    return 500, f"Something went wrong here (error {number}).", "The log of the service says what."


# Forms


def form_key(request: Request) -> str:
    """What a form has to bring along: nobody who cannot read our pages knows it."""
    return _signature(request, "form ")


def _signature(request: Request, text: str) -> str:
    """Of a text, for whoever is logged in. Where nobody has to log in, nothing is signed."""
    identity: Identity | None = getattr(request.state, "identity", None)
    keys: gate.Keys | None = getattr(request.app.state, "keys", None)
    if identity is None or keys is None:
        return ""
    return hmac.new(keys.secret, (text + identity.token_id).encode(), hashlib.sha256).hexdigest()


class Form(dict[str, str]):
    """The fields of a form. Of a name that comes several times the last counts; `all` has every one."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]

    def text(self, name: str) -> str:
        return self.get(name, "").strip()


async def _form(request: Request) -> Form:
    try:
        text = (await request.body()).decode()
        form = Form(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Refused(400, "bad_form", "That is no form of ours.") from None
    request.state.back = gate.local_path(form.get("back", "")) if form.get("back") else ""
    if not hmac.compare_digest(form.get("key", "").encode(), form_key(request).encode()):
        raise Refused(403, "foreign_page", "This form is out of date.", "Load the page again, then try once more.")
    return form


Fields = Annotated[Form, Depends(_form)]


def given(form: Mapping[str, str], *names: str) -> dict[str, str]:
    """The fields of these names that were filled in."""
    return {name: form[name].strip() for name in names if form.get(name, "").strip()}
