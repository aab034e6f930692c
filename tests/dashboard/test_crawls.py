"""The pages about crawls: the list, one crawl with its runs, its settings, its schedule, and what can be done there."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from tests.flow.crawling import page
from tests.service.in_process import VALUES, Api, HeldPages, serving, wait_for

from inchworm.app.act.configure import Configuration
from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.read.runs import RunSize
from inchworm.job import JobFilter, Task
from inchworm.model import CrawlInfo
from inchworm.service.api.settings import LOCAL
from inchworm.service.dashboard.charts.growth import growth
from inchworm.service.dashboard.configuring import GROUPS, ON_PAGE
from inchworm.testing import Page, Served, Site

EVIL = "<script>alert(1)</script>\"'&"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Pages(HeldPages):
    """A start page, four others, and one that is not there."""

    def __init__(self) -> None:
        names = [f"/p{number}" for number in range(4)]
        super().__init__({"/": page("start", *names, "/gone"), **{name: page(name, "/") for name in names}})
        self["/gone"] = Page("not here", status=404)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


@pytest.fixture(scope="module")
def served(pages: Pages) -> Iterator[Served]:
    with Site(pages).serve() as made:
        yield made


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def done(api: Api, served: Served) -> str:
    """A crawl with a baseline and a second run, in which one URL failed."""
    crawl_id = api.crawled(served.url("/?done"))
    api.run_once(crawl_id, Task("recrawl"))
    return crawl_id


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The pages of an empty home, in which nobody runs what they start."""
    with serving(tmp_path_factory.mktemp("alone"), jobs=False) as made:
        yield made


def get(api: Api, path: str, status: int = 200) -> str:
    answer = api.request("GET", f"http://inchworm.test{path}")
    assert answer.status_code == status, answer.text[:3000]
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def post(api: Api, path: str, fields: Mapping[str, str] | None = None) -> httpx.Response:
    body = urlencode(dict(fields or {}))
    return api.request("POST", f"http://inchworm.test{path}", content=body, headers=FORM)


def do(api: Api, path: str, **fields: str) -> str:
    """Press a button, and read the page that follows."""
    answer = post(api, path, fields)
    assert answer.status_code == 303, answer.text[:3000]
    return get(api, answer.headers["location"])


def said(text: str) -> str:
    found = re.search(r'<p class="said[^>]*>(.*?)</p>', text, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", found[1])) if found else ""


def values_of(text: str) -> dict[str, str]:
    """The form of a page as a browser would send it, unchanged."""
    form = text[text.index('<form method="post" action="/crawls/') :]
    found = {
        html.unescape(name): html.unescape(value)
        for name, value in re.findall(r'<input[^>]* name="([^"]+)" [^>]*value="([^"]*)"', _without_unchecked(form))
    }
    for name, inner in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form):
        chosen = re.search(r"<option(?: value=\"([^\"]*)\")? selected>([^<]*)", inner)
        found[name] = html.unescape((chosen[1] if chosen[1] is not None else chosen[2]) if chosen else "")
    for name, inner in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        found[name] = html.unescape(inner)
    return found


def _without_unchecked(form: str) -> str:
    return re.sub(r'<input type="checkbox"(?![^>]*checked)[^>]*>', "", form)


def found_crawl(api: Api, crawl_id: str) -> CrawlInfo:
    return api.app.workspace.find(crawl_id)


# The list


def test_an_empty_home_says_what_to_do_next(alone: Api) -> None:
    text = get(alone, "/crawls")
    assert "There is no crawl yet" in text
    assert 'action="/start"' in text


def test_crawls_are_listed_newest_first_page_by_page_and_found_by_name(tmp_path: Path) -> None:
    with serving(tmp_path, jobs=False) as api:
        ids = [api.make(f"http://example.com/{number}") for number in range(53)]
        first = get(api, "/crawls")
        more = html.unescape(re.findall(r'href="(/crawls\?cursor=[^"]+)"', first)[0])
        second = get(api, more)
        shown = [re.findall(r'<a href="/crawls/([0-9a-f]{10})">', text) for text in (first, second)]
        assert len(shown[0]) == 50
        assert sorted(shown[0] + shown[1]) == sorted(ids)
        assert "From the beginning" in second and 'rel="next"' not in second
        assert re.findall(r'<a href="/crawls/([0-9a-f]{10})">', get(api, "/crawls?text=COM/52")) == [ids[52]]
        assert "No crawl has that" in get(api, "/crawls?text=nothing+of+the+kind")


