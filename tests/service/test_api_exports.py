"""Exports over HTTP: every format, as the command line writes it, streamed, and at an end when nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import gzip
import io
import json
import os
import random
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import pyarrow.parquet
import pytest
from tests.flow.crawling import page
from tests.flow.test_frames import NOTICE, shop
from tests.service.in_process import Api, serving
from tests.service.running import Service, wait_for
from tests.service.running import serving as running
from tests.service.test_api_pages import made_pages

from inchworm.app import FORMATS
from inchworm.app.act.content.selection import ExportOptions
from inchworm.service.api import crawls, exports, streaming
from inchworm.testing import Page, Served, Site

PNG = Page(b"\x89PNG\r\n\x1a\n", headers={"Content-Type": "image/png"})


def pages_with_an_image() -> dict[str, Any]:
    made = made_pages()
    made["/a"] = page("/a", "/", body="<img src='/i.png' alt='An image'>")
    return {**made, "/i.png": PNG}


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with Site(pages_with_an_image()).serve() as served:
        yield served


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("exports") / "home", crawls.routes, exports.routes) as made:
        yield made


@pytest.fixture(scope="module")
def crawl_id(api: Api, site: Served) -> str:
    return api.crawled(site.url("/"), max_retries=0, resources=True)


def exported(api: Api, crawl_id: str, name: str, **query: Any) -> bytes:
    answer = api.request("GET", f"/crawl/{crawl_id}/export", params={"format": name, **query})
    assert answer.status_code == 200, answer.text
    return answer.content


def rows(api: Api, crawl_id: str, name: str = "jsonl", **query: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(api, crawl_id, name, **query).splitlines()]


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


KINDS = {
    "jsonl": ("jsonl", "application/x-ndjson"),
    "csv": ("csv", "text/csv; charset=utf-8"),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
    "chunks": ("chunks.jsonl", "application/x-ndjson"),
    "data": ("data.jsonl", "application/x-ndjson"),
    "markdown": ("markdown.zip", "application/zip"),
    "files": ("files.zip", "application/zip"),
    "sitemap": ("xml", "application/xml"),
    "urls": ("txt", "text/plain; charset=utf-8"),
    "fingerprints": ("json", "application/json"),
    "warc": ("warc.gz", "application/warc"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_what_the_command_line_writes(api: Api, crawl_id: str, name: str) -> None:
    ending, kind = KINDS[name]
    answer = api.request("GET", f"/crawl/{crawl_id}/export", params={"format": name, "run": 0})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"] == f'attachment; filename="{crawl_id}-run0.{ending}"'
    written = io.BytesIO()
    (api.app.export.to_folder if kind == "application/zip" else api.app.export.to_file)(
        crawl_id, name, written, ExportOptions(0)
    )
    if name == "parquet":
        tables = [pyarrow.parquet.read_table(io.BytesIO(data)) for data in (answer.content, written.getvalue())]
        assert tables[0] == tables[1] and tables[0].num_rows == 12
    elif name == "warc":
        assert abs(len(gzip.decompress(answer.content)) - len(gzip.decompress(written.getvalue()))) < 10
    else:
        # No page of this site has data for machines.
        assert answer.content == written.getvalue() and (answer.content or name == "data")
    now = api.request("GET", f"/crawl/{crawl_id}/export", params={"format": name})
    assert now.headers["content-disposition"] == f'attachment; filename="{crawl_id}.{ending}"'


def test_what_an_export_holds_can_be_chosen(api: Api, crawl_id: str) -> None:
    assert list(rows(api, crawl_id, columns="url,title")[0]) == ["url", "title"]
    assert list(rows(api, crawl_id, columns=["url", "title,text"])[0]) == ["url", "title", "text"]
    assert {"markdown", "links"} <= set(rows(api, crawl_id, **{"with": "markdown,links"})[0])
    assert len(rows(api, crawl_id)) == 8 and len(rows(api, crawl_id, unique="true")) == 7
    assert rows(api, crawl_id, since="0") == [] and len(rows(api, crawl_id, since="1d")) == 8
    assert exported(api, crawl_id, "csv", bom="1").startswith(b"\xef\xbb\xbf")
    lines = list(csv.reader(io.StringIO(exported(api, crawl_id, "csv", columns="url").decode())))
    assert lines[0] == ["url"] and len(lines) == 9


def test_chunks_can_be_smaller(api: Api, crawl_id: str) -> None:
    whole = rows(api, crawl_id, "chunks")
    small = rows(api, crawl_id, "chunks", chunk_size=60)
    assert len(small) > len(whole) and max(len(row["text"]) for row in small) <= 60
    assert rows(api, crawl_id, "chunks", chunkSize=60) == small
    lapping = rows(api, crawl_id, "chunks", chunk_size=100, chunk_overlap=50)
    assert lapping[1]["text"].split()[0] in lapping[0]["text"]


def test_folders_are_zip_files(api: Api, crawl_id: str) -> None:
    plain, full = (unzipped(exported(api, crawl_id, "markdown", images=images)) for images in ("false", "true"))
    assert len(plain) == 8 and set(full) - set(plain) == {name for name in full if name.startswith("images/")}
    assert full[next(iter(set(full) - set(plain)))] == PNG.body
    files = unzipped(exported(api, crawl_id, "files", types="image/*"))
    assert [name.rpartition("/")[2] for name in files] == ["i.png", "index.jsonl"]


WRONG = {
    "no format": {},
    "an unknown format": {"format": "exe"},
    "an empty one": {"format": ""},
    "a path": {"format": "../../x"},
    "a header": {"format": "jsonl\r\nX-Evil: 1"},
    "an unknown column": {"format": "jsonl", "columns": "nobody"},
    "an unknown column more": {"format": "jsonl", "with": "nobody"},
    "an unknown change": {"format": "jsonl", "only": "moved"},
    "no date": {"format": "jsonl", "since": "the other day"},
    "a run and a date": {"format": "jsonl", "since": "yesterday", "run": 0},
    "an unheard-of parameter": {"format": "jsonl", "colums": "url"},
    "a tokenizer": {"format": "chunks", "tokenizer": "/etc/passwd"},
    "columns of chunks": {"format": "chunks", "columns": "url"},
    "changes of a run": {"format": "warc", "since": "0"},
    "types of chunks": {"format": "chunks", "types": "pdf"},
    "a mark of nothing": {"format": "jsonl", "bom": "true"},
    "images of nothing": {"format": "jsonl", "images": "true"},
    "chunks of a table": {"format": "jsonl", "chunk_size": 100},
    "chunks of nothing": {"format": "chunks", "chunk_size": 0},
    "tiny chunks": {"format": "chunks", "chunk_size": 5},
    "chunks that only overlap": {"format": "chunks", "chunk_size": 50, "chunk_overlap": 50},
    "a negative run": {"format": "jsonl", "run": -1},
    "a flag that is none": {"format": "jsonl", "unique": "perhaps"},
    "too many columns": {"format": "jsonl", "columns": ["url"] * 101},
}


@pytest.mark.parametrize("query", WRONG.values(), ids=WRONG)
def test_wrong_questions_are_refused_before_anything_is_sent(api: Api, crawl_id: str, query: dict[str, Any]) -> None:
    error = api.get(f"/crawl/{crawl_id}/export", 422, **query)
    assert error["message"]


def test_exports_of_nothing(api: Api, crawl_id: str) -> None:
    api.get(f"/crawl/{crawl_id}/export", 404, format="urls", run=9)
    api.get(f"/crawl/{crawl_id}/export", 404, format="jsonl", since=9)
    api.get("/crawl/nobody/export", 404, format="jsonl")


def test_pieces_are_put_together(api: Api, crawl_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: exported(api, crawl_id, name) for name in ("jsonl", "markdown", "files")}
    monkeypatch.setattr(streaming, "_PIECE", 100)
    monkeypatch.setattr(streaming, "_MOST_BYTES", 200)
    assert {name: exported(api, crawl_id, name) for name in whole} == whole


def test_what_breaks_half_way_is_no_whole_answer() -> None:
    """Whoever reads it must see that something is missing."""
    sent: list[dict[str, Any]] = []

    def write(out: Any, _told: Any) -> None:
        out.write(b"x" * 500_000)
        raise RuntimeError("the disk is gone")

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        answer = await anyio.to_thread.run_sync(lambda: streaming.streamed("x.txt", "text/plain", write))
        await answer({"type": "http", "asgi": {"spec_version": "2.3"}}, asyncio.Event().wait, send)  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match="the disk is gone"):
        asyncio.run(ask())
    assert sent[0]["status"] == 200 and len(sent) > 1
    assert all(message["more_body"] for message in sent[1:]), "it has no end"


def test_a_writer_with_nothing_to_say_ends_too() -> None:
    """Whoever looks through a million pages and finds nothing learns as well that nobody waits any more."""
    ended = threading.Event()

    def write(_out: Any, told: Any) -> None:
        try:
            while True:
                told(0, 1)
        finally:
            ended.set()

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    async def ask() -> None:
        answer = await anyio.to_thread.run_sync(lambda: streaming.streamed("x.txt", "text/plain", write))
        await answer({"type": "http", "asgi": {"spec_version": "2.3"}}, gone, send)

    asyncio.run(ask())
    assert ended.wait(60)


# With a real service, whose readers go away

SIZE = 400_000
PAGES = 40


def large_site() -> dict[str, Any]:
    """Much more than fits into any buffer between us and a reader, packed or not."""
    names, chance = [f"/p{number}" for number in range(PAGES)], random.Random(1)

    def words() -> str:
        return " ".join(chance.randbytes(8).hex() for _ in range(SIZE // 17))

    return {
        "/": page("home", *names),
        **{name: f"<title>{name}</title><main><p>{name}: {words()}</p></main>" for name in names},
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    home = tmp_path_factory.mktemp("leaving") / "home"
    with Site(large_site()).serve() as web, running(home) as made:
        crawl_id = made.once(web.url("/"))["crawl_id"]
        yield made, crawl_id


def opened(service: Service, crawl_id: str, query: str) -> socket.socket:
    """A connection on which an export has begun to arrive."""
    address = urlsplit(service.url)
    connection = socket.socket()
    connection.settimeout(60)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    connection.connect((address.hostname, address.port))
    head = f"GET /api/v1/crawl/{crawl_id}/export?{query} HTTP/1.1\r\nHost: {address.netloc}\r\n"
    token = service.headers()["Authorization"]
    connection.sendall(f"{head}Authorization: {token}\r\n\r\n".encode())
    began = connection.recv(1000)
    assert began.startswith(b"HTTP/1.1 200 "), began
    return connection


def is_reading(service: Service, crawl_id: str) -> bool:
    """Whether the service has a file of the crawl open."""
    found = []
    for one in Path(f"/proc/{service.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(one.readlink()))
    return any(f"crawls/{crawl_id}/" in path for path in found)


ENDLESS = ["jsonl", "chunks&chunk_size=200", "markdown", "files", "warc"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files of a process are seen in /proc")
@pytest.mark.parametrize("name", ENDLESS)
def test_an_export_ends_when_its_reader_goes(service: tuple[Service, str], name: str) -> None:
    """One that nobody reads would wait for ever, and as many as may be at once would keep all others out."""
    running, crawl_id = service
    url = f"/api/v1/crawl/{crawl_id}/export?format={name}"
    connections = [opened(running, crawl_id, f"format={name}") for _ in range(4)]
    assert is_reading(running, crawl_id)
    assert running.client.get(url).status_code == 503
    for one in connections:
        one.close()
    wait_for(lambda: not is_reading(running, crawl_id), "the exports to end")
    assert running.client.get(url).status_code == 200


def test_a_slow_reader_gets_everything(service: tuple[Service, str]) -> None:
    running, crawl_id = service
    expected = running.client.get(f"/api/v1/crawl/{crawl_id}/export?format=jsonl").content
    with running.client.stream("GET", f"/api/v1/crawl/{crawl_id}/export?format=jsonl") as answer:
        found = b""
        for number, piece in enumerate(answer.iter_raw()):
            found += piece
            if number % 50 == 0:
                threading.Event().wait(0.02)
    assert found == expected and len(found) > PAGES * SIZE


def test_memory_of_the_service_stays_flat(service: tuple[Service, str]) -> None:
    running, crawl_id = service

    def resident() -> int:
        pages = int(Path(f"/proc/{running.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    url = f"/api/v1/crawl/{crawl_id}/export?format=jsonl&with=raw_html,markdown,html"
    running.client.get(url)
    before = resident()
    assert len(running.client.get(url).content) > 50_000_000
    assert resident() - before < 25_000_000


def test_blocks_on_most_pages_are_kept_if_wanted(api: Api) -> None:
    with Site(shop()).serve() as served:
        crawl_id = api.crawled(served.url("/"))
    for name in ("jsonl", "csv", "chunks"):
        assert NOTICE not in exported(api, crawl_id, name).decode()
        assert NOTICE in exported(api, crawl_id, name, frame="keep").decode()
    for frame, is_there in (("drop", False), ("keep", True)):
        files = unzipped(exported(api, crawl_id, "markdown", frame=frame))
        assert (NOTICE in b"".join(files.values()).decode()) == is_there
    error = api.get(f"/crawl/{crawl_id}/export", 422, format="jsonl", frame="away")
    assert "frame" in json.dumps(error)
