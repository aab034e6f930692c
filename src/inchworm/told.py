"""What the library is asked and answers, with types. Names are those of exports and the HTTP API; times are texts in
UTC, as ISO 8601 has them."""

# Without `from __future__ import annotations`: a NamedTuple would compile each of them again at every start.

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple, TypedDict


class Progress(NamedTuple):
    """Where a session stands. The first numbers are those of its run, the others its own."""

    known: int
    pending: int
    pages: int
    duplicates: int
    unchanged: int
    failed: int
    refused: int
    requests: int
    bytes: int
    seconds: float
    in_flight: tuple[str, ...]
    """The URLs that are under way."""

    order: str
    """How far the order of the record can be relied on."""

    is_ending: bool
    """Whether it is about to stop, and only waits for what is under way."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to."""

    count: int
    """How many lines, rows, records or files were written."""

    skipped: int
    """How many pages have no content there, because the archive has lost it."""

    lost: tuple[str, ...]
    """Some of those."""

    next_since: int | None
    """The run to name as `since` next time, to be told what changed from now on; None while none has ended."""


Names = str | Iterable[str]
"""One name, several, or a text with commas between them."""

Frame = Literal["drop", "keep"]
"""What is done with blocks that stand on most pages of their host."""

When = int | str | date | None
"""The number of a run, a date or a time, or a text such as `yesterday`, `36h` or `2026-01-31`."""


class Which(TypedDict, total=False):
    """Which pages are wanted; without a word, those of the crawl as it is now. `run`: what one run has on record
    instead, failures and redirects included. `since`: what changed since then, deleted pages too; `only` these
    changes: new, modified, deleted. `unique`: each content once. `frame`: "keep" for texts with what stands on most
    pages of their host."""

    run: int | None
    since: When
    only: Names
    unique: bool
    frame: Frame


class Table(Which, total=False):
    """Which pages are wanted, and which columns of them: the usual ones, or exactly these `columns`; and some more
    `with_` them."""

    columns: Names
    with_: Names


class Export(Table, total=False):
    """The same for an export. `types`: media types or endings, for the format `files`; `bom`: with the mark by which
    Excel knows UTF-8, for `csv`."""

    types: Names
    bom: bool


Fields = Mapping[str, str] | Sequence[str]
"""Fields and the selectors that find them: by name, or each as `name=SELECTOR`."""


class FieldCount(TypedDict):
    """A field, what its values are, and how many pages have it."""

    name: str
    type: str
    pages: int


class Extracted(TypedDict):
    """What came of taking fields out of the pages of a run."""

    crawl_id: str
    name: str
    run: int
    extract: list[str]
    each: str
    pages: int
    rows: int
    failed: int
    fields: list[FieldCount]
    unmatched_fields: list[str]


class Archive(TypedDict):
    """Where an answer lies in the archive."""

    file: str | None
    offset: int | None
    length: int | None


class Visit(TypedDict):
    """A visit to a page or resource, as it is on record."""

    url: str
    canonical_url: str
    seq: int
    outcome: str
    failure: str | None
    message: str | None
    change: str | None
    note: str | None
    status: int | None
    fetched_at: str
    seconds: float | None
    bytes: int | None
    content_type: str | None
    etag: str | None
    last_modified: str | None
    content_hash: str | None
    payload_hash: str | None
    title: str | None
    full_title: str | None
    language: str | None
    author: str | None
    published: str | None
    modified: str | None
    description: str | None
    canonical: str | None
    meta: dict[str, Any]
    redirect: str | None
    source: str
    depth: int
    hops: int
    found_on: str | None
    link_count: int
    archive: Archive
    session: int
    kind: str
    missing: int


class Owner(TypedDict):
    """The process that works on a crawl."""

    pid: int
    machine: str


class Session(TypedDict):
    """One sitting of a run."""

    session: int
    state: str
    ended_by: str | None
    requests: int
    unanswered: int
    bytes: int
    started_at: str
    ended_at: str | None
    message: str


class Down(TypedDict):
    """A host that cannot be reached."""

    host: str
    kind: str
    message: str
    since: str
    sessions: int


