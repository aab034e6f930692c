"""Documents of an index: each field has one type, whatever pages say, and servers take every one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sink.searchserver import check_document, check_mappings

from inchworm.rules.metadata.describe import PageMetadata, describe
from inchworm.sink.servers.index import FIELDS, MAX_TEXT, DocumentUpdate, _packed, document, document_id

MAPPINGS = {"dynamic": False, "properties": FIELDS}
VISIT: dict[str, Any] = {
    "url": "https://example.org/a",
    "at_ms": 1_700_000_000_000,
    "first_ms": 1_600_000_000_000,
    "run": 3,
    "content_type": "text/html",
    "title": "A page",
    "text_hash": bytes(32),
    "status": 200,
    "size": 1234,
    "language": "en",
    "canonical": "https://example.org/",
    "etag": '"x"',
    "last_modified": "Wed, 21 Oct 2015 07:28:00 GMT",
    "change": "new",
    "meta": {},
    "source": "spider",
    "depth": 2,
    "seed": "https://example.org/",
    "crawl_id": "0123456789",
    "crawl_name": "docs",
    "log_id": 7,
    "payload": b"not a field",
}


def test_the_mapping_is_one_that_servers_take() -> None:
    check_mappings(MAPPINGS)


def test_a_document_has_what_is_known_of_a_page() -> None:
    meta = {
        "author": "Ada, Bob",
        "published": "2024-05-17T10:00:00+02:00",
        "modified": "May 2024",
        "publisher": "A press",
        "keywords": ["one", "two"],
        "image": "https://example.org/i.png",
        "type": "article",
        "description": "Of pages",
        "feeds": ["https://example.org/feed"],
    }
    assert document({**VISIT, "meta": meta}, "Its text", ["https://example.org/a", "https://example.org/b"]) == {
        "id": document_id("https://example.org/a"),
        "url": "https://example.org/a",
        "canonical": "https://example.org/",
        "title": "A page",
        "text": "Its text",
        "language": "en",
        "content_type": "text/html",
        "status": 200,
        "size": 1234,
        "depth": 2,
        "source": "spider",
        "seed": "https://example.org/",
        "fetched_at": "2023-11-14T22:13:20.000Z",
        "first_seen_at": "2020-09-13T12:26:40.000Z",
        "run": 3,
        "change": "new",
        "etag": '"x"',
        "last_modified": "2015-10-21T07:28:00.000Z",
        "content_hash": "00" * 32,
        "alternate_urls": ["https://example.org/a", "https://example.org/b"],
        "author": "Ada, Bob",
        "published_at": "2024-05-17T08:00:00.000Z",
        "publisher": "A press",
        "description": "Of pages",
        "keywords": ["one", "two"],
        "image": "https://example.org/i.png",
        "type": "article",
        "crawl_id": "0123456789",
        "crawl_name": "docs",
    }


def test_the_same_url_has_the_same_document() -> None:
    assert document_id("https://example.org/") == document_id("https://example.org/")
    assert document_id("https://example.org/") != document_id("https://example.org/a")
    assert len(document_id("https://example.org/" + "x" * 9000)) == 64


def test_a_publisher_is_always_a_text() -> None:
    for said in ("A press", ["A press"], {"name": "A press"}, [{"@type": "Organization", "name": ["A press"]}]):
        made = document({**VISIT, "meta": {"publisher": said}}, "", [])
        assert made["publisher"] == "A press"
    assert "publisher" not in document({**VISIT, "meta": {"publisher": {"url": "x"}}}, "", [])


def test_huge_texts_are_cut() -> None:
    assert len(document(VISIT, "é" * 3_000_000, [])["text"]) == MAX_TEXT


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "@id", "url"]), inner),
    max_leaves=8,
)
_META = st.dictionaries(
    st.sampled_from(["author", "published", "modified", "publisher", "image", "type", "description", "site_name"]),
    _JSON,
)


def taken(visit: dict[str, Any], text: str = "") -> None:
    """A server takes the document that is made of this."""
    line = DocumentUpdate(visit["url"], 1, document(visit, text, [visit["url"]]))
    action, source = (json.loads(one) for one in _packed("x", line).data.splitlines())
    assert action["index"]["_id"] == source["id"]
    assert source.keys() <= FIELDS.keys()
    check_document(MAPPINGS, source, source["id"], "document_parsing_exception")


@given(_META, st.lists(_JSON, max_size=3), st.text(max_size=50))
@settings(max_examples=200)
def test_whatever_pages_say_servers_take_it(meta: dict[str, Any], keywords: list[Any], text: str) -> None:
    taken({**VISIT, "meta": {**meta, "keywords": keywords}, "title": text, "etag": text}, text)
    taken({**VISIT, "last_modified": text, "language": text, "canonical": text}, text)


_LD = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["author", "publisher", "datePublished", "@type", "image"], _JSON)
)


@given(_LD, st.dictionaries(st.sampled_from(["publisher", "og:type", "author", "keywords"]), st.text(max_size=20)))
@settings(max_examples=200)
def test_json_ld_and_open_graph_come_to_one_type(said: dict[str, Any], metas: dict[str, str]) -> None:
    meta = describe(PageMetadata(metas, [], [json.dumps(said)]), "https://example.org/")
    taken({**VISIT, "meta": meta})


def test_long_words_and_halves_of_characters_do_no_harm() -> None:
    long = "é" * 40_000
    taken({**VISIT, "url": f"https://example.org/{long}", "title": long, "etag": long, "meta": {"author": long}}, long)
    taken({**VISIT, "title": "a\ud800b", "meta": {"publisher": "\udfff"}}, "x\udfff\n\u2028\x00")
