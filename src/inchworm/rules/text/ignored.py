"""Text that does not count: passages that somebody knows to differ without meaning anything.

What matches is left out before a page is compared with its last version or taken for a copy of another one. What is
stored, exported, searched or shown stays whole. All patterns run in RE2, so none can make reading slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

import re2

from inchworm.errors import WrongUse
from inchworm.model import Substance
from inchworm.rules.web.scope import Patterns
from inchworm.rules.web.url import path_of, shorten

_HINT = (
    "Write words, with * for anything between them, or re: and an expression; /blog/*:: before it means pages there."
)
_MOST = 200
_REGEX_BYTES = 8_000_000


class _TextPattern(Protocol):
    def sub(self, repl: str, text: str) -> str: ...


class _Rule(NamedTuple):
    pattern: _TextPattern
    paths: Patterns | None

    def holds_at(self, url: str) -> bool:
        return self.paths is None or self.paths.reason(path_of(url)) is None


@dataclass(frozen=True, slots=True)
class IgnoredText:
    """Patterns of what does not count, as a run has them: words with `*`, or `re:` and an expression; perhaps with a
    path and `::` before."""

    patterns: tuple[str, ...] = ()
    _rules: tuple[_Rule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rules", tuple(map(_rule, self.patterns)))

    def without(self, text: str, url: str) -> str:
        """A text of the page at this URL without what does not count in it."""
        for rule in self._rules:
            if rule.holds_at(url):
                text = rule.pattern.sub("", text)
        return text

    def substance(self, found: Substance, url: str) -> Substance:
        """What makes a page what it is, without what does not count."""
        if not self._rules:
            return found
        return found._replace(title=self.without(found.title, url), text=self.without(found.text, url))


def _rule(written: str) -> _Rule:
    path, has_path, text = written.partition("::")
    if not (has_path and path.startswith("/")):
        return _Rule(_compiled(written, written), None)
    return _Rule(_compiled(text, written), Patterns((path,)))


def _compiled(text: str, written: str) -> _TextPattern:
    regex = text[3:] if text.startswith("re:") else _regex_of_words(text)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _REGEX_BYTES
    try:
        compiled = re2.compile(regex, options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if isinstance(error, re2.error) else "it is not text"
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise WrongUse(f"the pattern {shorten(repr(written), 200)} cannot be used: {said}", _HINT) from error
    if compiled.search("") is not None:
        raise WrongUse(f"the pattern {shorten(repr(written), 200)} matches where nothing is.", _HINT)
    return cast(_TextPattern, compiled)


def _regex_of_words(text: str) -> str:
    """Words however they are spaced, and between two of them at a `*` anything, but not much."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in text.strip("* ").split("*"))
    return rf"\s*(?s:.{{0,{_MOST}}}?)\s*".join(parts)
