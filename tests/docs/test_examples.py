"""Every example runs, from the outside, against a real site."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inchworm.testing import Site, linked_site

EXAMPLES = sorted(Path("examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "INCHWORM_HOME": str(tmp_path), "INCHWORM_DELAY": "0"}
    site = Site(dict(linked_site(30)), validators=True)
    with site.serve() as served:
        first = run(path, served.url("/"), environment)
        site.pages["/p7"] = site.pages["/p7"].replace("<p>", "<p>This is new. ", 1)
        second = run(path, served.url("/"), environment)
    if path.stem == "changes":
        assert "30 pages" in first
        assert f"modified   {served.url('/p7')}" in second
    else:
        assert len([line for line in first.splitlines() if "age" in line]) >= 30


def run(path: Path, url: str, environment: dict[str, str]) -> str:
    command = [sys.executable, str(path), url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout
