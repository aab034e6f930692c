"""The page that documents the API, made from its own schema, readable without script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from inchworm.service.api.settings import SETTINGS
from inchworm.service.dashboard.frame import page, pages

routes = pages()
_METHODS = ("get", "post", "put", "patch", "delete")


@routes.get("/docs")
def docs(request: Request) -> Response:
    """Every route: what it takes, what it answers, how it refuses."""
    schema = request.app.openapi()
    return page(request, "reference.html", info=schema["info"], groups=groups(schema))


def groups(schema: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations of a schema by topic."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in _operations(schema):
        found.setdefault(one["topic"], []).append(one)
    return found


def _operations(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield _operation(schema, path, method, methods[method])


def _operation(schema: Mapping[str, Any], path: str, method: str, one: Mapping[str, Any]) -> dict[str, Any]:
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return {
        "id": f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "topic": (one.get("tags") or ["other"])[0],
        "method": method.upper(),
        "path": path,
        "text": one.get("description", ""),
        "parameters": [
            {
                "name": parameter["name"],
                "place": parameter["in"],
                "type": _type(schema, parameter["schema"]),
                "text": parameter.get("description", ""),
                "required": parameter.get("required", False),
            }
            for parameter in one.get("parameters", [])
        ],
        "fields": list(_fields(schema, body)) if body else [],
        "example": _example(schema, body) if body else None,
        "answers": {code: answer["description"] for code, answer in one["responses"].items()},
    }


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in part:
        return part
    found: Any = schema
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    resolved: Mapping[str, Any] = found
    return resolved


def _fields(schema: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    whole = next((part for part in body.get("anyOf", [body]) if part.get("type") != "null"), body)
    whole = _resolved(schema, whole)
    # What is its own comes before the settings that it shares with others.
    for name, field in sorted(whole.get("properties", {}).items(), key=lambda item: item[0] in SETTINGS):
        yield {
            "name": name,
            "type": _type(schema, field),
            "text": field.get("description", ""),
            "required": name in whole.get("required", ()),
        }


def _type(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    part = _resolved(schema, part)
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_type(schema, one) for one in part["anyOf"]))
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    if part.get("type") == "array":
        return f"list of {_type(schema, part.get('items', {}))}"
    return str(part.get("const") or part.get("type", "anything"))


def _example(schema: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    whole = next((part for part in body.get("anyOf", [body]) if part.get("type") != "null"), body)
    example = _resolved(schema, whole).get("example")
    return json.dumps(example, indent=2) if example is not None else None
