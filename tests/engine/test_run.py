"""Opening and closing a pass over a crawl."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from inchworm.engine import run
from inchworm.errors import Frozen, WrongUse
from inchworm.model import Counters, EndedBy, Kind, Mode, RunInfo, RunState, Seed, SessionState, Source


def made(number: int, state: RunState, **values: object) -> RunInfo:
    info = RunInfo(number + 10, number, "full", None, state, 0, {}, Counters(), (), "", 0, None)
    return replace(info, **values)


# Seeds


@pytest.mark.parametrize(
    ("typed", "url", "request_url"),
    [
        ("https://a.test/docs/", "https://a.test/docs", "https://a.test/docs/"),
        ("a.test", "https://a.test/", "https://a.test/"),
        ("a.test:8080/x", "https://a.test:8080/x", "https://a.test:8080/x"),
        ("HTTP://A.test:80/%7ex#top", "http://a.test/%7Ex", "http://a.test/%7ex"),
        ("http://a.test/?utm_source=x&b=2&a=1", "http://a.test/?a=1&b=2", "http://a.test/?utm_source=x&b=2&a=1"),
        (" http://user:secret@a.test/ ", "http://a.test/", "http://a.test/"),
    ],
)
def test_a_seed_as_typed_becomes_an_entry(typed, url, request_url):
    (seed,) = run.seeds_of([typed])
    assert (seed.url, seed.request_url, seed.kind, seed.source) == (url, request_url, Kind.PAGE, Source.INITIAL)


def test_seeds_are_taken_once_in_the_order_they_were_typed():
    seeds = run.seeds_of(["http://b.test", "http://a.test/", "http://b.test/#x", "http://a.test/?utm_source=1"])
    assert [seed.url for seed in seeds] == ["http://b.test/", "http://a.test/"]


def test_the_list_of_dropped_parameters_is_a_setting():
    (seed,) = run.seeds_of(["http://a.test/?session=1&utm_source=2"], ("session",))
    assert seed.url == "http://a.test/?utm_source=2"


@pytest.mark.parametrize(
    "typed", ["", "   ", "ftp://a.test/", "mailto:me@a.test", "http://", "javascript:alert(1)", "/docs"]
)
def test_what_is_no_web_address_is_named(typed):
    with pytest.raises(WrongUse) as raised:
        run.seeds_of(["http://a.test/", typed])
    assert repr(run.shown(typed)) in raised.value.message
    assert "https://example.org" in raised.value.hint


def test_seeds_typed_without_a_scheme():
    assert run.bare_seeds(["a.test", "http://b.test/", "c.test:81/x"]) == {"https://a.test/", "https://c.test:81/x"}


def test_one_set_of_seeds_has_one_key():
    one, other = run.seeds_of(["http://a.test", "http://b.test"]), run.seeds_of(["http://b.test/", "http://a.test/#x"])
    assert run.seeds_key(one) == run.seeds_key(other) == "http://a.test/\nhttp://b.test/"
    assert run.seeds_key(run.seeds_of(["http://a.test/x"])) != run.seeds_key(run.seeds_of(["http://a.test"]))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["https://a.test/docs/"], "a.test/docs"),
        (["a.test"], "a.test"),
        (["a.test", "b.test"], "a.test and 1 more"),
        (["a.test", "b.test", "c.test"], "a.test and 2 more"),
    ],
)
def test_a_crawl_is_called_after_its_seeds(typed, name):
    assert run.default_name(run.seeds_of(typed)) == name


# Runs


@pytest.mark.parametrize(
    ("states", "number", "parent", "mode"),
    [
        ([], 0, None, "baseline"),
        ([RunState.COMPLETED], 1, 0, "incremental"),
        ([RunState.CANCELLED], 1, None, "baseline"),
        ([RunState.COMPLETED, RunState.CANCELLED], 2, 0, "incremental"),
        ([RunState.COMPLETED, RunState.COMPLETED, RunState.CANCELLED], 3, 1, "incremental"),
    ],
)
def test_the_next_run_builds_on_the_last_completed_one(states, number, parent, mode):
    runs = [made(at, state) for at, state in enumerate(states)]
    new = run.next_run(runs, Mode.INCREMENTAL, {"scope": "host"}, 77)
    assert (new.number, new.parent, new.mode, new.state) == (number, parent, mode, RunState.IN_PROGRESS)
    assert new.run_id not in {one.run_id for one in runs}
    assert (new.settings, new.created_ms, new.seq, new.counters, new.ended_ms) == (
        {"scope": "host"},
        77,
        0,
        Counters(),
        None,
    )


def test_a_run_that_starts_over_builds_on_none():
    new = run.as_baseline(run.next_run([made(0, RunState.COMPLETED)], Mode.FULL, {}, 0))
    assert (new.number, new.parent, new.mode) == (1, None, "baseline")


def test_a_run_has_its_seeds_with_their_scopes():
    new = run.with_seeds(run.next_run([], Mode.FULL, {}, 0), run.seeds_of(["http://a.test/docs/index.html", "b.test"]))
    assert new.seeds == (
        Seed(0, "http://a.test/docs/index.html", "a.test", "/docs"),
        Seed(1, "https://b.test/", "b.test", "/"),
    )


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (RunState.IN_PROGRESS, True),
        (RunState.PAUSED, True),
        (RunState.COMPLETED, False),
        (RunState.CANCELLED, False),
    ],
)
def test_open_runs_can_be_resumed(state, is_open):
    assert run.is_open(made(0, state)) is is_open
    assert not run.is_open(None)


# Frozen settings


def test_a_run_setting_cannot_change_half_way():
    frozen = {"scope": "host", "include": ["a"], "robots": True}
    run.refuse_changes(frozen, {"scope": "host", "include": ("a",), "workers": 9})
    with pytest.raises(Frozen) as raised:
        run.refuse_changes(frozen, {"include": ("b",)})
    assert "['a']" in raised.value.message
    assert "['b']" in raised.value.message
    assert "--fresh" in raised.value.hint
    with pytest.raises(Frozen) as raised:
        run.refuse_changes(frozen, {"robots": False})
    assert "--ignore-robots" in raised.value.hint


# Ends


@pytest.mark.parametrize(
    ("by", "states"),
    [
        (EndedBy.FINISHED, (RunState.COMPLETED, SessionState.COMPLETED)),
        (EndedBy.PAGE_LIMIT, (RunState.COMPLETED, SessionState.COMPLETED)),
        (EndedBy.BUDGET, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.TIME, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.BYTES, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.WAITING, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.QUALITY, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.PAUSED, (RunState.PAUSED, SessionState.COMPLETED)),
        (EndedBy.CANCELLED, (RunState.CANCELLED, SessionState.FAILED)),
        (EndedBy.ERROR, (RunState.PAUSED, SessionState.FAILED)),
        (EndedBy.CRASHED, (RunState.PAUSED, SessionState.FAILED)),
    ],
)
def test_how_run_and_session_stand_after_each_end(by, states):
    assert run.states_after(by) == states


def test_every_end_is_in_the_table():
    table = test_how_run_and_session_stand_after_each_end.pytestmark[0].args[1]
    assert {by for by, _ in table} == set(EndedBy)


@pytest.mark.parametrize(
    ("state", "failed", "word"),
    [
        (RunState.COMPLETED, 0, "completed"),
        (RunState.COMPLETED, 2, "completed_with_errors"),
        (RunState.PAUSED, 0, "interrupted"),
        (RunState.CANCELLED, 1, "interrupted"),
        (RunState.IN_PROGRESS, 0, "interrupted"),
    ],
)
def test_the_word_for_a_whole_run(state, failed, word):
    assert run.word_for(made(0, state, counters=Counters(failed=failed))) == word


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("https://u:p@h.test/x", "https://h.test/x"),
        ("https:/u:p@h.test/x", "https://h.test/x"),
        ("https:\\\\u:p@h.test/x", "https://h.test/x"),
        ("https:/\t/u:p@h.test/x", "https://h.test/x"),
        ("\x01https://u:p@h.test/x", "https://h.test/x"),
        ("u@h.test/x", "h.test/x"),
        ("h.test/a@b", "h.test/a@b"),
        ("https://h.test/a@b", "https://h.test/a@b"),
    ],
)
def test_no_password_is_stored_however_it_is_typed(typed, stored):
    assert run.without_secrets(typed) == stored
    assert run.seeds_key(run.seeds_of([stored])) == run.seeds_key(run.seeds_of([typed]))


@pytest.mark.parametrize(
    "typed", ["https://u:p#w@h.test/", "https://u:p/w@h.test/", "u:p?w@h.test", "ftp://u:pw@h.test/"]
)
def test_no_password_is_shown_even_of_what_is_no_address(typed):
    assert not {"p#w", "p/w", "p?w", "pw"} & set(re.split("[:@]", run.shown(typed)))
