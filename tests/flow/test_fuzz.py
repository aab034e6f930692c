"""A crawl of a web that is broken in every way that a number can think of: each page costs itself and nothing else.

`make soak` does this with a hundred thousand pages. INCHWORM_FUZZ_PAGES says how many, INCHWORM_FUZZ_SEED which; what
fails says both, and the same two make the same web again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.crash import checker
from tests.flow.crawling import Home
from tests.flow.fuzz import DOMAIN, Web
from tests.flow.hostile import names, sound

import inchworm
from inchworm.app import FORMATS, App, Summary, Target
from inchworm.app.read.content.single import PARTS
from inchworm.app.read.reports import REPORTS
from inchworm.fetch import decode
from inchworm.model import Request, Response
from inchworm.rules.page import parse
from inchworm.testing import Site

IS_LONG = "INCHWORM_FUZZ_PAGES" in os.environ
PAGES = int(os.environ.get("INCHWORM_FUZZ_PAGES", "250"))
SEEDS = ["any"] if IS_LONG else ["any", "1", "2"]
"""`any` is another one each time, unless INCHWORM_FUZZ_SEED says which."""

SAMPLE = 100
MOST_SITTINGS = 200
A_DAY = 86_400.0


class HastyClock:
    """A clock on which seconds pass whenever somebody looks, so that nobody waits for a host; it can be set forward."""

    step = 5.0

    def __init__(self) -> None:
        self._began_ms = time.time_ns() // 1_000_000
        self._passed = 0.0

    def monotonic(self) -> float:
        self._passed += self.step
        return self._passed

    def now_ms(self) -> int:
        return self._began_ms + round(1000 * self._passed)

    def skip(self, seconds: float) -> None:
        self._passed += seconds


class FuzzHome(Home):
    """A home in which a run is worked until its end, however often it has to wait for a day."""

    patience = 36_000.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.app.close()
        self.clock = HastyClock()
        self.app = App(folder, self.clock)

    def finish(self, ended: Summary, **given: Any) -> Summary:
        for _ in range(MOST_SITTINGS):
            assert ended.ended_by != "error", ended.message
            if ended.run_state != "paused":
                return ended
            assert ended.ended_by == "waiting", ended
            self.clock.skip(A_DAY)
            ended = self.resume(**given)
        raise AssertionError(f"it still waits: {ended}")


@pytest.fixture
def fuzz_home(tmp_path: Path) -> Iterator[FuzzHome]:
    made = FuzzHome(tmp_path / "home")
    yield made
    made.app.close()


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    if request.param != "any":
        return int(request.param)
    return int(os.environ.get("INCHWORM_FUZZ_SEED") or secrets.randbelow(1_000_000_000))


def test_no_answer_ends_a_session(
    fuzz_home: FuzzHome, seed: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    web = Web(seed, PAGES)
    names({host: ["127.0.0.1"] for host in web.hosts}, monkeypatch)
    with _saying_how_to_repeat(seed):
        if IS_LONG:
            with capfd.disabled():
                print(f"\n{PAGES} pages of the web {seed}", flush=True)
        for web.round in (0, 1):
            with Site({"*": web.answer}).serve(web.port if web.round else 0) as served:
                web.port = served.port
                _check_run(fuzz_home, web)
            _check_what_is_shown(fuzz_home)
            _check_exports(fuzz_home)
        _check_comparison(fuzz_home)
        sound(fuzz_home)
        said = "".join(capfd.readouterr())
        assert "Traceback" not in said, said


@contextmanager
def _saying_how_to_repeat(seed: int) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"once more: INCHWORM_FUZZ_SEED={seed} INCHWORM_FUZZ_PAGES={PAGES} pytest {Path(__file__).name}")
        raise


def _check_run(home: FuzzHome, web: Web) -> None:
    settings = _settings(Random(web.number))
    begun = home.recrawl() if web.round else home.crawl(web.url(f"www.{DOMAIN}", "/"), **settings)
    ended = home.finish(begun)
    assert (ended.run_state, ended.pending) == ("completed", 0), ended
    assert not web.mistakes, web.mistakes
    crashes = _crashes(home)
    assert not crashes, crashes
    missing = set(web.linked()) - _settled(home)
    assert not missing, sorted(missing)[:10]


def _settings(chance: Random) -> dict[str, Any]:
    return {
        "scope": "domain",
        "max_retries": chance.randrange(2),
        "workers": chance.choice((1, 5, 40)),
        "resources": chance.random() < 0.5,
        "query": chance.choice(("", "", "garden tools")),
        "compare_by": chance.choice(("text", "bytes")),
        "max_delay": 5.0,
        "timeout": 60.0,
    }


def _database(home: Home) -> sqlite3.Connection:
    db = checker.copy_store(home.app.workspace.place(home.app.workspace.find(home.word)).folder, home.folder / "copy")
    assert db is not None
    return db


def _crashes(home: Home) -> list[tuple[str, str]]:
    """What our reading choked on, control files too."""
    with closing(_database(home)) as db:
        return db.execute(
            "SELECT url, message FROM visit JOIN url USING (url_id) WHERE message LIKE 'reading the answer failed%'"
        ).fetchall()


def _settled(home: Home) -> set[str]:
    with closing(_database(home)) as db:
        rows = db.execute(
            "SELECT url FROM frontier JOIN url USING (url_id) WHERE state <> 'pending'"
            " AND run_id = (SELECT MAX(run_id) FROM run)"
        )
        return {url for (url,) in rows}


def _shown(home: Home, *command: str) -> str:
    """What a command shows to people. Nothing that a page said steers a terminal."""
    shown = home.cli(*command).output
    assert all(mark.isprintable() or mark == "\n" for mark in shown), (command, ascii(shown))
    return shown


def _check_what_is_shown(home: Home) -> None:
    """Every command that shows what pages said works, for people and for machines."""
    word, known = home.word, [visit["url"] for visit in home.record()]
    some = Random(1).sample(known, min(SAMPLE, len(known)))
    commands = [
        *(("report", word, name) for name in REPORTS),
        *(("search", word, text) for text in ("garden", "the", '"not found"', "日本語", "a*")),
        *(("failed", word), ("status", word), ("runs", word), ("queue", word, "--list"), ("list",), ("doctor",)),
        *(("why", word, url) for url in some),
    ]
    for command in commands:
        _shown(home, *command)
    for command in (*commands, *(("show", word, url) for url in some)):
        home.ask(*command)
    for name in REPORTS:
        list(csv.reader(io.StringIO(home.cli("report", word, name, "--csv").stdout, newline=""), strict=True))


def _check_exports(home: Home) -> None:
    record = home.record()
    told = home.export("csv", home.status()["run"]).decode()
    csv.field_size_limit(parse.MAX_TEXT)  # texts are longer than what Python's reader expects of a cell
    table = list(csv.DictReader(io.StringIO(told, newline=""), strict=True))
    assert [row["url"] for row in table] == [visit["url"] for visit in record]
    assert [row["seq"] for row in table] == [str(visit["seq"]) for visit in record]
    json.loads(home.export("fingerprints"))
    for name in FORMATS:
        if FORMATS[name].target is not Target.STREAM:  # one sitemap may be too small for all of it
            written = home.app.export.to_folder(home.word, name, home.folder / f"{name}{home.status()['run']}")
            assert written.skipped == 0, name
        else:
            assert home.export(name), name


def _check_comparison(home: Home) -> None:
    _shown(home, "compare", home.word)
    for url in home.ask("compare", home.word)["modified_documents"][:SAMPLE]:
        assert "cannot be read" not in _shown(home, "diff", home.word, url), url


def test_nothing_chokes_on_what_an_answer_holds(seed: int) -> None:
    """The readings whose failures cost a user nothing but this page, and so would not be noticed above."""
    web = Web(seed, PAGES)
    with _saying_how_to_repeat(seed):
        for url in web.linked():
            _read_in_every_way(web, url)


def _read_in_every_way(web: Web, url: str) -> None:
    host, slash, path = url.removeprefix("http://").partition("/")
    page = web.answer_to(host.partition(":")[0], slash + path)
    head, _, payload = (page.raw or b"").partition(b"\r\n\r\n")
    answered = decode.read_head(head + b"\r\n\r\n")
    reply = decode.answer(answered, payload, Request(url), 0.0) if answered else None
    if isinstance(reply, Response):
        kind = reply.headers.get("content-type", "")
        parse.read(reply.body, kind, url, parse.How(resources=True, text=True, anchors=True))
        parse.substance(reply.body, kind, url)
        read = inchworm.read(reply.body, url, kind)
        assert all(getattr(read, name) is not None for name in ("title", "text", *PARTS))
        assert read.unreadable is None
