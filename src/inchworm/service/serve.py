"""Starting and stopping the service, one phase after the other; what fails says which, and what to do.

configuration   settings from file, environment and flags
home            the folder and its database
secret          what tokens are signed with
port            the address to listen on
scheduler       the loop that runs jobs
server          the routes, behind the gate
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import json
import logging
import shlex
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import uvicorn
from fastapi import FastAPI

from inchworm.app.root import App
from inchworm.engine.signals import stop_signals
from inchworm.errors import Broken, CannotServe, InchwormError, WrongUse
from inchworm.rules.words.figures import plain
from inchworm.rules.words.json_form import json_object
from inchworm.rules.words.times import iso
from inchworm.service import build
from inchworm.service.access import auth
from inchworm.service.access.auth import Role
from inchworm.service.access.gate import Gate, Keys, hosts_of
from inchworm.service.api.health import Health
from inchworm.service.api.live import Feed, Hub
from inchworm.service.api.web import Verbs
from inchworm.service.dashboard import status
from inchworm.service.dashboard.live import Board
from inchworm.service.protocol import PatientProtocol
from inchworm.service.scheduler import Scheduler
from inchworm.settings import Settings

PORT = 8060
_WATCH_SECONDS = 1.0
_DELIVER_SECONDS = 2.0
_LAST_SECONDS = 5
_EXIT_PORT = 5
_EXIT_HOME = 6

log = logging.getLogger("inchworm.service")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and whether jobs are run."""

    host: str = "127.0.0.1"
    port: int = PORT
    scheduler: bool = True

    @property
    def is_public(self) -> bool:
        """Whether others than this machine could reach it."""
        if self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True


def serve(folder: Path, values: Settings, address: Address, environment: Mapping[str, str]) -> None:
    """Run the service until a signal ends it."""
    app = _opened(folder)
    try:
        secret, _ = auth.secret_of(folder, environment, address.is_public)
        role = auth.default_role(environment)
        listening = bound(address)
        try:
            _Service(app, values, address, listening).run(secret, role)
        finally:
            listening.close()
    finally:
        app.close()


def _opened(folder: Path) -> App:
    """The home: there, writable, and of a schema that we know."""
    try:
        app = App(folder)
        with app.home.writing():
            pass
    except (WrongUse, Broken) as error:
        raise _failed("home", error.message, error.hint, _EXIT_HOME) from None
    except OSError as error:
        raise _failed("home", f"{folder} cannot be used: {error.strerror}.", "Set INCHWORM_HOME.", _EXIT_HOME) from None
    return app


