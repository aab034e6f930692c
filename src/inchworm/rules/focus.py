"""How much a link promises for a query: by what it is called, where it leads, and how well its page matches."""

from __future__ import annotations

import re

from inchworm.errors import WrongUse

_WORD = re.compile(r"\w+")
_OF_LINK = 1000
_OF_PAGE = 100


class Query:
    """What a crawl looks for."""

    def __init__(self, text: str) -> None:
        self._terms = tuple(dict.fromkeys(_WORD.findall(text.casefold())))
        if not self._terms:
            raise WrongUse(f"There is nothing to look for in {text!r}.", "Give a query of at least one word.")

    def page(self, title: str, text: str) -> float:
        """How well a page matches, from 0 to 1: which share of the terms it has."""
        return self._share(f"{title}\n{text}".casefold())

    def link(self, anchor: str, url: str, page: float) -> int:
        """How much a link promises that was found on a page that matches so well."""
        return round(_OF_LINK * self._share(f"{anchor}\n{url}".casefold()) + _OF_PAGE * page)

    def _share(self, text: str) -> float:
        return sum(term in text for term in self._terms) / len(self._terms)
