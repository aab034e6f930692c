"""Values as rows: how a visit, an entry or a verdict looks in the store, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from inchworm.model import Cookie, FinishedVisit, FrontierEntry, Outcome, State, Version
from inchworm.ports import RowState, StoredRow, VisitRow
from inchworm.rules.formats import pdf
from inchworm.rules.web.scope import ScopeVerdict


class Stored(NamedTuple):
    """What goes with a visit: the digest of its payload, where its record lies, and what the page says of itself."""

    payload: bytes | None
    file_id: int | None
    offset: int | None
    length: int | None
    revisit: int
    meta: str | None


def of_visit(
    seq: int,
    visit: FinishedVisit,
    outcome: Outcome,
    stored: Stored,
    links: Sequence[int],
    redirect: int | None,
    reader: str,
) -> VisitRow:
    entry, reading, change = visit.entry, visit.reading, visit.change
    # By position: by name it would take three times as long.
    return VisitRow(
        seq, entry.url_id, entry.request_url if entry.request_url != entry.url else None, entry.kind._value_,
        visit.at_ms, outcome._value_, int(visit.requested), visit.failure or None, visit.message or None,
        visit.status, visit.millis, visit.size,
        visit.content_type or None, visit.etag or None, visit.last_modified or None,
        stored.payload, visit.text_hash or None,
        reading.title or None, reading.language or None, reading.canonical or None, stored.meta,
        tuple(links), redirect, reader,
        stored.file_id, stored.offset, stored.length, stored.revisit,
        change and change._value_, " ".join(visit.notes) or None, visit.link_hash or None,
        json.dumps(visit.differences) if visit.differences else None, visit.missing,
        None, None, visit.alike,
    )  # fmt: skip


def of_entry(entry: FrontierEntry) -> StoredRow:
    """A pending entry as the frontier has it."""
    standing = RowState(
        State.PENDING, None, entry.seed, entry.depth, entry.hops, entry.lane, *entry.place,
        entry.request_url if entry.request_url != entry.url else None,
        entry.attempts, entry.not_before_ms, entry.chain, json.dumps(entry.tried) if entry.tried else None, None,
        entry.rank,
    )  # fmt: skip
    return StoredRow(entry.url_id, entry.url, entry.kind, entry.source, None, standing)


def untried(old: RowState) -> RowState:
    """As if it had never been tried."""
    return old._replace(attempts=0, not_before_ms=0)


def as_parent(row: StoredRow, verdict: ScopeVerdict) -> FrontierEntry:
    """A row as what found others, standing where a verdict puts it."""
    address, (seed, depth, hops) = row.standing.request_url or row.url, (verdict.seed, verdict.depth, verdict.hops)
    return FrontierEntry(row.url_id, row.url, address, row.kind, row.source, seed, depth, hops, 0, (0, 0))


def forbids_following(meta: str | None) -> bool:
    """Whether a page says of itself that its links are not to be followed."""
    return meta is not None and '"nofollow"' in meta and bool(json.loads(meta).get("nofollow"))


def is_read_otherwise(version: Version, fingerprint: str) -> bool:
    """Whether a version was read in another way than it would be now: its links or its text may be others. That is so,
    too, where something was missing that is there by now."""
    lacked = version.meta is not None and '"needs"' in version.meta and "needs" in json.loads(version.meta)
    return version.reader != fingerprint or (lacked and pdf.is_readable())


def cookies_mark(cookies: Sequence[Cookie]) -> str:
    """Tells what one answer set from what another did, without telling the cookies: an entry of `tried`."""
    said = sorted((one.domain, one.path, one.name, one.value) for one in cookies)
    return f"cookies:{hashlib.sha256(repr(said).encode('utf-8', 'replace')).hexdigest()[:16]}"


def robots_verdict(visit: FinishedVisit) -> tuple[str, bytes | None]:
    """What a visit to a robots.txt means for its origin, and the rules or what went wrong."""
    if visit.robots is None:
        is_not_there = visit.unreachable or visit.failure == "tls"
        said = visit.message if is_not_there else f"{_UNREADABLE}{visit.message}"
        return "unreadable", f"{visit.failure}: {said}".encode()
    return ("rules", visit.robots) if visit.robots else ("allow", None)


_UNREADABLE = "robots.txt could not be read: "


def robots_trouble(said: str) -> tuple[str, str]:
    """The kind of failure, and a sentence, for pages that may not be asked for because of such a verdict."""
    kind, _, message = said.partition(": ")
    return ("robots", said) if message.startswith(_UNREADABLE) else (kind, message)
