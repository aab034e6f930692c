"""A crawl's pages on a search server: runs, ways back, crashes of either side, and what people are told."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, page, path_of, wait_until
from tests.flow.test_frames import NOTICE, SUBJECTS, shop
from tests.flow.test_search import go_on, index_of, text
from tests.sink.searchserver import SearchServer

from inchworm.app import Summary
from inchworm.app.act.content import index as indexing
from inchworm.app.act.content.index import indexed
from inchworm.errors import WrongUse
from inchworm.rules.words.json_form import json_form
from inchworm.rules.words.slug import index_name
from inchworm.sink.servers.index import Unreachable
from inchworm.store.follow import index as stored
from inchworm.testing import Page, Site, linked_site, redirect


class QuietHome(Home):
    """A home whose sessions are not followed by themselves, so that a test can say when."""

    def crawl(self, *seeds: str, **given: Any) -> Summary:
        return super().crawl(*seeds, **{"index": "", **given})

    def recrawl(self, mode: str = "", **given: Any) -> Summary:
        return super().recrawl(mode, **{"index": "", **given})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = QuietHome(tmp_path / "home")
    yield made
    made.app.close()


@pytest.fixture(params=["elasticsearch", "opensearch"])
def product(request: pytest.FixtureRequest) -> str:
    return str(request.param)


IMPATIENT = """\
from inchworm.sink.servers import index

index.WAITS = (0.01, 0.01)
"""


@pytest.fixture
def server(tmp_path: Path, product: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    """A search server, and nobody who waits long for it: neither this process nor one that it starts."""
    monkeypatch.setattr(indexing.Indexer, "waits", (0.01, 0.01))
    (tmp_path / "sitecustomize.py").write_text(IMPATIENT)
    monkeypatch.syspath_prepend(tmp_path)
    with SearchServer(tmp_path / "server", product) as started:
        monkeypatch.setenv("INCHWORM_INDEX", started.url)
        yield started


one_product = pytest.mark.parametrize("product", ["elasticsearch"])
"""For what has nothing to do with which it is."""


def name_of(home: Home) -> str:
    crawl = home.app.workspace.find(home.word)
    return index_name(crawl.name, crawl.crawl_id)


def held(home: Home, server: SearchServer) -> dict[str, dict[str, Any]]:
    return {path_of(url): document for url, document in server.documents(name_of(home)).items()}


def found(home: Home) -> set[str]:
    """The paths of all pages that the crawl's own search has, one for each text."""
    home.app.search.find(home.word, "anything")
    with contextlib.closing(sqlite3.connect(index_of(home))) as db:
        rows = db.execute("SELECT content_id, url FROM page WHERE content_id ORDER BY run_id, is_copy DESC, seq DESC")
        return {path_of(url) for url in dict(rows.fetchall()).values()}


def check(home: Home, server: SearchServer) -> None:
    """The server has what our own index has, and what it would have if it were told everything anew."""
    done = home.app.index.update(home.word)
    assert done.behind == 0
    assert not done.newer
    followed = held(home, server)
    assert followed.keys() == found(home)
    assert done.documents == len(followed)
    home.app.index.update(home.word, rebuild=True)
    assert held(home, server) == followed


# ---- what is told


