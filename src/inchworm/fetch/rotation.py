"""Several ways out, taken in turn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from inchworm.model import Reply, Request
from inchworm.ports import Fetcher


class RoundRobin:
    """A `ports.Fetcher` that sends each request by the next of several fetchers, each with a proxy of its own.

    They share no connection, so what one proxy was told (its password, for instance) no other can learn.
    """

    def __init__(self, fetchers: Sequence[Fetcher]) -> None:
        self._fetchers = tuple(fetchers)
        self._next = itertools.cycle(self._fetchers)

    async def fetch(self, request: Request) -> Reply:
        return await next(self._next).fetch(request)

    async def close(self) -> None:
        for fetcher in self._fetchers:
            await fetcher.close()
