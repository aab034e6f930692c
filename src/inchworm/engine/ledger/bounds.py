"""What belongs to a run: where the scopes of its seeds lie by now, what its patterns and limits say."""

from __future__ import annotations

from inchworm.engine.ledger.draft.seeds import Seeds
from inchworm.model import FoundUrl, FrontierEntry, Kind, Reason, Source
from inchworm.rules.web import url as urls
from inchworm.rules.web.limits import exhausted
from inchworm.rules.web.scope import Judge, Patterns, Scope, ScopeVerdict, widen
from inchworm.settings import Settings


class Bounds:
    """Judges URLs. `path_matters`: a page may belong to the run because of the way to it, so a shorter one counts."""

    def __init__(self, settings: Settings, seeds: Seeds) -> None:
        self._settings = settings
        self._seeds = seeds
        self._canonicalizer = urls.canonicalizer(settings.drop_params)
        self._patterns = Patterns(settings.include, settings.exclude)
        self._judge = self._make_judge()
        self.path_matters = bool(settings.max_depth or settings.external_hops)

    def _make_judge(self) -> Judge:
        values = self._settings
        scope = Scope(values.scope, self._seeds.all(), values.loose_paths)
        return Judge(scope, self._patterns, values.max_depth, values.external_hops, values.trap_depth)

    def judge(self, found: FoundUrl, parent: FrontierEntry) -> ScopeVerdict:
        """What to do with a URL that was found on this page."""
        return self._judge.judge(found, parent)

    def exhausted(self, number: int, kind: Kind) -> Reason | None:
        """Why a seed may not have another page."""
        return exhausted(self._seeds.seed(number), self._settings.page_limit) if kind is Kind.PAGE else None

    def is_seed(self, entry: FrontierEntry) -> bool:
        """Whether it is one, or what one redirected to."""
        if entry.source is Source.INITIAL:
            return True
        first = self._canonicalizer.canonicalize(entry.tried[0]) if entry.tried else None
        return entry.source is Source.REDIRECT and first == self._seeds.seed(entry.seed).url

    def is_seed_host(self, host: str) -> bool:
        """Whether the scope of a seed lies there."""
        return any(seed.host == host for seed in self._seeds.all())

    def move_seed(self, number: int, target: str) -> bool:
        """A seed that redirects takes its scope along. Is it another one then?"""
        before = self._seeds.seed(number)
        after = widen(before, target)
        if (after.host, after.path) == (before.host, before.path):
            return False
        self._seeds.move(after)
        self._judge = self._make_judge()
        return True
