"""How the service is: what is wrong and what to do about it, who runs jobs, how executions went; and what was told to
others."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Path, Request

from inchworm.app.read.health import HomeState
from inchworm.app.root import App
from inchworm.errors import InchwormError
from inchworm.service.api.health import Health
from inchworm.service.api.web import Home, Paged, cursor_of, listed
from inchworm.service.api.web import ListSlice as Place
from inchworm.service.dashboard.frame import Fields, back, page, pages, part
from inchworm.service.dashboard.live import Make, Parts, view

routes = pages()
_ROWS = 50
_PLACE = "/status/notifications"
"""Where pages about notifications belong to in the menu."""

_MOST_BODY = 100_000
_MOST_ID = 1 << 62
_HEADLINES = {
    "ok": "All is well",
    "degraded": "Something is not as it should be",
    "down": "The database cannot be used",
    "unknown": "Nobody watches over this service",
}
_UNWATCHED: dict[str, Any] = {"status": "unknown", "problems": []}


# Health


@routes.get("/status")
def status(request: Request, app: Home) -> Any:
    health: Health | None = getattr(request.app.state, "health", None)
    return page(request, "status.html", view="status:" if health else "", parts=parts(app, health))


def watching(health: Health) -> Make:
    """What an open page watches: the home says nothing of how its service is, so the service hands that in."""
    return lambda app, _: parts(app, health)


def parts(app: App, health: Health | None) -> Parts:
    found = health.whole() if health is not None else _UNWATCHED
    state: HomeState | None = None
    trouble: InchwormError | None = None
    try:
        state = app.health.home()
    except InchwormError as error:
        trouble = error
    headline = _HEADLINES[found["status"]]
    is_failing = found["status"] == "ok" and bool(state and state.is_failing)
    if is_failing:
        headline = "The service is well, but many executions fail"
    return {
        "health": part("_status_health.html", health=found, headline=headline, is_failing=is_failing),
        "standing": part("_status_standing.html", home=state, trouble=trouble),
    }


# What was told to others

State = Literal["waiting", "delivered", "failed"]
DeliveryId = Annotated[int, Path(ge=1, lt=_MOST_ID)]


@routes.get("/notifications")
def notifications(request: Request, app: Home, place: Paged, state: State | None = None) -> Any:
    before = cursor_of(place, int)
    after = before[0] if before else None
    watched = f"notifications:{state or ''}:{after or ''}"
    found = _notification_parts(app, state, after)
    return page(request, "notifications.html", view=watched, parts=found, state=state or "", path=_PLACE)


@view("notifications")
def notification_parts(app: App, name: str) -> Parts:
    state, _, after = name.partition(":")
    is_number = after.isascii() and after.isdigit() and len(after) <= 15
    return _notification_parts(app, state or None, int(after) if is_number else None)


def _notification_parts(app: App, state: str | None, after: int | None) -> Parts:
    found = app.notifications.listed(None, state, after, _ROWS + 1)
    rows = listed(found, Place(None, _ROWS), lambda one: one.id)
    query = {"state": state or "", "cursor": "yes" if after else ""}
    return {"deliveries": part("_notifications_rows.html", rows=rows, query=query)}


@routes.get("/notifications/{delivery_id}")
def notification(request: Request, app: Home, delivery_id: DeliveryId) -> Any:
    found = app.notifications.one(delivery_id)
    body = json.dumps(found.body, indent=2, ensure_ascii=False)
    return page(
        request,
        "notification.html",
        path=_PLACE,
        one=found.line,
        log=found.log,
        body=body[:_MOST_BODY],
        is_cut=len(body) > _MOST_BODY,
    )


@routes.post("/notifications/{delivery_id}/replay")
def replay(request: Request, app: Home, delivery_id: DeliveryId, _: Fields) -> Any:
    found = app.deliver.replay(delivery_id)
    to: str = request.state.back
    return back(
        to or "/notifications", f"The message to {found.line.address} is sent once more, as soon as a service runs."
    )
