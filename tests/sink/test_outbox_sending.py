"""The outbox and those who receive from it: at least once, twice only when an answer was lost, never not at all."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import PATIENCE, Home, wait_until
from tests.sink.test_notify import Hook

from inchworm.app import App
from inchworm.app.act.deliver import AT_ONCE, Sender, secret_of
from inchworm.app.read.notifications import NotificationLine
from inchworm.errors import Unknown, WrongUse
from inchworm.model import CrawlInfo
from inchworm.rules.schedule.redelivery import FEWEST_TRIES, GIVEN_UP_MS
from inchworm.rules.words.json_form import json_form
from inchworm.sink.servers.notify import Message, Notifier, Patience, event_id, signature
from inchworm.store.home.outbox import STALE_MS, OutgoingMessage
from inchworm.testing import ManualClock

SECRET = "a secret that nobody prints"
BODY = b'{"event": "run_completed", "name": "\xc3\xa4"}'
HOUR = 3600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(time.time_ns() // 1_000_000)


@pytest.fixture
def home(tmp_path: Path, clock: ManualClock) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    made.app.workspace.clock = clock
    yield made
    made.app.close()


@pytest.fixture
def app(home: Home) -> App:
    return home.app


@pytest.fixture
def hooks() -> Iterator[list[Hook]]:
    made: list[Hook] = []
    yield made
    for one in made:
        one.close()


def hook(hooks: list[Hook], *statuses: int, **more: Any) -> Hook:
    hooks.append(Hook(*statuses, **more))
    return hooks[-1]


def put(app: App, *addresses: str, name: str = "event", secret_file: str = "") -> None:
    """A message for each address, in the outbox."""
    now_ms = app.clock.now_ms()
    with app.home.writing() as db:
        letters = [
            OutgoingMessage(name, "c1", one, BODY, "title", "text", now_ms, None, secret_file) for one in addresses
        ]
        app.notifications.outbox.enqueue(db, letters)


def deliver(app: App) -> int:
    return asyncio.run(asyncio.wait_for(app.deliver.due("test"), PATIENCE))


def only(app: App) -> NotificationLine:
    (found,) = app.notifications.listed()
    return found


def until_settled(app: App, clock: ManualClock) -> NotificationLine:
    """Deliver whenever something is due, until there is nothing any more."""
    for _ in range(200):
        due_ms = app.notifications.outbox.next_due()
        if due_ms is None:
            return only(app)
        clock.advance(max(0, due_ms - clock.now_ms()) / 1000)
        assert deliver(app) == 1
    raise AssertionError("it never ends")


def test_what_others_named_never_goes_to_a_private_address(app: App, hooks: list[Hook]) -> None:
    inside = hook(hooks)
    now_ms = app.clock.now_ms()
    with app.home.writing() as db:
        letter = OutgoingMessage("event", "c1", inside.url(), BODY, "title", "text", now_ms, allow_private=False)
        app.notifications.outbox.enqueue(db, [letter])
    assert deliver(app) == 1
    assert not inside.got
    assert (only(app).state, only(app).status) == ("waiting", 0)


# It arrives


def test_it_arrives_once(app: App, hooks: list[Hook]) -> None:
    one, two = hook(hooks), hook(hooks, 204)
    put(app, one.url("/XXXX"), two.url())
    assert deliver(app) == 2
    assert deliver(app) == 0
    assert [(got.body, got.headers["X-Inchworm-Delivery"]) for got in one.got + two.got] == [(BODY, "event")] * 2
    assert [(found.state, found.tries, found.status) for found in app.notifications.listed()] == [
        ("delivered", 1, 204),
        ("delivered", 1, 200),
    ]


def test_down_for_an_hour(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    gone = Hook()
    gone.close()
    put(app, gone.url("/XXXX"))
    while clock.monotonic() < HOUR:
        deliver(app)
        found = only(app)
        assert (found.state, found.trouble) == ("waiting", "no connection")
        clock.advance(60)
    assert found.tries > 5
    back = hook(hooks, port=gone.port)
    assert until_settled(app, clock).state == "delivered"
    assert clock.monotonic() < 3 * HOUR
    clock.advance(100 * HOUR)
    assert deliver(app) == 0
    (got,) = back.got
    assert (got.body, got.headers["X-Inchworm-Delivery"]) == (BODY, "event")


def test_down_for_a_day(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks, 503)
    put(app, one.url())
    while clock.monotonic() < 24 * HOUR:
        deliver(app)
        clock.advance(HOUR)
    one.statuses = (200,)
    tries = len(one.got)
    assert until_settled(app, clock).state == "delivered"
    assert len(one.got) == tries + 1


def test_down_for_ever(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks, 500)
    put(app, one.url())
    found = until_settled(app, clock)
    assert (found.state, found.trouble, found.tries) == ("failed", "it answered 500", len(one.got))
    assert GIVEN_UP_MS <= clock.monotonic() * 1000 < GIVEN_UP_MS + HOUR * 1000


def test_an_answer_that_got_lost(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    """The receiver has it and nobody knows: it comes again, and can be told apart by nothing but its times."""
    one = hook(hooks, 0, 200)
    (app.folder / "notify-secret").write_text(f"{SECRET}\n")
    put(app, one.url())
    assert deliver(app) == 1
    assert only(app).state == "waiting"
    assert until_settled(app, clock).state == "delivered"
    first, second = one.got
    assert first.body == second.body == BODY
    assert first.headers["X-Inchworm-Delivery"] == second.headers["X-Inchworm-Delivery"] == "event"
    sooner, later = (int(got.headers["X-Inchworm-Timestamp"]) for got in one.got)
    assert sooner < later == clock.now_ms() // 1000
    for got in one.got:
        made = signature(SECRET.encode(), got.headers["X-Inchworm-Timestamp"], got.body)
        assert got.headers["X-Inchworm-Signature"] == made


# It does not

REFUSALS = {"401": 401, "404": 404, "301": 301, "302": 302, "307": 307, "308": 308}


@pytest.mark.parametrize("status", REFUSALS.values(), ids=REFUSALS)
def test_who_refuses_may_not_be_set_up_yet(app: App, clock: ManualClock, hooks: list[Hook], status: int) -> None:
    other = hook(hooks)
    one = hook(hooks, status, Location=other.url())
    put(app, one.url())
    found = until_settled(app, clock)
    assert (found.state, found.tries, found.status) == ("failed", FEWEST_TRIES, status)
    assert (len(one.got), len(other.got)) == (FEWEST_TRIES, 0), "redirects are not followed"
    assert found.trouble.startswith(f"it answered {status}")


def test_who_has_been_set_up_meanwhile(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks, 404, 404, 401, 200)
    put(app, one.url())
    assert until_settled(app, clock).state == "delivered"
    assert len(one.got) == 4


def test_who_is_gone(app: App, hooks: list[Hook]) -> None:
    one = hook(hooks, 410)
    put(app, one.url())
    deliver(app)
    assert (only(app).state, only(app).next_try_at, len(one.got)) == ("failed", None, 1)


@pytest.mark.parametrize(("said", "seconds"), [("600", 600), ("86400", 3600)])
def test_who_asks_for_quiet(app: App, clock: ManualClock, hooks: list[Hook], said: str, seconds: int) -> None:
    one = hook(hooks, 429, 200, **{"Retry-After": said})
    put(app, one.url())
    deliver(app)
    clock.advance(seconds - 1)
    assert deliver(app) == 0
    clock.advance(1)
    assert deliver(app) == 1
    assert only(app).state == "delivered"


def test_who_is_slow_does_not_hold_up_the_others(app: App, hooks: list[Hook]) -> None:
    slow, quick = hook(hooks), hook(hooks)
    slow.hangs = True
    put(app, slow.url(), quick.url())
    sender = Sender(app.workspace, patience=Patience(one=0.3))
    sent = asyncio.run(sender.send_due("test"))
    assert [one.result.trouble for one in sent] == ["", "no answer in time"]
    assert (len(slow.got), len(quick.got)) == (1, 1)


class Crowded(Hook):
    """Remembers how many were there at the same time."""

    most = 0
    _now = 0

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        with _counting:
            self._now += 1
            self.most = max(self.most, self._now)
        self.ending.wait(0.02)
        with _counting:
            self._now -= 1
        super().answer(request)


_counting = threading.Lock()


def test_many_at_once_but_not_too_many(app: App, hooks: list[Hook]) -> None:
    one = Crowded()
    hooks.append(one)
    for number in range(3 * AT_ONCE):
        put(app, one.url(), name=f"event {number}")
    assert deliver(app) == 3 * AT_ONCE
    assert len({got.headers["X-Inchworm-Delivery"] for got in one.got}) == len(one.got) == 3 * AT_ONCE
    assert 1 < one.most <= AT_ONCE


def test_an_address_that_nobody_understands_any_more(app: App) -> None:
    put(app, "nonsense XXXX", "nosuchthing://XXXX")
    deliver(app)
    found = app.notifications.listed(state="waiting")
    assert len(found) == 2
    assert all(one.trouble for one in found)
    assert "XXXX" not in json.dumps(json_form(found))


# Several senders


def test_two_senders_at_once(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks)
    for number in range(50):
        put(app, one.url(), name=f"event {number}")

    def work() -> None:
        own = App(app.folder, clock)
        deliver(own)
        own.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got.headers["X-Inchworm-Delivery"] for got in one.got) == sorted(f"event {n}" for n in range(50))
    assert {found.state for found in app.notifications.listed()} == {"delivered"}


def test_a_sender_that_is_killed_in_the_middle(home: Home, app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks)
    one.hangs = True
    put(app, one.url())
    with home.running("notifications", "--deliver") as process:
        wait_until(lambda: one.got)
        process.send_signal(signal.SIGKILL)
        process.wait()
    one.hangs = False
    assert deliver(app) == 0, "for all that anybody knows, it is being sent"
    clock.advance(STALE_MS / 1000 + PATIENCE)
    assert deliver(app) == 1
    assert only(app).state == "delivered"
    assert [got.headers["X-Inchworm-Delivery"] for got in one.got] == ["event", "event"]


def test_a_sender_that_dies_before_it_wrote_the_answer_down(
    home: Home, app: App, clock: ManualClock, hooks: list[Hook]
) -> None:
    one = hook(hooks)
    put(app, one.url())
    home.process("notifications", "--deliver", code=-signal.SIGKILL, INCHWORM_FAULT="before_recording")
    assert (only(app).state, only(app).tries, len(one.got)) == ("waiting", 0, 1)
    clock.advance(STALE_MS / 1000 + PATIENCE)
    assert deliver(app) == 1
    assert (only(app).state, only(app).tries) == ("delivered", 1)
    assert [(got.body, got.headers["X-Inchworm-Delivery"]) for got in one.got] == [(BODY, "event")] * 2


def test_a_sender_that_is_stopped_gives_back_what_it_has(app: App, hooks: list[Hook]) -> None:
    one = hook(hooks)
    one.hangs = True
    put(app, one.url())

    async def stop_it() -> None:
        sending = asyncio.ensure_future(app.deliver.due("test"))
        await asyncio.to_thread(wait_until, lambda: one.got)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(asyncio.wait_for(stop_it(), PATIENCE))
    one.hangs = False
    assert deliver(app) == 1
    assert only(app).state == "delivered"


# Names


def test_the_name_of_an_event() -> None:
    first = event_id("c1", 3, 1_700_000_000_000)
    assert first == event_id("c1", 3, 1_700_000_000_000)
    others = [event_id("c2", 3, 1_700_000_000_000), event_id("c1", 4, 1_700_000_000_000), event_id("c1", 3, 1)]
    assert len({first, *others}) == 4


def test_the_time_of_a_try_is_its_own(hooks: list[Hook], clock: ManualClock) -> None:
    one = hook(hooks, 500)
    notifier = Notifier((), b"secret", now_ms=clock.now_ms)
    message = Message("id", BODY, "title", "text")
    for _ in range(2):
        found = asyncio.run(notifier.try_once(one.url(), message))
        assert (found.status, found.trouble, found.retry_after_s) == (500, "it answered 500", None)
        clock.advance(HOUR)
    first, second = (int(got.headers["X-Inchworm-Timestamp"]) for got in one.got)
    assert second - first == HOUR
    assert len({got.headers["X-Inchworm-Signature"] for got in one.got}) == 2


# Secrets


def test_which_secret(app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert secret_of(app.folder) == b""
    monkeypatch.setenv("INCHWORM_NOTIFY_SECRET", "from the environment")
    assert secret_of(app.folder) == b"from the environment"
    (app.folder / "notify-secret").write_text("from the home\n")
    assert secret_of(app.folder) == b"from the home"
    (tmp_path / "file").write_text("from the file")
    assert secret_of(app.folder, tmp_path / "file") == b"from the file"


def test_whoever_sends_it_signs_with_the_secret_it_was_meant_for(
    app: App, clock: ManualClock, hooks: list[Hook], tmp_path: Path
) -> None:
    """It may be changed meanwhile; while it is missing nothing is sent, for that would be refused."""
    one, file = hook(hooks), tmp_path / "secret"
    (app.folder / "notify-secret").write_text("another")
    put(app, one.url(), secret_file=str(file))
    deliver(app)
    assert (only(app).state, one.got) == ("waiting", [])
    assert only(app).trouble == f"{file} cannot be read: No such file or directory"
    file.write_text(SECRET)
    assert until_settled(app, clock).state == "delivered"
    (got,) = one.got
    made = signature(SECRET.encode(), got.headers["X-Inchworm-Timestamp"], got.body)
    assert got.headers["X-Inchworm-Signature"] == made


# The log, and again


def test_the_log(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    app.workspace.crawls.find_or_add(CrawlInfo("c1", "docs", ("https://example.org/",), {}, 1), "key", is_named=True)
    one = hook(hooks, 500, 200)
    put(app, one.url("/XXXX?key=XXXX", user="jo:XXXX@"))
    deliver(app)
    detail = app.notifications.one(only(app).id)
    found = detail.line
    assert (found.crawl, found.crawl_id, found.event_id) == ("docs", "c1", "event")
    assert (found.address, detail.body) == (f"http://127.0.0.1:{one.port}/…", json.loads(BODY))
    assert found.next_try_at is not None
    until_settled(app, clock)
    detail = app.notifications.one(1)
    assert [(one.number, one.status, one.trouble) for one in detail.log] == [
        (1, 500, "it answered 500"),
        (2, 200, ""),
    ]
    assert detail.line.settled_at == detail.log[1].at
    assert app.notifications.listed("docs") == app.notifications.listed() == app.notifications.listed(state="delivered")
    assert app.notifications.listed(after=1) == app.notifications.listed(state="failed") == []
    assert "XXXX" not in json.dumps(json_form(detail))


def test_again(app: App, clock: ManualClock, hooks: list[Hook]) -> None:
    one = hook(hooks)
    put(app, one.url())
    deliver(app)
    clock.advance(1000 * HOUR)
    assert app.deliver.replay(1).line.state == "waiting"
    assert deliver(app) == 1
    first, second = one.got
    assert (first.body, first.headers["X-Inchworm-Delivery"]) == (second.body, second.headers["X-Inchworm-Delivery"])
    assert (only(app).tries, only(app).state) == (2, "delivered")
    clock.advance(31 * 24 * HOUR)
    assert (app.deliver.prune(), app.notifications.listed()) == (1, [])


def test_what_there_is_not(app: App) -> None:
    for verb in (app.notifications.one, app.deliver.replay):
        with pytest.raises(Unknown, match="no notification 7"):
            verb(7)
    with pytest.raises(WrongUse, match="ever 'lost'"):
        app.notifications.listed(state="lost")
    with pytest.raises(Unknown):
        app.notifications.listed("nothing")


# The command line


def test_the_command(home: Home, app: App, hooks: list[Hook]) -> None:
    app.workspace.crawls.find_or_add(CrawlInfo("c1", "docs", ("https://example.org/",), {}, 1), "key", is_named=True)
    one, two = hook(hooks), hook(hooks, 410)
    assert "No notifications" in home.cli("notifications").stdout
    assert home.cli("notifications", "--deliver").stdout == "Nothing is due.\n"
    put(app, one.url("/XXXX"), two.url("/XXXX"), "http://127.0.0.1:1/XXXX")
    done = home.cli("notifications", "docs", "--deliver").stdout
    assert "1 of 3 arrived." in done
    assert "it answered 410" in done
    assert "no connection; next try" in done
    listed = home.cli("notifications").stdout
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith("        ")] == ["ID", "3", "2", "1"]
    assert "docs, http://127.0.0.1:1/…" in listed
    assert all(len(line) <= 80 for line in (done + listed).splitlines())
    assert [found["id"] for found in home.ask("notifications", "--failed")["notifications"]] == [2]
    assert [found["id"] for found in home.ask("notifications", "docs", "--waiting")["notifications"]] == [3]
    assert "--after 3" in home.cli("notifications", "--limit", "1").stdout
    shown = home.cli("notifications", "--show", "2").stdout
    assert "try 1" in shown
    assert '"event": "run_completed"' in shown
    assert home.ask("notifications", "--show", "2")["log"][0]["status"] == 410
    everything = done + listed + shown + json.dumps(home.ask("notifications"))
    assert "XXXX" not in everything


def test_the_command_sends_again(home: Home, app: App, hooks: list[Hook]) -> None:
    one = hook(hooks, 410, 200)
    put(app, one.url())
    assert home.ask("notifications", "--deliver")["tried"][0]["state"] == "failed"
    assert "is due now" in home.cli("notifications", "--replay", "1").stdout
    assert home.ask("notifications", "--waiting")["notifications"][0]["tries"] == 1
    assert home.cli("notifications", "--deliver").stdout.endswith("1 of 1 arrived.\n")
    assert home.ask("notifications", "--replay", "1", "--deliver")["tried"][0]["tries"] == 3
    assert len({(got.body, got.headers["X-Inchworm-Delivery"]) for got in one.got}) == 1


def test_the_command_signs(home: Home, app: App, hooks: list[Hook], tmp_path: Path) -> None:
    one = hook(hooks)
    put(app, one.url())
    (tmp_path / "secret").write_text(SECRET)
    said = home.cli("notifications", "--deliver", "--notify-secret-file", str(tmp_path / "secret"))
    (got,) = one.got
    made = signature(SECRET.encode(), got.headers["X-Inchworm-Timestamp"], got.body)
    assert got.headers["X-Inchworm-Signature"] == made
    assert SECRET not in said.stdout + said.stderr


@pytest.mark.parametrize(
    "options", [("--failed", "--waiting"), ("--show", "9"), ("--replay", "9"), ("nothing",), ("--limit", "0")], ids=str
)
def test_wrong_use(home: Home, options: tuple[str, ...]) -> None:
    assert home.cli("notifications", *options, code=2).stderr
