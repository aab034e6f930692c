"""The life of one URL: what a visit makes of each answer, without a network."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.engine.earlier import OLD, Before

from inchworm.engine.visit import Tools, check_host, visit
from inchworm.model import (
    Change,
    Cookie,
    Failure,
    FinishedVisit,
    FrontierEntry,
    Kind,
    Outcome,
    Reply,
    Request,
    Response,
    Source,
    Unanswered,
    Version,
)
from inchworm.reader import DocumentReader
from inchworm.rules.web.cookies import Jar
from inchworm.settings import make
from inchworm.testing import ManualClock

HOST, OTHER = "http://h.test", "http://other.test"
DEAD = Failure("connect", "connection refused", unreachable=True)
BROKEN = Failure("truncated", "the connection was closed within the head")
EXCUSE = b"<title>Not found</title><h1>Page not found</h1><p>The page that you are looking for does not exist."


def answer(body: bytes = b"", status: int = 200, **headers: str) -> Response:
    named = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"HTTP/1.1 {status} So", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    return Response(status, "\r\n".join(lines).encode(), named, body, body, 0.1)


class Web:
    """Answers by URL, and what was asked for. Whatever has none of its own gets the one under `*`."""

    def __init__(self, answers: dict[str, Reply]) -> None:
        self.answers = answers
        self.asked: list[Request] = []

    async def fetch(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.answers.get(request.url) or self.answers["*"]

    async def close(self) -> None:
        """Nothing is kept open."""


class NoMark:
    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...


def tools(web: Web, *, answered: tuple[str, ...] = (), **given: Any) -> Tools:
    return Tools(
        make(given), web, DocumentReader(), ManualClock(), NoMark(), lambda: 0.0, {}, has_answered=answered.__contains__
    )


def entry(url: str = f"{HOST}/page", kind: Kind = Kind.PAGE, **more: Any) -> FrontierEntry:
    return FrontierEntry(1, url, url, kind, Source.SPIDER, 0, 1, 0, 0, (1, 0), **more)


def visited(wanted: FrontierEntry, with_tools: Tools) -> FinishedVisit:
    async def whole() -> FinishedVisit | Unanswered:
        try:
            return await visit(wanted, with_tools)
        finally:
            await with_tools.reader.close()

    made = asyncio.run(whole())
    assert isinstance(made, FinishedVisit)
    return made


# Hosts that cannot be reached


def test_a_url_of_a_host_that_is_down_waits() -> None:
    made = asyncio.run(visit(entry(), tools(Web({"*": DEAD}), answered=(HOST,))))
    assert made == Unanswered(entry(), "connect", "connection refused")


def test_a_url_of_a_host_that_never_answered_is_tried_again_and_fails() -> None:
    assert visited(entry(), tools(Web({"*": DEAD}))).outcome is Outcome.RETRY
    assert visited(entry(attempts=9), tools(Web({"*": DEAD}))).outcome is Outcome.FAILED


def test_a_robots_txt_that_leads_to_a_host_that_is_down_does_not_wait_for_it() -> None:
    """Its own host answers, and nobody looks at the other one for this one's sake."""
    away = answer(status=301, location=f"{OTHER}/robots.txt")
    web = Web({f"{HOST}/robots.txt": away, "*": DEAD})
    made = visited(entry(f"{HOST}/robots.txt", Kind.ROBOTS), tools(web, answered=(HOST, OTHER)))
    assert (made.outcome, made.failure) == (Outcome.RETRY, "connect")


@pytest.mark.parametrize("said", [answer(), answer(status=404), answer(status=503), BROKEN])
def test_whatever_a_host_answers_it_is_there(said: Reply) -> None:
    assert asyncio.run(check_host(HOST, tools(Web({"*": said})))) is None


def test_a_host_that_cannot_be_reached_is_not_there() -> None:
    assert asyncio.run(check_host(HOST, tools(Web({"*": DEAD})))) == DEAD


@pytest.mark.parametrize(("asked", "seconds"), [("3600", 3600), ("0", 0.5), ("soon", 0.5)])
def test_a_url_is_tried_again_when_its_host_has_had_the_quiet_that_it_asked_for(asked: str, seconds: float) -> None:
    with_tools = tools(Web({"*": answer(status=503, retry_after=asked)}))
    made = visited(entry(), with_tools)
    assert made.outcome is Outcome.RETRY
    assert made.retry_at_ms - with_tools.clock.now_ms() == 1000 * seconds


# What is noted of every answer


class SlowWeb(Web):
    """It takes a minute to answer."""

    def __init__(self, said: Reply, clock: ManualClock) -> None:
        super().__init__({"*": said})
        self._clock = clock

    async def fetch(self, request: Request) -> Reply:
        self._clock.advance(60)
        return await super().fetch(request)


@pytest.mark.parametrize("kind", [Kind.PAGE, Kind.SITEMAP, Kind.ROBOTS])
@pytest.mark.parametrize("said", [answer(b"words"), answer(status=404), answer(status=503), BROKEN])
def test_a_visit_has_the_time_at_which_it_asked(said: Reply, kind: Kind) -> None:
    """What the page became while the answer was on its way nobody has seen."""
    clock = ManualClock()
    asked_ms = clock.now_ms()
    made = visited(entry(kind=kind), dataclasses.replace(tools(SlowWeb(said, clock)), clock=clock))
    assert made.at_ms == asked_ms


