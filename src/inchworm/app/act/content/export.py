"""Exports: what a crawl has, in other forms."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from inchworm import settings
from inchworm.app.act.content import folders
from inchworm.app.act.content.selection import Chosen, Progress, Selection, read_ahead
from inchworm.app.act.content.selection import ExportOptions as ExportOptions
from inchworm.app.fields import CrawlFields, FieldColumns, asked_rules, rows_on_the_spot, unmatched
from inchworm.app.frames import KEEP, CrawlFrames, choice_of
from inchworm.app.workspace import Workspace
from inchworm.archive import reader as warc_reader
from inchworm.engine.run import is_open, line_to
from inchworm.errors import NotNow, WrongUse
from inchworm.model import Change, CrawlInfo, JsonObject, RunInfo
from inchworm.page import Page
from inchworm.rules.web import url as urls
from inchworm.sink import arrow, columns, export
from inchworm.sink.columns import Column
from inchworm.sink.export import FORMATS, RowSource, Target, Written
from inchworm.sink.fields import columns_of
from inchworm.store.crawl.read.archive import RecordReader
from inchworm.store.crawl.read.now import Now, Since
from inchworm.store.crawl.read.visits import RecordedVisit, VisitReader
from inchworm.store.crawl.store import CrawlStore

if TYPE_CHECKING:
    import pyarrow


CONTENT = columns.CONTENT
"""The columns that are read out of the archive."""

CHARACTERS, TOKENS = export.CHARACTERS, export.TOKENS
"""How large chunks are unless somebody says so."""

_TEXTS = ("text", "markdown", "html")
"""The columns that lack what stands on most pages of a host."""

TOLD = (Change.NEW, Change.MODIFIED, Change.DELETED)


class FieldsTaken(NamedTuple):
    """The fields of an export that no page of its run has, and how many pages could not be read for them."""

    unmatched: tuple[str, ...] = ()
    failed: int = 0


class Exporter:
    """Writes what a crawl has."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def stored_pages(self, word: str, wanted: ExportOptions) -> Iterator[Page]:
        """The pages that an export would hold, one by one. They can be asked for what they hold at any time."""
        take_rows = rows_on_the_spot(self._workspace, self._workspace.find(word), wanted.fields)
        with self._opened(word, wanted) as selection:
            for page in selection.pages():
                page.take_rows = take_rows
                yield page

    def batches(self, word: str, wanted: ExportOptions) -> Iterator[pyarrow.RecordBatch]:
        """The table that an export would hold, in parts of a bounded size."""
        with self._opened(word, wanted) as selection:
            chosen = selection.columns()
            with selection.rows(selection.pages(), chosen) as rows:
                yield from arrow.batches(rows, chosen)

    def field_rows(self, word: str, wanted: ExportOptions) -> Iterator[JsonObject]:
        """The fields of the pages that an export would hold, row by row, each with the address of its page."""
        with self._opened(word, wanted) as selection:
            yield from selection.field_rows()

    def check_fields(self, word: str, wanted: ExportOptions) -> None:
        """Refuse at once what could only fail when the first of those is taken."""
        with self._opened(word, wanted) as selection:
            selection.refuse_without_fields()

    def table_schema(self, word: str, wanted: ExportOptions) -> pyarrow.Schema:
        """The columns of that table with their types."""
        with self._opened(word, wanted) as selection:
            return arrow.schema(selection.columns())

    def check_wanted(self, word: str, wanted: ExportOptions) -> None:
        """Refuse at once what could only fail when the first page is taken."""
        with self._opened(word, wanted):
            pass

    @contextlib.contextmanager
    def _opened(self, word: str, wanted: ExportOptions) -> Iterator[Selection]:
        _refuse_unfit("jsonl", wanted)
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            selection = self._selection(crawl, store, wanted)
            try:
                yield selection
            finally:
                # Whoever kept a page may ask it for more.
                selection.stored.release()

    def to_file(
        self,
        word: str,
        format_name: str,
        out: BinaryIO,
        wanted: ExportOptions | None = None,
        progress: Progress | None = None,
    ) -> Written:
        """Write what a crawl has to one file, as it stands now; how many lines, rows or records, and what is lost."""
        wanted = wanted or ExportOptions()
        _refuse_unless(format_name, Target.STREAM)
        _refuse_unfit(format_name, wanted)
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            return self._source(crawl, store, wanted, progress).to_stream(format_name, out)

    def to_folder(
        self,
        word: str,
        format_name: str,
        into: Path | BinaryIO,
        wanted: ExportOptions | None = None,
        progress: Progress | None = None,
    ) -> Written:
        """Write a crawl's pages into a folder, or a zip file, a file each; how many, and how many could not be."""
        wanted = wanted or ExportOptions()
        _refuse_unless(format_name, Target.FOLDER)
        _refuse_unfit(format_name, wanted)
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            return self._source(crawl, store, wanted, progress).to_folder(format_name, into)

    def take_fields(self, word: str, wanted: ExportOptions, progress: Progress) -> FieldsTaken:
        """Take the fields that an export will have, if it has any, and tell what came of it. An export does so by
        itself, and tells nobody."""
        crawl = self._workspace.find(word)
        rules = asked_rules(self._workspace, crawl, wanted.fields)
        found = columns_of(rules) if rules else ()
        names = {one.name for one in columns.chosen(wanted.columns, wanted.more, found) if one in found}
        if rules is None or not names:
            return FieldsTaken()
        with self._workspace.reading(crawl) as store:
            run, place = (
                self._chosen(crawl, store, wanted).end,
                CrawlFields(store, self._workspace.place(crawl), rules),
            )
            counts = place.counts(run.run_id, place.source(progress))
        return FieldsTaken(tuple(name for name in unmatched(rules, counts) if name in names), counts.failed)

    def find_frame(self, word: str, format_name: str, wanted: ExportOptions, progress: Progress) -> None:
        """Find the blocks that an export will leave out, if it has any text. An export does so by itself, and tells
        nobody."""
        crawl = self._workspace.find(word)
        if choice_of(self._workspace, crawl, wanted.frame) == KEEP or not FORMATS[format_name].has_text:
            return
        with self._workspace.reading(crawl) as store:
            selection = self._selection(crawl, store, wanted)
            if FORMATS[format_name].has_columns and not any(one.name in _TEXTS for one in selection.columns()):
                return
            end = self._chosen(crawl, store, wanted).end
            for seed in end.seeds:
                CrawlFrames(self._workspace.place(crawl), progress).of(end.run_id, seed.url)

    def next_since(self, word: str) -> int | None:
        """The run to name in `since` next time by whoever exports now: the last of the line that has ended."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            end = store.runs.line_end()
            ended = [one for one in line_to(store.runs.list(), end) if not is_open(one)] if end else []
            return ended[-1].number if ended else None

    def _source(self, crawl: CrawlInfo, store: CrawlStore, wanted: ExportOptions, progress: Progress | None) -> _Source:
        selection = self._selection(crawl, store, wanted, progress)
        return _Source(
            self._workspace.place(crawl).archive,
            store,
            selection,
            self._workspace.run_of(crawl, store, wanted.run),
            wanted,
        )

    def _selection(
        self, crawl: CrawlInfo, store: CrawlStore, wanted: ExportOptions, progress: Progress | None = None
    ) -> Selection:
        rules = asked_rules(self._workspace, crawl, wanted.fields)
        wanted = wanted._replace(frame=choice_of(self._workspace, crawl, wanted.frame))
        fields = FieldColumns(
            CrawlFields(store, self._workspace.place(crawl), rules) if rules else None, wanted.fields.own
        )
        return Selection(
            store, self._workspace.place(crawl), self._chosen(crawl, store, wanted), wanted, fields, progress
        )

    def _chosen(self, crawl: CrawlInfo, store: CrawlStore, wanted: ExportOptions) -> Chosen:
        current = self._workspace.run_of(crawl, store, wanted.run)
        if wanted.run is not None:
            return Chosen(current, current, None)
        end = store.runs.line_end() or current
        if not wanted.is_about_changes:
            return Chosen(current, end, None)
        return Chosen(current, end, self._since(crawl, store, end, wanted.since))

    def _since(self, crawl: CrawlInfo, store: CrawlStore, end: RunInfo, said: str | None) -> Since:
        """What somebody means by `since`; without a word: the run that the last one follows."""
        if said is None:
            return Since(next((one for one in store.runs.list() if one.run_id == end.follows), None))
        if said.isdecimal():
            run = self._workspace.run_of(crawl, store, int(said))
            if is_open(run):
                raise NotNow(
                    f"Run {run.number} of {crawl.name!r} is not over, so nothing can have changed since.",
                    "Name the run before it, or a date.",
                )
            return Since(run)
        at_ms = moment(said, self._workspace.clock.now_ms())
        return Since(Now(store).ended_by(end, at_ms), at_ms)


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


def _refuse_unfit(format_name: str, wanted: ExportOptions) -> None:
    """What a format could only leave unheeded is refused."""
    form = FORMATS[format_name]
    if unknown := [name for name in wanted.only if name not in TOLD]:
        raise WrongUse(f"There is no change {unknown[0]!r} to ask for.", f"Known ones: {', '.join(TOLD)}.")
    if form.rows is not RowSource.PAGES and (wanted.is_about_changes or wanted.unique):
        raise WrongUse(
            f"The format {format_name!r} tells of a whole run.",
            "Leave --since, --only and --unique out, or take jsonl.",
        )
    for what, of, is_given in (
        ("A choice of types", "files", bool(wanted.types)),
        ("A byte order mark", "csv", wanted.mark),
        ("Images", "markdown", wanted.images),
        ("A size, an overlap or a tokenizer of chunks", "chunks", wanted.is_about_chunks),
    ):
        if is_given and format_name != of:
            raise WrongUse(f"{what} goes with the format {of!r}, and not with {format_name!r}.", "Leave that out.")
    if wanted.frame == KEEP and not form.has_text:
        raise WrongUse(f"The format {format_name!r} has no text, so nothing is left out.", "Leave --frame out.")
    if not form.has_columns and (wanted.columns or wanted.more):
        raise WrongUse(f"The format {format_name!r} has no columns to choose.", "Leave --columns and --with out.")
    if wanted.run is not None and wanted.since is not None:
        raise WrongUse("A run and a time since when do not go together.", "Leave --run or --since out.")


class _Source:
    """What an export is made of, as it stands, and how it is written."""

    def __init__(
        self, archive: Path, store: CrawlStore, selection: Selection, run: RunInfo, wanted: ExportOptions
    ) -> None:
        self._archive = archive
        self._visits, self._records = VisitReader(store), RecordReader(store)
        self._selection, self._run, self._wanted = selection, run, wanted
        self._lost: list[str] = []
        self._skipped = 0

    def to_stream(self, format_name: str, out: BinaryIO) -> Written:
        run = self._run
        if format_name == "warc":
            return export.warc(self._archive, self._records.of_run(run.run_id, run.seq), out, warc_reader.is_whole)
        if format_name == "urls":
            return Written(export.urls(self._visits.requested_urls(run.run_id, run.seq), out))
        if format_name == "fingerprints":
            return Written(export.fingerprints(_told(self._visits.of_run(run.run_id, run.seq)), out))
        if format_name == "sitemap":
            return Written(export.sitemap(_told(self._selection.visits()), out))
        if format_name == "data":
            count = export.data(self._pages(columns.chosen(["data"])), out)
            return Written(count, self._skipped, tuple(self._lost))
        if format_name == "chunks":
            return self._chunks(out)
        return self._table(format_name, out)

    def _table(self, format_name: str, out: BinaryIO) -> Written:
        chosen = self._selection.columns()
        pages = self._pages([one for one in chosen if one in columns.CONTENT])
        with self._selection.rows(pages, chosen) as rows:
            if format_name == "csv":
                count = export.csv(rows, chosen, out, self._wanted.mark)
            else:
                count = (export.jsonl if format_name == "jsonl" else export.parquet)(rows, chosen, out)
        return Written(count, self._skipped, tuple(self._lost))

    def _chunks(self, out: BinaryIO) -> Written:
        wanted = self._wanted
        limits = export.limits(wanted.chunk_size, wanted.chunk_overlap, wanted.tokenizer)
        pages = self._pages(columns.chosen(["markdown"]))
        count = export.chunks(pages, limits, out, tells_all=wanted.is_about_changes)
        return Written(count, self._skipped, tuple(self._lost))

    def _pages(self, content: Sequence[Column]) -> Iterator[Page]:
        """The pages, of which these columns will be read."""
        pages = self._selection.pages()
        return self._minding_lost(read_ahead(pages, content)) if content else pages

    def to_folder(self, format_name: str, into: Path | BinaryIO) -> Written:
        """Into a folder, or a zip file of one."""
        if format_name == "markdown":
            canonicalizer = urls.canonicalizer(settings.texts(self._run.settings, "drop_params"))
            return folders.markdown(self._selection, canonicalizer.canonicalize, into, self._wanted.images)
        if format_name == "files":
            return export.files(_told(self._selection.visits(resources=True)), self._body, into, self._wanted.types)
        assert isinstance(into, Path)
        return Written(export.sitemaps(_told(self._selection.visits()), into))

    def _minding_lost(self, pages: Iterator[Page]) -> Iterator[Page]:
        """Count pages that the archive does not have any more. They are told all the same, without their text."""
        for page in pages:
            if not page.is_gone and page.is_lost:
                self._skipped += 1
                self._lost += [page.url] if self._skipped <= export.MOST_LOST else []
            yield page

    def _body(self, visit: Mapping[str, object]) -> bytes | None:
        page = self._selection.stored.page_of(RecordedVisit._make(visit.values()))
        return None if page.is_lost else page.body


def _told(visits: Iterator[RecordedVisit]) -> Iterator[Mapping[str, object]]:
    """Visits as what is written has them: by names."""
    return (visit._asdict() for visit in visits)
