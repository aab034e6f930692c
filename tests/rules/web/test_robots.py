"""robots.txt: the cases of RFC 9309 and of Google's parser, broken files, and that nothing takes long."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.rules.web import robots as module
from inchworm.rules.web.robots import MAX_BYTES, Robots, Rule, parse
from inchworm.rules.web.robots import _path_and_query as path_and_query
from inchworm.rules.web.robots import _rule as rule

# A name, a robots.txt with its lines between bars, and what agents may fetch or may not.
GOOGLE = """
an empty file allows all
|
FooBot yes /

a plain rule
user-agent: FooBot | disallow: /
FooBot no / /x/y
QuxBot yes /x/y

other keys are no rules
foo: FooBot | bar: /
FooBot yes /x/y

the colon may be missing
user-agent FooBot | disallow /
FooBot no /x/y

but three words are a sentence
user-agent FooBot | disallow / now
FooBot yes /x/y

groups of one agent are merged, blank lines end none, agents without rules between them share
allow: /foo/bar/ | | user-agent: FooBot | disallow: / | allow: /x/ | user-agent: BarBot | disallow: / |\
allow: /y/ | | | allow: /w/ | user-agent: BazBot | | user-agent: FooBot | allow: /z/ | disallow: /
FooBot yes /x/b /z/d
FooBot no /y/c /foo/bar/
BarBot yes /y/c /w/a
BarBot no /z/d /foo/bar/
BazBot yes /z/d
BazBot no /foo/bar/

a sitemap ends no group
User-agent: BarBot | Sitemap: http://h/s | User-agent: * | Disallow: /
FooBot no /
BarBot no /

nor does an unknown line
User-agent: BarBot | Unknown: x | User-agent: * | Disallow: /
BarBot no /

nor does a crawl-delay
User-agent: BarBot | Crawl-delay: 9 | User-agent: * | Disallow: /
BarBot no /

but an empty disallow does
User-agent: BarBot | Disallow: | User-agent: * | Disallow: /
BarBot yes /
FooBot no /

keys in capitals
USER-AGENT: FooBot | ALLOW: /x/ | DISALLOW: /
FooBot yes /x/y
FooBot no /a/b

keys in any case
uSeR-aGeNt: FooBot | AlLoW: /x/ | dIsAlLoW: /
FooBot yes /x/y
FooBot no /a/b

agents in any case, and only up to the first blank
User-Agent: * | Disallow: / | User-Agent: FoO bAr | Allow: /x/ | Disallow: /
Foo yes /x/y
FOO yes /x/y
foo no /a/b

agents with a version
User-Agent: foobot/2.1 | Allow: /x/ | Disallow: /
FooBot yes /x/y
FooBot no /a/b

a star followed by words is a star
User-agent: * baz | Disallow: /
FooBot no /

a star followed by letters is not
User-agent: *baz | Disallow: /
FooBot yes /

longer and shorter names are other agents
User-agent: FooBotNews | User-agent: Foo | Disallow: /
FooBot yes /

the star is for those without a group
user-agent: * | allow: / | user-agent: FooBot | disallow: /
FooBot no /x/y
BarBot yes /x/y

an own group hides the star
User-agent: * | Disallow: /x/ | User-agent: FooBot | Disallow: /y/
FooBot yes /x/
FooBot no /y/

an own group without rules too
User-agent: * | Disallow: / | User-agent: FooBot | Disallow:
FooBot yes /x

a group of an agent and the star
User-agent: FooBot | User-agent: * | Disallow: /x | User-agent: FooBot | Disallow: /y
FooBot no /x /y
BarBot no /x
BarBot yes /y

paths have a case
user-agent: FooBot | disallow: /X/
FooBot yes /x/y
FooBot no /X/y

the longest wins, disallow
user-agent: FooBot | disallow: /x/page.html | allow: /x/
FooBot yes /x/
FooBot no /x/page.html

the longest wins, allow
user-agent: FooBot | allow: /x/page.html | disallow: /x/
FooBot yes /x/page.html
FooBot no /x/

empty rules are none
user-agent: FooBot | disallow: | allow:
FooBot yes /x/page.html

allow wins a tie
user-agent: FooBot | disallow: / | allow: /
FooBot yes /x/page.html

a slash makes it longer
user-agent: FooBot | disallow: /x | allow: /x/
FooBot yes /x/
FooBot no /x