def test_a_page_is_known_by_its_links_beside_its_text() -> None:
    """Where only the target of a link is another one, its text is the same."""
    texts, links = [], []
    for target in (b"/loom", b"/weft"):
        words = b"A worm measures a leaf with all of its body, one loop after the other, and goes"
        body = b"<title>Worms</title><p>%s <a href=%s>home</a>." % (words, target)
        made = visited(entry(), tools(Web({"*": answer(body)})))
        texts.append(made.text_hash)
        links.append(made.link_hash)
    assert texts[0] == texts[1] != b""
    assert links[0] != links[1]


# Pages that say that they are not there


def probed(said: Reply, **more: Any) -> FinishedVisit:
    """A page that excuses itself, on a server that says this of one that cannot be there."""
    return visited(entry(**more), tools(Web({f"{HOST}/page": answer(EXCUSE), "*": said})))


def test_a_server_that_excuses_itself_for_anything_has_no_such_page() -> None:
    assert probed(answer(EXCUSE)).failure == "soft_404"


def test_an_honest_server_is_believed() -> None:
    assert probed(answer(status=404)).outcome is Outcome.PAGE


@pytest.mark.parametrize("trouble", [answer(status=500), answer(status=429), answer(status=503), BROKEN])
def test_a_page_in_doubt_is_tried_again_while_its_server_has_trouble(trouble: Reply) -> None:
    assert probed(trouble).outcome is Outcome.RETRY


@pytest.mark.parametrize("trouble", [answer(status=500), BROKEN, Failure("address_refused", "not that one")])
def test_a_page_in_doubt_is_believed_where_nobody_will_ever_know(trouble: Reply) -> None:
    """It came with status 200: that the question could not be answered does not speak against it."""
    made = probed(trouble, attempts=9)
    assert (made.outcome, made.failure, made.reading.title) == (Outcome.PAGE, "", "Not found")


def test_a_page_in_doubt_waits_for_a_host_that_goes_down_meanwhile() -> None:
    web = Web({f"{HOST}/page": answer(EXCUSE), "*": DEAD})
    assert isinstance(asyncio.run(visit(entry(), tools(web, answered=(HOST,)))), Unanswered)
    assert len(web.asked) == 2


# What earlier runs know


def again(said: Response, known: Version = OLD, kind: Kind = Kind.PAGE, **more: Any) -> tuple[FinishedVisit, Request]:
    """A later run, in which this is what the server says; and what it was asked."""
    web = Web({"*": said})
    made = visited(entry(kind=kind), dataclasses.replace(tools(web), earlier=Before(known), compares=True, **more))
    return made, web.asked[0]


def test_a_known_page_is_asked_for_by_its_validator_and_by_our_cookies() -> None:
    jar = Jar([Cookie("h.test", "/", "who", "me", True, False, 0)])
    _, asked = again(answer(status=304), jar=jar)
    assert dict(asked.headers) == {"Cookie": "who=me", "If-None-Match": '"v1"'}


@pytest.mark.parametrize(("kind", "outcome"), [(Kind.PAGE, Outcome.PAGE), (Kind.RESOURCE, Outcome.RESOURCE)])
def test_what_was_not_modified_is_what_it_was(kind: Kind, outcome: Outcome) -> None:
    made, asked = again(answer(status=304), kind=kind)
    assert asked.headers == (("If-None-Match", '"v1"'),)
    assert (made.outcome, made.etag, made.text_hash, made.is_version) == (outcome, '"v1"', b"text", True)
    made, _ = again(answer(status=304, etag='"v2"'), kind=kind)
    assert made.etag == '"v2"'


def test_the_runs_in_which_a_page_was_not_there_add_up() -> None:
    made, _ = again(answer(status=404))
    assert (made.outcome, made.change, made.missing) == (Outcome.DELETED, Change.DELETED, 1)
    made, _ = again(answer(status=404), OLD._replace(missing=2))
    assert (made.outcome, made.change, made.missing) == (Outcome.DELETED, None, 3)


# robots.txt


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_robots_txt_that_is_not_given_now_is_tried_again_and_allows_nothing(status: int) -> None:
    robots = entry(f"{HOST}/robots.txt", Kind.ROBOTS)
    web = Web({"*": answer(status=status, retry_after="7")})
    made = visited(robots, tools(web))
    assert (made.outcome, made.robots) == (Outcome.RETRY, None)
    assert made.quiet_ms == (0 if status == 500 else 7000)
    made = visited(robots._replace(attempts=9), tools(web))
    assert (made.outcome, made.robots, bool(made.failure)) == (Outcome.CONTROL, None, True)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_robots_txt_that_is_not_there_allows_all(status: int) -> None:
    made = visited(entry(f"{HOST}/robots.txt", Kind.ROBOTS), tools(Web({"*": answer(b"no", status)})))
    assert (made.outcome, made.robots, made.failure) == (Outcome.CONTROL, b"", "")


def test_a_robots_txt_that_lies_elsewhere_is_archived_under_where_it_lies() -> None:
    web = Web({f"{HOST}/robots.txt": answer(status=301, location="/rules.txt"), "*": answer(b"User-agent: *")})
    made = visited(entry(f"{HOST}/robots.txt", Kind.ROBOTS), tools(web))
    assert made.record is not None
    assert (made.record.url, made.robots) == (f"{HOST}/rules.txt", b"User-agent: *")
