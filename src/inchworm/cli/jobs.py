"""Commands about jobs: when crawls run by themselves."""

from __future__ import annotations

import os
from typing import Any

import click

from inchworm.app.executing import TOKEN_VARIABLE, Executing
from inchworm.app.jobs import Repeated, Task, Wanted, Working
from inchworm.cli import display
from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, mode_option, opened, print_json, run_loop
from inchworm.cli.words import clip
from inchworm.errors import WrongUse
from inchworm.job import JobState
from inchworm.rules.times import iso
from inchworm.rules.timetable import UNITS
from inchworm.settings import duration

_ALL = 1_000_000
_JOB_COLUMNS = ("id", "status", "name", "every", "next_run_at", "last_run_at", "executions", "reason")
_EXECUTION_COLUMNS = ("id", "number", "status", "planned_at", "attempt", "seconds", "pages", "ended_by", "error")


@main.group()
def jobs() -> None:
    """Let crawls run by themselves: at an interval, after another job, or once.

    Jobs are run by `inchworm serve`. JOB is the id of a job, or enough of its beginning.
    """


@jobs.command("list")
@click.option("--status", type=click.Choice([state.value for state in JobState]), help="Only jobs in this state.")
@click.option("--crawl", "word", default=None, help="Only jobs of this crawl.")
@json_flag
def list_jobs(status: str | None, word: str | None, as_json: bool) -> None:
    """All jobs: their state, and when they run next."""
    with opened(Working) as app:
        where = {"state": status} if status else {}
        where |= {"crawl_id": app.find(word).crawl_id} if word else {}
        listed = app.list_jobs(where, limit=_ALL)
    if as_json:
        print_json(listed)
    elif not listed:
        click.echo("No jobs. `inchworm jobs add URL --every 6h` makes one.")
    else:
        display.table(_JOB_COLUMNS, [_job_row(one) for one in listed])


@jobs.command()
@click.argument("crawl", metavar="URL|CRAWL")
@click.option("--every", metavar="DURATION", help="How often, such as 30m, 6h or 7d. Without it: once, now.")
@click.option("--after", metavar="JOB", help="Run whenever this other job has completed.")
@click.option("--fixed", is_flag=True, help="Keep the interval, also when nothing changes on the site.")
@click.option("--max-retries", type=int, default=None, help="Try again so often after a failure. [default: 3]")
@click.option("--backoff", type=int, default=None, metavar="SECONDS", help="Wait so long before the first retry.")
@click.option("--budget", type=int, default=None, help="At most so many requests in each execution.")
@click.option("--max-iterations", type=int, default=None, help="Stop after so many complete runs.")
@click.option("--stop-if-no-changes", is_flag=True, help="Stop when a complete run found nothing changed.")
@mode_option
@json_flag
def add(crawl: str, every: str | None, after: str | None, as_json: bool, mode: str | None, **values: Any) -> None:
    """Make a job for a crawl, or for a URL that is to become one."""
    count, unit = _interval(every) if every else (None, None)
    budget, limit, stops = values["budget"], values["max_iterations"], values["stop_if_no_changes"]
    with opened(Working) as app:
        known = app.home.find(crawl)
        wanted = Wanted(
            source_id=known.crawl_id if known else None,
            url=None if known else crawl,
            interval_minutes=count,
            interval_type=unit,
            adaptive_scheduling=not values["fixed"],
            max_retries=values["max_retries"],
            retry_backoff_seconds=values["backoff"],
            after_job_id=_full(app, after) if after else None,
            repeated=Repeated(limit, stops) if limit is not None or stops else None,
            task=Task(mode=mode or "", settings={"budget": budget} if budget else {}),
        )
        made = app.add_job(wanted)
    if as_json:
        print_json(made)
    else:
        when = f"next run {made['next_run_at']}" if made["next_run_at"] else "it waits"
        click.echo(f"Job {made['id']} of {made['name']}: {made['status']}, {when}.")
        click.echo("`inchworm serve` runs it.")


@jobs.command()
@click.argument("job")
@json_flag
def show(job: str, as_json: bool) -> None:
    """Everything about one job."""
    with opened(Working) as app:
        job_id = _full(app, job)
        found = {**app.job(job_id), "stats": app.job_stats(job_id)}
    if as_json:
        print_json(found)
    else:
        display.settings_table({name: value for name, value in found.items() if value not in (None, {}, "")})


