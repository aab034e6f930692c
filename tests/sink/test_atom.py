"""The feed of what changed, as a feed reader parses it."""

from __future__ import annotations

from xml.etree import ElementTree

from inchworm.rules.change.groups import ModifiedGroup, Passage
from inchworm.sink.atom import ChangeFeed, FeedEntry, written

ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert(1)</script>]]>&amp;\x00\x1b\ud800"
NOTICE = ModifiedGroup(
    294, ("http://a.test/1",), (Passage("text", "", "Old version."), Passage("link", "", EVIL)), True
)
UNREAD = ModifiedGroup(1, ("javascript:alert(2)",), (), note="too <large>")
ENTRY = FeedEntry(
    "urn:uuid:1", f"run 3 {EVIL}", 1_000, "/crawls/a/compare?x=1&y=2", [NOTICE, UNREAD], 300, [EVIL], 7, [], 0
)
FEED = ChangeFeed("urn:uuid:0", f"Changes of {EVIL}", 1_000, [ENTRY])


def text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{ATOM}{name}") or ""


def test_it_is_valid_whatever_pages_say() -> None:
    feed = ElementTree.fromstring(written(FEED, "http://me.test/changes.atom"))
    assert feed.tag == f"{ATOM}feed"
    assert text(feed, "id") == "urn:uuid:0"
    assert text(feed, "updated") == "1970-01-01T00:00:01.000Z"
    assert feed.findtext(f"{ATOM}author/{ATOM}name") == "inchworm"
    assert [one.get("href") for one in feed.findall(f"{ATOM}link[@rel='self']")] == ["http://me.test/changes.atom"]
    (entry,) = feed.findall(f"{ATOM}entry")
    assert (text(entry, "id"), text(entry, "updated")) == ("urn:uuid:1", "1970-01-01T00:00:01.000Z")
    assert text(entry, "title") == "run 3 <script>alert(1)</script>]]>&amp;\ufffd\ufffd\ufffd"
    assert [one.get("href") for one in entry.findall(f"{ATOM}link")] == ["/crawls/a/compare?x=1&y=2"]


def test_people_read_what_differs_and_no_page_can_slip_markup_in() -> None:
    (entry,) = ElementTree.fromstring(written(FEED)).findall(f"{ATOM}entry")
    content = entry.find(f"{ATOM}content")
    assert content is not None
    assert content.get("type") == "html"
    html = content.text or ""
    assert "<h3>300 modified</h3>" in html
    assert '<a href="http://a.test/1">http://a.test/1</a> and 293 more<br>+ <ins>Old version.</ins>' in html
    assert "… and 5 more" in html
    assert "… and 6 more" in html
    assert "too &lt;large&gt;" in html
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert "deleted" not in html


def test_nothing_to_tell_is_a_feed_too() -> None:
    feed = ElementTree.fromstring(written(FEED._replace(entries=[])))
    assert feed.findall(f"{ATOM}entry") == []
    assert text(feed, "title").startswith("Changes of")
