"""The frontier: its rows one by one, and all of it in numbers."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from inchworm.app.read.crawls import Crawls
from inchworm.app.read.runs import Runs, iteration_id
from inchworm.app.workspace import Workspace, identity
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.model import CrawlInfo, Reason, RunInfo, RunState, State
from inchworm.rules.words.explain import REASONS
from inchworm.rules.words.times import iso
from inchworm.store.crawl.frontier import Frontier
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

_ID = re.compile(r"([0-9A-Za-z]{1,64})_([0-9]{1,18})_([0-9]{1,18})")
_WITHOUT_CLEARED = {"reason_other_than": Reason.CLEARED.value}

After = tuple[int, str, int]
"""Where a list over all crawls goes on: when the crawl was made, its id, the last row seen."""

ListedRow = tuple[CrawlInfo, dict[str, Any]]

RowsOf = Callable[[CrawlInfo, int, int], list[dict[str, Any]]]
"""Gives the rows of a crawl: behind a row, at most so many."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowPlace:
    """A row: its crawl, its run, its number."""

    crawl: CrawlInfo
    run: int
    url_id: int


class FrontierRows:
    """What is known of the rows of a frontier."""

    def __init__(self, workspace: Workspace, runs: Runs, crawls: Crawls) -> None:
        self._workspace = workspace
        self._runs = runs
        self._crawls = crawls

    # Looking

    def entries(
        self, crawl: CrawlInfo, wanted: Mapping[str, str], number: int | None = None, after: int = 0, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Rows of a run, from behind a row on. `wanted`: `state`, `reason`, `source`."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            rows = Frontier(store, current.run_id).rows(wanted, after, limit)
        return [_row_json(RowPlace(crawl, current.number, row["url_id"]), row) for row in rows]

    def entry(self, entry_id: str) -> dict[str, Any]:
        """One row, by its id."""
        return self.row(self.place_of(entry_id))

    def links_not_followed(
        self, crawl: CrawlInfo, reason: str | None, after: int = 0, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Links that the last run of a crawl saw and refused. Those that somebody took out only on request."""
        wanted = {"reason": reason} if reason else _WITHOUT_CLEARED
        return self.entries(crawl, {"state": State.REFUSED.value, **wanted}, None, after, limit)

    def all_links_not_followed(self, reason: str | None, after: After | None, limit: int) -> list[ListedRow]:
        """The same over all crawls."""
        return self._over_all(
            lambda crawl, last, most: self.links_not_followed(crawl, reason, last, most), after, limit
        )

    def all_entries(self, wanted: Mapping[str, str], after: After | None, limit: int) -> list[ListedRow]:
        """The rows of the last run of every crawl."""
        return self._over_all(lambda crawl, last, most: self.entries(crawl, wanted, None, last, most), after, limit)

    def _over_all(self, rows_of: RowsOf, after: After | None, limit: int) -> list[ListedRow]:
        """Rows of all crawls, the oldest crawl first. One that cannot be read, or has not started, has none."""
        found: list[ListedRow] = []
        begin, number = (after[:2], after[2]) if after else ((0, ""), 0)
        for crawl in sorted(self._workspace.home.crawls(), key=_age):
            if _age(crawl) < begin or len(found) >= limit:
                continue
            last = number if _age(crawl) == begin else 0
            with contextlib.suppress(InchwormError):
                found += [(crawl, row) for row in rows_of(crawl, last, limit - len(found))]
        return found

    def link_not_followed(self, entry_id: str) -> dict[str, Any]:
        spot = self.place_of(entry_id)
        found = self.row(spot)
        if found["state"] != State.REFUSED:
            raise Unknown(
                f"{found['url']} is no link that was not followed: it is {found['state']}.",
                "Only links that were refused are such. One that is pending can be taken out.",
            )
        return found

    def entry_id(self, crawl: CrawlInfo, word: str) -> str:
        """The id of a row of a crawl, for whoever has its URL or the id itself. By its URL, it is that of the last
        run."""
        if _ID.fullmatch(word):
            if self.place_of(word).crawl.crawl_id != crawl.crawl_id:
                raise WrongUse(f"{word} is an entry of another crawl.", "Name that crawl.")
            return word
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
            address = identity(current, word)
            known = state_in_run(store, current, address)
        if known is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}.", "Check how it is written."
            )
        return id_of(RowPlace(crawl, current.number, known[0]))

    def place_of(self, entry_id: str) -> RowPlace:
        """Which row an id means."""
        parts = _ID.fullmatch(entry_id)
        crawl = self._workspace.home.find(parts[1]) if parts else None
        if parts is None or crawl is None or crawl.crawl_id != parts[1]:
            raise Unknown(f"There is no entry {entry_id!r}.", "An id is CRAWL_RUN_NUMBER, as the frontier lists it.")
        return RowPlace(crawl, int(parts[2]), int(parts[3]))

    def row(self, spot: RowPlace) -> dict[str, Any]:
        with self._workspace.reading(spot.crawl) as store:
            current = self._workspace.run_of(spot.crawl, store, spot.run)
            row = Frontier(store, current.run_id).row(spot.url_id)
        if row is None:
            raise Unknown(f"Run {spot.run} of {spot.crawl.name!r} has no row {spot.url_id}.", "Ids never move.")
        return _row_json(spot, row)

    def numbers(self, word: str) -> dict[str, Any]:
        """The frontier in numbers."""
        crawl = self._workspace.find(word)
        status = self._crawls.status(crawl)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store)
            counts = View(store).queue_counts(current.run_id)
        visited = status["known"] - status["pending"] - status["refused"]
        can_resume = status["run_state"] == RunState.PAUSED and status["pending"] > 0
        return {
            "crawl_id": crawl.crawl_id,
            "has_queue": status["known"] > 0,
            "visited": visited,
            "pending": status["pending"],
            "refused": status["refused"],
            "total": status["known"],
            "can_resume": can_resume,
            "current_run": status["run"],
            "run_state": status["run_state"],
            "sessions": [one.session for one in status["sessions"]],
            "counts": counts,
        }

    def numbers_if_any(self, crawl: CrawlInfo) -> dict[str, Any]:
        """The frontier of the last run in numbers; of a crawl that has not started, nothing."""
        if self._runs.last(crawl) is None:
            empty = dict.fromkeys(("visited", "pending", "refused", "total"), 0)
            nowhere: dict[str, Any] = {"current_run_id": None, "run_state": "", "run_crawl_ids": [], "counts": []}
            return {"crawl_id": crawl.crawl_id, "has_queue": False, **empty, "can_resume": False, **nowhere}
        found = self.numbers(crawl.crawl_id)
        number, sessions = found.pop("current_run"), found.pop("sessions")
        return {**found, "current_run_id": iteration_id(crawl, number), "run_crawl_ids": sessions}


def state_in_run(store: CrawlStore, current: RunInfo, url: str) -> tuple[int, State] | None:
    """The number of a URL and how it stands in a run."""
    known = store.known(current.run_id, [url]).get(url)
    return (known.url_id, known.state) if known and known.in_run else None


def id_of(spot: RowPlace) -> str:
    return f"{spot.crawl.crawl_id}_{spot.run}_{spot.url_id}"


def _row_json(spot: RowPlace, row: Mapping[str, Any]) -> dict[str, Any]:
    waits_until = row["not_before_ms"]
    return {
        "id": id_of(spot),
        "crawl_id": spot.crawl.crawl_id,
        "run": spot.run,
        **{name: value for name, value in row.items() if name != "not_before_ms"},
        "not_before": iso(waits_until) if waits_until else None,
        "why": REASONS.get(row["reason"]) if row["reason"] else None,
    }


def _age(crawl: CrawlInfo) -> tuple[int, str]:
    return crawl.created_ms, crawl.crawl_id
