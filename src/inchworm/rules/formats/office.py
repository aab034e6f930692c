"""Office documents: texts, slides and sheets, as Office Open XML (docx, pptx, xlsx) or OpenDocument (odt, odp, ods).

They are read straight from their XML. What was deleted, or stands there a second time for other programs, is left out.
What breaks half way holds what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inchworm.rules.formats.contents import MAX_LINKS, MAX_TEXT, Block, Contents, Paragraph, TextRun, about, laid_out
from inchworm.rules.formats.media import Media
from inchworm.rules.formats.opendocument import OpenText
from inchworm.rules.formats.package import Attributes, BrokenPackage, Enough, Package, local
from inchworm.rules.formats.paragraphs import Styles, Words
from inchworm.rules.formats.sheet import Formats, SharedTexts, Sheet, Workbook


def contents(body: bytes, media: Media) -> Contents:
    """What an office document holds."""
    found, flag = DocumentBuilder(), ""
    try:
        _READERS[media](Package(body), found)
    except BrokenPackage:
        flag = "broken"
    except Enough:
        flag = "text_capped"
    text = laid_out(found.blocks)
    meta = about(found.said)
    if flag or not text:
        meta[flag or "no_text"] = True
    title = found.said["title"].strip() or found.heading()
    language = found.said["language"].strip()[:35]
    return Contents(title, text, "", language, meta, tuple(found.links), tuple(found.blocks))


class DocumentBuilder:
    """What was read so far. Whoever adds more than may be kept is told that it is enough."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.links: list[TextRun] = []
        self.said = {"title": "", "language": ""}
        self._room = MAX_TEXT
        self._has_sheets = False

    def add(self, block: Block) -> None:
        text = block.text
        if not text:
            return
        self.blocks.append(block)
        self._room -= len(text) + 2
        if self._room < 0:
            raise Enough

    def sheet(self, name: str) -> None:
        """A sheet begins. What it is called is no title of the whole."""
        self._has_sheets = True
        self.add(Paragraph((TextRun(name),), 2))

    def link(self, run: TextRun) -> None:
        if len(self.links) > MAX_LINKS:
            raise Enough
        self.links.append(run)

    def heading(self) -> str:
        """The first heading, which is the title where none is given."""
        if self._has_sheets:
            return ""
        headings = (block for block in self.blocks if isinstance(block, Paragraph) and block.level)
        return next((block.text for block in headings), "")


# ---- Office Open XML


def _docx(package: Package, found: DocumentBuilder) -> None:
    main = _main_part(package, found, "word/document.xml")
    relations, styles = package.relations(main), Styles()
    for one in relations.values():
        if one.kind == "styles":
            package.read(one.target, styles)
    levels = styles.levels()
    package.read(main, Words(found, relations, levels))
    for one in relations.values():
        if one.kind in ("footnotes", "endnotes"):
            package.read(one.target, Words(found, package.relations(one.target), levels))


def _pptx(package: Package, found: DocumentBuilder) -> None:
    main = _main_part(package, found, "ppt/presentation.xml")
    slides = _Slides()
    package.read(main, slides)
    relations = package.relations(main)
    for name in slides.names:
        if name in relations:
            slide = relations[name].target
            package.read(slide, Words(found, package.relations(slide), {}))


def _xlsx(package: Package, found: DocumentBuilder) -> None:
    main = _main_part(package, found, "xl/workbook.xml")
    workbook, formats, texts = Workbook(), Formats(), SharedTexts()
    package.read(main, workbook)
    relations = package.relations(main)
    for one in relations.values():
        if one.kind == "styles":
            package.read(one.target, formats)
        elif one.kind == "sharedStrings":
            package.read(one.target, texts)
    for title, name in workbook.sheets:
        if name in relations and relations[name].kind == "worksheet":
            found.sheet(title)
            package.read(relations[name].target, Sheet(found, texts.texts, formats.dates, workbook.counts_from_1904))


def _main_part(package: Package, found: DocumentBuilder, usual: str) -> str:
    """The name of the part that all others hang on, after what the document says of itself."""
    relations = package.relations()
    for one in relations.values():
        if one.kind == "core-properties":
            _say(package, one.target, found)
    return next((one.target for one in relations.values() if one.kind == "officeDocument"), usual)


class _Slides:
    """The slides of a presentation, in their order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sldId":
            self.names.append(local(attributes, "id"))

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


# ---- OpenDocument


def _odf(package: Package, found: DocumentBuilder) -> None:
    _say(package, "meta.xml", found)
    package.read("content.xml", OpenText(found))


# ---- what documents say of themselves

_FIELDS = {
    "title": ("title",),
    "description": ("description",),
    "author": ("initial-creator", "creator"),
    "published": ("created", "creation-date"),
    "modified": ("modified", "date"),
    "keywords": ("keywords", "keyword"),
    "language": ("language",),
}
_FIELD_CHARS = 10_000


def _say(package: Package, part: str, found: DocumentBuilder) -> None:
    properties = _Properties()
    package.read(part, properties)
    for field, names in _FIELDS.items():
        texts = (properties.texts.get(name, "") for name in names)
        found.said[field] = next(filter(None, texts), "")


class _Properties:
    """The properties of a document. Those that are there more than once become a list."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._name = ""

    def start(self, name: str, _attributes: Attributes) -> None:
        self._name = name
        if name in self.texts:
            self.text(", ")

    def end(self, _name: str) -> None:
        self._name = ""

    def text(self, text: str) -> None:
        if self._name:
            self.texts[self._name] = (self.texts.get(self._name, "") + text)[:_FIELD_CHARS]


_READERS: Mapping[Media, Callable[[Package, DocumentBuilder], None]] = {
    Media.DOCX: _docx,
    Media.PPTX: _pptx,
    Media.XLSX: _xlsx,
    Media.ODF: _odf,
}
