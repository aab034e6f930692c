"""The application: every route of the service, behind one gate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI

from inchworm import __version__
from inchworm.service import login
from inchworm.service.gate import Keys
from inchworm.service.once import Once
from inchworm.service.web import EitherSpelling, Verbs, handle_errors

_ABOUT = """\
A web crawler that never loses its place. All times are ISO 8601 in UTC. Bodies and query parameters may be written in
snake_case or camelCase; answers are in snake_case. Lists come in pages: send `next_cursor` back as `cursor`. Every
error is `{"error": {"code", "message", "hint"}}`. A POST with an `Idempotency-Key` is carried out once, however often
it is sent.
"""
Living = Callable[[FastAPI], AbstractAsyncContextManager[None]]
_TOPICS = (
    ("crawls", "routes"),
    ("pages", "routes"),
    ("iterations", "routes"),
    ("checkpoints", "routes"),
    ("jobs", "routes"),
    ("jobs", "second"),
    ("jobs", "scheduler"),
    ("frontier", "routes"),
    ("live", "routes"),
    ("health", "routes"),
    ("reference", "routes"),
)


def api(verbs: Verbs, keys: Keys | None = None, living: Living | None = None) -> FastAPI:
    """The routes, without the gate before them. `living`: what works beside them."""
    made = FastAPI(
        title="inchworm", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=living
    )
    made.state.verbs = verbs
    handle_errors(made)
    for module, name in _TOPICS:
        made.include_router(getattr(importlib.import_module(f"inchworm.service.{module}"), name))
    if keys is not None:
        made.router.routes.extend(login.routes(keys))
    made.add_middleware(EitherSpelling)
    made.add_middleware(Once, verbs=verbs)
    return made
