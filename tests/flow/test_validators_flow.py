"""Entity tags and dates of last change, from servers that are right, wrong, and strange (E1 to E8, E12)."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet
from tests.flow.crawling import PATIENCE, Home, page
from tests.flow.test_checkpoints import folder_of
from tests.flow.test_incremental import (
    Pages,
    asked_for,
    changes,
    compared,
    crawl,
    numbers,
    serving,
    sit,
    star,
    unsound,
    verdicts,
)

from inchworm.app import Start
from inchworm.testing import Answer, Hit, Page, Served, Site

# E1: sent back as it came, or not at all


@dataclass(frozen=True, slots=True)
class Tag:
    """Headers of an answer, and the condition that the next run should ask under."""

    name: str
    headers: dict[str, str]
    sent: tuple[str, str] | None


def tag(name: str, etag: str, is_sent: bool) -> Tag:
    return Tag(name, {"ETag": etag}, ("if-none-match", etag) if is_sent else None)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
TAGS = [
    tag("strong", '"abc"', True),
    tag("weak", 'W/"abc"', True),
    tag("empty", '""', True),
    tag("signs", '"!#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~"', True),
    tag("long", f'"{"x" * 1000}"', True),
    tag("utf-8", '"\xc3\xa4\xe2\x82\xac"', False),
    tag("latin-1", '"\xe4"', False),
    tag("spaces", '"a b"', False),
    tag("no-quotes", "abc", False),
    tag("one-quote", '"abc', False),
    tag("single-quotes", "'abc'", False),
    tag("small-w", 'w/"abc"', False),
    tag("20-kB", f'"{"x" * 20_000}"', False),
    tag("tab", '"a\tb"', False),
    Tag("two-lines", {"ETag": '"a"', "etag": '"b"'}, None),
    Tag("two-in-one", {"ETag": '"a", "b"'}, None),
    Tag("both", {"ETag": '"both"', "Last-Modified": DATE}, ("if-none-match", '"both"')),
    Tag("date", {"Last-Modified": DATE}, ("if-modified-since", DATE)),
    Tag("odd-date", {"Last-Modified": "2015-10-21 07:28 (about)"}, ("if-modified-since", "2015-10-21 07:28 (about)")),
    Tag("long-date", {"Last-Modified": "x" * 101}, None),
    Tag(
        "two-dates",
        {"Last-Modified": DATE, "last-modified": "Thu, 22 Oct 2015 07:28:00 GMT"},
        None,
    ),
    Tag("bad-tag-and-date", {"ETag": "a b", "Last-Modified": "1"}, ("if-modified-since", "1")),
]


def listed(tags: list[Tag]) -> list[ParameterSet]:
    return [pytest.param(one, id=one.name) for one in tags]


@pytest.fixture(scope="module")
def second_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Hit]]:
    """What the server was asked in the second run, by path."""
    pages = {"/": page("home", *(f"/{one.name}" for one in TAGS))}
    pages |= {f"/{one.name}": Page(page(one.name), headers=one.headers) for one in TAGS}
    home = Home(tmp_path_factory.mktemp("tags") / "home")
    with serving(Site(pages), runs=1) as served:
        crawl(home, served)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 1 + len(TAGS), 0, 0)
        yield {hit.path: hit for hit in served.log[since:]}
    home.app.close()


def conditions(hit: Hit) -> list[tuple[str, str]]:
    return [(name, value) for name, value in hit.headers.items() if name.startswith("if-")]


@pytest.mark.parametrize("one", listed(TAGS))
def test_e1_a_validator_is_sent_back_as_it_came_or_not_at_all(one: Tag, second_run: dict[str, Hit]) -> None:
    sent = conditions(second_run[f"/{one.name}"])
    assert sent == ([one.sent] if one.sent else [])


# Servers


class Server:
    """Pages with entity tags made by `tag`, from the path and the body. It believes who says to have that version."""

    def __init__(self, count: int, tag: Callable[[str, str], str], header: str = "ETag") -> None:
        self.bodies = {path: str(body) for path, body in star(count).items()}
        self.tag = tag
        self.header = header
        self.extra: dict[str, str] = {}

    def pages(self) -> Pages:
        return dict.fromkeys(self.bodies, self.answer)

    def answer(self, hit: Hit) -> Page:
        body = self.bodies[hit.path]
        tag = self.tag(hit.path, body)
        condition = "if-none-match" if self.header == "ETag" else "if-modified-since"
        headers = {self.header: tag, **self.extra}
        return Page(body, 304 if hit.headers.get(condition) == tag else 200, headers)

    def rewrite(self, *paths: str) -> None:
        for path in paths:
            self.bodies[path] = self.bodies[path].replace("This is what", "And now this is what")


def sent_validators(served: Served, since: int) -> list[str]:
    """The pages that were asked for under a condition."""
    return sorted(hit.path for hit in served.log[since:] if conditions(hit))


def notes(home: Home) -> Counter[str]:
    """How often each word stands beside a verdict."""
    return Counter(note for verdict in verdicts(home).values() for note in verdict.notes)


# E2


def test_e2_a_tag_that_is_new_every_time_is_found_useless_and_not_sent_any_more(home: Home) -> None:
    fresh = itertools.count()
    server = Server(5, lambda path, _: f'"{path}-{next(fresh)}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0)
        assert notes(home) == {"validators_changed": 5, "sampled": 1}
        assert len(sent_validators(served, since)) == 5
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0), "once may be a site that was put there anew"
        since = len(served.log)
        summary = crawl(home, served)
        assert numbers(summary) == (0, 0, 6, 0, 0)
        assert (sent_validators(served, since), notes(home)) == ([], {"distrusted": 6})
        assert summary.downloaded == {"distrusted": 6}
        server.rewrite("/p2")
        assert numbers(crawl(home, served)) == (0, 1, 5, 0, 0)


@pytest.mark.parametrize(("changed", "is_useless"), [(2, False), (3, True)])
def test_e2_tags_of_three_pages_are_enough_to_be_found_useless_and_of_two_are_not(
    home: Home, changed: int, is_useless: bool
) -> None:
    fresh = itertools.count()
    server = Server(changed, lambda path, _: f'"{path}-{next(fresh)}"')
    with serving(Site(server.pages())) as served:
        for _ in range(3):
            crawl(home, served)
        assert notes(home) == {"validators_changed": changed, "sampled": 1}
        since = len(served.log)
        crawl(home, served)
        assert (sent_validators(served, since) == []) is is_useless


def test_e2_useless_tags_are_tried_again_after_five_runs(home: Home) -> None:
    fresh = itertools.count()
    server = Server(3, lambda path, _: f'"{path}-{next(fresh)}"')
    with serving(Site(server.pages())) as served:
        for _ in range(3):
            crawl(home, served)
        sent = []
        for _ in range(6):
            since = len(served.log)
            crawl(home, served)
            sent.append(bool(sent_validators(served, since)))
        assert sent == [False] * 5 + [True]


def test_e2_a_site_that_was_put_on_its_server_anew_is_believed_again(home: Home) -> None:
    build = ["1"]
    server = Server(5, lambda path, _: f'"{path}-{build[0]}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        build[0] = "2"
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 6, 0, 0)
        assert len(sent_validators(served, since)) == 5
        assert [hit.status for hit in served.log[since:]].count(304) == 5


# E3


def test_e3_the_same_body_under_another_tag_is_unchanged(home: Home) -> None:
    build = ["1"]
    server = Server(4, lambda path, _: f'"{path}-{build[0]}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        build[0] = "2"
        assert numbers(crawl(home, served)) == (0, 0, 5, 0, 0)
        assert notes(home) == {"validators_changed": 4, "sampled": 1}
        server.rewrite("/p1")
        build[0] = "3"
        assert numbers(crawl(home, served)) == (0, 1, 4, 0, 0)


def test_e3_another_body_under_the_same_tag_is_modified_and_the_lie_is_found_out(home: Home) -> None:
    server = Server(6, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/", "/p1", "/p4")
        since = len(served.log)
        summary = crawl(home, served)
        assert numbers(summary) == (0, 3, 4, 0, 0)
        assert {path for path, change in changes(home).items() if change == "modified"} == {"/", "/p1", "/p4"}
        assert sorted(asked_for(served, since)) == ["/", *(f"/p{number}" for number in range(6) for _ in "ab")]
        assert (summary.saved_bytes, summary.pages) == (0, 7)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 7, 0, 0)
        assert (sent_validators(served, since), notes(home)) == ([], {"distrusted": 7})


def test_e3_a_text_that_was_written_anew_under_the_same_tag_is_a_lie_too(home: Home) -> None:
    """More differs than any stamp could explain."""
    server = Server(3, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        news = " ".join(f"word {number} of it." for number in range(100))
        server.bodies["/"] = server.bodies["/"].replace("<main>", f"<main><p>{news}</p>")
        server.rewrite("/p1")
        assert numbers(crawl(home, served)) == (0, 2, 2, 0, 0)


def test_e3_a_lie_that_was_found_out_before_leaves_no_gap_in_the_record(home: Home) -> None:
    server = Server(3, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/")
        assert numbers(crawl(home, served)) == (0, 1, 3, 0, 0)
        server.rewrite("/p1")
        assert numbers(sit(home, served)) == (0, 1, 3, 0, 0)
        assert unsound(home) == []


def test_e3_a_lie_that_no_sample_meets_is_believed_and_found_out_later(home: Home) -> None:
    server = Server(3, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/p1")
        assert numbers(crawl(home, served)) == (0, 0, 4, 0, 0)
        server.rewrite("/")
        assert numbers(crawl(home, served)) == (0, 2, 2, 0, 0)


def test_e3_what_two_liars_say_alike_is_doubted_once(home: Home) -> None:
    """A page of the one that says the same as one of the other is a duplicate of it, and the counters have it once."""
    servers = [Server(3, lambda path, _: f'"{path}"') for _ in range(2)]
    servers[1].bodies["/"] = page("the other", "/p0", "/p1", "/p2")
    with serving(Site(servers[0].pages(), {"localhost": servers[1].pages()})) as served:
        given = {"delay": 0, "allow_private": True, "sitemap": False}
        start = Start((served.url("/"), served.url("/", "localhost")), given=given)
        for run in range(2):
            ended = asyncio.run(asyncio.wait_for(home.app.sessions.work(home.app.plan.crawl(start)), PATIENCE))
            assert not (found := unsound(home)), found
            assert (ended.pages, ended.duplicates, ended.pending) == (5, 3, 0), run
            for server in servers:
                server.rewrite("/")
        assert ended.modified == 2


def test_e3_a_stamp_under_the_same_tag_is_no_lie(home: Home) -> None:
    server = Server(8, lambda path, _: f'"{path}"')
    clock = itertools.count(10)
    with serving(Site(server.pages())) as served:
        for run in range(3):
            hour = next(clock)
            for path, body in star(8).items():
                stamp = f"<p>Made on 2026-01-02 {hour}:00:00</p></main>"
                server.bodies[path] = str(body).replace("</main>", stamp)
            since = len(served.log)
            assert numbers(crawl(home, served)) == ((0, 0, 9, 0, 0) if run else (0, 0, 0, 0, 0))
        assert len(sent_validators(served, since)) == 8


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_e3_a_validator_that_most_pages_share_is_not_sent(home: Home, header: str) -> None:
    server = Server(6, lambda *_: '"build-7"' if header == "ETag" else DATE, header)
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/p3")
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 1, 6, 0, 0)
        assert sent_validators(served, since) == []
        assert notes(home) == {"shared_validators": 6, "same_validator": 1}


class Copied(Server):
    """A folder that was copied: all files have one date, until somebody writes one anew."""

    def __init__(self, count: int, header: str = "Last-Modified") -> None:
        self.dates: dict[str, str] = {}
        super().__init__(count, lambda path, _: self.dates.get(path, DATE if header != "ETag" else '"copied"'), header)
        self._clock = itertools.count(10)

    def rewrite(self, *paths: str) -> None:
        super().rewrite(*paths)
        for path in paths:
            hour = next(self._clock)
            self.dates[path] = f'"{hour}"' if self.header == "ETag" else f"Thu, 22 Oct 2015 {hour}:00:00 GMT"


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_a_date_that_all_files_share_is_believed_once_it_moved_together_with_a_page(home: Home, header: str) -> None:
    server = Copied(8, header)
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        since = len(served.log)
        summary = crawl(home, served)
        assert (numbers(summary), summary.downloaded) == ((0, 0, 9, 0, 0), {"shared_validators": 9})
        server.rewrite("/p3")
        summary = crawl(home, served)
        assert (numbers(summary), summary.saved_bytes) == ((0, 1, 8, 0, 0), 0)
        assert sent_validators(served, since) == [], "until now nothing was known of it"
        for _ in range(2):
            since = len(served.log)
            summary = crawl(home, served)
            assert (numbers(summary), summary.saved_bytes > 0) == ((0, 0, 9, 0, 0), True)
            assert len(sent_validators(served, since)) == 8, "all but the seed, which is asked for in full"
        server.rewrite("/p5", "/p6")
        assert numbers(crawl(home, served)) == (0, 2, 7, 0, 0)


def test_a_date_that_did_not_move_with_every_changed_page_is_not_believed(home: Home) -> None:
    server = Copied(8)
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/p3", "/p4")
        del server.dates["/p4"]
        assert numbers(crawl(home, served)) == (0, 2, 7, 0, 0)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)
        assert sent_validators(served, since) == []
        server.rewrite("/p5")
        assert numbers(crawl(home, served)) == (0, 1, 8, 0, 0), "this time it moved with every page that changed"
        assert numbers(crawl(home, served)) == (0, 0, 9, 0, 0)
        assert len(sent_validators(served, since)) == 8


def test_a_sample_finds_out_that_a_shared_date_was_believed_too_soon(home: Home) -> None:
    server = Copied(8)
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/p3")
        crawl(home, served)
        server.rewrite("/", "/p4")
        server.dates = {"/p3": server.dates["/p3"]}
        assert numbers(crawl(home, served)) == (0, 2, 7, 0, 0), "the seed is asked for in full, and then all are"
        since = len(served.log)
        summary = crawl(home, served)
        assert (numbers(summary), summary.downloaded) == ((0, 0, 9, 0, 0), {"distrusted": 9})
        assert sent_validators(served, since) == []


def test_what_is_not_saved_is_told_in_words(home: Home) -> None:
    server = Copied(8)
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        said = home.cli("crawl", served.url("/"), "--delay", "0").stderr
        assert "9 unchanged pages: most pages have one and the same date, so all are asked for in full until" in said
        server.rewrite("/p3")
        crawl(home, served)
        server.rewrite("/", "/p4")
        server.dates = {"/p3": server.dates["/p3"]}
        crawl(home, served)
        said = home.cli("crawl", served.url("/"), "--delay", "0").stderr
    assert (
        "9 unchanged pages: the server's ETags or dates do not change with its pages, so all are asked for in full"
        in said
    )


def test_e3_a_shared_date_beside_a_tag_that_cannot_be_sent_is_not_sent(home: Home) -> None:
    server = Server(6, lambda *_: DATE, "Last-Modified")
    server.extra = {"ETag": "no quotes"}
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/p3")
        assert numbers(crawl(home, served)) == (0, 1, 6, 0, 0)


def test_e3_a_date_that_lies_beside_a_tag_that_cannot_be_sent_is_found_out(home: Home) -> None:
    server = Server(3, lambda path, _: f"{DATE} {path}", "Last-Modified")
    server.extra = {"ETag": "no quotes"}
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        server.rewrite("/", "/p1")
        assert numbers(crawl(home, served)) == (0, 2, 2, 0, 0)


# E4


@pytest.mark.parametrize(
    "dates",
    [
        ("Fri, 01 Jan 2100 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"),
        ("Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("Mon, 02 Jun 2025 00:00:00 GMT", "Tue, 03 Jun 2025 00:00:00 GMT"),
        ("0", "never"),
        ("Thu, 99 Foo 99999 99:99:99 GMT", "-1"),
    ],
    ids=["future", "1970", "daily", "no-date", "impossible"],
)
def test_e4_strange_dates_of_last_change_do_no_harm(home: Home, dates: tuple[str, str]) -> None:
    day = [0]
    server = Server(4, lambda path, _: f"{dates[day[0]]}{'' if path == '/p1' else ' ' + path}", "Last-Modified")
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        day[0] = 1
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 5, 0, 0)
        assert len(sent_validators(served, since)) == 4
        server.rewrite("/", "/p1")
        assert numbers(crawl(home, served)) == (0, 2, 3, 0, 0)


# E5 and E8: answers that fit no question


class Slips:
    """Gives the wrong answer to the first request for each page of a run, and the right one after that."""

    def __init__(self, wrong: dict[str, Page]) -> None:
        self.wrong = wrong
        self.is_wrong = True
        self.asked: Counter[str] = Counter()

    def answer(self, hit: Hit) -> Answer:
        self.asked[hit.path] += 1
        if self.is_wrong and self.asked[hit.path] == 1:
            return self.wrong[hit.path]
        return Page(page(hit.path), headers={} if hit.path == "/304" else {"ETag": f'"{hit.path}"'})

    def next_run(self, is_wrong: bool) -> None:
        self.asked.clear()
        self.is_wrong = is_wrong


WRONG = {
    "/304": Page(status=304),
    "/206": Page(page("part"), 206, {"Content-Range": "bytes 0-9/100"}),
    "/range": Page(page("part"), 200, {"Content-Range": "bytes 0-9/100"}),
    "/412": Page("no", 412),
    "/416": Page("no", 416),
}


def test_e5_e8_an_answer_that_nobody_asked_for_is_asked_for_again(home: Home) -> None:
    slips, paths = Slips(WRONG), ("/304", "/206", "/range")
    with serving(Site({"/": page("home", *paths), **dict.fromkeys(paths, slips.answer)})) as served:
        assert crawl(home, served).pages == 1 + len(paths)
        assert all(verdicts(home)[path].outcome == "page" for path in paths)
        assert {home.show(served.url(path))["visits"][-1]["title"] for path in paths} == set(paths)


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(("/304", "/206", "/range"), id="304-206-range"),
        pytest.param(("/412", "/416"), id="412-416"),
    ],
)
def test_e5_e8_a_known_page_with_a_wrong_answer_is_asked_for_plainly(home: Home, paths: tuple[str, ...]) -> None:
    slips = Slips(WRONG)
    slips.is_wrong = False
    with serving(Site({"/": page("home", *paths), **dict.fromkeys(paths, slips.answer)})) as served:
        crawl(home, served)
        slips.next_run(is_wrong=True)
        since = len(served.log)
        assert numbers(crawl(home, served)) == (0, 0, 1 + len(paths), 0, 0)
        asked = [(hit.path, bool(conditions(hit))) for hit in served.log[since:] if hit.path in paths]
        assert sorted(asked) == sorted(one for path in paths for one in ((path, path != "/304"), (path, False)))


@pytest.mark.parametrize("status", [412, 416])
def test_e8_to_a_plain_request_it_is_an_answer_like_any_other(home: Home, status: int) -> None:
    """Nobody asked under a condition, so asking plainly once more would bring nothing else."""
    pages: Pages = {"/": page("home", "/a"), "/a": Page("no", status)}
    with serving(Site(pages)) as served:
        crawl(home, served)
        assert verdicts(home)["/a"].outcome == "http_4xx"
        assert asked_for(served).count("/a") == 1
        since = len(served.log)
        crawl(home, served, mode="full")
        assert (verdicts(home)["/a"].outcome, asked_for(served, since).count("/a")) == ("http_4xx", 1)


@pytest.mark.parametrize("status", [412, 416])
def test_e8_a_known_page_that_is_asked_for_plainly_fails_by_its_status(home: Home, status: int) -> None:
    server = Server(2, lambda path, _: f'"{path}"')
    pages = server.pages()
    with serving(Site(pages)) as served:
        crawl(home, served)
        pages["/p1"] = Page("no", status)
        since = len(served.log)
        crawl(home, served, mode="full")
        assert (verdicts(home)["/p1"].outcome, asked_for(served, since).count("/p1")) == ("http_4xx", 1)


def test_e5_a_server_that_only_ever_says_not_modified_gives_no_page(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a"), "/a": Page(status=304, headers={"ETag": '"a"'})}
    with serving(Site(pages)) as served:
        assert crawl(home, served, max_retries=0).pages == 1
        assert verdicts(home)["/a"].outcome == "protocol_error"
        # It is no page that anybody knows: nothing can be said of it, and it has not become one by being asked again.
        assert numbers(crawl(home, served)) == (0, 0, 1, 0, 0)
        assert verdicts(home)["/a"].outcome == "protocol_error"


def test_e5_not_modified_for_a_page_that_is_asked_for_in_full_is_no_answer(home: Home) -> None:
    server = Server(2, lambda path, _: f'"{path}"')
    pages = server.pages()
    with serving(Site(pages)) as served:
        crawl(home, served)
        pages["/p1"] = Page(status=304, headers={"ETag": '"/p1"'})
        assert numbers(crawl(home, served, mode="full", max_retries=0)) == (0, 0, 2, 0, 1)
        assert verdicts(home)["/p1"].outcome == "protocol_error"
        assert compared(home)["unknown"] == ["/p1"]


@pytest.mark.parametrize("path", ["/p1", "/sitemap.xml"])
def test_e5_not_modified_that_is_no_answer_is_nothing_to_doubt_when_a_lie_is_found_out(home: Home, path: str) -> None:
    server = Server(3, lambda path, _: f'"{path}"')
    pages = server.pages()
    with serving(Site(pages)) as served:
        pages[path] = Page(status=304)
        crawl(home, served, max_retries=0, sitemap=True)
        server.rewrite("/")
        ended = crawl(home, served, max_retries=0, sitemap=True)
        assert (ended.run_state, ended.modified) == ("completed", 1)


# E6


def test_e6_a_new_tag_that_comes_with_not_modified_is_the_one_to_ask_by(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a"), "/a": page("a")}
    with serving(Site(pages)) as served:
        for run, (old, new) in enumerate(itertools.pairwise(["", '"one"', '"two"', '"three"'])):
            pages["/a"] = Page(page("a"), 304 if run else 200, {"ETag": new})
            since = len(served.log)
            assert numbers(crawl(home, served)) == ((0, 0, 2, 0, 0) if run else (0, 0, 0, 0, 0))
            (hit,) = (hit for hit in served.log[since:] if hit.path == "/a")
            assert conditions(hit) == ([("if-none-match", old)] if old else [])


def test_e6_not_modified_without_a_tag_leaves_the_one_there_was(home: Home) -> None:
    pages: Pages = {"/": page("home", "/a"), "/a": Page(page("a"), 200, {"ETag": '"one"'})}
    with serving(Site(pages)) as served:
        crawl(home, served)
        pages["/a"] = Page(status=304)
        for _ in range(2):
            since = len(served.log)
            assert numbers(crawl(home, served)) == (0, 0, 2, 0, 0)
            (hit,) = (hit for hit in served.log[since:] if hit.path == "/a")
            assert conditions(hit) == [("if-none-match", '"one"')]


# E7


def test_e7_a_page_whose_body_is_lost_is_asked_for_in_full(home: Home) -> None:
    server = Server(3, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        lose_archive(home)
        since = len(served.log)
        summary = sit(home, served)
        assert (numbers(summary), sent_validators(served, since)) == ((0, 0, 4, 0, 0), [])
        assert summary.downloaded == {"asked_in_full": 4}


def test_e7_a_body_that_was_lost_is_archived_again_when_it_comes_again(home: Home) -> None:
    server = Server(3, lambda path, _: f'"{path}"')
    with serving(Site(server.pages())) as served:
        crawl(home, served)
        lose_archive(home)
        sit(home, served)
        since = len(served.log)
        sit(home, served)
        assert sent_validators(served, since) == ["/p0", "/p1", "/p2"]
        assert "lost" not in home.cli("diff", home.word, served.url("/p1"), "1", "2").stdout


def lose_archive(home: Home) -> None:
    for path in (folder_of(home) / "archive").iterdir():
        path.unlink()


# E12


@pytest.mark.parametrize("rotate", [False, True], ids=["one-name", "names-in-turn"])
def test_e12_a_page_is_asked_for_in_the_same_way_in_every_run(home: Home, rotate: bool) -> None:
    def by_browser(hit: Hit) -> Answer:
        said = page(hit.path, *paths, body=f"<p>{hit.headers['user-agent']} {hit.headers.get('accept-encoding')}</p>")
        return Page(said, headers={"Vary": "User-Agent, Accept-Encoding, Cookie", "Set-Cookie": "a=1"})

    paths = [f"/p{number}" for number in range(6)]
    with serving(Site({"/": by_browser, **dict.fromkeys(paths, by_browser)}, validators=True)) as served:
        profiles = []
        for mode in ("", "incremental", "full", "incremental"):
            since = len(served.log)
            summary = crawl(home, served, mode=mode, rotate_user_agent=rotate)
            assert numbers(summary) == ((0, 0, 7, 0, 0) if mode else (0, 0, 0, 0, 0))
            profiles.append({hit.path: plain_headers(hit) for hit in served.log[since:]})
        assert all(profile == profiles[0] for profile in profiles)


def plain_headers(hit: Hit) -> list[tuple[str, str]]:
    """What does not depend on the version that we have, in the order it was sent."""
    return [(name, value) for name, value in hit.headers.items() if name != "if-none-match"]