stars count as length
user-agent: FooBot | allow: /page | disallow: /*.html
FooBot yes /page
FooBot no /page.html

until they lose
user-agent: FooBot | allow: /x/page. | disallow: /*.html
FooBot yes /x/page.html
FooBot no /x/y.html

queries are compared as they are
user-agent: FooBot | disallow: / | allow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par
FooBot yes /foo/bar?qux=taz&baz=http://foo.bar?tar&par

letters beyond ASCII are escaped
user-agent: FooBot | disallow: / | allow: /foo/bar/ツ
FooBot yes /foo/bar/%E3%83%84 /foo/bar/%e3%83%84
FooBot no /foo/bar/ツ

escapes are compared in capitals
user-agent: FooBot | disallow: / | allow: /foo/bar/%e3%83%84
FooBot yes /foo/bar/%E3%83%84
FooBot no /foo/bar/ツ

escapes of plain letters stay escapes
user-agent: FooBot | disallow: / | allow: /foo/bar/%62%61%7A
FooBot yes /foo/bar/%62%61%7A
FooBot no /foo/bar/baz

a star in the middle
user-agent: FooBot | disallow: / | allow: /foo/*/qux
FooBot yes /foo/bar/qux /foo//qux /foo/a/b/quxx
FooBot no /foo/qux /foo/bar/quz

a dollar is the end
user-agent: FooBot | disallow: /foo/bar$ | allow: /foo/bar/qux
FooBot yes /foo/bar/ /foo/bar/qux /foo/bar?
FooBot no /foo/bar

a dollar elsewhere is a dollar
user-agent: FooBot | disallow: /a$b
FooBot yes /a /ab
FooBot no /a$b /a$bc

comments end a line
User-agent: FooBot | # Disallow: / | Disallow: /foo/quz#qux | Allow: /
FooBot yes /foo/bar
FooBot no /foo/quz

index.html is its directory
User-Agent: * | Allow: /s/index.html | Disallow: /
foobot yes /s/ /s/index.html
foobot no /s/index.htm /s/x /x

index.htm too
User-Agent: * | Allow: /index.htm | Disallow: /
foobot yes / /index.htm /index.html
foobot no /x

but only when allowed
User-Agent: * | Disallow: /index.html
foobot yes /
foobot no /index.html

a path is a beginning
user-agent: FooBot | disallow: / | allow: /fish
FooBot yes /fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything
FooBot no /bar /Fish.asp /catfish /?id=fish

a star at the end says nothing new
user-agent: FooBot | disallow: / | allow: /fish*
FooBot yes /fish /fish.html /fish/salmon.html /fishheads /fish.html?id=anything
FooBot no /bar /Fish.bar /catfish /?id=fish

a directory is not its name
user-agent: FooBot | disallow: / | allow: /fish/
FooBot yes /fish/ /fish/salmon /fish/?salmon /fish/?id=anything
FooBot no /fish /fish.html /Fish/Salmon.html

