"""Pages about what changed: two runs side by side, and the text of one page in both."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice, zip_longest
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Request

from inchworm.app.read.comparisons import ComparisonPart, PageGroup, PagesWanted
from inchworm.app.root import App
from inchworm.errors import Unknown
from inchworm.model import Change, CrawlInfo
from inchworm.rules.change.groups import GroupPlace, Passage
from inchworm.rules.change.words import Piece, beside, cost, whole, words
from inchworm.service.api.iterations import CrawlId
from inchworm.service.api.web import Home, ListSlice, Paged, crawl_of, cursor_of, listed
from inchworm.service.dashboard.frame import page, pages, part
from inchworm.service.dashboard.live import Parts, view

routes = pages()

RUNS = 200
"""So many runs can be chosen from."""

LINES = 2_000
ROWS = 400
LONGEST = 600
"""What is shown of a text: so many lines are compared, so many shown, and so much of each."""

_MOST_BYTES = 110_000
"""Of both texts together, as they are written in a page."""

CONTEXT = 3
_FOLD = 2 * CONTEXT + 2
_MOST_EFFORT = 600_000
"""Pairs of words that are looked at: whoever writes a page must not decide how long we think about it."""

_MOST_PAIRS = 2_000
_NAME = re.compile(r"([^:]*):(\d{1,18}):(\d{1,18}):([^:]*):(.*)", re.DOTALL)
_ORDER = (Change.MODIFIED, Change.NEW, Change.DELETED, Change.UNKNOWN, Change.UNCHANGED)

# Numbers come as texts, because an empty choice of a form is none.
Chosen = Annotated[str, Query(max_length=18, pattern=r"^\d*$")]
Text = Annotated[str, Query(max_length=500)]
Word = Annotated[str, Query(max_length=20)]


# Two runs


@routes.get("/crawls/{crawl_id}/compare")
def compare(
    request: Request,
    app: Home,
    crawl_id: CrawlId,
    paged: Paged,
    baseline: Chosen = "",
    current: Chosen = "",
    change: Word = "",
    q: Text = "",
    alike: Annotated[str, Query(max_length=20, pattern=r"^(-?\d+)?$")] = "",
) -> Any:
    crawl = crawl_of(app, crawl_id)
    context: dict[str, Any] = {"crawl": crawl, "tab": "compare", "runs": app.runs.choices(crawl, RUNS), "q": q}
    if len(context["runs"]) < 2:
        return page(request, "compare.html", **context, found=None, parts={})
    runs = (_number(baseline), _number(current))
    wanted = _wanted(paged, PagesWanted(Change.MODIFIED if alike else change, q, alike=_number(alike)))
    found = app.comparisons.part(crawl, runs, wanted)
    shown = _parts(crawl, found, q, request.query_params.get("cursor", ""), alike)
    is_counting = found.looked_at < found.urls and paged.after is None and not alike
    named = f"compare:{crawl_id}:{found.baseline}:{found.current}:{found.change}:{q}"
    return page(request, "compare.html", **context, found=found, parts=shown, view=named if is_counting else "")


def _wanted(paged: ListSlice, wanted: PagesWanted) -> PagesWanted:
    """With the place that the cursor tells: that of a group, or that of a page."""
    if isinstance(paged.after, list):
        pages, first = cursor_of(paged, int, int) or (0, 0)
        return wanted._replace(behind=GroupPlace(pages, first), limit=paged.limit)
    (after,) = cursor_of(paged, int) or (0,)
    return wanted._replace(after=after, limit=paged.limit)


def _number(text: str) -> int | None:
    return int(text) if text else None


@view("compare", works=True)
def compare_parts(app: App, name: str) -> Parts:
    """While it is still being counted, a little more of it is known every time."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise Unknown("There is no such comparison.", "Load the page again.")
    crawl_id, baseline, current, change, q = parts.groups()
    crawl = crawl_of(app, crawl_id)
    found = app.comparisons.part(crawl, (int(baseline), int(current)), PagesWanted(change, q))
    return _parts(crawl, found, q, "")


def _parts(crawl: CrawlInfo, found: ComparisonPart, q: str, cursor: str, alike: str = "") -> Parts:
    numbers = {"baseline": found.baseline, "current": found.current}
    context = {
        "at": f"/crawls/{crawl.crawl_id}",
        "found": found,
        "order": [(change.value, found.counts[change.value]) for change in _ORDER],
        "query": {**numbers, "change": found.change, "q": q, "alike": alike, "cursor": cursor},
        "groups": [ShownGroup(one, [_marked(passage) for passage in one.difference.passages]) for one in found.groups],
        "next_cursor": _cursor(found.next_group or found.next_after),
        "owner": found.baseline if found.change in ("deleted", "unknown") else found.current,
    }
    return {f"compare-{name}": part(f"_compare_{name}.html", **context) for name in ("counts", "pages")}


