"""The pages about health and about notifications."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.in_process import VALUES, Api, serving

from inchworm import __version__
from inchworm.app.act.jobs.change import WantedJob
from inchworm.app.act.plan import Start, over_http
from inchworm.app.root import App
from inchworm.job import Task
from inchworm.rules.schedule.occurrence import Ended, after_failure
from inchworm.rules.schedule.redelivery import DeliveryTry
from inchworm.service.api.health import Health, Problem
from inchworm.service.api.web import Verbs
from inchworm.service.dashboard import status
from inchworm.service.dashboard.frame import SAID
from inchworm.service.dashboard.live import Board
from inchworm.store.home.outbox import OutgoingMessage

AT = "http://inchworm.test"
EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("home"), jobs=False) as made:
        yield made


def get(api: Api, path: str, code: int = 200) -> str:
    answer = api.request("GET", AT + path)
    assert answer.status_code == code, (path, answer.status_code, answer.text[-2000:])
    return answer.text


def said(answer: httpx.Response) -> tuple[str, str, bool]:
    assert answer.status_code == 303, answer.text[-2000:]
    text, _, is_bad = json.loads(base64.urlsafe_b64decode(answer.cookies[SAID].partition(".")[0]))
    return answer.headers["location"], text, is_bad


def health_of(*problems: Problem, is_down: bool = False) -> Health:
    made = Health(VALUES, needs_scheduler=True)
    made.problems, made.is_down = list(problems), is_down
    return made


class TestHealth:
    def test_where_nobody_watches(self, api: Api) -> None:
        page = get(api, "/status")
        assert "Nobody watches over this service" in page and "data-view" not in page
        assert __version__ in page and 'href="/metrics"' in page and 'href="/notifications"' in page
        assert "None runs jobs" in page and "There were none" in page

    def test_all_is_well(self, api: Api) -> None:
        parts = status.parts(api.app, health_of())
        assert "All is well" in parts["health"] and 'data-say="All is well."' in parts["health"]

    def test_what_is_wrong_and_what_to_do_about_it(self, api: Api) -> None:
        problem = Problem("overdue_jobs", 3, f"3 jobs should have been started {EVIL}", "Raise `--executions`.")
        html = status.parts(api.app, health_of(problem))["health"]
        assert "Something is not as it should be" in html and "<code>--executions</code>" in html
        assert "<script>" not in html and 'href="/jobs">Look' in html

    def test_a_database_that_cannot_be_used_does_not_hide_what_is_wrong(self, api: Api) -> None:
        app = App(api.folder)
        app.close()
        parts = status.parts(app, health_of(Problem("database", 1, "The disk is full.", "Make room."), is_down=True))
        assert "The database cannot be used" in parts["health"] and "The disk is full." in parts["health"]
        assert "home.db: Cannot operate on a closed database." in parts["standing"]

    def test_services_and_executions_with_advice(self, tmp_path: Path) -> None:
        with serving(tmp_path / "busy", jobs=False) as api:
            api.app.dispatch.enrol("one", VALUES)
            crawl = api.app.workspace.find(api.make("http://fails.example/"))
            for _ in range(5):
                api.app.schedule.add(WantedJob(crawl=crawl, task=Task()))
                (execution,) = api.app.dispatch.claim("one", 1)
                now_ms = api.app.clock.now_ms()
                api.app.dispatch.claims.finish(
                    execution.execution_id,
                    execution.token,
                    Ended(error="gone"),
                    lambda job: after_failure(job, "gone", now_ms),  # noqa: B023 - called at once
                    now_ms,
                )
            page = get(api, "/status")
        assert "5 failed" in page and "0.0 <small>%" in page
        assert 'href="/jobs?status=failed"' in page and "Many executions fail" in page
        assert "at once, looks every" in page and "None runs jobs" not in page

    def test_an_open_page_is_given_the_health_of_its_service(self, api: Api) -> None:
        health = health_of()
        verbs = Verbs(api.folder, VALUES, lambda: None)
        board = Board(verbs, {"status": status.watching(health)})
        try:
            shown = board.shown("status:")
            assert "All is well" in shown._make()["health"]
            health.problems = [Problem("no_scheduler", 1, "No scheduler runs.", "Start one.")]
            assert "No scheduler runs." in shown._make()["health"]
        finally:
            verbs.close()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A home with 53 messages: the first has arrived, the second is given up, the others wait."""
    with serving(tmp_path_factory.mktemp("told"), jobs=False) as api:
        crawl = api.app.plan.find_or_make(Start(("http://told.example/",), caller=over_http(True), name=f"told {EVIL}"))
        now_ms, outbox = api.app.clock.now_ms(), api.app.notifications.outbox
        with api.app.home.writing() as db:
            body = json.dumps({"summary": EVIL}).encode()
            address = "https://hooks.example/secret-path?token=opensesame"
            outbox.enqueue(
                db,
                [
                    OutgoingMessage(f"e{n}", crawl.crawl_id, address, body, "t", "t", now_ms - 100 + n)
                    for n in range(53)
                ],
            )
        for claimed, result in zip(
            outbox.claim("me", now_ms, 2), (DeliveryTry(200), DeliveryTry(410, f"it answered 410 {EVIL}")), strict=True
        ):
            outbox.record(claimed.delivery_id, "me", result, now_ms)
        yield api


