"""Crawlee on the same site: follow every link of one host, file storage for the queue.

python bench/crawlee_peer.py URL STORAGE WORKERS
"""

import asyncio
import json
import logging
import sys

from crawlee import ConcurrencySettings, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext


async def main(url: str, storage: str, workers: int) -> None:
    service_locator.set_configuration(Configuration(storage_dir=storage, purge_on_start=True))
    pages = 0
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=workers, desired_concurrency=workers, max_concurrency=workers
        ),
        max_request_retries=0,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handler(context: ParselCrawlingContext) -> None:
        nonlocal pages
        pages += 1
        await context.enqueue_links(strategy="same-hostname")

    await crawler.run([url])
    print(json.dumps({"pages": pages}))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
