"""What a session is told in: numbers and sentences for people, and a picture that fits its terminal."""

from __future__ import annotations

import shutil
import ssl
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from inchworm.app import App
from inchworm.cli import doctor
from inchworm.cli.screen import words
from inchworm.cli.screen.live import Terminal
from inchworm.engine.caller import Summary
from inchworm.model import Counters, CrawlInfo, LiveProgress, RunInfo, RunState

CRAWL = CrawlInfo("id", "example.org/docs", ("https://example.org/docs",), {}, 0)
RUN = RunInfo(1, 0, "baseline", None, RunState.IN_PROGRESS, 0, {}, Counters(pages=12, pending=3), (), "", 0, None)
DONE = Summary(
    "id", "a (2)", 0, 1, "completed", "completed", "finished", 9, 1500, 1.25, 8, 0, 0, 0, 0, 0, 9, "exact", "completed"
)
HUGE = Counters(12_345_678, 7_345_678, 4_900_000, 12_000, failed=321, refused=88_000)


def test_opening() -> None:
    assert words.opening(CRAWL, RUN, 1) == "Crawling example.org/docs for the first time."
    assert words.opening(CRAWL, RUN, 2) == "Resuming example.org/docs, run 0, session 2: 12 pages, 3 pending."
    again = replace(RUN, number=1, parent=0, mode="incremental")
    complete = "The last run of example.org/docs is complete. Run 1 downloads "
    assert words.opening(CRAWL, again, 1) == f"{complete}only what changed since run 0."
    in_full = words.opening(CRAWL, replace(again, mode="full"), 1)
    assert in_full == f"{complete}every page again and compares it with run 0."
    cancelled = words.opening(CRAWL, replace(again, number=2), 1)
    assert "complete" not in cancelled, "the last run was given up"
    assert "starts over" in words.opening(CRAWL, replace(RUN, number=3), 1)
    assert "branches off from run 1" in words.opening(CRAWL, replace(again, number=3, origin=1), 1)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Complete: nothing is left to crawl."),
        ({"failed": 2}, "Complete, but some URLs failed."),
        (
            {"failed": 0, "pages": 0, "run_state": "paused", "ended_by": "error", "message": "h.test: refused."},
            "h.test: refused. The same command tries again.",
        ),
        ({"refused": 1, "pages": 0}, "Complete, but there was nothing that may be crawled."),
        ({"run_state": "paused", "ended_by": "budget", "failed": 1}, words.ENDINGS["budget"]),
        (
            {"refused": 9, "mostly_duplicates": True},
            "Complete: what was left gave mostly duplicates, ten requests for each page of the limit.",
        ),
    ],
)
def test_ending(changes: dict[str, object], text: str) -> None:
    assert words.closing(replace(DONE, **changes))[0] == text


def test_one_is_not_several() -> None:
    said = "\n".join(
        words.closing(replace(DONE, fetched=1, pages=1, duplicates=1, failed=1, seeds=(("a", 1), ("b", 0))))
    )
    assert "1 request," in said and "1 page, 1 duplicate, 1 failed" in said and "1 page  a" in said
    assert (
        "2 pages" in words.closing(replace(DONE, pages=2))[2]
        and "0 requests" in words.closing(replace(DONE, fetched=0))[1]
    )
    assert "1 page, 3 pending" in words.opening(CRAWL, replace(RUN, counters=Counters(pages=1, pending=3)), 2)


def test_the_order_is_told_when_it_is_not_exact() -> None:
    assert "order" not in "".join(words.closing(DONE))
    assert "order: per host" in "".join(words.closing(replace(DONE, order="per host")))


def test_nothing_negative_is_saved() -> None:
    again = replace(DONE, mode="incremental", parent=0)
    assert "saved " not in "".join(words.closing(replace(again, saved_bytes=-120)))
    assert "saved " in "".join(words.closing(replace(again, saved_bytes=120)))


def test_commands_to_copy_are_quoted() -> None:
    assert words.closing(replace(DONE, failed=1))[-1].endswith("inchworm failed 'a (2)'")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_picture_fits_its_terminal(width: int) -> None:
    console = Console(width=width, force_terminal=False)
    urls = (
        f"https://example.org/{'long/' * 40}end",
        "https://example.org/\x1b[2J",
        "https://e.org/",
        "https://e.org/b",
    )
    terminal = Terminal(console)
    shown = []
    for in_flight in (urls, urls[:1], ()):
        with console.capture() as captured:
            console.print(terminal.picture(LiveProgress(HUGE, 1_234_567, 10**11, 98_765.4, in_flight, "exact")))
        shown.append(captured.get().splitlines())
    assert all(len(line) <= width for lines in shown for line in lines)
    assert len({len(lines) for lines in shown}) == 1, "the lines stay in place"
    assert "\x1b" not in "".join(shown[0])
    assert "7,345,678 pending" in shown[0][1] or width == 40


def test_the_last_url_on_the_terminal_is_the_last_one() -> None:
    """Not the one that takes longest: those under way are shown from the end, and what is over stays above them."""
    console = Console(width=80, force_terminal=False)
    terminal = Terminal(console)

    def urls(*in_flight: str) -> list[str]:
        with console.capture() as captured:
            console.print(terminal.picture(LiveProgress(HUGE, 1, 1, 1.0, in_flight, "exact")))
        return [line.strip(" →") for line in captured.get().splitlines() if "http" in line]

    slow = [f"http://e.org/slow{number}" for number in range(6)]
    assert urls(*slow, "http://e.org/new")[-1] == "http://e.org/new"
    assert urls(*slow, "http://e.org/newer")[-1] == "http://e.org/newer"
    assert urls("http://e.org/only") == [*slow[-2:], "http://e.org/newer", "http://e.org/only"]
    assert urls()[-1] == "http://e.org/only"


def test_doctor_finds_what_a_machine_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(tmp_path)
    try:
        assert [finding for finding in doctor.examine(app) if not finding.ok] == []
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None))
        (tmp_path / "config.toml").write_text("workers = 0")
        bad = [finding for finding in doctor.examine(app) if not finding.ok]
    finally:
        app.close()
    assert [finding.subject for finding in bad] == ["certificates", "disk", "settings"]
    assert all(finding.hint for finding in bad)
