"""Text that does not count: passages that somebody knows to differ without meaning anything.

What matches is left out before a page is compared with its last version or taken for a copy of another one. What is
stored, exported, searched or shown stays whole. All patterns run in RE2, so none can make reading slow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm.model import Substance
from inchworm.rules.text.patterns import TextPattern, compiled
from inchworm.rules.web.scope import Patterns
from inchworm.rules.web.url import path_of

_HINT = (
    "Write words, with * for anything between them, or re: and an expression; /blog/*:: before it means pages there."
)


class _Rule(NamedTuple):
    pattern: TextPattern
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
        return _Rule(compiled(written, written, _HINT), None)
    return _Rule(compiled(text, written, _HINT), Patterns((path,)))
