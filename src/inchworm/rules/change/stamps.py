"""Which differences between two versions of a page are stamps.

A manual that is built again bears a new version number or date on every page, and nobody would call every page of it
modified. But one price that changed on one page is a change, and so is one link that leads elsewhere. What tells them
apart is the rest of the host: **a difference is a stamp when the same difference recurs in the same place on most of
the pages that were compared**.

The same difference: literally the same words before and after. Dates and times are the exception: a build takes its
time and stamps its pages at slightly different seconds, so of two dates only the place counts. A plain number is no
date.

The same place: next to the same telling word. One side of a stamp often touches what belongs to the page alone
("PostgreSQL 15.3: SELECT"), and we cannot know which. So a difference has two signatures, one with its left neighbour
and one with its right, and it recurs when either does. Links have no neighbours: a URL says enough by itself.

Stamps are few and short. The two texts are walked side by side from one difference to the next, and a closer look is
taken only around each. More differences, or longer ones, than stamps could be end the walk, so it takes no longer for
a page that was written anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from inchworm.model import Substance
from inchworm.rules.web.url import hash64, shorten

MIN_PAGES = 3
MAX_PLACES = 8
MAX_WORDS = 40
"""A stamp is on this many pages at least. A page with differences in more places, or one of more words, is not looked
at further: stamps do not explain it."""

_MAX_LOOKS = 64
_MAX_SIGNATURES = 100_000
_NOTE_CHARS = 80
_NEIGHBOURS = 6
# How far a look reaches, in characters: back over the longest date, ahead over the longest difference.
_BEHIND = 120
_REACHES = (200, 500)
_LINKS_AHEAD = 20_000

_TITLE, _TEXT, _LINK = "title", "text", "link"
_EDGE = "\0"
_DATE = "\1"


def differences(old: Substance, new: Substance) -> tuple[int, ...] | None:
    """The signatures of what differs, two for each difference: one with its left neighbour, one with its right.

    () when both have the same substance; None when no stamps could explain so much.
    """
    found: dict[tuple[int, int], None] = {}
    for place in _places(old, new):
        found[_signatures(place)] = None
        if not place.whole or len(found) > MAX_PLACES:
            return None
    return tuple(signature for pair in found for signature in pair)


def recurring(pages: Iterable[Sequence[int]], compared: int) -> frozenset[int]:
    """The signatures that are on more than half of the pages compared, and on three at least.

    `pages` are those with differences that could be stamps, all of one host; `compared` counts every page.
    """
    counts: Counter[int] = Counter()
    for signatures in pages:
        counts.update(set(signatures))
        if len(counts) > _MAX_SIGNATURES:
            # A million pages have a million neighbours of their own. What is rarest so far is forgotten: a signature
            # that is on most pages is never among the rarest for long.
            counts = Counter(dict(counts.most_common(_MAX_SIGNATURES // 2)))
    enough = max(MIN_PAGES, compared // 2 + 1)
    return frozenset(signature for signature, count in counts.items() if count >= enough)


def explained(signatures: Sequence[int], stamps: frozenset[int]) -> bool:
    """Whether every difference of a page is a stamp."""
    return all(left in stamps or right in stamps for left, right in zip(signatures[::2], signatures[1::2], strict=True))


def describe(old: Substance, new: Substance, stamps: frozenset[int] = frozenset()) -> str:
    """The first difference that is no stamp, for people's eyes: `"15.3" → "15.4"`. Empty where there is none."""
    places = (place for place in _places(old, new) if not place.whole or stamps.isdisjoint(_signatures(place)))
    if (place := next(places, None)) is None:
        return ""
    kind = "" if place.where == _TEXT else f"{place.where} "
    room = (_NOTE_CHARS - len(kind) - len('"" → ""')) // 2
    before, after = (_shown(place.where, passage, room) for passage in place.passages)
    if not before or not after:
        return f"{kind}{'new' if after else 'gone'}: {after or before}"
    return f"{kind}{before} → {after}"


def _shown(where: str, passage: str, room: int) -> str:
    """In quotes, cut to fit, with nothing in it that could steer a terminal."""
    passage = passage.replace("\n", "↵")
    if where != _LINK and len(passage) > room:
        passage = passage[: room - 1] + "…"
    return passage and f'"{shorten(passage, room)}"'


# ---- from one difference to the next


class _Difference(NamedTuple):
    """A difference: what stood there and what stands there now, as written and as words, and its neighbours.
    One that is not `whole` has no end in sight."""

    where: str
    passages: tuple[str, str]
    before: tuple[_Word, ...] = ()
    after: tuple[_Word, ...] = ()
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    whole: bool = True


class _Word(NamedTuple):
    """A word, a number, a whole date or a lone sign, and the white space before it."""

    text: str
    start: int
    is_date: bool = False
    gap: str = ""

    @property
    def key(self) -> str:
        return self.gap + self.text


def _places(old: Substance, new: Substance) -> Iterator[_Difference]:
    yield from _compare(_TITLE, old.title, new.title)
    yield from _compare(_TEXT, old.text, new.text)
    if old.targets != new.targets:
        yield from _walk(_LINK, " ".join(old.targets), " ".join(new.targets))


