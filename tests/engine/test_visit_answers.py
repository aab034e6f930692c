"""What a visit makes of every answer there is: statuses, redirects, walls, parts of pages, and what breaks."""

from __future__ import annotations

import asyncio
import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from tests.engine.test_visit import DEAD, HOST, OTHER, Web, answer, entry, tools, visited

from inchworm.engine.visit import DEATHS, ROBOTS_REDIRECTS, failed_with_host, unreadable_robots, visit
from inchworm.errors import InchwormError
from inchworm.model import Document, DownHost, Failure, FinishedVisit, Kind, Outcome, Response, Source
from inchworm.ports import Read
from inchworm.reader import DocumentReader
from inchworm.rules.web import robots, sitemap

ROBOTS, SITEMAP = f"{HOST}/robots.txt", f"{HOST}/sitemap.xml"


def seen(said: Response | Failure, kind: Kind = Kind.PAGE, url: str = f"{HOST}/page", **more: Any) -> FinishedVisit:
    return visited(entry(url, kind, **more), tools(Web({"*": said}), max_retries=2))


# What it comes to

FINAL = [
    (answer(b"<title>Hello</title>"), "page", ""),
    (answer(status=404), "failed", "http_4xx"),
    (answer(status=410), "failed", "http_4xx"),
    (answer(status=403), "failed", "http_4xx"),
    (answer(status=501), "failed", "http_5xx"),
    (answer(status=505), "failed", "http_5xx"),
    (answer(status=301, location="/there"), "redirect", ""),
    (answer(status=302, location="/there"), "redirect", ""),
    (answer(status=303), "failed", "bad_redirect"),
    (answer(status=302, location="http://a:b/"), "failed", "bad_redirect"),
    (answer(status=302, location="mailto:me@h.test"), "failed", "bad_redirect"),
    (Failure("tls", "the certificate is old"), "failed", "tls"),
    (Failure("address_refused", "not that one"), "failed", "address_refused"),
]
TRANSIENT = [
    (answer(status=408), "http_4xx"),
    (answer(status=425), "http_4xx"),
    (answer(status=429), "http_429"),
    (answer(status=500), "http_5xx"),
    (answer(status=502), "http_5xx"),
    (answer(status=304), "protocol_error"),
    (answer(status=206), "protocol_error"),
    (answer(content_range="bytes 0-9/99"), "protocol_error"),
    (Failure("dns", "no such name", unreachable=True), "dns"),
    (Failure("timeout", "too late"), "timeout"),
    (Failure("truncated", "cut"), "truncated"),
]
WALL = answer(b"<title>Just a moment...</title>", 403, cf_mitigated="challenge")


@pytest.mark.parametrize(("said", "outcome", "failure"), FINAL)
def test_what_no_other_try_would_change(said: Response | Failure, outcome: str, failure: str) -> None:
    made = seen(said)
    assert (made.outcome, made.failure) == (outcome, failure)
    assert bool(made.message) is bool(failure)


@pytest.mark.parametrize(("said", "failure"), TRANSIENT)
def test_what_may_pass_is_tried_again_as_often_as_it_may(said: Response | Failure, failure: str) -> None:
    """Each time later than before."""
    waits = []
    for attempts in (0, 1):
        made = seen(said, attempts=attempts)
        assert (made.outcome, made.failure) == (Outcome.RETRY, failure)
        waits.append(made.retry_at_ms - 1_700_000_000_000)
    assert waits == [500, 1000]
    made = seen(said, attempts=2)
    assert (made.outcome, made.failure, made.retry_at_ms) == (Outcome.FAILED, failure, 0)


@pytest.mark.parametrize("kind", [Kind.ROBOTS, Kind.SITEMAP])
def test_a_file_that_steers_a_crawl_is_no_failed_page(kind: Kind) -> None:
    made = seen(Failure("tls", "the certificate is old"), kind, ROBOTS if kind is Kind.ROBOTS else SITEMAP)
    assert (made.outcome, made.failure, made.robots) == (Outcome.CONTROL, "tls", None)


@pytest.mark.parametrize(("status", "quiet_ms"), [(429, 7000), (503, 7000), (500, 0), (200, 0)])
def test_a_server_that_asks_for_quiet_is_heard_where_it_pushes_back(status: int, quiet_ms: int) -> None:
    assert seen(answer(status=status, retry_after="7")).quiet_ms == quiet_ms


