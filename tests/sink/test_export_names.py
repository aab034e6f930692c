"""Names of files made of URLs: readable, stable, one for each URL, good on every file system."""

from __future__ import annotations

import itertools
import re
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from inchworm.rules.web.url import canonicalize
from inchworm.sink.files.names import (
    ENDINGS,
    MAX_NAME_BYTES,
    MAX_SEGMENT_BYTES,
    file_name,
    page_name,
    url_extension,
    wish,
)

PLAIN = {
    "https://example.org/": ("example.org/index.md", "example.org/index~.html"),
    "https://example.org/docs/intro": ("example.org/docs/intro.md", "example.org/docs/intro~.html"),
    "https://example.org/docs/": ("example.org/docs/index.md", "example.org/docs/index~.html"),
    "https://example.org/index.html": ("example.org/index.html.md", "example.org/index.html"),
    "https://example.org/3.11/os.path.html": ("example.org/3.11/os.path.html.md", "example.org/3.11/os.path.html"),
    "https://example.org/-/a@b,(c)!+d='e'_~f": (
        "example.org/-/a@b,(c)!+d='e'_~f.md",
        "example.org/-/a@b,(c)!+d='e'_~f~.html",
    ),
    "https://example.org/v1.2": ("example.org/v1.2.md", "example.org/v1.2~.html"),
    "https://example.org/x.tar.gz": ("example.org/x.tar.gz.md", "example.org/x.tar.gz"),
    "https://example.org/a%20b/%E6%97%A5": ("example.org/a b/日.md", "example.org/a b/日~.html"),
    "https://example.org/%D8%B3%D9%84%D8%A7%D9%85": ("example.org/سلام.md", "example.org/سلام~.html"),
    "https://example.org/%F0%9F%98%80": ("example.org/😀.md", "example.org/😀~.html"),
    "https://example.org/a%2Fb%5Cc%00%25": ("example.org/a%2Fb%5Cc%00%25.md", "example.org/a%2Fb%5Cc%00%25~.html"),
    "https://example.org/%FF%E2%80%AE": ("example.org/%FF%E2%80%AE.md", "example.org/%FF%E2%80%AE~.html"),
    "https://xn--bcher-kva.example/a": ("xn--bcher-kva.example/a.md", "xn--bcher-kva.example/a~.html"),
    "http://example.org/a": ("example.org@http/a.md", "example.org@http/a~.html"),
    "http://127.0.0.1:8080/a": ("127.0.0.1@http8080/a.md", "127.0.0.1@http8080/a~.html"),
    "https://example.org:8443/a": ("example.org@8443/a.md", "example.org@8443/a~.html"),
}


@pytest.mark.parametrize(("url", "names"), PLAIN.items(), ids=range(len(PLAIN)))
def test_what_can_be_turned_back_is_plain(url, names):
    assert (page_name(url), file_name(url, "html")) == names


# The hash is shown as *.
HASHED = {
    "https://example.org/Docs/README": "example.org/Docs/README*.md",
    "https://example.org/find?q=a%20b&page=2": "example.org/find,q=a b,page=2*.md",
    "https://example.org/?q=%2E%2E%2F": "example.org/index,q=..%2F*.md",
    "https://example.org/index": "example.org/index*.md",
    "https://example.org/a~": "example.org/a~*.md",
    "https://example.org/stra%C3%9Fe": "example.org/straße*.md",
    "https://example.org/e%CC%81": "example.org/é*.md",
    "https://example.org/%61": "example.org/a*.md",
    "https://example.org/a%2fb": "example.org/a%2Fb*.md",
    "https://example.org/100%": "example.org/100%25*.md",
    "https://example.org/a:b*c|d": "example.org/a%3Ab%2Ac%7Cd*.md",
    "https://example.org/.well-known/x": "example.org/%2Ewell-known/x*.md",
    "https://example.org/.git/config": "example.org/%2Egit/config*.md",
    "https://example.org/a./b%20/c": "example.org/a%2E/b%20/c*.md",
    "https://example.org/a//b": "example.org/a/b*.md",
    "https://example.org/con/nul.txt": "example.org/con_/nul_.txt*.md",
    "https://example.org/PROGRA~1": "example.org/PROGRA%7E1*.md",
    "https://example.org/node.js/a.md/x": "example.org/node.js_/a.md_/x*.md",
    "https://example.org/a/../../b/%2e%2e/c": "example.org/a/%2E%2E/%2E%2E/b/%2E%2E/c*.md",
    "https://example.org/a\\..\\b": "example.org/a%5C..%5Cb*.md",
    "https://example.org": "example.org/index*.md",
    "https://user:secret@example.org/": "example.org/index*.md",
    "https://index.jsonl/a": "index.jsonl_/a*.md",
    "http://[2001:db8::1]/a": "%5B2001%3Adb8%3A%3A1%5D@http/a*.md",
    "file:///etc/passwd": "_/file%3A/etc/passwd*.md",
    "/etc/passwd": "_/etc/passwd*.md",
    "": "_/index*.md",
}
HASH = re.compile(r"~[a-z2-7]{16}(?=\.\w+$)")


