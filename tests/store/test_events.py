"""home.db: what happens, for whoever watches: events, logs, services and tallies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from inchworm.errors import Lost
from inchworm.job import Execution, Job, JobState
from inchworm.rules.schedule.occurrence import Ended
from inchworm.store.home.claims import Claims
from inchworm.store.home.events import KEEP_EVENTS, Events, Tallies, add_event
from inchworm.store.home.home import Home
from inchworm.store.home.jobs import Jobs
from inchworm.store.home.logs import ExecutionLogs, LogLine
from inchworm.store.home.services import Service, Services

HOSTILE = "http://a.test/\r\n\x1b[31m\x00\u202egnp.exe\u2028🦔"
NOON = 1_700_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with closing(Home(tmp_path / "home")) as made:
        yield made


@pytest.fixture
def events(home: Home) -> Events:
    return Events(home)


@pytest.fixture
def logs(home: Home) -> ExecutionLogs:
    return ExecutionLogs(home)


@pytest.fixture
def services(home: Home) -> Services:
    return Services(home)


@pytest.fixture
def tallies(home: Home) -> Tallies:
    return Tallies(home)


def running(home: Home, job_id: str = "a") -> Execution:
    """An execution under way."""
    Jobs(home).add(Job(job_id, f"crawl of {job_id}", JobState.PENDING, created_ms=NOON))
    (found,) = Claims(home).claim("s", NOON, 1)
    return found


# Events


def test_events_come_in_the_order_in_which_they_were_told(events: Events) -> None:
    assert events.last() == 0 and events.after(0) == []
    for number in range(5):
        events.add("progress", {"number": number, "url": HOSTILE}, NOON + number)
    told = events.after(0)
    assert [one.event_id for one in told] == [1, 2, 3, 4, 5] and events.last() == 5
    assert [(one.at_ms, one.kind) for one in told] == [(NOON + number, "progress") for number in range(5)]
    assert told[3].data == {"number": 3, "url": HOSTILE}


def test_events_are_read_from_where_one_stopped(events: Events) -> None:
    for number in range(7):
        events.add("job", {"number": number}, NOON)
    seen, after = [], 0
    while page := events.after(after, limit=3):
        seen += [one.data["number"] for one in page]
        after = page[-1].event_id
    assert seen == list(range(7))
    assert events.after(events.last()) == []


def test_an_event_is_part_of_the_transaction_that_it_tells_of(home: Home, events: Events) -> None:
    with pytest.raises(RuntimeError), home.writing() as db:
        add_event(db, "job", {}, NOON)
        raise RuntimeError
    assert events.after(0) == []


def test_what_happens_to_a_job_is_told(home: Home, events: Events) -> None:
    execution = running(home)
    Claims(home).finish(
        execution.execution_id,
        execution.token,
        Ended("finished", error="gone"),
        lambda job: Job(**{**_fields(job), "state": JobState.FAILED, "due_ms": None, "reason": "gone"}),
        NOON + 5,
    )
    about = {"job_id": "a", "crawl_id": "crawl of a"}
    ended = {
        **about,
        "execution_id": execution.execution_id,
        "state": "failed",
        "ended_by": "finished",
        "error": "gone",
    }
    assert [(one.kind, one.data) for one in events.after(0)] == [
        ("job", {**about, "state": "pending", "reason": ""}),
        ("job", {**about, "state": "running", "reason": ""}),
        ("execution_ended", ended),
        ("job", {**about, "state": "failed", "reason": "gone"}),
    ]


def _fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__dataclass_fields__}


def test_old_events_go_and_their_numbers_do_not_come_again(home: Home, events: Events) -> None:
    with home.writing() as db:
        for number in range(KEEP_EVENTS + 10):
            add_event(db, "progress", {"number": number}, NOON)
    events.prune()
    first = events.after(0, limit=1)[0]
    assert (first.event_id, first.data["number"]) == (11, 10)
    assert events.last() == KEEP_EVENTS + 10
    events.prune()
    events.add("progress", {}, NOON)
    assert events.last() == KEEP_EVENTS + 11


def test_pruning_nothing(events: Events) -> None:
    events.prune()
    events.add("job", {}, NOON)
    events.prune()
    assert len(events.after(0)) == 1


# Logs


def test_lines_come_back_in_order_and_as_they_were(home: Home, logs: ExecutionLogs) -> None:
    execution = running(home)
    lines = [LogLine(number, NOON + number, "info", f"{number} {HOSTILE}") for number in range(1, 8)]
    logs.add(execution.execution_id, execution.token, lines[:3])
    logs.add(execution.execution_id, execution.token, lines[3:])
    assert logs.after(execution.execution_id) == lines
    assert logs.after(execution.execution_id, number=5) == lines[5:]
    assert logs.after(execution.execution_id, number=2, limit=2) == lines[2:4]
    assert len(logs.after(execution.execution_id)) == 7


def test_logs_are_kept_apart(home: Home, logs: ExecutionLogs) -> None:
    first, second = running(home, "a"), running(home, "b")
    logs.add(first.execution_id, first.token, [LogLine(1, NOON, "info", "first")])
    logs.add(second.execution_id, second.token, [LogLine(1, NOON, "info", "second")])
    assert [line.text for line in logs.after(first.execution_id)] == ["first"]
    assert logs.after(99) == []


def test_only_who_carries_an_execution_out_writes_its_log(home: Home, logs: ExecutionLogs) -> None:
    execution = running(home)
    line = [LogLine(1, NOON, "info", "hello")]
    for number, token in ((execution.execution_id, "other"), (99, execution.token)):
        with pytest.raises(Lost) as raised:
            logs.add(number, token, line)
        assert raised.value.hint
    assert logs.after(execution.execution_id) == []


# Services


def service(name: str = "s", **values: object) -> Service:
    made = Service(name, "machine", 7, NOON, NOON, 0, True, 4, 10.0)
    return made._replace(**values)  # type: ignore[arg-type]


def test_services_come_beat_and_go(services: Services) -> None:
    assert services.all() == []
    services.add(service("later", started_ms=NOON + 1, scheduler=False))
    services.add(service("s"))
    services.beat("s", NOON + 5)
    services.beat("s", NOON + 6)
    services.beat("nobody", NOON + 7)
    first, second = services.all()
    assert first == service("s", beats=2, seen_ms=NOON + 6)
    assert second == service("later", started_ms=NOON + 1, scheduler=False)
    assert second.scheduler is False
    services.remove("s")
    services.remove("s")
    assert [one.service_id for one in services.all()] == ["later"]


# Tallies


def test_tallies_add_up(tallies: Tallies) -> None:
    assert tallies.all() == {}
    tallies.count("stale")
    tallies.count("stale", 4)
    tallies.count("other", 2)
    assert tallies.all() == {"stale": 5, "other": 2}


def test_tallies_of_many_at_once(home: Home, tallies: Tallies) -> None:
    def work() -> None:
        with closing(Home(home.folder)) as own:
            for _ in range(25):
                Tallies(own).count("all")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tallies.all() == {"all": 100}
