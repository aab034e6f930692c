"""The API by its own schema: whatever fits it, and whatever does not, no request makes the service fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service.running import Service, serving

from inchworm.service import build
from inchworm.service.api.web import Verbs
from inchworm.settings import Settings
from inchworm.testing import Site, linked_site

EXAMPLES = 6
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that has something to show, and runs nothing that a guess may have started."""
    home = tmp_path_factory.mktemp("schema") / "home"
    with Site(linked_site(8)).serve() as web:
        with serving(home) as running:
            running.once(web.url())
        # Guesses at addresses lead nowhere but to this machine.
        with serving(home, "--no-scheduler", env={"INCHWORM_PROXIES": "http://127.0.0.1:9"}) as running:
            yield running


def operations() -> dict[str, Any]:
    """Every operation that has an end, by its name."""
    made = build.api(Verbs(Path("unused"), Settings(), lambda: None)).openapi()
    found = (one.ok() for one in schemathesis.openapi.from_dict(made).get_all_operations())
    return {one.label: one for one in found if "/sse/" not in one.label and "/stream/" not in one.label}


OPERATIONS = operations()


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_makes_it_fail(service: Service, name: str) -> None:
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[name].as_strategy())
    def ask(case: Any) -> None:
        answer = case.call(base_url=service.url, headers=dict(service.client.headers))
        case.validate_response(answer, checks=CHECKS)

    ask()


def test_every_route_says_what_it_does(service: Service) -> None:
    schema = service.get("/openapi.json")
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            assert one.get("description"), (method, path)
            assert one.get("tags"), (method, path)


def test_every_body_has_an_example(service: Service) -> None:
    schema = service.get("/openapi.json")
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                parts = [part for part in body.get("anyOf", [body]) if "$ref" in part]
                named = schema["components"]["schemas"][parts[0]["$ref"].rsplit("/", 1)[1]]
                assert "example" in named or "examples" in named, (method, path)