def test_a_cursor_of_somebody_else_is_refused(alone: Api) -> None:
    assert "not one of ours" in get(alone, "/crawls?cursor=WzFd", 400)
    assert get(alone, f"/crawls?text={'x' * 201}", 422)


def test_the_list_shows_how_the_last_run_went(api: Api, done: str) -> None:
    text = get(api, "/crawls")
    row = text[text.index(f'"/crawls/{done}"') :].split("</tr>")[0]
    assert "completed" in row and f"/crawls/{done}/runs/1" in row
    assert 'data-label="Pages">5<' in row and 'data-label="Failed">1<' in row
    assert "fill-unchanged" in row and "<small>nothing</small>" in row


# One crawl


def test_a_crawl_that_has_not_started_can_be(api: Api, served: Served) -> None:
    crawl_id = api.make(served.url("/?new"))
    text = get(api, f"/crawls/{crawl_id}")
    assert "Not started yet" in text and f'formaction="/crawls/{crawl_id}/start"' in text
    assert "No run yet" in text and "No job has worked" in text
    text = do(api, f"/crawls/{crawl_id}/start")
    assert "Run 0 has begun." in said(text)
    assert f"/crawls/{crawl_id}/runs/0" in text
    wait_for(lambda: "Crawl again now" in get(api, f"/crawls/{crawl_id}"), "the run to end")


def test_a_crawl_shows_its_runs_and_links_to_all_about_it(api: Api, done: str, served: Served) -> None:
    text = get(api, f"/crawls/{done}")
    for to in ("", "/pages", "/tree", "/compare", "/checkpoints", "/settings", "/schedule"):
        assert f'href="/crawls/{done}{to}"' in text
    assert re.findall(rf'<th scope="row"><a href="/crawls/{done}/runs/(\d)"', text) == ["1", "0"]
    assert "6 pages</span>" in text and "6 unchanged" in text
    assert f'href="{served.url("/?done")}" rel="noreferrer noopener"' in text
    assert 'aria-label="From 5 pages in run 0 to 5 in run 1"' in text
    assert "style=" not in text and "<script>" not in text


def test_a_crawl_that_is_not_there(api: Api) -> None:
    for path in ("", "/settings", "/schedule"):
        assert "There is no crawl" in get(api, f"/crawls/0123456789{path}", 404)
    assert post(api, "/crawls/0123456789/pause").status_code == 404


def test_names_addresses_and_alarms_are_escaped(tmp_path: Path, served: Served) -> None:
    with serving(tmp_path) as api:
        crawl_id = api.crawled(served.url("/?evil"))
        api.app.workspace.crawls.change(crawl_id, name=EVIL)
        with closing(sqlite3.connect(tmp_path / "crawls" / crawl_id / "crawl.db")) as db, db:
            db.execute("UPDATE run SET alarm = ?", (EVIL,))
        for path in ("/crawls", f"/crawls/{crawl_id}", f"/crawls/{crawl_id}/settings", f"/crawls/{crawl_id}/schedule"):
            text = get(api, path)
            assert "<script>alert" not in text and "&lt;script&gt;" in text


def test_only_web_addresses_become_links(alone: Api) -> None:
    crawl_id = alone.make("example.org/x")
    assert 'href="https://example.org/x"' in get(alone, f"/crawls/{crawl_id}")


def test_a_crawl_that_cannot_be_read_says_so_and_can_be_deleted(tmp_path: Path) -> None:
    with serving(tmp_path, jobs=False) as api:
        crawl_id = api.make("http://example.com/broken")
        folder = tmp_path / "crawls" / crawl_id
        folder.mkdir(parents=True)
        (folder / "crawl.db").write_bytes(b"no database" * 1000)
        text = get(api, f"/crawls/{crawl_id}")
        assert "cannot be read" in text and "/delete" in text and f"{crawl_id}/start" not in text