def test_an_answer_is_on_record_with_what_it_said() -> None:
    body = b"<title>Hello</title><p>There is something to read here."
    said = answer(body, etag='"v1"', last_modified="yesterday")
    made = seen(said)
    assert (made.status, made.size, made.millis) == (200, len(body), 100)
    assert (made.etag, made.last_modified, made.content_type) == ('"v1"', "yesterday", "text/html")
    assert made.record is not None
    assert (made.record.url, made.record.head, made.record.payload) == (f"{HOST}/page", said.head, body)
    assert made.requested and not made.unreachable


def test_what_an_answer_does_not_say_is_not_on_record() -> None:
    """What it is can be seen from its bytes; nobody may read later that the server said so."""
    made = seen(answer(b"<title>Hello</title>")._replace(headers={}))
    assert (made.outcome, made.reading.title) == (Outcome.PAGE, "Hello")
    assert (made.content_type, made.etag, made.last_modified) == ("", "", "")


def test_what_came_of_an_answer_that_was_too_large_is_on_record() -> None:
    cut = answer(b"the beginning")
    made = seen(Failure("too_large", "the body is larger than 9 bytes", 0.2, cut))
    assert (made.outcome, made.failure, made.status, made.size) == (Outcome.FAILED, "too_large", 200, 13)
    assert made.record is not None and made.record.payload == b"the beginning"


def test_whom_nobody_can_reach_is_told_apart() -> None:
    assert seen(DEAD).unreachable
    assert not seen(Failure("timeout", "too late")).unreachable
    assert seen(Failure("timeout", "too late", 1.5)).millis == 1500


# Walls


@pytest.mark.parametrize("said", [WALL, answer(b"welcome", 200, cf_mitigated="challenge")])
def test_a_wall_is_no_answer_of_the_page(said: Response) -> None:
    made = seen(said)
    assert (made.outcome, made.failure) == (Outcome.FAILED, "blocked")
    assert str(said.status) in made.message


def test_a_page_that_reads_like_a_wall_is_one_and_a_stylesheet_is_not() -> None:
    body = b'<title>Are you a robot?</title><p>Please verify you are human.<div class="g-recaptcha"></div>'
    assert seen(answer(body)).failure == "blocked"
    assert seen(answer(body), Kind.RESOURCE).outcome is Outcome.RESOURCE


def test_a_wall_may_ask_for_quiet() -> None:
    made = seen(answer(b"", 429, cf_mitigated="challenge", retry_after="9"))
    assert (made.failure, made.quiet_ms) == ("blocked", 9000)


# Redirects


@pytest.mark.parametrize(
    ("chain", "failure"), [(0, ""), (9, ""), (10, "too_many_redirects"), (11, "too_many_redirects")]
)
def test_a_chain_of_redirects_may_be_ten_long(chain: int, failure: str) -> None:
    made = seen(answer(status=302, location="/there"), chain=chain)
    assert made.failure == failure
    assert made.outcome is (Outcome.FAILED if failure else Outcome.REDIRECT)


def test_a_hop_leads_to_the_same_kind_of_thing() -> None:
    made = seen(answer(status=302, location="/there?utm_source=x#top"), Kind.RESOURCE)
    assert made.redirect is not None
    assert made.redirect[:4] == (f"{HOST}/there", f"{HOST}/there?utm_source=x", Kind.RESOURCE, Source.REDIRECT)


def test_a_sitemap_that_lies_elsewhere_is_found_there() -> None:
    made = seen(answer(status=301, location="/map.xml"), Kind.SITEMAP, SITEMAP, chain=99)
    assert made.outcome is Outcome.CONTROL
    assert [link.request_url for link in made.reading.links] == [f"{HOST}/map.xml"]


@pytest.mark.parametrize("kind", ["connect", "tls", "timeout"])
def test_a_host_that_was_typed_without_a_scheme_is_tried_by_http(kind: str) -> None:
    url = "https://h.test/page"
    with_tools = dataclasses.replace(tools(Web({"*": Failure(kind, "no")})), bare_seeds=frozenset([url]))
    made = visited(entry(url), with_tools)
    assert made.outcome is Outcome.REDIRECT and made.redirect is not None
    assert made.redirect.request_url == "http://h.test/page"
    assert visited(entry("https://h.test/other"), with_tools).redirect is None, "it was not typed"
    again = dataclasses.replace(with_tools, fetcher=Web({"*": Failure("dns", "no such name")}))
    assert visited(entry(url), again).outcome is Outcome.RETRY


# What is sent


