"""What changed since a run or a date: whoever applies it to a table of its own has what a full export has.

`INCHWORM_TEST_HISTORIES=40` tries more of them.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from tests.flow.crawling import Home, page

from inchworm.app.act.content.export import moment
from inchworm.app.act.content.selection import ExportOptions
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.testing import Page, Served, Site

SEEDS = range(int(os.environ.get("INCHWORM_TEST_HISTORIES", "4")))
COLUMNS = ("url", "canonical_url", "title", "text", "change")
Table = dict[str, tuple[Any, ...]]
Chunks = dict[str, dict[str, tuple[Any, ...]]]


def rows(home: Home, **wanted: Any) -> list[dict[str, Any]]:
    return exported(home, "jsonl", ExportOptions(columns=COLUMNS, **wanted))


def exported(home: Home, format_name: str, wanted: ExportOptions) -> list[dict[str, Any]]:
    out = io.BytesIO()
    home.app.export.to_file(home.word, format_name, out, wanted)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def chunks(home: Home, **wanted: Any) -> list[dict[str, Any]]:
    return exported(home, "chunks", ExportOptions(chunk_size=80, **wanted))


def kept(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["url"], row["title"], row["text"])


def whole(home: Home) -> Table:
    return {row["canonical_url"]: kept(row) for row in rows(home)}


def apply(table: Table, changes: list[dict[str, Any]]) -> None:
    """What a consumer does."""
    for row in changes:
        if row["change"] == "deleted":
            table.pop(row["canonical_url"], None)
        else:
            table[row["canonical_url"]] = kept(row)


def replace_chunks(kept: Chunks, told: list[dict[str, Any]]) -> None:
    """What a consumer does that keeps chunks: what it has of a page makes way for what comes."""
    for url in {row["canonical_url"] for row in told}:
        kept.pop(url, None)
    for row in told:
        if row["text"] is not None:
            kept.setdefault(row["canonical_url"], {})[row["id"]] = (row["position"], row["headings"], row["text"])


class ChangingSite:
    """A site of a few dozen pages that is another one every time somebody looks."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.texts = {f"/p{number}": 0 for number in range(30)}
        self.pages: dict[str, Any] = {}
        self.write()

    def write(self) -> None:
        links = "".join(f"<a href='{path}'>{path}</a> " for path in self.texts)
        self.pages.clear()
        self.pages["/"] = f"<title>home</title><main><p>{'All pages. ' * 9}</p>{links}</main>"
        for path, version in self.texts.items():
            words = f"The page {path} in version {version}. " * 5
            self.pages[path] = f"<title>{path} {version}</title><main><p>{words}</p></main>"

    def change(self) -> None:
        for path in self.chance.sample(sorted(self.texts), 5):
            self.texts[path] += 1
        for path in self.chance.sample(sorted(self.texts), 3):
            del self.texts[path]
        for _ in range(3):
            self.texts[f"/n{self.chance.randrange(10_000)}"] = 0
        self.write()


class Consumer:
    """Keeps a table by what changed since the last run that it knows to be over."""

    def __init__(self) -> None:
        self.table: Table = {}
        self.chunks: Chunks = {}
        self.since: int | None = None
        self.told = 0

    def look(self, home: Home) -> None:
        if self.since is None:
            self.table, self.chunks = whole(home), {}
            replace_chunks(self.chunks, chunks(home))
        else:
            changes = rows(home, since=str(self.since))
            apply(self.table, changes)
            replace_chunks(self.chunks, chunks(home, since=str(self.since)))
            self.told += len(changes)
        self.since = home.app.export.next_since(home.word)


@pytest.fixture
def changing(request: pytest.FixtureRequest) -> Iterator[tuple[ChangingSite, Served]]:
    site = ChangingSite(getattr(request, "param", 0))
    with Site(site.pages).serve() as served:
        yield site, served


def sit(home: Home, served: Served, **given: Any) -> str:
    return str(home.crawl(served.url("/"), sitemap=False, **given).run_state)


def kill(home: Home, served: Served, chance: random.Random) -> None:
    words = ["crawl", served.url("/"), "--delay", "0", "--no-sitemap", "--json"]
    with home.running(*words, INCHWORM_FAULT=f"after_commit:{chance.randint(1, 15)}") as process:
        process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGKILL)


