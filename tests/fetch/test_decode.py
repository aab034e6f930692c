"""Content codings: right, wrong, cut short and made to explode."""

from __future__ import annotations

import gzip
import random
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest

from inchworm.fetch.decode import Head, answer, decode, read_head
from inchworm.model import Failure, Request, Response
from inchworm.rules.words import failures

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"".join(b"line %d of a page that can be compressed\n" % number for number in range(5000))
NOISE = random.Random(1).randbytes(200_000)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def quick_brotli(data: bytes) -> bytes:
    return bytes(brotli.compress(data, quality=5))


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", quick_brotli),
    ("zstd", zstd.compress),
]
IDS = ["gzip", "x-gzip", "zlib", "raw deflate", "br", "zstd"]


@pytest.mark.parametrize(("name", "encode"), CODINGS, ids=IDS)
@pytest.mark.parametrize("data", [b"x", TEXT, NOISE], ids=["byte", "text", "noise"])
def test_every_coding_gives_back_what_went_in(name, encode, data):
    decoded = decode(encode(data), name, 0)
    assert (decoded.body, decoded.problem) == (data, "")
    assert decode(encode(data), name, len(data)) == decoded


@pytest.mark.parametrize("window", range(9, 16))
@pytest.mark.parametrize("level", [1, 6, 9])
def test_deflate_may_have_looked_back_less_far_than_usual(window: int, level: int) -> None:
    packer = zlib.compressobj(level, wbits=window)
    assert decode(packer.compress(TEXT) + packer.flush(), "deflate", 0).body == TEXT


@pytest.mark.parametrize("codings", ["", "identity", " Identity , "])
def test_identity_is_no_coding(codings):
    assert decode(TEXT, codings, 0).body == TEXT
    assert decode(TEXT, codings, 10).body == TEXT[:10]
    assert decode(TEXT, codings, 10).problem == "too_large"


@pytest.mark.parametrize("codings", ["gzip", "br", "zstd", "deflate", "gzip, br"])
def test_an_empty_payload_is_an_empty_body(codings):
    assert decode(b"", codings, 100) == decode(b"", "", 100)


def test_codings_are_undone_from_the_last_to_the_first():
    assert decode(brotli.compress(gzip.compress(TEXT)), "GZIP, Br", 0).body == TEXT
    assert decode(zstd.compress(zlib.compress(gzip.compress(TEXT))), "gzip,deflate,identity,zstd", 0).body == TEXT


def test_n13_nesting_is_capped():
    assert decode(gzip.compress(b"x"), "gzip, gzip, gzip, gzip", 0).problem == "decode_error"


def test_gzip_members_follow_each_other_and_junk_behind_them_is_ignored():
    members = gzip.compress(b"one ") + gzip.compress(b"two ") + gzip.compress(b"three")
    for tail in (b"", b"\0" * 512, b"junk"):
        assert decode(members + tail, "gzip", 0) == decode(b"one two three", "", 0)


def test_zstd_frames_follow_each_other():
    assert decode(zstd.compress(b"one ") + zstd.compress(b"two"), "zstd", 0).body == b"one two"


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_n13_a_plain_body_is_a_decode_error(name):
    body = b"<!doctype html><title>plain</title>" * 50
    assert decode(body, name, 0).problem == "decode_error"


@pytest.mark.parametrize(
    ("codings", "payload"),
    [
        ("gzip", brotli.compress(TEXT)),
        ("br", gzip.compress(TEXT, mtime=0)),
        ("zstd", gzip.compress(TEXT, mtime=0)),
        ("compress", TEXT),
        ("gzip;q=1", gzip.compress(TEXT, mtime=0)),
        ("os.system", TEXT),
    ],
)
def test_n13_a_wrong_or_unknown_coding_is_a_decode_error(codings, payload):
    assert decode(payload, codings, 0).problem == "decode_error"


