"""Ranking by votes: there for runs with a query, and only for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inchworm.testing import Site, linked_site

CRAWL = """
import sys
from pathlib import Path
from inchworm.app import App, Start
import asyncio
app = App(Path(sys.argv[1]))
given = {"delay": 0, "allow_private": True, **dict(word.split("=") for word in sys.argv[3:])}
summary = asyncio.run(app.sessions.work(app.plan.crawl(Start((sys.argv[2],), "", given))))
app.close()
print(summary.pages, *(name for name in sys.modules if name == "inchworm.engine.ranking"))
"""


@pytest.mark.parametrize(
    ("given", "loaded"), [((), []), (("order=freshness",), []), (("query=page",), ["inchworm.engine.ranking"])]
)
def test_a_crawl_without_a_query_does_without(tmp_path: Path, given: tuple[str, ...], loaded: list[str]) -> None:
    with Site(linked_site(6)).serve() as served:
        command = [sys.executable, "-c", CRAWL, str(tmp_path), served.url("/"), *given]
        pages, *named = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(pages) == 6
    assert named == loaded
