"""Pages about content: what became of each URL, full text, one page with its history, and a look at what is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import PlainTextResponse, Response

from inchworm.app import FORMATS
from inchworm.app.read.content.bodies import MOST_TEXT, StoredBody
from inchworm.app.read.content.pages import MOST_LINKS, ListPart, PageVisit
from inchworm.app.read.content.search import SEARCH_SECONDS, SearchResults
from inchworm.app.read.content.snippet import pieces
from inchworm.app.read.content.visits import VisitLine
from inchworm.app.root import App
from inchworm.errors import InchwormError, Unknown, WrongUse
from inchworm.model import Change, CrawlInfo, Reason, State
from inchworm.rules.formats import plain
from inchworm.rules.words.explain import REASONS
from inchworm.rules.words.failures import KINDS
from inchworm.service.access import gate
from inchworm.service.api.web import Home, ListPage, ListSlice, Paged, Service, crawl_of, cursor_of, goes_on, listed
from inchworm.service.dashboard.frame import Fields, Form, back, page, pages, part
from inchworm.service.dashboard.live import Parts, view
from inchworm.service.templating import one_of

routes = pages()
bodies = APIRouter(include_in_schema=False)
CrawlId = Annotated[str, Path(max_length=64)]
Text = Annotated[str, Query(max_length=4000)]

ROWS = 50
FOUND = 20
_MOST_FOUND = 100
_AT_ONCE_SECONDS = 0.15
PREVIEW_BYTES = 5_000_000
"""What is larger is not shown; it can be downloaded."""

OUTCOMES = ("page", "duplicate", "resource", "redirect", "failed", "deleted")
_WAITING = (State.PENDING.value, State.REFUSED.value)
_TABS = (
    ("", "All", ""),
    ("page", "Pages", "pages"),
    ("duplicate", "Duplicates", "duplicates"),
    ("resource", "Resources", "resources"),
    ("redirect", "Redirects", "redirects"),
    ("failed", "Failed", "failed"),
    ("deleted", "Deleted", ""),  # the counter has only those that were there in the run before
    ("pending", "Waiting", "pending"),
    ("refused", "Not followed", "refused"),
)
"""What can be listed: as it is asked for, in words, and the counter that says how many there are."""


def number_of(text: str) -> int | None:
    """The number of a run as a form sends it: nothing means the last one."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Unknown(f"There is no run {text[:50]!r}.", "The runs of a crawl are counted from 0.")
    return int(text)


