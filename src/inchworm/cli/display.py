"""What people see: live progress on a terminal, lines in a log, tables, errors with the next step.

Progress and logs go to standard error; what was asked for goes to standard output. `rich` is loaded only when
there is a terminal to draw on.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import click

from inchworm.cli.words import closing, line, opening, quoted
from inchworm.errors import InchwormError
from inchworm.model import CrawlInfo, Progress, RunInfo
from inchworm.rules import failures
from inchworm.rules.explain import LONGEST, explanation
from inchworm.rules.figures import clip, size
from inchworm.rules.url import shorten

LOG_SECONDS = 5.0
LATER_LOG_SECONDS = 60.0
SHOWN_URLS = 20


class Shown(Protocol):
    """A place where a session can be watched."""

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def finished(self, summary: Any) -> None: ...


@contextlib.contextmanager
def live() -> Iterator[Shown]:
    """The right display for where standard error goes."""
    if sys.stderr.isatty():
        from inchworm.cli.terminal import Terminal

        with Terminal() as terminal:
            yield terminal
    else:
        yield Log()


class Log:
    """Progress as lines, for files and pipes: few, whole, and readable. A long crawl speaks once a minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def started(self, crawl: CrawlInfo, run: RunInfo, session: int) -> None:
        _say(opening(crawl, run, session))

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._said >= (LOG_SECONDS if progress.seconds < LATER_LOG_SECONDS else LATER_LOG_SECONDS):
            self._said = now
            _say(line(progress))

    def finished(self, summary: Any) -> None:
        for text in closing(summary):
            _say(text)


def _say(text: str) -> None:
    click.echo(text, err=True)


def error(problem: InchwormError) -> None:
    _say(f"inchworm: {problem.message}")
    if problem.hint:
        _say(f"          {problem.hint}")


def status(found: Mapping[str, Any]) -> None:
    owner = found["owner"]
    who = f", process {owner['pid']} on {owner['machine']}" if owner else ""
    rows = [
        ("crawl", f"{found['name']}  ({found['crawl_id']})"),
        ("run", f"{found['run']} ({found['mode']}): {found['run_state']}{who}"),
        (
            "pages",
            f"{found['pages']:,} unique, {found['duplicates']:,} duplicates, {found['failed']:,} failed",
        ),
        ("URLs", f"{found['known']:,} known, {found['pending']:,} pending, {found['refused']:,} refused"),
        ("fetched", f"{found['requests']:,} requests, {size(found['size'])}"),
    ]
    if not found["on_line"]:
        rows.insert(2, ("beside", f"the line, so later runs do not build on it but on run {found['line_end']}"))
    if lost := found["lost_files"]:
        count = "1 file is" if len(lost) == 1 else f"{len(lost):,} files are"
        rows.append(("archive", f"{count} missing or cut off; `inchworm doctor` names the pages that are lost"))
    if found["order"]:
        rows.append(("order", found["order"]))
    _rows(rows)
    for one in found["sessions"][-10:]:
        ended = one["ended_by"] or one["state"]
        click.echo(f"  session {one['session']:<4} {one['started_at'][:19]}  {one['requests']:>8,} requests  {ended}")


