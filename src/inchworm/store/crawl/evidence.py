"""Evidence about what servers say of their pages: whom to believe, and what proved to be wrong."""

from __future__ import annotations

import json

from inchworm.ports import Believed, Contradicted, Differing, Judgement
from inchworm.rules.change import validators
from inchworm.store.crawl.joins import BEFORE, ITSELF, JUDGEMENT, ROW, SETTLED, line_from
from inchworm.store.database import Database

_NO_ETAG = """ AND (v.etag IS NULL OR NOT (v.etag LIKE '"%"' OR v.etag LIKE 'W/"%"') OR v.etag LIKE '%", "%')"""


_IS_HTML = "COALESCE(v.content_type, 'html') LIKE '%html%'"
"""What may be made by one template. Texts and documents beside such pages bear no stamps of theirs."""


class EvidenceTable:
    """What tells whether a page has changed, beside the page. `ports.Evidence` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def distrusted(self, run_id: int, horizon: int) -> dict[tuple[int, str], str]:
        """Lanes and validators that a run does not go by, found out before it began, and why."""
        query = (
            "SELECT host_id, validator, why FROM distrust WHERE (run_id = ? AND seq = 0)"
            f" OR (run_id IN ({line_from(BEFORE)}) AND seq > 0 AND (why <> 'useless' OR run_id >= ?))"
        )
        rows = self._db.execute(
            f"{query} ORDER BY why = 'shared' DESC", (run_id, horizon, horizon - validators.FORGIVEN)
        )
        return {(lane, validator): why for lane, validator, why in rows}

    def shared_validators(self, run_id: int) -> list[tuple[int, str, int, str]]:
        """What most pages of a lane had in common in a run, as rows for the one that builds on it. Not what proved to
        change with the pages, when they were all asked for in full."""
        found = []
        for column, other in ((validators.ETAG, ""), (validators.LAST_MODIFIED, _NO_ETAG)):
            rows = self._db.execute(
                f"SELECT lane, SUM(pages), MAX(pages) FROM (SELECT f.lane, COUNT(*) AS pages FROM {SETTLED}"
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

    def believed(self, run_id: int, lane: int) -> list[Believed]:
        """What a server was believed, and whatever counts as a duplicate of that."""
        # Not modified is also what a URL fails by, when nobody asked whether it was.
        is_believed = "f.lane = :lane AND v.status = 304 AND v.outcome IN ('page', 'duplicate', 'resource')"
        said = f"FROM {SETTLED} WHERE v.run_id = :run AND {is_believed} AND f.state = 'done'"
        rows = self._db.execute(
            "SELECT v.url_id, v.seq, f.seed, CASE WHEN v.status = 304 THEN v.size ELSE 0 END,"
            f" {JUDGEMENT} FROM {SETTLED} WHERE v.run_id = :run AND f.state = 'done' AND"
            f" (({is_believed}) OR (v.outcome = 'duplicate' AND v.text_hash IN"
            f" (SELECT v.text_hash {said}))) ORDER BY v.seq",
            {"run": run_id, "lane": lane},
        )
        return [Believed(url_id, seq, seed, saved, Judgement(*rest)) for url_id, seq, seed, saved, *rest in rows]

    def contradicted(self, run_id: int) -> list[Contradicted]:
        rows = self._db.execute(
            f"SELECT f.lane, {_IS_HTML}, v.etag, v.differences FROM {SETTLED} WHERE v.run_id = ? AND v.change = 'modified'"
            " AND v.note LIKE '%same_validator%' ORDER BY v.seq",
            (run_id,),
        )
        return [
            Contradicted(lane, bool(is_html), validators.kind_of(etag or ""), tuple(json.loads(said)) if said else None)
            for lane, is_html, etag, said in rows
        ]

    def useless(self, run_id: int) -> set[int]:
        rows = self._db.execute(
            f"SELECT f.lane FROM {SETTLED} WHERE v.run_id = ? AND v.change IS NOT NULL GROUP BY f.lane"
            " HAVING COUNT(*) FILTER (WHERE v.status = 304) = 0"
            " AND COUNT(*) FILTER (WHERE v.etag IS NOT NULL AND v.note LIKE '%validators_changed%') >= ?",
            (run_id, validators.USELESS),
        )
        return {lane for (lane,) in rows}

    def differing(self, run_id: int) -> list[Differing]:
        rows = self._db.execute(
            f"SELECT v.seq, f.lane, {_IS_HTML}, v.differences, {JUDGEMENT} FROM {SETTLED} WHERE v.run_id = ?"
            " AND v.differences IS NOT NULL AND (v.change = 'modified' OR v.note LIKE '%stamp%') ORDER BY v.seq",
            (run_id,),
        )
        return [
            Differing(seq, Judgement(*rest), lane, bool(is_html), tuple(json.loads(differences)))
            for seq, lane, is_html, differences, *rest in rows
        ]

    def compared(self, run_id: int) -> dict[tuple[int, bool], int]:
        query = (
            f"SELECT f.lane, {_IS_HTML}, COUNT(*) FROM {SETTLED} WHERE v.run_id = ? AND v.outcome IN ('page', 'duplicate')"
            " AND v.change IN ('modified', 'unchanged') GROUP BY f.lane, 2"
        )
        return {(lane, bool(is_html)): count for lane, is_html, count in self._db.execute(query, (run_id,))}

    def last_unchanged(self, run_id: int, seed: int) -> Believed | None:
        row = self._db.execute(
            f"SELECT v.url_id, v.seq, f.seed, CASE WHEN v.status = 304 THEN v.size ELSE 0 END, {JUDGEMENT}"
            f" FROM {SETTLED} WHERE v.run_id = :run AND f.seed = :seed AND f.state = 'done' AND v.outcome = 'page'"
            " AND v.change = 'unchanged' AND f.source <> 'initial' AND NOT EXISTS (SELECT 1 FROM visit d WHERE"
            " d.run_id = :run AND d.outcome = 'duplicate' AND d.text_hash = v.text_hash) ORDER BY v.seq DESC LIMIT 1",
            {"run": run_id, "seed": seed},
        ).fetchone()
        if row is None:
            return None
        url_id, seq, number, saved, *judgement = row
        return Believed(url_id, seq, number, saved, Judgement(*judgement))

    def _is_proven(self, run_id: int, lane: int, column: str, said: str) -> bool:
        """By the last run on the line that asked for all pages of a lane in full, because they share a validator, and
        found that some had changed."""
        row = self._db.execute(
            "SELECT COUNT(*) FILTER (WHERE v.note IS NULL OR v.note NOT LIKE '%same_validator%'),"
            " COUNT(*) FILTER (WHERE v.note LIKE '%same_validator%')"
            " FROM distrust d JOIN run r USING (run_id) JOIN visit v ON v.run_id = d.run_id AND v.change = 'modified'"
            f" JOIN {ROW} AND f.done = v.seq AND f.lane = d.host_id"
            f" WHERE d.run_id IN ({line_from(ITSELF)}) AND r.state = 'completed' AND d.host_id = ? AND d.validator = ?"
            f" AND d.seq = 0 AND d.why = ? AND {said} GROUP BY d.run_id ORDER BY d.run_id DESC LIMIT 1",
            (run_id, lane, column, validators.SHARED),
        ).fetchone()
        return row is not None and validators.has_proven_itself(row[0], row[1])
