"""Notifications: web hooks, mailboxes and chats are told what a run found.

A web hook gets the message as JSON by POST, with these headers:

    X-Inchworm-Delivery    names the message; every try to deliver it bears the same, to whatever address
    X-Inchworm-Timestamp   when this try was made, in seconds since 1970
    X-Inchworm-Signature   sha256=HEX, where there is a secret

HEX is the HMAC-SHA256, under the secret, of the timestamp, a full stop and the body as it was sent. A receiver makes
the same from what it got, compares the two in constant time, and refuses a timestamp that is minutes old: so nobody
can invent a message, change one, or send an old one again. An answer may get lost, and then the message comes twice;
its name and its body are the same both times.

Only the host and port that the user typed are connected to; a redirect counts as a refusal. Whatever goes wrong is a
result, and addresses appear in it without what may be secret: user, password, path and query.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import importlib
import json
import logging
import re
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pycurl

from inchworm.errors import WrongUse
from inchworm.rules.change.groups import ModifiedGroup
from inchworm.rules.schedule import redelivery as rules
from inchworm.rules.schedule.redelivery import DeliveryTry
from inchworm.rules.web import politeness
from inchworm.rules.web import url as urls
from inchworm.rules.words.figures import clip
from inchworm.rules.words.json_form import json_form
from inchworm.settings import USER_AGENT

MOST_URLS = 100
MOST_GROUPS = 20
"""How many URLs of each kind of change a message lists, and how many groups of modified pages with what differs."""

SECRET_VARIABLE = "INCHWORM_NOTIFY_SECRET"  # noqa: S105 - the name of a variable
_SHOWN_IN_CHAT = 10
_PASSAGES_IN_CHAT = 2
_LONGEST_IN_CHAT = 200
_KINDS = ("new", "modified", "deleted", "unknown")
_EVENTS = uuid.UUID("6d0c5a1e-0d5b-5f0e-9a55-3c1f6a2f7b10")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")
_TROUBLES = {
    pycurl.E_COULDNT_RESOLVE_HOST: "its name was not found",
    pycurl.E_COULDNT_CONNECT: "no connection",
    pycurl.E_OPERATION_TIMEDOUT: "no answer in time",
    pycurl.E_PEER_FAILED_VERIFICATION: "its certificate is not to be trusted",
    pycurl.E_SSL_CONNECT_ERROR: "no encrypted connection",
}

T = TypeVar("T")
MayDial = Callable[[str], bool]
"""Whether an address may be connected to."""


class Patience(NamedTuple):
    """Seconds: for one try, before the second and the third, and for all of them."""

    one: float = 10.0
    waits: Sequence[float] = (1.0, 4.0)
    all: float = 50.0


USUAL = Patience()


class Message(NamedTuple):
    """What is sent: JSON for machines, a title and a text for people."""

    event_id: str
    body: bytes
    title: str
    text: str


class DeliveryResult(NamedTuple):
    """What became of a message at one address: no `trouble` means that it arrived."""

    address: str
    trouble: str = ""


class _Address(Protocol):
    shown: str
    seconds: float
    """How long one try may take."""

    async def deliver(self, message: Message) -> DeliveryTry:
        """Try once."""
        ...


def event_id(crawl_id: str, number: int, ended_ms: int) -> str:
    """The name of what there is to tell of a run that ended then: the same whenever it is told."""
    return str(uuid.uuid5(_EVENTS, f"{crawl_id} {number} {ended_ms}"))


def feed_id(crawl_id: str) -> str:
    """The name of the feed of a crawl."""
    return str(uuid.uuid5(_EVENTS, crawl_id))


def message(
    run: Mapping[str, Any],
    changes: Mapping[str, Sequence[str]],
    event_id: str,
    groups: Sequence[ModifiedGroup] = (),
) -> Message:
    """What there is to say of a run, with the first URLs of each kind of change, and what differs on modified pages."""
    listed = {kind: list(changes.get(kind, ()))[:MOST_URLS] for kind in _KINDS}
    is_cut = any(len(changes.get(kind, ())) > MOST_URLS for kind in _KINDS)
    whole = {**run, "delivery_id": event_id, "changes": listed, "changes_are_cut": is_cut}
    whole["modified_groups"] = json_form(groups)
    text = [str(run["summary"])]
    for kind in _KINDS[:3]:
        if kind == "modified" and groups:
            text += _groups(groups, len(changes.get(kind, ())))
            continue
        text += [f"{kind}: {url}" for url in listed[kind][:_SHOWN_IN_CHAT]]
        if (more := len(changes.get(kind, ())) - _SHOWN_IN_CHAT) > 0:
            text.append(f"{kind}: … and {more:,} more")
    return Message(event_id, json.dumps(whole).encode(), f"inchworm: {run['name']}", "\n".join(text))


def _groups(groups: Sequence[ModifiedGroup], pages: int) -> list[str]:
    """Pages that changed in the same way are one thing to tell."""
    text, shown = [], groups[:_SHOWN_IN_CHAT]
    for one in shown:
        more = f" and {one.pages - 1:,} more" if one.pages > 1 else ""
        text.append(f"modified: {one.urls[0]}{more}")
        for passage in one.difference[:_PASSAGES_IN_CHAT]:
            sides = (("-", passage.before), ("+", passage.after))
            text += [f"  {sign} {clip(said, _LONGEST_IN_CHAT)}" for sign, said in sides if said]
    if (rest := pages - sum(one.pages for one in shown)) > 0:
        text.append(f"modified: … and {rest:,} more")
    return text


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """The value of X-Inchworm-Signature."""
    return "sha256=" + hmac.new(secret, f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def masked(url: str) -> str:
    """An address as it may be shown: of a web address its host, of any other only the scheme."""
    href = urls.parse(url)
    if href is None:
        scheme = _SCHEME.match(url.strip())
        return f"{scheme[0]}://…" if scheme else "…"
    origin = urls.origin_of(href)
    return origin if urls.path_of(href) == "/" and not urls.query_of(href) else f"{origin}/…"


def read_secret(path: Path | None, environment: Mapping[str, str]) -> bytes:
    """What messages are signed with: from a file, or from the environment; empty when there is none."""
    if path is None:
        return environment.get(SECRET_VARIABLE, "").encode()
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}.", "It should hold the secret, and no more.") from None
    if not secret:
        raise WrongUse(f"{path} is empty.", "It should hold the secret that notifications are signed with.")
    return secret


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Notifier:
    """Delivers messages to addresses, all at a time. A wrong address is found out here, not after the first run."""

    def __init__(
        self,
        addresses: Sequence[str] = (),
        secret: bytes = b"",
        patience: Patience = USUAL,
        now_ms: Callable[[], int] = _now_ms,
        may_dial: MayDial | None = None,
    ) -> None:
        self._signer = _Signer(secret, now_ms)
        self._may_dial = may_dial
        self._patience = patience
        self._addresses = {text: self._understood(text) for text in addresses}
        hooks = any(isinstance(one, _WebHook) for one in self._addresses.values())
        self.is_unsigned = hooks and not secret

    async def send(self, sent: Message) -> list[DeliveryResult]:
        """Deliver a message everywhere, in less than a minute. Never raises."""
        return list(await asyncio.gather(*(self._send_to(one, sent) for one in self._addresses.values())))

    async def try_once(self, address: str, message: Message) -> DeliveryTry:
        """One try at one address, in less than a minute. Never raises."""
        try:
            return await _once(self._addresses.get(address) or self._understood(address), message)
        except WrongUse as error:
            return DeliveryTry(0, error.message.rstrip("."))
        except Exception as error:
            return DeliveryTry(0, _unexpected(error))

    async def _send_to(self, address: _Address, sent: Message) -> DeliveryResult:
        try:
            async with asyncio.timeout(self._patience.all):
                return DeliveryResult(address.shown, await self._persist(address, sent))
        except TimeoutError:
            return DeliveryResult(address.shown, "it took too long")
        except Exception as error:
            return DeliveryResult(address.shown, _unexpected(error))

    async def _persist(self, address: _Address, sent: Message) -> str:
        """A few tries at a web hook, as long as another one may go better; what the trouble is, or nothing."""
        result = await _once(address, sent)
        tries = 1
        for seconds in self._patience.waits if isinstance(address, _WebHook) else ():
            if result.has_arrived or not rules.may_pass(result.status):
                break
            await asyncio.sleep(seconds)
            result = await _once(address, sent)
            tries += 1
        return f"{result.trouble}, at the last of {tries} tries" if result.trouble and tries > 1 else result.trouble

    def _understood(self, text: str) -> _Address:
        if (href := urls.parse(text)) is not None:
            return _WebHook(href, self._signer, self._patience.one, self._may_dial)
        scheme = _SCHEME.match(text.strip())
        if scheme is None or scheme[0].lower() in ("http", "https"):
            raise WrongUse(
                f"{masked(text)!r} is no address to send notifications to.",
                "Give a web hook such as https://example.org/hook, or an address of apprise such as mailto://…",
            )
        return _Chat(text.strip(), self._patience.all)


async def _once(address: _Address, message: Message) -> DeliveryTry:
    try:
        # libcurl keeps its limit by itself, but for names that are looked up without end.
        async with asyncio.timeout(address.seconds + 1):
            return await address.deliver(message)
    except TimeoutError:
        return DeliveryTry(0, _TROUBLES[pycurl.E_OPERATION_TIMEDOUT])


def _unexpected(error: Exception) -> str:
    """The text of an error of somebody else's code may quote the address."""
    return f"an unexpected {type(error).__name__}"


