"""The overview: what runs now, what changed lately, what needs attention."""

from __future__ import annotations

from typing import Any

from inchworm.app.keeping import Keeping
from inchworm.job import JobState
from inchworm.model import EndedBy, RunState

_FEW = 8
_LATE_MS = 60_000
_BAD_ENDS = (EndedBy.ERROR, EndedBy.CRASHED)


class Overview(Keeping):
    """The verb that looks at everything at once."""

    def overview(self) -> dict[str, Any]:
        """What runs now, what changed lately, what needs attention."""
        lines = sorted(self.list_crawls(None, len(self.home.crawls())), key=_activity, reverse=True)
        return {
            "crawls": len(lines),
            "running": [one for one in lines if one["state"] == RunState.IN_PROGRESS],
            "changed": sorted((one["changed"] for one in lines if one["changed"]), key=_when, reverse=True)[:_FEW],
            "attention": [*self._overdue(), *self._failed(), *(found for one in lines for found in _troubles(one))],
            "recent": lines[:_FEW],
        }

    def _overdue(self) -> list[dict[str, Any]]:
        count, _ = self.jobs.overdue(self.clock.now_ms() - _LATE_MS, 1)
        if not count:
            return []
        name = "1 overdue job" if count == 1 else f"{count:,} overdue jobs"
        message = "Nobody has started what is due: no scheduler runs, or all its executions are busy."
        return [{"kind": "jobs_overdue", "name": name, "message": message}]

    def _failed(self) -> list[dict[str, Any]]:
        failed = self.jobs.find({"state": JobState.FAILED.value}, None, _FEW)
        return [
            {
                "kind": "job_failed",
                "job_id": told["id"],
                "crawl_id": told["crawl_id"],
                "name": told["name"],
                "message": told["reason"] or "The job failed.",
            }
            for told in map(self.job_json, failed)
        ]


def _activity(line: dict[str, Any]) -> str:
    return str(line["run_started_at"] or line["created_at"])


def _when(change: dict[str, Any]) -> str:
    return str(change["at"])


def _troubles(line: dict[str, Any]) -> list[dict[str, Any]]:
    about = {"crawl_id": line["crawl_id"], "name": line["name"], "run": line["run"]}
    found = []
    if line["note"]:
        found.append({**about, "kind": "unreadable", "message": line["note"]})
    if line["alarm"]:
        found.append({**about, "kind": "alarm", "message": line["alarm"]})
    if line["failed"] and line["failed"] > line["pages"] + line["duplicates"]:
        message = f"{line['failed']:,} URLs failed, and {line['pages']:,} pages came."
        found.append({**about, "kind": "failing", "message": message})
    if (session := line["session"]) and line["state"] == RunState.PAUSED and session["ended_by"] in _BAD_ENDS:
        found.append({**about, "kind": "broken_off", "message": _broken_off(session)})
    if line["down"] and line["state"] in (RunState.IN_PROGRESS, RunState.PAUSED):
        first, others = line["down"][0], len(line["down"]) - 1
        rest = f", and {others:,} more" if others else ""
        message = f"{first['host']}{rest} cannot be reached: {first['message']}. Its URLs wait."
        found.append({**about, "kind": "down", "message": message})
    return found


def _broken_off(session: dict[str, Any]) -> str:
    if session["ended_by"] == EndedBy.CRASHED:
        return "Its last session was killed, or crashed. Nothing is lost: resume it."
    return f"Its last session ended with an error: {session['message'] or 'it was not said which'}"
