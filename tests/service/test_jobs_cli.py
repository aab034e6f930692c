"""`inchworm jobs`, as a user would type it: every command, its JSON, and what is said when it is used wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home

from inchworm.job import Execution, Job
from inchworm.rules.schedule import occurrence
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.timetable import Shift
from inchworm.rules.words.json_form import json_object
from inchworm.store.home.logs import LogLine

URL = "https://a.test/docs"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.app.close()


def added(home: Home, *options: str, url: str = URL) -> dict[str, Any]:
    found: dict[str, Any] = home.ask("jobs", "add", url, *options)
    return found


def refused(home: Home, *arguments: str, code: int = 2) -> str:
    """What is said, on standard error alone: one sentence, and a hint."""
    done = home.cli(*arguments, code=code)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    sentence, *hint = done.stderr.splitlines()
    assert sentence.startswith(("inchworm: ", "Usage: ")) and hint and hint[-1].strip()
    return str(done.stderr)


def claimed(home: Home) -> Execution:
    """The job that is due, taken as a scheduler takes it."""
    (found,) = home.app.dispatch.claim("s", 1)
    return found


def ended(home: Home, execution: Execution, result: Ended) -> None:
    now_ms = home.app.clock.now_ms()

    def decide(job: Job) -> Job:
        if result.error:
            return occurrence.after_failure(job, result.error, now_ms)
        return occurrence.after_success(job, result, now_ms)

    home.app.dispatch.claims.finish(execution.execution_id, execution.token, result, decide, now_ms)


# Making


def test_a_recurring_job(home: Home) -> None:
    said = home.cli("jobs", "add", URL, "--every", "6h").stdout
    (job,) = home.ask("jobs", "list")
    assert said.splitlines() == [
        f"Job {job['id']} of a.test/docs: scheduled, next run {job['next_run_at']}.",
        "`inchworm serve` runs it.",
    ]
    assert (job["status"], job["interval_minutes"], job["interval_type"]) == ("scheduled", 6, "hours")
    assert (job["max_retries"], job["retry_backoff_seconds"], job["adaptive_scheduling"]) == (3, 60, True)
    assert job["current_interval_seconds"] == 6 * 3600 and job["schedule_enabled"] is True


def test_a_one_time_job(home: Home) -> None:
    job = added(home)
    assert (job["status"], job["interval_minutes"], job["schedule_enabled"], job["slot"]) == (
        "pending",
        None,
        False,
        None,
    )
    assert job["next_run_at"] == job["created_at"]


INTERVALS = [
    *(("30m", 30, "minutes"), ("60m", 1, "hours"), ("90m", 90, "minutes"), ("6h", 6, "hours"), ("36h", 36, "hours")),
    *(("24h", 1, "days"), ("7d", 7, "days"), ("1w", 7, "days"), ("1h30m", 90, "minutes"), ("120", 2, "minutes")),
]


@pytest.mark.parametrize(("text", "count", "unit"), INTERVALS)
def test_intervals_as_people_write_them(home: Home, text: str, count: int, unit: str) -> None:
    job = added(home, "--every", text)
    assert (job["interval_minutes"], job["interval_type"]) == (count, unit)


def test_every_option(home: Home) -> None:
    job = added(
        home,
        *("--every", "1d", "--fixed", "--max-retries", "5", "--backoff", "10", "--budget", "100"),
        *("--max-runs", "3", "--stop-if-no-changes", "--mode", "full"),
    )
    assert (job["adaptive_scheduling"], job["max_retries"], job["retry_backoff_seconds"]) == (False, 5, 10)
    assert (job["task"]["mode"], job["task"]["settings"]) == ("full", {"budget": 100})
    assert job["repetition"] == {
        "max_iterations": 3,
        "stop_if_no_changes": True,
        "notify": 0,
        "notify_on": "changes",
        "notify_if": [],
        "guarded": False,
    }


def test_a_job_of_a_crawl_that_is_there(home: Home) -> None:
    first = added(home, "--every", "1d")
    for word in (first["crawl_id"], "a.test/docs", URL):
        assert added(home, url=word)["crawl_id"] == first["crawl_id"]
    assert len(home.app.workspace.crawls.all()) == 1
    assert home.app.workspace.crawls.all()[0].defaults["max_depth"] == 3, "as deep as a job goes unless it is told"


def test_a_job_after_another(home: Home) -> None:
    first = added(home, "--every", "1d")
    second = added(home, "--after", first["id"][:8], url="https://b.test/")
    assert (second["after_job_id"], second["status"], second["next_run_at"]) == (first["id"], "scheduled", None)
    said = home.cli("jobs", "add", "https://c.test/", "--after", first["id"]).stdout
    assert "it waits" in said


WRONG_TO_ADD = {
    "no address": (("not a url",), "is not a web address"),
    "seconds": ((URL, "--every", "90s"), "whole minutes"),
    "nothing": ((URL, "--every", "0m"), "--every 30m"),
    "no duration": ((URL, "--every", "daily"), "'daily' is no interval"),
    "a negative one": ((URL, "--every", "-5m"), "is no interval"),
    "longer than ten years": ((URL, "--every", "4000d"), "ten years"),
    "after nobody": ((URL, "--after", "nobody"), "no job 'nobody'"),
    "retries": ((URL, "--max-retries", "-1"), "max_retries cannot be -1"),
    "too many retries": ((URL, "--max-retries", "101"), "at most 100"),
    "backoff": ((URL, "--backoff", "-1"), "retry_backoff_seconds cannot be -1"),
    "budget": ((URL, "--budget", "-1"), "budget cannot be -1"),
    "a word for a number": ((URL, "--max-retries", "many"), "'many' is not a valid integer"),
    "an unknown mode": ((URL, "--mode", "quick"), "'incremental', 'full'"),
    "nothing at all": ((), "Missing argument"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_TO_ADD.values(), ids=WRONG_TO_ADD)
def test_jobs_that_cannot_be(home: Home, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(home, "jobs", "add", *arguments)
    assert home.ask("jobs", "list") == []


def test_a_job_goes_by_the_clock_or_after_another(home: Home) -> None:
    first = added(home)
    said = refused(home, "jobs", "add", "https://b.test/", "--every", "1d", "--after", first["id"])
    assert "by the clock or after another job, not both" in said


@pytest.mark.parametrize("wrong", [("--max-retries", "-1"), ("--budget", "-1"), ("--every", "4000d")])
def test_what_is_refused_leaves_no_crawl_behind(home: Home, wrong: tuple[str, str]) -> None:
    refused(home, "jobs", "add", URL, *wrong)
    assert home.app.workspace.crawls.all() == []


@pytest.mark.parametrize("number", ["0", "-3"])
def test_a_job_cannot_be_repeated_less_than_once(home: Home, number: str) -> None:
    refused(home, "jobs", "add", URL, "--every", "1d", "--max-runs", number)


# Looking


def test_the_list(home: Home) -> None:
    assert home.cli("jobs", "list").stdout == "No jobs. `inchworm jobs add URL --every 6h` makes one.\n"
    assert home.ask("jobs", "list") == []
    first = added(home, "--every", "6h")
    second = added(home, "--after", first["id"], url="https://b.test/")
    third = added(home, url="https://c.test/")
    lines = home.cli("jobs", "list").stdout.splitlines()
    text = "\n".join(lines)
    for job, every in ((first, "6 hours"), (second, f"after {first['id'][:8]}"), (third, "once")):
        (line,) = [line for line in lines if job["id"][:8] in line.split()[0]]
        assert every in line and job["status"] in line and job["name"] in line
    assert first["next_run_at"][:16].replace("T", " ") in text
    assert [one["id"] for one in home.ask("jobs", "list")] == [first["id"], second["id"], third["id"]]


def test_a_part_of_the_list(home: Home) -> None:
    first, second = added(home, "--every", "6h"), added(home, url="https://b.test/")
    assert [one["id"] for one in home.ask("jobs", "list", "--status", "pending")] == [second["id"]]
    assert [one["id"] for one in home.ask("jobs", "list", "--crawl", "a.test/docs")] == [first["id"]]
    assert [one["id"] for one in home.ask("jobs", "list", "--crawl", "https://b.test/")] == [second["id"]]
    assert home.ask("jobs", "list", "--crawl", "b.test", "--status", "failed") == []
    assert "'running'" in refused(home, "jobs", "list", "--status", "asleep")
    assert "The crawls in" in refused(home, "jobs", "list", "--crawl", "nobody")


def test_one_job(home: Home) -> None:
    job = added(home, "--every", "6h")
    shown = home.ask("jobs", "show", job["id"][:6])
    assert shown["id"] == job["id"] and shown["stats"]["total_executions"] == 0
    said = home.cli("jobs", "show", job["id"]).stdout
    for word in (job["id"], "scheduled", "hours", job["next_run_at"], "a.test/docs"):
        assert word in said


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "cancel", "retry", "run", "delete", "executions", "logs"])
def test_a_job_that_is_not_there(home: Home, verb: str) -> None:
    added(home, "--every", "6h")
    said = refused(home, "jobs", verb, "nobody")
    assert "no job 'nobody'" in said and "inchworm jobs list" in said
    assert "Missing argument 'JOB'" in refused(home, "jobs", verb)


@pytest.mark.parametrize("verb", ["show", "pause", "cancel", "run", "delete", "executions", "logs"])
def test_a_beginning_that_several_jobs_share(home: Home, verb: str) -> None:
    names = [added(home, "--every", "6h")["id"] for _ in range(17)]
    letter = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)
    said = refused(home, "jobs", verb, letter)
    assert f"Several jobs begin with '{letter}'" in said and "more of the id" in said
    assert len(home.ask("jobs", "list", "--status", "scheduled")) == 17


def test_nothing_is_not_the_beginning_of_a_job(home: Home) -> None:
    """As when a script's variable is empty."""
    job = added(home, "--every", "6h")
    home.cli("jobs", "delete", "", code=2)
    assert home.app.jobs.one(job["id"])


