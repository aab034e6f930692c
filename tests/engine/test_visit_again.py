"""What a visit makes of a page that earlier runs know: how it is asked for, and what changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.documents import pdf
from tests.engine.earlier import OLD, Before
from tests.engine.test_visit import HOST, Web, answer, entry, tools, visited

from inchworm import reader
from inchworm.engine.visit import reused
from inchworm.model import Change, FinishedVisit, Kind, Note, Outcome, Response, Version
from inchworm.rules.text import content

BODY = (
    b"<title>Old</title><p>Here are enough words for a text of its own, and not one of them is like any other"
    b" that was ever written on such a page before.<a href=/next>next</a>"
)
OTHER_BODY = BODY.replace(b"enough words", b"more words")


def now(said: Response, before: Before, kind: Kind = Kind.PAGE, **more: Any) -> FinishedVisit:
    """What is made of it in a later run."""
    with_tools = dataclasses.replace(tools(Web({"*": said})), earlier=before, compares=True)
    return visited(entry(kind=kind, **more), with_tools)


def kept(body: bytes = BODY, **more: Any) -> Version:
    """What an earlier run has of a page with this body."""
    first = visited(entry(), tools(Web({"*": answer(body)})))
    assert first.record is not None
    known = OLD._replace(text_hash=first.text_hash, link_hash=first.link_hash, payload=first.record.digest)
    return known._replace(**more)


def test_a_page_that_nobody_knows_is_new() -> None:
    assert now(answer(BODY), Before(None)).change is Change.NEW


@pytest.mark.parametrize("compares", [True, False])
def test_nothing_is_compared_where_nobody_wants_it(compares: bool) -> None:
    web = Web({"*": answer(BODY)})
    made = visited(entry(), dataclasses.replace(tools(web), earlier=Before(kept()), compares=compares))
    assert (made.change is not None) is compares
    assert bool(web.asked[0].headers) is compares


@pytest.mark.parametrize(("kind", "is_asked_by_it"), [(Kind.PAGE, True), (Kind.RESOURCE, True), (Kind.SITEMAP, False)])
def test_validators_are_for_pages_and_resources(kind: Kind, is_asked_by_it: bool) -> None:
    web = Web({"*": answer(b"<urlset></urlset>")})
    visited(entry(kind=kind), dataclasses.replace(tools(web), earlier=Before(OLD), compares=True))
    assert bool(web.asked[0].headers) is is_asked_by_it


def test_a_resource_has_no_change() -> None:
    assert now(answer(BODY), Before(kept()), Kind.RESOURCE).change is None
    assert now(answer(status=304), Before(OLD), Kind.RESOURCE).change is None


def test_who_is_not_believed_is_asked_plainly_and_why_is_noted() -> None:
    web = Web({"*": answer(BODY)})
    before = Before(kept(), Note.SAMPLED)
    made = visited(entry(), dataclasses.replace(tools(web), earlier=before, compares=True))
    assert web.asked[0].headers == ()
    assert (made.change, made.notes) == (Change.UNCHANGED, (Note.SAMPLED,))


@pytest.mark.parametrize("status", [304, 412, 416])
def test_an_answer_to_a_question_that_nobody_asked_says_nothing(status: int) -> None:
    """That is an error of the server's at a plain request; where it was asked, only the first is an answer."""
    made = now(answer(status=status), Before(OLD, Note.SAMPLED))
    if status == 304:
        assert (made.outcome, made.failure) == (Outcome.RETRY, "protocol_error")
    else:
        assert (made.outcome, made.failure) == (Outcome.FAILED, "http_4xx")
    asked = now(answer(status=status), Before(OLD))
    if status == 304:
        assert asked.change is Change.UNCHANGED
    else:
        assert (asked.outcome, asked.failure) == (Outcome.RETRY, "protocol_error")


# What changed

