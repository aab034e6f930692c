"""White space inside a text counts where it shows, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.formats.media import Media
from inchworm.rules.page import document, parse
from inchworm.rules.text.content import text_hash

URL = "https://h.test/page"
AROUND = "<p>Here are enough words for a text of its own, and not one of them is like any other that was ever written."


def hashed(body: str, *, text: bool = False) -> bytes:
    page = f"<title>A page</title><body>{AROUND}{body}".encode()
    reading = document.read(page, "text/html; charset=utf-8", URL, parse.How(text=text))
    substance = document.substance(page, "text/html; charset=utf-8", URL)
    assert document.substance_of(reading, Media.HTML, URL) == substance
    assert reading.words == substance.text
    return text_hash(reading.title, reading.words, page)


def words(body: str) -> str:
    page = f"<title>A page</title><body>{AROUND}{body}".encode()
    return document.read(page, "text/html; charset=utf-8", URL, parse.How()).words.removeprefix(AROUND[3:]).strip(" ")


SHOWN = {
    "a sign and a number": ("<p>+485", "<p>+ 485"),
    "two words": ("<p>$$DECLARE", "<p>$$ DECLARE"),
    "between elements in a line": ("<p><b>one</b><i>two</i>", "<p><b>one</b> <i>two</i>"),
    "inside one": ("<p><b>one</b>two", "<p><b>one </b>two"),
    "indentation of code": ("<pre>if a:\n  b</pre>", "<pre>if a:\n    b</pre>"),
    "a line of code": ("<pre>a\nb</pre>", "<pre>a b</pre>"),
    "an empty line of code": ("<pre>a\nb</pre>", "<pre>a\n\nb</pre>"),
    "a tab in code": ("<pre>a b</pre>", "<pre>a\tb</pre>"),
    "code in a table": ("<table><tr><td><pre>a\nb</pre></table>", "<table><tr><td><pre>a b</pre></table>"),
    "code with blocks in it": ("<pre><p>a\nb</p></pre>", "<pre><p>a b</p></pre>"),
    "the inside of an element in code": ("<pre><b>a  b</b></pre>", "<pre><b>a b</b></pre>"),
}


@pytest.mark.parametrize(("one", "other"), SHOWN.values(), ids=SHOWN)
def test_what_shows_counts(one: str, other: str) -> None:
    assert hashed(one) != hashed(other)


HIDDEN = {
    "more of it": ("<p>one two", "<p>one \n\t two"),
    "a space that does not break": ("<p>one two", "<p>one&nbsp;two"),
    "at the edges of a block": ("<p>one</p><p>two</p>", "<p> one </p>\n<p>\n two</p>"),
    "between cells": ("<table><tr><td>a<td>b</table>", "<table> <tr> <td> a </td> <td> b </td> </tr></table>"),
    "between items": ("<ul><li>a<li>b</ul>", "<ul>\n <li>a\n <li>b\n</ul>"),
    "at a break": ("<p>one<br>two", "<p>one <br>\n two"),
    "around a block in an element of a line": ("<a href=x><div>a</div></a>b", "<a href=x>\n<div>a</div>\n</a> b"),
    "another element in the line": ("<p>onetwo", "<p>one<b></b><span>two</span>"),
    "a comment in a word": ("<p>onetwo", "<p>one<!-- x -->two"),
    "at the end of lines of code": ("<pre>a\nb</pre>", "<pre>a  \nb\n\n</pre>"),
    "elements in code": ("<pre>a\n  b</pre>", "<pre><span>a</span>\n  <b>b</b></pre>"),
}


@pytest.mark.parametrize(("one", "other"), HIDDEN.values(), ids=HIDDEN)
def test_what_does_not_show_does_not_count(one: str, other: str) -> None:
    assert hashed(one) == hashed(other)


def test_a_text_reads_as_it_shows() -> None:
    assert words("<p>a <b> b</b>c</p><ul><li>d<li>e</ul>f<br>g") == "a bc d e f g"
    assert words("<p>See:</p><pre>if a:\n    b\n</pre><p>So") == "See: if a:\n    b So"


def test_whoever_wants_it_laid_out_gets_the_same_hash() -> None:
    table = "<table><tr><td>a<td>b<tr><td>c<td>d<caption>About it</table>"
    assert hashed(table) == hashed(table, text=True)


def test_lines_of_a_text_without_markup_count() -> None:
    texts = ["a: 1\nb: 2", "a: 1\n  b: 2", "a: 1 b: 2"]
    found = {document.read(text.encode(), "text/plain", URL, parse.How()).words for text in texts}
    assert len(found) == len(texts)
    same = [document.read(text.encode(), "text/plain", URL, parse.How()).words for text in ("a\nb", "a \r\nb\n\n")]
    assert same[0] == same[1]


# Whatever there is

VISIBLE = "abcXY019$+-.,()é字"
TEXT = st.text(VISIBLE, min_size=1, max_size=8)
WHITE = st.sampled_from(["", " ", "\n", "\n    ", "\t", " \r\n "])
BLOCK = st.sampled_from(["div", "p", "section", "ul", "h2", "blockquote", "table", "pre"])


@st.composite
def lines(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Words in a line, each with the element around it."""
    return draw(st.lists(st.tuples(st.sampled_from(["", "b", "code", "em", "x-own"]), TEXT), min_size=1, max_size=5))


