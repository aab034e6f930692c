"""How a session is spoken of: the sentences and numbers that lines, logs and the live picture share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from inchworm.model import CrawlInfo, Mode, Progress, RunInfo
from inchworm.rules.explain import DOWNLOADED
from inchworm.rules.figures import clock, size
from inchworm.rules.url import shorten

ENDINGS: Mapping[str, str] = {
    "finished": "Complete: nothing is left to crawl.",
    "page_limit": "Complete: every seed has the pages its limit allows.",
    "budget": "Stopped at the budget. The same command goes on from here.",
    "time": "Stopped at the time limit. The same command goes on from here.",
    "bytes": "Stopped at the byte limit. The same command goes on from here.",
    "waiting": "Paused: all that is left must wait. Run the same command again later.",
    "quality": "Stopped: the last pages brought too little. The same command goes on from here.",
    "paused": "Paused. The same command goes on from here.",
    "cancelled": "Cancelled. The pages stay; a new crawl starts over.",
}


def opening(crawl: CrawlInfo, run: RunInfo, session: int) -> str:
    """What is about to happen, in one sentence."""
    if session > 1:
        return (
            f"Resuming {crawl.name}, run {run.number}, session {session}:"
            f" {run.counters.pages:,} pages, {run.counters.pending:,} pending.{_beside(run)}"
        )
    if not run.number:
        return f"Crawling {crawl.name} for the first time."
    if run.origin is not None:
        return f"{crawl.name}: run {run.number} branches off from run {run.origin}, beside the line."
    if run.mode == Mode.BASELINE:
        return f"{crawl.name}: run {run.number} starts over."
    complete = f"The last run of {crawl.name} is complete. " if run.parent == run.number - 1 else f"{crawl.name}: "
    if run.mode == Mode.FULL:
        return f"{complete}Run {run.number} downloads every page again and compares it with run {run.parent}."
    return f"{complete}Run {run.number} downloads only what changed since run {run.parent}."


def _beside(run: RunInfo) -> str:
    if not run.beside:
        return ""
    which = f"a branch of run {run.origin}" if run.origin is not None else "no longer the line"
    return f" It is {which}: later runs do not build on it."


def line(progress: Progress) -> str:
    """Progress in one line."""
    counters = progress.counters
    rate = progress.requests / progress.seconds if progress.seconds else 0.0
    failed = f", {counters.failed:,} failed" if counters.failed else ""
    return (
        f"{clock(progress.seconds)}  {counters.pages:,} pages, {counters.pending:,} pending{failed},"
        f" {rate:,.1f}/s, {size(progress.size)}"
    )


def closing(summary: Any) -> list[str]:
    """How a session ended and how its run stands."""
    used = f"{summary.fetched:,} requests, {size(summary.bytes)} in {clock(summary.seconds)}"
    rest = [
        f"{count:,} {word}"
        for count, word in (
            (summary.duplicates, "duplicates"),
            (summary.failed, "failed"),
            (summary.refused, "refused"),
            (summary.pending, "pending"),
        )
        if count
    ]
    texts = [
        ending(summary),
        f"  this session  {used}",
        f"  this run      {', '.join([f'{summary.pages:,} pages', *rest])}; order: {summary.order}",
    ]
    texts += changes(summary)
    if len(summary.seeds) > 1:
        texts += [f"  {pages:>6,} pages  {shorten(url, 60)}" for url, pages in summary.seeds]
    if summary.indexed:
        texts.append(f"  indexed       {summary.indexed:,} documents")
    if summary.note:
        texts.append(f"  {summary.note}")
    if not summary.on_line:
        texts += _way_to_line(summary)
    if summary.failed:
        texts.append(f"  What failed:  inchworm failed {quoted(summary.name)}")
    if summary.refused and not summary.pages:
        texts.append(f"  What was refused:  inchworm queue {quoted(summary.name)}")
    return texts


def _way_to_line(summary: Any) -> list[str]:
    """What can be done with a run that later ones do not build on."""
    name, told = quoted(summary.name), ["  Beside the line: later runs do not build on this one."]
    if summary.branch_of is not None:
        told.append(f"  Beside run {summary.branch_of}:  inchworm compare {name} {summary.branch_of} {summary.run}")
    if summary.run_state == "completed":
        told.append(f"  Build on it:  inchworm runs {name} --make-line {summary.run}")
    return told


def changes(summary: Any) -> list[str]:
    """What a run found out that builds on others, and what that cost."""
    if summary.mode == Mode.BASELINE:
        return []
    counts = [(summary.new, "new"), (summary.modified, "modified"), (summary.deleted, "deleted")]
    rest = [(summary.unchanged, "unchanged"), (summary.unknown, "unknown")]
    said = ", ".join(f"{count:,} {word}" for count, word in [*counts, *(one for one in rest if one[0])])
    texts = [f"  since run {summary.parent:<4}{said}"]
    whole = summary.saved_bytes + summary.bytes
    if summary.saved_bytes:
        share = summary.saved_bytes / whole
        texts.append(f"  saved         {size(summary.saved_bytes)} of {size(whole)} ({share:.1%})")
    for word, count in sorted(summary.downloaded.items(), key=lambda one: -one[1]):
        if word != "sampled":
            pages = "1 unchanged page" if count == 1 else f"{count:,} unchanged pages"
            texts.append(f"  not saved     {pages}: {DOWNLOADED[word]}")
    if summary.alarm:
        texts.insert(0, f"  ATTENTION     {summary.alarm}")
    if summary.new + summary.modified + summary.deleted + summary.unknown:
        texts.append(f"  What changed: inchworm compare {quoted(summary.name)}")
    return texts


def ending(summary: Any) -> str:
    """How a session ended, in one sentence."""
    if summary.run_state == "completed" and summary.failed:
        return "Complete, but nothing could be fetched." if not summary.pages else "Complete, but some URLs failed."
    if summary.run_state == "completed" and summary.refused and not summary.pages:
        return "Complete, but there was nothing that may be crawled."
    return ENDINGS.get(summary.ended_by, f"Ended by {summary.ended_by}.")


def quoted(name: str) -> str:
    """As a shell takes it."""
    return shlex.quote(name)
