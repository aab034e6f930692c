"""What all routes share: values that go out as JSON, one shape of errors, the verbs of the home, bodies in either
spelling, lists by cursor."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import inspect
import json
import logging
import re
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Generic, Literal, NamedTuple, TypeVar, cast

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from inchworm import settings
from inchworm.app.act.plan import Caller, over_http
from inchworm.app.read.content.single import SinglePages
from inchworm.app.root import App
from inchworm.app.workspace import base_settings_of
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.model import CrawlInfo
from inchworm.rules.words.json_form import json_form
from inchworm.settings import Settings

_IDLE = 16
"""Connections to the home that are kept for requests to come."""

MOST = 1000
"""Items on one page of a list."""

T = TypeVar("T")

log = logging.getLogger("inchworm.api")


# Values as JSON


def api_routes(topic: str, prefix: str = "/api/v1") -> APIRouter:
    """Where the routes of a topic are put down. What one of them answers with goes out as JSON by the names of its
    fields, or as it is when it is a response. Its `response_model` is what the documentation says of it."""
    return APIRouter(prefix=prefix, tags=[topic], route_class=_ValueRoute)


class _ValueRoute(APIRoute):
    """A route whose function answers with values."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_json(endpoint), **options)


def _in_json(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(endpoint):

        @functools.wraps(endpoint)
        async def answer_later(*args: Any, **named: Any) -> Any:
            return _formed(await endpoint(*args, **named))

        return answer_later

    @functools.wraps(endpoint)
    def answer(*args: Any, **named: Any) -> Any:
        return _formed(endpoint(*args, **named))

    return answer


def _formed(answer: object) -> object:
    return answer if isinstance(answer, Response) else json_form(answer)


# Bodies and answers


class Body(BaseModel):
    """What is sent to us: snake_case or camelCase, and nothing that we do not know."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, to_camel(name))),
        extra="forbid",
        allow_inf_nan=False,
    )


class Answer(BaseModel):
    """What we send."""

    model_config = ConfigDict(extra="allow")


class Trouble(BaseModel):
    code: str
    message: str
    hint: str


class Refusal(BaseModel):
    """Every error looks like this."""

    error: Trouble

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {"code": "unknown", "message": "There is no job 'x'.", "hint": "GET /api/v1/jobs lists them."}
            }
        }
    )


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may refuse, for its documentation."""
    always = (401, 403, 422)
    return {status: {"model": Refusal, "description": HTTPStatus(status).phrase} for status in (*always, *statuses)}


# The verbs


class Verbs:
    """The verbs of one home, for whoever needs them: a connection to its database serves one thing at a time. A request
    is lent one, because it goes from thread to thread; whoever stays in a thread has that thread's own."""

    def __init__(self, folder: Path, values: Settings, wake: Callable[[], None]) -> None:
        self.folder = folder
        self.values = values
        self.wake = wake
        self._local = threading.local()
        self._all: list[App] = []
        self._idle: deque[App] = deque()
        self._mutex = threading.Lock()

    @cached_property
    def single_pages(self) -> SinglePages:
        """One for all requests, so that a host has its pauses whoever asks."""
        ground = {**base_settings_of(self.folder), "allow_private": self.values.allow_private}
        return SinglePages(settings.make(ground))

    @property
    def caller(self) -> Caller:
        """Whoever asks over HTTP."""
        return over_http(self.values.allow_private)

    @property
    def app(self) -> App:
        """This thread's own."""
        found: App | None = getattr(self._local, "app", None)
        if found is None:
            found = self._local.app = self._made()
        return found

    @contextlib.contextmanager
    def lent(self) -> Iterator[App]:
        try:
            app = self._idle.pop()
        except IndexError:
            app = self._made()
        try:
            yield app
        finally:
            if len(self._idle) < _IDLE:
                self._idle.append(app)
            else:
                self._forget(app)

    def _forget(self, app: App) -> None:
        with self._mutex:
            self._all.remove(app)
        app.close()

    def _made(self) -> App:
        app = App(self.folder)
        with self._mutex:
            self._all.append(app)
        return app

    def close(self) -> None:
        for app in self._all:
            app.close()


def _verbs(request: Request) -> Verbs:
    verbs: Verbs = request.app.state.verbs
    return verbs


def _app(request: Request) -> Iterator[App]:
    with _verbs(request).lent() as app:
        yield app


Home = Annotated[App, Depends(_app)]
Service = Annotated[Verbs, Depends(_verbs)]


def crawl_of(app: App, crawl_id: str) -> CrawlInfo:
    """The crawl of exactly this id."""
    crawl = app.workspace.crawls.find(crawl_id)
    if crawl is None or crawl.crawl_id != crawl_id:
        raise Unknown(f"There is no crawl {crawl_id!r}.", "GET /api/v1/crawls lists them.")
    return crawl


# Lists


Frame = Annotated[
    Literal["drop", "keep"] | None,
    Query(description="what to do with blocks that stand on most pages of their host; as the crawl says, if left out"),
]


class ListSlice(NamedTuple):
    """Which part of a list is wanted: what came after the cursor, at most so much."""

    after: Any
    limit: int


def _page(
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before", max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="how many at most")] = 50,
) -> ListSlice:
    return ListSlice(_opened(cursor) if cursor else None, limit)


Paged = Annotated[ListSlice, Depends(_page)]


class ListPage(NamedTuple, Generic[T]):
    """One page of a list, and the cursor of the next one, if there is one."""

    items: Sequence[T]
    next_cursor: str | None


def listed(items: Sequence[T], page: ListSlice, cursor_of: Callable[[T], Any]) -> ListPage[T]:
    """One page of a list. Ask for one item more than the limit."""
    shown = items[: page.limit]
    more = len(items) > page.limit
    return ListPage(shown, _sealed(cursor_of(shown[-1])) if more and shown else None)


def goes_on(items: Sequence[T], after: object) -> ListPage[T]:
    """One page of a list whose reader says behind what the next one begins; behind None there is none."""
    return ListPage(items, None if after is None else _sealed(after))


def _sealed(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _opened(cursor: str) -> Any:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        json.dumps(found, ensure_ascii=False).encode()  # no half characters
    except (binascii.Error, ValueError, RecursionError):
        raise wrong_cursor() from None
    if found is None:
        raise wrong_cursor()
    return found


def wrong_cursor() -> HTTPException:
    return HTTPException(400, "That cursor is not one of ours.")


def cursor_of(page: ListSlice, *kinds: type) -> tuple[Any, ...] | None:
    """The parts of a cursor, when they are what we put into it."""
    if page.after is None:
        return None
    parts = page.after if isinstance(page.after, list) else [page.after]
    fits = len(parts) == len(kinds) and all(type(part) is kind for part, kind in zip(parts, kinds, strict=True))
    if not fits or any(isinstance(part, int) and abs(part) >= 1 << 62 for part in parts):
        raise wrong_cursor()
    return tuple(parts)


# Errors


def trouble(status: int, code: str, message: str, hint: str = "") -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)


def handle_errors(api: FastAPI) -> None:
    """Every error in one shape."""

    @api.exception_handler(InchwormError)
    async def ours(_: Request, error: InchwormError) -> JSONResponse:
        return trouble(error.status, error.code, error.message, error.hint)

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return trouble(400, "bad_json", "The body is not JSON.", str(first.get("ctx", {}).get("error", "")))
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return trouble(
            422, "wrong_use", f"{where or 'The request'}: {first['msg']}.", "The schema is at /openapi.json."
        )

    @api.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        return http_trouble(error)

    @api.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        number = uuid.uuid4().hex[:8]
        log.error("Unexpected error %s", number, exc_info=error)
        return trouble(
            500, "error", f"Something went wrong here (error {number}).", "The log of the service says what."
        )


def http_trouble(error: HTTPException) -> JSONResponse:
    phrase = HTTPStatus(error.status_code).phrase
    answer = trouble(error.status_code, phrase.lower().replace(" ", "_"), error.detail or phrase, _hint(error))
    answer.headers.update(error.headers or {})
    return answer


def _hint(error: HTTPException) -> str:
    return "The schema is at /openapi.json." if error.status_code in (404, 405) else ""


# Either spelling

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class EitherSpelling:
    """Names of query parameters may be written in camelCase."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["query_string"]:
            pairs = (pair.partition("=") for pair in scope["query_string"].decode("latin-1").split("&"))
            snake = ((_HUMP.sub(lambda hump: "_" + hump[1].lower(), name), mark, value) for name, mark, value in pairs)
            scope = {**scope, "query_string": "&".join("".join(parts) for parts in snake).encode("latin-1")}
        await self._app(scope, receive, send)


def given(body: Body, names: Iterable[str]) -> dict[str, Any]:
    """What a body names, of these."""
    return {name: getattr(body, name) for name in names if name in body.model_fields_set}


def refuse_null(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is None:
            raise WrongUse(f"{name} cannot be null.", "Leave it out to have it as it usually is.")


# What takes long

_LONG = threading.BoundedSemaphore(4)


@contextlib.contextmanager
def at_length() -> Iterator[None]:
    """Around what may take seconds: whoever asks for much of it at once must not keep others from what is quick."""
    if not _LONG.acquire(blocking=False):
        raise HTTPException(503, "Too many ask for something long at the moment.", {"Retry-After": "5"})
    try:
        yield
    finally:
        _LONG.release()


# Files

_IN_MEMORY = 4_000_000
_CHUNK = 1 << 18


def as_file(name: str, kind: str, write: Callable[[BinaryIO], object]) -> Response:
    """What is written, as a download of this name and type."""
    response = written(kind, write)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def written(kind: str, write: Callable[[BinaryIO], object]) -> Response:
    """What is written, of this type, however long: only its beginning is in memory."""
    spool = cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - closed when it was sent
    try:
        with at_length():
            write(spool)
        size = spool.tell()
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    headers = {"Content-Length": str(size)}
    return StreamingResponse(_chunks(spool), media_type=kind, headers=headers, background=BackgroundTask(spool.close))


def _chunks(spool: BinaryIO) -> Iterator[bytes]:
    with spool:
        while chunk := spool.read(_CHUNK):
            yield chunk
