"""Numbers and dates as people write them into pages."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from inchworm.rules.metadata import dates

_MOST = 2**63 - 1
_GAPS = " \u00a0\u2007\u2009\u202f'\u2019"
_NUMBER = re.compile(
    # A minus sign may stand before a currency, but not between two words or numbers.
    r"(?P<sign>(?<!\w)[-\u2212]\s?[^\w\s.,]?\s?)?"
    rf"(?P<digits>\d{{1,3}}(?:[{_GAPS}]\d{{3}})+(?!\w)(?:[.,]\d+)?|\d+(?:[.,]\d+)*|[.,]\d+)"
    r"(?P<power>[eE][-+]?\d{1,3}(?!\w))?",
    re.ASCII,
)
_FIRST_GROUP, _OTHER_GROUP, _LAST_GROUP = 3, (2, 3), 3
_LONGEST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_YEAR = r"(?P<year>\d{4})"
_ENGLISH = tuple(
    re.compile(_WEEKDAY + form, re.ASCII | re.IGNORECASE)
    for form in (rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}", rf"{_MONTH}\s+{_DAY},?\s+{_YEAR}")
)


def number(text: str, decimal: str = "") -> float | None:
    """The first number of a text; None where none stands, or nobody can tell which. Points, commas, apostrophes and
    spaces may group its digits. Without a `decimal` sign, a single comma before three digits groups, any other single
    sign is the decimal one."""
    value = float(digits) if (digits := _written(text, decimal)) else math.nan
    return value if math.isfinite(value) else None


def integer(text: str, decimal: str = "") -> int | None:
    """The first number of a text where it is a whole one, as large as tables can hold."""
    digits = _written(text, decimal)
    if digits is None or not digits.removeprefix("-").isdigit():
        value = number(text, decimal)
        return int(value) if value is not None and value.is_integer() and abs(value) < _MOST else None
    return whole if abs(whole := int(digits)) <= _MOST else None


def _written(text: str, decimal: str) -> str | None:
    """The first number of a text, as programs write it."""
    found = _NUMBER.search(text[:_LONGEST])
    digits = _plain(re.sub(f"[{_GAPS}]", "", found["digits"]), decimal) if found else None
    if found is None or digits is None:
        return None
    return f"{'-' if found['sign'] else ''}{digits}{found['power'] or ''}"


def _plain(digits: str, decimal: str) -> str | None:
    """Digits with a point where the fraction begins."""
    decimal = decimal or _decimal_sign(digits)
    whole, _, fraction = digits.partition(decimal) if decimal else (digits, "", "")
    first, *others = re.split("[.,]", whole)
    is_grouped = not others or (
        1 <= len(first) <= _FIRST_GROUP
        and all(len(group) in _OTHER_GROUP for group in others)
        and len(others[-1]) == _LAST_GROUP
        and len(set(re.findall("[.,]", whole))) == 1
    )
    if not is_grouped or (fraction and not fraction.isdigit()):
        return None
    return (first + "".join(others) or "0") + (f".{fraction}" if fraction else "")


def _decimal_sign(digits: str) -> str:
    """Which sign of a number is the decimal one; none when they only group digits."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    if points + commas != 1:
        return ""
    before, sign, behind = digits.partition("." if points else ",")
    is_group = sign == "," and len(behind) == _LAST_GROUP and 1 <= len(before) <= _FIRST_GROUP and before != "0"
    return "" if is_group else sign


def moment(text: str, form: str = "") -> int | None:
    """A date or time as milliseconds since 1970; None when it cannot be told what is meant. What has no zone counts as
    UTC. `form`: how it is written, as `strptime` has it; otherwise ISO 8601, as in mails, or English with its month in
    letters."""
    text = " ".join(text.split())[:_LONGEST]
    at = _by_form(text, form) if form else _standard(text) or _english(text)
    if at is None:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _by_form(text: str, form: str) -> datetime | None:
    try:
        found = datetime.strptime(text, form)  # noqa: DTZ007 - the zone comes later
        return found.astimezone(UTC) if found.tzinfo else found
    except (ValueError, OverflowError):
        return None


def _standard(text: str) -> datetime | None:
    said = dates.standard(text)
    if said is None:
        return None
    # A year and a month begin with their first day.
    return datetime.fromisoformat(said + "-01-01"[len(said) - 4 :] if len(said) in (4, 7) else said)


def _english(text: str) -> datetime | None:
    for form in _ENGLISH:
        if found := form.fullmatch(text):
            month = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(found["month"][:3].lower()))
            try:
                return datetime(int(found["year"]), month, int(found["day"]))  # noqa: DTZ001 - the zone comes later
            except ValueError:
                return None
    return None
