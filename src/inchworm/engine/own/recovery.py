"""Recovery: what a new owner does before anything else, whatever became of the one before it.

The archive is brought to what was committed, and the page that was being read when a process died is noted.
"""

from __future__ import annotations

from pathlib import Path

from inchworm import fault
from inchworm.archive import warc
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.lock import ReadingMark


def recover(store: CrawlStore, archive: Path, mark: ReadingMark, token: int, is_old_owner_asleep: bool) -> list[str]:
    """Make a crawl ready for the owner with this token. Files of the archive that are missing or too short."""
    fault.point("in_recovery")
    if is_old_owner_asleep:
        _leave_files_of_old_owner(store, archive, token)
    lost = cut_archive(store, archive)
    open_run = store.runs.get()
    url_id = mark.get()
    mark.clear()
    if url_id and open_run is not None:
        store.sessions.blame(token, open_run.run_id, [url_id])
    fault.point("after_recovery")
    return lost


def cut_archive(store: CrawlStore, archive: Path) -> list[str]:
    """Make the archive end where the record ends. Files of it that are missing or too short."""
    return warc.recover(archive, {name: length for _, _, name, length in store.archive.files()})


def _leave_files_of_old_owner(store: CrawlStore, archive: Path, token: int) -> None:
    """An owner that is only asleep may still append to its files; ours must be others."""
    for file_id, of_token, name, length in store.archive.files():
        if of_token == token - 1:
            new_name = f"t{token:06}-copy-of-{name}"
            (archive / new_name).unlink(missing_ok=True)
            warc.copy_prefix(archive, name, length, new_name)
            store.archive.rename(token, file_id, new_name)
