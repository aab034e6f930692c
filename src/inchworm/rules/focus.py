"""What a crawl with a query takes first: how well a page answers it, and how promising a link is.

A link is worth following when its words or its address name what is asked for; next best is a link on a page that
itself answers the query, and the fewer links the page has, the more that says about each of them. What is left is
most of any site, and there a short address beats a long one, because the general, long pages have short addresses
and the thousands of small ones do not. Scores depend on one page and on nothing that was seen before, so they are
the same whatever the order of the crawl.

Words are looked for anywhere in a text, without regard to case, and without their endings: `indexes` is found in
`reindexing`, and a query in a language without spaces needs none. Only words of one or two letters or digits have
to stand alone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from math import sqrt
from urllib.parse import unquote

from inchworm.errors import WrongUse

# A term that is named outweighs what the page and the address say. Half or double of the other two changes next to
# nothing; without the address it takes a sixth more fetches to find the same pages.
_TERMS = 2_000
_PAGE = 600
_ADDRESS = 80
_MAX_ADDRESS = 400
_MAX_ANCHOR = 500
_SHORTEST = round(_ADDRESS * sqrt(_MAX_ADDRESS))
MOST = _TERMS + _PAGE + _SHORTEST

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


class Query:
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

    def link(self, anchor: str, url: str, share: float = 0.0) -> int:
        """How promising a link is, from 0 to MOST. `share` is what its page has for each link, from 0 to 1."""
        return self._own(anchor[:_MAX_ANCHOR], url) + round(_PAGE * share)

    def _own_score(self, anchor: str, url: str) -> int:
        address = _address(url)
        words = _fold(f"{anchor}\n{address}")
        named = sum(_is_in(stem, words) for stem in self._stems)
        length = min(len(address), _MAX_ADDRESS)
        return _TERMS * named // len(self._stems) + _SHORTEST - round(_ADDRESS * sqrt(length))


def share(page: float, links: int) -> float:
    """What each link gets of how well its page answers: a page that links to everything recommends nothing."""
    return page / sqrt(max(links, 1))


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
