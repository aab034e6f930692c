"""From the bytes of an HTTP answer to its meaning: the head, the content codings, and whether it is whole.

Sizes are checked inside the decoders, a step at a time, because a few kilobytes can decode to gigabytes. Both
fetchers judge an answer here, so a page replayed from an archive comes out as it did from the web.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import brotli
from isal import isal_zlib

from inchworm.model import Failure, Reply, Request, Response

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP = 256 * 1024
_INPUT_STEP = 16 * 1024
_SALVAGE_STEP = 256
_TRAILER = 8
# A stream may be a chain of streams. Starting one costs more than its bytes do, so there is a bomb in that too.
_MAX_MEMBERS = 10_000
_MAX_CODINGS = 3
_GZIP_MAGIC = b"\x1f\x8b"
# RFC 9659: what a zstd body may ask for on the web is 8 MB, whatever its frame header says.
_ZSTD_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}

_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)? ([1-5]\d\d)[ \r\n]")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\r?\n")
_TRANSFER_ENCODING = re.compile(rb"(?i)(\n)(transfer-encoding[ \t]*:)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_BODY = frozenset({204, 205, 304})
_REDIRECT_BODY_BYTES = 64 * 1024
_CUT_SHORT = {"too_large": "length", "timeout": "time"}


class Decoded(NamedTuple):
    """A decoded body, or what could be had of it. `problem` is a kind of failure, or empty."""

    body: bytes
    problem: str = ""


_NOTHING = Decoded(b"")


class Head(NamedTuple):
    """Status line and headers: as bytes with CRLF, and as a mapping with names in lower case."""

    status: int
    raw: bytes
    headers: dict[str, str]


class _CutShort(Exception):
    """The coded stream ends or breaks half way."""


class _Broken(Exception):
    """This never was a stream of that coding."""


class Large(Exception):
    """More comes out of this answer than was said to be small."""


# isal's own stub takes this class for an instance.
_INFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]
_ERRORS = (_Broken, _INFLATE_ERROR, brotli.error, zstd.ZstdError)


def decode(payload: bytes, codings: str, limit: int, beginning: bool = True) -> Decoded:
    """Undo the content codings (the value of Content-Encoding), up to `limit` bytes; 0 means no limit.

    `beginning`: of what is over the limit, the part below it is wanted.
    """
    names = [name for part in codings.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not names or not payload:
        return _within(payload, limit)
    if len(names) > _MAX_CODINGS or any(name not in _DECODERS for name in names):
        return Decoded(b"", "decode_error")
    decoded = _collect(payload, names, limit, _INPUT_STEP, beginning)
    if decoded.problem == "decode_error":
        # A decoder that meets an error keeps what it had in hand. Small steps get that out of it.
        return _collect(payload, names, limit, _SALVAGE_STEP, beginning)
    return decoded


def _within(payload: bytes, limit: int) -> Decoded:
    if limit and len(payload) > limit:
        return Decoded(payload[:limit], "too_large")
    return Decoded(payload)


def _collect(payload: bytes, names: list[str], limit: int, step: int, beginning: bool) -> Decoded:
    # The last bytes come alone: where only the checksum is wrong, all of the rest is out by then.
    end = max(len(payload) - _TRAILER, 0)
    edges = (*range(0, end, step), end, len(payload))
    pieces: Iterable[bytes] = (payload[start:stop] for start, stop in pairwise(edges))
    for name in reversed(names):
        pieces = _DECODERS[name](pieces)
    # What is taken out of this is no copy: there is never more than one of a large body.
    body = io.BytesIO()
    try:
        for part in pieces:
            room = limit - body.tell() if limit else len(part)
            body.write(part if len(part) <= room else part[:room])
            if len(part) > room:
                return Decoded(body.getvalue() if beginning else b"", "too_large")
    except _CutShort:
        return Decoded(body.getvalue(), "truncated")
    except _ERRORS:
        return Decoded(b"", "decode_error")
    return Decoded(body.getvalue())


def _inflate(stream: isal_zlib.Decompress, piece: bytes) -> Iterator[bytes]:
    """All that one piece gives, a step at a time."""
    while not stream.eof:
        part = stream.decompress(piece, _STEP)
        if part:
            yield part
        piece = stream.unconsumed_tail
        if not piece and len(part) < _STEP:
            return


def _one_more(members: int) -> int:
    if members == _MAX_MEMBERS:
        raise _Broken
    return members + 1


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    member = isal_zlib.decompressobj(wbits=31)
    members = 1
    begun = False
    for piece in pieces:
        rest = piece
        while rest:
            if member.eof:
                if not _GZIP_MAGIC.startswith(rest[:2]):
                    return  # padding or junk behind the last member, which browsers ignore too
                member = isal_zlib.decompressobj(wbits=31)
                members = _one_more(members)
            try:
                for part in _inflate(member, rest):
                    begun = True
                    yield part
            except _INFLATE_ERROR as error:
                raise (_CutShort if begun else _Broken) from error
            rest = member.unused_data
    if not member.eof:
        raise _CutShort


def _deflate(pieces: Iterable[bytes]) -> Iterator[bytes]:
    stream: isal_zlib.Decompress | None = None
    for piece in pieces:
        if stream is None:
            # The standard means zlib, some servers send raw deflate; no raw stream begins with a zlib header.
            stream = isal_zlib.decompressobj(wbits=15 if piece[0] & 0x0F == 8 else -15)
        yield from _inflate(stream, piece)
    if stream is None or not stream.eof:
        raise _CutShort


def _brotli(pieces: Iterable[bytes]) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    for piece in pieces:
        part = stream.process(piece, output_buffer_limit=_STEP)
        while part or not (stream.is_finished() or stream.can_accept_more_data()):
            yield part
            part = stream.process(b"", output_buffer_limit=_STEP)
    if not stream.is_finished():
        raise _CutShort


def _zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    frame = zstd.ZstdDecompressor(options=_ZSTD_WINDOW)
    frames = 1
    for piece in pieces:
        rest = piece
        while rest:
            if frame.eof:
                frame = zstd.ZstdDecompressor(options=_ZSTD_WINDOW)
                frames = _one_more(frames)
            yield frame.decompress(rest, _STEP)
            while not frame.eof and not frame.needs_input:
                yield frame.decompress(b"", _STEP)
            rest = frame.unused_data
    if not frame.eof:
        raise _CutShort


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}


def read_head(raw: bytes) -> Head | None:
    """Read a status line and the headers below it; None when this is not the head of an HTTP answer.

    Values have no control characters: they end up in logs and are sent back as validators.

    The payload that goes with a head has no transfer coding any more: curl takes it off, and so does the
    replay. Left in place, Transfer-Encoding would make readers of the archive look for chunks that are gone.
    """
    status = _STATUS_LINE.match(raw)
    if status is None:
        return None
    if b"\n " in raw or b"\n\t" in raw:
        raw = _FOLD.sub(b" ", raw)
    if raw.count(b"\n") != raw.count(b"\r\n"):
        raw = _LINE_END.sub(b"\r\n", raw)
    raw = raw.rstrip(b"\r\n") + b"\r\n\r\n"
    headers: dict[str, str] = {}
    lines = _text(raw).split("\r\n")[1:-2]
    if not "".join(lines).isprintable():
        lines = [_CONTROL.sub(" ", line) for line in lines]
    for line in lines:
        key, value = _short_field(line) if len(line) < _SHORT else _field(line)
        if key is not None:
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
    if "transfer-encoding" in headers:
        raw = _TRANSFER_ENCODING.sub(rb"\1X-Archive-Orig-\2", raw)
    return Head(int(status[1]), raw, headers)


def _field(line: str) -> tuple[str | None, str]:
    """Name and value of a line."""
    name, colon, value = line.partition(":")
    return (name.strip().lower(), value.strip()) if colon else (None, "")


_SHORT = 200
_short_field = lru_cache(maxsize=1024)(_field)
"""Most lines of a server's answers are the same each time."""


