"""The glossary in code: the nouns that travel between modules, all of them values that do not change.

A *crawl* has *runs*, a run has *sessions*. A run's *frontier* is one row per URL (`Entry`). Requesting an
entry gives a `Reply`; reading it gives a `Reading`; both together are a `Visit`, which is committed.
"""

# Without `from __future__ import annotations`: a NamedTuple would compile each of them again at every start.

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class State(StrEnum):
    """Where a URL stands in its run."""

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"


class Kind(StrEnum):
    """What a URL is fetched as. Robots and sitemap files are rows too, outside every limit."""

    PAGE = "page"
    RESOURCE = "resource"
    ROBOTS = "robots"
    SITEMAP = "sitemap"


class Source(StrEnum):
    """How a URL became known."""

    INITIAL = "initial"
    SPIDER = "spider"
    SITEMAP = "sitemap"
    REDIRECT = "redirect"
    RESOURCE = "resource"
    FEED = "feed"
    MANUAL = "manual"


class Outcome(StrEnum):
    """What a visit came to."""

    PAGE = "page"
    DUPLICATE = "duplicate"
    RESOURCE = "resource"
    REDIRECT = "redirect"
    FAILED = "failed"
    RETRY = "retry"
    CONTROL = "control"


class Reason(StrEnum):
    """Why a URL was refused. Every refusal has one."""

    OUT_OF_SCOPE = "out_of_scope"
    NOT_INCLUDED = "not_included"
    EXCLUDED = "excluded"
    MAX_DEPTH = "max_depth"
    HOPS = "hops"
    NOFOLLOW = "nofollow"
    ROBOTS = "robots"
    PAGE_LIMIT = "page_limit"
    MOSTLY_DUPLICATES = "mostly_duplicates"
    URL_TOO_LONG = "url_too_long"
    TRAP = "trap"
    CLEARED = "cleared"


class RunState(StrEnum):
    IN_PROGRESS = "in_progress"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class SessionState(StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class EndedBy(StrEnum):
    FINISHED = "finished"
    BUDGET = "budget"
    TIME = "time"
    BYTES = "bytes"
    PAGE_LIMIT = "page_limit"
    WAITING = "waiting"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ERROR = "error"
    CRASHED = "crashed"


Place = tuple[int, int]
"""Where an entry stands in its lane: (seq of the visit that put it there, index among its links)."""


class Entry(NamedTuple):
    """One pending row of the frontier, as it is dispatched."""

    url_id: int
    url: str
    request_url: str
    kind: Kind
    source: Source
    seed: int
    depth: int
    hops: int
    lane: int
    place: Place
    attempts: int = 0
    not_before_ms: int = 0
    chain: int = 0
    tried: tuple[str, ...] = ()


class Found(NamedTuple):
    """A URL met on a page, before anybody judged it: canonical form, request form, what it is."""

    url: str
    request_url: str
    kind: Kind = Kind.PAGE
    source: Source = Source.SPIDER
    nofollow: bool = False
    lastmod: str = ""


class Request(NamedTuple):
    """What a fetcher is asked for. `beginning`: of a body over the limit, its beginning is wanted all the same."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    max_body_bytes: int = 0
    timeout_seconds: float = 30.0
    beginning: bool = False


class Response(NamedTuple):
    """A complete HTTP answer. `head` is the status line and headers as received, CRLF-separated and closed
    by an empty line; `payload` the body as transferred (content coding kept), `body` the decoded one."""

    status: int
    head: bytes
    headers: Mapping[str, str]
    payload: bytes
    body: bytes
    seconds: float
    truncated: str = ""


class Failure(NamedTuple):
    """A request that brought no usable answer, and why (a kind from `rules.failures`).

    `answer` is what came all the same, with no decoded body: it is archived, never read.
    """

    kind: str
    message: str
    seconds: float = 0.0
    answer: Response | None = None


Reply = Response | Failure


class Document(NamedTuple):
    """What there is to read: a decoded body, what it is said to be, and where, as what and when it was fetched."""

    body: bytes
    content_type: str
    url: str
    kind: Kind
    at_ms: int = 0


_NOTHING: Mapping[str, object] = MappingProxyType({})


class Reading(NamedTuple):
    """What one parse of a page gives. `words` is the main text as it stands in the source, which tells pages apart;
    `text` is the same laid out for people, and there only when somebody wants it."""

    links: tuple[Found, ...] = ()
    title: str = ""
    words: str = ""
    text: str = ""
    language: str = ""
    canonical: str = ""
    nofollow: bool = False
    noindex: bool = False
    meta: Mapping[str, object] = _NOTHING


class Cookie(NamedTuple):
    """What a server asked us to send back. `host_only`: to exactly this domain. `expires_ms` 0: with the run."""

    domain: str
    path: str
    name: str
    value: str
    host_only: bool
    secure: bool
    expires_ms: int


class Record(NamedTuple):
    """What goes to the archive for a visit."""

    url: str
    head: bytes
    payload: bytes
    digest: bytes
    truncated: str = ""


class Spot(NamedTuple):
    """Where a record lies in the archive."""

    file: str
    offset: int
    length: int


class Stored(NamedTuple):
    """What an earlier run has of a page that is reused without a request."""

    payload: bytes | None
    file_id: int | None
    offset: int | None
    length: int | None
    revisit: int
    meta: str | None


class Visit(NamedTuple):
    """One request and what came of it, ready to be committed in its turn."""

    entry: Entry
    at_ms: int
    outcome: Outcome
    failure: str = ""
    message: str = ""
    status: int = 0
    millis: int = 0
    size: int = 0
    content_type: str = ""
    etag: str = ""
    last_modified: str = ""
    text_hash: bytes = b""
    reading: Reading = Reading()
    redirect: Found | None = None
    record: Record | None = None
    robots: bytes | None = None
    retry_at_ms: int = 0
    quiet_ms: int = 0
    requested: bool = True
    stored: Stored | None = None
    cookies: tuple[Cookie, ...] = ()
    cookies_sent: str = ""


class Refusal(NamedTuple):
    """An entry that was refused in its turn, without a request."""

    entry: Entry
    reason: Reason


Turn = Visit | Refusal
"""What an entry came to, waiting to be committed."""


@dataclass(frozen=True, slots=True)
class Counters:
    """A run's numbers, kept and never counted; a recount must give the same."""

    known: int = 0
    pending: int = 0
    pages: int = 0
    duplicates: int = 0
    unchanged: int = 0
    resources: int = 0
    redirects: int = 0
    failed: int = 0
    refused: int = 0
    requests: int = 0
    size: int = 0


class Seed(NamedTuple):
    """A seed of a run: where its scope lies now, and what it has used of its limits."""

    number: int
    url: str
    host: str
    path: str
    kept: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class RunInfo:
    run_id: int
    number: int
    mode: str
    parent: int | None
    state: RunState
    seq: int
    settings: Mapping[str, Any]
    counters: Counters
    seeds: tuple[Seed, ...]
    disturbed: str
    created_ms: int
    ended_ms: int | None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    run_id: int
    number: int
    token: int
    state: SessionState
    ended_by: EndedBy | None
    started_ms: int
    ended_ms: int | None
    requests: int
    size: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class CrawlInfo:
    crawl_id: str
    name: str
    seeds: tuple[str, ...]
    settings: Mapping[str, Any]
    created_ms: int


class WarcRecord(NamedTuple):
    """One record of a WARC file, uncompressed, header names in lower case. `offset` and `length` say where it
    lies in its file."""

    offset: int
    length: int
    headers: Mapping[str, str]
    content: bytes
