"""Crawl a site in sessions of twenty requests and print every title once.

    python examples/titles.py https://example.org/docs

Stop it at any time and run it again: it goes on where it was.
"""

import sys

from inchworm import Crawl


def main(url: str) -> None:
    crawl = Crawl(url, budget=20)
    while crawl.run_sync().run_state != "completed":
        print(f"... {crawl.status()['pending']} URLs to go", file=sys.stderr)
    for visit in crawl.visits():
        if visit["outcome"] == "page":
            print(visit["title"] or visit["url"])


if __name__ == "__main__":
    main(sys.argv[1])
