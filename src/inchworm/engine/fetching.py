"""What answers a session's requests: the network, through the guard and perhaps proxies, or WARC files."""

from __future__ import annotations

import contextlib
import dataclasses
import resource
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from inchworm.archive import reader as warc_reader
from inchworm.errors import WrongUse
from inchworm.fetch.guard import Guard
from inchworm.fetch.http import HttpFetcher, HttpOptions
from inchworm.fetch.replay import ReplayFetcher
from inchworm.fetch.room import Room
from inchworm.fetch.rotation import RoundRobin
from inchworm.ports import Fetcher
from inchworm.rules.web import proxies
from inchworm.rules.web import url as urls
from inchworm.settings import Settings

_OTHER_FILES = 40
_FILES_PER_CONNECTION = 2


@contextlib.asynccontextmanager
async def fetching(typed: Iterable[str], values: Settings, credentials: Mapping[str, str]) -> AsyncIterator[Fetcher]:
    """What answers requests. `typed`: what somebody at this machine typed, which may lie in a private network.
    Credentials are by origin, and never stored."""
    fetcher: Fetcher
    if values.replay:
        fetcher = ReplayFetcher([Path(name) for name in values.replay], warc_reader.records, warc_reader.record_at)
    else:
        _refuse_wrong(values.proxies)
        allowed = frozenset(_address(form) for text in typed for form in urls.seed(text) or ())
        options = HttpOptions(
            values.user_agent,
            Guard(values.allow_private, allowed),
            values.connect_timeout,
            values.first_byte_timeout,
            _connections(max(64, values.workers)) // max(1, len(values.proxies)) or 1,
            credentials=credentials,
            room=Room(values.max_body * values.workers),
        )
        ways = [HttpFetcher(dataclasses.replace(options, proxy=text)) for text in values.proxies]
        fetcher = RoundRobin(ways) if ways else HttpFetcher(options)
    try:
        yield fetcher
    finally:
        await fetcher.close()


def _connections(wanted: int) -> int:
    """As many connections as we may have besides our files: running out of them would look like failures."""
    needed = _OTHER_FILES + _FILES_PER_CONNECTION * wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, (soft - _OTHER_FILES) // _FILES_PER_CONNECTION))


def _refuse_wrong(addresses: Sequence[str]) -> None:
    for text in addresses:
        if not proxies.is_proxy(text):
            raise WrongUse(
                f"{proxies.masked(text)!r} is not the address of a proxy.",
                "Give one like http://host:3128 or socks5://host:1080.",
            )


def _address(url: str) -> tuple[str, int]:
    """Host name and port of a URL in its normal form."""
    parts = urlsplit(url)
    return (parts.hostname or "").strip("[]"), parts.port or (443 if parts.scheme == "https" else 80)
