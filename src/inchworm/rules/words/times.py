"""Times as they are written for people and machines."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def iso(at_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    return f"{_second(at_ms // 1000)}.{at_ms % 1000:03}Z"


@lru_cache(maxsize=256)
def _second(at_s: int) -> str:
    """Most of what is written together was made together."""
    return datetime.fromtimestamp(at_s, UTC).isoformat()[:19]
