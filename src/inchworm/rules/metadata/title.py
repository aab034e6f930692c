"""What a page calls itself: its title without the name of its site.

`<title>` is written for tabs and search results: most sites put their name into it, and some a slogan. The heading is
what a reader takes for the title. It is believed where `<title>`, the title for sharing or the address tell of the same
thing, for a logo and "Latest news" are headings, too. Otherwise the first part of `<title>` that is not the site's name
is the title.

A crawl notes what `<title>` and headings say, which costs next to nothing; what follows from it is found for whoever
looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from inchworm.rules.formats.media import Media, said_by
from inchworm.rules.metadata.describe import clean

MAX_HEADINGS = 5
LONGEST_HEADING = 300

_MOST_PARTS = 8
_SHORTEST_NAME = 3
_ALIKE = 0.6
"""So much of what a heading says has to stand elsewhere, too."""

_BETWEEN_PARTS = re.compile(r"\s+(?:[|»«›·•–—:/\\←-]|::|\|\||-\|)\s+|\s*[|»]\s*")
_NO_LETTERS = re.compile(r"[\W_]+")
_WORD = re.compile(r"\w+")
_LINK_MARKS = "#§¶🔗 "
"""What manuals hang on a heading, for links to it."""


def seen(title: str, headings: Iterable[str], shared: str) -> dict[str, object]:
    """What a crawl notes beside `<title>`: headings, and the title for sharing where it says something else."""
    texts = (clean(heading).strip(_LINK_MARKS) for heading in headings)
    found: dict[str, object] = {}
    if kept := list(dict.fromkeys(text for text in texts if 0 < len(text) <= LONGEST_HEADING)):
        found["headings"] = kept
    shared = clean(shared)
    if shared and not (title and (shared in title or title in shared)):
        found["shared_title"] = shared
    return found


def own_title(title: str, said: Mapping[str, Any], url: str, content_type: str) -> str:
    """What the page calls itself. `title`: what stands in `<title>`; `said`: what else was noted."""
    if said_by(content_type) not in (Media.HTML, None):
        return title  # only web pages name their site there
    shared, site = _text(said, "shared_title"), _site(said, url)
    title = unescape(title or shared)
    headings = [text for text in said.get("headings", ()) if not site.is_name(text)]
    if not title:
        return headings[0] if headings else ""
    parts = _parts(title)
    runs = {_letters(run): run for run in _runs(title, parts)}
    for heading in headings:
        if run := runs.get(_letters(heading)):
            return run if heading.isupper() else heading
    told = _words(f"{title} {shared} {site.path}")
    alike = (heading for heading in headings if _is_alike(heading, told))
    return next(alike, "") or _first_part(title, parts, site)


# ---- the site


@dataclass(frozen=True, slots=True)
class _Site:
    """What is known of the site that a page belongs to, and where on it the page is."""

    host: str
    path: str
    names: tuple[str, ...]

    def is_name(self, text: str) -> bool:
        """Whether a text is the site's name and no more."""
        letters = _letters(text)
        return not letters or letters in self.names or (len(letters) >= _SHORTEST_NAME and letters in self.host)


def _site(said: Mapping[str, Any], url: str) -> _Site:
    try:
        parts = urlsplit(url)
    except ValueError:  # whoever reads a page without a crawl may call it what they like
        parts = urlsplit("")
    names = tuple(_letters(_text(said, name)) for name in ("site_name", "publisher"))
    return _Site(_letters(parts.hostname or ""), parts.path, names)


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


# ---- the parts of a title

_Part = tuple[int, int]


def _parts(title: str) -> list[_Part]:
    """Where the parts of a title begin and end."""
    cuts = [cut.span() for cut in islice(_BETWEEN_PARTS.finditer(title), _MOST_PARTS)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(title)]
    return list(zip(starts, ends, strict=True))


def _runs(title: str, parts: Sequence[_Part]) -> Iterator[str]:
    """Everything that one part, or some after one another, say."""
    for first, (start, _) in enumerate(parts):
        for _, end in parts[first:]:
            yield title[start:end]


def _first_part(title: str, parts: Sequence[_Part], site: _Site) -> str:
    """The first part that is not the site's name; where that is all there is, it."""
    texts = [text for start, end in parts if (text := title[start:end].strip())]
    return next((text for text in texts if not site.is_name(text)), texts[0] if texts else title)


def _is_alike(heading: str, told: set[str]) -> bool:
    words = _words(heading)
    return bool(words) and len(words & told) >= _ALIKE * len(words)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.replace("_", " ").casefold()))


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", text.casefold())
