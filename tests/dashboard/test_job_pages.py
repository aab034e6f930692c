"""The pages about jobs: the list, one job, one execution with its log, the day; and what can be done with them."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.in_process import Api, serving

from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.act.plan import Start, over_http
from inchworm.app.read.jobs import JobDetail, JobLine, RepetitionLine
from inchworm.errors import Unknown
from inchworm.job import Execution, JobFilter, JobRepetition, Task
from inchworm.rules.schedule.occurrence import Ended, after_failure, after_success
from inchworm.rules.schedule.timetable import SLOT_MS
from inchworm.service.dashboard.frame import SAID
from inchworm.service.dashboard.jobs import ROWS, ShownJobs, execution_parts, jobs_parts, rhythm, span
from inchworm.store.home.logs import LogLine

AT = "http://inchworm.test"
EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("home"), jobs=False) as made:
        yield made


@pytest.fixture
def crawl(api: Api, request: pytest.FixtureRequest) -> str:
    """A crawl of its own for each test."""
    return api.make(f"http://{abs(hash(request.node.name))}.example/")


def get(api: Api, path: str, status: int = 200) -> str:
    answer = api.request("GET", AT + path)
    assert answer.status_code == status, (path, answer.status_code, answer.text[-2000:])
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def post(api: Api, path: str, **fields: str) -> httpx.Response:
    return api.request("POST", AT + path, data={"key": "", **fields})


def said(answer: httpx.Response) -> tuple[str, str, bool]:
    """Where one is sent, what is said there, and whether it is bad news."""
    assert answer.status_code == 303, answer.text[-2000:]
    text, _, is_bad = json.loads(base64.urlsafe_b64decode(answer.cookies[SAID].partition(".")[0]))
    return answer.headers["location"], text, is_bad


def add(api: Api, crawl: str, **wanted: object) -> str:
    return str(api.app.schedule.add(WantedJob(source_id=crawl, **wanted)).id)  # type: ignore[arg-type]


def hourly(api: Api, crawl: str, **wanted: object) -> str:
    return add(api, crawl, **{"interval_minutes": 6, "interval_type": "hours", **wanted})


def claimed(api: Api, job_id: str) -> Execution:
    """An execution of a job that runs, in nobody's process."""
    if api.app.jobs.one(job_id).line.status == "scheduled":
        api.app.schedule.run(job_id)
    for one in api.app.dispatch.claims.claim("service", api.app.clock.now_ms(), 1000):
        if one.job_id == job_id:
            return one
    raise AssertionError("it was not due")


def ended(api: Api, one: Execution, ended: Ended) -> None:
    now_ms = api.app.clock.now_ms()
    if ended.error:
        api.app.dispatch.claims.finish(
            one.execution_id, one.token, ended, lambda job: after_failure(job, ended.error, now_ms), now_ms
        )
    else:
        api.app.dispatch.claims.finish(
            one.execution_id, one.token, ended, lambda job: after_success(job, ended, now_ms), now_ms
        )


def row(page: str, job_id: str) -> str:
    """The row of a job in the list."""
    rows: list[str] = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    return next(one for one in rows if f"/jobs/{job_id}" in one)


def actions(html: str) -> set[str]:
    return set(re.findall(r'formaction="/jobs/\w+/(\w+)"', html))


def listed(api: Api, path: str) -> list[str]:
    """The jobs on all pages of a list."""
    seen: list[str] = []
    while True:
        page = get(api, path)
        seen += re.findall(r'href="/jobs/(\w{32})">job', page)
        more = re.search(r'href="([^"]*)" rel="next"', page)
        if more is None:
            return seen
        path = more[1].replace("&amp;", "&")


