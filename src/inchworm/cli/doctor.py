"""`inchworm doctor`: what is installed, and whether every crawl is as it should be."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inchworm import __version__, settings
from inchworm.app.looking import Looking
from inchworm.errors import InchwormError, NotNow
from inchworm.model import CrawlInfo
from inchworm.rules.figures import size

_LIBRARIES = ("pycurl", "turbohtml", "ada-url", "isal", "click", "rich")
_WAL_FIX = (3, 51, 3)
_LEAST_FREE_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    subject: str
    text: str
    hint: str = ""


def examine(app: Looking) -> list[Finding]:
    """Look at everything; one line for each thing looked at."""
    findings = [*_versions(), *_machine(app), *_settings(app)]
    for crawl in app.home.crawls():
        try:
            findings += _crawl(app, crawl)
        except NotNow as error:
            findings.append(Finding(True, crawl.name, error.message))
        except InchwormError as error:
            findings.append(Finding(False, crawl.name, error.message, error.hint))
    return findings


def _versions() -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    yield Finding(True, "inchworm", f"{__version__} on Python {platform.python_version()}, {platform.system()}")
    yield Finding(True, "libraries", libraries)
    old = sqlite3.sqlite_version_info < _WAL_FIX
    note = "; older than 3.51.3, which is fine here: whoever writes has the file for itself" if old else ""
    yield Finding(True, "SQLite", sqlite3.sqlite_version + note)


def _machine(app: Looking) -> Iterator[Finding]:
    certificates = ssl.get_default_verify_paths().cafile
    yield Finding(
        certificates is not None,
        "certificates",
        certificates or "none are installed, so every https site will fail",
        "" if certificates else "Install your system's package of CA certificates (Debian: ca-certificates).",
    )
    free = shutil.disk_usage(app.folder).free
    enough = free >= _LEAST_FREE_BYTES
    hint = "" if enough else "Make room, or set INCHWORM_HOME to a folder on another disk."
    yield Finding(enough, "disk", f"{size(free)} free for {app.folder}", hint)


def _settings(app: Looking) -> Iterator[Finding]:
    path = app.folder / "config.toml"
    try:
        settings.from_file(path)
    except InchwormError as error:
        yield Finding(False, "settings", error.message, error.hint)
    else:
        yield Finding(True, "settings", str(path) if path.exists() else f"defaults (no {path})")
    try:
        settings.from_environment(os.environ)
    except InchwormError as error:
        yield Finding(False, "environment", error.message, error.hint)
    for note in settings.notes(os.environ):
        yield Finding(True, "environment", note)


def _crawl(app: Looking, crawl: CrawlInfo) -> Iterator[Finding]:
    with app.reading(crawl) as store:
        checked = app.check(crawl, store)
    if not checked:
        yield Finding(True, crawl.name, "store and archive are sound; the counters equal a recount")
    for problem in checked:
        yield Finding(False, crawl.name, problem, f"Keep a copy of {_folder(app, crawl)} and report this.")


def _folder(app: Looking, crawl: CrawlInfo) -> Path:
    return app.crawl_folder(crawl)
