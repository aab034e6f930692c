"""The application: every route of the service, behind one gate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from inchworm import __version__
from inchworm.errors import Unknown
from inchworm.service.access import login
from inchworm.service.access.gate import Keys, is_browser
from inchworm.service.access.once import Once
from inchworm.service.api.web import EitherSpelling, Verbs, handle_errors, http_trouble
from inchworm.service.dashboard.frame import refused

_ABOUT = """\
A web crawler that never loses its place. All times are ISO 8601 in UTC. Bodies and query parameters may be written in
snake_case or camelCase; answers are in snake_case. Lists come in pages: send `next_cursor` back as `cursor`. Every
error is `{"error": {"code", "message", "hint"}}`. A POST with an `Idempotency-Key` is carried out once, however often
it is sent.
"""
Living = Callable[[FastAPI], AbstractAsyncContextManager[None]]
_TOPICS = (
    ("api.crawls", "routes"),
    ("api.pages", "routes"),
    ("api.single", "routes"),
    ("api.exports", "routes"),
    ("api.iterations", "routes"),
    ("api.checkpoints", "routes"),
    ("api.jobs", "routes"),
    ("api.jobs", "second"),
    ("api.jobs", "scheduler"),
    ("api.frontier", "routes"),
    ("api.live", "routes"),
    ("api.health", "routes"),
    ("reference", "routes"),
    ("templating", "static_files"),
    ("dashboard.live", "routes"),
    ("dashboard.overview", "routes"),
    ("dashboard.runs", "routes"),
    ("dashboard.comparing", "routes"),
    ("dashboard.content", "routes"),
    ("dashboard.content", "bodies"),
    ("dashboard.tree", "routes"),
    ("dashboard.reports", "routes"),
    ("dashboard.slots", "routes"),
    ("dashboard.jobs", "routes"),
    ("dashboard.status", "routes"),
    ("dashboard.crawls", "routes"),
    ("dashboard.configuring", "routes"),
)


def api(verbs: Verbs, keys: Keys | None = None, living: Living | None = None) -> FastAPI:
    """The routes, without the gate before them. `living`: what works beside them."""
    made = FastAPI(
        title="inchworm", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=living
    )
    made.state.verbs, made.state.keys = verbs, keys
    handle_errors(made)
    made.add_exception_handler(404, _nowhere)
    for module, name in _TOPICS:
        # Not by `include_router`, which makes every route a second time; ours are whole already.
        made.router.routes.extend(getattr(importlib.import_module(f"inchworm.service.{module}"), name).routes)
    if keys is not None:
        made.router.routes.extend(login.routes(keys))
    made.add_middleware(EitherSpelling)
    made.add_middleware(Once, verbs=verbs)
    return made


async def _nowhere(request: Request, error: Exception) -> Response:
    """A path that leads nowhere: people get a page."""
    if is_browser(request.scope):
        return await run_in_threadpool(refused, request, Unknown("There is no such page.", "Start at the overview."))
    return http_trouble(cast(HTTPException, error))
