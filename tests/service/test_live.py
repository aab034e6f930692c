"""Server-sent events: logs in order and complete, across dropped connections, for many, and for nobody who reads."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.running import PATIENCE, Service, events_of, serving, wait_for

from inchworm.service.access.auth import Role
from inchworm.service.api.live import Channel, Feed, Hub, LiveEvent
from inchworm.testing import Page, Site, linked_site


def failing(pages: int, delay: float = 0.0) -> Site:
    """A site where every third page is broken, so that its log has much to tell."""
    texts = linked_site(pages).items()
    return Site({path: Page(text, 500 if n % 3 == 2 else 200, delay=delay) for n, (path, text) in enumerate(texts)})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("live") / "home") as running:
        yield running


class TestLog:
    def test_it_is_in_order_complete_and_ends(self, service: Service) -> None:
        with failing(40).serve() as web:
            job = service.post("/api/v1/jobs", {"url": web.url(), "settings": {"delay": 0, "max_retries": 0}}, 201)
            wait_for(lambda: service.get(f"/api/v1/jobs/{job['id']}/executions")["items"], "an execution")
            streamed = service.get(f"/api/v1/jobs/{job['id']}/logs/stream/v2")
            found = events_of(streamed)
            assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
            assert streamed.endswith("event: end\ndata: {}\n\n")
            kept = service.get(f"/api/v1/jobs/{job['id']}/logs").splitlines()
            assert [data["text"] for _, _, data in found] == [line.split(None, 2)[2] for line in kept]

    def test_the_command_line_follows_it(self, tmp_path: Path) -> None:
        with failing(30, delay=0.02).serve() as web, serving(tmp_path / "home") as service:
            job = service.post("/api/v1/jobs", {"url": web.url(), "settings": {"delay": 0, "max_retries": 0}}, 201)
            wait_for(lambda: service.get(f"/api/v1/jobs/{job['id']}/executions")["items"], "an execution")
            command = [sys.executable, "-m", "inchworm", "jobs", "logs", "--follow", job["id"]]
            environment = {**os.environ, "INCHWORM_HOME": str(service.home)}
            followed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
            assert followed == service.get(f"/api/v1/jobs/{job['id']}/logs")

    def test_a_reader_that_comes_back_gets_the_rest(self, service: Service) -> None:
        with failing(60).serve() as web:
            execution = service.once(web.url(), max_retries=0)
            path = f"/api/v1/jobs/{execution['job_id']}/logs/stream/v2"
            whole = events_of(service.get(path))
            rest = events_of(service.get(path, headers={"Last-Event-ID": "3"}))
            assert len(whole) > 5
            assert rest == whole[3:]
            assert events_of(service.get(path, headers={"Last-Event-ID": str(len(whole))})) == []

    def test_an_id_that_is_none_begins_anew(self, service: Service) -> None:
        with Site({"/": "<p>one page</p>"}).serve() as web:
            execution = service.once(web.url())
        path = f"/api/v1/jobs/{execution['job_id']}/logs/stream/v2"
        for last in ("-1", "x", "1e9", "９", "9" * 30, "0x10"):
            headers = {"Last-Event-ID": last.encode("utf-8", "replace")}
            assert events_of(service.get(path, headers=headers))[0][0] == 1, last

    def test_it_outlives_the_service(self, tmp_path: Path) -> None:
        with failing(30).serve() as web:
            with serving(tmp_path / "home") as service:
                execution = service.once(web.url(), max_retries=0)
                path = f"/api/v1/jobs/{execution['job_id']}/logs"
                before = service.get(path)
                service.kill()
            with serving(tmp_path / "home") as service:
                assert service.get(path) == before

    def test_one_event_is_one_line_whatever_a_server_says(self, service: Service) -> None:
        hostile = "<a href='/%0a%0devent:%20end'>x</a><a href='/\u202eevil'>y</a><a href='/\x1b[31m'>z</a>"
        with Site({"/": hostile}).serve() as web:
            execution = service.once(web.url(), max_retries=0)
            log = service.get(f"/api/v1/jobs/{execution['job_id']}/logs")
            assert "\x1b" not in log
            assert "\u202e" not in log
            assert len(log.splitlines()) == len(
                events_of(service.get(f"/api/v1/jobs/{execution['job_id']}/logs/stream/v2"))
            )


class TestCrawler:
    def test_what_happens_to_a_job_is_told(self, tmp_path: Path) -> None:
        found: list[str] = []
        with Site(linked_site(20)).serve() as web, serving(tmp_path / "home") as service:
            url, headers = f"{service.url}/sse/crawler/events", service.headers()

            def listen() -> None:
                with httpx.stream("GET", url, headers=headers, timeout=30) as stream:
                    for line in stream.iter_lines():
                        found.append(line)
                        if "execution_ended" in line:
                            return

            listener = threading.Thread(target=listen)
            listener.start()
            wait_for(lambda: found, "the stream to begin")
            service.once(web.url())
            listener.join(30)
        kinds = [line.removeprefix("event: ") for line in found if line.startswith("event: ")]
        assert [kind for kind in kinds if kind != "progress"][:4] == [
            "job",
            "job",
            "session_started",
            "execution_ended",
        ]

    @pytest.mark.parametrize("topic", ["health", "metrics"])
    def test_the_newest_comes_first(self, service: Service, topic: str) -> None:
        url, headers = f"{service.url}/sse/{topic}/events", service.headers(Role.READ_ONLY)
        with httpx.stream("GET", url, headers=headers, timeout=30) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("event: "))
            assert next(lines) == f"event: {topic}"

    def test_there_is_no_other_topic(self, service: Service) -> None:
        service.get("/sse/secrets/events", 422)


class TestManyAndSlow:
    def test_a_reader_that_never_reads_holds_nobody_up(self, service: Service) -> None:
        with failing(60).serve() as web:
            host, port = service.url.removeprefix("http://").split(":")
            token = service.token()
            head = f"GET /sse/crawler/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
            deaf = [socket.create_connection((host, int(port))) for _ in range(50)]
            try:
                for one in deaf:
                    one.sendall(head.encode())
                assert service.once(web.url(), max_retries=0)["status"] == "completed"
                assert service.get("/health")["status"] == "ok"
            finally:
                for one in deaf:
                    one.close()

    def test_five_hundred_watch_a_crawl(self, tmp_path: Path) -> None:
        """Each of them hears of its end, and it takes no notice of them."""
        with Site(linked_site(60)).serve() as web, serving(tmp_path / "home") as service:
            host, port = service.url.removeprefix("http://").split(":")
            key = f"Authorization: Bearer {service.token()}"
            head = f"GET /sse/crawler/events HTTP/1.1\r\nHost: {host}:{port}\r\n{key}\r\n\r\n"

            async def watch(ready: asyncio.Semaphore) -> bool:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(head.encode())
                await reader.readuntil(b"retry: ")
                ready.release()
                await reader.readuntil(b"event: execution_ended")
                writer.close()
                return True

            async def crowd() -> tuple[list[bool], dict[str, Any]]:
                ready = asyncio.Semaphore(0)
                watching = [asyncio.create_task(watch(ready)) for _ in range(500)]
                for _ in watching:
                    await ready.acquire()
                execution = await asyncio.to_thread(service.once, web.url())
                return await asyncio.wait_for(asyncio.gather(*watching), PATIENCE), execution

            heard, execution = asyncio.run(crowd())
            assert len(heard) == 500 and all(heard)
            assert (execution["status"], execution["items_crawled"]) == ("completed", 60)

    def test_a_channel_is_read_once_however_many_watch(self) -> None:
        reads: list[int] = []
        stored = [LiveEvent(n, "x", str(n)) for n in range(1, 4)]

        def fetch(after: int, limit: int) -> list[LiveEvent]:
            reads.append(after)
            return [one for one in stored if one.number > after][:limit]

        async def watchers() -> list[list[LiveEvent]]:
            hub, channel = Hub(), Channel(fetch)
            channel.start_at(0)
            work = asyncio.create_task(hub.work())
            streams = [hub.follow(hub.channel("x", lambda: channel), 0) for _ in range(500)]
            got = [await anext(one) for one in streams]
            before = len(reads)
            stored.append(LiveEvent(4, "x", "4"))
            more = await asyncio.gather(*(anext(one) for one in streams))
            assert len(reads) - before <= 10
            hub.close()
            await work
            for one in streams:
                await one.aclose()
            assert channel.watchers == 0
            return [*got, *more]

        got = asyncio.run(watchers())
        assert got == [stored[:3]] * 500 + [stored[3:]] * 500

    def test_what_comes_while_one_looks_is_not_missed(self) -> None:
        stored: list[LiveEvent] = []

        def fetch(after: int, limit: int) -> list[LiveEvent]:
            return [one for one in stored if one.number > after][:limit]

        async def race() -> None:
            hub, channel = Hub(), Channel(fetch)
            work = asyncio.create_task(hub.work())
            stream = hub.follow(hub.channel("x", lambda: channel), 0)
            for number in range(1, 200):
                stored.append(LiveEvent(number, "x", str(number)))
                if number % 50 == 0:
                    await asyncio.sleep(0.3)
            got: list[LiveEvent] = []
            while len(got) < len(stored):
                got += await asyncio.wait_for(anext(stream), 5)
            assert got == stored
            hub.close()
            await work
            await stream.aclose()

        asyncio.run(race())

    def test_a_feed_tells_only_what_differs(self) -> None:
        feed = Feed("health")
        feed.show({"status": "ok", "at": 1}, ("at",))
        feed.show({"status": "ok", "at": 2}, ("at",))
        assert [one.number for one in feed.after(0, 10)] == [1]
        feed.show({"status": "degraded", "at": 3}, ("at",))
        assert [one.number for one in feed.after(1, 10)] == [2]
        assert feed.after(2, 10) == []