def _compare(where: str, old: str, new: str) -> Iterator[_Difference]:
    if old != new:
        yield from _walk(where, old, new)


def _walk(where: str, old: str, new: str) -> Iterator[_Difference]:
    i = j = 0
    for _ in range(_MAX_LOOKS):
        same = _agreement(old, new, i, j)
        if i + same == len(old) and j + same == len(new):
            return
        # Most differences are short, and a look costs by the characters that it takes in.
        for reach in _REACHES:
            ours = _words_near(where, old, i, i + same, reach)
            theirs = _words_near(where, new, j, j + same, reach)
            first = _first_difference(ours, theirs)
            skip = _meeting(ours[first:], theirs[first:])
            is_nearest = skip and 0 < sum(skip) < min(len(ours), len(theirs)) - first
            if is_nearest or max(len(old) - i, len(new) - j) - same <= reach:
                break
        ahead = [words[first - 1].start if first else at for words, at in ((ours, i), (theirs, j))]
        ours, theirs = ours[first:], theirs[first:]
        i, j = (words[0].start if words else at + same for words, at in ((ours, i), (theirs, j)))
        if not skip or not any(skip):
            break
        before, after = tuple(ours[: skip[0]]), tuple(theirs[: skip[1]])
        end = ours[skip[0]].start, theirs[skip[1]].start
        passages = old[i : end[0]].strip(), new[j : end[1]].strip()
        if _texts(before) == _texts(after):
            # Only white space differs, and that shows between two words.
            passages = old[ahead[0] : end[0]].rstrip(), new[ahead[1] : end[1]].rstrip()
        yield _Difference(where, passages, before, after, *_neighbours(where, new, j, end[1]))
        i, j = end
    # Here without end: a passage written anew.
    yield _Difference(where, (old[i : i + _NOTE_CHARS], new[j : j + _NOTE_CHARS]), whole=False)


def _agreement(old: str, new: str, i: int, j: int) -> int:
    """How many characters are the same from here on. Slices are compared, not characters: that is a hundred times
    faster, and pages are the same nearly everywhere."""
    same, step = 0, 64
    most = min(len(old) - i, len(new) - j)
    while same < most and old[i + same : i + same + step] == new[j + same : j + same + step]:
        same += step
        step *= 2
    while step > 1:
        step //= 2
        if old[i + same : i + same + step] == new[j + same : j + same + step]:
            same += step
    return min(same, most)


def _words_near(where: str, text: str, low: int, at: int, reach: int) -> list[_Word]:
    """The words around the first character that differs: from a little before, as it may stand at the end of a long
    date, but not from before `low`, where the last difference ended."""
    if where == _LINK:
        return _words(where, text, text.rfind(" ", low, at) + 1 or low, at + _LINKS_AHEAD)
    return _words(where, text, max(low, at - _BEHIND), at + reach)


def _words(where: str, text: str, start: int, stop: int, most: int = 1 << 30) -> list[_Word]:
    """The words of a passage, and a mark at the end of the text. What a cut might have made shorter is left out."""
    last = len(text) if stop >= len(text) else stop - _BEHIND
    before = text[max(0, start - _BEHIND) : start]
    words: list[_Word] = []
    end = start - len(before) + len(before.rstrip())
    for match in (_WORD if where != _LINK else _URL).finditer(text, start, stop):
        if match.end() > last or len(words) == most:
            break
        gap = text[end : match.start()] if where != _LINK else ""
        end = match.end()
        words.append(_Word(match[0], match.start(), bool(match.lastgroup), gap))
    if stop >= len(text):
        words.append(_Word(_EDGE, len(text)))
    return words


def _first_difference(ours: list[_Word], theirs: list[_Word]) -> int:
    """The index of the first word that differs, or that has other white space before it."""
    pairs = zip(ours, theirs, strict=False)
    shorter = min(len(ours), len(theirs))
    return next((index for index, (a, b) in enumerate(pairs) if a.key != b.key), max(0, shorter - 1))


def _meeting(ours: list[_Word], theirs: list[_Word]) -> tuple[int, int] | None:
    """How many words to skip on either side, as few as can be, until both go on with the same word."""
    new = {word.key: index for index, word in reversed(list(enumerate(theirs[: MAX_WORDS + 1])))}
    old = enumerate(word.key for word in ours[: MAX_WORDS + 1])
    meetings = ((index + new[word], index, new[word]) for index, word in old if word in new)
    nearest = min(meetings, default=None)
    return nearest and nearest[1:]


def _texts(words: Iterable[_Word]) -> list[str]:
    return [word.text for word in words]


# ---- the same difference in the same place


def _signatures(place: _Difference) -> tuple[int, int]:
    dates = [sum(word.is_date for word in words) for words in (place.before, place.after)]
    hidden = dates[0] == dates[1]
    before, after = (
        " ".join(_DATE if hidden and word.is_date else word.text for word in words)
        for words in (place.before, place.after)
    )
    if _texts(place.before) == _texts(place.after):
        before, after = ("".join(word.key for word in words) for words in (place.before, place.after))
    difference = f"{place.where}\n{before}\n{after}\n"
    return hash64(f"{difference}<{' '.join(place.left)}"), hash64(f"{difference}>{' '.join(place.right)}")


