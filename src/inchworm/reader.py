"""Reading what answers brought: small pages here, large ones and packed ones in a process of their own.

A page made to be hard to read must cost its own URL and nothing else. So whatever is large enough to be dangerous, or
hides what is in it (PDF and office documents), is read by a child process, which has a memory limit, is killed when it
takes too long, and meanwhile does not hold up the event loop. Small pages never leave this process: handing them over
would cost more than reading them.

The child is this module run as a program. Both sides speak in lines of JSON, each followed by as many bytes as it
says. Crawls ask it to read a document as they do; whoever looks at one later asks for a part of it (`apart`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import resource
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, BinaryIO

from inchworm.model import Change, ChangeVerdict, Document, Failure, FoundUrl, Kind, Note, Reading, Source
from inchworm.ports import Read
from inchworm.rules.change import change
from inchworm.rules.formats.media import Media, media_of
from inchworm.rules.order.focus import FocusQuery
from inchworm.rules.page import disguise, document, parse, wall
from inchworm.rules.page.links import Resolver
from inchworm.rules.text import content
from inchworm.rules.text.ignored import IgnoredText
from inchworm.rules.text.recurring import Frame
from inchworm.rules.web import sitemap
from inchworm.rules.web import url as urls
from inchworm.rules.web.control import sitemap_file

SECONDS = 20.0
MEMORY_BYTES = 1 << 30
REPLACE_AFTER_BYTES = 50_000_000
"""A child that has read this much makes room for a new one: memory once used is seldom given back."""

COMMAND = (sys.executable, "-P", "-m", "inchworm.reader")
_CHUNK = 1 << 16
_SHORT_WORDS = 4_000
"""No page that says that a page is not there says more than this."""


class DocumentReader:
    """A `ports.Reader`: how a run reads, here or in a child that is started when first needed."""

    def __init__(
        self,
        resources: bool = False,
        drop_params: tuple[str, ...] = (),
        text: bool = False,
        query: str = "",
        ignore_text: tuple[str, ...] = (),
    ) -> None:
        told = {"resources": resources, "drop_params": list(drop_params), "text": text, "query": query}
        self._told = {**told, "ignore_text": list(ignore_text)}
        self.ignored = IgnoredText(ignore_text)
        self._canonicalizer = urls.canonicalizer(drop_params)
        self.how = parse.How(resources, Resolver(self._canonicalizer), text, anchors=bool(query))
        self._query = FocusQuery(query) if query else None
        self._child: asyncio.subprocess.Process | None = None
        self._read_bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self.unread = 0
        """How many documents were not read because what reads them is not installed."""

    def read(self, given: Document) -> Read:
        """Read it here and now."""
        body, address = given.body, given.url
        if given.kind is Kind.SITEMAP:
            today = datetime.fromtimestamp(given.at_ms / 1000, UTC).date()
            listing = sitemap.read(body, address, today, given.is_cut)
            pages = (
                FoundUrl(canonical, urls.request_form(page.url), Kind.PAGE, Source.SITEMAP, lastmod=page.lastmod)
                for page in listing.pages
                if (canonical := self._canonicalizer.canonicalize(page.url))
            )
            files = (sitemap_file(child) for child in listing.sitemaps)
            return Read(Reading(links=(*files, *pages)), b"", listing.note)
        if given.kind is not Kind.PAGE:
            reading = parse.read(body, given.content_type, address, self.how)
            return Read(reading._replace(words="", hrefs=""), b"", "")
        reading = document.read(body, given.content_type, address, self.how)
        title, words = (self.ignored.without(text, address) for text in (reading.title, reading.words))
        # Only web servers excuse themselves, and they do it in HTML.
        is_html = media_of(body, given.content_type) is Media.HTML
        return Read(
            reading,
            content.text_hash(title, words, body),
            "",
            content.link_hash(reading.hrefs),
            is_html and len(reading.words) < _SHORT_WORDS and disguise.looks_missing(reading.title, reading.words),
            is_html and wall.is_page_wall(reading.title, reading.words, body),
            self._query.page(reading.title, reading.words) if self._query else 0.0,
            self._query.matches(f"{reading.title}\n{reading.words}") if self._query else False,
        )

    async def read_apart(self, given: Document) -> Read | Failure:
        """Read it in the child, within limits of time and memory."""
        answer = await self._answer(given)
        if isinstance(answer, Failure):
            return answer
        # A page with very many links takes a while to unpack; in a thread, so that others get their turn.
        read = await asyncio.to_thread(_unpack, answer)
        self.unread += isinstance(read, Read) and "needs" in read.reading.meta
        return read

    async def compare_apart(self, old: Document, new: Document) -> ChangeVerdict | Failure:
        """Compare two versions of a page in the child, within the same limits."""
        answer = await self._answer(new, old)
        return answer if isinstance(answer, Failure) else _verdict(answer)

    async def _answer(self, given: Document, old: Document | None = None) -> bytes | Failure:
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(SECONDS):
                    answer = await self._ask(given, old)
            except TimeoutError:
                await self._end_child()
                return Failure("reader_crashed", f"reading it took longer than {SECONDS:g} s")
            except OSError as error:
                return Failure("reader_crashed", f"no process could be started to read it: {error.strerror}")
            except BaseException:
                # Cancelled half way: what the child says next would be the answer to another question.
                await self._end_child()
                raise
            if answer is None:
                await self._end_child()
                return Failure("reader_crashed", "reading it took more memory than it may, or broke the reader")
            self._read_bytes += len(given.body) + (len(old.body) if old else 0)
            if self._read_bytes > REPLACE_AFTER_BYTES:
                await self._end_child()
            return answer

    async def close(self) -> None:
        await self._end_child()

    async def _ask(self, given: Document, old: Document | None) -> bytes | None:
        """The child's answer; None when it died over it. `old`: a version that it is to be compared with."""
        child = self._child = self._child or await _start()
        assert child.stdin is not None
        assert child.stdout is not None
        job = {**self._told, "url": given.url, "content_type": given.content_type, "kind": given.kind.value}
        job |= {"at_ms": given.at_ms, "is_cut": given.is_cut}
        try:
            bodies = (old.body, given.body) if old else (given.body,)
            job |= {"old": {"size": len(old.body), "content_type": old.content_type}} if old else {}
            child.stdin.write(json.dumps({**job, "size": sum(map(len, bodies))}).encode() + b"\n")
            child.stdin.writelines(bodies)
            await child.stdin.drain()
            size = int(await child.stdout.readline() or b"-1")
            return await child.stdout.readexactly(size) if size >= 0 else None
        except (ConnectionError, asyncio.IncompleteReadError):
            return None

    async def _end_child(self) -> None:
        child, self._child, self._read_bytes = self._child, None, 0
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            # What it still had to say has to be taken first, or its pipe never ends. It is dead in a moment, and being
            # cancelled once more must not leave it unburied.
            await asyncio.shield(child.communicate())


