"""Office documents: what people wrote in them comes out as lines, whatever else is in the file."""

from __future__ import annotations

import pytest
from tests.documents import (
    ODS,
    docx,
    odf,
    ooxml,
    packed,
    paragraph,
    pptx,
    relations,
    shape,
    xlsx,
)

from inchworm.rules.formats import office, package
from inchworm.rules.page.document import Link, OpenDocument


def opened(body: bytes) -> OpenDocument:
    return OpenDocument(body, "", "http://h.test/docs/file")


def text(body: bytes) -> str:
    return opened(body).said.text


# ---- texts

HEADING = '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
OWN = '<w:style w:styleId="Own"><w:name w:val="My own"/><w:basedOn w:val="berschrift1"/></w:style>'
STYLES = (
    HEADING + OWN + '<w:style w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
)


def test_a_text_says_what_it_is_about() -> None:
    said = opened(docx(paragraph("words"), title=" The  worm ")).said
    assert (said.title, said.text, said.language) == ("The worm", "words", "en")
    assert said.meta == {
        "author": "Ada Worm",
        "published": "2026-01-02T03:04:05Z",
        "modified": "2026-02-03T04:05:06Z",
        "keywords": ["worms", "loops"],
    }


def test_paragraphs_headings_and_tables() -> None:
    cells = "".join(f"<w:tc>{paragraph(one)}{paragraph('and')}</w:tc>" for one in "ab")
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('x')}</w:tc><w:tc>{paragraph('y')}</w:tc></w:tr></w:tbl>"
    body = (
        paragraph("Worms & loops", "berschrift1")
        + paragraph("Mine", "Own")
        + paragraph("Deep", "Deep")
        + paragraph("Words of <weight>.", "None")
        + paragraph("")
        + f"<w:tbl><w:tr>{cells}</w:tr><w:tr><w:tc>{inner}</w:tc><w:tc>{paragraph('2')}</w:tc></w:tr></w:tbl>"
        + paragraph("end")
    )
    document = opened(docx(body, styles=STYLES))
    assert document.said.title == "Worms & loops"
    assert document.said.text == ("Worms & loops\n\nMine\n\nDeep\n\nWords of <weight>.\n\na and\tb and\nx y\t2\n\nend")
    assert document.markdown == (
        "# Worms & loops\n\n# Mine\n\n### Deep\n\nWords of \\<weight>.\n\n"
        "| a and | b and |\n| --- | --- |\n| x y | 2 |\n\nend"
    )
    assert "<p>Words of &lt;weight&gt;.</p>" in document.html


def run(inner: str) -> str:
    return f"<w:p><w:r>{inner}</w:r></w:p>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (run("<w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t><w:noBreakHyphen/>"), "one\ttwo\nthree-"),
        (run("<w:t>kept</w:t>") + "<w:del><w:r><w:t>gone</w:t></w:r></w:del>", "kept"),
        ("<w:p><w:moveFrom><w:r><w:t>old</w:t></w:r></w:moveFrom><w:r><w:t>new</w:t></w:r></w:p>", "new"),
        (run("<w:instrText>PAGE</w:instrText><w:t>7</w:t><w:delText>no</w:delText>"), "7"),
        (
            "<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>once</w:t></w:r></mc:Choice>"
            "<mc:Fallback><w:r><w:t>once</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>",
            "once",
        ),
        (
            "<w:p><w:r><w:t>outer </w:t><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent>"
            "<w:t>goes on</w:t></w:r></w:p>",
            "in a box\n\nouter goes on",
        ),
        ("<w:r><w:t>in no paragraph</w:t></w:r><stray/>", ""),
    ],
    ids=["breaks", "deleted", "moved", "fields", "said twice", "text box", "stray"],
)  # fmt: skip
def test_what_is_said_and_what_is_not(body: str, expected: str) -> None:
    assert text(docx(body)) == expected


def test_notes_stand_at_the_end() -> None:
    assert text(docx(paragraph("text"), footnotes=paragraph("a note"))) == "text\n\na note"


def test_links_of_a_text() -> None:
    links = [("r1", "https://h.test/a?b=1&c=2"), ("r2", "javascript:alert(1)"), ("r3", "https://h.test/b")]
    body = "".join(
        f'<w:p><w:hyperlink r:id="{name}"><w:r><w:t>to </w:t></w:r><w:r><w:t>{name}</w:t></w:r></w:hyperlink></w:p>'
        for name in ("r1", "r2", "r3", "r3", "nowhere")
    )
    document = opened(docx(body, links=links))
    assert document.links == [Link("https://h.test/a?b=1&c=2", "to"), Link("https://h.test/b", "to")]
    assert document.targets == ["https://h.test/a?b=1&c=2", "https://h.test/b"]
    assert "javascript" not in document.html
    assert "](https://h.test/b)" in document.markdown