@pytest.mark.parametrize(("name", "encode"), CODINGS, ids=IDS)
def test_n14_a_cut_stream_gives_its_prefix(name, encode):
    whole = encode(NOISE)
    decoded = decode(whole[: len(whole) // 2], name, 0)
    assert decoded.problem == "truncated"
    assert NOISE.startswith(decoded.body)
    assert len(decoded.body) > len(NOISE) // 4 or name == "br"


def test_n14_every_cut_of_a_gzip_stream_is_noticed():
    whole = gzip.compress(b"a short page")
    assert {decode(whole[:end], "gzip", 0).problem for end in range(1, len(whole))} == {"truncated"}


def test_n14_a_wrong_checksum_is_a_cut_stream():
    damaged = bytearray(gzip.compress(TEXT))
    damaged[-6] ^= 0xFF
    decoded = decode(bytes(damaged), "gzip", 0)
    assert decoded.problem == "truncated"
    assert TEXT.startswith(decoded.body)
    assert len(decoded.body) > len(TEXT) * 3 // 4


def bomb(encode: Callable[[bytes], bytes]) -> bytes:
    return encode(bytes(64_000_000))


@pytest.mark.parametrize(("name", "encode"), CODINGS[2:] + CODINGS[:1], ids=IDS[2:] + IDS[:1])
def test_b1_b5_a_bomb_stops_at_the_limit(name, encode):
    payload = bomb(encode)
    limit = 1_000_000
    tracemalloc.start()
    try:
        decoded = decode(payload, name, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoded.problem == "too_large"
    assert len(decoded.body) == limit
    assert peak < 12_000_000


def test_b1_a_bomb_in_a_bomb_stops_too():
    payload = gzip.compress(bomb(gzip.compress))
    assert decode(payload, "gzip, gzip", 100_000).problem == "too_large"


@pytest.mark.parametrize(("name", "encode"), [CODINGS[0], CODINGS[5]], ids=["gzip", "zstd"])
def test_b1_a_chain_of_empty_streams_is_a_bomb_too(name, encode):
    began = time.process_time()
    assert decode(encode(b"") * 100_000, name, 0).problem == "decode_error"
    assert time.process_time() - began < 3


def test_b4_a_huge_zstd_window_is_refused():
    def compressed(window: int) -> bytes:
        packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window})
        return bytes(packer.compress(TEXT) + packer.flush())

    assert decode(compressed(23), "zstd", 0).body == TEXT
    assert decode(compressed(27), "zstd", 0).problem == "decode_error"


def test_the_limit_is_exact():
    payload = gzip.compress(b"x" * 1000)
    assert decode(payload, "gzip", 1000).problem == ""
    assert decode(payload, "gzip", 999).problem == "too_large"


def test_a_head_is_normalised_and_its_fields_are_found():
    head = read_head(b"HTTP/1.1 200 OK\nA: 1\nB:2\na : 3\n folded\n\tmore\nno colon\n\n")
    assert head is not None
    assert head.status == 200
    assert head.raw == b"HTTP/1.1 200 OK\r\nA: 1\r\nB:2\r\na : 3 folded more\r\nno colon\r\n\r\n"
    assert head.headers == {"a": "1, 3 folded more", "b": "2"}


def test_transfer_encoding_is_renamed_and_nothing_else():
    head = read_head(b"HTTP/1.1 200 OK\r\ntransfer-Encoding: chunked\r\nX: Transfer-Encoding: no\r\n\r\n")
    assert head is not None
    assert head.raw == (
        b"HTTP/1.1 200 OK\r\nX-Archive-Orig-transfer-Encoding: chunked\r\nX: Transfer-Encoding: no\r\n\r\n"
    )
    assert head.headers["transfer-encoding"] == "chunked"


def test_n10_header_values_hold_no_control_characters():
    head = read_head(b"HTTP/1.1 200 OK\r\nX: a\rb\0c\x1b[31m\r\nY: caf\xc3\xa9\r\n\r\n")
    assert head is not None
    assert head.headers == {"x": "a b c [31m", "y": "café"}
    latin = read_head(b"HTTP/1.1 200 OK\r\nY: caf\xe9\r\n\r\n")
    assert latin is not None
    assert latin.headers == {"y": "café"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\r\n\r\n",
        b"HTTP/1.1 999 No\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"SSH-2.0\r\n",
        b"ICY 200 OK\r\n\r\n",
    ],
)
def test_n15_what_is_no_http_head(raw):
    assert read_head(raw) is None


ASKED = Request("http://h.test/")


def head_of(status: int, **headers: str) -> Head:
    return Head(status, b"", {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("status", [204, 205, 304])
def test_n22_some_answers_have_no_body(status):
    reply = answer(head_of(status), b"body", ASKED, 0.0)
    assert isinstance(reply, Response)
    assert (reply.payload, reply.body) == (b"", b"")


def test_n21_a_part_nobody_asked_for_is_not_the_page():
    reply = answer(head_of(206), b"part", ASKED, 0.0)
    assert isinstance(reply, Failure)
    assert reply.kind == "truncated"


def test_b2_the_body_of_a_redirect_is_not_decoded():
    reply = answer(head_of(302, content_encoding="gzip"), bytes(100_000), ASKED, 0.0)
    assert isinstance(reply, Response)
    assert (len(reply.payload), reply.body, reply.truncated) == (65536, b"", "length")


@pytest.mark.parametrize(
    ("trouble", "truncated"), [("too_large", "length"), ("timeout", "time"), ("truncated", "disconnect")]
)
def test_only_a_success_is_judged_by_its_body(trouble, truncated):
    failure = Failure(trouble, "")
    came = Response(200, b"", {}, b"part", b"", 0.0, truncated)
    assert answer(head_of(200), b"part", ASKED, 0.0, failure) == Failure(trouble, "", 0.0, came)
    for status in (301, 404, 503):
        reply = answer(head_of(status), b"part", ASKED, 0.0, failure)
        assert isinstance(reply, Response)
        assert (reply.status, reply.payload, reply.truncated) == (status, b"part", truncated)


def test_an_error_page_that_cannot_be_decoded_is_still_an_answer():
    reply = answer(head_of(404, content_encoding="gzip"), b"plain", ASKED, 0.0)
    assert isinstance(reply, Response)
    assert (reply.payload, reply.body, reply.truncated) == (b"plain", b"", "")


def test_failures_have_words_for_people():
    kinds = "dns connect timeout tls http_4xx http_5xx too_large truncated robots reader_crashed"
    assert {*kinds.split(), "too_many_redirects", "redirect_loop"} <= failures.KINDS.keys()
    for kind in failures.KINDS.values():
        assert kind.sentence.endswith(".")
        assert kind.advice.endswith(".")


@pytest.mark.parametrize(
    ("status", "kind", "transient"),
    [
        (200, None, None),
        (399, None, None),
        (404, "http_4xx", False),
        (408, "http_4xx", True),
        (425, "http_4xx", True),
        (429, "http_429", True),
        (500, "http_5xx", True),
        (501, "http_5xx", False),
        (505, "http_5xx", False),
        (503, "http_5xx", True),
    ],
)
def test_a_status_stands_for_a_kind(status, kind, transient):
    assert failures.for_status(status) == kind
    if kind is not None:
        assert failures.is_transient(kind, status) is transient


def test_a_kind_alone_says_whether_to_try_again():
    assert failures.is_transient("dns")
    assert failures.is_transient("http_429")
    assert not failures.is_transient("http_4xx")
    assert not failures.is_transient("too_large")