def environment() -> dict[str, str]:
    """What the child is started with, so that it finds what we have found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,  # Ctrl-C is for us; we tell the child
        limit=_CHUNK,
    )


# ---- what passes between the two


def _pack(read: Read) -> bytes:
    reading, links = read.reading, read.reading.links
    packed = {
        "links": [
            (f.url, f.request_url, f.kind.value, f.source.value, f.nofollow, f.lastmod, f.anchor, f.parts)
            for f in links
        ],
        "relevance": read.relevance,
        "looks_missing": read.looks_missing,
        "looks_blocked": read.looks_blocked,
        "matches": read.matches,
        "text_hash": read.text_hash.hex(),
        "link_hash": read.link_hash.hex(),
        "note": read.note,
        "title": reading.title,
        "text": reading.text,
        "language": reading.language,
        "canonical": reading.canonical,
        "nofollow": reading.nofollow,
        "noindex": reading.noindex,
        "meta": dict(reading.meta),
    }
    return json.dumps(packed, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _unpack(answer: bytes) -> Read | Failure:
    said: dict[str, Any] = json.loads(answer.decode("utf-8", "surrogatepass"))
    if "raised" in said:
        return _raised(said)
    kinds, sources = {kind.value: kind for kind in Kind}, {source.value: source for source in Source}
    links = tuple(
        FoundUrl(url, request_url, kinds[kind], sources[source], nofollow, lastmod, anchor, parts=parts)
        for url, request_url, kind, source, nofollow, lastmod, anchor, parts in said.pop("links")
    )
    text_hash, link_hash = bytes.fromhex(said.pop("text_hash")), bytes.fromhex(said.pop("link_hash"))
    rest = [said.pop(name) for name in ("looks_missing", "looks_blocked", "relevance", "matches")]
    note = said.pop("note")
    return Read(Reading(**said)._replace(links=links), text_hash, note, link_hash, *rest)


def _verdict(answer: bytes) -> ChangeVerdict | Failure:
    said: dict[str, Any] = json.loads(answer.decode("utf-8", "surrogatepass"))
    if "raised" in said:
        return _raised(said)
    differences = said["differences"]
    return ChangeVerdict(
        Change(said["change"]),
        tuple(map(Note, said["notes"])),
        None if differences is None else tuple(differences),
        said["message"],
        said["alike"],
    )


def _raised(said: dict[str, Any]) -> Failure:
    return Failure("reader_crashed", f"reading the answer failed: {said['raised']}")


# ---- the child


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Read what comes until nothing comes any more."""
    readers: _Readers = {}
    for line in iter(jobs.readline, b""):
        job = json.loads(line)
        body = jobs.read(job["size"])
        _limit_time()
        answer = _answer(job, body, readers)
        answers.write(b"%d\n" % len(answer))
        answers.write(answer)
        answers.flush()


