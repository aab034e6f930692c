"""What other processes ask the owner of a crawl for, besides to stop: values that travel through its inbox as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inchworm.model import Json, JsonObject


class RetryOrder(NamedTuple):
    """Re-open what failed: of one kind of failure, or one URL, or all of it."""

    kind: str | None
    url: str | None

    def to_json(self) -> JsonObject:
        return {"kind": self.kind, "url": self.url}


class AddOrder(NamedTuple):
    """Visit this URL, as if it had been found at that depth."""

    url: str
    request_url: str
    depth: int

    def to_json(self) -> JsonObject:
        return {"url": self.url, "request_url": self.request_url, "depth": self.depth}


def retry_order(argument: Mapping[str, Json]) -> RetryOrder:
    """What was asked for by `RetryOrder.to_json`."""
    kind, url = argument.get("kind"), argument.get("url")
    return RetryOrder(str(kind) if kind is not None else None, str(url) if url is not None else None)


def add_order(argument: Mapping[str, Json]) -> AddOrder:
    """What was asked for by `AddOrder.to_json`."""
    depth = argument["depth"]
    assert isinstance(depth, int)
    return AddOrder(str(argument["url"]), str(argument["request_url"]), depth)