def test_the_main_part_may_have_any_name() -> None:
    parts = {"word/document2.xml": f"<w:x>{paragraph('found')}</w:x>"}
    assert text(ooxml("word/document2.xml", parts)) == "found"


# ---- slides


def test_slides_come_in_their_order() -> None:
    click = '<a:hlinkClick r:id="h"/>'
    table = (
        "<a:tbl><a:tr>"
        + "".join(f"<a:tc><a:p><a:r><a:t>{one}</a:t></a:r></a:p></a:tc>" for one in "xy")
        + "</a:tr></a:tbl>"
    )
    body = pptx(
        shape("Worms", "ctrTitle") + shape("on slides", "subTitle") + shape("3", "sldNum"),
        shape("More", "title") + shape("linked", properties=click) + shape("plain") + table,
        links=[("h", "https://h.test/slide")],
    )
    document = opened(body)
    assert document.said.title == "Worms"
    assert document.said.text == "Worms\n\non slides\n\nMore\n\nlinked\n\nplain\n\nx\ty"
    assert document.links == [Link("https://h.test/slide", "linked")]
    assert document.markdown.startswith("## Worms\n\non slides\n\n## More\n\n[linked](https://h.test/slide)\n\nplain")


# ---- sheets

TEXTS = "<si><t>name</t></si><si><r><t>in</t></r><r><t>ch</t></r><rPh><t>sound</t></rPh></si>"
STYLE = (
    '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm"/>'
    '<numFmt numFmtId="165" formatCode="0 &quot;days&quot;"/></numFmts>'
    '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
)


def cells(*given: str) -> str:
    return f"<row>{''.join(given)}</row>"


def test_a_sheet_is_lines_of_cells() -> None:
    rows = (
        cells('<c t="s"><v>0</v></c>', '<c t="s"><v>1</v></c>', '<c t="inlineStr"><is><t>a\nb</t></is></c>')
        + cells('<c r="B2"><f>A1*2</f><v>0.30000000000000004</v></c>', '<c r="D2" t="b"><v>1</v></c>')
        + cells('<c t="e"><v>#DIV/0!</v></c>', '<c t="str"><f>x</f><v>made</v></c>', "<c/>")
        + cells("<c/>", '<c r="ZZ9"/>')
        + cells("<c><v>12345678901234567890</v></c>")
    )
    document = opened(xlsx({"Lengths & more": rows, "Empty": ""}, TEXTS))
    assert document.said.text == (
        "Lengths & more\n\nname\tinch\ta b\n\t0.3\t\tTRUE\n#DIV/0!\tmade\n12345678901234567890\n\nEmpty"
    )
    assert document.said.title == ""
    assert document.markdown.startswith("## Lengths & more\n\n| name | inch | a b |  |\n| --- | --- | --- | --- |\n")


def test_dates_are_dates() -> None:
    values = ("46024.5", "46024", "0.25", "45000.000001", "-1", "9999999", "nonsense")
    rows = cells(*(f'<c s="1"><v>{one}</v></c>' for one in values))
    rows += cells('<c s="2"><v>46024</v></c>', '<c s="3"><v>46024</v></c>', '<c s="0"><v>46024</v></c>')
    rows += cells('<c s="99"><v>46024</v></c>', '<c s="x"><v>46024</v></c>')
    expected = "2026-01-02 12:00:00\t2026-01-02\t06:00:00\t2023-03-15\t-1\t9999999\tnonsense"
    expected += "\n2026-01-02\t46024\t46024\n46024\t46024"
    assert text(xlsx({"s": rows}, styles=STYLE)).partition("\n\n")[2] == expected
    since_1904 = xlsx({"s": cells('<c s="1"><v>1</v></c>')}, styles=STYLE, properties='<workbookPr date1904="1"/>')
    assert text(since_1904).endswith("1904-01-02")


def test_wrong_numbers_lead_nowhere() -> None:
    rows = cells(*(f'<c t="s"><v>{one}</v></c>' for one in ("7", "-1", "x", "", "99999999999")), "<c><v>end</v></c>")
    assert text(xlsx({"s": rows}, TEXTS)) == "s\n\n\t\t\t\t\tend"


# ---- OpenDocument


def test_an_open_text() -> None:
    body = (
        "<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        '<text:h text:outline-level="2">Worms</text:h>'
        '<text:p>one<text:s text:c="2"/>two<text:tab/>three<text:line-break/>four\n   five'
        "<office:annotation><text:p>a remark</text:p></office:annotation></text:p>"
        '<text:p>go <text:a xlink:href="https://h.test/odt">there</text:a></text:p>'
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"><text:p>c</text:p></table:table-cell></table:table-row>'
        "</table:table></office:text>"
    )
    document = opened(odf(body, title="Open worms"))
    assert document.said.title == "Open worms"
    assert document.said.text == "Worms\n\none  two\tthree\nfour five\n\ngo there\n\na b\tc\tc"
    assert document.said.language == "de"
    assert document.said.meta == {
        "author": "Ada Worm",
        "published": "2026-01-02T03:04:05",
        "modified": "2026-02-03T04:05:06",
        "keywords": ["worms", "loops"],
    }
    assert document.links == [Link("https://h.test/odt", "there")]
    assert "## Worms" in document.markdown


