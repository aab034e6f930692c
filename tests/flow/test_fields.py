"""Fields out of real crawls: a catalogue, a table and a blog; taken again by other rules without a request; in every
table format; and all that may happen to a crawl meanwhile."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest
from tests.flow.crawling import PATIENCE, Home, page, path_of, wait_until

from inchworm.app import fields as taking
from inchworm.app.act.content.selection import ExportOptions
from inchworm.app.fields import FieldRequest, OwnFields
from inchworm.testing import Page, Served, Site

PRODUCTS = 8


def product(number: int, price: str | None = None) -> str:
    price = price or f"€ 1.{number:03},50"
    return page(
        f"Product {number}",
        "/shop/",
        body=f"<div class=product><h1>Product <em>{number}</em></h1><span class=price>{price} <s>9.999,00</s></span>"
        f"<span class=sku>SKU-{number:04}</span><img src='img/{number}.png'>"
        f"<ul><li class=tag>new<li class=tag>t{number}"
        f'</ul></div><script type=\'application/ld+json\'>{{"@type": "Product", "sku": {number}}}</script>',
    )


def catalogue() -> dict[str, Any]:
    """A list in two parts, and a page for each product."""
    cards = [
        f"<div class=card><a href='/shop/p{number}'>Product {number}</a><b>{number}.50</b></div>"
        for number in range(PRODUCTS)
    ]
    return {
        "/shop/": page("Shop", "/shop/more", body="".join(cards[:5])),
        "/shop/more": page("More", body="".join(cards[5:])),
        **{f"/shop/p{number}": product(number) for number in range(PRODUCTS)},
    }


def table() -> dict[str, Any]:
    rows = "".join(
        f"<tr><th>{name}</th><td>{people:,}</td><td>{area}</td></tr>"
        for name, people, area in (("Ayr", 46_260, "12.4"), ("Bute", 6_047, "122,0"), ("Coll", 176, "n/a"))
    )
    head = "<tr><th>name<th>people<th>area</tr>"
    return {"/places/": page("Places", body=f"<table id=places><thead>{head}</thead><tbody>{rows}</tbody></table>")}


def blog() -> dict[str, Any]:
    posts = {
        f"/blog/{number}": page(
            f"Post {number}",
            head=f"<meta name=author content='Author  {number}'>",
            body=f"<article><h1>Post {number}</h1><time datetime='2024-03-0{number}T10:00:00+02:00'>then</time>"
            f"<p class=by>by <a rel=author href='../people/{number}?x=1'>Somebody {number}</a></p></article>",
        )
        for number in range(1, 4)
    }
    return {"/blog/": page("Blog", *posts), **posts}


@pytest.fixture
def pages() -> dict[str, Any]:
    links = ("/shop/", "/places/", "/blog/")
    return {"/": page("start", *links), **catalogue(), **table(), **blog()}


@pytest.fixture
def served(pages: dict[str, Any]) -> Iterator[Served]:
    with Site(pages, validators=True).serve() as made:
        yield made


def exported(home: Home, *names: str, run: int | None = None, **wanted: Any) -> list[dict[str, Any]]:
    out = io.BytesIO()
    home.app.export.to_file(home.word, "jsonl", out, ExportOptions(run, columns=("url", *names), **wanted))
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return [{**row, "url": path_of(row["url"])} for row in found]


SHOP = [
    "name=.product h1",
    "price=.price::text | number:,",
    "sku=.sku | re:SKU-([0-9]+) | integer",
    "image=.product img@src",
    "tags=.tag | list",
    "ld=script | json",
]


# ---- three sites


def test_a_catalogue(home: Home, served: Served) -> None:
    summary = home.crawl(served.url("/shop/"), extract=SHOP)
    assert summary.fields == dict.fromkeys(("name", "price", "sku", "image", "tags", "ld"), PRODUCTS)
    assert summary.unmatched_fields == ()
    names = [field.partition("=")[0] for field in SHOP]
    rows = {row["url"]: row for row in exported(home, *names)}
    assert rows["/shop/p3"] == {
        "url": "/shop/p3",
        "name": "Product 3",
        "price": 1003.5,
        "sku": 3,
        "image": served.url("/shop/img/3.png"),
        "tags": ["new", "t3"],
        "ld": {"@type": "Product", "sku": 3},
    }
    assert rows["/shop/"] == {"url": "/shop/", **dict.fromkeys(names), "tags": []}, "a page without is told without"
    assert len(rows) == PRODUCTS + 2

    # Other rules: a row for each card of the lists, and not one request for it.
    requests, before = len(served.log), home.record()
    told = home.ask("extract", home.word, "--each", ".card", "--extract", "item=a", "--extract", "at=a@href")
    assert (told["pages"], told["rows"], told["failed"]) == (PRODUCTS + 2, PRODUCTS, 0)
    assert {one["name"]: one["pages"] for one in told["fields"]} == {"item": 2, "at": 2}
    rows = exported(home, "row", "item", "at")
    assert [(row["url"], row["row"], row["item"]) for row in rows[:6]] == [
        *(("/shop/", number, f"Product {number - 1}") for number in range(1, 6)),
        ("/shop/more", 1, "Product 5"),
    ]
    assert {row["at"] for row in rows} == {served.url(f"/shop/p{number}") for number in range(PRODUCTS)}
    assert len(served.log) == requests
    assert home.record() == before, "the record does not depend on them"


def test_a_table(home: Home, served: Served) -> None:
    home.crawl(
        served.url("/places/"),
        each="#places tbody tr",
        extract={"name": "th", "people": "./td[1] | integer", "area": "td:nth-of-type(2) | number"},
    )
    found = [(row["name"], row["people"], row["area"]) for row in exported(home, "name", "people", "area")]
    assert found == [("Ayr", 46_260, 12.4), ("Bute", 6_047, 122.0), ("Coll", 176, None)]


def test_a_blog(home: Home, served: Served) -> None:
    summary = home.crawl(
        served.url("/blog/"),
        extract=[
            "headline=//article/h1",
            "on=time@datetime | date",
            "who=[rel=author]@href",
            "by=meta[name=author]@content",
        ],
    )
    assert summary.fields == dict.fromkeys(("headline", "on", "who", "by"), 3)
    (post,) = [row for row in exported(home, "headline", "on", "who", "by") if row["url"] == "/blog/2"]
    assert post == {
        "url": "/blog/2",
        "headline": "Post 2",
        "on": "2024-03-02T08:00:00.000Z",
        "who": served.url("/people/2?x=1"),
        "by": "Author 2",
    }


def test_every_table_format_has_them(home: Home, served: Served, tmp_path: Path) -> None:
    """All three as they come, and read by another program."""
    home.crawl(served.url("/shop/"), extract=[*SHOP, "on=.nowhere | date", "sizes=b | number | list"])
    for ending in ("jsonl", "csv", "parquet"):
        home.cli("export", home.word, "-o", str(tmp_path / f"all.{ending}"))
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() >= {"url", "text", "name", "price", "tags", "on"}, "fields come with the usual columns"
    assert [row["price"] for row in rows if row["name"] == "Product 3"] == ["1003.5"]
    schema = {field.name: str(field.type) for field in pyarrow.parquet.read_schema(tmp_path / "all.parquet")}
    types = {name: schema[name] for name in ("name", "price", "sku", "tags", "ld", "on", "sizes")}
    assert types == {
        "name": "string",
        "price": "double",
        "sku": "int64",
        "tags": "list<element: string>",
        "ld": "string",
        "on": "timestamp[ms, tz=UTC]",
        "sizes": "string",
    }
    with duckdb.connect() as db:
        query = (
            "SELECT sum(price), max(tags[2]), sum(CAST(ld->>'sku' AS INT)), any_value(sizes) FROM '{}' WHERE sku > 5"
        )
        total, tag, skus, sizes = db.execute(query.format(tmp_path / "all.parquet")).fetchone()
        assert (total, tag, skus, sizes) == (1006.5 + 1007.5, "t7", 13, "[]")
        told = db.execute(f"SELECT count(price), max(price) FROM '{tmp_path / 'all.jsonl'}'").fetchone()
        assert told == (PRODUCTS, 1007.5)


def test_data_for_machines(home: Home, served: Served, pages: dict[str, Any], tmp_path: Path) -> None:
    pages["/shop/p0"] = page("Item", head="<meta property=og:title content='An item'>")
    home.crawl(served.url("/shop/"))
    done = home.ask("export", home.word, "--format", "data", "-o", str(tmp_path / "data.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text().splitlines()]
    assert done["count"] == len(rows) == PRODUCTS
    assert list(rows[0]) == ["url", "canonical_url", "fetched_at", "json_ld", "microdata", "open_graph"]
    told = {path_of(row["url"]): row for row in rows}
    assert (told["/shop/p0"]["json_ld"], told["/shop/p0"]["open_graph"]) == (None, {"og:title": "An item"})
    assert told["/shop/p1"]["json_ld"] == [{"@type": "Product", "sku": 1}]
    home.cli("export", home.word, "--format", "data", "--columns", "url", code=2)


# ---- what happens to a crawl


def test_unchanged_pages_of_later_runs_have_their_fields(home: Home, served: Served, pages: dict[str, Any]) -> None:
    home.crawl(served.url("/shop/"), extract=SHOP)
    pages["/shop/p3"] = product(3, "€ 4,00")
    del pages["/shop/p4"]
    summary = home.crawl(served.url("/shop/"))
    assert (summary.unchanged, summary.modified, summary.deleted) == (PRODUCTS, 1, 1)
    assert any(hit.status == 304 for hit in served.log), "they were not downloaded again"
    assert summary.fields["price"] == PRODUCTS - 1
    was = {f"/shop/p{number}": 1000.5 + number for number in range(PRODUCTS)}
    now = {**was, "/shop/p3": 4.0}
    del now["/shop/p4"]
    for run, prices in ((0, was), (1, now), (None, now)):
        assert {row["url"]: row["price"] for row in exported(home, "price", run=run) if row["price"]} == prices
    (changed, gone) = exported(home, "price", "change", since="0")
    assert (changed["url"], changed["price"], changed["change"]) == ("/shop/p3", 4.0, "modified")
    assert (gone["url"], gone["price"], gone["change"]) == ("/shop/p4", None, "deleted")


def test_who_follows_a_crawl_learns_of_pages_that_lost_their_rows(
    home: Home, served: Served, pages: dict[str, Any]
) -> None:
    home.crawl(served.url("/shop/"), each=".card", extract=["item=a"])
    pages["/shop/more"] = page("More")
    home.crawl(served.url("/shop/"))
    assert {row["url"] for row in exported(home, "row", "item")} == {"/shop/"}
    (changed,) = (row for row in exported(home, "row", "item", since="0") if row["url"] == "/shop/more")
    assert (changed["row"], changed["item"]) == (None, None), "it replaces three rows by none"
    assert len(exported(home)) == PRODUCTS + 2, "without fields a page is a row"


def test_going_back_and_a_branch(home: Home, served: Served, pages: dict[str, Any]) -> None:
    home.crawl(served.url("/shop/"), budget=5, extract=SHOP, workers=1)
    point = home.checkpoints()[-1]["checkpoint_number"]
    home.resume(budget=0)
    assert len([row for row in exported(home, "price") if row["price"]]) == PRODUCTS
    pages.update({f"/shop/p{number}": product(number, f"€ {number},25") for number in range(PRODUCTS)})
    home.cli("continue", home.word, "--checkpoint", str(point), "--allow-private", "--delay", "0")
    rows = {row["url"]: row["price"] for row in exported(home, "price") if row["price"]}
    assert len(rows) == PRODUCTS
    assert {price % 1 for price in rows.values()} == {0.25, 0.5}, "what came later was taken anew"
    assert rows["/shop/p7"] == 7.25
    taken = home.ask("extract", home.word)
    again = home.ask("extract", home.word, "--rebuild")
    assert taken == again
    home.cli("continue", home.word, "--checkpoint", str(point), "--as-new-run", "--allow-private", "--delay", "0")
    assert {row["url"]: row["price"] for row in exported(home, "price", run=0) if row["price"]} == rows
    assert len([row for row in exported(home, "price", run=1) if row["price"]]) == PRODUCTS


def test_an_export_while_nobody_has_taken_them(home: Home, served: Served) -> None:
    """A file that is missing, behind, or of other rules costs nothing but time."""
    home.crawl(served.url("/shop/"), extract=["price=.price::text | number:,"])
    before = exported(home, "price")
    crawl = home.app.workspace.find(home.word)
    (home.app.workspace.place(crawl).folder / taking.FILE).unlink()
    assert exported(home, "price") == before
    home.cli("configure", home.word, "--extract", "price=.sku")
    assert [row["price"] for row in exported(home, "price") if row["price"]][:2] == ["SKU-0000", "SKU-0001"]


def test_pages_that_come_while_an_export_goes_on(home: Home, served: Served) -> None:
    """What is newer than what was taken is taken on the spot."""
    home.crawl(served.url("/shop/"), extract=["price=.price::text | number:,"])
    crawl = home.app.workspace.find(home.word)
    with home.app.workspace.reading(crawl) as store:
        rules = taking.rules_of(home.app.workspace, crawl)
        assert rules is not None
        place = taking.CrawlFields(store, home.app.workspace.place(crawl), rules)
        place.catch_up()
        with place.looking() as taken:
            for stored in home.app.export.stored_pages(home.word, ExportOptions()):
                known = taken(stored)
                stored.record = {**stored.record, "log_id": 1_000_000}
                assert taken(stored) == known


# ---- rules


def test_rules_belong_to_the_crawl(home: Home, served: Served) -> None:
    url = served.url("/shop/")
    home.crawl(url)
    assert "price" not in json.loads(home.export("jsonl").splitlines()[0])
    summary = home.crawl(url, extract=["price=.price::text | number:,"])
    assert summary.run == 1, "they may be named at any time, also for a crawl that is there"
    assert home.crawl(url).fields == {"price": PRODUCTS}, "and hold from then on"
    home.cli("configure", home.word, "--extract", "sku=.sku")
    assert home.crawl(url).fields == {"sku": PRODUCTS}
    home.cli("configure", home.word, "--unset", "extract")
    assert home.crawl(url).fields == {}
    (home.folder / "config.toml").write_text("[extract]\nprice = '.price::text | number:,'\n")
    assert home.crawl(url).fields == {"price": PRODUCTS}


def test_a_run_that_is_open_takes_other_rules(home: Home, served: Served) -> None:
    home.crawl(served.url("/shop/"), budget=4, extract=["price=.price"])
    summary = home.resume(extract=["sku=.sku"], budget=0)
    assert (summary.run, summary.fields) == (0, {"sku": PRODUCTS})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--extract", "url=h1"], "there is a column"),
        (["--extract", "row=h1"], "there is a column"),
        (["--extract", "archive=h1"], "there is a column"),
        (["--extract", "a=h1 | numbr"], "no filter 'numbr'"),
        (["--extract", "a=h1["], "cannot be used"),
        (["--extract", "a=//h1["], "cannot be used"),
        (["--extract", "a=h1", "--each", "li["], "--each cannot be used"),
        (["--each", "li"], "no field"),
    ],
)
def test_what_is_wrong_is_said_before_anything_happens(
    home: Home, served: Served, arguments: list[str], said: str
) -> None:
    url = served.url("/shop/")
    assert said in home.cli("crawl", url, *arguments, code=2).stderr
    assert not home.app.workspace.crawls.all()
    assert not served.log
    home.crawl(url, extract=["price=.price"])
    requests = len(served.log)
    for command in ("resume", "recrawl", "extract"):
        if arguments != ["--each", "li"]:  # with the fields that it has that is fine
            assert said in home.cli(command, home.word, *arguments, code=2).stderr
    assert home.ask("show-settings", home.word)["extract"] == ["price=.price"]
    assert len(served.log) == requests


# ---- told loudly


def test_a_field_that_is_nowhere_is_told(home: Home, served: Served, tmp_path: Path) -> None:
    url = served.url("/shop/")
    arguments = ("--extract", "price=.price", "--extract", "colour=.colour", "--extract", "size=.size | list")
    done = home.cli("crawl", url, "--delay", "0", *arguments)
    assert "ATTENTION     the fields colour, size match on no page." in done.stderr
    summary = home.ask("recrawl", home.word, "--delay", "0")
    assert summary["unmatched_fields"] == ["colour", "size"]
    assert summary["fields"] == {"price": PRODUCTS, "colour": 0, "size": 0}
    assert "colour, size match on no page" in home.cli("extract", home.word).stderr
    assert home.ask("extract", home.word)["unmatched_fields"] == ["colour", "size"]
    target = ("-o", str(tmp_path / "all.csv"))
    assert "colour, size match on no page" in home.cli("export", home.word, *target).stderr
    assert "field colour matches" in home.cli("export", home.word, *target, "--columns", "url,price,colour").stderr
    assert not home.cli("export", home.word, *target, "--columns", "url,price").stderr
    assert home.ask("export", home.word, *target)["unmatched_fields"] == ["colour", "size"]


def test_pages_that_cannot_be_read_are_counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest have their fields, the session is as it would have been, and who waits in vain is not kept waiting."""
    home.patience *= 3
    deep = page("a", body="<div>" * 20_000)
    with Site({"/": page("start", "/a", "/b"), "/a": deep, "/b": page("b")}).serve() as served:
        # Each of the elements with all that are in it is more than there is memory for.
        summary = home.crawl(served.url("/"), extract=["first=p", "all=div::html | list"])
    assert (summary.run_state, summary.pages) == ("completed", 3)
    assert "1 page has no fields" in summary.note
    assert summary.fields == {"first": 2, "all": 0}
    assert {row["url"]: bool(row["first"]) for row in exported(home, "first")} == {"/": True, "/a": False, "/b": True}
    assert "1 page has no fields" in home.cli("extract", home.word).stderr
    monkeypatch.setattr(taking, "PATIENCE_SECONDS", 0.0)
    again = home.cli("extract", home.word, "--rebuild", code=1)
    assert "One page after the other cannot be read" in again.stderr


