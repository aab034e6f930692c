"""How much memory large answers may take up together, from their first bytes until they were read.

Small answers are not counted. A large one asks once, for the most that may come of it, and waits until there is so
much: what has its room always comes to its end, so nobody waits for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

SMALL_BYTES = 1_000_000
MOST_BYTES = 1 << 30


class _Waiting(NamedTuple):
    task: asyncio.Task[Any]
    size: int
    then: Callable[[], object]


class Room:
    """First come, first served. What a task has taken it gives back when it ends: then its answer was read."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = self._left = min(most, MOST_BYTES) or MOST_BYTES
        self._taken: dict[asyncio.Task[Any], int] = {}
        self._waiting: deque[_Waiting] = deque()

    def take(self, task: asyncio.Task[Any], size: int, then: Callable[[], object]) -> bool:
        """Whether there is room now. Where there is not, `then` is called when there is."""
        size = min(size or self.most // 4, self.most)
        if task in self._taken:
            # A task has one large answer at a time, and must not wait for what it holds itself.
            return True
        task.add_done_callback(self._give_back)
        self._waiting.append(_Waiting(task, size, then))
        self._let_in()
        return task in self._taken

    def leave(self, task: asyncio.Task[Any]) -> None:
        """Wait no longer."""
        self._waiting = deque(one for one in self._waiting if one.task is not task)
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0].size <= self._left:
            task, size, then = self._waiting.popleft()
            self._taken[task] = size
            self._left -= size
            then()

    def _give_back(self, task: asyncio.Task[Any]) -> None:
        self._left += self._taken.pop(task, 0)
        self.leave(task)