def _steer(name: str, verb: str, text: str) -> None:
    @jobs.command(name, help=text)
    @click.argument("job")
    @json_flag
    def steer(job: str, as_json: bool) -> None:
        with opened(Working) as app:
            found = getattr(app, verb)(_full(app, job))
        if as_json:
            print_json(found)
        else:
            when = f", next run {found['next_run_at']}" if found["next_run_at"] else ""
            click.echo(f"Job {found['id']} is {found['status']}{when}.")


_steer("pause", "pause_job", "Keep a scheduled job from running.")
_steer("resume", "resume_job", "Let a paused job run again.")
_steer("cancel", "cancel_job", "End a job for good; an execution that runs is stopped, and its run can be continued.")
_steer("retry", "retry_job", "Try a failed job again, with all its retries.")
_steer("run", "run_job", "Run a scheduled job now.")


@jobs.command()
@click.argument("job")
def delete(job: str) -> None:
    """Remove a job and the history of its executions. What it crawled stays."""
    with opened(Working) as app:
        job_id = _full(app, job)
        app.delete_job(job_id)
    click.echo(f"Job {job_id} is gone.")


@jobs.command()
@click.argument("job")
@click.option("--limit", type=int, default=20, show_default=True)
@json_flag
def executions(job: str, limit: int, as_json: bool) -> None:
    """What a job has done so far, newest first."""
    with opened(Working) as app:
        listed = app.executions(_full(app, job), None, limit)
    if as_json:
        print_json(listed)
    elif not listed:
        click.echo("It has not run yet.")
    else:
        display.table(_EXECUTION_COLUMNS, [_execution_row(one) for one in listed])


@jobs.command()
@click.argument("job")
@click.option("--execution", type=int, default=None, help="Of this execution. [default: the last one]")
@json_flag
def logs(job: str, execution: int | None, as_json: bool) -> None:
    """The log of an execution."""
    with opened(Working) as app:
        found = app.execution_of(_full(app, job), execution)
        for line in app.log_lines(found.execution_id):
            if as_json:
                print_json(line._asdict())
            else:
                click.echo(f"{iso(line.at_ms)} {line.level:<7} {line.text}")


@jobs.command()
@json_flag
def sync(as_json: bool) -> None:
    """Make a job for every enabled crawl that has none, and pause the jobs of the disabled ones."""
    with opened(Working) as app:
        done = app.sync_jobs()
    if as_json:
        print_json(done)
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in done.items()) + ".")


@main.command(hidden=True)
@click.argument("execution", type=int)
def execute(execution: int) -> None:
    """Carry out one execution. `inchworm serve` starts this; it is of no use to people."""
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if not token:
        raise WrongUse("Executions are started by the service.", "`inchworm serve` runs jobs.")
    with opened(Executing) as app:
        stale = app.service_settings().stale_lock
        went_well = run_loop(app.execute(execution, token, stale))
    raise SystemExit(0 if went_well else 1)


def _full(app: Working, beginning: str) -> str:
    """The id of the one job that begins like this."""
    found = app.jobs.beginning_with(beginning) if beginning else []
    if len(found) > 1:
        raise WrongUse(f"Several jobs begin with {beginning!r}.", "Give more of the id.")
    return found[0] if found else beginning


def _interval(text: str) -> tuple[int, str]:
    """A duration in the largest unit that holds it."""
    try:
        minutes, rest = divmod(duration(text), 60)
    except ValueError:
        minutes, rest = 0, 0
    if minutes < 1 or rest:
        raise WrongUse(f"{text!r} is no interval.", "Give whole minutes, hours or days: --every 30m, 6h, 7d")
    for unit in ("days", "hours"):
        count, left = divmod(int(minutes), UNITS[unit] // 60_000)
        if not left:
            return count, unit
    return int(minutes), "minutes"


def _job_row(one: dict[str, Any]) -> tuple[Any, ...]:
    every = f"{one['interval_minutes']} {one['interval_type']}" if one["interval_minutes"] else ""
    every = every or (f"after {one['after_job_id'][:8]}" if one["after_job_id"] else "once")
    times = (one["next_run_at"] or "", one["last_run_at"] or "")
    return (one["id"][:8], one["status"], one["name"], every, *times, one["executions"], one["reason"] or "")


def _execution_row(one: dict[str, Any]) -> tuple[Any, ...]:
    seconds = f"{one['duration_ms'] / 1000:.1f}" if one["duration_ms"] is not None else ""
    return (
        one["id"],
        one["execution_number"],
        one["status"],
        one["planned_at"],
        one["attempt"],
        seconds,
        one["items_crawled"],
        one["ended_by"] or "",
        clip(one["error_message"] or "", 60),
    )
