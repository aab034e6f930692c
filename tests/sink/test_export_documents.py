"""Exports into a folder: pages as Markdown, and files as they were fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.sink import export
from inchworm.sink.documents import EXTENSIONS
from inchworm.sink.export import Written
from inchworm.sink.names import extension_of, page_name

VISIT = {
    "url": "https://a.test/x", "request_url": "https://a.test/x/", "kind": "page", "outcome": "page", "status": 200,
    "at_ms": 1_767_225_600_123, "content_type": "text/html; charset=utf-8", "text_hash": "ab", "payload": "cd",
    "title": "Title", "language": "de", "meta": {},
}  # fmt: skip


def alone(_: str) -> list[str]:
    return ["https://a.test/x"]


def index(folder: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    return {line["url"]: line["file"] for line in lines}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# Markdown


def written(folder: Path, *visits: dict[str, object], text: str = "# Hello\n\nWorld", others=alone) -> Written:
    return export.markdown(iter(visits), others, lambda _: text, folder)


def test_a_page_is_a_file_with_what_is_known_of_it(tmp_path):
    assert written(tmp_path, VISIT) == (1, 0, ())
    assert (tmp_path / "a.test/x.md").read_text() == (
        "---\n"
        'url: "https://a.test/x"\n'
        'title: "Title"\n'
        'fetched_at: "2026-01-01T00:00:00.123Z"\n'
        'language: "de"\n'
        'content_hash: "ab"\n'
        "---\n"
        "\n"
        "# Hello\n\nWorld\n"
    )
    assert index(tmp_path) == {"https://a.test/x": "a.test/x.md"}


def test_what_is_not_known_is_left_out(tmp_path):
    written(tmp_path, {**VISIT, "title": None, "language": None, "text_hash": None}, text="")
    assert (tmp_path / "a.test/x.md").read_text() == (
        '---\nurl: "https://a.test/x"\nfetched_at: "2026-01-01T00:00:00.123Z"\n---\n\n\n'
    )


def test_the_urls_of_a_content_are_listed_when_there_are_several(tmp_path):
    written(tmp_path, VISIT, others=lambda text_hash: ["https://a.test/x", f"https://a.test/{text_hash}"])
    text = (tmp_path / "a.test/x.md").read_text()
    assert 'alternate_urls:\n  - "https://a.test/x"\n  - "https://a.test/ab"\n---\n' in text


CHOICE = {
    "html": ({}, 1),
    "xhtml": ({"content_type": "application/xhtml+xml", "title": None}, 1),
    "text": ({"content_type": "TEXT/Plain", "title": None}, 1),
    "no type": ({"content_type": None, "title": None}, 1),
    "html by another name": ({"content_type": "application/octet-stream"}, 1),
    "pdf": ({"content_type": "application/pdf", "title": None}, 1),
    "style sheet": ({"content_type": "text/css", "title": None}, 0),
    "image": ({"content_type": "image/png", "title": None}, 0),
    "duplicate": ({"outcome": "duplicate"}, 0),
    "resource": ({"outcome": "resource"}, 0),
    "failed": ({"outcome": "failed"}, 0),
}


@pytest.mark.parametrize(("changes", "count"), CHOICE.values(), ids=CHOICE)
def test_only_pages_with_a_text_of_their_own(tmp_path, changes, count):
    assert written(tmp_path, {**VISIT, **changes}) == (count, 0, ())


def test_a_page_that_the_archive_does_not_have_is_counted_and_named(tmp_path):
    assert export.markdown([VISIT], alone, lambda _: None, tmp_path) == (0, 1, (VISIT["url"],))
    assert files_in(tmp_path) == {"index.jsonl"}


def test_the_text_is_asked_for_by_visit(tmp_path):
    visits = [{**VISIT, "url": f"https://a.test/{number}", "seq": number} for number in range(3)]
    export.markdown(visits, alone, lambda visit: f"text {visit['seq']}", tmp_path)
    assert (tmp_path / "a.test/2.md").read_text().endswith("---\n\ntext 2\n")


def test_a_later_export_puts_pages_where_they_were(tmp_path):
    gone = {**VISIT, "url": "https://a.test/gone"}
    written(tmp_path, VISIT, gone, text="old")
    written(tmp_path, VISIT, text="new")
    assert (tmp_path / "a.test/x.md").read_text().endswith("\nnew\n")
    assert (tmp_path / "a.test/gone.md").read_text().endswith("\nold\n"), "it is left alone"
    assert index(tmp_path) == {"https://a.test/x": "a.test/x.md"}, "but it does not belong"


def test_an_export_that_breaks_off_leaves_the_old_index(tmp_path):
    written(tmp_path, VISIT)

    def breaks(visit: dict[str, object]) -> str:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export.markdown([VISIT, VISIT], alone, breaks, tmp_path)
    assert index(tmp_path) == {"https://a.test/x": "a.test/x.md"}
    assert files_in(tmp_path) == {"index.jsonl", "a.test/x.md"}


def test_a_page_may_lie_beside_a_folder_of_its_name(tmp_path):
    urls = [
        f"https://a.test/{path}" for path in ("", "a", "a/b", "a.md", "a.md/b", "A", "a/B", "a?b", "index", "index.md")
    ]
    assert written(tmp_path, *({**VISIT, "url": url} for url in urls)) == (len(urls), 0, ())
    found = index(tmp_path)
    assert list(found) == urls
    assert files_in(tmp_path) == {"index.jsonl", *found.values()}
    assert len({name.lower() for name in found.values()}) == len(urls)


HOSTILE_URLS = [
    "https://a.test/../../../etc/passwd", "https://a.test/%2e%2e/%2e%2e/x", "https://../x", "https:///etc/passwd",
    "/etc/passwd", "https://a.test/..\\..\\x", "https://a.test/\0", "https://a.test/" + "x" * 5_000,
    "https://a.test/" + "../" * 500, "https://a.test/\ud800", "https://a.test/\u202e", "https://a.test/😀", "",
    "C:\\x", "https://a.test/con",
]  # fmt: skip


@pytest.mark.parametrize("make", ["markdown", "files"])
def test_nothing_is_ever_written_outside(tmp_path, make):
    visits = [{**VISIT, "url": url} for url in HOSTILE_URLS]
    folder = tmp_path / "deep" / "in"
    if make == "markdown":
        assert written(folder, *visits) == (len(visits), 0, ())
    else:
        assert export.files(visits, lambda _: b"", folder) == (len(visits), 0, ())
    assert {path.split("/")[0] for path in files_in(tmp_path)} == {"deep"}
    assert len(files_in(folder)) == len(visits) + 1
    assert files_in(tmp_path) == {f"deep/in/{name}" for name in files_in(folder)}


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.test").symlink_to(tmp_path / "outside")
    with pytest.raises(WrongUse):
        written(tmp_path / "in", VISIT)
    (tmp_path / "in" / "a.test").unlink()
    (tmp_path / "in" / "index.jsonl").symlink_to(tmp_path / "outside" / "index")
    written(tmp_path / "in", VISIT)
    assert not (tmp_path / "in" / "index.jsonl").is_symlink()
    assert list((tmp_path / "outside").iterdir()) == []


# Front matter

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}


def from_yaml(quoted: str) -> str:
    """What YAML reads between double quotes. Nothing that it would fold or refuse may be there as it is."""
    assert quoted.isprintable() and quoted.startswith('"') and quoted.endswith('"') and len(quoted) > 1
    body = quoted[1:-1]
    assert not re.search(r'(?<!\\)(\\\\)*"', body)
    return re.sub(r'\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([nrtbf"\\]))', _unescaped, body)


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES[found[3]] if found[3] else chr(int(found[1] or found[2], 16))


NASTY = [
    "---", "...", ": ", "# no comment", "yes", "null", "~", "1.0", "'", '"', "\\", "\n---\n", "\r", "\x85",
    "\u2028", "\ufeff", "\x00", "\x7f", "\x9f", "\u202e", "\ufffe", "😀", "👩\u200d👩", "\U000e0001", "{a: b}", "[",
    "&a", "*a", "!!python", "%", "@", "`", " ", "\t",
]  # fmt: skip


@effort(max_examples=300, deadline=None, database=None)
@given(
    st.lists(
        st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=())),
    )
    .map("".join)
    .filter(bool)
)
def test_any_title_is_one_line_that_yaml_reads_as_it_is(tmp_path_factory, title):
    folder = tmp_path_factory.getbasetemp() / "titles"
    written(folder, {**VISIT, "title": title, "language": None})
    lines = (folder / "a.test/x.md").read_bytes().decode().split("\n")
    assert lines[0] == lines[5] == "---"
    assert [line.partition(": ")[0] for line in lines[1:5]] == [
        "url",
        "title",
        "fetched_at",
        "content_hash",
    ]
    held = re.sub("[\ud800-\udfff]", "\ufffd", title)
    assert from_yaml(lines[2].removeprefix("title: ")) == held


# Files


def body_of(found: dict[str, bytes]) -> Callable[[dict[str, object]], bytes | None]:
    return lambda visit: found.get(str(visit["url"]))


def test_bodies_are_written_byte_for_byte(tmp_path):
    bodies = {f"https://a.test/{number}": bytes(range(256)) * number for number in range(3)}
    visits = [{**VISIT, "url": url} for url in bodies]
    assert export.files(visits, body_of(bodies), tmp_path) == (3, 0, ())
    assert {url: (tmp_path / name).read_bytes() for url, name in index(tmp_path).items()} == bodies


def test_what_the_archive_does_not_have_is_counted_and_named(tmp_path):
    visits = [VISIT, {**VISIT, "url": "https://a.test/y"}]
    assert export.files(visits, body_of({"https://a.test/y": b""}), tmp_path) == (1, 1, (VISIT["url"],))
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
    assert export.files(visits, lambda _: b"", tmp_path) == (3, 0, ())
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
    assert export.files(visits, body, tmp_path, wanted) == (len(paths), 0, ())
    assert asked == paths, "what is not wanted is not read"


def test_names_are_those_of_the_url_not_of_the_request(tmp_path):
    """Which spelling is met first may differ from run to run."""
    written(tmp_path, {**VISIT, "request_url": "https://a.test/x/?utm_source=y"})
    assert index(tmp_path) == {VISIT["url"]: page_name(VISIT["url"])}
