"""Look at every page the moment it is committed, from a program with an event loop of its own.

    python examples/watch.py https://example.org/docs

Callbacks are plain functions. What they see is committed already: if this program dies, nothing is seen twice or lost.
"""

import asyncio
import sys

from inchworm import Crawl, Page


def look(page: Page) -> None:
    words = len(page.text.split())
    print(f"{page.outcome:<10} {page.status} {words:>6} words  {page.url}")


async def main(url: str) -> None:
    summary = await Crawl(url).run(on_page=look)
    print(f"{summary.pages} pages, {summary.failed} failed; the run is {summary.run_state}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
