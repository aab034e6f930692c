"""What people see: live progress on a terminal, lines in a log, tables, errors with the next step.

Progress and logs go to standard error; what was asked for goes to standard output. `rich` is loaded only when
there is a terminal to draw on.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from inchworm.cli.screen.door import Styled, folded, paragraph, say, styled
from inchworm.cli.screen.table import table
from inchworm.cli.screen.words import MOST_DOWN, closing, counted, line, opening, quoted, taking
from inchworm.errors import InchwormError
from inchworm.model import CrawlInfo, Json, LiveProgress, Mode, RunInfo, RunState
from inchworm.rules.change.groups import ModifiedGroup, Passage
from inchworm.rules.order.order import EXACT
from inchworm.rules.web.url import host_of, shorten
from inchworm.rules.words import failures
from inchworm.rules.words.explain import LONGEST
from inchworm.rules.words.figures import clip, plain, size

if TYPE_CHECKING:  # whoever shows something else does not wait for it
    from inchworm.app.read.changes import PageDifference, RunComparison
    from inchworm.app.read.checkpoints import CheckpointLine
    from inchworm.app.read.content.visits import KnownUrl, StoredVisit
    from inchworm.app.read.crawls import CrawlStatus, UnreadableCrawl
    from inchworm.app.read.frontier import FrontierNumbers
    from inchworm.app.read.runs import RunLine

LOG_SECONDS = 5.0
LATER_LOG_SECONDS = 60.0
SHOWN_URLS = 20
SHOWN_GROUPS = 20
SHOWN_PASSAGES = 3
LONGEST_PASSAGE = 300
SHOWN_FAILURES = 10
SHOWN_GROUPS = 20
_HANGING = len("inchworm: ")


class SessionScreen(Protocol):
    """A place where a session can be watched."""

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None: ...

    def progress(self, progress: LiveProgress) -> None: ...

    def extracting(self, done: int, total: int) -> None:
        """Fields were taken out of so many pages, of so many."""
        ...

    def finished(self, summary: Any) -> None: ...


@contextlib.contextmanager
def live() -> Iterator[SessionScreen]:
    """The right display for where standard error goes."""
    if sys.stderr.isatty():
        from inchworm.cli.screen.live import Terminal

        with Terminal() as terminal:
            yield terminal
    else:
        yield ProgressLog()


class ProgressLog:
    """Progress as lines, for files and pipes: few, whole, and readable. A long crawl speaks once a minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None:
        _say(opening(crawl, run, session))

    def progress(self, progress: LiveProgress) -> None:
        now = time.monotonic()
        if now - self._said >= (LOG_SECONDS if progress.seconds < LATER_LOG_SECONDS else LATER_LOG_SECONDS):
            self._said = now
            _say(line(progress))

    def extracting(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self._said >= LOG_SECONDS:
            self._said = now
            _say(taking(done, total))

    def finished(self, summary: Any) -> None:
        for text in closing(summary):
            _say(text)


def _say(text: str) -> None:
    say(text, err=True)


def error(problem: InchwormError) -> None:
    first, *rest = folded(problem.message, _HANGING, err=True)
    _say(f"inchworm: {first}")
    for text in (*rest, *(folded(problem.hint, _HANGING, err=True) if problem.hint else ())):
        _say(" " * _HANGING + text)


def status(found: CrawlStatus) -> None:
    owner, counters = found.owner, found.counters
    who = f", process {owner.pid} on {owner.machine}" if owner else ""
    rows = [
        ("crawl", f"{found.name}  ({found.crawl_id})"),
        ("run", f"{found.run} ({found.mode}): {_state_in_words(found)}{who}"),
        (
            "pages",
            f"{counters.pages:,} unique, {counted(counters.duplicates, 'duplicate')}, {counters.failed:,} failed",
        ),
        ("URLs", f"{counters.known:,} known, {counters.pending:,} pending, {counters.refused:,} refused"),
        ("fetched", f"{counted(counters.requests, 'request')}, {size(counters.size)}"),
    ]
    if not found.on_line:
        rows.insert(2, ("beside", f"the line, so later runs do not build on it but on run {found.line_end}"))
    if lost := found.lost_files:
        count = counted(len(lost), "file is", "files are")
        rows.append(("archive", f"{count} missing or cut off; `inchworm doctor` names the pages that are lost"))
    if found.order not in ("", EXACT):
        rows.append(("order", found.order))
    if found.blocked:
        rows.append(("blocked", f"{counted(found.blocked, 'page')} by a challenge or captcha"))
    rows += [("down", f"{one.host} since {one.since[:19]}: {one.message}") for one in found.down[:MOST_DOWN]]
    _rows(rows)
    for one in found.sessions[-10:]:
        ended, requests = one.ended_by or one.state, counted(one.requests, "request")
        say(f"  session {one.session:<4} {one.started_at[:19]}  {requests:>17}  {ended}")


def _state_in_words(found: CrawlStatus) -> str:
    """What the run came to, in the words for a whole run; while it is open, how it stands."""
    if found.run_state == RunState.IN_PROGRESS:
        return found.run_state
    return found.word if found.run_state == RunState.COMPLETED else f"{found.word} ({found.run_state})"


def crawls(found: Sequence[CrawlStatus | UnreadableCrawl]) -> None:
    if not found:
        say("No crawls yet. Start one: inchworm crawl https://example.org/docs")
        return
    from inchworm.app.read.crawls import UnreadableCrawl  # whoever shows crawls has loaded it

    heads, rows, notes = ("name", "run", "state", "pages", "failed", "pending"), list[Sequence[str | int]](), []
    for one in found:
        if isinstance(one, UnreadableCrawl):
            rows.append((one.name, "-", one.run_state, "-", "-", "-"))
            notes.append(one.note)
        else:
            counters = one.counters
            rows.append((one.name, one.run, one.run_state, counters.pages, counters.failed, counters.pending))
            notes.append("")
    table(heads, rows, "name", notes)


def queue(found: FrontierNumbers, cleared: int | None) -> None:
    if cleared is not None:
        say(f"{counted(cleared, 'pending URL')} refused; the run is {found.run_state}.")
    _rows(
        [
            ("run", f"{found.current_run}: {found.run_state}"),
            ("visited", f"{found.visited:,}"),
            ("pending", f"{found.pending:,}"),
            ("refused", f"{found.refused:,}"),
            ("total", f"{found.total:,}"),
            ("can resume", "yes" if found.can_resume else "no"),
        ]
    )
    for one in found.counts:
        reason = f"  {one.reason}" if one.reason else ""
        say(f"  {one.source:<9} {one.state:<8} {one.count:>9,}{reason}")


def entry(found: KnownUrl) -> None:
    facts, place = found.facts, found.place
    outside = f", {counted(facts.hops, 'hop')} out" if facts.hops else ""
    rows = [
        ("url", found.url),
        ("state", found.why),
        (
            "source",
            f"{facts.source}, depth {facts.depth}{outside}",
        ),
        ("found on", facts.found_on or "(a seed)"),
        ("place", f"({place.place_seq}, {place.place_idx}) in its lane; seed {facts.seed_url}"),
    ]
    if found.request_url:
        rows.insert(1, ("requested as", found.request_url))
    _rows(rows)
    for visit in found.visits:
        say("")
        _rows([(name, text) for name, text in _visit_rows(visit) if text])


def _kind(meta: Mapping[str, Json]) -> str:
    """What kind of page it is, and how sure its text."""
    confidence = meta.get("confidence")
    return f"{meta['kind']}, its text sure to {confidence:.0%}" if isinstance(confidence, float) else ""


def _visit_rows(shown: StoredVisit) -> list[tuple[str, str]]:
    visit = shown.record
    where = f"{visit.file} at {visit.offset}, {counted(visit.length or 0, 'byte')}" if visit.file else ""
    alternates, title = shown.alternate_urls or (), shown.line.title or ""
    return [
        ("visit", f"{visit.seq}, session {visit.session}: {visit.outcome}"),
        ("status", str(visit.status or "")),
        ("change", " ".join(filter(None, (visit.change, visit.note and f"({visit.note.replace(' ', ', ')})")))),
        ("missing", f"for {counted(visit.missing, 'run')}" if visit.missing else ""),
        ("failure", f"{visit.failure}: {visit.message}" if visit.failure else ""),
        ("note", "" if visit.failure else shorten(visit.message or "", LONGEST)),
        ("leads to", shorten(visit.redirect or "", LONGEST)),
        ("title", title),
        ("in full", visit.title if visit.title and visit.title != title else ""),
        ("type", visit.content_type or ""),
        ("kind", _kind(shown.line.meta)),
        ("size", f"{counted(visit.size or 0, 'byte')} in {visit.millis} ms"),
        ("links", f"{visit.links:,}"),
        ("text hash", visit.text_hash or ""),
        ("body hash", visit.payload or ""),
        ("alternates", "\n".join(alternates) if len(alternates) > 1 else ""),
        ("body", where + (" (a revisit of an earlier record)" if visit.revisit else "")),
    ]


def failed(found: Sequence[StoredVisit], word: str = "CRAWL", show_all: bool = False) -> None:
    """By kind and host, the most frequent first; a few of each, unless all are wanted."""
    if not found:
        say("Nothing failed.")
        return
    groups: dict[tuple[str, str], list[StoredVisit]] = {}
    for visit in found:
        groups.setdefault((visit.record.failure or "", host_of(visit.record.request_url)), []).append(visit)
    ordered = sorted(groups.items(), key=lambda one: -len(one[1]))
    shown = ordered if show_all else ordered[:SHOWN_GROUPS]
    for (kind, host), visits in shown:
        _failures(kind, host, visits, len(visits) if show_all else SHOWN_FAILURES)
    if rest := ordered[len(shown) :]:
        number, hosts = sum(len(visits) for _, visits in rest), {host for (_, host), _ in rest}
        say(f"… and {number:,} more on {counted(len(hosts), 'host')}; --all and --json list them.\n")
    say(f"{len(found):,} failed. To open them again:\n  inchworm retry {quoted(word)} [--kind KIND]")


def _failures(kind: str, host: str, visits: Sequence[StoredVisit], most: int) -> None:
    """What failed for one reason on one host."""
    say(f"{kind} on {host}: {counted(len(visits), 'URL')}")
    if row := failures.KINDS.get(kind):
        paragraph(f"{row.sentence} {row.advice}", 2)
    for visit in (one.record for one in visits[:most]):
        say(f"    {shorten(visit.request_url, LONGEST)}")
        told = clip(visit.message or "", LONGEST)
        origin = f"found on {shorten(visit.found_on, LONGEST)}" if visit.found_on else ""
        paragraph("; ".join(filter(None, (told, origin))), 6)
    if len(visits) > most:
        say(f"    … and {len(visits) - most:,} more")
    say("")


def runs(found: Sequence[RunLine]) -> None:
    changes = ("new", "modified", "unchanged", "deleted", "unknown")
    heads = ("run", "mode", "state", "pages", *changes, "requests", "fetched", "saved")
    rows, notes = [], []
    for one in found:
        has_parent = one.mode != Mode.BASELINE
        counts = [getattr(one, name) if has_parent else "-" for name in changes]
        costs = [one.requests, size(one.bytes), size(one.saved_bytes) if has_parent else "-"]
        rows.append([one.run, one.mode, one.state, one.pages, *counts, *costs])
        said = [f"branched off from run {one.branch_of}"] if one.branch_of is not None else []
        said += [] if one.on_line else ["beside the line: later runs do not build on it"]
        notes.append("; ".join([*said, *([f"ATTENTION: {one.alarm}"] if one.alarm else [])]))
    table(heads, rows, notes=notes)


def comparison(found: RunComparison, show_all: bool) -> None:
    """Lists per kind of change; what is unchanged is only counted."""
    say(found.counts.summary)
    listed = {
        "new": found.new_documents,
        "modified": found.modified_documents,
        "deleted": found.deleted_documents,
        "unknown": found.unknown_documents,
    }
    for kind, urls in listed.items():
        if not urls:
            continue
        why = ", ".join(f"{count:,} {word}" for word, count in found.counts.unknown_reasons.items())
        if kind == "modified" and not show_all:
            _groups(found.modified_groups, len(urls))
            continue
        say(f"\n{kind} ({len(urls):,})" + (f": {why}" if kind == "unknown" else ""))
        for url in urls if show_all else urls[:SHOWN_URLS]:
            say(f"  {shorten(url, LONGEST)}")
        if not show_all and len(urls) > SHOWN_URLS:
            say(f"  … and {len(urls) - SHOWN_URLS:,} more; --all lists them")


def _groups(groups: Sequence[ModifiedGroup], pages: int) -> None:
    """Pages that changed in the same way are one thing to a reader: what differs is said once."""
    say(f"\nmodified ({pages:,})")
    for one in groups[:SHOWN_GROUPS]:
        more = f" and {one.pages - 1:,} more" if one.pages > 1 else ""
        say(f"  {shorten(one.urls[0], LONGEST)}{more}")
        for passage in one.difference[:SHOWN_PASSAGES]:
            _passage(passage)
        if one.difference_is_cut or len(one.difference) > SHOWN_PASSAGES:
            say("      …")
        if not one.difference and one.note:
            say(f"      {shorten(one.note, LONGEST)}")
    if (rest := pages - sum(one.pages for one in groups[:SHOWN_GROUPS])) > 0:
        say(f"  … and {rest:,} more; --all lists them")


def _passage(one: Passage) -> None:
    where = "" if one.where == "text" else f"{one.where}: "
    for sign, text, colour in (("-", one.before, "red"), ("+", one.after, "green")):
        if text:
            said = shorten(clip(" ".join(text.split()), LONGEST_PASSAGE), LONGEST_PASSAGE)
            say(styled(f"    {sign} {where}{said}", fg=colour))


def difference(found: PageDifference, inline: bool) -> None:
    """A unified diff; on a terminal the words that differ stand out. `inline`: both versions of a line in one, what is
    gone in [-…-], what came in {+…+}."""
    if not found.diff:
        say(f"The text of {found.url} is the same in run {found.baseline} and run {found.current}.")
    for text in found.diff[:2]:
        _diff_line(text)
    for is_changed, lines in groupby(found.diff[2:], lambda line: line[:1] in ("+", "-")):
        if is_changed:
            _replaced(list(lines), inline)
            continue
        for text in lines:
            _diff_line(text)


def _diff_line(text: str) -> None:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(text[:1])
    for piece in folded(text[1:], 1):
        say(styled(text[:1] + piece, fg=colour))


def _replaced(lines: Sequence[str], inline: bool) -> None:
    """Lines that are gone, and those that came in their place."""
    from inchworm.rules.change import words  # whoever shows something else does not wait for it

    marked = words.replaced(*([line[1:] for line in lines if line[0] == sign] for sign in "-+"))
    for one in marked if inline else ():
        _say_folded(" ", [_woven(piece) for piece in words.woven(one)])
    for sign, colour, side in (("-", "red", 0), ("+", "green", 1)) if not inline else ():
        for one in marked:
            if pieces := one[side]:
                is_mixed = any(not piece.is_marked for piece in pieces)
                said = [styled(plain(piece.text), fg=colour, bold=is_mixed and piece.is_marked) for piece in pieces]
                _say_folded(styled(sign, fg=colour), said)


def _say_folded(sign: str | Styled, pieces: Sequence[Styled]) -> None:
    """Pieces on as many lines as they take, a sign before each."""
    text, at = "".join(piece.text for piece in pieces), 0
    for row in folded(text, 1):
        at = max(at, text.find(row, at))
        say(sign, *_between(pieces, at, at + len(row)))
        at += len(row)


def _between(pieces: Sequence[Styled], start: int, end: int) -> Iterator[Styled]:
    """What lies there of pieces that come one after the other."""
    begins = 0
    for piece in pieces:
        if part := piece.text[max(0, start - begins) : max(0, end - begins)]:
            yield piece._replace(text=part)
        begins += len(piece.text)


def _woven(piece: str) -> Styled:
    return styled(plain(piece), fg={"[-": "red", "{+": "green"}.get(piece[:2]))


def checkpoints(found: Sequence[CheckpointLine]) -> None:
    if not found:
        say("No checkpoints yet.")
        return
    rows = []
    for one in found:
        state = one.current_substate if one.can_branch else one.current_state
        where, counts = (one.run, one.seq, one.created_at[:19]), (one.progress.pages, one.progress.urls.pending)
        rows.append((str(one.checkpoint_number), one.checkpoint_type, *where, *counts, state))
    table(("no", "type", "run", "seq", "made_at", "pages", "pending", "state"), rows)


def numbers(found: Mapping[str, Any]) -> None:
    """A flat answer as rows of name and value."""
    _rows([(name.replace("_", " "), _plain(value)) for name, value in found.items()])


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{count:,} {name}" for name, count in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def settings_table(found: Mapping[str, Any]) -> None:
    _rows([(name, str(value)) for name, value in found.items()])


def findings(found: Sequence[Any]) -> None:
    for finding in found:
        first, *rest = folded(f"{finding.subject}: {finding.text}", 5)
        say(f"{'ok ' if finding.ok else 'BAD'}  {first}")
        for text in (*rest, *(folded(finding.hint, 5) if finding.hint else ())):
            say(f"     {text}")


def _rows(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        for number, piece in enumerate(folded(str(text), width + 2)):
            say(f"{name if not number else '':<{width}}  {piece}")
