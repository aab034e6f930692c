"""Running a coroutine to its end for a caller who cannot await it: also where an event loop runs already, as in a
notebook. Then it gets a thread with a loop of its own, beside the caller's, and calls back into the caller's thread."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
Value = TypeVar("Value")


def has_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class LoopThread(Generic[T]):
    """A coroutine in a thread of its own. The caller waits, and meanwhile does what is called back.

    Ctrl-C, which only the caller's thread can hear, cancels the coroutine; when that has ended, the caller goes on with
    `KeyboardInterrupt`. Cancelled once more, a session breaks off what is under way.
    """

    def __init__(self) -> None:
        self._wake, self._answered = threading.Event(), threading.Event()
        self._call: Callable[[], None] | None = None
        self._raised: Exception | None = None
        self._cancel: Callable[[], None] | None = None
        self._is_over = self._is_interrupted = False
        self._result: list[T] = []
        self._error: BaseException | None = None

    def relay(self, call: Callable[[Value], None]) -> Callable[[Value], None]:
        """A function to be called by the coroutine, which is carried out in the caller's thread."""

        def relayed(value: Value) -> None:
            self._answered.clear()
            self._raised, self._call = None, lambda: call(value)
            self._wake.set()
            self._answered.wait()
            if self._raised is not None:
                raise self._raised

        return relayed

    def run(self, work: Callable[[], Coroutine[object, object, T]]) -> T:
        thread = threading.Thread(target=self._run_in_thread, args=(work,), name="inchworm", daemon=True)
        with _ctrl_c_raises():
            thread.start()
            self._wait()
        thread.join()
        if self._is_interrupted:
            raise KeyboardInterrupt
        if self._error is not None:
            raise self._error
        return self._result[0]

    # In the caller's thread

    def _wait(self) -> None:
        while True:
            try:
                while not self._is_over:
                    self._wake.wait()
                    self._wake.clear()
                    self._answer()
            except KeyboardInterrupt:
                self._interrupt()
            else:
                return

    def _answer(self) -> None:
        if (call := self._call) is None:
            return
        try:
            call()
        except Exception as error:
            self._raised = error
        self._go_on()

    def _go_on(self) -> None:
        self._call = None
        self._answered.set()

    def _interrupt(self) -> None:
        self._is_interrupted = True
        if self._cancel is not None:
            self._cancel()
        self._go_on()
        self._wake.set()  # it may have been put out between two looks

    # In the other thread

    def _run_in_thread(self, work: Callable[[], Coroutine[object, object, T]]) -> None:
        try:
            self._result.append(asyncio.run(self._cancellable(work)))
        except BaseException as error:
            self._error = error
        self._is_over = True
        self._wake.set()

    async def _cancellable(self, work: Callable[[], Coroutine[object, object, T]]) -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is nothing left to cancel
                loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self._is_interrupted:
            raise asyncio.CancelledError
        return await work()


@contextlib.contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """`asyncio.run` would hear of Ctrl-C and cancel the task that waits here, which cannot notice before its wait is
    over. Meanwhile it is raised as usual. What others have set stays."""
    handler = signal.getsignal(signal.SIGINT)
    is_of_loop = isinstance(getattr(getattr(handler, "func", None), "__self__", None), asyncio.Runner)
    if not is_of_loop or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
