"""What may be imported from inchworm: exactly this."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import inchworm

NAMES = ["Crawl", "Element", "Exported", "Link", "Page", "Progress", "Summary", "__version__", "read"]


def test_the_public_names_are_these_in_order():
    assert inchworm.__all__ == NAMES == sorted(NAMES)


def test_every_public_name_is_there():
    for name in inchworm.__all__:
        assert getattr(inchworm, name)
    imported: dict[str, object] = {}
    exec("from inchworm import *", imported)
    assert imported.keys() - {"__builtins__"} == set(NAMES)


def test_other_names_are_refused_as_usual():
    assert not hasattr(inchworm, "Crawler")


def test_the_version_is_the_one_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert inchworm.__version__ == project["project"]["version"]


def test_rules_can_be_imported_without_the_engine():
    assert _loaded("inchworm.rules.web.url", "pycurl", "inchworm.engine") == []


def test_whoever_only_looks_does_not_wait_for_what_crawls():
    heavy = ("asyncio", "pycurl", "turbohtml", "ssl", "inchworm.engine.session.loop")
    assert (
        _loaded("inchworm.cli, inchworm.app.read.crawls, inchworm.app.read.runs, inchworm.app.read.changes", *heavy)
        == []
    )


def _loaded(modules: str, *wanted: str) -> list[str]:
    """Which of these a new process has when it has imported those."""
    code = f"import sys, {modules}; print(*(m for m in sys.modules if m in {wanted}))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return told.stdout.split()