class _Signer(NamedTuple):
    """Signs each try with its own time: receivers refuse what is old."""

    secret: bytes
    now_ms: Callable[[], int]

    def headers(self, message: Message) -> list[str]:
        timestamp = str(self.now_ms() // 1000)
        headers = [f"X-Inchworm-Delivery: {message.event_id}", f"X-Inchworm-Timestamp: {timestamp}"]
        if self.secret:
            headers.append(f"X-Inchworm-Signature: {signature(self.secret, timestamp, message.body)}")
        return headers


class _WebHook:
    def __init__(self, href: str, signer: _Signer, seconds: float, may_dial: MayDial | None) -> None:
        self.shown = masked(href)
        self.seconds = seconds
        self._href = href
        self._signer = signer
        self._may_dial = may_dial

    async def deliver(self, message: Message) -> DeliveryTry:
        headers = ["Content-Type: application/json", "Expect:", f"User-Agent: {USER_AGENT}"]
        headers += self._signer.headers(message)
        answer = await _in_thread(
            functools.partial(_post, _Post(self._href, headers, message.body, self.seconds, self._may_dial))
        )
        if 200 <= answer.status < 300:
            return DeliveryTry(answer.status)
        said = f"it answered {answer.status}" if answer.status else answer.trouble
        said += ", and redirects are not followed" if 300 <= answer.status < 400 else ""
        return DeliveryTry(answer.status, said, politeness.retry_after(answer.retry_after, self._signer.now_ms()))


class _Answer(NamedTuple):
    """What a web hook answered: its status, or why there is none."""

    status: int
    trouble: str
    retry_after: str


class _Post(NamedTuple):
    """What is sent to a web hook, within how many seconds, and which addresses it may go to."""

    href: str
    headers: list[str]
    body: bytes
    seconds: float
    may_dial: MayDial | None


def _post(sent: _Post) -> _Answer:
    """One request. What the answer says beyond its status, and when to come again, is of no interest."""
    curl: Any = pycurl.Curl()
    asked, opened = [""], list[socket.socket]()

    def read_header(line: bytes) -> None:
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "retry-after":
            asked[0] = value.strip()

    def open_socket(_: int, address: Any) -> Any:
        # Judged when it is dialled, whatever the name was.
        if sent.may_dial is not None and not sent.may_dial(str(address.addr[0])):
            return pycurl.SOCKET_BAD
        opened.append(socket.socket(address.family, address.socktype, address.protocol))
        return opened[-1]  # libcurl works on a duplicate of it

    try:
        for option, value in (
            (pycurl.OPENSOCKETFUNCTION, open_socket),
            (pycurl.URL, sent.href),
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PATH_AS_IS, 1),
            # Said out loud, for otherwise libcurl obeys the proxy variables of the environment.
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, "*"),
            (pycurl.TIMEOUT_MS, round(sent.seconds * 1000)),
            (pycurl.HTTPHEADER, sent.headers),
            (pycurl.POSTFIELDS, sent.body),
            (pycurl.HEADERFUNCTION, read_header),
            (pycurl.WRITEFUNCTION, lambda _: 0),
            *_certificates(),
        ):
            curl.setopt(option, value)
        trouble = ""
        try:
            curl.perform()
        except pycurl.error as error:
            trouble = _TROUBLES.get(error.args[0], f"libcurl's error {error.args[0]}")
        return _Answer(curl.getinfo(pycurl.RESPONSE_CODE), trouble, asked[0])
    finally:
        curl.close()
        for one in opened:
            one.close()