# Steering


def test_pausing_and_resuming(home: Home) -> None:
    job = added(home, "--every", "6h")
    assert home.cli("jobs", "pause", job["id"]).stdout == f"Job {job['id']} is paused.\n"
    paused = home.ask("jobs", "show", job["id"])
    assert (paused["status"], paused["is_paused"], paused["next_run_at"], paused["slot"]) == (
        "paused",
        True,
        None,
        None,
    )
    said = refused(home, "jobs", "pause", job["id"], code=1)
    assert "paused cannot be changed by pause" in said and "resume, cancel" in said
    again = home.ask("jobs", "resume", job["id"])
    assert (again["status"], again["is_paused"]) == ("scheduled", False) and again["next_run_at"]


def test_running_a_job_now(home: Home) -> None:
    added(home, "--every", "6h", url="https://other.test/")
    job = added(home, "--every", "6h")
    assert job["next_run_at"] > home.ask("jobs", "list")[0]["next_run_at"]
    now = home.ask("jobs", "run", job["id"])
    assert (now["status"], now["planned_at"]) == ("scheduled", now["next_run_at"])
    assert now["next_run_at"] < job["next_run_at"]
    assert "next run" in home.cli("jobs", "run", job["id"]).stdout


def test_cancelling_is_for_good(home: Home) -> None:
    job = added(home, "--every", "6h")
    assert home.cli("jobs", "cancel", job["id"]).stdout == f"Job {job['id']} is cancelled.\n"
    for verb in ("pause", "resume", "cancel", "retry", "run"):
        said = refused(home, "jobs", verb, job["id"], code=1)
        assert "A job that is cancelled stays so." in said


