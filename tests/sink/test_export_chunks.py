"""Pages as chunks: what each says of itself, ids that last, and tokens counted by somebody's own tokenizer."""

from __future__ import annotations

import builtins
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from tests.sink.pages import page_of
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from inchworm.errors import WrongUse
from inchworm.page import Page
from inchworm.sink import export

VISIT = {
    "url": "http://a.test/x", "request_url": "http://a.test/x/", "outcome": "page", "at_ms": 1_767_225_600_123,
    "title": "Title", "change": None,
}  # fmt: skip
BODY = b"<h1>A</h1><p>Of a.</p><h2>B</h2><p>Of b.</p>"


def rows(*pages: Page, tells_all: bool = False, **wanted: Any) -> list[dict[str, Any]]:
    out, limits = io.BytesIO(), export.limits(wanted.pop("size", 0), wanted.pop("overlap", 0), **wanted)
    count = export.chunks(pages, limits, out, tells_all)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(found) == count
    return found


def html(*parts: str) -> bytes:
    return "".join(f"<h2>{name}</h2><p>{name} is told here.</p>" for name in parts).encode()


def test_a_chunk_says_where_it_is_from():
    first, second = rows(page_of(VISIT, BODY))
    assert first == {
        "id": first["id"], "url": "http://a.test/x/", "canonical_url": "http://a.test/x", "title": "Title",
        "headings": ["A"], "text": "# A\n\nOf a.", "position": 0, "hash": hashlib.sha256(b"# A\n\nOf a.").hexdigest(),
        "fetched_at": "2026-01-01T00:00:00.123Z", "change": None,
    }  # fmt: skip
    assert (second["headings"], second["text"], second["position"]) == (["A", "B"], "## B\n\nOf b.", 1)
    assert len(first["id"]) == 32 and first["id"] != second["id"]


def test_ids_last():
    """They are in other people's databases."""
    assert [row["id"] for row in rows(page_of(VISIT, BODY))] == [
        "8ea83e23c91e5b7f68b8ba7b4b076e30",
        "1b2713e3f0e7c94e6ec48b26c0744f21",
    ]


def test_ids_do_not_depend_on_where_a_text_stands():
    before = {row["text"]: row["id"] for row in rows(page_of(VISIT, html("one", "two", "three")))}
    after = {row["text"]: row["id"] for row in rows(page_of(VISIT, html("new", "three", "one", "two")))}
    assert before.items() < after.items()
    elsewhere = rows(page_of({**VISIT, "url": "http://a.test/y"}, html("one", "two")))
    assert {row["id"] for row in elsewhere}.isdisjoint(before.values()), "the same text on another page is another"


@effort(max_examples=100, database=None)
@given(
    st.lists(st.sampled_from(["one", "two", "three"]), max_size=6), st.integers(0, 6), st.sampled_from(["one", "new"])
)
def test_ids_are_unique_and_stay_when_something_is_put_in(parts, place, new):
    before = [row["id"] for row in rows(page_of(VISIT, html(*parts)))]
    after = [row["id"] for row in rows(page_of(VISIT, html(*parts[:place], new, *parts[place:])))]
    assert len(set(after)) == len(after) == len(before) + 1
    assert set(before) < set(after)


def test_a_page_without_text_is_told_to_whoever_follows():
    gone = page_of({**VISIT, "outcome": "deleted", "change": "deleted"}, None)
    empty = page_of({**VISIT, "change": "modified"}, b"<p></p>")
    lost = page_of({**VISIT, "change": "new"}, None)
    assert rows(gone, empty, lost) == []
    told = rows(gone, empty, lost, tells_all=True)
    assert [row["change"] for row in told] == ["deleted", "modified", "new"]
    for row in told:
        assert (row["id"], row["text"], row["position"], row["hash"], row["headings"]) == (None, None, None, None, [])
        assert row["canonical_url"] == "http://a.test/x"


def test_plain_text_has_no_headings():
    script = b"# install\nmake\n\n# run\nmake run\n"
    page = Page(
        "http://a.test/x.sh", "text/plain; charset=utf-8", lambda: script, {"canonical_url": "http://a.test/x.sh"}
    )
    (row,) = rows(page)
    assert (row["headings"], row["text"]) == ([], script.decode().strip())


def test_any_text_can_be_written():
    body = "<meta charset=utf-8><p>half \ud800 of \x00 \u2028 😀".encode("utf-8", "surrogatepass")
    (row,) = rows(page_of(VISIT, body))
    assert "😀" in row["text"] and row["hash"] == hashlib.sha256(row["text"].encode()).hexdigest()


@pytest.mark.parametrize(("size", "overlap"), [(19, 0), (-1, 0), (100, 100), (100, 101), (100, -1), (0, 1500)])
def test_sizes_that_make_no_sense(size, overlap):
    with pytest.raises(WrongUse):
        export.limits(size, overlap)


# Tokens


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """Words are tokens. It says that texts are to be cut off and filled up, as those of models do."""
    words = {word: number for number, word in enumerate(["[UNK]", "[PAD]", *map(str, range(1000))])}
    made = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.enable_truncation(8)
    made.enable_padding(length=8)
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return str(path)


def test_tokens_are_counted_by_the_tokenizer_that_is_named(tokenizer):
    numbers = [str(number) for number in range(900)]
    found = rows(page_of(VISIT, f"<p>{' '.join(numbers)}</p>".encode()), tokenizer=tokenizer)
    assert [len(row["text"].split()) for row in found] == [400, 400, 100]
    found = rows(page_of(VISIT, f"<p>{' '.join(numbers)}</p>".encode()), size=100, overlap=10, tokenizer=tokenizer)
    assert [row["text"].split()[0] for row in found] == [str(number) for number in range(0, 900, 90)]
    assert {len(row["text"].split()) for row in found[:-1]} == {100}


def test_a_file_that_is_no_tokenizer(tmp_path):
    wrong = tmp_path / "x.json"
    for content in (b"{}", b"\xff", b"[]"):
        wrong.write_bytes(content)
        with pytest.raises(WrongUse, match="no tokenizer"):
            export.limits(100, 0, str(wrong))
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(WrongUse, match="cannot be read"):
            export.limits(100, 0, str(path))


def test_without_the_package(tokenizer, monkeypatch):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "tokenizers":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(WrongUse, match="needs tokenizers") as error:
        export.limits(100, 0, tokenizer)
    assert "inchworm[tokens]" in error.value.hint
