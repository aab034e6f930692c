"""What can go wrong that is a caller's mistake or ours. Failures of the web are results, not these.

    InchwormError
    ├── WrongUse          2   a setting, an argument or a file of the user's is wrong
    │   ├── Unknown       2   no crawl, run or URL of that name
    │   └── Frozen        2   a run setting differs from the one its run started with
    ├── Owned             3   another process works on this run
    ├── Lost              3   this process lost its run to another one and may not write any more
    ├── NotNow            1   the state does not allow it (nothing to resume, still in progress)
    ├── TooNew            1   the files were written by a newer inchworm
    └── Broken            1   disk full, database damaged or locked: the session ends, nothing is lost

Each carries a sentence and a hint: what to do next.
"""

from __future__ import annotations


class InchwormError(Exception):
    """The root of the tree."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WrongUse(InchwormError):
    """An argument or a setting cannot be used."""

    code = "wrong_use"
    exit_code = 2


class Unknown(WrongUse):
    """Nothing of that name is known."""

    code = "unknown"


class Frozen(WrongUse):
    """A run setting cannot change while its run is open."""

    code = "frozen"


class Owned(InchwormError):
    """Another process owns the run."""

    code = "owned"
    exit_code = 3


class Lost(InchwormError):
    """The run was taken over by another process."""

    code = "lost"
    exit_code = 3


class NotNow(InchwormError):
    """The state of the run does not allow this."""

    code = "not_now"


class TooNew(InchwormError):
    """The files were written by a newer inchworm."""

    code = "too_new"


class Broken(InchwormError):
    """A disk or database failure ended the session; what was committed is safe."""

    code = "broken"
