"""The routes in this process, with a real scheduler beside them whose executions are real child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
from fastapi import APIRouter, FastAPI
from tests.service.running import wait_for as wait_for

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.act.plan import Start, over_http
from inchworm.app.root import App
from inchworm.job import Task
from inchworm.rules.words.json_form import json_form, json_object
from inchworm.service import build
from inchworm.service.api.web import EitherSpelling, Verbs, handle_errors
from inchworm.service.scheduler import Scheduler
from inchworm.settings import Settings
from inchworm.testing import Hit, Page

PATIENCE = 60.0
VALUES = Settings(poll=0.1, stale_check=0.5, stale_lock=30.0, allow_private=True)


class Api:
    """The routes, a client, and the verbs of the same home for whatever a test wants to see for itself."""

    def __init__(
        self, folder: Path, scheduler: Scheduler | None, values: Settings, routers: Sequence[APIRouter] = ()
    ) -> None:
        self.folder = folder
        self.app = App(folder)
        self._verbs = Verbs(folder, values, scheduler.wake if scheduler else lambda: None)
        made = some(self._verbs, routers) if routers else build.api(self._verbs)
        transport = httpx.ASGITransport(made, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://inchworm.test/api/v1", timeout=PATIENCE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._verbs.close()
        self.app.close()

    async def _leave(self) -> None:
        await self._client.aclose()
        await self._loop.shutdown_asyncgens()

    # Asking

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """From any thread, several at once."""
        return asyncio.run_coroutine_threadsafe(self._client.request(method, path, **options), self._loop).result()

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        return self.ask("GET", path, status, params=query)

    def post(self, path: str, status: int = 200, body: Any = None, **query: Any) -> Any:
        return self.ask("POST", path, status, params=query, **({"json": body} if body is not None else {}))

    def ask(self, method: str, path: str, status: int, **options: Any) -> Any:
        answer = self.request(method, path, **options)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text[:2000])
        if status >= 400:
            assert set(answer.json()) == {"error"} and set(answer.json()["error"]) == {"code", "message", "hint"}
            return answer.json()["error"]
        return answer.json() if answer.content else None

    def checkpoints(self, crawl_id: str) -> list[dict[str, Any]]:
        """As programs get them, oldest first."""
        return cast(list[dict[str, Any]], json_form(self.app.checkpoints.list(self.app.workspace.find(crawl_id))))

    # Crawls

    def make(self, url: str, **defaults: Any) -> str:
        """A crawl that has not run yet."""
        return self.app.plan.find_or_make(
            Start((url,), defaults={"delay": 0, "grace": 0.1, **defaults}, caller=over_http(True))
        ).crawl_id

    def crawled(self, url: str, budget: int = 0, **defaults: Any) -> str:
        """A crawl whose first session is over."""
        crawl_id = self.make(url, **defaults)
        self.run_once(crawl_id, Task(settings={"budget": budget} if budget else {}))
        return crawl_id

    def run_once(self, crawl_id: str, task: Task) -> None:
        crawl = self.app.workspace.find(crawl_id)
        self.ended(self.app.schedule.add(WantedJob(crawl=crawl, task=task)).id)

    def next_run(self, crawl_id: str) -> str:
        """Have the next run begin, as over HTTP; the job that makes it."""
        return self.app.hand_over.next_run(self.app.plan.recrawl(crawl_id, caller=over_http(True))).id

    def ended(self, job_id: str, number: int = 1) -> dict[str, Any]:
        """The last execution of a job, when that of this number is over and nobody works on the crawl any more."""

        def look() -> dict[str, Any] | None:
            newest = [json_object(one) for one in self.app.executions.listed(job_id, None, 1)]
            is_over = newest and newest[0]["execution_number"] >= number and newest[0]["status"] != "running"
            return newest[0] if is_over and not self.is_running(newest[0]["crawl_id"]) else None

        found: dict[str, Any] = wait_for(look, f"execution {number} of {job_id} to end")
        assert found["error_message"] is None, found
        return found

    def is_running(self, crawl_id: str) -> bool:
        return self.app.workspace.is_running(self.app.workspace.find(crawl_id))

    def status(self, crawl_id: str) -> dict[str, Any]:
        """Where a crawl stands, as JSON has it."""
        return cast(dict[str, Any], json_form(self.app.crawls.status(self.app.workspace.find(crawl_id))))

    def faults(self, crawl_id: str) -> list[str]:
        crawl = self.app.workspace.find(crawl_id)
        with self.app.workspace.reading(crawl) as store:
            return self.app.check.record(crawl, store)

    def kill(self, job_id: str) -> None:
        """Kill the process that carries out the execution of a job."""
        os.kill(self.app.executions.listed(job_id, None, 1)[0].pid, signal.SIGKILL)


def some(verbs: Verbs, routers: Sequence[APIRouter]) -> FastAPI:
    """An application of these routes only."""
    made = FastAPI()
    made.state.verbs = verbs
    handle_errors(made)
    for one in routers:
        made.include_router(one)
    made.add_middleware(EitherSpelling)
    return made


@contextmanager
def serving(folder: Path, *routers: APIRouter, values: Settings = VALUES, jobs: bool = True) -> Iterator[Api]:
    """These routes, or all there are; without `jobs`, nobody runs what they start."""
    scheduler = Scheduler(folder, values) if jobs else None
    api = Api(folder, scheduler, values, routers)
    if scheduler is not None:
        scheduler.start()
    try:
        yield api
    finally:
        if scheduler is not None:
            scheduler.stop()
        api.close()


class HeldPages(dict[str, Any]):
    """Pages, of which some are kept back until `is_open`."""

    is_open = False

    def hold(self, path: str) -> None:
        text = self[path]

        def answer(_: Hit) -> Page:
            return Page(text, delay=0.0 if self.is_open else 600.0)

        self[path] = answer
