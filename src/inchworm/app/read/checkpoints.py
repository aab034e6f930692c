"""Checkpoints: which there are, and whether a crawl can go back to one."""

from __future__ import annotations

import contextlib
import gzip
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from inchworm.app.workspace import Workspace
from inchworm.archive import reader as warc_reader
from inchworm.archive import warc
from inchworm.engine import run
from inchworm.errors import Broken, NotNow, Unknown, WrongUse
from inchworm.model import CheckpointInfo, CheckpointType, Counters, CrawlInfo, RunInfo, Substate
from inchworm.rules.words.json_form import OPTIONAL, json_form
from inchworm.rules.words.times import iso
from inchworm.settings import NamedSettings
from inchworm.store.crawl.history import History
from inchworm.store.crawl.read.archive import RecordReader
from inchworm.store.crawl.read.progress import Whole
from inchworm.store.crawl.store import CrawlStore

_DIGITS = 18
_GO_ON_ALL_THE_SAME = "`inchworm doctor` tells more; `--no-validate` goes on all the same."

_LOOKED_AT = 32
"""How many records before a checkpoint are read back when it is validated."""


@dataclass(frozen=True, slots=True)
class Back:
    """Where a user wants to continue: a checkpoint by number or id; without one at the last commit."""

    checkpoint: int | str | None = None
    as_new_run: bool = False
    validate: bool = True


@dataclass(frozen=True, slots=True)
class UrlsAtCheckpoint:
    """How many URLs a run knew at a checkpoint, and what had become of them."""

    total: int
    completed: int
    failed: int
    pending: int


@dataclass(frozen=True, slots=True)
class ProgressAtCheckpoint:
    """How far a run was at a checkpoint."""

    urls: UrlsAtCheckpoint
    pages: int


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    """A checkpoint in lists. `can_resume`: its run can go back to it; `can_branch`: a run of its own can branch off
    there; `undoes`: how many steps going back to it would undo, where that was asked for."""

    checkpoint_id: str
    crawl_id: str
    checkpoint_number: int
    checkpoint_type: CheckpointType
    created_at: str
    current_state: str
    current_substate: Substate
    can_resume: bool
    can_branch: bool
    file_size_bytes: int
    progress: ProgressAtCheckpoint
    run: int
    seq: int
    undoes: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class NewestCheckpoints:
    """Some checkpoints of a crawl, the newest first, and all of them in numbers. `runs`: how many runs there are."""

    rows: Sequence[CheckpointLine]
    types: Mapping[str, int]
    count: int
    size: int
    runs: int
    is_running: bool


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """All checkpoints of a crawl in numbers. `can_resume`: it can be continued now, where it stands."""

    crawl_id: str
    total_checkpoints: int
    latest_checkpoint_id: str | None
    latest_checkpoint_created: str | None
    latest_checkpoint_state: str | None
    can_resume: bool
    checkpoint_types: Mapping[str, int]
    total_size_bytes: int


@dataclass(frozen=True, slots=True)
class StateAtCheckpoint:
    """The whole state of a run at a checkpoint."""

    checkpoint_id: str
    crawl_id: str
    created_at: str
    current_state: str
    current_substate: Substate
    crawled_urls: Sequence[str]
    queued_urls: Sequence[str]
    failed_urls: Sequence[str]
    downloaded_documents: Sequence[str]
    progress: ProgressAtCheckpoint
    metrics: Counters
    config: NamedSettings


_ALL = 1 << 62


