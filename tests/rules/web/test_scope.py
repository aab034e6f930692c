"""What belongs to a crawl: seeds' places, patterns, and the verdict on a found URL with its reason."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.model import FoundUrl, FrontierEntry, Kind, Reason, Seed, Source
from inchworm.rules.web.scope import Judge, Patterns, Scope, domain_of, said_of_move, scope_of_seed, widen
from inchworm.rules.web.url import canonicalize


def seeds(*urls: str) -> tuple[Seed, ...]:
    return tuple(Seed(number, url, *scope_of_seed(url)) for number, url in enumerate(urls))


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://example.com/", ("example.com", "/")),
        ("https://example.com/financial-apis", ("example.com", "/financial-apis")),
        ("https://example.com/docs/", ("example.com", "/docs")),
        ("http://example.com:8080/docs/index.html", ("example.com:8080", "/docs")),
        ("https://example.com/index.php?page=2", ("example.com", "/")),
        ("https://example.com/a/b.tar.gz", ("example.com", "/a")),
        ("https://docs.python.org/3.11", ("docs.python.org", "/3.11")),
        ("https://example.com/docs/6.x", ("example.com", "/docs/6.x")),
        ("https://example.com/.well-known", ("example.com", "/.well-known")),
        ("https://example.com/a/.env", ("example.com", "/a/.env")),
        ("https://example.com/a.b/c", ("example.com", "/a.b/c")),
        ("https://example.com/dir.html/", ("example.com", "/dir.html")),
    ],
)
def test_place_of_a_seed(url, place):
    assert scope_of_seed(url) == place


@pytest.mark.parametrize(
    ("start", "target", "place"),
    [
        ("http://h/docs", "https://h/docs", ("h", "/docs")),
        ("http://h/docs", "https://www.h/docs/en/index.html", ("www.h", "/docs")),
        ("http://h/docs/en", "https://h/docs/de", ("h", "/docs/en", "/docs/de")),
        ("http://h/seedredir", "http://h/moved/here/", ("h", "/seedredir", "/moved/here")),
        ("http://h/docs", "https://h/docs-new", ("h", "/docs", "/docs-new")),
        ("http://h/docs", "https://h/", ("h", "/docs", "/")),
        ("http://h/", "https://h/en/start", ("h", "/")),
        ("http://h/a/b/c", "https://h:8080/a/b/x.html", ("h:8080", "/a/b/c", "/a/b")),
        ("http://h/a%20b", "http://h/c d/", ("h", "/a%20b", "/c%20d")),
    ],
)
def test_a_redirected_seed_gains_the_target_beside_its_own_path(start, target, place):
    (seed,) = seeds(start)
    target = canonicalize(target)
    moved = widen(seed, target)
    assert (moved.host, *moved.paths) == place
    assert (moved.number, moved.url) == (seed.number, seed.url)
    assert widen(moved, target) == moved


def test_a_seed_of_several_paths_reaches_each_of_them_and_nothing_between():
    (seed,) = seeds("http://h/seedredir")
    alone = Scope("path", (widen(seed, "http://h/moved/here"),))
    beside = Scope("path", (*alone.seeds, Seed(7, "http://h/moved", "h", "/moved")))
    for url in ("http://h/seedredir/x", "https://h/moved/here", "http://h/moved/here/x"):
        assert (alone.seed_of(url), beside.seed_of(url)) == (seed.number, seed.number)
    for url in ("http://h/", "http://h/moved", "http://h/moved/x", "http://h/moved/hereafter", "http://g/moved/here"):
        assert alone.seed_of(url) is None
    assert beside.seed_of("http://h/moved/x") == 7


def test_where_a_seed_went_is_said():
    (seed,) = seeds("http://h/docs")
    assert said_of_move(seed) == ""
    assert said_of_move(widen(seed, "http://h/docs/en")) == ""
    assert said_of_move(widen(seed, "http://www.h/docs")) == (
        "The seed http://h/docs redirects to www.h; its scope moved along."
    )
    twice = widen(widen(seed, "http://h/moved/here"), "http://h/")
    assert said_of_move(twice) == "The seed http://h/docs redirects to h; its scope now has /moved/here/ and / too."


@pytest.mark.parametrize(
    ("path", "strict", "loose"),
    [
        ("/financial-apis", True, True),
        ("/financial-apis?a=/x", True, True),
        ("/financial-apis/overview", True, True),
        ("/financial-apis-blog", False, True),
        ("/financial", False, False),
        ("/", False, False),
        ("/x/financial-apis", False, False),
        ("/Financial-apis/x", False, False),
    ],
)
def test_paths_are_strict_unless_loosened(path, strict, loose):
    place = seeds("https://example.com/financial-apis")
    assert Scope("path", place).covers("http://example.com" + path) is strict
    assert Scope("path", place, loose_paths=True).covers("http://example.com" + path) is loose


KINDS = [
    # url, and whether scopes of kind path, host, domain, any take it, for the seed https://www.example.co.uk/docs
    ("http://www.example.co.uk/docs/x", "path host domain any"),
    ("https://www.example.co.uk:80/docs", "path host domain any"),
    ("https://www.example.co.uk/blog", "host domain any"),
    ("https://example.co.uk/docs", "domain any"),
    ("https://a.b.example.co.uk:8080/", "domain any"),
    ("https://www.example.co.uk:8080/docs", "domain any"),
    ("https://other.co.uk/docs", "any"),
    ("https://www.example.co.uk.evil.com/docs", "any"),
]


@pytest.mark.parametrize(("url", "kinds"), KINDS)
def test_kinds_of_scope(url, kinds):
    place = seeds("https://www.example.co.uk/docs")
    taken = [kind for kind in ("path", "host", "domain", "any") if Scope(kind, place).covers(url)]
    assert " ".join(taken) == kinds


def test_unknown_scope_is_told():
    with pytest.raises(WrongUse, match="'galaxy'"):
        Scope("galaxy", ())


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.com", "example.com"),
        ("a.b.co.uk:8080", "b.co.uk"),
        ("me.github.io", "me.github.io"),
        ("example.com.", "example.com"),
        ("co.uk", "co.uk"),
        ("localhost:8000", "localhost:8000"),
        ("192.168.0.1", "192.168.0.1"),
        ("192.168.0.1:81", "192.168.0.1:81"),
        ("[::1]:8000", "[::1]:8000"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_domain(host, domain):
    assert domain_of(host) == domain


def test_addresses_are_their_own_domain():
    scope = Scope("domain", seeds("http://127.0.0.1:8000/", "http://localhost/"))
    assert scope.covers("http://127.0.0.1:8000/x")
    assert not scope.covers("http://127.0.0.1:9000/x")
    assert not scope.covers("http://10.0.0.1:8000/x")
    assert not scope.covers("http://x.localhost/")


def test_suffix_list_is_only_loaded_for_domains():
    code = """
