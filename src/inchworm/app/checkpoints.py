"""Checkpoints: listing, making, deleting and exporting them, and finding the way back to one."""

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

from inchworm import fault
from inchworm.app.desk import Desk
from inchworm.archive import reader as warc_reader
from inchworm.archive import warc
from inchworm.engine import run
from inchworm.engine.ledger.commit import Ledger
from inchworm.engine.ledger.draft import Session as LedgerSession
from inchworm.engine.own.owner import NoArchive, Owner
from inchworm.errors import Broken, NotNow, Unknown, WrongUse
from inchworm.model import Checkpoint, CheckpointType, CrawlInfo, EndedBy, RunInfo
from inchworm.rules.web.scope import Patterns
from inchworm.rules.words.times import iso
from inchworm.settings import RUN, Settings, to_json
from inchworm.store.crawl.history import History
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import View

KEEP_LAST = 3
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


class Checkpoints(Desk):
    """Verbs about checkpoints."""

    def checkpoint(self, word: str) -> dict[str, Any]:
        """Make one now. While another process works on the crawl, it is asked to."""
        crawl = self.find(word)
        # Whoever owns a crawl makes its files, so those have to be there first.
        with self.reading(crawl) as store:
            self.run_of(crawl, store)
        answer = self.ask(crawl, "checkpoint", {}) if self.is_running(crawl) else None
        if answer and answer.isdecimal():
            return self._shown(crawl, int(answer))
        with self.owning(crawl, self.stale()) as owner:
            number = owner.checkpoint(CheckpointType.MANUAL, self.clock.now_ms()).number
        return self._shown(crawl, number)

    def _shown(self, crawl: CrawlInfo, number: int) -> dict[str, Any]:
        with self.reading(crawl) as store:
            history = History(store)
            return as_json(crawl, _find(history, crawl, number), history)

    def checkpoints(self, word: str) -> list[dict[str, Any]]:
        """All there are, oldest first."""
        return self._listed(self.find(word))[0]

    def _listed(self, crawl: CrawlInfo) -> tuple[list[dict[str, Any]], RunInfo | None]:
        """The checkpoints of a crawl and its last run. One that has not started has neither."""
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            if (last := store.run()) is not None:
                history = History(store)
                return [as_json(crawl, one, history) for one in history.checkpoints()], last
        return [], None

    def way_on(self, word: str, back: Back) -> tuple[Checkpoint, RunInfo]:
        """Where a crawl would continue, and in which run it is, seen to be possible. Nothing is changed."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            past = Past(store, self.crawl_folder(crawl) / "archive", crawl)
            point = past.point(back)
            return point, past.run(point)

    def checkpoint_stats(self, word: str) -> dict[str, Any]:
        """All checkpoints of a crawl in numbers, and whether it can be continued now, where it stands."""
        crawl = self.find(word)
        listed, last = self._listed(crawl)
        return _stats(crawl, listed, run.is_open(last) and not self.is_running(crawl))

    def delete_checkpoint(self, word: str, checkpoint: int | str) -> int:
        """Delete a checkpoint; its number."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            _find(History(store), crawl, checkpoint)
        with self.owning(crawl, self.stale()) as owner:
            history = History(owner.store)
            number = _find(history, crawl, checkpoint).number
            history.forget(owner.token, [number])
        return number

    def keep_checkpoints(self, word: str, last: int = KEEP_LAST) -> int:
        """Delete all but the last so many; how many went."""
        if last < 0:
            raise WrongUse(f"{last} checkpoints cannot be kept.", "Give a number from 0 on.")
        crawl = self.find(word)
        with self.reading(crawl) as store:
            if len(History(store).checkpoints()) <= last:
                return 0
        with self.owning(crawl, self.stale()) as owner:
            history = History(owner.store)
            numbers = [one.number for one in history.checkpoints()]
            old = numbers[: max(0, len(numbers) - last)]
            history.forget(owner.token, old)
        return len(old)

    def export_checkpoint(self, word: str, checkpoint: int | str, out: BinaryIO) -> int:
        """The whole state of a run at a checkpoint as gzipped JSON; how many URLs are in it."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            history = History(store)
            point = _find(history, crawl, checkpoint)
            current = self.run_of(crawl, store, point.run)
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


def _find(history: History, crawl: CrawlInfo, checkpoint: int | str) -> Checkpoint:
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
        return _find(self._history, self._crawl, checkpoint)

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


class WayBack(Past):
    """The way back to a checkpoint, for the owner of a crawl."""

    def __init__(self, owner: Owner, crawl: CrawlInfo, now_ms: int) -> None:
        super().__init__(owner.store, owner.archive, crawl)
        self._owner = owner
        self._now_ms = now_ms

    def go_back(self, point: Checkpoint) -> RunInfo:
        """Undo what came after a checkpoint; its run is open again."""
        current = self.run(point)
        if current.seq != point.seq or not run.is_open(current):
            self._history.go_back(self._owner.token, current, point, self._now_ms)
            fault.point("gone_back")
            self._owner.cut_archive()
        return self.run(point)

    def branch(self, point: Checkpoint, values: Settings) -> RunInfo:
        """A new run that has everything up to the checkpoint, and goes on by settings of its own."""
        Patterns(values.include, values.exclude)
        old = self.run(point)
        new = run.branch_of(old, self._store.runs(), to_json(values, RUN), self._now_ms)
        if (made := self._made_before(point, new)) is not None:
            return made
        with self._store.committing(self._owner.token):
            self._history.branch(point, new)
            if dict(new.settings) != dict(old.settings):
                made = self._store.run(new.number)
                assert made is not None
                same_scope = all(new.settings[name] == old.settings[name] for name in ("scope", "loose_paths"))
                ledger = Ledger(self._store, NoArchive(), made, LedgerSession(0, self._owner.token), values)
                ledger.judge_again(same_scope)
        found = self._store.run(new.number)
        assert found is not None
        return found

    def _made_before(self, point: Checkpoint, new: RunInfo) -> RunInfo | None:
        """The same branch, when whoever made it died before it got anywhere: this is the second try."""
        last = self._store.runs()[-1]
        if last.origin is None or dict(last.settings) != dict(new.settings):
            return None
        is_same = (last.origin, last.origin_seq) == (point.run, point.seq)
        is_same = is_same or (point.number < 0 and last.number == point.run)
        # One step may have been taken: judging by settings of its own.
        has_moved = last.seq > (last.origin_seq or 0) + 1
        ended = [one.ended_by for one in self._store.sessions(last.run_id)]
        has_moved = has_moved or any(by not in (None, EndedBy.CRASHED) for by in ended)
        return last if is_same and not has_moved and run.is_open(last) else None
