"""The life of one URL, top to bottom: ask, read, judge. READ THIS FIRST.

`visit` turns a frontier entry into a `FinishedVisit`: a value that says what came of one request and what it found.
Nothing is written here. The session hands visits to the ledger in the order of their places, and only there do they
become part of the record.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from inchworm import fault
from inchworm.engine.ledger import rows
from inchworm.errors import InchwormError
from inchworm.model import (
    Change,
    ChangeVerdict,
    Document,
    DownHost,
    Failure,
    FinishedVisit,
    FoundUrl,
    FrontierEntry,
    Kind,
    Note,
    Outcome,
    Probe,
    Reading,
    Record,
    Reply,
    Request,
    Response,
    Source,
    Unanswered,
    Version,
)
from inchworm.ports import Clock, Earlier, Fetcher, Read, Reader
from inchworm.rules.change import change, validators
from inchworm.rules.formats import media
from inchworm.rules.page import disguise, document, parse, wall
from inchworm.rules.text.ignored import IgnoredText
from inchworm.rules.web import control, cookies, outage, politeness, robots, sitemap
from inchworm.rules.web import url as urls
from inchworm.rules.web.control import sitemap_file
from inchworm.rules.words import failures
from inchworm.settings import Settings

DEATHS = 3
"""A page during whose reading the process died this often is set aside."""

PUSHING_BACK = (429, 503)
UNREACHABLE = ("connect", "tls", "timeout")

Headers = tuple[tuple[str, str], ...]

_COOKIE = "Cookie"
_NO_BYTES = hashlib.sha256().digest()
_READ_AS = {Kind.PAGE: Outcome.PAGE, Kind.RESOURCE: Outcome.RESOURCE, Kind.SITEMAP: Outcome.CONTROL}
ROBOTS_REDIRECTS = 5
_MOST = {Kind.ROBOTS: robots.MAX_BYTES + 1, Kind.SITEMAP: sitemap.MAX_BYTES + 1}
"""What is beyond is ignored, as search engines do. One byte more than is read, or nobody could tell that it was cut."""


class Mark(Protocol):
    """Notes which URL is being read, where it survives the death of the process."""

    def set(self, url_id: int) -> None: ...

    def clear(self) -> None: ...


async def _always(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Tools:
    """What a visit works with."""

    settings: Settings
    fetcher: Fetcher
    reader: Reader
    clock: Clock
    mark: Mark
    chance: Callable[[], float]
    deaths: Mapping[int, int]
    bare_seeds: frozenset[str] = frozenset()
    canonicalizer: urls.Canonicalizer = field(default_factory=urls.Canonicalizer)
    fingerprint: str = ""
    how: parse.How | None = None
    ignored: IgnoredText = field(default_factory=IgnoredText)
    jar: cookies.Jar = field(default_factory=cookies.Jar)
    earlier: Earlier | None = None
    compares: bool = False
    may_probe: Callable[[str], Awaitable[bool]] = _always
    has_answered: Callable[[str], bool] = lambda _: False
    probes: dict[str, Probe] = field(default_factory=dict)
    probing: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


async def visit(entry: FrontierEntry, tools: Tools) -> FinishedVisit | Unanswered:
    """Ask for a URL and judge the answer. Failures of the web are outcomes like any other; only a host that is down is
    no outcome of a URL's."""
    if tools.deaths.get(entry.url_id, 0) >= DEATHS:
        made = FinishedVisit(entry, tools.clock.now_ms(), Outcome.FAILED, requested=False)
        return _retry_or_fail(made, "reader_crashed", f"the process died {DEATHS} times while reading it", tools)
    if entry.kind is Kind.ROBOTS:
        return await _visit_robots(entry, tools)
    fault.point("before_fetch")
    at_ms = tools.clock.now_ms()
    known = _known(entry, tools)
    condition = validators.headers(known.version) if known and known.objection is None else ()
    request = _request(entry.request_url, _MOST.get(entry.kind), tools, condition)
    reply = await tools.fetcher.fetch(request)
    fault.point("after_fetch")
    if isinstance(reply, Failure):
        return _unanswered(entry, request, reply, tools) or _failed_visit(entry, at_ms, reply, tools)
    made = _answered_visit(entry, at_ms, reply)
    return await _contain_errors(_judge_answer(made, request, reply, known, tools), made, tools)


