"""Search: the text of a crawl's pages, as its runs left them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inchworm.app.read.content.snippet import snippet
from inchworm.app.workspace import Workspace
from inchworm.engine.own.bodies import Bodies
from inchworm.errors import WrongUse
from inchworm.model import CrawlInfo
from inchworm.page import read
from inchworm.rules.words.times import iso
from inchworm.store.crawl import browse
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.follow import search as index
from inchworm.store.follow.follower import Page, Progress

LIMIT = 10
SEARCH_SECONDS = 1.0


class TextSearch:
    """The text of pages."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def pages(
        self, word: str, text: str, limit: int = LIMIT, progress: Progress = lambda _done, _total: None
    ) -> dict[str, Any]:
        """The pages that say something, best first, as the newest visits of any run have them.

        The index is brought up to date first; `progress` is told how many URLs were looked up for that, of how many.
        """
        if limit < 1:
            raise WrongUse(f"{limit} results cannot be shown.", "Give a number from 1 on.")
        query = index.parsed(text)
        crawl = self._workspace.find(word)
        folder = self._workspace.crawl_folder(crawl)
        with self._workspace.reading(crawl) as store:
            source = index.Source(store, Texts(store, folder / "archive").of, progress)
            found = index.search(folder / "search.db", source, index.Question(query, limit, snippet))
        return {"query": text, "count": found.total, "results": [_as_json(one) for one in found.results]}

    # Full text

    def for_a_while(self, crawl: CrawlInfo, text: str, limit: int, seconds: float = SEARCH_SECONDS) -> dict[str, Any]:
        """The pages that say something, best first, of those that are in the index after so many seconds. `missing`:
        how many are not in it yet, because there was no time."""
        query, folder = index.parsed(text), self._workspace.crawl_folder(crawl)
        with self._workspace.reading(crawl) as store:
            source = index.Source(store, Texts(store, folder / "archive").of)
            question = index.Question(query, limit, snippet)
            found, missing = browse.search(folder / "search.db", source, question, seconds)
            known = store.run()
        results = [
            {
                "url": one.urls[0],
                "title": one.title,
                "snippet": pieces(one.snippet),
                "run": one.run,
                "fetched_at": iso(one.at_ms),
                "alternates": len(one.urls) - 1,
            }
            for one in found.results
        ]
        total = max(missing, known.counters.pages + known.counters.duplicates) if known else missing
        return {"query": text, "count": found.total, "results": results, "missing": missing, "total": total}


def _as_json(one: index.Result) -> dict[str, Any]:
    return {
        "url": one.urls[0],
        "title": one.title,
        "snippet": one.snippet,
        "run": one.run,
        "fetched_at": iso(one.at_ms),
        "alternate_urls": one.urls,
        "score": round(one.score, 6),
    }


class Texts:
    """The text of pages, read again from the archive."""

    def __init__(self, store: CrawlStore, archive: Path) -> None:
        self._bodies = Bodies(store, archive)

    def of(self, page: Page) -> str | None:
        """The main text of a page, laid out; None when the archive has lost it. One that nobody can read must not keep
        all others from being found: it has none."""
        response = self._bodies.of(page.payload)
        if response is None:
            return None
        return read(response.body, page.request_url, page.content_type).text


def pieces(marked: str) -> list[tuple[str, bool]]:
    """A snippet as pieces of text, each with whether it was looked for."""
    parts: list[tuple[str, bool]] = []
    for piece in marked.split("«"):
        hit, mark, rest = piece.rpartition("»")
        parts += [(hit, True), (rest, False)] if mark else [(piece, False)]
    return [(text, is_hit) for text, is_hit in parts if text]
