"""Documents that are read in a process of their own, for whoever has no event loop: exports, search, `inchworm.read`.

The process is the one that a crawl reads large pages in (`reader`), with the same limits: a document made to be hard to
read is given up after a while, and costs nobody else anything.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import threading
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from inchworm.reader import COMMAND, REPLACE_AFTER_BYTES, SECONDS, environment
from inchworm.rules.fields.selectors import EACH, Rules, to_json
from inchworm.rules.metadata.data import Data
from inchworm.rules.page.document import DocumentContent, Link
from inchworm.rules.text.fates import BlockFate
from inchworm.rules.text.recurring import NO_FRAME, Block, Frame


class Unreadable(Exception):
    """A document that cannot be read within the limits."""


class Apart:
    """The process, started when it is first needed. Several threads may ask; each waits for its turn."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._read_bytes = 0
        self._one_at_a_time = threading.Lock()

    def part(self, name: str, body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> Any:
        """A part of a document, as JSON has it."""
        return self._told({"part": name, "content_type": content_type, "url": url, "frame": sorted(frame)}, body)

    def fields(self, rules: Rules, body: bytes, content_type: str, url: str) -> list[list[Any]]:
        """The rows that these rules find in a document."""
        job = {"part": "fields", "rules": to_json(rules), "content_type": content_type, "url": url}
        rows: list[list[Any]] = self._told(job, body)
        return rows

    def faults(self, rules: Rules) -> list[tuple[str, str]]:
        """The fields whose selectors cannot be used, and why. Where one breaks the reader, the first that does."""
        try:
            found = self._told({"part": "faults", "rules": to_json(rules)}, b"")
        except Unreadable as error:
            alone = (Rules((one,)) for one in rules.fields) if len(rules.fields) > 1 or rules.each else iter(())
            culprit = rules.fields[0].name if len(rules.fields) == 1 and not rules.each else EACH
            return next(filter(None, map(self.faults, alone)), [(culprit, str(error))])
        return [(name, why) for name, why in found]

    def _told(self, job: dict[str, Any], body: bytes) -> Any:
        with self._one_at_a_time:
            answer = self._ask(json.dumps({**job, "size": len(body)}).encode() + b"\n", body)
            self._read_bytes += len(body)
            if answer is None or self._read_bytes > REPLACE_AFTER_BYTES:
                self._end()
        if answer is None:
            raise Unreadable(f"reading it took longer than {SECONDS:g} s, more memory than it may, or broke the reader")
        told: dict[str, Any] = json.loads(answer.decode("utf-8", "surrogatepass"))
        if "raised" in told:
            raise Unreadable(f"reading it failed: {told['raised']}")
        return told["part"]

    def _ask(self, job: bytes, body: bytes) -> bytes | None:
        """The child's answer; None when it died over it, or was killed because it took too long."""
        child = self._child = self._child or subprocess.Popen(  # noqa: S603 - our own program
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for us
        )
        assert child.stdin is not None
        assert child.stdout is not None
        alarm = threading.Timer(SECONDS, child.kill)
        alarm.start()
        try:
            child.stdin.write(job)
            child.stdin.write(body)
            child.stdin.flush()
            size = int(child.stdout.readline() or b"-1")
            answer = child.stdout.read(size) if size >= 0 else b""
            return answer if len(answer) == size else None
        except OSError:
            return None
        except BaseException:
            # Interrupted half way: what the child says next would be the answer to another question.
            self._end()
            raise
        finally:
            alarm.cancel()

    def close(self) -> None:
        with self._one_at_a_time:
            self._end()

    def _end(self) -> None:
        child, self._child, self._read_bytes = self._child, None, 0
        if child is not None:
            child.kill()
            with contextlib.suppress(OSError):
                child.communicate()


@cache
def shared() -> Apart:
    """The one process that serves all who have none of their own."""
    apart = Apart()
    atexit.register(apart.close)
    return apart


class ApartDocument:
    """`Parts` that are read apart. A document that was given up once is not tried again for another part: that would
    take as long each time."""

    def __init__(self, body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> None:
        self._body, self._type, self._url, self._frame = body, content_type, url, frame
        self._given_up: Unreadable | None = None

    def _part(self, name: str) -> Any:
        if self._given_up:
            raise self._given_up
        try:
            return shared().part(name, self._body, self._type, self._url, self._frame)
        except Unreadable as error:
            self._given_up = error
            raise

    @cached_property
    def said(self) -> DocumentContent:
        return DocumentContent(*self._part("said"))

    @cached_property
    def text_alone(self) -> DocumentContent:
        return DocumentContent(*self._part("text_alone")) if self._frame else self.said

    @cached_property
    def blocks(self) -> Sequence[Block]:
        return [Block(*one) for one in self._part("blocks")]

    @cached_property
    def left_out(self) -> int:
        return int(self._part("left_out")) if self._frame else 0

    @cached_property
    def comments(self) -> str:
        said: str = self._part("comments")
        return said

    @cached_property
    def fates(self) -> list[BlockFate]:
        return [BlockFate(*block) for block in self._part("fates")]

    @cached_property
    def links(self) -> list[Link]:
        return [Link(*one) for one in self._part("links")]

    @cached_property
    def targets(self) -> list[str]:
        return list(self._part("targets"))

    @cached_property
    def markdown(self) -> str:
        return str(self._part("markdown"))

    @cached_property
    def html(self) -> str:
        return str(self._part("html"))

    @cached_property
    def source(self) -> str:
        return str(self._part("source"))

    @cached_property
    def data(self) -> Data:
        data: Data = self._part("data")
        return data
