"""What we know of each host: what its robots.txt allows, and when it may be asked again."""

from __future__ import annotations

import pytest

from inchworm.engine.session.hosts import Hosts
from inchworm.engine.session.robots import RobotsVerdicts
from inchworm.settings import make

A, B = "http://a.test", "http://b.test"
RULES = (
    b"User-agent: *\nDisallow: /private\nCrawl-delay: 10\n\nUser-agent: inchworm\nDisallow: /secret\nCrawl-delay: 3\n"
)


def hosts(*verdicts: tuple[str, str, bytes | None], **given: object) -> Hosts:
    values = make({"delay": 1, **given})
    return Hosts(values, RobotsVerdicts(values, verdicts))


def test_a_host_is_known_by_its_origin():
    h = hosts((A, "rules", RULES))
    assert h.robots.is_known(f"{A}/x")
    assert not any(map(h.robots.is_known, (f"{B}/", "https://a.test/", "http://a.test:8080/")))
    h.robots.learn([(B, "allow", None)])
    assert h.robots.is_known(f"{B}/")


@pytest.mark.parametrize(
    ("verdict", "path", "allows"),
    [
        (("rules", RULES), "/secret/x", False),
        (("rules", RULES), "/private/x", True),
        (("rules", b"User-agent: *\nDisallow: /"), "/", False),
        (("allow", None), "/secret", True),
        (("rules", b""), "/", True),
    ],
)
def test_rules_are_those_for_our_name(verdict, path, allows):
    assert hosts((A, *verdict)).robots.allows(f"{A}{path}") is allows


def test_the_user_agent_decides_which_rules_are_ours():
    h = hosts((A, "rules", RULES), user_agent="somebody/1.0")
    assert (h.robots.allows(f"{A}/private"), h.robots.allows(f"{A}/secret")) == (False, True)


def test_a_robots_file_that_could_not_be_read_is_trouble_until_it_is_forgotten():
    h = hosts((A, "unreadable", "http_5xx: 503 für alle".encode()))
    assert h.robots.is_known(f"{A}/")
    assert h.robots.trouble(f"{A}/x") == "http_5xx: 503 für alle"
    assert h.robots.trouble(f"{B}/") == ""
    h.robots.learn([(A, "forgotten", None)])
    assert not h.robots.is_known(f"{A}/")
    assert h.robots.trouble(f"{A}/") == ""
    h.robots.learn([(A, "rules", RULES)])
    assert h.robots.is_known(f"{A}/")
    assert not h.robots.allows(f"{A}/secret")


def test_trouble_replaces_rules_and_rules_replace_trouble():
    h = hosts((A, "rules", RULES))
    h.robots.learn([(A, "unreadable", None)])
    assert h.robots.is_known(f"{A}/")
    h.robots.learn([(A, "allow", None)])
    assert (h.robots.trouble(f"{A}/"), h.robots.allows(f"{A}/secret")) == ("", True)


def test_without_robots_everything_is_known_and_allowed():
    h = hosts((A, "rules", RULES), (B, "unreadable", b"503"), robots=False)
    assert h.robots.is_known("http://c.test/")
    assert h.robots.allows(f"{A}/secret")
    assert h.robots.allows("http://c.test/")
    assert h.robots.trouble(f"{B}/") == ""


def test_a_host_may_be_asked_at_once_and_then_after_the_delay():
    h = hosts((A, "allow", None))
    assert h.turn(f"{A}/") <= 0.0
    h.started(f"{A}/x", 100.0)
    assert h.turn(f"{A}/y") == 101.0
    assert h.turn(f"{B}/") <= 0.0


def test_schemes_of_one_host_share_its_pause_and_ports_do_not():
    h = hosts()
    h.started(f"{A}/", 100.0)
    assert h.turn("https://a.test/") == h.turn("http://a.test:80/") == 101.0
    assert h.turn("http://a.test:8080/") <= 0.0


@pytest.mark.parametrize(("given", "pause"), [({}, 3.0), ({"delay": 5}, 5.0), ({"max_delay": 2}, 2.0)])
def test_a_crawl_delay_is_obeyed_up_to_our_cap(given, pause):
    h = hosts((A, "rules", RULES), **given)
    h.started(f"{A}/", 100.0)
    assert h.turn(f"{A}/") == 100.0 + pause


