"""Tables that fit their terminal and lose nothing: what has no room in its row stands below it, by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inchworm.cli.screen.door import columns, paragraph, say
from inchworm.rules.web.url import shorten

_GAP = "  "
_LEAST = 20
"""The column that gives way is not made narrower than this."""


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], gives: str = "", notes: Sequence[str] = ()) -> None:
    """Rows in columns as wide as what stands in them; numbers to the right. Where a row is too long the column that
    `gives` is shortened, and then the last columns go below. `notes` are what else is said of each row."""
    names = [name.replace("_", " ") for name in heads]
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *texts, strict=True)]
    giving = heads.index(gives) if gives else -1
    kept = _fit(widths, giving)
    right = [all(_is_number(row[at]) for row in rows) for at in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        shown = (shorten(cells[at], widths[at]) for at in kept)
        return _GAP.join(
            cell.rjust(widths[at]) if right[at] else cell.ljust(widths[at])
            for at, cell in zip(kept, shown, strict=True)
        ).rstrip()

    say(line([name.upper() for name in names]))
    for number, row in enumerate(texts):
        say(line(row))
        below = [f"{names[at]} {row[at]}" for at in range(len(heads)) if at not in kept and row[at]]
        for text in (", ".join(below), notes[number] if notes else ""):
            paragraph(text, widths[0] + len(_GAP))


def _fit(widths: list[int], giving: int) -> list[int]:
    """Which columns have room in a row. The one that gives way is made as narrow as it must be."""
    room, kept = columns(), list(range(len(widths)))

    def missing() -> int:
        return sum(widths[at] + len(_GAP) for at in kept) - len(_GAP) - room

    wished = widths[giving]
    if giving >= 0 and missing() > 0:
        widths[giving] = max(min(wished, _LEAST), wished - missing())
    while missing() > 0 and (movable := [at for at in kept[1:] if at != giving]):
        kept.remove(movable[-1])
    if giving >= 0:
        widths[giving] = min(wished, widths[giving] - min(0, missing()))
    return kept


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int) or cell == "-"


def _text(cell: Any) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
