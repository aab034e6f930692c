from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flow.crawling import FastClock, Home

from inchworm.app import App


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.app.close()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[list[Home]]:
    """Several homes, for the same crawl done in several ways."""
    made = [Home(tmp_path / f"home{number}") for number in range(4)]
    yield made
    for one in made:
        one.app.close()


@pytest.fixture
def clock() -> FastClock:
    return FastClock()


@pytest.fixture
def fast(clock: FastClock, tmp_path: Path) -> Iterator[Home]:
    """A home whose time goes faster, for crawls that have to wait: for a server that wants it, or for a second try."""
    made = Home(tmp_path / "fast")
    made.app.close()
    made.app = App(made.folder, clock)
    yield made
    made.app.close()
