"""What has to have changed for people to be told: conditions that somebody names, one of which has to hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from inchworm.errors import WrongUse
from inchworm.model import Counters
from inchworm.rules.text.patterns import TextPattern, compiled
from inchworm.rules.web.url import shorten

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%")
_TEXT = "text:"
_HINT = (
    "Write 5% for more than so many of the pages, or text: and words with * (or re: and an expression) for what came or"
    " went: text:price * euro"
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions as they were named; without any, all that changed is told."""

    named: tuple[str, ...] = ()
    _shares: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _patterns: tuple[TextPattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shares, patterns = list[float](), list[TextPattern]()
        for one in self.named:
            if one.startswith(_TEXT):
                patterns.append(compiled(one.removeprefix(_TEXT), one, _HINT))
            elif (share := _SHARE.fullmatch(one.strip())) and float(share[1]) < 100:
                shares.append(float(share[1]) / 100)
            else:
                raise WrongUse(f"{shorten(one, 200)!r} is no condition.", _HINT)
        object.__setattr__(self, "_shares", tuple(shares))
        object.__setattr__(self, "_patterns", tuple(patterns))

    @property
    def ask_for_text(self) -> bool:
        return bool(self._patterns)

    def hold_by_number(self, counters: Counters) -> bool:
        """Whether enough pages changed, or nothing was named."""
        changed = counters.new + counters.modified + counters.deleted
        pages = changed + counters.unchanged + counters.unknown
        return not self.named or any(changed > share * pages for share in self._shares)

    def hold_by_text(self, texts: Iterable[str | None]) -> bool:
        """Whether what came or went has one of the texts. None among them is what nobody could read: it might have."""
        return any(text is None or self._match(text) for text in texts)

    def _match(self, text: str) -> bool:
        return any(pattern.search(text) is not None for pattern in self._patterns)


def refuse_wrong(named: Sequence[str]) -> None:
    """Say what is wrong with conditions before they are needed."""
    Conditions(tuple(named))
