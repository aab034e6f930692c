"""The glossary in code: the nouns that travel between modules, all of them values that do not change.

A *crawl* has *runs*, a run has *sessions*. A run's *frontier* is one row per URL (`FrontierEntry`). Requesting an
entry gives a `Reply`; reading it gives a `Reading`; both together are a `FinishedVisit`, which is committed.
"""

# Without `from __future__ import annotations`: a NamedTuple would compile each of them again at every start.

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:  # whoever only reads a page does not wait for it
    from inchworm.settings import NamedSettings

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


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
    DELETED = "deleted"


class Change(StrEnum):
    """What a run found out about a page that it compared with earlier runs."""

    NEW = "new"
    MODIFIED = "modified"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    UNKNOWN = "unknown"


class Note(StrEnum):
    """Words that say more of a change."""

    BYTES = "bytes"
    STAMP = "stamp"
    MOVED = "moved"
    BACK = "back"
    FLAPPING = "flapping"
    UNLINKED = "unlinked"
    LOGIN = "login"
    NO_VALIDATORS = "no_validators"
    VALIDATORS_CHANGED = "validators_changed"
    SAME_VALIDATOR = "same_validator"
    DISTRUSTED = "distrusted"
    SHARED_VALIDATORS = "shared_validators"
    SAMPLED = "sampled"
    READER_CHANGED = "reader_changed"
    LOST = "lost"
    ASKED_IN_FULL = "asked_in_full"
    REUSED = "reused"


class Mode(StrEnum):
    """How a run relates to the ones before it."""

    BASELINE = "baseline"
    INCREMENTAL = "incremental"
    FULL = "full"


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
    UNLINKED = "unlinked"


