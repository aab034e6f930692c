"""A page cut into pieces of a bounded size, for retrieval: at headings, then between paragraphs, and where that is not
enough at lines, sentences, words, and at last anywhere.

A piece is a stretch of the text as it stands, so nothing is lost and nothing is made up. It never reaches over a
heading, except one with nothing below it but the next: so what is written into one part of a page leaves the pieces of
the others as they were.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

LEAST = 20
"""A piece that may be smaller than this would hold nothing."""

LONGEST_HEADING = 200
_BEYOND = 100
_LONGEST_CHARACTER = 20

_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"""[.!?…][)\]"'”’»*_`]*\s+|[。！？]|\n""")
_WORD = re.compile(r"\s+")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARK = re.compile(r"\\([!-/:-@\[-`{-~])|[*`]+")


class Limits(NamedTuple):
    """How large a piece may be, how much of the one before it may begin with, and in what that is counted: characters,
    or whatever `measure` counts. `longest`: so many characters are looked at for one of those, so that no text, however
    it is made, is measured again and again."""

    most: int
    overlap: int = 0
    measure: Callable[[str], int] = len
    longest: int = 1


class Chunk(NamedTuple):
    """A piece of a text, and the headings it stands under, outermost first."""

    headings: tuple[str, ...]
    text: str


class _Section(NamedTuple):
    """What stands under one heading: where it begins and ends, where its text begins, and where its paragraphs end."""

    start: int
    end: int
    body: int
    paragraphs: list[int]
    headings: tuple[str, ...]


def cut(text: str, limits: Limits, has_headings: bool = True) -> Iterator[Chunk]:
    """The pieces of a text, in its order. Without headings, what looks like one is text."""
    for section in _sections(text, has_headings):
        for start, end in _stretches(text, section, limits):
            if piece := _trimmed(text[start:end]):
                yield Chunk(section.headings, piece)


def _trimmed(text: str) -> str:
    """Without blank lines before and white space behind. The first line keeps its indentation: it may be code."""
    text = text.rstrip()
    indent = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, indent) + 1 :] if indent else text


# ---- headings and paragraphs


def _sections(text: str, has_headings: bool) -> Iterator[_Section]:
    """Code is told from headings and paragraphs by the fences around it."""
    path: list[tuple[int, str]] = []
    start = at = 0
    body, paragraphs, fence = -1, list[int](), ""
    for line in text.split("\n"):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif has_headings and line[:1] == "#" and (found := _HEADING.fullmatch(line)):
            level = len(found[1])
            if body >= 0 or (path and level <= path[-1][0]):
                yield _Section(start, at, body, paragraphs, _names(path))
                start, body, paragraphs = at, -1, []
            path = [one for one in path if one[0] < level]
            path.append((level, _plain(found[2] or "")))
            at += len(line) + 1
            continue
        elif not line or line.isspace():
            if body >= 0:
                paragraphs.append(at)
            at += len(line) + 1
            continue
        elif ("```" in line or "~~~" in line) and (opened := _FENCE.match(line)):
            fence = opened[1]
        body = at if body < 0 else body
        at += len(line) + 1
    yield _Section(start, len(text), body, paragraphs, _names(path))


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return mark.startswith(fence) and not mark.strip(fence[0])


def _names(path: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name for _, name in path if name)


def _plain(heading: str) -> str:
    """A heading as people read it."""
    without_links = _LINK.sub(r"\1", heading[: 10 * LONGEST_HEADING])
    return _MARK.sub(lambda mark: mark[1] or "", without_links).strip()[:LONGEST_HEADING]


# ---- pieces of a section


def _stretches(text: str, section: _Section, limits: Limits) -> Iterator[tuple[int, int]]:
    start = at = section.start
    while at < section.end:
        end = _end(text, section, limits, start, at)
        if end is None and start < at:
            start = at  # with what is carried over there is no room for anything new
            continue
        end = end or _anywhere(text, limits, at, section.end)
        yield start, end
        start, at = _carried(text, limits, start, end) if limits.overlap else end, end


def _end(text: str, section: _Section, limits: Limits, start: int, at: int) -> int | None:
    """Where a stretch from `start` on ends, with something behind `at`: where it hurts least, as late as it may."""
    horizon = min(section.end, start + limits.most * limits.longest + _BEYOND)
    if horizon == section.end and _fits(text, limits, start, section.end):
        return section.end
    least = max(at, section.body)  # a heading is not left alone
    paragraphs = section.paragraphs
    some = paragraphs[bisect_right(paragraphs, least) : bisect_right(paragraphs, horizon)]
    if found := _latest(text, limits, start, some):
        return found
    for border in (_LINE, _SENTENCE, _WORD):
        if found := _latest(text, limits, start, _borders(text, border, least, horizon)):
            return found
    return None


def _borders(text: str, border: re.Pattern[str], after: int, until: int) -> list[int]:
    return [end for one in border.finditer(text, after, until) if (end := one.end()) > after]


def _latest(text: str, limits: Limits, start: int, ends: Sequence[int]) -> int | None:
    """The last of these places up to which it fits. What goes further never takes less, so half of them are left out at
    each look."""
    fitting = bisect_left(ends, True, key=lambda end: not _fits(text, limits, start, end))
    return ends[fitting - 1] if fitting else None


def _fits(text: str, limits: Limits, start: int, end: int) -> bool:
    return limits.measure(_trimmed(text[start:end])) <= limits.most


def _anywhere(text: str, limits: Limits, at: int, until: int) -> int:
    """Where a text without any space is cut: not between a letter and its marks, if that can be helped."""
    until = min(until, at + limits.most * limits.longest)
    end = _latest(text, limits, at, range(at + 1, until + 1)) or at + 1
    for place in range(end, max(at, end - _LONGEST_CHARACTER), -1):
        if place == len(text) or not _is_joined(text[place - 1], text[place]):
            return place
    return end


def _is_joined(before: str, after: str) -> bool:
    joiners = "\u200d\ufe0e\ufe0f"
    return unicodedata.combining(after) > 0 or after in joiners or before == "\u200d"


def _carried(text: str, limits: Limits, start: int, end: int) -> int:
    """Where the next stretch begins: as many whole sentences of this one are carried over as may be, or else words."""
    least = max(start + 1, end - limits.overlap * limits.longest - _BEYOND)
    for border in (_SENTENCE, _WORD):
        for place in _borders(text, border, least, end):
            if place < end and limits.measure(_trimmed(text[place:end])) <= limits.overlap:
                return place
    return end