an ending anywhere
user-agent: FooBot | disallow: / | allow: /*.php
FooBot yes /a.php /f/a.php /f/a.php?x //f/any.php.file.html /a.php/ /index?f=a.php/
FooBot no /bar /php/ /index?php /windows.PHP

an ending at the end
user-agent: FooBot | disallow: / | allow: /*.php$
FooBot yes /a.php /f/a.php
FooBot no /a.php?x /a.php/ /a.php5 /php/ /a?php /aaaphpaaa //windows.PHP

a beginning and an ending
user-agent: FooBot | disallow: / | allow: /fish*.php
FooBot yes /fish.php /fishheads/catfish.php?x
FooBot no /Fish.PHP

the root alone
user-agent: FooBot | allow: /$ | disallow: /
FooBot yes /
FooBot no /page.html

a rule without a slash matches nothing
user-agent: FooBot | disallow: foo
FooBot yes /foo

unless it begins with a star
user-agent: FooBot | disallow: *foo
FooBot yes /bar
FooBot no /x/foo

typing mistakes
useragent: a | disalow: /1 | dissallow: /2 | dissalow: /3 | diasllow: /4 | disallaw: /5
a yes /6
a no /1 /2 /3 /4 /5

words that begin well
user agent: a | disallowed: /1 | allowed: /1/2
a yes /1/2
a no /1

robots.txt itself may always be read
user-agent: * | disallow: /
a yes /robots.txt
a no /robots.txt?x /robots.txts
"""


def cases() -> Iterator[tuple[str, str, str, str, bool]]:
    for block in GOOGLE.strip().split("\n\n"):
        name, text, *verdicts = block.splitlines()
        for agent, verdict, *paths in map(str.split, verdicts):
            for path in paths:
                yield name, text, agent, path, verdict == "yes"


@pytest.mark.parametrize(("name", "text", "agent", "path", "allowed"), list(cases()))
def test_verdicts_of_google_r1(name, text, agent, path, allowed):
    robots = parse(text.replace("|", "\n").encode())
    assert robots.allows(agent, "http://foo.bar" + path) is allowed


def test_blanks_of_all_kinds():
    robots = parse(b"\t user-agent\t FooBot \r\n  disallow\t:\t/x \n disallow\t/y")
    assert not robots.allows("FooBot", "http://h/x")
    assert not robots.allows("FooBot", "http://h/y")


RFC = b"""
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("anybot", "/x.gif", False),
        ("anybot", "/x.gif?", True),
        ("anybot", "/example/page.html", False),
        ("anybot", "/publications/x", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/example/", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("barbot", "/x.gif", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_example_of_the_rfc_r1(agent, path, allowed):
    assert parse(RFC).allows(agent, "https://h" + path) is allowed


@pytest.mark.parametrize("agent", ["FooBot/2.1 (+https://foo.example/bot)", "foobot", "FooBot (x)", "FooBot\t1"])
def test_an_agent_is_its_product_token(agent):
    robots = parse(b"User-agent: foobot\nDisallow: /a\nCrawl-delay: 3")
    assert not robots.allows(agent, "http://h/a")
    assert robots.delay(agent) == 3


def test_an_agent_without_a_token_is_nobody():
    robots = parse(b"User-agent: FooBot\nDisallow: /\n")
    assert robots.allows("", "http://h/")
    assert robots.allows("ツ", "http://h/")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", "/"),
        ("http://www.example.com", "/"),
        ("http://www.example.com/a/", "/a/"),
        ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
        ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("http://example.com:8080?a", "/?a"),
        ("example.com/a", "/a"),
        ("a/b", "/b"),
        ("/a", "/a"),
        ("example.com/a;b#c", "/a;b"),
        ("//a/b/c", "/b/c"),
        ("http://h/%aa%a", "/%AA%a"),
    ],
)
def test_path_and_query(url, path):
    assert path_and_query(url) == path


ENDINGS = [b"\n", b"\r\n", b"\r", b"\n\r", b"\r\r\n"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_line_ends_and_byte_order_marks_r7(ending, mark):
    robots = parse(mark + ending.join([b"User-Agent: foo", b"Allow: /some", b"", b"Disallow: /"]))
    assert robots.allows("foo", "http://h/some/x")
    assert not robots.allows("foo", "http://h/other")


def test_a_mark_in_the_wrong_place_spoils_its_line():
    assert parse(b"\xef\x11\xbfUser-Agent: foo\nDisallow: /").allows("foo", "http://h/")
    assert parse(b"User-Agent: foo\n\xef\xbb\xbfDisallow: /").allows("foo", "http://h/")


def test_long_lines_are_cut():
    longest = 2083 * 8 - 1
    known = "/x/" + "a" * (longest - len("disallow: /x/"))
    robots = parse(f"user-agent: foo\ndisallow: {known}/qux\n".encode())
    assert robots.allows("foo", "http://h/fux")
    assert not robots.allows("foo", f"http://h{known}/fux")
    assert robots.allows("foo", f"http://h{known[:-1]}")


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("user-agent: *\ncrawl-delay: 30", 30.0),
        ("user-agent: *\nCrawl-Delay:0.1 # s", 0.1),
        ("user-agent: *\ncrawl-delay: 86400", 86400.0),
        ("user-agent: *\ncrawl-delay: 0", 0.0),
        ("user-agent: *\ncrawl-delay: .5", 0.5),
        ("user-agent: *\ncrawl-delay: -1", None),
        ("user-agent: *\ncrawl-delay: abc", None),
        ("user-agent: *\ncrawl-delay: 1_000", None),
        ("user-agent: *\ncrawl-delay: nan", None),
        ("user-agent: *\ncrawl-delay: inf", None),
        ("user-agent: *\ncrawl-delay: 1e9", None),
        ("user-agent: *\ncrawl-delay: 10s", None),
        ("user-agent: *\ncrawl-delay:", None),
        ("user-agent: *\ncrawl-delay: " + "9" * 400, None),
        ("crawl-delay: 5\nuser-agent: *\ndisallow: /", None),
        ("user-agent: a\ncrawl-delay: 5\nuser-agent: *\ndisallow: /x", None),
        ("user-agent: inchworm\ndisallow: /x\nuser-agent: *\ncrawl-delay: 5", None),
        ("user-agent: a\nuser-agent: inchworm\ndisallow: /x\ncrawl-delay: 7\n", 7.0),
        ("user-agent: *\ncrawl-delay: 5\nuser-agent: inchworm\ncrawl-delay: 6", 6.0),
        ("user-agent: *\ncrawl-delay: 5\nallow: /\nuser-agent: *\ncrawl-delay: 9\nallow: /", 9.0),
        ("user-agent: *\ncrawl-delay: 9\nallow: /\nuser-agent: *\ncrawl-delay: 5\nallow: /", 9.0),
    ],
)
def test_crawl_delay_r9(text, delay):
    assert parse(text.encode()).delay("inchworm/1.0") == delay


def test_sitemaps():
    text = """
    Sitemap: https://h/a.xml
    user-agent: x
    SITEMAP:http://h/b.xml?c=d # comment
    site-map: https://h/a.xml
    sitemap: /relative.xml
    sitemap: ftp://h/a.xml
    sitemap: //h/c.xml
    sitemap: http://bücher.example/ü
    sitemap
    """
    assert parse(text.encode()).sitemaps == (
        "https://h/a.xml",
        "http://h/b.xml?c=d",
        "http://xn--bcher-kva.example/%C3%BC",
    )


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body>\nUser-agent: *\nDisallow: /\n</body></html>",
        b"\n  <!DOCTYPE html>\n<title>404</title>\nUser-agent: *\nDisallow: /\nSitemap: http://h/",
        b'\xef\xbb\xbf<?xml version="1.0"?><html>\nUser-agent: *\nDisallow: /',
        b"<!-- 404 -->\n<HTML>\nUser-agent: *\nDisallow: /",
        "User-agent: *\nDisallow: /".encode("utf-16"),
        b"User-\0agent: *\nDisallow: /",
        b"\0\0\0\0",
        b"\x1f\x8b\x08\x00",
    ],
)
def test_what_is_no_robots_txt_has_no_rules_r7(page):
    robots = parse(page)
    assert robots.allows("a", "http://h/")
    assert robots.delay("a") is None
    assert robots.sitemaps == ()


def test_a_comment_of_another_language_is_only_a_strange_line():
    assert not parse(b"<!-- rules -->\nUser-agent: *\nDisallow: /").allows("a", "http://h/")


def test_only_the_first_500_kib_count_r6():
    start = b"user-agent: *\ndisallow: /early\n"
    filler = b"#" * 99 + b"\n"
    early = start + filler * 5000 + b"disallow: /still\n"
    assert len(early) > 500_000
    robots = parse(early + filler * 1000 + b"disallow: /late\n")
    assert not robots.allows("a", "http://h/early")
    assert not robots.allows("a", "http://h/still")
    assert robots.allows("a", "http://h/late")


def test_a_rule_on_the_border_is_not_cut_to_a_wider_one_r6():
    start = b"user-agent: *\ndisallow: /early\n"
    rule_start = b"disallow: /"
    filler = b"#" * (MAX_BYTES - len(start) - len(rule_start) - 1) + b"\n"
    robots = parse(start + filler + rule_start + b"private\n")
    assert robots.allows("a", "http://h/public")
    assert not robots.allows("a", "http://h/early")


PATTERNS = st.text(alphabet="/ab*$", max_size=10)


@given(PATTERNS, st.text(alphabet="/ab$", max_size=12))
@settings(max_examples=500)
def test_matching_equals_the_obvious_regex(pattern, path):
    body = pattern.removesuffix("$")
    obvious = "".join(".*" if char == "*" else re.escape(char) for char in body)
    expected = re.match(obvious + (r"\Z" if body != pattern else ""), path) is not None
    assert rule(True, pattern).matches(path) is expected


LINES = st.builds(
    b"%s%s%s".__mod__,
    st.tuples(
        st.sampled_from([b"user-agent", b"allow", b"disallow", b"sitemap", b"crawl-delay", b"x", b"", b"\0"]),
        st.sampled_from([b":", b": ", b" ", b"", b"::", b"\t"]),
        st.one_of(st.binary(max_size=20), st.sampled_from([b"*", b"a", b"/", b"/*$", b"*" * 9, b"http://h/", b"1"])),
    ),
)
FILES = st.one_of(st.binary(), st.lists(LINES, max_size=20).map(b"\n".join))


@given(FILES, st.text(), st.one_of(st.text(), st.just("http://h/a/b?c")))
@settings(max_examples=300)
def test_anything_can_be_parsed_and_asked_r7(data, agent, url):
    robots = parse(data)
    robots.allows(agent, url)
    delay = robots.delay(agent)
    assert delay is None or delay >= 0
    assert all(sitemap.startswith("http") for sitemap in robots.sitemaps)


def test_hostile_files_take_no_time_r6():
    delays = b"crawl-delay: 1\n" * 15_000
    hostile = [
        b"a" * 5_000_000,
        b"\n" * 600_000,
        b"user-agent: a\n" * 20_000 + b"disallow: /%aa\n" * 20_000,
        b"".join(b"user-agent: %s\n" % (b"abcdefgh"[n % 8 :] * (n % 7)) for n in range(15_000)) + delays,
        b"user-agent: *\n" + b"".join(b"disallow: /%d\n" % n for n in range(30_000)),
        b"user-agent: *\n" + b"".join(b"allow: *%d\n" % n for n in range(30_000)),
        b"user-agent: *\ndisallow: " + b"*a" * 8000 + b"b$\n",
        b"user-agent: *\n" + b"sitemap: http://h/\n" * 20_000,
    ]
    start = time.process_time()
    for data in hostile:
        robots = parse(data)
        for _ in range(3):
            robots.allows("a", "http://h/" + "a" * 8000)
            robots.delay("a")
    assert time.process_time() - start < 5


def test_one_rule_with_many_stars_is_linear():
    many = rule(False, "/" + "*a" * 5000 + "b$")
    start = time.process_time()
    assert not many.matches("/" + "a" * 100_000)
    assert not many.matches("/" + "a" * 100_000 + "c")
    assert many.matches("/" + "a" * 100_000 + "b")
    assert time.process_time() - start < 1
    assert isinstance(many, Rule)


# Many rules: looked up, not tried one after the other


def slow_verdict(robots: Robots, agent: str, url: str) -> bool:
    """What the verdict is when every rule is tried: the longest that matches counts, and allow before disallow."""
    rules = {rule for group in robots.groups.get(robots._agent(agent), ()) for rule in group}
    path = path_and_query(url)
    if path == "/robots.txt":
        return True
    for one in sorted(rules, key=lambda rule: (-rule.length, not rule.allow)):
        if slow_match(one, path):
            return one.allow
    return True


def slow_match(rule: Rule, path: str) -> bool:
    if rule.exact or not path.startswith(rule.beginning):
        return path == rule.beginning
    at = len(rule.beginning)
    for piece in rule.middle:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return rule.end is None or (len(path) - len(rule.end) >= at and path.endswith(rule.end))


RULE_LINES = st.tuples(
    st.sampled_from(["allow", "disallow"]),
    st.one_of(PATTERNS, PATTERNS.map("/{}".format), st.text("/ab*", max_size=4).map("/*{}$".format)),
).map(": ".join)


@given(
    st.lists(RULE_LINES, max_size=40),
    st.lists(st.text(alphabet="/ab$?", max_size=14), max_size=10),
    st.sampled_from([1, 32, 1_000]),
)
@settings(max_examples=1000)
def test_looking_rules_up_equals_trying_them_all(lines, paths, few_pieces):
    text = "\n".join(["user-agent: *", *lines]).encode()
    before = module._FEW_RULES, module._FEW_PIECES
    module._FEW_RULES, module._FEW_PIECES = 0, few_pieces
    try:
        robots = parse(text)
        for path in ("", *paths):
            url = f"http://h/{path}"
            assert robots.allows("a", url) is slow_verdict(robots, "a", url), (text, url)
    finally:
        module._FEW_RULES, module._FEW_PIECES = before


@pytest.mark.parametrize("count", [module._FEW_RULES - 1, module._FEW_RULES, module._FEW_RULES + 1])
def test_few_rules_and_many_have_the_same_verdicts(count):
    lines = [f"{'allow' if number % 3 else 'disallow'}: /*{number % 7}*{number}" for number in range(count)]
    robots = parse("\n".join(["user-agent: *", *lines]).encode())
    for number in range(200):
        url = f"http://h/{number % 7}/{number}/x"
        assert robots.allows("a", url) is slow_verdict(robots, "a", url)


CROWDS = {
    "a star and a word": lambda n: f"/*x{n:05d}*y{n % 97}",
    "words of two letters": lambda n: "/*" + f"{n:018b}".replace("0", "a").replace("1", "b"),
    "one beginning": lambda n: f"/a*{n}",
    "one end": lambda n: f"/*{n}*a$",
    "no stars": lambda n: f"/a/{n}/",
}


@pytest.mark.parametrize("name", CROWDS)
def test_a_verdict_by_20_000_rules_takes_no_time_z5(name):
    """Tried one after the other they would take half a minute."""
    robots = parse("\n".join(["user-agent: *", *(f"disallow: {CROWDS[name](n)}" for n in range(20_000))]).encode())
    start = time.process_time()
    for number in range(600):
        robots.allows("a", f"http://h/a/p{number}/" + "ab" * 900)
    assert time.process_time() - start < 5