NOTES = {
    "not a byte": (BODY, kept(), Before(None), Change.UNCHANGED, (Note.VALIDATORS_CHANGED,)),
    "only bytes": (
        BODY.replace(b"<p>", b"<p >"),
        kept(reader=""),
        Before(None),
        Change.UNCHANGED,
        (Note.BYTES, Note.VALIDATORS_CHANGED),
    ),
    "the text": (OTHER_BODY, kept(), Before(None), Change.MODIFIED, ()),
    "the text, to what it was": (OTHER_BODY, kept(), Before(None, had_it=True), Change.MODIFIED, (Note.FLAPPING,)),
    "it is back": (BODY, kept(missing=1), Before(None), Change.NEW, (Note.VALIDATORS_CHANGED, Note.BACK)),
    "it is back with other text": (OTHER_BODY, kept(missing=1), Before(None), Change.NEW, (Note.BACK,)),
}


@pytest.mark.parametrize(("body", "known", "before", "change", "notes"), NOTES.values(), ids=NOTES)
def test_what_changed_and_what_is_noted(
    body: bytes, known: Version, before: Before, change: Change, notes: tuple[Note, ...]
) -> None:
    made = now(answer(body), before._replace(known=known))
    assert (made.change, made.notes) == (change, notes)
    assert made.version == known


def test_a_change_under_the_same_validator_is_noted() -> None:
    assert now(answer(OTHER_BODY, etag='"v1"'), Before(kept())).notes == (Note.SAME_VALIDATOR,)
    assert now(answer(OTHER_BODY, etag='"v2"'), Before(kept())).notes == ()
    assert now(answer(BODY, etag='"v1"'), Before(kept())).notes == (Note.VALIDATORS_CHANGED,)


@pytest.mark.parametrize("said", [answer(BODY), answer(OTHER_BODY), answer(status=304)])
def test_a_page_that_nobody_links_to_is_noted(said: Response) -> None:
    assert Note.UNLINKED in now(said, Before(kept()), unlinked=1).notes
    assert Note.UNLINKED not in now(said, Before(kept())).notes


READ_OTHERWISE = {"reader": "an older one", "text_hash": b"as it was read before"}


def test_two_versions_are_held_side_by_side_where_one_was_read_otherwise() -> None:
    known = kept(**READ_OTHERWISE)
    made = now(answer(BODY.replace(b"<p>", b"<p >")), Before(known, stored=BODY))
    assert (made.change, made.message) == (Change.UNCHANGED, "")
    made = now(answer(BODY), Before(kept(OTHER_BODY, **READ_OTHERWISE), stored=OTHER_BODY))
    assert (made.change, made.message) == (Change.MODIFIED, '"more" → "enough"')
    assert made.differences


def test_nothing_certain_is_known_of_a_page_whose_last_version_is_lost() -> None:
    """What another reader read tells nothing, nor do links that are only written otherwise; two texts do."""
    made = now(answer(BODY), Before(kept(OTHER_BODY, **READ_OTHERWISE)))
    assert (made.outcome, made.change, made.notes) == (Outcome.PAGE, Change.UNKNOWN, (Note.LOST,))
    made = now(answer(BODY.replace(b"/next", b"next")), Before(kept(reader="")))
    assert (made.change, made.notes) == (Change.UNKNOWN, (Note.LOST,))
    assert now(answer(OTHER_BODY), Before(kept(reader=""))).change is Change.MODIFIED


LARGE = BODY + b"<p>And more of it.\n" * 100_000


@pytest.mark.parametrize(("old", "new"), [(LARGE, LARGE), (BODY, LARGE), (LARGE, BODY)], ids=["both", "now", "then"])
def test_large_pages_are_held_side_by_side_too(old: bytes, new: bytes) -> None:
    assert content.is_large(LARGE)
    known = kept(old, **READ_OTHERWISE)
    new = new.replace(b"enough", b"some")
    made = now(answer(new), Before(known, stored=old))
    assert made.change is Change.MODIFIED
    assert made.message.startswith('"enough" → "some')
    same = now(answer(old + b"<!-- -->"), Before(known, stored=old))
    assert (same.change, Note.BYTES in same.notes) == (Change.UNCHANGED, True)


def test_of_a_document_it_is_told_what_changed() -> None:
    more = "\n".join(f"Line {number} of a report that nobody else has written so far." for number in range(20))
    old, new = (pdf(f"It costs {price} euros.\n{more}", title="A report") for price in (10, 12))
    known = kept(**READ_OTHERWISE)._replace(content_type="application/pdf")
    made = now(answer(new, content_type="application/pdf"), Before(known, stored=old))
    assert (made.change, made.message) == (Change.MODIFIED, '"10" → "12"')


