"""What the runs before one know: versions of a URL, pages that this run has not met, how often they changed."""

from __future__ import annotations

from collections.abc import Sequence

from inchworm.model import Source, Version
from inchworm.ports import Judgement, Redirected, Unreached
from inchworm.rules.change import change
from inchworm.rules.order.freshness import VisitHistory
from inchworm.store.crawl.commit import unpack
from inchworm.store.crawl.joins import IS_GONE, IS_GOOD, ITSELF, JUDGEMENT, SETTLED, SETTLING, is_earlier, newest_visits
from inchworm.store.database import Database, Row

_VERSION = (
    "SELECT v.url_id, v.run_id, v.seq, v.at_ms, v.status, v.size, v.content_type, v.etag, v.last_modified, v.payload, v.text_hash,"
    " v.link_hash, v.title, v.language, v.canonical, v.meta, v.links, v.reader, v.file_id, a.name,"
    ' v."offset", v.length, v.revisit, v.missing, v.outcome'
    " FROM visit v LEFT JOIN archive a USING (file_id)"
)
_IS_EARLIER = is_earlier()

_OF_URL = f"v.url_id = {{}} AND {_IS_EARLIER} AND ({{}}) ORDER BY v.run_id DESC, v.seq DESC LIMIT 1"
_NEWEST = _OF_URL.format("u.url_id", f"{IS_GOOD} OR {IS_GONE}")
_NEWEST_GOOD = _OF_URL.format("?", IS_GOOD)
_NEWEST_OF_EACH = f"SELECT (SELECT v.log_id FROM visit v WHERE {_NEWEST}) FROM url u WHERE u.url_id = ANY (?)"


def _last_known(earlier: str) -> str:
    """The last that earlier runs have on each page."""
    return (
        f"SELECT v.url_id, v.run_id, CASE WHEN {IS_GONE} THEN 'deleted' ELSE v.outcome END AS outcome, v.status,"
        f" v.missing FROM visit v WHERE v.log_id IN ({newest_visits(earlier)})"
    )


_LAST_KNOWN = _last_known(_IS_EARLIER)

_WAS_READ = (
    "EXISTS (SELECT 1 FROM frontier g JOIN visit w ON w.run_id = g.run_id AND w.seq = g.done WHERE g.run_id = ?"
    " AND g.url_id = f.found_on AND g.state = 'done' AND w.failure IS NULL AND w.outcome <> 'redirect')"
)


class EarlierTable:
    """Pages as earlier runs have them. `ports.EarlierPages` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def version(self, url_id: int, horizon: int) -> Version | None:
        """The last good answer that a run before the horizon has for a URL, and for how long it has been gone since."""
        return self.versions([url_id], horizon).get(url_id)

    def versions(self, url_ids: Sequence[int], horizon: int) -> dict[int, Version]:
        """The same for many URLs at once."""
        found: dict[int, Version] = {}
        for row in self._db.among(f"{_VERSION} WHERE v.log_id IN ({_NEWEST_OF_EACH})", url_ids, horizon):
            version = _version(row) if row[-1] not in ("deleted", "redirect") else self._gone(row, horizon)
            if version is not None:
                found[row[0]] = version
        return found

    def has_text(self, url_id: int, horizon: int, text_hash: bytes) -> bool:
        query = f"SELECT 1 FROM visit v WHERE url_id = ? AND {_IS_EARLIER} AND text_hash = ? LIMIT 1"
        return self._db.execute(query, (url_id, horizon, text_hash)).fetchone() is not None

    def unreached(self, run_id: int, horizon: int) -> list[Unreached]:
        rows = self._db.execute(
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
        rows = self._db.execute(
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
        rows = self._db.execute(
            f"SELECT v.url_id, v.seq, v.status, v.redirect, v.text_hash, v.reader, {JUDGEMENT} FROM {SETTLED}"
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

    def count_unknown(self, run_id: int, horizon: int) -> int:
        row = self._db.execute(
            f"SELECT COUNT(*) FROM ({_LAST_KNOWN}) k"
            " LEFT JOIN frontier f ON f.run_id = ? AND f.url_id = k.url_id AND f.state = 'done'"
            f" LEFT JOIN {SETTLING}"
            " WHERE k.outcome <> 'deleted' AND (v.change IS NULL OR v.change = 'unknown')",
            (horizon, run_id),
        ).fetchone()
        return int(row[0])

    def _gone(self, last: Row, horizon: int) -> Version | None:
        """What there was of a page before it was gone."""
        row = self._db.execute(f"{_VERSION} WHERE {_NEWEST_GOOD}", (last[0], horizon)).fetchone()
        return _version(row)._replace(missing=max(1, last[-2])) if row else None


def _version(row: Row) -> Version:
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
