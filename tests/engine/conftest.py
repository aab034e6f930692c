"""What tests of sessions share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.works import Works

from inchworm.model import Reply


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Works]]:
    """Makes a run and its web."""
    made: list[Works] = []

    def begin(answer: Callable[[str], Reply], **given: Any) -> Works:
        made.append(Works(tmp_path, answer, **given))
        return made[-1]

    yield begin
    for one in made:
        one.close()
