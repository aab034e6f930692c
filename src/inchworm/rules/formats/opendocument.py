"""The text of OpenDocument: texts, slides and sheets have the same paragraphs and tables."""

from __future__ import annotations

import re

from inchworm.rules.formats.contents import Paragraph, TableRow, TextRun
from inchworm.rules.formats.package import Attributes, local
from inchworm.rules.formats.paragraphs import Gatherer

_LEFT_OUT = frozenset({"annotation", "binary-data", "deletion", "forms", "note-citation", "notes", "tracked-changes"})
_CELLS = ("table-cell", "covered-table-cell")
_SPACE = re.compile(r"[ \t\r\n]+")
_MAX_REPEATED = 100


class OpenText:
    """What `content.xml` says."""

    def __init__(self, found: Gatherer) -> None:
        self._found = found
        self._runs: list[TextRun] | None = None
        self._level = 0
        self._href = ""
        self._left_out = 0
        self._tables = 0
        self._is_spreadsheet = False
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._cell_count = self._row_count = 1

    def start(self, name: str, attributes: Attributes) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
        elif name in ("p", "h"):
            self._runs = []
            self._level = min(_number(attributes, "outline-level", 1), 6) if name == "h" else 0
        elif name == "s":
            self._say(" " * min(_number(attributes, "c", 1), _MAX_REPEATED))
        elif name == "tab":
            self._say("\t")
        elif name == "line-break":
            self._say("\n")
        elif name == "a":
            self._href = local(attributes, "href")
        elif name == "spreadsheet":
            self._is_spreadsheet = True
        else:
            self._start_table(name, attributes)

    def _start_table(self, name: str, attributes: Attributes) -> None:
        if name == "table":
            self._tables += 1
            if self._is_spreadsheet and self._tables == 1:
                self._found.sheet(local(attributes, "name"))
        elif self._tables != 1:
            return
        elif name == "table-row":
            self._cells = []
            self._row_count = min(_number(attributes, "number-rows-repeated", 1), _MAX_REPEATED)
        elif name in _CELLS:
            self._cell = []
            self._cell_count = min(_number(attributes, "number-columns-repeated", 1), _MAX_REPEATED)

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif name in ("p", "h"):
            self._end_paragraph()
        elif name == "a":
            self._href = ""
        elif name == "table":
            self._tables -= 1
        elif self._tables == 1 and name in _CELLS:
            self._cells += [" ".join(self._cell)] * self._cell_count
        elif self._tables == 1 and name == "table-row":
            self._end_row()

    def text(self, text: str) -> None:
        if not self._left_out:
            self._say(_SPACE.sub(" ", text))

    def _say(self, text: str) -> None:
        if self._runs is not None:
            self._runs.append(TextRun(text, self._href))

    def _end_paragraph(self) -> None:
        paragraph = Paragraph(tuple(self._runs or ()), self._level)
        self._runs = None
        for run in paragraph.runs:
            if run.href:
                self._found.link(run)
        if not self._tables:
            self._found.add(paragraph)
        elif text := paragraph.text:
            self._cell.append(text)

    def _end_row(self) -> None:
        while self._cells and not self._cells[-1]:
            self._cells.pop()
        for _ in range(self._row_count if self._cells else 0):
            self._found.add(TableRow(tuple(self._cells)))
        self._cells = []


def _number(attributes: Attributes, name: str, usual: int) -> int:
    text = local(attributes, name)
    return max(int(text), 1) if text.isdecimal() and len(text) < 10 else usual
