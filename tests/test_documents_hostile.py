"""`read` on documents that were made to be hard to read: nothing is raised, and time and memory stay within limits.

INCHWORM_HOSTILE_DOCUMENTS says how many; by default there are as many as are read in a few seconds.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Any

from tests.documents import LOREM, pdf
from tests.hostile_documents import MADE, hostile

from inchworm import apart, read
from inchworm.reader import SECONDS
from inchworm.rules.formats.contents import MAX_LINKS, MAX_TEXT, MAX_TITLE

COUNT = int(os.environ.get("INCHWORM_HOSTILE_DOCUMENTS", "400"))
PARTS = ("title", "text", "markdown", "html", "raw_html", "links", "data", "meta", "language", "author", "published")
MEMORY_MB = 400
URL = "https://h.test/docs/file"

# What is given up, not because our reading of it is wrong but because it wants more than it may have.
GIVEN_UP = ("took longer than", "more memory than it may")


def test_no_document_breaks_the_reader_b1_m5_m6_x1_x2() -> None:
    before = _memory_mb()
    slowest = ("", 0.0)
    given_up, read_well = [], 0
    for name, body, content_type in hostile(COUNT):
        began = time.monotonic()
        page = read(body, URL, content_type)
        said = {part: getattr(page, part) for part in PARTS}
        slowest = max(slowest, (name, time.monotonic() - began), key=lambda one: one[1])
        _check(name, said)
        if page.failure:
            assert any(words in page.failure for words in GIVEN_UP), (name, page.failure)
            given_up.append(name)
        read_well += bool(said["text"])
    # Every part that is asked for has its own time.
    assert slowest[1] < len(PARTS) * (SECONDS + 10), slowest
    assert _memory_mb() - before < MEMORY_MB
    assert len(given_up) <= 3 + COUNT // 100, given_up
    assert read_well > COUNT // 4
    # Whatever became of the process that read them: the next document is read.
    assert read(pdf(LOREM)).text == LOREM.strip()


def _check(name: str, said: dict[str, Any]) -> None:
    """Everything can be stored, and nothing is larger than it may be or comes from outside the document."""
    for part in ("title", "text", "markdown", "html", "raw_html", "language", "author", "published"):
        (said[part] or "").encode()
    assert len(said["title"]) <= MAX_TITLE, name
    assert max(len(said[part]) for part in ("text", "markdown", "html")) <= MAX_TEXT, name
    assert len(said["links"]) <= MAX_LINKS, name
    assert all(link.url.startswith(("http://", "https://")) for link in said["links"]), name
    assert "root:" not in said["text"] + said["markdown"], name


def test_every_kind_of_attack_is_among_them() -> None:
    assert len(MADE) + 100 < COUNT


def _memory_mb() -> float:
    """The most that this process had at any time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def teardown_module() -> None:
    apart.shared().close()
