"""What the blocks of a page are, which of them go, and what is left of text, Markdown and HTML."""

from __future__ import annotations

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.page import opened
from inchworm.rules.text.blocks import MOST, PlacedBlock, blocks, leave_out, left_out
from inchworm.rules.text.recurring import NO_FRAME, Frame

LONG = "This paragraph belongs to this page alone, and has enough to say to stand for it."
NOTICE = "All manuals of the house are printed on paper that was a tree."


def parsed(html: str) -> turbohtml.Element:
    found = turbohtml.parse(f"<main>{html}</main>".encode(), detect_encoding=True).find("main")
    assert found is not None
    return found


def hash_of(html: str) -> int:
    (one,) = blocks(parsed(f"<p>{html}</p>"))
    return one.hash


def frame_of(*texts: str) -> Frame:
    return frozenset(map(hash_of, texts))


def names(html: str, *known: str) -> list[str]:
    """The blocks of a page as the texts that they say, of those."""
    by_hash = {hash_of(text): text for text in known}
    return [by_hash.get(block.hash, "?") for block in blocks(parsed(html))]


# ---- cutting


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>a</p><p>b</p>", ["a", "b"]),
        ("<h1>a</h1>b<p>c</p>d", ["a", "b", "c", "d"]),
        ("<div><div>a</div><div><section>b</section></div></div>", ["a", "b"]),
        ("<div>a <b>b</b> <i><u>c</u></i></div>", ["a b c"]),
        ("<div>a<p>b</p><span>c</span> <a href=/>d</a></div>", ["a", "b", "c d"]),
        ("<ul><li>a<li>b<ul><li>c</ul>d</ul>", ["a", "b", "c", "d"]),
        ("<dl><dt>a<dd>b<dd>c</dl>", ["a", "b", "c"]),
        ("<table><caption>a</caption><tr><th>b<td>c<tr><td>d</table>", ["a", "bc", "d"]),
        ("<table><tr><td><p>a</p><td>b</table>", ["a", "b"]),
        ("<pre>a\n  <i>b</i></pre>", ["a b"]),
        ("<span><a><p>a</p>b</a></span>c", ["a", "bc"]),
        ("<figure><img src=x><figcaption>a</figcaption></figure>", ["a"]),
        ("<p> </p><div><p></p></div><p><img src=x></p>", []),
        ("", []),
    ],
    ids=range(14),
)
def test_cutting(html: str, found: list[str]) -> None:
    assert names(html, *found) == found


def test_a_block_is_what_it_says_and_not_how_it_is_written() -> None:
    assert hash_of("a  b\n <b>c</b>") == hash_of("a b c") == hash_of("a b <span><a href=/x>c</a></span>")
    assert hash_of("a b c") != hash_of("a bc")
    assert hash_of("a b c") != hash_of("A b c")


def test_what_is_nested_or_full_beyond_reason_takes_no_time() -> None:
    assert len(blocks(parsed("<div>" * 20_000 + "deep"))) == 1
    assert len(blocks(parsed("<b>" * 5_000 + "<p>deep"))) == 1
    assert len(blocks(parsed("<p>x</p>" * 3 * MOST))) == MOST


# ---- what goes


def page(said: str) -> list[PlacedBlock]:
    """A page by words: `T` says something, `f` is frame; `2T` a heading, `:f` an announcement, `!f` stays, `Tg` in a
    group."""
    found = []
    for word in said.split():
        letter = next(one for one in word if one in "Tf")
        level = next((int(one) for one in word if one.isdigit()), 0)
        group = ord(word[-1]) if word[-1] not in "Tf" else 0
        found.append(PlacedBlock("Tf".index(letter), 100, level, ":" in word, "!" in word, group))
    return found


@pytest.mark.parametrize(
    ("said", "going"),
    [
        ("T f T", [1]),
        ("T f f", [1, 2]),
        ("T !f", []),
        ("f f f", []),
        ("2T f f", []),
        ("T 2f f", [1, 2]),
        ("T 2f T", []),
        ("T 2f", []),
        ("T 2f f 2f f", [1, 2, 3, 4]),
        ("T 2f f 3T f", [2, 4]),
        ("T 2f f 3f f", [1, 2, 3, 4]),
        ("T 2f 3f f 3T T", [2, 3]),
        ("T 3f f 2T T", [1, 2]),
        ("T 2f f 1T", [1, 2]),
        ("T :f f", [1, 2]),
        ("T :f T", []),
        ("T :f", []),
        ("T fa fa", [1, 2]),
        ("T fa Ta fa", []),
        ("T fa fa Tb fb", [1, 2]),
        ("T :fa fa", [1, 2]),
        ("T 2f fa Ta", []),
    ],
)
def test_what_goes(said: str, going: list[int]) -> None:
    assert left_out(page(said), frozenset({1})) == going


