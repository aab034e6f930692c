"""Pages as Markdown files: what is known of them in front, links that lead from file to file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from tests.sink.pages import page_of

from inchworm.page import Page
from inchworm.rules.web.url import canonicalize
from inchworm.sink import export
from inchworm.sink.files.folder import opened
from inchworm.sink.files.names import page_name
from inchworm.sink.markdown import Others, image_name

VISIT = {
    "url": "https://a.test/x", "request_url": "https://a.test/x/", "kind": "page", "outcome": "page", "status": 200,
    "at_ms": 1_767_225_600_123, "content_type": "text/html; charset=utf-8", "text_hash": "ab", "payload": "cd",
    "title": "Title", "language": "de", "meta": {"author": "A: B", "published": "2026-01-31", "noindex": True},
}  # fmt: skip
WORDS = "<p>Hello. This is a page that has a text.</p>"


def others(*files: str, images: dict[str, str] | None = None) -> Others:
    """Others that have these files, by URL."""
    names = {url: page_name(url) for url in files}

    def of(known: dict[str, str]) -> Any:
        return lambda urls: {url: known[url] for url in urls if url in known}

    return Others(canonicalize, of(names), of(images or {}))


def written(folder: Path, *visits: dict[str, Any], body: str = WORDS, known: Others | None = None) -> int:
    pages: Iterable[tuple[Page, str]] = ((page_of(visit, body.encode()), page_name(visit["url"])) for visit in visits)
    with opened(folder) as files:
        return export.markdown(pages, known or others(), files)


def text_of(folder: Path, body: str, known: Others, url: str = "https://a.test/docs/x") -> str:
    """What a page came to, below its front matter."""
    visit = {**VISIT, "url": url, "request_url": url}
    written(folder, visit, body=f"<main>{WORDS}{body}</main>", known=known)
    return (folder / page_name(url)).read_text().partition("\n---\n\n")[2].partition("\n\n")[2].strip()


def test_a_page_is_a_file_with_what_is_known_of_it(tmp_path):
    assert written(tmp_path, VISIT) == 1
    assert (tmp_path / "a.test/x.md").read_text() == (
        "---\n"
        'title: "Title"\n'
        'url: "https://a.test/x/"\n'
        'canonical_url: "https://a.test/x"\n'
        'fetched_at: "2026-01-01T00:00:00.123Z"\n'
        'language: "de"\n'
        'author: "A: B"\n'
        'published: "2026-01-31"\n'
        'content_hash: "ab"\n'
        "---\n"
        "\n"
        "Hello. This is a page that has a text.\n"
    )
    line = json.loads((tmp_path / "index.jsonl").read_text())
    assert line == {"url": "https://a.test/x/", "canonical_url": "https://a.test/x", "file": "a.test/x.md"}


def test_what_is_not_known_is_left_out(tmp_path):
    written(tmp_path, {**VISIT, "title": None, "language": "", "text_hash": None, "meta": {"author": ["a"]}}, body="")
    front = yaml.safe_load((tmp_path / "a.test/x.md").read_text().split("---")[1])
    assert list(front) == ["url", "canonical_url", "fetched_at"]


def test_the_urls_of_a_content_are_listed_when_there_are_several(tmp_path):
    written(tmp_path, {**VISIT, "alternate_urls": ["https://a.test/x", "https://a.test/y"]})
    front = yaml.safe_load((tmp_path / "a.test/x.md").read_text().split("---")[1])
    assert front["alternate_urls"] == ["https://a.test/x", "https://a.test/y"]


NASTY = [
    "---", "...", ": ", "# no comment", "yes", "null", "~", "1.0", "'", '"', "\\", "\n---\n", "\r", "\x85",
    "\u2028", "\ufeff", "\x00", "\x7f", "\x9f", "\u202e", "\ufffe", "😀", "👩\u200d👩", "\U000e0001", "{a: b}", "[",
    "&a", "*a", "!!python", "%", "@", "`", " ", "\t",
]  # fmt: skip


@effort(max_examples=300, database=None)
@given(st.lists(st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=()))).map("".join).filter(bool))
def test_any_title_is_one_line_that_yaml_reads_as_it_is(tmp_path_factory, title):
    folder = tmp_path_factory.getbasetemp() / "titles"
    written(folder, {**VISIT, "title": None, "language": None, "meta": {"author": title, "description": title}})
    lines = (folder / "a.test/x.md").read_bytes().decode().split("\n")
    assert lines[0] == lines[7] == "---" and all(line.isprintable() for line in lines[:8])
    held = re.sub("[\ud800-\udfff]", "\ufffd", title)
    front = yaml.safe_load("\n".join(lines[1:7]))
    assert (front["author"], front["description"]) == (held, held)


# Links

A = "https://a.test"
LINKS = {
    "in the same folder": ("/docs/y", "y.md"),
    "below": ("/docs/more/y", "more/y.md"),
    "above": ("/y", "../y.md"),
    "in another folder": ("/other/y", "../other/y.md"),
    "on another host": ("https://b.test/y", "../../b.test/y.md"),
    "with a fragment": ("/docs/y#part-1", "y.md#part-1"),
    "with a fragment that could be misread": ("/docs/y#a(b)|c%20d", "y.md#a%28b%29%7Cc%20d"),
    "to a place on the page itself": ("#part-1", "#part-1"),
    "to the page itself": ("/docs/x", "x.md"),
    "with a space": ("/docs/a b", "a%20b.md"),
    "with brackets": ("/docs/a(b)", "a%28b%29.md"),
    "with a percent sign in its name": ("/docs/a%2Fb", "a%252Fb.md"),
    "in another alphabet": ("/docs/日", "%E6%97%A5.md"),
    "with a parameter that follows people": ("/docs/y?utm_source=z", "y.md"),
}


@pytest.mark.parametrize(("href", "target"), LINKS.values(), ids=LINKS)
def test_links_lead_to_files(tmp_path, href, target):
    known = others(*(str(canonicalize(one, f"{A}/docs/x")) for one, _ in LINKS.values()))
    assert text_of(tmp_path, f'<a href="{href}">link</a>', known) == f"[link]({target})"


def test_links_to_what_is_not_there_stay(tmp_path):
    body = '<a href="/docs/gone#x">gone</a> <a href="https://b.test/">b</a> <a href="mailto:a@b.test">m</a>'
    expected = f"[gone]({A}/docs/gone#x) [b](https://b.test/) [m](mailto:a@b.test)"
    assert text_of(tmp_path, body, others(f"{A}/docs/y")) == expected


def test_what_looks_like_a_link_in_code_stays(tmp_path):
    body = f"<code>[y]({A}/docs/y)</code><pre>[y]({A}/docs/y)</pre>"
    assert text_of(tmp_path, body, others(f"{A}/docs/y")).count(f"[y]({A}/docs/y)") == 2


def test_plain_text_stays_as_it_is(tmp_path):
    text = f"[y]({A}/docs/y) " * 9
    visit = {**VISIT, "canonical_url": VISIT["url"]}
    page = Page(f"{A}/x.txt", "text/plain", text.encode, visit)
    with opened(tmp_path) as files:
        export.markdown([(page, "a.test/x.txt.md")], others(f"{A}/docs/y"), files)
    assert (tmp_path / "a.test/x.txt.md").read_text().endswith(f"---\n\n{text}\n")


def test_images_are_shown_from_files(tmp_path):
    known = others(f"{A}/docs/y", images={f"{A}/i.png": "images/a.test/i.png"})
    body = '<a href="/docs/y"><img src="/i.png" alt="pic"></a> <img src="/j.png" alt="other"> <a href="/i.png">i</a>'
    expected = f"[![pic](../../images/a.test/i.png)](y.md) ![other]({A}/j.png) [i](../../images/a.test/i.png)"
    assert text_of(tmp_path, body, known) == expected


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/i.png", "image/png", "images/a.test/i.png"),
        ("/i", "image/svg+xml; charset=utf-8", "images/a.test/i~.svg"),
        ("/i.php", "image/jpeg", "images/a.test/i.php~.jpg"),
        ("/i.jpeg", "image/jpeg", "images/a.test/i.jpeg"),
        ("/i.png", "text/html", ""),
        ("/i.png", "image/x-unheard-of", ""),
        ("/i.png", "", ""),
    ],
)
def test_the_names_of_images(path, kind, name):
    assert image_name(A + path, kind) == name
