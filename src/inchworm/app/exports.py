"""Exports: a run's record in other forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from inchworm.app.desk import Desk
from inchworm.archive import reader as warc_reader
from inchworm.engine.bodies import Bodies
from inchworm.errors import WrongUse
from inchworm.model import CrawlInfo, RunInfo
from inchworm.sink import export
from inchworm.sink.export import FORMATS, Target, Written
from inchworm.store.crawl import CrawlStore
from inchworm.store.view import View

Visit = Mapping[str, Any]


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

    def export(self, word: str, format_name: str, out: BinaryIO, number: int | None = None) -> Written:
        """Write a run's record to one file, as it stands now; how many lines, rows or records, and what is lost."""
        _refuse_unless(format_name, Target.STREAM)
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            return _Source(self, crawl, store, current).to_stream(format_name, out)

    def export_folder(
        self, word: str, format_name: str, folder: Path, number: int | None = None, wanted: tuple[str, ...] = ()
    ) -> Written:
        """Write a run's pages into a folder, a file each; how many, and how many could not be."""
        _refuse_unless(format_name, Target.FOLDER)
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            return _Source(self, crawl, store, current).to_folder(format_name, folder, wanted)


def _refuse_unless(format_name: str, target: Target) -> None:
    if format_name not in FORMATS:
        raise WrongUse(f"There is no export format {format_name!r}.", f"Known ones: {', '.join(FORMATS)}.")
    if FORMATS[format_name].target not in (target, Target.EITHER):
        needs, hint = ("a folder", "-o FOLDER") if target is Target.STREAM else ("one file", "-o FILE")
        raise WrongUse(f"The format {format_name!r} writes {needs}.", f"Say which: {hint}")


class _Source:
    """One run up to where it stands, as exports want it."""

    def __init__(self, desk: Desk, crawl: CrawlInfo, store: CrawlStore, current: RunInfo) -> None:
        self._view = View(store)
        self._run_id = current.run_id
        self._seq = current.seq
        self._archive = desk.crawl_folder(crawl) / "archive"
        self._bodies = Bodies(store, self._archive)

    def to_stream(self, format_name: str, out: BinaryIO) -> Written:
        if format_name == "warc":
            return export.warc(self._archive, self._view.spots(self._run_id, self._seq), out, warc_reader.is_whole)
        return Written(self._listed(format_name, out))

    def _listed(self, format_name: str, out: BinaryIO) -> int:
        view, writers = self._view, self._tables()
        if format_name in writers:
            return writers[format_name](self._record(), self._alternates, out)
        if format_name == "urls":
            return export.urls(view.requested_urls(self._run_id, self._seq), out)
        if format_name == "fingerprints":
            return export.fingerprints(self._record(), out)
        return export.sitemap(self._record(), out)

    def to_folder(self, format_name: str, folder: Path, wanted: tuple[str, ...]) -> Written:
        if format_name == "sitemap":
            return Written(export.sitemaps(self._record(), folder))
        if format_name == "files":
            return export.files(self._record(), self._body, folder, wanted)
        return export.markdown(self._record(), self._alternates, self._markdown, folder)

    @staticmethod
    def _tables() -> dict[str, Callable[..., int]]:
        return {"jsonl": export.jsonl, "csv": export.csv, "parquet": export.parquet}

    def _record(self) -> Iterator[dict[str, Any]]:
        return self._view.record(self._run_id, self._seq)

    def _alternates(self, text_hash: str) -> list[str]:
        return self._view.alternates(self._run_id, text_hash, self._seq)

    def _body(self, visit: Visit) -> bytes | None:
        response = self._bodies.of(bytes.fromhex(visit["payload"])) if visit["payload"] else None
        return response.body if response else None

    def _markdown(self, visit: Visit) -> str | None:
        from inchworm.rules.markdown import markdown  # only this export needs it

        body = self._body(visit)
        try:
            return None if body is None else markdown(body, visit["content_type"] or "", visit["request_url"])
        except Exception:
            return None  # one page that nobody can read: it is counted, and the others are written