@pytest.mark.parametrize(
    ("kind", "most", "is_beginning"),
    [
        (Kind.PAGE, 777, False),
        (Kind.RESOURCE, 777, False),
        (Kind.ROBOTS, robots.MAX_BYTES + 1, True),
        (Kind.SITEMAP, sitemap.MAX_BYTES + 1, True),
    ],
)
def test_of_files_the_beginning_is_enough(kind: Kind, most: int, is_beginning: bool) -> None:
    """And one byte more than is read, to see that they were cut."""
    web = Web({"*": answer(b"User-agent: *\n")})
    visited(entry(ROBOTS, kind), tools(web, max_body=777, timeout=5))
    (asked,) = web.asked
    assert (asked.max_body_bytes, asked.beginning, asked.timeout_seconds) == (most, is_beginning, 5)


def test_names_of_browsers_are_given_for_pages_only_and_only_where_that_is_wanted() -> None:
    def names(kind: Kind, **given: Any) -> list[str]:
        web = Web({"*": answer(b"User-agent: *\n")})
        visited(entry(ROBOTS, kind), tools(web, **given))
        return [value for name, value in web.asked[0].headers if name == "User-Agent"]

    assert names(Kind.PAGE) == names(Kind.ROBOTS, rotate_user_agent=True) == []
    (name,) = names(Kind.PAGE, rotate_user_agent=True)
    assert name.startswith("Mozilla/5.0")


@pytest.mark.parametrize(("given", "kept"), [({}, ["who"]), ({"cookies": False}, [])])
def test_cookies_are_taken_where_they_are_wanted(given: dict[str, Any], kept: list[str]) -> None:
    said = answer(b"<title>Hello</title>", set_cookie="who=me")
    made = visited(entry(), tools(Web({"*": said}), **given))
    assert [cookie.name for cookie in made.cookies] == kept


# What breaks


