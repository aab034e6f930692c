"""Checking a crawl: its record, its archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from inchworm.app.read.crawls import Crawls
from inchworm.app.workspace import Workspace
from inchworm.errors import WrongUse
from inchworm.model import CrawlInfo
from inchworm.store.crawl.read.archive import RecordReader
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.crawl.store import CrawlStore


class Checker:
    """Finds out what is wrong with a crawl."""

    def __init__(self, workspace: Workspace, crawls: Crawls) -> None:
        self._workspace = workspace
        self._crawls = crawls

    def record(self, crawl: CrawlInfo, store: CrawlStore) -> list[str]:
        """What is wrong with a crawl's store and archive; nothing for a healthy one."""
        checks, problems = RecordChecks(store), []
        if (said := checks.integrity()) != "ok":
            problems.append(f"the database is damaged: {said}")
        for current in store.runs.list():
            problems += [f"run {current.number}: {fault_found}" for fault_found in checks.faults(current.run_id)]
            kept, counted = dataclasses.asdict(current.counters), checks.recount(current.run_id)
            wrong = [
                f"{name} {kept[name]} (counted {counted[name]})" for name in counted if kept[name] != counted[name]
            ]
            if wrong and not self._workspace.is_running(crawl):
                problems.append(f"run {current.number}: counters differ from a recount: {', '.join(wrong)}")
        lost = self._crawls.lost_files(crawl, store)
        return problems + [f"the archive file {name} is missing or shorter than what was committed" for name in lost]

    def archive(self, crawl: CrawlInfo, store: CrawlStore, progress: Callable[[int, int], None]) -> list[str]:
        """Read every record that a visit points to; which pages are lost. `progress` is told how many were read, of how
        many."""
        from inchworm.archive import reader, warc  # only who reads the archive needs it

        records, folder = RecordReader(store), self._workspace.place(crawl).archive
        total, lost = records.count(), list[str]()
        bodies: set[bytes | None] = set()
        for done, one in enumerate(records.all(), 1):
            try:
                record = reader.record_at(folder / one.file, one.offset)
                said = record.headers.get("warc-payload-digest")
                is_whole = record.length == one.length and (one.payload is None or said == warc.digest(one.payload))
            except WrongUse:
                is_whole = False
            if not is_whole or (one.is_revisit and one.payload in bodies):
                lost.append(f"the archive has lost {one.url} of run {one.run} (in {one.file} at {one.offset})")
                bodies |= {one.payload}
            progress(done, max(done, total))
        return lost
