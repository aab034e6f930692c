"""Which process dies where: plans of kills, all of them made from one seed, so that a failure can be repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from tests.crash.trial import Ended, Running, Trial, Twist

from inchworm.fault import POINTS

KILLS = int(os.environ.get("INCHWORM_KILLS") or 42)
SEED = os.environ.get("INCHWORM_SEED") or "20261115"
PER_TRIAL = 3

PER_START = ("in_recovery", "after_recovery")
PER_COMMIT = ("before_archive", "before_commit", "in_commit", "after_commit")
SABOTAGES = ("die-sql", "die-file", "torn-write")
MOMENTS = ("request", "time")
WORKERS = (5, 1, 32)


@dataclass(frozen=True, slots=True)
class Plan:
    """Some kills of one kind, at one number of workers."""

    kind: str
    number: int
    workers: int
    kills: int = PER_TRIAL

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}-workers{self.workers}"

    def chance(self) -> random.Random:
        print(f"INCHWORM_SEED={SEED}")
        return random.Random(f"{SEED} {self}")


def plans() -> list[Plan]:
    """As many plans as the wanted number of kills needs, every kind in turn."""
    # Going back has its own kills: in a plain crawl nobody passes there.
    points = [point for point in POINTS if point not in ("going_back", "gone_back")]
    kinds = [*points, *MOMENTS, *SABOTAGES]
    wanted = max(len(kinds), -(-KILLS // PER_TRIAL))
    return [_plan(kinds, *divmod(number, len(kinds))) for number in range(wanted)]


def _plan(kinds: Sequence[str], turn: int, kind: int) -> Plan:
    return Plan(kinds[kind], turn, WORKERS[(turn + kind) % len(WORKERS)])


Death = tuple[Twist, Callable[[Running], None] | None]


def deaths(plan: Plan, chance: random.Random) -> Iterator[Death]:
    """One way to die after the other, without end: early ones and late ones by turns."""
    for turn in count(plan.number, 3):
        if plan.kind in PER_START:
            yield from _in_recovery(plan.kind, turn, chance)
        else:
            yield _death(plan.kind, turn, chance)


def _in_recovery(point: str, turn: int, chance: random.Random) -> Iterator[Death]:
    """Dead, and dead again twice while the mess is being cleaned up."""
    yield _death(chance.choice([*PER_COMMIT, "after_fetch", "torn-write", "request"]), turn, chance)
    yield Twist(fault=f"{point}:1"), None
    yield Twist(fault=f"{chance.choice(PER_START)}:1"), None


def _death(kind: str, turn: int, chance: random.Random) -> Death:
    if kind == "request":
        return Twist(), at_request(chance.randint(1, 120), chance.choice([0.0, 0.0, chance.uniform(0, 0.03)]))
    if kind == "time":
        return Twist(), after_seconds(chance.uniform(0.1, 0.6))
    if kind == "die-sql":
        return Twist(sabotage=f"die-sql:{chance.choice([turn * 7 + 1, chance.randint(1, 300)])}"), None
    if kind == "die-file":
        return Twist(sabotage=f"die-file:{chance.randint(1, 16)}"), None
    if kind == "torn-write":
        return Twist(sabotage=f"torn-write:{chance.randint(1, 4)}"), None
    most = 3 if kind in PER_COMMIT else 70
    first = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)[turn % 10]
    return Twist(fault=f"{kind}:{first if first <= most else chance.randint(1, most)}"), None


def at_request(number: int, later: float) -> Callable[[Running], None]:
    """Kill when the server has seen so many requests, or a moment later."""

    def during(running: Running) -> None:
        running.wait_for(number)
        time.sleep(later)
        running.send(signal.SIGKILL)

    return during


def after_seconds(seconds: float) -> Callable[[Running], None]:
    def during(running: Running) -> None:
        time.sleep(seconds)
        running.send(signal.SIGKILL)

    return during


def die(trial: Trial, plan: Plan, death: Death, chance: random.Random) -> Ended:
    """One session with this end before it, now and then under a budget."""
    twist, during = death
    budget = ["--budget", str(chance.randint(20, 90))] if chance.random() < 0.3 else []
    return trial.sit("--workers", str(plan.workers), *budget, twist=twist, during=during)


def carry_out(plan: Plan, trials: Callable[[], Trial]) -> Iterator[Trial]:
    """The kills of a plan, over as many crawls as it takes. Every crawl is handed over when its kills are done."""
    chance = plan.chance()
    ways = deaths(plan, chance)
    killed = 0
    while killed < plan.kills:
        trial = trials()
        # A third death while one and the same page is read would set it aside, and rightly so.
        while killed < plan.kills and not trial.has_completed and trial.deaths < 2:
            killed += die(trial, plan, next(ways), chance).was_killed
        yield trial
