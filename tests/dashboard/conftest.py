"""A browser for the tests of one file, and a service with something to show for all of them.

Pictures of the pages are kept in the folder that INCHWORM_ARTEFACTS names, otherwise where pytest keeps its files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.dashboard.browser import chromium, keep_pictures
from tests.dashboard.filled import Filled, filled

from inchworm.cli.demo.site import Almanac
from inchworm.testing import Site


@pytest.fixture(scope="session", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = Path(os.environ.get("INCHWORM_ARTEFACTS") or tmp_path_factory.getbasetemp() / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    keep_pictures(folder)
    yield
    if any(folder.iterdir()):
        print(f"\nPictures of the pages are in {folder}", file=sys.__stderr__)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it is open no other test in this process could run an event loop."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    almanac = Almanac()
    folder = tmp_path_factory.mktemp("dashboard")
    with (
        Site(almanac.pages, validators=True).serve() as web,
        filled(folder / "home", web.url(), web.url("/birds/swallow"), almanac.change) as made,
    ):
        yield made
