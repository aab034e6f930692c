"""Whatever the command line can do to a crawl, the library can do, with answers that have types."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from tests.flow.crawling import chain, page, path_of

from inchworm import Crawl, told
from inchworm.cli.commands import main
from inchworm.errors import InchwormError, NotNow, Owned, Unknown, WrongUse
from inchworm.testing import Page as Answer
from inchworm.testing import Served, Site

METHODS = {
    "crawl": "run",
    "resume": "run",
    "recrawl": "run",
    "pause": "pause",
    "cancel": "cancel",
    "status": "status",
    "runs": "runs statistics make_line",
    "compare": "compare",
    "diff": "diff",
    "feed": "feed",
    "checkpoint": "checkpoint",
    "checkpoints": "checkpoints delete_checkpoint keep_checkpoints export_checkpoint",
    "continue": "go_back branch",
    "show": "show page",
    "why": "why",
    "failed": "failed",
    "retry": "retry",
    "queue": "queue entries add take_out dismiss clear_queue",
    "search": "search",
    "index": "index",
    "report": "report",
    "extract": "extract try_fields rows field_errors",
    "export": "export pages to_arrow to_batches to_pandas to_polars urls visits",
    "show-settings": "settings",
    "configure": "configure",
    "delete": "delete",
}
"""The methods that do what a command does."""

NOT_OF_ONE_CRAWL = {
    "read": "one page, without a crawl: `inchworm.read` reads what was fetched otherwise",
    "map": "one site, without a crawl",
    "list": "of a home",
    "notifications": "of a home",
    "jobs": "of a home, and run by the service",
    "serve": "a program of its own",
    "token": "for the service",
    "doctor": "of a machine and a home",
    "repeat": "a loop around `run`, which a program writes as it needs it",
    "demo": "for people",
    "demo-serve": "for people",
}


def test_every_command_that_is_about_a_crawl_is_a_method() -> None:
    assert METHODS.keys() | NOT_OF_ONE_CRAWL.keys() == set(main.list_commands())
    listed = {name for names in METHODS.values() for name in names.split()}
    public = {name for name in vars(Crawl) if not name.startswith("_")} - {"run_sync"}
    assert listed == public


# Answers


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is what its type says, all the way down."""
    if kind is Any:
        return True
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        is_whole = isinstance(value, dict) and value.keys() == hints.keys()
        return is_whole and all(fits(value[name], hints[name]) for name in hints)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(fits(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is dict:
        key, item = get_args(kind)
        return isinstance(value, dict) and all(fits(a, key) and fits(b, item) for a, b in value.items())
    if isinstance(kind, UnionType):
        return any(fits(value, one) for one in get_args(kind))
    if kind is float:
        return isinstance(value, (int, float))
    return value is None if kind is type(None) else type(value) is kind


@pytest.fixture
def pages() -> dict[str, Any]:
    return {**chain(6), "/c2": page("c2", "/c3", "/copy", "/gone", "/c2?x=1", "http://elsewhere.example/"), "/copy": ""}


@pytest.fixture
def served(pages: dict[str, Any]) -> Iterator[Served]:
    pages["/copy"] = pages["/c2"]
    with Site(pages).serve() as serving:
        yield serving


@pytest.fixture
def crawl(tmp_path: Path, served: Served) -> Crawl:
    return made(tmp_path, served)


def made(home: Path, served: Served, **given: Any) -> Crawl:
    return Crawl(served.url("/c0"), home=home, **{"delay": 0, "scope": "host", "sitemap": False, **given})


def test_answers_are_what_their_types_say(crawl: Crawl, tmp_path: Path, served: Served, pages: dict[str, Any]) -> None:
    made(tmp_path, served, budget=2).run_sync()
    answers = [(crawl.status(), told.Status), (crawl.queue(), told.Queue)]
    crawl.run_sync()
    crawl.run_sync(mode="full")
    url = served.url("/c2")
    pages["/c4"] = page("c4", "/c5", body="<p>Something else.</p>")
    crawl.run_sync()
    assert "Something else." in str(crawl.compare()["modified_groups"])
    assert b"Something else." in crawl.feed()
    answers += [
        (crawl.status(), told.Status),
        (crawl.runs(), list[told.Run]),
        (crawl.compare(), told.Comparison),
        (crawl.diff(url), told.Diff),
        (crawl.search("sentence"), told.Results),
        (crawl.why(url), told.Why),
        (crawl.why("http://elsewhere.example/"), told.Why),
        (crawl.failed(), list[told.Visit]),
        (list(crawl.visits()), list[told.Visit]),
        (list(crawl.visits(0)), list[told.Visit]),
        (crawl.checkpoint(), told.Checkpoint),
        (crawl.checkpoints(), list[told.Checkpoint]),
        (crawl.queue(), told.Queue),
        (crawl.entries(), list[told.Entry]),
        (crawl.add(served.url("/new")), told.Added),
    ]
    for value, kind in answers:
        assert value
        assert fits(value, kind), (kind, value)
    assert [one["failure"] for one in crawl.failed()] == ["http_4xx"]
    assert crawl.failed("dns") == []
    assert not fits({"url": 1}, told.Why)
    assert not fits({**crawl.why(url), "state": None}, told.Why)


def test_the_types_are_those_of_a_strict_program(tmp_path: Path) -> None:
    """mypy, as a user runs it over a program of his own; and over our examples."""
    program = """
from inchworm import Crawl, Element, Exported, Page, Progress, Summary, read

def look(page: Page) -> None:
    print(page.url.upper(), page.text.split(), page.bytes or 0 + 1, page.seconds or 0.0)
    cells: list[Element] = page.css("td")
    print([cell.text for cell in cells], cells[0].attributes["class"].split())
    before = page.previous
    print(before.title if before is not None else "", page.diff()[0].strip())

def moved(now: Progress) -> None:
    print(now.pages / 2, now.bytes, now.in_flight[0].upper())

crawl = Crawl("https://example.org", budget=3)
summary: Summary = crawl.run_sync(look, moved, start="next", mode="full")
print(summary.pages + 1, crawl.status()["sessions"][0]["bytes"] + 1, crawl.runs()[0]["saved_bytes"] + 1)
for page in crawl.pages(only=("new", "modified"), since="yesterday"):
    look(page)
done: Exported = crawl.export("jsonl", "pages.jsonl", columns=["url"], with_="text")
print(done.count + 1, crawl.search("x")["results"][0]["title"].upper(), crawl.why("u")["why"].upper())
for visit in crawl.visits():
    print(visit["fetched_at"].upper(), visit["bytes"] or 1 + 1)
print(read(b"").text.upper())
"""
    (tmp_path / "program.py").write_text(program)
    wrong = program + '\ncrawl.run_sync(start="nonsense")\ncrawl.pages(columns="x")\ncrawl.status()["size"]\n'
    (tmp_path / "wrong.py").write_text(wrong)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    examples = [str(path) for path in (Path(__file__).parents[2] / "examples").glob("*.py")]
    done = subprocess.run(
        [*command, "program.py", *examples], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*command, "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.count("error:") == 3, done.stdout


# Checkpoints


def test_going_back_and_crawling_on(crawl: Crawl, tmp_path: Path, served: Served) -> None:
    made(tmp_path, served, budget=2).run_sync()
    (point,) = crawl.checkpoints()
    number = point["checkpoint_number"]
    whole = crawl.run_sync()
    urls = list(crawl.urls())
    kept = list(crawl.pages())
    for _ in range(2):
        assert crawl.go_back(number) == 0
        assert (crawl.status()["run_state"], len(list(crawl.urls()))) == ("paused", 2)
    assert [page.is_lost for page in kept][:2] == [False, False]
    assert kept[-1].is_lost, "it is not there any more"
    assert crawl.run_sync().pages == whole.pages
    assert list(crawl.urls()) == urls
    assert crawl.go_back(point["checkpoint_id"]) == 0, "by its id"
    with pytest.raises(Unknown, match="no checkpoint '77'"):
        crawl.go_back(77)
    assert crawl.run_sync().run == 0
    crawl.run_sync()
    with pytest.raises(NotNow, match="cannot go back any more"):
        crawl.go_back(number)


def test_a_branch_runs_with_settings_of_its_own(crawl: Crawl, tmp_path: Path, served: Served) -> None:
    made(tmp_path, served, budget=2).run_sync()
    number = crawl.checkpoints()[0]["checkpoint_number"]
    crawl.run_sync()
    branch = crawl.branch(number, max_depth=2)
    assert branch.status()["branch_of"] == 0
    summary = branch.run_sync()
    assert (summary.run, summary.branch_of, summary.run_state) == (1, 0, "completed")
    assert "/c3" not in [path_of(url) for url in branch.urls(1)]
    assert crawl.compare(0, 1)["unknown_documents"]
    branch.make_line(1)
    assert crawl.status()["line_end"] == 1
    with pytest.raises(WrongUse, match="nonsense"):
        crawl.branch(number, nonsense=1)
    with pytest.raises(Unknown):
        crawl.branch(99)


def test_checkpoints_are_kept_deleted_and_written(crawl: Crawl, tmp_path: Path, served: Served) -> None:
    for _ in range(3):
        made(tmp_path, served, budget=1).run_sync()
    first, *others = [one["checkpoint_number"] for one in crawl.checkpoints()]
    target = tmp_path / "state.json.gz"
    assert crawl.export_checkpoint(first, target) > 0
    assert json.loads(gzip.decompress(target.read_bytes()))["crawled_urls"] == [served.url("/c0")]
    crawl.delete_checkpoint(first)
    assert [one["checkpoint_number"] for one in crawl.checkpoints()] == others
    assert crawl.keep_checkpoints(1) == 1
    assert len(crawl.checkpoints()) == 1


# The rest


def test_what_failed_can_be_tried_again(crawl: Crawl, served: Served, pages: dict[str, Any]) -> None:
    crawl.run_sync()
    pages["/gone"] = page("gone")
    assert (crawl.retry(kind="dns"), crawl.retry(kind="http_4xx")) == (0, 1)
    assert crawl.status()["run_state"] == "paused"
    assert crawl.run_sync().failed == 0
    assert crawl.page(served.url("/gone")).title == "gone"


def test_the_frontier_by_hand(crawl: Crawl, tmp_path: Path, served: Served, pages: dict[str, Any]) -> None:
    made(tmp_path, served, budget=1).run_sync()
    pages["/by-hand"] = page("by hand")
    assert crawl.add(served.url("/by-hand"))["added"]
    assert [one["url"] for one in crawl.entries(state="pending")] == [served.url("/c1"), served.url("/by-hand")]
    crawl.take_out(served.url("/c1"))
    assert crawl.run_sync().pages == 2
    assert crawl.why(served.url("/c1"))["reason"] == "cleared"
    assert [one["reason"] for one in crawl.entries(reason="cleared")] == ["cleared"]
    made(tmp_path, served, budget=3).run_sync()
    assert crawl.clear_queue() > 0
    assert crawl.status()["run_state"] == "completed"


def test_a_link_is_dismissed(crawl: Crawl) -> None:
    crawl.run_sync()
    crawl.dismiss("http://elsewhere.example/")
    assert crawl.why("http://elsewhere.example/")["reason"] == "cleared"


def test_a_run_is_cancelled_and_a_crawl_deleted(crawl: Crawl, tmp_path: Path, served: Served) -> None:
    made(tmp_path, served, budget=1).run_sync()
    assert crawl.cancel() == "cancelled"
    with pytest.raises(NotNow, match="no open run"):
        crawl.cancel()
    crawl.delete()
    with pytest.raises(Unknown, match="has not been crawled"):
        crawl.status()


def test_settings_of_a_crawl(crawl: Crawl, served: Served) -> None:
    crawl.run_sync()
    crawl.configure(budget=2, name="the manual")
    assert (crawl.settings()["budget"], crawl.status()["name"]) == (2, "the manual")
    assert crawl.run_sync().ended_by == "budget"
    crawl.configure(budget=None)
    assert crawl.settings()["budget"] == 0
    with pytest.raises(WrongUse):
        crawl.configure(budget="many")


def test_a_crawl_keeps_its_name_when_it_gets_another(tmp_path: Path, served: Served) -> None:
    named = made(tmp_path, served, name="one")
    named.run_sync()
    named.configure(name="two")
    assert named.status()["name"] == "two"


def test_reports_and_statistics(crawl: Crawl, served: Served) -> None:
    crawl.run_sync()
    crawl.run_sync()
    assert crawl.report("broken-links")["rows"][0]["url"] == served.url("/gone")
    assert crawl.report("duplicates", run=0)["count"] == 1
    assert crawl.statistics()["iterations"] == 1
    assert crawl.show(served.url("/c1"))["visits"][0]["title"] == "/c1"
    with pytest.raises(WrongUse, match="no report"):
        crawl.report("nonsense")
    with pytest.raises(InchwormError):
        crawl.index()


def test_one_at_a_time(tmp_path: Path, served: Served, pages: dict[str, Any]) -> None:
    """What changes a crawl is refused while somebody works on it."""
    pages["/c1"] = Answer(page("c1"), delay=0.3)
    refused: list[InchwormError] = []
    crawl = made(tmp_path, served, workers=1)

    def interfere(_: object) -> None:
        for act in (lambda: crawl.go_back(0), crawl.clear_queue, crawl.branch):
            try:
                act()
            except InchwormError as error:
                refused.append(error)

    crawl.run_sync(on_page=lambda shown: interfere(shown) if path_of(shown.url) == "/c0" else None)
    assert [type(error) for error in refused] == [Owned] * 3
