"""Commands about jobs: when crawls run by themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from inchworm.app.act.jobs.change import WantedJob
from inchworm.cli.commands import main
from inchworm.cli.options import json_flag, mode_option, opened, run_loop
from inchworm.cli.screen import display
from inchworm.cli.screen.door import paragraph, print_json, say
from inchworm.cli.screen.table import table
from inchworm.cli.screen.words import counted
from inchworm.engine.run import refuse_words
from inchworm.errors import WrongUse
from inchworm.job import JobFilter, JobRepetition, JobState, Task
from inchworm.rules.schedule import states
from inchworm.rules.schedule.states import Action
from inchworm.rules.schedule.timetable import UNITS
from inchworm.rules.words.figures import clip
from inchworm.rules.words.json_form import json_object
from inchworm.rules.words.times import iso
from inchworm.settings import duration

if TYPE_CHECKING:
    from inchworm.app.read.executions import ExecutionLine
    from inchworm.app.read.jobs import JobLine
    from inchworm.app.root import App

_ALL = 1_000_000
_JOB_COLUMNS = ("id", "status", "name", "every", "next_run_at", "last_run_at", "executions", "reason")
_SHOWN = 20
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
    with opened() as app:
        which = JobFilter(JobState(status) if status else None, app.workspace.find(word).crawl_id if word else None)
        listed = [one.line for one in app.jobs.listed(which, limit=_ALL)]
    if as_json:
        print_json(listed)
    elif not listed:
        say("No jobs. `inchworm jobs add URL --every 6h` makes one.")
    else:
        table(_JOB_COLUMNS, [_job_row(one) for one in listed], "name")


@jobs.command()
@click.argument("crawl", metavar="URL|CRAWL")
@click.option("--every", metavar="DURATION", help="How often, such as 30m, 6h or 7d. Without it: once, now.")
@click.option("--after", metavar="JOB", help="Run whenever this other job has completed.")
@click.option("--fixed", is_flag=True, help="Keep the interval, also when nothing changes on the site.")
@click.option("--max-retries", "retries", type=int, help="Try again so often after a failure. [default: 3]")
@click.option("--backoff", type=int, default=None, metavar="SECONDS", help="Wait so long before the first retry.")
@click.option("--budget", "requests", type=int, help="At most so many requests in each execution.")
@click.option("--max-runs", type=int, default=None, help="Stop after so many complete runs after the first.")
@click.option("--stop-if-no-changes", is_flag=True, help="Stop when a complete run found nothing changed.")
@mode_option
@json_flag
def add(crawl: str, every: str | None, after: str | None, as_json: bool, mode: str | None, **values: Any) -> None:
    """Make a job for a crawl, or for a URL that is to become one."""
    count, unit = _interval(every) if every else (None, None)
    budget, limit, stops = values["requests"], values["max_runs"], values["stop_if_no_changes"]
    with opened() as app:
        known = app.workspace.crawls.find(crawl)
        if known is None:
            refuse_words([crawl])
        wanted = WantedJob(
            source_id=known.crawl_id if known else None,
            url=None if known else crawl,
            interval_minutes=count,
            interval_type=unit,
            adaptive_scheduling=not values["fixed"],
            max_retries=values["retries"],
            retry_backoff_seconds=values["backoff"],
            after_job_id=_full(app, after) if after else None,
            repeated=JobRepetition(limit, stops) if limit is not None or stops else None,
            task=Task(mode=mode or "", settings={"budget": budget} if budget else {}),
        )
        made = app.schedule.add(wanted)
    if as_json:
        print_json(made)
    else:
        when = f"next run {made.next_run_at}" if made.next_run_at else "it waits"
        paragraph(f"Job {made.id} of {made.name}: {made.status}, {when}.")
        say("`inchworm serve` runs it.")


@jobs.command()
@click.argument("job")
@click.option("--every", metavar="DURATION", help="How often, such as 30m, 6h or 7d.")
@click.option("--after", metavar="JOB", help="Run whenever this other job has completed, and no longer by the clock.")
@click.option("--once", is_flag=True, default=None, help="Run once more, now, and no longer by the clock or a job.")
@click.option("--enable/--disable", "enabled", default=None, help="Go by the clock, or only when somebody runs it.")
@click.option("--fixed/--adaptive", default=None, help="Keep the interval, or double it while nothing changes.")
@click.option("--max-retries", "retries", type=int, help="Try again so often after a failure.")
@click.option("--backoff", type=int, default=None, metavar="SECONDS", help="Wait so long before the first retry.")
@json_flag
def change(job: str, as_json: bool, **values: Any) -> None:
    """Change when a job runs, and how often it is tried."""
    every, after, once, fixed = (values[name] for name in ("every", "after", "once", "fixed"))
    if sum(map(bool, (every, after, once))) > 1:
        raise WrongUse("--every, --after and --once do not go together.", "Give one of them.")
    if all(value is None for value in values.values()):
        raise WrongUse("Nothing is to change.", "`inchworm jobs change --help` lists what can.")
    count, unit = _interval(every) if every else (None, None)
    with opened() as app:
        wanted = WantedJob(
            interval_minutes=count,
            interval_type=unit,
            schedule_enabled=values["enabled"],
            adaptive_scheduling=None if fixed is None else not fixed,
            max_retries=values["retries"],
            retry_backoff_seconds=values["backoff"],
            after_job_id=_full(app, after) if after else None,
        )
        made = app.schedule.change(_full(app, job), wanted, _cleared(every, after, bool(once)))
    print_json(made) if as_json else _say(made)


def _cleared(every: str | None, after: str | None, once: bool) -> frozenset[str]:
    """A job goes by the clock or after another one: whoever names one takes the other away."""
    names = {"interval_minutes": once or after, "after_job_id": once or every}
    return frozenset(name for name, is_cleared in names.items() if is_cleared)


@jobs.command()
@click.argument("job")
@json_flag
def show(job: str, as_json: bool) -> None:
    """Everything about one job."""
    with opened() as app:
        job_id = _full(app, job)
        found = {**json_object(app.jobs.one(job_id).line), "stats": json_object(app.jobs.stats(job_id))}
    if as_json:
        print_json(found)
    else:
        display.settings_table({name: value for name, value in found.items() if value not in (None, {}, "")})


def _add_action(action: Action) -> None:
    @jobs.command(action.command, help=states.HELP[action])
    @click.argument("job")
    @json_flag
    def act(job: str, as_json: bool) -> None:
        with opened() as app:
            found = app.schedule.act(_full(app, job), action)
        print_json(found) if as_json else _say(found)


def _say(job: JobLine) -> None:
    when = f", next run {job.next_run_at}" if job.next_run_at else ""
    paragraph(f"Job {job.id} is {job.status}{when}.")


for _action in Action:
    _add_action(_action)


@jobs.command()
@click.argument("job")
def delete(job: str) -> None:
    """Remove a job and the history of its executions. What it crawled stays."""
    with opened() as app:
        job_id = _full(app, job)
        app.schedule.delete(job_id)
    say(f"Job {job_id} is gone.")


@jobs.command()
@click.argument("job")
@click.option("--limit", type=int, default=20, show_default=True)
@json_flag
def executions(job: str, limit: int, as_json: bool) -> None:
    """What a job has done so far, newest first."""
    with opened() as app:
        listed = app.executions.listed(_full(app, job), None, limit)
    if as_json:
        print_json(listed)
    elif not listed:
        say("It has not run yet.")
    else:
        table(_EXECUTION_COLUMNS, [_execution_row(one) for one in listed])


@jobs.command()
@click.argument("job")
@click.option("--execution", type=int, default=None, help="Of this execution. [default: the last one]")
@click.option("--follow", "-f", is_flag=True, help="Go on as it is written, to its end.")
@json_flag
def logs(job: str, execution: int | None, follow: bool, as_json: bool) -> None:
    """The log of an execution."""
    with opened() as app:
        found = app.executions.of_job(_full(app, job), execution)
        for line in app.executions.log(found.execution_id, follow):
            if as_json:
                print_json(line._asdict())
            else:
                say(f"{iso(line.at_ms)} {line.level:<7} {line.text}")


@jobs.command()
@json_flag
def sync(as_json: bool) -> None:
    """Make a job for every enabled crawl that has none, and pause the jobs of the disabled ones."""
    with opened() as app:
        done = app.schedule.sync()
    if as_json:
        print_json(done)
    else:
        say(", ".join(f"{count:,} {name}" for name, count in json_object(done).items()) + ".")


# All of them together


@jobs.command()
@json_flag
def stats(as_json: bool) -> None:
    """All jobs by their state, and the executions of the last day in numbers."""
    with opened() as app:
        found = app.health.scheduler()
    if as_json:
        print_json(found)
        return
    made = {name: value for name, value in json_object(found.executions).items() if name != "window_hours"}
    display.numbers({f"jobs {state}": count for state, count in found.jobs.items()})
    say("\nexecutions of the last 24 hours")
    display.numbers({**made, "stale_locks_cleared": found.stale_locks_cleared})
    _advise(found.distribution_score)


@jobs.command()
@json_flag
def distribution(as_json: bool) -> None:
    """How jobs are spread over the day, in quarters of an hour (UTC)."""
    with opened() as app:
        found = app.health.distribution()
    if as_json:
        print_json(found)
        return
    table(("starts_at", "jobs"), [(one.starts_at, one.jobs) for one in found.slots if one.jobs])
    say(f"{counted(found.total_jobs, 'job')}, at most {found.fullest:,} in a slot.")
    _advise(found.distribution_score)


@jobs.command()
@click.option("--preview", is_flag=True, help="Only say which jobs would be moved.")
@json_flag
def rebalance(preview: bool, as_json: bool) -> None:
    """Move jobs out of slots of the day that hold more than their share."""
    with opened() as app:
        done = app.dispatch.rebalance(preview)
    if as_json:
        print_json(done)
        return
    if preview and done.moves:
        table(("job_id", "from", "to"), [(one.job_id, one.moved_from, one.to) for one in done.moves[:_SHOWN]])
    verb = "would be moved" if preview else "is moved" if done.moved == 1 else "are moved"
    change = f"{done.score_before} to {done.score_after}"
    say(f"{counted(done.moved, 'job')} {verb}; how evenly they are spread (0 to 1): {change}.")
    if preview and done.moved:
        say("`inchworm jobs rebalance` moves them.")


def _advise(score: float) -> None:
    from inchworm.app.read.health import LOW_SCORE  # only the two commands about the spread need it

    say(f"How evenly they are spread (0 to 1): {score}.")
    if score < LOW_SCORE:
        say("They crowd together: `inchworm jobs rebalance --preview` shows what could be moved.")


@main.command(hidden=True)
@click.argument("execution", type=int)
def execute(execution: int) -> None:
    """Carry out one execution. `inchworm serve` starts this; it is of no use to people."""
    from inchworm.app.act.jobs.execute import TOKEN_VARIABLE  # what crawls need, and lists do not

    token = os.environ.pop(TOKEN_VARIABLE, "")
    if not token:
        raise WrongUse("Executions are started by the service.", "`inchworm serve` runs jobs.")
    with opened() as app:
        stale = app.workspace.service_settings().stale_lock
        went_well = run_loop(app.execute.execute(execution, token, stale))
    raise SystemExit(0 if went_well else 1)


def _full(app: App, beginning: str) -> str:
    """The id of the one job that begins like this."""
    found = app.jobs.store.beginning_with(beginning) if beginning else []
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


def _job_row(one: JobLine) -> tuple[object, ...]:
    count, unit = one.interval_minutes, one.interval_type
    every = counted(count, unit.removesuffix("s")) if count else ""
    every = every or (f"after {one.after_job_id[:8]}" if one.after_job_id else "once")
    times = (_minute(one.next_run_at), _minute(one.last_run_at))
    return (one.id[:8], one.status, one.name, every, *times, one.executions, one.reason or "")


def _execution_row(one: ExecutionLine) -> tuple[object, ...]:
    seconds = f"{one.duration_ms / 1000:.1f}" if one.duration_ms is not None else ""
    return (
        str(one.id),
        one.execution_number,
        one.status,
        _minute(one.planned_at),
        one.attempt,
        seconds,
        one.items_crawled,
        one.ended_by or "",
        clip(one.error_message or "", 200),
    )


def _minute(text: str | None) -> str:
    return (text or "")[:16].replace("T", " ")