class Breaks(DocumentReader):
    """A reader that fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def read(self, given: Document) -> Read:
        raise self._error


class Marks:
    """Which URL is being read."""

    def __init__(self) -> None:
        self.noted: list[int | None] = []

    def set(self, url_id: int) -> None:
        self.noted.append(url_id)

    def clear(self) -> None:
        self.noted.append(None)


def test_what_breaks_the_reader_costs_that_page_and_no_other() -> None:
    mark = Marks()
    with_tools = dataclasses.replace(tools(Web({"*": answer(b"<p>")})), reader=Breaks(ValueError("odd")), mark=mark)
    made = visited(entry(), with_tools)
    assert (made.outcome, made.failure) == (Outcome.FAILED, "reader_crashed")
    assert made.message == "reading the answer failed: ValueError('odd')"
    assert made.status == 200 and made.record is not None, "and what came is kept"
    assert mark.noted == [1, None], "who dies while reading it is remembered, and nobody else"


def test_what_breaks_our_own_disk_is_no_fault_of_the_page() -> None:
    with_tools = dataclasses.replace(
        tools(Web({"*": answer(b"<p>")})), reader=Breaks(InchwormError("The disk is full.", "Make room."))
    )
    with pytest.raises(InchwormError, match="disk"):
        asyncio.run(visit(entry(), with_tools))


@pytest.mark.parametrize(("deaths", "is_asked"), [(DEATHS - 1, True), (DEATHS, False), (DEATHS + 1, False)])
def test_a_page_over_which_the_process_died_too_often_is_set_aside(deaths: int, is_asked: bool) -> None:
    web = Web({"*": answer(b"<title>Hello</title>")})
    made = visited(entry(), dataclasses.replace(tools(web), deaths={1: deaths, 2: 99}))
    assert (bool(web.asked), made.requested) == (is_asked, is_asked)
    assert (made.outcome, made.failure) == ((Outcome.PAGE, "") if is_asked else (Outcome.FAILED, "reader_crashed"))


# Links and forms


@pytest.mark.parametrize(("obeys", "nofollow"), [(True, [True]), (False, [False])])
def test_a_page_that_wants_no_link_followed_is_obeyed_like_a_robots_txt(obeys: bool, nofollow: list[bool]) -> None:
    body = b'<title>Hello</title><meta name=robots content=nofollow><a href="/a">a</a>'
    made = visited(entry(), tools(Web({"*": answer(body)}), robots=obeys))
    assert [link.nofollow for link in made.reading.links] == nofollow


@pytest.mark.parametrize(("chain", "is_login"), [(0, False), (1, True)])
def test_a_form_for_a_password_at_the_end_of_a_redirect_is_a_login(chain: int, is_login: bool) -> None:
    body = b"<title>Who are you?</title><p>Say it.<input type=password>"
    assert bool(seen(answer(body), chain=chain).reading.meta.get("login")) is is_login
    assert not seen(answer(b"<title>Hello</title>"), chain=chain).reading.meta.get("login")


# robots.txt


@pytest.mark.parametrize(("hops", "is_read"), [(ROBOTS_REDIRECTS, True), (ROBOTS_REDIRECTS + 1, False)])
def test_a_robots_txt_may_lie_so_many_redirects_away(hops: int, is_read: bool) -> None:
    """What is further away is not there, which allows all."""
    rules = b"User-agent: *\nDisallow: /x"
    stations = [ROBOTS, *(f"{OTHER}/{number}" for number in range(hops))]
    web = Web({here: answer(status=302, location=there) for here, there in pairwise(stations)})
    web.answers[stations[-1]] = answer(rules)
    made = visited(entry(ROBOTS, Kind.ROBOTS), tools(web))
    assert (made.outcome, made.robots) == (Outcome.CONTROL, rules if is_read else b"")
    assert len(web.asked) == ROBOTS_REDIRECTS + 1


@pytest.mark.parametrize("kind", ["address_refused", "not_in_archive"])
def test_where_nobody_may_ask_the_pages_fail_by_themselves(kind: str) -> None:
    made = seen(Failure(kind, "no"), Kind.ROBOTS, ROBOTS)
    assert (made.outcome, made.robots, made.failure) == (Outcome.CONTROL, b"", kind)


@pytest.mark.parametrize(
    ("body", "given", "found"),
    [
        (b"", {}, [SITEMAP]),
        (b"Sitemap: http://h.test/a.xml\nSitemap: http://h.test/b.xml", {}, [f"{HOST}/a.xml", f"{HOST}/b.xml"]),
        (b"Sitemap: http://h.test/a.xml", {"sitemap": False}, []),
        (b"", {"sitemap": False}, []),
    ],
)
def test_sitemaps_are_those_that_are_named_or_the_usual_one(
    body: bytes, given: dict[str, Any], found: list[str]
) -> None:
    made = visited(entry(ROBOTS, Kind.ROBOTS), tools(Web({"*": answer(body)}), **given))
    assert [link.request_url for link in made.reading.links] == found
    assert {link.kind for link in made.reading.links} <= {Kind.SITEMAP}


@pytest.mark.parametrize(
    ("body", "is_truncated", "rules", "is_said"),
    [
        (b"User-agent: *\nDisallow: /private", False, b"User-agent: *\nDisallow: /private", False),
        (b"User-agent: *\nDisallow: /pri", True, b"User-agent: *\n", True),
    ],
)
def test_of_a_huge_robots_txt_whole_lines_count(body: bytes, is_truncated: bool, rules: bytes, is_said: bool) -> None:
    said = answer(body)._replace(truncated="length" if is_truncated else "")
    made = seen(said, Kind.ROBOTS, ROBOTS)
    assert (made.robots, bool(made.message)) == (rules, is_said)


def test_where_a_robots_txt_cannot_be_read_its_pages_fail_without_a_request() -> None:
    with_tools = tools(Web({}))
    made = unreadable_robots(entry(), "http_5xx: robots.txt could not be read: the server answered 500", with_tools)
    assert (made.outcome, made.failure, made.requested) == (Outcome.FAILED, "robots", False)
    made = unreadable_robots(entry(), "connect: connection refused", with_tools)
    assert (made.outcome, made.failure, made.message) == (Outcome.FAILED, "connect", "connection refused")
    assert unreadable_robots(entry(SITEMAP, Kind.SITEMAP), "connect: no", with_tools).outcome is Outcome.CONTROL


@pytest.mark.parametrize(("trouble", "goes_on"), [("tls: no", True), ("connect: no", True), ("http_5xx: 500", False)])
def test_a_host_that_was_typed_without_a_scheme_is_tried_by_http_before_that(trouble: str, goes_on: bool) -> None:
    url = "https://h.test/"
    made = unreadable_robots(entry(url), trouble, dataclasses.replace(tools(Web({})), bare_seeds=frozenset([url])))
    assert (made.redirect is not None, bool(made.failure)) == (goes_on, not goes_on)


def test_a_url_of_a_host_that_is_given_up_fails_for_its_reason() -> None:
    down = DownHost(HOST, "connect", "connection refused", 1_700_000_000_000, 3)
    made = failed_with_host(entry(), down, tools(Web({})))
    assert (made.outcome, made.failure, made.requested) == (Outcome.FAILED, "connect", False)
    assert made.message.endswith("connection refused")
    assert failed_with_host(entry(SITEMAP, Kind.SITEMAP), down, tools(Web({}))).outcome is Outcome.CONTROL
