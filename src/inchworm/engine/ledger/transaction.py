"""The transactions of a ledger, one after the other: all of one or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from inchworm.engine.ledger.draft.draft import Draft
from inchworm.ports import RowWriter


class Transaction:
    """Opens and ends them. After one that failed, what we have in memory is ahead of the store: nothing more may be
    built on it."""

    def __init__(self, commits: RowWriter, token: int, draft: Draft) -> None:
        self._commits = commits
        self._token = token
        self._draft = draft
        self._open = ExitStack()
        self._failure: BaseException | None = None

    def open(self) -> None:
        """To be continued in steps, and closed. May wait for a lock."""
        self._refuse_if_failed()
        self._draft.begin()
        self._open.enter_context(self._commits.committing(self._token))

    @contextmanager
    def step(self) -> Iterator[None]:
        """A part of what was opened; when it fails, everything is rolled back."""
        with ExitStack() as undo:
            undo.push(self._open)
            with self._remembering_failure():
                yield
            undo.pop_all()

    def close(self) -> None:
        """Make it last. Waits for the disk."""
        with self._remembering_failure():
            self._open.close()

    @contextmanager
    def whole(self, inbox_id: int = 0) -> Iterator[None]:
        """One from its beginning to its end, with what was drafted in between."""
        self._refuse_if_failed()
        self._draft.begin(inbox_id)
        with self._remembering_failure(), self._commits.committing(self._token):
            yield
            self._draft.write()

    @contextmanager
    def _remembering_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    def _refuse_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure
