"""Texts cut into pieces: none too large, nothing lost, and what changes elsewhere changes nothing here."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.text.chunks import LEAST, LONGEST_HEADING, Limits, cut

SMALL = Limits(60)


def texts(text: str, limits: Limits = SMALL, has_headings: bool = True) -> list[str]:
    return [piece.text for piece in cut(text, limits, has_headings)]


def headings(text: str, limits: Limits = SMALL) -> list[tuple[str, ...]]:
    return [piece.headings for piece in cut(text, limits)]


# Where it is cut


def test_a_short_text_is_one_piece():
    assert list(cut("One.\n\nTwo.", SMALL)) == [((), "One.\n\nTwo.")]
    assert texts("") == texts(" \n\n\t\n") == []


def test_every_heading_begins_a_piece():
    text = "before\n\n# A\n\nof a\n\n## B\n\nof b\n\n### C\nof c\n\n## D\n\nof d\n\n# E\n\nof e"
    assert list(cut(text, SMALL)) == [
        ((), "before"),
        (("A",), "# A\n\nof a"),
        (("A", "B"), "## B\n\nof b"),
        (("A", "B", "C"), "### C\nof c"),
        (("A", "D"), "## D\n\nof d"),
        (("E",), "# E\n\nof e"),
    ]


def test_a_heading_goes_with_what_is_below_it():
    assert list(cut("# A\n\n## B\n\ntext", SMALL)) == [(("A", "B"), "# A\n\n## B\n\ntext")]
    assert texts("## A\n\n# B\n\ntext\n\n# C") == ["## A", "# B\n\ntext", "# C"], "but not with what is not"
    long = "word " * 30
    assert texts(f"# A heading\n\n{long}")[0].startswith("# A heading\n\nword")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("# A", "A"),
        ("#\tA #", "A"),
        ("# The [guide](http://a.test/x) ##", "The guide"),
        ("# **Bold** and `code`", "Bold and code"),
        (r"# 5 \* 3 \# 2", "5 * 3 # 2"),
        ("# ![logo](http://a.test/x.png) A", "logo A"),
        ("# " + "x" * 5000, "x" * LONGEST_HEADING),
    ],
)
def test_headings_are_told_as_people_read_them(line, name):
    assert headings(f"{line}\n\ntext", Limits(10_000)) == [(name,)]


@pytest.mark.parametrize("line", ["#A", "####### A", r"\# A", " # A", "a # b", "#hash #tag"])
def test_what_is_no_heading(line):
    assert headings(f"{line}\n\ntext") == [()]


def test_a_heading_without_words_is_none():
    assert headings("# A\n\na\n\n##\n\nb") == [("A",), ("A",)]


def test_code_is_no_heading_and_no_paragraph():
    code = "```sh\n# install\n\n# run\n```"
    assert texts(f"Do this:\n\n{code}") == [f"Do this:\n\n{code}"]
    padded = "words before it " * 3
    assert texts(f"{padded}\n\n{code}") == [padded.strip(), code], "nothing is cut inside"
    assert headings("~~~\n# a\n```\n# b\n~~~\n\n# C\n\nc") == [(), ("C",)]
    assert headings("- item\n\n  ````\n  ```\n# no\n  ````\n\n# C\n\nc") == [(), ("C",)]


def test_between_paragraphs_first():
    one, two, three = "First words here.", "Second words are here.", "Third words. And more."
    assert texts("\n\n".join((one, two, three)), Limits(45)) == [f"{one}\n\n{two}", three]
    assert texts("\n\n".join((one, two, three)), Limits(30)) == [one, two, three]


def test_lists_and_tables_between_lines():
    lines = [f"- item number {number}" for number in range(9)]
    found = texts("\n".join(lines), Limits(40))
    assert [line for piece in found for line in piece.split("\n")] == lines and len(found) == 5
    rows = ["| name | value |", "| --- | --- |", *(f"| {number} | {number * number} |" for number in range(20))]
    assert "\n".join(texts("\n".join(rows), Limits(50))) == "\n".join(rows)


def test_long_code_between_lines_with_its_indentation():
    code = ["```", *(f"    line {number} of it" for number in range(9)), "```"]
    found = texts("\n".join(code), Limits(50))
    assert len(found) > 3 and "\n".join(found) == "\n".join(code)


def test_then_between_sentences():
    text = 'It is so. Is it? "It is." Yes! And so on it goes, and on. 一つ。二つ。'
    assert texts(text, Limits(LEAST)) == [
        "It is so. Is it?",
        '"It is." Yes!',
        "And so on it goes,",
        "and on. 一つ。二つ。",
    ]


def test_then_between_words_and_at_last_anywhere():
    assert texts("one two three four five six seven", Limits(LEAST)) == ["one two three four", "five six seven"]
    assert texts("x" * 50, Limits(LEAST)) == ["x" * 20, "x" * 20, "x" * 10]
    assert texts("e\u0301" * 15 + "x", Limits(21))[0] == "e\u0301" * 10, "a letter keeps its accent"
    family = "👩\u200d👩\u200d👧"
    assert texts(family * 6, Limits(22))[0] == family * 4


def test_a_text_without_headings_has_none():
    assert list(cut("# a\n\n# b", Limits(60), has_headings=False)) == [((), "# a\n\n# b")]


# Overlap


def test_sentences_are_carried_over():
    text = "One is one. Two is two. Three is three. Four is four. Five is five."
    assert texts(text, Limits(40, 16)) == [
        "One is one. Two is two. Three is three.",
        "Three is three. Four is four.",
        "Four is four. Five is five.",
    ]


def test_or_words_or_nothing():
    words = " ".join(f"word{number}" for number in range(10, 24))
    first, second, *_ = texts(words, Limits(40, 15))
    assert first.endswith("word13 word14") and second.startswith("word13 word14 word15")
    assert texts("x" * 50, Limits(LEAST, 10)) == ["x" * 20, "x" * 20, "x" * 10]


def test_nothing_is_carried_over_a_heading():
    assert texts("# A\n\nOne. Two.\n\n# B\n\nThree.", Limits(40, 20)) == ["# A\n\nOne. Two.", "# B\n\nThree."]


# Whatever the text

MARKS = [
    "\n", "\n\n", " ", "\n# ", "\n## ", "\n### ", "```\n", "\n~~~\n", "\n| a | b |\n", "\n- ", ". ", "! ", "。",
    "\t", "\r\n", "\\", "[a](http://a.test/)", "**", "`", "\u00a0", "\u2028", "\x0b", "e\u0301", "👩\u200d👩", "\0",
]  # fmt: skip
any_text = st.lists(st.sampled_from(MARKS) | st.text(max_size=30) | st.sampled_from(["word", "x" * 70])).map("".join)
any_limits = st.integers(LEAST, 200).flatmap(lambda most: st.integers(0, most - 1).map(lambda less: Limits(most, less)))
PLACES = re.compile(r"\s+")


def in_words(text: str) -> int:
    """A measure as tokenizers have: a word is one, or more when it is long."""
    return sum(1 + len(word) // 8 for word in re.findall(r"\w+|[^\w\s]", text))


@effort(max_examples=400, database=None)
@given(any_text, any_limits, st.booleans())
@example("\r\n" * 30, Limits(20, 0), True)
def test_no_piece_is_too_large_and_nothing_is_lost(text, limits, has_headings):
    for how in (limits, limits._replace(measure=in_words, longest=20)):
        found = texts(text, how, has_headings)
        assert all(piece.strip() and how.measure(piece) <= how.most for piece in found)
        at = 0
        for piece in found:
            where = text.find(piece, at)
            assert where >= 0, "a piece stands in the text, and not before the one before it"
            at = where
    whole = texts(text, Limits(limits.most), has_headings)
    assert PLACES.sub("", "".join(whole)) == PLACES.sub("", text), "without overlap each character comes once"


@effort(max_examples=200, database=None)
@given(st.lists(st.text("ab. \n", min_size=1, max_size=12).filter(str.strip), max_size=40), any_limits)
def test_every_word_is_in_some_piece(words, limits):
    text = " ".join(words)
    told = {word for piece in texts(text, limits) for word in piece.split()}
    assert {word for word in text.split() if len(word) <= LEAST} <= told


sections = st.lists(
    st.builds(
        lambda level, name, text: f"{'#' * level} {name}\n\n{text}\n\n",
        st.integers(1, 4),
        st.text("abc", min_size=1, max_size=5),
        st.text("xyz. \n", max_size=200).map(lambda text: f"t{text}"),
    ),
    max_size=8,
)


@effort(max_examples=200, database=None)
@given(sections, sections, sections, any_limits)
def test_what_is_put_in_or_taken_out_elsewhere_changes_no_text(before, new, after, limits):
    without = texts("".join(before + after), limits)
    with_new = texts("".join(before + new + after), limits)
    assert with_new == texts("".join(before), limits) + texts("".join(new), limits) + texts("".join(after), limits)
    assert without == texts("".join(before), limits) + texts("".join(after), limits)


HOSTILE = {
    "no space": "x" * 2_000_000,
    "only space": " " * 2_000_000 + "x",
    "words": "word " * 400_000,
    "sentences": "A sentence. " * 150_000,
    "rows": "| a | b |\n" * 200_000,
    "fences": "```\n" * 400_000,
    "marks": "e" + "\u0301" * 1_000_000,
    "blank lines": "a\n\n" * 600_000,
    "one heading": "# " + "[" * 1_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_long_texts_take_time_in_proportion(text):
    began = time.process_time()
    assert all(len(piece) <= 1500 for piece in texts(text, Limits(1500, 200)))
    assert time.process_time() - began < 20
