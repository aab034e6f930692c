"""Sheets of Office Open XML: cells by rows, with the texts they share, and numbers that are dates as dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from inchworm.rules.formats.contents import MAX_TEXT, TableRow
from inchworm.rules.formats.package import Attributes, Enough, local
from inchworm.rules.formats.paragraphs import Gatherer

_MAX_GAP = 250
_COLUMN = re.compile("[A-Z]{1,3}")
_TRUTH = {"0": "FALSE", "1": "TRUE"}
_EPOCHS = (datetime(1899, 12, 30), datetime(1904, 1, 1))  # noqa: DTZ001 - sheets know no zones
_MAX_DAYS = 2_950_000  # in the year 9976, or 9980
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_NO_CODE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_DATE_CODE = re.compile("[dmyhs]", re.IGNORECASE)


class Workbook:
    """The names of the sheets, with those of their parts, and from when on days are counted."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.counts_from_1904 = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), local(attributes, "id")))
        elif name == "workbookPr":
            self.counts_from_1904 = attributes.get("date1904") in ("1", "true")

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


class SharedTexts:
    """Texts that cells name by their numbers. How they are pronounced is left out."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._is_text = self._is_sound = False
        self._room = 4 * MAX_TEXT

    def start(self, name: str, _attributes: Attributes) -> None:
        if name == "rPh":
            self._is_sound = True
        self._is_text = name == "t" and not self._is_sound

    def end(self, name: str) -> None:
        self._is_text = False
        if name == "rPh":
            self._is_sound = False
        elif name == "si":
            self.texts.append("".join(self._parts))
            self._parts = []

    def text(self, text: str) -> None:
        if self._is_text:
            self._parts.append(text)
            self._room -= len(text)
            if self._room < 0:
                raise Enough


class Formats:
    """Which formats of cells show a number as a date."""

    def __init__(self) -> None:
        self.dates: list[bool] = []
        self._own: set[str] = set()
        self._is_list = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "numFmt" and _DATE_CODE.search(_NO_CODE.sub("", attributes.get("formatCode", "")[:255])):
            self._own.add(attributes.get("numFmtId", ""))
        elif name == "cellXfs":
            self._is_list = True
        elif name == "xf" and self._is_list:
            number = attributes.get("numFmtId", "")
            is_usual = number.isdecimal() and len(number) < 4 and int(number) in _DATE_FORMATS
            self.dates.append(is_usual or number in self._own)

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._is_list = False

    def text(self, text: str) -> None: ...


class Sheet:
    """The rows of one sheet."""

    def __init__(self, found: Gatherer, texts: Sequence[str], dates: Sequence[bool], counts_from_1904: bool) -> None:
        self._found, self._texts, self._dates = found, texts, dates
        self._epoch = _EPOCHS[counts_from_1904]
        self._cells: list[str] = []
        self._parts: list[str] = []
        self._kind = self._style = ""
        self._is_value = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            self._fill_up(attributes.get("r", ""))
            self._kind, self._style = attributes.get("t", ""), attributes.get("s", "")
            self._parts = []
        elif name in ("v", "t"):
            self._is_value = True

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._is_value = False
        elif name == "c":
            self._cells.append(self._value("".join(self._parts)))
        elif name == "row":
            while self._cells and not self._cells[-1]:
                self._cells.pop()
            self._found.add(TableRow(tuple(self._cells)))
            self._cells = []

    def text(self, text: str) -> None:
        if self._is_value:
            self._parts.append(text)

    def _fill_up(self, reference: str) -> None:
        """Empty cells are not written down: those before this one."""
        if not (letters := _COLUMN.match(reference)):
            return
        column = 0
        for letter in letters[0]:
            column = 26 * column + ord(letter) - ord("A") + 1
        gap = column - 1 - len(self._cells)
        self._cells += [""] * min(max(gap, 0), _MAX_GAP)

    def _value(self, text: str) -> str:
        if self._kind == "s":
            number = int(text) if text.isdecimal() and len(text) < 10 else -1
            return self._texts[number] if 0 <= number < len(self._texts) else ""
        if self._kind == "b":
            return _TRUTH.get(text, text)
        if self._kind in ("", "n"):
            return self._number(text)
        return text

    def _number(self, text: str) -> str:
        """A number as people write it, or the date that it stands for."""
        try:
            value = float(text)
        except ValueError:
            return text
        is_style = self._style.isdecimal() and len(self._style) < 7 and int(self._style) < len(self._dates)
        if is_style and self._dates[int(self._style)] and 0 <= value < _MAX_DAYS:
            return self._date(value)
        # 15 digits are all that are meant; what is behind them came in by calculating.
        return f"{value:.15g}" if "." in text else text

    def _date(self, value: float) -> str:
        moment = self._epoch + timedelta(seconds=round(value * 86_400))
        if value < 1:
            return moment.time().isoformat()
        return moment.date().isoformat() if moment.time() == moment.min.time() else moment.isoformat(" ")
