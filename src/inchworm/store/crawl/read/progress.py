"""How a run goes, for people who watch it: samples, counts and parts of lists, by way of indexes, whatever its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inchworm.model import Change
from inchworm.rules.change.groups import AlikePages, GroupPlace
from inchworm.store.crawl.joins import ADDRESS, ROW
from inchworm.store.crawl.store import CrawlStore

_TITLE = (
    "(SELECT t.title FROM frontier g /*sqlite CROSS*/ JOIN visit t ON t.run_id = g.run_id AND t.seq = g.done"
    " WHERE g.run_id = ? AND g.url_id = u.url_id)"
)
_CHANGED = (
    f"SELECT v.seq, {ADDRESS}, COALESCE(v.title, {_TITLE}, ''), COALESCE(v.note, ''), v.url_id FROM visit v"
    f" /*sqlite CROSS*/ JOIN {ROW} AND f.done = v.seq"
    " /*sqlite CROSS*/ JOIN url u ON u.url_id = v.url_id WHERE v.run_id = ? AND v.change = ? AND v.seq > ?"
)
_GROUPS = (
    "SELECT COUNT(*), MIN(seq), alike FROM visit WHERE run_id = :run AND change = 'modified' AND alike IS NOT NULL"
    " GROUP BY alike HAVING COUNT(*) > 1"
)
_BEHIND = " AND (COUNT(*) < :pages OR (COUNT(*) = :pages AND MIN(seq) > :first))"
_LARGEST = " ORDER BY COUNT(*) DESC, MIN(seq) LIMIT :limit"
_ALONE = (
    "SELECT 1, v.seq, v.alike FROM visit v WHERE v.run_id = ? AND v.change IN ('new', 'modified', 'deleted')"
    " AND v.change = 'modified' AND v.seq > ? AND EXISTS (SELECT 1 FROM frontier f WHERE f.run_id = v.run_id AND"
    " f.done = v.seq) AND (v.alike IS NULL OR NOT EXISTS (SELECT 1 FROM visit w WHERE w.run_id = v.run_id"
    " AND w.change = 'modified' AND w.alike = v.alike AND w.seq <> v.seq)) ORDER BY v.seq LIMIT ?"
)
_INDEXED = ("new", "modified", "deleted")
_IN_INDEX = " AND v.change IN ('new', 'modified', 'deleted')"
"""SQLite takes an index of some rows only where the question says the same as the index."""

_SIZE = "LENGTH(totals) + LENGTH(type) + LENGTH(state) + LENGTH(substate) + 24"


class Moment(NamedTuple):
    """When a step of a run was taken, and in which session."""

    seq: int
    at_ms: int
    session: int


class Waiting(NamedTuple):
    """A host with so many URLs pending; it asked us to stay away until then."""

    host: str
    pending: int
    wait_until_ms: int


class ChangedPage(NamedTuple):
    """A page that a run found changed. `number` is its place in a list: a seq, or the number of its URL. `note`: what is
    said of the change; of a page of which nothing certain is known, why."""

    number: int
    url: str
    title: str
    note: str
    url_id: int


class ProgressReader:
    """Questions about one run. Reads only, and never a whole run."""

    def __init__(self, store: CrawlStore, run_id: int) -> None:
        self._db = store.db
        self._run_id = run_id

    # Time

    def moments(self, seqs: Iterable[int]) -> list[Moment]:
        """For each of these steps the first visit from there on; some steps are no visits."""
        found = (self._moment("seq >= ? ORDER BY seq", seq) for seq in seqs)
        return [one for one in found if one is not None]

    def last_before(self, seq: int) -> Moment | None:
        """The last visit up to a step."""
        return self._moment("seq <= ? ORDER BY seq DESC", seq)

    def _moment(self, where: str, seq: int) -> Moment | None:
        query = f"SELECT seq, at_ms, session FROM visit WHERE run_id = ? AND {where} LIMIT 1"
        row = self._db.execute(query, (self._run_id, seq)).fetchone()
        return Moment(*row) if row else None

    def since(self, at_ms: int, first: int, last: int) -> int:
        """About how many of these steps were taken since then. Steps are nearly in the order of time, so halving finds
        the place."""
        low, high = first, last + 1
        while low < high:
            middle = (low + high) // 2
            found = self._moment("seq >= ? ORDER BY seq", middle)
            if found is None or found.at_ms >= at_ms:
                high = middle
            else:
                low = found.seq + 1
        return max(0, last + 1 - low)

    def starts(self) -> dict[int, int]:
        """After which step each session began."""
        rows = self._db.execute("SELECT number, start_seq FROM session WHERE run_id = ?", (self._run_id,))
        return dict(rows.fetchall())

    # Failures and hosts

    def failures(self) -> dict[str, int]:
        """How many visits failed, by kind; those that were tried again later count too."""
        query = "SELECT failure, COUNT(*) FROM visit WHERE run_id = ? AND outcome = 'failed' GROUP BY failure"
        return dict(self._db.execute(query, (self._run_id,)).fetchall())

    def lasting_failures(self) -> dict[str, int]:
        """How many URLs failed and stand so, by kind."""
        query = (
            "SELECT v.failure, COUNT(*) FROM visit v WHERE v.run_id = ? AND v.outcome = 'failed' AND EXISTS"
            " (SELECT 1 FROM frontier f WHERE f.run_id = v.run_id AND f.done = v.seq) GROUP BY v.failure"
        )
        return dict(self._db.execute(query, (self._run_id,)).fetchall())

    def waiting(self, limit: int) -> list[Waiting]:
        """The hosts with the most pending URLs."""
        rows = self._db.execute(
            "SELECT COALESCE(h.name, ''), l.pending, COALESCE(h.wait_until_ms, 0) FROM lane l"
            " LEFT JOIN host h ON h.host_id = l.lane WHERE l.run_id = ? AND l.pending > 0"
            " ORDER BY l.pending DESC, l.lane LIMIT ?",
            (self._run_id, limit),
        )
        return [Waiting(*row) for row in rows]

    def hosts(self) -> tuple[int, int]:
        """How many hosts the run has met, and on how many of them something is pending."""
        query = "SELECT COUNT(*), COUNT(*) FILTER (WHERE pending > 0) FROM lane WHERE run_id = ?"
        count, busy = self._db.execute(query, (self._run_id,)).fetchone()
        return int(count), int(busy)

    # What changed

    def changed(self, change: str, before: int, after: int, limit: int) -> list[ChangedPage]:
        """Pages with which this happened, as the run noted it down, in the order of record from behind a seq on. One
        that has no title any more has that of the run `before`."""
        indexed = _IN_INDEX if change in _INDEXED else ""
        query = f"{_CHANGED}{indexed} ORDER BY v.seq LIMIT ?"
        return [ChangedPage(*row) for row in self._db.execute(query, (before, self._run_id, change, after, limit))]

    # Checkpoints

    def marks(self) -> list[tuple[int, int]]:
        """Number and seq of every checkpoint of the run, in their order."""
        query = "SELECT number, seq FROM checkpoint WHERE run_id = ? AND deleted = 0 ORDER BY seq, number"
        return self._db.execute(query, (self._run_id,)).fetchall()


class AlikeReader:
    """Pages that one run found modified, by what they have in common. Reads only, and only what was modified."""

    def __init__(self, store: CrawlStore, run_id: int) -> None:
        self._db = store.db
        self._run_id = run_id

    def groups(self, last: GroupPlace | None, limit: int) -> list[AlikePages]:
        """Modified pages by what they have in common, from behind the `last` group on, the largest first; their numbers
        are seqs. One that has nothing in common with others is alone."""
        found = [] if last is not None and last.pages == 1 else self._shared(last, limit)
        if len(found) < limit:
            after = last.first if last is not None and last.pages == 1 else 0
            rows = self._db.execute(_ALONE, (self._run_id, after, limit - len(found)))
            found += [AlikePages(*row) for row in rows]
        return found

    def _shared(self, last: GroupPlace | None, limit: int) -> list[AlikePages]:
        """Groups of more than one page: they are counted by the index alone."""
        behind, values = ("", {}) if last is None else (_BEHIND, last._asdict())
        rows = self._db.execute(f"{_GROUPS}{behind}{_LARGEST}", {"run": self._run_id, "limit": limit, **values})
        return [AlikePages(*row) for row in rows]

    def alike(self, number: int, before: int, after: int, limit: int) -> list[ChangedPage]:
        """Modified pages that changed in this way, in the order of record from behind a seq on."""
        query = f"{_CHANGED} AND v.change = 'modified' AND v.alike = ? ORDER BY v.seq LIMIT ?"
        values = (before, self._run_id, Change.MODIFIED.value, after, number, limit)
        return [ChangedPage(*row) for row in self._db.execute(query, values)]

    def at(self, seqs: Sequence[int], before: int) -> list[ChangedPage]:
        """Modified pages by their seqs, in the order of these."""
        query = f"{_CHANGED} AND v.seq = ANY (?)"
        values = (before, self._run_id, Change.MODIFIED.value, 0, list(seqs))
        found = {row[0]: ChangedPage(*row) for row in self._db.execute(query, values)}
        return [found[seq] for seq in seqs if seq in found]


class Whole:
    """Questions about all runs of a crawl. Reads only."""

    def __init__(self, store: CrawlStore) -> None:
        self._db = store.db

    def checkpoints(self, before: int, limit: int) -> list[int]:
        """The numbers of checkpoints before this one, the newest first."""
        query = "SELECT number FROM checkpoint WHERE number < ? AND deleted = 0 ORDER BY number DESC LIMIT ?"
        return [number for (number,) in self._db.execute(query, (before, limit))]

    def checkpoint_types(self) -> dict[str, tuple[int, int]]:
        """How many checkpoints there are of each type, and how many bytes they take."""
        query = f"SELECT type, COUNT(*), SUM({_SIZE}) FROM checkpoint WHERE deleted = 0 GROUP BY type"
        return {kind: (count, size) for kind, count, size in self._db.execute(query)}

    def last_url(self) -> int:
        """The highest number of a URL."""
        return int(self._db.execute("SELECT MAX(url_id) FROM url").fetchone()[0] or 0)

    def titled(self, url_ids: Sequence[int], runs: tuple[int, int]) -> list[ChangedPage]:
        """These URLs, each with its title in the second run, or else in the first; in the order of their numbers."""
        first, second = runs
        query = (
            f"SELECT u.url_id, u.url, COALESCE({_TITLE}, {_TITLE}, ''), '', u.url_id FROM url u"
            " WHERE u.url_id = ANY (?) ORDER BY u.url_id"
        )
        return [ChangedPage(*row) for row in self._db.execute(query, (second, first, list(url_ids)))]
