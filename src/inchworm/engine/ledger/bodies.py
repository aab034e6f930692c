"""Answers as records of the archive, and the texts that a run has already: nothing is kept twice."""

from __future__ import annotations

import json
from collections.abc import Sequence

from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.rows import Stored
from inchworm.model import FinishedVisit, Outcome, Probe
from inchworm.ports import ArchiveWriter, KeptVisits, Original, Store


class BodyRecords:
    """Puts answers into the archive. A payload that is there already becomes a revisit."""

    def __init__(self, store: Store, archive: ArchiveWriter, draft: Draft, run_id: int) -> None:
        self._store = store
        self._archive = archive
        self._draft = draft
        self._originals: dict[bytes, Original] = {}
        self._probed = {probe.directory for probe in store.hosts.probes(run_id)}

    def expect(self, visits: Sequence[FinishedVisit]) -> None:
        """These come next: what the archive has of their payloads is looked up together."""
        payloads = {v.record.digest for v in visits if v.record and (v.record.payload or v.is_version)}
        known = self._store.visits.originals(payloads)
        self._originals = {digest: one for digest, one in known.items() if self._archive.holds(one.file)}

    def add(self, visit: FinishedVisit) -> Stored:
        """Put the answer of a visit into the archive."""
        record, old = visit.record, visit.version if visit.is_version else None
        meta = json.dumps(visit.reading.meta, ensure_ascii=False) if visit.reading.meta else None
        if record is None and old is not None:
            return Stored(old.payload, old.file_id, old.offset, old.length, old.revisit, old.meta)
        if record is None:
            return Stored(None, None, None, None, 0, meta)
        if old is not None:
            known = self._originals.get(record.digest)
            original = known._replace(is_current=True) if known else None
            spot = self._archive.append(record, visit.at_ms, original)
            meta = meta if visit.is_read_again else old.meta
            return Stored(old.payload, self._draft.ids.file(spot), spot.offset, spot.length, 1, meta)
        original = self._originals.get(record.digest) if record.payload else None
        spot = self._archive.append(record, visit.at_ms, original)
        # Bytes that were cut short or wrongly labelled are no body for others to refer to.
        is_whole = not visit.failure or visit.failure.startswith("http_")
        if original is None and record.payload and is_whole:
            self._originals[record.digest] = Original(record.url, visit.at_ms)
        file_id = self._draft.ids.file(spot)
        return Stored(record.digest, file_id, spot.offset, spot.length, int(original is not None), meta)

    def add_probe(self, probe: Probe) -> None:
        """Whichever visit asked first: it is on record with the first one in the order of record."""
        if probe.record is None or probe.directory in self._probed:
            return
        self._probed.add(probe.directory)
        self._draft.learned.probe(probe, self._archive.append(probe.record, probe.at_ms, None))

    def sync(self) -> None:
        """What was put there survives from now on."""
        self._archive.sync()


class KeptTexts:
    """Which texts the run has kept. Whoever comes second with one is a duplicate."""

    def __init__(self, visits: KeptVisits, run_id: int) -> None:
        self._visits = visits
        self._run_id = run_id
        self._kept: set[bytes] = set()

    def expect(self, visits: Sequence[FinishedVisit]) -> None:
        """These come next: which of their texts are known is looked up together."""
        self._kept = self._visits.owners_of(self._run_id, {v.text_hash for v in visits if v.text_hash})

    def outcome(self, visit: FinishedVisit) -> Outcome:
        """What a visit comes to, given what was kept before."""
        if visit.outcome is not Outcome.PAGE or not visit.text_hash:
            return visit.outcome
        if visit.text_hash in self._kept:
            return Outcome.DUPLICATE
        self._kept.add(visit.text_hash)
        return Outcome.PAGE
