"""What a page calls itself: its title without the name of its site."""

from __future__ import annotations

import pytest

from inchworm import read

URL = "https://www.wormshop.example/guides/how-worms-walk"


def title(page: str, url: str = URL, content_type: str = "text/html") -> str:
    return read(page.encode(), url, content_type).title


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        # The heading says where the name begins.
        ("<title>How worms walk | The Worm Shop</title><h1>How worms walk</h1>", "How worms walk"),
        ("<title>The Worm Shop: Guides » How worms walk</title><h1>How worms walk</h1>", "How worms walk"),
        ("<title>Worms - a guide - The Worm Shop</title><h1>Worms - a guide</h1>", "Worms - a guide"),
        # The first heading is a logo, or is about something else.
        ("<title>How worms walk | Worm Shop</title><h1>Worm Shop</h1><h1>How worms walk</h1>", "How worms walk"),
        ("<title>How worms walk | Worm Shop</title><h1>Our newsletter</h1>", "How worms walk"),
        # A heading may say it in other words than `<title>`, and more of them.
        ("<title>Worms walk | Worm Shop</title><h1>How do worms walk?</h1>", "How do worms walk?"),
        # It is only in the address, or in the title for sharing, that the heading is confirmed.
        ("<title>A guide | Worm Shop</title><h1>How Worms Walk</h1>", "How Worms Walk"),
        (
            "<title>On legs</title><meta property=og:title content='They arch back'><h1>They arch back</h1>",
            "They arch back",
        ),
        # Nothing but `<title>`: its first part that is not the site's name.
        ("<title>How worms walk | Worm Shop</title>", "How worms walk"),
        ("<title>Wormshop – How worms walk</title>", "How worms walk"),
        ("<title>Soil · Arch</title><meta property=og:site_name content=Soil>", "Arch"),
        ("<title>Soil · Arch</title><script type=application/ld+json>{'@type': 'WebSite'}</script>", "Soil"),
        (
            '<title>Soil · Arch</title><script type=application/ld+json>{"@type":"WebSite","name":"Soil"}</script>',
            "Arch",
        ),
        ("<title>Wormshop</title>", "Wormshop"),
        ("<title>Wormshop | Worm Shop</title>", "Wormshop"),
        # Hyphens inside words and colons are no ends of parts.
        ("<title>Earth-worms: a how-to</title>", "Earth-worms: a how-to"),
        # How the heading is written.
        ("<title>Worms walk | Shop</title><h1>WORMS WALK</h1>", "Worms walk"),
        ("<title>Worms walk | Shop</title><h1>Worms walk<a href=#w>¶</a></h1>", "Worms walk"),
        ("<title>Worms walk | Shop</title><h1>Worms<br>walk</h1>", "Worms walk"),
        ("<title>Worms &amp;amp; soil | Shop</title>", "Worms & soil"),
        # No `<title>`.
        ("<h1>Worm Shop</h1><h1>How worms walk</h1>", "How worms walk"),
        ("<meta property=og:title content='How worms walk'>", "How worms walk"),
        ("<p>How worms walk", ""),
        ("<title>|</title>", "|"),
    ],
)
def test_the_name_of_the_site_is_no_part_of_the_title(page: str, expected: str) -> None:
    assert title(page) == expected


def test_the_title_as_it_stands_is_kept() -> None:
    page = read(b"<title>How worms walk | The Worm Shop</title><h1>How worms walk</h1><p>They do.", URL, "text/html")
    assert page.full_title == "How worms walk | The Worm Shop"
    # Two versions that differ in no more than this are told apart, and what is shown has to say in what.
    assert page.lines()[0] == "title: How worms walk | The Worm Shop"


def test_only_web_pages_name_their_site_in_their_title() -> None:
    assert title("# Worms | a guide\n\nThey walk.", content_type="text/markdown") == "Worms | a guide"


@pytest.mark.parametrize("url", ["", "no address", "https://[broken/", "https://h.example"])
def test_a_title_needs_no_address(url: str) -> None:
    assert title("<title>How worms walk | The Worm Shop</title><h1>How worms walk</h1>", url) == "How worms walk"


@pytest.mark.parametrize(
    "page",
    [
        "<title>" + "a | " * 100_000 + "</title>",
        "<h1>word</h1>" * 10_000,
        "<title>x</title><h1>" + "word " * 100_000 + "</h1>",
        "<title>a\ud800b | c</title><h1>a\udfffb</h1>",
    ],
)
def test_no_title_is_too_strange(page: str) -> None:
    found = read(page.encode("utf-8", "surrogatepass"), URL, "text/html").title
    assert len(found) <= 1_000
    assert found.encode()