def test_what_cannot_be_read_again_is_like_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SECONDS", 0.0)
    made = now(answer(BODY), Before(kept(OTHER_BODY, **READ_OTHERWISE), stored=LARGE))
    assert (made.change, made.notes) == (Change.UNKNOWN, (Note.LOST,))


@pytest.mark.parametrize(("status", "change"), [(404, Change.DELETED), (410, Change.DELETED), (403, None), (500, None)])
def test_only_what_the_server_says_is_gone_is_deleted(status: int, change: Change | None) -> None:
    made = now(answer(status=status), Before(OLD))
    assert made.change is change
    assert (made.outcome is Outcome.DELETED) is (change is not None)
    assert now(answer(status=status), Before(None)).outcome in (Outcome.FAILED, Outcome.RETRY)
    assert now(answer(status=status), Before(OLD), Kind.RESOURCE).outcome in (Outcome.FAILED, Outcome.RETRY)


@pytest.mark.parametrize(
    ("known", "text_hash"),
    [
        (OLD, b""),
        (OLD._replace(reader="another"), b"read anew"),
        (OLD._replace(reader="another", missing=1), b""),
        (None, b""),
    ],
)
def test_a_page_that_moved_is_held_against_its_old_text_by_the_same_reader(
    known: Version | None, text_hash: bytes
) -> None:
    made = now(answer(status=301, location="/new"), Before(known))
    assert (made.outcome, made.text_hash) == (Outcome.REDIRECT, text_hash)


# What is taken from an earlier run


@pytest.mark.parametrize(
    ("compares", "kind", "change", "notes"),
    [
        (True, Kind.PAGE, Change.UNCHANGED, (Note.REUSED,)),
        (True, Kind.RESOURCE, None, ()),
        (False, Kind.PAGE, None, ()),
    ],
)
def test_what_is_reused_is_what_it_was(
    compares: bool, kind: Kind, change: Change | None, notes: tuple[Note, ...]
) -> None:
    made = reused(entry(kind=kind), OLD._replace(at_ms=77), compares)
    assert (made.change, made.notes, made.requested, made.is_version) == (change, notes, False, True)
    assert (made.at_ms, made.status, made.text_hash, made.reading.title) == (77, 200, b"text", "Old")
    assert made.outcome is (Outcome.PAGE if kind is Kind.PAGE else Outcome.RESOURCE)


def test_what_was_not_modified_has_the_headers_that_came_now_and_the_body_that_came_then() -> None:
    known = OLD._replace(last_modified="yesterday")
    made = now(answer(status=304, last_modified="today"), Before(known))
    assert (made.last_modified, made.etag, made.size, made.status) == ("today", '"v1"', OLD.size, 304)
    assert made.record is not None and made.record.digest == b"digest"
    assert made.change is Change.UNCHANGED


# Read by another reader


def test_what_is_not_modified_is_read_again_by_another_reader() -> None:
    before = Before(kept(text_hash=b"as it was read before"), otherwise=True, stored=BODY)
    made = now(answer(status=304), before)
    assert (made.change, made.is_version, made.known_links) == (Change.UNCHANGED, True, None)
    assert [link.url for link in made.reading.links] == [f"{HOST}/next"]
    assert (made.text_hash, made.reading.title) == (kept().text_hash, "Old")


def test_e7_what_is_not_modified_and_lost_is_asked_for_again() -> None:
    made = now(answer(status=304), Before(kept(), otherwise=True))
    assert (made.outcome, made.failure) == (Outcome.RETRY, "protocol_error")
    assert "lost" in made.message


def test_what_is_not_modified_and_takes_too_long_to_read_again_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inchworm.reader.SECONDS", 0.0)
    known = kept(content_type="application/pdf")
    made = now(answer(status=304), Before(known, otherwise=True, stored=b"%PDF-1.7"))
    assert (made.outcome, made.failure) == (Outcome.FAILED, "reader_crashed")
    assert made.message == "reading it took longer than 0 s"


def test_what_the_same_reader_read_is_not_read_again() -> None:
    made = now(answer(status=304), Before(kept(), stored=BODY))
    assert made.known_links is not None
    assert made.reading.links == ()