@pytest.mark.parametrize(("url", "name"), HASHED.items(), ids=range(len(HASHED)))
def test_what_loses_something_carries_a_hash(url, name):
    assert HASH.sub("*", page_name(url)) == name
    assert HASH.search(file_name(url, "html"))


def test_names_are_the_same_for_ever():
    """Folders that people made with an earlier version are to be written over, not beside."""
    assert page_name("https://example.org/Docs/README") == "example.org/Docs/README~ogd7v4dkborxskt4.md"
    assert file_name("https://example.org/get?id=3", "pdf") == "example.org/get,id=3~usfzpz4oeytz4msa.pdf"


# The rank is 0 where nobody has a better right to the name.
WISHES = {
    ("/docs/install.html", "/docs/install.html"): ("docs/install.md", 1),
    ("/docs/install.htm", "/docs/install.htm"): ("docs/install.md", 2),
    ("/docs/install", "/docs/install"): ("docs/install.md", 0),
    ("/docs", "/docs/"): ("docs/index.md", 0),
    ("/docs", "/docs"): ("docs.md", 0),
    ("/docs", "/docs/?utm_source=x#y"): ("docs/index.md", 0),
    ("/docs/index.html", "/docs/index.html"): ("docs/index.md", 1),
    ("/", "/"): ("index.md", 0),
    ("/index.php", "/index.php"): ("index.md", 5),
    ("/index", "/index"): ("index*.md", 0),
    ("/README.md", "/README.md"): ("README*.md", 0),
    ("/readme.md", "/readme.md"): ("readme.md", 9),
    ("/Docs/Install.HTML", "/Docs/Install.HTML"): ("Docs/Install*.md", 0),
    ("/a.php?x=1", "/a.php?x=1"): ("a,x=1*.md", 0),
    ("/a?x=1", "/a/?x=1"): ("a/index,x=1*.md", 0),
    ("/paper.pdf", "/paper.pdf"): ("paper.pdf.md", 0),
    ("/paper.pdf.html", "/paper.pdf.html"): ("paper.pdf.md", 1),
    ("/.html", "/.html"): ("%2Ehtml*.md", 0),
    ("/a~.html", "/a~.html"): ("a~*.md", 0),
    ("/con.html", "/con.html"): ("con_*.md", 0),
    ("/a%20b.html", "/a%20b.html"): ("a b.md", 1),
}


@pytest.mark.parametrize(("urls", "wished"), WISHES.items(), ids=range(len(WISHES)))
def test_pages_go_without_their_endings(urls, wished):
    found = wish(*(f"https://a.test{one}" for one in urls))
    assert (HASH.sub("*", found.name).removeprefix("a.test/"), found.rank) == wished
    assert found.rank == 0 or HASH.search(found.own)


def test_images_have_extensions_that_everybody_knows():
    allowed = ("png", "jpg")
    assert file_name("https://a.test/a.png", "jpg", allowed) == "a.test/a.png"
    assert file_name("https://a.test/a", "png", allowed) == "a.test/a~.png"
    assert file_name("https://a.test/a.php", "png", allowed) == "a.test/a.php~.png"
    assert HASH.sub("*", file_name("https://a.test/a.php~.png", "png", allowed)) == "a.test/a.php~*.png"
    assert HASH.sub("*", file_name("https://a.test/i.php?n=1", "png", allowed)) == "a.test/i.php,n=1*.png"