_Readers = dict[tuple[bool, tuple[str, ...], bool, str, tuple[str, ...]], DocumentReader]


def _answer(job: dict[str, Any], body: bytes, readers: _Readers) -> bytes:
    try:
        if name := job.get("part"):
            part = _part(name, job, body)
            return json.dumps({"part": part}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        told = (job["resources"], tuple(job["drop_params"]), job["text"], job["query"], tuple(job["ignore_text"]))
        reader = readers.setdefault(told, DocumentReader(*told))
        if old := job.get("old"):
            return _compared(job, old, body, reader)
        given = Document(body, job["content_type"], job["url"], Kind(job["kind"]), job["at_ms"], job["is_cut"])
        return _pack(reader.read(given))
    except MemoryError:
        raise  # who ran out of it once had better start anew
    except Exception as error:
        return json.dumps({"raised": repr(error)}).encode()


def _compared(job: dict[str, Any], old: dict[str, Any], bodies: bytes, reader: DocumentReader) -> bytes:
    """The verdict on two versions of a document, whose bodies come one after the other."""
    url, size = job["url"], old["size"]
    versions = (bodies[:size], old["content_type"]), (bodies[size:], job["content_type"])
    before, now = (
        reader.ignored.substance(document.substance(body, content_type, url, reader.how), url)
        for body, content_type in versions
    )
    verdict = change.by_substance(before, now, url)
    return json.dumps(verdict._asdict(), ensure_ascii=False).encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1)
def _opened(body: bytes, content_type: str, url: str, frame: Frame) -> document.OpenDocument:
    """Whoever asks for one part often asks for the next."""
    return document.OpenDocument(body, content_type, url, frame)


def _part(name: str, job: dict[str, Any], body: bytes) -> Any:
    """A part of a document, or what rules that somebody wrote find in it: those are used here and nowhere else."""
    if "rules" not in job:
        return getattr(_opened(body, job["content_type"], job["url"], frozenset(job["frame"])), name)
    from inchworm.rules.fields import extract, selectors

    rules = selectors.from_json(job["rules"])
    if name == "faults":
        return extract.faults(rules)
    return extract.rows(rules, body, job["content_type"], job["url"])


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time() -> None:
    """Should the parent die, nobody would kill us: the next document gets a limit of its own."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(used.ru_utime + used.ru_stime + 2 * SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


if __name__ == "__main__":
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
