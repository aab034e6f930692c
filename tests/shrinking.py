"""What is not yet as `tests/test_architecture.py` wants it. These lists may only become shorter.

Whoever puts one right takes its line away; a line that is not needed any more is red.
"""

from __future__ import annotations

from collections.abc import Mapping

LARGE_FOR_A_REASON: Mapping[str, str] = {
    "app.root.App": "puts the parts of app together: one attribute for each noun and each act, and no verb",
    "library.Crawl": "what a program can ask of a crawl and do to it, in one object: a public promise",
    "page.Page": "what can be known of a page, in one object: a public promise",
}
"""Classes with more public methods and properties than others, and why that is right."""

LARGE_CLASSES: frozenset[str] = frozenset()
"""Those that are to become smaller."""

CLASS_NAMES_GIVEN_TWICE: frozenset[str] = frozenset(
    {
        "Page",
    }
)
"""Names that two or more classes of the package have. `page.Page` and `testing.Page` are both public promises."""

ANY_FOR_A_REASON: Mapping[str, str] = {
    "store.database": "a row is what its statement selects, which no checker of types can read",
}
"""Modules of `app`, `engine` and `store` that say `Any` once, and why that is right."""

SPEAKS_OF_ANY: Mapping[str, int] = {}
"""Those that are to say it no more, and how often at most."""
