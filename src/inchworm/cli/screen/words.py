"""How a session is spoken of: the sentences and numbers that lines, logs and the live picture share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from inchworm.model import CrawlInfo, LiveProgress, Mode, RunInfo
from inchworm.rules.order.order import EXACT
from inchworm.rules.web import outage
from inchworm.rules.web.url import shorten
from inchworm.rules.words.explain import DOWNLOADED
from inchworm.rules.words.figures import clock, size

MOST_DOWN = 5
"""So many hosts that are down are named."""

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
            f" {counted(run.counters.pages, 'page')}, {run.counters.pending:,} pending.{_beside(run)}"
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


def line(progress: LiveProgress) -> str:
    """Progress in one line."""
    counters = progress.counters
    rate = progress.requests / progress.seconds if progress.seconds else 0.0
    failed = f", {counters.failed:,} failed" if counters.failed else ""
    down = "".join(f"; {outage.sentence(one)}" for one in progress.down[:1])
    return (
        f"{clock(progress.seconds)}  {counted(counters.pages, 'page')}, {counters.pending:,} pending{failed},"
        f" {rate:,.1f}/s, {size(progress.size)}{down}"
    )


def taking(done: int, total: int) -> str:
    """How far the fields of a session's pages are."""
    return f"Taking fields: {done:,} of {counted(total, 'page')}"


def closing(summary: Any) -> list[str]:
    """How a session ended and how its run stands."""
    used = f"{counted(summary.fetched, 'request')}, {size(summary.bytes)} in {clock(summary.seconds)}"
    rest = [counted(summary.duplicates, "duplicate")] if summary.duplicates else []
    counts = ((word, getattr(summary, word)) for word in ("failed", "refused", "pending"))
    rest += [f"{count:,} {word}" for word, count in counts if count]
    order = "" if summary.order == EXACT else f"; order: {summary.order}"
    texts = [
        ending(summary),
        f"  this session  {used}",
        f"  this run      {', '.join([counted(summary.pages, 'page'), *rest])}{order}",
    ]
    if summary.unanswered:
        texts.append(f"  unanswered    {counted(summary.unanswered, 'request')}, to hosts that were down")
    texts += [f"  down          {outage.sentence(one)}" for one in summary.down[:MOST_DOWN]]
    if len(summary.down) > MOST_DOWN:
        texts.append(f"  down          {counted(len(summary.down) - MOST_DOWN, 'more host')}")
    if summary.blocked:
        texts.append(f"  blocked       {counted(summary.blocked, 'page')} by a challenge or captcha; slower may help")
    texts += changes(summary)
    if len(summary.seeds) > 1:
        texts += [f"  {counted(pages, 'page'):>12}  {shorten(url, 60)}" for url, pages in summary.seeds]
    texts += [f"  {text}" for text in summary.moved]
    if summary.indexed:
        texts.append(f"  indexed       {counted(summary.indexed, 'document')}")
    texts += _fields(summary)
    if summary.note:
        texts.append(f"  {summary.note}")
    if not summary.on_line:
        texts += _way_to_line(summary)
    if summary.failed:
        texts.append(f"  What failed:  inchworm failed {quoted(summary.name)}")
    if summary.refused and not summary.pages:
        texts.append(f"  What was refused:  inchworm queue {quoted(summary.name)}")
    return texts


def _fields(summary: Any) -> list[str]:
    """What became of the fields that are taken out of pages."""
    told = ", ".join(f"{name} {count:,}" for name, count in summary.fields.items())
    texts = [f"  fields        on so many pages: {told}"] if told else []
    if summary.unmatched_fields:
        texts.append(f"  ATTENTION     {unmatched(summary.unmatched_fields)}")
        texts.append(f"  Try others:   inchworm extract {quoted(summary.name)} --try --extract NAME=SELECTOR")
    return texts


def unmatched(names: Sequence[str]) -> str:
    """That fields were found nowhere, which nobody means."""
    which = f"the field {names[0]} matches" if len(names) == 1 else f"the fields {', '.join(names)} match"
    return f"{which} on no page."


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
    if summary.saved_bytes > 0:
        share = summary.saved_bytes / whole
        texts.append(f"  saved         {size(summary.saved_bytes)} of {size(whole)} ({share:.1%})")
    for word, count in sorted(summary.downloaded.items(), key=lambda one: -one[1]):
        if word != "sampled":
            texts.append(f"  not saved     {counted(count, 'unchanged page')}: {DOWNLOADED[word]}")
    if summary.alarm:
        texts.insert(0, f"  ATTENTION     {summary.alarm}")
    if summary.new + summary.modified + summary.deleted + summary.unknown:
        texts.append(f"  What changed: inchworm compare {quoted(summary.name)}")
    return texts


def ending(summary: Any) -> str:
    """How a session ended, in one sentence."""
    if summary.ended_by == "error":
        return f"{summary.message} The same command tries again."
    if summary.run_state == "completed" and summary.failed:
        return "Complete, but some URLs failed."
    if summary.run_state == "completed" and summary.mostly_duplicates:
        return "Complete: what was left gave mostly duplicates, ten requests for each page of the limit."
    if summary.run_state == "completed" and summary.refused and not summary.pages:
        return "Complete, but there was nothing that may be crawled."
    return ENDINGS.get(summary.ended_by, f"Ended by {summary.ended_by}.")


def counted(number: int, one: str, several: str = "") -> str:
    """1 page, 2 pages."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def quoted(name: str) -> str:
    """As a shell takes it."""
    return shlex.quote(name)
