"""The text of a site as a DataFrame: one row per page.

    pip install 'inchworm[pandas]'
    python examples/dataframe.py https://example.org/docs

`to_polars()` and `to_arrow()` do the same; `to_batches()` is for crawls that are larger than memory.
"""

import sys

from inchworm import Crawl


def main(url: str) -> None:
    crawl = Crawl(url)
    crawl.run_sync()

    pages = crawl.to_pandas(columns=["url", "title", "text", "fetched_at"], unique=True)
    pages["words"] = pages["text"].str.split().str.len()

    print(pages.sort_values("words", ascending=False)[["title", "words", "url"]].to_string(index=False))
    print(f"{len(pages)} pages, {pages['words'].sum():,} words")


if __name__ == "__main__":
    main(sys.argv[1])
