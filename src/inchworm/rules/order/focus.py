"""What a crawl with a query takes first: how well a page answers it, and how promising a URL is.

A URL promises something of its own when the words of its link or its address name what is asked for. Beyond that every
page that links to it has a vote. Pages that answer the query lead to others that do, and the fewer links a page has,
the more that says about each of them. Most pages that answer do so by the way, in one sentence of many, so long pages
are the better guess: they are the ones that links lead into the middle of (`#here`, `#there`). They also tend to have
short addresses, to be found early, and to stand high up where they are found. Votes are averaged: being linked from
everywhere says nothing.

Words are looked for anywhere in a text, without regard to case, and without their endings: `indexes` is found in
`reindexing`, and a query in a language without spaces needs none. Only words of one or two letters or digits have
to stand alone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple
from urllib.parse import unquote

from inchworm.errors import WrongUse
from inchworm.model import Place

# Found by trial on four manuals. Half or double of any of them changes little.
_NAMED = 1_600
_SHARE = 1_600
_PARTS = 300
_ADDRESS = 200
_PLACE = 60
_MAX_ADDRESS = 400
_MAX_ANCHOR = 500
_MILLION = 1_000_000
_BASE = 4_000
"""Keeps ranks above zero: below it are those of what has to be tried again."""

# A title says as much as this many mentions, and the longer a page is, the more of them it takes.
_TITLE = 5
_CHARS_PER_MENTION = 3_000

_WORD = re.compile(r"[^\W_]+")
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_ENDING = re.compile(r"(?<=.{4})(?:ies|ing|ed)\Z|(?<=.{3})(?:(?<=[sxz])es|(?<=[cs]h)es|(?<![isu])s)\Z")
_BETWEEN_WORDS = r"[\W_]{0,3}"
# The word comes first, because an expression that begins with plain letters is found much faster.
_ALONE = r"{0}(?<![^\W_]{0})(?![^\W_])"

_Stem = str | re.Pattern[str]


class Votes(NamedTuple):
    """What the pages that link to a URL say of it, added up: how many they are, to how many places of it they lead, and
    what it gets of how well they answer, per million."""

    pages: int = 0
    parts: int = 0
    share: int = 0

    def plus(self, more: Votes, times: int = 1) -> Votes:
        return Votes(self.pages + times * more.pages, self.parts + times * more.parts, self.share + times * more.share)


class FocusQuery:
    """A query, ready to be compared with pages and links."""

    def __init__(self, text: str) -> None:
        terms = [term for term in text.split() if _WORD.search(term)]
        if not terms:
            raise WrongUse(f"the query {text[:100]!r} has no words", "say what to look for: two or three words do best")
        self._terms = frozenset(map(_fold, terms))
        self._stems = tuple(dict.fromkeys(map(_stem, terms)))
        # Most links of a site are the same few thousand, on every page.
        self._own = lru_cache(maxsize=16_384)(self._own_score)

    def matches(self, text: str) -> bool:
        """Whether a text contains all terms, as they were typed."""
        folded = _fold(text)
        return all(term in folded for term in self._terms)

    def page(self, title: str, text: str) -> float:
        """How well a page answers, from 0 to 1. Half of the terms are worth a quarter."""
        title, text = _fold(title), _fold(text)
        enough = 1 + len(text) / _CHARS_PER_MENTION
        total = 0.0
        for stem in self._stems:
            mentions = _count(stem, text) + _TITLE * _is_in(stem, title)
            total += mentions / (mentions + enough)
        return (total / len(self._stems)) ** 2

    def own(self, anchor: str, url: str, place: Place = (0, 0)) -> int:
        """What a URL promises by itself, given the first link to it. Half of the terms are worth a quarter.

        `place` says when it was found and which one it was on its page.
        """
        turn, index = place
        late = round(_PLACE * (log(1 + turn) + log(1 + index)))
        return self._own(anchor[:_MAX_ANCHOR], url) - late

    def _own_score(self, anchor: str, url: str) -> int:
        address = _address(url)
        words = _fold(f"{anchor}\n{address}")
        named = sum(_is_in(stem, words) for stem in self._stems)
        length = min(len(address), _MAX_ADDRESS)
        return _BASE + round(_NAMED * (named / len(self._stems)) ** 2) - round(_ADDRESS * log(1 + length))


def rank(own: int, votes: Votes) -> int:
    """How promising a URL is by what it promises by itself and by the votes for it. Never below `own`."""
    if not votes.pages:
        return own
    return own + round(_PARTS * log(votes.parts / votes.pages) + _SHARE * sqrt(votes.share / votes.pages / _MILLION))


def share(page: float, links: int) -> int:
    """What each link gets of how well its page answers: a page that links to everything recommends nothing."""
    return round(_MILLION * page / sqrt(max(links, 1)))


def _fold(text: str) -> str:
    """One form of what only looks different: upper case, and accents that are written on their own."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def _address(url: str) -> str:
    """What comes after the host, as people read it. The host is left out: it is the same for nearly all."""
    start = url.find("/", url.find("://") + 3)
    path = url[start:] if start >= 0 else ""
    return unquote(path) if "%" in path else path


def _stem(term: str) -> _Stem:
    """What to look for. `pointInTimes` stands for `point-in-time` and for `point in time`."""
    *first, last = map(_fold, _WORD.findall(_CAMEL_CASE.sub(" ", term)))
    if first:
        return re.compile(_BETWEEN_WORDS.join(map(re.escape, [*first, _ENDING.sub("", last)])))
    if len(last) <= 2 and (last.isascii() or last.upper() != last):
        return re.compile(_ALONE.format(re.escape(last)))
    return _ENDING.sub("", last)


def _count(stem: _Stem, text: str) -> int:
    return text.count(stem) if isinstance(stem, str) else len(stem.findall(text))


def _is_in(stem: _Stem, text: str) -> bool:
    return stem in text if isinstance(stem, str) else stem.search(text) is not None
