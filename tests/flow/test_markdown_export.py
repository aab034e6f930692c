"""A crawl as a folder of Markdown: links that lead to files, images, and what was left out."""

from __future__ import annotations

import io
import json
import posixpath
import random
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.flow.crawling import Home, page

from inchworm.app.act.content.selection import ExportOptions
from inchworm.rules.text.links import links
from inchworm.testing import Page, Site, linked_site, redirect

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)


def made() -> dict[str, Any]:
    image = Page(PNG, headers={"Content-Type": "image/png"})
    body = "<img src='/logo.png' alt='Logo'> <img src='/pic?id=3' alt='Pic'> <img src='/lost.png' alt='Lost'>"
    names = ("/docs", "/docs/install.html#linux", "/docs/install", "/copy", "/empty", "/a%20b", "/old")
    linked = "".join(f"<p>Of all there is to read you may like this: <a href='{name}'>{name}</a></p>" for name in names)
    return {
        "/": page("home", body=body + linked),
        "/docs": redirect("/docs/", 301),
        "/docs/": page("docs", body="<a href='install.html'>install</a> <a href='#here'>here</a>"),
        "/docs/install.html": page("install", body="<a href='/'>home</a> <img src='../logo.png' alt='Logo'>"),
        "/docs/install": page("bare", body="<a href='/docs/install.html'>the other</a>"),
        "/copy": page("bare", body="<a href='/docs/install.html'>the other</a>"),
        "/empty": "<!doctype html><title>empty</title><div></div>",
        "/a%20b": page("space", body="<a href='/copy'>copy</a>"),
        "/old": redirect("/a%20b"),
        "/logo.png": image,
        "/pic": image,
    }


@pytest.fixture
def crawled(home: Home) -> Home:
    with Site(made()).serve() as served:
        home.crawl(served.url("/"), resources=True, sitemap=False, max_retries=0)
    return home


def exported(home: Home, folder: Path, **wanted: Any) -> dict[str, str]:
    """The file of each path."""
    home.app.export.to_folder(home.word, "markdown", folder, ExportOptions(**wanted))
    lines = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    return {"/" + line["url"].split("/", 3)[3]: line["file"] for line in lines}


def targets(folder: Path, name: str) -> dict[str, str]:
    """Where the links and images of a file lead, by their text."""
    text = (folder / name).read_text()
    return {label.rpartition("[")[2]: target.partition(")")[0] for label, target in pairs(text)}


def pairs(text: str) -> list[tuple[str, str]]:
    parts = text.split("](")
    return list(pairwise(parts))


def test_links_lead_from_file_to_file(crawled: Home, tmp_path: Path) -> None:
    files = exported(crawled, tmp_path)
    site = files["/"].rpartition("/")[0]
    assert {path: name.removeprefix(f"{site}/").partition("~")[0] for path, name in files.items()} == {
        "/": "index.md", "/docs/": "docs/index.md", "/docs/install.html": "docs/install",
        "/docs/install": "docs/install.md", "/a%20b": "a b.md",
    }  # fmt: skip
    other = files["/docs/install.html"].rpartition("/")[2]
    found = targets(tmp_path, files["/"])
    assert {label: target for label, target in found.items() if not target.startswith("http")} == {
        "/docs": "docs/index.md",
        "/docs/install.html#linux": f"docs/{other}#linux",
        "/docs/install": "docs/install.md",
        "/copy": "docs/install.md",
        "/a%20b": "a%20b.md",
    }, "a copy leads to the page that has its text"
    assert targets(tmp_path, files["/docs/"]) == {"install": other, "here": "#here"}
    assert targets(tmp_path, files["/docs/install"]) == {"the other": other}


def test_what_is_left_out_is_told(crawled: Home, tmp_path: Path) -> None:
    told = crawled.ask("export", crawled.word, "--format", "markdown", "-o", str(tmp_path / "out"))
    assert (told["count"], told["skipped"], told["lost"]) == (5, 0, [])
    assert {reason: one["pages"] for reason, one in told["left_out"].items()} == {"duplicate": 1, "without_text": 1}
    assert told["left_out"]["duplicate"]["urls"][0].endswith("/copy")
    said = crawled.cli("export", crawled.word, "--format", "markdown", "-o", str(tmp_path / "out")).stdout
    assert "Left out: 1 page with the text of another, 1 page without text." in said


