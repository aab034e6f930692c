"""Fields of pages: what is to be taken out of each, as people write it.

    name=h1                          the text of the first element that a CSS selector finds
    price=.price::text | number      its own text, as a number
    link=a.more@href                 an attribute
    by=//span[@rel='author']         an XPath expression: it begins with /, ./, ( or xpath:
    tags=.tag | list                 all that are found
    id=.sku | re:([0-9]+) | integer  what a regular expression finds in it

This is the one place that knows how they are written. `extract` takes them out of a document. Selectors are only cut
off here, never tried: whether they can be used is found out where they do no harm (`apart`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol, cast

import re2

from inchworm.errors import WrongUse

MAX_FIELDS = 100
MAX_NAME = 63
MAX_LENGTH = 2_000
"""Characters of one field as it is written."""

EACH = "--each"

_XPATH = ("/", "./", "(", "xpath:")
_ATTRIBUTE = re.compile(r"@\s*([^\s@\[\](){}'\"|,>+~]+)\Z|::attr\(\s*([^\s()'\"]+)\s*\)\Z")
_PSEUDO = re.compile(r"::([a-z-]+)(\([^()]*\))?\Z", re.IGNORECASE)
_FILTER = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\Z|\||:(?!:))", re.ASCII)
_WORD = re.compile(r"\s*([^\s|:]*)\s*")
_DIRECTIVES = frozenset("aAbBdHIjmMpSfyYzZ%")
_REGEX_BYTES = 8 << 20
_HINT = "Write name=SELECTOR, as in: name=h1, price='.price | number', link=a.more@href"


class ValueType(StrEnum):
    """What the text that was found is made into. Each is a filter of that name."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    DATE = "date"
    URL = "url"
    JSON = "json"


class ElementPart(StrEnum):
    """What is taken of an element."""

    TEXT = "text"
    """All of its text."""

    OWN_TEXT = "own text"
    """Its text without that of the elements in it."""

    HTML = "html"
    ATTRIBUTE = "attribute"


