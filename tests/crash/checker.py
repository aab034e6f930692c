"""Is a crawl's record true? Answered with plain SQL, two foreign WARC readers and the web server's own log.

Nothing of the crawler is imported here, and nothing of its files is opened in place: a copy is. Every function
returns what it finds wrong, in words; an empty list means that all is well.
"""

from __future__ import annotations

import array
import base64
import hashlib
import io
import shutil
import sqlite3
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

with warnings.catch_warnings(action="ignore"):  # it warns of its own old names when it is imported
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecordType

_GZIP = 31
_PAGES = "kind IN ('page', 'resource')"


# Reading


def copy_store(folder: Path, to: Path) -> sqlite3.Connection | None:
    """A copy of a crawl's database as its last owner left it, write-ahead log included. None when there is none."""
    source = folder / "crawl.db"
    if not source.exists():
        return None
    to.mkdir(parents=True, exist_ok=True)
    for old in to.glob("crawl.db*"):
        old.unlink()
    for name in ("crawl.db", "crawl.db-wal"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, to / name)
    return sqlite3.connect(to / "crawl.db")


def value(db: sqlite3.Connection, query: str, *arguments: Any) -> Any:
    row = db.execute(query, arguments).fetchone()
    return row[0] if row else None


def rows(db: sqlite3.Connection, query: str, *arguments: Any) -> list[dict[str, Any]]:
    cursor = db.execute(query, arguments)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def has_schema(db: sqlite3.Connection) -> bool:
    return bool(value(db, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'visit'"))


def unpack(links: bytes | None) -> list[int]:
    ids = array.array("I", links or b"")
    if sys.byteorder == "big":
        ids.byteswap()
    return ids.tolist()


def urls_by_id(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT url_id, url FROM url"))


def record(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """What a run says happened, in order, without what may differ between two equal runs (times, files)."""
    names = urls_by_id(db)
    found = rows(db, "SELECT * FROM visit ORDER BY run_id, seq")
    return [
        (
            *(visit[key] for key in ("run_id", "seq", "request_url", "kind", "outcome", "failure", "status", "size")),
            *(visit[key] for key in ("payload", "text_hash", "title", "content_type", "revisit", "requested")),
            names[visit["url_id"]],
            names.get(visit["redirect"]),
            tuple(names[url_id] for url_id in unpack(visit["links"])),
        )
        for visit in found
    ]


def frontier(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Every row of the frontier, by URL, with its place and how it was found."""
    return db.execute(
        "SELECT f.run_id, u.url, f.state, f.reason, f.kind, f.source, f.seed, f.depth, f.hops, f.found, p.url,"
        " f.lastmod, f.place_seq, f.place_idx, f.request_url, f.attempts, f.chain, f.tried, f.done"
        " FROM frontier f JOIN url u USING (url_id) LEFT JOIN url p ON p.url_id = f.found_on ORDER BY u.url"
    ).fetchall()


# The store


def store_problems(db: sqlite3.Connection) -> list[str]:
    """What must hold at every moment, also right after a kill."""
    if not has_schema(db):
        return []
    return [
        *_file_problems(db),
        *_counted_problems(db),
        *_sequence_problems(db),
        *_link_problems(db),
        *_total_problems(db),
    ]


def _file_problems(db: sqlite3.Connection) -> Iterator[str]:
    said = value(db, "PRAGMA integrity_check")
    if said != "ok":
        yield f"integrity_check says {said}"
    yield from (f"foreign key violated: {row}" for row in db.execute("PRAGMA foreign_key_check"))


_NEVER = {
    "URLs stored under two ids": "SELECT url FROM url GROUP BY url HAVING COUNT(*) > 1",
    "host names with two ids": "SELECT name FROM host GROUP BY name HAVING COUNT(*) > 1",
    "frontier rows twice": "SELECT url_id FROM frontier GROUP BY run_id, url_id HAVING COUNT(*) > 1",
    "seq numbers used twice": "SELECT seq FROM visit GROUP BY run_id, seq HAVING COUNT(*) > 1",
    "archive names used twice": "SELECT name FROM archive GROUP BY name HAVING COUNT(*) > 1",
    "frontier rows without a URL": "SELECT url_id FROM frontier WHERE url_id NOT IN (SELECT url_id FROM url)",
    "unknown states": "SELECT url_id FROM frontier WHERE state NOT IN ('pending', 'done', 'refused')",
    "refusals without a reason": "SELECT url_id FROM frontier WHERE state = 'refused' AND reason IS NULL",
    "reasons without a refusal": "SELECT url_id FROM frontier WHERE state <> 'refused' AND reason IS NOT NULL",
    "pending rows that are settled": "SELECT url_id FROM frontier WHERE state = 'pending' AND done IS NOT NULL",
    "rows from the future": (
        "SELECT url_id FROM frontier f JOIN run r USING (run_id) WHERE f.found > r.seq OR f.done > r.seq"
        " OR f.place_seq > r.seq"
    ),
    "visits of unknown URLs": (
        "SELECT v.seq FROM visit v LEFT JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
        " WHERE f.url_id IS NULL"
    ),
    "done rows without their visit": (
        "SELECT f.url_id FROM frontier f LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
        " AND v.url_id = f.url_id WHERE f.state = 'done' AND (v.seq IS NULL OR v.outcome = 'retry')"
    ),
    "pages stored twice": (
        "SELECT url_id FROM visit WHERE outcome IN ('page', 'duplicate', 'resource')"
        " GROUP BY run_id, url_id HAVING COUNT(*) > 1"
    ),
    "stored pages whose row is not done": (
        "SELECT v.seq FROM visit v JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
        " WHERE v.outcome IN ('page', 'duplicate', 'resource') AND (f.state <> 'done' OR f.done <> v.seq)"
    ),
    "texts with two owners": (
        "SELECT text_hash FROM visit WHERE outcome = 'page' AND text_hash IS NOT NULL"
        " GROUP BY run_id, text_hash HAVING COUNT(*) > 1"
    ),
    "duplicates of nothing": (
        "SELECT d.seq FROM visit d WHERE d.outcome = 'duplicate' AND NOT EXISTS (SELECT 1 FROM visit p"
        " WHERE p.run_id = d.run_id AND p.outcome = 'page' AND p.text_hash = d.text_hash AND p.seq < d.seq)"
    ),
    "answers without a record": "SELECT seq FROM visit WHERE requested = 1 AND status > 0 AND file_id IS NULL",
    "records without a file": (
        "SELECT seq FROM visit WHERE file_id IS NOT NULL AND file_id NOT IN (SELECT file_id FROM archive)"
    ),
    "two visits that own one record": (
        # A branch has session 0 for what it began with: those records are their writer's.
        'SELECT seq FROM visit WHERE file_id IS NOT NULL AND requested = 1 AND session > 0 GROUP BY file_id, "offset"'
        " HAVING COUNT(*) > 1"
    ),
}


def _counted_problems(db: sqlite3.Connection) -> Iterator[str]:
    for words, query in _NEVER.items():
        found = db.execute(query).fetchall()
        if found:
            yield f"{len(found)} {words}: {found[:5]}"


def _sequence_problems(db: sqlite3.Connection) -> Iterator[str]:
    for run_id, seq in db.execute("SELECT run_id, seq FROM run").fetchall():
        steps = db.execute(
            "SELECT seq FROM visit WHERE run_id = ?1 UNION SELECT seq FROM undo WHERE run_id = ?1 AND seq > 0"
            " UNION SELECT done FROM frontier WHERE run_id = ?1 AND state = 'refused' AND done > 0"
            " UNION SELECT found FROM frontier WHERE run_id = ?1 AND found > 0"
            " UNION SELECT json_extract(before, '$.done') FROM undo WHERE run_id = ?1"
            " AND json_extract(before, '$.done') > 0 ORDER BY 1",
            (run_id,),
        )
        found = [number for (number,) in steps]
        if found != list(range(1, seq + 1)):
            yield f"run {run_id}: seq is {seq}, the steps have {found[:3]}…{found[-3:]} ({len(found)})"
    log = [number for (number,) in db.execute("SELECT log_id FROM visit UNION ALL SELECT log_id FROM undone")]
    # What is undone leaves its numbers behind; otherwise there are no gaps.
    was_undone = value(db, "SELECT COUNT(*) FROM undone") > 0
    if len(set(log)) < len(log) or (not was_undone and sorted(log) != list(range(1, len(log) + 1))):
        yield f"log_id has gaps or doubles: {len(log)} entries up to {max(log)}"


def _link_problems(db: sqlite3.Connection) -> Iterator[str]:
    """A URL that was seen is queued, refused or done."""
    known = set(db.execute("SELECT run_id, url_id FROM frontier"))
    for visit in rows(db, "SELECT run_id, seq, links, redirect FROM visit"):
        targets = unpack(visit["links"]) + ([visit["redirect"]] if visit["redirect"] else [])
        lost = [url_id for url_id in targets if (visit["run_id"], url_id) not in known]
        if lost:
            yield f"visit {visit['seq']} found {len(lost)} URLs that are not in the frontier: {lost[:5]}"


def recount(db: sqlite3.Connection, run_id: int) -> dict[str, int]:
    """A run's counters, counted from its rows; robots.txt and sitemaps do not count."""
    states = Counter(
        state for (state,) in db.execute(f"SELECT state FROM frontier WHERE run_id = ? AND {_PAGES}", (run_id,))
    )
    settled = Counter(
        outcome
        for (outcome,) in db.execute(
            "SELECT v.outcome FROM frontier f JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done"
            f" WHERE f.run_id = ? AND f.state = 'done' AND f.{_PAGES}",
            (run_id,),
        )
    )
    requests, size = db.execute(
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status <> 304 THEN size END), 0) FROM visit"
        f" WHERE run_id = ? AND requested = 1 AND {_PAGES}",
        (run_id,),
    ).fetchone()
    names = {"page": "pages", "duplicate": "duplicates", "resource": "resources"}
    names |= {"redirect": "redirects", "failed": "failed"}
    return {
        "known": states.total(),
        "pending": states["pending"],
        "refused": states["refused"],
        **{name: settled[outcome] for outcome, name in names.items()},
        "requests": requests,
        "size": size,
    }


def _total_problems(db: sqlite3.Connection) -> Iterator[str]:
    for kept in rows(db, "SELECT * FROM run"):
        for name, counted in recount(db, kept["run_id"]).items():
            if kept[name] != counted:
                yield f"run {kept['run_id']}: {name} is {kept[name]}, a recount gives {counted}"
    yield from _seed_problems(db)
    yield from _session_problems(db)
    kept = {(run, lane): count for run, lane, count in db.execute("SELECT run_id, lane, pending FROM lane") if count}
    counted = Counter(db.execute("SELECT run_id, lane FROM frontier WHERE state = 'pending'"))
    if kept != dict(counted):
        yield f"lanes are {kept}, a recount gives {dict(counted)}"


def _seed_problems(db: sqlite3.Connection) -> Iterator[str]:
    for seed in rows(db, "SELECT * FROM seed"):
        joined = (
            " FROM visit v JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
            f" WHERE v.run_id = ? AND f.seed = ? AND v.{_PAGES}"
        )
        which = (seed["run_id"], seed["number"])
        kept = value(db, f"SELECT COUNT(*) {joined} AND v.outcome = 'page'", *which)
        requests = value(db, f"SELECT COUNT(*) {joined} AND v.requested = 1 AND v.kind = 'page'", *which)
        if (seed["kept"], seed["requests"]) != (kept, requests):
            yield f"seed {which}: kept {seed['kept']}, requests {seed['requests']}; a recount: {kept}, {requests}"


def _session_problems(db: sqlite3.Connection) -> Iterator[str]:
    for session in rows(db, "SELECT * FROM session"):
        requests, size = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status <> 304 THEN size END), 0) FROM visit"
            f" WHERE run_id = ? AND session = ? AND {_PAGES}"
            " AND requested = 1",
            (session["run_id"], session["number"]),
        ).fetchone()
        if (session["requests"], session["size"]) != (requests, size):
            yield (
                f"session {session['number']}: requests {session['requests']}, size {session['size']};"
                f" a recount: {requests}, {size}"
            )
    alive = value(db, "SELECT COUNT(*) FROM session WHERE state = 'in_progress'")
    if alive > 1:
        yield f"{alive} sessions are in progress at once"


