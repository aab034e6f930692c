"""What is known of URLs: what the store had when they were looked up, and what was decided since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from inchworm.ports import Commit, Known, Store

_MOST = 50_000
"""How many URLs are remembered from one commit to the next."""


class KnownUrls:
    """The URLs that were met lately, and how they stand in the run.

    `get`: what is known of a URL; None where that is nothing, or it was not looked up.
    """

    def __init__(self, store: Store, run_id: int) -> None:
        self._store = store
        self._run_id = run_id
        self._is_only_run = store.runs.is_only(run_id)
        self._has_nofollow = store.runs.has_nofollow(run_id)
        self._urls: dict[str, Known] = {}
        self._in_run: set[int] = set()
        # Every link of every page comes by here: a method would cost as much again.
        self.get: Callable[[str], Known | None] = self._urls.get

    def begin(self) -> None:
        """A new commit."""
        if len(self._urls) > _MOST:
            self._urls.clear()
        if len(self._in_run) > _MOST:
            self._in_run.clear()

    def look_up(self, wanted: Iterable[str], path_matters: bool = True) -> None:
        """Learn what the store has of those that nothing is known of. How they stand is asked only where it can make a
        difference, because it costs as much again as finding them."""
        self.look_up_anew(set(wanted).difference(self._urls), path_matters)

    def look_up_anew(self, wanted: Collection[str], path_matters: bool = True) -> None:
        """The same for all of them."""
        if wanted:
            with_rows = path_matters or self._has_nofollow or not self._is_only_run
            self._urls.update(self._store.frontier.known(self._run_id, wanted, with_rows))

    def note(self, url: str, known: Known) -> None:
        """How a URL stands now."""
        self._urls[url] = known

    def note_unless_known(self, url: str, known: Known) -> None:
        """How the store has it; what is known in here may be ahead of that."""
        self._urls.setdefault(url, known)

    # By their ids, for links of earlier runs

    def not_in_run(self, ids: Sequence[int]) -> Sequence[int]:
        """Those that this run may not have met yet."""
        met = self._in_run
        return () if met.issuperset(ids) else [url_id for url_id in ids if url_id not in met]

    def note_in_run(self, ids: Iterable[int]) -> None:
        self._in_run.update(ids)

    # Refusals that a page asked for

    @property
    def has_nofollow(self) -> bool:
        """Whether the run may have refused a URL because of nofollow: then it matters who else links there."""
        return self._has_nofollow

    def note_nofollow(self) -> None:
        self._has_nofollow = True

    def put_into(self, changes: Commit) -> None:
        changes.nofollow = self._has_nofollow
