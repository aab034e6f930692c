"""Pages of a run with the same text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inchworm.store.crawl.joins import ROW
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.database import NO_LIMIT

_FOR_EVER = 1 << 62
_SAME = (
    f"SELECT v.seq, u.url, v.text_hash FROM visit v JOIN url u USING (url_id) JOIN {ROW}"
    " AND f.done = /*sqlite +*/v.seq WHERE v.run_id = ? AND v.text_hash = ANY (?)"
    " AND /*sqlite +*/v.seq <= ? AND v.outcome = '{}' LIMIT ?"
)


class Copies:
    """Which pages have the same text. Texts go by their hashes, as visits have them."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def of(self, run_id: int, text_hash: str | None, limit: int = NO_LIMIT) -> Sequence[str]:
        """URLs of the run with this text, the primary one first; of each outcome so many at most."""
        if text_hash is None:
            return []
        return self.of_all(run_id, [text_hash], limit=limit).get(text_hash, [])

    def of_all(
        self, run_id: int, text_hashes: Iterable[str], until: int = _FOR_EVER, limit: int = NO_LIMIT
    ) -> Mapping[str, Sequence[str]]:
        """The same for many texts, up to a seq."""
        # One question per outcome, because each has an index of its own; the plus keeps SQLite to it.
        rows = [row for one in ("page", "duplicate") for row in self._same(run_id, text_hashes, one, until, limit)]
        found: dict[str, list[str]] = {}
        for _, url, text_hash in sorted(rows):
            found.setdefault(text_hash.hex(), []).append(url)
        return found

    def primaries(self, run_id: int, text_hashes: Iterable[str]) -> Mapping[str, str]:
        """Of each text the page of a run that has it for its own."""
        return {one.hex(): url for _, url, one in self._same(run_id, text_hashes, "page", _FOR_EVER, NO_LIMIT)}

    def _same(
        self, run_id: int, text_hashes: Iterable[str], outcome: str, until: int, limit: int
    ) -> list[tuple[int, str, bytes]]:
        wanted = [bytes.fromhex(one) for one in text_hashes]
        return self._db.execute(_SAME.format(outcome), (run_id, wanted, until, limit)).fetchall()
