"""Reports: what a run found wrong with a site, and what is slow."""

from __future__ import annotations

import codecs
import csv
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, TypeAlias

from inchworm.app.memory import Memory
from inchworm.app.workspace import Workspace
from inchworm.errors import InchwormError, WrongUse
from inchworm.model import CrawlInfo
from inchworm.rules.words.failures import KINDS
from inchworm.rules.words.json_form import FLAT
from inchworm.sink.columns import Type
from inchworm.sink.table import cell
from inchworm.store.crawl.read.reports import NO_LIMIT, Fetched, Hop, Reports

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


EXAMPLES = 3
SLOWEST = 20
_ROWS = 50
_LINKING = 5
_FRESH_SECONDS = 30
_PATIENCE_SECONDS = 0.15
PERCENTILES = (50, 90, 99)
_DELETED = "The page was there in an earlier run, and the server says that it is gone."


# ---- the reports, and as tables

Row: TypeAlias = tuple[str | int | None, ...]
"""A line of a table, with a value for each of its columns."""


@dataclass(frozen=True, slots=True)
class ReportHead:
    """Which report it is, and on what."""

    report: str
    crawl_id: str
    run: int


@dataclass(frozen=True, slots=True)
class LinkingPage:
    """A page that links to something. `through`: the address it names, where that redirects there."""

    url: str
    title: str
    through: str | None


@dataclass(frozen=True, slots=True)
class BrokenLinkRow:
    """A URL that brought no page, and those that link there: `pages` in all."""

    url: str
    status: int | None
    kind: str
    message: str
    pages: int
    linked_from: Sequence[LinkingPage]


@dataclass(frozen=True, slots=True)
class BrokenLinksReport:
    """URLs that failed or are gone."""

    columns: ClassVar = ("url", "status", "kind", "message", "pages", "page", "page_title", "through")

    about: ReportHead = field(metadata=FLAT)
    count: int
    rows: Sequence[BrokenLinkRow]

    def lines(self) -> Iterator[Row]:
        for one in self.rows:
            for page in one.linked_from or (LinkingPage("", "", ""),):
                yield one.url, one.status, one.kind, one.message, one.pages, page.url, page.title, page.through


@dataclass(frozen=True, slots=True)
class RedirectRow:
    """Redirects from a first address to a last one, and what came of that."""

    url: str
    final_url: str
    final_status: int | None
    final_outcome: str
    hops: Sequence[Hop]
    permanent: bool
    trouble: str | None
    pages: int


@dataclass(frozen=True, slots=True)
class RedirectsReport:
    """Where links are redirected."""

    columns: ClassVar = (
        *("url", "final_url", "final_status", "final_outcome", "hops"),
        *("statuses", "permanent", "trouble", "pages"),
    )

    about: ReportHead = field(metadata=FLAT)
    count: int
    rows: Sequence[RedirectRow]

    def lines(self) -> Iterator[Row]:
        for one in self.rows:
            addresses, statuses = " ".join(hop.url for hop in one.hops), " ".join(str(hop.status) for hop in one.hops)
            lasting = "yes" if one.permanent else "no"
            ends = one.final_url, one.final_status, one.final_outcome
            yield one.url, *ends, addresses, statuses, lasting, one.trouble, one.pages


@dataclass(frozen=True, slots=True)
class DuplicatesRow:
    """URLs with the same content, the primary one first."""

    url: str
    title: str
    size: int
    count: int
    alternate_urls: Sequence[str]


@dataclass(frozen=True, slots=True)
class DuplicatesReport:
    """Contents that have several URLs."""

    columns: ClassVar = ("primary", "url", "title", "count")

    about: ReportHead = field(metadata=FLAT)
    count: int
    rows: Sequence[DuplicatesRow]

    def lines(self) -> Iterator[Row]:
        for one in self.rows:
            for url in one.alternate_urls:
                yield one.url, url, one.title, one.count


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """How often something went wrong in one way, what that means, and where for example."""

    kind: str
    status: int | None
    count: int
    meaning: str
    examples: Sequence[str]


@dataclass(frozen=True, slots=True)
class ErrorsReport:
    """What went wrong, by kind and status."""

    columns: ClassVar = ("kind", "status", "count", "meaning", "example")

    about: ReportHead = field(metadata=FLAT)
    count: int
    rows: Sequence[ErrorRow]

    def lines(self) -> Iterator[Row]:
        for one in self.rows:
            for url in one.examples:
                yield one.kind, one.status, one.count, one.meaning, url


@dataclass(frozen=True, slots=True)
class SlowReport:
    """How long answers took, the slowest ones, and the largest ones."""

    columns: ClassVar = ("list", "url", "millis", "size", "status", "content_type")

    about: ReportHead = field(metadata=FLAT)
    count: int
    percentiles: Mapping[str, int]
    rows: Sequence[Fetched]
    largest: Sequence[Fetched]

    def lines(self) -> Iterator[Row]:
        for name, rows in (("slowest", self.rows), ("largest", self.largest)):
            for one in rows:
                yield name, one.url, one.millis, one.size, one.status, one.content_type


Report: TypeAlias = BrokenLinksReport | RedirectsReport | DuplicatesReport | ErrorsReport | SlowReport


