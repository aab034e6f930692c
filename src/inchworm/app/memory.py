"""Remembering what was found out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Memory(Generic[Kept]):
    """What was found out and does not change, for all threads; what was not asked for longest is forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            made = self._kept.setdefault(key, made)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    def forget(self, key: Hashable) -> None:
        with self._lock:
            self._kept.pop(key, None)
