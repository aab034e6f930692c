"""Templates, and how they write numbers, sizes and times. Everything is escaped; a name that is missing is an error."""

from __future__ import annotations

import functools
import re
import time
from datetime import UTC, datetime
from importlib import resources
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from fastapi.responses import Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from inchworm.rules.words import figures

static_files = APIRouter(include_in_schema=False)
_STATIC = {
    "inchworm.css": "text/css; charset=utf-8",
    "inchworm.js": "text/javascript; charset=utf-8",
    "stream.js": "text/javascript; charset=utf-8",
    "worker.js": "text/javascript; charset=utf-8",
    "inchworm.svg": "image/svg+xml",
}
_AGES = ((60, 1, "s"), (3600, 60, " min"), (172_800, 3600, " h"), (1 << 62, 86_400, " days"))


@functools.cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("inchworm.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "code": _code,
        "hint": hint,
        "number": number,
        "size": figures.size,
        "seconds": figures.clock,
        "when": when,
        "path": lambda text: quote(str(text), safe=""),
        "query": lambda values: urlencode({name: value for name, value in values.items() if value not in (None, "")}),
        "clip": figures.clip,
        "one_of": one_of,
    }
    return made


def _code(text: str) -> Markup:
    """Text in which `this` stands for code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def hint(text: str) -> Markup:
    """What to do about an error, unless it is said for the command line or for programs."""
    return Markup("") if re.search(r"\binchworm [a-z]|/api/", text) else _code(text)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def one_of(count: int, one: str, many: str = "") -> str:
    """1 page, 2 pages."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def when(iso: str | None, now_s: float | None = None) -> Markup:
    """A time as people say it; the exact one stands behind it. Scripts keep it true while the page is open."""
    if not iso:
        return Markup("–")
    at = datetime.fromisoformat(iso)
    away = at.timestamp() - (time.time() if now_s is None else now_s)
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso, exact, age(away))


def age(away_seconds: float) -> str:
    """`3 min ago`, `in 2 h`."""
    distance = abs(away_seconds)
    if distance < 5:
        return "now"
    divisor, unit = next((divisor, unit) for limit, divisor, unit in _AGES if distance < limit)
    said = f"{int(distance // divisor)}{unit}"
    return f"in {said}" if away_seconds > 0 else f"{said} ago"


@static_files.get("/static/{name}")
def static(name: str) -> Response:
    """Our own files; no path of a caller's ever reaches the disk."""
    if name not in _STATIC:
        return Response(status_code=404)
    return Response(_file(name), media_type=_STATIC[name], headers={"Cache-Control": "no-cache"})


@functools.cache
def _file(name: str) -> bytes:
    return (resources.files("inchworm.service") / "static" / name).read_bytes()
