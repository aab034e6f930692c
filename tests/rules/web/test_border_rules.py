"""Every limit at its border: one less and the limit itself are whole, one more is cut and says so.

What is cut must never be taken for something else that is whole: half a URL is another URL.
"""

from __future__ import annotations

import gzip

import pytest

from inchworm.model import Cookie, FoundUrl, FrontierEntry, Kind, Reason, Seed, Source
from inchworm.rules.metadata import describe
from inchworm.rules.page import parse
from inchworm.rules.page.links import MAX_ANCHOR
from inchworm.rules.web import cookies, robots, scope, sitemap

AROUND = (-1, 0, 1)
MAP = "http://h.test/sitemap.xml"
PAGE = "http://h.test/"
SAFE = "https://h.test/"


def locations(data: bytes, is_cut: bool = False) -> list[str]:
    return [page.url for page in sitemap.read(data, MAP, is_cut=is_cut).pages]


def entries(count: int) -> bytes:
    return b"".join(b"<url><loc>/%d</loc></url>" % number for number in range(count))


# ---- robots.txt


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_a_rule_at_the_border_counts_when_it_is_whole_r6(more: int, ending: bytes) -> None:
    start, rule = b"user-agent: *\n", b"disallow: /a"
    size = robots.MAX_BYTES + more
    data = start + b"#" * (size - len(start) - len(rule) - 1) + b"\n" + rule + ending
    verdicts = [robots.parse(data).allows("x", f"{PAGE}{path}") for path in ("a", "b")]
    assert verdicts == [more == 1, True]


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_line_of_a_robots_txt_r6(more: int) -> None:
    longest = 2083 * 8 - 1
    path = "/" + "a" * (longest + more - len("disallow: /"))
    file = robots.parse(f"user-agent: *\ndisallow: {path}".encode())
    assert not file.allows("x", f"http://h.test{path}")
    assert file.allows("x", f"http://h.test{path[:-1]}") is (more < 1), "as Google has it, a longer one is cut"


def test_what_was_cut_before_it_came_here_ends_with_its_last_whole_line_r6() -> None:
    assert robots.whole_lines(b"disallow: /a\ndisallow: /") == b"disallow: /a\ndisallow: /"
    assert robots.whole_lines(b"disallow: /a\ndisallow: /", is_cut=True) == b"disallow: /a\n"
    assert robots.whole_lines(b"disallow: /a\rdisallow: /", is_cut=True) == b"disallow: /a\r"
    assert robots.whole_lines(b"disallow: /", is_cut=True) == b""


