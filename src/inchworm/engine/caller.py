"""How a caller takes part in a session, and what it is told at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inchworm.model import CrawlInfo, DownHost, FinishedVisit, LiveProgress, RunInfo


@dataclass(frozen=True, slots=True)
class Summary:
    """How a session went and how its run stands."""

    crawl_id: str
    name: str
    run: int
    session: int
    run_state: str
    session_state: str
    ended_by: str
    fetched: int
    bytes: int
    seconds: float
    pages: int
    duplicates: int
    unchanged: int
    failed: int
    refused: int
    pending: int
    known: int
    order: str
    word: str = ""
    message: str = ""
    seeds: tuple[tuple[str, int], ...] = ()
    signal: int = 0
    mode: str = "baseline"
    parent: int | None = None
    branch_of: int | None = None
    on_line: bool = True
    new: int = 0
    modified: int = 0
    deleted: int = 0
    unknown: int = 0
    saved_bytes: int = 0
    downloaded: Mapping[str, int] = dataclasses.field(default_factory=dict)
    alarm: str = ""
    indexed: int = 0
    fields: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How many pages of the run have each field."""

    unmatched_fields: tuple[str, ...] = ()
    note: str = ""
    unanswered: int = 0
    down: tuple[DownHost, ...] = ()
    blocked: int = 0
    moved: tuple[str, ...] = ()
    mostly_duplicates: bool = False
    """A seed with a page limit was given up because it brought little else."""


@dataclass(slots=True)
class Hooks:
    """How a caller takes part in a session: plain functions, all optional."""

    started: Callable[[CrawlInfo, RunInfo, int], None] | None = None
    progress: Callable[[LiveProgress], None] | None = None
    visited: Callable[[FinishedVisit], None] | None = None
    signals: bool = False
    extracting: Callable[[int, int], None] | None = None
    """Told how many pages fields were taken out of, of how many, after the session."""
