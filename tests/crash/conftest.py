"""One served site per pytest process; a home of its own for every trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash import website
from tests.crash.reference import Reference
from tests.crash.trial import Trial
from tests.crash.website import Web

Trials = Callable[..., Trial]


@pytest.fixture(scope="session")
def served() -> Iterator[Web]:
    with website.serving(website.build()) as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    """The site that never changes: one answer per request, whatever happens."""
    return served


@pytest.fixture(scope="session")
def reference(served: Web, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """What an undisturbed crawl of that site writes down."""
    return Reference(served, tmp_path_factory.mktemp("reference"))


@pytest.fixture
def trials(tmp_path: Path, web: Web) -> Iterator[Trials]:
    """Makes trials, and ends whatever process they leave behind."""
    made: list[Trial] = []

    def make(*options: str, web: Web = web, **more: object) -> Trial:
        made.append(Trial(tmp_path / str(len(made)), web, *options, **more))
        return made[-1]

    yield make
    for trial in made:
        trial.close()


@pytest.fixture
def trial(trials: Trials) -> Trial:
    return trials()
