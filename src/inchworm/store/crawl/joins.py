"""What many statements say alike: the joins of visits and rows, which visit tells how a URL is, which runs are a line.

In all of them `v` is a visit, `f` a row of the frontier, `u` a URL.
"""

from __future__ import annotations

ROW = "frontier f ON f.run_id = v.run_id AND f.url_id = v.url_id"
"""The row of a visit's URL: `FROM visit v JOIN {ROW}`."""

SETTLED = f"visit v JOIN {ROW} AND f.done = v.seq"
"""Visits by which a URL stands as it does in its run, each with its row: `FROM {SETTLED}`."""

SETTLING = "visit v ON v.run_id = f.run_id AND v.seq = f.done"
"""The visit by which a row stands as it does: `FROM frontier f JOIN {SETTLING}`."""

ADDRESS = "COALESCE(v.request_url, u.url)"
"""A URL as a visit asked for it."""

JUDGEMENT = "v.outcome, v.change, v.note, v.message"

# Which visit tells how a URL is

IS_GOOD = "v.outcome IN ('page', 'duplicate', 'resource')"
IS_GONE = "(v.outcome = 'deleted' OR (v.outcome = 'redirect' AND v.change = 'deleted'))"
HAS_PAGE = "v.kind = 'page' AND v.outcome IN ('page', 'duplicate')"

TELLING = f"(v.kind = 'page' AND (v.outcome IN ('page', 'duplicate') OR {IS_GONE}))"
"""What a visit is like that tells whether its page is there. Others, such as a failure, say nothing of that."""

TELLING_RESOURCES_TOO = f"({TELLING} OR (v.kind = 'resource' AND v.outcome = 'resource'))"


BY_URL = " /*sqlite INDEXED BY visit_url*/"


def newest_visits(which: str, telling: str = TELLING, index: str = "") -> str:
    """A query for the newest visit of each URL that tells how it is, of those that `which` says. `index`: by which SQLite
    is to look for them."""
    return f"SELECT MAX(v.log_id) FROM visit v{index} WHERE {which} AND {telling} GROUP BY v.url_id"


# Which runs are a line

ITSELF = "SELECT run_id FROM run WHERE run_id = ?"
BEFORE = "SELECT follows FROM run WHERE run_id = ?"


def line_from(start: str) -> str:
    """A query for the runs of a line, from one on to the first."""
    more = "SELECT r.follows FROM line JOIN run r USING (run_id) WHERE r.follows IS NOT NULL"
    return f"WITH RECURSIVE line (run_id) AS ({start} UNION ALL {more}) SELECT run_id FROM line"


def earlier_runs(start: str = BEFORE) -> str:
    """A query for the runs before the horizon on its line, or from `start` on. What a cancelled one saw is news to
    whoever waits for the next."""
    return f"{line_from(start)} JOIN run USING (run_id) WHERE state <> 'cancelled'"


def is_earlier(start: str = BEFORE) -> str:
    """Of such a run. The plus: a URL has few visits, but there may be many runs."""
    return f"/*sqlite +*/v.run_id IN ({earlier_runs(start)})"
