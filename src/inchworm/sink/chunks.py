"""Pages as chunks for retrieval: JSON lines, one per piece of a page (`rules.text.chunks`).

The id of a chunk is made of its page, its text, and which of the equal texts of that page it is. So it stays the same
as long as these do, wherever in the page the text stands. Whoever follows a crawl replaces, for every `canonical_url`
that is told, all chunks of it by those that come.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from inchworm.errors import WrongUse
from inchworm.page import Page
from inchworm.rules.text import chunks as rules
from inchworm.rules.text.chunks import LEAST, Limits
from inchworm.rules.words.times import iso
from inchworm.sink.columns import as_json

CHARACTERS, TOKENS = 1_500, 400
"""How large a chunk may be unless somebody says so, in characters and in tokens."""

_LONGEST_TOKEN = 20
_ID_DIGITS = 32
_WITHOUT_HEADINGS = ("text/plain", "text/csv", "application/json", "application/xml", "text/xml")


def limits(size: int, overlap: int, tokenizer: str = "") -> Limits:
    """What the user says, or what is usual. With a tokenizer, which is a file, tokens are counted."""
    most = size or (TOKENS if tokenizer else CHARACTERS)
    if most < LEAST:
        raise WrongUse(f"Chunks of {most:,} are too small.", f"Let them have {LEAST} at least.")
    if not 0 <= overlap < most:
        raise WrongUse(f"Chunks of {most:,} cannot overlap by {overlap:,}.", "Take less, or larger chunks.")
    if not tokenizer:
        return Limits(most, overlap)
    return Limits(most, overlap, _counter(Path(tokenizer)), _LONGEST_TOKEN)


def _counter(path: Path) -> Callable[[str], int]:
    """How many tokens a text has."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise WrongUse("Counting tokens needs tokenizers.", "Install it: pip install 'inchworm[tokens]'") from error
    try:
        found = Tokenizer.from_str(path.read_text("utf-8"))
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}.", "Give the tokenizer.json of a model.") from error
    except Exception as error:  # the package raises nothing more special
        raise WrongUse(f"{path} is no tokenizer: {error}.", "Give the tokenizer.json of a model.") from error
    # A file may say that texts are to be cut or filled up, and then every one would have the same length.
    found.no_truncation()
    found.no_padding()
    return lambda text: len(found.encode(text, add_special_tokens=False).ids)


def chunks(pages: Iterable[Page], most: Limits, out: BinaryIO, tells_all: bool = False) -> int:
    """One JSON object per chunk. `tells_all`: a page without any is told as well, by one without text."""
    count = 0
    for page in pages:
        for row in _rows(page, most, tells_all):
            out.write(as_json(row).encode("utf-8", "replace") + b"\n")
            count += 1
    return count


class _About(NamedTuple):
    """What every chunk of a page says of its page: what stands before its text, and behind it."""

    before: dict[str, Any]
    behind: dict[str, Any]


def _rows(page: Page, most: Limits, tells_all: bool) -> Iterator[dict[str, Any]]:
    about, seen = _about(page), Counter[str]()
    url = about.before["canonical_url"]
    for position, piece in enumerate(_cut(page, most)):
        digest = hashlib.sha256(piece.text.encode()).hexdigest()
        name = f"{url}\n{digest}\n{seen[digest]}".encode("utf-8", "replace")
        seen[digest] += 1
        yield {
            "id": hashlib.sha256(name).hexdigest()[:_ID_DIGITS],
            **about.before,
            "headings": piece.headings,
            "text": piece.text,
            "position": position,
            "hash": digest,
            **about.behind,
        }
    if not seen and tells_all:
        nothing = {"headings": (), "text": None, "position": None, "hash": None}
        yield {"id": None, **about.before, **nothing, **about.behind}


def _about(page: Page) -> _About:
    record = page.record
    at_ms = record.get("at_ms")
    return _About(
        {"url": page.url, "canonical_url": record.get("canonical_url", page.url), "title": page.title or None},
        {"fetched_at": None if at_ms is None else iso(at_ms), "change": record.get("change")},
    )


def _cut(page: Page, most: Limits) -> Iterator[rules.Chunk]:
    if page.is_gone or page.is_lost:
        return iter(())
    text = (page.markdown or page.text).encode("utf-8", "replace").decode()
    kind = page.content_type.partition(";")[0].strip().lower()
    return rules.cut(text, most, kind not in _WITHOUT_HEADINGS)
