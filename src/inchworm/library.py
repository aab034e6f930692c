"""inchworm as a library: one class, plain functions as callbacks, nothing to subclass."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inchworm.app import App, Start
from inchworm.engine.caller import Hooks, Summary
from inchworm.errors import Unknown
from inchworm.model import CrawlInfo, Progress, Visit
from inchworm.run import shown


class Crawl:
    """A crawl of one or more seeds. Settings are those of `inchworm crawl`, by their names.

    The same seeds in the same home are the same crawl: running it again resumes it, or starts its next run.
    """

    def __init__(self, *seeds: str, name: str = "", home: Path | str | None = None, **settings: Any) -> None:
        self._start = Start(seeds, name, settings)
        self._home = Path(home) if home else None

    async def run(
        self,
        on_page: Callable[[Visit], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Summary:
        """One session: until it is complete, at a limit, or paused. Callbacks run after each commit."""
        with self._app() as app:
            return await app.crawl(self._start, Hooks(None, on_progress, on_page))

    def run_sync(
        self,
        on_page: Callable[[Visit], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Summary:
        """`run` for programs without an event loop."""
        return asyncio.run(self.run(on_page, on_progress))

    def pause(self) -> str:
        """Ask the process that works on this crawl to pause."""
        with self._app() as app:
            return app.pause(self._crawl(app).crawl_id)

    def status(self) -> dict[str, Any]:
        with self._app() as app:
            return app.status(self._crawl(app))

    def runs(self) -> list[dict[str, Any]]:
        """Every run with what it found and what it saved."""
        with self._app() as app:
            return app.runs(self._crawl(app).crawl_id)

    def compare(self, first: int | None = None, second: int | None = None) -> dict[str, Any]:
        """What changed between two runs; without numbers between the last one and the one it builds on."""
        with self._app() as app:
            return app.compare(self._crawl(app).crawl_id, first, second)

    def search(self, text: str, limit: int = 10) -> dict[str, Any]:
        """Pages that say this, in their newest version."""
        with self._app() as app:
            return app.search(self._crawl(app).crawl_id, text, limit)

    def urls(self, run: int | None = None) -> Iterator[str]:
        """Every URL requested, as requested, once, in the order of record."""
        with self._app() as app:
            yield from app.requested_urls(self._crawl(app).crawl_id, run)

    def visits(self, run: int | None = None) -> Iterator[dict[str, Any]]:
        """Every visit to a page or resource, in the order of record."""
        with self._app() as app:
            yield from app.visits(self._crawl(app).crawl_id, run)

    @contextlib.contextmanager
    def _app(self) -> Iterator[App]:
        app = App(self._home)
        try:
            yield app
        finally:
            app.close()

    def _crawl(self, app: App) -> CrawlInfo:
        """This crawl, which has its name or all of its seeds, and no other that shares one of them."""
        found = app.find_by_seeds(self._start.seeds, self._start.name)
        if found is None:
            what = self._start.name or ", ".join(shown(seed) for seed in self._start.seeds)
            raise Unknown(f"{what} has not been crawled in {app.folder} yet.", "Call run() first.")
        return found
