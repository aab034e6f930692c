"""How tests are spread over processes: a file stays together, for what its tests share; so do those with a browser.
And which of them need a program that may not be there."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Somebody started the tests in the background. The processes that they start would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Or with nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A busy machine takes its time, and that is no fault of what is tested.
hypothesis.settings.register_profile("inchworm", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("inchworm")

NEEDED = {
    "tests/flow/test_complete.py": ("nginx", "wget", "/usr/share/doc/sqlite3/index.html"),
    "tests/docs/test_readme.py::test_the_readme_works": ("jq",),
    "tests/docs/test_readme.py::test_the_guide_works": ("jq",),
    "tests/docs/test_bare.py::test_jq": ("jq",),
    "tests/crash/test_clock.py": ("faketime",),
    "tests/crash/test_disk.py::test_a_disk_that_fails_now_and_then": ("fiu-run",),
    "tests/dashboard/test_axe.py": (f"{sys.prefix}/axe/node_modules/axe-core/axe.min.js",),
}
"""What `tests/install` installs where it can, by the beginning of the names of the tests that cannot run without."""

CHROMIUM = "/usr/bin/chromium"


def _missing(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if shutil.which(name) is None and not Path(name).exists()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs_browser = "browser" in getattr(item, "fixturenames", ())
        needed = (CHROMIUM,) if needs_browser else ()
        for beginning, names in NEEDED.items():
            needed += names if item.nodeid.startswith(beginning) else ()
        if missing := _missing(needed):
            item.add_marker(pytest.mark.skip(reason=f"not installed here: {', '.join(missing)}"))
        item.add_marker(pytest.mark.xdist_group("browser" if needs_browser else str(item.path)))
