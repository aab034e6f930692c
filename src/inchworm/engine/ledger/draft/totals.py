"""The numbers of a run and of its session, kept in step with what is decided: nobody counts rows."""

from __future__ import annotations

from dataclasses import asdict

from inchworm.model import Counters, State
from inchworm.ports import Commit


class Totals:
    """A run's counters, and what its session asked for."""

    def __init__(self, counters: Counters) -> None:
        self._numbers: dict[str, int] = asdict(counters)
        self._requests = 0
        self._size = 0

    def add(self, **changes: int) -> None:
        for name, change in changes.items():
            self._numbers[name] += change

    def add_one(self, name: str) -> None:
        self._numbers[name] += 1

    def entered(self, state: State) -> None:
        """A URL was met for the first time."""
        self._numbers["known"] += 1
        self._numbers[state._value_] += 1

    def set_unknown(self, count: int) -> None:
        self._numbers["unknown"] = count

    def requested(self, size: int, saved: int) -> None:
        """A request was made, and this many bytes came."""
        self._requests += 1
        self._size += size
        self.add(requests=1, size=size, saved=saved)

    def number(self, name: str) -> int:
        return self._numbers[name]

    def counters(self) -> Counters:
        return Counters(**self._numbers)

    @property
    def requests(self) -> int:
        """Of this session."""
        return self._requests

    @property
    def size(self) -> int:
        """Bytes that came in this session."""
        return self._size

    def put_into(self, changes: Commit) -> None:
        changes.counters = self.counters()
        changes.requests, changes.size = self._requests, self._size
