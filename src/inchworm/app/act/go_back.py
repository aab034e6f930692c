"""Back to a checkpoint: a run that is open there again, or a new one that branches off there."""

from __future__ import annotations

from inchworm import fault
from inchworm.engine import run
from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import CrawlOwner, NoArchive
from inchworm.model import CheckpointInfo, EndedBy, RunInfo
from inchworm.rules.text.ignored import IgnoredText
from inchworm.rules.web.scope import Patterns
from inchworm.settings import RUN, Settings, to_json
from inchworm.store.crawl.history import History
from inchworm.store.crawl.store import CrawlStore


def go_back(owner: CrawlOwner, point: CheckpointInfo, now_ms: int) -> RunInfo:
    """Undo what came after a checkpoint; its run is open again."""
    current = _run(owner.store, point.run)
    if current.seq != point.seq or not run.is_open(current):
        History(owner.store).go_back(owner.token, current, point, now_ms)
        fault.point("gone_back")
        owner.cut_archive()
    return _run(owner.store, point.run)


def branch(owner: CrawlOwner, point: CheckpointInfo, values: Settings, now_ms: int) -> RunInfo:
    """A new run that has everything up to the checkpoint, and goes on by settings of its own."""
    Patterns(values.include, values.exclude)
    IgnoredText(values.ignore_text)
    store, old = owner.store, _run(owner.store, point.run)
    new = run.branch_of(old, store.runs.list(), to_json(values, RUN), now_ms)
    if (made := _made_before(store, point, new)) is not None:
        return made
    with store.commits.committing(owner.token):
        History(store).branch(point, new)
        if dict(new.settings) != dict(old.settings):
            same_scope = all(new.settings[name] == old.settings[name] for name in ("scope", "loose_paths"))
            ledger = Ledger(store, NoArchive(), _run(store, new.number), Author(0, owner.token), values)
            ledger.edits.judge_again(same_scope)
    return _run(store, new.number)


def _made_before(store: CrawlStore, point: CheckpointInfo, new: RunInfo) -> RunInfo | None:
    """The same branch, when whoever made it died before it got anywhere: this is the second try."""
    last = store.runs.list()[-1]
    if last.origin is None or dict(last.settings) != dict(new.settings):
        return None
    is_same = (last.origin, last.origin_seq) == (point.run, point.seq)
    is_same = is_same or (point.number < 0 and last.number == point.run)
    # One step may have been taken: judging by settings of its own.
    has_moved = last.seq > (last.origin_seq or 0) + 1
    ended = [one.ended_by for one in store.sessions.of(last.run_id)]
    has_moved = has_moved or any(by not in (None, EndedBy.CRASHED) for by in ended)
    return last if is_same and not has_moved and run.is_open(last) else None


def _run(store: CrawlStore, number: int) -> RunInfo:
    found = store.runs.get(number)
    assert found is not None
    return found