def _unanswered(entry: FrontierEntry, request: Request, failure: Failure, tools: Tools) -> Unanswered | None:
    """Nobody is there to answer, though somebody was before: that is no fault of this URL."""
    origin = urls.origin_of(request.url)
    is_its_host = origin == urls.origin_of(entry.request_url)
    if failure.unreachable and is_its_host and tools.has_answered(origin):
        return Unanswered(entry, failure.kind, failure.message)
    return None


async def check_host(origin: str, tools: Tools) -> Failure | None:
    """Ask a host that was down for something. None: it answers again, whatever it answers."""
    reply = await tools.fetcher.fetch(_request(f"{origin}/robots.txt", _MOST[Kind.ROBOTS], tools))
    return reply if isinstance(reply, Failure) and reply.unreachable else None


def failed_with_host(entry: FrontierEntry, down: DownHost, tools: Tools) -> FinishedVisit:
    """A URL of a host that has been down for too long: it fails without a request, for the host's reason."""
    said = outage.sentence(down)
    return FinishedVisit(entry, tools.clock.now_ms(), _failed_as(entry), down.kind, said, requested=False)


async def _judge_answer(
    made: FinishedVisit, request: Request, reply: Response, known: _Known | None, tools: Tools
) -> FinishedVisit | Unanswered:
    """What an answer comes to: still the same page, a hop, gone, a failure, or something to be read."""
    entry = made.entry
    made = _with_cookies(made, request, reply, tools)
    if known and known.objection is None and reply.status == 304:
        return await _still_there(made, known.version, tools)
    if said := _protocol_error(reply, known):
        return _retry_or_fail(made, "protocol_error", said, tools)
    if wall.stands(reply.headers) or wall.is_error_wall(reply.status, reply.headers, reply.body):
        return _blocked(made, reply, tools)
    if 300 <= reply.status < 400:
        return _with_old_text(_redirected(made, reply, tools), known, tools)
    if known and reply.status in change.GONE and entry.kind is Kind.PAGE:
        return _gone(made, known.version)
    if kind := failures.for_status(reply.status):
        return _retry_or_fail(_with_quiet_time(made, reply, tools), kind, f"the server answered {reply.status}", tools)
    return await _judge_document(made, request, reply, known, tools)


async def _judge_document(
    made: FinishedVisit, request: Request, reply: Response, known: _Known | None, tools: Tools
) -> FinishedVisit | Unanswered:
    """What an answer comes to that is there to be read."""
    entry = made.entry
    is_cut = bool(reply.truncated)
    given = Document(reply.body, made.content_type, entry.request_url, entry.kind, made.at_ms, is_cut)
    read = await _read(given, entry, tools)
    if isinstance(read, Failure):
        return _retry_or_fail(made, read.kind, read.message, tools)
    if read.looks_blocked:
        return _blocked(made, reply, tools)
    if read.looks_missing:
        probe = await _probe(given, tools)
        if isinstance(probe, Failure) and (held := _unanswered(entry, request, probe, tools)):
            return held
        made = _check_for_soft_404(made, read, probe, tools)
        if made.failure:
            return made
    made = _with_reading(made, read, tools.settings)
    if entry.chain and disguise.has_password_field(reply.body):
        made = made._replace(reading=made.reading._replace(meta={**made.reading.meta, "login": True}))
    return await _compared(made, given, read, known, tools) if tools.compares and entry.kind is Kind.PAGE else made


def _check_for_soft_404(made: FinishedVisit, read: Read, probe: Probe | Failure | None, tools: Tools) -> FinishedVisit:
    """A page that reads as if it were not there: it is not where the server says the same of one that cannot be."""
    if isinstance(probe, Failure):
        again = _retry_or_fail(made, probe.kind, probe.message, tools)
        return again if again.outcome is Outcome.RETRY else made
    if probe is None:
        return made
    made = made._replace(probe=probe)
    if probe.is_excuse or (probe.status == 200 and probe.text_hash == read.text_hash):
        return _retry_or_fail(made, "soft_404", "it says that the page is not there, though with status 200", tools)
    return made


async def _contain_errors(
    judging: Coroutine[object, object, FinishedVisit | Unanswered], made: FinishedVisit, tools: Tools
) -> FinishedVisit | Unanswered:
    """Whatever a server sends, and whatever our reading makes of it: it costs that URL and never the session."""
    try:
        return await judging
    except InchwormError:
        raise  # of our own store or disk, which is not this URL's fault
    except Exception as error:
        return _retry_or_fail(made, "reader_crashed", f"reading the answer failed: {error!r}", tools)


# What earlier runs know of it


