"""Only what changed since yesterday, with what was said before and what is said now.

    python examples/yesterday.py https://example.org/news
    python examples/yesterday.py https://example.org/news 7d

Run it every day: it asks the site only for what may have changed. The second word is any date, a time as 36h or 7d, or
the number of a run.
"""

import sys

from inchworm import Crawl


def main(url: str, since: str = "yesterday") -> None:
    crawl = Crawl(url)
    crawl.run_sync()
    for page in crawl.pages(since=since):
        print(f"{page.change:<10} {page.url}")
        for line in page.diff() if page.change == "modified" else []:
            print(f"    {line}")


if __name__ == "__main__":
    main(*sys.argv[1:])