# ---- sitemaps


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_the_last_line_of_a_sitemap_at_the_border_x5(more: int, pack, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"http://h.test/first\nhttp://h.test/last"
    monkeypatch.setattr(sitemap, "MAX_BYTES", len(data) - more)
    found = sitemap.read(pack(data), MAP)
    assert [page.url for page in found.pages] == ["http://h.test/first", "http://h.test/last"][: 1 if more > 0 else 2]
    assert bool(found.note) is (more > 0)


@pytest.mark.parametrize("more", AROUND)
def test_the_last_entry_of_a_sitemap_at_the_border_x5(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"<urlset><url><loc>/first</loc></url><url><loc>/last</loc>"
    monkeypatch.setattr(sitemap, "MAX_BYTES", len(data) - more)
    assert len(locations(data + b"</url></urlset>")) == (1 if more > 0 else 2)


def test_a_sitemap_that_was_cut_before_it_came_here_says_so_x5() -> None:
    found = sitemap.read(b"http://h.test/first\nhttp://h.test/las", MAP, is_cut=True)
    assert ([page.url for page in found.pages], found.note[:9]) == (["http://h.test/first"], "more than")
    assert locations(b"<urlset><url><loc>/first</loc></url><url><loc>/las", is_cut=True) == ["http://h.test/first"]


@pytest.mark.parametrize("more", AROUND)
def test_the_number_of_urls_in_a_sitemap_x5(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_URLS", 10)
    found = sitemap.read(b"<urlset>" + entries(10 + more) + b"</urlset>", MAP)
    assert (len(found.pages), bool(found.note)) == (min(10 + more, 10), more > 0)
    again = sitemap.read(b"<urlset>" + entries(10 + more) + entries(10) + b"</urlset>", MAP)
    assert bool(again.note) is (more > 0), "what is named twice is no more than it was"


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_location_in_a_sitemap(more: int) -> None:
    address = PAGE + "a" * (16 * 1024 + more - len(PAGE))
    expected = [address] if more < 1 else []
    assert locations(f"<urlset><url><loc>{address}</loc></url></urlset>".encode()) == expected
    assert locations(address.encode()) == expected


@pytest.mark.parametrize("blanks", [16 * 1024 - 12, 16 * 1024, 16 * 1024 + 1, 300_000])
def test_blanks_before_a_location_do_not_cut_it_to_another(blanks: int) -> None:
    """Parsers tell a text piece by piece, and the blanks use up the room."""
    data = b"<urlset><url><loc>" + b"\n" * blanks + b"http://h.test/a?x=1&amp;y=2</loc></url></urlset>"
    assert set(locations(data)) <= {"http://h.test/a?x=1&y=2"}
    line = b" " * blanks + b"http://h.test/" + b"a" * 300_000 + b"\nhttp://h.test/next"
    assert locations(line) == ["http://h.test/next"]


@pytest.mark.parametrize("more", AROUND)
def test_nesting_in_a_sitemap_x1(more: int) -> None:
    depth = 31 + more  # and the root
    data = b"<urlset><url><loc>/a</loc></url>" + b"<a>" * depth + b"</a>" * depth + b"</urlset>"
    assert bool(sitemap.read(data, MAP).note) is (more > 0)


# ---- cookies


def read_cookie(line: str) -> Cookie | None:
    found = cookies.read(f"HTTP/1.1 200 OK\r\nSet-Cookie: {line}\r\n\r\n".encode(), SAFE, 0)
    return found[0] if found else None


def cookie(name: str, value: str, domain: str = "h.test") -> Cookie:
    return Cookie(domain, "/", name, value, host_only=True, secure=False, expires_ms=0)


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_largest_cookie(more: int, letter: str) -> None:
    """Counted in bytes, as browsers do."""
    size = len(letter.encode())
    room = cookies.MAX_COOKIE - len("a") + more
    value = letter * (room // size) + "x" * (room % size)
    assert (read_cookie(f"a={value}") is None) is (more > 0)


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_attribute_of_a_cookie(more: int) -> None:
    path = "/" + "p" * (1024 + more - 1)
    made = read_cookie(f"a=1; path= {path} ")
    assert made is not None
    assert made.path == (path if more < 1 else "/")


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_longest_header_of_cookies(more: int, letter: str) -> None:
    """With all that stands between them."""
    first, size = "a=" + "x" * 4000, len(letter.encode())
    room = cookies.MAX_HEADER - len(first) - len("; b=") + more
    value = letter * (room // size) + "x" * (room % size)
    jar = cookies.Jar([cookie("a", first[2:]), cookie("b", value)])
    header = jar.header(PAGE, 0)
    assert header == (f"{first}; b={value}" if more < 1 else first)
    assert len(header.encode()) <= cookies.MAX_HEADER


@pytest.mark.parametrize("more", AROUND)
def test_the_number_of_cookies_of_a_domain(more: int) -> None:
    count = cookies.MAX_PER_DOMAIN + more
    jar = cookies.Jar(cookie(f"n{number}", "1") for number in range(count))
    names = jar.header(PAGE, 0).split("; ")
    assert (len(names), names[0]) == (min(count, cookies.MAX_PER_DOMAIN), "n1=1" if more > 0 else "n0=1")


@pytest.mark.parametrize("more", AROUND)
def test_the_number_of_domains_with_cookies(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "MAX_DOMAINS", 3)
    jar = cookies.Jar(cookie("a", "1", f"h{number}.test") for number in range(3 + more))
    assert (jar.header("http://h0.test/", 0) == "") is (more > 0)


# ---- URLs and pages


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_url_u2(more: int) -> None:
    judge = scope.Judge(scope.Scope("path", (Seed(1, PAGE, "h.test", "/"),)))
    parent = FrontierEntry(1, PAGE, PAGE, Kind.PAGE, Source.INITIAL, 1, 0, 0, 0, (0, 0))
    url = PAGE + "a" * (scope.MAX_URL_LENGTH + more - len(PAGE))
    expected = Reason.URL_TOO_LONG if more > 0 else None
    assert judge.judge(FoundUrl(url, url), parent).reason is expected
    assert judge.judge(FoundUrl(PAGE, url), parent).reason is expected


def html(markup: str, resources: bool = False, anchors: bool = False):
    return parse.read(
        markup.encode(), "text/html; charset=utf-8", PAGE, parse.How(resources, text=True, anchors=anchors)
    )


@pytest.mark.parametrize("more", AROUND)
def test_the_number_of_links_of_a_page_m2(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inchworm.rules.page.links.MAX_LINKS", 10)
    many = "".join(f"<a href={number}>" for number in range(10 + more))
    reading = html(many)
    assert (len(reading.links), reading.meta) == (min(10 + more, 10), {"links_capped": True} if more > 0 else {})
    reading = html(many.replace("<a href=0>", "<img src=0>"), resources=True)
    assert (len(reading.links), reading.meta) == (min(10 + more, 10), {"links_capped": True} if more > 0 else {})


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_title_m5(more: int) -> None:
    title = "t" * (parse.MAX_TITLE + more)
    reading = html(f"<title>{title}</title>")
    assert (reading.title, reading.meta) == (title[: parse.MAX_TITLE], {"title_capped": True} if more > 0 else {})


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_text_m5(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text as it is laid out may be longer than its words."""
    markup = "<main><h1>One</h1><p>This is a sentence.<p>And here comes another one.</main>"
    whole = html(markup)
    for size in (len(whole.words), len(whole.text)):
        monkeypatch.setattr(parse, "MAX_TEXT", size - more)
        reading = html(markup)
        is_cut = size - more < max(len(whole.text), len(whole.words))
        assert reading.meta.get("text_capped", False) is is_cut
        assert (reading.text, reading.words) == (whole.text[: size - more], whole.words[: size - more])


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_anchor(more: int) -> None:
    text = "t" * (MAX_ANCHOR + more)
    (link,) = html(f"<a href=/a>{text}</a>", anchors=True).links
    assert link.anchor == text[:MAX_ANCHOR]


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_address_that_a_page_says_of_itself(more: int) -> None:
    """One that is cut would be another."""
    address = PAGE + "a" * (describe.MAX_ADDRESS + more - len(PAGE))
    assert html(f"<link rel=canonical href={address}>").canonical == (address if more < 1 else "")


@pytest.mark.parametrize("more", AROUND)
def test_the_longest_field_that_a_page_says_of_itself(more: int) -> None:
    name = "n" * (describe.MAX_FIELD + more)
    assert html(f"<meta name=author content={name}>").meta == {"author": name[: describe.MAX_FIELD]}
