"""The benches run, at a small size, and what they promise holds there: memory is flat, and resuming is quick."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent.parent / "bench"
SOURCE = BENCH.parent / "src" / "inchworm"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCH / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_memory_stays_flat_over_a_long_crawl() -> None:
    said = run("memory.py", "--pages", "5000")
    at_first, at_last = map(float, re.findall(r"([0-9.]+) MB", said.splitlines()[-2]))
    assert at_last - at_first < 10


def test_state_of_ten_thousand_urls_opens_at_once_and_takes_little_memory() -> None:
    small, large = (line.split() for line in run("scale.py", "--most", "10000").splitlines()[1:])
    assert float(large[2]) < 0.5
    assert float(large[3]) - float(small[3]) < 60
    assert int(large[7]) < 1000, "a checkpoint takes a few hundred bytes"


def test_jobs_are_polled_placed_and_spread() -> None:
    said = run("scheduler.py", "--jobs", "2000")
    assert all(word in said for word in ("poll", "plac", "distribution", "preview"))


def test_the_pages_of_the_dashboard_are_small() -> None:
    lines = run("dashboard.py", "--pages", "2000").splitlines()[2:]
    assert len(lines) > 20
    assert [line for line in lines if float(line.removesuffix("  missed").split()[-1]) > 200] == []


def test_changes_are_found_and_no_others(tmp_path: Path) -> None:
    """Of ten pages all bear a new version, one another word, one a space, one another link; two only look otherwise."""
    changes = {
        "1": ("the second", "the other"),
        "2": ("+485", "+ 485"),
        "3": ("href=/4.html", "href=/5.html"),
        "4": ("<p>", "<p>\n   "),
        "5": ("<body>", "<body><!-- made anew -->"),
    }
    for version in ("1.0", "1.1"):
        (tmp_path / version).mkdir()
        for number in range(10):
            text = f"This is page {number} of a manual, and {'the second of its sentences says so at length. ' * 3}"
            body = f"<h1>Page {number}</h1><p>{text} Value +485. <a href=/4.html>next</a><p>Version {version}</p>"
            if version == "1.1":
                body = body.replace(*changes.get(str(number), ("", "")))
            page = f"<title>Page {number}</title><body>{body}".replace(*(changes["5"] if number == 5 else ("", "")))
            (tmp_path / version / f"{number}.html").write_text(page)
    folders = (str(tmp_path / version) for version in ("1.0", "1.1"))
    said = run("change.py", "--folders", *folders, "--versions", "1.0", "1.1").splitlines()[-1].split()
    assert said[:6] == ["1.1", "10", "3", "7", "0", "0"]


def test_the_stages_of_the_profile_are_files_and_functions_that_exist() -> None:
    """Costs of a stage whose file moved away would be counted as "the rest" without a word."""
    text = (BENCH / "profile.py").read_text()
    stages = ast.literal_eval(text[text.index("{\n", text.index("STAGES = ")) : text.index("\n}\n") + 2])
    ours = {(end, function) for end, function in stages if end != "pycurl"}
    assert ours
    for end, function in ours:
        found = SOURCE / end
        assert found.exists(), end
        assert not function or f"def {function}(" in found.read_text()
