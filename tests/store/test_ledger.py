"""How visits become part of the record: places, second looks, limits, counters, and the way back.

Nobody fetches here. The tests say what every visit came to, a real store keeps it, and after every commit
the kept numbers are compared with counted ones.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from random import Random

import pytest

from inchworm import settings
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.ledger.draft.draft import Committed
from inchworm.engine.ledger.entering import SITEMAP_DEPTH
from inchworm.errors import Broken, Lost
from inchworm.model import (
    FinishedVisit,
    FoundUrl,
    FrontierEntry,
    Kind,
    Mode,
    Outcome,
    Place,
    Reading,
    Reason,
    Record,
    RefusedEntry,
    Source,
    Spot,
    State,
    Turn,
)
from inchworm.ports import Original, StoredRow, Unreached
from inchworm.rules.web.control import robots_file, sitemap_file
from inchworm.rules.web.limits import REQUEST_FACTOR
from inchworm.rules.web.url import canonicalize, origin_of
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.frontier import FrontierReader
from inchworm.store.crawl.read.visits import VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import Life

A = "http://a.test"
B = "http://b.test"
RUN_ID = 1


class Shelf:
    """An archive that keeps records in a list. Every session has a file of its own."""

    def __init__(self) -> None:
        self.name = ""
        self.records: list[tuple[Record, Original | None]] = []
        self.synced = 0

    def append(self, record: Record, at_ms: int, original: Original | None) -> Spot:
        self.records.append((record, original))
        return Spot(self.name, 10 * (len(self.records) - 1), 10)

    def holds(self, file: str) -> bool:
        return True

    def sync(self) -> None:
        self.synced = len(self.records)

    def close(self) -> None: ...


class Desk:
    """A run on a real store. `visit` makes a turn, `commit` puts turns on record and checks the books."""

    def __init__(
        self, folder: Path, seeds: Sequence[str] = (A,), known: Sequence[Unreached] = (), **given: object
    ) -> None:
        self.settings = settings.make({"robots": False, "sitemap": False, **given})
        self.store = CrawlStore(folder / "crawl.db")
        self.store.db.execute("PRAGMA synchronous = OFF")  # Power cuts are tested elsewhere.
        self.shelf = Shelf()
        self.token = self.store.take(Life.of_this_process())
        found = run.seeds_of(seeds)
        frozen = settings.to_json(self.settings, settings.RUN)
        new = run.with_seeds(run.next_run([], Mode.INCREMENTAL, frozen, 0), found)
        first = Ledger(self.store, self.shelf, new, Author(0, self.token), self.settings)
        self.store.runs.create(self.token, new, first.seed(found, known))
        self.sit()

    def sit(self) -> None:
        """A new session: what the last one had in memory is gone."""
        number = self.store.sessions.start(self.token, self.info, "{}", 0)
        self.shelf.name = f"session-{number}.warc.gz"
        self.ledger = Ledger(self.store, self.shelf, self.info, Author(number, self.token), self.settings)

    @property
    def info(self):
        return self.store.runs.get()

    def pending(self) -> list[FrontierEntry]:
        """Every pending row, lane by lane."""
        store = self.store
        return [e for lane in store.queue.lanes(RUN_ID) for e in store.queue.pending(RUN_ID, lane, None, 10_000)]

    def entry(self, url: str) -> FrontierEntry:
        return next(entry for entry in self.pending() if entry.url == url)

    def visit(
        self, url: str | FrontierEntry, *links: str | FoundUrl, text: str = "", **fields: object
    ) -> FinishedVisit:
        entry = url if isinstance(url, FrontierEntry) else self.entry(url)
        usual = {Kind.PAGE: Outcome.PAGE, Kind.RESOURCE: Outcome.RESOURCE}.get(entry.kind, Outcome.CONTROL)
        text_hash = digest(text or entry.url) if usual is Outcome.PAGE else b""
        made = FinishedVisit(entry, 1000, usual, status=200, size=7, text_hash=text_hash)
        return made._replace(reading=Reading(tuple(map(link, links))), **fields)

    def nofollow(self, url: str, *links: str) -> FinishedVisit:
        """A page that asks robots not to follow its links."""
        found = tuple(link(to)._replace(nofollow=True) for to in links)
        return self.visit(url)._replace(reading=Reading(found, nofollow=True, meta={"nofollow": True}))

    def commit(self, *turns: Turn | str) -> Committed:
        committed = self.ledger.commit([self.visit(turn) if isinstance(turn, str) else turn for turn in turns])
        self.check(committed)
        return committed

    def check(self, committed: Committed) -> None:
        """Kept numbers are counted numbers, and nothing is lost or doubled."""
        checks = RecordChecks(self.store)
        kept = asdict(self.info.counters)
        counted = checks.recount(RUN_ID)
        assert counted == {name: kept[name] for name in counted}
        assert kept == asdict(committed.counters)
        assert checks.faults(RUN_ID) == []
        waiting = "SELECT lane, COUNT(*) FROM frontier WHERE state = 'pending' GROUP BY lane ORDER BY lane"
        lanes = "SELECT lane, pending FROM lane WHERE pending <> 0 ORDER BY lane"
        assert self.store.db.execute(waiting).fetchall() == self.store.db.execute(lanes).fetchall()
        used = {seed.number: (seed.kept, seed.requests) for seed in self.info.seeds}
        assert used == used_by_seeds(self.store.db)

    def row(self, url: str) -> StoredRow:
        (row,) = self.store.frontier.rows(RUN_ID, [self.store.frontier.known(RUN_ID, [url])[url].url_id])
        return row

    def state(self, url: str) -> str:
        """The reason where it was refused, else the state."""
        standing = self.row(url).standing
        return str(standing.reason or standing.state)

    def place(self, url: str) -> Place:
        return self.row(url).standing[6:8]

    def undo(self) -> list[tuple[int, str, int, dict[str, object]]]:
        rows = self.store.db.execute("SELECT seq, subject, subject_id, before FROM undo ORDER BY undo_id")
        return [(seq, subject, number, json.loads(before)) for seq, subject, number, before in rows]

    def outcomes(self) -> list[str]:
        return [outcome for (outcome,) in self.store.db.execute("SELECT outcome FROM visit ORDER BY seq")]


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def link(to: str | FoundUrl, **fields: object) -> FoundUrl:
    return to if isinstance(to, FoundUrl) else FoundUrl(canonicalize(to), to, **fields)


def hop(to: str) -> dict[str, object]:
    """What makes a visit a redirect."""
    target = FoundUrl(canonicalize(to), to, Kind.PAGE, Source.REDIRECT)
    return {"outcome": Outcome.REDIRECT, "redirect": target, "status": 301, "text_hash": b""}


def failed(outcome: Outcome = Outcome.FAILED, kind: str = "dns", at_ms: int = 0) -> dict[str, object]:
    return {"outcome": outcome, "failure": kind, "text_hash": b"", "retry_at_ms": at_ms, "status": 0}


def record(url: str, payload: bytes) -> Record:
    return Record(url, b"HTTP/1.1 200 OK\r\n\r\n", payload, hashlib.sha256(payload).digest())


@pytest.fixture
def desk(tmp_path):
    made: list[Desk] = []

    def make(*seeds: str, **given: object) -> Desk:
        made.append(Desk(tmp_path, seeds or (A,), **given))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


# Places


def test_seeds_and_links_get_places_in_the_order_they_were_found(desk):
    d = desk(f"{A}/", f"{B}/")
    assert [d.place(f"{A}/"), d.place(f"{B}/")] == [(0, 0), (0, 1)]
    d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    d.commit(d.visit(f"{B}/", f"{B}/x"), d.visit(f"{A}/x", f"{A}/y", f"{A}/z"))
    # A link that is known already keeps its place and leaves a gap.
    assert [d.place(url) for url in (f"{A}/x", f"{A}/y", f"{B}/x", f"{A}/z")] == [(1, 0), (1, 1), (2, 0), (3, 1)]
    assert [e.url for e in d.pending()] == [f"{A}/y", f"{A}/z", f"{B}/x"]


def test_every_turn_moves_the_sequence_by_one(desk):
    d = desk()
    first = d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y", f"{A}/z"))
    then = d.commit(RefusedEntry(d.entry(f"{A}/x"), Reason.ROBOTS), d.visit(f"{A}/y"), d.visit(f"{A}/z"))
    assert (first.seq, then.seq, d.info.seq) == (1, 4, 4)
    assert [outcome for _, outcome in then.outcomes] == [Reason.ROBOTS, Outcome.PAGE, Outcome.PAGE]
    assert (d.state(f"{A}/x"), d.info.counters.refused) == ("robots", 1)


def test_a_new_session_goes_on_with_the_same_places_and_numbers(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    before = d.pending()
    d.sit()
    assert d.pending() == before
    d.commit(d.visit(f"{A}/x", f"{A}/y", f"{A}/z"))
    assert (d.place(f"{A}/y"), d.place(f"{A}/z")) == ((1, 1), (2, 1))
    assert [s.requests for s in d.store.sessions.of(RUN_ID)] == [1, 1]


def test_strict_order_is_one_lane_for_all_hosts(desk):
    d = desk(f"{A}/", f"{B}/", strict_order=True)
    assert d.store.queue.lanes(RUN_ID) == [0]
    d.commit(d.visit(f"{A}/", f"{A}/x"), d.visit(f"{B}/", f"{B}/x"))
    assert [e.url for e in d.pending()] == [f"{A}/x", f"{B}/x"]


def test_the_request_goes_to_the_url_as_it_was_first_found(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x/", f"{A}/x"))
    assert d.entry(f"{A}/x").request_url == f"{A}/x/"


# A shorter way


def test_a_shorter_way_reopens_what_was_too_deep(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=1)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    assert d.state(f"{A}/2") == "max_depth"
    committed = d.commit(d.visit(f"{B}/", f"{A}/2"))
    assert (d.state(f"{A}/2"), d.row(f"{A}/2").standing.depth) == ("pending", 1)
    assert d.entry(f"{A}/2").lane in committed.lanes
    assert d.place(f"{A}/2") > (3, 0)


def test_a_shorter_way_is_passed_on_through_pages_that_are_done(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=3)
    for number in range(4):
        d.commit(d.visit(f"{A}/{number or ''}", f"{A}/{number + 1}"))
    assert d.state(f"{A}/4") == "max_depth"
    d.commit(d.visit(f"{B}/", f"{A}/2"))
    assert [d.row(f"{A}/{n}").standing.depth for n in (1, 2, 3, 4)] == [1, 1, 2, 3]
    assert [d.state(f"{A}/{n}") for n in (2, 3, 4)] == ["done", "done", "pending"]


def test_a_shorter_way_that_reaches_a_refused_url_twice_reopens_it_once(desk):
    """`p` links to `q` and `deep`, `q` links to `deep`; all are as deep as may be until `p` comes closer."""
    d = desk(f"{A}/", f"{B}/", max_depth=3)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    d.commit(d.visit(f"{A}/2", f"{A}/p", f"{A}/q"))
    d.commit(d.visit(f"{A}/q", f"{A}/deep"), d.visit(f"{A}/p", f"{A}/q", f"{A}/deep"))
    assert d.state(f"{A}/deep") == "max_depth"
    d.commit(d.visit(f"{B}/", f"{A}/p"))
    assert [d.row(f"{A}/{name}").standing.depth for name in ("p", "q", "deep")] == [1, 2, 2]


def test_a_shorter_way_is_passed_on_through_a_redirect(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=2)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/old"))
    d.commit(d.visit(f"{A}/old", **hop(f"{A}/new")))
    d.commit(d.visit(f"{A}/new", f"{A}/deep"))
    assert (d.row(f"{A}/new").standing.depth, d.state(f"{A}/deep")) == (2, "max_depth")
    d.commit(d.visit(f"{B}/", f"{A}/old"))
    assert (d.row(f"{A}/new").standing.depth, d.state(f"{A}/deep")) == (1, "pending")


def test_a_shorter_way_does_not_overrule_a_nofollow_link(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=5, robots=True)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    d.commit(d.nofollow(f"{A}/2", f"{A}/private"))
    assert d.state(f"{A}/private") == "nofollow"
    d.commit(d.visit(f"{B}/", f"{A}/2"))
    assert (d.row(f"{A}/2").standing.depth, d.state(f"{A}/private")) == (1, "nofollow")


def test_a_shorter_way_and_the_page_itself_in_one_commit(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=5)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    d.commit(d.visit(f"{B}/", f"{A}/2"), d.visit(f"{A}/2", f"{A}/3"))
    assert (d.state(f"{A}/2"), d.row(f"{A}/2").standing.depth, d.row(f"{A}/3").standing.depth) == ("done", 1, 2)


def test_a_shorter_way_and_a_refusal_in_one_commit(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=5)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    d.commit(d.visit(f"{B}/", f"{A}/2"), RefusedEntry(d.entry(f"{A}/2"), Reason.ROBOTS))
    assert d.state(f"{A}/2") == "robots"


def test_links_of_a_page_in_flight_use_the_depth_it_has_by_now(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=5)
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    d.commit(d.visit(f"{A}/1", f"{A}/2"))
    in_flight = d.visit(f"{A}/2", f"{A}/3")
    d.commit(d.visit(f"{B}/", f"{A}/2"))
    d.commit(in_flight)
    assert (d.row(f"{A}/2").standing.depth, d.row(f"{A}/3").standing.depth) == (1, 2)


def test_fewer_hops_reopen_what_was_too_far_outside(desk):
    d = desk(f"{A}/", external_hops=1)
    d.commit(d.visit(f"{A}/", f"{B}/1", f"{A}/x"))
    d.commit(d.visit(f"{B}/1", f"{B}/2"))
    assert d.state(f"{B}/2") == "hops"
    d.commit(d.visit(f"{A}/x", f"{B}/2"))
    assert (d.state(f"{B}/2"), d.row(f"{B}/2").standing.hops) == ("pending", 1)


def test_fewer_hops_are_passed_on_through_a_page_that_is_done_though_the_way_is_longer(desk):
    d = desk(f"{A}/", external_hops=2)
    d.commit(d.visit(f"{A}/", f"{B}/1", f"{A}/x"))
    d.commit(d.visit(f"{B}/1", f"{B}/2"))
    d.commit(d.visit(f"{B}/2", f"{B}/3"))
    d.commit(d.visit(f"{A}/x", f"{A}/y"))
    assert (d.state(f"{B}/3"), d.row(f"{B}/2").standing.hops) == ("hops", 2)
    d.commit(d.visit(f"{A}/y", f"{B}/2"))
    near, far = d.row(f"{B}/2").standing, d.row(f"{B}/3").standing
    assert (near.state, near.depth, near.hops) == (State.DONE, 2, 1)
    assert (far.state, far.hops) == (State.PENDING, 2)


def test_another_page_may_overrule_nofollow_but_not_a_pattern(desk):
    d = desk(f"{A}/", f"{B}/", robots=True, exclude=["*/admin"])
    d.commit(d.nofollow(f"{A}/", f"{A}/x", f"{A}/admin"))
    assert (d.state(f"{A}/x"), d.state(f"{A}/admin")) == ("nofollow", "excluded")
    d.commit(d.visit(f"{B}/", f"{A}/x", f"{A}/admin"))
    assert (d.state(f"{A}/x"), d.state(f"{A}/admin")) == ("pending", "excluded")


# Redirects


def test_a_redirect_target_is_a_row_of_its_own(desk):
    d = desk(max_depth=3)
    d.commit(d.visit(f"{A}/", f"{A}/old"))
    d.commit(d.visit(f"{A}/old", **hop(f"{A}/newer")))
    d.commit(d.visit(f"{A}/newer", **hop(f"{A}/newest")))
    target = d.entry(f"{A}/newest")
    assert (target.source, target.seed, target.depth, target.chain) == (Source.REDIRECT, 0, 1, 2)
    assert target.tried == (f"{A}/old", f"{A}/newer")
    assert (d.place(f"{A}/newest"), d.info.counters.redirects) == ((3, 0), 2)
    assert [v.redirect for v in VisitReader(d.store).of_run(RUN_ID, 3)] == [None, f"{A}/newer", f"{A}/newest"]


def test_a_redirect_to_a_known_url_leads_there(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    d.commit(d.visit(f"{A}/x", **hop(f"{A}/y")))
    (visit,) = VisitReader(d.store).of_url(RUN_ID, FrontierReader(d.store, RUN_ID).find(f"{A}/x").url_id)
    assert visit.redirect == f"{A}/y"
    assert (d.entry(f"{A}/y").source, d.place(f"{A}/y")) == (Source.SPIDER, (1, 1))


def test_a_redirect_to_the_same_identity_keeps_the_row(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/docs", f"{A}/x"))
    before = d.row(f"{A}/docs").standing
    d.commit(d.visit(f"{A}/docs", **hop(f"{A}/docs/")))
    entry = d.entry(f"{A}/docs")
    assert (entry.request_url, entry.place, entry.chain, entry.tried) == (f"{A}/docs/", (2, 0), 1, (f"{A}/docs",))
    assert (d.info.counters.redirects, d.info.counters.requests, d.info.counters.known) == (0, 2, 3)
    assert d.undo() == [(2, "frontier", entry.url_id, before._asdict())]
    d.commit(f"{A}/docs")
    assert (d.state(f"{A}/docs"), d.outcomes()) == ("done", ["page", "redirect", "page"])


def test_redirects_that_lead_back_are_a_loop(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    d.commit(d.visit(f"{A}/x", **hop(f"{A}/y")))
    committed = d.commit(d.visit(f"{A}/y", **hop(f"{A}/x")))
    assert [outcome for _, outcome in committed.outcomes] == [Outcome.FAILED]
    assert [visit.failure for visit in VisitReader(d.store).that_failed(RUN_ID, None)] == ["redirect_loop"]
    assert (d.pending(), d.info.counters.failed, d.info.counters.redirects) == ([], 1, 1)


# A seed that moves


def test_a_seed_that_redirects_takes_its_scope_along_and_old_refusals_are_judged_again(desk):
    d = desk(f"{A}/docs", f"{B}/")
    d.commit(d.visit(f"{B}/", "http://www.a.test/docs/x", "http://www.a.test/blog", "http://c.test/"))
    assert {d.state("http://www.a.test/docs/x"), d.state("http://c.test/")} == {"out_of_scope"}
    d.commit(d.visit(f"{A}/docs", **hop("http://www.a.test/docs/en")))
    assert [(s.host, s.path) for s in d.info.seeds] == [("www.a.test", "/docs"), ("b.test", "/")]
    assert (d.state("http://www.a.test/docs/x"), d.row("http://www.a.test/docs/x").standing.seed) == ("pending", 0)
    assert {d.state("http://www.a.test/blog"), d.state("http://c.test/")} == {"out_of_scope"}
    assert (2, "seed", 0, {"host": "a.test", "path": "/docs"}) in d.undo()


def test_hops_are_counted_anew_from_where_the_seed_went(desk):
    d = desk(f"{A}/", f"{B}/", external_hops=1)
    d.commit(d.visit(f"{B}/", "http://www.a.test/x"))
    d.commit(d.visit("http://www.a.test/x", "http://www.a.test/y", "http://c.test/"))
    assert (d.state("http://www.a.test/y"), d.state("http://c.test/")) == ("hops", "hops")
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    names = ("http://www.a.test/x", "http://www.a.test/y", "http://c.test/")
    assert [d.row(name).standing.hops for name in names] == [0, 0, 1]
    assert [d.state(name) for name in names] == ["done", "pending", "pending"]


def test_a_seed_moves_along_a_chain_of_redirects(desk):
    d = desk(f"{A}/")
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    d.commit(d.visit("http://www.a.test/", **hop("https://en.a.test/")))
    assert [s.host for s in d.info.seeds] == ["en.a.test"]
    assert d.state("https://en.a.test/") == "pending"


def test_a_page_that_redirects_moves_no_seed(desk):
    d = desk(f"{A}/")
    d.commit(d.visit(f"{A}/", f"{A}/x"))
    d.commit(d.visit(f"{A}/x", **hop(f"{B}/")))
    assert ([s.host for s in d.info.seeds], d.state(f"{B}/")) == (["a.test"], "out_of_scope")


def test_a_sitemap_that_was_out_of_scope_is_judged_again_when_the_seed_moves(desk):
    """a.test and www.a.test share one robots.txt, which names the sitemap of www.a.test."""
    d = desk(f"{A}/", robots=True, sitemap=True)
    there = sitemap_file("http://www.a.test/sitemap.xml")
    d.commit(d.visit(robots_file(A).url, there, robots=b"User-agent: *\nAllow: /"))
    assert d.state(there.url) == "out_of_scope"
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    d.commit(d.visit(robots_file("http://www.a.test").url, there, robots=b"User-agent: *\nAllow: /"))
    assert d.state(there.url) == "pending"


def test_a_moving_seed_opens_no_sitemaps_of_other_hosts(desk):
    d = desk(f"{A}/", f"{B}/", robots=True, sitemap=True, external_hops=1)
    d.commit(d.visit(f"{B}/", "http://c.test/"))
    there = sitemap_file("http://c.test/sitemap.xml")
    d.commit(d.visit(robots_file("http://c.test").url, there, robots=b""))
    assert d.state(there.url) == "hops"
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    assert d.state(there.url) == "hops"


def test_a_moving_seed_does_not_overrule_nofollow(desk):
    d = desk(f"{A}/", f"{B}/", robots=True)
    d.commit(d.nofollow(f"{B}/", "http://www.a.test/private"))
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    assert d.state("http://www.a.test/private") != "pending"


# Trying again


def test_a_retry_takes_a_new_place_and_remembers_the_old_one(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x", f"{A}/y"))
    before = d.row(f"{A}/x").standing
    committed = d.commit(d.visit(f"{A}/x", **failed(Outcome.RETRY, "timeout", at_ms=5000)))
    again = d.entry(f"{A}/x")
    assert (again.place, again.attempts, again.not_before_ms) == ((2, 0), 1, 5000)
    assert [e.url for e in d.pending()] == [f"{A}/y", f"{A}/x"]
    assert d.undo() == [(2, "frontier", again.url_id, before._asdict())]
    assert committed.disturbed == d.info.disturbed == "disturbed at 2 by timeout"
    assert (d.info.counters.failed, d.info.counters.pending, d.info.counters.requests) == (0, 2, 2)


def test_the_first_disturbance_is_the_one_that_is_told(desk):
    d = desk(f"{A}/", f"{B}/")
    d.commit(d.visit(f"{A}/", **failed(Outcome.RETRY, "timeout")))
    d.sit()
    d.commit(d.visit(f"{B}/", **failed(Outcome.RETRY, "connect")))
    assert d.info.disturbed == "disturbed at 1 by timeout"


def test_reopening_takes_failures_of_one_kind_or_one_url_to_the_end_of_their_lanes(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", *(f"{A}/{name}" for name in ("dns", "tls", "gone", "last"))))
    for kind in ("dns", "tls", "gone"):
        d.commit(d.visit(f"{A}/{kind}", **failed(kind=kind)))
    d.check(d.ledger.edits.reopen(kind="dns"))
    d.check(d.ledger.edits.reopen(url=f"{A}/tls"))
    assert [e.url for e in d.pending()] == [f"{A}/last", f"{A}/dns", f"{A}/tls"]
    assert (d.info.counters.failed, d.info.counters.pending) == (1, 3)
    d.check(d.ledger.edits.reopen())
    assert (d.info.counters.failed, d.entry(f"{A}/gone").attempts) == (0, 0)


def test_what_is_reopened_later_stands_behind_what_was_reopened_before(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/first", f"{A}/second"))
    d.commit(d.visit(f"{A}/first", **failed(kind="dns")), d.visit(f"{A}/second", **failed(kind="tls")))
    d.check(d.ledger.edits.reopen(kind="tls"))
    d.sit()
    d.check(d.ledger.edits.reopen(kind="dns"))
    assert [e.url for e in d.pending()] == [f"{A}/second", f"{A}/first"]


def test_clearing_refuses_what_is_pending_and_keeps_the_pages(desk):
    d = desk(f"{A}/", f"{B}/", robots=True)
    d.commit(d.visit(f"{A}/", f"{A}/x"))
    d.check(d.ledger.edits.clear())
    assert (d.pending(), d.store.queue.lanes(RUN_ID)) == ([], [])
    assert (d.state(f"{A}/x"), d.state(f"{B}/"), d.state(f"{A}/")) == ("cleared", "cleared", "done")
    assert (d.info.counters.pages, d.info.counters.refused) == (1, 2)


# Content and limits


def test_the_first_url_with_a_text_owns_it_and_links_of_the_others_are_followed(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/1", f"{A}/2", f"{A}/3"))
    d.commit(d.visit(f"{A}/1", text="same"), d.visit(f"{A}/2", f"{A}/new", text="same"))
    d.sit()
    d.commit(d.visit(f"{A}/3", text="same"))
    assert d.outcomes() == ["page", "page", "duplicate", "duplicate"]
    assert Copies(d.store).of(RUN_ID, digest("same").hex()) == [f"{A}/1", f"{A}/2", f"{A}/3"]
    assert (d.state(f"{A}/new"), d.info.counters.duplicates, d.info.seeds[0].kept) == ("pending", 2, 2)


def test_a_page_limit_refuses_what_is_found_once_it_is_reached(desk):
    d = desk(f"{A}/", f"{B}/", page_limit=2, resources=True)
    d.commit(d.visit(f"{A}/", f"{A}/1", f"{A}/2"))
    style = link(f"{A}/s.css", kind=Kind.RESOURCE, source=Source.RESOURCE)
    d.commit(d.visit(f"{A}/1", f"{A}/3", style, f"{B}/x"))
    assert [d.state(f"{A}/{n}") for n in (2, 3, "s.css")] == ["pending", "page_limit", "pending"]
    assert d.state(f"{B}/x") == "pending"
    assert [(s.kept, s.requests) for s in d.info.seeds] == [(2, 2), (0, 0)]


def test_duplicates_and_failures_do_not_count_toward_a_page_limit(desk):
    d = desk(page_limit=2)
    d.commit(d.visit(f"{A}/", f"{A}/1", f"{A}/2"))
    d.commit(d.visit(f"{A}/1", text=f"{A}/"), d.visit(f"{A}/2", f"{A}/3", **failed()))
    assert (d.info.seeds[0].kept, d.state(f"{A}/3")) == (1, "pending")


def test_a_seed_that_gives_mostly_duplicates_has_had_enough(desk):
    d = desk(page_limit=2)
    many = 2 * REQUEST_FACTOR - 1
    d.commit(d.visit(f"{A}/", *(f"{A}/{n}" for n in range(many)), text="same"))
    d.commit(*(d.visit(f"{A}/{n}", text="same") for n in range(many - 1)))
    d.commit(d.visit(f"{A}/{many - 1}", f"{A}/more", text="same"))
    assert (d.state(f"{A}/more"), d.info.seeds[0].kept) == ("mostly_duplicates", 1)


def test_pages_reused_without_a_request_cost_none(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/x", requested=False))
    assert (d.info.counters.requests, d.info.counters.size, d.info.counters.pages) == (0, 0, 1)
    assert d.info.seeds[0].requests == 0


# robots.txt and sitemaps


def test_robots_files_come_ahead_of_the_pages_of_their_origins(desk):
    d = desk(f"{A}/", robots=True, scope="any")
    d.commit(
        d.visit(f"{A}/", f"{A}/1", "https://a.test/2", f"{B}/3", "https://b.test/4", f"{B}/5", "https://a.test:8443/6")
    )
    seen: set[str] = set()
    for entry in d.pending():
        if entry.kind is Kind.ROBOTS:
            seen.add(origin_of(entry.request_url))
        assert origin_of(entry.request_url) in seen
    assert len(seen) == 5


@pytest.mark.parametrize("count", [1, 2, 500, 501])
def test_a_run_that_begins_with_known_pages_begins_with_all_of_them(desk, count):
    """In their order, the first ahead of the others, right behind the seeds."""
    known = [Unreached(9 + one, f"{A}/{one}", f"{A}/{one}", Source.SPIDER, 1, None, False, 0) for one in range(count)]
    waiting = desk(f"{A}/", known=known, order="freshness").pending()
    assert [entry.url for entry in waiting] == [f"{A}/", *(page.url for page in known)]
    assert [entry.rank for entry in waiting[1:]] == list(range(count, 0, -1))


def test_an_origin_has_one_robots_file_however_many_sessions(desk):
    d = desk(robots=True)
    d.commit(d.visit(robots_file(A).url, robots=b"User-agent: *\nDisallow: /x"))
    d.sit()
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    assert [e.kind for e in d.pending()] == [Kind.PAGE]
    assert d.store.hosts.robots(RUN_ID) == [(A, "rules", b"User-agent: *\nDisallow: /x")]


def test_a_refused_url_does_not_open_its_origin_until_it_is_reopened(desk):
    d = desk(f"{A}/", f"{B}/", robots=True)
    d.commit(d.visit(f"{B}/", "http://www.a.test/x"))
    assert robots_file("http://www.a.test").url not in {e.url for e in d.pending()}
    d.commit(d.visit(f"{A}/", **hop("http://www.a.test/")))
    urls = [e.url for e in d.pending()]
    assert urls.index(robots_file("http://www.a.test").url) < urls.index("http://www.a.test/x")


def test_a_robots_file_that_is_tried_again_stays_ahead(desk):
    d = desk(robots=True)
    file = robots_file(A).url
    d.commit(d.visit(file, **failed(Outcome.RETRY, "http_5xx", at_ms=9)))
    assert [(e.url, e.attempts) for e in d.pending()] == [(file, 1), (f"{A}/", 0)]


@pytest.mark.parametrize(
    ("said", "verdict"),
    [(b"User-agent: *", ("rules", b"User-agent: *")), (b"", ("allow", None))],
)
def test_what_a_robots_file_said_is_on_record(desk, said, verdict):
    d = desk(robots=True)
    committed = d.commit(d.visit(robots_file(A).url, robots=said))
    assert committed.robots == ((A, *verdict),)
    assert d.store.hosts.robots(RUN_ID) == [(A, *verdict)]


def test_a_robots_file_that_is_asked_for_already_is_no_step_of_its_own(desk):
    d = desk(robots=True)
    d.commit(d.visit(robots_file(A).url, robots=b""))
    assert d.ledger.refresh_robots([A]) is not None
    assert d.ledger.refresh_robots([A]) is None
    assert RecordChecks(d.store).faults(RUN_ID) == []


def test_reopening_asks_for_an_unreadable_robots_file_first(desk):
    d = desk(robots=True)
    file = robots_file(A).url
    (told,) = d.commit(d.visit(file, failure="http_5xx", message="503")).robots
    assert told[1] == "unreadable"
    d.commit(d.visit(f"{A}/", requested=False, **failed(kind="robots")))
    reopened = d.ledger.edits.reopen()
    d.check(reopened)
    assert [e.url for e in d.pending()] == [file, f"{A}/"]
    assert [verdict for _, verdict, _ in reopened.robots] == ["forgotten"]


@pytest.mark.parametrize("times", [1, 2])
def test_sitemaps_nest_only_so_deep_however_often_they_are_named(desk, times):
    d = desk(robots=True, sitemap=True)
    files = [sitemap_file(f"{A}/{number}.xml") for number in range(SITEMAP_DEPTH + 1)]
    d.commit(d.visit(robots_file(A).url, files[0], robots=b""))
    for parent, child in pairwise(files):
        d.commit(d.visit(parent.url, *[child] * times))
    assert [d.state(f.url) for f in files] == ["done"] * SITEMAP_DEPTH + ["max_depth"]


def test_redirects_on_the_way_to_a_sitemap_do_not_count_as_nesting(desk):
    """Without robots.txt the first page of an origin brings /sitemap.xml along."""
    d = desk(f"{A}/", robots=False, sitemap=True, scope="host")
    d.commit(f"sitemap:{A}/sitemap.xml")
    for number in range(SITEMAP_DEPTH):
        d.commit(d.visit(f"{A}/{number or ''}", **hop(f"{A}/{number + 1}")))
    d.commit(d.visit(f"{A}/{SITEMAP_DEPTH}", **hop("https://a.test/")))
    d.commit(d.visit("sitemap:https://a.test/sitemap.xml", sitemap_file("https://a.test/child.xml")))
    assert d.state("sitemap:https://a.test/child.xml") == "pending"


def test_control_files_are_outside_every_count(desk):
    d = desk(robots=True, sitemap=True)
    committed = d.commit(d.visit(robots_file(A).url, sitemap_file(f"{A}/s.xml"), robots=b""))
    d.commit(d.visit(f"sitemap:{A}/s.xml", link(f"{A}/x", source=Source.SITEMAP, lastmod="2026-01-01")))
    assert (committed.counters.requests, committed.requests, committed.size) == (0, 0, 0)
    assert (d.info.counters.known, d.info.counters.pending, d.info.seeds[0].requests) == (2, 2, 0)
    found = FrontierReader(d.store, RUN_ID).find(f"{A}/x").facts
    assert (found.source, found.depth, found.lastmod) == ("sitemap", 0, "2026-01-01")


# The archive


def test_bodies_are_synced_before_the_transaction_ends(desk):
    d = desk()
    seen: list[int] = []
    with closing(CrawlStore(d.store.path, read_only=True)) as other:
        sync = d.shelf.sync
        d.shelf.sync = lambda: (sync(), seen.append(other.runs.get().seq))
        d.commit(d.visit(f"{A}/", record=record(f"{A}/", b"body")))
        assert (seen, d.shelf.synced, other.runs.get().seq) == ([0], 1, 1)


def test_a_payload_that_the_archive_has_becomes_a_revisit(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/1", f"{A}/2", f"{A}/3", record=record(f"{A}/", b"")))
    one, two = (d.visit(f"{A}/{n}", record=record(f"{A}/{n}", b"same bytes")) for n in (1, 2))
    d.commit(one, two)
    d.sit()
    d.commit(d.visit(f"{A}/3", record=record(f"{A}/3", b"same bytes")))
    original = Original(f"{A}/1", 1000)
    stored = original._replace(file="session-1.warc.gz")
    assert [revisit for _, revisit in d.shelf.records] == [None, None, original, stored]
    assert [v.revisit for v in VisitReader(d.store).of_run(RUN_ID, 4)] == [0, 0, 1, 1]


def test_the_committed_length_of_a_file_is_that_of_its_last_record(desk):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/1", record=record(f"{A}/", b"1")))
    assert [(name, length) for _, _, name, length in d.store.archive.files()] == [("session-1.warc.gz", 10)]
    d.commit(d.visit(f"{A}/1", record=record(f"{A}/1", b"2")))
    assert [(name, length) for _, _, name, length in d.store.archive.files()] == [("session-1.warc.gz", 20)]


def test_nothing_is_committed_when_the_archive_cannot_be_written(desk):
    d = desk()
    before = contents(d.store.db)

    def full() -> None:
        raise Broken("full")

    d.shelf.sync = full
    with pytest.raises(Broken):
        d.commit(d.visit(f"{A}/", f"{A}/1", record=record(f"{A}/", b"1")))
    assert contents(d.store.db) == before


def test_an_owner_that_lost_its_run_writes_neither_rows_nor_records(desk):
    d = desk()
    before = contents(d.store.db)
    with closing(CrawlStore(d.store.path)) as other:
        other.take(Life.of_this_process())
    for write in (
        lambda: d.ledger.commit([d.visit(f"{A}/", record=record(f"{A}/", b"1"))]),
        d.ledger.edits.reopen,
        d.ledger.edits.clear,
        d.ledger.beat,
    ):
        with pytest.raises(Lost):
            write()
    assert (contents(d.store.db), d.shelf.records) == (before, [])


# The way back


def contents(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Everything that going back has to restore."""
    columns = {
        "frontier": "*",
        "visit": "*",
        "robots": "*",
        "undo": "run_id, seq, subject, subject_id, before",
        "seed": "*",
    }
    return {
        table: db.execute(f"SELECT {what} FROM {table} ORDER BY 1, 2").fetchall() for table, what in columns.items()
    }