def go_back(home: Home, served: Served, chance: random.Random, *options: str) -> None:
    """To some checkpoint of the last run, or from there into a branch."""
    points = [one["checkpoint_number"] for one in home.checkpoints() if one["can_resume"]]
    if points:
        home.cli("continue", home.word, "--checkpoint", str(chance.choice(points[-4:])), *options, code=None)


@pytest.mark.parametrize("changing", SEEDS, indirect=True)
def test_a_consumer_that_applies_changes_has_what_a_full_export_has(
    home: Home, changing: tuple[ChangingSite, Served]
) -> None:
    site, served = changing
    chance, consumer = site.chance, Consumer()
    for _ in range(10):
        event = chance.choice(["plain", "kill", "budget", "back", "branch", "line"])
        if event == "kill":
            kill(home, served, chance)
            consumer.look(home)
        elif event == "budget":
            sit(home, served, budget=chance.randint(1, 20), checkpoint_every=5)
            consumer.look(home)
            site.change() if chance.random() < 0.5 else None
        while sit(home, served, checkpoint_every=5) == "paused":
            pass
        consumer.look(home) if chance.random() < 0.7 else None
        if event in ("back", "branch", "line"):
            site.change() if chance.random() < 0.5 else None
            go_back(home, served, chance, *(["--as-new-run"] if event != "back" else []))
            consumer.look(home) if chance.random() < 0.5 else None
        if event == "line":
            numbers = [one.run for one in home.runs() if one.state == "completed"]
            home.cli("runs", home.word, "--make-line", str(chance.choice(numbers[-2:])), code=None)
        site.change()
    while sit(home, served) == "paused":
        pass
    consumer.look(home)
    assert consumer.table == whole(home)
    new: Chunks = {}
    replace_chunks(new, chunks(home))
    assert consumer.chunks == new and any(len(pieces) > 1 for pieces in new.values())


def made(*paths: str) -> dict[str, Any]:
    links = "".join(f"<a href='{path}'>x</a>" for path in paths)
    pages = {path: f"<title>{path}</title><p>{f'The page {path}. ' * 9}</p>" for path in paths}
    return {"/": f"<title>home</title><p>{'All of them. ' * 9}</p>{links}", **pages}


def changes(home: Home, **wanted: Any) -> dict[str, str]:
    return {row["url"].rpartition("/")[2]: row["change"] for row in rows(home, **wanted)}


def test_what_changed_is_told_with_what_is_gone(home: Home) -> None:
    pages = made("/a", "/b", "/c")
    with Site(pages).serve() as served:
        sit(home, served)
        assert changes(home, since="0") == {}
        pages |= {**made("/a", "/b", "/d"), "/a": "<title>other</title><p>" + "Other words. " * 9}
        del pages["/c"]
        sit(home, served)
        pages["/b"] = "<title>b</title><p>" + "Even more words. " * 9
        sit(home, served)
        modified = dict.fromkeys(("", "a", "b"), "modified")
        assert changes(home, since="0") == {**modified, "c": "deleted", "d": "new"}
        assert changes(home, since="1") == {"b": "modified"} == changes(home, only=("modified",))
        assert changes(home, since="0", only=("new", "deleted")) == {"c": "deleted", "d": "new"}
        assert changes(home, since="2") == {} == changes(home, since="now")
        assert set(changes(home, since="1d")) == {"", "a", "b", "d"}, "since before there was anything all is new"
        assert (changes(home, run=1, only=("deleted",)), changes(home, run=2)["b"]) == ({"c": "deleted"}, "modified")


def test_chunks_of_what_changed(home: Home) -> None:
    pages = made("/a", "/b", "/c")
    long = "".join(f"<h2>{number}</h2><p>{f'Part {number} of it. ' * 5}</p>" for number in range(4))
    pages["/a"] = f"<title>a</title>{long}"
    with Site(pages).serve() as served:
        sit(home, served)
        before = chunks(home)
        assert [row["headings"] for row in before if row["url"].endswith("/a")] == [["0"], ["1"], ["2"], ["3"]]
        pages["/a"] = pages["/a"].replace("Part 2 of it", "Item 2 of us")
        pages["/b"] = "<title>b</title><p></p>"
        pages["/c"] = Page("gone", 410)
        sit(home, served)
        told = chunks(home, since="0")
        assert [(row["url"][-1], row["change"], row["text"] is None) for row in told] == [
            *[("a", "modified", False)] * 4, ("b", "modified", True), ("c", "deleted", True),
        ]  # fmt: skip
        kept = {row["id"] for row in before if row["url"].endswith("/a")} & {row["id"] for row in told}
        assert len(kept) == 3, "what was not touched has the same ids"
        assert {row["change"] for row in chunks(home, since="0", only=("deleted",))} == {"deleted"}
        assert not [row for row in chunks(home) if row["text"] is None]
        assert not [row for row in chunks(home) if row["url"][-1] in "bc"]


