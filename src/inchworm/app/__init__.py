"""The verbs of inchworm, shared by library and command line. With `engine` the only part that picks adapters.

Each topic can be loaded by itself: whoever only crawls does not wait for search and exports.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inchworm.app.crawling import Start
    from inchworm.app.desk import home_folder
    from inchworm.app.whole import App
    from inchworm.engine.caller import Hooks, Summary
    from inchworm.engine.own.owner import SystemClock
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
    "App": "inchworm.app.whole",
    "FORMATS": "inchworm.sink.export",
    "Hooks": "inchworm.engine.caller",
    "Start": "inchworm.app.crawling",
    "Summary": "inchworm.engine.caller",
    "SystemClock": "inchworm.engine.own.owner",
    "Target": "inchworm.sink.export",
    "Written": "inchworm.sink.export",
    "home_folder": "inchworm.app.desk",
    "whole_file": "inchworm.sink.files.file",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'inchworm.app' has no attribute {name!r}")
