"""A service that has something to show on every page: two runs with changes, a paused one, failures, jobs, messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import quote, urlencode

from tests.service.running import Service, serving, wait_for

from inchworm.app.root import App
from inchworm.service.dashboard.frame import PageRoute

ENVIRONMENT = {
    "INCHWORM_DELAY": "0",
    "INCHWORM_MAX_RETRIES": "0",
    "INCHWORM_NOTIFY_SECRET": "something that only the receiver knows",
}
ASKED = {"/crawls/{crawl_id}/search": {"q": "seen"}}
"""What makes a page show more than an empty form."""

NOWHERE = "http://127.0.0.1:9/"


@dataclass(frozen=True, slots=True)
class Filled:
    """The service, and what stands for the names in the addresses of its pages."""

    service: Service
    names: dict[str, str]

    def paths(self, route: PageRoute) -> list[str]:
        """The addresses of a page: with every value of a choice in them, and what has to be asked for, or should."""
        values = [_choices(one) or [self.names[one.alias]] for one in route.dependant.path_params]
        needed = {one.alias: self.names[one.alias] for one in asked_of(route) if one.field_info.is_required()}
        query = urlencode(needed | ASKED.get(route.path, {}))
        return [self._path(route, chosen) + (f"?{query}" if query else "") for chosen in product(*values)]

    def _path(self, route: PageRoute, chosen: tuple[str, ...]) -> str:
        names = dict(zip((one.alias for one in route.dependant.path_params), chosen, strict=True))
        return re.sub(r"{(\w+)[^}]*}", lambda found: quote(names[found[1]], safe=""), route.path)


def asked_of(route: PageRoute) -> list[Any]:
    """The parameters of a page's query, those of what it depends on among them."""
    found, waiting = [], [route.dependant]
    while waiting:
        one = waiting.pop()
        found += one.query_params
        waiting += one.dependencies
    return found


def _choices(parameter: Any) -> list[str]:
    """The words that a parameter takes, if it takes no others."""
    kind = parameter.field_info.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(one.value) for one in kind]
    return [str(one) for one in get_args(kind)] if get_origin(kind) is Literal else []


@contextmanager
def filled(home: Path, url: str, page: str, change: Callable[[], object]) -> Iterator[Filled]:
    """`page`: an address that both runs know, and that `change` edits."""
    with serving(home, env=ENVIRONMENT) as service:
        crawl_id = service.once(url)["crawl_id"]
        service.post(f"/api/v1/crawl/{crawl_id}/checkpoint")
        change()
        job_id, execution_id = _again(service, crawl_id)
        _others(service, url)
        names = {"crawl_id": crawl_id, "number": "1", "job_id": job_id, "execution_id": execution_id, "url": page}
        yield Filled(service, {**names, "delivery_id": _delivery(service), "command": "pause"})


def _again(service: Service, crawl_id: str) -> tuple[str, str]:
    """The job and the execution of the next run, of which somebody is told who does not listen."""
    body = {"notify": [NOWHERE + "hook"], "notify_on_completion": True, "max_iterations": 9}
    service.post(f"/api/v1/crawl/{crawl_id}/iterations", body)
    job_id = service.post(f"/api/v1/crawl/{crawl_id}/iterations/next", status=202)["job_id"]
    return job_id, str(service.ended(job_id)["id"])


def _others(service: Service, url: str) -> None:
    """A crawl that stopped at its budget, and a job that finds nobody."""
    few = {"url": url + "herbs/", "settings": {"budget": 5}}
    nobody = {"url": NOWHERE, "settings": {"max_retries": 0}, "interval_minutes": 60, "schedule_enabled": True}
    jobs = [service.post("/api/v1/jobs", body, 201)["id"] for body in (few, nobody)]
    service.ended(jobs[0])


def _delivery(service: Service) -> str:
    app = App(service.home)
    try:
        return str(wait_for(app.notifications.listed, "a message")[0].id)
    finally:
        app.close()
