"""How far a run has got besides its numbers: what disturbed its order, and how its end goes on."""

from __future__ import annotations

from inchworm.engine.ledger.draft.steps import Steps
from inchworm.model import RunInfo
from inchworm.ports import Commit


class Milestones:
    """What happens once in a run."""

    def __init__(self, run: RunInfo, steps: Steps) -> None:
        self._steps = steps
        self._disturbed = run.disturbed
        self._swept, self._concluded, self._alarm = run.swept, run.concluded, run.alarm

    @property
    def disturbed(self) -> str:
        """Since when, and by what, the record is not the one that an undisturbed run would have."""
        return self._disturbed

    def disturb(self, by: str) -> None:
        self._disturbed = self._disturbed or f"disturbed at {self._steps.seq} by {by}"

    @property
    def is_swept(self) -> bool:
        """Whether everything that was not reached was asked for."""
        return bool(self._swept)

    def sweep(self) -> None:
        self._swept = self._steps.seq

    @property
    def is_concluded(self) -> bool:
        """Whether all verdicts were given, and nothing came since."""
        return self._concluded == self._steps.seq > 0

    def conclude(self, alarm: str) -> None:
        self._alarm = alarm
        self._concluded = self._steps.seq

    def put_into(self, changes: Commit) -> None:
        changes.seq, changes.disturbed = self._steps.seq, self._disturbed
        changes.swept, changes.concluded, changes.alarm = self._swept, self._concluded, self._alarm