class _Known(NamedTuple):
    """The version that earlier runs have, and why it is of no use to ask whether it is still the right one."""

    version: Version
    objection: Note | None


def _known(entry: FrontierEntry, tools: Tools) -> _Known | None:
    if tools.earlier is None or not tools.compares or entry.kind not in (Kind.PAGE, Kind.RESOURCE):
        return None
    version = tools.earlier.version(entry)
    return _Known(version, tools.earlier.objection(entry, version)) if version else None


def _protocol_error(reply: Response, known: _Known | None) -> str:
    """What is wrong with an answer that fits no question of ours. A second try asks plainly."""
    if reply.status == 304:
        return "it says `not modified`, though nobody asked whether it was"
    if reply.status in (412, 416) and known and known.objection is None:
        return f"the server answered {reply.status} to the question whether it changed"
    if reply.status == 206 or (reply.status == 200 and "content-range" in reply.headers):
        return "a part of the page came, though all of it was asked for"
    return ""


def _unmodified(made: FinishedVisit, version: Version) -> FinishedVisit:
    """Not modified: the page is what it was, with the headers that came now."""
    reading = Reading(title=version.title, language=version.language, canonical=version.canonical)
    record = made.record and made.record._replace(digest=version.payload or b"")
    unlinked = (Note.UNLINKED,) if made.entry.unlinked else ()
    return made._replace(
        outcome=_READ_AS[made.entry.kind],
        size=version.size,
        content_type=version.content_type,
        etag=made.etag or version.etag,
        last_modified=made.last_modified or version.last_modified,
        text_hash=version.text_hash,
        link_hash=version.link_hash,
        reading=reading,
        record=record,
        version=version,
        is_version=True,
        change=Change.UNCHANGED if made.entry.kind is Kind.PAGE else None,
        notes=unlinked,
    )


async def _still_there(made: FinishedVisit, version: Version, tools: Tools) -> FinishedVisit:
    """Not modified. Where it was read in another way than today, what the archive has of it is read again."""
    assert tools.earlier is not None
    still = _unmodified(made, version)
    if not tools.earlier.is_read_otherwise(version):
        return still
    body = tools.earlier.body(version)
    if body is None:
        return _retry_or_fail(made, "protocol_error", "it is not modified, but what was stored of it is lost", tools)
    entry = made.entry
    given = Document(body, version.content_type, entry.request_url, entry.kind, made.at_ms, is_cut=False)
    read = await _read(given, entry, tools)
    if isinstance(read, Failure):
        return _retry_or_fail(made, read.kind, read.message, tools)
    return _with_reading(still, read, tools.settings)._replace(is_read_again=True)


def reused(entry: FrontierEntry, version: Version, compares: bool) -> FinishedVisit:
    """A page that is taken from an earlier run without asking."""
    made = _unmodified(
        FinishedVisit(entry, version.at_ms, Outcome.PAGE, status=version.status, requested=False), version
    )
    is_compared = compares and entry.kind is Kind.PAGE
    return made._replace(change=Change.UNCHANGED if is_compared else None, notes=(Note.REUSED,) if is_compared else ())


def _with_old_text(made: FinishedVisit, known: _Known | None, tools: Tools) -> FinishedVisit:
    """A page that redirects may have moved: its old text, to be compared with that of the target, has to be by the same
    reader."""
    if tools.earlier is None or known is None or known.version.missing:
        return made
    if not rows.is_read_otherwise(known.version, tools.fingerprint):
        return made
    return made._replace(text_hash=tools.earlier.text_hash(known.version, made.entry.request_url))


def _gone(made: FinishedVisit, version: Version) -> FinishedVisit:
    """A page that earlier runs know is not there any more, and the server says so."""
    is_news = not version.missing
    return made._replace(
        outcome=Outcome.DELETED,
        message=f"the server answered {made.status}",
        change=Change.DELETED if is_news else None,
        missing=version.missing + 1,
        version=version,
    )