class TestTheList:
    def test_no_job_yet(self, tmp_path: Path) -> None:
        with serving(tmp_path / "empty", jobs=False) as api:
            page = get(api, "/jobs")
        assert "There is no job yet" in page
        assert re.search(r'<details [^>]*id="add-job" open>', page), "what to do next is at hand"

    def test_a_job_with_its_rhythm_and_what_can_be_done(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        found = row(get(api, f"/jobs?crawl={crawl}"), job_id)
        assert f'href="/crawls/{crawl}"' in found
        assert "every 6 h" in found and "0 of 3" in found
        assert actions(found) == {"run", "pause", "cancel", "delete"}

    @pytest.mark.parametrize(
        ("state", "possible"),
        [
            ("paused", {"resume", "cancel", "delete"}),
            ("cancelled", {"delete"}),
            ("failed", {"retry", "delete"}),
            ("running", {"cancel"}),
        ],
    )
    def test_each_state_has_its_tab_and_its_actions(self, api: Api, crawl: str, state: str, possible: set[str]) -> None:
        job_id = hourly(api, crawl, max_retries=0)
        if state == "paused":
            api.app.schedule.pause(job_id)
        elif state == "cancelled":
            api.app.schedule.cancel(job_id)
        else:
            execution = claimed(api, job_id)
            if state == "failed":
                ended(api, execution, Ended(error=f"the site is gone {EVIL}"))
        page = get(api, f"/jobs?status={state}")
        assert re.search(rf'href="/jobs\?status={state}" aria-current="page">{state} <small>[1-9]', page)
        found = row(page, job_id)
        assert actions(found) == possible
        if state == "failed":
            assert "the site is gone &lt;script&gt;" in found and EVIL not in page
        if state == "running":
            assert f"/executions/{execution.execution_id}" in found

    def test_what_is_overdue_says_so(self, api: Api, crawl: str) -> None:
        job_id = add(api, crawl)
        late = api.app.clock.now_ms() - 3_600_000
        change_due(api, job_id, late)
        assert "overdue" in row(get(api, f"/jobs?crawl={crawl}"), job_id)

    def test_one_whose_crawl_is_busy_is_not_overdue(self, api: Api, crawl: str) -> None:
        claimed(api, hourly(api, crawl))
        job_id = add(api, crawl)
        change_due(api, job_id, api.app.clock.now_ms() - 3_600_000)
        found = row(get(api, f"/jobs?crawl={crawl}"), job_id)
        assert "until its crawl is free" in found and "overdue" not in found

    def test_names_are_only_text(self, api: Api) -> None:
        made = api.app.plan.find_or_make(Start(("http://evil.example/",), caller=over_http(True), name=EVIL))
        job_id = hourly(api, made.crawl_id)
        for path in ("/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/edit", "/jobs/day"):
            page = get(api, path)
            assert "<script>alert" not in page, path

    def test_all_pages_of_the_list_together_are_the_list(self, tmp_path: Path) -> None:
        with serving(tmp_path / "many", jobs=False) as api:
            crawl = api.make("http://many.example/")
            made = [hourly(api, crawl) for _ in range(2 * ROWS + 3)]
            assert sorted(listed(api, "/jobs?order=made")) == sorted(made)
            due = {one.job_id: (one.due_ms, one.job_id) for one in api.app.jobs.store.find(JobFilter(), None, 1000)}
            assert listed(api, "/jobs") == sorted(made, key=due.__getitem__)

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/jobs?status=asleep", 422),
            ("/jobs?cursor=%%%", 400),
            ("/jobs?slot=96", 422),
            ("/jobs?cursor=WyJ4Il0", 400),
        ],
    )
    def test_what_makes_no_sense_is_refused_on_a_page(self, api: Api, path: str, status: int) -> None:
        assert 'role="alert"' in get(api, path, status)

    def test_of_a_crawl_that_is_not_there(self, api: Api) -> None:
        page = get(api, "/jobs?crawl=%3Cb%3E")
        assert "which is not there" in page and "No job is here now" in page and "<b>," not in page

    def test_an_open_page_watches_what_it_shows(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        page = get(api, f"/jobs?crawl={crawl}")
        name = re.search(r'data-view="jobs:([^"]*)"', page)
        assert name
        parts = jobs_parts(api.app, name[1].replace("&amp;", "&"))
        assert set(parts) == {"job-tabs", "job-rows"}
        assert job_id in parts["job-rows"] and 'name="key"' not in parts["job-rows"]

    @pytest.mark.parametrize(
        "name", ["", "status=%00", "slot=x&place=-1", "place=" + "9" * 40, "slot=999999999999999", "&&=="]
    )
    def test_a_view_that_somebody_made_up_does_no_harm(self, api: Api, name: str) -> None:
        assert jobs_parts(api.app, name)

    def test_a_view_is_named_after_what_it_shows(self) -> None:
        which = ShownJobs("failed", "c 1&x", 7, "made", (123, "abc"))
        assert ShownJobs.named(which.name) == which
        assert ShownJobs.named("") == ShownJobs()


def change_due(api: Api, job_id: str, due_ms: int) -> None:
    api.app.jobs.store.change(job_id, lambda job: dataclasses.replace(job, due_ms=due_ms, occurrence_ms=due_ms), due_ms)


class TestAdding:
    def test_a_job_for_a_crawl_by_its_name(self, api: Api, crawl: str) -> None:
        name = api.app.workspace.find(crawl).name
        to, text, is_bad = said(
            post(api, "/jobs", target=name, every="90", unit="minutes", mode="full", adaptive="yes")
        )
        assert not is_bad and name in text
        made = api.app.jobs.one(to.rpartition("/")[2])
        assert (made.line.crawl_id, made.line.interval_minutes, made.line.interval_type) == (crawl, 90, "minutes")
        assert made.line.task.mode == "full" and made.line.adaptive_scheduling

    def test_a_job_for_a_site_that_nobody_crawled_yet(self, api: Api) -> None:
        to, _, _ = said(post(api, "/jobs", target="https://fresh.example/docs", every="1", unit="days"))
        made = api.app.jobs.one(to.rpartition("/")[2])
        assert made.line.url == "https://fresh.example/docs" and not made.line.adaptive_scheduling

    @pytest.mark.parametrize(
        "fields",
        [
            {"target": "nothing at all", "every": "2", "unit": "hours"},
            {"target": "https://x.example/", "every": "two", "unit": "hours"},
            {"target": "https://x.example/", "every": "0", "unit": "hours"},
            {"target": "https://x.example/", "every": "2", "unit": "moons"},
            {"target": "https://x.example/", "every": "9" * 15, "unit": "days"},
            {"target": "https://x.example/", "mode": "sideways"},
            {"target": "https://user:pass@x.example/"},
            {"target": f"no name {EVIL}"},
        ],
    )
    def test_what_is_wrong_is_said_and_the_input_is_kept(self, api: Api, fields: dict[str, str]) -> None:
        answer = post(api, "/jobs", **fields)
        assert answer.status_code == 422 and 'role="alert"' in answer.text
        kept = re.search(r'name="target"[^>]*value="([^"]*)"', answer.text)
        assert kept and "<script>" not in kept[1]
        assert kept[1].startswith(fields["target"][:4].replace("<", "&lt;"))


class TestSteering:
    def test_pause_resume_run_cancel_delete(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        for act, state in (("pause", "paused"), ("resume", "scheduled"), ("run", "scheduled"), ("cancel", "cancelled")):
            to, _, is_bad = said(post(api, f"/jobs/{job_id}/{act}", back="/jobs?status=scheduled"))
            assert to == "/jobs?status=scheduled" and not is_bad
            assert api.app.jobs.one(job_id).line.status == state
        to, text, _ = said(post(api, f"/jobs/{job_id}/delete", back=f"/jobs/{job_id}"))
        assert to == "/jobs" and "stays" in text, "the page of the job is gone"
        get(api, f"/jobs/{job_id}", 404)

    def test_a_failed_job_is_tried_again(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl, max_retries=0)
        ended(api, claimed(api, job_id), Ended(error="gone"))
        to, _, _ = said(post(api, f"/jobs/{job_id}/retry"))
        assert to == f"/jobs/{job_id}" and api.app.jobs.one(job_id).line.status == "pending"

    def test_one_goes_back_to_the_list_one_came_from(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        to, _, _ = said(post(api, f"/jobs/{job_id}/delete", back=f"/jobs?crawl={crawl}"))
        assert to == f"/jobs?crawl={crawl}"

    def test_what_is_not_possible_now_is_said_where_one_was(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        to, text, is_bad = said(post(api, f"/jobs/{job_id}/retry", back="/jobs"))
        assert (to, is_bad) == ("/jobs", True) and "cannot be changed by retry" in text
        answer = post(api, f"/jobs/{job_id}/resume")
        assert answer.status_code == 409 and "cannot be changed by resume" in answer.text

    def test_a_job_that_runs_is_not_deleted(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        claimed(api, job_id)
        _, text, is_bad = said(post(api, f"/jobs/{job_id}/delete", back="/jobs"))
        assert is_bad and "running" in text

    @pytest.mark.parametrize("path", ["/jobs/nobody/pause", "/jobs/nobody/delete", "/jobs/nobody/edit"])
    def test_of_a_job_that_is_not_there(self, api: Api, path: str) -> None:
        assert post(api, path).status_code == 404

    def test_an_action_that_there_is_not(self, api: Api, crawl: str) -> None:
        assert post(api, f"/jobs/{hourly(api, crawl)}/explode").status_code == 422

    def test_looking_changes_nothing(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        for act in ("pause", "delete", "run"):
            assert api.request("GET", f"{AT}/jobs/{job_id}/{act}").status_code == 405
        assert api.app.jobs.one(job_id).line.status == "scheduled"


class TestOneJob:
    def test_facts_figures_and_executions(self, api: Api, crawl: str) -> None:
        job_id = hourly(
            api,
            crawl,
            task=Task(mode="incremental", settings={"budget": 7}),
            repeated=JobRepetition(max_iterations=5, notify=("https://hooks.example/secret",), notify_on="completion"),
            metadata={"who": EVIL},
        )
        follower = add(api, api.make("http://follower.example/"), after_job_id=job_id)
        ended(api, claimed(api, job_id), Ended("finished", pages=12, changed=False, cpu_ms=1500, memory_kb=2048))
        ended(api, claimed(api, job_id), Ended(error=f"the site fell over {EVIL}"))
        page = get(api, f"/jobs/{job_id}")
        assert "every 6 h, now 12 h because nothing changed" in page
        assert "ask only for what may have changed" in page and "budget = 7" in page
        assert "ends after 5 runs" in page and "1 others are told of every run" not in page
        assert "1 other is told of every run" in page and "secret" not in page
        assert f'href="/jobs/{follower}"' in page
        assert "50.0 %" in page and "2.0 MB" in page and "1.5s" in page
        assert "the site fell over &lt;script&gt;" in page and "<script>alert" not in page
        assert page.index("no. 2</a>") < page.index("no. 1</a>"), "newest first"
        assert f'href="/jobs/{job_id}"' in get(api, f"/jobs/{follower}"), "what it runs after"

    def test_why_it_is_paused(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        api.app.schedule.set_enabled(crawl, False)
        assert "Its crawl is switched off." in get(api, f"/jobs/{job_id}")

    @pytest.mark.parametrize(("enough", "said"), [("no_changes", "no changes"), ("max_iterations", "as many runs as")])
    def test_why_it_ended(self, api: Api, crawl: str, enough: str, said: str) -> None:
        job_id = hourly(api, crawl)
        ended(api, claimed(api, job_id), Ended("finished", enough=enough))
        assert said in get(api, f"/jobs/{job_id}") and said in get(api, "/jobs?status=completed")

    def test_executions_by_cursor(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        for _ in range(ROWS + 2):
            ended(api, claimed(api, job_id), Ended("finished"))
        first = get(api, f"/jobs/{job_id}")
        more = re.search(r'href="([^"]*)" rel="next"', first)
        assert more and f"no. {ROWS + 2}</a>" in first and "no. 2</a>" not in first
        second = get(api, more[1].replace("&amp;", "&"))
        assert "no. 2</a>" in second and "no. 1</a>" in second and "no. 3</a>" not in second
        assert 'rel="next"' not in second and "From the beginning" in second

    def test_there_is_no_such_job(self, api: Api) -> None:
        page = get(api, "/jobs/%3Cscript%3E", 404)
        assert "There is no job" in page and "<script>'" not in page
        get(api, "/jobs/nobody/edit", 404)


class TestEditing:
    def test_the_form_shows_how_it_is(self, api: Api, crawl: str) -> None:
        page = get(api, f"/jobs/{hourly(api, crawl, adaptive_scheduling=False, max_retries=0)}/edit")
        assert re.search(r'name="every"[^>]*value="6"', page) and "<option selected>hours" in page
        assert re.search(r'name="retries"[^>]*value="0"', page)
        assert re.search(r'name="enabled"[^>]*checked', page) and not re.search(r'name="adaptive"[^>]*checked', page)

    def test_everything_can_be_changed(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        fields = {"every": "2", "unit": "days", "retries": "7", "backoff": "5", "after": "", "enabled": "yes"}
        to, text, _ = said(post(api, f"/jobs/{job_id}/edit", **fields))
        assert to == f"/jobs/{job_id}" and "every 2 days" in text
        job = api.app.jobs.one(job_id)
        assert (job.line.interval_minutes, job.line.interval_type) == (2, "days")
        assert (job.line.max_retries, job.line.retry_backoff_seconds, job.line.adaptive_scheduling) == (7, 5, False)

    def test_from_the_clock_to_another_job(self, api: Api, crawl: str) -> None:
        first, second = hourly(api, crawl), hourly(api, crawl)
        fields = {"every": "", "unit": "hours", "retries": "3", "backoff": "60", "after": first}
        said(post(api, f"/jobs/{second}/edit", **fields))
        job = api.app.jobs.one(second)
        assert job.line.interval_minutes is None and job.line.after_job_id == first and job.line.next_run_at is None

    def test_what_is_wrong_is_said_and_the_input_is_kept(self, api: Api, crawl: str) -> None:
        job_id = hourly(api, crawl)
        for fields in (
            {"every": "6", "after": job_id},
            {"every": "", "after": job_id},
            {"retries": "101"},
            {"every": "x"},
        ):
            answer = post(api, f"/jobs/{job_id}/edit", unit="hours", **fields)
            assert answer.status_code == 422 and 'role="alert"' in answer.text
        assert 'value="x"' in answer.text
        assert api.app.jobs.one(job_id).line.interval_minutes == 6


class TestOneExecution:
    def test_its_log_as_the_script_goes_on_with_it(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        lines = [LogLine(1, 0, "info", "It begins"), LogLine(2, 3_723_000, "warning", f"http_4xx: {EVIL}")]
        api.app.executions.logs.add(execution.execution_id, execution.token, lines)
        page = get(api, f"/executions/{execution.execution_id}")
        assert f'data-log="{execution.execution_id}" data-after="2">' in page
        assert '<li class="info"><span class="at">00:00:00</span> It begins</li>' in page
        assert '<li class="warning"><span class="at">01:02:03</span> http_4xx: &lt;script&gt;' in page
        assert "<script>alert" not in page
        assert f"/api/v1/jobs/{execution.job_id}/logs?execution_id={execution.execution_id}&amp;download=true" in page
        assert actions(page) == {"cancel"}

    def test_of_a_long_log_the_end(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        lines = [LogLine(number, 0, "info", f"line {number}.") for number in range(1, 701)]
        api.app.executions.logs.add(execution.execution_id, execution.token, lines)
        page = get(api, f"/executions/{execution.execution_id}")
        assert page.count("<li class=") == 500 and "line 201." in page and "line 200." not in page
        assert 'data-after="700"' in page and "200 lines before these" in page

    def test_of_long_lines_fewer(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        lines = [LogLine(number, 0, "info", "x" * 2000) for number in range(1, 301)]
        api.app.executions.logs.add(execution.execution_id, execution.token, lines)
        page = get(api, f"/executions/{execution.execution_id}")
        assert 50 <= page.count("<li class=") <= 60 and len(page) < 200_000 and 'data-after="300"' in page

    def test_what_went_wrong_with_the_trace_folded(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        ended(api, execution, Ended(error=f"boom {EVIL}", trace=f"Traceback {EVIL}", ended_by="error"))
        page = get(api, f"/executions/{execution.execution_id}")
        assert "boom &lt;script&gt;" in page and "<script>alert" not in page
        assert re.search(r'<details id="trace"><summary>[^<]*</summary><pre>Traceback', page)
        assert 'data-over="yes"' in page and not actions(page)

    def test_how_far_it_is(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        told = dict.fromkeys(("duplicates", "refused", "requests", "bytes", "seconds", "in_flight"), 3)
        progress = {**told, "known": 1322, "pages": 1234, "failed": 5, "pending": 77}
        api.app.dispatch.claims.report(
            execution.execution_id, execution.token, run=2, session=4, progress=progress, pages=1234
        )
        parts = execution_parts(api.app, str(execution.execution_id))
        assert "1,237 done" in parts["execution-facts"] and "77 pending" in parts["execution-facts"]
        assert f'href="/crawls/{crawl}/runs/2"' in parts["execution-facts"]

    def test_one_that_is_cancelled_says_that_it_ends(self, api: Api, crawl: str) -> None:
        execution = claimed(api, hourly(api, crawl))
        api.app.schedule.cancel(execution.job_id)
        page = get(api, f"/executions/{execution.execution_id}")
        assert "about to end" in page and not actions(page)

    def test_there_is_no_such_execution(self, api: Api) -> None:
        get(api, "/executions/99999999", 404)
        get(api, "/executions/first", 422)
        with pytest.raises(Unknown):
            execution_parts(api.app, "first")


class TestTheDay:
    def test_how_jobs_are_spread_and_moving_them_apart(self, tmp_path: Path) -> None:
        with serving(tmp_path / "day", jobs=False) as api:
            page = get(api, "/jobs/day")
            assert page.count('<li class="heat-0') == 96 and "There is nothing to move" in page
            assert page.count(" now") >= 1 and "No job waits for the clock" in page
            crawl = api.make("http://day.example/")
            jobs = [add(api, crawl, interval_minutes=1, interval_type="days") for _ in range(12)]
            noon = (api.app.clock.now_ms() // SLOT_MS + 40) * SLOT_MS
            for job_id in jobs:
                change_due(api, job_id, noon)
            page = get(api, "/jobs/day")
            assert 'class="heat-4"' in page and "Jobs crowd together" in page
            assert "11 jobs could be moved" in page and "100 % evenly; now it is 0 %" in page
            slot = noon // SLOT_MS % 96
            assert f'href="/jobs?slot={slot}"' in page
            listed = get(api, f"/jobs?slot={slot}")
            assert all(job_id in listed for job_id in jobs)
            assert api.app.health.distribution().fullest == 12, "looking moves nothing"
            to, text, _ = said(post(api, "/jobs/day/rebalance", back="/jobs/day"))
            assert to == "/jobs/day" and "11 jobs were moved" in text
            assert api.app.health.distribution().fullest == 1
            _, text, _ = said(post(api, "/jobs/day/rebalance"))
            assert text == "There was nothing to move."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(60, "1 min"), (5400, "1 h 30 min"), (86_400, "1 day"), (604_800, "7 days"), (90_000, "1 day 1 h")],
)
def test_spans(seconds: int, words: str) -> None:
    assert span(seconds) == words


def told(base_seconds: int | None = 3600, **values: object) -> str:
    usual = {"current_interval_seconds": base_seconds, "schedule_enabled": True}
    nothing = {one.name: None for one in dataclasses.fields(JobLine)}
    line = JobLine(**{**nothing, **usual, **values})  # type: ignore[arg-type]
    return rhythm(JobDetail(line, (0, ""), base_seconds, None, False, False, ()))


def test_rhythms() -> None:
    assert told() == "every 1 h"
    assert told(current_interval_seconds=7200) == "every 1 h, now 2 h because nothing changed"
    assert told(schedule_enabled=False) == "every 1 h, but its schedule is switched off"
    assert told(None) == "once"
    assert told(None, after_job_id="x") == "after another job"
    assert told(None, repetition=None) == "once"
    assert told(None, repetition=RepetitionLine(None, False, 0, "", (), False)) == "whenever somebody starts it"
