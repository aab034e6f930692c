"""Two lines word by word: which belong together, and which of their words differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

_ALIKE = 0.35
_MOST_PAIRS = 2_000
_MOST_EFFORT = 600_000
"""Pairs of lines, and of words, that are looked at: who writes a page must not decide how long we think about it."""

_GLANCE = 400
"""So many characters tell whether two lines are alike."""

_WORD = re.compile(r"\s+|\w+\s*|[^\w\s]\s*")


class Piece(NamedTuple):
    """A piece of a line, and whether only this side has it."""

    text: str
    is_marked: bool = False


Marked = tuple[tuple[Piece, ...], tuple[Piece, ...]]


def whole(old: str, new: str) -> Marked:
    return (Piece(old, True),), (Piece(new, True),)


def words(old: str, new: str) -> Marked:
    """Two lines, the words that differ marked; all of both where they have little in common."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, a, b)
    if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return whole(old, new)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        is_marked = tag != "equal"
        left += [Piece("".join(a[i:j]), is_marked)] if j > i else []
        right += [Piece("".join(b[k:m]), is_marked)] if m > k else []
    return tuple(left), tuple(right)


def cost(old: str | None, new: str | None) -> int:
    """Pairs of words that are looked at to tell which of them differ."""
    return len(_WORD.findall(old)) * len(_WORD.findall(new)) if old and new else 0


def replaced(old: Sequence[str], new: Sequence[str]) -> list[Marked]:
    """Lines that are gone and lines that came in their place, beside each other; the words that differ are marked. A
    side without a line has no pieces."""
    few = len(old) * len(new) <= _MOST_PAIRS
    pairs = beside(old, new) if few else zip_longest(range(len(old)), range(len(new)))
    effort, found = 0, list[Marked]()
    for i, j in pairs:
        if i is None or j is None:
            left, right = (() if at is None else (Piece(side[at], True),) for side, at in ((old, i), (new, j)))
            found.append((left, right))
            continue
        effort += cost(old[i], new[j])
        is_looked_at = old[i] and new[j] and effort <= _MOST_EFFORT
        found.append((words if is_looked_at else whole)(old[i], new[j]))
    return found


def woven(marked: Marked) -> list[str]:
    """Both versions of a line in one: what is gone in [-…-], what came in {+…+}."""
    left, right = (list(side) for side in marked)
    found: list[str] = []
    while left or right:
        if left and left[0].is_marked:
            found.append(_within("[-", left.pop(0).text, "-]"))
        elif right and right[0].is_marked:
            found.append(_within("{+", right.pop(0).text, "+}"))
        else:
            found.append(left.pop(0).text)
            right.pop(0)
    return [one for one in found if one]


def _within(begin: str, text: str, end: str) -> str:
    bare = text.rstrip()
    return f"{begin}{bare}{end}{text[len(bare) :]}" if bare else text


# ---- which lines belong together

Beside = list[tuple[int | None, int | None]]


def beside(old: Sequence[str], new: Sequence[str]) -> Beside:
    """Lines of two pieces of text by their numbers: those that are most alike beside each other, in their order; the
    others where there is room for them."""
    found: Beside = []
    last = (-1, -1)
    for i, j in [*_most_alike(old, new), (len(old), len(new))]:
        found += zip_longest(range(last[0] + 1, i), range(last[1] + 1, j))
        found.append((i, j))
        last = i, j
    return found[:-1]


def _most_alike(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which lines belong together, so that all in all as much as possible is the same."""
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    alike = [[_likeness(a, b) for b in new] for a in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + alike[i][j])
    found = []
    i = j = 0
    while i < len(old) and j < len(new):
        if alike[i][j] and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(old: str, new: str) -> float:
    likeness = difflib.SequenceMatcher(None, _WORD.findall(old[:_GLANCE]), _WORD.findall(new[:_GLANCE])).quick_ratio()
    return likeness if likeness >= _ALIKE else 0.0
