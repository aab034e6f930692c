"""Scrapy on the same site: follow every link of one host, durable queue in JOBDIR, bodies kept as items' hashes.

python bench/scrapy_peer.py URL JOBDIR WORKERS
"""

import json
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Peer(scrapy.Spider):
    name = "peer"
    pages = 0

    def __init__(self, url: str) -> None:
        super().__init__()
        self.start_urls = [url]
        self.host = urlsplit(url).netloc
        self.links = LinkExtractor(deny_extensions=[])

    def parse(self, response: scrapy.http.Response) -> Iterator[scrapy.Request]:
        type(self).pages += 1
        if isinstance(response, scrapy.http.TextResponse):
            for link in self.links.extract_links(response):
                if urlsplit(link.url).netloc == self.host:
                    yield response.follow(link.url, self.parse)


if __name__ == "__main__":
    url, jobdir, workers = sys.argv[1:4]
    settings = {
        "JOBDIR": jobdir,
        "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": int(workers),
        "CONCURRENT_REQUESTS_PER_DOMAIN": int(workers),
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    process.crawl(Peer, url=url)
    process.start()
    print(json.dumps({"pages": Peer.pages}))
