"""Links in Markdown: found where a reader of Markdown finds them, and led elsewhere without touching anything else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from inchworm.page import read
from inchworm.rules.text.links import leading, links

A = "http://a.test"


def urls(text: str) -> list[str]:
    return [link.url for link in links(text)]


FOUND = {
    f"[x]({A}/a)": [f"{A}/a"],
    f"[x]({A}/a_(b)/c) and [y]({A}/d)": [f"{A}/a_(b)/c", f"{A}/d"],
    rf"[x]({A}/a\)\(b)": [f"{A}/a)(b"],
    rf"[\[b\]r\](]({A}/a)": [f"{A}/a"],
    f'[x]({A}/a "A title")': [f"{A}/a"],
    f"[![x]({A}/i.png)]({A}/a)": [f"{A}/i.png", f"{A}/a"],
    f"<{A}/a>": [f"{A}/a"],
    rf"| [c\|d]({A}/a\|b) |": [f"{A}/a|b"],
    f"` [x]({A}/a)": [f"{A}/a"],
    "[x](mailto:a@b.test) [y](/relative) [z](#here)": [],
    f"`[x]({A}/a)`": [],
    f"``a ` [x]({A}/a)``": [],
    f"```\n[x]({A}/a)\n```": [],
    rf"\[x\]({A}/a)": [],
    rf"\<{A}/a>": [],
    f"x]({A}/a)": [],
    f"[x]({A}/a b)": [],
    f"[x]({A}/a": [],
    f"{A}/a": [],
}


@pytest.mark.parametrize(("text", "found"), FOUND.items(), ids=range(len(FOUND)))
def test_where_links_are(text, found):
    assert urls(text) == found


def test_images_are_told_from_links():
    told = [(link.is_image, link.is_bare) for link in links(f"[![x]({A}/i)]({A}/a) ![y]({A}/b) <{A}/c>")]
    assert told == [(True, False), (False, False), (True, False), (False, True)]


def test_only_addresses_are_changed():
    text = f'[x]({A}/a) `[x]({A}/a)` [y]({A}/b "title") <{A}/a> ![z]({A}/c) [x]({A}/a)'
    assert leading(text, links(text), {f"{A}/a": "a.md", f"{A}/c": "c.png"}) == (
        f'[x](a.md) `[x]({A}/a)` [y]({A}/b "title") [{A}/a](a.md) ![z](c.png) [x](a.md)'
    )
    assert leading(text, links(text), {}) == text


paths = st.text(st.sampled_from("ab()[]<>|\\*_`~ \"'%#?&=é!"), max_size=8).map(lambda text: f"/{text}")
labels = st.text(st.sampled_from("ab()[]<>|\\*_`~ \"'!#"), min_size=1, max_size=8).map(lambda text: f"x{text}")
pieces = st.one_of(
    st.builds("<a href='{}'>{}</a>".format, paths.map(lambda one: one.replace("'", "%27")), labels),
    st.builds("<img src='{}' alt='{}'>".format, paths.map(lambda one: one.replace("'", "%27")), st.just("pic")),
    st.builds("<code>{}</code>".format, labels),
    st.builds("<pre>{}</pre>".format, labels),
    labels,
    st.just("[x](http://a.test/no)"),
    st.just("<li>"),
    st.just("<p>"),
)


def by_others(text: str) -> list[str]:
    """The web addresses that a reader of Markdown finds, images before what stands around them."""
    reader = MarkdownIt("commonmark").enable("table")
    reader.normalizeLink = lambda url: url  # type: ignore[method-assign]
    found = [
        token.attrs.get("href") or token.attrs.get("src")
        for block in reader.parse(text)
        for token in (block.children or [])
        if token.type in ("link_open", "image")
    ]
    return [str(url) for url in found]


@effort(max_examples=300, database=None)
@given(st.lists(pieces, max_size=8))
def test_links_of_pages_are_found_as_others_find_them(parts):
    """Whatever a page holds: what we find in its Markdown is what a reader of Markdown finds."""
    body = f"<main><p>{'Words. ' * 20}</p>{' '.join(parts)}</main>"
    text = read(body.encode(), f"{A}/docs/", "text/html; charset=utf-8").markdown
    assert sorted(urls(text)) == sorted(by_others(text)), text
    changed = leading(text, links(text), dict.fromkeys(urls(text), "there.md"))
    assert by_others(changed) == ["there.md"] * len(urls(text)), changed


HARD = [
    "[" * 500_000, "[](" * 300_000, "[](http://(" * 100_000, "`" * 500_000, "` `` ``` " * 100_000, "](" * 500_000,
    f"[x]({A}/" + "(" * 500_000, " ".join("`" * n for n in range(900)),
]  # fmt: skip


@pytest.mark.parametrize("text", HARD, ids=range(len(HARD)))
def test_texts_made_to_be_hard_take_time_in_proportion(text):
    began = time.process_time()
    links(text)
    assert time.process_time() - began < 20