def _neighbours(where: str, text: str, start: int, end: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands to the left and to the right of a passage, up to a word that tells where we are."""
    if where == _LINK:
        return (), ()
    near = text[max(0, start - 2 * _BEHIND) : start]
    left = _words(where, near, max(0, len(near) - _BEHIND), len(near))[-2::-1]
    if start <= _BEHIND:
        left.append(_Word(_EDGE, 0))
    return _up_to_telling(left), _up_to_telling(_words(where, text, end, end + 2 * _BEHIND, _NEIGHBOURS))


def _up_to_telling(words: list[_Word]) -> tuple[str, ...]:
    """Signs, numbers and short words ("on", "the") stand everywhere; the first longer word tells."""
    found = []
    for word in words[:_NEIGHBOURS]:
        found.append(_DATE if word.is_date else word.text)
        if word.text.isalpha() and not word.is_date and (len(word.text) > 3 or not word.text.isascii()):
            break
    return tuple(found)


# ---- words

_MONTHS = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
januar jänner februar märz mai juni juli oktober dezember
janvier février mars avril juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
januari februari maart mei augustus
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
"""
_MONTH = rf"(?:{'|'.join(sorted(set(_MONTHS.split()), reverse=True))})(?![^\W\d_])\.?"
_DAY = r"[0-3]?\d(?!\d)(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?:19|20)\d\d(?!\d)"
_WEEKDAY = r"(?:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?[.,]?\s?)?"
_CLOCK = (
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?![\d:])"
    r"(?:\s?[ap]\.?m\b\.?)?(?:\s?(?:(?-i:Z|UTC|GMT|[ECMP][SD]T|CES?T|WES?T|EES?T|BST|MSK|IST|JST)\b|[+-]\d\d:?\d\d))*"
)
_DAY_FIRST = rf"{_DAY}[\s-]?(?:of\s|de\s)?{_MONTH}(?:[,\s-]{{0,2}}(?:de\s|del\s)?{_YEAR})?"
_MONTH_FIRST = rf"{_MONTH}\s?(?:{_DAY}\s{_CLOCK}\s{_YEAR}|(?:{_DAY},?\s?)?{_YEAR}|{_DAY})"
_THEN = rf"(?:(?:T|,?\s?(?:at\s|um\s|-\s)?){_CLOCK})?"
_AGO = r"\s(?:second|minute|hour|day|week|month|year)s?\sago"
_CALENDAR = "|".join(
    (
        r"(?:19|20)\d\d(?P<sign>[-/.])[01]?\d(?P=sign)[0-3]?\d(?!\d)",
        rf"[0-3]?\d(?P<other>[-/.])[0-3]?\d(?P=other){_YEAR}",
        r"[0-3]?\d/[0-3]?\d/\d\d(?!\d)",
        r"\d{4}\s?[年년]\s?\d\d?\s?[月월]\s?\d\d?\s?[日일]",
        _DAY_FIRST,
    )
)
# What begins with a digit, and what does not: most words are none of it, and need not be compared with all those names.
_DIGITS = rf"(?=\d)(?:(?:{_CALENDAR}){_THEN}|(?:19|20)\d{{6}}T\d{{4}}(?:\d\d)?Z?|{_CLOCK}|\d+{_AGO})"
_NAMES = rf"(?=\D{{3,24}}+\d){_WEEKDAY}(?:{_DAY_FIRST}|{_MONTH_FIRST}){_THEN}|an?{_AGO}"
_MOMENT = rf"{_DIGITS}|(?=[^\W\d_])(?:{_NAMES})"
_HEX = r"(?=\d*[a-f])[0-9a-f]{7,64}(?![^\W_])"
_NUMBER = r"\d+(?:[.,:/-]\d+)*"
# As many letters as there are, but never past one that is small before one that is large.
_LETTERS = r"(?=[^\W\d_])(?-i:(?:[^\W\d_a-z]++|[a-z]++(?![A-Z]))*+(?:[a-z]++)?)"
_WORD = re.compile(rf"(?P<date>(?:{_MOMENT})(?!\d))|{_HEX}|{_NUMBER}|{_LETTERS}|\S", re.IGNORECASE)
"""A date as a whole, a checksum, a number or version, letters, or any other sign. Pages are often written without white
space between the cells of a table, so a word ends where digits or a capital begin."""

_URL = re.compile(r"\S+")

_DATE_ALONE = re.compile(rf"(?<![^\W_])(?:{_MOMENT})(?!\d)", re.IGNORECASE)


def is_in_date(text: str, start: int, end: int) -> bool:
    """Whether this part of a text is a date or time, or a part of one."""
    near = _DATE_ALONE.finditer(text, max(0, start - _BEHIND), end + _BEHIND)
    return end - start <= _BEHIND and any(one.start() <= start and end <= one.end() for one in near)


agreement = _agreement