def crawls(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        click.echo("No crawls yet. Start one: inchworm crawl https://example.org/docs")
        return
    click.echo(f"{'NAME':<33} {'RUN':>3} {'STATE':<11} {'PAGES':>9} {'FAILED':>8} {'PENDING':>10}")
    for one in found:
        if "pages" not in one:
            click.echo(f"{shorten(one['name'], 33):<33} {one['note']}")
            continue
        click.echo(
            f"{shorten(one['name'], 33):<33} {one['run']:>3} {one['run_state']:<11}"
            f" {one['pages']:>9,} {one['failed']:>8,} {one['pending']:>10,}"
        )


def queue(found: Mapping[str, Any]) -> None:
    if "cleared" in found:
        click.echo(f"{found['cleared']:,} pending URLs refused; the run is {found['run_state']}.")
    _rows(
        [
            ("run", f"{found['current_run']}: {found['run_state']}"),
            ("visited", f"{found['visited']:,}"),
            ("pending", f"{found['pending']:,}"),
            ("refused", f"{found['refused']:,}"),
            ("total", f"{found['total']:,}"),
            ("can resume", "yes" if found["can_resume"] else "no"),
        ]
    )
    for one in found["counts"]:
        reason = f"  {one['reason']}" if one["reason"] else ""
        click.echo(f"  {one['source']:<9} {one['state']:<8} {one['count']:>9,}{reason}")


def entry(found: Mapping[str, Any]) -> None:
    rows = [
        ("url", found["url"]),
        ("state", explanation(found)),
        (
            "source",
            f"{found['source']}, depth {found['depth']}" + (f", {found['hops']} hops out" if found["hops"] else ""),
        ),
        ("found on", found["found_on"] or "(a seed)"),
        ("place", f"({found['place_seq']}, {found['place_idx']}) in its lane; seed {found['seed_url']}"),
    ]
    if found["request_url"]:
        rows.insert(1, ("requested as", found["request_url"]))
    _rows(rows)
    for visit in found["visits"]:
        click.echo("")
        _rows([(name, text) for name, text in _visit_rows(visit) if text])


def _visit_rows(visit: Mapping[str, Any]) -> list[tuple[str, str]]:
    where = f"{visit['file']} at {visit['offset']}, {visit['length']} bytes" if visit["file"] else ""
    return [
        ("visit", f"{visit['seq']}, session {visit['session']}: {visit['outcome']}"),
        ("status", str(visit["status"] or "")),
        (
            "change",
            " ".join(filter(None, (visit["change"], visit["note"] and f"({visit['note'].replace(' ', ', ')})"))),
        ),
        ("missing", f"for {visit['missing']} runs" if visit["missing"] else ""),
        ("failure", f"{visit['failure']}: {visit['message']}" if visit["failure"] else ""),
        ("note", "" if visit["failure"] else shorten(visit["message"] or "", LONGEST)),
        ("leads to", shorten(visit["redirect"] or "", LONGEST)),
        ("title", visit["title"] or ""),
        ("type", visit["content_type"] or ""),
        ("size", f"{visit['size']:,} bytes in {visit['millis']} ms"),
        ("links", f"{visit['links']:,}"),
        ("text hash", visit["text_hash"] or ""),
        ("body hash", visit["payload"] or ""),
        ("alternates", "\n".join(visit["alternate_urls"]) if len(visit["alternate_urls"]) > 1 else ""),
        ("body", where + (" (a revisit of an earlier record)" if visit["revisit"] else "")),
    ]


def failed(found: Sequence[Mapping[str, Any]], word: str = "CRAWL") -> None:
    if not found:
        click.echo("Nothing failed.")
        return
    for visit in found:
        click.echo(f"{visit['failure']:<18} {visit['request_url']}")
        click.echo(f"{'':<18} {clip(visit['message'] or '', 110)}")
    kinds = sorted({visit["failure"] for visit in found})
    click.echo(f"\n{len(found):,} failed.")
    for kind in kinds:
        if kind in failures.KINDS:
            click.echo(f"  {kind}: {failures.KINDS[kind].sentence} {failures.KINDS[kind].advice}")
    click.echo(f"Re-open with: inchworm retry {quoted(word)} [--kind KIND]")


def runs(found: Sequence[Mapping[str, Any]]) -> None:
    columns = ("new", "modified", "unchanged", "deleted", "unknown")
    heads = "".join(f" {name.upper():>9}" for name in columns)
    click.echo(f"{'RUN':>3} {'MODE':<11} {'STATE':<11} {'PAGES':>8}{heads} {'REQUESTS':>9} {'FETCHED':>9} {'SAVED':>9}")
    for one in found:
        has_parent = one["mode"] != "baseline"
        numbers_ = "".join(f" {one[name] if has_parent else '-':>9}" for name in columns)
        saved = size(one["saved_bytes"]) if has_parent else "-"
        click.echo(
            f"{one['run']:>3} {one['mode']:<11} {one['state']:<11} {one['pages']:>8,}{numbers_}"
            f" {one['requests']:>9,} {size(one['bytes']):>9} {saved:>9}"
        )
        where = [f"branched off from run {one['branch_of']}"] if one["branch_of"] is not None else []
        where += [] if one["on_line"] else ["beside the line: later runs do not build on it"]
        if where:
            click.echo(f"    {', '.join(where)}")
        if one["alarm"]:
            click.echo(f"    ATTENTION: {one['alarm']}")


def comparison(found: Mapping[str, Any], show_all: bool) -> None:
    """Lists per kind of change; what is unchanged is only counted."""
    click.echo(found["summary"])
    for kind in ("new", "modified", "deleted", "unknown"):
        urls = found[f"{kind}_documents"]
        if not urls:
            continue
        why = ", ".join(f"{count:,} {word}" for word, count in found["unknown_reasons"].items())
        click.echo(f"\n{kind} ({len(urls):,})" + (f": {why}" if kind == "unknown" else ""))
        for url in urls if show_all else urls[:SHOWN_URLS]:
            click.echo(f"  {shorten(url, LONGEST)}")
        if not show_all and len(urls) > SHOWN_URLS:
            click.echo(f"  … and {len(urls) - SHOWN_URLS:,} more; --all lists them")


def difference(found: Mapping[str, Any]) -> None:
    if not found["diff"]:
        click.echo(f"The text of {found['url']} is the same in run {found['baseline']} and run {found['current']}.")
    for text in found["diff"]:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(text[:1])
        click.echo(click.style("".join(c if c.isprintable() else " " for c in text), fg=colour))


def checkpoints(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        click.echo("No checkpoints yet.")
        return
    click.echo(f"{'NO':>5} {'TYPE':<7} {'RUN':>3} {'SEQ':>9} {'MADE AT':<19} {'PAGES':>9} {'PENDING':>10}  STATE")
    for one in found:
        progress, state = one["progress"], one["current_substate"] if one["can_resume"] else one["current_state"]
        click.echo(
            f"{one['checkpoint_number']:>5} {one['checkpoint_type']:<7} {one['run']:>3} {one['seq']:>9,}"
            f" {one['created_at'][:19]} {progress['pages']:>9,} {progress['urls']['pending']:>10,}  {state}"
        )


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


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows in columns as wide as what stands in them; numbers to the right."""
    texts = [[name.replace("_", " ").upper() for name in heads], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in texts) for at in range(len(heads))]
    right = [all(isinstance(row[at], int) for row in rows) for at in range(len(heads))]
    for row in texts:
        cells = (
            cell.rjust(wide) if is_right else cell.ljust(wide)
            for cell, wide, is_right in zip(row, widths, right, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def settings_table(found: Mapping[str, Any]) -> None:
    _rows([(name, str(value)) for name, value in found.items()])


def findings(found: Sequence[Any]) -> None:
    for finding in found:
        click.echo(f"{'ok ' if finding.ok else 'BAD'}  {finding.subject}: {finding.text}")
        if finding.hint:
            click.echo(f"     {finding.hint}")


def _rows(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        for number, piece in enumerate(str(text).split("\n")):
            click.echo(f"{name if not number else '':<{width}}  {piece}")
