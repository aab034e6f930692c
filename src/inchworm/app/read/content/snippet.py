"""Snippets: the part of a text that has what was looked for."""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from inchworm.store.follow import search as index

# ---- snippets


SNIPPET_CHARS = 240
_BEFORE_CHARS = 60
_MOST_HITS = 1_000
_SPACE = re.compile(r"\s+")
_OWN_MARKS = str.maketrans("«»", '""')


class _Hit(NamedTuple):
    start: int
    end: int
    term: int


def snippet(text: str, query: index.SearchQuery) -> str:
    """The part of a text with the most of what was looked for, on one line. Hits stand in « », and nothing else."""
    hits, reach = _hits(text, query.terms)
    start, end = _window(text, hits, reach)
    shown = ["… " if start else ""]
    at = start
    for hit in hits:
        if at <= hit.start and hit.end <= end:
            shown += [_line(text[at : hit.start]), "«", _line(text[hit.start : hit.end]), "»"]
            at = hit.end
    shown += [_line(text[at:end]), " …" if end < len(text) else ""]
    return "".join(shown).strip()


def _hits(text: str, terms: tuple[index.SearchTerm, ...]) -> tuple[list[_Hit], int]:
    """Where terms occur, until each was met and the room of a snippet beyond; and how far that is."""
    hits: list[_Hit] = []
    missing = set(range(len(terms)))
    longest = max(len(term.words) for term in terms)
    found: deque[tuple[str, int]] = deque(maxlen=longest)
    reach = len(text)
    for match in index.WORD.finditer(text):
        if match.start() > reach or len(hits) > _MOST_HITS:
            break
        if not (word := index.folded(match[0])):
            continue
        found.append((word, match.start()))
        for number, term in enumerate(terms):
            if word.startswith(term.words[-1]) and _is_met(found, term):
                hits.append(_Hit(found[-len(term.words)][1], match.end(), number))
                if number in missing:
                    missing.remove(number)
                    reach = len(text) if missing else match.end() + SNIPPET_CHARS
    return hits, reach


def _is_met(found: deque[tuple[str, int]], term: index.SearchTerm) -> bool:
    *before, last = (word for word, _ in found)
    count = len(term.words) - 1
    is_last = term.is_prefix or last == term.words[-1]
    return is_last and (not count or tuple(before[-count:]) == term.words[:-1])


def _window(text: str, hits: list[_Hit], reach: int) -> tuple[int, int]:
    """The stretch of a text to be shown, from the beginning of a word to the end of one."""
    if not hits:
        return 0, _word_end(text, SNIPPET_CHARS)
    room = SNIPPET_CHARS - _BEFORE_CHARS
    best, most = hits[0], 0
    for number, hit in enumerate(hits):
        terms = {one.term for one in hits[number : number + room] if one.end <= hit.start + room}
        if len(terms) > most:
            best, most = hit, len(terms)
    start = _word_start(text, max(best.start - _BEFORE_CHARS, 0)) if best.start > _BEFORE_CHARS else 0
    start = min(start, best.start)
    return start, max(_word_end(text, min(start + SNIPPET_CHARS, max(reach, best.end))), best.end)


def _word_start(text: str, at: int) -> int:
    space = _SPACE.search(text, at, at + 20)
    return space.end() if space else at


def _word_end(text: str, at: int) -> int:
    if at >= len(text):
        return len(text)
    space = text.rfind(" ", at - 20, at + 1)
    return space if space > 0 else at


def _line(text: str) -> str:
    """A piece of text on one line, with nothing in it that could steer a terminal or be taken for a mark."""
    squeezed = _SPACE.sub(" ", text.translate(_OWN_MARKS))
    return squeezed if squeezed.isprintable() else "".join(c for c in squeezed if c.isprintable())


def pieces(marked: str) -> list[tuple[str, bool]]:
    """A snippet as pieces of text, each with whether it was looked for."""
    parts: list[tuple[str, bool]] = []
    for piece in marked.split("«"):
        hit, mark, rest = piece.rpartition("»")
        parts += [(hit, True), (rest, False)] if mark else [(piece, False)]
    return [(text, is_hit) for text, is_hit in parts if text]
