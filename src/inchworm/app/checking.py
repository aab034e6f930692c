"""Settings that can be used: patterns that are patterns, and fields that can be taken out of pages."""

from __future__ import annotations

from collections.abc import Sequence

from inchworm.errors import WrongUse
from inchworm.rules.fields.selectors import EACH, parsed
from inchworm.rules.web.scope import Patterns
from inchworm.settings import Settings


def refuse_unusable(values: Settings) -> None:
    """Refuse what no session could work with."""
    Patterns(values.include, values.exclude)
    refuse_fields(values.extract, values.each)


def refuse_fields(extract: Sequence[str], each: str) -> None:
    """Refuse fields that cannot be taken as they are written. Selectors are tried in another process: they may do harm
    where they are used."""
    if not extract and not each:
        return
    # Whoever takes none does not wait for it.
    from inchworm.apart import shared
    from inchworm.sink.fields import TAKEN

    for name, why in shared().faults(parsed(extract, each, TAKEN)):
        who = EACH if name == EACH else f"The field {name!r}"
        raise WrongUse(f"{who} cannot be used: {why[:500]}.", "It takes a CSS selector or an XPath expression.")
