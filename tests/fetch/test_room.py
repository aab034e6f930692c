"""Room for large answers: no more than there is, first come first served, and whoever ends gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from inchworm.fetch.room import MOST_BYTES, Room


class Guest:
    """A task that takes room and keeps it until it is told to go."""

    def __init__(self, room: Room, size: int) -> None:
        self.is_in = False
        self._go = asyncio.Event()
        self.task = asyncio.create_task(self._stay(room, size))

    async def _stay(self, room: Room, size: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        room.take(task, size, self._enter)
        await self._go.wait()

    def _enter(self) -> None:
        self.is_in = True

    async def leave(self) -> None:
        self._go.set()
        await self.task
        await asyncio.sleep(0)


async def guests(room: Room, *sizes: int) -> list[Guest]:
    made = [Guest(room, size) for size in sizes]
    await asyncio.sleep(0)
    return made


def inside(made: list[Guest]) -> list[int]:
    return [number for number, guest in enumerate(made) if guest.is_in]


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


def test_first_come_first_served() -> None:
    async def story() -> None:
        made = await guests(Room(10), 6, 4, 5, 1)
        assert inside(made) == [0, 1], "what is small does not pass what waited longer"
        await made[1].leave()
        assert inside(made) == [0, 1]
        await made[0].leave()
        assert inside(made) == [0, 1, 2, 3]
        for guest in made[2:]:
            await guest.leave()

    run(story())


@pytest.mark.parametrize(("size", "fits"), [(9, True), (10, True), (11, False)])
def test_the_room_is_as_large_as_it_is(size: int, fits: bool) -> None:
    async def story() -> None:
        made = await guests(Room(20), 10, size)
        assert made[1].is_in is fits
        for guest in made:
            await guest.leave()

    run(story())


def test_what_is_larger_than_all_of_it_comes_in_alone() -> None:
    async def story() -> None:
        made = await guests(Room(10), 1, 11, 1)
        assert inside(made) == [0]
        await made[0].leave()
        assert inside(made) == [0, 1]
        await made[1].leave()
        assert inside(made) == [0, 1, 2]
        await made[2].leave()

    run(story())


def test_who_gives_up_is_not_waited_for() -> None:
    async def story() -> None:
        made = await guests(Room(10), 6, 6, 4)
        made[1].task.cancel()
        await asyncio.gather(made[1].task, return_exceptions=True)
        await asyncio.sleep(0)
        assert inside(made) == [0, 2]
        await made[0].leave()
        await made[2].leave()

    run(story())


def test_the_room_is_bounded_whatever_is_asked_for() -> None:
    assert Room(20_000_000 * 1_000).most == MOST_BYTES == 1 << 30
    assert Room(0).most == MOST_BYTES, "no limit of a body is no reason to have none of memory"
