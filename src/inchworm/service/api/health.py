"""How the service is: for people, for monitors, and for whoever watches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from inchworm import __version__
from inchworm.app.act.jobs.dispatch import Pulse
from inchworm.app.root import App
from inchworm.errors import InchwormError
from inchworm.service.api.web import Answer, Home, api_routes, refusals
from inchworm.settings import Settings

routes = api_routes("health", "")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be, and what to do about it."""

    code: str
    count: int
    message: str
    hint: str


class HealthAnswer(Answer):
    status: Literal["ok", "degraded", "down"]
    service: str
    version: str
    advice: list[str]


class Health:
    """Watches the schedulers, the executions and the jobs of a home. Judges by its own clock, so it must look often."""

    def __init__(self, values: Settings, needs_scheduler: bool) -> None:
        self._values = values
        self._needs_scheduler = needs_scheduler
        self._services: Pulse[str] = Pulse()
        self._locks: Pulse[str] = Pulse()
        self.problems: list[Problem] = []
        self.advice: list[str] = []
        self._advised: float | None = None
        self.is_down = False

    def look(self, app: App) -> None:
        """See how things are. To be called every second or so."""
        try:
            self.problems = [one for one in (self._schedulers(app), self._stuck(app), self._overdue(app)) if one]
            self._advise(app)
            self.is_down = False
        except InchwormError as error:
            self.problems, self.is_down = [Problem("database", 1, error.message, error.hint)], True

    def _advise(self, app: App) -> None:
        """Figures of a whole day do not have to be counted every second."""
        now = app.clock.monotonic()
        if self._advised is None or now - self._advised >= self._values.metrics_every:
            self._advised, self.advice = now, list(app.health.advice())

    def _schedulers(self, app: App) -> Problem | None:
        """Every scheduler that is enrolled must move, and there must be one."""
        services = app.executions.services.all()
        silent = self._services.look(((one.service_id, one.beats) for one in services), app.clock.monotonic())
        stopped = [one for one in services if silent[one.service_id] > 2 * one.poll_s + 1]
        if stopped:
            return Problem(
                "scheduler_stopped",
                len(stopped),
                f"{len(stopped)} of {len(services)} schedulers have stopped.",
                "Restart the service; its executions go on meanwhile.",
            )
        if not services and self._needs_scheduler:
            return Problem("no_scheduler", 1, "No scheduler runs, so no job does.", "Start `inchworm serve`.")
        return None

    def _stuck(self, app: App) -> Problem | None:
        beats = ((lock.token, lock.beats) for lock in app.dispatch.claims.locks())
        limit = 2 * self._values.stale_lock / 5 + 1
        count = sum(1 for seconds in self._locks.look(beats, app.clock.monotonic()).values() if seconds > limit)
        if not count:
            return None
        return Problem(
            "stuck_executions",
            count,
            f"{count} executions show no sign of life.",
            "They are taken over by themselves when the stale time is over.",
        )

    def _overdue(self, app: App) -> Problem | None:
        count, first = app.health.overdue(2 * self._values.poll)
        if not count:
            return None
        return Problem(
            "overdue_jobs",
            count,
            f"{count} jobs should have been started, {first[0]} first.",
            "All executions may be busy: raise --executions, or rebalance.",
        )

    def as_json(self) -> dict[str, Any]:
        """For everybody: nothing secret, so no ids."""
        status = "down" if self.is_down else "degraded" if self.problems else "ok"
        problems = [{"code": one.code, "count": one.count} for one in self.problems]
        told = {"status": status, "service": "inchworm", "version": __version__}
        return {**told, "problems": problems, "advice": self.advice}

    def whole(self) -> dict[str, Any]:
        """For whoever may know."""
        return {**self.as_json(), "problems": [dataclasses.asdict(one) for one in self.problems]}


@routes.head("/health", include_in_schema=False)
@routes.get("/health", response_model=HealthAnswer)
async def health(request: Request) -> Any:
    """Whether all is well. Open to everybody, so it tells no details."""
    found: Health = request.app.state.health
    return JSONResponse(found.as_json(), 503 if found.is_down else 200)


@routes.get("/api/v1/health", responses=refusals())
async def whole_health(request: Request) -> dict[str, Any]:
    """Whether all is well, what is wrong, and what to do about it."""
    found: Health = request.app.state.health
    return found.whole()


@routes.get(
    "/metrics", responses={200: {"content": {"text/plain": {}}}, **refusals()}, response_class=PlainTextResponse
)
def metrics(request: Request, app: Home) -> Any:
    """The figures of the service in the format of Prometheus."""
    found: Health = request.app.state.health
    return PlainTextResponse(exposition(app, found), media_type="text/plain; version=0.0.4; charset=utf-8")


def exposition(app: App, health: Health) -> str:
    figures = app.health.scheduler()
    registry = CollectorRegistry()

    def gauge(name: str, text: str, value: float | None) -> None:
        if value is not None:
            Gauge(f"inchworm_{name}", text, registry=registry).set(value)

    jobs = Gauge("inchworm_jobs", "jobs by state", ["state"], registry=registry)
    for state, count in figures.jobs.items():
        jobs.labels(state).set(count)
    executions = Gauge("inchworm_executions_24h", "executions of the last day by state", ["state"], registry=registry)
    for state in ("completed", "failed", "cancelled", "running"):
        executions.labels(state).set(getattr(figures.executions, state))
    problems = Gauge("inchworm_problems", "what is wrong now, by kind", ["code"], registry=registry)
    for code in ("database", "scheduler_stopped", "no_scheduler", "stuck_executions", "overdue_jobs"):
        problems.labels(code).set(sum(one.count for one in health.problems if one.code == code))
    gauge("up", "1 when the database can be read", 0 if health.is_down else 1)
    gauge(
        "success_rate",
        "completed executions of the last day among those that ended",
        figures.executions.success_rate,
    )
    gauge("distribution_score", "how evenly jobs are spread over the day, 0 to 1", figures.distribution_score)
    gauge("stale_locks_cleared", "jobs that were taken from processes that stood still", figures.stale_locks_cleared)
    gauge("hosts_down", "hosts that cannot be reached and that crawls wait for", app.crawls.hosts_down())
    gauge("pages_24h", "pages crawled by executions of the last day", figures.executions.items_crawled)
    return generate_latest(registry).decode()
