"""The service as a process: starting, refusing to start, stopping."""

from __future__ import annotations

import os
import pty
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.service.running import PATIENCE, serving, wait_for

from inchworm.app import App
from inchworm.testing import Page, Site, linked_site


def refused(home: Path, *flags: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit code and words of a service that cannot start."""
    command = [sys.executable, "-m", "inchworm", "serve", "--port", "0", *flags]
    whole = {**os.environ, "INCHWORM_HOME": str(home), **(env or {})}
    done = subprocess.run(command, check=False, env=whole, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr


class TestStart:
    def test_it_says_where_it_is_and_lets_a_browser_in_once(self, tmp_path: Path) -> None:
        with serving(tmp_path / "home") as service:
            assert oct((tmp_path / "home" / "secret").stat().st_mode)[-3:] == "600"
            link = f"{service.url}/login?code={service.code}"

            first = httpx.get(link)
            again = httpx.get(link)
            assert first.status_code == 303, first.text
            assert "inchworm=" in first.headers["set-cookie"]
            assert "HttpOnly" in first.headers["set-cookie"]
            assert "SameSite=strict" in first.headers["set-cookie"]
            assert again.status_code in (401, 403)
            assert service.code not in (tmp_path / "home" / "home.db").read_bytes().decode("latin-1")

    def test_no_way_in_lies_in_a_log(self, tmp_path: Path) -> None:
        with serving(tmp_path / "home") as service:
            assert "login?code" not in service.text
            said = service.text.partition("get a link: ")[2].splitlines()[0]
            said = said.replace("inchworm token", f"{sys.executable} -m inchworm token")
            link = subprocess.run(said, shell=True, check=True, capture_output=True, text=True).stdout.strip()
            assert httpx.get(link).status_code == 303

    def test_a_terminal_is_shown_the_way_in(self, tmp_path: Path) -> None:
        master, terminal = pty.openpty()
        command = [sys.executable, "-m", "inchworm", "serve", "--port", "0", "--no-scheduler"]
        environment = {**os.environ, "INCHWORM_HOME": str(tmp_path / "home")}
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=terminal, stderr=log)
        os.close(terminal)
        try:
            with os.fdopen(master, "rb", buffering=0) as shown:
                said = b""
                while b"\n" not in said:
                    said += shown.read(4096)
            link = said.decode().split(": ", 1)[1].strip()
            assert httpx.get(link).status_code == 303
            assert "login?code" not in (tmp_path / "log").read_text()
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def test_a_role_that_there_is_not(self, tmp_path: Path) -> None:
        code, said = refused(tmp_path / "home", env={"AUTH_DEFAULT_ROLE": "admin"})
        assert code == 4
        assert "AUTH_DEFAULT_ROLE" in said and "full or read-only" in said

    def test_the_page_of_the_api_has_every_route(self, tmp_path: Path) -> None:
        with serving(tmp_path / "home") as service:
            schema, page = service.get("/openapi.json"), service.get("/docs")
            for path in schema["paths"]:
                assert path in page
            style = service.client.get("/static/inchworm.css")
            assert style.headers["content-type"].startswith("text/css")
            assert service.client.get("/static/../serve.py").status_code == 404
            assert service.client.get("/static/%2e%2e%2fserve.py").status_code == 404

    def test_a_port_in_use(self, tmp_path: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            code, said = refused(tmp_path / "home", "--port", str(taken.getsockname()[1]))
        assert code == 5
        assert "port" in said
        assert "--port" in said

    def test_a_home_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_text("not a folder")
        code, said = refused(tmp_path / "home")
        assert code in (1, 2, 6)
        assert "INCHWORM_HOME" in said

    def test_a_home_of_a_newer_inchworm(self, tmp_path: Path) -> None:
        App(tmp_path / "home").close()
        connection = sqlite3.connect(tmp_path / "home" / "home.db")
        connection.execute("PRAGMA user_version = 999")
        connection.close()
        code, said = refused(tmp_path / "home")
        assert code == 1
        assert "newer inchworm" in said

    @pytest.mark.parametrize(
        ("flags", "secret", "word"),
        [
            (("--host", "0.0.0.0"), None, "AUTH_JWT_SECRET"),
            (("--host", "0.0.0.0"), "short", "AUTH_JWT_SECRET"),
            ((), "changeme", "AUTH_JWT_SECRET"),
        ],
        ids=["public", "public-short", "guessable"],
    )
    def test_a_secret_that_is_none(self, tmp_path: Path, flags: tuple[str, ...], secret: str | None, word: str) -> None:
        code, said = refused(tmp_path / "home", *flags, env={"AUTH_JWT_SECRET": secret} if secret else {})
        assert code == 4
        assert word in said
        if secret and len(secret) > 5:
            assert secret not in said

    def test_variables_that_do_nothing_are_named(self, tmp_path: Path) -> None:
        idle = {"CRAWLER_FEED_POLL_ENABLED": "true", "REDIS_EVENTS_ENABLED": "1", "CRAWLER_MINIO_ENABLED": "false"}
        with serving(tmp_path / "home", env=idle) as service:
            assert service.text.count("does nothing in this version") == 2
            assert "CRAWLER_FEED_POLL_ENABLED does" in service.text and "REDIS_EVENTS_ENABLED does" in service.text

    def test_a_wrong_setting(self, tmp_path: Path) -> None:
        code, said = refused(tmp_path / "home", "--executions", "none")
        assert code == 2
        assert "executions" in said


class TestStop:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_what_runs_is_paused_and_goes_on_at_the_next_start(self, tmp_path: Path, number: signal.Signals) -> None:
        site = Site({path: Page(text, delay=0.02) for path, text in linked_site(60).items()})
        with site.serve() as web:
            with serving(tmp_path / "home") as service:
                job = service.post("/api/v1/jobs", {"url": web.url(), "settings": {"delay": 0, "workers": 2}}, 201)
                wait_for(lambda: len(web.log) > 10, "some pages")
                service.process.send_signal(number)
                assert service.process.wait(PATIENCE) == 0
            app = App(tmp_path / "home")
            found = app.jobs.one(job["id"])
            assert (found.line.status, found.line.current_retry_count) == ("scheduled", 0)
            assert app.crawls.status(app.workspace.find(job["crawl_id"])).run_state == "paused"
            with serving(tmp_path / "home") as service:
                second = service.ended(job["id"], 2)
                assert (second["status"], second["attempt"], second["run"]) == ("completed", 2, 0)
                executions = service.get(f"/api/v1/jobs/{job['id']}/executions")["items"]
                assert len({one["planned_at"] for one in executions}) == 1
            assert app.crawls.status(app.workspace.find(job["crawl_id"])).run_state == "completed"
            app.close()
        asked = [hit.path for hit in web.log if hit.path not in ("/robots.txt", "/sitemap.xml")]
        assert len(set(asked)) == 60
        assert len(asked) <= 60 + 2, "at most what was in flight is asked again"


def test_a_crawl_that_somebody_works_on_is_nobodys_failure(tmp_path: Path) -> None:
    with Site(linked_site(5)).serve() as web, serving(tmp_path / "home") as service:
        first = service.once(web.url())
        app = App(tmp_path / "home")
        try:
            with app.workspace.owning(app.workspace.find(first["crawl_id"]), 60):
                job = service.post("/api/v1/jobs", {"source_id": first["crawl_id"], "max_retries": 1}, 201)
                assert "being worked on" in service.ended(job["id"])["error_message"]
            found = service.get(f"/api/v1/jobs/{job['id']}")
            assert (found["status"], found["current_retry_count"]) == ("scheduled", 0)
            assert found["next_run_at"] > found["last_run_at"]
        finally:
            app.close()
