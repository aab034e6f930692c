"""The overview: what runs now, what changed lately, what needs attention."""

from __future__ import annotations

from typing import Any

from inchworm.app.keeping import Keeping
from inchworm.job import JobState
from inchworm.model import RunState

_FEW = 8
_CHANGES = ("new", "modified", "deleted")


class Overview(Keeping):
    """The verb that looks at everything at once."""

    def overview(self) -> dict[str, Any]:
        """What runs now, what changed lately, what needs attention."""
        lines = sorted(self.list_crawls(None, len(self.home.crawls())), key=_activity, reverse=True)
        return {
            "crawls": len(lines),
            "running": [one for one in lines if one["state"] == RunState.IN_PROGRESS],
            "changed": [one for one in lines if any(one[name] for name in _CHANGES)][:_FEW],
            "attention": [*self._troubled_jobs(), *(found for one in lines for found in _troubles(one))],
            "recent": lines[:_FEW],
        }

    def _troubled_jobs(self) -> list[dict[str, Any]]:
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
    return found
