"""A page block by block."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.page.test_main_part import LINKS, STORY
from tests.rules.page.test_reading_quality import BLOCKS, HTML

from inchworm.rules.page.parse import comments_of, found_in, text_of
from inchworm.rules.text.fates import BlockFate, fates


def told(markup: str) -> list[BlockFate]:
    return fates(found_in(markup.encode(), HTML))


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("<nav>GONE</nav>", "tag or role"),
        ("<div class=sidebar>GONE</div>", "called as frames are"),
        ("<div class=byline>GONE</div>", "small and called"),
        ("<div hidden>GONE</div>", "hides it"),
        ("<select><option>GONE</select>", "choosing"),
        ("<div class=comments>GONE</div>", "readers wrote it"),
        ("<h3>Related articles</h3><div>GONE</div><h2>Sources</h2>", "its heading"),
        (f"<ul><li><a href=/g>GONE</a>{LINKS}</ul>", "mostly links"),
    ],
)
def test_why_a_block_is_no_text(block: str, why: str) -> None:
    gone = [one for one in told(f"<main><h1>Whitby</h1>{STORY}{block}{STORY}</main>") if "GONE" in one.begins]
    assert [why in one.why for one in gone] == [True]
    assert not gone[0].kept


def test_what_is_around_the_main_part() -> None:
    page = f"<div class=page><div class=x>GONE</div><main><h1>Whitby</h1>{STORY}</main></div>"
    assert [(one.kept, one.element) for one in told(page)][:2] == [(False, "div.x"), (True, "h1")]
    assert "outside" in told(page)[0].why


@settings(max_examples=100, deadline=None)
@given(st.lists(BLOCKS, max_size=6).map("".join))
def test_the_blocks_that_are_kept_are_the_text(markup: str) -> None:
    page = f"<title>no</title><body>{markup}".encode()
    found = found_in(page, HTML)
    words = "".join(found.words.split())
    kept = [one for one in fates(found) if one.kept]
    assert "".join("".join(one.begins.split()) for one in kept) == words or any(one.characters > 200 for one in kept)


def test_comments_are_a_part_of_their_own() -> None:
    page = f"<main><h1>Whitby</h1>{STORY}<div class=comments><p>I saw it.</p><p>Me too.</p></div></main>".encode()
    assert comments_of(page, HTML).split() == ["I", "saw", "it.", "Me", "too."]
    assert "saw it" not in text_of(page, HTML)
