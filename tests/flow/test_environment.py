"""What the environment says: variables that do nothing are named, those that nobody knows are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.flow.crawling import Home, chain

from inchworm.testing import Served, Site

IDLE = {"CRAWLER_MINIO_ENABLED": "true", "CRAWLER_SOURCES_API_URL": "http://sources.test/api"}


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(2)).serve() as made:
        yield made


def test_a_crawl_names_the_variables_that_do_nothing(home: Home, served: Served) -> None:
    said = home.process("crawl", served.url("/c0"), "--delay", "0", **IDLE).stderr
    assert all(f"{name} does nothing in this version" in said for name in IDLE)
    assert "does nothing" not in home.process("crawl", served.url("/c0"), CRAWLER_MINIO_ENABLED="false").stderr


def test_the_doctor_names_them_too(home: Home) -> None:
    found = json.loads(home.process("doctor", "--json", **IDLE).stdout)
    told = [one["text"] for one in found["findings"] if one["subject"] == "environment"]
    assert found["ok"] and [text.split()[0] for text in sorted(told)] == sorted(IDLE)


@pytest.mark.parametrize("command", [("crawl", "http://127.0.0.1:9/"), ("serve", "--port", "0")])
def test_a_name_that_nobody_knows_is_refused(home: Home, command: tuple[str, ...]) -> None:
    said = home.process(*command, code=2, INCHWORM_WROKERS="3").stderr
    assert "INCHWORM_WROKERS" in said and "INCHWORM_WORKERS?" in said
    assert not home.app.workspace.crawls.all()


def test_the_doctor_finds_it(home: Home) -> None:
    found = json.loads(home.process("doctor", "--json", code=1, INCHWORM_WROKERS="3").stdout)
    (wrong,) = [one for one in found["findings"] if not one["ok"]]
    assert wrong["subject"] == "environment" and "INCHWORM_WORKERS?" in wrong["hint"]


def test_who_goes_deep_is_warned(home: Home, served: Served) -> None:
    url = served.url("/c0")
    assert "max_depth is 6" in home.cli("crawl", url, "--delay", "0", "--max-depth", "6").stderr
    assert "max_depth" not in home.cli("crawl", url, "--max-depth", "5").stderr
