"""inchworm, Scrapy and Crawlee on the same real site in one run: CPU per page, pages per second, memory, ratios.

The site is the PostgreSQL manual (Debian package postgresql-doc-15) behind nginx on loopback. All three keep a durable
queue; inchworm also archives every answer and tells duplicates. "in memory" is inchworm with its store in memory and
its archive thrown away: what durability costs. Rounds alternate, and the best of each is compared: whatever else the
machine does can only make a round slower.

    python bench/peers.py --peers PYTHON_WITH_SCRAPY_AND_CRAWLEE [--rounds 5] [--workers 16]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SITE = Path("/usr/share/doc/postgresql-doc-15/html")
HERE = Path(__file__).parent
CONFIG = """
{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  types {{ text/html html; text/css css; image/svg+xml svg; }}
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; access_log off; keepalive_requests 100000;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@dataclass(frozen=True, slots=True)
class Result:
    pages: int
    cpu_seconds: float
    seconds: float
    memory_mb: float

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_seconds / self.pages


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "conf").write_text(CONFIG.format(user=user, folder=folder, port=port, root=SITE))
    server = subprocess.Popen(["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/conf"])
    time.sleep(0.5)
    try:
        yield f"http://127.0.0.1:{port}/index.html"
    finally:
        server.terminate()
        server.wait()


def measure(command: list[str], environment: dict[str, str]) -> Result:
    """Run a crawler as a child; its last line of output says how many pages it got."""
    started = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{command[:3]} failed")
    said = json.loads(output.splitlines()[-1])
    return Result(
        said.get("fetched") or said["pages"], usage.ru_utime + usage.ru_stime, seconds, usage.ru_maxrss / 1024
    )


def crawlers(peers: str, url: str, folder: Path, workers: int, number: int) -> dict[str, list[str]]:
    options = ["crawl", url, "--name", f"bench {number}", "--scope", "host", "--ignore-robots", "--no-sitemap"]
    options += ["--delay", "0", "--workers", str(workers), "--json"]
    return {
        "inchworm": [sys.executable, "-m", "inchworm", *options],
        "in memory": [sys.executable, str(HERE / "memory_peer.py"), *options],
        "scrapy": [peers, str(HERE / "scrapy_peer.py"), url, str(folder / f"jobdir{number}"), str(workers)],
        "crawlee": [peers, str(HERE / "crawlee_peer.py"), url, str(folder / f"storage{number}"), str(workers)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python that has scrapy and crawlee")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=16)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inchworm-bench-"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever is installed for real has its bytecode
    results: dict[str, list[Result]] = {}
    try:
        with served(folder) as url:
            for number in range(arguments.rounds):
                commands = crawlers(arguments.peers, url, folder, arguments.workers, number)
                for name, command in commands.items():
                    result = measure(command, {"INCHWORM_HOME": str(folder / name.replace(" ", "-"))})
                    results.setdefault(name, []).append(result)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(results)


def report(results: dict[str, list[Result]]) -> None:
    best = {name: min(r.cpu_ms for r in rounds) for name, rounds in results.items()}
    own = best["inchworm"]
    print(f"{'':<10} {'pages':>6} {'CPU ms/page':>12} {'pages/s':>9} {'memory MB':>10} {'CPU vs inchworm':>16}")
    for name, rounds in results.items():
        rate = max(r.pages / r.seconds for r in rounds)
        memory = max(r.memory_mb for r in rounds)
        print(
            f"{name:<10} {rounds[0].pages:>6} {best[name]:>12.2f} {rate:>9.0f} {memory:>10.0f}"
            f" {best[name] / own:>15.1f}x"
        )


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
