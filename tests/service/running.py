"""A real service in a process of its own, for tests: started on a free port, asked over HTTP, stopped or killed."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from inchworm.service.access import auth
from inchworm.service.access.auth import Role

PATIENCE = 60.0
QUICK = ("--poll", "0.2", "--stale-check", "0.5", "--stale-lock", "5", "--allow-private", "--metrics-every", "0.5")


class Service:
    """`inchworm serve` and a client that has a token."""

    def __init__(self, home: Path, *flags: str, env: dict[str, str] | None = None) -> None:
        self.home = home
        self._env = {**os.environ, "INCHWORM_HOME": str(home), **(env or {})}
        self.log = home.parent / f"{home.name}-{time.monotonic_ns()}.log"
        with self.log.open("wb") as out:
            command = [sys.executable, "-m", "inchworm", "serve", "--port", "0", *flags]
            self.process = subprocess.Popen(command, env=self._env, stdout=out, stderr=out)
        wait_for(lambda: self._address() or self.process.poll() is not None, "the service to start")
        self.url = self._address()
        assert self.url, self.text
        self.client = httpx.Client(base_url=self.url, headers=self.headers(), timeout=PATIENCE)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def _address(self) -> str:
        found = re.search(r"To log in, get a link: .* --url (http://\S+)\n", self.text)
        return found[1] if found else ""

    @functools.cached_property
    def code(self) -> str:
        """Of a link that lets a browser in once, as `inchworm token --link` makes it."""
        command = [sys.executable, "-m", "inchworm", "token", "--link", "--url", self.url]
        link = subprocess.run(command, env=self._env, check=True, capture_output=True, text=True).stdout
        return link.strip().removeprefix(f"{self.url}/login?code=")

    def token(self, role: Role = Role.FULL) -> str:
        """As `inchworm token` makes it."""
        secret, _ = auth.secret_of(self.home, self._env, is_public=False)
        return auth.issue(secret, role, 3600, int(time.time()))

    def headers(self, role: Role = Role.FULL) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(role)}"}

    # Asking

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return self._ask("GET", path, status, **options)

    def post(self, path: str, body: Any = None, status: int | None = None, **options: Any) -> Any:
        return self._ask("POST", path, status, **({"json": body} if body is not None else {}), **options)

    def put(self, path: str, body: Any, status: int = 200) -> Any:
        return self._ask("PUT", path, status, json=body)

    def delete(self, path: str, status: int = 204) -> Any:
        return self._ask("DELETE", path, status)

    def _ask(self, method: str, path: str, status: int | None, **options: Any) -> Any:
        answer = self.client.request(method, path, **options)
        fits = answer.status_code == status if status is not None else answer.status_code < 300
        assert fits, (method, path, answer.status_code, answer.text[:2000])
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if is_json and answer.content else answer.text

    def once(self, url: str, **settings: Any) -> dict[str, Any]:
        """A job that has run once, and its execution."""
        job = self.post("/api/v1/jobs", {"url": url, "settings": {"delay": 0, **settings}}, 201)
        return self.ended(job["id"])

    def ended(self, job_id: str, number: int = 1) -> dict[str, Any]:
        """The execution of this number, when it is over."""

        def look() -> dict[str, Any] | None:
            items = self.get(f"/api/v1/jobs/{job_id}/executions")["items"]
            done = [one for one in items if one["execution_number"] >= number and one["status"] != "running"]
            return done[-1] if done else None

        found: dict[str, Any] = wait_for(look, f"execution {number} to end")
        return found

    # Ending

    def stop(self) -> int:
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def serving(home: Path, *flags: str, env: dict[str, str] | None = None) -> Iterator[Service]:
    service = Service(home, *QUICK, *flags, env=env)
    try:
        yield service
    finally:
        service.client.close()
        if service.process.poll() is None:
            service.stop()


def wait_for(look: Callable[[], Any], what: str) -> Any:
    """The first thing that is true, or an error that says what never came."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def events_of(text: str) -> list[tuple[int, str, Any]]:
    """Number, kind and data of every event in a stream."""
    found = re.findall(r"id: (\d+)\nevent: (\S+)\ndata: (.*)\n", text)
    return [(int(number), kind, json.loads(data)) for number, kind, data in found]
