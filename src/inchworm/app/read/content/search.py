"""Search: the text of a crawl's pages, as its runs left them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inchworm.app.frames import DROP, CrawlFrames, choice_of
from inchworm.app.read.content.snippet import snippet
from inchworm.app.workspace import Workspace
from inchworm.engine.own.bodies import Bodies
from inchworm.errors import WrongUse
from inchworm.page import opened
from inchworm.rules.text.recurring import NO_FRAME, Frame
from inchworm.rules.words.json_form import OPTIONAL
from inchworm.rules.words.times import iso
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.follow import search as index
from inchworm.store.follow import timed
from inchworm.store.follow.follower import Progress
from inchworm.store.follow.framed import ReadText
from inchworm.store.follow.log import LoggedPage

LIMIT = 10
SEARCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that was found. Hits stand in « » in its snippet."""

    url: str
    title: str
    snippet: str
    run: int
    fetched_at: str
    alternate_urls: Sequence[str]
    score: float


@dataclass(frozen=True, slots=True)
class Unread:
    """How many pages are not in the index yet, because there was no time, and of how many."""

    missing: int
    total: int


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found: `count` in all, the best of them as `results`. `unread`: where it had only so much time."""

    query: str
    count: int
    results: Sequence[SearchResult]
    unread: Unread | None = field(default=None, metadata=OPTIONAL)


class TextSearch:
    """The text of pages."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def find(
        self,
        word: str,
        text: str,
        limit: int = LIMIT,
        seconds: float | None = None,
        progress: Progress = lambda _done, _total: None,
        frame: str = "",
    ) -> SearchResults:
        """The pages that say something, best first, as the newest visits of any run have them.

        The index is brought up to date first, however long that takes, or for so many seconds; `progress` is told how
        many URLs were looked up for that, of how many. `frame`: whether blocks that stand on most pages of their host
        are found, if not as the crawl says; there is an index for each.
        """
        if limit < 1:
            raise WrongUse(f"{limit} results cannot be shown.", "Give a number from 1 on.")
        question = index.SearchQuestion(index.parsed(text), limit, snippet)
        crawl = self._workspace.find(word)
        place = self._workspace.place(crawl)
        has_frames = choice_of(self._workspace, crawl, frame) == DROP
        path = place.folder / ("search.db" if has_frames else "search_whole.db")
        with self._workspace.reading(crawl) as store:
            frame_at = CrawlFrames(place).at if has_frames else None
            source = index.SearchSource(store, Texts(store, place.archive).of, progress, frame_at)
            if seconds is None:
                found, unread = index.search(path, source, question), None
            else:
                found, missing = timed.search(path, source, question, seconds)
                unread = Unread(missing, max(missing, _pages_in(store)))
        return SearchResults(text, found.total, [_result(one) for one in found.results], unread)


def _pages_in(store: CrawlStore) -> int:
    """About how many pages there are to be read."""
    known = store.runs.get()
    return known.counters.pages + known.counters.duplicates if known else 0


def _result(one: index.FoundContent) -> SearchResult:
    return SearchResult(one.urls[0], one.title, one.snippet, one.run, iso(one.at_ms), one.urls, round(one.score, 6))


class Texts:
    """The text of pages, read again from the archive."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._bodies = Bodies(store, archive)

    def of(self, page: LoggedPage, frame: Frame = NO_FRAME) -> ReadText | None:
        """The main text of a page without the frame of its host, laid out; None when the archive has lost it. One that
        nobody can read must not keep all others from being found: it has none."""
        response = self._bodies.of(page.payload)
        if response is None:
            return None
        try:
            parts = opened(response.body, page.content_type, page.request_url, frame)
            # In this order it is read once.
            blocks = frozenset(block.hash for block in parts.blocks)
            return ReadText(parts.text_alone.text, blocks)
        except Exception:  # whatever somebody made of it
            return ReadText("")
