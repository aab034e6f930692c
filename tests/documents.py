"""PDF and office documents for tests, written by hand: as small as they can be, and as wrong as they have to be."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

LOREM = "The inchworm walks by drawing its hind legs up to its front legs, so that its body makes a loop. "

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


# ---- PDF


def pdf(
    *pages: str, title: str = "", links: Sequence[str] = (), made: str = "20260102030405+01'00'", extra: str = ""
) -> bytes:
    """A document with a page for each text, line by line. Links stand on the first one."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    annotations = "".join(
        f"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI{_string(link)}>>>>" for link in links
    )
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{extra}>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        annots = f"/Annots[{annotations}]" if annotations and not number else ""
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9000 792]/Contents {5 + 2 * number} 0 R"
            f"/Resources<</Font<</F1 3 0 R>>>>{annots}>>"
        )
        shown = "".join(
            f"1 0 0 1 20 {760 - 14 * at} Tm {_string(line)} Tj " for at, line in enumerate(text.split("\n"))
        )
        stream = f"BT /F1 12 Tf {shown}ET" if text else ""
        objects.append(f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream")
    objects.append(f"<</Title{_string(title)}/Author(Ada Worm)/CreationDate(D:{made})/ModDate(D:{made})>>")
    return assembled(objects, info=len(objects))


def _string(text: str) -> str:
    return "(" + text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") + ")"


def assembled(objects: Sequence[str], info: int = 0, trailer: str = "") -> bytes:
    """A file of numbered objects, the first of which is the catalog."""
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1"))
    start = out.tell()
    lines = "".join(f"{place:010} 00000 n \n" for place in places)
    named = f"/Info {info} 0 R" if info else ""
    size = len(objects) + 1
    out.write(
        f"xref\n0 {size}\n0000000000 65535 f \n{lines}trailer\n<</Size {size}/Root 1 0 R{named}{trailer}>>\n".encode()
    )
    out.write(f"startxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


# ---- Office Open XML

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def packed(parts: Mapping[str, str | bytes], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", way) as file:
        for name, data in parts.items():
            file.writestr(zipfile.ZipInfo(name) if name == "mimetype" else name, data)
    return out.getvalue()


def relations(*rows: tuple[str, str, str]) -> str:
    """Relations of a part: name, kind, and where to; a whole address leads outside."""
    outside = ' TargetMode="External"'
    lines = (
        f'<Relationship Id="{name}" Type="{_KINDS}/{kind}" Target={quoteattr(target)}'
        f"{outside if ':' in target else ''}/>"
        for name, kind, target in rows
    )
    return f"<Relationships>{''.join(lines)}</Relationships>"


def ooxml(main: str, parts: Mapping[str, str | bytes], title: str = "") -> bytes:
    core = (
        '<cp:coreProperties xmlns:cp="cp" xmlns:dc="dc" xmlns:dcterms="dcterms">'
        f"<dc:title>{escape(title)}</dc:title><dc:creator>Ada Worm</dc:creator><cp:keywords>worms, loops</cp:keywords>"
        "<dc:language>en</dc:language><dcterms:created>2026-01-02T03:04:05Z</dcterms:created>"
        "<dcterms:modified>2026-02-03T04:05:06Z</dcterms:modified></cp:coreProperties>"
    )
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(
                ("a", "officeDocument", main), ("b", "metadata/core-properties", "docProps/core.xml")
            ),
            "docProps/core.xml": core,
            **parts,
        }
    )


def docx(body: str, title: str = "", links: Sequence[tuple[str, str]] = (), **parts: str) -> bytes:
    """A text made of the XML of its body. Links are relations by name."""
    rows = [("s", "styles", "styles.xml"), ("f", "footnotes", "footnotes.xml")]
    rows += [(name, "hyperlink", target) for name, target in links]
    return ooxml(
        "word/document.xml",
        {
            "word/document.xml": f"{_XML}<w:document {_W} {_R}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(*rows),
            **{f"word/{name}.xml": f"<w:x {_W}>{text}</w:x>" for name, text in parts.items()},
        },
        title,
    )


