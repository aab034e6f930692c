"""inchworm: a web crawler that never loses its place.

from inchworm import Crawl

summary = Crawl("https://example.org/docs", budget=100).run_sync()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inchworm.library import Crawl

__version__ = "0.1.0"
__all__ = ["Crawl", "__version__"]


def __getattr__(name: str) -> Any:
    # The pure rules can be imported without loading the engine.
    if name == "Crawl":
        from inchworm.library import Crawl

        return Crawl
    raise AttributeError(f"module 'inchworm' has no attribute {name!r}")
