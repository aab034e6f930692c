"""A shop as a table of its products, as CSV.

    python examples/products.py https://example.org/shop > products.csv

What a product page says for machines (JSON-LD) is taken where it is there; otherwise selectors pick the parts. They are
read from the archive: change them and run again, and nothing is downloaded that did not change.
"""

import csv
import sys
from collections.abc import Iterator
from typing import Any

from inchworm import Crawl, Page

COLUMNS = ("name", "price", "currency", "image", "url")


def products(page: Page) -> Iterator[dict[str, Any]]:
    for item in page.data.get("json_ld", []):
        if isinstance(item, dict) and item.get("@type") == "Product":
            offers = item.get("offers")
            offer = offers[0] if isinstance(offers, list) and offers else offers or {}
            price, currency = offer.get("price"), offer.get("priceCurrency")
            yield {"name": item.get("name"), "price": price, "currency": currency, "image": item.get("image")}
            return
    for card in page.css(".product"):
        name, price, image = card.css("h2, h3, .name"), card.css(".price"), card.css("img")
        if name and price:
            currency, _, number = price[0].text.partition(" ")
            yield {"name": name[0].text, "price": number, "currency": currency, "image": image[0].url if image else ""}


def main(url: str) -> None:
    crawl = Crawl(url)
    crawl.run_sync()
    table = csv.DictWriter(sys.stdout, COLUMNS)
    table.writeheader()
    for page in crawl.pages(unique=True):
        table.writerows({**product, "url": page.url} for product in products(page))


if __name__ == "__main__":
    main(sys.argv[1])
