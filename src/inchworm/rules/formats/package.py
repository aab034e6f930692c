"""ZIP files with XML in them, as office programs write them, read within limits whatever they pretend to be.

Nothing is unpacked that was not asked for, and never more than a bounded amount: a few bytes can be made to become
gigabytes. XML is read in pieces, may declare nothing of its own, and leads nowhere outside.
"""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol
from xml.parsers import expat

MAX_MEMBERS = 20_000
MAX_UNPACKED_BYTES = 100_000_000
MAX_ELEMENTS = 3_000_000
MAX_NESTING = 500
MAX_RELATIONS = 100_000

_PIECE_BYTES = 1 << 16
_MAX_TOKEN_BYTES = 1 << 20
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_LOCKED = 0x1
_WIDE = (b"\xff\xfe", b"\xfe\xff")
# Hostile files find every gap in the standard library.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, expat.ExpatError, EOFError, OSError),
    *(ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError),
)


Attributes = Mapping[str, str]


class BrokenPackage(Exception):
    """It cannot be read, or no further."""


class Enough(Exception):
    """There is more than may be read."""


class Elements(Protocol):
    """What is told of an XML document: elements by their names without prefix, attributes as they are written."""

    def start(self, name: str, attributes: Attributes, /) -> None: ...

    def end(self, name: str, /) -> None: ...

    def text(self, text: str, /) -> None: ...


def local(attributes: Attributes, name: str) -> str:
    """The attribute of this name that has a prefix, whichever; many a one has a namesake without."""
    ending = f":{name}"
    return next((value for key, value in attributes.items() if key.endswith(ending)), "")


class Relation(NamedTuple):
    """Where a part refers to: another part by its name, or an address outside."""

    kind: str
    target: str
    is_outside: bool


class Package:
    """An open file. What is read from it counts towards one limit."""

    def __init__(self, body: bytes) -> None:
        # The list of members is read as a whole, so it is measured first.
        if body.count(b"PK\x01\x02") > MAX_MEMBERS:
            raise Enough
        try:
            self._file = zipfile.ZipFile(io.BytesIO(body))
        except _BROKEN as error:
            raise BrokenPackage from error
        self._names = frozenset(self._file.namelist())
        self._bytes_left = MAX_UNPACKED_BYTES
        self._elements_left = MAX_ELEMENTS

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str, elements: Elements) -> None:
        """Tell of an XML part, up to where it ends or breaks; nothing of one that is not there."""
        if name not in self._names:
            return
        try:
            self._parse(self._pieces(name), elements)
        except _BROKEN as error:
            raise BrokenPackage from error

    def _pieces(self, name: str) -> Iterator[bytes]:
        info = self._file.getinfo(name)
        if info.flag_bits & _IS_LOCKED or info.compress_type not in _WAYS:
            raise BrokenPackage
        with self._file.open(info) as member:
            while piece := member.read(_PIECE_BYTES):
                self._bytes_left -= len(piece)
                if self._bytes_left < 0:
                    raise Enough
                yield piece

    def _parse(self, pieces: Iterator[bytes], elements: Elements) -> None:
        first = next(pieces, b"")
        # Whatever encoding it says it has: these two are all there are, and others would be looked up.
        parser = expat.ParserCreate("utf-16" if first.startswith(_WIDE) else "utf-8")
        depth = 0

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            self._elements_left -= 1
            if depth > MAX_NESTING or self._elements_left < 0:
                raise Enough
            elements.start(name.rpartition(":")[2], attributes)

        def end(name: str) -> None:
            nonlocal depth
            depth -= 1
            elements.end(name.rpartition(":")[2])

        def refuse(*_declaration: object) -> None:
            raise BrokenPackage

        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = elements.text
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
        fed = 0
        while first:
            parser.Parse(first, False)
            fed += len(first)
            # Old versions of expat read an unfinished token again from its start with every piece.
            if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise Enough
            first = next(pieces, b"")
        parser.Parse(b"", True)

    def relations(self, part: str = "") -> dict[str, Relation]:
        """What a part refers to, by the names that it uses itself; without a name, what the whole file does."""
        folder, _, name = part.rpartition("/")
        found = _Relations(folder)
        self.read(posixpath.join(folder, "_rels", f"{name}.rels"), found)
        return found.by_id


class _Relations:
    def __init__(self, folder: str) -> None:
        self.by_id: dict[str, Relation] = {}
        self._folder = folder

    def start(self, name: str, attributes: Attributes) -> None:
        if name != "Relationship":
            return
        if len(self.by_id) >= MAX_RELATIONS:
            raise Enough
        kind, target = attributes.get("Type", "").rpartition("/")[2], attributes.get("Target", "")
        is_outside = attributes.get("TargetMode") == "External"
        if not is_outside:
            target = posixpath.normpath(posixpath.join("/", self._folder, target)).lstrip("/")
        self.by_id[attributes.get("Id", "")] = Relation(kind, target, is_outside)

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...