_BLOCKS = st.lists(
    st.builds(
        PlacedBlock,
        st.integers(0, 6),
        st.integers(1, 80),
        st.integers(0, 6),
        st.booleans(),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(_BLOCKS, st.frozensets(st.integers(0, 6)))
def test_only_frame_goes_and_never_all_there_is(placed: list[PlacedBlock], frame: Frame) -> None:
    going = left_out(placed, frame)
    assert all(placed[number].hash in frame and not placed[number].stays for number in going)
    if going:
        assert sum(one.size for number, one in enumerate(placed) if number not in going and not one.level) >= 32
    for group in {one.group for one in placed if one.group}:
        members = [number in going for number, one in enumerate(placed) if one.group == group and not one.level]
        assert all(members) or not any(members)
    assert left_out(placed, NO_FRAME) == []


# ---- what is left


def read(html: str, *frame: str) -> tuple[str, str, str]:
    parts = opened(f"<title>x</title><main>{html}</main>".encode(), "text/html", "http://h.test/", frame_of(*frame))
    return parts.text_alone.text, parts.markdown, parts.html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (f"<h1>One</h1><p>{LONG}</p><p>{NOTICE}</p>", f"One\n\n{LONG}"),
        (f"<h1>{NOTICE}</h1><p>{LONG}</p>", f"{NOTICE}\n\n{LONG}"),
        (f"<p>{LONG}</p><h2>{NOTICE}</h2><p>{LONG}</p>", f"{LONG}\n\n{NOTICE}\n\n{LONG}"),
        (f"<p>{LONG}</p><pre>{NOTICE}</pre>", f"{LONG}\n\n{NOTICE}"),
        (f"<p>{LONG}</p><div><div>{NOTICE} <b></b><img src=x></div></div><p>{LONG}</p>", f"{LONG}\n\n{LONG}"),
        (f"<p>{LONG}</p><ul><li>{NOTICE}<li>{NOTICE}</ul>", LONG),
        (f"<p>{LONG}</p><ul><li>{NOTICE}<li>mine</ul>", f"{LONG}\n\n* {NOTICE}\n* mine"),
        (f"<div>{LONG}<p>{NOTICE}</p></div>", LONG),
        (f"<div><p>{LONG}</p>{NOTICE}</div>", LONG),
        (f"<p>short</p><p>{NOTICE}</p>", f"short\n\n{NOTICE}"),
    ],
    ids=["text", "title", "heading", "code", "box", "list", "item", "inside", "loose", "next to nothing"],
)
def test_what_is_left(html: str, text: str) -> None:
    said, markdown, as_html = read(html, NOTICE)
    assert [line.strip("*- ") for line in said.split("\n") if line] == [
        line.strip("*- ") for line in text.split("\n") if line
    ]
    for other in (markdown, as_html):
        assert (NOTICE in other) == (NOTICE in text)
        assert (LONG in other) == (LONG in text)


def test_nothing_empty_is_left_behind() -> None:
    html = f"<p>{LONG}</p><section><div><ul><li><a href=/x>{NOTICE}</a></ul></div></section>"
    _, markdown, as_html = read(html, NOTICE)
    assert markdown.strip() == LONG
    assert "section" not in as_html


def test_how_many_went_is_told() -> None:
    part = parsed(f"<p>{LONG}</p><p>{NOTICE}</p><hr><p>{NOTICE}</p>")
    assert leave_out(part, frame_of(NOTICE)).left_out == 2
    assert leave_out(part, frame_of(NOTICE)).left_out == leave_out(part, NO_FRAME).left_out == 0


def test_what_is_no_html_has_no_blocks() -> None:
    parts = opened(f"{LONG}\n\n{NOTICE}".encode(), "text/plain", "http://h.test/", frame_of(NOTICE))
    assert list(parts.blocks) == []
    assert parts.left_out == 0
    assert NOTICE in parts.text_alone.text


def test_large_pages_lack_it_too() -> None:
    """They are read by another process."""
    filler = "".join(f"<p>{LONG} {number}</p>" for number in range(12_000))
    body = f"<main>{filler}<p>{NOTICE}</p></main>".encode()
    frame = frame_of(NOTICE)
    parts = opened(body, "text/html", "http://h.test/", frame)
    assert type(parts).__name__ == "ApartDocument"
    assert parts.left_out == 0, "it stands behind the last block that is looked at"
    body = f"<main><p>{NOTICE}</p>{filler}</main>".encode()
    parts = opened(body, "text/html", "http://h.test/", frame)
    assert parts.left_out == 1
    assert parts.blocks[0].hash in frame
    assert NOTICE not in parts.text_alone.text + parts.markdown


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c d", "e"]), max_size=8), st.frozensets(st.sampled_from(["a", "b", "c d"])))
def test_reading_without_a_frame_changes_nothing(texts: list[str], frame: frozenset[str]) -> None:
    html = f"<p>{LONG}</p>" + "".join(f"<div><p>{text}</p></div>" for text in texts)
    kept = [f"<p>{LONG}</p>", *(f"<div><p>{text}</p></div>" for text in texts if text not in frame)]
    assert read(html) == read(html, "nowhere to be seen")
    assert read(html, *frame)[:2] == read("".join(kept))[:2]
