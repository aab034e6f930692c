"""File names made of URLs: readable, the same in every run, and good on every file system.

    https://example.org/docs/intro          example.org/docs/intro.md
    https://example.org/docs/intro.html     example.org/docs/intro.md
    https://example.org/                    example.org/index.md
    http://example.org:8080/a%20b           example.org@http8080/a b.md
    https://example.org/Docs/intro?page=2   example.org/Docs/intro,page=2~za5mid55o25zdxjt.md

A name that can be turned back into its URL is left as it is. All others lose something: capital letters, which some
file systems do not tell from small ones, characters that cannot stand in a name, queries, what is too long. They
carry a hash of the URL. So the URL alone decides what its name is, and two URLs never share one, in whatever order
they come. Folders never end like a file does, so a page may lie beside a folder of the same name.

Only the ending of a page (`.html`, `.php`, …) is left out where no other page has a better right to the name without
it: `wish` says which name that is, how many have a better right, and the name with a hash, which is nobody else's.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

MAX_SEGMENT_BYTES = 120
MAX_NAME_BYTES = 200
INDEX, IMAGES = "index.jsonl", "images"
"""The one file that lies beside the folders of the hosts, and the folder of images."""

ENDINGS = ("html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "md")
"""Endings of pages that say nothing of them. Of those that differ only in that, the first has the name without it."""

_MAX_HOST_BYTES = 60
_MAX_QUERY_BYTES = 40
_HASH_CHARS = 16

_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_ADDRESS = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]{1,5})?", re.DOTALL)
_EXTENSION = re.compile(r"\.(?=[0-9]*[A-Za-z])[A-Za-z0-9]{1,8}\Z")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9\-._~+,=@()!' ]")
_NOT_IN_A_URL = re.compile("[^!-~]")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_HALF_AN_ESCAPE = re.compile(r"%[0-9A-F]?\Z")
_EDGE = re.compile(r"\A[. ]|[. ]\Z")
# Windows has short names of its own, such as PROGRA~1, for long ones.
_SHORT_NAME = re.compile(r"~(?=[0-9])")
_DEVICE = re.compile(r"\A(con|prn|aux|nul|com[0-9]|lpt[0-9])(?=[ .]|\Z)", re.IGNORECASE)
_LIKE_OURS = re.compile(rf"\Aindex\Z|~\Z|~[a-z2-7]{{{_HASH_CHARS}}}\Z")

# A name must not depend on the version of Python, so letters are those of a Unicode that stands still.
_UNICODE = unicodedata.ucd_3_2_0
_PICTURES = range(0x1F300, 0x1F650)
_INVISIBLE = frozenset(
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d" + "".join(map(chr, range(0xFE00, 0xFE10)))
)


class _UrlParts(NamedTuple):
    """A URL on its way to a name. `is_whole`: folders and last segment say all that the URL says."""

    folders: tuple[str, ...]
    last: str
    query: str
    is_whole: bool


class Wish(NamedTuple):
    """The name that a page would have, how many have a better right to it, and the name that it has instead of it."""

    name: str
    rank: int
    own: str


def wish(url: str, request_url: str = "") -> Wish:
    """How a page would be called. Asked for with a slash at the end, it is the index of a folder."""
    if _is_folder(request_url) and not _is_folder(url):
        name = page_name(_with_slash(url))
        return Wish(name, 0, name)
    place = _place(url)
    ending = extension_of(place.last)
    stem = place.last.removesuffix(ending)
    if ending[1:].lower() not in ENDINGS or not stem:
        name = page_name(url)
        return Wish(name, 0, name)
    own = _hashed(url, place, stem, ".md")
    bare = url.removesuffix(f"index{ending}" if stem == "index" else ending)
    bare_name = _plain_page_name(bare, "md") if bare != url and ending.islower() else None
    return Wish(bare_name, 1 + ENDINGS.index(ending[1:]), own) if bare_name else Wish(own, 0, own)


def page_name(url: str, extension: str = "md") -> str:
    """The name of what was made of a page."""
    place = _place(url)
    return _plain_page_name(url, extension) or _hashed(url, place, place.last, f".{extension}")


def _plain_page_name(url: str, extension: str) -> str | None:
    place = _place(url)
    return None if _is_taken(url, place.last) else _plain(place, place.last, f".{extension}")


def file_name(url: str, extension: str = "bin", allowed: Collection[str] | None = None) -> str:
    """The name of what a URL gave, with the extension that its path has, or else this one, which is set off by `~`.
    `allowed`: other extensions are not believed."""
    place = _place(url)
    own = extension_of(place.last)
    if allowed is not None and own[1:].lower() not in allowed:
        own = ""
    stem = place.last[: len(place.last) - len(own)]
    is_taken = _is_taken(url, stem) and not (own and stem == "index")
    plain = None if is_taken else _plain(place, stem, own or f"~.{extension}")
    return plain or _hashed(url, place, stem, own or f".{extension}")


def extension_of(name: str) -> str:
    """`.pdf` of `report.pdf`; empty where there is none. Numbers alone are none: `v1.2` has no extension."""
    found = _EXTENSION.search(name)
    return found[0] if found else ""


def url_extension(url: str) -> str:
    """The extension of a URL's path, in small letters and without its dot."""
    return extension_of(_place(url).last)[1:].lower()


