"""What broken answers are made of: texts, dates, addresses, JSON, bytes, each of them right, odd or wrong."""

from __future__ import annotations

import json
import re
from functools import cache
from random import Random


@cache
def pool(*words: str) -> tuple[str, ...]:
    """The words of these lines. `␣` stands for a blank inside of one, `ø` for one that is empty."""
    found = " ".join(words).split(" ")
    return tuple("" if word == "ø" else word.replace("␣", " ") for word in found)


WORDS = (
    *pool(
        "page not found the garden tools 404 error log in password Ünïcödé 日本語 \u200b \x00 \x07 a\u0301 \U0001f40d"
    ),
    *pool(
        "\ufffe ﷺ &amp; &#0; &#xD800; &#x110000; &notin; &# &#x80; < > -- ]]> {{␣title␣}} İ ß =SUM(A1) -1+1 @cmd ' \""
    ),
    *pool("a,b \r \t \u2028 #␣heading [a](b) ` *** \u202eright␣to␣left\u202c \x1b[31mred\x1b[0m"),
    "x" * 300,
)
NUMBERS = (*pool("0 1 -1 3 60 99999999999999999999 1e9 0x10 NaN ø ١٢ 1.5 ␣7␣ 1,2"), "9" * 400)
DATES = pool(
    "Wed,␣21␣Oct␣2015␣07:28:00␣GMT Wed,␣21␣Oct␣2037␣07:28:00␣GMT Thu,␣01␣Jan␣1970␣00:00:00␣GMT 0 -1 now , Σεπ",
    "Wed,␣99␣Foo␣99999␣99:99:99␣GMT Mon,␣31␣Feb␣2020␣25:61:61␣+9999 Fri,␣31␣Dec␣9999␣23:59:59␣GMT 21␣Oct␣15␣7:28:00",
    "Sat,␣01-Jan-0001␣00:00:00␣GMT Wed,␣21␣Oct␣2015␣07:28:00␣-2359 1␣Jan␣10000␣0:0:0 Wed,␣21␣Oct␣2015",
    "Wed,␣21␣Oct␣2015␣07:28:00␣+000000000001 2015-10-21T07:28:00Z ٢١␣Oct␣2015␣07:28:00 1␣Jan␣2024␣1:1:1␣²:²:²",
    "Mon,␣01␣Jan␣0000␣00:00:00␣GMT Mon,␣01␣Jan␣2024␣00:00:00␣+99999999999999999999",
)
W3C_DATES = pool(
    "2024-01-31 2024-02-30 2024 2024-13 0000-01-01 9999-12-31 2024-01-31T25:00:00Z 31.1.2024 ø 12024-01-01 1e3",
    "2024-01-31T12:00:00+99:99 2024-01-31T12:00Z ١٩٩٩-01-01 -2024-01-01 2024-1-1",
)
LABELS = (
    *pool(
        "utf-8 utf8 UTF-16 utf-16le utf-7 utf-32 idna punycode undefined unicode_escape rot13 raw_unicode_escape hex"
    ),
    *pool("base64 zlib bz2 uu quopri mbcs oem cp65001 x-user-defined replacement iso-2022-kr hz-gb-2312 windows-1252"),
    *pool("shift_jis euc-jp gb18030 iso-2022-jp big5 koi8-r latin1 ascii utf_8_sig unicode_internal charmap none 1 ø"),
    *pool("utf-8; .. *"),
    "a" * 500,
)
ENCODINGS = pool(
    "utf-16-le utf-16-be utf-16 utf-32 utf-32-be utf-7 latin-1 cp1252 shift_jis euc-jp iso-2022-jp gb18030 koi8-r",
    "utf-8-sig cp037",
)
TYPES = (
    *pool(
        "text/html TEXT/HTML ␣text/html␣ application/xhtml+xml text/html,␣text/plain text/plain text/css ø text / */*"
    ),
    *pool("application/xml application/json application/pdf image/png application/octet-stream unknown/unknown"),
    *pool("text/html\x00 text/hé multipart/x-mixed-replace;␣boundary=x"),
    "x" * 2_000,
)
STATUSES = (
    *pool("201␣Created 203␣x 204␣No 205␣Reset 206␣Part 207␣Multi 226␣x 299␣? 300␣Many 304␣Not 400␣Bad 401␣Who 402␣Pay"),
    *pool("403␣No 404␣Not 405␣x 406␣x 408␣Slow 409␣x 410␣Gone 412␣x 413␣x 414␣x 416␣x 418␣Tea 421␣x 425␣Early 426␣x"),
    *pool("429␣Slow 451␣Law 499␣x 500␣x 501␣x 502␣x 503␣x 504␣x 505␣x 511␣x 520␣x 599␣x 600␣x 999␣x 099␣x 20␣x 0␣x"),
    *pool("2000␣x ø OK 200 200␣\x1b[31m"),
    "200 " + "é" * 50,
)
TAGS = pool(
    "div p ul li table tr td main article section nav header footer aside form svg math template select button a b pre",
    "code h1 h2 noscript blockquote frameset foreignObject title dl dd details figure iframe textarea x-y ruby",
    "caption ol colgroup option mi annotation-xml",
)
DEEP = pool(
    "<div> <b> <table><tr><td> <ul><li> <blockquote> <svg><g> <a␣href=/> <template> <font> <p><i> &lt; <pre><code>"
)
METAS = pool(
    "robots inchworm description keywords author date og:image og:title og:updated_time article:published_time",
    "viewport ø Robots␣ twitter:image dc.date referrer",
)


