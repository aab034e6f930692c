"""Documents that are no HTML, through a crawl: found, stored, searched, exported, compared like any page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.documents import DOCX, LOREM, ODT, XLSX, docx, odf, paragraph, pdf, xlsx
from tests.flow.crawling import Home, page, path_of

from inchworm import apart, read
from inchworm.testing import Page, Served, Site

ROW = "<row>" + "".join(f'<c t="inlineStr"><is><t>{word}</t></is></c>' for word in ("zebra", "42", LOREM)) + "</row>"


def typed(body: bytes, kind: str) -> Page:
    return Page(body, headers={"Content-Type": kind})


def library(said: str = "aardvark", made: str = "20260101") -> dict[str, Any]:
    """A site with a document of each kind, each with a word of its own. The PDF leads to a page that no other does."""
    links = ("/a.pdf", "/b.docx", "/c.xlsx", "/d.txt", "/e.json", "/f.odt", "/g.md", "/h.csv", "/i.bin")
    words = f"{LOREM}\nIt says {said}."
    return {
        "/": page("start", *links),
        "/a.pdf": lambda hit: pdf(words, title="A paper", links=[f"http://{hit.host}/only-in-pdf"], made=made),
        "/only-in-pdf": page("only in the PDF"),
        "/b.docx": typed(docx(paragraph(f"{LOREM} It says baboon."), title="A text"), DOCX),
        "/c.xlsx": typed(xlsx({"Animals": ROW}), XLSX),
        "/d.txt": f"{LOREM} It says dingo. See http://127.0.0.1/not-followed and [this](/not-followed-either).",
        "/e.json": json.dumps({"animal": "emu", "text": LOREM, "url": "/not-followed"}),
        "/f.odt": typed(odf(f"<office:text><text:p>{LOREM} It says ferret.</text:p></office:text>"), ODT),
        "/g.md": typed(f"# Goats\n\n{LOREM} It says goat. [x](/not-followed)".encode(), "text/markdown"),
        "/h.csv": typed(f"name,text\nheron,{LOREM}".encode(), "text/csv"),
        "/i.bin": typed(pdf(f"{LOREM} It says ibex."), "application/octet-stream"),
    }


@pytest.fixture
def pages() -> dict[str, Any]:
    return library()


@pytest.fixture
def served(pages: dict[str, Any]) -> Iterator[Served]:
    with Site(pages).serve() as served:
        yield served


def found(home: Home, word: str) -> list[str]:
    return [path_of(one["url"]) for one in home.ask("search", home.word, word)["results"]]


def rows(home: Home, *options: str) -> dict[str, dict[str, Any]]:
    lines = home.cli("export", home.word, "--format", "jsonl", *options).stdout.splitlines()
    return {path_of(row["url"]): row for row in map(json.loads, lines)}


def changes(home: Home) -> dict[str, str]:
    return {path_of(visit["url"]): visit["change"] for visit in home.record()}


def test_documents_are_pages(home: Home, served: Served, pages: dict[str, Any]) -> None:
    summary = home.crawl(served.url("/"))
    assert (summary.pages, summary.failed, summary.note) == (len(pages), 0, "")
    assert "/only-in-pdf" in served.paths()
    assert not [path for path in served.paths() if "not-followed" in path]
    # Each is found by the word that only it has.
    words = {"aardvark": "/a.pdf", "baboon": "/b.docx", "zebra": "/c.xlsx", "dingo": "/d.txt", "emu": "/e.json"}
    words |= {"ferret": "/f.odt", "goat": "/g.md", "heron": "/h.csv", "ibex": "/i.bin"}
    assert {word: found(home, word) for word in words} == {word: [path] for word, path in words.items()}
    exported = rows(home, "--with", "markdown")
    assert {path: row["title"] for path, row in exported.items() if row["title"]} == {
        "/": "start",
        "/a.pdf": "A paper",
        "/b.docx": "A text",
        "/g.md": "Goats",
        "/only-in-pdf": "only in the PDF",
    }
    assert all(word in exported[path]["text"] for word, path in words.items())
    assert all(word in exported[path]["markdown"] for word, path in words.items())
    assert exported["/a.pdf"]["author"] == "Ada Worm"
    assert exported["/e.json"]["markdown"].startswith("```json\n")
    (visit,) = (one for one in home.record() if path_of(one["url"]) == "/a.pdf")
    assert visit["meta"]["pages"] == 1


def test_the_record_is_the_same_at_any_number_of_workers(tmp_path: Path, served: Served) -> None:
    stories = []
    for workers in (1, 8):
        home = Home(tmp_path / str(workers))
        home.crawl(served.url("/"), workers=workers)
        stories.append(home.story())
    assert stories[0] == stories[1]


def test_documents_as_a_folder_of_markdown(home: Home, served: Served, tmp_path: Path) -> None:
    home.crawl(served.url("/"))
    home.cli("export", home.word, "--format", "markdown", "-o", str(tmp_path / "out"))
    texts = " ".join(path.read_text() for path in (tmp_path / "out").rglob("*.md"))
    for word in ("aardvark", "baboon", "zebra", "dingo", "emu", "ferret", "goat", "heron", "ibex"):
        assert word in texts, word


def test_what_was_only_made_anew_is_unchanged_and_what_says_something_else_is_modified(
    home: Home, served: Served, pages: dict[str, Any]
) -> None:
    home.crawl(served.url("/"))
    old = dict(pages)
    pages |= library(made="20270202") | {"/e.json": old["/e.json"].replace(", ", ",\n  ")}
    before, after = (b"".join(_bytes(one) for one in site.values()) for site in (old, pages))
    assert before != after
    summary = home.recrawl()
    assert (summary.new, summary.modified, summary.deleted) == (0, 0, 0)
    assert set(changes(home).values()) == {"unchanged"}

    pages |= library("armadillo")
    pages["/c.xlsx"] = typed(xlsx({"Animals": ROW.replace("42", "43")}), XLSX)
    pages["/d.txt"] = pages["/d.txt"].replace("dingo", "dolphin")
    home.recrawl()
    modified = {path for path, change in changes(home).items() if change == "modified"}
    assert modified == {"/a.pdf", "/c.xlsx", "/d.txt"}
    assert (found(home, "aardvark"), found(home, "armadillo")) == ([], ["/a.pdf"])
    diff = home.app.changes.diff(home.word, served.url("/a.pdf")).diff
    assert [line for line in diff if line[:1] in "+-"][2:] == ["-It says aardvark.", "+It says armadillo."]


def _bytes(answer: Any) -> bytes:
    body = answer(_Hit()) if callable(answer) else answer
    body = body.body if isinstance(body, Page) else body
    return body if isinstance(body, bytes) else body.encode()


class _Hit:
    host = "h.test"


def test_the_same_text_is_the_same_content_whatever_the_bytes(home: Home) -> None:
    site = {
        "/": page("start", "/1.pdf", "/2.pdf"),
        "/1.pdf": pdf(LOREM, title="One", made="20260101"),
        "/2.pdf": pdf(LOREM, title="One", made="20270101"),
    }
    with Site(site).serve() as served:
        summary = home.crawl(served.url("/"))
    assert (summary.pages, summary.duplicates) == (2, 1)


def test_scans_are_told_apart_by_their_bytes(home: Home) -> None:
    site = {
        "/": page("start", "/1.pdf", "/2.pdf"),
        "/1.pdf": pdf("", title="Scan", made="20260101"),
        "/2.pdf": pdf("", title="Scan", made="20270101"),
    }
    with Site(site).serve() as served:
        summary = home.crawl(served.url("/"))
        scan = next(one for one in home.record() if one["url"].endswith("/1.pdf"))
    assert (summary.pages, summary.duplicates) == (3, 0)
    assert scan["meta"]["no_text"] is True


BROKEN = {
    "broken PDF": ("application/pdf", b"%PDF-1.7\nnothing"),
    "PDF that is HTML": ("application/pdf", b"<html><a href='/no'>x</a>"),
    "broken document": (DOCX, b"PK\x03\x04 nothing"),
    "empty document": (DOCX, b""),
    "noise that is said to be text": ("text/plain", bytes(range(256))),
}


def test_what_cannot_be_read_is_stored_all_the_same(home: Home) -> None:
    site: dict[str, Any] = {"/": page("start", *(f"/{number}" for number in range(len(BROKEN))))}
    site |= {f"/{number}": typed(body, kind) for number, (kind, body) in enumerate(BROKEN.values())}
    with Site(site).serve() as served:
        summary = home.crawl(served.url("/"))
    assert (summary.pages, summary.failed) == (1 + len(BROKEN), 0)
    assert {row["text"] for path, row in rows(home).items() if path != "/"} <= {"", None}


def test_a_document_that_says_not_found_is_no_excuse(home: Home) -> None:
    """Only HTML is what servers make up; nobody is asked a second time because of a text."""
    site = {"/": page("start", "/a/b.txt", "/a/c.pdf"), "/a/b.txt": "404 Not Found", "/a/c.pdf": pdf("404 Not Found")}
    with Site(site).serve() as served:
        assert home.crawl(served.url("/")).failed == 0
        assert [path for path in served.paths() if path.startswith("/a/")] == ["/a/b.txt", "/a/c.pdf"]


# ---- without what reads PDF, and with one that crashes

Hide = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def without_pdfium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hide:
    """Inside, whoever is started finds no pypdfium2."""
    (tmp_path / "hidden" / "pypdfium2").mkdir(parents=True)
    (tmp_path / "hidden" / "pypdfium2" / "__init__.py").write_text("raise ImportError('it is hidden')")

    @contextmanager
    def hidden() -> Iterator[None]:
        apart.shared().close()
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / "hidden"))
            yield
        apart.shared().close()

    return hidden


def test_what_is_missing_is_said_once(home: Home, served: Served, without_pdfium: Hide) -> None:
    said = "2 PDF documents have no text, because pypdfium2 is missing. Install it: pip install 'inchworm[pdf]'"
    with without_pdfium():
        done = home.cli("crawl", served.url("/"), "--delay", "0", "--json")
        assert json.loads(done.stdout)["note"] == said
        assert done.stderr.count(said) == 1
        assert (json.loads(done.stdout)["pages"], found(home, "aardvark")) == (10, [])
        assert rows(home)["/a.pdf"]["text"] in ("", None)
        alone = read(pdf(LOREM))
        assert (alone.text, alone.failure) == ("", "reading it needs more: pip install 'inchworm[pdf]'")


def test_what_was_missing_is_read_when_it_is_there(home: Home, pages: dict[str, Any], without_pdfium: Hide) -> None:
    with Site(pages, validators=True).serve() as served:
        with without_pdfium():
            home.crawl(served.url("/"))
        assert "/only-in-pdf" not in served.paths()
        summary = home.recrawl()
        assert "/only-in-pdf" in served.paths()
    assert (summary.new, summary.modified, summary.note) == (1, 0, "")
    assert summary.downloaded == {"sampled": 1}, "what is stored is read again"


CRASHES = """
import os, sys
sys.path.remove(os.path.dirname(os.path.dirname(__file__)))
del sys.modules["pypdfium2"]
import pypdfium2 as real

