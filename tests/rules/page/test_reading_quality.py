"""The main text of pages as they are laid out on the web, measured against what belongs to it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inchworm.model import Reading
from inchworm.rules.page.parse import read, text_of
from inchworm.rules.text.content import text_hash

HTML = "text/html; charset=utf-8"
URL = "http://site.test/docs/page"
LAYOUTS = Path(__file__).parent / "layouts"
NAMES = sorted(path.stem for path in LAYOUTS.glob("*.html"))
TOKEN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_]+")

USUAL = 0.99
FLOORS = {"government": 0.96, "one_form": 0.97, "product": 0.97, "recipe": 0.93, "wiki": 0.96}
"""F1 that a layout must not fall below, where it is less than usual: buttons, list numbers, unnamed lists of links."""


def layout(name: str) -> tuple[Reading, str]:
    """What we read of it, and what belongs to its text."""
    body = (LAYOUTS / f"{name}.html").read_bytes()
    return read(body, HTML, URL), (LAYOUTS / f"{name}.txt").read_text()


def f1(text: str, truth: str) -> float:
    found, wanted = (Counter(TOKEN.findall(part.lower())) for part in (text, truth))
    common = sum((found & wanted).values())
    return 2 * common / (sum(found.values()) + sum(wanted.values()))


def html(markup: str) -> Reading:
    return read(markup.encode(), HTML, URL)


def letters(text: str) -> str:
    """Without white space and the bullets and numbers of lists, which only the laid-out text has."""
    return "".join(char for char in text if char.isalpha())


# ---- layouts


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_what_belongs_to_it(name: str) -> None:
    reading, truth = layout(name)
    assert f1(reading.text, truth) >= FLOORS.get(name, USUAL)


def test_the_text_is_what_belongs_to_it_on_the_whole() -> None:
    assert len(NAMES) >= 20
    assert mean(f1(reading.text, truth) for reading, truth in map(layout, NAMES)) >= 0.985


@pytest.mark.parametrize("name", NAMES)
def test_no_frame_in_text_or_words(name: str) -> None:
    reading, _ = layout(name)
    page = " ".join((LAYOUTS / f"{name}.html").read_text().split())
    texts = [" ".join(part.split()) for part in (reading.text, reading.words)]
    for fragment in (LAYOUTS / f"{name}.not.txt").read_text().splitlines():
        assert fragment in page
        assert not [text for text in texts if fragment in text]


@pytest.mark.parametrize("name", NAMES)
def test_the_text_alone_is_the_same(name: str) -> None:
    reading, _ = layout(name)
    assert text_of((LAYOUTS / f"{name}.html").read_bytes(), HTML) == reading.text


@pytest.mark.parametrize("name", NAMES)
def test_words_and_text_are_of_the_same_part(name: str) -> None:
    reading, _ = layout(name)
    assert letters(reading.words) == letters(reading.text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tiny", []),
        ("news", ["/people/ruth-okafor", "/2024/10/steel"]),
        ("docs", ["/config/files"]),
        ("docbook", ["pipes.html"]),
        ("blog_index", ["/2024/sharpening", "/2024/bench", "/2024/glue"]),
        ("category", ["/a/1", "/a/2", "/a/3"]),
        (
            "discussion",
            [
                "https://clocks.test/tide",
                "user?id=lowwater",
                "item?id=1",
                *map("user?id={}".format, ("brine", "ebb", "spring")),
            ],
        ),
    ],
)
def test_links_of_the_main_part(name: str, expected: list[str]) -> None:
    assert layout(name)[0].hrefs.split("\n") == (expected or [""])


# ---- frame inside the main part

STORY = "<p>The lighthouse was built of granite in 1842, and has been lit every night since, but for one.</p>"


@pytest.mark.parametrize(
    "frame",
    [
        "<nav>{}</nav>",
        "<footer>{}</footer>",
        "<aside>{}</aside>",
        "<search>{}</search>",
        "<noscript>{}</noscript>",
        "<template>{}</template>",
        "<dialog>{}</dialog>",
        "<script>{}</script>",
        "<style>{}</style>",
        "<datalist><option>{}</datalist>",
        "<div role=navigation>{}</div>",
        "<div role=' Contentinfo '>{}</div>",
        "<p role=complementary>{}</p>",
        "<div role=search>{}</div>",
        "<span role=dialog>{}</span>",
        "<p hidden>{}</p>",
        "<div hidden=''><p>{}</p></div>",
        "<form action=/search>{}</form>",
        "<form class=SearchForm>{}</form>",
        "<div class='wide sidebar'>{}</div>",
        "<div id=footer>{}</div>",
        "<div class=page__footer>{}</div>",
        "<ul class=breadcrumbs><li>{}</ul>",
        "<div class=share-buttons>{}</div>",
        "<section class=related-posts>{}</section>",
        "<div class=cookie-banner>{}</div>",
        "<article><p>x</p><footer>{}</footer></article>",
    ],
)
@pytest.mark.parametrize(
    "page", ["<main>{0}{1}</main>", "<div role=main>{1}{0}</div>", "<article>{0}{1}</article>", "{0}{1}"]
)
def test_what_frame_says_does_not_tell_pages_apart(page: str, frame: str) -> None:
    one, other = (
        html(page.format(STORY, frame.format(f"<a href=/{number}>read {number} times</a>"))) for number in (7, 8)
    )
    assert "lighthouse" in one.words
    assert "7" not in one.words
    assert "read 7" not in one.text
    assert (one.words, one.text, one.hrefs) == (other.words, other.text, other.hrefs)
    assert text_hash(one.title, one.words, b"1") == text_hash(other.title, other.words, b"2")
    assert one.links != other.links or "<a" not in frame


@pytest.mark.parametrize(
    "part",
    [
        "<aside class='admonition warning'>{}</aside>",
        "<blockquote>Let there be<footer>{}</footer></blockquote>",
        "<header><h2>{}</h2></header>",
        "<section><div class=header><h3>{}</h3></div></section>",
        "<details><summary>Keeper</summary>{}</details>",
        "<p hidden=until-found>{}</p>",
        "<dialog open>{}</dialog>",
        "<form action=/order>{}</form>",
        "<div class=article-header>{}</div>",
        "<div class='menuboard navigate shareholder'>{}</div>",
        "<div><template shadowrootmode=open><p>{}</p></template></div>",
    ],
)
def test_what_only_resembles_frame_stays(part: str) -> None:
    reading = html(f"<main>{STORY}{part.format('Whitby was its keeper')}</main>")
    assert "Whitby was its keeper" in reading.words
    assert "Whitby was its keeper" in reading.text


@pytest.mark.parametrize(
    "markup",
    [
        "<header><h1>Whitby</h1><nav>menu</nav></header>{0}",
        "<header><h1>Site</h1></header><header><h1>Whitby</h1></header>{0}",
        "<div class=page-header><h1>Whitby</h1></div><div class=x>{0}</div>",
        "<div><h1>Whitby</h1></div><div>{0}{0}{0}{0}{0}{0}</div>",
        "<div><div><h2>Whitby</h2></div><div>{0}{0}{0}{0}{0}</div></div>",
        "<title>Whitby lights | Site</title><div><b>Whitby lights</b></div><div>{0}{0}{0}{0}{0}</div>",
    ],
)
def test_the_title_of_the_text_belongs_to_it(markup: str) -> None:
    reading = html(markup.format(STORY))
    assert "Whitby" in reading.words
    assert "menu" not in reading.words


def test_the_name_of_the_site_does_not_belong_to_it() -> None:
    assert "Site" not in html(f"<header><h1>Site</h1></header><h1>Whitby</h1>{STORY}").words


@pytest.mark.parametrize(
    "markup",
    [
        "<nav>{}</nav>",
        "<footer>{}</footer>",
        "<body hidden>{}</body>",
        "<div hidden>{}</div>",
        "<noscript>{}</noscript>",
        "<main><nav>{}</nav></main>",
        "<main><h1>Map</h1><nav>{}</nav></main>",
        "<main></main><div>{}</div>",
        "<main> </main><main hidden></main><nav>{}</nav>",
        "<form action=search.aspx><div>{}</div></form>",
        "<div class=menu>{}</div>",
        "<div class='nav header'><div class=footer>{}</div></div>",
        "<article></article><p>{}</p>",
        "<nav><main>{}</main></nav>",
        "<header><article>{}</article></header>",
        "<table class=navbar><tr><td>{}</table>",
        "<frameset><noframes>{}</noframes></frameset>",
    ],
)
def test_the_text_of_a_page_is_never_lost(markup: str) -> None:
    text = "Soup of the day with bread, dumplings in broth, plum cake"
    reading = html(markup.format(text))
    assert text in reading.words


def test_a_small_article_on_a_page_of_something_else_is_not_all_of_it() -> None:
    reading = html(f"<h1>Lights</h1>{STORY * 12}<article>A card.</article>")
    assert reading.words.count("lighthouse") == 12


def test_one_article_is_the_text_and_what_is_in_it_are_comments() -> None:
    reading = html(f"<div>Elsewhere</div><article>{STORY}<article>I saw it.</article></article>")
    assert "I saw it." in reading.words
    assert "Elsewhere" not in reading.words


def test_posts_of_a_thread_stay_together_however_long_one_is() -> None:
    posts = f"<div class=post>Is it lit?</div><div class=post>{STORY * 9}</div><div class=post>Thanks!</div>"
    words = html(f"<div>{posts}</div>").words
    assert "Is it lit?" in words
    assert "Thanks!" in words


def test_sections_after_the_longest_stay() -> None:
    sections = f"<section><h2>A</h2>{STORY * 9}</section><section id=b><h2>Notes</h2>None.</section>"
    assert "Notes" in html(f"<div>{sections}</div>").words


def test_a_table_is_not_taken_apart() -> None:
    reading = html(f"<table><tr><th>Light<th>Story<tr><td>Whitby<td>{STORY}</table>")
    assert reading.text.split()[:3] == ["Light", "Story", "Whitby"]


# ---- pages that nobody made

BLOCK_TAGS = (
    "div",
    "p",
    "nav",
    "main",
    "article",
    "aside",
    "footer",
    "header",
    "section",
    "ul><li",
    "table",
    "h1",
    "form",
)
ATTRIBUTES = (
    "",
    " hidden",
    " role=main",
    " role=navigation",
    " class=sidebar",
    " id=footer",
    " class=header",
    " class=x",
)
BLOCKS = st.recursive(
    st.sampled_from(["word ", "one longer sentence of the page, with a comma. ", "<a href=/a>link</a> ", ""]),
    lambda inner: st.builds(
        lambda tag, attribute, parts: f"<{tag}{attribute}>{''.join(parts)}</{tag.partition('>')[0]}>",
        st.sampled_from(BLOCK_TAGS),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


@settings(max_examples=200)
@given(st.lists(BLOCKS, max_size=6).map("".join))
def test_where_there_are_words_some_are_read(markup: str) -> None:
    reading = html(f"<title>no</title><body>{markup}")
    assert bool(reading.words.strip()) is ("word" in markup or "sentence" in markup or "link" in markup)
    assert letters(reading.words) == letters(reading.text)
    assert html(f"<title>no</title><body>{markup}") == reading
    assert set(reading.hrefs.split()) <= {"/a"}


@pytest.mark.parametrize(
    "markup",
    [
        "<div>x" * 20_000,
        "<div class=nav>x" * 20_000,
        "<header>x" * 20_000,
        "<aside><h1>x</h1>" * 20_000,
        "<main>x" * 20_000,
        "<article>x" * 20_000,
        "<div hidden>x" * 20_000,
        "<div><div>x</div>" * 20_000,
        "<table><tr><td>x" * 5_000,
        "<svg>" + "<a href=/x>x" * 20_000,
        "<div class='" + "nav-" * 20_000 + "'>x",
        "".join(f"<div id={'top' * 10}{number}>x</div>" for number in range(5_000)),
        "<div><template shadowrootmode=open>x" * 5_000,
    ],
    ids=lambda markup: markup[:30],
)
def test_frames_without_end(markup: str) -> None:
    assert "x" in html(markup + STORY).words
