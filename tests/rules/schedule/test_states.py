"""The states of a job, spelled out: whoever changes the tables has to change them here too."""

from __future__ import annotations

import re

import pytest

from inchworm.errors import NotNow
from inchworm.job import JobState
from inchworm.rules.schedule import states
from inchworm.rules.schedule.states import ACTIONS, MOVES, Action, Move, after, after_action, diagram, table

STATES = ("pending", "scheduled", "running", "paused", "completed", "failed", "cancelled")

BY_PEOPLE = {
    #            pending      scheduled    running      paused       completed  failed     cancelled
    "pause": (None, "paused", None, None, None, None, None),
    "resume": (None, None, None, "scheduled", None, None, None),
    "cancel": ("cancelled", "cancelled", "cancelled", "cancelled", None, None, None),
    "retry": (None, None, None, None, None, "pending", None),
    "force-run": (None, "scheduled", None, None, None, None, None),
}

BY_ITSELF = {
    #            pending      scheduled    running      paused       completed  failed     cancelled
    "place": ("scheduled", None, None, None, None, None, None),
    "claim": (None, "running", None, None, None, None, None),
    "succeed": (None, None, "completed", None, None, None, None),
    "fail": (None, None, "failed", None, None, None, None),
    "try again": (None, None, "scheduled", None, None, None, None),
    "hand back": (None, None, "scheduled", None, None, None, None),
    "recur": (None, None, None, None, "scheduled", None, None),
}

CAN_BE_ASKED = {
    "pending": ["cancel"],
    "scheduled": ["pause", "cancel", "force-run"],
    "running": ["cancel"],
    "paused": ["resume", "cancel"],
    "completed": [],
    "failed": ["retry"],
    "cancelled": [],
}


def cells(rows: dict[str, tuple[str | None, ...]]) -> list[tuple[str, str, str | None]]:
    return [(name, state, then) for name, line in rows.items() for state, then in zip(STATES, line, strict=True)]


def arrows() -> list[tuple[str, str, str]]:
    """Every move there is: from, to, by what."""
    return [(state, then, name) for name, state, then in cells(BY_ITSELF | BY_PEOPLE) if then]


def test_these_are_all_states_actions_and_moves() -> None:
    assert tuple(JobState) == STATES
    assert list(Action) == list(BY_PEOPLE) == list(ACTIONS)
    assert list(Move) == list(BY_ITSELF) == list(MOVES)
    assert states.CLAIMABLE == ("pending", "scheduled")
    assert states.FINAL == ("completed", "failed", "cancelled")


@pytest.mark.parametrize(("action", "state", "then"), cells(BY_PEOPLE))
def test_what_people_can_do(action: str, state: str, then: str | None) -> None:
    if then is not None:
        assert after_action(Action(action), JobState(state)) is JobState(then)
        return
    with pytest.raises(NotNow) as raised:
        after_action(Action(action), JobState(state))
    error = raised.value
    assert error.status == 409 and error.exit_code == 1
    words = re.findall(r"[a-z-]+", error.message)
    assert state in words and action in words
    possible_in = [one for one, leads in zip(STATES, BY_PEOPLE[action], strict=True) if leads]
    assert re.findall(r"[a-z]+", error.message.rpartition("that are ")[2].replace(" or ", " ")) == possible_in
    allowed = [word for word in re.findall(r"[a-z-]+", error.hint) if word in BY_PEOPLE]
    assert allowed == CAN_BE_ASKED[state]
    assert allowed or error.hint == f"A job that is {state} stays so."


@pytest.mark.parametrize(("move", "state", "then"), cells(BY_ITSELF))
def test_what_happens_by_itself(move: str, state: str, then: str | None) -> None:
    if then is not None:
        assert after(Move(move), JobState(state)) is JobState(then)
    else:
        with pytest.raises(KeyError):
            after(Move(move), JobState(state))


def test_nothing_leads_out_of_the_final_states_but_what_brings_them_back() -> None:
    out = {(state, name) for state, _, name in arrows() if state in states.FINAL}
    assert out == {("completed", "recur"), ("failed", "retry")}


def test_every_state_can_be_reached() -> None:
    reached = {"pending", "scheduled"}
    for _ in STATES:
        reached |= {then for state, then, _ in arrows() if state in reached}
    assert reached == set(STATES)


def test_the_diagram_has_every_move_and_nothing_else() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    drawn = [re.fullmatch(r"    (\S+) --> (\S+?)(?:: (.+))?", line) for line in lines[1:]]
    assert all(drawn)
    found = [match.groups() for match in drawn if match]
    between = [one for one in found if "[*]" not in one[:2]]
    assert sorted(between) == sorted(arrows())
    assert [one for one in found if one[0] == "[*]"] == [
        ("[*]", "pending", "one-time"),
        ("[*]", "scheduled", "recurring"),
    ]
    assert [one[0] for one in found if one[1] == "[*]"] == list(states.FINAL)


def test_the_table_has_every_state_and_every_action() -> None:
    head, rule, *lines = table().splitlines()
    assert head == "| state | pause | resume | cancel | retry | force-run |"
    assert rule == "|---|---|---|---|---|---|"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    by_state = zip(STATES, zip(*BY_PEOPLE.values(), strict=True), strict=True)
    assert rows == [[state, *(then or "409" for then in line)] for state, line in by_state]
