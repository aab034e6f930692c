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
    with Site(linked_site(30)).serve() as served:
        command = [sys.executable, str(path), served.url("/")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert len([line for line in done.stdout.splitlines() if "age" in line]) >= 30