def test_a_table_in_a_cell_of_an_open_text_is_a_part_of_it() -> None:
    """What comes behind it in its table is still in cells."""
    inner = "<table:table><table:table-row>{0}{0}</table:table-row></table:table>"
    cell = "<table:table-cell>{}</table:table-cell>"
    rows = cell.format(inner.format(cell.format("<text:p>x</text:p>"))) + cell.format("<text:p>b</text:p>")
    table = f"<table:table><table:table-row>{rows}</table:table-row></table:table>"
    assert text(odf(f"<office:text>{table}<text:p>after</text:p></office:text>")) == "x x\tb\n\nafter"


def test_an_open_sheet_repeats_no_more_than_it_must() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    many = ' table:number-columns-repeated="1000000"'
    body = (
        '<office:spreadsheet><table:table table:name="Blatt">'
        f'<table:table-row table:number-rows-repeated="2">{cell.format("", "a")}<table:table-cell{many}/>'
        "</table:table-row>"
        f'<table:table-row table:number-rows-repeated="1048576"><table:table-cell{many}/></table:table-row>'
        f"<table:table-row>{cell.format(many, 'b')}</table:table-row></table:table></office:spreadsheet>"
    )
    lines = text(odf(body, ODS)).split("\n")
    assert lines[:4] == ["Blatt", "", "a", "a"]
    assert lines[4:] == ["\t".join(["b"] * 100)]


# ---- what is wrong with them


def test_what_breaks_half_way_holds_what_came_before() -> None:
    whole = docx(paragraph("before") + "<w:p><w:r></w:p>" + paragraph("after"))
    said = opened(whole).said
    assert said.text == "before"
    assert said.meta["broken"] is True
    assert "no_text" not in said.meta


def test_one_without_a_word_says_so() -> None:
    assert opened(docx("<w:p/>")).said.meta["no_text"] is True


ENTITY = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "secret">]>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
DTD = '<?xml version="1.0"?><!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">'


@pytest.mark.parametrize("head", [ENTITY, OUTSIDE, DTD, ""], ids=["entity", "outside", "dtd", "undeclared"])
def test_xml_declares_nothing_x1_x2_x3(head: str) -> None:
    part = f"{head}<w:x><w:p><w:r><w:t>a&a;b</w:t></w:r></w:p></w:x>"
    said = opened(ooxml("word/document.xml", {"word/document.xml": part})).said
    assert said.text == ""
    assert said.meta["broken"] is True


def test_encodings_are_not_looked_up_m8() -> None:
    for name in ("utf-7", "hex", "koi8-r"):
        part = f'<?xml version="1.0" encoding="{name}"?><w:x>{paragraph("wörd")}</w:x>'
        assert text(ooxml("word/document.xml", {"word/document.xml": part})) == "wörd"
    wide = f'<?xml version="1.0" encoding="utf-16"?><w:x>{paragraph("wörd")}</w:x>'.encode("utf-16")
    assert text(ooxml("word/document.xml", {"word/document.xml": wide})) == "wörd"


@pytest.mark.parametrize(
    ("limit", "most"),
    [("MAX_UNPACKED_BYTES", 3_000), ("MAX_ELEMENTS", 100), ("MAX_NESTING", 3), ("MAX_MEMBERS", 2)],
)
def test_limits_hold(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(package, limit, most)
    said = opened(docx("".join(paragraph(f"word {number}") for number in range(1_000)))).said
    assert said.meta["text_capped"] is True
    assert len(said.text) < 5_000


def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MAX_TEXT", 100)
    said = opened(docx(paragraph("nine char") * 100)).said
    assert said.meta["text_capped"] is True
    assert len(said.text) < 120


@pytest.mark.parametrize(
    "body",
    [
        packed({"[Content_Types].xml": "", "word/document.xml": ""}),
        packed({"[Content_Types].xml": "", "word/document.xml": "x", "_rels/.rels": "<"}),
        packed({"[Content_Types].xml": "", "xl/workbook.xml": f"<w>{paragraph('x')}</w>"}),
        packed(
            {
                "[Content_Types].xml": "",
                "_rels/.rels": relations(("a", "officeDocument", "../../etc")),
                "word/document": "",
            }
        ),
        docx(paragraph("x"))[:-30],
        docx(paragraph("x"))[:200],
        b"PK\x03\x04",
        odf("<office:text><text:p>")[:-100],
    ],
    ids=range(8),
)
def test_broken_files_raise_nothing(body: bytes) -> None:
    for kind in ("", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"):
        document = OpenDocument(body, kind, "")
        assert document.said.text == ""
        assert (document.markdown, document.links) == ("", [])
