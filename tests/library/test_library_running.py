"""Running a crawl from a program: with and without an event loop, watched, and interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.flow.crawling import PATIENCE, chain, page, wait_until

from inchworm import Crawl, Page, Progress, Summary
from inchworm.errors import InchwormError, NotNow, WrongUse
from inchworm.testing import Page as Answer
from inchworm.testing import Served, Site


@pytest.fixture
def served() -> Iterator[Served]:
    with Site(chain(12)).serve() as serving:
        yield serving


def made(home: Path, served: Served, path: str = "/c0", **given: object) -> Crawl:
    return Crawl(served.url(path), home=home, **{"delay": 0, "scope": "host", "sitemap": False, **given})


def under_a_loop(work: Callable[[], Summary]) -> Summary:
    """As a cell of a notebook does it: plain code, called by an event loop that runs."""

    async def cell() -> Summary:
        await asyncio.sleep(0)
        return work()

    return asyncio.run(cell())


# Under a running event loop


def test_run_sync_works_under_a_running_event_loop(tmp_path: Path, served: Served) -> None:
    crawl = made(tmp_path, served)
    summary = under_a_loop(crawl.run_sync)
    assert (summary.run_state, summary.pages) == ("completed", 12)
    assert [one.name for one in threading.enumerate() if one.name == "inchworm"] == []


def test_callbacks_are_called_in_the_caller_s_thread(tmp_path: Path, served: Served) -> None:
    """Where a connection of SQLite, or a window, may be used."""
    seen: list[str] = []
    table = sqlite3.connect(":memory:")
    table.execute("CREATE TABLE page (url TEXT, text TEXT)")

    def keep(found: Page) -> None:
        table.execute("INSERT INTO page VALUES (?, ?)", (found.url, found.text))

    crawl = made(tmp_path, served)
    under_a_loop(lambda: crawl.run_sync(keep, on_progress=lambda now: seen.append(threading.current_thread().name)))
    assert table.execute("SELECT COUNT(*), COUNT(NULLIF(text, '')) FROM page").fetchone() == (12, 12)
    assert set(seen) == {threading.main_thread().name}
    table.close()


def test_large_documents_are_read_beside_a_loop_too(tmp_path: Path) -> None:
    """They take a process, which takes a loop that can wait for it."""
    body = page("large", body="<p>Many words. </p>" * 60_000)
    with Site({"/": body}).serve() as served:
        texts: list[str] = []
        under_a_loop(lambda: made(tmp_path, served, "/").run_sync(lambda found: texts.append(found.text)))
    assert [len(text) > 500_000 for text in texts] == [True]


class Wrong(Exception):
    """What goes wrong in a callback of the user's."""


@pytest.mark.parametrize("is_nested", [False, True])
def test_what_a_callback_raises_comes_out(tmp_path: Path, served: Served, is_nested: bool) -> None:
    def fail(found: Page) -> None:
        raise Wrong(found.url)

    crawl = made(tmp_path, served)
    with pytest.raises(Wrong):
        under_a_loop(lambda: crawl.run_sync(fail)) if is_nested else crawl.run_sync(fail)
    assert crawl.status()["run_state"] == "paused"
    assert crawl.run_sync().pages == 12


def test_errors_come_out_of_the_thread(tmp_path: Path, served: Served) -> None:
    with pytest.raises(NotNow, match="no paused run to resume"):
        crawl = made(tmp_path, served)
        crawl.run_sync()
        under_a_loop(lambda: crawl.run_sync(start="resume"))
    with pytest.raises(InchwormError, match="no setting"):
        under_a_loop(made(tmp_path, served, nonsense=1).run_sync)


def test_a_notebook(tmp_path: Path, served: Served) -> None:
    """A real kernel, which runs its cells in an event loop of its own."""
    nbformat = pytest.importorskip("nbformat")
    code = f"""
    from inchworm import Crawl
    crawl = Crawl({served.url("/c0")!r}, home={str(tmp_path / "home")!r}, delay=0, scope="host")
    summary = crawl.run_sync(on_page=lambda page: print(page.title))
    print(summary.run_state, sum(len(page.text) for page in crawl.pages()) > 1000)
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(map(str.strip, code.split("\n"))))])
    kernels = tmp_path / "kernels" / "kernels" / "here"
    kernels.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernels / "kernel.json").write_text(
        f'{{"argv": {command!r}, "display_name": "here", "language": "python"}}'.replace("'", '"')
    )
    run = (
        "import sys, nbformat, nbclient; book = nbformat.reads(sys.stdin.read(), 4);"
        "nbclient.NotebookClient(book, timeout=60, kernel_name='here').execute();"
        "print(''.join(out.get('text', '') for out in book.cells[0].outputs))"
    )
    environment = {**os.environ, "JUPYTER_PATH": str(tmp_path / "kernels"), "HOME": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", run],
        input=nbformat.writes(notebook),
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "completed True" in told.stdout
    assert "/c11" in told.stdout


# Interrupted

PROGRAM = """
import asyncio, sys
from inchworm import Crawl