def test_a_crawl_becomes_an_index(home: Home, server: SearchServer) -> None:
    head = '<meta name="author" content="Ada"><meta property="article:published_time" content="2024-05-17T10:00Z">'
    site = {
        "/": page("start", "/zebra", "/copy", "/plain.txt"),
        "/zebra": page("All zebras", head=head, body=text("stripes")),
        "/copy": page("All zebras", head=head, body=text("stripes")),
        "/plain.txt": "Once there was a plain text about plums.",
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"), name="My Zebras")
    done = home.ask("index", home.word)
    crawl = home.app.workspace.find(home.word)
    assert done == {
        "crawl_id": crawl.crawl_id,
        "name": "My Zebras",
        "index": f"my-zebras-{crawl.crawl_id}_raw_content",
        "server": server.url,
        "indexed": 3,
        "deleted": 0,
        "set_aside": 0,
        "newer": 0,
        "behind": 0,
        "documents": 3,
    }
    documents = held(home, server)
    assert documents.keys() == {"/", "/zebra", "/plain.txt"}
    zebra, visit = documents["/zebra"], next(one for one in home.record() if one["url"].endswith("/zebra"))
    assert zebra["alternate_urls"] == visit["alternate_urls"] == [served.url("/zebra"), served.url("/copy")]
    same = ("url", "title", "status", "content_type", "content_hash", "depth", "source", "fetched_at")
    assert {name: zebra[name] for name in same} == {name: visit[name] for name in same}
    assert (zebra["size"], zebra["run"], zebra["seed"]) == (visit["bytes"], 0, served.url("/"))
    assert (zebra["author"], zebra["published_at"]) == ("Ada", "2024-05-17T10:00:00.000Z")
    assert (zebra["crawl_id"], zebra["crawl_name"]) == (crawl.crawl_id, "My Zebras")
    assert zebra["first_seen_at"] == zebra["fetched_at"]
    assert "stripes is what this page is about" in zebra["text"]
    assert documents["/plain.txt"]["text"] == "Once there was a plain text about plums."
    assert home.ask("index", home.word) == {**done, "indexed": 0}
    check(home, server)


def test_the_newest_version_of_a_page_counts(home: Home, server: SearchServer) -> None:
    site: dict[str, Any] = {
        "/": page("start", "/a", "/b", "/moved", "/sometimes"),
        "/a": page("a", body=text("alligators")),
        "/b": page("b", body=text("bisons")),
        "/moved": page("moved", body=text("mules")),
        "/sometimes": page("sometimes", body=text("seals")),
        "/target": page("target", body=text("targets")),
    }
    with Site(site, validators=True).serve() as served:
        home.crawl(served.url("/"))
        assert home.app.index.update(home.word).indexed == 5
        site["/a"] = page("a", body=text("antelopes"))
        site["/b"] = Page("gone", 410)
        site["/moved"] = redirect("/target", 301)
        site["/sometimes"] = Page("not now", 503)
        home.crawl(served.url("/"), max_retries=0)
        done = home.app.index.update(home.word)
        assert (done.deleted, done.documents) == (2, 4)
        documents = held(home, server)
        assert documents.keys() == {"/", "/a", "/target", "/sometimes"}
        assert "antelopes" in documents["/a"]["text"]
        assert [documents[path].get("change") for path in ("/a", "/")] == ["modified", "unchanged"]
        assert documents["/a"]["first_seen_at"] < documents["/a"]["fetched_at"]
        assert (documents["/a"]["run"], documents["/sometimes"]["run"]) == (1, 0)
        site["/b"] = page("b", body=text("bisons"))
        home.crawl(served.url("/"), max_retries=0)
    check(home, server)
    assert "/b" in held(home, server)


def test_going_back_and_on(home: Home, server: SearchServer) -> None:
    site = {f"/p{n}": page(f"p{n}", f"/p{n + 1}", body=text(f"number{n}")) for n in range(12)}
    site["/p11"] = page("p11", body=text("number11"))
    with Site(site).serve() as served:
        home.crawl(served.url("/p0"), checkpoint_every=4, budget=10, scope="host")
        assert home.app.index.update(home.word).documents == 10
        first = home.checkpoints()[0]
        for n in range(4, 12):
            site[f"/p{n}"] = page(f"p{n}", f"/p{n + 1}" if n < 11 else "/p0", body=text(f"other{n}"))
        go_on(home, first["checkpoint_number"], budget=3)
        done = home.app.index.update(home.word)
        assert (done.deleted, done.newer) == (3, 0)
        said = {path: one["text"] for path, one in held(home, server).items()}
        assert "number1 is" in said["/p1"]
        assert "other5 is" in said["/p5"]
        assert "/p8" not in said, "it was undone"
        check(home, server)
        home.resume(budget=0)
        check(home, server)
        assert len(held(home, server)) == 12


@one_product
def test_while_the_crawl_runs(home: Home, server: SearchServer) -> None:
    site = Site(linked_site(150), latency=(0.005, 0.02))
    with site.serve() as served, home.running("crawl", served.url("/"), "--delay", "0"):
        wait_until(lambda: len(served.log) > 20)
        counts = []
        while home.app.workspace.is_running(home.app.workspace.find(home.word)):
            counts.append(home.app.index.update(home.word).documents)
        counts.append(home.app.index.update(home.word).documents)
    assert counts == sorted(counts)
    assert counts[-1] == 150
    assert len(held(home, server)) == 150


# ---- trouble


def test_the_server_dies(home: Home, server: SearchServer) -> None:
    """Before it took something and after; it goes on when it is back."""
    with Site(linked_site(60)).serve() as served:
        home.crawl(served.url("/"), workers=20)
        for when in ("before", "after"):
            home.app.index.update(home.word)
            home.recrawl("full")
            server.fail(die=when)
            with pytest.raises(Unreachable, match=r"cannot be told now: .*; \d+ entries .* left for the next time"):
                home.app.index.update(home.word)
            assert home.app.index.status(home.word).behind >= 60
            assert not server.is_alive
            server.kill()
            server.start()
            assert home.app.index.update(home.word).indexed == 60
            assert {one["run"] for one in held(home, server).values()} == {home.status()["run"]}
    check(home, server)


@one_product
def test_we_die(home: Home, server: SearchServer) -> None:
    """Whatever the server was told before, nothing is missing and nothing is left over."""
    with Site(linked_site(700)).serve() as served:
        home.crawl(served.url("/"), workers=20, checkpoint_every=100)
        for _ in range(3):
            told = len(server.bulks())
            with home.running("index", home.word, "--json", INCHWORM_INDEX=server.url) as process:
                wait_until(lambda: len(server.bulks()) > told or process.poll() is not None)  # noqa: B023
                process.send_signal(signal.SIGKILL)
                process.communicate(timeout=60)
        go_on(home, home.checkpoints()[0]["checkpoint_number"], budget=1)
    check(home, server)


@one_product
def test_we_die_before_we_know_and_then_it_is_undone(home: Home, server: SearchServer) -> None:
    with Site(linked_site(40)).serve() as served:
        home.crawl(served.url("/"), workers=20, checkpoint_every=10)
        server.fail(delay=600)
        with home.running("index", home.word, "--json", INCHWORM_INDEX=server.url) as process:
            wait_until(server.received)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        go_on(home, home.checkpoints()[0]["checkpoint_number"], budget=1)
    check(home, server)


def test_what_the_server_does_not_take_is_set_aside(home: Home, server: SearchServer) -> None:
    with Site(linked_site(9)).serve() as served:
        home.crawl(served.url("/"))
        server.fail(item_status=400, every=3, type="document_parsing_exception")
        done = home.app.index.update(home.word)
        assert (done.indexed, done.set_aside, done.behind) == (6, 3, 0)
        listed = home.ask("index", home.word, "--set-aside")["set_aside"]
        assert [one["reason"] for one in listed] == ["document_parsing_exception: rejected"] * 3
        assert {one["url"] for one in listed}.isdisjoint(server.documents(name_of(home)))
        assert listed[0]["url"] in home.cli("index", home.word, "--set-aside").stdout
        assert home.app.index.update(home.word).indexed == 0, "they do not change by themselves"
        home.recrawl("full")
        assert home.app.index.update(home.word).indexed == 9
        assert home.app.index.set_aside(home.word) == []
        assert "Nothing of" in home.cli("index", home.word, "--set-aside").stdout


@pytest.mark.parametrize("loss", ["their index", "our file", "our file damaged"])
def test_what_was_lost_is_told_anew(home: Home, server: SearchServer, loss: str) -> None:
    with Site(linked_site(20)).serve() as served:
        home.crawl(served.url("/"), checkpoint_every=5)
        home.app.index.update(home.word)
        go_on(home, home.checkpoints()[1]["checkpoint_number"], budget=1)
    if loss == "their index":
        server.delete(name_of(home))
    else:
        path = home.app.workspace.place(home.app.workspace.find(home.word)).folder / "index.db"
        path.unlink() if loss == "our file" else path.write_bytes(b"rubbish " * 10_000)
    assert home.app.index.update(home.word).indexed == len(held(home, server)) > 5
    check(home, server)


def test_an_index_that_is_deleted_while_we_fill_it(
    home: Home, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_CHUNK", 10)
    with Site(linked_site(30)).serve() as served:
        home.crawl(served.url("/"))
    deleted = []

    def progress(done: int, total: int) -> None:
        if done > 10 and not deleted:
            deleted.append(done)
            server.delete(name_of(home))

    assert home.app.index.update(home.word, progress=progress).documents == 30
    assert deleted
    assert len(held(home, server)) == 30


@one_product
def test_an_index_of_somebody_else_is_left_alone(home: Home, server: SearchServer) -> None:
    with Site({"/": page("start")}).serve() as served:
        home.crawl(served.url("/"), name="docs")
    server.create("docs_raw_content", {"mappings": {"properties": {"x": {"type": "keyword"}}}})
    for rebuild in (False, True):
        with pytest.raises(WrongUse, match="it is not this crawl's"):
            home.app.index.update(home.word, rebuild)
    server.delete("docs_raw_content")
    assert home.app.index.update(home.word).indexed == 1


@one_product
def test_two_processes_at_once(home: Home, server: SearchServer) -> None:
    with Site(linked_site(5)).serve() as served:
        home.crawl(served.url("/"))
    with stored.locked(home.app.workspace.place(home.app.workspace.find(home.word)).folder):
        assert "Another process is indexing" in home.cli("index", home.word, code=1).stderr
    assert home.app.index.update(home.word).documents == 5


# ---- what people see


@one_product
def test_people_are_told(home: Home, server: SearchServer) -> None:
    with Site(linked_site(3)).serve() as served:
        home.crawl(served.url("/"))
        assert json_form(home.app.index.status(home.word)) == {
            "crawl_id": home.app.workspace.find(home.word).crawl_id,
            "name": home.app.workspace.find(home.word).name,
            "index": name_of(home),
            "server": None,
            "documents": 0,
            "set_aside": 0,
            "behind": None,
            "up_to_date_at": None,
        }
        shown = home.cli("index", home.word).stdout
        assert shown == f"3 indexed, 0 deleted: {name_of(home)} on {server.url} has 3 documents.\n"
        server.fail(item_status=400)
        assert "3 set aside, for the server does not take them" in home.cli("index", home.word, "--rebuild").stdout
        status = home.app.index.status(home.word)
        assert (status.server, status.behind, bool(status.up_to_date_at)) == (server.url, 0, True)
        home.recrawl("full")
        server.fail(item_status=409)
        assert "newer ones from elsewhere" in home.cli("index", home.word).stdout
        server.kill()
        said = home.cli("index", home.word, "--rebuild", code=1).stderr
    assert "cannot be told now: the connection is refused" in said
    assert "Nothing is lost" in said


@one_product
def test_there_must_be_a_server(home: Home, server: SearchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site(linked_site(3)).serve() as served:
        home.crawl(served.url("/"))
    monkeypatch.delenv("INCHWORM_INDEX")
    assert "No search server is set" in home.cli("index", home.word, code=2).stderr
    monkeypatch.setenv("INCHWORM_INDEX", "ftp://nowhere")
    assert "not the address of a search server" in home.cli("index", home.word, code=2).stderr
    monkeypatch.delenv("INCHWORM_INDEX")
    monkeypatch.setenv("INCHWORM_INDEX", server.url)
    assert home.app.index.update(home.word).indexed == 3


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_passwords_are_neither_kept_nor_shown(
    home: Home, tmp_path: Path, product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing.Indexer, "waits", ())
    with (
        SearchServer(tmp_path / "locked", product, user="ada:s3cr3t") as server,
        Site(linked_site(3)).serve() as served,
    ):
        home.crawl(served.url("/"), index=server.url)
        with pytest.raises(WrongUse, match="wants a user and a password, which are not kept"):
            home.app.index.update(home.word)
        monkeypatch.setenv("INCHWORM_INDEX", server.url)
        shown = home.cli("index", home.word, "--json").stdout + home.cli("show-settings", home.word, "--json").stdout
        assert home.ask("show-settings", home.word)["index"] == f"http://…@127.0.0.1:{server.port}"
        monkeypatch.setenv("INCHWORM_INDEX", server.url.replace("s3cr3t", "wr0ng"))
        refused = home.cli("index", home.word, code=2).stderr
        assert "refuses this user and password (status 401)" in refused
    assert not any(secret in shown + refused for secret in ("s3cr3t", "wr0ng"))
    assert b"s3cr3t" not in everything_written(home.folder)


# ---- beside a session


def beside(
    home: Home, address: str, session: Callable[[], Awaitable[Any]], hurry: bool = False, **options: Any
) -> indexing.Report:
    async def work() -> indexing.Report:
        async with indexed(home.app.workspace, home.app.workspace.find(home.word), address, **options) as report:
            await session()
            report.hurry = hurry
        return report

    return asyncio.run(work())


@one_product
def test_a_session_is_followed(home: Home, server: SearchServer) -> None:
    with Site(linked_site(60), latency=(0.01, 0.03)).serve() as served:
        home.crawl(served.url("/"), budget=1)
        given = {"delay": 0, "allow_private": True, "budget": 0}
        report = beside(
            home, server.url, lambda: home.app.sessions.work(home.app.plan.resume(home.word, given)), every=0.1
        )
    assert (report.note, report.indexed >= 60, report.set_aside) == ("", True, 0)
    assert len(held(home, server)) == 60
    check(home, server)


def go_on_beside(home: Home, address: str, **options: Any) -> indexing.Report:
    """The rest of a crawl that was begun."""
    with Site(linked_site(5)).serve() as served:
        home.crawl(served.url("/"), budget=1)
        given = {"delay": 0, "allow_private": True, "budget": 0}
        report = beside(
            home, address, lambda: home.app.sessions.work(home.app.plan.resume(home.word, given)), **options
        )
    assert home.status()["run_state"] == "completed"
    return report


@one_product
def test_without_a_server_nothing_is_told(home: Home, server: SearchServer) -> None:
    assert go_on_beside(home, "") == indexing.Report()
    assert not server.bulks()


def test_trouble_is_a_note_and_no_error(home: Home, tmp_path: Path, product: str) -> None:
    with SearchServer(tmp_path / "locked", product, user="ada:s3cr3t") as server:
        report = go_on_beside(home, server.url.replace("s3cr3t", "wr0ng"))
    assert "refuses this user and password" in report.note
    assert "wr0ng" not in report.note


@one_product
def test_who_wants_to_end_does_not_wait_for_the_server(
    home: Home, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Less than a process takes to start: one that has given up by itself says something else.
    monkeypatch.setattr(indexing, "HURRY_SECONDS", 0.05)
    server.fail(status=503, times=1000)
    report = go_on_beside(home, server.url, hurry=True)
    assert report.note == f"The index is not up to date: inchworm index {home.word} goes on with it."
    server.fail(times=0)
    assert home.app.index.update(home.word).documents == 5


@one_product
def test_a_session_that_fails_is_not_waited_for(home: Home, server: SearchServer) -> None:
    async def fail() -> None:
        raise WrongUse("This went wrong.")

    with Site(linked_site(5)).serve() as served:
        home.crawl(served.url("/"))
    with pytest.raises(WrongUse, match="This went wrong"):
        beside(home, server.url, fail)
    assert not server.bulks()


@one_product
def test_a_password_that_was_not_kept_comes_from_the_environment(
    home: Home, tmp_path: Path, product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SearchServer(tmp_path / "locked", product, user="ada:s3cr3t") as server:
        masked = server.url.replace("ada:s3cr3t", "…")
        with pytest.raises(WrongUse, match="which are not kept"):
            go_on_beside(home, masked)
        monkeypatch.setenv("INCHWORM_INDEX", server.url)
        home.app.configure.delete(home.word)
        assert go_on_beside(home, masked).indexed == 5


@one_product
@pytest.mark.parametrize("address", ["ftp://x", "http://", "nonsense nonsense"])
def test_a_wrong_address_is_said_before_anything_begins(home: Home, server: SearchServer, address: str) -> None:
    with Site(linked_site(5)).serve() as served:
        home.crawl(served.url("/"), budget=1)
    with pytest.raises(WrongUse, match="not the address of a search server"):
        beside(home, address, lambda: home.app.sessions.work(home.app.plan.resume(home.word)))
    assert home.status()["run_state"] == "paused"


def test_a_crawl_with_a_server_is_indexed_by_itself(home: Home, server: SearchServer) -> None:
    with Site(linked_site(12)).serve() as served:
        summary = home.crawl(served.url("/"), index=server.url)
        assert (summary.indexed, summary.note) == (12, "")
        assert len(held(home, server)) == 12
        server.kill()
        summary = home.recrawl("full", index=server.url)
    assert summary.run_state == "completed", "a server that is down is no trouble of the crawl's"
    assert "refused" in summary.note


@one_product
def test_how_far_the_server_has_been_told(home: Home, server: SearchServer) -> None:
    with Site(linked_site(4)).serve() as served:
        home.crawl(served.url("/"))
    assert home.ask("index", home.word, "--status")["documents"] == 0
    home.app.index.update(home.word)
    found = home.ask("index", home.word, "--status")
    assert (found["documents"], found["behind"], found["server"]) == (4, 0, server.url)
    assert "documents" in home.cli("index", home.word, "--status").stdout


# ---- the frame of a host


@one_product
def test_the_server_is_told_again_of_pages_with_another_frame(home: Home, server: SearchServer) -> None:
    """And of no others: their documents keep the version that they have."""
    site = shop(dict.fromkeys(SUBJECTS[:9], NOTICE))
    with Site(site).serve() as served:
        home.crawl(served.url("/"), budget=14, sitemap=False)
        home.app.index.update(home.word)
        assert said_of(home, server) == set(SUBJECTS[:9])
        home.resume(budget=0)
        done = home.app.index.update(home.word)
        assert said_of(home, server) == set()
        assert done.documents == len(SUBJECTS) + 1
        assert done.indexed < done.documents, "those that have it, and those that are new"
        check(home, server)
        site.update(shop(dict.fromkeys(SUBJECTS[:3], NOTICE)))
        home.recrawl()
        home.app.index.update(home.word)
        assert said_of(home, server) == set(SUBJECTS[:3]), "it stands on few pages now"
        check(home, server)
        home.cli("configure", home.word, "--frame", "keep")
        assert home.app.index.update(home.word).indexed == 0, "nothing was left out"


@one_product
def test_a_crawl_may_tell_all(home: Home, server: SearchServer) -> None:
    with Site(shop(dict.fromkeys(SUBJECTS[:9], NOTICE))).serve() as served:
        home.crawl(served.url("/"))
    for choice, said in (("drop", set()), ("keep", set(SUBJECTS[:9])), ("drop", set())):
        home.cli("configure", home.word, "--frame", choice)
        done = home.app.index.update(home.word)
        assert said_of(home, server) == said
        assert done.indexed == (9 if done.documents > 9 and choice == "keep" else done.indexed)


def said_of(home: Home, server: SearchServer) -> set[str]:
    return {path[1:] for path, document in held(home, server).items() if NOTICE in document["text"]}
