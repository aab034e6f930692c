"""Which pages changed in the same way: what differs between two versions of a page, and a number for it.

The same notice that appeared on 294 pages of a manual is one thing to a reader. Signatures of stamps do not tell that:
they know the neighbours of a difference, which are others on every page, and a longer notice has none. So here is the
difference alone: what stood there, and what stands there now. Where more differs than dates and times, those do not
count, because a site that is built again has others on every page.

Both texts are cut at what they share: their beginning, their end, and runs of words that are in both just once. That
takes time in proportion to their length, whatever is in them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inchworm.model import Substance
from inchworm.rules.change import stamps
from inchworm.rules.change.groups import Passage
from inchworm.rules.web.url import hash64, path_of

TITLE, TEXT, LINK = "title", "text", "link"

_RUN = 4
"""So many words in a row tell a place in a text."""

_MOST_SHIFTS = 40
_MOST_SECTIONS = 100
_MOST_CHARS = 2_000_000
_MOST_WORDS = 200
_ENOUGH = 48
_REACH = 20_000
_NEAR = 100
_AROUND = 20
"""A difference is looked for up to so many words and characters, until so many characters are the same; this far before
it the look begins."""

_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d]+|[^\w\s]")
_ENDS = (".", "!", "?")
_ITSELF = "\0"


def passages(old: Substance, new: Substance) -> list[Passage]:
    """What differs between two versions of a page, in its order."""
    found = [*_told_apart(TITLE, old.title, new.title), *_told_apart(TEXT, old.text, new.text)]
    told = [one for one, is_date in found if not is_date] + _links(old.targets, new.targets)
    return told or [one for one, _ in found] or _spaced(old.text, new.text)


def number(found: Sequence[Passage], url: str) -> int | None:
    """The same for pages that differ in the same way; None where nothing is known of that. A link to the page of the
    same name elsewhere, such as that of the version before, is the same on all of them."""
    name = path_of(url).rpartition("/")[2]
    return hash64("\n".join("\t".join(_in_words(one, name)) for one in found)) if found else None


def _in_words(one: Passage, name: str) -> Iterator[str]:
    yield one.where
    for side in (one.before, one.after):
        is_own = one.where == LINK and name and side.endswith("/" + name)
        yield side.removesuffix(name) + _ITSELF if is_own else " ".join(side.split())


def _links(old: Sequence[str], new: Sequence[str]) -> list[Passage]:
    before, after = Counter(old), Counter(new)
    gone, came = list((before - after).elements()), list((after - before).elements())
    if len(gone) == len(came):
        return [Passage(LINK, *pair) for pair in zip(gone, came, strict=True)]
    return [Passage(LINK, url, "") for url in gone] + [Passage(LINK, "", url) for url in came]


def _spaced(old: str, new: str) -> list[Passage]:
    """The first place where only white space differs, with what stands around it."""
    if old == new:
        return []
    at = stamps.agreement(old, new, 0, 0)
    start = at - min(at, _AROUND)
    return [Passage(TEXT, old[start : at + _AROUND], new[start : at + _AROUND])]


# ---- texts


class _Token(NamedTuple):
    text: str
    start: int
    end: int


_Tokens = list[_Token]


def _told_apart(where: str, old: str, new: str) -> Iterator[tuple[Passage, bool]]:
    """The differences of two texts, each with whether it is nothing but a date."""
    if old == new or max(len(old), len(new)) > _MOST_CHARS:
        return
    for begin, end in _sections(old, new):
        ours, theirs = _tokens(old, begin[0], end[0]), _tokens(new, begin[1], end[1])
        for i, i_end, j, j_end in _regions(ours, theirs):
            spans = _span(ours, i, i_end, end[0]), _span(theirs, j, j_end, end[1])
            passage = Passage(where, old[slice(*spans[0])].strip(), new[slice(*spans[1])].strip())
            yield passage, stamps.is_in_date(old, *spans[0]) and stamps.is_in_date(new, *spans[1])


_Places = tuple[int, int]


def _sections(old: str, new: str) -> Iterator[tuple[_Places, _Places]]:
    """The parts of two texts outside of which they are the same, from where to where in each. They are found by
    searching for what one goes on with in the other, which is a hundred times faster than looking at every word."""
    i = j = 0
    for _ in range(_MOST_SECTIONS):
        same = stamps.agreement(old, new, i, j)
        if i + same == len(old) and j + same == len(new):
            return
        back = _to_word(old[i : i + same])
        begin = i + same - back, j + same - back
        meeting = _meeting(old, new, *begin)
        if meeting is None:
            break
        # With a few words that both have: what was put in may begin with the words that the text goes on with.
        yield begin, meeting
        i, j = meeting
    else:
        begin = i, j
    yield begin, (len(old), len(new))


def _to_word(shared: str) -> int:
    """How far it is back to where a word begins, and a few words before that."""
    near = shared[-_NEAR:]
    return len(near) - (near.find(" ") + 1) if len(shared) > _NEAR else len(near)


def _meeting(old: str, new: str, i: int, j: int) -> _Places | None:
    """From where on both texts go on with the same words again, after as few as can be."""
    nearest: tuple[int, _Places] | None = None
    for text, other, at, begin, is_old in ((old, new, i, j, True), (new, old, j, i, False)):
        for count, word in enumerate(_TOKEN.finditer(text, at + _NEAR)):
            start = word.start()
            if count == _MOST_WORDS or (nearest and start - at >= nearest[0]):
                break
            found = other.find(text[start : start + _ENOUGH], begin, begin + _REACH)
            if found < 0 or start + _ENOUGH > len(text) or (found and other[found - 1].isalnum()):
                continue
            cost, places = start - at + found - begin, (start, found) if is_old else (found, start)
            if nearest is None or cost < nearest[0]:
                nearest = cost, places
    return nearest and nearest[1]


def _tokens(text: str, begin: int, end: int) -> _Tokens:
    return [_Token(match[0], *match.span()) for match in _TOKEN.finditer(text, begin, end)]


def _span(tokens: _Tokens, first: int, end: int, last: int) -> _Places:
    if first < end:
        return tokens[first].start, tokens[end - 1].end
    at = tokens[first].start if first < len(tokens) else last
    return at, at


_Region = tuple[int, int, int, int]


def _regions(ours: _Tokens, theirs: _Tokens) -> Iterator[_Region]:
    """Where two lists of words differ: from and to in the one, and in the other."""
    old, new = [one.text for one in ours], [one.text for one in theirs]
    whole = _trimmed(old, new, (0, len(old), 0, len(new)))
    if whole is None:
        return
    i, i_end, j, j_end = whole
    at = i, j
    for a, b in [*_shared_runs(old[i:i_end], new[j:j_end]), (i_end - i, j_end - j)]:
        end = i + a, j + b
        if end[0] >= at[0] and end[1] >= at[1]:
            region = _trimmed(old, new, (at[0], end[0], at[1], end[1]))
            if region is not None:
                yield _shifted(old, new, region)
            at = end


def _trimmed(old: list[str], new: list[str], region: _Region) -> _Region | None:
    """A region without what both sides begin and end with; None where nothing is left."""
    i, i_end, j, j_end = region
    while i < i_end and j < j_end and old[i] == new[j]:
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and old[i_end - 1] == new[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
    return (i, i_end, j, j_end) if i < i_end or j < j_end else None


def _shared_runs(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Where runs of words stand in both that each has just once, as many as are in the same order."""
    ours, theirs = _single_runs(old), _single_runs(new)
    pairs = [(at, theirs[run]) for run, at in ours.items() if run in theirs]
    return _ascending(pairs)


