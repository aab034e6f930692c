"""inchworm: a web crawler that never loses its place.

from inchworm import Crawl, read

crawl = Crawl("https://example.org/docs", budget=100)
summary = crawl.run_sync()
texts = {page.url: page.text for page in crawl.pages()}
page = read(body, "https://example.org/docs/install", "text/html")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inchworm.engine.caller import Summary
    from inchworm.library import Crawl
    from inchworm.page import Page, read
    from inchworm.rules.page.document import Link
    from inchworm.rules.page.element import Element
    from inchworm.told import Exported, Progress

__version__ = "0.1.0"
__all__ = ["Crawl", "Element", "Exported", "Link", "Page", "Progress", "Summary", "__version__", "read"]

_HOMES = {
    "Crawl": "inchworm.library",
    "Element": "inchworm.rules.page.element",
    "Exported": "inchworm.told",
    "Link": "inchworm.rules.page.document",
    "Page": "inchworm.page",
    "Progress": "inchworm.told",
    "Summary": "inchworm.engine.caller",
    "read": "inchworm.page",
}


def __getattr__(name: str) -> Any:
    # The pure rules can be imported without loading the engine, and pages be read without it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'inchworm' has no attribute {name!r}")
