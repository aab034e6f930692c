"""How what a route answers with becomes JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient

from inchworm.model import RunState
from inchworm.rules.words.json_form import FLAT
from inchworm.service.api.web import Answer, ListPage, ListSlice, api_routes, listed


@dataclass(frozen=True, slots=True)
class Counts:
    pages: int


@dataclass(frozen=True, slots=True)
class Line:
    run: int
    state: RunState
    counts: Counts = field(metadata=FLAT)


class LineAnswer(Answer):
    run: int
    state: str


routes = api_routes("lines", "/lines")


@routes.get("/one", response_model=LineAnswer)
def one() -> Line:
    """One."""
    return Line(1, RunState.PAUSED, Counts(3))


@routes.get("/later", response_model=LineAnswer)
async def later() -> Line:
    """The same, of a function that waits."""
    return Line(1, RunState.PAUSED, Counts(3))


@routes.get("/free", response_model=dict[str, Any])
def free() -> Line:
    """Without a model."""
    return Line(1, RunState.PAUSED, Counts(3))


@routes.get("/list", response_model=dict[str, Any])
def some() -> ListPage[Line]:
    """A page of a list."""
    return listed(
        [Line(number, RunState.PAUSED, Counts(3)) for number in range(2)], ListSlice(None, 1), lambda it: it.run
    )


@routes.get("/text")
def text() -> Response:
    """A response of its own."""
    return Response("as it is", media_type="text/plain")


@pytest.fixture(scope="module")
def client() -> TestClient:
    api = FastAPI()
    api.router.routes.extend(routes.routes)
    return TestClient(api)


@pytest.mark.parametrize("path", ["one", "later", "free"])
def test_values_go_out_by_the_names_of_their_fields(client: TestClient, path: str) -> None:
    assert client.get(f"/lines/{path}").json() == {"run": 1, "state": "paused", "pages": 3}


def test_a_page_of_a_list_has_its_items_and_a_cursor(client: TestClient) -> None:
    found = client.get("/lines/list").json()
    assert [one["run"] for one in found["items"]] == [0]
    assert found["next_cursor"]


def test_a_response_goes_out_as_it_is(client: TestClient) -> None:
    assert client.get("/lines/text").text == "as it is"