def paragraph(text: str, style: str = "") -> str:
    named = f'<w:pPr><w:pStyle w:val="{style}"/><w:tabs><w:tab w:pos="1"/></w:tabs></w:pPr>' if style else ""
    return f'<w:p>{named}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def pptx(*slides: str, title: str = "", links: Sequence[tuple[str, str]] = ()) -> bytes:
    """Slides made of the XML of their shapes, written down in another order than they are shown in."""
    names = [f"s{number}" for number in range(len(slides))]
    shown = "".join(f'<p:sldId id="{256 + number}" r:id="{name}"/>' for number, name in enumerate(names))
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {_P} {_R}><p:sldIdLst>{shown}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((name, "slide", f"slides/{name}.xml") for name in reversed(names))
        ),
    }
    for name, body in zip(names, slides, strict=True):
        parts[f"ppt/slides/{name}.xml"] = f"<p:sld {_P} {_A} {_R}>{body}</p:sld>"
        parts[f"ppt/slides/_rels/{name}.xml.rels"] = relations(*((one, "hyperlink", target) for one, target in links))
    return ooxml("ppt/presentation.xml", parts, title)


def shape(text: str, kind: str = "", properties: str = "") -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    run = f"<a:r><a:rPr>{properties}</a:rPr><a:t>{escape(text)}</a:t></a:r>"
    return f"<p:sp>{place}<p:txBody><a:p>{run}</a:p></p:txBody></p:sp>"


def xlsx(sheets: Mapping[str, str], texts: str = "", styles: str = "", properties: str = "", title: str = "") -> bytes:
    """Sheets made of the XML of their rows."""
    names = {title_: f"w{number}" for number, title_ in enumerate(sheets)}
    listed = "".join(f'<sheet name={quoteattr(one)} sheetId="1" r:id="{name}"/>' for one, name in names.items())
    rows = [(name, "worksheet", f"worksheets/{name}.xml") for name in names.values()]
    rows += [("t", "sharedStrings", "/xl/sharedStrings.xml"), ("y", "styles", "styles.xml")]
    return ooxml(
        "xl/workbook.xml",
        {
            "xl/workbook.xml": f"<workbook {_R}>{properties}<sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(*rows),
            "xl/sharedStrings.xml": f"<sst>{texts}</sst>",
            "xl/styles.xml": f"<styleSheet>{styles}</styleSheet>",
            **{
                f"xl/worksheets/{names[one]}.xml": f"<worksheet><sheetData>{body}</sheetData></worksheet>"
                for one, body in sheets.items()
            },
        },
        title,
    )


# ---- OpenDocument

_ODF = (
    'xmlns:office="office" xmlns:text="text" xmlns:table="table" xmlns:xlink="xlink" xmlns:dc="dc" xmlns:meta="meta"'
    ' xmlns:draw="draw" xmlns:presentation="presentation"'
)


def odf(body: str, mimetype: str = ODT, title: str = "") -> bytes:
    meta = (
        f"<office:document-meta {_ODF}><office:meta><meta:initial-creator>Ada Worm</meta:initial-creator>"
        f"<dc:creator>Bo</dc:creator><dc:title>{escape(title)}</dc:title><meta:keyword>worms</meta:keyword>"
        "<meta:keyword>loops</meta:keyword><meta:creation-date>2026-01-02T03:04:05</meta:creation-date>"
        "<dc:date>2026-02-03T04:05:06</dc:date><dc:language>de</dc:language></office:meta></office:document-meta>"
    )
    content = f"<office:document-content {_ODF}><office:body>{body}</office:body></office:document-content>"
    return packed({"mimetype": mimetype, "content.xml": content, "meta.xml": meta})
