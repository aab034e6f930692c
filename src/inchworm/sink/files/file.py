"""A file that is there when it is whole, compressed where its name asks for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from inchworm.errors import WrongUse

_BUFFER = 1 << 18


@contextmanager
def whole_file(path: Path, is_binary: bool = False) -> Iterator[BinaryIO]:
    """A file to be written. What was there before stays until it is whole. One for programs only (`is_binary`) is
    compressed in its own way."""
    if not path.parent.is_dir():
        raise WrongUse(f"There is no folder {path.parent}.", "Make it first, or give another one.")
    if path.is_dir():
        raise WrongUse(f"{path} is a folder.", "Give the name of a file in it.")
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb", _BUFFER) as file, _compressing(file, "" if is_binary else path.suffix.lower()) as out:
            yield out
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _compressing(file: BinaryIO, ending: str) -> Iterator[BinaryIO]:
    """Write through a compressor where the file's name asks for one. What the same export writes is the same file."""
    if ending == ".gz":
        from gzip import GzipFile

        with GzipFile(fileobj=file, filename="", mode="wb", mtime=0) as out:
            yield cast(BinaryIO, out)
    elif ending == ".zst":
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd

        with zstd.ZstdFile(file, "w") as out:
            yield cast(BinaryIO, out)
    else:
        yield file
