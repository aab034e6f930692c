"""Proxies by their addresses: what is one, and how one with a password is shown."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_MASK = "…"


def is_proxy(text: str) -> bool:
    """Whether this can be the address of a proxy."""
    try:
        parts = urlsplit(_with_scheme(text))
        return parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def masked(text: str) -> str:
    """The address without user and password, and with a sign where they were."""
    scheme, _, rest = _with_scheme(text).partition("://")
    return f"{scheme}://{_MASK}@{rest.rpartition('@')[2]}" if "@" in rest else text


def is_masked(text: str) -> bool:
    return f"://{_MASK}@" in text


def has_secret(text: str) -> bool:
    """Whether there is a user or a password in it."""
    return masked(text) != text


def among(text: str, known: Iterable[str]) -> str | None:
    """The known address that this one is, whatever user and password either has."""
    return next((one for one in known if _bare(one) == _bare(text)), None)


def _bare(text: str) -> str:
    scheme, _, rest = _with_scheme(text).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].rstrip('/')}".lower()


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"