def test_whoever_wants_to_leave_does_not_wait_for_fields(home: Home, pages: dict[str, Any], served: Served) -> None:
    pages["/shop/p7"] = Page("", delay=600)
    with home.running(
        "crawl", served.url("/shop/"), "--delay", "0", "--grace", "0", "--extract", "sku=.sku"
    ) as process:
        wait_until(lambda: "/shop/p7" in served.paths())
        wait_until(lambda: home.app.workspace.crawls.all() and home.status()["pages"] >= 5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "The fields are not up to date: inchworm extract" in err
    assert {row["sku"] for row in exported(home, "sku")} >= {"SKU-0000", "SKU-0001"}, "an export has them all the same"


# ---- trying


def test_rules_are_tried_on_one_page(home: Home, served: Served) -> None:
    home.crawl(served.url("/shop/"), extract=["price=.price"])
    requests = len(served.log)
    done = home.cli(
        "extract", home.word, served.url("/shop/p3"), "--extract", "name=h1", "--extract", "of=s | number:,"
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [[served.url("/shop/p3")], ["name", "Product", "3"], ["of", "9999.0"]]
    told = home.ask("extract", home.word, served.url("/shop/"), "--each", ".card", "--extract", "x=b | number")
    assert told["pages"] == [
        {"url": served.url("/shop/"), "rows": [{"x": number + 0.5} for number in range(5)], "failure": None}
    ]
    told = home.ask("extract", home.word, "--try", "--extract", "sku=.sku", "--extract", "no=.no")
    assert (len(told["pages"]), told["unmatched_fields"]) == (5, ["no"])
    assert "has a page at" in home.cli("extract", home.word, served.url("/none"), code=2).stderr
    assert "Nothing is kept" in home.cli("extract", home.word, "--try", "--rebuild", code=2).stderr
    assert home.ask("show-settings", home.word)["extract"] == ["price=.price"], "nothing of it is kept"
    assert len(served.log) == requests


def test_a_crawl_without_fields_says_so(home: Home, served: Served) -> None:
    home.crawl(served.url("/places/"))
    assert "No fields are set" in home.cli("extract", home.word, code=2).stderr
    crawl = home.app.workspace.find(home.word)
    assert not (home.app.workspace.place(crawl).folder / taking.FILE).exists()


def test_what_pages_say_does_not_reach_a_terminal_raw(home: Home) -> None:
    with Site({"/": page("x", body="<h1>\x1b[2Jred\u202e</h1>")}).serve() as served:
        home.crawl(served.url("/"))
        shown = home.cli("extract", home.word, served.url("/"), "--extract", "x=h1").stdout
    assert "\x1b" not in shown and "\u202e" not in shown and "red" in shown


# ---- a function instead of rules


def test_a_function_takes_fields(home: Home, served: Served) -> None:
    home.crawl(served.url("/shop/"))

    def take(one: Any) -> Any:
        if one.url.endswith("/p5"):
            raise ValueError("not this one")
        if one.url.endswith("/shop/"):
            return [{"part": number} for number in range(2)]
        return {"words": len(one.text.split())}

    own = OwnFields(take)
    rows = exported(home, "row", "fields", fields=FieldRequest(own=own))
    assert [(row["row"], row["fields"]) for row in rows if row["url"] == "/shop/"] == [
        (1, {"part": 0}),
        (2, {"part": 1}),
    ]
    assert [(row["row"], bool(row["fields"])) for row in rows if row["url"] == "/shop/p1"] == [(None, True)]
    assert [row["fields"] for row in rows if row["url"] == "/shop/p5"] == [None], "it is told, without"
    assert (own.failed, str(own.error)) == (1, "not this one")
    odd = OwnFields(lambda _: {"x": object()})
    assert all(row["fields"] is None for row in exported(home, "fields", fields=FieldRequest(own=odd)))
    assert odd.failed == PRODUCTS + 2


def test_pages_have_their_fields_when_they_are_asked_for(home: Home, served: Served) -> None:
    home.crawl(served.url("/shop/"), extract=["price=.price::text | number:,"])
    found = {
        path_of(one.url): (one.rows, one.fields) for one in home.app.export.stored_pages(home.word, ExportOptions())
    }
    assert found["/shop/p2"] == ([{"price": 1002.5}], {"price": 1002.5})
    assert found["/shop/"] == ([{"price": None}], {"price": None})
    own = ExportOptions(fields=FieldRequest(own=OwnFields(lambda one: {"called": one.title})))
    assert {one.fields["called"] for one in home.app.export.stored_pages(home.word, own)} >= {"Shop", "Product 2"}


def test_a_site_of_other_things(home: Home) -> None:
    """What is no HTML has no fields, and is no trouble."""
    pages: dict[str, Any] = {
        "/": page("start", "/a.pdf", "/b.json", "/c.txt", "/d"),
        "/a.pdf": Page(b"%PDF-1.4 nothing", headers={"Content-Type": "application/pdf"}),
        "/b.json": Page('{"a": 1}', headers={"Content-Type": "application/json"}),
        "/c.txt": "<h1>no markup</h1>",
        "/d": Page(b"", headers={"Content-Type": "text/html"}),
    }
    with Site(pages).serve() as served:
        summary = home.crawl(served.url("/"), extract=["x=p"])
    assert summary.fields == {"x": 1}
    assert not summary.note