crawl = Crawl(sys.argv[1], home=sys.argv[2], delay=0, scope="host", sitemap=False, workers=1)

def work():
    try:
        crawl.run_sync(on_page=lambda page: print(page.url, flush=True))
    except KeyboardInterrupt:
        print("interrupted", crawl.status()["run_state"], crawl.status()["ended_by"], flush=True)

async def cell():
    work()

asyncio.run(cell()) if sys.argv[3] == "nested" else work()
"""


@pytest.mark.parametrize("how", ["nested", "plain"])
def test_ctrl_c_pauses_the_crawl(tmp_path: Path, how: str) -> None:
    pages = {path: Answer(text, delay=0.2) for path, text in chain(200).items()}
    with Site(pages).serve() as served:
        command = [sys.executable, "-c", PROGRAM, served.url("/c0"), str(tmp_path), how]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                first = [process.stdout.readline() for _ in range(2)]
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            finally:
                process.kill()
        assert out.splitlines()[-1] == "interrupted paused paused", (first, out, err)
        crawl = Crawl(served.url("/c0"), home=tmp_path, delay=0, scope="host", sitemap=False)
        (session,) = crawl.status()["sessions"]
        assert (session["state"], session["ended_by"]) == ("completed", "paused")
        assert 2 <= crawl.status()["pages"] < 200
        assert crawl.status()["requests"] == len([path for path in served.paths() if path.startswith("/c")])


def test_ctrl_c_in_a_callback_pauses_it_too(tmp_path: Path, served: Served) -> None:
    def interrupt(found: Page) -> None:
        if found.url.endswith("/c3"):
            raise KeyboardInterrupt

    crawl = made(tmp_path, served)
    with pytest.raises(KeyboardInterrupt):
        under_a_loop(lambda: crawl.run_sync(interrupt))
    assert (crawl.status()["run_state"], crawl.status()["ended_by"]) == ("paused", "paused")
    assert crawl.run_sync().pages == 12


def test_to_cancel_is_to_pause(tmp_path: Path) -> None:
    pages = {path: Answer(text, delay=0.1) for path, text in chain(200).items()}
    with Site(pages).serve() as served:
        crawl = made(tmp_path, served)

        async def give_up() -> None:
            seen = asyncio.Event()
            working = asyncio.create_task(crawl.run(on_page=lambda _: seen.set()))
            await seen.wait()
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as limit:
                    await crawl.run(on_page=lambda _: limit.expired() or limit.reschedule(0))

        asyncio.run(give_up())
    told = crawl.status()
    assert told["run_state"] == "paused"
    assert [one["ended_by"] for one in told["sessions"]] == ["paused", "paused"]
    assert told["lost_files"] == []


# Watched


def test_a_page_is_shown_when_it_is_on_record(tmp_path: Path) -> None:
    pages = {**chain(3), "/c1": page("c1", "/c2", "/copy", "/gone"), "/copy": page("c1", "/c2", "/copy", "/gone")}
    with Site(pages, validators=True).serve() as served:
        crawl = made(tmp_path, served)
        shown: list[Page] = []
        recorded: list[int] = []

        def look(found: Page) -> None:
            shown.append(found)
            recorded.append(len(list(crawl.visits())))

        crawl.run_sync(look)
        assert [(one.url, one.outcome, one.status) for one in shown] == [
            (visit["url"], visit["outcome"], visit["status"]) for visit in crawl.visits()
        ]
        assert all(number >= one for one, number in enumerate(recorded, 1)), "committed before it is shown"
        by_path = {one.url.rpartition("/")[2]: one for one in shown}
        assert (by_path["gone"].failure, by_path["gone"].text, by_path["gone"].is_gone) == ("http_4xx", "", True)
        assert by_path["copy"].alternate_of == served.url("/c1")
        stored = {one.url: (one.text, one.markdown, one.title, one.seq, one.run) for one in crawl.pages()}
        live = {one.url: (one.text, one.markdown, one.title, one.seq, one.run) for one in shown if not one.is_gone}
        assert live == stored
        pages["/c2"] = page("c2", body="<p>News.</p>")
        shown.clear()
        crawl.run_sync(look)
        by_path = {one.url.rpartition("/")[2]: one for one in shown}
        assert (by_path["c1"].change, by_path["c2"].change) == ("unchanged", "modified")
        assert by_path["c1"].text, "which was not sent again"
        assert "+News." in by_path["c2"].diff()


@pytest.mark.parametrize("given", [{}, {"budget": 1}, {"robots": True}, {"max_age": 3600}])
def test_progress_is_told_at_the_end(tmp_path: Path, given: dict[str, object]) -> None:
    """Also of a crawl that is over before anybody looked, and of one that asks for nothing."""
    with Site({"/": page("home"), "/robots.txt": "User-agent: *\nDisallow: /"}).serve() as served:
        if "max_age" in given:
            made(tmp_path, served, "/", robots=False).run_sync()
        told: list[Progress] = []
        summary = made(tmp_path, served, "/", **{"robots": False, **given}).run_sync(on_progress=told.append)
    last = told[-1]
    names = ("known", "pending", "pages", "duplicates", "unchanged", "failed", "refused", "bytes", "order")
    assert {name: getattr(last, name) for name in names} == {name: getattr(summary, name) for name in names}
    assert (last.requests, last.in_flight) == (summary.fetched, ())
    assert summary.fetched == (0 if "robots" in given or "max_age" in given else 1)


def test_progress_is_told_at_the_end_when_it_goes_wrong(tmp_path: Path) -> None:
    with Site({"/": page("home", "/a"), "/a": page("a")}).serve() as served:
        told: list[Progress] = []

        async def work() -> None:
            working = asyncio.create_task(made(tmp_path, served, "/").run(on_progress=told.append))
            await asyncio.sleep(0)
            working.cancel()
            await working

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(work())
        assert not told or told[-1].is_ending


# Which run


def test_which_run_a_session_works_on(tmp_path: Path, served: Served) -> None:
    crawl = made(tmp_path, served)
    with pytest.raises(InchwormError):
        crawl.run_sync(start="resume")
    assert made(tmp_path, served, budget=2).run_sync().run_state == "paused"
    while (summary := crawl.run_sync(start="resume")).run_state == "paused":
        assert summary.run == 0
    assert summary.pages == 12
    with pytest.raises(NotNow, match="no paused run"):
        crawl.run_sync(start="resume")
    again = made(tmp_path, served, budget=2)
    assert again.run_sync(mode="full").mode == "full"
    summary = crawl.run_sync(start="next")
    assert (summary.run, summary.mode, summary.run_state) == (2, "incremental", "completed")
    again.run_sync()
    summary = crawl.run_sync(start="fresh")
    assert (summary.run, summary.mode, summary.parent) == (4, "baseline", None)
    assert [one["state"] for one in crawl.runs()] == ["completed", "completed", "completed", "cancelled", "completed"]


def test_what_is_no_run_is_refused(tmp_path: Path, served: Served) -> None:
    crawl = made(tmp_path, served)
    for wrong in ({"start": "again"}, {"mode": "half"}, {"start": "resume", "mode": "full"}):
        with pytest.raises(WrongUse):
            crawl.run_sync(**wrong)  # type: ignore[arg-type]
    assert served.log == []


def test_a_password_is_sent_however_it_goes_on(tmp_path: Path, served: Served) -> None:
    """It is kept nowhere, so that it has to come with each start."""
    seed = served.url("/c0").replace("://", "://user:secret@")
    crawl = Crawl(seed, home=tmp_path, delay=0, scope="host", sitemap=False, budget=3)
    assert "secret" not in repr(crawl)
    crawl.run_sync()
    while crawl.run_sync(start="resume").run_state == "paused":
        pass
    crawl.run_sync(start="next")
    pages = [hit for hit in served.log if hit.path.startswith("/c")]
    assert len(pages) >= 15
    assert all(hit.headers.get("authorization", "").startswith("Basic ") for hit in pages)


def test_a_crawl_by_its_name_alone(tmp_path: Path, served: Served) -> None:
    made(tmp_path, served, name="docs").run_sync()
    named = Crawl(name="docs", home=tmp_path, delay=0)
    assert named.status()["pages"] == 12
    assert named.run_sync().run == 1
    assert len(list(named.pages())) == 12
    with pytest.raises(InchwormError, match="no crawl called 'other'"):
        Crawl(name="other", home=tmp_path).status()
    with pytest.raises(InchwormError):
        Crawl(home=tmp_path).status()


def test_pausing_from_elsewhere(tmp_path: Path) -> None:
    pages = {path: Answer(text, delay=0.2) for path, text in chain(200).items()}
    with Site(pages).serve() as served:
        crawl = made(tmp_path, served)
        summaries: list[Summary] = []
        thread = threading.Thread(target=lambda: summaries.append(crawl.run_sync()))
        thread.start()
        wait_until(lambda: len(served.log) > 3)
        assert crawl.pause() == "paused"
        thread.join(PATIENCE)
    assert [one.ended_by for one in summaries] == ["paused"]
