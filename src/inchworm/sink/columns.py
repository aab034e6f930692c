"""The one table of columns: what exports, the HTTP API and the library call each thing that is known of a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from inchworm.errors import WrongUse
from inchworm.model import Json
from inchworm.page import Page
from inchworm.rules.words.times import iso

Record = Mapping[str, Any]
"""What the store has on a visit. What it does not have counts as None."""


class Type(StrEnum):
    """What the values of a column are. Times are milliseconds since 1970, as records have them."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TIME = "time"
    LIST = "list"
    JSON = "json"


class Column(NamedTuple):
    """A column, its type, how to get its value from a page, and what it is. A dot in its name makes a level of its own
    in JSON. `key`: the value is what the page's record has under it."""

    name: str
    type: Type
    get: Callable[[Page], Json]
    help: str
    key: str = ""

    @property
    def flat(self) -> str:
        """Its name where there are no levels."""
        return self.name.replace(".", "_")

    def json(self, page: Page) -> Json:
        """Its value as JSON has it."""
        value = self.get(page)
        return iso(value) if self.type is Type.TIME and isinstance(value, int) else value


def _known(name: str, help_: str, kind: Type = Type.TEXT, key: str = "") -> Column:
    key = key or name
    return Column(name, kind, lambda page: page.record.get(key), help_, key)


def _said(name: str, help_: str) -> Column:
    """What the page says of itself."""
    return Column(name, Type.TEXT, lambda page: (page.record.get("meta") or {}).get(name), help_)


def _title(page: Page) -> str | None:
    title: str | None = page.title or page.record.get("title")
    return title


def _seconds(page: Page) -> float | None:
    millis = page.record.get("millis")
    return None if millis is None else millis / 1000


def _content(name: str, help_: str, kind: Type = Type.TEXT, get: Callable[[Page], Any] | None = None) -> Column:
    """What is read out of the archive. Pages that are not there, lost ones and such that nobody can read have none."""
    read = get or (lambda page: getattr(page, name))

    def value(page: Page) -> Any:
        found = None if page.is_gone or page.is_lost else read(page)
        return None if page.unreadable else found

    return Column(name, kind, value, help_)


KNOWN = (
    _known("url", "The address as it was requested."),
    _known(
        "canonical_url", "The address by which it is told from others; every other column with addresses has these."
    ),
    _known("run", "The run that saw this version.", Type.INTEGER),
    _known("seq", "Its place in the record of that run.", Type.INTEGER),
    _known("outcome", "What came of it: page, duplicate, resource, redirect, failed, deleted, retry."),
    _known("failure", "The kind of failure."),
    _known("message", "What went wrong, in words."),
    _known("change", "new, modified, unchanged, deleted or unknown; nothing in a first run."),
    _known("note", "Words that say more of the change."),
    _known("status", "The HTTP status.", Type.INTEGER),
    _known("fetched_at", "When it was asked for.", Type.TIME, "at_ms"),
    Column("seconds", Type.NUMBER, _seconds, "How long the answer took."),
    _known("bytes", "The size of the answer as it was transferred.", Type.INTEGER, "size"),
    _known("content_type", "As the server says."),
    _known("etag", "As the server says."),
    _known("last_modified", "As the server says."),
    _known("content_hash", "SHA-256 of title and main text, or of the body: equal for equal content.", key="text_hash"),
    _known("payload_hash", "SHA-256 of the body as it was transferred.", key="payload"),
    Column("title", Type.TEXT, _title, "What the page calls itself: the name of its site is left out."),
    _known("full_title", "The title as it stands in the page.", key="title"),
    _known("language", "As the page says."),
    _said("author", "As the page says."),
    _said("published", "As the page says."),
    _said("modified", "As the page says."),
    _said("description", "As the page says."),
    Column("kind", Type.TEXT, lambda page: page.kind, "What kind of page it is: article, forum, …"),
    Column("confidence", Type.NUMBER, lambda page: page.confidence, "How sure the reader is of its text, from 0 to 1."),
    _known("canonical", "The address that the page itself calls the canonical one."),
    _known("meta", "All that the page says of itself.", Type.JSON),
    _known("redirect", "Where it leads."),
    _known("source", "How the URL was found: initial, spider, sitemap, redirect, resource, manual."),
    _known("depth", "Links from a seed.", Type.INTEGER),
    _known("hops", "Distance outside of the scope.", Type.INTEGER),
    _known("found_on", "The page on which it was first found."),
    _known("link_count", "How many links it has.", Type.INTEGER, "links"),
    _known("alternate_of", "The page that has the same content and was there first; only duplicates have it."),
    _known("alternate_urls", "All pages with this content, the first one first; only that one has it.", Type.LIST),
    _known("archive.file", "The WARC file that holds the answer.", key="file"),
    _known("archive.offset", "Where in it.", Type.INTEGER, "offset"),
    _known("archive.length", "How much of it.", Type.INTEGER, "length"),
)
"""What the store knows of every page."""


