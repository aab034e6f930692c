"""Others are told of runs that were asked for over HTTP: signed, and once, whatever goes down in between."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from tests.service.running import Service, serving, wait_for

from inchworm.cli import main
from inchworm.testing import Site, linked_site

SECRET = "a secret that only we and the receiver know"
ENVIRONMENT = {"INCHWORM_NOTIFY_SECRET": SECRET}


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def is_signed(self) -> bool:
        signed = self.headers["x-inchworm-timestamp"].encode() + b"." + self.body
        made = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        return self.headers["x-inchworm-signature"] == f"sha256={made}"


@contextmanager
def receiving(port: int = 0) -> Iterator[tuple[str, list[Got]]]:
    """A web hook, and what it got."""
    got: list[Got] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?key=hidden", got
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        number: int = one.getsockname()[1]
        return number


def repeated(service: Service, url: str, address: str) -> str:
    """A crawl whose every complete run is told of; its first run is started."""
    crawl_id: str = service.put("/api/v1/config", {"url": url})["crawl_id"]
    service.client.patch(f"/api/v1/crawl/{crawl_id}", json={"settings": {"delay": 0}}).raise_for_status()
    made = service.post(
        f"/api/v1/crawl/{crawl_id}/iterations", {"notify": [address], "notify_on_completion": True, "maxIterations": 9}
    )
    assert "hidden" not in json.dumps(made)
    service.post(f"/api/v1/crawl/{crawl_id}/iterations/next", status=202)
    return crawl_id


def deliveries(service: Service, crawl_id: str) -> list[dict[str, Any]]:
    """What the delivery log says about a crawl, as a person at this machine sees it."""
    done = CliRunner().invoke(main, ["notifications", "--json"], env={"INCHWORM_HOME": str(service.home)})
    assert done.exit_code == 0, done.output
    assert "hidden" not in done.stdout, "an address may hold a secret"
    return [one for one in json.loads(done.stdout)["notifications"] if one["crawl_id"] == crawl_id]


def settled(service: Service, crawl_id: str, state: str) -> list[dict[str, Any]]:
    """What the delivery log says about a crawl, when everything in it is in this state."""

    def look() -> list[dict[str, Any]]:
        found = deliveries(service, crawl_id)
        return found if all(one["state"] == state for one in found) else []

    found: list[dict[str, Any]] = wait_for(look, f"everything to be {state}")
    return found


@pytest.fixture
def site() -> Iterator[str]:
    with Site(linked_site(4)).serve() as web:
        yield web.url()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """For those that need none of their own."""
    with serving(tmp_path_factory.mktemp("notify") / "home", env=ENVIRONMENT) as running:
        yield running


def test_every_complete_run_is_told_of_once_and_signed(service: Service, site: str) -> None:
    with receiving() as (hook, got):
        crawl_id = repeated(service, site, hook)
        (first,) = settled(service, crawl_id, "delivered")
        assert [one.path for one in got] == ["/hook?key=hidden"]
        assert got[0].is_signed
        assert got[0].told["event"] == "run_completed"
        assert (got[0].told["crawl_id"], got[0].told["run"]) == (crawl_id, 0)
        assert got[0].headers["x-inchworm-delivery"] == first["event_id"] == got[0].told["delivery_id"]
        assert (first["tries"], first["status"], first["crawl_id"]) == (1, 204, crawl_id)

        service.post(f"/api/v1/crawl/{crawl_id}/iterations/next", status=202)
        wait_for(lambda: len(got) == 2, "the second message")
        settled(service, crawl_id, "delivered")
        assert got[1].is_signed
        assert (got[1].told["run"], got[1].told["has_changes"]) == (1, False)
        assert len({one.headers["x-inchworm-delivery"] for one in got}) == 2
    assert len(got) == 2


def test_without_a_wish_for_completion_an_unchanged_run_is_not_told_of(service: Service, site: str) -> None:
    with receiving() as (hook, got):
        crawl_id = service.once(site)["crawl_id"]
        service.client.patch(f"/api/v1/crawl/{crawl_id}", json={"settings": {"delay": 0}}).raise_for_status()
        service.post(f"/api/v1/crawl/{crawl_id}/iterations", {"notify": [hook]})
        job = service.post(f"/api/v1/crawl/{crawl_id}/iterations/next", status=202)["job_id"]
        assert service.ended(job)["status"] == "completed"
        assert deliveries(service, crawl_id) == []
    assert got == []


def in_vain(service: Service, crawl_id: str) -> None:
    """Wait for a try that failed. The next one is seconds away, so that nobody is at it."""
    wait_for(lambda: any(one["tries"] for one in deliveries(service, crawl_id)), "a try in vain")


def test_a_receiver_that_is_down_at_first(service: Service, site: str) -> None:
    port = free_port()
    crawl_id = repeated(service, site, f"http://127.0.0.1:{port}/hook?key=hidden")
    in_vain(service, crawl_id)
    with receiving(port) as (_, got):
        (one,) = settled(service, crawl_id, "delivered")
    assert one["tries"] >= 2
    assert [message.is_signed for message in got] == [True]


def test_the_service_is_killed_before_anything_arrived(tmp_path: Path, site: str) -> None:
    port = free_port()
    with serving(tmp_path / "home", env=ENVIRONMENT) as service:
        crawl_id = repeated(service, site, f"http://127.0.0.1:{port}/hook?key=hidden")
        in_vain(service, crawl_id)
        service.kill()
    with receiving(port) as (_, got), serving(tmp_path / "home", env=ENVIRONMENT) as service:
        (one,) = settled(service, crawl_id, "delivered")
        assert one["crawl_id"] == crawl_id
    assert [message.is_signed for message in got] == [True]
    assert got[0].told["run"] == 0


def test_whoever_made_the_run_is_killed_before_it_could_tell(tmp_path: Path, site: str) -> None:
    dying = {**ENVIRONMENT, "INCHWORM_FAULT": "before_finishing:1"}
    with receiving() as (hook, got), serving(tmp_path / "home", env=dying) as service:
        crawl_id = repeated(service, site, hook)
        settled(service, crawl_id, "delivered")
        job_id = service.get("/api/v1/jobs", params={"source_id": crawl_id})["items"][0]["id"]
        assert service.ended(job_id, 2)["status"] == "completed"
        tries = service.get(f"/api/v1/jobs/{job_id}/executions")["items"]
        assert [one["status"] for one in tries] == ["completed", "failed"]
    assert [message.is_signed for message in got] == [True]


def test_an_address_that_cannot_be(tmp_path: Path) -> None:
    """Whoever asks over HTTP must not make a service speak to its own network, unless its operator allows that."""
    service = Service(tmp_path / "home", "--no-scheduler")
    private = ("http://127.0.0.1:1/", "http://localhost/", "http://[::1]/", "http://10.0.0.1/")
    try:
        crawl_id = service.put("/api/v1/config", {"url": "https://example.invalid/"})["crawl_id"]
        for address in ("ftp://127.0.0.1/", "nothing", "mailto://a:b@c", "", *private):
            service.post(f"/api/v1/crawl/{crawl_id}/iterations", {"notify": [address]}, 422)
    finally:
        service.stop()
