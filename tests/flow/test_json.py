"""What scripts read: one JSON object on the last line of standard output, progress elsewhere, exit codes."""

from __future__ import annotations

import json
import signal

from tests.flow.crawling import Home, page, wait_until

from inchworm.testing import Page, Site, linked_site

FIELDS = {
    "crawl_id": str,
    "name": str,
    "run": int,
    "session": int,
    "run_state": str,
    "session_state": str,
    "ended_by": str,
    "fetched": int,
    "bytes": int,
    "seconds": float,
    "pages": int,
    "duplicates": int,
    "unchanged": int,
    "failed": int,
    "refused": int,
    "pending": int,
    "known": int,
    "order": str,
}


def test_the_object_of_crawl_and_resume(home: Home) -> None:
    site = {**linked_site(20, duplicates=4), "/p19": page("last", "/gone", "http://example.org/")}
    with Site(site).serve() as served:
        ended = []
        for command in (("crawl", served.url("/"), "--budget", "10"), ("resume", served.url("/"), "--budget", "0")):
            done = home.process(*command, "--delay", "0", "--json")
            *before, last = done.stdout.splitlines()
            assert before == []
            assert done.stderr
            assert "{" not in done.stderr
            ended.append(json.loads(last))
    for one in ended:
        assert {name: type(one[name]) for name in FIELDS} == FIELDS
    first, second = ended
    assert first["name"] == f"127.0.0.1:{served.port}"
    assert (first["crawl_id"], first["run"]) == (second["crawl_id"], second["run"]) == (home.word, 0)
    assert (first["session"], second["session"]) == (1, 2)
    assert (first["ended_by"], first["run_state"], first["session_state"]) == ("budget", "paused", "completed")
    assert (second["ended_by"], second["run_state"], second["session_state"]) == ("finished", "completed", "completed")
    assert (first["fetched"], second["fetched"]) == (10, 15), "these are the session's"
    counted = {name: second[name] for name in ("pages", "duplicates", "unchanged", "failed", "refused", "pending")}
    assert counted == {"pages": 20, "duplicates": 4, "unchanged": 0, "failed": 1, "refused": 1, "pending": 0}
    assert second["known"] == 26
    assert second["order"] == "exact"
    assert first["bytes"] + second["bytes"] == home.status()["size"]
    assert 0 < first["seconds"] < 20


def test_people_read_standard_error(home: Home) -> None:
    """Without --json a crawl writes nothing to standard output."""
    with Site(linked_site(3)).serve() as served:
        done = home.process("crawl", served.url("/"), "--delay", "0")
    assert done.stdout == ""
    assert "Crawling" in done.stderr
    assert "Complete: nothing is left to crawl." in done.stderr


def test_exit_codes(home: Home) -> None:
    site = Site({**linked_site(400), "/broken": Page("oops", 500)}, latency=(0.05, 0.1))
    with site.serve() as served:
        seed = served.url("/")
        with home.running("crawl", seed, "--delay", "0") as process:
            wait_until(lambda: len(served.log) > 3)
            assert home.process("crawl", seed, code=3).stdout == ""
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            assert process.returncode == 130
        site.latency = (0.0, 0.0)
        home.cli("resume", seed, "--delay", "0", "--budget", "5")
        home.process("crawl", seed, "--delay", "0")
        home.cli("crawl", served.url("/broken"), "--delay", "0", "--max-retries", "0", code=1)
        home.process("resume", seed, code=1)
        home.process("crawl", seed, "--scope", "moon", code=2)
        home.cli("cancel", seed, code=1)
        for wrong in (
            ("crawl",),
            ("crawl", "not a url"),
            ("crawl", seed, "--workers", "none"),
            ("crawl", seed, "--workers", "0"),
            ("crawl", seed, "--no-such-option"),
            ("crawl", seed, "--include", "re:("),
            ("status", "nothing"),
            ("export", seed, "--format", "stone"),
            ("show", seed, served.url("/never-met")),
        ):
            refused = home.cli(*wrong, code=2)
            assert refused.stdout == ""
            assert refused.stderr
            assert "Traceback" not in refused.stderr


def test_every_command_speaks_json(home: Home) -> None:
    with Site(linked_site(5)).serve() as served:
        seed = served.url("/")
        home.crawl(seed, budget=2)
        assert home.ask("status", seed)["run_state"] == "paused"
        assert [one["name"] for one in home.ask("list")["crawls"]] == [f"127.0.0.1:{served.port}"]
        assert home.ask("queue", seed)["visited"] == 2
        assert home.ask("show", seed, seed)["state"] == "done"
        assert home.ask("why", seed, seed)["state"] == "done"
        assert home.ask("failed", seed) == {"failed": []}
        assert home.ask("retry", seed) == {"reopened": 0}
        assert home.ask("show-settings", seed)["workers"] == 5
        assert home.ask("doctor")["ok"]
        urls = home.cli("export", seed, "--format", "urls").stdout.splitlines()
        assert urls == home.urls()
        lines = home.cli("export", seed, "--format", "jsonl").stdout.splitlines()
        assert [json.loads(line)["seq"] for line in lines] == [one["seq"] for one in home.record()]
        assert home.ask("cancel", seed) == {"run_state": "cancelled"}
        assert home.ask("delete", seed, "--yes")["deleted"]
