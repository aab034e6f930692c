from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flow.crawling import Home


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