class TestNotifications:
    def test_nobody_was_told_anything(self, api: Api) -> None:
        assert "Nobody was told anything yet" in get(api, "/notifications")
        assert "All notifications" in get(api, "/notifications?state=failed")

    def test_what_was_sent_where_masked(self, told: Api) -> None:
        page = get(told, "/notifications")
        assert "https://hooks.example/…" in page and "opensesame" not in page and "secret-path" not in page
        assert "<script>alert" not in page
        assert page.count('/replay"') == 50 and 'rel="next"' in page

    def test_by_state(self, told: Api) -> None:
        failed = get(told, "/notifications?state=failed")
        assert "it answered 410 &lt;script&gt;" in failed and failed.count('/replay"') == 1
        delivered = get(told, "/notifications?state=delivered")
        assert delivered.count('/replay"') == 1 and "Send again" in delivered
        assert get(told, "/notifications?state=promised", 422)

    def test_all_pages_together_are_the_list(self, told: Api) -> None:
        first = get(told, "/notifications")
        more = re.search(r'href="([^"]*)" rel="next"', first)
        assert more
        second = get(told, more[1].replace("&amp;", "&"))
        seen = re.findall(r'href="/notifications/(\d+)"', first + second)
        assert sorted(map(int, seen)) == list(range(1, 54))
        get(told, "/notifications?cursor=x", 400)

    def test_one_with_its_body_and_every_try(self, told: Api) -> None:
        page = get(told, "/notifications/2")
        assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page
        assert "status 410" in page and "opensesame" not in page
        assert "It arrived." in get(told, "/notifications/1")
        assert "None yet." in get(told, "/notifications/3")
        get(told, "/notifications/99999", 404)

    def test_sending_again(self, told: Api) -> None:
        answer = told.request("POST", f"{AT}/notifications/1/replay", data={"key": "", "back": "/notifications"})
        to, text, is_bad = said(answer)
        assert to == "/notifications" and "https://hooks.example/…" in text and not is_bad
        assert told.app.notifications.one(1).line.state == "waiting"
        answer = told.request("POST", f"{AT}/notifications/99999/replay", data={"key": "", "back": "/notifications"})
        assert said(answer)[2], "there is no such message"
        assert told.request("GET", f"{AT}/notifications/1/replay").status_code == 405

    def test_an_open_page_watches_what_it_shows(self, told: Api) -> None:
        parts = status.notification_parts(told.app, "waiting:40")
        seen = [int(one) for one in re.findall(r'href="/notifications/(\d+)"', parts["deliveries"])]
        assert seen and max(seen) < 40
        assert status.notification_parts(told.app, ":" + "9" * 40)
