"""The undisturbed crawl that every disturbed one must equal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import checker
from tests.crash.trial import Trial
from tests.crash.website import Web


@dataclass(frozen=True, slots=True)
class Written:
    """What a completed crawl wrote down, without times and file names."""

    export: bytes
    record: list[tuple[Any, ...]]
    frontier: list[tuple[Any, ...]]


def written(trial: Trial) -> Written:
    return Written(trial.export(), *_rows(trial))


def _rows(trial: Trial) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    with trial.store() as db:
        return checker.record(db), checker.frontier(db)


class Reference:
    """Undisturbed crawls of one site, made once for each set of options."""

    def __init__(self, web: Web, folder: Path) -> None:
        self._web = web
        self._folder = folder
        self._known: dict[tuple[str, ...], tuple[Written, dict[str, str]]] = {}

    def of(self, *options: str) -> Written:
        return self._crawled(*options)[0]

    def ends(self, *options: str) -> dict[str, str]:
        """How every URL ends under these options: with limits, not as it would without."""
        return self._crawled(*options)[1]

    def _crawled(self, *options: str) -> tuple[Written, dict[str, str]]:
        if options not in self._known:
            trial = Trial(self._folder / f"crawl{'-'.join(options)}", self._web, *options)
            trial.complete()
            with trial.store() as db:
                ends = checker.ends_of(db) if options else self._web.ends
            trial.check(ends)
            self._known[options] = written(trial), ends
        return self._known[options]


def assert_same(trial: Trial, undisturbed: Written) -> None:
    """The whole record, and the export byte for byte."""
    assert_same_record(trial, undisturbed)
    export = trial.export()
    assert export == undisturbed.export, trial.report([_first_difference(export, undisturbed.export)])


def assert_same_record(trial: Trial, undisturbed: Written) -> None:
    """Every visit in its order, every row with its place."""
    record, frontier = _rows(trial)
    for what, ours, theirs in (("record", record, undisturbed.record), ("frontier", frontier, undisturbed.frontier)):
        different = [f"{what}: {a} instead of {b}" for a, b in zip(ours, theirs, strict=False) if a != b]
        assert ours == theirs, trial.report(different or [f"{what}: {len(ours)} rows instead of {len(theirs)}"])


def _first_difference(ours: bytes, theirs: bytes) -> str:
    pairs = zip(ours.splitlines(), theirs.splitlines(), strict=False)
    for number, (mine, right) in enumerate(pairs, 1):
        if mine != right:
            return f"the export differs in line {number}: {mine!r} instead of {right!r}"
    return f"the export has {len(ours.splitlines())} lines instead of {len(theirs.splitlines())}"
