"""Text without markup, and text whose markup is part of what it says: Markdown, JSON, XML, tables."""

from __future__ import annotations

import re

from inchworm.rules.formats.contents import Contents
from inchworm.rules.formats.media import Media
from inchworm.rules.metadata.describe import squeeze

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WIDE = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9_.:()+-]{1,40})", re.IGNORECASE)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""")

# Encodings that browsers know, by the names they are called. Python has others, some of which take for ever.
_CODECS = {
    "utf-8": "utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf16 utf-16le utf16le ucs-2 unicode",
    "utf-16-be": "utf-16be utf16be",
    "cp1252": "windows-1252 x-cp1252 iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 us-ascii ascii",
    "cp1250": "windows-1250 x-cp1250",
    "cp1251": "windows-1251 x-cp1251",
    "cp1253": "windows-1253 x-cp1253",
    "cp1254": "windows-1254 x-cp1254 iso-8859-9 iso8859-9 latin5",
    "cp1255": "windows-1255 x-cp1255",
    "cp1256": "windows-1256 x-cp1256",
    "cp1257": "windows-1257 x-cp1257",
    "cp1258": "windows-1258 x-cp1258",
    "cp874": "windows-874 iso-8859-11 iso8859-11 tis-620",
    "cp866": "ibm866 866",
    "koi8-r": "koi8 koi",
    "koi8-u": "koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman",
    **{f"iso8859-{n}": f"iso-8859-{n} iso_8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "gb18030": "gbk gb2312 gb_2312-80 x-gbk chinese",
    "big5hkscs": "big5 big5-hkscs x-x-big5 cn-big5",
    "euc-jp": "x-euc-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms932 ms_kanji",
    "iso2022-jp": "iso-2022-jp",
    "cp949": "euc-kr ks_c_5601-1987 ksc5601 korean windows-949",
}
_BY_NAME = {name: codec for codec, names in _CODECS.items() for name in (codec, *names.split())}

_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LOOK_CHARS = 100_000
_FENCED = {Media.JSON: "json", Media.XML: "xml", Media.CSV: "csv"}
_TICKS = re.compile("`{3,}")


def contents(body: bytes, content_type: str, media: Media) -> Contents:
    """A text as it is. As Markdown, too, but for data, which goes into a block of code."""
    text = decoded(body, content_type).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    title = _title(text) if media is Media.MARKDOWN else ""
    return Contents(title, text, _fenced(text, _FENCED[media]) if media in _FENCED and text else text)


def decoded(body: bytes, content_type: str) -> str:
    """Text as browsers take it: by its mark, by its label, as UTF-8, or as what the West used before."""
    marked = next((name for mark, name in _MARKS if body.startswith(mark)), "")
    codec = marked or _labelled(body, content_type) or next((name for mark, name in _WIDE if body.startswith(mark)), "")
    if codec and codec != "utf-8":
        return body.decode(codec, "replace").removeprefix("\ufeff")
    try:
        return body.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    # A few bytes that are damaged make no other encoding of it; but where most are, it is one.
    damaged = text.count("\ufffd")
    is_other = not marked and len(text) - len(text.encode("ascii", "ignore")) < 2 * damaged
    return body.decode("cp1252", "replace") if is_other else text.removeprefix("\ufeff")


def _labelled(body: bytes, content_type: str) -> str:
    if label := _CHARSET.search(content_type):
        return _BY_NAME.get(label[1].lower(), "")
    declared = _DECLARED.match(body)
    # Whoever could read that it is UTF-16 without knowing would have read something else.
    name = _BY_NAME.get(declared[1].decode().lower(), "") if declared else ""
    return "" if name.startswith("utf-16") else name


def _title(text: str) -> str:
    """The first heading of a Markdown text."""
    fence, before = "", ""
    for line in _without_front_matter(text[:_LOOK_CHARS].splitlines()):
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
            before = ""
        elif fence:
            continue
        elif heading := _HEADING.match(line):
            return _without_closing(squeeze(line[heading.end() :]))
        elif before and _UNDERLINE.fullmatch(line):
            return squeeze(before)
        else:
            before = line.strip()
    return ""


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines[:1] != ["---"]:
        return lines
    end = next((number for number, line in enumerate(lines) if number and line in ("---", "...")), 0)
    return lines[end + 1 :]


def _without_closing(heading: str) -> str:
    words, _, last = heading.rpartition(" ")
    return heading if last.strip("#") else words


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"
