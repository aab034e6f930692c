"""Exports: what a crawl has, in other forms."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from inchworm.app.desk import Desk
from inchworm.archive import reader as warc_reader
from inchworm.engine.stored import StoredPages
from inchworm.errors import NotNow, WrongUse
from inchworm.model import Change, CrawlInfo, RunInfo
from inchworm.page import Page
from inchworm.run import is_open, line_to
from inchworm.sink import columns, export, table
from inchworm.sink.export import FORMATS, Rows, Target, Written
from inchworm.store.crawl import CrawlStore
from inchworm.store.now import Now, Seen, Since
from inchworm.store.view import View

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

CONTENT = columns.CONTENT
"""The columns that are read out of the archive."""

TOLD = (Change.NEW, Change.MODIFIED, Change.DELETED)

Progress = Callable[[int, int], None]
"""How far an export is, of how much."""


class Wanted(NamedTuple):
    """What an export is to hold. Without a run: the crawl as it is now. `since`: a run's number or a date, for what
    changed; `only`: these changes. `columns`: exactly these, and `more`: these too. `types`: media types or endings, of
    `files`."""

    run: int | None = None
    since: str | None = None
    only: tuple[str, ...] = ()
    unique: bool = False
    columns: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    mark: bool = False

    @property
    def is_about_changes(self) -> bool:
        return self.since is not None or bool(self.only)


class Exports(Desk):
    """Verbs that write what a crawl has."""

    def requested_urls(self, word: str, number: int | None = None) -> Iterator[str]:
        """Every URL a run requested, as requested, once, in the order of record."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            yield from View(store).requested_urls(current.run_id, current.seq)

    def visits(self, word: str, number: int | None = None) -> Iterator[dict[str, Any]]:
        """Every visit of a run to a page or resource, in the order of record."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            yield from View(store).record(current.run_id, current.seq)

    def stored_pages(self, word: str, wanted: Wanted) -> Iterator[Page]:
        """The pages that an export would hold, one by one. They can be asked for what they hold at any time."""
        with self._opened(word, wanted) as source:
            yield from source.pages()

    def batches(self, word: str, wanted: Wanted) -> Iterator[pyarrow.RecordBatch]:
        """The table that an export would hold, in parts of a bounded size."""
        with self._opened(word, wanted) as source:
            yield from table.batches(source.pages(), source.columns())

    def table_schema(self, word: str, wanted: Wanted) -> pyarrow.Schema:
        """The columns of that table with their types."""
        with self._opened(word, wanted) as source:
            return table.schema(source.columns())

    def check_wanted(self, word: str, wanted: Wanted) -> None:
        """Refuse at once what could only fail when the first page is taken."""
        with self._opened(word, wanted):
            pass

    @contextlib.contextmanager
    def _opened(self, word: str, wanted: Wanted) -> Iterator[_Source]:
        _refuse_unfit("jsonl", wanted)
        crawl = self.find(word)
        with self.reading(crawl) as store:
            source = self._source(crawl, store, wanted)
            try:
                yield source
            finally:
                source.let_go()

    def export(
        self, word: str, format_name: str, out: BinaryIO, wanted: Wanted | None = None, progress: Progress | None = None
    ) -> Written:
        """Write what a crawl has to one file, as it stands now; how many lines, rows or records, and what is lost."""
        wanted = wanted or Wanted()
        _refuse_unless(format_name, Target.STREAM)
        _refuse_unfit(format_name, wanted)
        crawl = self.find(word)
        with self.reading(crawl) as store:
            return self._source(crawl, store, wanted, progress).to_stream(format_name, out)

    def export_folder(
        self,
        word: str,
        format_name: str,
        folder: Path,
        wanted: Wanted | None = None,
        progress: Progress | None = None,
    ) -> Written:
        """Write a crawl's pages into a folder, a file each; how many, and how many could not be."""
        wanted = wanted or Wanted()
        _refuse_unless(format_name, Target.FOLDER)
        _refuse_unfit(format_name, wanted)
        crawl = self.find(word)
        with self.reading(crawl) as store:
            return self._source(crawl, store, wanted, progress).to_folder(format_name, folder)

    def next_since(self, word: str) -> int | None:
        """The run to name in `since` next time by whoever exports now: the last of the line that has ended."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            end = store.line_end()
            ended = [one for one in line_to(store.runs(), end) if not is_open(one)] if end else []
            return ended[-1].number if ended else None

    def _source(self, crawl: CrawlInfo, store: CrawlStore, wanted: Wanted, progress: Progress | None = None) -> _Source:
        return _Source(
            self.crawl_folder(crawl) / "archive", store, self._selected(crawl, store, wanted), wanted, progress
        )

    def _selected(self, crawl: CrawlInfo, store: CrawlStore, wanted: Wanted) -> _Selected:
        current = self.run_of(crawl, store, wanted.run)
        if wanted.run is not None:
            return _Selected(current, current, None)
        end = store.line_end() or current
        if not wanted.is_about_changes:
            return _Selected(current, end, None)
        return _Selected(current, end, self._since(crawl, store, end, wanted.since))

    def _since(self, crawl: CrawlInfo, store: CrawlStore, end: RunInfo, said: str | None) -> Since:
        """What somebody means by `since`; without a word: the run that the last one follows."""
        if said is None:
            return Since(next((one for one in store.runs() if one.run_id == end.follows), None))
        if said.isdecimal():
            run = self.run_of(crawl, store, int(said))
            if is_open(run):
                raise NotNow(
                    f"Run {run.number} of {crawl.name!r} is not over, so nothing can have changed since.",
                    "Name the run before it, or a date.",
                )
            return Since(run)
        at_ms = moment(said, self.clock.now_ms())
        return Since(Now(store).ended_by(end, at_ms), at_ms)


class _Selected(NamedTuple):
    """What an export is made of: the run that is meant, the end of the line that tells how the crawl is now, and since
    when changes are wanted."""

    run: RunInfo
    end: RunInfo
    since: Since | None


_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(said: str, now_ms: int) -> int:
    """A date, a time, `today`, `yesterday`, or how long ago (`36h`, `7d`), as milliseconds since 1970."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words = {"now": now, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    at = words.get(said.strip().lower())
    if at is None and (ago := _AGO.fullmatch(said.strip().lower())):
        at = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    if at is None:
        with contextlib.suppress(ValueError):
            at = datetime.fromisoformat(said.strip())
    if at is None:
        raise WrongUse(
            f"{said!r} is no run and no date.",
            "Give the number of a run, or a date as 2026-01-31, yesterday, 36h or 7d.",
        )
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _refuse_unless(format_name: str, target: Target) -> None:
    if format_name not in FORMATS:
        raise WrongUse(f"There is no export format {format_name!r}.", f"Known ones: {', '.join(FORMATS)}.")
    if FORMATS[format_name].target not in (target, Target.EITHER):
        needs, hint = ("a folder", "-o FOLDER") if target is Target.STREAM else ("one file", "-o FILE")
        raise WrongUse(f"The format {format_name!r} writes {needs}.", f"Say which: {hint}")


