"""Exports of many files: bodies as they were fetched, under names that stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inchworm.errors import WrongUse
from inchworm.sink import export
from inchworm.sink.documents import EXTENSIONS, LOST, Left
from inchworm.sink.files.names import extension_of, file_name

VISIT = {
    "url": "https://a.test/x", "request_url": "https://a.test/x/", "kind": "page", "outcome": "page", "status": 200,
    "at_ms": 1_767_225_600_123, "content_type": "text/html; charset=utf-8", "text_hash": "ab", "payload": "cd",
    "title": "Title", "language": "de", "meta": {},
}  # fmt: skip


def index(folder: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    return {line["canonical_url"]: line["file"] for line in lines}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


HOSTILE_URLS = [
    "https://a.test/../../../etc/passwd", "https://a.test/%2e%2e/%2e%2e/x", "https://../x", "https:///etc/passwd",
    "/etc/passwd", "https://a.test/..\\..\\x", "https://a.test/\0", "https://a.test/" + "x" * 5_000,
    "https://a.test/" + "../" * 500, "https://a.test/\ud800", "https://a.test/\u202e", "https://a.test/😀", "",
    "C:\\x", "https://a.test/con",
]  # fmt: skip


def test_nothing_is_ever_written_outside(tmp_path):
    visits = [{**VISIT, "url": url} for url in HOSTILE_URLS]
    folder = tmp_path / "deep" / "in"
    assert export.files(visits, lambda _: b"", folder) == (len(visits), 0, (), {})
    assert {path.split("/")[0] for path in files_in(tmp_path)} == {"deep"}
    assert len(files_in(folder)) == len(visits) + 1
    assert files_in(tmp_path) == {f"deep/in/{name}" for name in files_in(folder)}


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.test").symlink_to(tmp_path / "outside")
    with pytest.raises(WrongUse):
        export.files([VISIT], lambda _: b"", tmp_path / "in")
    (tmp_path / "in" / "a.test").unlink()
    (tmp_path / "in" / "index.jsonl").symlink_to(tmp_path / "outside" / "index")
    export.files([VISIT], lambda _: b"", tmp_path / "in")
    assert not (tmp_path / "in" / "index.jsonl").is_symlink()
    assert list((tmp_path / "outside").iterdir()) == []


def body_of(found: dict[str, bytes]) -> Callable[[dict[str, object]], bytes | None]:
    return lambda visit: found.get(str(visit["url"]))


def test_bodies_are_written_byte_for_byte(tmp_path):
    bodies = {f"https://a.test/{number}": bytes(range(256)) * number for number in range(3)}
    visits = [{**VISIT, "url": url} for url in bodies]
    assert export.files(visits, body_of(bodies), tmp_path) == (3, 0, (), {})
    assert {url: (tmp_path / name).read_bytes() for url, name in index(tmp_path).items()} == bodies


def test_what_the_archive_does_not_have_is_counted_and_named(tmp_path):
    visits = [VISIT, {**VISIT, "url": "https://a.test/y"}]
    assert export.files(visits, body_of({"https://a.test/y": b""}), tmp_path) == (
        1, 1, (VISIT["url"],), {LOST: Left(1, (VISIT["url"],))},
    )  # fmt: skip
    assert list(index(tmp_path)) == ["https://a.test/y"]


NAMED = {
    "of the path": ("/report.pdf", "text/html", "a.test/report.pdf"),
    "of the type": ("/report", "application/pdf; x=y", "a.test/report~.pdf"),
    "of the root": ("/", "text/html", "a.test/index~.html"),
    "of a type in capitals": ("/a", "Image/PNG", "a.test/a~.png"),
    "of an unknown type": ("/a", "application/x-thing", "a.test/a~.bin"),
    "of no type": ("/a", None, "a.test/a~.bin"),
    "of a version": ("/v1.2", "application/zip", "a.test/v1.2~.zip"),
}


@pytest.mark.parametrize(("path", "kind", "name"), NAMED.values(), ids=NAMED)
def test_the_extension(tmp_path, path, kind, name):
    url = f"https://a.test{path}"
    export.files([{**VISIT, "url": url, "content_type": kind}], lambda _: b"", tmp_path)
    assert index(tmp_path) == {url: name}


@pytest.mark.parametrize("extension", sorted(set(EXTENSIONS.values())))
def test_every_extension_of_the_table_is_one(extension):
    assert extension_of(f"x.{extension}") == f".{extension}"


OUTCOMES = ["page", "duplicate", "resource", "redirect", "failed", "retry"]


def test_pages_and_resources_are_files(tmp_path):
    visits = [{**VISIT, "url": f"https://a.test/{outcome}", "outcome": outcome} for outcome in OUTCOMES]
    assert export.files(visits, lambda _: b"", tmp_path) == (3, 0, (), {})
    assert [url.rpartition("/")[2] for url in index(tmp_path)] == ["page", "duplicate", "resource"]


ALL = {
    "/": "text/html", "/a.pdf": "application/pdf", "/b": "Application/PDF; q=1", "/c.PDF": None,
    "/d.png": "image/png", "/e": "image/jpeg", "/f.php": "application/pdf",
}  # fmt: skip
WANTED = {
    "everything": ((), ["/", "/a.pdf", "/b", "/c.PDF", "/d.png", "/e", "/f.php"]),
    "a type": (("application/pdf",), ["/a.pdf", "/b", "/f.php"]),
    "a kind of types": (("image/*",), ["/d.png", "/e"]),
    "an extension": (("pdf",), ["/a.pdf", "/b", "/c.PDF", "/f.php"]),
    "an extension with a dot": ((".PDF",), ["/a.pdf", "/b", "/c.PDF", "/f.php"]),
    "several": (("image/png", "html"), ["/", "/d.png"]),
    "nothing": (("video/*",), []),
}


@pytest.mark.parametrize(("wanted", "paths"), WANTED.values(), ids=WANTED)
def test_a_choice_of_types(tmp_path, wanted, paths):
    asked = []

    def body(visit: dict[str, object]) -> bytes:
        asked.append(str(visit["url"]).removeprefix("https://a.test"))
        return b""

    visits = [{**VISIT, "url": f"https://a.test{path}", "content_type": kind} for path, kind in ALL.items()]
    assert export.files(visits, body, tmp_path, wanted) == (len(paths), 0, (), {})
    assert asked == paths, "what is not wanted is not read"


def test_names_are_those_of_the_url_not_of_the_request(tmp_path):
    """Which spelling is met first may differ from run to run."""
    export.files([{**VISIT, "request_url": "https://a.test/x/?utm_source=y"}], lambda _: b"", tmp_path)
    assert index(tmp_path) == {VISIT["url"]: file_name(VISIT["url"], "html")}
    line = json.loads((tmp_path / "index.jsonl").read_text())
    assert line["url"] == "https://a.test/x/?utm_source=y"


def test_a_later_export_puts_files_where_they_were(tmp_path):
    gone = {**VISIT, "url": "https://a.test/gone"}
    export.files([VISIT, gone], lambda _: b"old", tmp_path)
    export.files([VISIT], lambda _: b"new", tmp_path)
    assert (tmp_path / "a.test/x~.html").read_bytes() == b"new"
    assert (tmp_path / "a.test/gone~.html").read_bytes() == b"old", "it is left alone"
    assert index(tmp_path) == {"https://a.test/x": "a.test/x~.html"}, "but it does not belong"


def test_an_export_that_breaks_off_leaves_the_old_index(tmp_path):
    export.files([VISIT], lambda _: b"", tmp_path)

    def breaks(_: dict[str, object]) -> bytes:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export.files([VISIT, VISIT], breaks, tmp_path)
    assert index(tmp_path) == {"https://a.test/x": "a.test/x~.html"}
    assert files_in(tmp_path) == {"index.jsonl", "a.test/x~.html"}
