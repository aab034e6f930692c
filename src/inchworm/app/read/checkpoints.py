"""Checkpoints: which there are, and whether a crawl can go back to one."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from inchworm.app.workspace import Workspace
from inchworm.archive import reader as warc_reader
from inchworm.archive import warc
from inchworm.engine import run
from inchworm.errors import Broken, NotNow, Unknown, WrongUse
from inchworm.model import Checkpoint, CheckpointType, CrawlInfo, RunInfo
from inchworm.rules.words.times import iso
from inchworm.store.crawl.history import History
from inchworm.store.crawl.progress import Whole
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

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


_ALL = 1 << 62


class Checkpoints:
    """What is known of checkpoints."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def all(self, word: str) -> list[dict[str, Any]]:
        """All there are, oldest first."""
        return self._listed(self._workspace.find(word))[0]

    # Checkpoints

    def before(self, crawl: CrawlInfo, before: int | None, limit: int) -> dict[str, Any]:
        """A part of the checkpoints of a crawl, the newest first, and all of them in numbers."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            whole, history, runs = Whole(store), History(store), {one.number: one for one in store.runs()}
            numbers = whole.checkpoints(_ALL if before is None else before, limit)
            points = [point for number in numbers if (point := history.checkpoint(number))]
            types = whole.checkpoint_types()
            return {
                "rows": [point_json(crawl, point, history, runs[point.run].seq) for point in points],
                "types": {kind.value: types.get(kind.value, (0, 0))[0] for kind in CheckpointType},
                "count": sum(count for count, _ in types.values()),
                "size": sum(size for _, size in types.values()),
                "runs": len(runs),
                "is_running": self._workspace.is_running(crawl),
            }
        return {"rows": [], "types": {}, "count": 0, "size": 0, "runs": 0, "is_running": False}

    def _listed(self, crawl: CrawlInfo) -> tuple[list[dict[str, Any]], RunInfo | None]:
        """The checkpoints of a crawl and its last run. One that has not started has neither."""
        with contextlib.suppress(NotNow), self._workspace.reading(crawl) as store:
            if (last := store.run()) is not None:
                history = History(store)
                return [as_json(crawl, one, history) for one in history.checkpoints()], last
        return [], None

    def shown(self, crawl: CrawlInfo, number: int) -> dict[str, Any]:
        with self._workspace.reading(crawl) as store:
            history = History(store)
            return as_json(crawl, find(history, crawl, number), history)

    def target(self, word: str, back: Back) -> tuple[Checkpoint, RunInfo]:
        """Where a crawl would continue, and in which run it is, seen to be possible. Nothing is changed."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            past = Past(store, self._workspace.crawl_folder(crawl) / "archive", crawl)
            point = past.point(back)
            return point, past.run(point)

    def stats(self, word: str) -> dict[str, Any]:
        """All checkpoints of a crawl in numbers, and whether it can be continued now, where it stands."""
        crawl = self._workspace.find(word)
        listed, last = self._listed(crawl)
        return _stats(crawl, listed, run.is_open(last) and not self._workspace.is_running(crawl))

    def export(self, word: str, checkpoint: int | str, out: BinaryIO) -> int:
        """The whole state of a run at a checkpoint as gzipped JSON; how many URLs are in it."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            history = History(store)
            point = find(history, crawl, checkpoint)
            current = self._workspace.run_of(crawl, store, point.run)
            state = _state(crawl, current, point, history)
        with gzip.GzipFile("", "wb", fileobj=out, mtime=point.created_ms / 1000) as packed:
            packed.write(json.dumps(state, ensure_ascii=False, indent=1).encode("utf-8", "replace"))
        return sum(len(state[name]) for name in ("crawled_urls", "queued_urls", "failed_urls"))


def as_json(crawl: CrawlInfo, point: Checkpoint, history: History) -> dict[str, Any]:
    """A checkpoint as it is shown: also whether its run can go back to it, and whether a run of its own can branch off
    there."""
    counters = point.counters
    done = counters.known - counters.pending - counters.refused
    return {
        "checkpoint_id": f"{crawl.crawl_id}_ckpt_{point.number}",
        "crawl_id": crawl.crawl_id,
        "checkpoint_number": point.number,
        "checkpoint_type": point.type.value,
        "created_at": iso(point.created_ms),
        "current_state": point.state,
        "current_substate": point.substate.value,
        "can_resume": point.can_resume and history.obstacle(point) is None,
        "can_branch": point.can_resume,
        "file_size_bytes": point.size,
        "progress": {
            "urls": {
                "total": counters.known,
                "completed": done,
                "failed": counters.failed,
                "pending": counters.pending,
            },
            "pages": counters.pages,
        },
        "run": point.run,
        "seq": point.seq,
    }


def _stats(crawl: CrawlInfo, listed: Sequence[Mapping[str, Any]], can_resume: bool) -> dict[str, Any]:
    latest = listed[-1] if listed else None
    types = Counter(one["checkpoint_type"] for one in listed)
    return {
        "crawl_id": crawl.crawl_id,
        "total_checkpoints": len(listed),
        "latest_checkpoint_id": latest and latest["checkpoint_id"],
        "latest_checkpoint_created": latest and latest["created_at"],
        "latest_checkpoint_state": latest and latest["current_state"],
        "can_resume": can_resume,
        "checkpoint_types": {kind.value: types[kind.value] for kind in CheckpointType},
        "total_size_bytes": sum(one["file_size_bytes"] for one in listed),
    }


def find(history: History, crawl: CrawlInfo, checkpoint: int | str) -> Checkpoint:
    """A checkpoint by its number or by its whole id."""
    number = str(checkpoint).removeprefix(f"{crawl.crawl_id}_ckpt_")
    is_number = number.isascii() and number.isdecimal() and len(number) < _DIGITS
    if not is_number or (point := history.checkpoint(int(number))) is None:
        raise Unknown(
            f"The crawl {crawl.name!r} has no checkpoint {str(checkpoint)[:80]!r}.",
            f"Give a number; they are listed by: inchworm checkpoints {shlex.quote(crawl.name)}",
        )
    return point


def _state(crawl: CrawlInfo, current: RunInfo, point: Checkpoint, history: History) -> dict[str, Any]:
    urls: dict[str, list[str]] = {"crawled": [], "queued": [], "failed": []}
    documents = []
    for url, state, outcome in history.state_at(point):
        if state == "pending":
            urls["queued"].append(url)
        elif outcome == "failed":
            urls["failed"].append(url)
        elif outcome:
            urls["crawled"].append(url)
            documents += [url] if outcome == "page" else []
    shown = as_json(crawl, point, history)
    return {
        **{name: shown[name] for name in ("checkpoint_id", "crawl_id", "created_at")},
        **{name: shown[name] for name in ("current_state", "current_substate")},
        **{f"{name}_urls": found for name, found in urls.items()},
        "downloaded_documents": documents,
        "progress": shown["progress"],
        "metrics": dataclasses.asdict(point.counters),
        "config": dict(current.settings),
    }


class Past:
    """What a crawl can go back to, for whoever may read its store."""

    def __init__(self, store: CrawlStore, archive: Path, crawl: CrawlInfo) -> None:
        self._store = store
        self._archive = archive
        self._history = History(store)
        self._crawl = crawl

    def point(self, back: Back) -> Checkpoint:
        """The checkpoint that is meant, or the run as it stands when none is named; seen to be usable."""
        last = self._store.run()
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

    def _find(self, checkpoint: int | str) -> Checkpoint:
        return find(self._history, self._crawl, checkpoint)

    def run(self, point: Checkpoint) -> RunInfo:
        found = self._store.run(point.run)
        assert found is not None
        return found

    def _validate(self, point: Checkpoint) -> None:
        """See that the state and the archive before a checkpoint are what they were when it was made."""
        if self.run(point).seq < point.seq:
            raise Broken(f"Run {point.run} ends before checkpoint {point.number}.", "`inchworm doctor` tells more.")
        for _, _, name, length in self._store.files():
            path = self._archive / name
            if not path.exists() or path.stat().st_size < length:
                raise Broken(f"The archive file {path} is missing or too short.", _GO_ON_ALL_THE_SAME)
        for spot in View(self._store).last_records(point.run_id, point.seq, _LOOKED_AT):
            self._check(self._archive / spot.file, spot.offset, spot.payload, spot.url)

    def _check(self, path: Path, offset: int, payload: bytes, url: str) -> None:
        try:
            found = warc_reader.record_at(path, offset).headers.get("warc-payload-digest")
        except WrongUse as error:
            found = error.message
        if found != warc.digest(payload):
            raise Broken(f"The archive has lost {url}: {path.name} does not hold it at {offset}.", _GO_ON_ALL_THE_SAME)


def point_json(crawl: CrawlInfo, point: Checkpoint, history: History, seq: int) -> dict[str, Any]:
    """A checkpoint, whether its run, which is at this seq, can go back to it, and how many steps that would undo."""
    return {**as_json(crawl, point, history), "undoes": max(0, seq - point.seq)}