def _refuse_unfit(format_name: str, wanted: Wanted) -> None:
    """What a format could only leave unheeded is refused."""
    form = FORMATS[format_name]
    if unknown := [name for name in wanted.only if name not in TOLD]:
        raise WrongUse(f"There is no change {unknown[0]!r} to ask for.", f"Known ones: {', '.join(TOLD)}.")
    if form.rows is not Rows.PAGES and (wanted.is_about_changes or wanted.unique):
        raise WrongUse(
            f"The format {format_name!r} tells of a whole run.",
            "Leave --since, --only and --unique out, or take jsonl.",
        )
    if not form.has_columns and (wanted.columns or wanted.more):
        raise WrongUse(f"The format {format_name!r} has no columns to choose.", "Leave --columns and --with out.")
    if wanted.types and format_name != "files":
        raise WrongUse("--type goes with the format `files`.", "Leave it out.")
    if wanted.mark and format_name != "csv":
        raise WrongUse("--bom goes with the format `csv`.", "Leave it out.")
    if wanted.run is not None and wanted.since is not None:
        raise WrongUse("A run and a time since when do not go together.", "Leave --run or --since out.")


class _Source:
    """What an export is made of, as it stands."""

    def __init__(
        self, archive: Path, store: CrawlStore, selected: _Selected, wanted: Wanted, progress: Progress | None
    ) -> None:
        self._archive = archive
        self._view, self._now = View(store), Now(store)
        self._stored = StoredPages(store, archive)
        self._selected, self._wanted = selected, wanted
        self._progress = progress or (lambda _done, _total: None)
        self._lost: list[str] = []
        self._skipped = 0

    def to_stream(self, format_name: str, out: BinaryIO) -> Written:
        run = self._selected.run
        if format_name == "warc":
            return export.warc(self._archive, self._view.spots(run.run_id, run.seq), out, warc_reader.is_whole)
        if format_name == "urls":
            return Written(export.urls(self._view.requested_urls(run.run_id, run.seq), out))
        if format_name == "fingerprints":
            return Written(export.fingerprints(self._view.record(run.run_id, run.seq), out))
        if format_name == "sitemap":
            return Written(export.sitemap(self._visits(), out))
        return self._table(format_name, out)

    def columns(self) -> tuple[columns.Column, ...]:
        """What each row of a table holds."""
        return columns.chosen(self._wanted.columns, self._wanted.more)

    def let_go(self) -> None:
        """The store is going to be closed, and whoever kept a page may ask it for more."""
        self._stored.let_go()

    def _table(self, format_name: str, out: BinaryIO) -> Written:
        chosen = self.columns()
        pages = self._minding_lost(self.pages()) if any(one in columns.CONTENT for one in chosen) else self.pages()
        if format_name == "csv":
            count = export.csv(pages, chosen, out, self._wanted.mark)
        else:
            count = (export.jsonl if format_name == "jsonl" else export.parquet)(pages, chosen, out)
        return Written(count, self._skipped, tuple(self._lost))

    def to_folder(self, format_name: str, folder: Path) -> Written:
        if format_name == "sitemap":
            return Written(export.sitemaps(self._visits(), folder))
        if format_name == "files":
            return export.files(self._visits(resources=True), self._body, folder, self._wanted.types)
        return export.markdown(self._visits(), self._alternates, self._markdown, folder)

    # Rows

    def pages(self) -> Iterator[Page]:
        """One page after the other: of a run, of the crawl now, or of what changed."""
        if self._selected.since is not None:
            pages = self._changed(self._selected.since)
        else:
            pages = (self._stored.of(visit) for visit in self._visits())
        return self._unique(pages) if self._wanted.unique else pages

    def _changed(self, since: Since) -> Iterator[Page]:
        changes, before = self._now.changed(since, self._now.line(self._selected.end)), self._now.line_at(since)
        for one in self._counted(changes):
            if not self._wanted.only or one.change in self._wanted.only:
                yield self._stored.changed(one, before)

    def _visits(self, resources: bool = False) -> Iterator[dict[str, Any]]:
        run, end, only = self._selected.run, self._selected.end, self._wanted.only
        if self._wanted.run is not None:
            record = self._counted(self._view.record(run.run_id, run.seq))
            return (visit for visit in record if not only or visit["change"] in only)
        return self._counted(self._now.pages(self._now.line(end), resources))

    def _counted(self, found: Iterator[T]) -> Iterator[T]:
        """Tell how far it is. How much there is nobody has counted; the run has about as much."""
        expected, done = self._selected.end.counters.pages + self._selected.end.counters.duplicates, 0
        for done, one in enumerate(found, 1):
            yield one
            self._progress(done, max(done + 1, expected))
        self._progress(done, done)

    def _unique(self, pages: Iterator[Page]) -> Iterator[Page]:
        """Each content once, from the page that has it for its own where that is there."""
        line = self._now.line(self._selected.end)
        with Seen() as seen:
            for page in pages:
                hashed, first = page.record.get("text_hash"), page.record.get("alternate_of")
                if hashed is None or not ((first and self._now.has_text(line, first, hashed)) or not seen.add(hashed)):
                    yield page

    def _minding_lost(self, pages: Iterator[Page]) -> Iterator[Page]:
        """Count pages that the archive does not have any more. They are told all the same, without their text."""
        for page in pages:
            if not page.is_gone and page.is_lost:
                self._skipped += 1
                self._lost += [page.url] if self._skipped <= export.MOST_LOST else []
            yield page

    # One page

    def _alternates(self, text_hash: str) -> list[str]:
        run = self._selected.run
        return self._view.alternates(run.run_id, text_hash, run.seq)

    def _body(self, visit: Mapping[str, Any]) -> bytes | None:
        page = self._stored.of(visit)
        return None if page.is_lost else page.body

    def _markdown(self, visit: Mapping[str, Any]) -> str | None:
        page = self._stored.of(visit)
        try:
            return None if page.is_lost else page.markdown
        except Exception:
            return None  # one page that nobody can read: it is counted, and the others are written
