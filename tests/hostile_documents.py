"""Documents that somebody made to hurt whoever reads them: PDFs, office documents, texts, and what claims to be one."""

from __future__ import annotations

import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

from tests.documents import (
    DOCX,
    LOREM,
    ODT,
    PPTX,
    XLSX,
    assembled,
    docx,
    odf,
    ooxml,
    packed,
    paragraph,
    pdf,
    pptx,
    shape,
    xlsx,
)

Hostile = tuple[str, bytes, str]
"""What is wrong with it, the document, and what it is said to be."""

PDF = "application/pdf"
LABELS = ("", PDF, DOCX, PPTX, XLSX, ODT, "text/html", "text/plain", "application/json", "text/xml", "text/csv", "a/b")
MB = 1_000_000
MANY = 1_000


def hostile(count: int, seed: int = 1) -> Iterator[Hostile]:
    """This many: each that was made by hand once, then good ones that were damaged by chance. Those that take long to
    make or to give up are there when very many are wanted."""
    made = MADE | SLOW if count >= MANY else MADE
    for name, make in made.items():
        body, label = make()
        yield name, body, label
    chance = random.Random(seed)
    good = [(body, label) for body, label in GOOD for _ in range(2)] + [(body, "") for body, _ in GOOD]
    for number in range(count - len(made)):
        body, label = chance.choice(good)
        damage = chance.choice(DAMAGES)
        wrong = chance.choice(LABELS) if chance.random() < 0.2 else label
        yield f"{damage.__name__} {number}", damage(body, chance), wrong


# ---- good ones

_LINKED = '<w:p><w:hyperlink r:id="r1"><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>'
_TABLE = f"<w:tbl><w:tr><w:tc>{paragraph('a')}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
_ROWS = '<row><c r="A1" t="s"><v>0</v></c><c r="C1" s="1"><v>46024.5</v></c></row><row><c t="b"><v>1</v></c></row>'
_STYLES = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
_OPEN = (
    f'<office:text><text:h text:outline-level="1">Title</text:h><text:p>{LOREM}<text:s text:c="3"/></text:p>'
    '<table:table><table:table-row table:number-rows-repeated="3"><table:table-cell><text:p>x</text:p>'
    "</table:table-cell></table:table-row></table:table></office:text>"
)
GOOD: list[tuple[bytes, str]] = [
    (pdf(*[LOREM] * 5, title="A title", links=["https://h.test/a", "https://h.test/b"]), PDF),
    (pdf("short"), PDF),
    (docx(paragraph("Heading", "H") + paragraph(LOREM) * 5 + _LINKED + _TABLE, "T", [("r1", "https://h.test/")]), DOCX),
    (pptx(shape("Title", "title") + shape(LOREM), shape("Second", "title")), PPTX),
    (xlsx({"One": _ROWS, "Two": _ROWS}, f"<si><t>{LOREM}</t></si>", _STYLES), XLSX),
    (odf(_OPEN, title="T"), ODT),
    (packed({"a.docx": docx(paragraph("inner"))}, zipfile.ZIP_STORED), "application/zip"),
    (f"# Title\n\n{LOREM * 9}".encode(), "text/markdown"),
    (b'{"a": [1, 2, {"b": "c"}]}' * 20, "application/json"),
    (b'<?xml version="1.0"?><a b="c">' + LOREM.encode() + b"</a>", "text/xml"),
]


# ---- damage