import sys
from inchworm.model import Seed
from inchworm.rules.web.scope import Scope
seed = Seed(0, "http://h/", "h", "/")
assert Scope("host", (seed,)).covers("http://h/x")
assert "publicsuffixlist" not in sys.modules
Scope("domain", (seed,))
assert "publicsuffixlist" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_url_belongs_to_the_seed_that_holds_it_closest():
    place = seeds("http://h/", "http://h/docs", "http://h/docs/en", "http://h/docs", "http://other/x")
    scope = Scope("path", place)
    assert scope.seed_of("https://h/docs/en/a/b") == 2
    assert scope.seed_of("https://h/docs/english") == 1
    assert scope.seed_of("https://h/doc") == 0
    assert scope.seed_of("https://other/y") is None
    assert Scope("path", place, loose_paths=True).seed_of("https://h/docs/english") == 2


def test_seed_of_beyond_the_path():
    place = seeds("http://a.com/x", "http://www.a.com/y", "http://www.a.com/z")
    assert Scope("host", place).seed_of("http://www.a.com/z/1") == 2
    assert Scope("host", place).seed_of("http://www.a.com/other") == 1
    assert Scope("host", place).seed_of("http://b.a.com/y") is None
    assert Scope("domain", place).seed_of("http://www.a.com/other") == 1
    assert Scope("domain", place).seed_of("http://b.a.com/y") == 0
    assert Scope("any", place).seed_of("http://www.a.com/y/1") == 1
    assert Scope("any", place).seed_of("http://www.a.com/other") is None
    assert Scope("any", place).covers("http://www.a.com/other")


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab", "a.html"]), max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(SEGMENTS, min_size=1, max_size=5), SEGMENTS, st.booleans())
@settings(deadline=None)
def test_looking_up_equals_trying_every_seed(paths, path, loose):
    place = tuple(Seed(number, "", "h", path) for number, path in enumerate(paths))

    def holds(seed: Seed) -> bool:
        inside = path == seed.path or path.startswith(seed.path.rstrip("/") + "/")
        return bool(path.startswith(seed.path) if loose else inside)

    matching = sorted((seed for seed in place if holds(seed)), key=lambda seed: (-len(seed.path), seed.number))
    expected = matching[0].number if matching else None
    assert Scope("path", place, loose).seed_of("http://h" + path) == expected


