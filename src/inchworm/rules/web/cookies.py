"""Cookies as browsers keep them (RFC 6265 and its successor), in a jar that stays small.

What a server sets is read here once, into a `Cookie` that says for itself where it may go. A jar is nothing but the
newest cookie of each name; it is rebuilt from committed rows, so it survives a kill and never holds what the record
does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from ipaddress import ip_address

from inchworm.model import Cookie
from inchworm.rules.web.scope import is_public_suffix
from inchworm.rules.web.url import hostname_of, path_of

MAX_COOKIE = 4_096
MAX_PER_DOMAIN = 50
MAX_DOMAINS = 5_000
MAX_HEADER = 8_192
_MAX_ATTRIBUTE = 1_024
_LONGEST_MS = 400 * 86_400_000
_SOON_MS = 600_000
_ENDED = 1

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")


# ---- what a server sets


def read(head: bytes, url: str, now_ms: int) -> tuple[Cookie, ...]:
    """The cookies that the head of an answer from `url` sets and may set. What it may not set is left out."""
    lines = (line for line in head.split(b"\r\n") if line[:11].lower() == b"set-cookie:")
    cookies = (_read_one(line[11:].decode("utf-8", "replace"), url, now_ms) for line in lines)
    return tuple(cookie for cookie in cookies if cookie)


def _read_one(text: str, url: str, now_ms: int) -> Cookie | None:
    pair, _, rest = text.partition(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(" \t"), value.strip(" \t")) if equals else ("", pair.strip(" \t"))
    if not (name or value) or len((name + value).encode()) > MAX_COOKIE or _CONTROL.search(name + value):
        return None
    said = _attributes(rest)
    host, is_safe = hostname_of(url), url.startswith("https:")
    domain = said.get("domain", "").removeprefix(".").lower() or host
    if domain != host and not _may_set_for(host, domain):
        return None
    path = said.get("path", "")
    path = path if path.startswith("/") else _default_path(url)
    host_only = "domain" not in said or not said["domain"] or is_public_suffix(domain)
    cookie = Cookie(domain, path, name, value, host_only, "secure" in said, _expires(said, now_ms))
    return cookie if _keeps_its_word(cookie) and (is_safe or not cookie.secure) else None


def _attributes(text: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = (word.strip(" \t") for word in part.partition("="))
        if len(value.encode()) <= _MAX_ATTRIBUTE:
            said[name.lower()] = value
    return said


def _may_set_for(host: str, domain: str) -> bool:
    """A host may speak for what it is a part of, but not for all of .com, and an address for itself only."""
    return host.endswith("." + domain) and not _is_address(host) and not is_public_suffix(domain)


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _keeps_its_word(cookie: Cookie) -> bool:
    """Two prefixes of a name promise how the cookie was set; browsers hold servers to it."""
    name = (cookie.name or cookie.value).lower()
    if name.startswith("__host-"):
        return cookie.secure and cookie.host_only and cookie.path == "/"
    return cookie.secure or not name.startswith("__secure-")


def _default_path(url: str) -> str:
    return path_of(url).rpartition("/")[0] or "/"


def _expires(said: dict[str, str], now_ms: int) -> int:
    """When it ends, in milliseconds; 0 for one that lasts as long as the run, 1 for one that has ended."""
    if (seconds := said.get("max-age", "")) and _WHOLE_NUMBER.fullmatch(seconds):
        # A number of any length: what has more digits than this is over the limit anyway.
        moment: int | None = now_ms + 1000 * int(seconds[:12])
    else:
        moment = _date(said.get("expires", ""))
    if moment is None or moment <= now_ms:
        return 0 if moment is None else _ENDED
    moment = min(moment, now_ms + _LONGEST_MS)
    # Many servers renew a cookie with every page; by the minute that is news only now and then.
    return moment if moment - now_ms < _SOON_MS else moment - moment % 60_000


_DELIMITERS = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D|\Z)")
_DAY = re.compile(r"(\d{1,2})(?:\D|\Z)")
_YEAR = re.compile(r"(\d{2,4})(?:\D|\Z)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _date(text: str) -> int | None:
    """A date as cookies write it, in any order and with any delimiters; None when it is none."""
    time: tuple[int, int, int] | None = None
    day = month = year = None
    for token in _DELIMITERS.split(text):
        if time is None and (found := _TIME.match(token)):
            time = (int(found[1]), int(found[2]), int(found[3]))
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = 1 + _MONTHS.index(token[:3].lower())
        elif year is None and (found := _YEAR.match(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 0 if year >= 100 else 1900 if year >= 70 else 2000
    try:
        return round(1000 * datetime(year, month, day, time[0], time[1], time[2], tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return None


# ---- the jar


class Jar:
    """The cookies of a run. Bounded for each domain and in all: a server that sets more loses its oldest."""

    def __init__(self, cookies: Iterable[Cookie] = ()) -> None:
        self._domains: dict[str, dict[tuple[str, str, bool], Cookie]] = {}
        for cookie in cookies:
            self.put(cookie)

    def put(self, cookie: Cookie) -> bool:
        """Keep a cookie in place of the one it renews. Whether that made any difference."""
        jar = self._domains.setdefault(cookie.domain, {})
        key = (cookie.path, cookie.name, cookie.host_only)
        if jar.get(key) == cookie:
            return False
        known = jar.pop(key, None)
        if cookie.expires_ms == _ENDED:
            return known is not None
        jar[key] = cookie
        while len(jar) > MAX_PER_DOMAIN:
            del jar[next(iter(jar))]
        while len(self._domains) > MAX_DOMAINS:
            del self._domains[next(iter(self._domains))]
        return True

    def accepts(self, cookie: Cookie, url: str) -> bool:
        """An answer that came in the open must not replace what was set over a safe connection."""
        if url.startswith("https:"):
            return True
        return not any(
            one.secure and one.name == cookie.name and _holds(one.path, cookie.path)
            for domain, jar in self._domains.items()
            if _is_part(domain, cookie.domain) or _is_part(cookie.domain, domain)
            for one in jar.values()
        )

    def header(self, url: str, now_ms: int, also: Iterable[Cookie] = ()) -> str:
        """The Cookie header for a request: longer paths first. `also`: as if these had been put in before."""
        if not self._domains and not also:
            return ""
        host = hostname_of(url)
        fitting = {(c.domain, c.path, c.name, c.host_only): c for c in (*self._near(host), *also)}
        sent = [cookie for cookie in fitting.values() if _goes_to(cookie, host, url, now_ms)]
        sent.sort(key=lambda cookie: -len(cookie.path))
        line = ""
        for cookie in sent:
            pair = f"{cookie.name}={cookie.value}" if cookie.name else cookie.value
            longer = f"{line}; {pair}" if line else pair
            if len(longer.encode()) > MAX_HEADER:
                break
            line = longer
        return line

    def _near(self, host: str) -> Iterator[Cookie]:
        """The cookies of a host and of what it is a part of."""
        while host:
            yield from self._domains.get(host, {}).values()
            host = host.partition(".")[2]


def _goes_to(cookie: Cookie, host: str, url: str, now_ms: int) -> bool:
    if cookie.expires_ms and cookie.expires_ms <= now_ms:
        return False
    if cookie.secure and not url.startswith("https:"):
        return False
    if host != cookie.domain if cookie.host_only else not _is_part(host, cookie.domain):
        return False
    return _holds(cookie.path, path_of(url))


def _is_part(host: str, domain: str) -> bool:
    return host == domain or host.endswith("." + domain)


def _holds(directory: str, path: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
