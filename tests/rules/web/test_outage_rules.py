"""When somebody looks again at a host that is down, when it is given up, and how that is said."""

from __future__ import annotations

import pytest

from inchworm.model import DownHost
from inchworm.rules.web import outage
from inchworm.rules.web.outage import SESSIONS

HOST, HOUR_MS = "http://a.test", 3_600_000


@pytest.mark.parametrize(
    ("looks", "seconds"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (10, 300), (1000, 300), (10**9, 300)]
)
def test_pauses_between_looks_double_up_to_five_minutes(looks: int, seconds: float) -> None:
    assert outage.pause(looks) == seconds


@pytest.mark.parametrize(
    ("sessions", "waited_ms", "is_hopeless"),
    [
        (SESSIONS, HOUR_MS, True),
        (SESSIONS, HOUR_MS - 1, False),
        (SESSIONS - 1, HOUR_MS, False),
        (SESSIONS - 1, 99 * HOUR_MS, False),
        (SESSIONS + 1, HOUR_MS + 1, True),
        (99, 0, False),
    ],
)
def test_a_host_is_given_up_after_enough_time_and_enough_sessions(
    sessions: int, waited_ms: int, is_hopeless: bool
) -> None:
    """Time passes while nobody looks, and sessions may follow one another quickly: neither is enough alone."""
    down = DownHost(HOST, "connect", "connection refused", 1_000, sessions)
    assert outage.is_hopeless(down, 1_000 + waited_ms, 3600.0) is is_hopeless


def test_who_has_no_patience_looks_in_a_few_sessions_all_the_same() -> None:
    down = DownHost(HOST, "connect", "connection refused", 1_000, SESSIONS)
    assert outage.is_hopeless(down, 1_000, 0.0)
    assert not outage.is_hopeless(down._replace(sessions=SESSIONS - 1), 1_000, 0.0)


def test_what_is_said_of_a_host_names_it_the_cause_and_since_when() -> None:
    down = DownHost(HOST, "connect", "connection refused", 1_700_000_000_000, 1)
    assert outage.sentence(down) == "http://a.test has not answered since 2023-11-14T22:13:20.000Z: connection refused"
