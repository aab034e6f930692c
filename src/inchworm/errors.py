"""What can go wrong that is a caller's mistake or ours. Failures of the web are results, not these.

                       exit  HTTP
    InchwormError         1   500
    ├── WrongUse          2   422   a setting, an argument or a file of the user's is wrong
    │   ├── Unknown       2   404   no crawl, run, job or URL of that name
    │   └── Frozen        2   409   a run setting differs from the one its run started with
    ├── NoEntry           2   401   nobody is known by that token, or it has expired
    │   └── ReadOnly      2   403   the token may look and not touch
    ├── Owned             3   409   another process works on this run
    ├── Lost              3   409   this process lost its run to another one and may not write any more
    ├── NotNow            1   409   the state does not allow it (nothing to resume, still in progress)
    ├── TooNew            1   503   the files were written by a newer inchworm
    ├── Broken            1   503   disk full, database damaged or locked: the session ends, nothing is lost
    └── CannotServe       4   500   the service cannot start: its port, its home, its secret

Each carries a sentence and a hint: what to do next.
"""

from __future__ import annotations


class InchwormError(Exception):
    """The root of the tree."""

    code = "error"
    exit_code = 1
    status = 500

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WrongUse(InchwormError):
    """An argument or a setting cannot be used."""

    code = "wrong_use"
    exit_code = 2
    status = 422


class Unknown(WrongUse):
    """Nothing of that name is known."""

    code = "unknown"
    status = 404


class Frozen(WrongUse):
    """A run setting cannot change while its run is open."""

    code = "frozen"
    status = 409


class NoEntry(InchwormError):
    """Whoever asks is not known."""

    code = "unauthorized"
    exit_code = 2
    status = 401


class ReadOnly(NoEntry):
    """Whoever asks may only look."""

    code = "read_only"
    status = 403


class Owned(InchwormError):
    """Another process owns the run."""

    code = "owned"
    exit_code = 3
    status = 409


class Lost(InchwormError):
    """The run was taken over by another process."""

    code = "lost"
    exit_code = 3
    status = 409


class NotNow(InchwormError):
    """The state of the run does not allow this."""

    code = "not_now"
    status = 409


class TooNew(InchwormError):
    """The files were written by a newer inchworm."""

    code = "too_new"
    status = 503


class Broken(InchwormError):
    """A disk or database failure ended the session; what was committed is safe."""

    code = "broken"
    status = 503


class CannotServe(InchwormError):
    """The service cannot start."""

    code = "cannot_serve"
    exit_code = 4
