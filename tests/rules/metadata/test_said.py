"""Who wrote a page, and when, as it says for machines. Each page here is one way of saying it."""

from __future__ import annotations

import json

import pytest

from inchworm import read

URL = "https://worms.example/walk"


def ld(**said: object) -> str:
    return f"<script type=application/ld+json>{json.dumps(said)}</script>"


def meta(name: str, content: str, attribute: str = "name") -> str:
    return f'<meta {attribute}="{name}" content="{content}">'


@pytest.mark.parametrize(
    ("page", "author"),
    [
        (ld(**{"@type": "WebPage", "mainEntity": {"@type": "Question", "author": {"name": "Ada"}}}), "Ada"),
        (ld(**{"@type": "Article", "author": "Ada &amp; Bob"}), "Ada & Bob"),
        ('<script type=application/ld+json>{"headline": "a\nb", "author": "Ada"}</script>', "Ada"),
        (ld(**{"@type": "Article", "author": "https://worms.example/ada"}) + meta("author", "Ada"), "Ada"),
        (meta("article:author", "https://social.example/ada", "property") + meta("dc.creator", "Ada"), "Ada"),
        (meta("author", "@ada") + meta("twitter:label1", "Written by") + meta("twitter:data1", "Ada"), "Ada"),
        (meta("twitter:label2", "Verfasst von") + meta("twitter:data2", "Ada"), "Ada"),
        (meta("sailthru.author", "Ada"), "Ada"),
        (meta("citation_author", "Ada"), "Ada"),
        # Nobody is named.
        (meta("article:author", "https://social.example/ada", "property"), None),
        (meta("twitter:label1", "Reading time") + meta("twitter:data1", "5 minutes"), None),
        (ld(**{"@type": "FAQPage", "mainEntity": [{"@type": "Question", "author": "Ada"}]}), None),
    ],
)
def test_who_is_said_to_have_written_it(page: str, author: str | None) -> None:
    assert read(page.encode(), URL, "text/html").author == author


@pytest.mark.parametrize(
    ("page", "published"),
    [
        (ld(**{"@type": "WebPage", "mainEntity": {"@type": "Question", "datePublished": "2024-05-06"}}), "2024-05-06"),
        (ld(**{"@type": "DiscussionForumPosting", "dateCreated": "2024-05-06"}), "2024-05-06"),
        (meta("og:article:published_time", "2024-05-06", "property"), "2024-05-06"),
        (meta("citation_publication_date", "2024/05/06"), "2024/05/06"),
        (meta("sailthru.date", "2024-05-06"), "2024-05-06"),
        (meta("dcterms.created", "2024-05-06"), "2024-05-06"),
        (meta("generated", "2024-05-06"), None),
    ],
)
def test_when_it_is_said_to_have_been_published(page: str, published: str | None) -> None:
    assert read(page.encode(), URL, "text/html").published == published


def test_the_first_meta_in_the_order_of_trust_counts() -> None:
    page = meta("dc.date", "2024-01-01") + meta("article:published_time", "2024-02-02", "property")
    assert read(page.encode(), URL, "text/html").published == "2024-02-02"
