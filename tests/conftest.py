"""How tests are spread over processes: a file stays together, for what its tests share; so do those with a browser."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs_browser = "browser" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("browser" if needs_browser else str(item.path)))