def cut_off(body: bytes, chance: random.Random) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def flipped(body: bytes, chance: random.Random) -> bytes:
    """A few bits are wrong."""
    changed = bytearray(body)
    for _ in range(chance.choice((1, 3, 10, 100))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def holed(body: bytes, chance: random.Random) -> bytes:
    """A piece is missing, and everything behind it is elsewhere."""
    start = chance.randrange(len(body))
    return body[:start] + body[start + chance.randrange(1, 200) :]


def repeated(body: bytes, chance: random.Random) -> bytes:
    """A piece is there many times."""
    start = chance.randrange(len(body))
    end = start + chance.randrange(1, 100)
    return body[:end] + body[start:end] * chance.randrange(1, 2_000) + body[end:]


def swollen(body: bytes, chance: random.Random) -> bytes:
    """Numbers are larger than they may be."""
    numbers = (b"2147483647", b"-1", b"4294967296", b"99999999999999999999", b"0")
    parts = body.split(b"1")
    return b"".join(part + chance.choice(numbers + (b"1",) * 20) for part in parts[:-1]) + parts[-1]


def mixed(body: bytes, chance: random.Random) -> bytes:
    """It goes on as another document."""
    other, _ = chance.choice(GOOD)
    return body[: chance.randrange(len(body))] + other[chance.randrange(len(other)) :]


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [cut_off, flipped, holed, repeated, swollen, mixed]


# ---- PDF

_CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
_FONT = "<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"


def _tree(pages: str, *more: str, catalog: str = _CATALOG) -> bytes:
    return assembled([catalog, pages, *more])


def _one_page(stream: str, resources: str = _FONT + ">>", extra: str = "", filters: str = "", *more: str) -> bytes:
    """One page with this content."""
    return _tree(
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources{resources}{extra}>>",
        f"<<{filters}/Length {len(stream)}>>\nstream\n{stream}\nendstream",
        *more,
    )


def _deflated(data: bytes, times: int = 1) -> str:
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data.decode("latin-1")


def _deep_tree(depth: int) -> bytes:
    nodes = [f"<</Type/Pages/Kids[{number + 1} 0 R]/Count 1/Parent {number - 1} 0 R>>" for number in range(2, depth)]
    return _tree(*nodes, "<</Type/Page/MediaBox[0 0 9 9]>>")


_SHOW = f"BT /F1 12 Tf 20 700 Td ({LOREM}) Tj ET"
_SELF = (
    "<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>/Length 4>>\nstream\n/X Do\nendstream"
)
_MAP = "/Widths[1]/FirstChar 0/LastChar 0/ToUnicode 5 0 R"

PDFS: dict[str, Callable[[], bytes]] = {
    "a tree of pages that holds itself": lambda: _tree("<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"),
    "pages that hold each other": lambda: _tree(
        "<</Type/Pages/Kids[3 0 R]/Count 9>>", "<</Type/Pages/Kids[2 0 R 3 0 R]/Count 9>>"
    ),
    "two thousand million pages": lambda: _tree("<</Type/Pages/Kids[]/Count 2147483647>>"),
    "a hundred thousand pages that are one": lambda: _tree(
        f"<</Type/Pages/Kids[{'3 0 R ' * 100_000}]/Count 100000>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ),
    "fewer pages than none": lambda: _tree("<</Type/Pages/Kids[]/Count -5>>"),
    "a deep tree": lambda: _deep_tree(3_000),
    "deep lists": lambda: _tree("[" * 200_000),
    "deep dictionaries": lambda: _tree("<</A" * 100_000),
    "deep lists in a page": lambda: _one_page("[" * 200_000 + "(x)" + "]" * 200_000 + " TJ"),
    "deep states of drawing": lambda: _one_page("q " * 500_000 + _SHOW),
    "a drawing that draws itself": lambda: _one_page("/X Do", "<</XObject<</X 5 0 R>>>>", "", "", _SELF),
    "a bomb": lambda: _one_page(_deflated(b" " * 300 * MB), filters="/Filter/FlateDecode"),
    "a bomb in a bomb": lambda: _one_page(_deflated(b" " * 100 * MB, 2), filters="/Filter[/FlateDecode/FlateDecode]"),
    "a text without end": lambda: _one_page(
        _deflated(f"BT /F1 1 Tf ({'word ' * 500}) Tj ET ".encode() * 8_000), filters="/Filter/FlateDecode"
    ),
    "a hundred filters": lambda: _one_page("x", filters="/Filter[" + "/ASCIIHexDecode" * 100 + "]"),
    "a filter nobody knows": lambda: _one_page("x", filters="/Filter/Nonsense"),
    "a length that lies": lambda: _one_page(_SHOW).replace(b"/Length", b"/Length 99999999 /L"),
    "a length that is itself": lambda: _tree(
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
        "<</Length 4 0 R>>\nstream\nBT ET\nendstream",
    ),
    "a table of objects that leads back": lambda: pdf(LOREM).replace(b"/Root 1", b"/Prev 9 /Root 1"),
    "a table of objects that is elsewhere": lambda: pdf(LOREM).replace(b"startxref\n", b"startxref\n9"),
    "a catalog that is itself": lambda: assembled(["1 0 R"]),
    "a page of absurd size": lambda: _one_page(_SHOW).replace(b"[0 0 612 792]", b"[-1e38 1e38 nan 1e400]"),
    "ten thousand links": lambda: pdf("x", links=[f"https://h.test/{number}" for number in range(10_000)]),
    "a link without end": lambda: pdf("x", links=["https://h.test/" + "x" * 2 * MB]),
    "links that run code": lambda: pdf("x", links=["javascript:alert(1)", "file:///etc/passwd", "\x00", "https://"]),
    "a title that is no text": lambda: pdf(LOREM, title="\xfe\xff\xd8\x00\xd8\x00\x00"),
    "a title without end": lambda: pdf(LOREM, title="x" * MB),
    "code that runs": lambda: pdf(LOREM, extra="/OpenAction<</S/JavaScript/JS(while(1);)>>"),
    "words that mean others": lambda: _one_page(
        "BT /F1 12 Tf <00010203> Tj ET",
        f"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/X{_MAP}>>>>>>",
        "",
        "",
        f"<</Length 600>>\nstream\n{'1 begincidrange <00> <FFFFFFFF> 0 1 beginbfrange <00> <FFFFFF> ' * 9}\nendstream",
    ),
    "nothing but the name": lambda: b"%PDF-",
    "noise behind the name": lambda: b"%PDF-1.7\n" + random.Random(1).randbytes(200_000),
    "the end before the beginning": lambda: b"%PDF-1.7\n%%EOF\n" * 20_000,
    "objects without end": lambda: b"%PDF-1.7\n" + b"1 0 obj\n" * 200_000,
    "streams without end": lambda: b"%PDF-1.7\n" + b"1 0 obj<</Length 9>>stream\n" * 2_000,
}


# ---- office documents


def _text(xml: str) -> bytes:
    return ooxml("word/document.xml", {"word/document.xml": xml})


def _with_bomb(name: str, size: int) -> bytes:
    return packed({"[Content_Types].xml": "", "word/document": "", name: b" " * size})


def _locked(body: bytes) -> bytes:
    """Every member says that it is encrypted."""
    local, listed = b"PK\x03\x04", b"PK\x01\x02"
    changed = bytearray(body)
    for mark, offset in ((local, 6), (listed, 8)):
        at = body.find(mark)
        while at >= 0:
            changed[at + offset] |= 1
            at = body.find(mark, at + 4)
    return bytes(changed)


def _members(count: int) -> bytes:
    """A list of members that are all the same, and not there."""
    one = b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"a"
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count & 0xFFFF, count & 0xFFFF, len(one) * count, 30, 0)
    return b"PK\x03\x04" + bytes(26) + one * count + end


_LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(10))
    + "]>"
)
_QUADRATIC = f'<!DOCTYPE x [<!ENTITY a "{"x" * 100_000}">]>'
_READS = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
_CALLS = '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>'