# The archive


@dataclass(frozen=True, slots=True)
class Owned:
    """What the store says about one record."""

    offset: int
    length: int
    url: str
    payload: bytes
    status: int
    size: int
    revisit: int


def archive_problems(db: sqlite3.Connection, folder: Path, ended: bool = True) -> list[str]:
    """Whether the files hold the committed records; after a clean end, nothing else."""
    if not has_schema(db):
        return []
    found: list[str] = []
    archive = folder / "archive"
    files = rows(db, "SELECT * FROM archive")
    present = {path.name for path in archive.glob("*")} if archive.exists() else set()
    if ended and present != {file["name"] for file in files}:
        found.append(f"the folder holds {sorted(present)}, the store knows {sorted(f['name'] for f in files)}")
    for file in files:
        path = archive / file["name"]
        data = path.read_bytes() if path.exists() else b""
        if len(data) < file["length"] or (ended and len(data) != file["length"]):
            found.append(f"{file['name']} has {len(data)} bytes, {file['length']} are committed")
        found += _records_problems(db, file, data[: file["length"]])
    return [*found, *_revisit_problems(db)]


def _owned(db: sqlite3.Connection, file_id: int) -> list[Owned]:
    query = (
        'SELECT v."offset", v.length, COALESCE(v.request_url, u.url), v.payload, v.status, v.size, v.revisit'
        " FROM visit v JOIN url u USING (url_id) WHERE v.file_id = ?1 AND v.requested = 1"
        ' UNION ALL SELECT "offset", length, request_url, payload, status, size, 0 FROM probe WHERE file_id = ?1'
        " ORDER BY 1"
    )
    return [Owned(*row) for row in db.execute(query, (file_id,))]


