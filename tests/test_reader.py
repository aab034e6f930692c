"""The child that reads large documents: the same reading as here, and no way to get stuck."""

from __future__ import annotations

import asyncio

import pytest
from tests.documents import DOCX, LOREM, docx, paragraph, pdf

from inchworm.model import Document, Kind
from inchworm.reader import DocumentReader

LINKS = "".join(f'<a href="/page/{number}">{number} \u00e9</a>' for number in range(60_000))
LARGE = Document(f"<title>large</title><p>{LINKS}".encode(), "text/html", "http://h.test/", Kind.PAGE)
ENTRIES = b"".join(b"<url><loc>http://h.test/%d</loc></url>" % number for number in range(30_000))
MAP = Document(b"<urlset>" + ENTRIES + b"</urlset>", "application/xml", "http://h.test/sitemap.xml", Kind.SITEMAP)


async def apart(document: Document) -> object:
    reader = DocumentReader(False)
    try:
        return await reader.read_apart(document)
    finally:
        await reader.close()


PAPER = Document(pdf(LOREM, title="A paper", links=["http://h.test/a"]), "", "http://h.test/a.pdf", Kind.PAGE)
TEXT = Document(docx(paragraph(LOREM), title="A text"), DOCX, "http://h.test/a.docx", Kind.PAGE)
SHOWN = Document(PAPER.body, "application/pdf", "http://h.test/b.pdf", Kind.RESOURCE)


@pytest.mark.parametrize(
    "document", [LARGE, MAP, PAPER, TEXT, SHOWN], ids=["page", "sitemap", "PDF", "docx", "resource"]
)
def test_it_reads_as_we_do(document: Document) -> None:
    here = DocumentReader(False).read(document)
    # What versions are compared by stays in the child, which compares those that it has read.
    kept = here.reading._replace(words="", hrefs="", base=None)
    assert asyncio.run(apart(document)) == here._replace(reading=kept)


def test_being_cancelled_while_the_answer_comes_leaves_nobody_waiting() -> None:
    async def scenario() -> None:
        reader = DocumentReader(False)
        reading = asyncio.create_task(reader.read_apart(LARGE))
        while not (reader._child and reader._child.stdout and len(reader._child.stdout._buffer) > 100_000):
            await asyncio.sleep(0)
            assert not reading.done()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        read = await reader.read_apart(MAP)
        assert len(read.reading.links) == 30_000
        await reader.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))