def test_many_seeds_and_long_paths_are_quick():
    place = tuple(Seed(number, "", "h", f"/{number}") for number in range(20_000))
    scope = Scope("path", place)
    start = time.process_time()
    for _ in range(1000):
        assert scope.seed_of("http://h/777/x") == 777
        assert scope.seed_of("http://h/" + "a/" * 4000) is None
    assert time.process_time() - start < 2


PATTERNS = [
    ("http://h/docs/*", "http://h/docs/a/b?c=d", True),
    ("http://h/docs/*", "http://h/docs", False),
    ("*", "http://h/", True),
    ("*.pdf", "http://h/a/b.pdf", True),
    ("*.pdf", "http://h/a/b.pdf?x", False),
    ("*.pdf", "http://h/a/bXpdf", False),
    ("http://h/?", "http://h/a", True),
    ("http://h/?", "http://h/ab", False),
    ("http://h/[ab]", "http://h/a", True),
    ("http://h/[!ab]", "http://h/a", False),
    ("http://h/[^ab]", "http://h/c", True),
    ("http://h/[0-9]*", "http://h/5/x", True),
    ("http://h/[]]", "http://h/]", True),
    ("http://h/[", "http://h/[", True),
    ("http://h/[]", "http://h/[]", True),
    ("http://h/[!]", "http://h/[!]", True),
    ("http://h/a[\\]b", "http://h/a\\b", True),
    ("http://h/a+b(c)$", "http://h/a+b(c)$", True),
    ("docs", "http://h/docs", False),
    ("re:docs", "http://h/docs/x", True),
    ("re:/docs$", "http://h/docs/x", False),
    ("re:(?i)/DOCS", "http://h/docs", True),
    (r"re:/\d{4}/\d\d/", "http://h/2024/05/x", True),
    ("re:", "http://h/", True),
]


@pytest.mark.parametrize(("pattern", "url", "matches"), PATTERNS)
def test_patterns(pattern, url, matches):
    assert Patterns(exclude=(pattern,)).reason(url) is (Reason.EXCLUDED if matches else None)
    assert Patterns(include=(pattern,)).reason(url) is (None if matches else Reason.NOT_INCLUDED)


def test_exclude_wins_over_include():
    patterns = Patterns(include=("*/a/*", "*/b/*"), exclude=("*/secret*", "re:x=1"))
    assert patterns.reason("http://h/a/1") is None
    assert patterns.reason("http://h/b/1") is None
    assert patterns.reason("http://h/c/1") is Reason.NOT_INCLUDED
    assert patterns.reason("http://h/a/secret") is Reason.EXCLUDED
    assert patterns.reason("http://h/c/?x=1") is Reason.EXCLUDED
    assert Patterns().reason("anything") is None


