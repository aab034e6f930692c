"""The identity of content."""

from __future__ import annotations

import hashlib

import turbohtml
from hypothesis import given
from hypothesis import strategies as st

from inchworm.rules.text.content import MIN_TEXT, READER, as_written, fingerprint, text_hash
from inchworm.settings import Settings

LONG = "the quick brown fox jumps over the lazy dog, again and again and again, until the evening comes"


def test_title_and_text_count_and_the_body_does_not() -> None:
    assert text_hash("Foxes", LONG, b"one") == text_hash("Foxes", LONG, b"two")
    assert text_hash("", LONG, b"") != text_hash("", LONG + "!", b"")
    assert text_hash("Foxes", LONG, b"") != text_hash("Dogs", LONG, b"")


def test_white_space_counts() -> None:
    assert text_hash("", LONG.replace("quick brown", "quickbrown"), b"") != text_hash("", LONG, b"")
    assert text_hash("", LONG.replace("quick brown", "quick\nbrown"), b"") != text_hash("", LONG, b"")


@given(st.text(st.characters()))
def test_of_lines_as_written_only_what_nobody_sees_is_dropped(text: str) -> None:
    written = as_written(text)
    assert as_written(written) == written
    assert "".join(written.split()) == "".join(text.split())
    shown = [line.rstrip() for line in text.split("\n")]
    assert written.split("\n") == shown[: len(written.split("\n"))]
    assert not any(shown[len(written.split("\n")) :])


def test_with_next_to_no_text_the_body_counts() -> None:
    almost = "x" * (MIN_TEXT - 1)
    assert text_hash("a", almost, b"one") == text_hash("b", "", b"one") == hashlib.sha256(b"one").digest()
    assert text_hash("", almost + " " * 100, b"one") != text_hash("", almost + " " * 100, b"two")
    assert text_hash("", almost + "x", b"one") == text_hash("", almost + "x", b"two")


@given(st.text(st.characters()), st.text(st.characters()), st.binary())
def test_anything_has_a_hash(title: str, text: str, body: bytes) -> None:
    assert len(text_hash(title, text, body)) == 32


def test_the_fingerprint_names_all_that_changes_a_reading() -> None:
    usual = fingerprint(Settings())
    assert READER in usual
    assert turbohtml.__version__ in usual
    others = {fingerprint(Settings(resources=True)), fingerprint(Settings(drop_params=("a",)))}
    assert len({usual, *others}) == 3
    assert fingerprint(Settings(workers=40)) == usual
