"""Selectors that somebody wrote: they are tried and used in another process, which may die of them."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import inchworm
from inchworm import apart
from inchworm.apart import Apart, Unreadable
from inchworm.rules.fields.selectors import EACH, Rules, parsed

HTML = "text/html; charset=utf-8"
SLOW = "x=//*[count(//*[count(//*[count(//*)>1])>1])>1]"
"""A selector that takes a time that grows by the fourth power of a page."""

DEEP = b"<div><p>" * 1_000
RULES = parsed(["title_=h1", "price=.price | number", "tags=li | list"])
PAGE = b"<h1>A title</h1><b class=price>12.50</b><ul><li>a<li>b</ul>"


@pytest.fixture
def reader() -> Iterator[Apart]:
    with contextlib.closing(Apart()) as made:
        yield made


def rows(reader: Apart, rules: Rules = RULES, body: bytes = PAGE) -> list[list[object]]:
    return reader.fields(rules, body, HTML, "http://h.test/")


def test_fields_are_taken_apart(reader: Apart) -> None:
    assert rows(reader) == [["A title", 12.5, ["a", "b"]]]
    assert rows(reader, parsed(["x=:scope"], "li")) == [["a"], ["b"]]
    assert reader.part("said", PAGE, HTML, "http://h.test/")[0] == "", "the same process reads the rest"


def test_wrong_selectors_are_found_there(reader: Apart) -> None:
    assert reader.faults(RULES) == []
    found = reader.faults(parsed(["a=h1", "b=h1[", "c=//h1["], "li["))
    assert [name for name, _ in found] == ["b", "c", EACH]


def test_nobody_else_uses_selectors() -> None:
    """They have crashed the parser before: no other module may even load what uses them."""
    source = Path(inchworm.__file__).parent
    users = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "inchworm.rules.fields":
                users |= {path.name for alias in node.names if alias.name == "extract"}
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                users |= {path.name for name in names if name.startswith("inchworm.rules.fields.extract")}
    assert users == {"reader.py"}


def test_a_selector_that_takes_too_long_costs_its_page(reader: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 1.0)
    with pytest.raises(Unreadable, match="longer than"):
        rows(reader, parsed([SLOW]), DEEP)
    monkeypatch.undo()
    assert rows(reader) == [["A title", 12.5, ["a", "b"]]], "the next page is read by a new process"


def test_a_selector_that_takes_too_much_memory_costs_its_page(reader: Apart) -> None:
    """Each of many elements has the text of all that are in it."""
    with pytest.raises(Unreadable):
        rows(reader, parsed(["a=div::html | list"]), b"<div>" * 20_000)
    assert rows(reader) == [["A title", 12.5, ["a", "b"]]]


def test_a_process_that_dies_costs_its_page(reader: Apart) -> None:
    assert rows(reader)
    child = reader._child
    assert child is not None
    killer = threading.Timer(0.3, lambda: os.kill(child.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(Unreadable):
        rows(reader, parsed([SLOW]), DEEP)
    killer.join()
    assert rows(reader)


FRAIL = """
import os, sys
from inchworm import reader

part = reader._part

def frail(name, job, body):
    return os.abort() if "bad" in str(job.get("rules")) else part(name, job, body)

reader._part = frail
reader._limit_memory()
reader.serve(sys.stdin.buffer, sys.stdout.buffer)
"""
"""A reader whose parser crashes over a selector; nobody knows one over which the real one does."""


def test_one_that_breaks_the_reader_is_told_from_the_others(reader: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "COMMAND", (sys.executable, "-c", FRAIL))
    assert [name for name, _ in reader.faults(parsed(["a=h1", "b=bad", "c=h2"], "li"))] == ["b"]
    assert [name for name, _ in reader.faults(parsed(["a=bad"]))] == ["a"]
    assert [name for name, _ in reader.faults(parsed(["a=h1"], "bad"))] == [EACH]
    with pytest.raises(Unreadable):
        rows(reader, parsed(["a=bad"]))
    assert rows(reader)


def test_many_hostile_selectors(reader: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused, find something or nothing; whatever they do to the process, it concerns nobody else."""
    monkeypatch.setattr(apart, "SECONDS", 2.0)
    for text in (
        "(" * 900 + "//a" + ")" * 900,
        "//*" * 600,
        ":not(" * 300 + "a" + ")" * 300,
        ":is(" * 300 + "a" + ")" * 300,
        ":has(" * 300 + "a" + ")" * 300,
        "a" + ":nth-child(2n+1)" * 100,
        ":nth-child(99999999999999999999999n+1)",
        "a" + " a" * 900,
        "xpath:" + "-" * 1_500 + "1",
        "//a[" * 300 + "1" + "]" * 300,
        "xpath:substring('a', -1 div 0, 1 div 0)",
        "xpath:concat(" + ",".join(["'a'"] * 300) + ")",
        "xpath:translate('aaa', 'a', 'b')",
        "\\110000 a",
        "a\\",
        "[a=" + "\\" * 100 + "]",
        "//a[position()=last()-99999999999999999999]",
        "/descendant-or-self::node()" * 50,
        "//*[preceding::*[following::*]]",
        "a:lang(\u202e)",
    ):
        rules = parsed([f"x={text}"])
        if not reader.faults(rules):
            with contextlib.suppress(Unreadable):
                rows(reader, rules, b"<a>" * 300 + PAGE)
    monkeypatch.undo()
    assert rows(reader)
