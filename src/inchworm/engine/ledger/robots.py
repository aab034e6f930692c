"""What is on record of robots.txt files: what each of them said, and when it is asked for again."""

from __future__ import annotations

from collections.abc import Iterable

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.model import FinishedVisit, State
from inchworm.ports import Store, StoredRow
from inchworm.rules.web import control
from inchworm.rules.web import url as urls


class RobotsRecord:
    """The robots.txt files of one run."""

    def __init__(self, store: Store, draft: Draft, run_id: int) -> None:
        self._store = store
        self._draft = draft
        self._run_id = run_id

    def learn(self, visit: FinishedVisit) -> None:
        """One was visited. Should one that was read before not be there any more, what it said then still holds."""
        origin = urls.origin_of(visit.entry.request_url)
        verdict, said = rows.robots_verdict(visit)
        if verdict == "unreadable":
            for _, before, rules in self._store.hosts.robots(self._run_id, origin):
                if before == "refreshing":
                    verdict, said = ("rules", rules) if rules else ("allow", None)
        self._draft.learned.robots(origin, verdict, said)

    def settled(self, origins: Iterable[str]) -> list[str]:
        """Those that are not about to be asked for anyway."""
        return [origin for origin in origins if self._row(origin).standing.state is not State.PENDING]

    def refresh(self, origins: Iterable[str]) -> None:
        """These were read too long ago: they are asked for again, ahead of everything else."""
        for origin in origins:
            for _, verdict, rules in self._store.hosts.robots(self._run_id, origin):
                keep = verdict in ("rules", "allow", "refreshing")
                self._ask(origin, "refreshing" if keep else "forgotten", rules if keep else None)

    def forget(self, origins: set[str]) -> None:
        """Those of them that could not be read are asked for again."""
        for origin, verdict, _ in self._store.hosts.robots(self._run_id):
            if verdict in ("unreadable", "forgotten", "refreshing") and origin in origins:
                self._ask(origin, "forgotten", None)

    def _ask(self, origin: str, verdict: str, rules: bytes | None) -> None:
        row = self._row(origin)
        if row.standing.state is not State.PENDING:
            self._draft.frontier.reopen(row, rows.untried(row.standing), (0, -1 - row.url_id))
        self._draft.learned.robots(origin, verdict, rules)

    def _row(self, origin: str) -> StoredRow:
        file = control.robots_file(origin)
        known = self._store.frontier.known(self._run_id, [file.url])[file.url]
        (row,) = self._draft.rows([known.url_id])
        return row
