"""Addresses of this machine and of private networks, asked for over HTTP: refused at once, unless the service may go
there. Whoever sits at the machine may, also with a crawl that others made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, chain
from tests.service.in_process import VALUES, Api, serving, wait_for

from inchworm.app.act.plan import Start, over_http
from inchworm.service.api import crawls, frontier, jobs
from inchworm.settings import Settings
from inchworm.testing import Served, Site

ROUTES = (crawls.routes, jobs.routes, frontier.routes)
PRIVATE = [
    *("http://127.0.0.1/", "http://localhost:8000/", "https://LOCALHOST./a", "http://a.localhost/", "http://[::1]:9/"),
    *("http://10.1.2.3/", "http://192.168.1.1/", "http://172.16.0.1/", "http://169.254.169.254/latest/meta-data"),
    *("http://0x7f.1/", "http://0177.0.0.1/", "http://2130706433/", "http://0/", "http://127.1/", "http://127.0.0.1./"),
    *("http://[::ffff:10.0.0.1]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://１２７.0.0.1/"),
]
BARE = ["127.0.0.1", "localhost", "127.0.0.1:8000", "//10.0.0.1/x", "2130706433"]
PUBLIC = ["https://example.org/", "http://8.8.8.8:8000/", "http://localhost.example.org/", "http://10.example.org/"]


@pytest.fixture
def careful(tmp_path: Path) -> Iterator[Api]:
    """A service that may not go to private addresses."""
    values = dataclasses.replace(VALUES, allow_private=False)
    with serving(tmp_path / "careful", *ROUTES, values=values, jobs=False) as made:
        yield made


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path / "trusting", *ROUTES, jobs=False) as made:
        yield made


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(4)).serve() as made:
        yield made


def starts(address: str) -> list[tuple[str, str, int, dict[str, Any]]]:
    """Every request that names a crawl by an address."""
    return [
        ("POST", "/crawl", 202, {"url": address}),
        ("POST", "/crawl", 202, {"targets": ["https://example.org/", address], "name": "two"}),
        ("POST", "/jobs", 201, {"url": address}),
        ("PUT", "/config", 200, {"url": address, "crawl_budget": 5}),
    ]


def says_how(error: dict[str, str], address: str) -> bool:
    return error["code"] == "wrong_use" and address in error["message"] and "--allow-private" in error["hint"]


@pytest.mark.parametrize("address", PRIVATE + BARE)
def test_a_private_address_is_refused_when_it_is_asked_for(careful: Api, address: str) -> None:
    for method, path, _, body in starts(address):
        assert says_how(careful.ask(method, path, 422, json=body), address)
    assert careful.app.workspace.crawls.all() == [], "nothing is left behind"


def test_a_password_is_not_repeated(careful: Api) -> None:
    for method, path, _, body in starts("http://user:secret@127.0.0.1/"):
        assert "secret" not in json.dumps(careful.ask(method, path, 422, json=body))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_and_names_are_taken(careful: Api, address: str) -> None:
    for method, path, status, body in starts(address)[-2:]:
        careful.ask(method, path, status, json=body)


def test_a_service_that_may_go_there_takes_them(trusting: Api) -> None:
    for number, (method, path, status, body) in enumerate(starts("http://127.0.0.1:9/")):
        trusting.ask(method, path, status, json=body)
        for job in trusting.app.jobs.listed():
            trusting.app.schedule.delete(job.line.id)
        assert trusting.app.workspace.crawls.all(), number


def test_a_crawl_that_was_typed_here_may_be_started_by_others(careful: Api) -> None:
    typed = careful.app.plan.find_or_make(Start(("http://127.0.0.1:9/",)))
    for method, path, status, body in (starts("http://127.0.0.1:9/")[number] for number in (0, 2, 3)):
        assert careful.ask(method, path, status, json=body)["crawl_id"] == typed.crawl_id


# Rows


def test_rows_of_the_frontier(tmp_path: Path, careful: Api, served: Served) -> None:
    home = Home(careful.folder)
    home.crawl(served.url("/c0"), scope="any", budget=1)
    (crawl,) = home.app.workspace.crawls.all()
    body = {"crawl_id": crawl.crawl_id}
    error = careful.ask("POST", "/frontier", 422, json={**body, "url": "http://169.254.169.254/x"})
    assert says_how(error, "http://169.254.169.254/x")
    assert careful.ask("POST", "/frontier", 201, json={**body, "url": served.url("/c3")})["state"] == "pending", (
        "it is where the seed is, which was typed here"
    )
    home.app.workspace.crawls.change(crawl.crawl_id, typed=False)
    assert says_how(careful.ask("POST", "/frontier", 422, json={**body, "url": served.url("/c2")}), served.url("/c2"))
    home.app.close()


def test_rows_where_the_service_may_go(trusting: Api, served: Served) -> None:
    home = Home(trusting.folder)
    home.crawl(served.url("/c0"), scope="any", budget=1)
    body = {"crawl_id": home.word, "url": "http://10.0.0.1/"}
    assert trusting.ask("POST", "/frontier", 201, json=body)["added"]
    home.app.close()


# By hand

AGAIN = ("--delay", "0", "--max-retries", "0", "--budget", "0")


def made_by_others(home: Home, served: Served) -> str:
    """A crawl that somebody made over HTTP, of which the service that might go there has fetched one page."""
    crawl = home.app.plan.find_or_make(Start((served.url("/c0"),), caller=over_http(True)))
    home.cli("crawl", *crawl.seeds, "--scope", "host", *AGAIN, "--budget", "1")
    home.app.workspace.crawls.change(crawl.crawl_id, typed=False)
    return crawl.crawl_id


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.app.close()


@pytest.mark.parametrize("command", ["resume", "continue", "repeat"])
def test_going_on_by_hand(home: Home, served: Served, command: str) -> None:
    crawl_id = made_by_others(home, served)
    home.cli(command, crawl_id, *AGAIN)
    status = home.status()
    assert (status["pages"], status["failed"], status["run_state"]) == (4, 0, "completed")


def test_the_next_run_by_hand(home: Home, served: Served) -> None:
    crawl_id = made_by_others(home, served)
    home.cli("crawl", served.url("/c0"), *AGAIN)
    home.app.workspace.crawls.change(crawl_id, typed=False)
    told = home.ask("recrawl", crawl_id, "--mode", "full", *AGAIN)
    assert (told["unchanged"], told["failed"]) == (4, 0)


def test_a_job_made_by_hand(home: Home, served: Served) -> None:
    crawl_id = made_by_others(home, served)
    home.cli("jobs", "add", crawl_id)
    assert home.app.workspace.find(crawl_id).typed


def test_what_others_start_does_not_become_ours(trusting: Api, served: Served) -> None:
    crawl_id = trusting.make(served.url("/c0"))
    trusting.ask("POST", "/jobs", 201, json={"source_id": crawl_id})
    trusting.ask("PUT", "/config", 200, json={"url": served.url("/c0")})
    assert not trusting.app.workspace.find(crawl_id).typed


# Dialling


def test_what_was_not_seen_when_it_was_asked_for_is_seen_when_it_is_dialled(tmp_path: Path, served: Served) -> None:
    """As with a name that leads to a private address, or a crawl that was made when that was allowed."""
    with serving(tmp_path / "home", *ROUTES, values=Settings(poll=0.1)) as api:
        crawl_id = api.make(served.url("/c0"), max_retries=0)
        job = api.post("/jobs", 201, {"source_id": crawl_id, "max_retries": 0})
        wait_for(lambda: api.app.jobs.one(job["id"]).line.status == "failed", "the end of it")
        assert "not one that may be connected to" in api.app.crawls.status(api.app.workspace.find(crawl_id)).message
    assert not served.log