@pytest.mark.parametrize(
    ("url", "extension"),
    [
        ("https://a.test/x.PDF?a=b.jpg", "pdf"),
        ("https://a.test/x.tar.gz", "gz"),
        ("https://a.test/v1.2", ""),
        ("https://a.test/", ""),
        ("https://a.test", ""),
        ("https://a.test/.htaccess", ""),
        ("https://a.test/x.123456789a", ""),
        ("https://a.test/x.%D0%B6", ""),
    ],
)
def test_the_extension_of_a_url(url, extension):
    assert url_extension(url) == extension


LONG = [
    "https://a.test/" + "x" * 5_000,
    "https://a.test/" + "x/" * 2_500,
    "https://a.test/" + "%E6%97%A5" * 1_000 + ".pdf",
    "https://a.test/?" + "%2F" * 2_000,
    "https://" + "a." * 120 + "test/",
    "https://a.test/" + "/".join(["abcdefghi" * 10] * 30) + ".html",
    "https://a.test/" + "%FF" * 1_000,
]


@pytest.mark.parametrize("url", LONG, ids=range(len(LONG)))
def test_what_is_too_long_is_cut_and_still_differs(url):
    names = {page_name(url), page_name(url + "y"), page_name(url + "z")}
    assert len(names) == 3
    assert all(HASH.search(name) for name in names)
    assert all(valid_anywhere(name) for name in names)


# What file systems make of names


DEVICES = {"con", "prn", "aux", "nul"} | {f"{name}{number}" for name in ("com", "lpt") for number in range(10)}
FORBIDDEN = set('<>:"|?*\\')


def valid_anywhere(name: str) -> bool:
    """The rules of Windows, which are the strictest, and our own limits."""
    segments = name.split("/")
    return len(name.encode()) <= MAX_NAME_BYTES and len(segments) > 1 and all(map(valid_segment, segments))


def valid_segment(name: str) -> bool:
    return (
        0 < len(name.encode()) <= MAX_SEGMENT_BYTES
        and name.isprintable()
        and name == unicodedata.normalize("NFC", name)
        and FORBIDDEN.isdisjoint(name)
        and name[0] not in ". "
        and name[-1] not in ". "
        and name.partition(".")[0].rstrip(" ").lower() not in DEVICES
        and not re.fullmatch(r"(?=.{1,8}(\.|$))[^.]+~[0-9]+(\.[^.]{0,3})?", name)
    )


