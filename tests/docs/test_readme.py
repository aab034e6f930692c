"""The documents tell the truth: their commands work, their links lead somewhere, their tables are complete."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests.docs.blocks import EXAMPLE, ROOT, blocks, run, served

from inchworm.errors import InchwormError

README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.md"
DOCUMENTS = sorted(path for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md"))
DOCUMENTS += sorted((ROOT / "docs").glob("*/*.md"))


def commands(path: Path) -> list[str]:
    """The lines of a document's shell blocks, without comments."""
    lines = [line for language, text in blocks(path) if language == "sh" for line in text.splitlines()]
    return [line.partition("    #")[0].rstrip() for line in lines]


def test_the_readme_works(tmp_path: Path) -> None:
    """The first crawl is cut short by a budget, so the second one has something to go on with. At the end it is
    exported once more, all of it."""
    lines = [line for line in commands(README) if not line.startswith(("pip ", "make "))]
    crawl, export = f"inchworm crawl {EXAMPLE}/docs", f"inchworm export {EXAMPLE}/docs -o docs.jsonl"
    assert (lines[:2], lines.count(crawl)) == ([crawl, export], 2)
    with served() as serving:
        ended = run("\n".join([*lines, export]), serving, tmp_path, INCHWORM_BUDGET="4")
        asked = [path for path in serving.paths() if path.startswith("/docs")]
    assert ended.returncode == 0, ended.stderr
    said = ended.stderr
    assert said.index("for the first time") < said.index("Stopped at the budget") < said.index("Resuming")
    assert len(asked) == len(set(asked)) == 7
    exported = [json.loads(line) for line in (tmp_path / "docs.jsonl").read_text().splitlines()]
    assert {line["url"] for line in exported} == {serving.url(path) for path in asked if path != "/docs/gone"}
    assert all(line["text"] for line in exported)
    assert "install\nAll about install. All about install." in ended.stdout, "the text of a page, below its title"
    assert "done: it was fetched" in ended.stdout


def test_the_text_is_four_commands_away() -> None:
    """From nothing: install, crawl, export, look."""
    text = README.read_text()
    first, second = blocks(README)[:2]
    assert text.index(first[1]) < text.index("## Quickstart") < text.index(second[1])
    lines = [line.split()[0] for _, block in (first, second) for line in block.splitlines()]
    assert lines == ["pip", "inchworm", "inchworm", "jq"]


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {line.split()[1] for path in (README, GUIDE) for line in commands(path) if line.startswith("make ")}
    targets |= set(re.findall(r"^    make (\w+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert targets >= {"demo", "test", "shape"}
    for target in targets:
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def test_the_guide_works(tmp_path: Path) -> None:
    """All its shell blocks, one after the other as a reader would try them, and the piece of Python."""
    script = "\n".join(text for language, text in blocks(GUIDE) if language == "sh")
    program = "\n".join(text for language, text in blocks(GUIDE) if language == "python")
    with served() as serving:
        # No other test may have this port.
        script = script.replace("inchworm serve", f"inchworm serve --port {(port := free_port())}").replace(
            "8060", str(port)
        )
        ended = run(f"{script}\npython - <<'END'\n{program}\nEND\n", serving, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "refused (out_of_scope)" in ended.stdout
    assert "1 re-opened." in ended.stdout
    assert re.search(r"^workers +10$", ended.stdout, re.MULTILINE)
    assert "completed 5" in ended.stdout, "the print page is excluded by the file"
    assert "Worms They arch their back and stretch." in ended.stdout
    assert "│ install" in ended.stdout, "a table of DuckDB"
    assert (tmp_path / "docs.warc.gz").stat().st_size > 1000


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_every_exit_code_is_in_the_readme() -> None:
    listed = {
        int(code)
        for row in re.findall(r"^\| ([\d, ]+) \|", README.read_text(), re.MULTILINE)
        for code in row.split(",")
    }
    kinds = {InchwormError, *InchwormError.__subclasses__()}
    serving = {5, 6}
    assert listed == {0, 129, 130, 143} | serving | {kind.exit_code for kind in kinds}


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "pictures" / "session.svg").read_text()
    hosts = set(re.findall(r"(?:https?:)?//([\w.-]+)", picture))
    assert hosts == {"www.w3.org", "manual.localhost"}
    assert not re.search(r"@import|@font-face|url\((?!#)|<script|<image|href=", picture)


def test_the_picture_can_be_drawn_and_says_what_is_said_today(tmp_path: Path) -> None:
    """Its words are those of a crawl of today; only the numbers are others."""
    spec = importlib.util.spec_from_file_location("session_picture", ROOT / "docs" / "pictures" / "session.py")
    assert spec and spec.loader
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    drawing.main(300, free_port(), tmp_path / "drawn.svg", kill_at=1)

    def words(path: Path) -> set[str]:
        texts = re.findall(r"<text[^>]*>(.*?)</text>", path.read_text())
        return {word for text in texts for word in re.findall(r"[a-zA-Z]{3,}", html.unescape(text))}

    # Which pages happen to be under way is chance, and so are the units of time and size.
    chance = {"guide", "reference", "left", "for", "what", "known", "about"}
    assert words(tmp_path / "drawn.svg") ^ words(drawing.TARGET) <= chance


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_decisions_are_short(path: Path) -> None:
    text = path.read_text()
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+", path.stem)
    assert text.startswith(f"# {path.stem[:4]} ")
    assert len(text.splitlines()) < 40
    assert all(f"**{word}.**" in text for word in ("What", "Why", "What we gave up"))


def planned(target: str, folder: Path) -> str:
    """The commands that make would run where nothing is installed yet."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-n", "-C", str(ROOT), target, f"VENV={folder / 'venv'}", "URL=https://example.org/"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.parametrize("target", ["demo", "demo-serve", "crawl"])
def test_a_demo_installs_what_a_user_gets_and_no_more(tmp_path: Path, target: str) -> None:
    commands = planned(target, tmp_path)
    assert re.search(r"pip install .*--editable \.$", commands, re.MULTILINE)
    assert "[dev]" not in commands


def test_the_tests_have_all_that_developers_need_and_say_so_first(tmp_path: Path) -> None:
    commands = planned("test", tmp_path)
    assert "--editable '.[dev]'" in commands
    assert commands.index("tests/install --say") < commands.index("pip install")
    said = subprocess.run(
        [str(ROOT / "tests" / "install"), "--say", str(tmp_path / "venv" / "stamp")],
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"Installed into {tmp_path / 'venv'}" in said.stdout
