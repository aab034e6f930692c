"""Dates as pages and servers write them, in the one form that every program takes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 100
_MONTH = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?", re.ASCII)


def standard(text: str) -> str | None:
    """A date as ISO 8601, a time in UTC; None when it cannot be told what is meant. A time without a zone counts as
    UTC, and what was said to the year, the month or the day stays so."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    if _MONTH.fullmatch(text):
        return text if text[:4] != "0000" else None
    return _day(text) or _moment(text)


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _moment(text: str) -> str | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = parse(text)
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        # Hostile texts find every gap in the standard library.
        except (ValueError, TypeError, OverflowError, IndexError, AttributeError):
            continue
        return found.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return None
