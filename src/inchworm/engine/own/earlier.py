"""What earlier runs of a crawl know of a page, for a session that asks whether it changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inchworm.engine.ledger import rows
from inchworm.engine.own.bodies import EXPECTED, Bodies
from inchworm.model import FrontierEntry, Mode, Note, RunInfo, Source, Version
from inchworm.rules.change import validators
from inchworm.rules.formats import media
from inchworm.rules.page import document, parse
from inchworm.rules.page.links import Resolver
from inchworm.rules.text import content
from inchworm.rules.text.ignored import IgnoredText
from inchworm.rules.web import url as urls
from inchworm.settings import Settings
from inchworm.store.crawl.store import CrawlStore


class EarlierRuns:
    """A `ports.Earlier`: the crawl's own store and archive."""

    def __init__(self, store: CrawlStore, run: RunInfo, values: Settings, archive: Path) -> None:
        self._store = store
        self._run = run
        self._bodies = Bodies(store, archive)
        self._fingerprint = content.fingerprint(values)
        self._how = parse.How(values.resources, Resolver(urls.canonicalizer(values.drop_params)))
        self._ignored = IgnoredText(values.ignore_text)
        self._distrusted = store.evidence.distrusted(run.run_id, run.horizon)
        self._asks_in_full = run.mode != Mode.INCREMENTAL or values.skip_cache
        self._expected: dict[int, Version | None] = {}

    def expect(self, entry: FrontierEntry, upcoming: Iterator[FrontierEntry]) -> None:
        if entry.url_id in self._expected:
            return
        if len(self._expected) > EXPECTED:
            self._expected.clear()  # of other lanes, or never asked about
        wanted = [entry.url_id, *(one.url_id for one in upcoming if one.url_id not in self._expected)]
        found = self._store.earlier.versions(wanted, self._run.horizon)
        self._expected |= {url_id: found.get(url_id) for url_id in wanted}
        self._bodies.expect(tuple(found.values()))

    def version(self, entry: FrontierEntry) -> Version | None:
        if entry.url_id in self._expected:
            return self._expected.pop(entry.url_id)
        return self._store.earlier.version(entry.url_id, self._run.horizon)

    def objection(self, entry: FrontierEntry, version: Version) -> Note | None:
        which = validators.usable(version)
        if not which:
            return Note.NO_VALIDATORS
        if self._asks_in_full or entry.attempts or version.missing or not self._bodies.has(version):
            return Note.ASKED_IN_FULL
        if why := self._distrusted.get((entry.lane, which)):
            return Note.SHARED_VALIDATORS if why == validators.SHARED else Note.DISTRUSTED
        is_sampled = entry.source is Source.INITIAL or validators.is_sampled(entry.url, self._run.number)
        return Note.SAMPLED if is_sampled else None

    def is_read_otherwise(self, version: Version) -> bool:
        return rows.is_read_otherwise(version, self._fingerprint)

    def body(self, version: Version) -> bytes | None:
        response = self._bodies.of(version.payload)
        return response and response.body

    def had(self, entry: FrontierEntry, text_hash: bytes) -> bool:
        return self._store.earlier.has_text(entry.url_id, self._run.horizon, text_hash)

    def text_hash(self, version: Version, url: str) -> bytes:
        body = self.body(version)
        if body is None or media.is_risky(body, version.content_type):
            return b""
        reading = document.read(body, version.content_type, url, self._how)
        title, words = (self._ignored.without(text, url) for text in (reading.title, reading.words))
        return content.text_hash(title, words, body)
