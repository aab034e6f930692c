"""Pages as exports get them, made of visits as the store has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inchworm.page import Page
from inchworm.sink.columns import renamed

BODY = b"<p>The <b>text</b> of a page.</p>"


def page_of(visit: Mapping[str, Any], body: bytes | None = BODY) -> Page:
    full = {"request_url": visit["url"], **visit}
    return Page(full["request_url"], "text/html", lambda: body, renamed(full))


def pages_of(visits: Iterable[Mapping[str, Any]]) -> Iterator[Page]:
    return map(page_of, visits)