def _links(page: Page) -> list[dict[str, str]]:
    return [link._asdict() for link in page.links]


def _blocks(page: Page) -> list[dict[str, Any]]:
    return [block._asdict() for block in page.blocks]


CONTENT = (
    _content("text", "The main text."),
    _content("markdown", "The main part as Markdown."),
    _content("html", "The main part as HTML."),
    _content("raw_html", "The document as it came."),
    _content("comments", "What readers wrote below the text."),
    _content("blocks", "Its blocks: which are text, and why others are not.", Type.JSON, _blocks),
    _content("links", "Every link: url and text.", Type.JSON, _links),
    _content("data", "JSON-LD, microdata and Open Graph as they stand in the page.", Type.JSON),
    _content("headers", "The headers of the answer.", Type.JSON, lambda page: dict(page.headers)),
)
"""What is read out of the archive, on request."""

BEYOND_TEXT = frozenset({"markdown", "html", "raw_html", "links", "data", "headers"})
"""Columns that may change while title, text and the links in it are what they were."""

USUAL = (*KNOWN, *(column for column in CONTENT if column.name == "text"))
ALL = (*KNOWN, *CONTENT)


def chosen(names: Sequence[str] = (), more: Sequence[str] = (), fields: Sequence[Column] = ()) -> tuple[Column, ...]:
    """The columns of these names, or the usual ones; and some more. Fields come with the usual ones."""
    known = {column.flat: column for column in (*ALL, *fields)} | {column.name: column for column in ALL}
    for name in (*names, *more):
        if name not in known:
            names_known = ", ".join(column.flat for column in (*ALL, *fields))
            raise WrongUse(f"There is no column {name!r}.", f"Known ones: {names_known}.")
    base = [known[name] for name in names] if names else [*USUAL, *fields]
    return tuple(dict.fromkeys((*base, *(known[name] for name in more))))


def nested(columns: Sequence[Column]) -> Callable[[Page], dict[str, Any]]:
    """How to make a JSON object of a page."""
    steps = [(*column.name.rpartition("."), column, column.key * (column.type is not Type.TIME)) for column in columns]

    def made(page: Page) -> dict[str, Any]:
        told: dict[str, Any] = {}
        record = page.record
        for level, _, name, column, key in steps:
            # Most columns are looked up, and there are many of them.
            value = record.get(key) if key else column.json(page)
            if level:
                told.setdefault(level, {})[name] = value
            else:
                told[name] = value
        return told

    return made


as_json = json.JSONEncoder(ensure_ascii=False).encode
"""A value as JSON, in the letters that it has. Whoever writes it has to mind halves of characters."""


def renamed(visit: Record) -> dict[str, Any]:
    """A visit of the store by the names that people know: the address as it was requested is what they call its URL."""
    return {**visit, "url": visit["request_url"], "canonical_url": visit["url"]}


class ArchivePlace(NamedTuple):
    """Where the answer to a visit lies in the archive."""

    file: str | None
    offset: int | None
    length: int | None


class VisitLine(NamedTuple):
    """A visit to a page or resource as the API and the library tell of it: those columns above that have a field here,
    and what no export needs. `told.Visit` has the same fields, for the types of callers."""

    url: str
    canonical_url: str
    seq: int
    outcome: str
    failure: str | None
    message: str | None
    change: str | None
    note: str | None
    status: int | None
    fetched_at: str
    seconds: float | None
    bytes: int | None
    content_type: str | None
    etag: str | None
    last_modified: str | None
    content_hash: str | None
    payload_hash: str | None
    title: str | None
    full_title: str | None
    language: str | None
    author: str | None
    published: str | None
    modified: str | None
    description: str | None
    canonical: str | None
    meta: Mapping[str, Json]
    redirect: str | None
    source: str
    depth: int
    hops: int
    found_on: str | None
    link_count: int
    archive: ArchivePlace
    session: int
    kind: str
    missing: int


_SAID_BESIDE = ("session", "kind", "missing")
_FIELDS = frozenset(VisitLine._fields).difference(_SAID_BESIDE)
_as_shown = nested([column for column in KNOWN if column.name.partition(".")[0] in _FIELDS])


def visit_line(visit: Record) -> VisitLine:
    """A visit of the store by the names that people know."""
    told = _as_shown(Page(visit["request_url"], "", lambda: None, renamed(visit)))
    told["archive"] = ArchivePlace(**told["archive"])
    return VisitLine(**told, **{name: visit[name] for name in _SAID_BESIDE})
