"""The transfers of libcurl on an event loop."""

from __future__ import annotations

import asyncio
import math
import select
from contextlib import suppress
from typing import Any

import pycurl

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}


class Multi:
    """The transfers of libcurl on an event loop.

    Their sockets are watched by an epoll of our own, and the loop watches that. A watcher of the loop's would be made
    and taken away for every request, which costs as much as the request itself; here a connection that is kept may
    stay watched, and one that is closed is forgotten by the system.
    """

    def __init__(self, max_connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._curl: Any = pycurl.CurlMulti()
        self._curl.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self._curl.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._curl.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._sockets = select.epoll()
        self._loop.add_reader(self._sockets.fileno(), self._act)
        self._wanted: set[int] = set()
        self._running: dict[Any, asyncio.Future[None]] = {}
        self._timer: asyncio.Handle | None = None
        self._timer_ends = self._due = math.inf

    def start(self, curl: Any) -> asyncio.Future[None]:
        """Begin a transfer. The future ends with it, in `pycurl.error` where it fails."""
        done = self._running[curl] = self._loop.create_future()
        self._curl.add_handle(curl)
        return done

    def stop(self, curl: Any) -> None:
        """Abort a transfer that has not ended by itself."""
        if self._running.pop(curl, None) is not None:
            self._curl.remove_handle(curl)

    def close(self) -> None:
        if self._curl.closed:
            return
        for curl, done in tuple(self._running.items()):
            self.stop(curl)
            done.cancel()
        self._curl.close()
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._sockets.fileno())
        self._sockets.close()

    def _watch(self, what: int, number: int, *_: Any) -> None:
        """libcurl wants to know when it can go on with a socket, or does not want to any more."""
        events = _EVENTS.get(what)
        if events is None:
            self._wanted.discard(number)
            return
        self._wanted.add(number)
        try:
            self._sockets.modify(number, events)
        except FileNotFoundError:
            self._sockets.register(number, events)

    def _act(self) -> None:
        """Some sockets are ready. One that libcurl does not want is left alone from now on."""
        for number, events in self._sockets.poll(0):
            if number in self._wanted:
                can_read = pycurl.CSELECT_IN if events & ~select.EPOLLOUT else 0
                can_write = pycurl.CSELECT_OUT if events & ~select.EPOLLIN else 0
                self._drive(number, can_read | can_write)
            else:
                with suppress(OSError):
                    self._sockets.unregister(number)
        self._settle()

    def _set_timer(self, milliseconds: int) -> None:
        """libcurl wants to be called by then. It says so all the time: a timer that ends earlier is left as it is."""
        self._due = self._loop.time() + milliseconds / 1000 if milliseconds >= 0 else math.inf
        if self._due < self._timer_ends:
            self._wake_at_due()

    def _wake_at_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ends = self._due
        self._timer = self._loop.call_at(self._due, self._wake) if self._due < math.inf else None

    def _wake(self) -> None:
        self._timer, self._timer_ends = None, math.inf
        if self._loop.time() < self._due:
            self._wake_at_due()
            return
        self._due = math.inf
        self._drive(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()

    def _drive(self, number: int, mask: int) -> None:
        try:
            self._curl.socket_action(number, mask)
        except pycurl.error as error:
            for curl in tuple(self._running):
                self._end(curl, error)

    def _settle(self) -> None:
        _, ended, failed = self._curl.info_read()
        for curl in ended:
            self._end(curl, None)
        for curl, code, message in failed:
            self._end(curl, pycurl.error(code, message))

    def _end(self, curl: Any, error: Exception | None) -> None:
        done = self._running.get(curl)
        self.stop(curl)
        if done is None or done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