@pytest.mark.parametrize("bad", ["re:a(", "re:(?=look)", r"re:\1", "re:*", "re:a{1001}", "[z-a]", "re:\udcff"])
def test_a_bad_pattern_is_named(bad):
    with pytest.raises(WrongUse) as told:
        Patterns(include=(bad,))
    assert repr(bad) in told.value.message
    assert told.value.message.rstrip("): ") != repr(bad)
    assert told.value.hint


def test_patterns_are_linear_a9():
    start = time.process_time()
    patterns = Patterns(exclude=("re:(a*)*$b", "re:(a|aa)+$x", "*a" * 50 + "b", "[" * 5_000, "re:" + "(a?){20}a{20}b"))
    assert patterns.reason("http://h/" + "a" * 8000) is None
    assert time.process_time() - start < 2


GLOBS = st.text(alphabet="ab*?/[]!-.", max_size=12)


@given(GLOBS, st.text(alphabet="ab/[]!-.", max_size=12))
@settings(deadline=None)
def test_globs_are_those_of_fnmatch(glob, text):
    try:
        patterns = Patterns(include=(glob,))
    except WrongUse:
        return
    if "[" in glob:  # corner cases of classes are ours; they only must not fail
        patterns.reason(text)
        return
    assert (patterns.reason(text) is None) == fnmatch.fnmatchcase(text, glob)


def entry(url: str = "http://h/docs", depth: int = 0, hops: int = 0, seed: int = 0) -> FrontierEntry:
    return FrontierEntry(1, url, url, Kind.PAGE, Source.SPIDER, seed, depth, hops, 0, (0, 0))


def found(url: str, kind: Kind = Kind.PAGE, source: Source = Source.SPIDER, nofollow: bool = False) -> FoundUrl:
    return FoundUrl(url, url, kind, source, nofollow)


DOCS = Scope("path", seeds("http://h/docs", "http://h/docs/en"))


@pytest.mark.parametrize(
    ("source", "depth"),
    [
        (Source.SPIDER, 4),
        (Source.REDIRECT, 3),
        (Source.RESOURCE, 3),
        (Source.SITEMAP, 0),
        (Source.FEED, 0),
        (Source.MANUAL, 0),
        (Source.INITIAL, 0),
    ],
)
def test_depth(source, depth):
    assert Judge(DOCS).judge(found("http://h/docs/x", source=source), entry(depth=3)).depth == depth


def test_seed_and_hops():
    judge = Judge(DOCS, external_hops=2)
    inside = judge.judge(found("http://h/docs/en/x"), entry(hops=1))
    assert (inside.seed, inside.hops, inside.reason) == (1, 0, None)
    outside = judge.judge(found("http://x/"), entry(seed=1))
    assert (outside.seed, outside.hops, outside.reason) == (1, 1, None)
    further = judge.judge(found("http://y/"), entry("http://x/", hops=1, seed=1))
    assert (further.seed, further.hops, further.reason) == (1, 2, None)
    beyond = judge.judge(found("http://z/"), entry("http://y/", hops=2))
    assert (beyond.hops, beyond.reason) == (3, Reason.HOPS)


def test_redirects_keep_their_hops():
    judge = Judge(DOCS, external_hops=1)
    assert judge.judge(found("http://x/", source=Source.REDIRECT), entry()).hops == 1
    moved = judge.judge(found("http://y/", source=Source.REDIRECT), entry("http://x/", hops=1))
    assert (moved.hops, moved.reason) == (1, None)
    assert judge.judge(found("http://h/docs/x", source=Source.REDIRECT), entry(hops=1)).hops == 0


