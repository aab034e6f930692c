"""Votes of pages for what they link to: counted forward and back, whatever happens to the rows in between."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.test_history import Past
from tests.store.test_ledger import RUN_ID, A, failed, hop, link

from inchworm.model import Choice, Outcome
from inchworm.rules.order import order
from inchworm.store.crawl import votes
from inchworm.store.crawl.read.checks import RecordChecks

QUERY = {"query": "garden", "order": "best"}
LINKS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), max_size=5, unique_by=lambda pair: pair[0])
PAGES = st.lists(st.tuples(LINKS, st.floats(0, 1)), min_size=1, max_size=12)


def url(number: int) -> str:
    return f"{A}/p{number}"


def visit_all(desk: Past, pages: list[tuple[list[tuple[int, int]], float]]) -> None:
    """Visit what is pending, one page after the other; each links to some of the others."""
    for links, relevance in pages:
        if not (waiting := desk.pending()):
            return
        found = [link(url(number), parts=parts) for number, parts in links]
        desk.commit(desk.visit(waiting[0], *found, relevance=relevance))


def ranks(desk: Past) -> dict[int, int]:
    return dict(desk.rows_of("SELECT url_id, rank FROM frontier WHERE rank IS NOT NULL"))  # type: ignore[arg-type]


def count(desk: Past, upto: int) -> None:
    desk.check(desk.ledger.ranking.count(upto))
    assert desk.rows_of("SELECT counted FROM run") == [(upto,)]


@pytest.fixture
def desk(tmp_path: Path):
    made = Past(tmp_path, **QUERY)
    yield made
    made.store.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAGES, st.lists(st.integers(0, 12), max_size=6))
def test_ranks_depend_on_how_far_was_counted_and_not_on_the_way_there(tmp_path, pages, stops):
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        desk = Past(Path(folder), **QUERY)
        visit_all(desk, pages)
        last = desk.info.seq
        seen: dict[int, dict[int, int]] = {}
        for stop in (0, *stops, last, *reversed(stops), 0):
            upto = min(stop, last)
            count(desk, upto)
            assert ranks(desk) == seen.setdefault(upto, ranks(desk))
        desk.store.close()


def test_a_good_page_lifts_what_it_links_to(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2), url(3)))
    desk.commit(desk.visit(url(1), url(3), relevance=1.0))
    before = desk.row(url(3)).standing.rank
    assert before < desk.row(url(2)).standing.rank, "nothing but its place speaks for either"
    count(desk, 2)
    assert desk.row(url(3)).standing.rank > desk.row(url(2)).standing.rank
    count(desk, 0)
    assert desk.row(url(3)).standing.rank == before


def test_links_into_many_places_lift_a_page(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), link(url(2), parts=20)))
    assert desk.row(url(2)).standing.rank > desk.row(url(1)).standing.rank
    count(desk, 1)
    assert desk.row(url(2)).standing.rank > desk.row(url(1)).standing.rank


def test_what_is_tried_again_stays_last_whoever_votes_for_it(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2)))
    desk.commit(desk.visit(url(2), **failed(Outcome.RETRY)))
    desk.commit(desk.visit(url(1), url(2), relevance=1.0))
    count(desk, 3)
    assert desk.row(url(2)).standing.rank == order.LAST


def test_what_redirects_to_another_form_of_itself_has_the_votes_that_came_since(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2)))
    chosen = desk.entry(url(2))
    desk.commit(desk.visit(url(1), url(2), relevance=1.0))
    count(desk, 2)
    lifted = desk.row(url(2)).standing.rank
    assert lifted > chosen.rank
    desk.commit(desk.visit(chosen, **hop(url(2) + "/")))
    assert desk.row(url(2)).standing.rank == lifted


def test_what_a_redirect_leads_to_is_ranked_like_what_led_there(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", link(url(1), anchor="a garden"), url(2)))
    rank = desk.row(url(1)).standing.rank
    desk.commit(desk.visit(url(1), **hop(url(9))))
    assert desk.row(url(9)).standing.rank == rank


def test_what_nobody_linked_to_has_no_share_of_the_page_before(desk: Past) -> None:
    """What a redirect leads to, and what somebody adds by hand, were found on no page."""
    desk.commit(desk.visit(A + "/", url(1), url(2), relevance=1.0))
    own = desk.row(url(1)).standing.rank
    desk.ledger.edits.add(link(url(8)), 1)
    assert desk.row(url(8)).standing.rank < own - 1000


def test_going_back_takes_off_the_votes_of_what_is_undone(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2), url(3)))
    point, before = desk.point(), ranks(desk)
    desk.commit(desk.visit(url(1), url(2), url(4), relevance=1.0))
    count(desk, 2)
    desk.back(point)
    assert ranks(desk) == before
    assert RecordChecks(desk.store).faults(RUN_ID) == []
    assert desk.rows_of("SELECT counted FROM run") == [(0,)]


def test_a_row_that_is_restored_has_the_rank_of_the_votes_that_are_left(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2), url(3)))
    desk.commit(desk.visit(url(1), url(3), relevance=1.0))
    point, before = desk.point(), ranks(desk)
    count(desk, 2)
    desk.commit(desk.visit(url(3), **failed(Outcome.RETRY)))
    desk.sit()
    count(desk, 0)
    desk.back(point)
    assert ranks(desk) == before
    assert RecordChecks(desk.store).faults(RUN_ID) == []


def test_many_votes_are_counted_in_steps(desk: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 8):
        links = [link(url(other)) for other in range(1, 9) if other != number]
        desk.commit(desk.visit(desk.pending()[0], *links, relevance=number / 10))
    count(desk, 7)
    at_once = ranks(desk)
    monkeypatch.setattr(votes, "_AT_A_TIME", 10)
    checks = RecordChecks(desk.store)
    steps = [upto for upto in iter(lambda: desk.store.ranks.count(RUN_ID, 0), 0) if not checks.faults(RUN_ID)]
    assert steps == [5, 3, 1]
    count(desk, 7)
    assert ranks(desk) == at_once


def test_choosing_the_best_looks_at_few_rows(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", *(f"{A}/{number}" for number in range(2_000))))
    lane = desk.entry(f"{A}/0").lane
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    desk.store.db._connection.set_progress_handler(step, 100)
    chosen = desk.store.queue.choose(RUN_ID, lane, Choice(50, False), set())
    desk.store.db._connection.set_progress_handler(None, 0)
    assert chosen is not None
    assert chosen.url == f"{A}/0"
    assert steps < 20, "hundreds of steps of the database"


def test_a_run_without_a_query_has_no_votes(tmp_path: Path) -> None:
    desk = Past(tmp_path)
    desk.commit(desk.visit(A + "/", url(1), link(url(2), parts=3), relevance=1.0))
    assert desk.rows_of("SELECT share, parts FROM visit") == [(None, None)]
    assert desk.rows_of("SELECT COUNT(*) FROM promise") == [(0,)]
    desk.store.close()


def test_doctor_notices_votes_that_do_not_add_up(desk: Past) -> None:
    desk.commit(desk.visit(A + "/", url(1), url(2)))
    count(desk, 1)
    desk.store.db.execute("UPDATE promise SET share = share + 1 WHERE own > 0")
    assert RecordChecks(desk.store).faults(RUN_ID) == ["2 URLs whose votes do not add up"]
    desk.store.db.execute("UPDATE promise SET share = share - 1")
    desk.store.db.execute("UPDATE frontier SET rank = rank + 1 WHERE rank BETWEEN 0 AND 100000")
    assert RecordChecks(desk.store).faults(RUN_ID) == ["2 URLs whose votes do not add up"]
