"""What runs know of each other: versions of a URL, pages that a run has not met, verdicts that wait for its end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from inchworm.model import Source, Version
from inchworm.ports import Believed, Contradicted, Differing, Judgement, Redirected, Unreached
from inchworm.rules.change import change, validators
from inchworm.rules.order.freshness import VisitHistory
from inchworm.store.crawl.commit import unpack
from inchworm.store.database import Database

_VERSION = (
    "SELECT v.url_id, v.run_id, v.seq, v.at_ms, v.status, v.size, v.content_type, v.etag, v.last_modified, v.payload, v.text_hash,"
    " v.link_hash, v.title, v.language, v.canonical, v.meta, v.links, v.reader, v.file_id, a.name,"
    ' v."offset", v.length, v.revisit, v.missing, v.outcome'
    " FROM visit v LEFT JOIN archive a USING (file_id)"
)
_IS_GOOD = "v.outcome IN ('page', 'duplicate', 'resource')"
_IS_GONE = "(v.outcome = 'deleted' OR (v.outcome = 'redirect' AND v.change = 'deleted'))"
ITSELF = "SELECT run_id FROM run WHERE run_id = ?"
_BEFORE = "SELECT follows FROM run WHERE run_id = ?"

Spot = tuple[str, int, int]
"""Archive file, offset and length of a record."""


def line_from(start: str) -> str:
    """A query for the runs of a line, from one on to the first."""
    more = "SELECT r.follows FROM line JOIN run r USING (run_id) WHERE r.follows IS NOT NULL"
    return f"WITH RECURSIVE line (run_id) AS ({start} UNION ALL {more}) SELECT run_id FROM line"


def earlier_runs(start: str = _BEFORE) -> str:
    """A query for the runs before the horizon on its line, or from `start` on. What a cancelled one saw is news to
    whoever waits for the next."""
    return f"{line_from(start)} JOIN run USING (run_id) WHERE state <> 'cancelled'"


def is_earlier(start: str = _BEFORE) -> str:
    """Of such a run. The plus: a URL has few visits, but there may be many runs."""
    return f"/*sqlite +*/v.run_id IN ({earlier_runs(start)})"


_IS_EARLIER = is_earlier()

_OF_URL = f"v.url_id = {{}} AND {_IS_EARLIER} AND ({{}}) ORDER BY v.run_id DESC, v.seq DESC LIMIT 1"
_NEWEST = _OF_URL.format("u.url_id", f"{_IS_GOOD} OR {_IS_GONE}")
_NEWEST_GOOD = _OF_URL.format("?", _IS_GOOD)
_NEWEST_OF_EACH = f"SELECT (SELECT v.log_id FROM visit v WHERE {_NEWEST}) FROM url u WHERE u.url_id = ANY (?)"


def _last_known(earlier: str) -> str:
    """The last that earlier runs have on each page."""
    return (
        f"SELECT v.url_id, v.run_id, CASE WHEN {_IS_GONE} THEN 'deleted' ELSE v.outcome END AS outcome, v.status,"
        f" v.missing FROM visit v WHERE v.log_id IN (SELECT MAX(v.log_id) FROM visit v WHERE v.kind = 'page' AND {earlier}"
        f" AND (v.outcome IN ('page', 'duplicate') OR {_IS_GONE}) GROUP BY v.url_id)"
    )


_LAST_KNOWN = _last_known(_IS_EARLIER)

_WAS_READ = (
    "EXISTS (SELECT 1 FROM frontier g JOIN visit w ON w.run_id = g.run_id AND w.seq = g.done WHERE g.run_id = ?"
    " AND g.url_id = f.found_on AND g.state = 'done' AND w.failure IS NULL AND w.outcome <> 'redirect')"
)
_NO_ETAG = """ AND (v.etag IS NULL OR NOT (v.etag LIKE '"%"' OR v.etag LIKE 'W/"%"') OR v.etag LIKE '%", "%')"""
IS_WHOLE = "(v.failure IS NULL OR v.failure LIKE 'http_%')"
"""Of an answer that failed otherwise the archive has the bytes, but not so that they can be read as a body again."""
_JUDGEMENT = "v.outcome, v.change, v.note, v.message"
_SETTLED = "visit v JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id AND f.done = v.seq"


class AcrossRuns:
    """The part of a crawl's store that looks at more than one run, or at a run as a whole."""

    db: Database

    def version(self, url_id: int, horizon: int) -> Version | None:
        """The last good answer that a run before the horizon has for a URL, and for how long it has been gone since."""
        return self.versions([url_id], horizon).get(url_id)

    def versions(self, url_ids: Sequence[int], horizon: int) -> dict[int, Version]:
        """The same for many URLs at once."""
        found: dict[int, Version] = {}
        for row in self.db.among(f"{_VERSION} WHERE v.log_id IN ({_NEWEST_OF_EACH})", url_ids, horizon):
            version = _version(row) if row[-1] not in ("deleted", "redirect") else self._gone(row, horizon)
            if version is not None:
                found[row[0]] = version
        return found

    def _gone(self, last: Sequence[Any], horizon: int) -> Version | None:
        """What there was of a page before it was gone."""
        row = self.db.execute(f"{_VERSION} WHERE {_NEWEST_GOOD}", (last[0], horizon)).fetchone()
        return _version(row)._replace(missing=max(1, last[-2])) if row else None

    def body_spot(self, payload: bytes) -> Spot | None:
        """Where the record lies that holds a payload."""
        return self.body_spots([payload]).get(payload)

    def body_spots(self, payloads: Iterable[bytes]) -> dict[bytes, Spot]:
        """The same for many payloads at once."""
        rows = self.db.among(
            'SELECT v.payload, a.name, v."offset", v.length FROM visit v JOIN archive a USING (file_id) WHERE v.revisit = 0'
            f" AND v.file_id IS NOT NULL AND v.payload = ANY (?) ORDER BY {IS_WHOLE}, v.log_id",
            payloads,
        )
        return {payload: (name, offset, length) for payload, name, offset, length in rows}

    def has_text(self, url_id: int, horizon: int, text_hash: bytes) -> bool:
        query = f"SELECT 1 FROM visit v WHERE url_id = ? AND {_IS_EARLIER} AND text_hash = ? LIMIT 1"
        return self.db.execute(query, (url_id, horizon, text_hash)).fetchone() is not None

    # Whom to believe

    def distrusted(self, run_id: int, horizon: int) -> dict[tuple[int, str], str]:
        """Lanes and validators that a run does not go by, found out before it began, and why."""
        query = (
            "SELECT host_id, validator, why FROM distrust WHERE (run_id = ? AND seq = 0)"
            f" OR (run_id IN ({line_from(_BEFORE)}) AND seq > 0 AND (why <> 'useless' OR run_id >= ?))"
        )
        rows = self.db.execute(
            f"{query} ORDER BY why = 'shared' DESC", (run_id, horizon, horizon - validators.FORGIVEN)
        )
        return {(lane, validator): why for lane, validator, why in rows}

    def shared_validators(self, run_id: int) -> list[tuple[int, str, int, str]]:
        """What most pages of a lane had in common in a run, as rows for the one that builds on it. Not what proved to
        change with the pages, when they were all asked for in full."""
        found = []
        for column, other in ((validators.ETAG, ""), (validators.LAST_MODIFIED, _NO_ETAG)):
            rows = self.db.execute(
                f"SELECT lane, SUM(pages), MAX(pages) FROM (SELECT f.lane, COUNT(*) AS pages FROM {_SETTLED}"
                f" WHERE v.run_id = ? AND v.outcome IN ('page', 'duplicate') AND v.{column} IS NOT NULL{other}"
                f" GROUP BY f.lane, v.{column}) AS said GROUP BY lane",
                (run_id,),
            )
            lanes = [lane for lane, pages, most in rows if validators.shared(pages, most)]
            said = f"v.{column} IS NOT NULL{other}"
            found += [
                (lane, column, 0, validators.SHARED)
                for lane in lanes
                if not self._is_proven(run_id, lane, column, said)
            ]
        return found

    def _is_proven(self, run_id: int, lane: int, column: str, said: str) -> bool:
        """By the last run on the line that asked for all pages of a lane in full, because they share a validator, and
        found that some had changed."""
        row = self.db.execute(
            "SELECT COUNT(*) FILTER (WHERE v.note IS NULL OR v.note NOT LIKE '%same_validator%'),"
            " COUNT(*) FILTER (WHERE v.note LIKE '%same_validator%')"
            " FROM distrust d JOIN run r USING (run_id) JOIN visit v ON v.run_id = d.run_id AND v.change = 'modified'"
            " JOIN frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id AND f.done = v.seq AND f.lane = d.host_id"
            f" WHERE d.run_id IN ({line_from(ITSELF)}) AND r.state = 'completed' AND d.host_id = ? AND d.validator = ?"
            f" AND d.seq = 0 AND d.why = ? AND {said} GROUP BY d.run_id ORDER BY d.run_id DESC LIMIT 1",
            (run_id, lane, column, validators.SHARED),
        ).fetchone()
        return row is not None and validators.has_proven_itself(row[0], row[1])

    def contradicted(self, run_id: int) -> list[Contradicted]:
        rows = self.db.execute(
            f"SELECT f.lane, v.etag, v.differences FROM {_SETTLED} WHERE v.run_id = ? AND v.change = 'modified'"
            " AND v.note LIKE '%same_validator%' ORDER BY v.seq",
            (run_id,),
        )
        return [
            Contradicted(lane, validators.kind_of(etag or ""), tuple(json.loads(said)) if said else None)
            for lane, etag, said in rows
        ]

    def believed(self, run_id: int, lane: int) -> list[Believed]:
        """What a server was believed, and whatever counts as a duplicate of that."""
        # Not modified is also what a URL fails by, when nobody asked whether it was.
        is_believed = "f.lane = :lane AND v.status = 304 AND v.outcome IN ('page', 'duplicate', 'resource')"
        said = f"FROM {_SETTLED} WHERE v.run_id = :run AND {is_believed} AND f.state = 'done'"
        rows = self.db.execute(
            "SELECT v.url_id, v.seq, f.seed, CASE WHEN v.status = 304 THEN v.size ELSE 0 END,"
            f" {_JUDGEMENT} FROM {_SETTLED} WHERE v.run_id = :run AND f.state = 'done' AND"
            f" (({is_believed}) OR (v.outcome = 'duplicate' AND v.text_hash IN"
            f" (SELECT v.text_hash {said}))) ORDER BY v.seq",
            {"run": run_id, "lane": lane},
        )
        return [Believed(url_id, seq, seed, saved, Judgement(*rest)) for url_id, seq, seed, saved, *rest in rows]

    def news_waiting(self, run_id: int, seed: int) -> int:
        query = "SELECT COUNT(*) FROM frontier WHERE run_id = ? AND state = 'pending' AND seed = ? AND place_seq = -1"
        return int(self.db.execute(f"{query} AND kind = 'page'", (run_id, seed)).fetchone()[0])

    def last_unchanged(self, run_id: int, seed: int) -> Believed | None:
        row = self.db.execute(
            f"SELECT v.url_id, v.seq, f.seed, CASE WHEN v.status = 304 THEN v.size ELSE 0 END, {_JUDGEMENT}"
            f" FROM {_SETTLED} WHERE v.run_id = :run AND f.seed = :seed AND f.state = 'done' AND v.outcome = 'page'"
            " AND v.change = 'unchanged' AND f.source <> 'initial' AND NOT EXISTS (SELECT 1 FROM visit d WHERE"
            " d.run_id = :run AND d.outcome = 'duplicate' AND d.text_hash = v.text_hash) ORDER BY v.seq DESC LIMIT 1",
            {"run": run_id, "seed": seed},
        ).fetchone()
        if row is None:
            return None
        url_id, seq, number, saved, *judgement = row
        return Believed(url_id, seq, number, saved, Judgement(*judgement))

    def useless(self, run_id: int) -> set[int]:
        rows = self.db.execute(
            f"SELECT f.lane FROM {_SETTLED} WHERE v.run_id = ? AND v.change IS NOT NULL GROUP BY f.lane"
            " HAVING COUNT(*) FILTER (WHERE v.status = 304) = 0"
            " AND COUNT(*) FILTER (WHERE v.etag IS NOT NULL AND v.note LIKE '%validators_changed%') >= ?",
            (run_id, validators.USELESS),
        )
        return {lane for (lane,) in rows}

    # At the end of a run

    def unreached(self, run_id: int, horizon: int) -> list[Unreached]:
        rows = self.db.execute(
            f"SELECT k.url_id, u.url, f.request_url, f.source, f.depth, f.found_on, {_WAS_READ}, f.unlinked"
            f" FROM ({_LAST_KNOWN}) k JOIN url u USING (url_id)"
            " JOIN frontier f ON f.run_id = k.run_id AND f.url_id = k.url_id"
            " WHERE (k.outcome <> 'deleted' OR (k.status = 404 AND k.missing < ?))"
            " AND NOT EXISTS (SELECT 1 FROM frontier g WHERE g.run_id = ? AND g.url_id = k.url_id) ORDER BY k.url_id",
            (run_id, horizon, change.MISSING_RUNS, run_id),
        )
        return [
            Unreached(url_id, url, address or url, Source(source), depth, on, on is None or bool(read), unlinked)
            for url_id, url, address, source, depth, on, read, unlinked in rows
        ]

    def histories(self, last: int | None) -> list[tuple[Unreached, VisitHistory]]:
        """Every page that this run and those before it on its line know, with how it has changed so far, in the order of
        their ids."""
        earlier = is_earlier(ITSELF)
        rows = self.db.execute(
            "SELECT k.url_id, u.url, f.request_url, f.source, f.depth, f.found_on, f.unlinked, h.looks, h.changes, h.first,"
            f" h.last FROM ({_last_known(earlier)}) k JOIN url u USING (url_id)"
            " JOIN frontier f ON f.run_id = k.run_id AND f.url_id = k.url_id"
            " JOIN (SELECT url_id, COUNT(*) FILTER (WHERE change IN ('modified', 'unchanged')) AS looks,"
            " COUNT(*) FILTER (WHERE change = 'modified') AS changes,"
            f" MIN(at_ms) AS first, MAX(at_ms) AS last FROM visit v WHERE kind = 'page' AND {earlier} GROUP BY url_id) h"
            " ON h.url_id = k.url_id WHERE k.outcome <> 'deleted' ORDER BY k.url_id",
            (last, last),
        )
        return [
            (
                Unreached(url_id, url, address or url, Source(source), depth, found_on, False, unlinked),
                VisitHistory(looks, changes, first, last),
            )
            for url_id, url, address, source, depth, found_on, unlinked, looks, changes, first, last in rows
        ]

    def redirected(self, run_id: int, horizon: int) -> list[Redirected]:
        rows = self.db.execute(
            f"SELECT v.url_id, v.seq, v.status, v.redirect, v.text_hash, v.reader, {_JUDGEMENT} FROM {_SETTLED}"
            " WHERE v.run_id = ? AND v.outcome = 'redirect' AND v.kind = 'page' ORDER BY v.seq",
            (run_id,),
        ).fetchall()
        found = []
        for url_id, seq, status, redirect, read_again, reader, *judgement in rows:
            old = self.version(url_id, horizon)
            if old is not None and not old.missing:
                judged = Judgement(*judgement)
                text = (read_again, reader) if read_again else (old.text_hash, old.reader)
                found.append(Redirected(seq, judged, status, redirect, *text))
        return found

    def differing(self, run_id: int) -> list[Differing]:
        rows = self.db.execute(
            f"SELECT v.seq, f.lane, v.differences, {_JUDGEMENT} FROM {_SETTLED} WHERE v.run_id = ?"
            " AND v.differences IS NOT NULL AND (v.change = 'modified' OR v.note LIKE '%stamp%') ORDER BY v.seq",
            (run_id,),
        )
        return [
            Differing(seq, Judgement(*rest), lane, tuple(json.loads(differences)))
            for seq, lane, differences, *rest in rows
        ]

    def compared(self, run_id: int) -> dict[int, int]:
        query = (
            f"SELECT f.lane, COUNT(*) FROM {_SETTLED} WHERE v.run_id = ? AND v.outcome IN ('page', 'duplicate')"
            " AND v.change IN ('modified', 'unchanged') GROUP BY f.lane"
        )
        return dict(self.db.execute(query, (run_id,)).fetchall())

    def count_unknown(self, run_id: int, horizon: int) -> int:
        row = self.db.execute(
            f"SELECT COUNT(*) FROM ({_LAST_KNOWN}) k"
            " LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = k.url_id AND f.state = 'done'"
            " LEFT JOIN visit w ON w.run_id = f.run_id AND w.seq = f.done"
            " WHERE k.outcome <> 'deleted' AND (w.change IS NULL OR w.change = 'unknown')",
            (horizon, run_id),
        ).fetchone()
        return int(row[0])


def _version(row: Sequence[Any]) -> Version:
    _, run_id, seq, at_ms, status, size, content_type, etag, last_modified, payload, *rest = row
    text_hash, link_hash, title, language, canonical, meta, links, reader, file_id, *spot = rest
    name, offset, length, revisit, _, _ = spot
    return Version(
        run_id,
        seq,
        at_ms,
        status,
        size,
        content_type or "",
        etag or "",
        last_modified or "",
        payload,
        text_hash or b"",
        link_hash or b"",
        title or "",
        language or "",
        canonical or "",
        meta,
        tuple(unpack(links)),
        reader or "",
        file_id,
        name or "",
        offset or 0,
        length or 0,
        revisit,
    )
