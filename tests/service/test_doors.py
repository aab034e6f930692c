"""Nobody gets in: every route there is, without a token, with one that may only look, and with hostile bodies.

The list of routes is read from the application, so that none can be forgotten.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.running import Service, serving

from inchworm.service import build
from inchworm.service.api.web import Verbs
from inchworm.settings import Settings
from inchworm.testing import Site

OPEN = {("GET", "/health"), ("HEAD", "/health"), ("GET", "/login"), ("POST", "/login"), ("GET", "/static/{name}")}


def routes() -> list[tuple[str, str]]:
    api = build.api(Verbs(Path("unused"), Settings(), lambda: None))
    return sorted(
        {(method, route.path) for route in all_of(api.routes) for method in route.methods} - {("HEAD", "/openapi.json")}
    )


def all_of(found: Any) -> Iterator[Any]:
    """Routes, also those that were included with a router."""
    for route in found:
        inner = getattr(route, "original_router", None)
        yield from all_of(inner.routes) if inner is not None else (route,)


def filled(path: str) -> str:
    """A path with something in its holes that is not there."""
    return re.sub(r"\{[^}]*\}", lambda hole: "crawler" if "topic" in hole[0] else "1", path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("doors") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def read_only(service: Service) -> dict[str, str]:
    command = [sys.executable, "-m", "inchworm", "token", "--read-only"]
    environment = {**os.environ, "INCHWORM_HOME": str(service.home)}
    made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {"Authorization": f"Bearer {made.strip()}"}


def test_there_are_routes() -> None:
    assert len(routes()) > 60


@pytest.mark.parametrize(("method", "path"), [one for one in routes() if one not in OPEN])
class TestEveryRoute:
    def test_without_a_token(self, service: Service, method: str, path: str) -> None:
        answer = service.client.request(method, filled(path), headers={"Authorization": ""})
        assert answer.status_code == 401, answer.text
        assert answer.json()["error"]["message"] == "This needs a valid token."
        assert answer.headers["www-authenticate"] == "Bearer"

    def test_with_a_token_that_is_none(self, service: Service, method: str, path: str) -> None:
        answer = service.client.request(method, filled(path), headers={"Authorization": "Bearer a.b.c"})
        assert answer.status_code == 401, answer.text

    def test_with_a_token_that_may_only_look(
        self, service: Service, read_only: dict[str, str], method: str, path: str
    ) -> None:
        if method == "GET" and ("/sse/" in path or "stream" in path):
            pytest.skip("it has no end")
        answer = service.client.request(method, filled(path), headers=read_only)
        if method == "GET":
            assert answer.status_code not in (401, 403, 500), answer.text
        else:
            assert answer.status_code == 403, answer.text
            assert answer.json()["error"]["code"] == "read_only"

    def test_from_a_foreign_page(self, service: Service, method: str, path: str) -> None:
        headers = {"Origin": "https://evil.test", "Cookie": "inchworm=x", "Authorization": ""}
        answer = service.client.request(method, filled(path), headers=headers)
        assert answer.status_code in (401, 403, 429), answer.text

    def test_under_a_foreign_name(self, service: Service, method: str, path: str) -> None:
        answer = service.client.request(method, filled(path), headers={"Host": "evil.test"})
        assert answer.status_code in (400, 421), answer.text


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"", {400, 422}),
            (b"{", {400}),
            (b'{"url": "https://a.test/",}', {400}),
            (b"[" * 100_000, {400}),
            (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, {400, 422}),
            (b'"text"', {422}),
            (b"null", {422}),
            (b"NaN", {400, 422}),
            (b'{"url": "\\ud800"}', {400, 422}),
            (b"\xff\xfe{}", {400, 422}),
            (b'{"url": "https://a.test/", "id": "mine"}', {422}),
            (b'{"url": "https://a.test/", "created_at": 1, "role": "full"}', {422}),
            (b'{"url": "https://a.test/", "interval_minutes": 1e400}', {400, 422}),
            (b'{"url": "https://a.test/", "interval_minutes": 10000000000000000000000}', {422}),
            (b'{"url": "https://a.test/", "settings": {"allow_private": true}}', {422}),
            (b'{"url": "https://a.test/", "settings": {"replay": ["/etc/passwd"]}}', {422}),
            (b'{"url": "https://a.test/", "settings": {"proxies": ["http://127.0.0.1:1"]}}', {422}),
            (b'{"url": "https://a.test/", "settings": {"include": ["re:(a+"]}}', {422}),
            (b'{"url": "javascript:alert(1)"}', {422}),
            (b'{"url": "file:///etc/passwd"}', {422}),
            (b'{"source_id": "nothing"}', {422}),
            (b"{}", {422}),
        ],
    )
    def test_a_job_that_cannot_be(self, service: Service, body: bytes, status: set[int]) -> None:
        headers = {"Content-Type": "application/json"}
        answer = service.client.post("/api/v1/jobs", content=body, headers=headers)
        assert answer.status_code in status, answer.text
        assert set(answer.json()["error"]) == {"code", "message", "hint"}
        assert service.get("/api/v1/jobs")["items"] == []

    def test_one_that_is_too_large(self, service: Service) -> None:
        answer = service.client.post("/api/v1/jobs", content=b"x" * 3_000_000)
        assert answer.status_code == 413

    def test_one_that_is_packed(self, service: Service) -> None:
        answer = service.client.post("/api/v1/jobs", content=b"x", headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 415

    @pytest.mark.parametrize("text", ["{{7*7}}", "${7*7}", "%s%n", "{% raw %}", "__import__('os')", "!!python/object"])
    def test_text_stays_text(self, service: Service, text: str) -> None:
        made = service.post(
            "/api/v1/jobs",
            {
                "url": "https://example.invalid/",
                "interval_minutes": 900,
                "schedule_enabled": False,
                "metadata": {"a": text},
            },
            201,
        )
        assert service.get(f"/api/v1/jobs/{made['id']}")["metadata"] == {"a": text}
        service.delete(f"/api/v1/jobs/{made['id']}")


class TestQueries:
    @pytest.mark.parametrize(
        "query",
        [
            "limit=1000000000",
            "limit=-1",
            "limit=0",
            "limit=x",
            "cursor=%00",
            "cursor=bm90IG91cnM",
            "cursor=WzEsMl0",
            "cursor=Wy0xLCJ4Il1d",
            "status=nothing",
            "status=running' OR 1=1 --",
        ],
    )
    def test_a_list_that_cannot_be(self, service: Service, query: str) -> None:
        answer = service.client.get(f"/api/v1/jobs?{query}")
        assert answer.status_code in (400, 422), answer.text

    @pytest.mark.parametrize("word", ["'; DROP TABLE job; --", "%", "_", "x' OR '1'='1", "\x00"])
    def test_sql_finds_nothing(self, service: Service, word: str) -> None:
        answer = service.client.get("/api/v1/jobs", params={"source_id": word})
        assert answer.status_code == 200
        assert answer.json()["items"] == []

    @pytest.mark.parametrize("name", ["..%2f..%2fhome.db", "%2e%2e", "a" * 5000, "CON", "%00", "\u2215etc"])
    def test_a_name_leads_nowhere(self, service: Service, name: str) -> None:
        for path in (f"/api/v1/jobs/{name}", f"/api/v1/crawl/{name}", f"/static/{name}"):
            assert service.client.get(path).status_code in (404, 422)


class TestPrivateAddresses:
    def test_whoever_asks_over_http_never_gets_one(self, tmp_path: Path) -> None:
        with Site({"/": "secret"}).serve() as inside, serving_strictly(tmp_path / "home") as service:
            service.post("/api/v1/jobs", {"url": inside.url()}, 422)
            # A name may lead there as well, which only shows when it is dialled.
            url = inside.url().replace("127.0.0.1", socket.gethostname())
            job = service.post("/api/v1/jobs", {"url": url, "max_retries": 0}, 201)
            assert service.ended(job["id"])["status"] == "failed"
            assert not inside.log


def serving_strictly(home: Path) -> Any:
    """Without --allow-private."""
    from contextlib import contextmanager

    @contextmanager
    def running() -> Iterator[Service]:
        service = Service(home, "--poll", "0.2")
        try:
            yield service
        finally:
            service.stop()

    return running()


class TestSlow:
    def test_those_who_say_nothing_do_not_keep_others_out(self, service: Service) -> None:
        host, port = service.url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(200)]
        try:
            for one in idle:
                one.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
            assert service.get("/health")["status"] == "ok"
        finally:
            for one in idle:
                one.close()

    def test_a_head_without_end_is_refused(self, service: Service) -> None:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as one:
            one.sendall(b"GET /health HTTP/1.1\r\nX-Long: " + b"a" * 200_000)
            assert b" 400 " in one.recv(100)


class TestOnce:
    def test_the_same_request_twice_makes_one_job(self, service: Service) -> None:
        body = {"url": "https://example.invalid/once", "interval_minutes": 900, "schedule_enabled": False}
        headers = {"Idempotency-Key": "8f7d-once"}
        first = service.client.post("/api/v1/jobs", json=body, headers=headers)
        again = service.client.post("/api/v1/jobs", json=body, headers=headers)
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"
        other = service.client.post("/api/v1/jobs", json={**body, "max_retries": 1}, headers=headers)
        assert other.status_code == 422
        assert len(service.get("/api/v1/jobs", params={"source_id": first.json()["crawl_id"]})["items"]) == 1
        service.delete(f"/api/v1/jobs/{first.json()['id']}")

    def test_a_refusal_is_given_again_too(self, service: Service) -> None:
        headers = {"Idempotency-Key": "8f7d-wrong"}
        answers = [service.client.post("/api/v1/jobs", json={}, headers=headers) for _ in range(2)]
        assert [one.status_code for one in answers] == [422, 422]
        assert answers[0].json() == answers[1].json()

    @pytest.mark.parametrize("key", ["x" * 201, "tab\there"])
    def test_a_key_that_is_none(self, service: Service, key: str) -> None:
        assert service.client.post("/api/v1/jobs", json={}, headers={"Idempotency-Key": key}).status_code == 400
