"""Telling a search server, by the official client of each product: patience, halves, refusals, versions, users."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sink.searchserver import SearchServer

from inchworm.errors import Broken, WrongUse
from inchworm.sink.servers import elastic, index
from inchworm.sink.servers.elastic import ServerAddress
from inchworm.sink.servers.index import Delivered, DocumentUpdate, Server, Unreachable, Vanished, document_id
from inchworm.testing import Site

NAME = "docs_raw_content"
WAITS = (0.01, 0.01)


@pytest.fixture(params=["elasticsearch", "opensearch"])
def product(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def remote(tmp_path: Path, product: str) -> Iterator[SearchServer]:
    with SearchServer(tmp_path / "server", product) as server:
        yield server


@contextlib.contextmanager
def asking(url: str) -> Iterator[Server]:
    with contextlib.closing(Server(url, WAITS)) as server:
        yield server


@pytest.fixture
def server(remote: SearchServer) -> Iterator[Server]:
    with asking(remote.url) as made:
        made.create(NAME, {"generation": "one"})
        yield made


def line(path: str, version: int = 1, **fields: Any) -> DocumentUpdate:
    url = f"https://example.org/{path}"
    return DocumentUpdate(url, version, {"id": document_id(url), "url": url, **fields})


def gone(path: str, version: int) -> DocumentUpdate:
    return DocumentUpdate(f"https://example.org/{path}", version, None)


def held(remote: SearchServer) -> dict[str, Any]:
    return {url.rpartition("/")[2]: one.get("text") for url, one in remote.documents(NAME).items()}


# ---- indexes


def test_an_index_is_made_once_and_bears_its_name(server: Server) -> None:
    assert server.meta(NAME) == {"generation": "one"}
    assert server.meta("other_raw_content") is None
    with pytest.raises(Broken, match="already exists"):
        server.create(NAME, {})
    server.delete(NAME)
    assert server.meta(NAME) is None
    server.delete(NAME)


def test_an_index_that_somebody_else_made_says_nothing_of_itself(server: Server, remote: SearchServer) -> None:
    remote.create("other_raw_content", {})
    assert server.meta("other_raw_content") == {}


# ---- documents


def test_documents_come_change_and_go(server: Server, remote: SearchServer) -> None:
    assert server.deliver(NAME, [line("a", text="one"), line("b", text="two")]) == Delivered(indexed=2)
    assert held(remote) == {"a": "one", "b": "two"}
    lines = [line("a", 2, text="new"), gone("b", 2), gone("c", 2)]
    assert server.deliver(NAME, lines) == Delivered(indexed=1, deleted=2)
    assert held(remote) == {"a": "new"}
    assert server.deliver(NAME, []) == Delivered()


def test_what_comes_late_overwrites_nothing(server: Server, remote: SearchServer) -> None:
    server.deliver(NAME, [line("a", 7, text="newer"), line("b", 7, text="newer")])
    server.deliver(NAME, [gone("b", 8)])
    done = server.deliver(NAME, [line("a", 6, text="late"), line("b", 7, text="late"), gone("a", 5)])
    assert done == Delivered(newer=3)
    assert held(remote) == {"a": "newer"}
    assert server.deliver(NAME, [line("a", 7, text="newer")]) == Delivered(indexed=1), "told twice does no harm"


def test_what_the_server_does_not_take_is_set_aside(server: Server, remote: SearchServer, product: str) -> None:
    lines = [line("a"), line("b", fetched_at="yesterday"), line("c", status=10**9), line("d", text={"x": 1}), line("e")]
    done = server.deliver(NAME, lines)
    assert (done.indexed, [one.url[-1] for one in done.refused]) == (2, ["b", "c", "d"])
    kind = "document_parsing_exception" if product == "elasticsearch" else "mapper_parsing_exception"
    assert done.refused[0].reason.startswith(f"{kind}: [1:1] failed to parse field [fetched_at]")
    assert "failed to parse date field [yesterday]" in done.refused[0].reason
    assert held(remote).keys() == {"a", "e"}


# ---- parcels


def test_parcels_are_small(server: Server, remote: SearchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_BULK_BYTES", 10_000)
    monkeypatch.setattr(index, "MAX_BULK_DOCUMENTS", 20)
    lines = [line(f"p{number}", text="x" * 500) for number in range(50)]
    lines += [line(f"q{number}") for number in range(50)] + [line("large", text="x" * 50_000)]
    assert server.deliver(NAME, iter(lines)).indexed == 101
    sizes = remote.bulks()
    assert sum(one["lines"] for one in sizes) == 101
    assert all(one["lines"] <= 20 and (one["bytes"] <= 10_000 or one["lines"] == 1) for one in sizes)


def test_a_request_that_is_too_large_is_halved(tmp_path: Path, product: str) -> None:
    with SearchServer(tmp_path / "server", product, max_content_length=12_000) as remote, asking(remote.url) as server:
        server.create(NAME, {})
        lines = [line(f"p{number}", text="x" * 1_000) for number in range(40)]
        lines.insert(7, line("large", text="x" * 20_000))
        done = server.deliver(NAME, lines)
        assert done.indexed == 40
        assert [one.url[-5:] for one in done.refused] == ["large"]
        assert "takes no request of 20," in done.refused[0].reason
        assert len(held(remote)) == 40


# ---- patience


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_is_busy_is_asked_again(server: Server, remote: SearchServer, status: int) -> None:
    remote.fail(status=status, times=2)
    assert server.deliver(NAME, [line("a")]) == Delivered(indexed=1)
    remote.fail(status=status, times=3)
    with pytest.raises(Unreachable, match=r"cannot be told now: .*rejected execution"):
        server.deliver(NAME, [line("a", 2)])


def test_only_what_was_put_off_is_sent_again(server: Server, remote: SearchServer) -> None:
    remote.fail(item_status=429, every=2, times=2)
    lines = [line(f"p{number}") for number in range(10)] + [line("wrong", fetched_at="never")]
    done = server.deliver(NAME, lines)
    assert (done.indexed, len(done.refused)) == (10, 1)
    assert [one["lines"] for one in remote.bulks()] == [11, 6, 3]
    remote.fail(item_status=429, times=3)
    with pytest.raises(Unreachable, match="es_rejected_execution_exception"):
        server.deliver(NAME, lines)


def test_a_full_disk_is_waited_for(server: Server, remote: SearchServer) -> None:
    remote.fail(item_status=403, type="cluster_block_exception")
    assert server.deliver(NAME, [line("a")]).indexed == 1
    remote.fail(item_status=403, type="security_exception")
    with pytest.raises(WrongUse, match="security_exception"):
        server.deliver(NAME, [line("a", 2)])


def test_an_index_that_vanished_is_told_from_other_trouble(server: Server, remote: SearchServer) -> None:
    remote.fail(item_status=404, type="index_not_found_exception")
    with pytest.raises(Vanished):
        server.deliver(NAME, [line("a")])


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_dies_is_no_answer(server: Server, remote: SearchServer, when: str) -> None:
    remote.fail(die=when)
    with pytest.raises(Unreachable, match=r"cannot be told now: (the connection|no answer)"):
        server.deliver(NAME, [line("a", 3, text="x")])
    remote.kill()
    remote.start()
    assert len(held(remote)) == (0 if when == "before" else 1)
    assert server.deliver(NAME, [line("a", 3, text="x")]) == Delivered(indexed=1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_nobody_there() -> None:
    with asking(f"http://127.0.0.1:{free_port()}") as server:
        with pytest.raises(Unreachable, match="the connection is refused") as caught:
            server.meta(NAME)
        assert "Nothing is lost" in caught.value.hint


def test_no_such_name() -> None:
    with asking("http://nowhere.invalid:9200") as server, pytest.raises(Unreachable, match="its name was not found"):
        server.meta(NAME)


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic, "SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with asking(url) as server, pytest.raises(Unreachable, match="no answer in time"):
            server.meta(NAME)


# ---- who it is, and who we are


def test_user_and_password(tmp_path: Path, product: str) -> None:
    with SearchServer(tmp_path / "server", product, user="ada:s3cret") as remote:
        with asking(remote.url) as server:
            server.create(NAME, {})
            assert server.deliver(NAME, [line("a")]).indexed == 1
            assert "s3cret" not in server.address.url
        for wrong in ("ada:wrong@", ""):
            with asking(f"http://{wrong}127.0.0.1:{remote.port}") as server:
                with pytest.raises(WrongUse, match=r"refuses .*status 401") as caught:
                    server.meta(NAME)
                assert "wrong" not in caught.value.message


def test_what_is_no_search_server_is_not_told(tmp_path: Path) -> None:
    refusal = pytest.raises(WrongUse, match="neither Elasticsearch nor OpenSearch")
    with Site({"/": "<p>a web site</p>"}).serve() as served, asking(served.url("")) as server, refusal:
        server.meta(NAME)


@pytest.mark.parametrize(("product", "module", "extra"), [
    ("elasticsearch", "elasticsearch", "elasticsearch"),
    ("opensearch", "opensearchpy", "opensearch"),
])  # fmt: skip
def test_a_client_that_is_missing_is_named(
    remote: SearchServer, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with asking(remote.url) as server, pytest.raises(WrongUse, match="needs its client") as caught:
        server.meta(NAME)
    assert f"inchworm[{extra}]" in caught.value.hint


def test_no_client_at_all_is_said_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    elastic.refuse_without_client()
    monkeypatch.setattr(elastic, "_EXTRAS", {"no_such_client": "x"})
    with pytest.raises(WrongUse, match="there is none"):
        elastic.refuse_without_client()


@pytest.mark.parametrize("product", ["elasticsearch"])
def test_a_client_that_is_too_new_is_named(remote: SearchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import elasticsearch

    monkeypatch.setattr(elasticsearch, "__version__", (10, 0, 0))
    with asking(remote.url) as server, pytest.raises(WrongUse, match=r"is Elasticsearch 9, and .* is for 10"):
        server.meta(NAME)


@pytest.mark.parametrize(
    ("text", "url", "user"),
    [
        ("http://localhost:9200", "http://localhost:9200", None),
        ("localhost:9200", "http://localhost:9200", None),
        ("http://localhost/", "http://localhost:80", None),
        ("https://search.example.org/es/", "https://search.example.org:443/es", None),
        ("https://a%40b:p%3Aw@h:1", "https://h:1", ("a@b", "p:w")),
        ("http://[::1]:9200", "http://[::1]:9200", None),
    ],
    ids=range(6),
)
def test_addresses(text: str, url: str, user: tuple[str, str] | None) -> None:
    address = ServerAddress(text)
    assert (address.url, address.user) == (url, user)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://h",
        "http://",
        "http://u:p@",
        "http://h:x",
        "http://h:0",
        "http://u:secret@h:70000",
        "http://h?q",
        "a b",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(WrongUse, match="not the address of a search server") as caught:
        ServerAddress(text)
    assert "secret" not in caught.value.message
