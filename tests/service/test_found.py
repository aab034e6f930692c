"""What a second look at the service found, one test each."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.running import PATIENCE, Service, serving, wait_for

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.root import App
from inchworm.errors import WrongUse
from inchworm.service.access.auth import Role
from inchworm.service.api.live import Channel, Hub, LiveEvent
from inchworm.testing import Page, Site, linked_site


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("found") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that runs no jobs."""
    with serving(tmp_path_factory.mktemp("idle") / "home", "--no-scheduler") as running:
        yield running


@pytest.mark.parametrize("value", ["\\ud800", "NaN"], ids=["half-a-character", "no-number"])
def test_metadata_that_cannot_be_shown_is_refused(idle: Service, value: str) -> None:
    text = f'"{value}"' if value.startswith("\\") else value
    body = f'{{"url": "http://example.invalid/", "interval_minutes": 60, "metadata": {{"a": {text}}}}}'
    before = idle.get("/api/v1/jobs")["items"]
    answer = idle.client.post("/api/v1/jobs", content=body.encode())
    assert answer.status_code == 422, answer.text
    assert idle.get("/api/v1/jobs")["items"] == before
    assert idle.client.get("/api/v1/jobs?cursor=WzEsICJcdWQ4MDAiXQ").status_code == 400


def test_a_stream_that_cannot_be_read_does_not_end_the_others() -> None:
    def broken(_: int, __: int) -> list[LiveEvent]:
        raise RuntimeError("gone")

    def whole(after: int, _: int) -> list[LiveEvent]:
        return [LiveEvent(1, "x", "one")] if after < 1 else []

    async def both() -> bytes:
        hub = Hub()
        work = asyncio.create_task(hub.work())
        bad, good = Channel(broken), Channel(whole)
        bad.start_at(0)
        hub.channel("bad", lambda: bad)
        stream = hub.watch(hub.channel("good", lambda: good), 0)
        await anext(stream)
        await asyncio.sleep(1.2)
        got = await anext(stream)
        assert not work.done()
        hub.close()
        await work
        await stream.aclose()
        return got

    assert asyncio.run(both()) == b"id: 1\nevent: x\ndata: one\n\n"


def test_readers_that_leave_take_everything_along() -> None:
    async def come_and_go() -> int:
        hub = Hub()
        work = asyncio.create_task(hub.work())
        channel = hub.channel("x", lambda: Channel(lambda _, __: []))
        for _ in range(20):
            stream = hub.watch(channel, 0)
            await anext(stream)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await stream.aclose()
        await asyncio.sleep(0.05)
        left = len(asyncio.all_tasks()) - 2
        hub.close()
        await work
        return left

    assert asyncio.run(come_and_go()) < 5


def test_a_log_that_is_deleted_while_somebody_reads_it(service: Service) -> None:
    with Site(linked_site(5)).serve() as web:
        execution = service.once(web.url())
        service.delete(f"/api/v1/jobs/{execution['job_id']}")
        other = service.once(web.url("/1"))
        assert "event: end" in service.get(f"/api/v1/jobs/{other['job_id']}/logs/stream/v2")


@pytest.mark.parametrize("topic", ["health", "metrics"])
def test_who_comes_back_after_a_restart_is_told_again(service: Service, topic: str) -> None:
    headers = {**service.headers(Role.READ_ONLY), "Last-Event-ID": "57000"}
    with httpx.stream("GET", f"{service.url}/sse/{topic}/events", headers=headers, timeout=PATIENCE) as stream:
        assert next(line for line in stream.iter_lines() if line.startswith("event: ")) == f"event: {topic}"


def test_strangers_leave_no_trace(service: Service) -> None:
    headers = {"Idempotency-Key": "theirs"}
    for _ in range(2):
        httpx.post(f"{service.url}/login", data={"token": "x"}, headers=headers)
    app = App(service.home)
    try:
        assert str(app.admission.begin_once("theirs", b"")) == "fresh"
    finally:
        app.close()


def test_what_was_not_the_time_for_can_be_sent_again(idle: Service) -> None:
    body = {"url": "http://example.invalid/", "interval_minutes": 60, "schedule_enabled": False}
    job = idle.post("/api/v1/jobs", body, 201)
    path, headers = f"/api/v1/jobs/{job['id']}/resume", {"Idempotency-Key": "later"}
    assert idle.client.post(path, headers=headers).status_code == 409
    idle.post(f"/api/v1/jobs/{job['id']}/pause")
    assert idle.client.post(path, headers=headers).status_code == 200


def test_sources_are_synced_once_however_often_at_once(idle: Service) -> None:
    source = {"source_id": idle.put("/api/v1/config", {"url": "http://synced.invalid/"})["crawl_id"]}
    threads = [threading.Thread(target=idle.post, args=("/api/v1/admin/sync-enabled-sources",)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(idle.get("/api/v1/jobs", params=source)["items"]) == 1


def test_a_job_that_waits_for_another_of_its_crawl_is_not_overdue(tmp_path: Path) -> None:
    app = App(tmp_path / "home")
    try:
        first = app.schedule.add(WantedJob(url="http://example.invalid/"))
        app.schedule.add(WantedJob(source_id=first.crawl_id))
        assert app.health.overdue(-3600)[0] == 2
        app.dispatch.claim("s", 1)
        assert app.health.overdue(-3600)[0] == 0
    finally:
        app.close()


def test_nobody_can_type_a_password_for_a_job(tmp_path: Path) -> None:
    app = App(tmp_path / "home")
    try:
        with pytest.raises(WrongUse, match="kept nowhere"):
            app.schedule.add(WantedJob(url="http://user:secret@example.invalid/"))
        assert app.workspace.crawls.all() == []
    finally:
        app.close()


def test_the_next_run_is_tried_again_when_the_site_was_down(service: Service) -> None:
    pages = linked_site(5)
    site = Site(dict(pages))
    with site.serve() as web:
        crawl_id = service.once(web.url())["crawl_id"]
        site.pages = {path: Page("down", 500) for path in pages}  # type: ignore[assignment]
        made = service.post(
            "/api/v1/jobs",
            {
                "source_id": crawl_id,
                "max_retries": 1,
                "retry_backoff_seconds": 0,
                "settings": {"max_retries": 0, "delay": 0},
            },
            201,
        )
        first = service.ended(made["id"], 1)
        assert "could be fetched" in first["error_message"]
        second = service.ended(made["id"], 2)
        assert "could be fetched" in second["error_message"], "it was tried, and not only refused"


def test_a_start_that_was_handed_back_does_not_crawl_a_complete_run_again(tmp_path: Path) -> None:
    site = Site({path: Page(text, delay=0.02) for path, text in linked_site(60).items()})
    with site.serve() as web:
        with serving(tmp_path / "home") as service:
            job = service.post("/api/v1/jobs", {"url": web.url(), "settings": {"delay": 0, "workers": 2}}, 201)
            wait_for(lambda: len(web.log) > 10, "some pages")
            service.process.send_signal(signal.SIGTERM)
            service.process.wait(PATIENCE)
        app = App(tmp_path / "home")
        summary = asyncio.run(app.sessions.work(app.plan.resume(job["crawl_id"], {"delay": 0, "allow_private": True})))
        assert summary.run_state == "completed"
        with serving(tmp_path / "home") as service:
            assert service.ended(job["id"], 2)["status"] == "completed"
        assert len(app.runs.list(app.workspace.find(job["crawl_id"]))) == 1
        app.close()