def test_images_come_along_when_they_are_wanted(crawled: Home, tmp_path: Path) -> None:
    files = exported(crawled, tmp_path / "without")
    assert not (tmp_path / "without" / "images").exists()
    assert targets(tmp_path / "without", files["/"])["Logo"].startswith("http://")
    exported(crawled, tmp_path / "with", images=True)
    found = targets(tmp_path / "with", files["/"])
    for label in ("Logo", "Pic"):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(files["/"]), unquote(found[label])))
        assert path.startswith("images/") and path.endswith(".png")
        assert (tmp_path / "with" / path).read_bytes() == PNG
    assert found["Lost"].startswith("http://"), "what the crawl does not have stays where it is"
    assert len([one for one in (tmp_path / "with" / "images").rglob("*") if one.is_file()]) == 2


def test_a_zip_file_holds_what_the_folder_does(crawled: Home, tmp_path: Path) -> None:
    exported(crawled, tmp_path / "folder", images=True)
    crawled.cli("export", crawled.word, "--format", "markdown", "--images", "-o", str(tmp_path / "x.zip"))
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        assert file.testzip() is None
        zipped = {name: file.read(name) for name in file.namelist()}
    folder = tmp_path / "folder"
    assert zipped == {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    out = io.BytesIO()
    crawled.app.export.to_folder(crawled.word, "files", out, ExportOptions(types=("image/*",)))
    with zipfile.ZipFile(out) as file:
        assert len(file.namelist()) == 3


def test_options_that_belong_to_other_formats(crawled: Home, tmp_path: Path) -> None:
    for wrong in (["--format", "jsonl", "--images"], ["--format", "markdown", "--chunk-size", "100"]):
        crawled.cli("export", crawled.word, *wrong, "-o", str(tmp_path / "x"), code=2)
    crawled.cli("export", crawled.word, "--format", "markdown", code=2)


def test_a_copy_whose_original_is_gone_is_there(home: Home, tmp_path: Path) -> None:
    pages = {"/": page("home", "/a", "/b"), "/a": page("same"), "/b": page("same")}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        assert set(exported(home, tmp_path / "first")) == {"/", "/a"}
        pages["/a"] = Page("gone", 410)
        home.crawl(served.url("/"), sitemap=False)
    assert set(exported(home, tmp_path / "second")) == {"/", "/b"}


def test_a_run_of_the_past(home: Home, tmp_path: Path) -> None:
    pages = {"/": page("home", "/a", body="<a href='/a'>a</a>"), "/a": page("first")}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        pages["/a"] = page("second")
        home.crawl(served.url("/"), sitemap=False)
    files = exported(home, tmp_path / "now")
    assert "what second says" in (tmp_path / "now" / files["/a"]).read_text()
    assert exported(home, tmp_path / "then", run=0) == files
    assert "what first says" in (tmp_path / "then" / files["/a"]).read_text()
    assert targets(tmp_path / "then", files["/"]) == {"a": "a.md"}


@pytest.mark.parametrize("seed", range(3))
def test_every_link_of_a_large_site_leads_to_a_file(home: Home, tmp_path: Path, seed: int) -> None:
    """Every relative link leads to a file that is there, and every page that is there is never left absolute."""
    chance, site = random.Random(seed), linked_site(40)
    paths = [path for path in site if path != "/"]
    renamed = {
        path: path + chance.choice(["", ".html", ".php", "/", "?q=1", " x.html", "/index.html"]) for path in paths
    }
    pages: dict[str, Any] = {}
    for path in ("/", *paths):
        some = chance.sample(paths, 12)
        body = "".join(f'<p><a href="{renamed[one]}{chance.choice(["", "#x"])}">{one}</a></p>' for one in some)
        key = renamed.get(path, path).replace(" ", "%20")
        pages[key] = "" if chance.random() < 0.1 and path != "/" else page(path, body=body)
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False)
        files = exported(home, tmp_path)
        there = {served.url(path): name for path, name in files.items()}
        for name in files.values():
            for link in links((tmp_path / name).read_text()):
                assert link.url.partition("#")[0] not in there, (name, link.url)
            for target in targets(tmp_path, name).values():
                if not target.startswith("http") and (file := unquote(target.partition("#")[0])):
                    assert (tmp_path / posixpath.join(posixpath.dirname(name), file)).is_file(), (name, target)
    assert len(files) > 20
