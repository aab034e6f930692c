"""What a URL is to us: parsed as a browser does, reduced to one identity, shown without harm.

An address has three forms. The *href* is what the WHATWG standard makes of the text on a page (`parse`). The
*request form* is what a server is asked for. The *canonical form* is the identity under which the frontier
knows it: spellings that share it are one row. Everything after `parse` works by slicing, because an href has
one shape only, `scheme://[userinfo@]host[:port]/path[?query][#fragment]`, all ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import xxhash
from ada_url import join_url, normalize_url

_TRACKING = """
utm_* mtm_* _ga _gl _hsenc _hsmi __hsfp __hssc __hstc _kx _openstat dclid epik fbclid gad_campaignid
gad_source gbraid gclid gclsrc hsctatracking igsh igshid li_fat_id mc_cid mc_eid mkt_tok ml_subscriber
ml_subscriber_hash msclkid oly_anon_id oly_enc_id pk_campaign pk_kwd pk_medium pk_source rb_clickid srsltid
ttclid twclid vero_conv vero_id wbraid wickedid yclid ysclid
jsessionid phpsessid sessionid session_id aspsessionid* cfid cftoken
"""
TRACKING = frozenset(_TRACKING.split())
"""Parameters that follow the visitor, not the page. A `*` at the end stands for any ending."""

_WEB = ("http://", "https://")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_SESSION = re.compile(r"(?i);(?:jsessionid|phpsessid|sid)=[^/?#;&]*")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_PORT = re.compile(r"[0-9]+(?:[/\\?#]|\Z)")
_END_OF_HOST = re.compile(r"[/\\?#]")
_NOT_A_HOST = re.compile(
    "about|blob|chrome|data|file|ftp|gopher|https?|javascript|mailto|sms|tel|urn|view-source|wss?",
    re.IGNORECASE,
)
_TABS_AND_NEWLINES = str.maketrans("", "", "\t\n\r")
_EDGES = "".join(map(chr, range(0x21)))


def parse(text: str, base: str | None = None) -> str | None:
    """The href a browser would go to; None when it would refuse, or when it is not http(s). Never raises."""
    try:
        href: str = normalize_url(text) if base is None else join_url(base, text)
    except ValueError:
        return _parse_scalars(text, base)
    return href if href.startswith(_WEB) else None


def _parse_scalars(text: str, base: str | None) -> str | None:
    """The second try of a refused text: browsers read a lone surrogate as U+FFFD, UTF-8 cannot hold it."""
    scalars, scalar_base = _scalars(text), None if base is None else _scalars(base)
    return None if (scalars, scalar_base) == (text, base) else parse(scalars, scalar_base)


def _scalars(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class Canonicalizer:
    """Reduces a URL to its identity. The parameters it drops are a setting; the rest is the same for all."""

    drop: frozenset[str] = TRACKING
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _beginnings: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lowered = {name.lower() for name in self.drop}
        beginnings = tuple(sorted(name[:-1] for name in lowered if name.endswith("*")))
        object.__setattr__(self, "_names", frozenset(lowered))
        object.__setattr__(self, "_beginnings", beginnings)

    def canonicalize(self, text: str, base: str | None = None) -> str | None:
        href = parse(text, base)
        return None if href is None else self.identity(href)

    def identity(self, href: str) -> str:
        """The canonical form of what `parse` gave. The hot path: most hrefs pass every test unchanged."""
        url = request_form(href)
        if "%" in url:
            url = _ESCAPE.sub(_upper, url)
        if ";" in url and (stripped := _SESSION.sub("", url)) != url:
            # What is left may be a dot segment by now.
            url = parse(stripped) or stripped
        if "?" not in url:
            return _without_slashes(url) if url.endswith("/") else url
        page, _, query = url.partition("?")
        if page.endswith("/"):
            page = _without_slashes(page)
        kept = sorted(piece for piece in query.split("&") if piece and not self._is_tracking(piece))
        return page + "?" + "&".join(kept) if kept else page

    def _is_tracking(self, piece: str) -> bool:
        name = piece.partition("=")[0].lower()
        return name in self._names or name.startswith(self._beginnings)


def _upper(escape: re.Match[str]) -> str:
    return escape[0].upper()


def _without_slashes(page: str) -> str:
    """Without the slashes at its end, save the one that is the root."""
    path = page.find("/", 8) + 1
    return page[:path] + page[path:].rstrip("/")


_DEFAULT = Canonicalizer()


def canonicalizer(drop_params: tuple[str, ...]) -> Canonicalizer:
    """The one that drops these parameters; the default list when there are none."""
    return Canonicalizer(frozenset(drop_params)) if drop_params else _DEFAULT


def canonicalize(text: str, base: str | None = None) -> str | None:
    """The identity of a URL, with the default tracking parameters. Idempotent; None where `parse` is."""
    return _DEFAULT.canonicalize(text, base)


def request_form(href: str) -> str:
    """What is sent to the server: no fragment, no user and password."""
    if "#" in href:
        href = href[: href.index("#")]
    return _without_userinfo(href) if "@" in href else href


def _without_userinfo(href: str) -> str:
    start = href.find("://") + 3
    end = href.find("/", start)
    at = href.rfind("@", start, end if end >= 0 else len(href))
    return href if at < 0 else href[:start] + href[at + 1 :]


def userinfo_of(href: str) -> str | None:
    """User and password as an href has them, or None."""
    bare = _without_userinfo(href)
    start = href.find("://") + 3
    return None if bare == href else href[start : start + len(href) - len(bare) - 1]


def scheme_of(url: str) -> str:
    return url[: url.find(":")]


# A URL is asked for these a dozen times between its dispatch and its commit.
@lru_cache(maxsize=2048)
def host_of(url: str) -> str:
    """The host as scopes and politeness know it: `http://h/` and `https://h/` are one, `h:8080` another."""
    host = _authority(url)
    return host.rpartition(":")[0] if host.endswith((":80", ":443")) else host


def hostname_of(url: str) -> str:
    """The host without a port; an IPv6 address keeps its brackets."""
    host = _authority(url)
    return host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host


@lru_cache(maxsize=2048)
def origin_of(url: str) -> str:
    """Scheme, host and port, as browsers compare them."""
    end = url.find("/", 8)
    origin = url[:end] if end > 0 else url
    return origin if "@" not in origin else f"{scheme_of(url)}://{_authority(url)}"


def path_of(url: str) -> str:
    page = url.partition("?")[0] if "?" in url else url
    page = page.partition("#")[0] if "#" in page else page
    start = page.find("/", 8)
    return page[start:] if start > 0 else "/"


def query_of(url: str) -> str:
    return url.partition("#")[0].partition("?")[2]


def _authority(url: str) -> str:
    start = url.find("://") + 3
    end = url.find("/", start)
    authority = url[start:end] if end >= 0 else url[start:]
    return authority.rpartition("@")[2] if "@" in authority else authority


def hash64(url: str) -> int:
    """A signed 64-bit key for look-ups. Two URLs may share one, so a hit is always compared."""
    unsigned = xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass"))
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def seed(text: str) -> tuple[str, ...] | None:
    """The hrefs to try, best first, for what a person typed as a seed; None when it is no web address.

    A bare host is tried by https and, when nobody answers there, by http.
    """
    text = text.translate(_TABS_AND_NEWLINES).strip(_EDGES)
    if text[:2] in ("//", "\\\\"):
        return _by_both(text[2:])
    if not text or text[0] in "/\\?#":
        return None
    named = _SCHEME.match(text)
    if named is None or _is_host_and_port(text, named.end()):
        return _by_both(text)
    href = parse(text)
    return None if href is None else (href,)


def is_word(text: str) -> bool:
    """Whether what a person typed is more likely a word, or the name of a file, than the address of a site."""
    host = _END_OF_HOST.split(text.strip(_EDGES), maxsplit=1)[0]
    return host.isprintable() and len(host.split()) == 1 and "." not in host and ":" not in host and host != "localhost"


def _is_host_and_port(text: str, after: int) -> bool:
    """`localhost:8000` has the shape of a scheme and its rest, and so has `javascript:1`."""
    return not _NOT_A_HOST.fullmatch(text, 0, after - 1) and _PORT.match(text, after) is not None


def _by_both(rest: str) -> tuple[str, ...] | None:
    hrefs = [href for scheme in ("https://", "http://") if (href := parse(scheme + rest))]
    return tuple(hrefs) or None


def shorten(url: str, width: int) -> str:
    """For people's eyes: the host and the end in `width` characters, and nothing that could steer a terminal,
    start a line of its own, turn the text around, or tell a password."""
    shown = _without_userinfo(url) if "@" in url and "://" in url else url
    if len(shown) > width:
        shown = _squeeze(shown, max(width, 0))
    return shown if shown.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in shown)


def _squeeze(text: str, width: int) -> str:
    if width < 2:
        return "…"[:width]
    rest = text.partition("://")[2] or text
    host = rest[: rest.find("/") + 1]
    scheme = text[: len(text) - len(rest)]
    # Two thirds for the beginning: with the scheme if it fits, else the host, else as much of it as may be.
    head = next((h for h in (scheme + host, host) if len(h) < width * 2 // 3), rest[: width // 2])
    return head + "…" + text[len(text) - (width - len(head) - 1) :]