def _text(raw: bytes) -> str:
    """UTF-8 where it is, as browsers take it in Location."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def body_limit(status: int, limit: int) -> int:
    """How much of a body to take; 0 means all. Nobody reads a redirect's, so little of it is enough."""
    if 300 <= status < 400:
        return min(limit or _REDIRECT_BODY_BYTES, _REDIRECT_BODY_BYTES)
    return limit


def answer(
    head: Head, payload: bytes, request: Request, seconds: float, trouble: Failure | None = None, small: int = 0
) -> Reply:
    """Judge an answer whose transfer ended, in `trouble` or well. `Large` is raised when more than `small` comes out.

    A success must be whole, unless its beginning is enough for who asked. A redirect or an error says all it has
    to say in its head, so that is an answer whatever becomes of its body, and `truncated` tells of the loss.
    """
    status = head.status
    if status in _NO_BODY:
        return Response(status, head.raw, head.headers, b"", b"", seconds)
    if status == 206 and trouble is None:
        trouble = Failure("truncated", "a part was sent where the whole was asked for", seconds)
    most = body_limit(status, request.max_body_bytes)
    if most and len(payload) > most:
        payload = payload[:most]
        trouble = trouble or Failure("too_large", f"the body is larger than {most} bytes", seconds)
    raw = Response(status, head.raw, head.headers, payload, b"", seconds, _cut_short(trouble))
    was_cut = request.beginning and trouble is not None and trouble.kind == "too_large"
    if trouble is not None and status < 300 and not was_cut:
        return trouble._replace(answer=raw)
    decoded = _NOTHING if 300 <= status < 400 else _decoded(payload, head, request, small)
    enough = (decoded.problem == "too_large" and request.beginning) or (decoded.problem == "truncated" and was_cut)
    if decoded.problem and status < 300 and not enough:
        return Failure(decoded.problem, _WHY[decoded.problem], seconds, raw)
    return Response(status, head.raw, head.headers, payload, decoded.body, seconds, raw.truncated)


def _decoded(payload: bytes, head: Head, request: Request, small: int) -> Decoded:
    codings, limit = head.headers.get("content-encoding", ""), request.max_body_bytes
    if not codings or not small or 0 < limit <= small:
        return decode(payload, codings, limit, request.beginning)
    decoded = decode(payload, codings, small)
    if decoded.problem == "too_large":
        raise Large
    return decoded


def _cut_short(trouble: Failure | None) -> str:
    """The word WARC-Truncated has for it."""
    return _CUT_SHORT.get(trouble.kind, "disconnect") if trouble else ""


_WHY = {
    "too_large": "the decoded body is over the limit",
    "truncated": "the compressed body ends half way or is damaged",
    "decode_error": "the body is not coded the way Content-Encoding says",
}
