"""A run that was paused under another reader: before it goes on, the texts that it has kept are named as today's reader
names them. Otherwise nothing that it finds next could be a duplicate of them, and its page limits would go to copies.

What was decided stays decided, and so does everything else on record: what the pages link to was read by the other
reader, so a later run reads them once more. Pages go from the last to the first, so that the first one tells whether
all are done, whenever the process dies in between.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inchworm.engine.own.bodies import Bodies
from inchworm.model import Document, Kind, RunInfo
from inchworm.ports import Clock, Read
from inchworm.reader import DocumentReader
from inchworm.rules.text import content
from inchworm.settings import Settings
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.crawl.visits import KeptText

_AT_ONCE = 64
_SECONDS = 1.0


class Rehash:
    """Of one run, for its owner."""

    def __init__(
        self, store: CrawlStore, archive: Path, token: int, run: RunInfo, settings: Settings, clock: Clock
    ) -> None:
        self._store, self._token, self._run_id, self._clock = store, token, run.run_id, clock
        self._today, self._ignored = content.text_reader(settings), settings.ignore_text
        self._bodies = Bodies(store, archive)
        self._named: list[tuple[KeptText, bytes]] = []
        self._since = clock.monotonic()

    async def work(self, is_ending: Callable[[], bool]) -> None:
        """Name them anew, unless the session is to end."""
        first = self._store.visits.first_kept(self._run_id)
        if first is None or content.reads_texts_alike(first.reader, self._today):
            return
        # In the child, whatever they are: there is nothing that a page could break the session with.
        reader, before = DocumentReader(ignore_text=self._ignored), None
        try:
            while pages := self._store.visits.kept_by_others(self._run_id, self._today, before, _AT_ONCE):
                for page in pages:
                    if is_ending():
                        return
                    await self._name(page, reader)
                before = pages[-1].seq
        finally:
            self._write()
            await reader.close()

    async def _name(self, page: KeptText, reader: DocumentReader) -> None:
        response = self._bodies.of(page.payload)
        if response is not None:
            given = Document(response.body, page.content_type, page.url, Kind.PAGE, page.at_ms, is_cut=False)
            read = await reader.read_apart(given)
            if isinstance(read, Read) and "needs" not in read.reading.meta:
                self._named.append((page, read.text_hash))
        if len(self._named) >= _AT_ONCE or self._clock.monotonic() - self._since > _SECONDS:
            self._write()

    def _write(self) -> None:
        """Also a sign of life."""
        with self._store.owner.transaction(self._token):
            for page, text_hash in self._named:
                self._store.visits.name_text(self._run_id, page, text_hash, self._today)
        self._named.clear()
        self._since = self._clock.monotonic()
