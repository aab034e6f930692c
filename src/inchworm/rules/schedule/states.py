"""The states of a job: which moves there are, who makes them, and what people may ask for in which state.

The tables below are all there is. The diagram in the documentation is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from inchworm.errors import NotNow
from inchworm.job import JobState

PENDING, SCHEDULED, RUNNING, PAUSED = JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING, JobState.PAUSED
COMPLETED, FAILED, CANCELLED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED


class Action(StrEnum):
    """What people can do to a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    FORCE_RUN = "force-run"

    @property
    def command(self) -> str:
        """What the command line and the dashboard call it."""
        return "run" if self is Action.FORCE_RUN else self.value


class Move(StrEnum):
    """What happens to a job by itself."""

    PLACE = "place"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    TRY_AGAIN = "try again"
    HAND_BACK = "hand back"
    RECUR = "recur"


ACTIONS: Mapping[Action, Mapping[JobState, JobState]] = {
    Action.PAUSE: {SCHEDULED: PAUSED},
    Action.RESUME: {PAUSED: SCHEDULED},
    Action.CANCEL: {PENDING: CANCELLED, SCHEDULED: CANCELLED, RUNNING: CANCELLED, PAUSED: CANCELLED},
    Action.RETRY: {FAILED: PENDING},
    Action.FORCE_RUN: {SCHEDULED: SCHEDULED},
}
"""By action: the states it is possible in, and where it leads."""

HELP: Mapping[Action, str] = {
    Action.PAUSE: "Keep a scheduled job from running.",
    Action.RESUME: "Let a paused job run again.",
    Action.CANCEL: (
        "End a job for good. An execution that runs is stopped within the grace time; its run can be continued."
    ),
    Action.RETRY: "Try a failed job again, with all its retries.",
    Action.FORCE_RUN: "Run a scheduled job now, besides the times that are planned for it.",
}
"""What an action does."""

DONE: Mapping[Action, str] = {
    Action.PAUSE: "{name} is paused. It runs again when you resume it.",
    Action.RESUME: "{name} goes on; its next run is {next}.",
    Action.CANCEL: "The job of {name} is cancelled. What it crawled stays, and its run can be continued.",
    Action.RETRY: "{name} is tried again, with all its retries.",
    Action.FORCE_RUN: "{name} runs now.",
}
"""What people are told when it is done: `name` is that of the crawl, `next` when the job runs next."""

MOVES: Mapping[Move, Mapping[JobState, JobState]] = {
    Move.PLACE: {PENDING: SCHEDULED},
    Move.CLAIM: {SCHEDULED: RUNNING},
    Move.SUCCEED: {RUNNING: COMPLETED},
    Move.FAIL: {RUNNING: FAILED},
    Move.TRY_AGAIN: {RUNNING: SCHEDULED},
    Move.HAND_BACK: {RUNNING: SCHEDULED},
    Move.RECUR: {COMPLETED: SCHEDULED},
}
"""TRY_AGAIN: a try failed and there are more. HAND_BACK: the service stops, or whoever ran it is gone."""

CLAIMABLE = (PENDING, SCHEDULED)
FINAL = (COMPLETED, FAILED, CANCELLED)


def after_action(action: Action, state: JobState) -> JobState:
    """The state that an action leads to, or an error that says what is possible."""
    if state in ACTIONS[action]:
        return ACTIONS[action][state]
    possible = [one.value for one in Action if state in ACTIONS[one]]
    raise NotNow(
        f"A job that is {state} cannot be changed by {action.value}: that is for jobs that are"
        f" {_listed([one.value for one in ACTIONS[action]])}.",
        f"In this state there is: {', '.join(possible)}." if possible else f"A job that is {state} stays so.",
    )


def after(move: Move, state: JobState) -> JobState:
    """The state that a move leads to. A move that is not in the table is our mistake."""
    return MOVES[move][state]


def diagram() -> str:
    """The tables as a picture, in Mermaid."""
    lines = ["stateDiagram-v2", "    [*] --> pending: one-time", "    [*] --> scheduled: recurring"]
    for name, moves in (*((move.value, MOVES[move]) for move in Move), *((one.value, ACTIONS[one]) for one in Action)):
        lines += [f"    {before} --> {then}: {name}" for before, then in moves.items()]
    return "\n".join([*lines, *(f"    {state} --> [*]" for state in FINAL)]) + "\n"


def table() -> str:
    """State by action, in Markdown: where each leads, and what is refused."""
    rows = [f"| state | {' | '.join(Action)} |", "|" + "---|" * (len(Action) + 1)]
    for state in JobState:
        leads = [ACTIONS[action].get(state) for action in Action]
        rows.append(f"| {state} | {' | '.join(str(one) if one else '409' for one in leads)} |")
    return "\n".join(rows) + "\n"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
