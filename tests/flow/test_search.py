"""Searching a crawl: after runs, ways back and branches, while it runs, and whatever pages and people say."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flow.crawling import Home, page, path_of, wait_until

from inchworm.app import Start
from inchworm.app.read.checkpoints import Back
from inchworm.app.read.content.snippet import SNIPPET_CHARS, snippet
from inchworm.cli.screen.progress import ProgressLine
from inchworm.errors import Broken, NotNow, WrongUse
from inchworm.store.follow.search import parsed, plain
from inchworm.testing import Page, Site, linked_site, redirect


def text(*words: str) -> str:
    return f"<p>{' '.join(words)} is what this page is about, and it has enough to say of it to be told apart.</p>"


def found(home: Home, query: str, **options: Any) -> list[str]:
    """The paths of what a search finds, best first."""
    return [path_of(one.url) for one in home.app.search.find(home.word, query, **options).results]


def index_of(home: Home) -> Path:
    return home.app.workspace.place(home.app.workspace.find(home.word)).folder / "search.db"


def go_on(home: Home, number: int | None, as_new_run: bool = False, **given: Any) -> None:
    values = {"delay": 0, "allow_private": True, **given}
    home._sit(home.app.sessions.work(home.app.plan.continue_from(home.word, Back(number, as_new_run), values)))


def everything(home: Home) -> list[tuple[object, ...]]:
    """All that the index holds, but for its own numbers."""
    with sqlite3.connect(index_of(home)) as db:
        rows = db.execute(
            "SELECT url, run, seq, at_ms, is_copy, key, title, text FROM page JOIN content USING (content_id)"
            " ORDER BY url"
        ).fetchall()
    db.close()
    return rows


def check_against_new(home: Home) -> None:
    """An index that followed the log is the same as one made anew."""
    home.app.search.find(home.word, "anything")
    followed = everything(home)
    index_of(home).unlink()
    home.app.search.find(home.word, "anything")
    assert everything(home) == followed


# ---- what is found


def test_results_say_what_they_are(home: Home) -> None:
    site = {
        "/": page("start", "/zebra", "/copy", body=text("welcome")),
        "/zebra": page("All zebras", body=text("stripes", "and", "more", "stripes")),
        "/copy": page("All zebras", body=text("stripes", "and", "more", "stripes")),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    answer = home.ask("search", home.word, "stripes", "more")
    assert answer["query"] == "stripes more"
    assert answer["count"] == 1
    (one,) = answer["results"]
    assert list(one) == ["url", "title", "snippet", "run", "fetched_at", "alternate_urls", "score"]
    assert (one["url"], one["title"], one["run"]) == (served.url("/zebra"), "All zebras", 0)
    assert one["alternate_urls"] == [served.url("/zebra"), served.url("/copy")]
    assert "«stripes» and «more» «stripes» is what this page is about" in one["snippet"]
    assert one["fetched_at"] == home.record()[1]["fetched_at"]
    assert one["score"] > 0


def test_how_queries_are_written(home: Home) -> None:
    site = {
        "/": page("start", "/a", "/b", body=text("nothing")),
        "/a": page("a", body=text("garden", "tools", "for", "winter")),
        "/b": page("b", body=text("tools", "of", "a", "gardener")),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    assert set(found(home, "tools")) == {"/a", "/b"}
    assert found(home, "Garden TOOLS") == ["/a"]
    assert set(found(home, "garden*")) == {"/a", "/b"}
    assert found(home, "tools -winter") == ["/b"]
    assert found(home, '"tools of"') == ["/b"]
    assert found(home, '"of tools"') == []
    assert len(found(home, "what", limit=2)) == 2
    assert home.app.search.find(home.word, "what", limit=2).count == 3
    with pytest.raises(WrongUse):
        home.app.search.find(home.word, "what", limit=0)


@pytest.mark.parametrize(
    ("query", "code"),
    [('"', 2), ("*", 2), ("-", 2), ("()", 2), ("-a", 2), ("' OR 1=1 --", 0), ("a" * 10_000, 0), ("NEAR(", 0), ("%", 2)],
    ids=range(9),
)
def test_no_query_breaks_anything(home: Home, query: str, code: int) -> None:
    with Site({"/": page("start")}).serve() as served:
        home.crawl(served.url("/"))
    done = home.cli("search", "--json", home.word, "--", query, code=code)
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["count"] == 0 if code == 0 else "no word" in done.stderr


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("東京タワーは東京都港区にあります", "東京都"),
        ("我们在北京大学学习中文", "北京"),
        ("서울에서 부산까지", "부산"),
        ("ประเทศไทยสวยงาม", "ไทย"),
        ("Τα Χριστούγεννα στην Αθήνα", "αθηνα"),
        ("Crème brûlée à la carte", "creme brulee"),
        ("हिन्दी में समाचार", "समाचार"),
    ],
    ids=["japanese", "chinese", "korean", "thai", "greek", "french", "hindi"],
)
def test_every_script_can_be_found(home: Home, said: str, query: str) -> None:
    with Site({"/": page("start", "/x"), "/x": page("x", body=f"<p>{said}</p>")}).serve() as served:
        home.crawl(served.url("/"))
    assert found(home, query) == ["/x"]
    assert "«" in home.app.search.find(home.word, query).results[0].snippet


def test_plain_text_is_text_too(home: Home) -> None:
    site = {
        "/": page("start", "/a.txt", "/b", "/c"),
        "/a.txt": "Once there was a plain text about plums.",
        "/b": Page("grüne Äpfel".encode("cp1252"), headers={"Content-Type": "text/plain; charset=windows-1252"}),
        "/c": Page(b"%PDF-1.7 binary pears", headers={"Content-Type": "application/pdf"}),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    assert found(home, "plums") == ["/a.txt"]
    assert found(home, "Äpfel") == ["/b"]
    assert found(home, "pears") == []


def test_large_pages_are_read_apart(home: Home) -> None:
    body = text("mammoth") + "<p>filler of no interest</p>" * 60_000
    with Site({"/": page("start", "/large"), "/large": page("large", body=body)}).serve() as served:
        home.crawl(served.url("/"))
    assert found(home, "mammoth") == ["/large"]


def test_what_pages_say_steers_nothing(home: Home) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07 \u202etfel &lt;b&gt;bold&lt;/b&gt; «fake» &#0; \ufffe needle"
    site = {"/": page("start", "/x"), "/x": f"<title>\x1b[31mred\u202e</title><main><p>{hostile}</p></main>"}
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    (one,) = home.ask("search", home.word, "needle")["results"]
    assert one["snippet"].isprintable()
    assert one["snippet"].endswith("«needle»")
    assert one["snippet"].count("«") == 1
    shown = home.cli("search", home.word, "needle").stdout
    assert all(line.isprintable() for line in shown.splitlines())


def test_people_get_tidy_lines(home: Home) -> None:
    site = {"/": page("start", *(f"/{'long/' * 30}{n}" for n in range(6)))}
    site |= {f"/{'long/' * 30}{n}": page("The same title " * 10, body=text("same")) for n in range(6)}
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
    shown = home.cli("search", home.word, "same").stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "1. The same title" in shown
    assert "and 2 more with the same text" in shown
    assert shown.rstrip().endswith("1 result.")
    assert "1 of 2 results; --limit shows more." in home.cli("search", home.word, "sentence", "--limit", "1").stdout
    assert "Nothing found" in home.cli("search", home.word, "unheard").stdout


def test_there_must_be_something_to_search(home: Home) -> None:
    assert "no crawl called" in home.cli("search", "nowhere", "word", code=2).stderr
    with Site({"/": page("start")}).serve() as served:
        home.crawl(served.url("/"))
    shutil.move(index_of(home).with_name("crawl.db"), home.folder / "elsewhere")
    with pytest.raises(Broken, match="is gone"):
        home.app.search.find(home.word, "start")
    home.app.plan.find_or_make(Start(("http://127.0.0.1:9/",)))
    with pytest.raises(NotNow):
        home.app.search.find("http://127.0.0.1:9/", "start")


def test_progress_is_told_only_when_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    for done, total in ((0, 20), (20, 20), (0, 5000), (500, 5000), (5000, 5000)):
        ProgressLine("Reading pages to search")(done, total) if total == 20 else None
    assert capsys.readouterr().err == ""
    progress = ProgressLine("Reading pages to search")
    for done in (0, 500, 1000, 5000):
        progress(done, 5000)
    assert capsys.readouterr().err.splitlines() == [
        "Reading pages to search: 0 of 5,000",
        "Reading pages to search: 5,000 of 5,000",
    ]


# ---- snippets

LONG = " ".join(f"word{number}" for number in range(1000))


def test_a_snippet_marks_what_was_looked_for() -> None:
    assert snippet("The Quick brown fox.", parsed("quick fox")) == "The «Quick» brown «fox»."
    assert snippet("a quick brown fox, a brown quick one", parsed('"quick brown"')) == (
        "a «quick brown» fox, a brown quick one"
    )
    assert snippet("gardens and gardeners", parsed("gard*")) == "«gardens» and «gardeners»"
    assert snippet("Das Café in 東京タワー", parsed("cafe タワー")) == "Das «Café» in 東京«タワー»"


def test_a_snippet_is_short_and_begins_and_ends_with_words() -> None:
    shown = snippet(LONG, parsed("word500"))
    assert len(shown) < SNIPPET_CHARS + 10
    assert shown.startswith("… word") and shown.endswith(" …") and "«word500»" in shown
    assert all(piece.strip("«»") in LONG.split() for piece in shown.strip("… ").split())


def test_a_snippet_shows_the_place_with_most_of_it() -> None:
    text = f"apple {LONG} apple pear plum {LONG}"
    assert "«apple» «pear» «plum»" in snippet(text, parsed("apple pear plum"))


def test_without_a_hit_in_the_text_a_snippet_is_its_beginning() -> None:
    assert snippet("Only the title has it.", parsed("elsewhere")) == "Only the title has it."
    assert snippet(LONG, parsed("elsewhere")).startswith("word0 word1")
    assert snippet("", parsed("elsewhere")) == ""


def test_a_snippet_can_neither_steer_a_terminal_nor_fake_a_hit() -> None:
    shown = snippet("«not» a \x1b[31mhit\x07\u202e but\n\n\tthis   one", parsed("this"))
    assert shown == '"not" a [31mhit but «this» one'


@given(st.text(), st.text(min_size=1))
def test_marks_always_come_in_pairs(text: str, typed: str) -> None:
    try:
        query = parsed(typed)
    except WrongUse:
        return
    shown = snippet(plain(text), query)
    assert shown.count("«") == shown.count("»")
    assert shown.isprintable()


def test_common_words_in_a_huge_text_take_no_time() -> None:
    text = "the apple " * 100_000
    assert snippet(text, parsed("the apple nowhere")).startswith("«the» «apple» «the»")


# ---- runs, ways back, branches


def test_the_newest_version_of_a_page_counts(home: Home) -> None:
    site: dict[str, Any] = {
        "/": page("start", "/a", "/b", "/c", "/moved", "/sometimes"),
        "/a": page("a", body=text("alligators")),
        "/b": page("b", body=text("bisons")),
        "/c": page("c", body=text("camels")),
        "/moved": page("moved", body=text("mules")),
        "/sometimes": page("sometimes", body=text("seals")),
        "/target": page("target", body=text("targets")),
    }
    with Site(site, validators=True).serve() as served:
        home.crawl(served.url("/"))
        assert found(home, "bisons") == ["/b"]
        assert found(home, "mules") == ["/moved"]
        site["/a"] = page("a", body=text("antelopes"))
        site["/b"] = Page("gone", 410)
        site["/moved"] = redirect("/target", 301)
        site["/sometimes"] = Page("not now", 503)
        home.crawl(served.url("/"), max_retries=0)
        assert home.app.crawls.status(home.app.workspace.find(home.word)).run == 1
        assert found(home, "alligators") == []
        assert found(home, "antelopes") == ["/a"]
        assert found(home, "bisons") == [], "it is gone, and the server says so"
        assert found(home, "mules") == [], "it has moved to a page that says something else"
        assert found(home, "seals") == ["/sometimes"], "nobody says that it is gone"
        assert home.app.search.find(home.word, "camels").results[0].run == 1, "it was looked at again"
        site["/b"] = page("b", body=text("bisons"))
        home.crawl(served.url("/"), max_retries=0)
        assert found(home, "bisons") == ["/b"]
    check_against_new(home)


def test_going_back_and_on(home: Home) -> None:
    site = {f"/p{n}": page(f"p{n}", f"/p{n + 1}", body=text(f"number{n}")) for n in range(12)}
    site["/p11"] = page("p11", body=text("number11"))
    with Site(site).serve() as served:
        home.crawl(served.url("/p0"), checkpoint_every=4, budget=10, scope="host")
        assert found(home, "number8") == ["/p8"]
        first = home.checkpoints()[0]
        for n in range(4, 12):
            site[f"/p{n}"] = page(f"p{n}", f"/p{n + 1}" if n < 11 else "/p0", body=text(f"other{n}"))
        go_on(home, first["checkpoint_number"], budget=3)
        assert found(home, "number8") == [], "it was undone"
        assert found(home, "number1") == ["/p1"]
        assert found(home, "other5") == ["/p5"]
        check_against_new(home)
        home.resume(budget=0)
        assert found(home, "other11") == ["/p11"]
        assert home.app.search.find(home.word, "what page about").count == 12
    check_against_new(home)


def test_going_back_before_a_verdict(home: Home) -> None:
    """What the end of a run decided is taken back with it."""
    site: dict[str, Any] = {
        "/": page("start", "/moved", "/z"),
        "/moved": page("moved", body=text("mules")),
        "/z": page("z", body=text("zebras")),
        "/target": page("target", body=text("targets")),
    }
    with Site(site).serve() as served:
        home.crawl(served.url("/"))
        site["/moved"] = redirect("/target", 301)
        home.crawl(served.url("/"), checkpoint_every=1)
        assert found(home, "mules") == []
        last = home.checkpoints()[-1]
        assert last["run"] == 1
        go_on(home, last["checkpoint_number"], budget=0)
        assert found(home, "mules") == [], "the run has come to its end again"
        first = next(one for one in home.checkpoints() if one["run"] == 1)
        go_on(home, first["checkpoint_number"], budget=1)
        assert found(home, "mules") == ["/moved"], "the run is open again, and nothing is decided"
        home.resume(budget=0)
        assert found(home, "mules") == [], "and decided again, at the same step as before"
    check_against_new(home)


def test_a_branch_is_the_newest_run(home: Home) -> None:
    site = {f"/p{n}": page(f"p{n}", f"/p{n + 1}", body=text(f"number{n}")) for n in range(8)}
    with Site(site).serve() as served:
        home.crawl(served.url("/p0"), checkpoint_every=3, scope="host")
        assert home.app.search.find(home.word, "number2").results[0].run == 0
        site["/p3"] = page("p3", "/p4", body=text("another3"))
        point = home.checkpoints()[0]["checkpoint_number"]
        go_on(home, point, as_new_run=True, budget=2)
        assert home.app.search.find(home.word, "number2").results[0].run == 1
        assert found(home, "number3") == []
        assert found(home, "another3") == ["/p3"]
        assert home.app.search.find(home.word, "number7").results[0].run == 0, "the branch has not come that far"
        home.resume(budget=0)
    check_against_new(home)


# ---- at the same time


def test_while_the_crawl_runs(home: Home) -> None:
    said = {path: text("everywhere", f"as on {path[1:]}") for path in linked_site(150)}
    pages = {path: body.replace("</main>", said[path] + "</main>") for path, body in linked_site(150).items()}
    with Site(pages, latency=(0.005, 0.02)).serve() as served, home.running("crawl", served.url("/"), "--delay", "0"):
        wait_until(lambda: len(served.log) > 20)
        counts = []
        while home.app.workspace.is_running(home.app.workspace.find(home.word)):
            counts.append(home.app.search.find(home.word, "everywhere").count)
        counts.append(home.app.search.find(home.word, "everywhere").count)
    assert counts == sorted(counts)
    assert counts[-1] == 150
    check_against_new(home)


def test_two_processes_at_once(home: Home) -> None:
    with Site(linked_site(400, duplicates=20)).serve() as served:
        home.crawl(served.url("/"))
    command = ("search", home.word, "page", "--json", "--limit", "1000")
    with home.running(*command) as first, home.running(*command) as second:
        answers = [json.loads(process.communicate(timeout=60)[0]) for process in (first, second)]
    assert answers[0] == answers[1]
    assert answers[0]["count"] == 400
    assert sum(len(one["alternate_urls"]) for one in answers[0]["results"]) == 420
    check_against_new(home)


def test_killed_while_catching_up(home: Home) -> None:
    with Site(linked_site(700)).serve() as served:
        home.crawl(served.url("/"), workers=20)

    def size() -> int:
        found = 0
        for path in index_of(home).parent.glob("search.db*"):
            with suppress(FileNotFoundError):  # a journal comes and goes
                found += path.stat().st_size
        return found

    reached = 0
    for _ in range(3):
        with home.running("search", home.word, "page", "--json") as process:
            wait_until(lambda: size() > reached + 100_000 or process.poll() is not None)  # noqa: B023
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        reached = size()
    assert home.app.search.find(home.word, "page").count == 700
    check_against_new(home)


def test_progress_goes_to_standard_error(home: Home) -> None:
    with Site(linked_site(320)).serve() as served:
        home.crawl(served.url("/"), workers=20)
    done = home.process("search", home.word, "page", "--json")
    assert json.loads(done.stdout)["count"] == 320
    assert "Reading pages to search: 320 of 320" in done.stderr
    assert home.process("search", home.word, "page", "--json").stderr == ""
