"""The checker has teeth: every kind of damage that it looks for is planted once, and found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.crash import checker
from tests.crash.checker import Asked
from tests.crash.trial import Trial
from tests.crash.website import Web


@pytest.fixture(scope="module")
def crawled(served: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    trial = Trial(tmp_path_factory.mktemp("sound"), served)
    trial.complete()
    yield trial
    trial.close()


@pytest.fixture
def folder(crawled: Trial, tmp_path: Path) -> Path:
    """A copy of a sound crawl, to be damaged."""
    return shutil.copytree(crawled.crawl_folder, tmp_path / "crawl")


def _problems(folder: Path) -> list[str]:
    return checker.check_folder(folder, folder.parent / "copy")


def test_a_sound_crawl_passes(crawled: Trial, folder: Path) -> None:
    assert _problems(folder) == []
    crawled.check()


DAMAGES = {
    "a lost visit": "DELETE FROM visit WHERE seq = 50",
    "a lost row": "DELETE FROM frontier WHERE url_id = 60",
    "a page that is pending again": "UPDATE frontier SET state = 'pending', done = NULL WHERE done = 70",
    "a page without its links": "UPDATE visit SET links = x'FFFFFF00' WHERE seq = 20",
    "a wrong counter": "UPDATE run SET pages = pages + 1",
    "a wrong number of requests": "UPDATE run SET requests = requests - 1",
    "a wrong size": "UPDATE run SET size = size + 1",
    "a wrong number of redirects": "UPDATE run SET redirects = redirects + 1",
    "a wrong seed": "UPDATE seed SET kept = kept + 1",
    "a wrong session": "UPDATE session SET requests = requests + 1",
    "a wrong lane": "UPDATE lane SET pending = pending + 1",
    "a page stored twice": (
        "INSERT INTO visit (log_id, run_id, seq, session, url_id, kind, at_ms, outcome, requested, status, millis,"
        ' size, payload, text_hash, links, reader, file_id, "offset", length, revisit)'
        " SELECT log_id + 1000, run_id, seq + 1000, session, url_id, kind, at_ms, outcome, requested, status, millis,"
        " size, payload, text_hash, links, reader,"
        ' file_id, "offset", length, revisit FROM visit WHERE seq = 40'
    ),
    "a URL under two ids": "INSERT INTO url SELECT url_id + 10000, hash, url FROM url WHERE url_id = 30",
    "a copy of nothing": "UPDATE visit SET text_hash = x'00' WHERE outcome = 'duplicate'",
    "a text with two owners": "UPDATE visit SET outcome = 'page' WHERE outcome = 'duplicate'",
    "a wrong offset": 'UPDATE visit SET "offset" = "offset" + 1 WHERE seq = 30',
    "a wrong length": "UPDATE visit SET length = length - 1 WHERE seq = 30",
    "a wrong payload": "UPDATE visit SET payload = x'00' WHERE seq = 30",
    "two records exchanged": "UPDATE visit SET url_id = 71 - url_id WHERE url_id IN (31, 40)",
    "a wrong committed length": "UPDATE archive SET length = length - 100",
    "an unknown archive file": "UPDATE archive SET name = 'other.warc.gz'",
    "a gap in the log": "UPDATE visit SET log_id = log_id + 1000 WHERE seq = 100",
    "a row from the future": "UPDATE frontier SET found = 100000 WHERE url_id = 44",
    "a refusal without reason": "UPDATE frontier SET reason = NULL WHERE state = 'refused'",
    "an answer without a record": "UPDATE visit SET file_id = NULL WHERE seq = 80",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_the_store_is_found(damage: str, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "crawl.db")) as db, db:
        assert db.execute(DAMAGES[damage]).rowcount > 0
    assert _problems(folder)


@pytest.mark.parametrize("place", [10, 400, 5000, -20])
def test_a_flipped_bit_in_the_archive_is_found(place: int, folder: Path) -> None:
    (path,) = (folder / "archive").iterdir()
    data = bytearray(path.read_bytes())
    data[place] ^= 0x40
    path.write_bytes(data)
    assert _problems(folder)


def test_bytes_after_the_end_are_found(folder: Path) -> None:
    (path,) = (folder / "archive").iterdir()
    path.write_bytes(path.read_bytes() + b"\0")
    assert _problems(folder)
    assert not checker.check_folder(folder, folder.parent / "copy", ended=False)


def test_a_file_of_nobody_is_found(folder: Path) -> None:
    (folder / "archive" / "more.warc.gz").write_bytes(b"")
    assert _problems(folder)


def test_wrong_ends_are_found(crawled: Trial, served: Web) -> None:
    url = served.url("/p7")
    with crawled.store() as db:
        assert not checker.end_problems(db, served.ends)
        assert checker.end_problems(db, {**served.ends, url: "failed"})
        assert checker.end_problems(db, {**served.ends, served.url("/nowhere"): "page"})
        assert checker.end_problems(db, {one: end for one, end in served.ends.items() if one != url})


def test_wrong_requests_are_found(crawled: Trial) -> None:
    (asked,) = crawled.asked
    early, late = asked.urls[0], asked.urls[-1]
    wrong = {
        "asked for in vain": [Asked(1, (*asked.urls, late + "/more"), False)],
        "asked for twice in vain": [Asked(1, (*asked.urls, late + "/more", late + "/more"), True)],
        "never asked for": [Asked(1, asked.urls[1:], False)],
        "asked for again": [asked, Asked(0, (early,), True)],
        "a session of nobody": [Asked(0, asked.urls, True)],
    }
    with crawled.store() as db:
        assert not checker.request_problems(db, [asked])
        assert not checker.request_problems(db, [Asked(0, (late,), True), asked])
        for what, processes in wrong.items():
            assert checker.request_problems(db, processes), what


def test_a_lost_commit_is_found(crawled: Trial, folder: Path) -> None:
    with crawled.store() as db:
        before = checker.committed(db)
    with closing(sqlite3.connect(folder / "crawl.db")) as db, db:
        assert not checker.durability_problems(db, [before])
        db.execute("UPDATE visit SET at_ms = at_ms + 1 WHERE seq = 9")
        assert checker.durability_problems(db, [before])
