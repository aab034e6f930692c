"""A crawl's pages as documents of an index on a search server: what they hold, and how they get there."""

from __future__ import annotations

import hashlib
import json
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inchworm.errors import Broken, WrongUse
from inchworm.model import Json
from inchworm.rules.metadata.dates import standard
from inchworm.rules.metadata.title import own_title
from inchworm.rules.words.times import iso
from inchworm.sink.servers.elastic import Door, NoAnswer, ServerAddress, ServerAnswer, door_to, wrong_credentials

MAX_TEXT = 1_000_000
MAX_KEYWORD = 8_191
"""Lucene takes no word of more than 32,766 bytes; characters have up to four."""

MAX_BULK_BYTES = 5_000_000
MAX_BULK_DOCUMENTS = 500
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before the second try, the third, and so on."""

_PASSING = (429, 502, 503, 504)
_MAX_REASON = 1_000
_NO_RIGHT = "Give this user the right to do so on the server."

_KEYWORD = {"type": "keyword", "ignore_above": MAX_KEYWORD}
_TEXT = {"type": "text"}
_DATE = {"type": "date", "format": "strict_date_optional_time"}
_TITLE = {"type": "text", "fields": {"raw": _KEYWORD}}

FIELDS: Mapping[str, Mapping[str, Any]] = {
    "id": _KEYWORD,
    "url": _KEYWORD,
    "canonical": _KEYWORD,
    "title": _TITLE,
    "text": _TEXT,
    "language": _KEYWORD,
    "content_type": _KEYWORD,
    "status": {"type": "short"},
    "size": {"type": "long"},
    "depth": {"type": "integer"},
    "source": _KEYWORD,
    "seed": _KEYWORD,
    "fetched_at": _DATE,
    "first_seen_at": _DATE,
    "run": {"type": "integer"},
    "change": _KEYWORD,
    "etag": _KEYWORD,
    "last_modified": _DATE,
    "content_hash": _KEYWORD,
    "alternate_urls": _KEYWORD,
    "author": _KEYWORD,
    "published_at": _DATE,
    "modified_at": _DATE,
    "publisher": _KEYWORD,
    "site_name": _KEYWORD,
    "description": _TEXT,
    "keywords": _KEYWORD,
    "image": _KEYWORD,
    "type": _KEYWORD,
    "crawl_id": _KEYWORD,
    "crawl_name": _KEYWORD,
}
"""The fields of a document. Each has one type, whatever a page says of itself."""


# ---- documents


def document_id(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()


def document(visit: Mapping[str, Any], text: str, urls: Sequence[str]) -> dict[str, Any]:
    """What the index is to hold of a page. `visit` has the values of its newest visit and of its crawl."""
    said: Mapping[str, Any] = visit["meta"]
    fields = {
        **{name: visit[name] for name in FIELDS.keys() & visit.keys()},
        "id": document_id(visit["url"]),
        "title": own_title(visit["title"] or "", said, visit["url"], visit["content_type"] or ""),
        "text": unicodedata.normalize("NFC", text[:MAX_TEXT]),
        "fetched_at": iso(visit["at_ms"]),
        "first_seen_at": iso(visit["first_ms"]) if visit["first_ms"] is not None else None,
        "last_modified": standard(visit["last_modified"] or ""),
        "content_hash": visit["text_hash"].hex() if visit["text_hash"] else None,
        "alternate_urls": list(urls),
        "published_at": standard(_one(said.get("published"))),
        "modified_at": standard(_one(said.get("modified"))),
        "keywords": [_one(word) for word in said.get("keywords", ())],
        **{name: _one(said.get(name)) for name in ("author", "publisher", "site_name", "description", "image", "type")},
    }
    return {name: fields[name] for name in FIELDS if fields.get(name) not in (None, "", [])}


def _one(value: Any) -> str:
    """One text, whatever a page made of it: a text, an object with a name, or a list of those."""
    if isinstance(value, Mapping):
        return _one(value.get("name"))
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_one, value)))
    return "" if value is None else str(value)


# ---- the way there


class DocumentUpdate(NamedTuple):
    """What the server is to be told of one URL. No fields: its document is to be deleted."""

    url: str
    version: int
    fields: Mapping[str, Json] | None


class RefusedDocument(NamedTuple):
    """A document that the server does not take, and why."""

    url: str
    reason: str


class Delivered(NamedTuple):
    """What became of lines. `newer`: the server has a version that somebody else gave it."""

    indexed: int = 0
    deleted: int = 0
    newer: int = 0
    refused: tuple[RefusedDocument, ...] = ()

    def __add__(self, other: tuple[Any, ...]) -> Delivered:
        return Delivered(*(mine + more for mine, more in zip(self, other, strict=True)))


class Vanished(Exception):
    """The index is not the one that it was."""


class Unreachable(Broken):
    """The server cannot be told now. Another time it can."""


class Server:
    """A search server, asked with patience."""

    def __init__(self, address: str, waits: Sequence[float] = WAITS) -> None:
        self.address = ServerAddress(address)
        self._waits = waits
        self._door: Door | None = None

    def close(self) -> None:
        if self._door is not None:
            self._door.close()

    def meta(self, name: str) -> dict[str, Any] | None:
        """What an index says of itself; None when there is none."""
        answer = self._asked("GET", f"/{name}/_mapping")
        if answer.status == 404:
            return None
        self._refuse_unless_good(answer, f"The index {name} cannot be looked at")
        found: Sequence[Any] = list(answer.body.values())
        return dict(found[0]["mappings"].get("_meta", {})) if found else None

    def create(self, name: str, meta: Mapping[str, Any]) -> None:
        mappings = {"dynamic": False, "_meta": dict(meta), "properties": FIELDS}
        answer = self._asked("PUT", f"/{name}", {"mappings": mappings})
        self._refuse_unless_good(answer, f"The index {name} cannot be made")

    def delete(self, name: str) -> None:
        answer = self._asked("DELETE", f"/{name}")
        if answer.status != 404:
            self._refuse_unless_good(answer, f"The index {name} cannot be deleted")

    def refresh(self, name: str) -> None:
        """Let searches find what was delivered. They would anyhow, a moment later."""
        self._asked("POST", f"/{name}/_refresh")

    def deliver(self, name: str, lines: Iterable[DocumentUpdate]) -> Delivered:
        """Tell the server all of this; what became of it. Raises when it cannot be told now."""
        done = Delivered()
        for parcel in _parcels(name, lines):
            done += self._deliver(parcel)
        return done

    def _deliver(self, parcel: list[_BulkLine]) -> Delivered:
        """Send a parcel, and what is left of it again. One that is too large is sent in halves."""
        done, left, trouble = Delivered(), parcel, ""
        for seconds in (*self._waits, None):
            answer = self._bulk(left)
            if answer.status == 413:
                return done + self._halved(left)
            if answer.status in _PASSING:
                trouble = _reason(answer)
            else:
                self._refuse_unless_good(answer, "The documents were not taken")
                results = [_Result(*next(iter(item.items()))) for item in answer.body["items"]]
                done += _sum(left, results)
                trouble = next((one.reason for one in results if one.may_pass), "")
                left = [line for line, one in zip(left, results, strict=True) if one.may_pass]
            if not left:
                return done
            if seconds is not None:
                time.sleep(seconds)
        raise self._unreachable(trouble)

    def _bulk(self, parcel: list[_BulkLine]) -> ServerAnswer:
        try:
            return self._ask("POST", "/_bulk", b"".join(line.data for line in parcel))
        except NoAnswer as error:
            return ServerAnswer(503, str(error))

    def _halved(self, parcel: list[_BulkLine]) -> Delivered:
        if len(parcel) == 1:
            reason = f"the server takes no request of {len(parcel[0].data):,} bytes"
            return Delivered(refused=(RefusedDocument(parcel[0].url, reason),))
        half = len(parcel) // 2
        return self._deliver(parcel[:half]) + self._deliver(parcel[half:])

    # Asking

    def _asked(self, method: str, path: str, body: Any = None) -> ServerAnswer:
        """An answer that is one, after some tries."""
        trouble = ""
        for seconds in (*self._waits, None):
            try:
                answer = self._ask(method, path, body)
                if answer.status not in _PASSING:
                    return answer
                trouble = _reason(answer)
            except NoAnswer as error:
                trouble = str(error)
            if seconds is not None:
                time.sleep(seconds)
        raise self._unreachable(trouble)

    def _ask(self, method: str, path: str, body: Any = None) -> ServerAnswer:
        self._door = self._door or door_to(self.address)
        answer = self._door.ask(method, path, body)
        if answer.status == 401:
            raise wrong_credentials(self.address, 401)
        return answer

    def _unreachable(self, trouble: str) -> Unreachable:
        return Unreachable(
            f"The search server at {self.address.url} cannot be told now: {trouble}.",
            "Nothing is lost. `inchworm index` goes on where it was.",
        )

    def _refuse_unless_good(self, answer: ServerAnswer, otherwise: str) -> None:
        if 200 <= answer.status < 300:
            return
        if answer.status == 403:
            raise WrongUse(f"{otherwise}: {_reason(answer)}.", _NO_RIGHT)
        raise Broken(f"{otherwise}: {_reason(answer)}.", "The log of the server tells more.")


class _BulkLine(NamedTuple):
    """A line as it is sent."""

    url: str
    data: bytes


class _Result:
    """What became of one line."""

    def __init__(self, action: str, said: Mapping[str, Any]) -> None:
        self.action = action
        self.status = int(said["status"])
        self.error: Mapping[str, Any] = said.get("error") or {}
        kind = self.error.get("type")
        if kind == "index_not_found_exception":
            raise Vanished
        if self.status == 403 and kind != "cluster_block_exception":
            raise WrongUse(f"The documents were not taken: {self.reason}.", _NO_RIGHT)

    @property
    def may_pass(self) -> bool:
        """Whether another try may go better: the server has too much to do, or no room on its disk."""
        return self.status == 403 or self.status == 429 or self.status >= 500

    @property
    def reason(self) -> str:
        return _error_text(self.error) or f"status {self.status}"


def _sum(parcel: list[_BulkLine], results: list[_Result]) -> Delivered:
    """What became of lines, but for those that are to be sent again."""
    good = [one for one in results if 200 <= one.status < 300 or (one.action == "delete" and one.status == 404)]
    deleted = sum(one.action == "delete" for one in good)
    newer = [one for one in results if one.status == 409]
    settled = {id(one) for one in (*good, *newer)}
    refused = tuple(
        RefusedDocument(line.url, one.reason)
        for line, one in zip(parcel, results, strict=True)
        if not one.may_pass and id(one) not in settled
    )
    return Delivered(len(good) - deleted, deleted, len(newer), refused)


def _parcels(name: str, lines: Iterable[DocumentUpdate]) -> Iterator[list[_BulkLine]]:
    """Lines in parcels of bounded size, however large they are together."""
    parcel: list[_BulkLine] = []
    size = 0
    for line in lines:
        packed = _packed(name, line)
        if parcel and (len(parcel) == MAX_BULK_DOCUMENTS or size + len(packed.data) > MAX_BULK_BYTES):
            yield parcel
            parcel, size = [], 0
        parcel.append(packed)
        size += len(packed.data)
    if parcel:
        yield parcel


def _packed(name: str, line: DocumentUpdate) -> _BulkLine:
    # A version as high as the one that is there is the same told twice, and does no harm.
    where = {"_index": name, "_id": document_id(line.url), "version": line.version, "version_type": "external_gte"}
    objects: list[Any] = [{"delete": where}] if line.fields is None else [{"index": where}, line.fields]
    text = "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in objects)
    return _BulkLine(line.url, text.encode("utf-8", "replace"))


def _reason(answer: ServerAnswer) -> str:
    error = answer.body.get("error") if isinstance(answer.body, Mapping) else answer.body
    text = _error_text(error) if isinstance(error, Mapping) else str(error or "")
    return _shortened(text) or f"it answers {answer.status}"


def _error_text(error: Mapping[str, Any]) -> str:
    """What a server says went wrong, and the innermost cause that it gives."""
    texts = [f"{error.get('type', '')}: {error.get('reason', '')}".strip(": ")]
    cause = error.get("caused_by")
    while isinstance(cause, Mapping):
        texts[1:] = [str(cause.get("reason") or "")]
        cause = cause.get("caused_by")
    return _shortened(": ".join(filter(None, texts)))


def _shortened(text: str) -> str:
    return " ".join(text.split())[:_MAX_REASON].rstrip(".")