def text(chance: Random, most: int = 30) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(most)))


def scalars(text: str) -> str:
    """Without halves of characters, which no encoding can write."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encoded(text: str, encoding: str = "utf-8") -> bytes:
    return text.encode(encoding, "replace")


# ---- addresses

_SCHEMES = pool(
    "ø ø ø http: https: HTTP: h\tttp: ␣http: \x00http: http : javascript: data:, file: ftp: mailto: ws: wss: blob:",
    "about: view-source: tel: x-y+z.1: 1: http:: urn: é:",
)
_SLASHES = pool("ø / // // // /// \\\\ /\\ /\t/ //// ./ ../ ? #")
_USERS = pool("ø ø ø user@ user:pass@ @ :@ a:b:c@d@ %40%3A@ é:ü@ user:p%@")
_HOSTS = (
    *pool("ø example.com EXAMPLE.com 127.0.0.1 0x7f.1 2130706433 0177.0.0.1 127.1 0 0x 256.256.256.256 1.2.3.4.5"),
    *pool("0xffffffffff 1e3 [::1] [::1 ::1] [::127.0.0.1] [1::2::3] [v1.x] [] [::1%25eth0] ex%41mple.com exa␣mple.com"),
    *pool(
        "% %zz.test {{␣host␣}} ${HOST} a..b .. . .test test. xn-- xn--a xn--zca.test faß.test ☃.test \u00ad ＧＯ.test"
    ),
    *pool("a\u200db.test \ufffd - _ localhost a^b a|b a<b a\x00b a\u3002b un.fuzz.test *.fuzz.test ١٢٧.0.0.1 a:b:c"),
    *("a" * 64, "a." * 130),
)
_PORTS = pool("ø ø : :80 :0 :443 :00080 :65535 :65536 :99999 :b :-1 :８０ :␣80 :8␣0 :1e1 :%38")
_PATHS = (
    *pool("ø ø / /.. /../.. /./a/../b /%2e%2e/x /%2E./x /% /%zz /%00 /\x00 /a␣b // ///a// /;jsessionid=1 /é /%C3%28"),
    *pool(
        "/a/..;jsessionid=1/b /%ed%a0%80 \\a\\b /C|/x /c:/x /a;b=1 /~ /\u202e /robots.txt /sitemap.xml /a.pdf x x/y /."
    ),
    *pool("/a/a/a/a/a /1/2/3 /\ufeff"),
    *("/" + "d/" * 40, "/" + "l" * 3_000),
)
_QUERIES = (
    *pool(
        "ø ø ø ø ? ?a=1&a=2 ?b&&a ?utm_source=x ?% ?%zz ?é=ü ?\x01 ?'\"<> ?? ?a=%00 ?{x} ?a=1;b=2 ?\ufffe ?=&=& ?sid=1"
    ),
    "?q=" + "x" * 9_000,
)
_FRAGMENTS = pool("ø ø ø # #a #é #% ## #:~:text=x #\x00 #!/x")
_ODD = pool("\t \n \r \x00 \x1f ␣ \\ % \u00a0 \U0001f600 \ufdd0 @ : [ ] / ? # \u202e ^")


def address(chance: Random, host: str, port: int) -> str:
    """An address as the tests of browsers have them: each part right, odd, or missing."""
    pick = chance.choice
    made = pick(_SCHEMES) + pick(_SLASHES)
    if chance.random() < 0.5:
        made += pick(_USERS)
        made += host if chance.random() < 0.4 else pick(_HOSTS)
        made += f":{port}" if chance.random() < 0.4 else pick(_PORTS)
    made += pick(_PATHS) + pick(_QUERIES) + pick(_FRAGMENTS)
    if made and chance.random() < 0.2:
        at = chance.randrange(len(made))
        made = made[:at] + pick(_ODD) + made[at + chance.randrange(2) :]
    return scalars(made)


# ---- JSON

_KEYS = pool(
    "@id @type @graph @context author name url description datePublished dateModified image keywords publisher ø \x00"
)
_ATOMS = pool(
    '"x" "Article" "WebSite" "#a" "http://a:b/" "//[" "\\ud800" "\\u0000" "\\udc00\\ud800" "␣" "" 0 -0 1e999 -1e-999',
    '1.5 true null "\\u202e" "2024-02-30"',
)
_HARDLY = (*pool('NaN -Infinity undefined \'x\' 0x1 01 [ { "a , // \\ "\t" "\\"'), "9" * 5_000, f'"{"k," * 400}"')


def any_json(chance: Random, depth: int = 0) -> str:
    """JSON of any shape, now and then none."""
    kind = chance.random()
    if depth > 4 or kind < 0.3:
        return chance.choice(_ATOMS if chance.random() < 0.95 else _HARDLY)
    if kind < 0.32:
        return "[" * chance.choice((10, 900, 5_000)) + "]" * chance.choice((0, 10, 900, 5_000))
    inner = (any_json(chance, depth + 1) for _ in range(chance.randrange(5)))
    if kind < 0.5:
        return f"[{','.join(inner)}]"
    return "{" + ",".join(f"{json.dumps(chance.choice(_KEYS))}:{value}" for value in inner) + "}"


# ---- bytes

_BYTES = (b"\0", b"\xff", b"<", b"&", b'"', b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"</", b"\x1b$B", b"\r\n")
BREAKING = re.compile("[\r\n\0]")


def mutated(chance: Random, data: bytes) -> bytes:
    """The same with a few bytes changed, lost, doubled or added."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 9)):
        at = chance.randrange(len(changed) + 1)
        size = chance.choice((1, 1, 2, 16, 200))
        kind = chance.randrange(6)
        if kind == 0:
            changed[at : at + 1] = chance.randbytes(1)
        elif kind == 1:
            del changed[at : at + size]
        elif kind == 2:
            changed[at:at] = changed[at : at + size]
        elif kind == 3:
            changed[at:at] = chance.choice(_BYTES)
        elif kind == 4:
            changed[at : at + size] = chance.randbytes(size)
        elif chance.random() < 0.2:
            del changed[at:]
    return bytes(changed)