class PdfDocument(real.PdfDocument):
    def __init__(self, body):
        if b"CRASH" in body:
            os.kill(os.getpid(), 11)
        super().__init__(body)

real.PdfDocument = PdfDocument
"""


def test_a_crash_of_what_reads_pdf_costs_that_document(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crashing" / "pypdfium2").mkdir(parents=True)
    (tmp_path / "crashing" / "pypdfium2" / "__init__.py").write_text(CRASHES)
    site: dict[str, Any] = {"/": page("start", *(f"/{number}.pdf" for number in range(6)))}
    site |= {f"/{number}.pdf": pdf(f"{LOREM} This is number {number}.") for number in range(6)}
    site["/2.pdf"] = site["/4.pdf"] = pdf(f"{LOREM} CRASH")
    apart.shared().close()
    monkeypatch.syspath_prepend(str(tmp_path / "crashing"))
    try:
        with Site(site).serve() as served:
            summary = home.crawl(served.url("/"), workers=4)
        failed = {path for path, outcome in home.outcomes() if outcome == "reader_crashed"}
        assert failed == {"/2.pdf", "/4.pdf"}
        assert (summary.pages, summary.failed) == (5, 2)
        assert found(home, "number") == ["/0.pdf", "/1.pdf", "/3.pdf", "/5.pdf"]
        crashing = read(site["/2.pdf"])
        assert (crashing.text, "broke the reader" in (crashing.failure or "")) == ("", True)
        assert read(site["/3.pdf"]).text.endswith("number 3.")
    finally:
        apart.shared().close()
