"""A web of broken answers, made from a number: the same number makes the same web.

Every answer is a function of the number, the round and the address, so that a page that breaks something can be had
again by itself: `Web(number, pages).answer_to(host, path)`. A later round changes most answers of the web.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from random import Random

import brotli
from tests.flow import fuzz_parts as parts
from tests.flow.fuzz_parts import any_json, encoded, mutated, pool, scalars, text

from inchworm.testing import Hit, Page

DOMAIN = "fuzz.test"
PER_INDEX = 100
MOST_HOSTS = 500

_PAGE = re.compile(r"/p/(\d{1,9})\Z")
_INDEX = re.compile(r"/index/(\d{1,9})\Z")
_FIELD = re.compile(r"[^\s:]+:")


@dataclass(slots=True)
class Web:
    """The web of one number. `port` is where it is served; `mistakes` are those of this module."""

    number: int
    pages: int
    port: int = 80
    round: int = 0
    mistakes: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        return [f"www.{DOMAIN}", *(f"h{number}.{DOMAIN}" for number in range(self._broken_hosts))]

    @property
    def _broken_hosts(self) -> int:
        return min(10 + self.pages // 100, MOST_HOSTS)

    def url(self, host: str, path: str) -> str:
        return f"http://{host}:{self.port}{path}"

    def page_url(self, number: int) -> str:
        return self.url(self._host_of(number), f"/p/{number}")

    def _host_of(self, number: int) -> str:
        return f"h{number % self._broken_hosts}.{DOMAIN}"

    def linked(self) -> Iterator[str]:
        """What the good pages of the web link to: every URL that a crawl has to know at its end."""
        return map(self.page_url, range(self.pages))

    def answer(self, hit: Hit) -> Page:
        try:
            return self.answer_to(hit.host.partition(":")[0], hit.path, hit.headers)
        except Exception as error:
            self.mistakes.append(f"{hit.host}{hit.path}: {error!r}")
            raise

    def answer_to(self, host: str, path: str, asked: Mapping[str, str] | None = None) -> Page:
        if host == f"www.{DOMAIN}":
            return self._good(path)
        # What stays the same from round to round is a part of the web too.
        stays = Random(f"{self.number}/{path}").random() < 0.4
        chance = Random(f"{self.number}/{0 if stays else self.round}/{host}/{path}")
        asked = asked or {}
        if self.round and ("if-none-match" in asked or "if-modified-since" in asked) and chance.random() < 0.5:
            return Page(status=chance.choices((304, 412, 200), (20, 1, 1))[0])
        made = _Answer(chance, self, host)
        if path == "/robots.txt":
            return made.robots()
        if "sitemap" in path:
            return made.sitemap()
        # Addresses that only a broken link leads to say things, but lead nowhere: the web has an end.
        made.leads_on = self._is_page(host, path)
        return made.page() if made.leads_on or chance.random() < 0.2 else Page("not found", 404)

    def _is_page(self, host: str, path: str) -> bool:
        found = _PAGE.match(path)
        return found is not None and int(found[1]) < self.pages and self._host_of(int(found[1])) == host

    def _good(self, path: str) -> Page:
        if path == "/":
            indexes = range(-(-self.pages // PER_INDEX))
            return _listing("home", [self.url(f"www.{DOMAIN}", f"/index/{number}") for number in indexes])
        if index := _INDEX.match(path):
            first = PER_INDEX * int(index[1])
            numbers = range(first, min(first + PER_INDEX, self.pages))
            return _listing(f"index {index[1]}", [self.page_url(number) for number in numbers])
        return Page("not found", 404)


def _listing(name: str, links: Sequence[str]) -> Page:
    anchors = "".join(f"<li><a href='{link}'>{link}</a></li>" for link in links)
    return Page(f"<!doctype html><title>{name}</title><main><p>All that {name} has to say.</main><ul>{anchors}</ul>")


class _Answer:
    """One answer in the making."""

    leads_on = True

    def __init__(self, chance: Random, web: Web, host: str) -> None:
        self.chance = chance
        self.web = web
        self.host = host

    def page(self) -> Page:
        makes = self.chance.choices(tuple(_PAGES), tuple(_PAGES.values()))[0]
        return makes(self)

    def text(self, most: int = 30) -> str:
        return text(self.chance, most)

    def one_of(self, *words: str) -> str:
        return self.chance.choice(pool(*words))

    def number(self) -> str:
        return self.chance.choice(parts.NUMBERS)

    def date(self) -> str:
        return self.chance.choice(parts.DATES)

    def w3c_date(self) -> str:
        return self.chance.choice(parts.W3C_DATES)

    def known(self) -> str:
        """A page of the web."""
        return self.web.page_url(self.chance.randrange(self.web.pages))

    def address(self) -> str:
        if self.chance.random() < 0.35:
            return self.chance.choice((self.known(), "/p/1", "#top", "/"))
        return parts.address(self.chance, self.host, self.web.port)

    def link(self) -> str:
        """An address inside double quotes."""
        return self.address().replace('"', "&quot;") if self.leads_on else "#"

    # Heads

    def sent(self, body: bytes, content_type: str, status: str = "200 OK", more: Sequence[str] = ()) -> Page:
        """The body behind a head that may be wrong in any way, with any framing."""
        chance = self.chance
        lines = [f"Content-Type: {content_type}", *more]
        for name in chance.sample(tuple(_FIELDS), chance.choice((0, 0, 1, 2, 4, 8))):
            times = 1 if name == "Location" else chance.choice((1, 1, 1, 2, 5))
            lines += [f"{name}: {_FIELDS[name](self)}" for _ in range(times)]
        if chance.random() < 0.1:
            coding, body = self.coded(body)
            lines.append(f"Content-Encoding: {coding}")
        if chance.random() < 0.98:  # what the client refuses as a whole tests nothing behind it
            lines = [parts.BREAKING.sub(" ", line) for line in lines if _FIELD.match(line)]
        else:
            lines += chance.choices(_LINES, k=3)
        chance.shuffle(lines)
        framing, body = self.framed(body)
        head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *lines, *framing))
        raw = encoded(head, chance.choice(("utf-8", "utf-8", "latin-1"))) + b"\r\n"
        return Page(raw=(mutated(chance, raw) if chance.random() < 0.02 else raw) + body)

    def framed(self, body: bytes) -> tuple[list[str], bytes]:
        chance, size = self.chance, len(body)
        if chance.random() < 0.9:
            return [f"Content-Length: {size}", "Connection: close"], body
        cut = chance.randrange(size + 1)
        chunks = b"%x\r\n%b\r\n%x;ext=1\r\n%b\r\n" % (cut, body[:cut], size - cut, body[cut:])
        return chance.choice(
            (
                ([], body),
                ([f"Content-Length: {size + 10}"], body),
                ([f"Content-Length: {cut}"], body),
                ([f"Content-Length: {self.number()}"], body),
                ([f"Content-Length: {size}", f"Content-Length: {cut}"], body),
                (["Transfer-Encoding: chunked"], chunks + b"0\r\n\r\n"),
                (["Transfer-Encoding: chunked"], chunks + b"0\r\nTrailer: \x01\r\nSet-Cookie: t=1\r\n\r\n"),
                (["Transfer-Encoding: chunked"], mutated(chance, chunks)),
                ([f"Transfer-Encoding: {self.text(3)}", f"Content-Length: {cut}"], chunks),
            )
        )

    def coded(self, body: bytes) -> tuple[str, bytes]:
        """The name of a coding and a body that has it, or does not, or breaks off."""
        name = self.chance.choice(tuple(_CODINGS))
        coded = _CODINGS[name](body)
        fate = self.chance.random()
        if fate < 0.15:
            coded = coded[: self.chance.randrange(len(coded) + 1)]
        elif fate < 0.3:
            coded = mutated(self.chance, coded)
        elif fate < 0.35:
            name = self.one_of("gzip,␣br rot13 identity , gzip,gzip,gzip,gzip GZIP é", "x" * 400)
        return name, coded

    def content_type(self) -> str:
        chance = self.chance
        kind = "text/html" if chance.random() < 0.85 else chance.choice(parts.TYPES)
        label = chance.choice(("utf-8", *parts.LABELS))
        form = self.one_of('{0} {0};␣charset=utf-8 {0};␣charset={1} {0};charset="{1}" {0};␣charset=\'{1}')
        return form.format(kind, label)

    def cookie(self) -> str:
        made = self.one_of("a b __Host-c __Secure-d ø é", "x" * 200) + self.chance.choice("==; ") + self.text(4)
        for _ in range(self.chance.randrange(6)):
            made += self.one_of(";␣ ; ;; ␣;␣\t") + self.chance.choice(_COOKIE_PARTS)(self)
        return made

    def entity_tag(self) -> str:
        tags = pool('"a" W/"a" a " "" é \x01 "a",␣"b" * \ufffd')
        return self.chance.choice((*tags, f'"{"x" * 3_000}"', self.text(4)))

    # Pages

    def html(self) -> Page:
        encoding = self.chance.choices(("utf-8", *parts.ENCODINGS), (40, *[1] * len(parts.ENCODINGS)))[0]
        body = encoded(self.document(), encoding)
        if self.chance.random() < 0.25:
            body = mutated(self.chance, body)
        status = "200 OK" if self.chance.random() < 0.9 else self.chance.choice(parts.STATUSES)
        return self.sent(body, self.content_type(), status)

    def plain(self) -> Page:
        """A good page on a connection that stays."""
        chance = self.chance
        headers = {"Content-Type": "text/html; charset=utf-8"}
        if chance.random() < 0.5:
            headers |= {"ETag": f'"{chance.random()}"', "Last-Modified": chance.choice(parts.DATES[:3])}
        return Page(encoded(self.document()), headers=headers, gzip=chance.random() < 0.3)

    def document(self) -> str:
        chance = self.chance
        start = self.one_of(
            "<!doctype␣html> ø \ufeff <?xml␣version='1.0'␣encoding='utf-7'?> <!-- \x00 <!DOCTYPE␣[<!ENTITY"
        )
        language = chance.choice(("en", f'"{self.text(3)}', "x" * 90, ""))
        head = "".join(chance.choice(_HEAD_PARTS)(self) for _ in range(chance.randrange(7)))
        body = "".join(self.body_part(0) for _ in range(chance.randrange(2, 9)))
        if chance.random() < 0.03:
            body += chance.choice(parts.DEEP) * chance.choice((100, 600, 3_000))
        end = self.one_of("</body></html> ø </plaintext")
        return scalars(f"{start}<html lang={language}><head>{head}</head><body>{body}{end}")

    def body_part(self, depth: int) -> str:
        chance = self.chance
        if depth > 5 or chance.random() < 0.5:
            return chance.choice(_BODY_PARTS)(self)
        tag = chance.choice(parts.TAGS)
        inner = "".join(self.body_part(depth + 1) for _ in range(chance.randrange(4)))
        end = f"</{tag}>" if chance.random() < 0.9 else ""
        named = f" class='{self.one_of('sidebar nav content')} {self.text(2)}'" if chance.random() < 0.2 else ""
        return f"<{tag}{named}>{inner}{end}"

    def redirect(self) -> Page:
        status = self.one_of("301␣x 302␣Found 303␣See 307␣T 308␣P 300␣M 305␣Proxy 399␣x 304␣N")
        where = [f"Location: {self.link()}" for _ in range(self.chance.choice((0, 1, 1, 1, 1, 1, 2)))]
        return self.sent(encoded(self.text()), "text/html", status, where)

    def odd_status(self) -> Page:
        return self.sent(encoded(self.text()), self.content_type(), self.chance.choice(parts.STATUSES))

    def garbage(self) -> Page:
        """Hardly HTTP."""
        noise = self.chance.randbytes(self.chance.randrange(300))
        return Page(
            raw=self.chance.choice((*_HARDLY_HTTP, noise, b"HTTP/1.1 200 OK\r\n" + noise + b"\r\n\r\n" + noise))
        )

    def binary(self) -> Page:
        start = self.chance.choice(
            (b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\x1f\x8b", b"GIF89a", b"", b"<")
        )
        kind = self.chance.choice(("application/pdf", "text/html", *parts.TYPES))
        return self.sent(start + self.chance.randbytes(self.chance.randrange(500)), kind)

    def other_text(self) -> Page:
        chance = self.chance
        kind = self.one_of("text/plain text/css application/json text/markdown application/rss+xml image/svg+xml")
        label = f"; charset={chance.choice(parts.LABELS)}" if chance.random() < 0.5 else ""
        said = chance.choice((any_json(chance), self.feed(), self.css(), self.text(60)))
        body = encoded(scalars(said), chance.choice(("utf-8", *parts.ENCODINGS)))
        return self.sent(mutated(chance, body) if chance.random() < 0.2 else body, kind + label)

    def feed(self) -> str:
        entries = (
            f'<entry><link href="{self.link()}"/><updated>{self.w3c_date()}</updated><title>{self.text(5)}</entry>'
            for _ in range(self.chance.randrange(5))
        )
        return f"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>{''.join(entries)}</feed>"

    def css(self) -> str:
        return f"@import url({self.link()}); a{{src:url('{self.link()}')}} @import '{self.link()}'; /* {self.text(5)}"

    def not_there(self) -> Page:
        name = self.one_of("404␣Not␣Found Seite␣nicht␣gefunden Oops Page␣introuvable")
        body = f"<title>{name}</title><h1>{name}</h1><p>The page that you look for is not found. {self.text(5)}"
        return self.sent(encoded(body), "text/html; charset=utf-8")

    def wall(self) -> Page:
        status = self.one_of("403␣Forbidden 503␣Busy 429␣Slow 401␣Who 200␣OK")
        mark = self.one_of("Server:␣cloudflare cf-mitigated:␣challenge X-DataDome:␣x WWW-Authenticate:␣Basic␣é x:␣y")
        body = "<title>Just a moment...</title><input type=password><script src=/cdn-cgi/challenge-platform/x>"
        return self.sent(body.encode(), "text/html", status, [mark])

    # Control files

    def robots(self) -> Page:
        chance = self.chance
        if chance.random() < 0.1:
            where = self.one_of("/robots.txt /p/1 //[ http://a:b/ /robots.txt?a ø é //un.fuzz.test/")
            elsewhere = self.sent(b"", "", "301 Moved", [f"Location: {where}"])
            return chance.choice((Page("", 404), Page("", 200), self.odd_status(), self.garbage(), elsewhere))
        lines = [chance.choice(_ROBOTS)(self) for _ in range(chance.randrange(12))]
        body = encoded(scalars(chance.choice(("\n", "\r\n", "\r")).join(lines)), self.one_of("utf-8 utf-8 utf-16"))
        return self.sent(mutated(chance, body) if chance.random() < 0.2 else body, "text/plain")

    def own_sitemap(self) -> str:
        return self.web.url(self.host, f"/sitemap{self.chance.randrange(5)}.xml")

    def sitemap(self) -> Page:
        chance = self.chance
        if chance.random() < 0.3:
            return Page("", 404)
        root, entry = chance.choice(_ROOTS)
        locations = [self.address(), *(self.known() for _ in range(chance.randrange(4)))]
        if entry == "sitemap":
            locations = [self.own_sitemap(), "http://a:b/"]
        entries = "".join(
            f"<{entry}><loc>{location if chance.random() < 0.5 else escape(location)}</loc>"
            f"<lastmod>{self.w3c_date()}</lastmod><priority>{self.number()}</priority></{entry}>"
            for location in locations
        )
        listing = f"{chance.choice(_XML_STARTS)}<{root}>{entries}{self.one_of('ø ø &b; &#0; <![CDATA[')}</{root}>"
        if chance.random() < 0.1:
            listing = "\n".join((*locations, "http://[", "prose of more words"))
        body = encoded(scalars(listing), chance.choice(("utf-8", "utf-8", "utf-8", *parts.ENCODINGS)))
        if chance.random() < 0.2:
            body = mutated(chance, body)
        if chance.random() < 0.15:
            body = gzip.compress(body)[: chance.choice((None, None, -5, 20))]
        return self.sent(body, self.one_of("application/xml text/xml;␣charset=utf-7 application/gzip text/html ø"))


_Part = Callable[[_Answer], str]

_PAGES: dict[Callable[[_Answer], Page], int] = {
    _Answer.html: 56,
    _Answer.plain: 14,
    _Answer.redirect: 6,
    _Answer.odd_status: 3,
    _Answer.garbage: 2,
    _Answer.binary: 4,
    _Answer.other_text: 6,
    _Answer.not_there: 3,
    _Answer.wall: 2,
    _Answer.sitemap: 2,
    _Answer.robots: 1,
}
_FIELDS: dict[str, _Part] = {
    "Set-Cookie": _Answer.cookie,
    "set-cookie ": _Answer.cookie,
    "Retry-After": lambda a: a.chance.choice((a.number(), a.date())),
    "ETag": _Answer.entity_tag,
    "Last-Modified": lambda a: a.chance.choice((a.date(), a.text(4))),
    "Date": _Answer.date,
    "Expires": _Answer.date,
    "Cache-Control": lambda a: f"max-age={a.number()}, no-store",
    "Content-Type": _Answer.content_type,
    "Content-Language": lambda a: a.text(4),
    "Content-Location": _Answer.address,
    "Content-Disposition": lambda a: f"attachment; filename=\"../../{a.text(3)}\"; filename*=utf-7''%zz",
    "Link": lambda a: f"<{a.address()}>; rel=\"canonical\"; title*=idna''%",
    "Location": _Answer.address,
    "Refresh": lambda a: f"0;url={a.address()}",
    "X-Robots-Tag": lambda a: a.one_of("noindex nofollow inchworm:␣none unavailable_after:␣x é"),
    "Vary": lambda _: "*",
    "Server": lambda a: a.text(6),
    "Strict-Transport-Security": lambda a: f"max-age={a.number()}",
    "Alt-Svc": lambda _: 'h3=":443"; ma=9999999999999',
    "X-é": _Answer.text,
    "": lambda a: a.text(3),
}
_LINES = pool("no␣colon : ␣folded \x00:␣\x00 A\x01B:␣c Content-Length \x7f Content-Type:␣text/html\x0bx")
_COOKIE_PARTS: tuple[_Part, ...] = (
    lambda a: f"Expires={a.date()}",
    lambda a: f"Max-Age={a.number()}",
    lambda a: f"Domain={a.one_of('{0} .fuzz.test test . .. é.test [::1] 127.0.0.1 ø', 'a' * 2_000).format(a.host)}",
    lambda a: f"Path={a.one_of('/ /p p ø /é //', '/' + 'x' * 2_000)}",
    lambda a: a.one_of("Secure HttpOnly SameSite=None SameSite = Priority=\x7f Partitioned expires max-age"),
)
_CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 1),
    "x-gzip": lambda body: gzip.compress(body[:9], 1) + gzip.compress(body[9:], 1),
    "deflate": lambda body: zlib.compress(body, 1),
    "DEFLATE": lambda body: zlib.compress(body, 1)[2:-4],
    "br": lambda body: brotli.compress(body, quality=0),
    "zstd": lambda body: b"\x28\xb5\x2f\xfd\x20\xff" + (len(body) << 3 | 1).to_bytes(4, "little")[:3] + body,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body, 1), quality=0),
    "br, identity, gzip": lambda body: gzip.compress(brotli.compress(body, quality=0), 1),
}
_HARDLY_HTTP = (
    b"",
    b"\r\n\r\n",
    b"HTTP/1.1",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/0.9 <html>",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 30 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 3_000 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 120_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n folded: \x00\x80\r\n\tmore\r\n\r\n<a href=/>",
    b"HTTP/2 200\r\ncontent-type: text/html\r\n\r\n<title>two",
    b"HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 2x0 ?\r\nContent-Length: 0\r\n\r\n",
)
_ROBOTS: tuple[_Part, ...] = (
    lambda a: f"User-agent: {a.one_of('* inchworm Inchworm/1.0 other ø *é', 'a' * 500)}",
    lambda a: f"Disallow: {a.one_of('ø /never /p/*7$ *? /%zz /é $ /p/1', chr(0), '*' * 50 + 'x')}",
    lambda a: f"Allow: {a.one_of('/ /p/ * /index.html % /p/*1*1$ p')}",
    lambda a: f"Crawl-delay: {a.one_of('0 0.1 99999 -1 nan 1e9 . ٣', '9' * 30)}",
    lambda a: f"Sitemap: {a.chance.choice((a.own_sitemap(), a.own_sitemap(), a.address()))}",
    lambda a: a.one_of("# garbage : user␣agent␣* <html> \x00 Disallow␣/x Host:␣x Noindex:␣/ Clean-param:␣a&b␣/"),
)
_ROOTS = (
    *[("urlset", "url")] * 3,
    ("sitemapindex", "sitemap"),
    ("feed", "entry"),
    ("x:urlset", "x:url"),
)
_XML_STARTS = pool(
    "<?xml␣version='1.0'␣encoding='UTF-8'?> ø \ufeff <?xml␣version='1.0'␣encoding='utf-7'?> <?xml␣version='9'?> ␣\n",
    "<!DOCTYPE␣x␣[<!ENTITY␣a␣'aaaa'><!ENTITY␣b␣'&a;&a;'>]> <!DOCTYPE␣x␣SYSTEM␣'file:///etc/passwd'>",
    "<?xml-stylesheet␣href='x'?><!--␣--␣-->",
)
_TITLES = (*pool("Not␣found Log␣in \x00 404 &lt;b&gt;"), "x" * 2_000)
_HEAD_PARTS: tuple[_Part, ...] = (
    lambda a: f"<title>{a.text()}</title>",
    lambda a: f"<title>{a.chance.choice(_TITLES)}</title>",
    lambda a: f'<meta charset="{a.chance.choice(parts.LABELS)}">',
    lambda a: f"<meta charset={a.chance.choice(parts.LABELS)}>",
    lambda a: f'<meta http-equiv=Content-Type content="text/html; charset={a.chance.choice(parts.LABELS)}">',
    lambda a: (
        f'<meta http-equiv="refresh" content="{a.number()}{a.one_of("; , ␣")}{a.one_of("url= URL␣= ø")}{a.link()}">'
    ),
    lambda a: f'<meta name={a.chance.choice(parts.METAS)} content="{a.one_of("noindex none,nofollow")}">',
    lambda a: f'<meta name="{a.chance.choice(parts.METAS)}" content="{a.text()}{a.w3c_date()}">',
    lambda a: f'<meta property="{a.chance.choice(parts.METAS)}" content="{a.link()}">',
    lambda a: f'<base href="{a.link() if a.chance.random() < 0.3 else "/p/"}">',
    lambda a: f'<link rel="{a.one_of("canonical next prev stylesheet icon preload CANONICAL␣x ø")}" href="{a.link()}">',
    lambda a: f'<link rel=alternate type={a.one_of("application/rss+xml text/css ø")} href="{a.link()}">',
    lambda a: f'<script type="application/ld+json">{any_json(a.chance)}</script>',
    lambda a: f'<script type=" application/LD+json">{any_json(a.chance)}</script>',
    lambda a: f'<script type="application/ld+json">{{"@graph":[{any_json(a.chance)},{any_json(a.chance)}]}}</script>',
    lambda a: f"<style>{a.css()}</style>",
    lambda a: f"<script>{any_json(a.chance)}<!--<script>{a.text(4)}</script>",
    lambda a: f'<noscript><img src="{a.link()}"></noscript>',
)
_BODY_PARTS: tuple[_Part, ...] = (
    lambda a: f"<p>{a.text()}</p>",
    lambda a: a.text(80),
    lambda a: f'<a href="{a.link()}">{a.text(5)}</a>',
    lambda a: f'<a href="{a.link()}" rel="nofollow">{a.text(3)}<a href="{a.link()}">',
    lambda a: f'<a href="{a.known() if a.leads_on else ""}"><img src=x alt="{a.text(4)}"></a>',
    lambda a: f'<svg><a xlink:href="{a.link()}"><title>x</title><image href="{a.link()}"/></a></svg>',
    lambda a: f'<iframe src="{a.link()}" srcdoc="{a.text(3)}"></iframe>',
    lambda a: f'<img srcset="{a.link()} 1x, {a.link()} {a.number()}w" style="background:url({a.link()}">',
    lambda a: f'<template shadowrootmode=open><a href="{a.link()}">x</a><base href="{a.link()}"></template>',
    lambda a: f'<area href="{a.link()}" alt="{a.text(3)}"><frame src="{a.link()}">',
    lambda a: f'<form role=search action="{a.link()}"><input type=password><input type=image src="{a.link()}"></form>',
    lambda a: f"<table><tr><td colspan={a.number()} rowspan=99999>x<th>{a.text(4)}<caption>{a.text(4)}</table>",
    lambda a: f"<ol start={a.number()}><li value={a.number()}>{a.text(3)}</ol>",
    lambda a: f"<pre><code class='language-{a.text(2)}'>{a.text()}</code></pre>```",
    lambda a: f"<h{a.chance.randrange(9)} id='{a.text(2)}'>{a.text(6)}</h1>",
    lambda a: f"<!-- {a.text(4)} --!><![CDATA[{a.text(4)}]]>",
    lambda a: f'<time datetime="{a.w3c_date()}"></time><object data="{a.link()}"><embed src="{a.link()}">',
    lambda a: f'<video poster="{a.link()}"><source src="{a.link()}"></video><math><mi href="{a.link()}">',
)