def used_by_seeds(db: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Pages kept and pages asked for per seed, counted."""
    rows = db.execute(
        "SELECT s.number, COALESCE(SUM(v.outcome = 'page'), 0), COALESCE(SUM(v.requested), 0) FROM seed s"
        " LEFT JOIN frontier f ON f.run_id = s.run_id AND f.seed = s.number AND f.kind = 'page'"
        " LEFT JOIN visit v ON v.run_id = f.run_id AND v.url_id = f.url_id GROUP BY s.number"
    )
    return {number: (kept, requests) for number, kept, requests in rows}


def rewound(db: sqlite3.Connection, seq: int) -> dict[str, list[tuple[object, ...]]]:
    """The contents after going back to a position, by undo rows and numbers alone."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        db.backup(copy)
        undo = "SELECT subject, subject_id, before FROM undo WHERE seq > ? ORDER BY undo_id DESC"
        for subject, number, before in copy.execute(undo, (seq,)).fetchall():
            values = json.loads(before)
            key = "url_id" if subject == "frontier" else "number"
            columns, marks = ", ".join(values), ", ".join("?" * len(values))
            update = f"UPDATE {subject} SET ({columns}) = ({marks}) WHERE {key} = ?"
            assert copy.execute(update, (*values.values(), number)).rowcount == 1
        for table, column in (("undo", "seq"), ("visit", "seq"), ("robots", "seq"), ("frontier", "found")):
            copy.execute(f"DELETE FROM {table} WHERE {column} > ?", (seq,))
        copy.execute("UPDATE frontier SET state = 'pending', reason = NULL, done = NULL WHERE done > ?", (seq,))
        for number, (kept, requests) in used_by_seeds(copy).items():
            copy.execute("UPDATE seed SET kept = ?, requests = ? WHERE number = ?", (kept, requests, number))
        return contents(copy)


class History:
    """What the tables held at each position, for going back to."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._at: dict[int, dict[str, list[tuple[object, ...]]]] = {}
        self.note()

    def note(self) -> None:
        self._at[self._desk.info.seq] = contents(self._desk.store.db)

    def check(self) -> None:
        for seq, then in self._at.items():
            assert rewound(self._desk.store.db._connection, seq) == then, f"going back to {seq}"


def test_going_back_restores_rows_and_seeds_exactly(desk):
    d = desk(f"{A}/", f"{B}/", max_depth=3)
    history = History(d)
    steps: list[Iterator[Turn]] = [
        lambda: d.visit(f"{A}/", f"{A}/1", "http://www.b.test/x", link(f"{A}/n", nofollow=True)),
        lambda: d.visit(f"{A}/1", f"{A}/2", f"{A}/n"),
        lambda: d.visit(f"{A}/2", f"{A}/3", f"{A}/docs"),
        lambda: d.visit(f"{A}/3", f"{A}/4"),
        lambda: d.visit(f"{A}/docs", **hop(f"{A}/docs/")),
        lambda: d.visit(f"{A}/docs", **failed(Outcome.RETRY, "timeout", at_ms=77)),
        lambda: d.visit(f"{B}/", **hop("http://www.b.test/")),
        lambda: d.visit("http://www.b.test/", f"{A}/2"),
        lambda: d.visit(f"{A}/docs", **failed()),
        lambda: RefusedEntry(d.entry(f"{A}/n"), Reason.ROBOTS),
        lambda: d.visit(f"{A}/4", text=f"{A}/3"),
    ]
    for step in steps:
        d.commit(step())
        history.note()
    d.ledger.edits.reopen()
    history.note()
    d.commit(f"{A}/docs")
    history.note()
    history.check()
    touched = {(subject, *sorted(before)) for _, subject, _, before in d.undo()}
    assert {subject for subject, *_ in touched} == {"frontier", "seed"}


def test_going_back_restores_what_robots_files_said(desk):
    d = desk(f"{A}/", f"{B}/", robots=True)
    history = History(d)
    file = robots_file(A).url
    for step in (
        lambda: d.visit(file, failure="http_5xx", message="503"),
        lambda: d.visit(f"{A}/", requested=False, **failed(kind="robots")),
        lambda: d.visit(robots_file(B).url, robots=b""),
    ):
        d.commit(step())
        history.note()
    d.ledger.edits.reopen()
    history.note()
    d.commit(d.visit(file, robots=b""))
    history.note()
    history.check()


# Any site, any order: each number is another little web


HOSTS = (A, B, "http://c.test")
SEEDS = (f"{A}/0", f"{B}/0")
PLANS = ("page", "page", "page", "same", "redirect", "slash", "retry", "failed", "refused")


class Web:
    """Twelve URLs on three hosts, linked by chance, and what is to come of each."""

    def __init__(self, chance: Random, plans: Sequence[str]) -> None:
        names = [f"{host}/{number}" for host in HOSTS for number in range(4)]
        self.links = {name: chance.choices(names, k=chance.randint(1, 3)) for name in names}
        self.plans = {name: chance.choice(plans) for name in names}

    def hop(self, url: str) -> str | None:
        """Where a URL redirects to; always upwards, so that there are no loops."""
        there = self.links.get(url)
        return there[0] if there and self.plans[url] == "redirect" and there[0] > url else None

    def answer(self, d: Desk, entry: FrontierEntry) -> Turn:
        plan, there = self.plans.get(entry.url, "page"), self.links.get(entry.url, ())
        if plan == "refused":
            return RefusedEntry(entry, Reason.ROBOTS)
        if target := self.hop(entry.url):
            return d.visit(entry, **hop(target))
        if plan == "slash" and not entry.chain:
            return d.visit(entry, **hop(f"{entry.url}/"))
        if plan == "failed" or (plan == "retry" and not entry.attempts):
            return d.visit(entry, **failed(Outcome.FAILED if plan == "failed" else Outcome.RETRY))
        return d.visit(entry, *there, text="same" if plan == "same" else "")

    def within(self, max_depth: int = 99, external_hops: int = 0) -> dict[str, int]:
        """How deep, or how many hops outside, each page is within a limit: ways are shortened until none is left."""
        best = dict.fromkeys(SEEDS, 0)
        queue = list(SEEDS)
        while queue:
            url = queue.pop()
            target = self.hop(url)
            for to in [target] if target else self.links[url]:
                inside = to.startswith((A, B))
                if external_hops:
                    way = 0 if inside else max(best[url], 1) if target else best[url] + 1
                else:
                    way = (best[url] if target else best[url] + 1) if inside else 99
                if way <= (external_hops or max_depth) and way < best.get(to, 99):
                    best[to] = way
                    queue.append(to)
        return best


@pytest.mark.parametrize("number", range(60))
def test_the_books_are_right_after_every_commit_and_every_position_can_be_gone_back_to(desk, number):
    chance = Random(number)
    web = Web(chance, PLANS)
    d = desk(
        *SEEDS,
        scope=chance.choice(["path", "host", "any"]),
        max_depth=chance.choice([0, 2, 3]),
        page_limit=chance.choice([0, 0, 2]),
        external_hops=chance.choice([0, 0, 1]),
        robots=chance.random() < 0.5,
        strict_order=chance.random() < 0.5,
    )
    history = History(d)
    while waiting := d.pending():
        # Often newest first: then shorter ways turn up late.
        waiting.sort(key=lambda entry: entry.place, reverse=chance.random() < 0.7)
        start = chance.choice([0, 0, chance.randrange(len(waiting))])
        turns = [web.answer(d, entry) for entry in waiting[start : start + chance.randint(1, 4)]]
        # What is refused in its turn belongs to the position before it.
        refusals = list(takewhile(lambda turn: isinstance(turn, RefusedEntry), turns))
        for part in (refusals, turns[len(refusals) :]):
            d.commit(*part)
            history.note()
        if chance.random() < 0.3:
            d.sit()
    history.check()


@pytest.mark.parametrize("limit", [{"max_depth": 3}, {"external_hops": 1}], ids=["depth", "hops"])
@pytest.mark.parametrize("number", range(60))
def test_what_is_crawled_does_not_depend_on_the_order(desk, number, limit):
    """A page has the depth, or hops, of the shortest way there, whenever that way was found."""
    chance = Random(number)
    web = Web(chance, ("page", "page", "redirect"))
    web.plans |= dict.fromkeys(SEEDS, "page")
    d = desk(*SEEDS, scope="host", **limit)
    while waiting := d.pending():
        # Newest first: the longest ways are found before the short ones.
        newest = max(waiting, key=lambda entry: entry.place)
        d.commit(web.answer(d, chance.choice([newest, newest, chance.choice(waiting)])))
    rows = [row for row in d.store.frontier.rows(RUN_ID, range(1, 100)) if row.standing.state is State.DONE]
    which = attrgetter("hops" if "external_hops" in limit else "depth")
    assert {row.url: which(row.standing) for row in rows} == web.within(**limit)


def test_after_a_commit_that_failed_nothing_more_is_committed(desk, monkeypatch):
    d = desk()
    d.commit(d.visit(f"{A}/", f"{A}/1"))
    before = d.info
    turn = d.visit(f"{A}/1", f"{A}/2")
    with monkeypatch.context() as patched:
        patched.setattr(d.shelf, "sync", lambda: (_ for _ in ()).throw(Broken("the disk is full", "")))
        with pytest.raises(Broken):
            d.ledger.commit([turn])
    for more in (lambda: d.ledger.commit([turn]), d.ledger.edits.reopen, d.ledger.edits.clear):
        with pytest.raises(Broken, match="the disk is full"):
            more()
    assert d.info == before