OFFICE: dict[str, Callable[[], tuple[bytes, str]]] = {
    "billion laughs (X1)": lambda: (_text(f"{_LAUGHS}<w:x><w:p><w:r><w:t>&k;</w:t></w:r></w:p></w:x>"), DOCX),
    "quadratic blow-up (X1)": lambda: (_text(f"{_QUADRATIC}<w:x><w:p><w:r><w:t>{'&a;' * 9_999}"), DOCX),
    "an entity that reads a file (X2)": lambda: (_text(f"{_READS}<w:x><w:p><w:r><w:t>&a;</w:t>"), DOCX),
    "an entity that calls somebody (X2)": lambda: (_text(f"{_CALLS}<w:x/>"), DOCX),
    "laughs in its properties": lambda: (
        ooxml("word/document.xml", {"docProps/core.xml": f"{_LAUGHS}<c><title>&k;</title></c>"}),
        DOCX,
    ),
    "a bomb of blanks": lambda: (_with_bomb("word/document.xml", 300 * MB), DOCX),
    "a bomb in its relations": lambda: (_with_bomb("_rels/.rels", 300 * MB), DOCX),
    "one word without end": lambda: (docx(paragraph("x" * 30 * MB)), DOCX),
    "one attribute without end": lambda: (_text('<w:x a="' + "x" * 30 * MB), DOCX),
    "a comment without end": lambda: (_text("<!--" + "x" * 30 * MB), DOCX),
    "deep paragraphs": lambda: (docx("<w:p>" * 100_000), DOCX),
    "deep tables": lambda: (docx("<w:tbl><w:tr><w:tc>" * 150), DOCX),
    "cells beyond all columns": lambda: (xlsx({"s": '<row><c r="XFD1"><v>1</v></c></row>' * 9_000}), XLSX),
    "a sheet without rows": lambda: (xlsx({"s": "<c><v>1</v></c>" * 300_000}), XLSX),
    "one text in every cell": lambda: (
        xlsx({"s": '<row><c t="s"><v>0</v></c></row>' * 100_000}, f"<si><t>{'y' * MB}</t></si>"),
        XLSX,
    ),
    "a thousand sheets that are one": lambda: (
        xlsx({f"s{number}": _ROWS for number in range(1_000)}, "<si><t>x</t></si>"),
        XLSX,
    ),
    "cells that are repeated": lambda: (
        odf(
            '<office:spreadsheet><table:table><table:table-row table:number-rows-repeated="999999999">'
            '<table:table-cell table:number-columns-repeated="999999999"><text:p>x</text:p></table:table-cell>'
            "</table:table-row></table:table></office:spreadsheet>"
        ),
        ODT,
    ),
    "blanks that are repeated": lambda: (odf('<office:text><text:p><text:s text:c="999999999"/>x</text:p>'), ODT),
    "members without number": lambda: (_members(300_000), DOCX),
    "members that are locked": lambda: (_locked(docx(paragraph("x"))), DOCX),
    "members packed in another way": lambda: (
        packed({"[Content_Types].xml": "", "word/document.xml": paragraph("x")}, zipfile.ZIP_LZMA),
        DOCX,
    ),
    "names that lead out": lambda: (ooxml("../../../../etc/passwd", {"../../etc/passwd": "x"}), DOCX),
    "relations that lead in circles": lambda: (ooxml("word/_rels/document.xml.rels", {}), DOCX),
    "a file in a file in a file": lambda: (_nested(20), "application/zip"),
    "nothing in it": lambda: (packed({}), DOCX),
    "the end of a file and nothing else": lambda: (b"PK\x05\x06" + bytes(18), DOCX),
    "an old document": lambda: (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000), "application/msword"),
    "an old document by a new name": lambda: (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000), DOCX),
}


