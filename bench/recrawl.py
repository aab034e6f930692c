"""What an unchanged site costs when it is crawled again: CPU, bytes and requests of a baseline and of the run after it.

The PostgreSQL manual behind nginx on loopback, which sends validators. Rounds alternate, and the best of each counts.

    python bench/recrawl.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import measure, served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inchworm-recrawl-"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever is installed for real has its bytecode
    times: dict[str, list[float]] = {"baseline": [], "incremental": [], "full": []}
    try:
        with served(folder) as url:
            for number in range(arguments.rounds):
                environment = {**os.environ, "INCHWORM_HOME": str(folder / f"home-{number}")}
                for name, mode in (("baseline", []), ("incremental", []), ("full", ["--mode", "full"])):
                    command = [sys.executable, "-m", "inchworm", "crawl", url, "--delay", "0", "--json", *mode]
                    times[name].append(measure(command, environment).cpu_seconds)
            listed = [sys.executable, "-m", "inchworm", "runs", url, "--json"]
            runs = json.loads(subprocess.run(listed, env=environment, capture_output=True, check=True).stdout)["runs"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    least = {name: min(seconds) for name, seconds in times.items()}
    print(f"{'run':<12} {'pages':>6} {'requests':>9} {'MB fetched':>11} {'CPU s':>6} {'ms/page':>12} {'less CPU':>12}")
    for run, (name, seconds) in zip(runs, least.items(), strict=True):
        print(
            f"{name:<12} {run['pages']:>6} {run['requests']:>9} {run['bytes'] / 1e6:>11.2f} {seconds:>6.2f}"
            f" {1000 * seconds / run['pages']:>12.3f} {least['baseline'] / seconds:>11.1f}x"
        )


if __name__ == "__main__":
    main()