class RunReports:
    """Reports on runs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def one(
        self, word: str, name: str, number: int | None = None, limit: int | None = None, linking: int = NO_LIMIT
    ) -> Report:
        """One of `REPORTS` on a run, with at most so many rows (of `errors`: examples of each). `linking`: so many of
        the pages that link to something."""
        if name not in REPORTS:
            raise WrongUse(f"There is no report {name!r}.", f"Known ones: {', '.join(REPORTS)}.")
        if limit is not None and limit < 1:
            raise WrongUse(f"{limit} rows cannot be shown.", "Give a number from 1 on.")
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            reports = Reports(store, current.run_id, linking)
            with reports.snapshot():
                return REPORTS[name].make(ReportHead(name, crawl.crawl_id, current.number), reports, limit)

    def soon(self, crawl: CrawlInfo, name: str, number: int | None = None) -> Report | None:
        """What a page shows of a report; None while it is being made, beside the one who asks. It is made again when
        the crawl has changed, though of one that goes on not all the time."""
        changed = () if self._workspace.is_running(crawl) else self._workspace.place(crawl).mark()
        stamp = changed or (int(self._workspace.clock.monotonic() / _FRESH_SECONDS),)
        key = (self._workspace.folder, crawl.crawl_id, name, number, stamp)
        making = _MADE.get(key, lambda: _maker().submit(_made, self._workspace.folder, crawl.crawl_id, name, number))
        try:
            return making.result(_PATIENCE_SECONDS)
        except TimeoutError:
            return None
        except InchwormError:
            _MADE.forget(key)
            raise

    def csv(self, word: str, name: str, out: BinaryIO, number: int | None = None, limit: int | None = None) -> int:
        """The same as a table, harmless in a spreadsheet; how many rows."""
        found = self.one(word, name, number, limit)
        lines = csv.writer(codecs.getwriter("utf-8")(out, "replace"), lineterminator="\r\n")
        lines.writerow(found.columns)
        count = 0
        for row in found.lines():
            lines.writerow([value if isinstance(value, int) else cell(Type.TEXT, value) for value in row])
            count += 1
        return count


_MADE: Memory[Future[Report]] = Memory(32)


@functools.cache
def _maker() -> Executor:
    """One at a time: whoever looks at many of them does not slow down others."""
    from concurrent.futures import ThreadPoolExecutor  # only a service needs it

    return ThreadPoolExecutor(1, "reports")


def _made(folder: Path, crawl_id: str, name: str, number: int | None) -> Report:
    workspace = Workspace(folder)
    try:
        return RunReports(workspace).one(crawl_id, name, number, EXAMPLES if name == "errors" else _ROWS, _LINKING)
    finally:
        workspace.close()


# ---- how each is made


def _broken_links(about: ReportHead, reports: Reports, limit: int | None) -> Report:
    total, found = reports.broken_links(_most(limit))
    rows = [
        BrokenLinkRow(
            one.url,
            one.status or None,
            one.kind,
            one.message,
            one.pages,
            [LinkingPage(page.url, page.title, page.through or None) for page in one.linked_from],
        )
        for one in found
    ]
    return BrokenLinksReport(about, total, rows)


def _redirects(about: ReportHead, reports: Reports, limit: int | None) -> Report:
    total, found = reports.redirects(_most(limit))
    rows = [
        RedirectRow(
            one.hops[0].url,
            one.final_url,
            one.final_status or None,
            one.final_outcome,
            one.hops,
            one.is_permanent,
            one.trouble or None,
            one.pages,
        )
        for one in found
    ]
    return RedirectsReport(about, total, rows)


def _duplicates(about: ReportHead, reports: Reports, limit: int | None) -> Report:
    total, found = reports.duplicates(_most(limit))
    rows = [DuplicatesRow(one.urls[0], one.title, one.size, len(one.urls), one.urls) for one in found]
    return DuplicatesReport(about, total, rows)


def _errors(about: ReportHead, reports: Reports, limit: int | None) -> Report:
    rows = [
        ErrorRow(one.kind, one.status or None, one.urls, _meaning(one.kind), one.examples)
        for one in reports.errors(limit or EXAMPLES)
    ]
    return ErrorsReport(about, sum(row.count for row in rows), rows)


def _meaning(kind: str) -> str:
    if kind == "deleted":
        return _DELETED
    return f"{KINDS[kind].sentence} {KINDS[kind].advice}" if kind in KINDS else ""


def _slow(about: ReportHead, reports: Reports, limit: int | None) -> Report:
    count, found = reports.percentiles(PERCENTILES)
    percentiles = {f"p{percent}": millis for percent, millis in found.items()}
    most = limit or SLOWEST
    return SlowReport(about, count, percentiles, reports.slowest(most), reports.largest(most))


def _most(limit: int | None) -> int:
    return NO_LIMIT if limit is None else limit


@dataclass(frozen=True, slots=True)
class ReportKind:
    """A report that can be made of a run: what it is called on the dashboard and what it is, what it counts, one of
    them and several, and how many rows are shown where nobody says."""

    make: Callable[[ReportHead, Reports, int | None], Report]
    title: str
    help: str
    one: str
    several: str
    shown: int = 20


REPORTS: Mapping[str, ReportKind] = {
    "broken-links": ReportKind(
        _broken_links,
        "Broken links",
        "URLs that failed or are gone, and the pages that link there.",
        "broken link",
        "broken links",
    ),
    "redirects": ReportKind(
        _redirects,
        "Redirects",
        "Where links are redirected, hop by hop, and how many pages link there.",
        "redirect",
        "redirects",
    ),
    "duplicates": ReportKind(
        _duplicates,
        "Duplicates",
        "Several addresses with the same text.",
        "content with several URLs",
        "contents with several URLs",
    ),
    "errors": ReportKind(_errors, "Errors", "What went wrong, by kind and status.", "error", "errors", EXAMPLES),
    "slow": ReportKind(
        _slow,
        "Slow and large",
        "The answers that took longest, and the largest ones.",
        "answer",
        "answers",
        SLOWEST,
    ),
}