def test_many_runs_are_shown_by_cursor_and_in_one_chart(tmp_path: Path, served: Served) -> None:
    with serving(tmp_path) as api:
        crawl_id = api.crawled(served.url("/?many"))
        _multiply(tmp_path / "crawls" / crawl_id / "crawl.db", 299)
        text = get(api, f"/crawls/{crawl_id}")
        assert len(re.findall(r'<th scope="row">', text)) == 30
        more = html.unescape(re.findall(r'href="([^"]+)" rel="next"', text)[0])
        older = get(api, more)
        assert re.findall(r'<th scope="row"><a href="[^"]+/runs/(\d+)"', older)[0] == "269"
        assert 'id="runs"' not in older, "what is older must not be replaced by what is newest"
        assert len(text) < 100_000


def _multiply(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(run)")]
        last = dict(zip(names, db.execute("SELECT * FROM run").fetchone(), strict=True))
        for number in range(1, count + 1):
            row = {**last, "run_id": last["run_id"] + number, "number": number, "mode": "incremental", "parent": 0}
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT INTO run ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def size(run: int, pages: int, is_complete: bool = True) -> RunSize:
    return RunSize(run, "2023-11-14T22:13:20.000Z", pages, is_complete)


def test_the_chart_copes_with_few_and_many_runs() -> None:
    assert growth([]) is None
    for count in (1, 2, 3, 300, 9000):
        chart = growth([size(number, number * 10) for number in range(count)])
        assert chart is not None
        assert chart.dots[-1].run == count - 1 and len(chart.dots) <= 200
        assert all(0 <= dot.x <= 100 and 0 <= dot.y <= 100 for dot in chart.dots)
        assert chart.top >= max(dot.pages for dot in chart.dots)
    nothing = growth([size(0, 0, False)])
    assert nothing is not None and nothing.top == 2 and nothing.dots[0].y == 100
    broken_off = growth([size(0, 90), size(1, 3, False)])
    assert broken_off is not None and [dot.run for dot in broken_off.dots] == [0]


# What can be done to a crawl


def test_a_run_is_paused_resumed_and_cancelled(api: Api, pages: Pages, served: Served) -> None:
    pages["/way/slow"] = page("slow")
    pages.hold("/way/slow")
    pages["/way/"] = page("way", "/way/slow")
    crawl_id = api.make(served.url("/way/"))
    at = f"/crawls/{crawl_id}"
    text = do(api, f"{at}/start")
    assert f'formaction="{at}/pause"' in text and "in progress" in text
    assert f"{at}/delete" not in text
    refused = do(api, f"{at}/start", back=at)
    assert "is being worked on" in said(refused)
    assert "paused" in said(do(api, f"{at}/pause", back=at))
    text = get(api, at)
    assert "It was paused on request." in text and f'formaction="{at}/resume"' in text
    assert "nothing running to pause" in said(do(api, f"{at}/pause", back=at))
    assert "session 2" in said(do(api, f"{at}/resume"))
    assert "once more" in said(do(api, f"{at}/cancel", back=at))
    assert "cancelled" in said(do(api, f"{at}/cancel", sure="yes"))
    pages.is_open = True


def test_a_complete_crawl_is_crawled_again_and_started_over(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/p2"))
    at = f"/crawls/{crawl_id}"

    def is_over() -> bool:
        return not api.is_running(crawl_id) and "A job</a> is about" not in get(api, at)

    for number, (path, fields) in enumerate(
        ((f"{at}/start", {"mode": "incremental"}), (f"{at}/start", {"mode": "full"}), (f"{at}/fresh", {"sure": "yes"}))
    ):
        assert f"Run {number + 1} " in said(do(api, path, **fields))
        wait_for(is_over, "the run to end")
    runs = api.app.runs.list(api.app.workspace.find(crawl_id))
    assert [one.mode for one in runs] == [
        "baseline",
        "incremental",
        "full",
        "baseline",
    ]
    assert "mode cannot be" in said(do(api, f"{at}/start", mode="sideways", back=at))
    assert "has no paused run" in said(do(api, f"{at}/resume", back=at))


def test_a_checkpoint_is_made_and_failures_are_tried_again(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/?retry"))
    at = f"/crawls/{crawl_id}"
    assert "Retry 1 failed" in get(api, at)
    assert "is made" in said(do(api, f"{at}/checkpoint"))
    assert "1 URL is tried again. Run 0 " in said(do(api, f"{at}/retry"))
    wait_for(lambda: not api.is_running(crawl_id), "the session to end")
    assert "Nothing that failed" in said(do(api, f"{at}/retry", kind="dns"))


def test_a_site_that_was_not_there_does_not_look_well(api: Api) -> None:
    crawl_id = api.make("http://127.0.0.1:9/gone", max_retries=0)
    job_id = api.app.schedule.add(WantedJob(crawl=api.app.workspace.find(crawl_id), task=Task())).id
    wait_for(
        lambda: api.app.jobs.one(job_id).line.status != "pending" and not api.app.jobs.one(job_id).line.is_locked,
        "a try",
    )
    wait_for(lambda: not api.is_running(crawl_id), "the session to end")
    text = get(api, f"/crawls/{crawl_id}")
    assert "Nothing could be fetched. 127.0.0.1:9: connection refused." in text
    assert 'class="state paused"' in text and 'class="state paused"' in get(api, "/crawls")
    assert "127.0.0.1:9: connection refused" in get(api, "/")


def test_a_crawl_is_turned_off_and_on(api: Api, done: str) -> None:
    text = do(api, f"/crawls/{done}/disable", back=f"/crawls/{done}")
    assert "The crawl is off" in said(text) and f"/crawls/{done}/enable" in text
    assert "This crawl is off" in get(api, f"/crawls/{done}/schedule")
    assert "The crawl is on" in said(do(api, f"/crawls/{done}/enable", back=f"/crawls/{done}"))


def test_a_crawl_is_deleted_when_one_is_sure(api: Api, served: Served) -> None:
    crawl_id = api.crawled(served.url("/?delete"))
    assert "once more" in said(do(api, f"/crawls/{crawl_id}/delete", back=f"/crawls/{crawl_id}"))
    assert "is deleted" in said(do(api, f"/crawls/{crawl_id}/delete", sure="yes"))
    get(api, f"/crawls/{crawl_id}", 404)


def test_looking_starts_nothing(api: Api, done: str) -> None:
    for name in ("start", "resume", "pause", "cancel", "fresh", "checkpoint", "retry", "enable", "delete"):
        assert api.request("GET", f"http://inchworm.test/crawls/{done}/{name}").status_code in (404, 405)


# Settings


def test_every_setting_that_may_be_set_from_afar_is_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(ON_PAGE)
    assert not set(grouped) & set(LOCAL)
    assert {"compare_by", "checkpoint_every", "max_age", "skip_cache"} <= set(GROUPS["Storing and comparing"])


def test_only_what_was_changed_is_saved(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/set", exclude=["*/old/*"])
    at = f"/crawls/{crawl_id}/settings"
    values = values_of(get(alone, at))
    assert values["delay"] == "0" and values["exclude"] == "*/old/*" and values["workers"] == ""
    # Somebody else changes something meanwhile.
    alone.app.configure.change(crawl_id, Configuration(defaults={"max_depth": 7, "delay": 3.0}))
    changed = {"workers": "9", "exclude": "*/a/*\r\n\r\n re:b$ ", "max_age": "1h30m", "robots": "no", "grace": ""}
    text = do(alone, at, **{**values, **changed})
    assert said(text).startswith("Saved: ")
    kept = found_crawl(alone, crawl_id).defaults
    added = {"workers": 9, "exclude": ["*/a/*", "re:b$"], "max_age": 5400.0, "robots": False}
    assert kept == {"delay": 3.0, "max_depth": 7, **added}
    assert values_of(text)["exclude"] == "*/a/*\nre:b$" and values_of(text)["robots"] == "no"
    assert "Nothing was changed." in said(do(alone, at, **values_of(text)))
    assert found_crawl(alone, crawl_id).defaults == kept


def test_the_name_and_the_switches_are_saved(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/named")
    at = f"/crawls/{crawl_id}/settings"
    values = {name: value for name, value in values_of(get(alone, at)).items() if name != "enabled"}
    do(alone, at, **{**values, "name": "another name"})
    found = found_crawl(alone, crawl_id)
    assert (found.name, found.enabled, found.incremental) == ("another name", False, True)


@pytest.mark.parametrize(
    "wrong",
    [{"workers": "0"}, {"delay": EVIL}, {"include": "re:("}, {"order": "best"}, {"name": " "}, {"max_depth": "1.5"}],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(alone: Api, wrong: dict[str, str]) -> None:
    crawl_id = alone.make("http://example.com/wrong")
    at = f"/crawls/{crawl_id}/settings"
    values = {**values_of(get(alone, at)), "timeout": "77", **wrong}
    answer = post(alone, at, values)
    assert answer.status_code in (400, 422) and "Nothing was saved." in answer.text
    assert "<script>alert" not in answer.text
    assert values_of(answer.text)["timeout"] == "77"
    assert "timeout" not in found_crawl(alone, crawl_id).defaults


def test_what_only_the_operator_sets_is_shown_without_secrets_and_not_saved(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/secret", proxies=["http://me:s3cret@proxy.test:8080"])
    at = f"/crawls/{crawl_id}/settings"
    text = get(alone, at)
    assert "s3cret" not in text and "proxy.test" in text
    do(alone, at, **{**values_of(text), "proxies": "http://evil.test", "allow_private": "yes", "workers": "3"})
    assert found_crawl(alone, crawl_id).defaults["proxies"] == ["http://me:s3cret@proxy.test:8080"]
    assert "allow_private" not in found_crawl(alone, crawl_id).defaults


def test_a_form_that_was_tampered_with_does_no_harm(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/tampered")
    at = f"/crawls/{crawl_id}/settings"
    values = values_of(get(alone, at))
    for was in ("", "[]", "{", json.dumps({"texts": [], "name": 1, "enabled": 1, "incremental": 1}), "[" * 100_000):
        assert "Nothing was changed." in said(do(alone, at, **{**values, "was": was}))


# How it is repeated


def scheduled(api: Api, crawl_id: str, **fields: str) -> httpx.Response:
    usual = {"every": "6", "unit": "hours", "rhythm": "fixed", "mode": "incremental", "notify_on": "changes"}
    return post(api, f"/crawls/{crawl_id}/schedule", {**usual, **fields})


def test_a_crawl_is_scheduled_changed_paused_and_left_alone(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/often")
    at = f"/crawls/{crawl_id}/schedule"
    assert "Not scheduled" in get(alone, at)
    assert scheduled(alone, crawl_id, budget="50", max_iterations="9", stop_if_no_changes="yes").status_code == 303
    (job,) = alone.app.jobs.listed(JobFilter(crawl_id=crawl_id))
    assert (job.line.interval_minutes, job.line.interval_type, job.line.adaptive_scheduling) == (6, "hours", False)
    assert job.line.task.settings == {"budget": 50} and job.line.repetition.max_iterations == 9
    text = get(alone, at)
    assert f"/jobs/{job.line.id}" in text and "every 6 hours" in text
    assert 'name="budget" type="text" inputmode="numeric" class="short" value="50"' in text

    scheduled(alone, crawl_id, every="2", unit="days", rhythm="adaptive", mode="full")
    (job,) = alone.app.jobs.listed(JobFilter(crawl_id=crawl_id))
    assert (job.line.interval_minutes, job.line.interval_type, job.line.adaptive_scheduling) == (48, "hours", True)
    assert job.line.task.mode == "full" and job.line.repetition.max_iterations is None
    assert 'value="2"' in get(alone, at)

    assert "paused" in said(do(alone, f"{at}/pause", job=job.line.id, back=at))
    assert "goes on" in said(do(alone, f"{at}/resume", job=job.line.id, back=at))
    assert "once more" in said(do(alone, f"{at}/remove", job=job.line.id, back=at))
    text = do(alone, f"{at}/remove", job=job.line.id, back=at, sure="yes")
    assert "is removed" in said(text) and "Not scheduled" in text


def test_a_job_that_is_there_is_changed_and_keeps_what_it_was_told(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/there")
    crawl = found_crawl(alone, crawl_id)
    made = alone.app.schedule.add(
        WantedJob(crawl=crawl, interval_minutes=30, interval_type="minutes", task=Task(settings={"workers": 2}))
    )
    assert "every 30 minutes" in get(alone, f"/crawls/{crawl_id}/schedule")
    scheduled(alone, crawl_id, every="90", unit="minutes", budget="5")
    (job,) = alone.app.jobs.listed(JobFilter(crawl_id=crawl_id))
    assert job.line.id == made.id and (job.line.interval_minutes, job.line.interval_type) == (90, "minutes")
    assert job.line.task.settings == {"workers": 2, "budget": 5}


def test_a_job_that_follows_another_is_not_made_to_go_by_the_clock(alone: Api) -> None:
    """It has no rhythm that could be changed: the crawl gets a job of its own for that."""
    crawl_id, before = alone.make("http://example.com/followed"), alone.make("http://example.com/before")
    first = alone.app.schedule.add(WantedJob(crawl=found_crawl(alone, before), interval_minutes=30))
    follower = alone.app.schedule.add(WantedJob(crawl=found_crawl(alone, crawl_id), after_job_id=first.id))
    scheduled(alone, crawl_id, every="2", unit="hours")
    jobs = {job.line.id: job.line for job in alone.app.jobs.listed(JobFilter(crawl_id=crawl_id))}
    left = jobs.pop(follower.id)
    assert (left.after_job_id, left.interval_minutes) == (first.id, None)
    (made,) = jobs.values()
    assert (made.interval_minutes, made.interval_type) == (2, "hours")


def test_hooks_are_kept_never_shown_and_forgotten_when_that_is_wanted(alone: Api) -> None:
    crawl_id = alone.make("http://example.com/hooks")
    at = f"/crawls/{crawl_id}/schedule"

    def hooks() -> list[str]:
        (job,) = alone.app.jobs.store.find(JobFilter(crawl_id=crawl_id), None, 2)
        return list(job.repetition.notify)

    scheduled(alone, crawl_id, notify="https://hooks.test/s3cret\nhttps://hooks.test/other", notify_on="completion")
    text = get(alone, at)
    assert "2 web hooks" in text and "s3cret" not in text
    scheduled(alone, crawl_id, every="7")
    assert len(hooks()) == 2
    scheduled(alone, crawl_id, nobody="yes")
    assert hooks() == []
    refused = scheduled(alone, crawl_id, notify="https://hooks.test/s3cret javascript:alert(1)")
    assert refused.status_code == 422 and "s3cret" not in refused.text


def test_hooks_in_the_network_around_us_are_for_its_operator(tmp_path: Path) -> None:
    values = type(VALUES)(poll=0.1)
    with serving(tmp_path, values=values, jobs=False) as api:
        crawl_id = api.make("http://example.com/guarded")
        assert scheduled(api, crawl_id, notify="http://127.0.0.1:9/hook").status_code in (400, 403, 409, 422)
        assert api.app.jobs.listed(JobFilter(crawl_id=crawl_id)) == []


@pytest.mark.parametrize(
    "wrong",
    [{"every": "0"}, {"every": "often"}, {"unit": "years"}, {"max_iterations": "-1"}, {"every": "9" * 15}],
)
def test_a_schedule_that_cannot_be_is_refused(alone: Api, wrong: dict[str, str]) -> None:
    crawl_id = alone.make("http://example.com/never")
    answer = scheduled(alone, crawl_id, **{"budget": "12", **wrong})
    assert answer.status_code == 422 and "Nothing was saved." in answer.text
    assert 'value="12"' in answer.text
    assert alone.app.jobs.listed(JobFilter(crawl_id=crawl_id)) == []


def test_a_job_of_another_crawl_is_not_steered_from_here(alone: Api) -> None:
    mine, other = alone.make("http://example.com/mine"), alone.make("http://example.com/other")
    scheduled(alone, other)
    (job,) = alone.app.jobs.listed(JobFilter(crawl_id=other))
    at = f"/crawls/{mine}/schedule"
    assert "does not repeat this crawl" in said(do(alone, f"{at}/remove", job=job.line.id, sure="yes", back=at))
    assert alone.app.jobs.listed(JobFilter(crawl_id=other))
