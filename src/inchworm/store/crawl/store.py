"""An open crawl: one connection, and an object for each noun that a session works with.

One writer ever: the owner of the crawl's run. Everybody else opens the file read-only. What only people ask is in `read`.
"""

from __future__ import annotations

from pathlib import Path

from inchworm.store.crawl.commit import CommitWriter
from inchworm.store.crawl.earlier import EarlierTable
from inchworm.store.crawl.evidence import EvidenceTable
from inchworm.store.crawl.frontier import FrontierTable, QueueTable
from inchworm.store.crawl.hosts import HostTable
from inchworm.store.crawl.owner import Ownership
from inchworm.store.crawl.runs import RunTable, SessionTable
from inchworm.store.crawl.visits import ArchiveTable, VisitTable
from inchworm.store.crawl.votes import RankTable
from inchworm.store.database import Database
from inchworm.store.lock import Life
from inchworm.store.sqlite import open_file


class CrawlStore:
    """One crawl's tables, for its owner or for a reader."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path = path
        self.db: Database = open_file(path, "crawl", read_only)
        self.owner = Ownership(self.db, path)
        self.commits = CommitWriter(self.db, self.owner)
        self.runs = RunTable(self.db, self.owner, self.commits)
        self.sessions = SessionTable(self.db, self.owner)
        self.queue = QueueTable(self.db)
        self.frontier = FrontierTable(self.db)
        self.visits = VisitTable(self.db)
        self.archive = ArchiveTable(self.db, self.owner)
        self.hosts = HostTable(self.db)
        self.earlier = EarlierTable(self.db)
        self.evidence = EvidenceTable(self.db)
        self.ranks = RankTable(self.db)

    def take(self, me: Life) -> int:
        """Become the owner: a new token, after which no older one can commit."""
        token = self.owner.take(me)
        self.commits.read_log()
        return token

    def close(self) -> None:
        self.db.close()
