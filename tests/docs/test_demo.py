"""The demo runs, in a pipe, and every claim it makes is true. What it would do with an untrue one is tried too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inchworm.cli.demo import story


def test_the_demo(tmp_path: Path) -> None:
    """In somebody's environment, whose settings and home it must not touch."""
    home = tmp_path / "home"
    environment = {**os.environ, "INCHWORM_HOME": str(home), "INCHWORM_BUDGET": "3", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "inchworm", "demo"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    said = ended.stdout
    assert ended.returncode == 0, said + ended.stderr
    assert said.count("✓") >= 12
    assert "\x1b" not in said
    for claim in (
        f"exactly {story.BUDGET} requests",
        "The run counts as paused",
        f"All {story.PAGES} pages were fetched",
        "twice: those that were under way at the kill",
        f"The same {story.PAGES} URLs, in the same order",
        "without one request to the server",
        "The same URLs, in the same order",
        "Modified: /p7 /p58 /p131. Deleted: /p200.",
        "none of them counts as changed",
        "checked and is true",
    ):
        assert claim in said, said
    assert not home.exists()
    assert list(tmp_path.iterdir()) == []


def test_an_untrue_claim_is_not_made(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A crawler that sends one request too few for its budget: the demo says so and fails."""
    monkeypatch.setattr(story, "BUDGET", 20)
    monkeypatch.setattr(story._Demo, "_asked", lambda self: self._served.paths()[3:])
    assert story.run() == 1
    assert "NOT TRUE: The server got exactly 20 requests." in capsys.readouterr().out
