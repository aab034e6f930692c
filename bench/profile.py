"""Where a page's CPU goes: samples a real crawl and sorts the samples by stage.

Crawls the PostgreSQL manual behind nginx in this process, looks at the stack at every millisecond of CPU time, and
gives each sample to the innermost function that stands for a stage. Start-up is measured in a process of its own.

    python bench/profile.py [--workers 16]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import uvloop
from peers import served

from inchworm.app import App, Start

SAMPLE_SECONDS = 0.001
ROUNDS = 5
STAGES = {
    ("rules/page/parse.py", "_document"): "read: parse the HTML",
    ("rules/page/main_text.py", ""): "read: find the main text",
    ("rules/page/shown.py", ""): "read: find the main text",
    ("rules/page/links.py", ""): "read: resolve the links",
    ("rules/page/parse.py", ""): "read: the rest",
    ("rules/text/content.py", ""): "hash the text",
    ("engine/visit.py", "_answered_visit"): "hash the payload",
    ("fetch/decode.py", ""): "fetch: head and decoding",
    ("fetch/http.py", ""): "fetch: transfer",
    ("pycurl", ""): "fetch: transfer",
    ("archive/warc.py", ""): "commit: archive",
    ("store/", ""): "commit: SQL",
    ("engine/ledger/", ""): "commit: judge and record",
    ("engine/session/", ""): "schedule",
    ("engine/visit.py", ""): "schedule",
}
"""(end of a path, function) to stage; an empty function stands for the whole file."""


class Sampler:
    def __init__(self) -> None:
        self.samples: Counter[str] = Counter()

    def sample(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            path, function = frame.f_code.co_filename, frame.f_code.co_name
            for (ending, wanted), stage in STAGES.items():
                if ending in path and wanted in ("", function):
                    self.samples[stage] += 1
                    return
            frame = frame.f_back
        self.samples["event loop"] += 1

    def __enter__(self) -> Sampler:
        signal.signal(signal.SIGPROF, self.sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def start_up_seconds() -> float:
    """CPU time of a process that does nothing but start."""
    before = os.times()
    for _ in range(5):
        subprocess.run([sys.executable, "-m", "inchworm", "--version"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user + after.children_system - before.children_system) / 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=16)
    workers = parser.parse_args().workers
    settings = {"delay": 0, "robots": False, "sitemap": False, "workers": workers, "scope": "host"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="inchworm-profile-") as folder, served(Path(folder)) as url:
        app = App(Path(folder) / "home")
        started = time.process_time()
        with Sampler() as sampler:
            pages = sum(
                uvloop.run(app.sessions.work(app.plan.crawl(Start((url,), f"{n}", settings)))).fetched
                for n in range(ROUNDS)
            )
        seconds = time.process_time() - started
        app.close()
    stages = {stage: seconds * count / sampler.samples.total() for stage, count in sampler.samples.items()}
    stages["start-up"] = ROUNDS * start_up_seconds()
    whole = sum(stages.values())
    print(f"{1000 * whole / pages:.2f} ms of CPU per page, {pages:,} pages, {sampler.samples.total():,} samples")
    for stage, spent in sorted(stages.items(), key=lambda item: -item[1]):
        share = spent / whole
        print(f"{stage:<28} {1000 * spent / pages:>6.3f} ms {100 * share:>5.1f} % {'#' * round(60 * share)}")


if __name__ == "__main__":
    main()
