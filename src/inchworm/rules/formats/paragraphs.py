"""Paragraphs and tables of Office Open XML, in texts and on slides, and which styles make a heading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from inchworm.rules.formats.contents import Block, Paragraph, TableRow, TextRun
from inchworm.rules.formats.package import Attributes, Relation, local

_LEFT_OUT = frozenset({"Fallback", "del", "delText", "instrText", "moveFrom"})
_SLIDE_FRAME = frozenset({"dt", "ftr", "hdr", "sldNum"})
_SLIDE_TITLES = frozenset({"title", "ctrTitle"})
_BREAKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_SLIDE_TITLE_LEVEL = 2
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_MOST_ANCESTORS = 10


class Gatherer(Protocol):
    """Takes what is found."""

    def add(self, block: Block) -> None: ...

    def sheet(self, name: str) -> None: ...

    def link(self, run: TextRun) -> None: ...


@dataclass(slots=True)
class _Open:
    """A paragraph that has not ended yet."""

    level: int = 0
    runs: list[TextRun] = field(default_factory=list)


class Words:
    """The text of one part. Paragraphs can lie in paragraphs, where there is a text box."""

    def __init__(self, found: Gatherer, relations: Mapping[str, Relation], levels: Mapping[str, int]) -> None:
        self._found, self._relations, self._levels = found, relations, levels
        self._open: list[_Open] = []
        self._left_out = 0
        self._properties = 0
        self._tables = 0
        self._cells: list[list[str]] = []
        self._is_text = False
        self._link_href = self._run_href = ""
        self._shape_level = 0
        self._is_frame = False

    def start(self, name: str, attributes: Attributes) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
        elif name == "p":
            self._open.append(_Open(self._shape_level))
        elif name == "t":
            self._is_text = True
        elif name in _BREAKS and not self._properties:
            self._say(_BREAKS[name])
        elif name.endswith("Pr"):
            self._properties += 1
        elif name in ("tbl", "tc"):
            self._start_table(name)
        else:
            self._start_rest(name, attributes)

    def _start_table(self, name: str) -> None:
        if name == "tbl":
            self._tables += 1
        elif self._tables == 1:
            self._cells.append([])

    def _start_rest(self, name: str, attributes: Attributes) -> None:
        if name == "pStyle" and self._open:
            self._open[-1].level = self._levels.get(local(attributes, "val"), 0)
        elif name == "hyperlink":
            self._link_href = self._outside(attributes)
        elif name == "hlinkClick":
            self._run_href = self._outside(attributes)
        elif name == "sp":
            self._shape_level, self._is_frame = 0, False
        elif name == "ph":
            kind = attributes.get("type", "")
            self._shape_level = _SLIDE_TITLE_LEVEL if kind in _SLIDE_TITLES else 0
            self._is_frame = kind in _SLIDE_FRAME

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif name == "t":
            self._is_text = False
        elif name == "p" and self._open:
            self._end_paragraph(self._open.pop())
        elif name.endswith("Pr"):
            self._properties -= 1
        elif name == "r":
            self._run_href = ""
        elif name == "hyperlink":
            self._link_href = ""
        elif name == "tr" and self._tables == 1:
            self._found.add(TableRow(tuple(map(" ".join, self._cells))))
            self._cells = []
        elif name == "tbl":
            self._tables -= 1

    def text(self, text: str) -> None:
        if self._is_text and not self._left_out:
            self._say(text)

    def _say(self, text: str) -> None:
        if self._open:
            self._open[-1].runs.append(TextRun(text, self._run_href or self._link_href))

    def _end_paragraph(self, ended: _Open) -> None:
        if self._is_frame:
            return
        for run in ended.runs:
            if run.href:
                self._found.link(run)
        paragraph = Paragraph(tuple(ended.runs), ended.level)
        if not self._tables:
            self._found.add(paragraph)
        elif self._cells and (text := paragraph.text):
            self._cells[-1].append(text)

    def _outside(self, attributes: Attributes) -> str:
        relation = self._relations.get(local(attributes, "id"))
        return relation.target if relation and relation.is_outside else ""


class Styles:
    """The styles of a text. Their names are English in every language, their keys are not."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._style = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "style":
            self._style = local(attributes, "styleId")
        elif name == "basedOn":
            self._parents[self._style] = local(attributes, "val")
        elif name == "name":
            self._name(local(attributes, "val"))
        elif name == "outlineLvl" and (level := local(attributes, "val")).isdecimal() and len(level) == 1:
            self._levels.setdefault(self._style, min(int(level) + 1, 6))

    def _name(self, name: str) -> None:
        if heading := _HEADING.fullmatch(name):
            self._levels[self._style] = min(int(heading[1]), 6)
        elif name.lower() == "title":
            self._levels[self._style] = 1

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...

    def levels(self) -> dict[str, int]:
        """How far up each style stands that makes a heading."""
        return {style: level for style in {*self._levels, *self._parents} if (level := self._level(style))}

    def _level(self, style: str) -> int:
        for _ in range(_MOST_ANCESTORS):
            if style in self._levels or style not in self._parents:
                break
            style = self._parents[style]
        return self._levels.get(style, 0)