def _single_runs(words: list[str]) -> dict[tuple[str, ...], int]:
    runs = list(zip(*(words[shift:] for shift in range(_RUN)), strict=False))
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


def _ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, in the order of their first, whose second ones ascend, too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        place = bisect_left(ends, second)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [second]
        last[place : place + 1] = [index]
    found: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _shifted(old: list[str], new: list[str], region: _Region) -> _Region:
    """What was put in or taken out, as the sentence that it is: where the text beside it has the same words,
    it might as well begin a few words earlier or later."""
    i, i_end, j, j_end = region
    if i < i_end and j < j_end:
        return region
    is_new = i == i_end
    (words, start, end), (others, at) = ((new, j, j_end), (old, i)) if is_new else ((old, i, i_end), (new, j))
    furthest = 0
    while furthest < _MOST_SHIFTS and _is_same(words, start + furthest, end + furthest, others, at + furthest):
        furthest += 1
    steps = range(furthest, -min(_MOST_SHIFTS, start, at) - 1, -1)
    for by in steps:
        if by < 0 and words[start + by] != words[end + by]:
            break
        if words[end - 1 + by] in _ENDS:
            return i + by, i_end + by, j + by, j_end + by
    return i + furthest, i_end + furthest, j + furthest, j_end + furthest


def _is_same(words: list[str], first: int, second: int, others: list[str], third: int) -> bool:
    return second < len(words) and third < len(others) and words[first] == words[second] == others[third]
