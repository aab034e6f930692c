"""Every setting as one row, and errors that say what would be right."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm import settings
from inchworm.errors import WrongUse
from inchworm.settings import (
    ALIASES,
    FIELDS,
    RUN,
    SERVICE,
    SESSION,
    Settings,
    belongs_to_run,
    check,
    duration,
    flag_of,
    make,
)

NAMES = list(FIELDS)
NUMBERS = [name for name, field in FIELDS.items() if type(field.default) in (int, float)]


# The rows


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_tells_its_meaning_its_unit_and_to_whom_it_belongs(name):
    meta = FIELDS[name].metadata
    assert meta["belongs"] in (RUN, SESSION, SERVICE)
    assert belongs_to_run(name) == (meta["belongs"] == RUN)
    assert meta["help"]
    assert len(meta["help"]) <= 90
    assert not meta["help"].endswith(".")
    assert meta["help"][0].islower()
    needs_a_unit = not isinstance(FIELDS[name].default, bool) and "choices" not in meta
    assert bool(meta["unit"]) == needs_a_unit


@pytest.mark.parametrize("name", NAMES)
def test_every_default_is_a_valid_value(name):
    assert check(name, FIELDS[name].default) == FIELDS[name].default


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_a_least_value(name):
    assert FIELDS[name].metadata["least"] <= FIELDS[name].default


def test_flags_are_made_from_names_and_differ():
    flags = [flag_of(name) for name in NAMES]
    assert len(set(flags)) == len(flags)
    assert (flag_of("page_limit"), flag_of("robots"), flag_of("sitemap")) == (
        "--page-limit",
        "--ignore-robots",
        "--no-sitemap",
    )


def test_what_a_record_means_is_frozen_and_how_fast_it_is_made_is_not():
    assert all(belongs_to_run(name) for name in ("scope", "include", "max_depth", "page_limit", "robots", "replay"))
    assert not any(belongs_to_run(name) for name in ("workers", "budget", "delay", "max_retries", "max_age", "stale"))


# Values


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("workers", "8", 8),
        ("workers", 8.0, 8),
        ("workers", 1000, 1000),
        ("delay", "250ms", 0.25),
        ("delay", 2, 2.0),
        ("delay", "0", 0.0),
        ("max_age", "7d", 604800.0),
        ("robots", "no", False),
        ("robots", "ON", True),
        ("robots", 1, True),
        ("robots", False, False),
        ("scope", "domain", "domain"),
        ("include", "*.html", ("*.html",)),
        ("include", ["a", "b"], ("a", "b")),
        ("include", (), ()),
        ("user_agent", "me", "me"),
        ("external_hops", "5", 5),
        ("timeout", 0.1, 0.1),
    ],
)
def test_values_get_their_right_type(name, value, result):
    found = check(name, value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("workers", 0, "a whole number at least 1, at most 1000"),
        ("workers", "many", "a whole number"),
        ("workers", 1001, "at most 1000"),
        ("workers", 1.5, "a whole number"),
        ("workers", None, "a whole number"),
        ("workers", math.inf, "a whole number"),
        ("workers", math.nan, "a whole number"),
        ("workers", [1], "a whole number"),
        ("budget", -1, "at least 0"),
        ("external_hops", 6, "at most 5"),
        ("delay", "soon", "a number or a duration such as 90, 1.5h or 7d"),
        ("delay", -0.5, "at least 0"),
        ("delay", "-1", "at least 0"),
        ("delay", math.nan, "a number or a duration"),
        ("delay", None, "a number or a duration"),
        ("timeout", 0, "at least 0.1"),
        ("stale", "100ms", "at least 0.5"),
        ("robots", "perhaps", "yes or no"),
        ("robots", 2, "yes or no"),
        ("robots", None, "yes or no"),
        ("scope", "planet", "one of path, host, domain, any"),
        ("scope", "PATH", "one of path, host, domain, any"),
        ("include", 5, "text"),
        ("include", None, "text"),
        ("user_agent", None, "text"),
        ("user_agent", "me\r\nX-Other: yes", "text"),
        ("drop_params", ["a\0b"], "text"),
    ],
)
def test_wrong_values_are_named_and_the_error_says_what_is_right(name, value, right):
    with pytest.raises(WrongUse) as raised:
        check(name, value)
    assert name in raised.value.message
    assert repr(value) in raised.value.message
    assert right in raised.value.hint


def test_an_unknown_name_is_told():
    with pytest.raises(WrongUse) as raised:
        check("wrokers", 5)
    assert "'wrokers'" in raised.value.message
    assert raised.value.hint


@effort(max_examples=200, database=None)
@given(
    name=st.sampled_from(NAMES), value=st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.lists(st.text()))
)
@example("workers", math.inf)
def test_no_value_makes_checking_fail_in_another_way(name, value):
    try:
        found = check(name, value)
    except WrongUse as error:
        assert error.hint
    else:
        # What was taken is taken again, as it is.
        assert check(name, found) == found


def test_make_checks_everything():
    made = make({"workers": "3", "include": ["a"]})
    assert (made.workers, made.include, made.delay) == (3, ("a",), 0.5)
    assert make({}) == Settings()
    with pytest.raises(WrongUse):
        make({"workers": 0})


# Durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 2 h ", 7200),
        ("7d", 604800),
        ("2w", 1209600),
        ("500ms", 0.5),
        ("2min", 120),
        ("2m", 120),
        ("1m30", 90),
        ("1d2h3m4s5ms", 93784.005),
    ],
)
def test_durations(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "h", "1x", "1h!", "-1", "+1", "1.5.5", "1,5", "one", "inf", "nan", "1e3", "1 000"]
)
def test_what_is_no_duration(text):
    with pytest.raises(ValueError):
        duration(text)


@effort(max_examples=100, database=None)
@given(st.integers(0, 10**6), st.sampled_from(["", "s", "m", "h", "d", "w", "ms"]))
def test_a_duration_is_its_number_of_units(number, unit):
    assert duration(f"{number}{unit}") == pytest.approx(number * duration(f"1{unit}"))


# Where they come from


def test_the_environment_sets_what_it_names():
    environment = {"INCHWORM_WORKERS": "7", "INCHWORM_MAX_AGE": "1d", "INCHWORM_ROBOTS": "off", "PATH": "/bin"}
    assert settings.from_environment(environment) == {"workers": 7, "max_age": 86400.0, "robots": False}
    assert settings.from_environment({"INCHWORM_HOME": "/tmp"}) == {}


def test_names_of_other_crawlers_are_known():
    environment = {"CRAWLER_RESPECT_ROBOTS_TXT": "false", "FETCHER_MAX_REDIRECTS": "3"}
    assert settings.from_environment(environment) == {"robots": False, "max_redirects": 3}
    assert set(ALIASES.values()) <= set(FIELDS)


def test_our_own_names_win_over_those_of_others():
    environment = {"INCHWORM_ROBOTS": "on", "CRAWLER_RESPECT_ROBOTS_TXT": "off"}
    assert settings.from_environment(environment) == {"robots": True}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("INCHWORM_WROKERS", "INCHWORM_WORKERS"),
        ("INCHWORM_DELAYS", "INCHWORM_DELAY"),
        ("INCHWORM_HOMES", "INCHWORM_HOME"),
        ("INCHWORM_XYZZY", "--help"),
        ("INCHWORM_", "--help"),
    ],
)
def test_an_unknown_name_in_the_environment_is_an_error(name, near):
    with pytest.raises(WrongUse) as raised:
        settings.from_environment({"INCHWORM_WORKERS": "3", name: "5"})
    assert name in raised.value.message
    assert near in raised.value.hint


def test_what_kubernetes_sets_by_itself_is_no_error():
    names = (
        "SERVICE_HOST",
        "SERVICE_PORT",
        "SERVICE_PORT_HTTP",
        "PORT_8060_TCP",
        "PORT_8060_TCP_ADDR",
        "PORT_1_UDP_PROTO",
    )
    environment = {f"INCHWORM_{name}": "10.0.0.1" for name in names}
    assert settings.from_environment({**environment, "INCHWORM_PORT": "tcp://10.0.0.1:8060"}) == {}
    with pytest.raises(WrongUse):
        settings.from_environment({"INCHWORM_PORT": "8061"})


def test_every_variable_of_ours_is_known():
    """What the code, the tests and the benchmarks read, `crawl` must not stumble over."""
    root = Path(__file__).parent.parent
    places = [*(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py"), *(root / "bench").rglob("*.py")]
    read = re.compile(
        r"environ(?:\.get\(|\.pop\(|\[)\s*\"(INCHWORM_[A-Z_]+)\"|^\s*[A-Z_]+ = \"(INCHWORM_[A-Z_]+)\"", re.MULTILINE
    )
    found = {name for path in places for pair in read.findall(path.read_text()) for name in pair if name}
    assert {"INCHWORM_HOME", "INCHWORM_KILLS", "INCHWORM_FAULT", "INCHWORM_EXECUTION_TOKEN"} <= found
    settings.refuse_unknown(dict.fromkeys(found, "1"))


NOT_YET = (
    *("CRAWLER_SOURCES_API_URL", "CRAWLER_READABILITY_FALLBACK_ENABLED", "CRAWLER_MINIO_ENABLED"),
    *("CRAWLER_FEED_DISCOVERY_ENABLED", "CRAWLER_FEED_POLL_ENABLED", "REDIS_EVENTS_ENABLED"),
    *("CRAWLER_REDIS_STORAGE_ENABLED", "CRAWLER_PROXIES_ENABLED", "CRAWLER_PROXY_URLS"),
)


@pytest.mark.parametrize("name", NOT_YET)
def test_a_variable_that_does_nothing_is_named(name):
    (note,) = settings.notes({name: "true"})
    assert note.startswith(f"{name} ")
    assert settings.notes({name: ""}) == settings.notes({}) == []
    assert name == "CRAWLER_PROXY_URLS" or settings.notes({name: "False"}) == []


def test_a_variable_that_does_something_is_not_named():
    proxies = {"CRAWLER_PROXIES_ENABLED": "1", "CRAWLER_PROXY_URLS": "http://p.test:1"}
    assert settings.notes({**proxies, "CRAWLER_RESPECT_ROBOTS_TXT": "no", "AUTH_JWT_SECRET": "x"}) == []


def test_who_goes_deep_is_warned():
    assert settings.cautions({"max_depth": 5}) == settings.cautions({"max_depth": 0}) == settings.cautions({}) == []
    (text,) = settings.cautions({"max_depth": 6})
    assert "max_depth is 6" in text and "budget" in text


def test_a_wrong_value_in_the_environment_is_told():
    with pytest.raises(WrongUse) as raised:
        settings.from_environment({"INCHWORM_WORKERS": "many"})
    assert "a whole number" in raised.value.hint


def test_a_file_sets_what_it_names(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(
        'workers = 7\ndelay = "1s"\nrobots = false\ninclude = ["a", "b"]  # both\nuser_agent = "grün"\n', "utf-8"
    )
    assert settings.from_file(path) == {
        "workers": 7,
        "delay": 1.0,
        "robots": False,
        "include": ("a", "b"),
        "user_agent": "grün",
    }


def test_no_file_sets_nothing(tmp_path):
    assert settings.from_file(tmp_path / "config.toml") == {}
    (tmp_path / "config.toml").touch()
    assert settings.from_file(tmp_path / "config.toml") == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"workers = ", "config.toml"),
        (b"\xff\xfe", "config.toml"),
        (b"workers = 0", "workers"),
        (b"workers = inf", "workers"),
        (b"wrokers = 1", "wrokers"),
        (b"[crawl]\nworkers = 1", "crawl"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path, content, told):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(WrongUse) as raised:
        settings.from_file(tmp_path / "config.toml")
    assert told in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("content", "line", "told", "hint"),
    [
        ("delay = 1\n\nworker = 3\n", 3, "no setting called 'worker'", "Did you mean workers?"),
        ("# worker = 1\n  'max-depth' = 3", 2, "no setting called 'max-depth'", "Did you mean max_depth?"),
        ("workers = 4\n[polite]\ndelay = 3", 2, "no setting called 'polite'", "lists them"),
        ("workers = 4\ndelay = 'soon'", 2, "delay cannot be 'soon'", "a duration"),
        ("workers = 0", 1, "workers cannot be 0", "at least 1"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line_and_the_nearest_name(tmp_path, content, line, told, hint):
    path = tmp_path / "config.toml"
    path.write_text(content)
    with pytest.raises(WrongUse) as raised:
        settings.from_file(path)
    assert raised.value.message.startswith(f"{path}, line {line}: ")
    assert told in raised.value.message and hint in raised.value.hint


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(WrongUse) as raised:
        settings.from_file(tmp_path / "config.toml")
    assert "config.toml" in raised.value.message


# As plain values


def test_settings_as_plain_values_come_back_the_same():
    made = make({"include": ["a"], "workers": 9, "max_age": "1d"})
    plain = settings.to_json(made)
    assert plain["include"] == ["a"]
    assert make(plain) == made


def test_the_parts_of_run_session_and_service_are_the_whole():
    run, session, service = (settings.to_json(Settings(), part) for part in (RUN, SESSION, SERVICE))
    assert not (run.keys() & session.keys() or session.keys() & service.keys() or service.keys() & run.keys())
    assert run | session | service == settings.to_json(Settings())
    assert run.keys() | session.keys() | service.keys() == {field.name for field in dataclasses.fields(Settings)}


def test_some_settings_are_changed_and_checked():
    values = settings.changed(make({"workers": 9}), {"query": "boats", "include": ["a"]})
    assert (values.workers, values.query, values.include, values.order) == (9, "boats", ("a",), "breadth")
    with pytest.raises(WrongUse):
        settings.changed(values, {"workers": "many"})


def test_lists_and_the_part_of_the_run_among_what_was_named():
    named = {"proxies": "http://127.0.0.1:1", "include": ["a", "b"], "max_depth": "3"}
    assert settings.texts(named, "proxies") == ("http://127.0.0.1:1",)
    assert settings.texts(named, "exclude") == ()
    assert settings.of_run(named) == {"include": ("a", "b"), "max_depth": 3}
    assert settings.plain(("a", "b")) == ["a", "b"]
