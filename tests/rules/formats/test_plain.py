"""Texts as they are, however they are encoded."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from inchworm.rules.formats.media import Media
from inchworm.rules.formats.plain import contents, decoded
from inchworm.rules.page.document import DocumentContent, OpenDocument

DECODED = {
    "utf-8": ("héllo".encode(), "text/plain", "héllo"),
    "latin-1": ("héllo".encode("latin-1"), "text/plain", "héllo"),
    "latin-1 that says so": (b"caf\xe9", "text/plain; charset=iso-8859-1", "café"),
    "windows by another name": (b"\x80", "text/plain; charset=latin1", "€"),
    "a mark wins over the label": ("\ufeffhéllo".encode(), "text/plain; charset=iso-8859-1", "héllo"),
    "utf-16 by its mark": ("\ufeffhéllo".encode("utf-16-le"), "text/plain", "héllo"),
    "utf-16 by its label": ("héllo".encode("utf-16-be"), "text/plain; charset=utf-16be", "héllo"),
    "utf-16 XML without either": ("<é/>".encode("utf-16-le"), "text/xml", "<é/>"),
    "koi8": ("привет".encode("koi8-r"), "text/plain; charset=KOI8-R", "привет"),
    "shift_jis": ("日本".encode("shift_jis"), 'text/plain; charset="shift_jis"', "日本"),
    "gb2312 is more than it says": ("中文镕".encode("gbk"), "text/plain; charset=gb2312", "中文镕"),
    "no encoding of browsers (M8)": (b"plain", "text/plain; charset=punycode", "plain"),
    "no encoding of text (M8)": (b"plain", "text/plain; charset=hex", "plain"),
    "no encoding at all": (b"abc", "text/plain; charset=unheard-of", "abc"),
    "not what it says": (b"\x81\xff", "text/plain; charset=utf-8", "\ufffdÿ"),
    "a little damage": ("Größe, Äpfel und é".encode() + b"\xff", "text/plain", "Größe, Äpfel und é\ufffd"),
    "a little damage behind a mark": ("\ufeffhéllo".encode() + b"\xff", "text/plain", "héllo\ufffd"),
    "declared by XML": ('<?xml version="1.0" encoding="koi8-r"?>я'.encode("koi8-r"), "text/xml",
                        '<?xml version="1.0" encoding="koi8-r"?>я'),
    "declared by XML, but not by its server": ('<?xml version="1.0" encoding="koi8-r"?>я'.encode(),
                                               "text/xml; charset=utf-8", '<?xml version="1.0" encoding="koi8-r"?>я'),
    "declared as what it cannot be": (b'<?xml version="1.0" encoding="utf-16"?>', "text/xml",
                                      '<?xml version="1.0" encoding="utf-16"?>'),
    "nothing": (b"", "text/plain", ""),
}  # fmt: skip


@pytest.mark.parametrize(("body", "content_type", "expected"), DECODED.values(), ids=DECODED)
def test_decoding_u17(body: bytes, content_type: str, expected: str) -> None:
    assert decoded(body, content_type) == expected


def said(body: bytes, content_type: str) -> DocumentContent:
    return OpenDocument(body, content_type, "http://h.test/x").said


def test_only_web_pages_say_something_for_machines() -> None:
    body = b'<script type="application/ld+json">{"@type": "Article", "name": "worms"}</script>'
    assert OpenDocument(body, "text/html", "http://h.test/x").data
    assert OpenDocument(body, "text/plain", "http://h.test/x").data == {}


def test_a_text_is_what_it_says() -> None:
    body = b"\n a <b>\r\n</plaintext> &amp; c\rd\n"
    assert said(body, "text/plain") == DocumentContent("", "\n a <b>\n</plaintext> &amp; c\nd\n", "", {})
    assert said(b"x" * 2_000 + b"\0y", "text/plain").text == "x" * 2_000 + "y"
    assert OpenDocument(body, "text/plain", "").source == body.decode()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Worms\n\ntext", "Worms"),
        ("text\n\n   ## Worms ##  \n", "Worms"),
        ("# C#\n", "C#"),
        ("Worms\n=====\n", "Worms"),
        ("---\ntitle: no\n---\n\n# Worms\n", "Worms"),
        ("```\n# no\n```\n# Worms", "Worms"),
        ("~~~~\n```\n# no\n~~~~\n# Worms", "Worms"),
        ("#no heading\n\n* list\n\n---\n", ""),
        ("#\n# Worms", ""),
        ("", ""),
    ],
)
def test_a_markdown_text_is_called_by_its_first_heading(text: str, title: str) -> None:
    document = OpenDocument(text.encode(), "text/markdown", "")
    assert document.said.title == title
    assert document.markdown == document.said.text == text


def test_a_plain_text_has_no_title() -> None:
    assert said(b"# Worms", "text/plain").title == ""


@pytest.mark.parametrize(("media", "name"), [(Media.JSON, "json"), (Media.XML, "xml"), (Media.CSV, "csv")])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0\ufeff"), min_size=1))
def test_data_is_a_block_of_code_in_markdown(media: Media, name: str, text: str) -> None:
    held = contents(text.encode(), "x/y; charset=utf-8", media)
    assert held.text == text
    block, *rest = MarkdownIt("commonmark").parse(held.markdown)
    assert (block.type, block.info, rest) == ("fence", name, [])
    assert block.content == text.replace("\0", "\ufffd") + ("" if text.endswith("\n") else "\n")


def test_links_of_texts_are_not_links_of_a_crawl() -> None:
    for kind in ("text/plain", "text/markdown", "application/json", "text/xml", "text/csv"):
        assert (
            OpenDocument(b"[a](https://h.test/a) <a href='/b'>b</a> https://h.test/c", kind, "https://h.test/").links
            == []
        )


def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inchworm.rules.page.document.MAX_TEXT", 10)
    assert said(b"word " * 10, "text/plain") == DocumentContent("", "word word ", "", {"text_capped": True})


@given(st.binary(max_size=300), st.sampled_from(["utf-8", "utf-16", "gbk", "x", "iso-2022-jp", "big5"]))
def test_whatever_bytes_there_are_they_can_be_stored(body: bytes, charset: str) -> None:
    text = contents(body, f"text/plain; charset={charset}", Media.TEXT).text
    json.loads(json.dumps(text).encode())
    text.encode()
    assert "\0" not in text


@pytest.mark.parametrize("line", ["#" + " " * 200_000 + "#", "# " + "# " * 100_000, "=" * 200_000, "`" * 200_000])
def test_no_text_takes_long_m7(line: str) -> None:
    began = process_time()
    contents(line.encode(), "text/markdown", Media.MARKDOWN)
    contents(line.encode(), "application/json", Media.JSON)
    assert process_time() - began < 2
