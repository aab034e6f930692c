"""Cookies: what a server may set, where it goes, and that nobody else gets it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.model import Cookie
from inchworm.rules.web import cookies
from inchworm.rules.web.cookies import Jar

NOW = 1_800_000_000_000
HOUR = 3_600_000
HTTPS = "https://www.example.co.uk/docs/page.html?q=1"
HTTP = "http://www.example.co.uk/docs/page.html"


def read(line: str, url: str = HTTPS) -> Cookie | None:
    head = f"HTTP/1.1 200 OK\r\nA: b\r\nSet-Cookie: {line}\r\n\r\n".encode()
    found = cookies.read(head, url, NOW)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a=1", ("www.example.co.uk", "/docs", "a", "1", True, False, 0)),
        (" a = 1 ; Path=/ ; Secure; HttpOnly", ("www.example.co.uk", "/", "a", "1", True, True, 0)),
        ("a=b=c; path=docs", ("www.example.co.uk", "/docs", "a", "b=c", True, False, 0)),
        ("lonely", ("www.example.co.uk", "/docs", "", "lonely", True, False, 0)),
        ("a=", ("www.example.co.uk", "/docs", "a", "", True, False, 0)),
        ("a=1; domain=.example.co.uk", ("example.co.uk", "/docs", "a", "1", False, False, 0)),
        ("a=1; domain=WWW.Example.co.UK", ("www.example.co.uk", "/docs", "a", "1", False, False, 0)),
        ("a=1; domain=", ("www.example.co.uk", "/docs", "a", "1", True, False, 0)),
        ("a=1; max-age=60", ("www.example.co.uk", "/docs", "a", "1", True, False, NOW + 60_000)),
        ("a=1; max-age=0", ("www.example.co.uk", "/docs", "a", "1", True, False, 1)),
        ("a=1; max-age=-1", ("www.example.co.uk", "/docs", "a", "1", True, False, 1)),
        ("a=1; max-age=soon", ("www.example.co.uk", "/docs", "a", "1", True, False, 0)),
        (f"a=1; max-age={'9' * 5000}", ("www.example.co.uk", "/docs", "a", "1", True, False, 0)),
        ("a=1; expires=Thu, 01 Jan 1970 00:00:00 GMT", ("www.example.co.uk", "/docs", "a", "1", True, False, 1)),
        ("__Host-a=1; Secure; Path=/", ("www.example.co.uk", "/", "__Host-a", "1", True, True, 0)),
    ],
)
def test_what_a_server_sets(line: str, expected: tuple[object, ...]) -> None:
    assert read(line) == Cookie(*expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("=", HTTPS),
        ("", HTTPS),
        ("a=1; Domain=co.uk", HTTPS),
        ("a=1; Domain=.uk", HTTPS),
        ("a=1; Domain=com", "https://example.com/"),
        ("a=1; Domain=other.example.co.uk", HTTPS),
        ("a=1; Domain=ww.example.co.uk", HTTPS),
        ("a=1; Domain=0.0.1", "http://127.0.0.1/"),
        ("a=1; Domain=github.io", "https://me.github.io/"),
        ("a=1; Secure", HTTP),
        ("__Secure-a=1", HTTPS),
        ("__Host-a=1; Secure", HTTPS),
        ("__host-a=1; Secure; Path=/; Domain=www.example.co.uk", HTTPS),
        ("a=\x01", HTTPS),
        ("a=" + "x" * 5000, HTTPS),
    ],
)
def test_what_a_server_may_not_set(line: str, url: str) -> None:
    assert read(line, url) is None


def test_a_host_that_is_a_public_suffix_sets_for_itself_only() -> None:
    found = read("a=1; Domain=github.io", "https://github.io/")
    assert found is not None
    assert found.host_only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wed, 09 Jun 2027 10:18:14 GMT", 1_812_536_280_000),
        ("Wed, 09-Jun-27 10:18:14 GMT", 1_812_536_280_000),
        ("Jun 9 10:18:14 2027", 1_812_536_280_000),
        ("Wed, 30 Feb 2027 10:18:14 GMT", 0),
        ("tomorrow", 0),
        ("9999999999", 0),
    ],
)
def test_dates_in_any_order(text: str, expected: int) -> None:
    found = read(f"a=1; expires={text}")
    assert found is not None
    assert found.expires_ms == expected


@pytest.mark.parametrize(
    ("line", "goes_to", "stays_away"),
    [
        ("a=1", "https://www.example.co.uk/docs/", "https://x.www.example.co.uk/docs/"),
        ("a=1; Path=/docs", "https://www.example.co.uk/docs/deep/x", "https://www.example.co.uk/docs-old/x"),
        ("a=1; Path=/", "http://www.example.co.uk:8080/", "https://example.co.uk/"),
        ("a=1; Path=/; Secure", "https://www.example.co.uk/", "http://www.example.co.uk/"),
        ("a=1; Path=/; Domain=example.co.uk", "https://b.example.co.uk/", "https://notexample.co.uk/"),
        ("a=1; Path=/; Domain=example.co.uk", "https://example.co.uk/", "https://co.uk/"),
    ],
)
def test_where_a_cookie_goes(line: str, goes_to: str, stays_away: str) -> None:
    found = read(line)
    assert found is not None
    jar = Jar([found])
    assert jar.header(goes_to, NOW) == "a=1"
    assert jar.header(stays_away, NOW) == ""


def test_longer_paths_first_then_as_they_came() -> None:
    jar = Jar([c for line in ("a=1; path=/", "b=2; path=/", "c=3; path=/docs") if (c := read(line))])
    assert jar.header(HTTPS, NOW) == "c=3; a=1; b=2"


def test_a_cookie_is_renewed_and_ends() -> None:
    first, second, ended = (read(f"a={n}; path=/; max-age={age}") for n, age in ((1, 60), (2, 60), (3, 0)))
    assert first and second and ended
    jar = Jar()
    assert jar.put(first)
    assert not jar.put(first)
    assert jar.put(second)
    assert jar.header(HTTPS, NOW) == "a=2"
    assert jar.header(HTTPS, NOW + HOUR) == ""
    assert jar.put(ended)
    assert not jar.put(ended)
    assert jar.header(HTTPS, NOW) == ""


def test_renewing_by_the_minute_is_no_news() -> None:
    jar = Jar()
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; max-age=86400\r\n\r\n"
    news = [jar.put(*cookies.read(head, HTTPS, NOW + second * 1000)) for second in range(120)]
    assert sum(news) <= 3


def test_what_came_in_the_open_does_not_replace_what_was_safe() -> None:
    safe, open_one, other = read("a=1; path=/; secure"), read("a=2; path=/", HTTP), read("b=2; path=/", HTTP)
    assert safe and open_one and other
    jar = Jar([safe])
    assert not jar.accepts(open_one, HTTP)
    assert jar.accepts(open_one, HTTPS)
    assert jar.accepts(other, HTTP)


def test_the_jar_is_bounded() -> None:
    jar = Jar()
    for number in range(4000):
        one = read(f"name{number}={'x' * 1000}; path=/")
        assert one
        jar.put(one)
    header = jar.header(HTTPS, NOW)
    assert len(header) <= cookies.MAX_HEADER
    assert sum(len(jar_of) for jar_of in jar._domains.values()) <= cookies.MAX_PER_DOMAIN
    for number in range(cookies.MAX_DOMAINS + 10):
        jar.put(Cookie(f"h{number}.test", "/", "a", "1", True, False, 0))
    assert len(jar._domains) == cookies.MAX_DOMAINS


@given(st.binary(max_size=300))
def test_nothing_that_a_server_sends_raises(line: bytes) -> None:
    for one in cookies.read(b"HTTP/1.1 200 OK\r\nSet-Cookie:" + line + b"\r\n\r\n", HTTPS, NOW):
        jar = Jar([one])
        assert "\r" not in jar.header(HTTPS, NOW)
        assert "\n" not in jar.header(HTTPS, NOW)


def test_a_deleted_cookie_takes_no_room_and_blocks_nobody() -> None:
    kept, ended = read("kept=1; path=/"), read("sid=; path=/; secure; max-age=0")
    assert kept and ended
    jar = Jar([kept])
    for number in range(cookies.MAX_PER_DOMAIN + 10):
        gone = read(f"gone{number}=; path=/; max-age=0")
        assert gone
        assert not jar.put(gone)
    assert jar.header(HTTPS, NOW) == "kept=1"
    jar.put(ended)
    again = read("sid=2; path=/", HTTP)
    assert again
    assert jar.accepts(again, HTTP)


def test_a_part_of_a_domain_cannot_plant_what_another_part_set_safely() -> None:
    safe = read("sid=1; path=/; secure", "https://b.example.org/")
    evil = read("sid=2; path=/; domain=example.org", "http://a.example.org/")
    assert safe and evil
    assert not Jar([safe]).accepts(evil, "http://a.example.org/")


def test_what_is_renewed_comes_last_as_it_does_after_a_restart() -> None:
    first, second, renewed = (read(f"{pair}; path=/") for pair in ("a=1", "b=2", "a=3"))
    assert first and second and renewed
    assert Jar([first, second, renewed]).header(HTTPS, NOW) == "b=2; a=3"


def test_a_cookie_belongs_to_a_host_and_not_to_a_port() -> None:
    """As RFC 6265 has it and as browsers do (docs/decisions/0020)."""
    cookie = read("sid=1; path=/", "http://h.test:8080/")
    assert cookie
    jar = Jar([cookie])
    sent = {url: jar.header(url, NOW) for url in ("http://h.test/", "http://h.test:9090/", "https://h.test/")}
    assert set(sent.values()) == {"sid=1"}
    assert jar.header("http://other.test:8080/", NOW) == ""
    assert jar.header("http://sub.h.test:8080/", NOW) == ""


@pytest.mark.parametrize(
    ("safe_path", "open_path", "accepted"),
    [
        ("/", "/", False),
        ("/", "/docs", False),
        ("/login", "/login", False),
        ("/login", "/login/", False),
        ("/login", "/login/en", False),
        ("/login/", "/login/en", False),
        ("/login/", "/login/", False),
        ("/login/", "/login", True),
        ("/login", "/", True),
        ("/login", "/log", True),
        ("/login", "/loginx", True),
        ("/login", "/other/login", True),
    ],
)
def test_a_path_that_would_hide_a_safe_cookie_is_refused_in_the_open(
    safe_path: str, open_path: str, accepted: bool
) -> None:
    """Of two cookies of one name, that of the longer path is sent first: it must not come from who can listen."""
    safe, planted = read(f"a=1; path={safe_path}; secure"), read(f"a=2; path={open_path}", HTTP)
    assert safe and planted
    assert Jar([safe]).accepts(planted, HTTP) is accepted
    assert Jar([safe]).accepts(planted, HTTPS)
    assert Jar([safe._replace(secure=False)]).accepts(planted, HTTP)