def _is_folder(url: str) -> bool:
    return url.partition("#")[0].partition("?")[0].endswith("/")


def _with_slash(url: str) -> str:
    path, mark, query = url.partition("?")
    return f"{path}/{mark}{query}"


def _is_taken(url: str, stem: str) -> bool:
    """Whether what we make ourselves of other URLs may look like this."""
    return bool(_LIKE_OURS.search(stem)) and not url.endswith("/")


def _plain(place: _UrlParts, stem: str, ending: str) -> str | None:
    """The name without a hash, if it may be had."""
    plain = "/".join((*place.folders, stem + ending))
    fits = _size(stem + ending) <= MAX_SEGMENT_BYTES and _size(plain) <= MAX_NAME_BYTES
    return plain if place.is_whole and fits else None


def _hashed(url: str, place: _UrlParts, stem: str, extension: str) -> str:
    ending = f"~{_hash(url)}{extension}"
    query = "," + _cut(_spelled(place.query.replace("&", ",")), _MAX_QUERY_BYTES) if place.query else ""
    leaf = _cut(stem, MAX_SEGMENT_BYTES - _size(query) - _size(ending)) + query + ending
    return "/".join((*_fitting(place.folders, MAX_NAME_BYTES - _size(leaf) - 1), leaf))


def _fitting(folders: tuple[str, ...], room: int) -> tuple[str, ...]:
    """As many of the folders as there is room for; the host always fits."""
    used, count = -1, 0
    for folder in folders:
        used += 1 + _size(folder)
        if used > room:
            break
        count += 1
    return folders[:count]


def _place(url: str) -> _UrlParts:
    found = _URL.match(url)
    scheme, authority, path, query = found.groups("") if found else ("", "", url, "")
    address = authority.rpartition("@")[2]
    split = _ADDRESS.fullmatch(address)
    host, port = split.groups("") if split else (address, "")
    *before, last = path.removeprefix("/").split("/")
    site, folders, leaf = _site(host), tuple(map(_folder, filter(None, before))), last and _segment(last)
    names = "/".join((site, *folders, leaf))
    is_whole = url == f"{scheme}://{_in_url(names.replace('/', f'{port}/', 1))}" and _is_settled(names)
    mark = scheme.removeprefix("https") + port.removeprefix(":")
    return _UrlParts((f"{site}@{mark}" if mark else site, *folders), leaf or "index", query, is_whole)


def _site(host: str) -> str:
    name = _cut(_segment(host), _MAX_HOST_BYTES)
    return f"{name}_" if name.lower() in (INDEX, IMAGES) else name


def _folder(raw: str) -> str:
    name = _cut(_segment(raw), MAX_SEGMENT_BYTES - 1)
    return f"{name}_" if extension_of(name) else name


def _segment(raw: str) -> str:
    """One segment of a URL as a name: decoded where that is readable, escaped where a file system could object."""
    name = _EDGE.sub(_escaped, _spelled(raw))
    return _DEVICE.sub(r"\1_", _SHORT_NAME.sub(_escaped, name)) or "_"


def _spelled(raw: str) -> str:
    # What is no UTF-8 comes through as lone surrogates, and goes back to the escapes it was.
    text = unquote_to_bytes(raw.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
    return _NOT_PLAIN.sub(_readable, _UNICODE.normalize("NFC", text))


def _readable(found: re.Match[str]) -> str:
    char = found[0]
    if char.isascii() or char in _INVISIBLE:
        return _escaped(found)
    is_known = ord(char) in _PICTURES or _UNICODE.category(char)[0] in "LMNPS"
    return char if is_known and _UNICODE.normalize("NFKC", char) == char else _escaped(found)


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogateescape"))


def _in_url(name: str) -> str:
    """How a URL would spell what a name says."""
    return _NOT_IN_A_URL.sub(_escaped, name)


def _is_settled(name: str) -> bool:
    """Whether no file system could take this for another name: no capitals, no second way to write a letter."""
    text = _ESCAPE.sub("%", name)
    return text == _UNICODE.normalize("NFKC", text) == text.casefold() == text.upper().casefold()


def _hash(url: str) -> str:
    digest = hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:_HASH_CHARS].decode().lower()


def _cut(name: str, most: int) -> str:
    if _size(name) <= most:
        return name
    short = name.encode()[:most].decode("utf-8", "ignore")
    return _HALF_AN_ESCAPE.sub("", short).rstrip(". ") or "_"


def _size(name: str) -> int:
    return len(name.encode())
