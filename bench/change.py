"""Does a crawl find every change of a site, and no other? Real manuals in two versions each, one after the other at one
address.

Each is a Debian package in the oldest and the newest version that apt has. It is crawled, then the newer version takes
its place and is crawled in full. What changed in truth says a script that has nothing in common with inchworm
(change_truth.py). Missed: changed, and not found modified. False: found modified, though nothing changed but stamps,
that is versions and dates that stand on most pages.

    python bench/change.py [--apart] [--only NAME] [--show]
    python bench/change.py --folders OLD NEW --versions 1.0 1.1
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import uvloop
from change_truth import Truth, Where, compare, read

from inchworm.app import App, Start
from inchworm.app.act.content.export import ExportOptions

CACHE = Path(tempfile.gettempdir()) / "inchworm-bench-change"
NAVIGATION = frozenset({"navheader", "navfooter"})


class Manual(NamedTuple):
    """A package, the folder with its pages, and where those have their text."""

    package: str
    folder: str
    where: Where


MANUALS = {
    "postgresql": Manual(
        "postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", Where("body", "", "", NAVIGATION)
    ),
    "apache": Manual("apache2-doc", "usr/share/doc/apache2-doc/manual/en", Where("div", "id", "page-content")),
    "django": Manual("python-django-doc", "usr/share/doc/python-django-doc/html", Where("div", "id", "yui-main")),
}
APART = {
    "lemonldap": Manual(
        "lemonldap-ng-doc",
        "usr/share/doc/lemonldap-ng/pages/documentation/current",
        Where("div", "itemprop", "articleBody"),
    ),
    "dpdk": Manual("dpdk-doc", "usr/share/doc/dpdk/guides", Where("div", "itemprop", "articleBody")),
}
"""Those that nothing was tuned to."""


class Result(NamedTuple):
    pages: int
    truth: dict[Truth, int]
    missed: list[str]
    false: list[str]
    ms: float


def versions_of(package: str) -> tuple[str, str]:
    said = subprocess.run(["apt-cache", "madison", package], capture_output=True, text=True, check=True).stdout
    found = list(dict.fromkeys(line.split("|")[1].strip() for line in said.splitlines()))
    if len(found) < 2:
        raise SystemExit(f"apt has no two versions of {package}")
    return found[-1], found[0]


def unpacked(manual: Manual, version: str) -> Path:
    """The pages of one version."""
    folder = CACHE / f"{manual.package}_{version.replace(':', '_')}"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            fetch = ["apt-get", "download", "-qq", f"{manual.package}={version}"]
            subprocess.run(fetch, cwd=scratch, check=True, capture_output=True)
            (file,) = Path(scratch).glob("*.deb")
            made = Path(scratch) / "made"
            subprocess.run(["dpkg-deb", "-x", str(file), str(made)], check=True)
            made.rename(folder)
    return folder / manual.folder


class Handler(SimpleHTTPRequestHandler):
    """The pages of a folder, and a list of them all at `/`. Without dates: packages are made with one for all files."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        links = "".join(f'<li><a href="/{path}">{path}</a>' for path in names(Path(self.directory)))
        body = f"<title>All pages</title><ul>{links}</ul>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Last-Modified":
            super().send_header(keyword, value)

    def log_message(self, *_: object) -> None:
        pass


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html") if path.is_file())


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def verdicts(old: Path, new: Path) -> tuple[dict[str, dict[str, str]], float]:
    """What a crawl says of every page of the newer version, and the CPU of the second run per page."""
    settings = {"delay": 0, "robots": False, "sitemap": False, "allow_private": True, "scope": "host"}
    with tempfile.TemporaryDirectory(prefix="inchworm-change-") as folder:
        app = App(Path(folder))
        with served(old) as port:
            url = f"http://127.0.0.1:{port}/"
            uvloop.run(app.sessions.work(app.plan.crawl(Start((url,), "change", settings))))
        started = time.process_time()
        with served(new, port):
            uvloop.run(app.sessions.work(app.plan.recrawl("change", "full", settings)))
        seconds = time.process_time() - started
        out = io.BytesIO()
        columns = ("url", "change", "note", "message")
        app.export.to_file("change", "jsonl", out, ExportOptions(1, columns=columns))
        app.close()
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return {one["url"].removeprefix(url): one for one in found}, 1000 * seconds / max(1, len(found))


def of_package(manual: Manual, show: bool) -> Result:
    labels = versions_of(manual.package)
    old, new = (unpacked(manual, label) for label in labels)
    before, after = (re.split("[-+]", label.rpartition(":")[2])[0] for label in labels)
    return measure(old, new, manual.where, (before, after), show)


def measure(old: Path, new: Path, where: Where, versions: tuple[str, str], show: bool) -> Result:
    """`versions`: how the pages call themselves, which is no change where most of them do."""
    found, ms = verdicts(old, new)
    truths: dict[str, Truth] = {}
    for name in sorted(set(names(old)) & set(names(new)) & set(found)):
        before, after = (read((top / name).read_text("utf-8", "replace"), where, f"/{name}") for top in (old, new))
        truths[name] = compare(before, after, versions)
    stamped = [name for name, truth in truths.items() if truth is Truth.STAMP]
    if 2 * len(stamped) <= len(truths):
        # What stands on a few pages only is no stamp.
        truths |= dict.fromkeys(stamped, Truth.CHANGED)
    modified = {name for name, one in found.items() if one["change"] == "modified"}
    missed = [name for name, truth in truths.items() if truth is Truth.CHANGED and name not in modified]
    false = [name for name, truth in truths.items() if truth is not Truth.CHANGED and name in modified]
    if show:
        for kind, wrong in (("missed", missed), ("false", false)):
            for name in wrong[:25]:
                print(f"  {kind}: {name}: {found[name].get('note')}: {found[name].get('message')}")
    counts = {truth: sum(one is truth for one in truths.values()) for truth in Truth}
    return Result(len(truths), counts, missed, false, ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apart", action="store_true", help="those that nothing was tuned to")
    parser.add_argument("--only", choices=[*MANUALS, *APART])
    parser.add_argument("--show", action="store_true", help="name what was missed and what is false")
    parser.add_argument("--folders", nargs=2, type=Path, metavar=("OLD", "NEW"), help="pages of your own")
    parser.add_argument("--versions", nargs=2, default=("", ""), help="what they call themselves")
    arguments = parser.parse_args()
    print(f"{'':<12}{'pages':>7}{'changed':>9}{'stamped':>9}{'missed':>8}{'false':>7}{'':>9}{'CPU ms/page':>13}")
    if arguments.folders:
        old, new = arguments.folders
        tell(new.name, measure(old, new, Where("body", "", ""), tuple(arguments.versions), arguments.show))
        return
    chosen = APART if arguments.apart else MANUALS
    if arguments.only:
        chosen = {arguments.only: (MANUALS | APART)[arguments.only]}
    for name, manual in chosen.items():
        tell(name, of_package(manual, arguments.show))


def tell(name: str, one: Result) -> None:
    print(
        f"{name:<12}{one.pages:>7}{one.truth[Truth.CHANGED]:>9}{one.truth[Truth.STAMP]:>9}{len(one.missed):>8}"
        f"{len(one.false):>7}{100 * len(one.false) / max(1, one.pages):>7.2f} %{one.ms:>13.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
