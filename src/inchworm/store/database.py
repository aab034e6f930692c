"""The port to a database: what the store asks of one, whichever it is. `sqlite` is the adapter there is today.

The text of a statement is shared, in what SQLite and PostgreSQL both read:

- `?` stands for a value, or `:name` where one statement needs a value several times; never both, and never inside of a
  quoted text.
- `= ANY (?)` takes a list of values. However many there are, it is one statement (or one of a few, of fixed lengths).
- `GREATEST`, `LEAST`, `instr`, `json_extract` are there in either; each adapter sees to those that its database lacks.
- A hint for SQLite's planner stands in a comment, `/*sqlite CROSS*/ JOIN`: only SQLite is shown what is in it. Neither
  has to be there for the answer to be right.
- What is true or false is an integer in a table, so it is compared (`requested = 1`) and counted by
  `COUNT(*) FILTER (WHERE ...)`.
- Who has the largest of something is asked for by that number (`WHERE log_id IN (SELECT MAX(log_id) ...)`), not by a bare
  column beside an aggregate.
- `INSERT ... ON CONFLICT`, and `RETURNING` for the id that a new row got.

Names of columns that a database keeps for itself are quoted. Text is ordered by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

from inchworm.errors import Broken

Values = Sequence[object] | Mapping[str, object]
"""What goes into a statement."""

Row = Any  # type: ignore[explicit-any]
"""A row is what its statement selects, which no checker of types can read: whoever asked knows, and makes a value of it
before it leaves the module. This is the one place in the store where types end."""

NO_LIMIT = 1 << 62
"""For `LIMIT ?` where there is none."""


class DatabaseTrouble(StrEnum):
    """In which way a database failed."""

    BUSY = "busy"
    GONE = "gone"
    FULL = "full"
    DAMAGED = "damaged"
    OTHER = "other"


class DatabaseFailed(Broken):
    """A statement could not be carried out, whoever wrote it."""

    def __init__(self, message: str, hint: str, trouble: DatabaseTrouble) -> None:
        super().__init__(message, hint)
        self.trouble = trouble


class Answered(Protocol):
    """What a statement brought: its rows, or how many it changed."""

    @property
    def rowcount(self) -> int: ...

    def __iter__(self) -> Iterator[Row]: ...

    def fetchone(self) -> Row: ...

    def fetchall(self) -> list[Row]: ...


class Database(Protocol):
    """One crawl's tables, those of the home, or a file of our own. Whatever goes wrong is raised as `DatabaseFailed`."""

    def execute(self, sql: str, values: Values = ()) -> Answered:
        """Carry a statement out. A value for `= ANY (?)` is a list."""

    def executemany(self, sql: str, rows: Iterable[Values]) -> Answered:
        """The same statement for many rows, none of which has a list."""

    def insert(self, sql: str, values: Values) -> int:
        """Put one row in; the statement ends with RETURNING, and what it returns is the row's id."""

    def among(self, sql: str, values: Iterable[object], *given: object) -> Iterator[Row]:
        """The rows for any number of values, of which `= ANY (?)` takes some at a time; `given` are for the other marks."""

    def stream(self, sql: str, values: Values = ()) -> Iterator[Row]:
        """The rows of an answer that may be larger than memory, each as it is asked for."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written in here, or nothing. Nobody else writes meanwhile."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything that is read in here is as it was at one moment."""

    def alone(self, name: str, while_waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """One process at a time holds a lock of this name. `while_waiting` is called again and again until it is our
        turn; a holder that stands still for too long is told of by `DatabaseFailed`."""

    def expect(self, rows: int) -> None:
        """How many rows there are to work with, for the sake of caches."""

    def is_same(self) -> bool:
        """Whether what was opened is still what is found in its place."""

    def check(self) -> str:
        """'ok', or what is wrong with what is stored."""

    def close(self) -> None: ...
