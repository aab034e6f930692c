"""Who wrote a page, and when, as it shows to people: a byline, the name beside the first post, the date above a text.

Asked only for what a page does not say for machines. Nothing is invented: where several authors or dates stand in
several places a page is a list of articles and has none of its own, unless it is a thread, which belongs to whoever
opened it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from turbohtml import Document, Element

from inchworm.rules.metadata.dates import standard
from inchworm.rules.metadata.describe import clean

MAX_AUTHOR = 80

# Each look at an element costs all that is in it, and nobody writes a byline in so many places or so deep.
_MOST = 60
_DEEPEST = 12
_LONGEST_BLOCK = 200
_FEW = 2

_TELLING = frozenset(
    "author authorbox byline date datetime meta posted postmeta published time timestamp".split()  # noqa: SIM905
)
# What is quickest comes first: one tag, then one attribute of any tag, then what is in many attributes.
_TOLD_ELSEWHERE = (
    "time",
    "a[href*='/author']",
    "[rel~=author]",
    ":is([class*=author i],[class*=byline i],[class*=date i],[class*=publish i])",
)
_TOLD_IN_ITEMS = "[itemprop~=author],[itemprop~=datePublished]"
_THREAD = "[itemtype*=Posting],[itemtype*=Question],[itemtype*=QAPage]"
_FRAMES = frozenset({"aside", "footer", "nav"})
_NAMES_OF_OTHERS = re.compile(
    r"comment|repl(?:y|ies)|related|recommend|sidebar|widget|quote|cards?\b|teaser|product|latest|popular|review|release",
    re.IGNORECASE,
)


def may_show(document: Document, words: Iterable[frozenset[str]]) -> bool:
    """Whether it is worth looking, which costs more than this. `words`: what the blocks of the page are called."""
    if not all(map(_TELLING.isdisjoint, words)):
        return True
    if document.select("[itemprop]") and document.select(_TOLD_IN_ITEMS):
        return True
    return any(document.select(signs) for signs in _TOLD_ELSEWHERE)


def author(document: Document) -> str:
    """Who wrote it; empty where nobody is named."""
    for signs, most in _SIGNS_OF_AUTHORS:
        names = list(dict.fromkeys(_names(document, signs)))
        if names:
            return names[0] if len(names) <= most or _is_thread(document) else ""
    return ""


def published(document: Document, url: str) -> str:
    """When it was published, to the day; empty where nothing tells."""
    if found := next(_said_dates(document, _DECLARED), ""):
        return found
    if in_address := _IN_ADDRESS.search(url):
        return standard("-".join(in_address.groups())) or ""
    for dates in (_said_dates(document, "time[datetime]"), _shown_dates(document)):
        if found_ := list(dict.fromkeys(dates)):
            return found_[0] if len(found_) <= _FEW or _is_thread(document) else ""
    return ""


def _is_thread(document: Document) -> bool:
    return bool(document.select(_THREAD))


def _own(document: Document, signs: str) -> Iterator[Element]:
    """The elements that bear a sign and do not lie in what belongs to another text."""
    return (one for one in islice(document.select(signs), _MOST) if not _is_of_others(one))


def _is_of_others(element: Element) -> bool:
    for around in (element, *islice(element.ancestors, _DEEPEST)):
        if not isinstance(around, Element) or around.tag in ("body", "html"):
            return False
        if around.tag in _FRAMES:
            return True
        names = f"{around.attr('class') or ''} {around.attr('id') or ''} {around.attr('itemprop') or ''}"
        if _NAMES_OF_OTHERS.search(names[:_LONGEST_BLOCK]):
            return True
    return False


# ---- names

# What is declared, what is called so, what leads to a list of somebody's articles; and how many names may be met there.
_SIGNS_OF_AUTHORS = (
    ("[itemprop~=author],[rel~=author]", 3),
    ("[class*=author i],[class*=byline i]", 3),
    ("a[href*='/author/'],a[href*='/authors/']", 1),
)
_BEFORE_NAME = re.compile(
    r"(?:[a-z ]{0,12}\b(?:contributed|posted|published|written|words|story|article)\s+)?"
    r"(?:by|von|par|por|di|door|av|af|przez|author|autor|auteur)\b[\s:]*",
    re.IGNORECASE,
)
_BEHIND_NAME = re.compile(
    r"\s*(?:[|•·–—]|\s-\s|\b(?:on|updated|published|posted|reviewed|last)\b).*", re.IGNORECASE | re.DOTALL
)
_NO_NAME = re.compile(
    r"https?:|[@{}<>=?!$]|\b(?:follow|view|posts?|about|more|read|share|min|minutes?|ago|profile|articles?|bio|updated|"
    r"contact|comments?|sign|log|dealer|topic)\b|^(?:the )?(?:authors?|contributors?|writers?|editors?|name)$|"
    r"^(?:anonymous|guest|admin)$",
    re.IGNORECASE,
)
_MOST_WORDS = 8
_MARKS = " ,:;.-/&"


def _names(document: Document, signs: str) -> Iterator[str]:
    return (name for element in _own(document, signs) if (name := _name(element)))


def _name(element: Element) -> str:
    """The name in a byline, without what stands around it; empty where it does not look like one."""
    text = _BEHIND_NAME.sub("", _BEFORE_NAME.sub("", clean(_naming(element)), count=1))
    text = _before_date(text).strip(_MARKS)
    is_name = 2 <= len(text) <= MAX_AUTHOR and len(text.split()) <= _MOST_WORDS
    return text if is_name and not _NO_NAME.search(text) else ""


def _before_date(text: str) -> str:
    dates = (match.start() for pattern in _IN_WORDS if (match := pattern.search(text)))
    return text[: min(dates, default=len(text))]


def _naming(element: Element) -> str:
    inner = next(iter(element.select("[itemprop~=name]")), None)
    if inner is not None:
        return inner.attr("content") or inner.text
    if element.tag == "meta":
        return element.attr("content") or ""
    text = element.text
    if len(text.strip()) > _LONGEST_BLOCK:
        return ""
    links = [said for link in element.iter_elements("a") if (said := link.text.strip())]
    return links[0] if len(links) == 1 else text


# ---- dates

_DECLARED = "[itemprop~=datePublished],time[pubdate]"
_IN_ADDRESS = re.compile(r"[/_-](199\d|20[0-3]\d)[/-](0[1-9]|1[0-2])[/-](0[1-9]|[12]\d|3[01])(?=[/_.-]|$)")
_SIGNS_OF_DATES = (
    "time,[class*=date i],[class*=publish i],[class*=byline i],[class*=meta i],[class*=author i],[class*=info i]"
)
_OTHER_DATE = re.compile(
    r"updat|modif|review|last|edited|join|expire|until|effective|copyright|event|since|comment", re.IGNORECASE
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>(?:19|20)\d\d)\b"
_IN_WORDS = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}",
        rf"\b{_DAY}\.?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
        r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b",
    )
)


def _said_dates(document: Document, signs: str) -> Iterator[str]:
    """What elements say for machines, to the day."""
    for element in _own(document, signs):
        text = element.attr("content") or element.attr("datetime") or element.text
        if (found := standard(text)) and len(found) >= len("2026-01-01") and not _is_update(element):
            yield found[: len("2026-01-01")]


def _is_update(element: Element) -> bool:
    names = f"{element.attr('class') or ''} {element.attr('itemprop') or ''}"
    return _OTHER_DATE.search(names[:_LONGEST_BLOCK]) is not None


def _shown_dates(document: Document) -> Iterator[str]:
    """Dates in words, where one would expect the date of a text."""
    for element in _own(document, _SIGNS_OF_DATES):
        text = " ".join(element.text.split())
        if 0 < len(text) <= _LONGEST_BLOCK and not _is_update(element) and (found := _in_words(text)):
            yield found


def _in_words(text: str) -> str:
    match = next(filter(None, (pattern.search(text) for pattern in _IN_WORDS)), None)
    if match is None or _OTHER_DATE.search(text, 0, match.start()):
        return ""
    month = match["month"].lower()
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
    return standard(f"{match['year']}-{number:02d}-{int(match['day']):02d}") or ""