def _nested(depth: int) -> bytes:
    body = docx(paragraph("inner"))
    for _ in range(depth):
        body = packed({"[Content_Types].xml": "", "word/document.xml": body})
    return body


# ---- texts

TEXTS: dict[str, Callable[[], tuple[bytes, str]]] = {
    "deep JSON": lambda: (b"[" * 500_000, "application/json"),
    "laughs as XML (X1)": lambda: (f"{_LAUGHS}<x>&k;</x>".encode(), "text/xml"),
    "one line without end (M5)": lambda: (b"x" * 15 * MB, "text/plain"),
    "fences without end (M7)": lambda: (b"`" * 900_000, "text/markdown"),
    "headings without end (M7)": lambda: (b"# " * 450_000, "text/markdown"),
    "half a character": lambda: (b"\xff\xfe" + b"\x00\xd8" * 1_000 + b"x", "text/plain"),
    "an encoding that is none (M8)": lambda: (b"x\xff", "text/plain; charset=os.system"),
    "an encoding that takes for ever (M8)": lambda: (b"a-" * 400_000, "text/plain; charset=punycode"),
    "noise": lambda: (random.Random(2).randbytes(300_000), ""),
    "noise called text": lambda: (random.Random(3).randbytes(300_000), "text/plain"),
    "text called PDF": lambda: (LOREM.encode(), PDF),
    "a PDF called HTML (M6)": lambda: (pdf(LOREM), "text/html"),
    "a document called HTML (M6)": lambda: (docx(paragraph(LOREM)), "text/html"),
    **{f"nothing called {label!r}": lambda label=label: (b"", label) for label in LABELS},
}

MADE: dict[str, Callable[[], tuple[bytes, str]]] = {
    **{name: lambda make=make: (make(), PDF) for name, make in PDFS.items()},
    **OFFICE,
    **TEXTS,
}

SLOW: dict[str, Callable[[], tuple[bytes, str]]] = {
    "more streams than anybody reads": lambda: (b"%PDF-1.7\n" + b"1 0 obj<</Length 9>>stream\n" * 50_000, PDF),
    "more links than may be kept": lambda: (pdf("x", links=[f"https://h.test/{n}" for n in range(100_100)]), PDF),
    "more tags than anybody reads": lambda: (_text("<w:x>" + "<a/>" * 4 * MB), DOCX),
    "more paragraphs than anybody reads": lambda: (docx(paragraph("x") * MB), DOCX),
    "more cells than anybody reads": lambda: (xlsx({"s": '<row><c r="XFD1"><v>1</v></c></row>' * 100_000}), XLSX),
}