def _certificates() -> list[tuple[int, str]]:
    """Where this system keeps its certificates: the libcurl in the wheel was built for another one."""
    paths = ssl.get_default_verify_paths()
    found = ((pycurl.CAINFO, paths.cafile), (pycurl.CAPATH, paths.capath))
    return [(option, path) for option, path in found if path]


class _Chat:
    """Anything that apprise knows how to reach."""

    def __init__(self, url: str, seconds: float) -> None:
        self.shown = masked(url)
        self.seconds = seconds
        try:
            apprise: Any = importlib.import_module("apprise")
        except ImportError:
            raise WrongUse(
                f"Notifications to {self.shown} need apprise.", "Install it: pip install 'inchworm[notify]'"
            ) from None
        # What it logs may quote the address.
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        self._apprise = apprise.Apprise()
        if not self._apprise.add(url):
            raise WrongUse(
                f"apprise does not understand the address that begins with {self.shown}",
                "Its documentation lists the forms: https://github.com/caronc/apprise/wiki",
            )

    async def deliver(self, message: Message) -> DeliveryTry:
        send = functools.partial(self._apprise.notify, title=message.title, body=message.text)
        return DeliveryTry(0, "" if await _in_thread(send) else "apprise could not deliver it")


async def _in_thread(work: Callable[[], T]) -> T:
    """In a daemon thread: a name server that does not answer must keep neither the loop nor the process waiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await done
