"""Closing a session: how it ended goes on record, and its caller is told what it came to."""

from __future__ import annotations

import contextlib
import dataclasses

from inchworm.engine import run
from inchworm.engine.caller import Summary
from inchworm.engine.opening import OpenSession, SessionStart
from inchworm.engine.session.ending import SessionEnd
from inchworm.errors import InchwormError, Lost
from inchworm.model import CheckpointType, EndedBy, LiveProgress, Mode, Reason, RunState, SessionInfo
from inchworm.rules.formats import pdf
from inchworm.rules.web import scope
from inchworm.rules.web import url as urls
from inchworm.rules.words import failures
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.failures import FailureReader


def reopen_if_nothing_came(start: SessionStart, session: OpenSession, end: SessionEnd) -> SessionEnd:
    """Where nothing could be fetched, the run is not complete but has not really begun, and whoever starts it again
    means that it be tried again."""
    counters = session.loop.progress().counters
    got = counters.pages or counters.duplicates or counters.resources or counters.deleted
    if end.by is not EndedBy.FINISHED or got or not counters.failed:
        return end
    first = FailureReader(start.owner.store).first(start.run.run_id)
    assert first is not None, "something failed"
    session.ledger.edits.reopen()
    cause = failures.cause(urls.host_of(first.url), first.kind, first.message)
    return SessionEnd(EndedBy.ERROR, f"Nothing could be fetched. {cause}")


def close(start: SessionStart, end: SessionEnd, progress: LiveProgress) -> Summary:
    """Put the end of a session on record. Raises what it failed by."""
    by = end.by
    counts = CountReader(start.owner.store)
    if by is EndedBy.FINISHED and counts.has_refused(start.run.run_id, Reason.PAGE_LIMIT):
        by = EndedBy.PAGE_LIMIT
    run_state, session_state = run.states_after(by)
    if isinstance(end.error, Lost):
        raise end.error
    info = SessionInfo(
        start.run.run_id,
        start.number,
        start.owner.token,
        session_state,
        by,
        started_ms=0,
        ended_ms=start.clock.now_ms(),
        requests=progress.requests,
        size=progress.size,
        message=end.message,
        unanswered=progress.unanswered,
    )
    with contextlib.suppress(InchwormError) if end.error else contextlib.nullcontext():
        _record(start, info, run_state)
    if end.error:
        raise end.error
    return _summary(start, info, run_state, progress)


def _record(start: SessionStart, info: SessionInfo, run_state: RunState) -> None:
    if run_state is not RunState.COMPLETED:
        kind = CheckpointType.ERROR if info.ended_by is EndedBy.ERROR else CheckpointType.PAUSE
        start.owner.checkpoint(kind, start.clock.now_ms())
    start.owner.store.sessions.end(start.owner.token, info, run_state)


def _summary(start: SessionStart, info: SessionInfo, run_state: RunState, progress: LiveProgress) -> Summary:
    store, run_id, counters = start.owner.store, start.run.run_id, progress.counters
    current = store.runs.get(start.run.number)
    assert current is not None
    summary = Summary(
        crawl_id=start.crawl.crawl_id,
        name=start.crawl.name,
        run=start.run.number,
        session=start.number,
        run_state=run_state,
        session_state=info.state,
        ended_by=str(info.ended_by),
        fetched=progress.requests,
        bytes=progress.size,
        seconds=round(progress.seconds, 3),
        pages=counters.pages,
        duplicates=counters.duplicates,
        unchanged=counters.unchanged,
        failed=counters.failed,
        refused=counters.refused,
        pending=counters.pending,
        known=counters.known,
        order=progress.order,
        word=run.word_for(dataclasses.replace(start.run, state=run_state, counters=counters)),
        message=info.message,
        seeds=progress.seeds,
        mode=current.mode,
        parent=current.parent,
        branch_of=current.origin,
        on_line=not current.beside,
        unanswered=progress.unanswered,
        down=progress.down,
        blocked=FailureReader(store).count(run_id, "blocked") if counters.failed else 0,
        moved=tuple(filter(None, map(scope.said_of_move, current.seeds))),
        mostly_duplicates=CountReader(store).has_refused(run_id, Reason.MOSTLY_DUPLICATES),
    )
    if current.mode == Mode.BASELINE:
        return summary
    return dataclasses.replace(
        summary,
        new=current.counters.new,
        modified=current.counters.modified,
        deleted=current.counters.deleted,
        unknown=current.counters.unknown,
        saved_bytes=current.counters.saved,
        downloaded=CountReader(store).why_downloaded(run_id),
        alarm=current.alarm,
    )


def about_unread(count: int) -> str:
    """What to say of documents whose text would be there if the one thing that reads them were."""
    if not count:
        return ""
    documents = "1 PDF document has" if count == 1 else f"{count:,} PDF documents have"
    return f"{documents} no text, because pypdfium2 is missing. Install it: pip install '{pdf.NEEDED}'"