def _records_problems(db: sqlite3.Connection, file: Mapping[str, Any], data: bytes) -> Iterator[str]:
    """The committed part of a file: a head record, then the owned records end to end, and nothing between."""
    name, owned = file["name"], _owned(db, file["file_id"])
    if not owned:
        yield f"{name} has no owner"
        return
    spans = [(0, owned[0].offset), *((one.offset, one.length) for one in owned)]
    ends = [offset + length for offset, length in spans]
    if [offset for offset, _ in spans] != [0, *ends[:-1]] or ends[-1] != file["length"]:
        yield f"{name}: the owned records do not fill it end to end: {spans[:3]}…{spans[-3:]}"
    if not _is_member(data, *spans[0]):
        yield f"{name} does not begin with one whole record"
    for one in owned:
        yield from (f"{name} at {one.offset}: {said}" for said in _record_problems(one, data))
    yield from (f"{name}: {said}" for said in _warcio_problems(data, len(spans)))
    yield from (f"{name}: {said}" for said in _fastwarc_problems(data, spans))


def _is_member(data: bytes, offset: int, length: int) -> bool:
    """Whether exactly one gzip member lies there."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        unpacker.decompress(data[offset : offset + length])
    except zlib.error:
        return False
    return unpacker.eof and not unpacker.unused_data


def _record_problems(one: Owned, data: bytes) -> Iterator[str]:
    if not _is_member(data, one.offset, one.length):
        yield "not one whole gzip member"
        return
    piece = io.BytesIO(data[one.offset : one.offset + one.length])
    read = next(iter(ArchiveIterator(piece, no_record_parse=False)))
    yield from _head_problems(one, read)
    payload = read.raw_stream.read()
    if not one.revisit and (hashlib.sha256(payload).digest() != one.payload or len(payload) != one.size):
        yield f"the payload of {one.url} is not what was committed"
    if one.revisit and payload:
        yield f"the revisit of {one.url} has a payload"


def _head_problems(one: Owned, read: ArcWarcRecord) -> Iterator[str]:
    fields = read.rec_headers
    wanted = {
        "WARC-Type": "revisit" if one.revisit else "response",
        "WARC-Target-URI": one.url,
        "WARC-Payload-Digest": "sha256:" + base64.b32encode(one.payload).decode(),
    }
    for name, right in wanted.items():
        if fields.get_header(name) != right:
            yield f"{name} is {fields.get_header(name)!r}, not {right!r}"
    if (fields.get_header("WARC-Profile") or "").endswith("server-not-modified"):
        # It stands for the record that it refers to, and has no head of its own.
        if (one.status, read.length) != (304, 0):
            yield f"not modified, but status {one.status} and {read.length} bytes"
    elif read.http_headers.get_statuscode() != str(one.status):
        yield f"the status is {read.http_headers.get_statuscode()}, not {one.status}"


def _warcio_problems(data: bytes, count: int) -> Iterator[str]:
    seen, ids = 0, set()
    try:
        for read in ArchiveIterator(io.BytesIO(data), check_digests=True):
            read.content_stream().read()
            seen += 1
            ids.add(read.rec_headers.get_header("WARC-Record-ID"))
            if read.digest_checker.passed is False:
                yield f"warcio: record {seen}: {read.digest_checker.problems}"
    except Exception as error:
        yield f"warcio: {error!r} after {seen} records"
    if (seen, len(ids)) != (count, count):
        yield f"warcio finds {seen} records with {len(ids)} ids, {count} are committed"


def _fastwarc_problems(data: bytes, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    places = []
    try:
        for read in FastIterator(io.BytesIO(data), record_types=WarcRecordType.any_type, parse_http=False):
            places.append(read.stream_pos)
            if not _has_right_digests(read):
                yield f"fastwarc: wrong digest at {read.stream_pos}"
    except Exception as error:
        yield f"fastwarc: {error!r} after {len(places)} records"
    if places != [offset for offset, _ in spans]:
        yield f"fastwarc finds {len(places)} records at {places[:3]}…, {len(spans)} are committed"


def _has_right_digests(read: Any) -> bool:
    if read.record_type == WarcRecordType.warcinfo:
        return True
    if not read.verify_block_digest():
        return False
    read.parse_http()
    return read.record_type == WarcRecordType.revisit or bool(read.verify_payload_digest())


def _revisit_problems(db: sqlite3.Connection) -> Iterator[str]:
    query = (
        "SELECT v.seq FROM visit v WHERE v.revisit = 1 AND NOT EXISTS (SELECT 1 FROM visit o"
        " WHERE o.payload = v.payload AND o.revisit = 0 AND o.file_id IS NOT NULL AND o.log_id < v.log_id)"
    )
    yield from (f"visit {seq} is a revisit of nothing" for (seq,) in db.execute(query))


# The end of a run


def ends_of(db: sqlite3.Connection) -> dict[str, str]:
    """How every URL of a run ended: an outcome, or the reason of a refusal."""
    query = (
        "SELECT u.url, COALESCE(v.outcome, f.reason, f.state) FROM frontier f JOIN url u USING (url_id)"
        f" LEFT JOIN visit v ON v.run_id = f.run_id AND v.seq = f.done AND f.state = 'done' WHERE f.{_PAGES}"
    )
    return dict(db.execute(query))


def end_problems(db: sqlite3.Connection, ends: Mapping[str, str]) -> list[str]:
    """Whether every URL of the known site came to its end, exactly once, and nothing else is known."""
    found = []
    state = value(db, "SELECT state FROM run")
    if state != "completed":
        found.append(f"the run is {state}")
    reached = ends_of(db)
    found += [f"{url} was never met" for url in sorted(ends.keys() - reached.keys())]
    found += [f"{url} is not of this site" for url in sorted(reached.keys() - ends.keys())]
    found += [f"{url} ended as {reached[url]}, not {end}" for url, end in ends.items() if reached.get(url, end) != end]
    return found


# The server's log


@dataclass(frozen=True, slots=True)
class Asked:
    """One process: the session that it wrote (0 for none), what it asked the server for, whether it was killed."""

    session: int
    urls: tuple[str, ...]
    killed: bool


def request_problems(db: sqlite3.Connection, processes: Sequence[Asked]) -> list[str]:
    """Every committed visit was served; only what was in flight at a kill was asked for in vain, and once each."""
    if not has_schema(db):
        return [f"requests without a store: {one.urls[:5]}" for one in processes if one.urls]
    found: list[str] = []
    settled: set[str] = set()
    by_session = _requested(db)
    unknown = by_session.keys() - {one.session for one in processes}
    if unknown:
        found.append(f"sessions of nobody: {unknown}")
    for number, one in enumerate(processes, 1):
        visits = by_session.get(one.session, [])
        committed, asked = Counter(url for url, _ in visits), Counter(one.urls)
        lost = asked - committed
        found += [f"process {number}: {text}" for text in _process_problems(one, committed, asked, lost, settled)]
        settled |= {url for url, outcome in visits if outcome != "retry"}
    return found


def _process_problems(
    one: Asked, committed: Counter[str], asked: Counter[str], lost: Counter[str], settled: set[str]
) -> Iterator[str]:
    if never := committed - asked:
        yield f"committed without a request: {_some(never)}"
    if lost and not one.killed:
        yield f"asked for and not committed, though it ended in peace: {_some(lost)}"
    if twice := [url for url, count in lost.items() if count > 1]:
        yield f"asked for twice and not committed: {_some(twice)}"
    if again := settled & asked.keys():
        yield f"asked for again although it was settled: {_some(again)}"


def _requested(db: sqlite3.Connection) -> dict[int, list[tuple[str, str]]]:
    """What was requested for pages, by session: the URL as requested, and the outcome."""
    found: dict[int, list[tuple[str, str]]] = {}
    query = (
        "SELECT v.session, COALESCE(v.request_url, u.url), v.outcome FROM visit v JOIN url u USING (url_id)"
        f" WHERE v.requested = 1 AND v.{_PAGES}"
    )
    for session, url, outcome in db.execute(query):
        found.setdefault(session, []).append((url, outcome))
    return found


def _some(items: Iterable[str]) -> str:
    listed = sorted(items)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def newest_session(db: sqlite3.Connection | None) -> int:
    if db is None or not has_schema(db):
        return 0
    return value(db, "SELECT MAX(number) FROM session") or 0


def has_completed(db: sqlite3.Connection | None) -> bool:
    """Whether nothing is left to do, also when a kill kept the process from saying so."""
    return db is not None and has_schema(db) and value(db, "SELECT state FROM run ORDER BY number DESC") == "completed"


# What was committed once


Committed = frozenset[tuple[Any, ...]]


def committed(db: sqlite3.Connection | None) -> Committed:
    """What no later event may change: visits with their place in the archive, and that there were these sessions."""
    if db is None or not has_schema(db):
        return frozenset()
    sessions = db.execute("SELECT 'session', run_id, number, token, start_seq, started_ms FROM session")
    return frozenset((*db.execute("SELECT 'visit', * FROM visit"), *sessions))


def durability_problems(db: sqlite3.Connection, earlier: Sequence[Committed]) -> list[str]:
    """Whether all that was found committed after each death is still there, unchanged."""
    now = committed(db)
    return [
        f"{len(before - now)} rows that were committed when process {number} ended are gone or changed:"
        f" {sorted(before - now, key=str)[:3]}"
        for number, before in enumerate(earlier, 1)
        if before - now
    ]


def deaths(folder: Path, db: sqlite3.Connection | None) -> int:
    """How often the process has died while reading, for the page where that happened most."""
    counted: Counter[int] = Counter()
    if db is not None and has_schema(db):
        counted.update(dict(db.execute("SELECT url_id, deaths FROM suspect")))
    mark = folder / "reading"
    url_id = int.from_bytes(mark.read_bytes()[:8], "little") if mark.exists() else 0
    if url_id:
        counted[url_id] += 1
    return max(counted.values(), default=0)


def check_folder(folder: Path, scratch: Path, ended: bool = True) -> list[str]:
    """Store and archive of one crawl."""
    db = copy_store(folder, scratch)
    if db is None:
        return ["there is no crawl.db"]
    with closing(db):
        return [*store_problems(db), *archive_problems(db, folder, ended)]
