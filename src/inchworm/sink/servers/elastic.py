"""Elasticsearch and OpenSearch, each by its own official client, behind one question: a request and its answer.

Which of the two a server is, it says itself. Its client is loaded only then.
"""

from __future__ import annotations

import base64
import http.client
import importlib
import importlib.util
import json
import logging
import ssl
import warnings
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from inchworm.errors import WrongUse
from inchworm.rules.web import proxies
from inchworm.rules.web import url as urls

SECONDS = 60.0
"""For one request."""

_PORTS = {"http": 80, "https": 443}
_MAX_GREETING = 1_000_000
_EXTRAS = {"elasticsearch": "elasticsearch", "opensearchpy": "opensearch"}
_NAMES = {"elasticsearch": "Elasticsearch", "opensearchpy": "OpenSearch"}


class NoAnswer(Exception):
    """The server did not answer, and may do so another time."""


class ServerAnswer(NamedTuple):
    """What a server said: a status, and an object."""

    status: int
    body: Any


class Door(Protocol):
    """A way to ask a server. A status is an answer, whatever it is; none at all is `NoAnswer`."""

    def ask(self, method: str, path: str, body: Any = None) -> ServerAnswer:
        """`body` is an object, or bytes: lines of JSON."""
        ...

    def close(self) -> None: ...