def test_retrying(home: Home) -> None:
    job = added(home, "--max-retries", "0")
    said = refused(home, "jobs", "retry", job["id"], code=1)
    assert "pending" in said and "failed" in said
    ended(home, claimed(home), Ended("error", error="it is down"))
    failed = home.ask("jobs", "show", job["id"])
    assert (failed["status"], failed["reason"], failed["next_run_at"]) == ("failed", "it is down", None)
    again = home.ask("jobs", "retry", job["id"])
    assert (again["status"], again["current_retry_count"], again["reason"]) == ("pending", 0, None)


def test_a_one_time_job_that_was_paused_between_two_tries_is_scheduled_again(home: Home) -> None:
    job = added(home)
    ended(home, claimed(home), Ended("error", error="it is down"))
    home.cli("jobs", "pause", job["id"])
    assert home.ask("jobs", "resume", job["id"])["status"] == "scheduled"


def test_deleting(home: Home) -> None:
    job = added(home)
    execution = claimed(home)
    said = refused(home, "jobs", "delete", job["id"], code=1)
    assert "is running" in said and "Cancel it first" in said
    home.cli("jobs", "cancel", job["id"])
    ended(home, execution, Ended("cancelled"))
    assert home.cli("jobs", "delete", job["id"]).stdout == f"Job {job['id']} is gone.\n"
    assert home.ask("jobs", "list") == []
    assert len(home.app.workspace.crawls.all()) == 1, "what it crawled stays"