class ShownGroup(NamedTuple):
    """Modified pages that changed in the same way, with what differs on them, its words marked."""

    group: PageGroup
    passages: list[ShownPassage]


class ShownPassage(NamedTuple):
    """A passage of both versions, the words that differ marked."""

    where: str
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def _marked(one: Passage) -> ShownPassage:
    """Words are marked where the rest is the same: a mark on everything says nothing."""
    before, after = words(one.before, one.after)
    if all(piece.is_marked for piece in before + after):
        before, after = (Piece(one.before),), (Piece(one.after),)
    return ShownPassage(one.where, before, after)


def _cursor(after: int | GroupPlace | None) -> str | None:
    """The cursor of what comes behind a number."""
    more = [after, after] if after is not None else []
    return listed(more, ListSlice(None, 1), lambda number: number).next_cursor


# One page in two runs


class Side(NamedTuple):
    """A line of one text."""

    number: int
    pieces: tuple[Piece, ...]


class PairedLine(NamedTuple):
    """Two lines side by side. `folded`: so many lines that are the same are left out here."""

    left: Side | None = None
    right: Side | None = None
    is_same: bool = False
    folded: int = 0


@routes.get("/crawls/{crawl_id}/diff")
def diff(
    request: Request,
    app: Home,
    crawl_id: CrawlId,
    url: Annotated[str, Query(max_length=4000)],
    baseline: Chosen = "",
    current: Chosen = "",
) -> Any:
    crawl = crawl_of(app, crawl_id)
    found = app.changes.texts(crawl.crawl_id, url, _number(baseline), _number(current))
    before, after = found.before or (), found.after or ()
    rows = side_by_side(before[:LINES], after[:LINES])
    context: dict[str, Any] = {
        "crawl": crawl,
        "tab": "compare",
        "found": found,
        "has": (found.before is not None, found.after is not None),
        "rows": rows[: (shown := fitting(rows))],
        "is_cut": len(rows) > shown or max(len(before), len(after)) > LINES,
        "is_same": all(row.is_same or row.folded for row in rows),
    }
    return page(request, "diff.html", **context)


def fitting(rows: Sequence[PairedLine]) -> int:
    """How many of the rows go onto one page."""
    size = 0
    for number, row in enumerate(rows[:ROWS]):
        pieces = (piece for side in (row.left, row.right) if side for piece in side.pieces)
        size += sum(len(escape(piece.text).encode(errors="replace")) for piece in pieces)
        if size > _MOST_BYTES:
            return number
    return min(len(rows), ROWS)


def side_by_side(before: Sequence[str], after: Sequence[str]) -> list[PairedLine]:
    """Two texts line by line, what is the same folded to a few lines around what is not. One row more than is shown is
    enough."""
    return list(islice(_rows(before, after), ROWS + 1))


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[PairedLine]:
    effort = pairs = 0
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            same = [_same(number, before[number], number - a + c) for number in range(a, b)]
            yield from _folded(same, is_first=a == 0, is_last=b == len(before) and d == len(after))
            continue
        pairs += (b - a) * (d - c)
        for i, j in beside(before[a:b], after[c:d]) if pairs < _MOST_PAIRS else zip_longest(range(b - a), range(d - c)):
            left, right = None if i is None else a + i, None if j is None else c + j
            old = None if left is None else clipped(before[left])
            new = None if right is None else clipped(after[right])
            effort += cost(old, new)
            marked = words(old or "", new or "") if effort < _MOST_EFFORT else whole(old or "", new or "")
            yield PairedLine(
                None if left is None else Side(left + 1, marked[0]),
                None if right is None else Side(right + 1, marked[1]),
            )


def _same(number: int, text: str, other: int) -> PairedLine:
    pieces = (Piece(clipped(text)),)
    return PairedLine(Side(number + 1, pieces), Side(other + 1, pieces), is_same=True)


def _folded(rows: list[PairedLine], is_first: bool, is_last: bool) -> list[PairedLine]:
    head, tail = 0 if is_first else CONTEXT, 0 if is_last else CONTEXT
    if len(rows) < max(_FOLD, head + tail + 2):
        return rows
    return [*rows[:head], PairedLine(folded=len(rows) - head - tail), *rows[len(rows) - tail :]]


def clipped(line: str) -> str:
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