class ServerAddress:
    """Where a server is, and as whom to ask it."""

    def __init__(self, text: str) -> None:
        parts = _parts(text)
        if parts is None:
            raise WrongUse(
                f"{proxies.masked(text)!r} is not the address of a search server.",
                "Give a URL such as http://localhost:9200 or https://user:password@search.example.org.",
            )
        self.scheme = parts.scheme
        self.host = parts.hostname or ""
        self.port = parts.port or _PORTS[parts.scheme]
        self.prefix = parts.path.rstrip("/")
        self.user = (unquote(parts.username or ""), unquote(parts.password or "")) if parts.username else None

    @property
    def url(self) -> str:
        """The address without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    def context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context() if self.scheme == "https" else None


def _parts(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_right = parts.scheme in _PORTS and parts.hostname and not parts.query and not parts.fragment
        # Asking for the port finds out whether it can be one.
        return parts if is_right and parts.port != 0 and urls.parse(parts.geturl()) else None
    except ValueError:
        return None


def door_to(address: ServerAddress) -> Door:
    """A way to ask the server at this address. Raises `NoAnswer`, or says what is wrong."""
    greeting = _greeting(address)
    if greeting.is_elasticsearch:
        return _Elasticsearch(_module("elasticsearch"), address, greeting.major)
    return _OpenSearch(_module("opensearchpy"), address)


def refuse_without_client() -> None:
    """Say in time that no server can be talked to."""
    if not any(importlib.util.find_spec(name) for name in _EXTRAS):
        raise WrongUse(
            "Indexing needs the client of the search server, and there is none.",
            "Install it: pip install 'inchworm[elasticsearch]' or 'inchworm[opensearch]'",
        )


def _module(name: str) -> Any:
    try:
        module: Any = importlib.import_module(name)
    except ImportError:
        raise WrongUse(
            f"Indexing into {_NAMES[name]} needs its client.", f"Install it: pip install 'inchworm[{_EXTRAS[name]}]'"
        ) from None
    # What they log they also raise.
    for logger in ("elastic_transport", "opensearch"):
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    return module


# ---- which of the two


class _Greeting(NamedTuple):
    is_elasticsearch: bool
    major: int


def _greeting(address: ServerAddress) -> _Greeting:
    """What a server says of itself. One may forbid that question to some of its users; its headers tell then."""
    status, headers, body = _said(address)
    if status == 401:
        raise wrong_credentials(address, status)
    if status in (429, 502, 503, 504):
        raise NoAnswer(f"it answers {status}")
    try:
        version = json.loads(body)["version"]
        major, distribution = int(str(version["number"]).partition(".")[0]), version.get("distribution", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        major, distribution = 0, ""
    is_elasticsearch = headers.get("x-elastic-product") == "Elasticsearch"
    if status != 403 and not is_elasticsearch and distribution != "opensearch":
        raise WrongUse(
            f"What answers at {address.url} is neither Elasticsearch nor OpenSearch.",
            "Check the address of the server.",
        )
    return _Greeting(is_elasticsearch, major)


def _said(address: ServerAddress) -> tuple[int, dict[str, str], bytes]:
    if address.scheme == "https":
        where = (address.host, address.port)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            *where, timeout=SECONDS, context=address.context()
        )
    else:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=SECONDS)
    headers = {"Accept": "application/json"}
    if address.user:
        token = base64.b64encode(":".join(address.user).encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    try:
        connection.request("GET", f"{address.prefix}/", headers=headers)
        response = connection.getresponse()
        body = response.read(_MAX_GREETING)
        return response.status, {name.lower(): value for name, value in response.getheaders()}, body
    except ssl.SSLCertVerificationError as error:
        raise WrongUse(
            f"The certificate of the search server at {address.url} is not to be trusted: {error.verify_message}.",
            "SSL_CERT_FILE=FILE names the certificate of the authority that made it.",
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(_trouble(error)) from None
    finally:
        connection.close()


def wrong_credentials(address: ServerAddress, status: int) -> WrongUse:
    who = "this user and password" if address.user else "to be asked without user and password"
    return WrongUse(
        f"The search server at {address.url} refuses {who} (status {status}).",
        "Give them in the address, best in the environment: INCHWORM_INDEX=https://user:password@host:9200",
    )


def _trouble(error: Exception) -> str:
    """What went wrong, in our words: those of others may quote the address."""
    text = f"{type(error).__name__} {error}".lower()
    if "certificate" in text:
        return "its certificate is not to be trusted"
    if "timeout" in text or "timed out" in text:
        return "no answer in time"
    if "refused" in text:
        return "the connection is refused"
    if "ssl" in text or "tls" in text:
        return "no encrypted connection"
    if "not known" in text or "resolution" in text or "gaierror" in text or "no address" in text:
        return "its name was not found"
    return "the connection broke off"


# ---- the two


class _Elasticsearch:
    def __init__(self, module: Any, address: ServerAddress, major: int) -> None:
        theirs = int(module.__version__[0])
        if major and theirs > major:
            raise WrongUse(
                f"The server is Elasticsearch {major}, and the client that is installed is for {theirs}.",
                f"Install the other: pip install 'elasticsearch<{major + 1}'",
            )
        warnings.filterwarnings("ignore", category=module.ElasticsearchWarning)
        self._module = module
        self._client = module.Elasticsearch(
            address.url,
            basic_auth=address.user,
            ssl_context=address.context(),
            request_timeout=SECONDS,
            max_retries=0,
        )

    def ask(self, method: str, path: str, body: Any = None) -> ServerAnswer:
        headers = {"accept": "application/json", **_content_type(body)}
        try:
            answer = self._client.perform_request(method, path, headers=headers, body=body)
        except self._module.ApiError as error:
            return ServerAnswer(error.meta.status, error.body)
        except self._module.TransportError as error:
            raise NoAnswer(_trouble(error)) from None
        return ServerAnswer(answer.meta.status, answer.body)

    def close(self) -> None:
        self._client.close()


class _OpenSearch:
    def __init__(self, module: Any, address: ServerAddress) -> None:
        self._module = module
        context = address.context()
        self._client = module.OpenSearch(
            [{"host": address.host, "port": address.port, "url_prefix": address.prefix}],
            http_auth=address.user,
            use_ssl=context is not None,
            ssl_context=context,
            timeout=SECONDS,
            max_retries=0,
        )

    def ask(self, method: str, path: str, body: Any = None) -> ServerAnswer:
        try:
            said = self._client.transport.perform_request(method, path, body=body, headers=_content_type(body))
        except self._module.TransportError as error:
            if not isinstance(error.status_code, int):
                raise NoAnswer(_trouble(error)) from None
            return ServerAnswer(error.status_code, error.info)
        return ServerAnswer(200, said)

    def close(self) -> None:
        self._client.close()


def _content_type(body: Any) -> dict[str, str]:
    if body is None:
        return {}
    return {"content-type": "application/x-ndjson" if isinstance(body, bytes) else "application/json"}
