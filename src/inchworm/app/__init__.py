"""What can be read and done in one home, shared by command line, library and service. With `engine` the only part that
picks adapters.

`read` has an object for each noun (crawls, runs, pages, jobs …) and changes nothing; `act` has one for each act. `root`
makes them, each when it is first asked for, so that whoever only looks does not wait for what crawls and exports need:
`App().runs.get("7fb21d4d1e_iter_0")`. All of them work in one `workspace`: a home and a clock. Start with `root`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inchworm.app.act.plan import Start
    from inchworm.app.root import App
    from inchworm.app.workspace import home_folder
    from inchworm.engine.caller import Hooks, Summary
    from inchworm.engine.clock import SystemClock
    from inchworm.sink.export import FORMATS, Target, Written
    from inchworm.sink.files.file import whole_file

__all__ = [
    "FORMATS",
    "App",
    "Hooks",
    "Start",
    "Summary",
    "SystemClock",
    "Target",
    "Written",
    "home_folder",
    "whole_file",
]
_WHERE = {
    "App": "inchworm.app.root",
    "FORMATS": "inchworm.sink.export",
    "Hooks": "inchworm.engine.caller",
    "Start": "inchworm.app.act.plan",
    "Summary": "inchworm.engine.caller",
    "SystemClock": "inchworm.engine.clock",
    "Target": "inchworm.sink.export",
    "Written": "inchworm.sink.export",
    "home_folder": "inchworm.app.workspace",
    "whole_file": "inchworm.sink.files.file",
}


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'inchworm.app' has no attribute {name!r}")
