"""What the runs before have of every URL, for tests: one version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inchworm.model import FrontierEntry, Note, Version

OLD = Version(
    run_id=1,
    seq=5,
    at_ms=0,
    status=200,
    size=9,
    content_type="text/html",
    etag='"v1"',
    last_modified="",
    payload=b"digest",
    text_hash=b"text",
    link_hash=b"links",
    title="Old",
    language="",
    canonical="",
    meta=None,
    links=(),
    reader="",
    file_id=1,
    file="",
    offset=0,
    length=0,
    revisit=0,
)


class Before(NamedTuple):
    """A `ports.Earlier`: its version, what speaks against asking by its validators, whether a text was there before,
    whether it was read otherwise, and its body."""

    known: Version | None
    against: Note | None = None
    had_it: bool = False
    otherwise: bool = False
    stored: bytes | None = None

    def expect(self, entry: FrontierEntry, upcoming: Iterator[FrontierEntry]) -> None: ...

    def version(self, entry: FrontierEntry) -> Version | None:
        return self.known

    def objection(self, entry: FrontierEntry, version: Version) -> Note | None:
        return self.against

    def is_read_otherwise(self, version: Version) -> bool:
        return self.otherwise

    def body(self, version: Version) -> bytes | None:
        return self.stored

    def had(self, entry: FrontierEntry, text_hash: bytes) -> bool:
        return self.had_it

    def text_hash(self, version: Version, url: str) -> bytes:
        return b"read anew"
