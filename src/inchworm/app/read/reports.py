"""Reports: what a run found wrong with a site, and what is slow."""

from __future__ import annotations

import codecs
import csv
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from inchworm.app.memory import Memory
from inchworm.app.workspace import Workspace
from inchworm.errors import InchwormError, WrongUse
from inchworm.model import CrawlInfo
from inchworm.rules.words.failures import KINDS
from inchworm.sink.columns import Type
from inchworm.sink.table import cell
from inchworm.store.crawl.reports import NO_LIMIT, Reports
from inchworm.store.sqlite import last_written

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
Report = dict[str, Any]


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
                found = REPORTS[name](reports, limit)
        return {"report": name, "crawl_id": crawl.crawl_id, "run": current.number, **found}

    def soon(self, crawl: CrawlInfo, name: str, number: int | None = None) -> Report | None:
        """What a page shows of a report; None while it is being made, beside the one who asks. It is made again when
        the crawl has changed, though of one that goes on not all the time."""
        changed = (
            () if self._workspace.is_running(crawl) else last_written(self._workspace.crawl_folder(crawl) / "crawl.db")
        )
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
        heads, rows = TABLES[name]
        lines.writerow(heads)
        count = 0
        for row in rows(found):
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


# ---- the reports


def _broken_links(reports: Reports, limit: int | None) -> Report:
    total, found = reports.broken_links(_most(limit))
    rows = [
        {
            "url": one.url,
            "status": one.status or None,
            "kind": one.kind,
            "message": one.message,
            "pages": one.pages,
            "linked_from": [
                {"url": page.url, "title": page.title, "through": page.through or None} for page in one.linked_from
            ],
        }
        for one in found
    ]
    return {"count": total, "rows": rows}


def _redirects(reports: Reports, limit: int | None) -> Report:
    total, found = reports.redirects(_most(limit))
    rows = [
        {
            "url": one.hops[0].url,
            "final_url": one.final_url,
            "final_status": one.final_status or None,
            "final_outcome": one.final_outcome,
            "hops": [hop._asdict() for hop in one.hops],
            "permanent": one.is_permanent,
            "trouble": one.trouble or None,
            "pages": one.pages,
        }
        for one in found
    ]
    return {"count": total, "rows": rows}


def _duplicates(reports: Reports, limit: int | None) -> Report:
    total, found = reports.duplicates(_most(limit))
    rows = [
        {"url": one.urls[0], "title": one.title, "size": one.size, "count": len(one.urls), "alternate_urls": one.urls}
        for one in found
    ]
    return {"count": total, "rows": rows}


def _errors(reports: Reports, limit: int | None) -> Report:
    rows = [
        {
            "kind": one.kind,
            "status": one.status or None,
            "count": one.urls,
            "meaning": _meaning(one.kind),
            "examples": one.examples,
        }
        for one in reports.errors(limit or EXAMPLES)
    ]
    return {"count": sum(row["count"] for row in rows), "rows": rows}


def _meaning(kind: str) -> str:
    if kind == "deleted":
        return _DELETED
    return f"{KINDS[kind].sentence} {KINDS[kind].advice}" if kind in KINDS else ""


def _slow(reports: Reports, limit: int | None) -> Report:
    count, found = reports.percentiles(PERCENTILES)
    return {
        "count": count,
        "percentiles": {f"p{percent}": millis for percent, millis in found.items()},
        "rows": [one._asdict() for one in reports.slowest(limit or SLOWEST)],
        "largest": [one._asdict() for one in reports.largest(limit or SLOWEST)],
    }


def _most(limit: int | None) -> int:
    return NO_LIMIT if limit is None else limit


REPORTS: dict[str, Callable[[Reports, int | None], Report]] = {
    "broken-links": _broken_links,
    "redirects": _redirects,
    "duplicates": _duplicates,
    "errors": _errors,
    "slow": _slow,
}


# ---- as tables


Row = tuple[Any, ...]


def _broken_rows(found: Report) -> Iterator[Row]:
    for one in found["rows"]:
        head = (one["url"], one["status"], one["kind"], one["message"], one["pages"])
        for page in one["linked_from"] or [{"url": "", "title": "", "through": ""}]:
            yield *head, page["url"], page["title"], page["through"]


def _redirect_rows(found: Report) -> Iterator[Row]:
    for one in found["rows"]:
        ways, statuses = (" ".join(str(hop[name]) for hop in one["hops"]) for name in ("url", "status"))
        head = (one["url"], one["final_url"], one["final_status"], one["final_outcome"], ways, statuses)
        yield *head, "yes" if one["permanent"] else "no", one["trouble"], one["pages"]


def _duplicate_rows(found: Report) -> Iterator[Row]:
    for one in found["rows"]:
        for url in one["alternate_urls"]:
            yield one["url"], url, one["title"], one["count"]


def _error_rows(found: Report) -> Iterator[Row]:
    for one in found["rows"]:
        for url in one["examples"]:
            yield one["kind"], one["status"], one["count"], one["meaning"], url


def _slow_rows(found: Report) -> Iterator[Row]:
    for name, rows in (("slowest", found["rows"]), ("largest", found["largest"])):
        for one in rows:
            yield name, one["url"], one["millis"], one["size"], one["status"], one["content_type"]


TABLES: dict[str, tuple[tuple[str, ...], Callable[[Report], Iterable[Row]]]] = {
    "broken-links": (
        ("url", "status", "kind", "message", "pages", "page", "page_title", "through"),
        _broken_rows,
    ),
    "redirects": (
        ("url", "final_url", "final_status", "final_outcome", "hops", "statuses", "permanent", "trouble", "pages"),
        _redirect_rows,
    ),
    "duplicates": (("primary", "url", "title", "count"), _duplicate_rows),
    "errors": (("kind", "status", "count", "meaning", "example"), _error_rows),
    "slow": (("list", "url", "millis", "size", "status", "content_type"), _slow_rows),
}