async def _compared(
    made: FinishedVisit, given: Document, read: Read, known: _Known | None, tools: Tools
) -> FinishedVisit:
    """The visit with what changed since the last version."""
    assert tools.earlier is not None
    if known is None:
        return made._replace(change=Change.NEW)
    version, why = known.version, known.objection or Note.VALIDATORS_CHANGED
    verdict = await _verdict(made, given, read, version, tools)
    notes = verdict.notes
    if verdict.change is Change.UNCHANGED:
        notes += (why,)
    elif verdict.change is Change.MODIFIED:
        is_old = made.text_hash not in (b"", version.text_hash) and tools.earlier.had(made.entry, made.text_hash)
        notes += (Note.FLAPPING,) if is_old else ()
        # Whoever believes such a validator misses changes; whether this is one is certain at the end of the run.
        notes += (Note.SAME_VALIDATOR,) if validators.same(version, made.etag, made.last_modified) else ()
    notes += (Note.BACK,) if version.missing else ()
    notes += (Note.UNLINKED,) if made.entry.unlinked else ()
    return made._replace(
        change=Change.NEW if version.missing else verdict.change,
        notes=notes,
        differences=verdict.differences,
        alike=verdict.alike,
        message=made.message or verdict.message,
        version=version,
    )


async def _verdict(made: FinishedVisit, given: Document, read: Read, version: Version, tools: Tools) -> ChangeVerdict:
    assert tools.earlier is not None
    digest = made.record.digest if made.record else None
    now = change.Print(digest, made.text_hash, made.link_hash, tools.fingerprint)
    verdict = change.by_print(change.print_of(version), now, tools.settings.compare_by == "bytes")
    if verdict is not None:
        return verdict
    body = tools.earlier.body(version)
    found = None
    if body is not None:
        old = given._replace(body=body, content_type=version.content_type)
        found = await _side_by_side(old, given, read, tools)
    return found or change.by_print_alone(change.print_of(version), now)


async def _side_by_side(old: Document, new: Document, read: Read, tools: Tools) -> ChangeVerdict | None:
    """The verdict on two versions, of which the new one was read just now; None where they cannot be read."""
    if any(media.is_risky(one.body, one.content_type) for one in (old, new)):
        found = await tools.reader.compare_apart(old, new)
        return None if isinstance(found, Failure) else found
    kind = media.media_of(new.body, new.content_type)
    before = tools.ignored.substance(document.substance(old.body, old.content_type, old.url, tools.how), new.url)
    now = tools.ignored.substance(document.substance_of(read.reading, kind, new.url, tools.how), new.url)
    return change.by_substance(before, now, new.url)


async def _probe(given: Document, tools: Tools) -> Probe | Failure | None:
    """What the server says of a page of the same directory that cannot be there; None where it may not be asked.

    The address is the same whichever page is in doubt, so that the answer is, too. It is asked for once per directory.
    """
    directory = given.url.partition("?")[0].rpartition("/")[0] + "/"
    async with tools.probing[directory]:
        if directory in tools.probes:
            return tools.probes[directory]
        address = f"{directory}{urls.hash64(directory) & 0xFFFFFFFFFF:x}-is-not-here"
        if not await tools.may_probe(address):
            return None
        at_ms = tools.clock.now_ms()
        reply = await tools.fetcher.fetch(_request(address, None, tools))
        if isinstance(reply, Failure):
            return reply
        if reply.status in PUSHING_BACK or reply.status >= 500:
            return Failure(failures.for_status(reply.status) or "", f"the server answered {reply.status}")
        probe = tools.probes[directory] = _probe_of(given, directory, at_ms, reply, address, tools)
        return probe


def _probe_of(given: Document, directory: str, at_ms: int, reply: Response, address: str, tools: Tools) -> Probe:
    digest = hashlib.sha256(reply.payload).digest()
    record = Record(address, reply.head, reply.payload, digest, reply.truncated)
    content_type = reply.headers.get("content-type", "")
    if reply.status != 200 or media.is_risky(reply.body, content_type):
        return Probe(directory, reply.status, False, b"", at_ms, record)
    there = given._replace(body=reply.body, content_type=content_type)
    read = tools.reader.read(there)
    return Probe(directory, reply.status, read.looks_missing, read.text_hash, at_ms, record)


# The steps


def _request(address: str, enough: int | None, tools: Tools, condition: Headers = ()) -> Request:
    """A request brings the cookies that were set for its address, and only those. `enough`: more is not read."""
    settings = tools.settings
    sent = tools.jar.header(address, tools.clock.now_ms()) if settings.cookies else ""
    headers = ((_COOKIE, sent), *condition) if sent else condition
    if settings.rotate_user_agent and enough is None:
        headers += (("User-Agent", politeness.browser_name(urls.hash64(address))),)
    limit, beginning = (settings.max_body, False) if enough is None else (enough, True)
    return Request(address, headers, limit, settings.timeout, beginning)


def _with_cookies(made: FinishedVisit, request: Request, reply: Response, tools: Tools) -> FinishedVisit:
    if "set-cookie" not in reply.headers or not tools.settings.cookies:
        return made
    return made._replace(cookies=cookies.read(reply.head, request.url, made.at_ms))


