"""What differs on pages between two runs: the passages themselves, read from the archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inchworm import settings
from inchworm.engine.own.bodies import Bodies
from inchworm.model import RunInfo, Substance
from inchworm.rules.change import alike
from inchworm.rules.change.groups import Passage
from inchworm.rules.formats import media
from inchworm.rules.text.ignored import IgnoredText
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.crawl.store import CrawlStore

MOST_PASSAGES = 8
LONGEST = 400
"""Of a difference so many passages are told, and so many characters of each."""


class Difference(NamedTuple):
    """What differs on a page, as far as it is told. `is_cut`: there is more. `said`: what the run noted of it, where
    the passages are not known, because bodies are lost or too large."""

    passages: Sequence[Passage] = ()
    is_cut: bool = False
    said: str = ""


class Differences:
    """Reads what differs on pages between two runs of a crawl, the first one and the second one."""

    def __init__(self, store: CrawlStore, place: CrawlPlace, runs: tuple[RunInfo, RunInfo]) -> None:
        self._store = store
        self._bodies = Bodies(store, place.archive)
        self._runs = runs
        self._ignored = IgnoredText(settings.texts(runs[1].settings, "ignore_text"))

    def of(self, url_id: int, url: str) -> Difference:
        """What differs on the page at this URL, which has this number."""
        said, found = self._said(url_id), self.passages(url_id, url)
        if found is None:
            return Difference(said=said)
        told = [_short(one) for one in found[:MOST_PASSAGES]]
        return Difference(told, len(found) > MOST_PASSAGES or told != found[:MOST_PASSAGES], said)

    def passages(self, url_id: int, url: str) -> Sequence[Passage] | None:
        """The same, whole; None where it is not known. On a page that only the second run has, all of it came."""
        before, after = (self._substance(one, url_id, url) for one in self._runs)
        if after is None or (before is None and self._has(self._runs[0], url_id)):
            return None
        return alike.passages(before or Substance("", ""), after)

    def _has(self, one: RunInfo, url_id: int) -> bool:
        visit = self._store.visits.of(one.run_id, url_id)
        return visit is not None and visit.outcome in ("page", "duplicate")

    def _said(self, url_id: int) -> str:
        visit = self._store.visits.of(self._runs[1].run_id, url_id)
        return (visit.message or "") if visit is not None and visit.change else ""

    def _substance(self, one: RunInfo, url_id: int, url: str) -> Substance | None:
        visit = self._store.visits.of(one.run_id, url_id)
        if visit is None or visit.outcome not in ("page", "duplicate"):
            return None
        response = self._bodies.of(visit.payload)
        kind = visit.content_type or ""
        if response is None or media.is_risky(response.body, kind):
            return None
        from inchworm.rules.page import document  # takes long to load, and who looks at numbers reads no page

        address = visit.request_url or url
        return self._ignored.substance(document.substance(response.body, kind, address), address)


def _short(one: Passage) -> Passage:
    return Passage(one.where, *(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in one[1:]))