class Pattern(Protocol):
    """A regular expression that takes a time in proportion to its text, whatever either is."""

    groups: int

    def search(self, text: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Selector:
    """What finds elements, or, as XPath can, texts. An empty one finds the element that is looked at itself."""

    text: str
    is_xpath: bool = False
    part: ElementPart = ElementPart.TEXT
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A field: where it stands, which part of the text is meant, and what is made of that. `form`: the decimal sign of
    a number, or how a date is written."""

    name: str
    as_written: str
    selector: Selector
    patterns: tuple[str, ...] = ()
    kind: ValueType | None = None
    form: str = ""
    is_list: bool = False

    @property
    def is_texts(self) -> bool:
        """Whether its values are texts, apart from being many."""
        return self.kind in (None, ValueType.TEXT, ValueType.URL)


@dataclass(frozen=True, slots=True)
class Rules:
    """All fields of a crawl's pages. `each`: what there is a row for; without it a page is one row."""

    fields: tuple[Field, ...]
    each: Selector | None = None
    each_as_written: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def digest(self) -> str:
        """Tells these rules from others."""
        return hashlib.sha256(json.dumps(to_json(self), sort_keys=True).encode()).hexdigest()[:32]


def to_json(rules: Rules) -> dict[str, Any]:
    return {"extract": [field.as_written for field in rules.fields], "each": rules.each_as_written}


def from_json(told: Mapping[str, Any]) -> Rules:
    return _parsed_once(tuple(told["extract"]), told["each"])


def parsed(extract: Sequence[str], each: str = "", taken: Iterable[str] = ()) -> Rules:
    """The rules that somebody wrote. `taken`: names that stand for something else."""
    if each.strip() and not extract:
        raise WrongUse("There is something to make rows of, and no field to put into them.", f"Add --extract. {_HINT}")
    if len(extract) > MAX_FIELDS:
        raise WrongUse(f"These are {len(extract)} fields.", f"At most {MAX_FIELDS} can be taken.")
    fields = tuple(_field(text) for text in extract)
    _refuse_names([field.name for field in fields], taken)
    return Rules(fields, _each(each) if each.strip() else None, each.strip())


@lru_cache(maxsize=8)
def _parsed_once(extract: tuple[str, ...], each: str) -> Rules:
    """Page after page comes with the same rules."""
    return parsed(extract, each)


def _refuse_names(names: Sequence[str], taken: Iterable[str]) -> None:
    # Tables are read by programs to which URL and url are one column.
    others = {name.casefold() for name in taken}
    for name in names:
        if name.casefold() in others:
            raise WrongUse(
                f"A field cannot be called {name!r}: there is a column of that name.",
                f"Call it own_{name}, or otherwise.",
            )
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise WrongUse(f"There are two fields called {name!r}.", "Give each a name of its own.")
        seen.add(name.casefold())


def _field(text: str) -> Field:
    _refuse_long(text)
    name, equals, rest = text.partition("=")
    name, rest = name.strip(), rest.strip()
    if not equals or not name or not rest:
        raise WrongUse(f"{text!r} is no field.", _HINT)
    if not name.isidentifier() or len(name) > MAX_NAME:
        raise WrongUse(
            f"A field cannot be called {name!r}.",
            f"Take letters, digits and _, a letter first, at most {MAX_NAME}. {_HINT}",
        )
    try:
        return _with_filters(name, text.strip(), rest)
    except WrongUse as error:
        raise WrongUse(f"The field {name!r}: {error.message}", error.hint) from None


def _each(text: str) -> Selector:
    _refuse_long(text)
    is_xpath = _is_xpath(text.strip())
    selector, filters = _cut(text.strip(), is_xpath)
    found = _selector(selector, is_xpath)
    if filters is not None or found.part is not ElementPart.TEXT or (not is_xpath and "::" in selector):
        raise WrongUse(
            f"{EACH} {text!r} has a suffix or a filter.",
            "It only says which elements are the rows; put those to the fields.",
        )
    return found


def _refuse_long(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise WrongUse(f"{text[:60]!r}… is too long for a field.", f"At most {MAX_LENGTH:,} characters can be used.")


# ---- selectors


def _is_xpath(text: str) -> bool:
    return text.startswith(_XPATH)


def _selector(text: str, is_xpath: bool) -> Selector:
    text = text.strip()
    if is_xpath:
        return Selector(text.removeprefix("xpath:").strip(), is_xpath=True)
    if attribute := _ATTRIBUTE.search(text):
        name = (attribute[1] or attribute[2]).lower()
        return Selector(_relative(text[: attribute.start()]), part=ElementPart.ATTRIBUTE, attribute=name)
    if not (pseudo := _PSEUDO.search(text)):
        return Selector(_relative(text))
    before, name = text[: pseudo.start()], pseudo[0].lower()
    if name == "::html":
        return Selector(_relative(before), part=ElementPart.HTML)
    if name != "::text":
        raise WrongUse(f"there is no {pseudo[0]}.", "There is ::text, ::html, ::attr(name), and @name for short.")
    # As others have it: with a gap before it, the text of the elements inside belongs to it.
    is_own = before == before.rstrip()
    return Selector(_relative(before), part=ElementPart.OWN_TEXT if is_own else ElementPart.TEXT)


def _relative(text: str) -> str:
    """`> td` means below the element that is looked at."""
    text = text.strip()
    return "" if text == ":scope" else f":scope {text}" if text.startswith((">", "+", "~")) else text


def _cut(text: str, is_xpath: bool) -> tuple[str, str | None]:
    """The selector and its filters. In XPath a | may also join two expressions: what follows is a filter when it is a
    word."""
    for at in _bars(text):
        if not is_xpath or _FILTER.match(text, at + 1):
            return text[:at], text[at + 1 :]
    return text, None


def _bars(text: str) -> Iterator[int]:
    """Where a | stands that is neither in brackets nor in quotation marks."""
    depth, quote = 0, ""
    for at, mark in enumerate(text):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark in "([":
            depth += 1
        elif mark in ")]":
            depth = max(0, depth - 1)
        elif mark == "|" and not depth:
            yield at


# ---- filters

_KINDS = {kind.value: kind for kind in ValueType}
FILTERS = (*_KINDS, "list", "re")
_NEXT = re.compile(r"\s\|\s*[A-Za-z]+\s*(?:\Z|\||:)")


def _with_filters(name: str, as_written: str, text: str) -> Field:
    is_xpath = _is_xpath(text)
    selector, filters = _cut(text, is_xpath)
    patterns: list[str] = []
    kinds: list[tuple[ValueType, str]] = []
    is_list = False
    for word, argument in _filters(filters):
        if word == "re":
            pattern(argument or "")
            patterns.append(argument or "")
        elif word == "list":
            is_list = True
        elif word in _KINDS:
            kinds.append((_KINDS[word], argument or ""))
        else:
            bar = (
                " A | that is none of ours stands in brackets: (//a | //b), re:(a | b)." if is_xpath or patterns else ""
            )
            raise WrongUse(f"there is no filter {word!r}.", f"There is {', '.join(FILTERS)}.{bar}")
        if argument is not None and word not in ("re", "number", "integer", "date"):
            raise WrongUse(f"{word} takes nothing after a colon.", "Leave it out.")
    if len(kinds) > 1:
        raise WrongUse(f"it cannot be both {kinds[0][0]} and {kinds[1][0]}.", "Choose one.")
    kind, form = kinds[0] if kinds else (None, "")
    if kind is not None:
        _refuse_form(kind, form)
    return Field(name, as_written, _selector(selector, is_xpath), tuple(patterns), kind, form, is_list)


def _filters(text: str | None) -> Iterator[tuple[str, str | None]]:
    """Each filter, and what stands after its colon. A regular expression may hold a | of its own."""
    while text is not None:
        word = _WORD.match(text)
        assert word is not None  # it matches nothing as well
        if not word[1]:
            raise WrongUse("there is no filter behind the |.", f"There is {', '.join(FILTERS)}.")
        rest = text[word.end() :]
        argument = None
        if rest.startswith(":"):
            end = _NEXT.search(rest)
            argument = (rest[1 : end.start()] if end else rest[1:]).strip()
            rest = rest[end.start() :].lstrip() if end else ""
        yield word[1], argument
        if rest and not rest.startswith("|"):
            raise WrongUse(f"{rest[:60]!r} stands behind the filter {word[1]!r}.", "Put a | between two filters.")
        text = rest[1:] if rest else None


def _refuse_form(kind: ValueType, form: str) -> None:
    if kind in (ValueType.NUMBER, ValueType.INTEGER) and form not in ("", ",", "."):
        raise WrongUse(f"{form!r} is no decimal sign.", "Write number:, where a comma is one, as in 1.299,00.")
    if kind is ValueType.DATE and form:
        used = re.findall(r"%(.?)", form)
        if not used or not _DIRECTIVES.issuperset(used) or "" in used:
            raise WrongUse(f"{form!r} is not how a date is written.", "Write it as in date:%d.%m.%Y or date:%B %d, %Y.")


@lru_cache(maxsize=256)
def pattern(text: str) -> Pattern:
    """A regular expression, compiled."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _REGEX_BYTES
    try:
        compiled = re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if isinstance(error, re2.error) else "it is not text"
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise WrongUse(
            f"{text!r} is no regular expression: {said}.",
            "After re: comes an RE2 expression, which has no look-around.",
        ) from None
    if not text:
        raise WrongUse("there is nothing behind re:.", "Write a regular expression, as in re:([0-9]+).")
    return cast(Pattern, compiled)
