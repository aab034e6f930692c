"""Crawl a site, and tell what changed since the last time.

    python examples/changes.py https://example.org/docs

The first run has nothing to compare with; every later one downloads only what changed.
"""

import sys

from inchworm import Crawl


def main(url: str) -> None:
    crawl = Crawl(url)
    summary = crawl.run_sync()
    if summary.parent is None:
        print(f"{summary.pages} pages. Run this again when something may have changed.")
        return
    found = crawl.compare()
    print(found["summary"])
    for page in found["new_documents"]:
        print(f"new        {page}")
    for page in found["modified_documents"]:
        print(f"modified   {page}")
    for page in found["deleted_documents"]:
        print(f"deleted    {page}")


if __name__ == "__main__":
    main(sys.argv[1])