class Status(TypedDict):
    """Where a crawl stands: its last run, and the sessions of that."""

    crawl_id: str
    name: str
    seeds: list[str]
    run: int
    mode: str
    branch_of: int | None
    on_line: bool
    line_end: int | None
    run_state: str
    word: str
    owner: Owner | None
    sessions: list[Session]
    ended_by: str | None
    order: str
    created_at: str
    known: int
    pending: int
    pages: int
    duplicates: int
    unchanged: int
    resources: int
    redirects: int
    failed: int
    refused: int
    requests: int
    bytes: int
    new: int
    modified: int
    deleted: int
    unknown: int
    saved_bytes: int
    seed_pages: dict[str, int]
    message: str
    blocked: int
    down: list[Down]
    lost_files: list[str]


class Run(TypedDict):
    """A run: what it found and what it saved."""

    run: int
    iteration_id: str
    mode: str
    parent: int | None
    branch_of: int | None
    on_line: bool
    state: str
    started_at: str
    ended_at: str | None
    pages: int
    duplicates: int
    failed: int
    pending: int
    new: int
    modified: int
    unchanged: int
    deleted: int
    unknown: int
    requests: int
    bytes: int
    saved_bytes: int
    alarm: str


class ChangedPassage(TypedDict):
    """What stood in the `title`, the `text` or as a `link` of a page, and what stands there now."""

    where: str
    before: str
    after: str


class AlikeChanged(TypedDict):
    """Modified pages that changed in the same way: how many, the first of them, and what differs."""

    pages: int
    urls: list[str]
    difference: list[ChangedPassage]
    difference_is_cut: bool
    note: str


class Comparison(TypedDict):
    """Two runs side by side: the URLs of their pages by what became of them, and modified pages by what differs, the
    largest groups first."""

    baseline_iteration_id: str
    current_iteration_id: str
    new_documents: list[str]
    modified_documents: list[str]
    unchanged_documents: list[str]
    deleted_documents: list[str]
    unknown_documents: list[str]
    modified_groups: list[AlikeChanged]
    unknown_reasons: dict[str, int]
    total_changes: int
    has_changes: bool
    summary: str


class Result(TypedDict):
    """A page that was found. Hits stand in « » in its snippet."""

    url: str
    title: str
    snippet: str
    run: int
    fetched_at: str
    alternate_urls: list[str]
    score: float


class Results(TypedDict):
    """What a search found: `count` in all, the best of them as `results`."""

    query: str
    count: int
    results: list[Result]


class Why(TypedDict):
    """Why a URL was or was not crawled."""

    url: str
    canonical_url: str
    state: str
    reason: str | None
    why: str


class Diff(TypedDict):
    """One page in two runs, as lines of a unified diff."""

    url: str
    canonical_url: str
    baseline: int
    current: int
    diff: list[str]
    is_cut: bool


class UrlNumbers(TypedDict):
    """URLs at a checkpoint."""

    total: int
    completed: int
    failed: int
    pending: int


class CheckpointProgress(TypedDict):
    """How far a run was at a checkpoint."""

    urls: UrlNumbers
    pages: int


class Checkpoint(TypedDict):
    """A position in a run that one can go back to."""

    checkpoint_id: str
    crawl_id: str
    checkpoint_number: int
    checkpoint_type: str
    created_at: str
    current_state: str
    current_substate: str
    can_resume: bool
    can_branch: bool
    file_size_bytes: int
    progress: CheckpointProgress
    run: int
    seq: int


class QueueCount(TypedDict):
    """How many URLs of one source are in one state, for one reason."""

    source: str
    state: str
    reason: str | None
    count: int


class Queue(TypedDict):
    """The frontier in numbers."""

    crawl_id: str
    has_queue: bool
    visited: int
    pending: int
    refused: int
    total: int
    can_resume: bool
    current_run: int
    run_state: str
    sessions: list[int]
    counts: list[QueueCount]


class Entry(TypedDict):
    """A URL in the frontier of a run."""

    id: str
    crawl_id: str
    run: int
    url_id: int
    url: str
    request_url: str
    state: str
    reason: str | None
    kind: str
    source: str
    seed_url: str | None
    depth: int
    hops: int
    found_on: str | None
    found: int
    done: int | None
    attempts: int
    lastmod: str | None
    not_before: str | None
    why: str | None


class Added(Entry):
    """A URL that was put in by hand, and what became of it."""

    added: bool
    message: str
