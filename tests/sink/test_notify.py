"""Notifications as a real web hook receives them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib.util
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.fetch.test_http import KEY_AND_CERTIFICATE

from inchworm.errors import WrongUse
from inchworm.rules.change.groups import ModifiedGroup, Passage
from inchworm.sink.servers.notify import (
    USUAL,
    DeliveryResult,
    Message,
    Notifier,
    Patience,
    event_id,
    masked,
    message,
    read_secret,
    signature,
)

RUN: Mapping[str, Any] = {
    "event": "run_completed",
    "crawl_id": "abc",
    "name": "example.org/docs",
    "run": 3,
    "summary": "Run 3 of example.org/docs: 1 new",
}
AT_MS = 1_800_000_000_999
EVENT = event_id("abc", 3, AT_MS)
AT_ONCE = Patience(waits=(0.0, 0.0))
SECRET = b"a secret that nobody prints"


class Got(NamedTuple):
    """One request as a web hook got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Hook:
    """A web hook on this machine. It answers by the list of statuses, the last one for ever; 0 hangs up."""

    def __init__(self, *statuses: int, port: int = 0, **headers: str) -> None:
        self.got: list[Got] = []
        self.statuses = statuses or (200,)
        self.headers = headers
        self.ending = threading.Event()
        self.hangs = False
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.answer(self)

            def do_GET(self) -> None:
                hook.answer(self)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def url(self, path: str = "/hook", user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}{path}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.got.append(Got(request.command, request.path, dict(request.headers), body))
        if self.hangs:
            self.ending.wait(30)
        status = self.statuses[min(len(self.got), len(self.statuses)) - 1]
        if not status:
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        request.send_response(status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(b"thank you")

    def encrypt(self, certificate: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def close(self) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self.thread.join()


@pytest.fixture
def hooks() -> Iterator[list[Hook]]:
    made: list[Hook] = []
    yield made
    for one in made:
        one.close()


def hook(hooks: list[Hook], *statuses: int, **headers: str) -> Hook:
    hooks.append(Hook(*statuses, **headers))
    return hooks[-1]


def made(**changes: list[str]) -> Message:
    return message(RUN, changes, EVENT)


def signing(*addresses: str) -> Notifier:
    """A notifier whose clock stands still."""
    return Notifier(addresses, SECRET, AT_ONCE, lambda: AT_MS)


def send(notifier: Notifier, sent: Message) -> list[DeliveryResult]:
    return asyncio.run(notifier.send(sent))


# What arrives


def test_a_message_arrives_signed(hooks: list[Hook]) -> None:
    one, sent = hook(hooks), made(new=["https://example.org/docs/ä"], modified=[], deleted=["https://example.org/b"])
    assert send(signing(one.url()), sent) == [DeliveryResult(f"http://127.0.0.1:{one.port}/…")]
    (got,) = one.got
    assert (got.method, got.path, got.headers["Content-Type"]) == ("POST", "/hook", "application/json")
    assert got.headers["X-Inchworm-Delivery"] == sent.event_id == EVENT
    assert got.headers["X-Inchworm-Timestamp"] == "1800000000"
    # What a receiver does, in its own words.
    signed = got.headers["X-Inchworm-Timestamp"].encode() + b"." + got.body
    assert got.headers["X-Inchworm-Signature"] == "sha256=" + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    body = json.loads(got.body)
    assert {name: body[name] for name in RUN} == RUN
    assert body["delivery_id"] == EVENT
    assert body["changes"] == {
        "new": ["https://example.org/docs/ä"],
        "modified": [],
        "deleted": ["https://example.org/b"],
        "unknown": [],
    }
    assert body["changes_are_cut"] is False


@pytest.mark.parametrize(
    ("secret", "timestamp", "body"),
    [(b"other", "1", b"{}"), (b"secret", "2", b"{}"), (b"secret", "1", b"{ }"), (b"secret", "1.", b"{}")],
    ids=["secret", "timestamp", "body", "where the timestamp ends"],
)
def test_everything_is_part_of_the_signature(secret: bytes, timestamp: str, body: bytes) -> None:
    first = signature(b"secret", "1", b"{}")
    assert re.fullmatch("sha256=[0-9a-f]{64}", first)
    assert signature(secret, timestamp, body) != first


def test_without_a_secret_it_is_sent_unsigned(hooks: list[Hook]) -> None:
    one = hook(hooks)
    notifier = Notifier([one.url()])
    assert notifier.is_unsigned
    assert not Notifier([one.url()], SECRET).is_unsigned
    assert not Notifier([]).is_unsigned
    assert send(notifier, made())[0].trouble == ""
    assert "X-Inchworm-Signature" not in one.got[0].headers
    assert {"X-Inchworm-Delivery", "X-Inchworm-Timestamp"} <= set(one.got[0].headers)


def test_a_hundred_urls_of_each_kind(hooks: list[Hook]) -> None:
    found = [f"https://example.org/{number}" for number in range(250)]
    sent = made(new=found, modified=found[:100])
    body = json.loads(sent.body)
    assert body["changes"]["new"] == body["changes"]["modified"] == found[:100]
    assert body["changes_are_cut"] is True
    assert json.loads(made(new=found[:100]).body)["changes_are_cut"] is False
    assert sent.text.splitlines()[:2] == [RUN["summary"], "new: https://example.org/0"]
    assert "new: … and 240 more" in sent.text


def test_user_and_password_of_an_address_are_sent(hooks: list[Hook]) -> None:
    one = hook(hooks)
    assert send(Notifier([one.url("/hook?key=1#x", user="jo:pa%20ss@")]), made())[0].trouble == ""
    assert one.got[0].path == "/hook?key=1"
    assert one.got[0].headers["Authorization"] == "Basic am86cGEgc3M="


def test_every_address_gets_it_once(hooks: list[Hook]) -> None:
    one, two = hook(hooks, 404), hook(hooks)
    found = send(Notifier([one.url(), two.url(), two.url()], SECRET), made())
    assert [bool(delivery.trouble) for delivery in found] == [True, False]
    assert (len(one.got), len(two.got)) == (1, 1)
    assert one.got[0].body == two.got[0].body


# Trying again

PASSING = {
    "500": ((500, 200), 2, ""),
    "503 twice": ((503, 503, 204), 3, ""),
    "429": ((429, 201), 2, ""),
    "hangs up": ((0, 200), 2, ""),
    "500 for ever": ((500,), 3, "it answered 500, at the last of 3 tries"),
    "404": ((404,), 1, "it answered 404"),
    "401": ((401,), 1, "it answered 401"),
    "503, then 403": ((503, 403), 2, "it answered 403, at the last of 2 tries"),
}


@pytest.mark.parametrize(("statuses", "tries", "trouble"), PASSING.values(), ids=PASSING)
def test_what_may_pass_is_tried_again(hooks: list[Hook], statuses: tuple[int, ...], tries: int, trouble: str) -> None:
    one = hook(hooks, *statuses)
    (found,) = send(signing(one.url()), made())
    assert (len(one.got), found.trouble) == (tries, trouble)
    assert len({got.headers["X-Inchworm-Delivery"] for got in one.got}) == 1
    assert len({(got.headers["X-Inchworm-Signature"], got.body) for got in one.got}) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(hooks: list[Hook], status: int) -> None:
    other = hook(hooks)
    one = hook(hooks, status, Location=other.url())
    (found,) = send(Notifier([one.url()], SECRET, AT_ONCE), made())
    assert found.trouble == f"it answered {status}, and redirects are not followed"
    assert (len(one.got), len(other.got)) == (1, 0)


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (found,) = send(Notifier([f"http://127.0.0.1:{port}/"], SECRET, AT_ONCE), made())
    assert found == DeliveryResult(f"http://127.0.0.1:{port}", "no connection, at the last of 3 tries")


def test_one_who_does_not_answer_is_given_up(hooks: list[Hook]) -> None:
    one = hook(hooks)
    one.hangs = True
    (found,) = send(Notifier([one.url()], SECRET, AT_ONCE._replace(one=0.2)), made())
    assert found.trouble == "no answer in time, at the last of 3 tries"


def test_all_tries_together_have_a_limit(hooks: list[Hook]) -> None:
    one = hook(hooks, 500)
    (found,) = send(Notifier([one.url()], SECRET, Patience(waits=(30.0,), all=0.3)), made())
    assert (len(one.got), found.trouble) == (1, "it took too long")


def test_three_tries_fit_into_less_than_a_minute() -> None:
    assert (USUAL.one, len(USUAL.waits)) == (10.0, 2)
    assert 3 * (USUAL.one + 1) + sum(USUAL.waits) < USUAL.all < 60


def test_an_answer_without_end_is_not_read(hooks: list[Hook]) -> None:
    """Its status has been said by then."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pour() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1000)
                connection.settimeout(10)
                while connection.recv(65536):
                    pass

        thread = threading.Thread(target=pour, daemon=True)
        thread.start()
        assert send(Notifier([f"http://127.0.0.1:{server.getsockname()[1]}/"]), made())[0].trouble == ""
        thread.join(10)
        assert not thread.is_alive()


def test_only_a_certificate_that_somebody_vouches_for_will_do(
    hooks: list[Hook], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = tmp_path / "localhost.pem"
    certificate.write_text(KEY_AND_CERTIFICATE)
    one = hook(hooks)
    one.encrypt(certificate)
    address = f"https://localhost:{one.port}/hook"
    (found,) = send(Notifier([address], SECRET, AT_ONCE), made())
    assert found.trouble == "its certificate is not to be trusted, at the last of 3 tries"
    assert one.got == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert send(Notifier([address], SECRET, AT_ONCE), made())[0].trouble == ""
    assert len(one.got) == 1


def test_proxies_of_the_environment_mean_nothing(hooks: list[Hook], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the host and port that were typed are connected to."""
    proxy, one = hook(hooks), hook(hooks)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url("/"))
    assert send(Notifier([one.url()]), made())[0].trouble == ""
    assert (len(one.got), len(proxy.got)) == (1, 0)


# Ending while somebody does not answer

HANGING = """
import asyncio, signal, sys
from inchworm.sink.servers.notify import Notifier, message

async def main():
    sending = asyncio.ensure_future(Notifier([sys.argv[1]]).send(message({"summary": "", "name": ""}, {}, "id")))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, sending.cancel)
    try:
        await sending
    except asyncio.CancelledError:
        raise SystemExit(143)

asyncio.run(main())
"""


def test_a_process_can_end_while_somebody_does_not_answer(hooks: list[Hook]) -> None:
    one = hook(hooks)
    one.hangs = True
    with subprocess.Popen([sys.executable, "-c", HANGING, one.url()], stderr=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + 20
            while not one.got and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 143
            assert process.stderr is not None
            assert process.stderr.read() == b""
        finally:
            process.kill()


# Secrets

SHOWN = {
    "https://example.org/": "https://example.org",
    "https://example.org": "https://example.org",
    "HTTPS://Example.ORG:8443/services/T000/B000/XXXX": "https://example.org:8443/…",
    "https://jo:password@example.org/?token=XXXX": "https://example.org/…",
    "https://XXXX@example.org/": "https://example.org",
    "https://example.org?token=XXXX": "https://example.org/…",
    "https://example.org/#XXXX": "https://example.org",
    "http://[::1]:8080/XXXX": "http://[::1]:8080/…",
    "mailto://jo:password@example.org": "mailto://…",
    "tgram://XXXX/12": "tgram://…",
    " slack://XXXX ": "slack://…",
    "http://": "http://…",
    "http://jo:password@exa mple.org/": "http://…",
    "XXXX": "…",
    "": "…",
    "://XXXX": "…",
}


@pytest.mark.parametrize(("url", "shown"), SHOWN.items(), ids=[f"{number}" for number in range(len(SHOWN))])
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert "XXXX" not in masked(url)
    assert "password" not in masked(url)


@pytest.mark.parametrize(
    "url",
    ["", "XXXX", "example.org/XXXX", "http://", "https://jo:XXXX@exa mple.org/", "http://h:99999/XXXX"],
    ids=["nothing", "a word", "no scheme", "no host", "a space", "a port"],
)
def test_a_wrong_address_is_found_out_before_anything_runs(url: str) -> None:
    with pytest.raises(WrongUse, match="no address to send notifications to") as refused:
        Notifier(["https://example.org/hook", url])
    assert "XXXX" not in refused.value.message + refused.value.hint


def test_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"  from the file\n")
    environment = {"INCHWORM_NOTIFY_SECRET": "from the environment"}
    assert read_secret(None, {}) == b""
    assert read_secret(None, environment) == b"from the environment"
    assert read_secret(file, environment) == b"from the file"
    file.write_bytes(b"\n")
    for wrong, said in ((file, "is empty"), (tmp_path / "none", "cannot be read"), (tmp_path, "cannot be read")):
        with pytest.raises(WrongUse, match=said):
            read_secret(wrong, environment)


def test_what_goes_wrong_unexpectedly_is_a_result_and_not_quoted() -> None:
    impossible: Any = None
    (found,) = send(Notifier(["http://127.0.0.1/XXXX"]), made()._replace(body=impossible))
    assert found == DeliveryResult("http://127.0.0.1/…", "an unexpected TypeError")


# Mailboxes and chats

HAS_APPRISE = importlib.util.find_spec("apprise") is not None


@pytest.mark.skipif(HAS_APPRISE, reason="apprise is installed")
def test_other_addresses_need_apprise() -> None:
    with pytest.raises(WrongUse, match=r"^Notifications to mailto://… need apprise") as refused:
        Notifier(["mailto://jo:XXXX@example.org"])
    assert "inchworm[notify]" in refused.value.hint


@pytest.mark.skipif(not HAS_APPRISE, reason="apprise is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise_delivers(hooks: list[Hook], capfd: pytest.CaptureFixture[str]) -> None:
    one, broken = hook(hooks), hook(hooks, 500)
    addresses = [f"json://jo:XXXX@127.0.0.1:{one.port}/in", f"json://127.0.0.1:{broken.port}/XXXX"]
    notifier = Notifier(addresses, patience=AT_ONCE)
    assert not notifier.is_unsigned
    assert send(notifier, made(new=["https://example.org/a"])) == [
        DeliveryResult("json://…"),
        DeliveryResult("json://…", "apprise could not deliver it"),
    ]
    body = json.loads(one.got[0].body)
    assert body["title"] == "inchworm: example.org/docs"
    assert body["message"] == f"{RUN['summary']}\nnew: https://example.org/a"
    with pytest.raises(WrongUse, match="apprise does not understand"):
        Notifier(["nosuchthing://XXXX"])
    assert "XXXX" not in "".join(capfd.readouterr())


@pytest.mark.skipif(not HAS_APPRISE, reason="apprise is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_wrong_address_of_apprise_is_not_quoted(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WrongUse) as refused:
        Notifier(["mailto://:XXXX@"])
    assert "XXXX" not in refused.value.message + refused.value.hint + "".join(capfd.readouterr())


def test_people_are_told_once_of_pages_that_changed_in_the_same_way() -> None:
    notice = ModifiedGroup(294, ("http://a.test/1", "http://a.test/2"), (Passage("text", "Old\nversion. " * 40, ""),))
    price = ModifiedGroup(1, ("http://a.test/price",), (Passage("text", "485", "490"),), note='"485" → "490"')
    urls = [f"http://a.test/{number}" for number in range(300)]
    made = message(RUN, {"modified": urls, "new": ["http://a.test/new"]}, EVENT, [notice, price])
    body = json.loads(made.body)
    assert [one["pages"] for one in body["modified_groups"]] == [294, 1]
    assert body["modified_groups"][1]["difference"] == [{"where": "text", "before": "485", "after": "490"}]
    lines = made.text.splitlines()
    assert lines[1:3] == ["new: http://a.test/new", "modified: http://a.test/1 and 293 more"]
    assert lines[3].startswith("  - Old version. Old")
    assert len(lines[3]) < 250
    assert lines[4:] == ["modified: http://a.test/price", "  - 485", "  + 490", "modified: … and 5 more"]
