"""Writing files into a folder, and never out of it: no link that somebody put there is followed.

A file is written under another name and put in place when it is whole, so whoever reads the folder meanwhile sees the
old one or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from inchworm.errors import Broken, InchwormError, WrongUse
from inchworm.sink.files.zipped import Zipped

_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_AS_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


class Files(Protocol):
    """Takes files by names such as `host/path/page.md`."""

    def write(self, name: str, data: bytes) -> None: ...

    def replacing(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]: ...

    def plain_errors(self, name: str) -> contextlib.AbstractContextManager[None]: ...


@contextlib.contextmanager
def opened(into: Path | BinaryIO) -> Iterator[Files]:
    """A folder to write files into, or a zip file of one."""
    if isinstance(into, Path):
        with Folder(into) as folder:
            yield folder
    else:
        with Zipped(into) as zipped:
            yield zipped


class Folder:
    """An open folder. It is held by its descriptor, so it stays the same one even if its name is given to another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._root = -1
        self._below: tuple[list[str], int] = ([], -1)

    def __enter__(self) -> Folder:
        with self.plain_errors(""):
            self.path.mkdir(parents=True, exist_ok=True)
            self._root = os.open(self.path, _AS_FOLDER)
            self._below = ([], os.dup(self._root))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._below[1])
        os.close(self._root)

    def write(self, name: str, data: bytes) -> None:
        """A whole file, under a name such as `host/path/page.md`."""
        with self.plain_errors(name), self.replacing(name) as out:
            out.write(data)

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A file to write to. It takes its place at the end, or, if anything is raised, goes away without a trace."""
        part = f".inchworm-{os.urandom(8).hex()}.part"
        with self.plain_errors(name):
            out = os.fdopen(os.open(part, _AS_NEW_FILE, 0o644, dir_fd=self._root), "wb")
        try:
            yield out
            with self.plain_errors(name):
                out.close()
                *folders, leaf = map(_checked, name.split("/"))
                os.replace(part, leaf, src_dir_fd=self._root, dst_dir_fd=self._inside(folders))
        except BaseException:
            with contextlib.suppress(OSError):
                out.close()
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=self._root)
            raise

    @contextlib.contextmanager
    def plain_errors(self, name: str) -> Iterator[None]:
        """What the file system says, in words for people."""
        try:
            yield
        except OSError as error:
            raise self._said(error, self.path / name) from error

    def _said(self, error: OSError, path: Path) -> InchwormError:
        if error.errno in _IN_THE_WAY:
            hint = "Export into a new folder, or move that out of the way."
            return WrongUse(f"{path} cannot be written: a link, or something else, is in the way.", hint)
        return Broken(f"{path} cannot be written: {error.strerror}.", "Check the folder and the disk, then try again.")

    def _inside(self, folders: list[str]) -> int:
        """The descriptor of a folder below, which is made if need be. The last one is kept: pages come in clusters."""
        if folders == self._below[0]:
            return self._below[1]
        descriptor = os.dup(self._root)
        for name in folders:
            try:
                below = _opened(name, descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        os.close(self._below[1])
        self._below = (folders, descriptor)
        return descriptor


def _opened(name: str, within: int) -> int:
    try:
        return os.open(name, _AS_FOLDER, dir_fd=within)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=within)
        return os.open(name, _AS_FOLDER, dir_fd=within)


def _checked(name: str) -> str:
    """Names come from elsewhere; whatever they are, they do not lead up or away."""
    if name in ("", ".", "..") or "\0" in name:
        raise WrongUse(f"{name!r} cannot be the name of a file.")
    return name