def folded(name: str) -> str:
    """What a file system that is as forgetful as any of them keeps of a name."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", name).upper().casefold())


def clash_free(names: list[str]) -> bool:
    """Whether all can lie in one folder: no two the same, no file where another needs a folder."""
    whole = [folded(name) for name in names]
    parents = {"/".join(parts[:end]) for parts in (name.split("/") for name in whole) for end in range(1, len(parts))}
    return len(set(whole)) == len(whole) and parents.isdisjoint([*whole, "index.jsonl"])


PIECES = [
    "a", "A", "b", "%61", "a.md", "A.MD", "a.html", "a~", "a~.html", "a~.md", "a_", "a.md_", "index", "INDEX",
    "index.md", "index.html", "index~", "index~.html", "", ".", "..", "%2e%2e", "%2E", "a.", "a%20", "a ", "%20a", "+",
    "a+b", "a%2Bb", "con", "CON.txt", "nul", "com1.html", "com%C2%B9", "%C3%A9", "e%CC%81", "é", "%C3%89", "%c3%a9",
    "%FF", "%ff", "%", "%25", "%2F", "%2f", "%5C", "\\", "%00", "\0", ":", "%3A", "*", "a?b", "?", "?a", "?A", "a?",
    "#", "a#b", "a/b", "A/b", "ß", "ss", "%C3%9F", "%E1%BA%9E", "%CF%82", "%CF%83", "%CE%A3", "%C4%B1", "i", "I",
    "%C4%B0", "%EF%AC%81", "fi", "%E2%80%AE", "%E2%80%8B", "%EF%B8%8F", "a%EF%B8%8F", "%F0%9F%98%80", "%F0%90%90%80",
    "%F0%90%90%A8", "%E2%84%AA", "k", "K", "%E2%84%AB", "%C3%A5", "\ud800", "\udcff", "a~1", "PROGRA~1",
    "a~abcdefghijklmnop", "a~abcdefghijklmnop.html", "a~.pdf", ".git", "..a", "~", "v1.2", "x" * 120, "x" * 121,
    "x" * 117, "x" * 200, "%E6%97%A5" * 40, "%E6%97%A5" * 13,
]  # fmt: skip
SITES = [
    "https://a.test", "http://a.test", "https://A.test", "https://a.test:80", "http://a.test:80", "https://u@a.test",
    "https://a.test.", "https://index.jsonl", "https://[::1]", "https://", "ftp://a.test", "https://" + "a" * 100,
    "https://a.test@http", "https://nul",
]  # fmt: skip

pieces = st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=()), max_size=8)
web_urls = st.builds(
    lambda site, path, query: site + "/" + "/".join(path) + query,
    st.sampled_from(SITES),
    st.lists(pieces, max_size=4),
    st.sampled_from(["", "", "", "?", "?a=1", "?a=1&b=2", "?A=1", "?" + "q" * 50]),
)
any_urls = web_urls | st.text(st.characters(exclude_categories=()), max_size=40)
extensions = st.sampled_from(["html", "pdf", "bin"])


@effort(max_examples=600, database=None)
@given(any_urls, extensions)
def test_every_name_is_good_everywhere_and_the_same_again(url, extension):
    for name in (page_name(url), file_name(url, extension)):
        assert valid_anywhere(name), name
        assert name == name.encode().decode()
    assert page_name(url) == page_name(url)
    assert page_name(url).endswith(".md")
    assert re.search(r"\.[A-Za-z0-9]{1,8}$", file_name(url, extension))


@effort(max_examples=400, database=None)
@given(st.lists(any_urls, min_size=2, max_size=40, unique=True), st.randoms(use_true_random=False))
def test_no_two_urls_get_in_each_others_way(urls, chance):
    assert clash_free([page_name(url) for url in urls])
    assert clash_free([file_name(url, chance.choice(["html", "pdf", "md"])) for url in urls])


def resolved(urls: list[str]) -> list[str]:
    """The names of pages, as they were asked for, when each has what it may have."""
    asked = {one: url for url in reversed(urls) if (one := canonicalize(url))}
    wishes = [wish(one, url) for one, url in asked.items()]
    best: dict[str, int] = {}
    for found in wishes:
        best[found.name] = min(best.get(found.name, found.rank), found.rank)
    return [found.name if best[found.name] == found.rank else found.own for found in wishes]


endings = st.sampled_from(["", "", ".html", ".HTML", ".php", "/"])


@effort(max_examples=400, database=None)
@given(st.lists(st.builds(str.__add__, web_urls, endings), min_size=2, max_size=40))
def test_no_two_pages_get_in_each_others_way_without_their_endings(urls):
    names = resolved(urls)
    assert clash_free(names)
    assert all(valid_anywhere(name) for name in names)


def test_no_two_of_all_the_hard_pages_get_in_each_others_way():
    stems = [*PIECES, "index", "a", "docs/a", "docs/index", "docs"]
    behind = ("", "/", *(f".{one}" for one in ENDINGS), ".HTML", ".html.html", ".html/")
    urls = [f"https://a.test/{stem}{ending}" for stem in stems for ending in behind]
    for chosen in (urls, urls[::2], urls[1::3], urls[::-1], urls[::5]):
        assert clash_free(resolved(chosen))


def test_no_two_of_all_the_hard_cases_get_in_each_others_way():
    paths = [*PIECES, *("/".join(pair) for pair in itertools.product(PIECES, repeat=2))]
    urls = list(dict.fromkeys(f"https://a.test/{path}" for path in paths))
    assert clash_free([page_name(url) for url in urls])
    assert clash_free([file_name(url, "html") for url in urls])
    assert clash_free([file_name(url, "md") for url in urls])


@effort(max_examples=400, database=None)
@given(any_urls, extensions)
@example("https://a.test/", "html")
@example("https://a.test/A", "html")
def test_no_url_can_be_made_to_have_the_name_of_another(url, extension):
    """Whoever writes the pages of a site can spell any name as a URL."""
    for make in (page_name, lambda one: file_name(one, extension)):
        name = make(url)
        for spelled in (name, name.rpartition(".")[0], name.lower(), name.replace("~", "%7E")):
            other = "https://" + quote(spelled, safe="/~@,()!'+=%")
            assert other == url or folded(make(other)) != folded(name)
