"""robots.txt and sitemap files as rows of the frontier.

They have identities of their own, so that a page that links to the same URL still finds a page there.
"""

from __future__ import annotations

from inchworm.model import FoundUrl, Kind, Source

KINDS = (Kind.ROBOTS, Kind.SITEMAP)


def robots_file(origin: str) -> FoundUrl:
    address = f"{origin}/robots.txt"
    return FoundUrl(f"robots:{address}", address, Kind.ROBOTS, Source.INITIAL)


def sitemap_file(address: str) -> FoundUrl:
    return FoundUrl(f"sitemap:{address}", address, Kind.SITEMAP, Source.SITEMAP)