# What became of each URL


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which URLs somebody wants to see. Forms send what is left open as an empty text."""

    run: Text = ""
    outcome: Text = ""
    kind: Text = ""
    change: Text = ""
    reason: Text = ""
    q: Text = ""

    def check(self) -> None:
        known = {"outcome": (*OUTCOMES, *_WAITING), "kind": KINDS, "change": [*Change], "reason": [*Reason]}
        for name, words in known.items():
            if (given := getattr(self, name)) and given not in words:
                raise WrongUse(f"There is no {name} {given[:50]!r}.", f"Known ones: {', '.join(words)}.")

    def query(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("run", "outcome", "kind", "change", "reason", "q")}


@routes.get("/crawls/{crawl_id}/pages")
def listing(
    request: Request, app: Home, crawl_id: CrawlId, wanted: Annotated[PageFilter, Depends()], paged: Paged
) -> Any:
    crawl = crawl_of(app, crawl_id)
    wanted.check()
    counts = app.runs.counts(crawl, number_of(wanted.run))
    waits = wanted.outcome in _WAITING
    shown = (_entries if waits else _settled)(app, crawl, wanted, paged._replace(limit=ROWS))
    return page(
        request,
        "pages.html",
        crawl=crawl,
        tab="pages",
        counts=counts,
        tabs=[(value, name, getattr(counts.counters, counter) if counter else None) for value, name, counter in _TABS],
        runs=app.runs.choices(crawl),
        wanted=wanted.query(),
        query={**wanted.query(), "cursor": request.query_params.get("cursor", "")},
        waits=waits,
        part=shown,
        kinds=KINDS,
        reasons=REASONS,
        changes=[change.value for change in Change],
        formats=tuple(FORMATS),
    )


def _settled(app: App, crawl: CrawlInfo, wanted: PageFilter, paged: ListSlice) -> ListPage[VisitLine]:
    given = {"outcome": wanted.outcome, "failure": wanted.kind, "change": wanted.change, "text": wanted.q.strip()}
    after = cursor_of(paged, int)
    sought = {name: value for name, value in given.items() if value}
    part = ListPart(max(0, after[0]) if after else 0, ROWS)
    found = app.pages.listed(crawl.crawl_id, sought, number_of(wanted.run), part)
    return goes_on(found.items, found.next_after)


def _entries(app: App, crawl: CrawlInfo, wanted: PageFilter, paged: ListSlice) -> ListPage[Any]:
    given = {"state": wanted.outcome, **({"reason": wanted.reason} if wanted.reason else {})}
    after = cursor_of(paged, int)
    rows = app.frontier.list(crawl, given, number_of(wanted.run), max(0, after[0]) if after else 0, ROWS + 1)
    return listed(rows, paged, lambda one: one.url_id)


# Doing something about them


@routes.post("/crawls/{crawl_id}/pages/retry")
def retry(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    """Open again what failed: one URL, those of a kind, or all."""
    crawl = crawl_of(app, crawl_id)
    count = app.queue.retry(crawl.crawl_id, form.text("kind") or None, form.text("url") or None)
    if not count:
        return _back(crawl, form, "Nothing that failed in the last run fits.", is_bad=True)
    them = "1 URL is open again. A session fetches it." if count == 1 else f"{count:,} URLs are open again."
    hint = "" if app.workspace.is_running(crawl) else "Resume the crawl to have them fetched."
    return _back(crawl, form, them, hint)


@routes.post("/crawls/{crawl_id}/pages/take-out")
def take_out(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    """Take a URL out of the queue."""
    crawl = crawl_of(app, crawl_id)
    app.queue.take_out(_entry(app, crawl, form))
    return _back(crawl, form, "It is out of the queue, and will not be visited in this run.")


@routes.post("/crawls/{crawl_id}/pages/dismiss")
def dismiss(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    """Nobody wants to hear of a link again that was not followed."""
    crawl = crawl_of(app, crawl_id)
    app.queue.dismiss(_entry(app, crawl, form))
    return _back(crawl, form, "The link is dismissed: this run will not follow it.")


@routes.post("/crawls/{crawl_id}/pages/clear")
def clear(app: Home, crawl_id: CrawlId, form: Fields) -> Any:
    """Refuse all that waits, so that the run is complete."""
    crawl = crawl_of(app, crawl_id)
    if form.text("sure") != "yes":
        raise WrongUse("That cannot be taken back, so it is asked for once more.", "Open it and say yes.")
    count = app.queue.clear(crawl.crawl_id)
    return _back(crawl, form, f"{one_of(count, 'URL')} will not be visited in this run, which is complete now.")


@routes.post("/crawls/{crawl_id}/pages/add")
def add(app: Home, service: Service, crawl_id: CrawlId, form: Fields) -> Any:
    """Put a URL into the last run by hand."""
    crawl = crawl_of(app, crawl_id)
    made = app.queue.add(crawl, form.text("url"), 0, service.values.allow_private)
    if made.entry.facts.state == State.REFUSED:
        return _back(crawl, form, made.message, made.entry.url, is_bad=True)
    return _back(
        crawl, form, made.message, "" if app.workspace.is_running(crawl) else "Resume the crawl to have it fetched."
    )


def _entry(app: App, crawl: CrawlInfo, form: Form) -> str:
    entry_id = form.text("entry")
    if app.frontier.place_of(entry_id).crawl.crawl_id != crawl.crawl_id:
        raise Unknown("That URL belongs to another crawl.", "Load the page again.")
    return entry_id


def _back(crawl: CrawlInfo, form: Form, text: str, hint: str = "", is_bad: bool = False) -> Response:
    return back(form.text("back") or f"/crawls/{crawl.crawl_id}/pages", text, hint, is_bad)


# Full text


@routes.get("/crawls/{crawl_id}/search")
def search(
    request: Request,
    app: Home,
    crawl_id: CrawlId,
    q: Annotated[str, Query(max_length=1000)] = "",
    limit: Annotated[int, Query(ge=1, le=_MOST_FOUND)] = FOUND,
    wait: Annotated[bool, Query()] = False,
) -> Any:
    """Pages that say something. What is not in the index yet is entered bit by bit, while one looks; `wait`: more of
    it, because somebody has been told that it takes a while."""
    crawl = crawl_of(app, crawl_id)
    found, trouble = None, None
    try:
        if q.strip():
            found = app.search.find(crawl_id, q, limit, SEARCH_SECONDS if wait else _AT_ONCE_SECONDS)
    except WrongUse as error:
        trouble = error
    name = f"search:{crawl.crawl_id}:{q}" if found and found.unread and found.unread.missing else ""
    results = _found(crawl, q, found) if found else ""
    return page(request, "search.html", crawl=crawl, tab="pages", q=q, trouble=trouble, results=results, view=name)


@view("search", works=True)
def results(app: App, rest: str) -> Parts:
    """Goes on with the index while somebody waits for it, and shows what is found by now."""
    crawl_id, _, q = rest.partition(":")
    crawl = crawl_of(app, crawl_id)
    return {"results": _found(crawl, q, app.search.find(crawl_id, q, FOUND, SEARCH_SECONDS))}


def _found(crawl: CrawlInfo, q: str, found: SearchResults) -> str:
    return part("_page_found.html", crawl=crawl, q=q, found=found, unread=found.unread, pieces=pieces)


# One page


@routes.get("/crawls/{crawl_id}/page")
def one_page(
    request: Request,
    app: Home,
    crawl_id: CrawlId,
    url: Annotated[str, Query(min_length=1, max_length=4000)],
    run: Text = "",
    linked: Annotated[int, Query(ge=0, lt=1 << 62)] = 0,
    show: Text = "",
) -> Any:
    """One page. `linked`: from behind which step on to look who links to it; `show=text`: its text, however long that
    takes."""
    crawl, number = crawl_of(app, crawl_id), number_of(run)
    details = app.pages.details(crawl, url, number)
    known, visit = details.known, details.visit
    address = known.url
    text = app.bodies.text(crawl, address, number, show == "text")
    linking = app.pages.links_to(crawl, address, number, linked)
    return page(
        request,
        "page.html",
        crawl=crawl,
        tab="pages",
        details=details,
        known=known,
        row=known.facts,
        visit=visit.line if visit else None,
        last=visit,
        run=details.run,
        is_last=details.run == app.runs.counts(crawl).run,
        runs=[line.run for line in details.history],
        text=text[:MOST_TEXT] if text else text,
        text_length=len(text or ""),
        linking=linking.items,
        linked=linked,
        next_after=linking.next_after,
        most_links=MOST_LINKS,
        preview=preview_of(visit) if visit and visit.is_stored else "",
        failure=KINDS.get(visit.line.failure or "") if visit else None,
        stored=f"/crawls/{crawl.crawl_id}/body?" + urlencode({"url": address, "run": details.run}),
    )


# What is stored

_IMAGES = frozenset(("png", "jpeg", "gif", "webp", "avif", "bmp", "x-icon", "vnd.microsoft.icon", "svg+xml"))
_TEXTS = frozenset(("json", "ld+json", "xml", "rss+xml", "atom+xml", "javascript", "x-javascript", "x-sh", "toml"))
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9][a-z0-9._:-]{0,39})", re.IGNORECASE)
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def kind_of(content_type: str) -> str:
    """How something stored can be shown: as `html`, as an `image`, as `text`, or not at all."""
    whole = content_type.partition(";")[0].strip().lower()
    family, _, name = whole.partition("/")
    if whole in ("text/html", "application/xhtml+xml"):
        return "html"
    if family == "image" and name in _IMAGES:
        return "image"
    return "text" if family == "text" or (family == "application" and name in _TEXTS) else ""


def preview_of(visit: PageVisit) -> str:
    is_large = (visit.line.bytes or 0) > PREVIEW_BYTES
    return "large" if is_large else kind_of(visit.line.content_type or "") or "file"


@bodies.get("/crawls/{crawl_id}/body")
def body(
    app: Home,
    crawl_id: CrawlId,
    url: Annotated[str, Query(min_length=1, max_length=4000)],
    run: Text = "",
    show: Text = "",
) -> Response:
    """What the archive has of a page, as it came: hostile, until proven otherwise. `show`: `source` or `download`."""
    try:
        answer = _shown(app.bodies.body(crawl_of(app, crawl_id), url, number_of(run)), show)
    except InchwormError as error:
        answer = PlainTextResponse(f"{error.message}\n{error.hint}\n", error.status)
    answer.headers.update(gate.STORED_HEADERS)
    return answer


def _shown(stored: StoredBody, show: str) -> Response:
    kind = kind_of(stored.content_type)
    if show == "download" or (show != "source" and not kind):
        return _download(stored)
    if len(stored.body) > PREVIEW_BYTES:
        said = f"It has {len(stored.body):,} bytes; up to {PREVIEW_BYTES:,} are shown. Download it instead.\n"
        return PlainTextResponse(said, 413)
    if show == "source" or kind == "text":
        return PlainTextResponse(plain.decoded(stored.body, stored.content_type))
    if kind == "image":
        return Response(stored.body, media_type=stored.content_type.partition(";")[0].strip().lower())
    label = _CHARSET.search(stored.content_type)
    # Without a charset, so that the page may name its own, as it would have done from its server.
    media_type = f"text/html; charset={label[1]}" if label else "text/html"
    return Response(stored.body, headers={"Content-Type": media_type})


def _download(stored: StoredBody) -> Response:
    name = _NO_NAME.sub("-", stored.url.partition("?")[0].rpartition("/")[2]).strip(".-")[-80:] or "page"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(stored.body, media_type="application/octet-stream", headers=headers)