BLOCKS = st.lists(st.tuples(BLOCK, st.lists(lines(), min_size=1, max_size=3)), min_size=1, max_size=4)
Blocks = list[tuple[str, list[list[tuple[str, str]]]]]


def written(blocks: Blocks, gaps: list[str]) -> str:
    """Blocks as HTML, with this white space, again and again, wherever some is or could stand without showing."""
    turn = 0

    def gap(least: str = "") -> str:
        nonlocal turn
        turn += 1
        return gaps[turn % len(gaps)] or least

    def line(parts: list[tuple[str, str]], between: str) -> str:
        return between.join(f"<{tag}>{text}</{tag}>" if tag else text for tag, text in parts)

    found = []
    wrappers = {"table": "td", "ul": "li", "div": "div", "section": "div", "blockquote": "p"}
    for tag, inner in blocks:
        if tag == "pre":
            found.append(f"<pre>{chr(10).join(line(parts, ' ') for parts in inner)}</pre>")
            continue
        row = {"table": "<tr>", "ul": ""}.get(tag, "")
        wrap = wrappers.get(tag, "span")
        parts = []
        for parts_ in inner:
            text = line(parts_, gap(" "))
            is_block = wrap != "span"
            before, after = (gap(), gap()) if is_block else (" ", " ")
            parts.append(f"{before}<{wrap}>{before}{text}{after}</{wrap}>{after}")
        found.append(f"{gap()}<{tag}>{gap()}{row}{gap()}{''.join(parts)}{gap()}</{tag}>{gap()}")
    return "".join(found)


@effort(deadline=None, database=None)
@given(BLOCKS, st.lists(WHITE, min_size=1, max_size=12))
def test_markup_that_is_indented_or_wrapped_otherwise_is_the_same_page(blocks: Blocks, gaps: list[str]) -> None:
    assert hashed(written(blocks, [""])) == hashed(written(blocks, gaps))


@effort(deadline=None, database=None)
@given(BLOCKS, st.data())
def test_a_space_between_two_characters_is_another_page(blocks: Blocks, data: st.DataObject) -> None:
    # A quote of what stands elsewhere on the page is no text of it.
    assume(all(name != "blockquote" for name, _ in blocks))
    block = data.draw(st.integers(0, len(blocks) - 1))
    _, inner = blocks[block]
    line = data.draw(st.integers(0, len(inner) - 1))
    part = data.draw(st.integers(0, len(inner[line]) - 1))
    around, text = inner[line][part]
    assume(len(text) > 1)
    at = data.draw(st.integers(1, len(text) - 1))
    changed = [list(map(list, inner_)) for _, inner_ in blocks]
    changed[block][line][part] = (around, f"{text[:at]} {text[at:]}")
    others = [(name, inner_) for (name, _), inner_ in zip(blocks, changed, strict=True)]
    assert hashed(written(blocks, [""])) != hashed(written(others, [""]))