def test_outside_is_refused_by_default():
    judge = Judge(DOCS)
    assert judge.judge(found("http://x/"), entry()).reason is Reason.OUT_OF_SCOPE
    assert judge.judge(found("http://h/blog"), entry()).reason is Reason.OUT_OF_SCOPE
    assert Judge(Scope("any", DOCS.seeds)).judge(found("http://x/"), entry(seed=1)).reason is None
    assert Judge(Scope("any", DOCS.seeds)).judge(found("http://x/"), entry(seed=1)).seed == 1


def test_resources_are_bound_by_host_and_not_by_path_or_depth():
    judge = Judge(DOCS, Patterns(exclude=("*.gif",)), max_depth=1)

    def reason(url: str) -> Reason | None:
        return judge.judge(found(url, Kind.RESOURCE, Source.RESOURCE), entry(depth=5)).reason

    assert reason("http://h/static/site.css") is None
    assert reason("http://cdn/site.css") is Reason.OUT_OF_SCOPE
    assert reason("http://h/x.gif") is Reason.EXCLUDED


def test_control_files_pass_patterns_and_depth():
    judge = Judge(DOCS, Patterns(include=("*/docs/*",), exclude=("*.xml", "*.txt")), max_depth=1)
    sitemap, robots = Kind.SITEMAP, Kind.ROBOTS
    deep = entry(depth=9)
    assert judge.judge(found("http://h/sitemap.xml", sitemap), deep).reason is None
    assert judge.judge(found("http://other/sitemap.xml", sitemap), deep).reason is Reason.OUT_OF_SCOPE
    assert judge.judge(found("http://other/robots.txt", robots, Source.REDIRECT), deep).reason is None
    domain = Judge(Scope("domain", seeds("http://www.a.com/x")))
    assert domain.judge(found("http://maps.a.com/sitemap.xml", sitemap), entry()).reason is None


def test_depth_limit():
    judge = Judge(DOCS, max_depth=2)
    assert judge.judge(found("http://h/docs/x"), entry(depth=1)).reason is None
    assert judge.judge(found("http://h/docs/x"), entry(depth=2)).reason is Reason.MAX_DEPTH
    assert Judge(DOCS).judge(found("http://h/docs/x"), entry(depth=2000)).reason is None


def test_order_of_reasons_u2():
    judge = Judge(DOCS, Patterns(exclude=("*bad*",)), max_depth=1)
    deep = entry(depth=7)
    long = "http://x/bad" + "a" * 8192
    assert judge.judge(found(long, nofollow=True), deep).reason is Reason.URL_TOO_LONG
    assert judge.judge(FoundUrl("http://h/docs", long), deep).reason is Reason.URL_TOO_LONG
    assert judge.judge(found("http://x/bad", nofollow=True), deep).reason is Reason.OUT_OF_SCOPE
    assert judge.judge(found("http://h/docs/bad", nofollow=True), deep).reason is Reason.EXCLUDED
    assert judge.judge(found("http://h/docs/good", nofollow=True), deep).reason is Reason.NOFOLLOW
    assert judge.judge(found("http://h/docs/good"), deep).reason is Reason.MAX_DEPTH
    assert judge.judge(found("http://h/docs/good"), entry()).reason is None
    assert judge.judge(found("http://h/docs/" + "a" * (8192 - 14)), entry()).reason is None


@pytest.mark.parametrize("hops", [0, 1, 5])
def test_what_only_a_sitemap_names_is_outside_however_many_hops_there_may_be_x6(hops):
    judge = Judge(DOCS, external_hops=hops)
    named = judge.judge(found("http://x/a", Kind.PAGE, Source.SITEMAP), entry())
    assert (named.reason, named.hops) == (Reason.HOPS if hops else Reason.OUT_OF_SCOPE, hops + 1)
    assert judge.judge(found("http://x/map.xml", Kind.SITEMAP, Source.SITEMAP), entry()).reason is named.reason
    assert judge.judge(found("http://h/docs/a", Kind.PAGE, Source.SITEMAP), entry()).reason is None
    assert judge.judge(found("http://h/map.xml", Kind.SITEMAP, Source.SITEMAP), entry()).reason is None