def _answered_visit(entry: FrontierEntry, at_ms: int, reply: Response, address: str = "") -> FinishedVisit:
    """The part that every answer has: what the server said, and the record for the archive."""
    digest = hashlib.sha256(reply.payload).digest() if reply.payload else _NO_BYTES
    headers = reply.headers
    return FinishedVisit(
        entry,
        at_ms,
        Outcome.PAGE,
        status=reply.status,
        millis=round(reply.seconds * 1000),
        size=len(reply.payload),
        content_type=headers.get("content-type", ""),
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        record=Record(address or entry.request_url, reply.head, reply.payload, digest, reply.truncated),
    )


async def _read(given: Document, entry: FrontierEntry, tools: Tools) -> Read | Failure:
    if media.is_risky(given.body, given.content_type):
        return await tools.reader.read_apart(given)
    tools.mark.set(entry.url_id)
    fault.point("while_reading")
    try:
        return tools.reader.read(given)
    finally:
        tools.mark.clear()


def _with_reading(made: FinishedVisit, read: Read, settings: Settings) -> FinishedVisit:
    """The visit with what was read, under the name of what it was fetched as."""
    # What pages are compared by has done its work, and is large.
    reading = read.reading._replace(words="", hrefs="", base=None)
    if reading.nofollow and settings.robots:
        reading = reading._replace(links=tuple(link._replace(nofollow=True) for link in reading.links))
    outcome = _READ_AS[made.entry.kind]
    return made._replace(
        outcome=outcome,
        message=read.note,
        reading=reading,
        text_hash=read.text_hash,
        link_hash=read.link_hash,
        relevance=read.relevance,
        matches=read.matches,
    )


def _redirected(made: FinishedVisit, reply: Response, tools: Tools) -> FinishedVisit:
    """A hop: the target becomes an entry of its own, so that nothing is followed out of sight."""
    entry = made.entry
    location = reply.headers.get("location", "")
    address = urls.parse(location, entry.request_url) if location else None
    canonical = tools.canonicalizer.canonicalize(address) if address else None
    if address is None or canonical is None:
        said = f"the server answered {reply.status} and named no page to go to"
        return _retry_or_fail(made, "bad_redirect", said, tools)
    request_url = urls.request_form(address)
    if entry.kind is Kind.SITEMAP:
        return made._replace(outcome=Outcome.CONTROL, reading=Reading(links=(sitemap_file(request_url),)))
    if entry.chain >= tools.settings.max_redirects:
        return _retry_or_fail(
            made, "too_many_redirects", f"more than {tools.settings.max_redirects} redirects in a row", tools
        )
    target = FoundUrl(canonical, request_url, entry.kind, Source.REDIRECT)
    return made._replace(outcome=Outcome.REDIRECT, redirect=target)


def _failed_visit(entry: FrontierEntry, at_ms: int, failure: Failure, tools: Tools) -> FinishedVisit:
    made = FinishedVisit(
        entry, at_ms, Outcome.FAILED, millis=round(failure.seconds * 1000), unreachable=failure.unreachable
    )
    if failure.answer is not None:
        made = _answered_visit(entry, at_ms, failure.answer)._replace(outcome=Outcome.FAILED)
    if entry.request_url in tools.bare_seeds and failure.kind in UNREACHABLE:
        return _by_http(made, tools)
    return _retry_or_fail(made, failure.kind, failure.message, tools)


def _by_http(made: FinishedVisit, tools: Tools) -> FinishedVisit:
    """The user typed a host without a scheme: https came first, http comes when it cannot be reached."""
    address = "http" + made.entry.request_url.removeprefix("https")
    target = FoundUrl(tools.canonicalizer.identity(address), address, made.entry.kind, Source.REDIRECT)
    return made._replace(outcome=Outcome.REDIRECT, redirect=target, message="https did not answer, http is tried")


def unreadable_robots(entry: FrontierEntry, trouble: str, tools: Tools) -> FinishedVisit:
    """Where a robots.txt cannot be read nothing may be asked for; that is a failure, and can be tried again.

    Where its host cannot be reached at all, that is what is wrong, and not its robots.txt.
    """
    kind, message = rows.robots_trouble(trouble)
    made = FinishedVisit(entry, tools.clock.now_ms(), _failed_as(entry), kind, message, requested=False)
    if entry.request_url in tools.bare_seeds and trouble.partition(":")[0] in UNREACHABLE:
        return _by_http(made._replace(failure=""), tools)
    return made


