"""Times as they are written for people and machines."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
