"""The one door: everything that commands say goes out here, to people and to programs.

Titles, messages and names were made by pages and servers. Whatever they hold, it does not steer a terminal, turn the
text around or begin a line of its own; only what we style ourselves is styled. Programs get JSON in which such
characters are written as escapes, which mean the same.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

import click

from inchworm.errors import WrongUse
from inchworm.rules.words.figures import plain
from inchworm.rules.words.json_form import json_form

_ENDLESS = 1_000_000
_NARROW = 20
_USUAL = 80


class Styled(NamedTuple):
    """A text with a style of ours."""

    text: str
    style: dict[str, Any]


def styled(text: str, **style: Any) -> Styled:
    return Styled(text, style)


def say(*pieces: str | Styled, err: bool = False, nl: bool = True) -> None:
    """A line of these pieces. Nobody has to listen on standard error: what is done goes on without."""
    line = "".join(_shown(piece) for piece in pieces)
    try:
        click.echo(line, err=err, nl=nl)
    except BrokenPipeError:
        if not err:
            raise
        _hush(sys.stderr)


def paragraph(text: str, indent: int = 0, err: bool = False) -> None:
    """Words on as many lines as they take here."""
    for line in folded(text, indent, err) if text.strip() else ():
        say(" " * indent + line, err=err)


def folded(text: str, indent: int, err: bool = False) -> list[str]:
    """Lines that have room behind an indent. An address is not broken: somebody may want to copy it."""
    room = max(_NARROW, columns(err) - indent)
    found: list[str] = []
    for line in text.split("\n"):
        found += textwrap.wrap(plain(line), room, break_long_words=False, break_on_hyphens=False) or [""]
    return found


def columns(err: bool = False) -> int:
    """How many characters a line may have on this terminal; in a pipe or a file, where others look for lines, any
    number."""
    stream = sys.stderr if err else sys.stdout
    return os.get_terminal_size(stream.fileno()).columns or _USUAL if stream.isatty() else _ENDLESS


def say_over(text: str, is_last: bool) -> None:
    """A line on standard error in the place of the one before."""
    say("\r", plain(text), err=True, nl=is_last)


def _shown(piece: str | Styled) -> str:
    if isinstance(piece, Styled):
        return click.style(_lines(piece.text), **piece.style)
    return piece if piece == "\r" else _lines(piece)


def _lines(text: str) -> str:
    """Several lines, when it is we who broke them."""
    return text if text.isprintable() else "\n".join(map(plain, text.split("\n")))


def print_json(value: object, indent: int | None = None) -> None:
    """A value for programs, by the names of its fields."""
    text = json.dumps(json_form(value), ensure_ascii=False, indent=indent)
    click.echo(text if text.isprintable() else "".join(map(_escaped, text)))


def _escaped(mark: str) -> str:
    """A character as JSON may have it: what a terminal could obey as its code."""
    if mark.isprintable() or mark == "\n":
        return mark
    code = mark.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


@contextmanager
def while_heard() -> Iterator[None]:
    """Whoever closes a pipe early has what he wanted (`| head`): that is an end like any other."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _hush(sys.stdout)
        raise click.exceptions.Exit(0) from None


def _hush(stream: TextIO) -> None:
    """What is still in its buffer goes nowhere, and so does what comes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def standard_output(is_binary: bool) -> Iterator[BinaryIO]:
    """Where an export goes that names no file: byte by byte into a pipe, in a form for the eye on a terminal."""
    out, is_terminal = sys.stdout.buffer, sys.stdout.isatty()
    if is_binary and is_terminal:
        raise WrongUse("This is for programs; a terminal cannot show it.", "Write it to a file: -o FILE")
    yield cast(BinaryIO, _Readable(out)) if is_terminal else out
    out.flush()


class _Readable(io.RawIOBase):
    """Text on its way to a terminal, without what a terminal would obey."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = self._decoder.decode(bytes(data)).replace("\r\n", "\n")
        self._out.write(_lines(text).encode("utf-8", "replace"))
        return len(data)
