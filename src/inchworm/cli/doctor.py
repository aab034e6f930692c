"""`inchworm doctor`: what is installed, and whether every crawl is as it should be."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import shutil
import sqlite3
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inchworm import __version__, settings
from inchworm.app.root import App
from inchworm.cli.screen.door import say, say_over
from inchworm.errors import InchwormError, NotNow
from inchworm.model import CrawlInfo
from inchworm.rules.formats import pdf
from inchworm.rules.words.figures import clip, size

_LIBRARIES = ("pycurl", "turbohtml", "ada-url", "isal", "click", "rich")
_WAL_FIX = (3, 51, 3)
_LEAST_FREE_BYTES = 200_000_000
_SHOWN_LOST = 20
_ABOUT_LOST = "Put the file back from a backup, if there is one. Everything else of the crawl stays usable."
_TERMINAL_SECONDS, _LOG_SECONDS = 0.2, 5.0
_NAME = 50


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    subject: str
    text: str
    hint: str = ""


Progress = Callable[[str, int, int], None]
"""Is told of which crawl how many records were read, of how many."""


def examine(app: App, quick: bool = False, progress: Progress | None = None) -> list[Finding]:
    """Look at everything; one line for each thing looked at. `quick`: but read no archive."""
    findings = [*_versions(), *_machine(app), *_settings(app)]
    for crawl in app.workspace.crawls.all():
        try:
            findings += _crawl(app, crawl, None if quick else progress or (lambda *_: None))
        except NotNow as error:
            findings.append(Finding(True, crawl.name, error.message))
        except InchwormError as error:
            findings.append(Finding(False, crawl.name, error.message, error.hint))
    return findings


def _versions() -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    yield Finding(True, "inchworm", f"{__version__} on Python {platform.python_version()}, {platform.system()}")
    yield Finding(True, "libraries", libraries)
    has_pdf = pdf.is_readable()
    missing = f"PDF documents have no text without pypdfium2: pip install '{pdf.NEEDED}'"
    yield Finding(True, "PDF", f"pypdfium2 {importlib.metadata.version('pypdfium2')}" if has_pdf else missing)
    old = sqlite3.sqlite_version_info < _WAL_FIX
    note = "; older than 3.51.3, which is fine here: whoever writes has the file for itself" if old else ""
    yield Finding(True, "SQLite", sqlite3.sqlite_version + note)


def _machine(app: App) -> Iterator[Finding]:
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


def _settings(app: App) -> Iterator[Finding]:
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


def _crawl(app: App, crawl: CrawlInfo, progress: Progress | None) -> Iterator[Finding]:
    with app.workspace.reading(crawl) as store:
        checked = app.check.record(crawl, store)
        lost = [] if progress is None else app.check.archive(crawl, store, functools.partial(progress, crawl.name))
    if not checked and not lost:
        read = "every record of the archive is whole" if progress else "the archive was not read (--quick)"
        yield Finding(True, crawl.name, f"the store is sound, and {read}; the counters equal a recount")
    for problem in checked:
        yield Finding(False, crawl.name, problem, f"Keep a copy of {_folder(app, crawl)} and report this.")
    for problem in lost[:_SHOWN_LOST]:
        yield Finding(False, crawl.name, problem, _ABOUT_LOST)
    if len(lost) > _SHOWN_LOST:
        yield Finding(False, crawl.name, f"the archive has lost {len(lost) - _SHOWN_LOST:,} more pages", _ABOUT_LOST)


class Meter:
    """Says on standard error how far the archives are read: in one line on a terminal, else now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._seconds = _TERMINAL_SECONDS if self._is_terminal else _LOG_SECONDS
        self._last = time.monotonic()
        self._longest = 0

    def __call__(self, name: str, done: int, total: int) -> None:
        if time.monotonic() - self._last < self._seconds:
            return
        self._last = time.monotonic()
        text = f"{clip(name, _NAME)}: {done:,} of {total:,} records read"
        say_over(text.ljust(self._longest), is_last=False) if self._is_terminal else say(text, err=True)
        self._longest = len(text)

    def close(self) -> None:
        if self._is_terminal and self._longest:
            say_over(" " * self._longest, is_last=False)
            say_over("", is_last=False)


def _folder(app: App, crawl: CrawlInfo) -> Path:
    return app.workspace.place(crawl).folder
