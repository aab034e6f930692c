"""crawl.db: what pages have to say of the URLs they link to, and the ranks that come of it, in a run with a query.

`promise` adds up the votes of all visits up to `run.counted`, which are on record with their visits. So counting can go
on from wherever it was, and back: what is added for a visit can be taken off again.
"""

from __future__ import annotations

from collections.abc import Sequence

from inchworm.rules.order import focus, order
from inchworm.rules.order.focus import Votes
from inchworm.store.crawl.commit import unpack
from inchworm.store.database import Database

_AT_A_TIME = 100_000
"""So many votes, and the rest of a page's, go into one transaction: a second or two."""

_CAST = (
    "SELECT seq, share, parts, links FROM visit"
    " WHERE run_id = ? AND seq > ? AND seq <= ? AND share IS NOT NULL ORDER BY seq {}"
)
_SUMS = "SELECT url_id, own, first, pages, parts, share FROM promise WHERE run_id = ? AND url_id = ANY (?)"
_CHANGE = "UPDATE promise SET pages = ?, parts = ?, share = ? WHERE run_id = ? AND url_id = ?"
# The rank of a URL that is to be tried again is below 0, and it stays there. What is done has its rank kept right as
# well: it may be pending again one day, and the next run begins with the ranks of this one.
_RANK = "UPDATE frontier SET rank = ? WHERE run_id = ? AND url_id = ? AND rank >= 0 AND rank <> ?"


class RankTable:
    """The ranks that votes give. `ports.Ranks` says what is guaranteed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def count(self, run_id: int, upto: int) -> int:
        return count_some(self._db, run_id, upto)


def count_some(db: Database, run_id: int, upto: int) -> int:
    """Go some way to where the votes of all visits up to this seq count, and of none after it; how far, comes back.

    In the open transaction. Wherever it stops, ranks are those that belong there.
    """
    (counted,) = db.execute("SELECT counted FROM run WHERE run_id = ?", (run_id,)).fetchone()
    times = 1 if upto > counted else -1
    between = (run_id, min(counted, upto), max(counted, upto))
    cast: dict[int, Votes] = {}
    room = _AT_A_TIME
    for seq, *vote in db.stream(_CAST.format("ASC" if times > 0 else "DESC"), between):
        room -= _cast(cast, *vote)
        if room < 0:
            upto = seq if times > 0 else seq - 1
            break
    _add(db, run_id, cast, times)
    db.execute("UPDATE run SET counted = ? WHERE run_id = ?", (upto, run_id))
    return upto


def count(db: Database, run_id: int, upto: int) -> None:
    """All the way there, in one transaction."""
    while count_some(db, run_id, upto) != upto:
        pass


def count_back(db: Database, run_id: int, upto: int) -> None:
    """Take off the votes of visits after this seq, while they are still on record."""
    (counted,) = db.execute("SELECT counted FROM run WHERE run_id = ?", (run_id,)).fetchone()
    count(db, run_id, min(counted, upto))


def rank(db: Database, run_id: int, url_ids: Sequence[int]) -> None:
    """Give these URLs the ranks that belong to the votes that are counted."""
    _add(db, run_id, dict.fromkeys(url_ids, Votes()), 1)


def copy(db: Database, source: int, run_id: int) -> None:
    """Promises for a run that begins with the rows of another one. No vote is counted."""
    db.execute(
        "INSERT INTO promise (run_id, url_id, own, first) SELECT f.run_id, p.url_id, p.own, p.first FROM promise p"
        " JOIN frontier f ON f.run_id = ? AND f.url_id = p.url_id WHERE p.run_id = ?",
        (run_id, source),
    )
    first = "SELECT first FROM promise p WHERE p.run_id = frontier.run_id AND p.url_id = frontier.url_id"
    db.execute(f"UPDATE frontier SET rank = COALESCE(({first}), rank) WHERE run_id = ? AND rank >= 0", (run_id,))


def wrong(db: Database, run_id: int) -> int:
    """How many promises do not add up, or are not what their URL is ranked by."""
    (counted,) = db.execute("SELECT counted FROM run WHERE run_id = ?", (run_id,)).fetchone()
    cast: dict[int, Votes] = {}
    for _, *vote in db.stream(_CAST.format("ASC"), (run_id, 0, counted)):
        _cast(cast, *vote)
    promises = db.stream(
        "SELECT p.url_id, p.own, p.first, f.rank, p.pages, p.parts, p.share FROM promise p"
        " LEFT JOIN frontier f ON f.run_id = p.run_id AND f.url_id = p.url_id WHERE p.run_id = ?",
        (run_id,),
    )
    return sum(
        Votes(*sums) != (votes := cast.get(url_id, Votes())) or ranked not in (order.LAST, _rank(own, first, votes))
        for url_id, own, first, ranked, *sums in promises
    )


def _cast(cast: dict[int, Votes], share: int, parts: bytes | None, links: bytes | None) -> int:
    """Add the votes of a visit to those for the same URLs. How many there were, comes back."""
    ids = unpack(links)
    for url_id, places in zip(ids, parts or b"\1" * len(ids), strict=True):
        vote = Votes(1, places, share)
        cast[url_id] = cast[url_id].plus(vote) if url_id in cast else vote
    return len(ids)


def _add(db: Database, run_id: int, cast: dict[int, Votes], times: int) -> None:
    sums: list[tuple[int, ...]] = []
    ranks: list[tuple[int, int, int, int]] = []
    for url_id, own, first, *before in db.among(_SUMS, cast, run_id):
        votes = Votes(*before).plus(cast[url_id], times)
        sums.append((*votes, run_id, url_id))
        ranked = _rank(own, first, votes)
        ranks.append((ranked, run_id, url_id, ranked))
    db.executemany(_CHANGE, sums)
    db.executemany(_RANK, ranks)


def _rank(own: int, first: int, votes: Votes) -> int:
    return focus.rank(own, votes) if votes.pages else first