class Checkpoints:
    """What is known of checkpoints."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self, crawl: CrawlInfo) -> Sequence[CheckpointLine]:
        """All there are, oldest first."""
        return self._all(crawl)[0]

    def newest(self, crawl: CrawlInfo, before: int | None, limit: int) -> NewestCheckpoints:
        """The last checkpoints of a crawl, of those before the one of this number."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            whole, history, runs = Whole(store), History(store), {one.number: one for one in store.runs.list()}
            numbers = whole.checkpoints(_ALL if before is None else before, limit)
            points = [point for number in numbers if (point := history.checkpoint(number))]
            types = whole.checkpoint_types()
            return NewestCheckpoints(
                rows=[checkpoint_line(crawl, point, history, runs[point.run].seq) for point in points],
                types={kind.value: types.get(kind.value, (0, 0))[0] for kind in CheckpointType},
                count=sum(count for count, _ in types.values()),
                size=sum(size for _, size in types.values()),
                runs=len(runs),
                is_running=self._workspace.is_running(crawl),
            )
        return NewestCheckpoints([], {}, 0, 0, 0, is_running=False)

    def _all(self, crawl: CrawlInfo) -> tuple[Sequence[CheckpointLine], RunInfo | None]:
        """The checkpoints of a crawl and its last run. One that has not started has neither."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            if (last := store.runs.get()) is not None:
                history = History(store)
                return [checkpoint_line(crawl, one, history) for one in history.checkpoints()], last
        return [], None

    def get(self, crawl: CrawlInfo, number: int) -> CheckpointLine:
        """One checkpoint."""
        with self._workspace.reading(crawl) as store:
            history = History(store)
            return checkpoint_line(crawl, find(history, crawl, number), history)

    def target(self, crawl: CrawlInfo, back: Back) -> tuple[CheckpointInfo, RunInfo]:
        """Where a crawl would continue, and in which run it is, seen to be possible. Nothing is changed."""
        with self._workspace.reading(crawl) as store:
            past = Past(store, self._workspace.place(crawl).archive, crawl)
            point = past.point(back)
            return point, past.run(point)

    def stats(self, crawl: CrawlInfo) -> CheckpointStats:
        """All checkpoints of a crawl in numbers, and whether it can be continued now, where it stands."""
        listed, last = self._all(crawl)
        return _stats(crawl, listed, run.is_open(last) and not self._workspace.is_running(crawl))

    def export(self, crawl: CrawlInfo, checkpoint: int | str, out: BinaryIO) -> int:
        """The whole state of a run at a checkpoint as gzipped JSON; how many URLs are in it."""
        with self._workspace.reading(crawl) as store:
            history = History(store)
            point = find(history, crawl, checkpoint)
            current = self._workspace.run_of(crawl, store, point.run)
            state = _state(crawl, current, point, history)
        with gzip.GzipFile("", "wb", fileobj=out, mtime=point.created_ms / 1000) as packed:
            packed.write(json.dumps(json_form(state), ensure_ascii=False, indent=1).encode("utf-8", "replace"))
        return len(state.crawled_urls) + len(state.queued_urls) + len(state.failed_urls)


def checkpoint_line(
    crawl: CrawlInfo, point: CheckpointInfo, history: History, seq: int | None = None
) -> CheckpointLine:
    """A checkpoint as it is listed. `seq`: where its run is now, to know how many steps going back would undo."""
    counters = point.counters
    done = counters.known - counters.pending - counters.refused
    urls = UrlsAtCheckpoint(counters.known, done, counters.failed, counters.pending)
    return CheckpointLine(
        checkpoint_id=f"{crawl.crawl_id}_ckpt_{point.number}",
        crawl_id=crawl.crawl_id,
        checkpoint_number=point.number,
        checkpoint_type=point.type,
        created_at=iso(point.created_ms),
        current_state=point.state,
        current_substate=point.substate,
        can_resume=point.can_resume and history.obstacle(point) is None,
        can_branch=point.can_resume,
        file_size_bytes=point.size,
        progress=ProgressAtCheckpoint(urls, counters.pages),
        run=point.run,
        seq=point.seq,
        undoes=None if seq is None else max(0, seq - point.seq),
    )


def _stats(crawl: CrawlInfo, listed: Sequence[CheckpointLine], can_resume: bool) -> CheckpointStats:
    latest = listed[-1] if listed else None
    types = Counter(one.checkpoint_type for one in listed)
    return CheckpointStats(
        crawl_id=crawl.crawl_id,
        total_checkpoints=len(listed),
        latest_checkpoint_id=latest.checkpoint_id if latest else None,
        latest_checkpoint_created=latest.created_at if latest else None,
        latest_checkpoint_state=latest.current_state if latest else None,
        can_resume=can_resume,
        checkpoint_types={kind.value: types[kind] for kind in CheckpointType},
        total_size_bytes=sum(one.file_size_bytes for one in listed),
    )


def find(history: History, crawl: CrawlInfo, checkpoint: int | str) -> CheckpointInfo:
    """A checkpoint by its number or by its whole id."""
    number = str(checkpoint).removeprefix(f"{crawl.crawl_id}_ckpt_")
    is_number = number.isascii() and number.isdecimal() and len(number) < _DIGITS
    if not is_number or (point := history.checkpoint(int(number))) is None:
        raise Unknown(
            f"The crawl {crawl.name!r} has no checkpoint {str(checkpoint)[:80]!r}.",
            f"Give a number; they are listed by: inchworm checkpoints {shlex.quote(crawl.name)}",
        )
    return point


def _state(crawl: CrawlInfo, current: RunInfo, point: CheckpointInfo, history: History) -> StateAtCheckpoint:
    crawled: list[str] = []
    queued: list[str] = []
    failed: list[str] = []
    documents: list[str] = []
    for url, state, outcome in history.state_at(point):
        if state == "pending":
            queued.append(url)
        elif outcome == "failed":
            failed.append(url)
        elif outcome:
            crawled.append(url)
            documents += [url] if outcome == "page" else []
    shown = checkpoint_line(crawl, point, history)
    return StateAtCheckpoint(
        checkpoint_id=shown.checkpoint_id,
        crawl_id=shown.crawl_id,
        created_at=shown.created_at,
        current_state=shown.current_state,
        current_substate=shown.current_substate,
        crawled_urls=crawled,
        queued_urls=queued,
        failed_urls=failed,
        downloaded_documents=documents,
        progress=shown.progress,
        metrics=point.counters,
        config=current.settings,
    )


class Past:
    """What a crawl can go back to, for whoever may read its store."""

    def __init__(self, store: CrawlStore, archive: Path, crawl: CrawlInfo) -> None:
        self._store = store
        self._archive = archive
        self._history = History(store)
        self._crawl = crawl

    def point(self, back: Back) -> CheckpointInfo:
        """The checkpoint that is meant, or the run as it stands when none is named; seen to be usable."""
        last = self._store.runs.get()
        if last is None:
            raise NotNow(f"The crawl {self._crawl.name!r} has not started yet.", "There is nothing to continue.")
        point = self._history.now(last) if back.checkpoint is None else self._find(back.checkpoint)
        if back.checkpoint is None and not point.can_resume:
            raise NotNow(
                f"Run {last.number} of {self._crawl.name!r} is {last.state}, so there is nothing to resume.",
                "Name a checkpoint that was made while it was active, or start the next run.",
            )
        if not point.can_resume:
            raise NotNow(
                f"Checkpoint {point.number} cannot resume from terminal state: its run was {point.state}.",
                "Choose one that was made while the run was active: inchworm checkpoints shows them.",
            )
        if not back.as_new_run and (later := self._history.obstacle(point)) is not None:
            raise NotNow(
                f"Run {later} builds on run {point.run}, which therefore cannot go back any more.",
                "Continue as a run of its own: --as-new-run, or as_new_run over HTTP.",
            )
        if back.validate:
            self._validate(point)
        return point

    def _find(self, checkpoint: int | str) -> CheckpointInfo:
        return find(self._history, self._crawl, checkpoint)

    def run(self, point: CheckpointInfo) -> RunInfo:
        found = self._store.runs.get(point.run)
        assert found is not None
        return found

    def _validate(self, point: CheckpointInfo) -> None:
        """See that the state and the archive before a checkpoint are what they were when it was made."""
        if self.run(point).seq < point.seq:
            raise Broken(f"Run {point.run} ends before checkpoint {point.number}.", "`inchworm doctor` tells more.")
        for _, _, name, length in self._store.archive.files():
            path = self._archive / name
            if not path.exists() or path.stat().st_size < length:
                raise Broken(f"The archive file {path} is missing or too short.", _GO_ON_ALL_THE_SAME)
        for spot in RecordReader(self._store).last(point.run_id, point.seq, _LOOKED_AT):
            self._check(self._archive / spot.file, spot.offset, spot.payload, spot.url)

    def _check(self, path: Path, offset: int, payload: bytes, url: str) -> None:
        try:
            found = warc_reader.record_at(path, offset).headers.get("warc-payload-digest")
        except WrongUse as error:
            found = error.message
        if found != warc.digest(payload):
            raise Broken(f"The archive has lost {url}: {path.name} does not hold it at {offset}.", _GO_ON_ALL_THE_SAME)
