"""Patterns of text that people write: words with `*`, or `re:` and an expression. All of them run in RE2, so none can
make reading slow."""

from __future__ import annotations

import re
from typing import Protocol, cast

import re2

from inchworm.errors import WrongUse
from inchworm.rules.web.url import shorten

_MOST = 200
_REGEX_BYTES = 8_000_000


class TextPattern(Protocol):
    """A pattern, compiled."""

    def sub(self, repl: str, text: str) -> str: ...

    def search(self, text: str) -> object | None: ...


def compiled(text: str, written: str, hint: str) -> TextPattern:
    """A pattern; what is wrong with it is told with all that was `written`, and a hint."""
    regex = text[3:] if text.startswith("re:") else _regex_of_words(text)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _REGEX_BYTES
    try:
        found = cast(TextPattern, re2.compile(regex, options))
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if isinstance(error, re2.error) else "it is not text"
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise WrongUse(f"the pattern {shorten(repr(written), 200)} cannot be used: {said}", hint) from error
    if found.search("") is not None:
        raise WrongUse(f"the pattern {shorten(repr(written), 200)} matches where nothing is.", hint)
    return found


def _regex_of_words(text: str) -> str:
    """Words however they are spaced, and between two of them at a `*` anything, but not much."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in text.strip("* ").split("*"))
    return rf"\s*(?s:.{{0,{_MOST}}}?)\s*".join(parts)