class RunState(StrEnum):
    IN_PROGRESS = "in_progress"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class SessionState(StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class CheckpointType(StrEnum):
    """Who made a checkpoint: the crawl by itself every so many pages, a user, a stop, or an error."""

    AUTO = "auto"
    MANUAL = "manual"
    PAUSE = "pause"
    ERROR = "error"


class Substate(StrEnum):
    """What a run was busy with at a checkpoint."""

    SEEDING = "seeding"
    SITEMAPS = "sitemaps"
    DOWNLOADING_PAGES = "downloading_pages"
    FINISHING = "finishing"


class EndedBy(StrEnum):
    FINISHED = "finished"
    BUDGET = "budget"
    TIME = "time"
    BYTES = "bytes"
    PAGE_LIMIT = "page_limit"
    WAITING = "waiting"
    QUALITY = "quality"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ERROR = "error"
    CRASHED = "crashed"


Place = tuple[int, int]
"""Where an entry stands in its lane: (seq of the visit that put it there, index among its links)."""


class FrontierEntry(NamedTuple):
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
    unlinked: int = 0
    rank: int | None = None


class Choice(NamedTuple):
    """What a turn may choose from by rank: rows placed before this seq, and whether a new URL is wanted first."""

    before: int
    news: bool


class FoundUrl(NamedTuple):
    """A URL met on a page, before anybody judged it: canonical form, request form, what it is.
    `anchor`, the text of the link, and `parts`, to how many places of it the page leads, are there only when somebody
    wants them; `rank` where it has one already."""

    url: str
    request_url: str
    kind: Kind = Kind.PAGE
    source: Source = Source.SPIDER
    nofollow: bool = False
    lastmod: str = ""
    anchor: str = ""
    rank: int | None = None
    parts: int = 1


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
    """A request that brought no usable answer, and why (a kind from `rules.words.failures`).

    `answer` is what came all the same, with no decoded body: it is archived, never read. `unreachable`: the request
    could not even be sent, so it says something of the host and nothing of the URL.
    """

    kind: str
    message: str
    seconds: float = 0.0
    answer: Response | None = None
    unreachable: bool = False


Reply = Response | Failure


class Document(NamedTuple):
    """What there is to read: a decoded body, what it is said to be, and where, as what and when it was fetched.
    `is_cut`: there was more of it."""

    body: bytes
    content_type: str
    url: str
    kind: Kind
    at_ms: int = 0
    is_cut: bool = False


_NOTHING: Mapping[str, object] = MappingProxyType({})


class Reading(NamedTuple):
    """What one parse of a page gives. `words`, the main text with its white space as it shows, and `hrefs`, its links
    as they are written, tell pages apart; `base` is what it says they are relative to; `text` is for people."""

    links: tuple[FoundUrl, ...] = ()
    title: str = ""
    words: str = ""
    hrefs: str = ""
    base: str | None = None
    text: str = ""
    language: str = ""
    canonical: str = ""
    nofollow: bool = False
    noindex: bool = False
    meta: Mapping[str, object] = _NOTHING


class Substance(NamedTuple):
    """What makes a page what it is: two versions with the same substance are unchanged, whatever their bytes. `text`
    has its white space as it shows; `targets` are the URLs that the links in its main part lead to, in their order."""

    title: str
    text: str
    targets: tuple[str, ...] = ()


class ChangeVerdict(NamedTuple):
    """A change, words that say more of it, and how the substance differs (None: by more than any stamp). `alike`: a
    number that pages have in common that changed in the same way."""

    change: Change
    notes: tuple[Note, ...] = ()
    differences: tuple[int, ...] | None = None
    message: str = ""
    alike: int | None = None


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


class Probe(NamedTuple):
    """What a server says of a page that cannot be there, in one directory. `is_excuse`: that nothing is there, though
    with status 200. `record` is there until it is in the archive."""

    directory: str
    status: int
    is_excuse: bool
    text_hash: bytes
    at_ms: int = 0
    record: Record | None = None


class Spot(NamedTuple):
    """Where a record lies in the archive."""

    file: str
    offset: int
    length: int


class Version(NamedTuple):
    """What an earlier run has of a URL, as its last good answer. `missing`: for how many runs it has been gone since;
    `file` is the archive file that holds it, and `revisit` says that its payload lies with an earlier record."""

    run_id: int
    seq: int
    at_ms: int
    status: int
    size: int
    content_type: str
    etag: str
    last_modified: str
    payload: bytes | None
    text_hash: bytes
    link_hash: bytes
    title: str
    language: str
    canonical: str
    meta: str | None
    links: tuple[int, ...]
    reader: str
    file_id: int | None
    file: str
    offset: int
    length: int
    revisit: int
    missing: int = 0


class FinishedVisit(NamedTuple):
    """One request and what came of it, ready to be committed in its turn.

    `version` is what it was compared with. `is_version`: that is still the page, so its content and links are those,
    unless it `is_read_again`. `unreachable`: the request could not even be sent. `probe`: what it was held against.
    """

    entry: FrontierEntry
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
    redirect: FoundUrl | None = None
    record: Record | None = None
    robots: bytes | None = None
    retry_at_ms: int = 0
    quiet_ms: int = 0
    requested: bool = True
    cookies: tuple[Cookie, ...] = ()
    link_hash: bytes = b""
    version: Version | None = None
    is_version: bool = False
    is_read_again: bool = False
    change: Change | None = None
    notes: tuple[Note, ...] = ()
    differences: tuple[int, ...] | None = None
    alike: int | None = None
    missing: int = 0
    relevance: float = 0.0
    matches: bool = False
    unreachable: bool = False
    probe: Probe | None = None

    @property
    def known_links(self) -> Version | None:
        """The version whose links are those of the page."""
        return self.version if self.is_version and not self.is_read_again else None


class RefusedEntry(NamedTuple):
    """An entry that was refused in its turn, without a request."""

    entry: FrontierEntry
    reason: Reason


class Unanswered(NamedTuple):
    """A request that could not be sent to a host that has answered before: it says nothing of its URL, which keeps its
    place and its tries."""

    entry: FrontierEntry
    kind: str
    message: str


class DownHost(NamedTuple):
    """A host, by its origin, that has answered in this crawl and cannot be reached any more: why, since when, and how
    many sessions saw that."""

    origin: str
    kind: str
    message: str
    since_ms: int
    sessions: int = 0


Turn = FinishedVisit | RefusedEntry
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
    new: int = 0
    modified: int = 0
    deleted: int = 0
    unknown: int = 0
    saved: int = 0


class Seed(NamedTuple):
    """A seed of a run: where its scope lies now, and what it has used of its limits.

    `path` is what it stands for, and after a blank, which no path has, each that it was redirected to besides.
    """

    number: int
    url: str
    host: str
    path: str
    kept: int = 0
    requests: int = 0

    @property
    def paths(self) -> list[str]:
        return self.path.split(" ")


@dataclass(frozen=True, slots=True)
class RunInfo:
    run_id: int
    number: int
    mode: str
    parent: int | None
    state: RunState
    seq: int
    settings: "NamedSettings"
    counters: Counters
    seeds: tuple[Seed, ...]
    disturbed: str
    created_ms: int
    ended_ms: int | None
    origin: int | None = None
    origin_seq: int | None = None
    horizon: int = 0
    swept: int = 0
    concluded: int = 0
    alarm: str = ""
    follows: int | None = None
    """run_id of the run before it on its line."""

    beside: bool = False
    """Whether it lies beside the line, so that later runs do not build on it."""


class CheckpointInfo(NamedTuple):
    """A position in a run's sequence that one can go back to. `state` is `crawling` while the run was active."""

    number: int
    run_id: int
    run: int
    seq: int
    type: CheckpointType
    state: str
    substate: Substate
    created_ms: int
    counters: Counters
    disturbed: str
    size: int

    @property
    def can_resume(self) -> bool:
        return self.state == CRAWLING


CRAWLING = "crawling"


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
    unanswered: int = 0


class LiveProgress(NamedTuple):
    """Where a session stands, for people who watch."""

    counters: Counters
    requests: int
    size: int
    seconds: float
    in_flight: tuple[str, ...]
    order: str
    seeds: tuple[tuple[str, int], ...] = ()
    is_ending: bool = False
    unanswered: int = 0
    down: tuple[DownHost, ...] = ()


@dataclass(frozen=True, slots=True)
class CrawlInfo:
    """A crawl. `settings`: what its last session was given; `defaults`: what holds for each; `typed`: its seeds were
    typed on this machine, so they may lie in a private network; `started`: it was worked on, so it has a record."""

    crawl_id: str
    name: str
    seeds: tuple[str, ...]
    settings: "NamedSettings"
    created_ms: int
    defaults: "NamedSettings" = dataclasses.field(default_factory=dict)
    incremental: bool = True
    enabled: bool = True
    typed: bool = True
    started: bool = False


class WarcRecord(NamedTuple):
    """One record of a WARC file, uncompressed, with the names of headers in lower case, and where it lies."""

    offset: int
    length: int
    headers: Mapping[str, str]
    content: bytes
