"""The seeds of a run: where their scopes lie by now, and what each has used of its limits."""

from __future__ import annotations

import json
from collections.abc import Iterable

from inchworm.engine.ledger.draft.steps import Steps
from inchworm.model import Seed
from inchworm.ports import Commit


class Seeds:
    """The seeds, by number."""

    def __init__(self, seeds: Iterable[Seed], changes: Commit, steps: Steps) -> None:
        self._seeds = {seed.number: seed for seed in seeds}
        self._changes = changes
        self._steps = steps

    def seed(self, number: int) -> Seed:
        return self._seeds[number]

    def all(self) -> tuple[Seed, ...]:
        return tuple(self._seeds.values())

    def use(self, number: int, kept: int, requests: int = 0) -> None:
        """So much more of the limits of this seed is used."""
        seed = self._seeds[number]
        self._seeds[number] = seed._replace(kept=seed.kept + kept, requests=seed.requests + requests)

    def move(self, after: Seed) -> None:
        """The scope of a seed lies elsewhere; where it was is kept for going back."""
        before = self._seeds[after.number]
        undo = json.dumps({"host": before.host, "path": before.path})
        self._changes.undo.append((self._steps.seq, "seed", before.number, undo))
        self._seeds[after.number] = after

    def put_into(self, changes: Commit) -> None:
        changes.seeds = self.all()