def test_deleting_what_others_wait_for(home: Home) -> None:
    first = added(home, "--every", "1d")
    second = added(home, "--after", first["id"], url="https://b.test/")
    assert second["id"] in refused(home, "jobs", "delete", first["id"], code=1)


# Changing


def changed(home: Home, job: dict[str, Any], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = home.ask("jobs", "change", job["id"][:8], *options)
    return found


def test_changing(home: Home) -> None:
    job = added(home, "--every", "6h")
    now = changed(home, job, "--every", "2d", "--fixed", "--max-retries", "7", "--backoff", "9")
    assert (now["interval_minutes"], now["interval_type"], now["adaptive_scheduling"]) == (2, "days", False)
    assert (now["max_retries"], now["retry_backoff_seconds"], now["status"]) == (7, 9, "scheduled")
    again = changed(home, job, "--adaptive")
    assert (again["interval_minutes"], again["adaptive_scheduling"], again["max_retries"]) == (2, True, 7)
    said = home.cli("jobs", "change", job["id"], "--every", "12h").stdout
    assert said == f"Job {job['id']} is scheduled, next run {home.ask('jobs', 'show', job['id'])['next_run_at']}.\n"


def test_a_job_that_no_longer_goes_by_the_clock(home: Home) -> None:
    job = added(home, "--every", "6h")
    assert changed(home, job, "--disable")["next_run_at"] is None
    assert changed(home, job, "--enable")["next_run_at"] is not None


def test_from_the_clock_to_another_job_and_back(home: Home) -> None:
    first, second = added(home, "--every", "6h"), added(home, "--every", "6h", url="https://b.test/")
    follower = changed(home, second, "--after", first["id"][:8])
    assert (follower["after_job_id"], follower["interval_minutes"], follower["next_run_at"]) == (
        first["id"],
        None,
        None,
    )
    third = added(home, "--every", "6h", url="https://c.test/")
    assert changed(home, second, "--after", third["id"])["after_job_id"] == third["id"]
    by_clock = changed(home, second, "--every", "3h")
    assert (by_clock["after_job_id"], by_clock["interval_minutes"]) == (None, 3)
    once = changed(home, second, "--once")
    assert (once["after_job_id"], once["interval_minutes"]) == (None, None) and once["next_run_at"]


WRONG_CHANGES = {
    "nothing": ((), "Nothing is to change"),
    "two ways": (("--every", "6h", "--once"), "do not go together"),
    "no interval": (("--every", "90s"), "whole minutes"),
    "after nobody": (("--after", "nobody"), "no job 'nobody'"),
    "retries": (("--max-retries", "-1"), "max_retries cannot be -1"),
}


@pytest.mark.parametrize(("options", "said"), WRONG_CHANGES.values(), ids=WRONG_CHANGES)
def test_changes_that_cannot_be(home: Home, options: tuple[str, ...], said: str) -> None:
    job = added(home, "--every", "6h")
    assert said in refused(home, "jobs", "change", job["id"], *options)
    found = json_object(home.app.jobs.one(job["id"]).line)
    assert found == {**job, "updated_at": found["updated_at"]}


def test_no_retries_at_all_is_a_change(home: Home) -> None:
    assert changed(home, added(home, "--every", "6h"), "--max-retries", "0")["max_retries"] == 0


# All of them together


def crowded(home: Home, count: int) -> None:
    """Daily jobs that are all due at the same time tomorrow."""
    for number in range(count):
        job = added(home, "--every", "1d", url=f"https://{number}.test/")
        due_ms = home.app.clock.now_ms() + 20 * 3_600_000
        home.app.dispatch.slots.shift([Shift(job["id"], home.app.jobs.store.get(job["id"]).due_ms or 0, due_ms)], 0)


def test_stats(home: Home) -> None:
    added(home)
    ended(home, claimed(home), Ended("finished", 12))
    told = home.ask("jobs", "stats")
    assert (told["jobs"]["completed"], told["executions"]["completed"]) == (1, 1)
    said = home.cli("jobs", "stats").stdout
    assert re.search(r"^jobs completed +1$", said, re.MULTILINE) and re.search(
        r"^items crawled +12$", said, re.MULTILINE
    )
    assert "rebalance" not in said


def test_the_distribution(home: Home) -> None:
    crowded(home, 4)
    told = home.ask("jobs", "distribution")
    assert (told["total_jobs"], told["fullest"], len(told["slots"])) == (4, 4, 96)
    lines = home.cli("jobs", "distribution").stdout.splitlines()
    assert lines[0].split() == ["STARTS", "AT", "JOBS"] and lines[1].split()[1] == "4"
    assert lines[2] == "4 jobs, at most 4 in a slot." and "inchworm jobs rebalance --preview" in lines[-1]


def test_rebalancing(home: Home) -> None:
    crowded(home, 4)
    before = [one["next_run_at"] for one in home.ask("jobs", "list")]
    preview = home.ask("jobs", "rebalance", "--preview")
    assert (preview["preview"], preview["moved"], preview["score_before"], preview["score_after"]) == (
        True,
        3,
        0.0,
        1.0,
    )
    said = home.cli("jobs", "rebalance", "--preview").stdout
    assert "3 jobs would be moved" in said and said.endswith("`inchworm jobs rebalance` moves them.\n")
    assert all(one["job_id"] in said for one in preview["moves"])
    assert [one["next_run_at"] for one in home.ask("jobs", "list")] == before
    assert home.cli("jobs", "rebalance").stdout.startswith("3 jobs are moved; ")
    assert home.ask("jobs", "distribution")["fullest"] == 1
    assert home.ask("jobs", "rebalance")["moved"] == 0


# Looking back


def test_executions(home: Home) -> None:
    job = added(home)
    assert home.cli("jobs", "executions", job["id"]).stdout == "It has not run yet.\n"
    assert home.ask("jobs", "executions", job["id"]) == []
    ended(home, claimed(home), Ended("error", error="it is down\nfor long", trace="Traceback …", cpu_ms=7))
    (one,) = home.ask("jobs", "executions", job["id"])
    assert (one["status"], one["attempt"], one["error_message"]) == ("failed", 1, "it is down\nfor long")
    assert (one["stack_trace"], one["cpu_time_ms"], one["retry_attempt"]) == ("Traceback …", 7, 0)
    home.app.schedule.run(job["id"])
    ended(home, claimed(home), Ended("finished", 1234))
    listed = home.ask("jobs", "executions", job["id"][:7], "--limit", "1")
    assert [(one["status"], one["attempt"], one["items_crawled"]) for one in listed] == [("completed", 2, 1234)]
    table = home.cli("jobs", "executions", job["id"]).stdout
    assert re.search(r"completed.*finished", table) and re.search(r"failed.*it is down", table)


def test_an_execution_is_one_row_of_the_table(home: Home) -> None:
    job = added(home)
    ended(home, claimed(home), Ended("error", error="it is down\nfor \x1b[31mlong"))
    lines = home.cli("jobs", "executions", job["id"]).stdout.splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


def test_logs(home: Home) -> None:
    job = added(home)
    said = refused(home, "jobs", "logs", job["id"], code=1)
    assert "has not run yet" in said and "inchworm jobs run" in said
    execution = claimed(home)
    lines = [
        LogLine(1, 1_700_000_000_000, "info", "It began"),
        LogLine(2, 1_700_000_001_000, "warning", "Something failed"),
    ]
    home.app.executions.logs.add(execution.execution_id, execution.token, lines)
    assert home.cli("jobs", "logs", job["id"]).stdout.splitlines() == [
        "2023-11-14T22:13:20.000Z info    It began",
        "2023-11-14T22:13:21.000Z warning Something failed",
    ]
    told = home.cli("jobs", "logs", job["id"], "--json").stdout.splitlines()
    assert len(told) == 2 and '"text": "It began"' in told[0]
    same = home.cli("jobs", "logs", job["id"], "--execution", str(execution.execution_id)).stdout
    assert "It began" in same
    assert "no execution 99" in refused(home, "jobs", "logs", job["id"], "--execution", "99")
    other = added(home, url="https://b.test/")
    said = refused(home, "jobs", "logs", other["id"], "--execution", str(execution.execution_id))
    assert "belongs to another job" in said


# Sources


def test_syncing(home: Home) -> None:
    assert home.ask("jobs", "sync") == {"created": 0, "resumed": 0, "paused": 0, "unchanged": 0}
    added(home, "--every", "6h")
    added(home, url="https://b.test/")
    assert home.ask("jobs", "sync") == {"created": 1, "resumed": 0, "paused": 0, "unchanged": 2}
    assert home.ask("jobs", "sync") == {"created": 0, "resumed": 0, "paused": 0, "unchanged": 3}
    made = home.ask("jobs", "list", "--crawl", "b.test", "--status", "scheduled")
    assert [(one["interval_minutes"], one["interval_type"]) for one in made] == [(1, "days")]
    home.app.workspace.crawls.change(home.app.workspace.find("a.test/docs").crawl_id, enabled=False)
    assert home.cli("jobs", "sync").stdout == "0 created, 0 resumed, 1 paused, 2 unchanged.\n"
    (paused,) = home.ask("jobs", "list", "--status", "paused")
    assert paused["reason"] == "source_disabled"
    home.app.workspace.crawls.change(home.app.workspace.find("a.test/docs").crawl_id, enabled=True)
    assert home.ask("jobs", "sync") == {"created": 0, "resumed": 1, "paused": 0, "unchanged": 2}
    assert home.ask("jobs", "list", "--status", "paused") == []


def test_what_a_person_paused_is_not_resumed_by_syncing(home: Home) -> None:
    job = added(home, "--every", "6h")
    home.cli("jobs", "pause", job["id"])
    assert home.ask("jobs", "sync")["resumed"] == 0
    assert home.ask("jobs", "show", job["id"])["status"] == "paused"


# Help


def test_help_names_every_command(home: Home) -> None:
    said = home.cli("jobs", "--help").stdout
    commands = (
        "add",
        "cancel",
        "change",
        "delete",
        "distribution",
        "executions",
        "list",
        "logs",
        "pause",
        "rebalance",
        "resume",
        "retry",
        "run",
        "show",
        "stats",
        "sync",
    )
    assert tuple(re.findall(r"^  ([a-z]+) ", said, re.MULTILINE)) == commands
    for command in commands:
        assert home.cli("jobs", command, "--help").stdout.startswith("Usage: ")


def test_executions_are_not_started_by_people(home: Home) -> None:
    said = refused(home, "execute", "1")
    assert "inchworm serve" in said
    assert "execute" not in home.cli("--help").stdout
