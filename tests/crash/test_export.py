"""F20: an export while the crawl goes on is the record as it stood at one moment."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.reference import Reference
from tests.crash.trial import PLAIN, Trial, Twist
from tests.crash.website import Web, Website, article
from warcio.archiveiterator import ArchiveIterator


def _while_running(trial: Trial, web: Web, format_name: str) -> Iterator[bytes]:
    """Exports one after the other until the crawl is complete."""
    with web.slowly(0.01, 0.015):
        running = trial.start("--workers", "3")
        running.wait_for(20)
        while running.process.poll() is None:
            yield trial.export(format_name)
    assert trial.note(running).has_completed


def test_urls_are_always_the_beginning_of_the_record(web: Web, trial: Trial, reference: Reference) -> None:
    whole = reference.of().export
    lengths = []
    for export in _while_running(trial, web, "urls"):
        assert whole.startswith(export)
        assert not export or export.endswith(b"\n")
        lengths.append(len(export))
    assert lengths == sorted(lengths) and 0 < lengths[0] < len(whole)
    assert trial.export("urls") == whole
    trial.check()


def test_lines_are_whole_and_without_gaps(web: Web, trial: Trial) -> None:
    seen: dict[int, str] = {}
    for export in _while_running(trial, web, "jsonl"):
        lines = [json.loads(line) for line in export.splitlines()]
        assert len({line["seq"] for line in lines}) == len(lines)
        for line in lines:
            assert seen.setdefault(line["seq"], line["url"]) == line["url"]
        exported = {line["canonical_url"] for line in lines}
        for line in lines:
            assert exported.issuperset(line["alternate_urls"]), "a copy is named that is not in the export"
    trial.check()


def test_lines_are_the_record(trial: Trial) -> None:
    """I6: as many lines as visits of the run, and the same ones."""
    trial.sit(twist=Twist(fault="in_commit:4"))
    trial.complete()
    lines = [json.loads(line) for line in trial.export("jsonl", "--run", "0").splitlines()]
    with trial.store() as db:
        visits = db.execute(
            "SELECT v.seq, u.url, v.outcome FROM visit v JOIN url u USING (url_id) WHERE v.kind = 'page' ORDER BY v.seq"
        ).fetchall()
    assert [(line["seq"], line["canonical_url"], line["outcome"]) for line in lines] == visits


def test_archives_are_whole(web: Web, trial: Trial) -> None:
    counts = []
    for export in _while_running(trial, web, "warc"):
        gzip.decompress(export)
        records = 0
        for read in ArchiveIterator(io.BytesIO(export), check_digests="raise"):
            read.content_stream().read()
            records += 1
        counts.append(records)
    assert counts == sorted(counts)
    trial.check()


@pytest.mark.parametrize("format_name", ["urls", "jsonl"])
def test_a_slow_reader_gets_one_moment(format_name: str, trials: Trials) -> None:
    """The export stands still half way, the crawl goes on to its end, and then the export is read on."""
    leaves = [f"/{number:03}/{'x' * 400}" for number in range(400)]
    copies = [f"/copy/{number}" for number in range(400)]
    pages = {"/": article("home", (*leaves, *copies))}
    pages |= {path: article(f"page {number}") for number, path in enumerate(leaves)}
    pages |= {path: article(f"page {number}") for number, path in enumerate(copies)}
    with website.serving(Website(pages, {})) as web:
        trial = trials(web=web)
        trial.sit("--budget", "401")
        at_rest = trial.export(format_name)
        with _export(trial, format_name) as stalled:
            first = stalled.stdout.read(1000)
            assert trial.sit().has_completed
            rest = stalled.stdout.read()
    assert stalled.returncode == 0
    assert first + rest == at_rest


def _export(trial: Trial, format_name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "inchworm", "export", trial.seeds[0], "--format", format_name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=PLAIN.environment(trial.home))


def test_an_export_that_is_killed_leaves_the_old_one(trial: Trial) -> None:
    """It is written beside and put in place when it is whole: whenever it is killed, there is the old one or all of the
    new one."""
    trial.complete()
    target, whole = trial.folder / "out", trial.export("jsonl").decode()
    command = [sys.executable, "-m", "inchworm", "export", trial.seeds[0], "--format", "jsonl", "-o", str(target)]
    for seconds in (0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.03, 0.01):
        target.write_text("the old one")
        try:
            subprocess.run(command, check=True, env=PLAIN.environment(trial.home), timeout=seconds, capture_output=True)
        except subprocess.TimeoutExpired:
            assert target.read_text() in ("the old one", whole)
    assert target.read_text() == "the old one", "nobody is that quick"