def _blocked(made: FinishedVisit, reply: Response, tools: Tools) -> FinishedVisit:
    """A bot wall came instead of the page. That says nothing of the page, and that we are asking too much."""
    said = f"a challenge or captcha came instead of the page, with status {reply.status}"
    return _retry_or_fail(_with_quiet_time(made, reply, tools), "blocked", said, tools)


def _with_quiet_time(made: FinishedVisit, reply: Response, tools: Tools) -> FinishedVisit:
    """A server that is asked too much may say for how long it wants to be left alone; the whole host is meant."""
    if reply.status not in PUSHING_BACK:
        return made
    seconds = politeness.retry_after(reply.headers.get("retry-after", ""), tools.clock.now_ms())
    return made._replace(quiet_ms=round(1000 * (seconds or 0.0)))


def _retry_or_fail(made: FinishedVisit, kind: str, message: str, tools: Tools) -> FinishedVisit:
    """A failed try: to be repeated later when that may help, final otherwise."""
    entry = made.entry
    # An answer to a question that nobody asked says nothing by its status, nor does a wall's.
    status = 0 if kind in ("protocol_error", "blocked") else made.status
    again = failures.is_transient(kind, status) and entry.attempts < tools.settings.max_retries
    if again:
        wait_ms = max(round(1000 * politeness.backoff(entry.attempts, tools.chance())), made.quiet_ms)
        retry_at_ms = tools.clock.now_ms() + wait_ms
        return made._replace(outcome=Outcome.RETRY, failure=kind, message=message, retry_at_ms=retry_at_ms)
    return made._replace(outcome=_failed_as(entry), failure=kind, message=message)


def _failed_as(entry: FrontierEntry) -> Outcome:
    """A page or resource that failed is counted; a robots.txt or sitemap is none."""
    return Outcome.CONTROL if entry.kind in control.KINDS else Outcome.FAILED


async def _visit_robots(entry: FrontierEntry, tools: Tools) -> FinishedVisit | Unanswered:
    """A robots.txt: up to five redirects, then a verdict. What cannot be read forbids everything."""
    made = FinishedVisit(entry, tools.clock.now_ms(), Outcome.CONTROL)
    return await _contain_errors(_judge_robots(made, tools), made, tools)


async def _judge_robots(made: FinishedVisit, tools: Tools) -> FinishedVisit | Unanswered:
    request, reply = await _ask_for_robots(made.entry.request_url, tools)
    if isinstance(reply, Failure):
        if held := _unanswered(made.entry, request, reply, tools):
            return held
        # Nobody is there to be polite to: the pages fail by themselves, under their own name.
        if reply.kind in ("address_refused", "not_in_archive"):
            return made._replace(failure=reply.kind, message=reply.message, robots=b"")
        return _retry_or_fail(made._replace(unreachable=reply.unreachable), reply.kind, reply.message, tools)
    made = _answered_visit(made.entry, made.at_ms, reply, request.url)._replace(outcome=Outcome.CONTROL)
    made = _with_cookies(made, request, reply, tools)
    if reply.status >= 500 or reply.status == 429:
        made = _with_quiet_time(made, reply, tools)
        return _retry_or_fail(
            made, failures.for_status(reply.status) or "", f"the server answered {reply.status}", tools
        )
    rules = robots.whole_lines(reply.body, bool(reply.truncated)) if 200 <= reply.status < 300 else b""
    if rules and len(rules) < len(reply.body):
        made = made._replace(message="more than 500 KiB: only those were read")
    named = robots.parse(rules).sitemaps or (f"{urls.origin_of(made.entry.request_url)}/sitemap.xml",)
    found = tuple(sitemap_file(one) for one in named) if tools.settings.sitemap else ()
    return made._replace(robots=rules, reading=Reading(links=found))


async def _ask_for_robots(address: str, tools: Tools) -> tuple[Request, Reply]:
    """The last request, and its answer."""
    request = _request(address, _MOST[Kind.ROBOTS], tools)
    reply = await tools.fetcher.fetch(request)
    for _ in range(ROBOTS_REDIRECTS):
        location = reply.headers.get("location") if isinstance(reply, Response) and 300 <= reply.status < 400 else None
        target = urls.parse(location, request.url) if location else None
        if target is None:
            break
        request = _request(urls.request_form(target), _MOST[Kind.ROBOTS], tools)
        reply = await tools.fetcher.fetch(request)
    return request, reply