def test_every_host_rests_from_the_last_request_of_an_earlier_session():
    h = hosts((A, "rules", RULES), (B, "unreadable", b"503"))
    h.rest_from(50.0)
    assert (h.turn(f"{A}/"), h.turn(f"{B}/"), h.turn("http://c.test/")) == (53.0, 51.0, 51.0)
    h.started(f"{A}/", 60.0)
    assert h.turn(f"{A}/") == 63.0


def test_a_quiet_is_never_shortened():
    h = hosts((A, "allow", None), delay=0)
    h.keep_quiet("a.test", 100.0)
    h.keep_quiet("a.test", 50.0)
    assert h.turn(f"{A}/x") == 100.0
    h.keep_quiet("a.test", 150.0)
    assert h.turn(f"{A}/x") == 150.0


def test_what_a_host_asks_for_by_pushing_back_comes_on_top_of_its_crawl_delay():
    h = hosts((A, "rules", RULES))
    h.pushed_back(f"{A}/1", sent_at=99.0, now=100.0)
    h.started(f"{A}/2", 101.0)
    assert h.turn(f"{A}/3") == 101.0 + 3 + 0.5


def test_push_backs_to_requests_that_were_under_way_together_count_once():
    h = hosts((A, "allow", None), delay=0)
    h.pushed_back(f"{A}/1", sent_at=99.0, now=100.0)
    h.pushed_back(f"{A}/2", sent_at=99.5, now=100.1)
    h.started(f"{A}/3", 101.0)
    assert h.turn(f"{A}/4") == 101.5
    h.pushed_back(f"{A}/3", sent_at=101.0, now=101.1)
    h.started(f"{A}/4", 102.0)
    assert h.turn(f"{A}/5") == 102.75


def test_rules_that_are_being_read_again_hold_for_nobody_until_they_are_there():
    h = hosts((A, "refreshing", RULES))
    assert not h.robots.is_known(f"{A}/")
    assert not h.robots.may_ask(f"{A}/")
    assert h.robots.delay(f"{A}/") == 3, "how often it may be asked is no news"
    h.robots.learn([(A, "rules", RULES)])
    assert h.robots.is_known(f"{A}/")


@pytest.mark.parametrize(
    ("verdicts", "may"),
    [
        ([], False),
        ([(A, "allow", None)], True),
        ([(A, "rules", RULES)], True),
        ([(A, "rules", b"User-agent: *\nDisallow: /page")], False),
        ([(A, "unreadable", b"http_5xx: 503")], False),
        ([(A, "forgotten", None)], False),
    ],
)
def test_what_is_asked_besides_the_frontier_has_to_be_allowed(verdicts, may):
    assert hosts(*verdicts).robots.may_ask(f"{A}/page") is may
    assert hosts(*verdicts, robots=False).robots.may_ask(f"{A}/page")


def test_what_a_file_said_holds_until_its_time_is_over():
    h = hosts((A, "allow", None))
    assert not h.robots.is_outdated(f"{A}/", 1e9)
    h.robots.trust_until(A, 100.0)
    assert [h.robots.is_outdated(f"{A}/", now) for now in (99.0, 100.0, 100.1)] == [False, False, True]
    assert not h.robots.is_outdated(f"{B}/", 1e9), "nobody has read that one"
    h.robots.learn([(A, "allow", None)], 200.0)
    assert [h.robots.is_outdated(f"{A}/", now) for now in (150.0, 201.0)] == [False, True]
    h = hosts((A, "allow", None), robots=False)
    h.robots.trust_until(A, 100.0)
    assert not h.robots.is_outdated(f"{A}/", 101.0), "nobody goes by it"


def test_whoever_takes_a_turn_waits_for_it_and_others_come_after():
    h = hosts((A, "rules", RULES))
    assert h.take_turn(f"{A}/1", 100.0) == 0.0
    assert h.take_turn(f"{A}/2", 101.0) == 2.0
    assert h.take_turn(f"{A}/3", 102.0) == 4.0
    assert h.turn(f"{A}/4") == 109.0


def test_a_host_that_answers_ever_more_slowly_is_asked_less():
    h = hosts((A, "allow", None), delay=0)
    for seconds in (*[0.1] * 9, *[2.0] * 5):
        h.answered(f"{A}/", seconds)
    h.started(f"{A}/", 100.0)
    h.started(f"{B}/", 100.0)
    assert (h.turn(f"{A}/"), h.turn(f"{B}/")) == (102.0, 100.0)
