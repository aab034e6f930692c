"""What changed: two runs of a crawl, and one page in two runs."""

from __future__ import annotations

import contextlib
import difflib
import json
import shutil
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import BinaryIO

from inchworm.app.read.content.differences import Differences
from inchworm.app.read.runs import iteration_id
from inchworm.app.workspace import Workspace, identity
from inchworm.engine.own.bodies import Bodies
from inchworm.errors import NotNow, Unknown
from inchworm.model import Change, CrawlInfo, Json, RunInfo
from inchworm.page import opened
from inchworm.ports import VisitRow
from inchworm.rules.change import groups
from inchworm.rules.change.groups import AlikePages, ModifiedGroup
from inchworm.rules.words.json_form import FLAT, json_form, json_object
from inchworm.store.crawl.read.compare import Compared, ComparisonReader, turned
from inchworm.store.crawl.read.progress import Whole
from inchworm.store.crawl.store import CrawlStore

_MOST_LOOKS = 1_000
"""So many pages are read to see what came and what went."""

GROUPS = 100
GROUP_URLS = 10
"""Of modified pages so many groups are told at the most, and so many pages of each."""

_IN_MEMORY = 250_000
"""Bytes of each list of a comparison; what is more goes to disk."""


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Which runs are compared."""

    baseline_iteration_id: str
    current_iteration_id: str


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """What two runs came to, in numbers and in a sentence."""

    unknown_reasons: Mapping[str, int]
    total_changes: int
    has_changes: bool
    summary: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Every page of two runs, by what became of it."""

    runs: ComparedRuns = field(metadata=FLAT)
    new_documents: Sequence[str]
    modified_documents: Sequence[str]
    unchanged_documents: Sequence[str]
    deleted_documents: Sequence[str]
    unknown_documents: Sequence[str]
    modified_groups: Sequence[ModifiedGroup]
    counts: ChangeCounts = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The lines of one page in two runs; None for the run that does not have it."""

    url: str
    canonical_url: str
    baseline: int
    current: int
    before: Sequence[str] | None
    after: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class PageDifference:
    """One page in two runs, as lines of a unified diff."""

    url: str
    canonical_url: str
    baseline: int
    current: int
    diff: Sequence[str]
    is_cut: bool


class Changes:
    """What changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def compare(
        self, word: str, first: int | None = None, second: int | None = None, most_groups: int = GROUPS
    ) -> RunComparison:
        """Every page of two runs by what became of it; without numbers: the last run and the one it builds on. What
        differs on modified pages is told of so many groups, the largest first."""
        crawl, reasons, modified = self._workspace.find(word), Counter[str](), _Modified()
        listed: dict[Change, list[str]] = {change: [] for change in Change}
        with self._side_by_side(crawl, first, second) as (store, a, b, found):
            for number, one in found:
                listed[one.change].append(one.url)
                reasons.update([one.why] if one.change is Change.UNKNOWN else ())
                modified.note(number, one)
            groups = modified.groups(store, self._differences(crawl, store, a, b), most_groups)
        counts = {change: len(urls) for change, urls in listed.items()}
        return RunComparison(
            _runs(crawl, a, b),
            listed[Change.NEW],
            listed[Change.MODIFIED],
            listed[Change.UNCHANGED],
            listed[Change.DELETED],
            listed[Change.UNKNOWN],
            groups,
            _counts(a, b, counts, reasons),
        )

    def texts_of(self, crawl: CrawlInfo, first: int, second: int) -> Iterator[str | None]:
        """What came and what went between two runs, one passage after the other. None: there is something that cannot
        be read, or is too much to be looked at."""
        seen = set[int]()
        with self._side_by_side(crawl, first, second) as (store, a, b, found):
            differences, looks = self._differences(crawl, store, a, b), 0
            for number, one in found:
                if one.change not in (Change.NEW, Change.MODIFIED) or one.alike in seen:
                    continue
                seen |= {one.alike} if one.alike is not None else set()
                passages = differences.passages(number, one.url) if looks < _MOST_LOOKS else None
                if passages is None:
                    yield None
                    return
                looks += 1
                yield from (text for passage in passages for text in passage[1:] if text)

    def write_comparison(self, word: str, first: int | None, second: int | None, out: BinaryIO) -> None:
        """The same as JSON, however many pages there are: only a part of them is in memory."""
        crawl, counts, reasons = self._workspace.find(word), Counter[Change](), Counter[str]()
        modified = _Modified()
        with contextlib.ExitStack() as stack:
            lists = {change: stack.enter_context(SpooledTemporaryFile(_IN_MEMORY)) for change in Change}
            with self._side_by_side(crawl, first, second) as (store, a, b, found):
                for number, one in found:
                    lists[one.change].write(b"%s%s" % (b", " if counts[one.change] else b"", _as_json(one.url)))
                    counts[one.change] += 1
                    reasons.update([one.why] if one.change is Change.UNKNOWN else ())
                    modified.note(number, one)
                groups = modified.groups(store, self._differences(crawl, store, a, b), GROUPS)
            # The brace that ends it comes last.
            head = json_object(_runs(crawl, a, b)) | json_object(_counts(a, b, counts, reasons))
            out.write(_as_json(head)[:-1])
            for change, urls in lists.items():
                out.write(b', "%s_documents": [' % change.encode())
                urls.seek(0)
                shutil.copyfileobj(urls, out)
                out.write(b"]")
            out.write(b', "modified_groups": %s}' % _as_json(json_form(groups)))

    @contextlib.contextmanager
    def _side_by_side(
        self, crawl: CrawlInfo, first: int | None, second: int | None
    ) -> Iterator[tuple[CrawlStore, RunInfo, RunInfo, Iterator[tuple[int, Compared]]]]:
        """Two runs, and what became of each page from the one to the other, as it comes from the store, with the number
        of its URL."""
        with self._workspace.reading(crawl) as store:
            a, b = self._two(crawl, store, first, second)
            comparison = ComparisonReader(store, *sorted((a, b), key=lambda one: one.run_id))
            turn = turned if a.run_id > b.run_id else lambda change: change
            with comparison.snapshot():
                numbered = comparison.numbered()
                yield store, a, b, ((number, one._replace(change=turn(one.change))) for number, one in numbered)

    def _differences(self, crawl: CrawlInfo, store: CrawlStore, a: RunInfo, b: RunInfo) -> Differences:
        return Differences(store, self._workspace.place(crawl), (a, b))

    def _two(
        self, crawl: CrawlInfo, store: CrawlStore, first: int | None, second: int | None
    ) -> tuple[RunInfo, RunInfo]:
        b = self._workspace.run_of(crawl, store, second)
        before = first if first is not None else b.parent if b.parent is not None else b.origin
        if before is None and second is None and (branch := store.runs.newest_branch(b.number)) is not None:
            return b, branch
        if before is None:
            raise NotNow(
                f"Run {b.number} of {crawl.name!r} builds on no other, so there is nothing to compare it with.",
                "Crawl again when something has changed, or name two runs: inchworm compare CRAWL A B",
            )
        return self._workspace.run_of(crawl, store, before), b

    def diff(
        self, word: str, url: str, first: int | None = None, second: int | None = None, most: int | None = None
    ) -> PageDifference:
        """The text of one page in two runs, line by line. `most`: no more lines than this are compared, because whoever
        writes a page must not decide how long others think about it."""
        found = self.texts(word, url, first, second)
        before, after = found.before or (), found.after or ()
        is_cut = most is not None and max(len(before), len(after)) > most
        names = (f"run {found.baseline}", f"run {found.current}")
        lines = difflib.unified_diff(before[:most], after[:most], names[0], names[1], lineterm="")
        return PageDifference(found.url, found.canonical_url, found.baseline, found.current, list(lines), is_cut)

    def texts(self, word: str, url: str, first: int | None = None, second: int | None = None) -> PageTexts:
        """The lines of one page in two runs."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            a, b = self._two(crawl, store, first, second)
            address = identity(b, url)
            before, after = (self._lines(crawl, store, one, address) for one in (a, b))
            asked = [found.request_url for one in (b, a) if (found := _last_visit(store, one, address))]
        if before is None and after is None:
            raise Unknown(
                f"Neither run {a.number} nor run {b.number} of {crawl.name!r} has the page {address}.",
                "`inchworm runs` lists the runs, `inchworm show` what is known of a URL.",
            )
        asked_for = next(filter(None, asked), address)
        return PageTexts(asked_for, address, a.number, b.number, before, after)

    def _lines(self, crawl: CrawlInfo, store: CrawlStore, one: RunInfo, url: str) -> list[str] | None:
        """Title, text and links of a page as a run has it; None when it has none."""
        visit = _last_visit(store, one, url)
        if visit is None or visit.outcome not in ("page", "duplicate"):
            return None
        response = Bodies(store, self._workspace.place(crawl).archive).of(visit.payload)
        if response is None:
            return [f"(the archive has lost what run {one.number} read here)"]
        kind, address = visit.content_type or "", visit.request_url or url
        try:
            parts = opened(response.body, kind, address)
            said, targets = parts.said, parts.targets
        except Exception as error:
            return [f"(what run {one.number} has here cannot be read: {error!r})"]
        if not said.text and not said.title:
            return [f"{kind or 'unknown type'}, {visit.size:,} bytes, SHA-256 {(visit.payload or b'').hex()}"]
        return [f"title: {said.title}", "", *said.text.splitlines(), "", "links:", *targets]


class _Modified:
    """Modified pages of a comparison, as numbers: a million of them take little memory."""

    def __init__(self) -> None:
        self._pages, self._alike = array("q"), array("q")

    def note(self, number: int, one: Compared) -> None:
        if one.change is Change.MODIFIED:
            self._pages.append(number)
            self._alike.append(one.alike or 0)

    def groups(self, store: CrawlStore, differences: Differences, most: int) -> list[ModifiedGroup]:
        """The largest groups, each with its first pages and what differs on them."""
        found = groups.behind(groups.grouped(self._pages, self._alike), None, most)
        members: dict[int, list[int]] = {one.alike: [] for one in found if one.alike is not None}
        for page, number in zip(self._pages, self._alike, strict=True):
            if number in members and len(members[number]) < GROUP_URLS:
                members[number].append(page)
        return [_group(one, members.get(one.alike or 0) or [one.first], store, differences) for one in found]


def _group(one: AlikePages, pages: Sequence[int], store: CrawlStore, differences: Differences) -> ModifiedGroup:
    urls = {page.url_id: page.url for page in Whole(store).titled(pages, (0, 0))}
    told = differences.of(one.first, urls[one.first])
    return ModifiedGroup(one.pages, [urls[page] for page in pages], told.passages, told.is_cut, told.said)


def _last_visit(store: CrawlStore, one: RunInfo, url: str) -> VisitRow | None:
    """What a run came to with a URL."""
    known = store.frontier.known(one.run_id, [url]).get(url)
    return store.visits.of(one.run_id, known.url_id) if known and known.in_run else None


def _runs(crawl: CrawlInfo, a: RunInfo, b: RunInfo) -> ComparedRuns:
    return ComparedRuns(iteration_id(crawl, a.number), iteration_id(crawl, b.number))


def _counts(a: RunInfo, b: RunInfo, counts: Mapping[Change, int], reasons: Mapping[str, int]) -> ChangeCounts:
    total = counts[Change.NEW] + counts[Change.MODIFIED] + counts[Change.DELETED]
    return ChangeCounts(dict(reasons), total, total > 0, _summary(a.number, b.number, counts))


def _as_json(value: Json) -> bytes:
    return json.dumps(value).encode()


def _summary(first: int, second: int, counts: Mapping[Change, int]) -> str:
    said = f"Iteration {second} vs {first}: {counts[Change.NEW]} new, {counts[Change.MODIFIED]} modified,"
    said += f" {counts[Change.DELETED]} deleted, {counts[Change.UNCHANGED]} unchanged"
    return f"{said}, {counts[Change.UNKNOWN]} unknown" if counts[Change.UNKNOWN] else said
