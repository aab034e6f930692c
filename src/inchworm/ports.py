"""The boundaries of the engine, as Protocols. `app` picks what stands behind them."""

# Without `from __future__ import annotations`: a NamedTuple would compile each of them again at every start.

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from inchworm.model import (
    ChangeVerdict,
    CheckpointType,
    Choice,
    Cookie,
    Counters,
    Document,
    DownHost,
    Failure,
    FoundUrl,
    FrontierEntry,
    Kind,
    Note,
    Probe,
    Reading,
    Reason,
    Record,
    Reply,
    Request,
    Seed,
    Source,
    Spot,
    State,
    Substate,
    Version,
)


class Fetcher(Protocol):
    """Answers one request. Never raises for what the network does; a failure is a value.

    Redirects are not followed: a 3xx is a `Response` like any other.
    """

    async def fetch(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


class Read(NamedTuple):
    """What reading a document gave: its content, the hashes of its text and of its links, a note where something was
    left out, whether it is a page that reads like an excuse for one that is not there or like a bot wall, and how well
    it matches the query, if at all."""

    reading: Reading
    text_hash: bytes
    note: str
    link_hash: bytes = b""
    looks_missing: bool = False
    looks_blocked: bool = False
    relevance: float = 0.0
    matches: bool = False


class Reader(Protocol):
    """Makes sense of documents. What is in one is never an exception."""

    def read(self, given: Document) -> Read:
        """Read a small document on the spot."""
        ...

    async def read_apart(self, given: Document) -> Read | Failure:
        """Read a large or risky one within limits of time and memory, and without holding anybody up."""
        ...

    async def compare_apart(self, old: Document, new: Document) -> ChangeVerdict | Failure:
        """The verdict on two versions of such a one, within the same limits."""
        ...

    async def close(self) -> None: ...


class Earlier(Protocol):
    """What the runs before this one know of URLs."""

    def expect(self, entry: FrontierEntry, upcoming: Iterator[FrontierEntry]) -> None:
        """This one is asked about next, and then those: looking many up together is several times cheaper."""

    def version(self, entry: FrontierEntry) -> Version | None:
        """The last good answer that an earlier run has for a URL."""

    def objection(self, entry: FrontierEntry, version: Version) -> Note | None:
        """Why it is of no use to ask whether a version is still the right one; None when it is of use."""

    def is_read_otherwise(self, version: Version) -> bool:
        """Whether a version was read in another way than it would be now."""

    def body(self, version: Version) -> bytes | None:
        """The body of a version; None when it is lost."""

    def had(self, entry: FrontierEntry, text_hash: bytes) -> bool:
        """Whether a URL had this text before its last version, or has it still."""

    def text_hash(self, version: Version, url: str) -> bytes:
        """What the text of a version comes to for the reader of today; empty when its body is lost, or only
        another process may read it."""


class Clock(Protocol):
    """The time. `now_ms` may jump; `monotonic` never goes back."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class Original(NamedTuple):
    """An earlier record with the same payload, for a revisit. `is_current`: the server said that it still holds."""

    url: str
    at_ms: int
    is_current: bool = False
    file: str = ""


class ArchiveWriter(Protocol):
    """Where fetched bytes go. What was synced before a commit survives; the rest may be cut away."""

    def append(self, record: Record, at_ms: int, original: Original | None) -> Spot: ...

    def holds(self, file: str) -> bool:
        """Whether a file of the archive is still there."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Known(NamedTuple):
    """What a run knows of a URL. `in_run` is false for a URL that only other runs have met."""

    url_id: int
    in_run: bool
    state: State
    reason: Reason | None
    depth: int
    hops: int


class RowState(NamedTuple):
    """The part of a frontier row that may change in place."""

    state: State
    reason: Reason | None
    seed: int
    depth: int
    hops: int
    lane: int
    place_seq: int
    place_idx: int
    request_url: str | None
    attempts: int
    not_before_ms: int
    chain: int
    tried: str | None
    done: int | None
    rank: int | None = None


class NewFrontierRow(NamedTuple):
    """A frontier row to be added."""

    url_id: int
    kind: Kind
    source: Source
    found: int
    found_on: int | None
    lastmod: str | None
    standing: RowState
    unlinked: int = 0


class StoredRow(NamedTuple):
    """A frontier row as it is looked at again."""

    url_id: int
    url: str
    kind: Kind
    source: Source
    found_on: int | None
    standing: RowState


class VisitRow(NamedTuple):
    """A visit as the store keeps it; the columns of its table, in order."""

    seq: int
    url_id: int
    request_url: str | None
    kind: str
    at_ms: int
    outcome: str
    requested: int
    failure: str | None
    message: str | None
    status: int
    millis: int
    size: int
    content_type: str | None
    etag: str | None
    last_modified: str | None
    payload: bytes | None
    text_hash: bytes | None
    title: str | None
    language: str | None
    canonical: str | None
    meta: str | None
    links: tuple[int, ...]
    redirect: int | None
    reader: str | None
    file_id: int | None
    offset: int | None
    length: int | None
    revisit: int
    change: str | None = None
    note: str | None = None
    link_hash: bytes | None = None
    differences: str | None = None
    missing: int = 0
    share: int | None = None
    parts: bytes | None = None
    alike: int | None = None


class Judgement(NamedTuple):
    """The part of a visit that is decided upon again when the run is at its end."""

    outcome: str
    change: str | None
    note: str | None
    message: str | None


class Unreached(NamedTuple):
    """A page that earlier runs know and this one has not met. `finder_was_read`: the page that led to it was read."""

    url_id: int
    url: str
    request_url: str
    source: Source
    depth: int
    found_on: int | None
    finder_was_read: bool
    unlinked: int


class Redirected(NamedTuple):
    """A page of earlier runs that redirects now: its text then, and where it leads."""

    seq: int
    judgement: Judgement
    status: int
    redirect: int
    text_hash: bytes
    reader: str


class Differing(NamedTuple):
    """A page that is taken to be modified, and how it differs."""

    seq: int
    judgement: Judgement
    lane: int
    is_html: bool
    differences: tuple[int, ...]


class Believed(NamedTuple):
    """A page of which its server said that it is unchanged."""

    url_id: int
    seq: int
    seed: int
    saved: int
    judgement: Judgement


class Contradicted(NamedTuple):
    """A page that changed, as it seems, though its validator did not; and by what, should that be stamps."""

    lane: int
    is_html: bool
    validator: str
    differences: tuple[int, ...] | None


class NewCheckpoint(NamedTuple):
    """A checkpoint to be added, with the totals that the run has at its seq."""

    seq: int
    type: CheckpointType
    substate: Substate
    created_ms: int
    counters: Counters
    disturbed: str


@dataclass(slots=True)
class Commit:
    """What one commit writes: all of it or nothing."""

    run_id: int
    session: int
    seq: int = 0
    counters: Counters = field(default_factory=Counters)
    seeds: tuple[Seed, ...] = ()
    disturbed: str = ""
    requests: int = 0
    size: int = 0
    inbox_id: int = 0
    urls: list[tuple[int, int, str]] = field(default_factory=list)
    hosts: list[tuple[int, str]] = field(default_factory=list)
    entries: list[NewFrontierRow] = field(default_factory=list)
    settled: list[tuple[State, Reason | None, int, int]] = field(default_factory=list)
    moved: list[tuple[int, RowState]] = field(default_factory=list)
    undo: list[tuple[int, str, int, str]] = field(default_factory=list)
    visits: list[VisitRow] = field(default_factory=list)
    lanes: dict[int, int] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=dict)
    robots: list[tuple[str, int, str, bytes | None]] = field(default_factory=list)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    pardoned: list[int] = field(default_factory=list)
    quiet: list[tuple[int, int, int]] = field(default_factory=list)
    cookies: list[tuple[int, int, Cookie]] = field(default_factory=list)
    checkpoints: list[NewCheckpoint] = field(default_factory=list)
    judged: list[tuple[int, Judgement]] = field(default_factory=list)
    distrusted: list[tuple[int, str, int, str]] = field(default_factory=list)
    promises: list[tuple[int, int, int]] = field(default_factory=list)
    probes: list[tuple[Probe, int, int, Spot]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    down: list[DownHost] = field(default_factory=list)
    up: list[str] = field(default_factory=list)
    swept: int = 0
    concluded: int = 0
    alarm: str = ""
    nofollow: bool = False

    def clear_rows(self) -> None:
        """Forget the rows, which were written; the totals stay."""
        for rows in (self.urls, self.hosts, self.entries, self.settled, self.moved, self.undo, self.visits):
            rows.clear()
        for said in (self.robots, self.quiet, self.cookies, self.probes, self.answered, self.down, self.up):
            said.clear()
        for more in (self.pardoned, self.checkpoints, self.judged, self.distrusted, self.promises):
            more.clear()
        for counted in (self.lanes, self.opened, self.files):
            counted.clear()


class PendingRows(Protocol):
    """What is pending in a run, lane by lane."""

    def lanes(self, run_id: int) -> list[int]:
        """Lanes that have pending rows, in the order in which their hosts were met."""
        ...

    def has_several_lanes(self, run_id: int) -> bool:
        """Whether the run has met more than one lane so far."""
        ...

    def pending(self, run_id: int, lane: int, after: FrontierEntry | None, limit: int) -> list[FrontierEntry]:
        """The next pending rows of a lane, in the order of their places, after an entry or from the start."""
        ...

    def choose(self, run_id: int, lane: int, choice: Choice, skip: Set[int]) -> FrontierEntry | None:
        """The pending row of a lane that is to be taken next by rank, other than those to skip."""
        ...

    def news_waiting(self, run_id: int, seed: int) -> int:
        """How many pages of a seed wait that were put ahead of all others because no run has met them before."""
        ...


class KnownRows(Protocol):
    """What a run knows of URLs."""

    def known(self, run_id: int, urls: Iterable[str], rows: bool = True) -> dict[str, Known]:
        """What is known of these URLs. Absent: met by no run. Equal hashes never mix URLs up.

        Without `rows` only whether they are known: good for the only run of a crawl, where what is known is in the
        run, and where no row has to be judged again.
        """
        ...

    def links(self, run_id: int, earlier: int, url_ids: Iterable[int]) -> list[tuple[FoundUrl, Known]]:
        """These rows of an earlier run as they were found, and what the present run knows of them."""
        ...

    def rows(self, run_id: int, url_ids: Sequence[int]) -> list[StoredRow]:
        """These rows of the run; ids that the run does not know are left out."""
        ...

    def all(self, run_id: int) -> list[StoredRow]:
        """Every row of a run, in the order of their places."""
        ...

    def outside(self, run_id: int) -> list[StoredRow]:
        """Rows outside the scope, whatever their state, in the order of their places."""
        ...

    def failed(self, run_id: int, kind: str | None = None, url: str | None = None) -> list[StoredRow]:
        """Rows whose last visit failed (of this kind, this URL), in the order of record."""
        ...


class KeptVisits(Protocol):
    """What was visited and kept."""

    def of(self, run_id: int, url_id: int) -> VisitRow | None:
        """The visit that settled a done row."""
        ...

    def owners_of(self, run_id: int, hashes: Iterable[bytes]) -> set[bytes]:
        """Which of these contents the run has kept already."""
        ...

    def originals(self, payloads: Iterable[bytes]) -> dict[bytes, Original]:
        """For each payload that the archive has already: the record to refer to."""
        ...


class HostFacts(Protocol):
    """What servers said, beside pages."""

    def all(self) -> Mapping[str, int]:
        """Every host met, by name."""
        ...

    def quiet(self) -> list[tuple[str, int, int]]:
        """Hosts that asked for quiet: name, until when, and for how long in milliseconds."""
        ...

    def answered(self) -> list[str]:
        """The origins that have answered in any run of this crawl."""
        ...

    def down(self) -> list[DownHost]:
        """Those of them that could not be reached any more when they were asked last."""
        ...

    def robots(self, run_id: int, origin: str | None = None) -> list[tuple[str, str, bytes | None]]:
        """Origin, verdict and rules of every robots.txt committed in this run (of this origin), the newest of each."""
        ...

    def robots_times(self, run_id: int) -> list[tuple[str, int]]:
        """When each of those was read: origin and time in milliseconds."""
        ...

    def cookies(self, run_id: int) -> list[Cookie]:
        """The newest cookie of each name that the run was given, in the order they came."""
        ...

    def probes(self, run_id: int) -> list[Probe]:
        """What servers said of pages that cannot be there, as far as it is on record."""
        ...


class RunFacts(Protocol):
    """What a run has to know of itself and of others."""

    def is_only(self, run_id: int) -> bool:
        """Whether the crawl has no other run."""
        ...

    def was_full(self, number: int, page_limit: int) -> bool:
        """Whether a seed of the run of this number kept as many pages as this limit allows."""
        ...

    def has_nofollow(self, run_id: int) -> bool:
        """Whether the run may have refused a URL because of nofollow."""
        ...


class EarlierPages(Protocol):
    """Pages as the runs before this one have them."""

    def version(self, url_id: int, horizon: int) -> Version | None:
        """The last good answer that a run before the horizon has for a URL."""
        ...

    def unreached(self, run_id: int, horizon: int) -> list[Unreached]:
        """Pages that runs before the horizon know, and that this one has not met, in the order of their ids."""
        ...

    def redirected(self, run_id: int, horizon: int) -> list[Redirected]:
        """Pages that runs before the horizon know and that redirect in this one, in the order of record."""
        ...

    def count_unknown(self, run_id: int, horizon: int) -> int:
        """How many pages that runs before the horizon know got no verdict in this one."""
        ...


class Evidence(Protocol):
    """What tells whether a page has changed, beside the page."""

    def differing(self, run_id: int) -> list[Differing]:
        """Pages that are taken to be modified though stamps may explain it, in the order of record."""
        ...

    def compared(self, run_id: int) -> dict[tuple[int, bool], int]:
        """How many pages of each lane were compared with an earlier version: those in HTML, and the rest."""
        ...

    def believed(self, run_id: int, lane: int) -> list[Believed]:
        """Rows of a lane of which their server said that they are unchanged."""
        ...

    def useless(self, run_id: int) -> set[int]:
        """Lanes whose entity tags changed in a run without the pages, and never helped."""
        ...

    def last_unchanged(self, run_id: int, seed: int) -> Believed | None:
        """The last page that a seed kept and that is as it was, if nothing else depends on it."""
        ...

    def contradicted(self, run_id: int) -> list[Contradicted]:
        """Pages that are taken to be modified under a validator that did not change, in the order of record."""
        ...


class Ranks(Protocol):
    """The ranks that votes give, in a run with a query."""

    def count(self, run_id: int, upto: int) -> int:
        """Let the votes of all visits up to this seq count, and of none after it: ranks follow. In a transaction.

        Says how far it came: there is a limit to what one transaction should hold.
        """
        ...


class RowWriter(Protocol):
    """Where a session puts what it found."""

    def next_ids(self) -> tuple[int, int, int]:
        """The next free url_id, host_id and file_id."""
        ...

    def committing(self, token: int) -> AbstractContextManager[None]:
        """One durable transaction around several `write`s: all of it or nothing. `Lost` with an old token."""
        ...

    def write(self, changes: Commit) -> None:
        """Put rows into the open transaction; reads of the same store see them at once."""
        ...


class Heart(Protocol):
    """What others see of the owner."""

    def beat(self, token: int) -> None:
        """Show that the owner lives. `Lost` when the token is an old one."""
        ...


class Store(Protocol):
    """The part of a crawl's store that a session works with, by its nouns."""

    @property
    def queue(self) -> PendingRows: ...

    @property
    def frontier(self) -> KnownRows: ...

    @property
    def visits(self) -> KeptVisits: ...

    @property
    def hosts(self) -> HostFacts: ...

    @property
    def runs(self) -> RunFacts: ...

    @property
    def earlier(self) -> EarlierPages: ...

    @property
    def evidence(self) -> Evidence: ...

    @property
    def ranks(self) -> Ranks: ...

    @property
    def commits(self) -> RowWriter: ...

    @property
    def owner(self) -> Heart: ...
