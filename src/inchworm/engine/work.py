"""A session is opened, worked until it ends, and closed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator

from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.closing import about_unread, close, reopen_if_nothing_came
from inchworm.engine.opening import OpenSession, SessionStart, opened
from inchworm.engine.session.ending import SessionEnd
from inchworm.engine.session.loop import Loop
from inchworm.engine.signals import stop_signals
from inchworm.errors import InchwormError
from inchworm.model import EndedBy
from inchworm.ports import Fetcher


async def work(start: SessionStart, fetcher: Fetcher, hooks: Hooks) -> Summary:
    """One session, from its first request to its last word."""
    async with opened(start, fetcher, hooks) as session:
        with _stopped_by_signals(session.loop, hooks.signals) as signals:
            end, is_cancelled = await _until_it_ends(session)
        end = reopen_if_nothing_came(start, session, end)
    try:
        summary = close(start, end, session.loop.progress())
    finally:
        if hooks.progress is not None:
            hooks.progress(session.loop.progress())
    if is_cancelled:
        raise asyncio.CancelledError
    return dataclasses.replace(summary, signal=signals[0] if signals else 0, note=about_unread(session.reader.unread))


@contextlib.contextmanager
def _stopped_by_signals(session: Loop, wanted: bool) -> Iterator[list[int]]:
    """The first signal pauses a session, another one breaks off what is under way; which came is gathered."""
    loop = asyncio.get_running_loop()
    numbers = stop_signals() if wanted else []
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        session.stop(EndedBy.PAUSED)

    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield received
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _until_it_ends(session: OpenSession) -> tuple[SessionEnd, bool]:
    """How a session ended, and whether somebody cancelled it. To cancel is to pause: what is under way may finish, what
    was found is committed, and only then the one who cancelled goes on."""
    working, is_cancelled = asyncio.ensure_future(_worked(session)), False
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            is_cancelled = True
            session.loop.stop(EndedBy.PAUSED)
    return working.result(), is_cancelled


async def _worked(session: OpenSession) -> SessionEnd:
    try:
        await session.rehash.work(lambda: session.loop.progress().is_ending)
    except InchwormError as error:
        return SessionEnd(EndedBy.ERROR, error.message, error)
    return await session.loop.work()