def bound(address: Address) -> socket.socket:
    """A socket that listens, or an error that says why there is none."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(where)
            listening.listen(512)
        except OSError:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise _failed(
            "port",
            f"{address.host}:{address.port} cannot be listened on: {said}.",
            "Give another one: inchworm serve --port 8061",
            _EXIT_PORT,
        ) from None
    return listening


def _failed(phase: str, message: str, hint: str, code: int) -> CannotServe:
    error = CannotServe(f"The service cannot start ({phase}): {message}", hint)
    error.exit_code = code
    return error


class _Service:
    """The parts of a running service, and how they start and stop."""

    def __init__(self, app: App, values: Settings, address: Address, listening: socket.socket) -> None:
        self._app = app
        self._values = values
        self._address = address
        self._listening = listening
        self._scheduler = Scheduler(app.folder, values) if address.scheduler else None
        wake: Callable[[], None] = self._scheduler.wake if self._scheduler else lambda: None
        self._verbs = Verbs(app.folder, values, wake)
        self._health = Health(values, needs_scheduler=True)
        self._feeds = {topic: Feed(topic) for topic in ("health", "metrics")}
        self._hub: Hub | None = None

    def run(self, secret: bytes, default_role: Role) -> None:
        if self._scheduler is not None:
            self._scheduler.start()
        try:
            self._server(secret, default_role).run(sockets=[self._listening])
        finally:
            log.info("Stopping")
            if self._scheduler is not None:
                self._scheduler.stop()
            self._verbs.close()
            log.info("Stopped")

    def _server(self, secret: bytes, default_role: Role) -> uvicorn.Server:
        hosts = hosts_of(self._address.host, self._values.host_names)
        keys = Keys(secret, _Book(self._verbs), hosts, default_role=default_role)
        routes = build.api(self._verbs, keys, self._living)
        # All that is loaded by now stays as long as the service.
        gc.freeze()
        gc.enable()
        config = uvicorn.Config(
            Gate(routes, keys),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=_LAST_SECONDS,
            h11_max_incomplete_event_size=32_768,
            ws="none",
            http=PatientProtocol,
        )
        return _Server(config, self._ready, self._leave)

    @contextlib.asynccontextmanager
    async def _living(self, api: FastAPI) -> AsyncIterator[None]:
        """What works beside the routes, as long as the server runs."""
        self._hub, board = Hub(), Board(self._verbs, {"status": status.watching(self._health)})
        api.state.hub, api.state.board, api.state.feeds, api.state.health = self._hub, board, self._feeds, self._health
        await asyncio.to_thread(self._look)
        tasks = [asyncio.create_task(work) for work in (self._hub.work(), board.work(), self._watch(), self._deliver())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        """See how things are, and show it."""
        due = 0.0
        while True:
            await asyncio.to_thread(self._look)
            if time.monotonic() >= due:
                due = time.monotonic() + self._values.metrics_every
                with contextlib.suppress(InchwormError):
                    self._feeds["metrics"].show(await asyncio.to_thread(self._figures), ("collected_at",))
            await asyncio.sleep(_WATCH_SECONDS)

    def _look(self) -> None:
        before = {one.code for one in self._health.problems}
        self._health.look(self._verbs.app)
        self._feeds["health"].show(self._health.whole())
        for one in self._health.problems:
            if one.code not in before:
                log.warning("%s %s", one.message, one.hint)
        for code in before - {one.code for one in self._health.problems}:
            log.info("No longer: %s", code)

    def _figures(self) -> Mapping[str, object]:
        return json_object(self._verbs.app.health.scheduler())

    async def _deliver(self) -> None:
        """Notifications that are due."""
        while True:
            try:
                # In a thread: the loop must not wait for the lock of the home.
                await asyncio.to_thread(self._send_due)
            except Exception:
                log.exception("Notifications could not be sent; they are tried again")
            await asyncio.sleep(_DELIVER_SECONDS)

    def _send_due(self) -> None:
        asyncio.run(self._verbs.app.deliver.due(f"service {self._address.port}"))

    def _ready(self) -> None:
        host, port = self._listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"inchworm serves {self._app.folder} at {address}/", file=sys.stderr, flush=True)
        # Whoever reads a log later must not find a way in there.
        terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)
        if terminal is None:
            home = shlex.quote(str(self._app.folder))
            said = f"To log in, get a link: INCHWORM_HOME={home} inchworm token --link --url {address}"
            print(said, file=sys.stderr, flush=True)
            return
        code, digest = auth.login_code()
        self._verbs.app.admission.invite(digest, auth.LINK_SECONDS)
        print(f"Log in, once and within 15 minutes: {address}/login?code={code}", file=terminal, flush=True)

    def _leave(self) -> None:
        if self._hub is not None:
            self._hub.close()


class _Book:
    """What the gate looks up, in whichever thread it is."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def is_revoked(self, token_id: str) -> bool:
        return self._verbs.app.admission.store.is_revoked(token_id)

    def revoke(self, token_id: str, until_ms: int) -> None:
        self._verbs.app.admission.store.revoke(token_id, until_ms)

    def take_login(self, code_digest: bytes, now_ms: int) -> bool:
        return self._verbs.app.admission.store.take_login(code_digest, now_ms)


class _Server(uvicorn.Server):
    """Tells when it listens, and when it begins to stop: streams without an end have to be ended."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], leave: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._leave = leave

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does it, except that a signal is not raised once more at the end: we have to stop in good order.
        What comes while we do is not heard."""
        numbers = [number for number in stop_signals() if number is not signal.SIGHUP]
        for number in numbers:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._leave()
        await super().shutdown(sockets)


class JsonLines(logging.Formatter):
    """Log lines for machines: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": iso(round(record.created * 1000)),
            "level": record.levelname.lower(),
            "service": "inchworm",
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


class PlainLines(logging.Formatter):
    """Lines for people, without what a terminal would obey: what is logged may have been made by a page."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(plain, super().format(record).split("\n")))


def log_to(stream: TextIO, as_json: bool) -> None:
    """Where log lines go."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if as_json else PlainLines("%(asctime)s %(levelname)-7s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
