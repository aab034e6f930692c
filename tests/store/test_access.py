"""home.db: who may come in no more, who may come in once, and what was answered already."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from inchworm.store.home.access import DAY_MS, Access, KeptAnswer, KeyState
from inchworm.store.home.home import Home

NOW = 1_000_000_000_000
ONE, OTHER = b"1" * 32, b"2" * 32


@pytest.fixture
def access(tmp_path):
    with closing(Home(tmp_path / "home")) as home:
        yield Access(home)


def at_once(folder: Path, count: int, ask: Callable[[Access], object]) -> list[object]:
    """What so many get who ask at the same moment, each with a connection of its own."""
    ready, answers = threading.Barrier(count), []

    def run() -> None:
        with closing(Home(folder)) as home:
            ready.wait()
            answers.append(ask(Access(home)))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_a_revoked_token_is_known(access):
    assert not access.is_revoked("a")
    access.revoke("a", NOW)
    assert access.is_revoked("a")
    assert not access.is_revoked("b")


@pytest.mark.parametrize("untils", [(NOW, NOW - 5 * DAY_MS), (NOW - 5 * DAY_MS, NOW)])
def test_the_later_end_of_a_revoked_token_holds(access, untils):
    for until in untils:
        access.revoke("a", until)
    access.prune(NOW)
    assert access.is_revoked("a")


def test_a_revoked_token_is_remembered_beyond_its_end(access):
    """Whoever checks tokens allows for clocks that differ."""
    access.revoke("a", NOW)
    access.prune(NOW + 60_000)
    assert access.is_revoked("a")
    access.prune(NOW + DAY_MS)
    assert not access.is_revoked("a")


def test_a_code_lets_in_once(access):
    access.add_login(ONE, NOW + 1, NOW)
    assert not access.take_login(OTHER, NOW)
    assert access.take_login(ONE, NOW)
    assert not access.take_login(ONE, NOW)


def test_a_code_that_is_too_old_lets_nobody_in_and_goes(access):
    access.add_login(ONE, NOW, NOW - 1)
    assert not access.take_login(ONE, NOW)
    assert not access.take_login(ONE, NOW - 1)


def test_old_codes_go_when_a_new_one_comes(access):
    access.add_login(ONE, NOW, NOW - 1)
    access.add_login(OTHER, NOW + 9, NOW)
    assert not access.take_login(ONE, NOW - 1)
    assert access.take_login(OTHER, NOW)


def test_a_code_lets_one_in_of_many_who_come_at_once(tmp_path):
    with closing(Home(tmp_path)) as home:
        Access(home).add_login(ONE, NOW + 1, NOW)
    answers = at_once(tmp_path, 6, lambda access: access.take_login(ONE, NOW))
    assert sorted(answers) == [False] * 5 + [True]


def test_a_code_lets_one_in_of_two_threads_on_one_connection(tmp_path):
    with closing(Home(tmp_path)) as home:
        access, ready, answers = Access(home), threading.Barrier(2), []

        def take() -> None:
            ready.wait()
            answers.append(access.take_login(ONE, NOW))

        for _ in range(20):
            access.add_login(ONE, NOW + 1, NOW)
            threads = [threading.Thread(target=take) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(answers) == [False, True]
            answers.clear()


def test_a_request_is_carried_out_once(access):
    assert access.begin("k", ONE, NOW) is KeyState.FRESH
    assert access.begin("k", ONE, NOW + 1) is KeyState.IN_HAND
    access.end("k", 201, '{"job": 1}')
    assert access.begin("k", ONE, NOW + 2) == KeptAnswer(201, '{"job": 1}')


def test_a_key_belongs_to_one_request(access):
    access.begin("k", ONE, NOW)
    assert access.begin("k", OTHER, NOW) is KeyState.OTHER_REQUEST
    access.end("k", 200, "")
    assert access.begin("k", OTHER, NOW) is KeyState.OTHER_REQUEST
    assert access.begin("other", OTHER, NOW) is KeyState.FRESH


def test_the_first_answer_stands(access):
    access.begin("k", ONE, NOW)
    access.end("k", 200, "first")
    access.end("k", 500, "second")
    access.forget("k")
    assert access.begin("k", ONE, NOW) == KeptAnswer(200, "first")


def test_what_failed_by_our_fault_may_be_tried_again(access):
    access.begin("k", ONE, NOW)
    access.forget("k")
    assert access.begin("k", OTHER, NOW) is KeyState.FRESH


@pytest.mark.parametrize("ended", [True, False])
def test_a_key_is_free_again_after_a_day(access, ended):
    access.begin("k", ONE, NOW)
    if ended:
        access.end("k", 200, "")
    assert access.begin("k", ONE, NOW + DAY_MS - 1) is not KeyState.FRESH
    assert access.begin("k", OTHER, NOW + DAY_MS) is KeyState.FRESH


def test_one_of_many_at_once_carries_a_request_out(tmp_path):
    answers = at_once(tmp_path, 6, lambda access: access.begin("k", ONE, NOW))
    assert sorted(answers) == [KeyState.FRESH] + [KeyState.IN_HAND] * 5


def test_what_is_of_no_use_is_removed(tmp_path):
    with closing(Home(tmp_path)) as home:
        access = Access(home)
        for key, then in (("old", NOW - DAY_MS), ("new", NOW - DAY_MS + 1)):
            access.begin(key, ONE, then)
            access.revoke(key, then)
        access.add_login(ONE, NOW, 0)
        access.add_login(OTHER, NOW + 1, 0)
        access.prune(NOW)
        with home.reading() as db:
            assert db.execute("SELECT key FROM answered").fetchall() == [("new",)]
            assert db.execute("SELECT token_id FROM revoked").fetchall() == [("new",)]
            assert db.execute("SELECT code FROM login").fetchall() == [(OTHER,)]


def test_all_of_it_outlives_the_process(tmp_path):
    with closing(Home(tmp_path)) as home:
        Access(home).revoke("a", NOW)
        Access(home).add_login(ONE, NOW + 1, NOW)
        Access(home).begin("k", ONE, NOW)
    with closing(Home(tmp_path)) as home:
        access = Access(home)
        assert access.is_revoked("a")
        assert access.take_login(ONE, NOW)
        assert access.begin("k", ONE, NOW) is KeyState.IN_HAND