def test_an_open_run_is_nothing_to_count_from(home: Home) -> None:
    with Site(made("/a", "/b")).serve() as served:
        sit(home, served, budget=1)
        assert home.app.export.next_since(home.word) is None
        with pytest.raises(NotNow, match=r"Run 0 .* is not over"):
            rows(home, since="0")
        with pytest.raises(Unknown, match="no run 7"):
            rows(home, since="7")
        sit(home, served)
        assert home.app.export.next_since(home.word) == 0


def test_what_a_run_found_after_it_went_back_is_told_to_who_saw_it_before(home: Home) -> None:
    """The run is the same one, so nothing of its number says that it is another now."""
    pages = made("/a", "/b")
    with Site(pages).serve() as served:
        sit(home, served, budget=1)
        first = home.checkpoints()[-1]["checkpoint_number"]
        sit(home, served)
        pages["/a"] = f"<title>a</title><p>{'Other words. ' * 9}</p><a href='/late'>x</a>"
        pages |= {"/late": made("/late")["/late"]}
        del pages["/b"]
        home.cli("continue", home.word, "--checkpoint", str(first))
        assert changes(home, since="0") == {"a": "modified", "b": "deleted", "late": "modified"}


def test_a_page_that_could_not_be_had_is_still_there(home: Home) -> None:
    pages = made("/a", "/b")
    with Site(pages).serve() as served:
        sit(home, served)
        pages["/a"] = (500, "no")
        sit(home, served, max_retries=0)
        assert "a" not in changes(home, since="0")
        assert served.url("/a") in whole(home), "an export after a bad day has the text of the day before"


@pytest.mark.parametrize(
    ("said", "hours"),
    [("36h", -36), ("2d", -48), ("1w", -168), ("90m", -1.5), ("now", 0), ("today", -12), ("yesterday", -36)],
)
def test_words_for_times(said: str, hours: float) -> None:
    noon = 1_767_268_800_000
    assert moment(said, noon) == noon + hours * 3_600_000
    assert moment("2026-01-01T12:00:00Z", 0) == moment("2026-01-01 13:00+01:00", 0) == noon


@pytest.mark.parametrize("said", ["", "tomorrow", "-1", "1.5", "7 x", "2026-13-01", "99999999999999d"])
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(WrongUse, match="no run and no date"):
        moment(said, 0)


@pytest.mark.parametrize(
    ("wanted", "is_told"),
    [
        ({}, False),
        ({"more": ("raw_html",)}, True),
        ({"columns": ("url", "price")}, True),
        ({"columns": ("url",)}, False),
    ],
)
def test_what_changed_beside_the_text_is_told_to_whoever_wants_it(
    home: Home, wanted: dict[str, Any], is_told: bool
) -> None:
    """A price in the footer is no change of the page, but one of its row."""
    pages = {"/": page("worms") + "<footer>Price: <b>5</b></footer>"}
    rules = {"extract": ["price=footer b"]} if "columns" in wanted else {}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False, **rules)
        pages["/"] = page("worms") + "<footer>Price: <b>6</b></footer>"
        assert home.crawl(served.url("/"), sitemap=False).unchanged == 1
    told = exported(home, "jsonl", ExportOptions(since="0", **wanted))
    assert len(told) == is_told
    assert all(row.get("price", "6") == "6" for row in told)


def test_a_crawl_that_goes_by_bytes_tells_of_them(home: Home) -> None:
    pages = {"/": page("worms") + "<footer>5</footer>"}
    with Site(pages).serve() as served:
        home.crawl(served.url("/"), sitemap=False, compare_by="bytes")
        pages["/"] = page("worms") + "<footer>6</footer>"
        assert home.crawl(served.url("/"), sitemap=False).modified == 1
    assert len(exported(home, "jsonl", ExportOptions(since="0"))) == 1
