"""Steering: pausing and cancelling a run, its checkpoints, and which run the next ones build on."""

from __future__ import annotations

from dataclasses import dataclass

from inchworm.app.act.edit import cancel_run
from inchworm.app.read.checkpoints import CheckpointLine, Checkpoints, find
from inchworm.app.read.runs import Runs
from inchworm.app.workspace import Workspace
from inchworm.engine import run
from inchworm.errors import NotNow, WrongUse
from inchworm.model import CheckpointType, CrawlInfo, RunInfo, RunState
from inchworm.settings import NamedSettings
from inchworm.store.crawl.history import History

KEEP_LAST = 3


@dataclass(frozen=True, slots=True)
class MovedLine:
    """Which run the next ones build on, which it was before, and the settings that the crawl took over from it."""

    crawl_id: str
    line: int
    before: int
    settings: NamedSettings


class Steering:
    """Steers what is there."""

    def __init__(self, workspace: Workspace, runs: Runs, checkpoints: Checkpoints) -> None:
        self._workspace = workspace
        self._runs = runs
        self._checkpoints = checkpoints

    # From another process

    def pause(self, word: str) -> str:
        """Ask the owner to pause its run, and wait until it did."""
        return self._end(self._workspace.find(word), "pause", "has nothing running to pause")

    def cancel(self, word: str) -> str:
        """End a run for good; its pages stay."""
        crawl = self._workspace.find(word)
        if self._workspace.is_running(crawl):
            return self._end(crawl, "cancel", "has nothing to cancel")
        with self._workspace.reading(crawl):
            pass  # one that never started has nothing to cancel
        with self._workspace.owning(crawl) as owner:
            last = owner.store.runs.get()
            if last is None or not run.is_open(last):
                raise NotNow(
                    f"The crawl {crawl.name!r} has no open run to cancel.",
                    "`inchworm list` shows the crawls.",
                )
            cancel_run(owner, last, self._workspace.clock.now_ms())
        return RunState.CANCELLED

    def _end(self, crawl: CrawlInfo, verb: str, otherwise: str) -> str:
        if not self._workspace.is_running(crawl):
            raise NotNow(f"The crawl {crawl.name!r} {otherwise}.", "`inchworm list` shows what is running.")
        self._workspace.ask(crawl, verb, {})
        with self._workspace.reading(crawl) as store:
            return run.state_of(self._workspace.run_of(crawl, store), self._workspace.is_running(crawl))

    def make_line(self, word: str, number: int) -> MovedLine:
        """Have later runs build on this one and go by its settings; which one they would have built on."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            _refuse_for_line(self._workspace.run_of(crawl, store, number))
        with self._workspace.owning(crawl) as owner:
            chosen, end = self._workspace.run_of(crawl, owner.store, number), owner.store.runs.line_end()
            assert end is not None
            _refuse_for_line(chosen)
            others = {name: value for name, value in chosen.settings.items() if end.settings.get(name) != value}
            # The settings first: should we die here, the second try still sees the difference.
            self._workspace.crawls.change(crawl.crawl_id, settings={**crawl.settings, **others})
            line = run.line_to(owner.store.runs.list(), chosen)
            History(owner.store).set_line(owner.token, [one.run_id for one in line], self._workspace.clock.now_ms())
        return MovedLine(crawl.crawl_id, number, end.number, others)

    def end_run(self, crawl: CrawlInfo) -> str:
        """End the open run for good; its state."""
        # Whoever owns a crawl makes its files, so those have to be there first.
        if self._runs.last(crawl) is None:
            raise NotNow(f"The crawl {crawl.name!r} has no open run to cancel.", "It has not started yet.")
        return self.cancel(crawl.crawl_id)

    def checkpoint(self, word: str) -> CheckpointLine:
        """Make one now. While another process works on the crawl, it is asked to."""
        crawl = self._workspace.find(word)
        # Whoever owns a crawl makes its files, so those have to be there first.
        with self._workspace.reading(crawl) as store:
            self._workspace.run_of(crawl, store)
        answer = self._workspace.ask(crawl, "checkpoint", {}) if self._workspace.is_running(crawl) else None
        if answer and answer.isdecimal():
            return self._checkpoints.get(crawl, int(answer))
        with self._workspace.owning(crawl) as owner:
            number = owner.checkpoint(CheckpointType.MANUAL, self._workspace.clock.now_ms()).number
        return self._checkpoints.get(crawl, number)

    def delete_checkpoint(self, word: str, checkpoint: int | str) -> int:
        """Delete a checkpoint; its number."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            find(History(store), crawl, checkpoint)
        with self._workspace.owning(crawl) as owner:
            history = History(owner.store)
            number = find(history, crawl, checkpoint).number
            history.forget(owner.token, [number])
        return number

    def keep_checkpoints(self, word: str, last: int = KEEP_LAST) -> int:
        """Delete all but the last so many; how many went."""
        if last < 0:
            raise WrongUse(f"{last} checkpoints cannot be kept.", "Give a number from 0 on.")
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            if len(History(store).checkpoints()) <= last:
                return 0
        with self._workspace.owning(crawl) as owner:
            history = History(owner.store)
            numbers = [one.number for one in history.checkpoints()]
            old = numbers[: max(0, len(numbers) - last)]
            history.forget(owner.token, old)
        return len(old)


def _refuse_for_line(chosen: RunInfo) -> None:
    if chosen.state is not RunState.COMPLETED:
        raise NotNow(
            f"Run {chosen.number} is {chosen.state}, and later runs can build only on one that is complete.",
            "Finish it first, or choose another: inchworm runs lists them.",
        )
