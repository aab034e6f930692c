"""Proxies by their addresses: what is one, and how one with a password is shown."""

from __future__ import annotations

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


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"
