"""What a crawl has of one page, from the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.flow.crawling import Home

from inchworm.testing import Page, Served, Site

WORDS = "They walk by arching their <b>back</b> again and again."


@pytest.fixture
def served(home: Home) -> Iterator[Served]:
    pages = {
        "/": "<title>Home</title><a href=/docs/install.html>Install</a> <a href=/docs/>docs</a> <a href=/gone>gone</a>",
        "/docs/": "<title>Docs</title><main><p>All there is to know of them.</p></main>",
        "/docs/install.html": Page(
            f"<title>Install</title><main><p>{WORDS}</p><a href=/>Home</a></main>", headers={"X-Worm": "yes"}
        ),
    }
    with Site(pages).serve() as made:
        home.crawl(made.url("/"), sitemap=False)
        yield made


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--text", "They walk by arching their back"),
        ("--markdown", "their **back** again"),
        ("--html", "<b>back</b>"),
        ("--raw-html", "<title>Install</title>"),
        ("--headers", "x-worm: yes"),
        ("--links", "/\tHome"),
    ],
)
def test_a_page_is_shown(home: Home, served: Served, option: str, said: str) -> None:
    assert said in home.cli("show", home.word, served.url("/docs/install.html"), option).stdout
    assert said in home.cli("show", home.word, "install", option).stdout


def test_a_part_of_an_address_will_do_when_it_is_unique(home: Home, served: Served) -> None:
    assert home.ask("show", home.word, "install.html")["url"] == served.url("/docs/install.html")
    # What ends so is meant before what has it somewhere.
    assert home.ask("show", home.word, "/docs")["request_url"] == served.url("/docs/")
    refused = home.cli("show", home.word, "http", code=2)
    assert "may mean several" in refused.stderr
    assert served.url("/docs/install.html") in refused.stderr
    assert "No URL that was visited has 'nonsense'" in home.cli("show", home.word, "nonsense", code=2).stderr


def test_a_page_that_is_not_there_has_nothing_to_show(home: Home, served: Served) -> None:
    assert home.ask("show", home.word, "/gone")["state"] == "done"
    assert "gone" in home.cli("show", home.word, "/gone", "--text", code=2).stderr


def test_the_newest_version_is_shown_and_any_other_on_request(home: Home, served: Served) -> None:
    served._site.pages["/docs/"] = "<title>Docs</title><main><p>Other words, and more than there were.</p></main>"
    home.crawl(served.url("/"), sitemap=False)
    assert "Other words" in home.cli("show", home.word, "/docs/", "--text").stdout
    assert "All there is" in home.cli("show", home.word, "/docs/", "--text", "--run", "0").stdout
    assert "arching" in home.ask("show", home.word, "install", "--text")["text"]


def test_fields_are_tried_on_a_page_by_a_part_of_its_address(home: Home, served: Served) -> None:
    tried = home.cli("extract", home.word, "install", "--extract", "name=title").stdout
    assert served.url("/docs/install.html") in tried
    assert "Install" in tried


def test_a_dash_is_standard_output(home: Home, served: Served) -> None:
    assert served.url("/docs/") in home.cli("export", home.word, "--format", "urls", "-o", "-").stdout.splitlines()
