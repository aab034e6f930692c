"""Pages as Markdown: each construct, and that a reader of Markdown reads what the page said."""

from __future__ import annotations

from html import escape

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from inchworm.rules.page import parse
from inchworm.rules.text import markdown as module
from inchworm.rules.text.markdown import markdown

URL = "http://site.test/docs/page?v=1"
HTML = "text/html; charset=utf-8"
READER = MarkdownIt("commonmark").enable("table").enable("strikethrough")


def md(markup: str, url: str = URL) -> str:
    return markdown(f"<main>{markup}</main>".encode(), HTML, url)


# ---- constructs


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>one\n  two</p><p>three</p>", "one two\n\nthree"),
        ("<p>one<br>two</p>", "one  \ntwo"),
        ("<p>one<br><br>two<br> <br><br>three</p>", "one\n\ntwo\n\nthree"),
        ("<p><br>one</p>", "one"),
        ("<p>one</p><hr><p>two</p>", "one\n\n---\n\ntwo"),
        ("<p>a&nbsp;b</p>", "a b"),
        ("<p>H<sub>2</sub>O 2<sup>32</sup> x<sup>n</sup> 1<sup>st</sup></p>", "H2O 2^32 x^n 1st"),
        ("<h1>One</h1><h3>Two\nlines</h3><h6>Six</h6>", "# One\n\n### Two lines\n\n###### Six"),
        ("<h2>Title <a class=headerlink href=#t>¶</a></h2><h3></h3><p>x</p>", "## Title\n\nx"),
        ("<h2><a href=#t>Title</a></h2>", "## Title"),
        ("<h2><button>Question?</button></h2><p>Yes.</p>", "## Question?\n\nYes."),
        ("<h2>Module <button>Copy</button></h2><button>Go</button>", "## Module"),
        ("<details><summary>More</summary><p>text</p></details>", "**More**\n\ntext"),
        ("<blockquote><p>one</p><blockquote>two</blockquote></blockquote>", "> one\n>\n> > two"),
        ("<div>a<script>x()</script><style>p{}</style><template>t</template>b<!-- c --></div>", "ab"),
        ("<p>x</p><nav>menu</nav><footer>7 times</footer><p>one long sentence of the page, and more</p>",
         "x\n\none long sentence of the page, and more"),
        ("<svg><title>t</title><text>one</text><text>two</text></svg>", "t one two"),
        ("<math alttext='a+b'><mi>a</mi><mo>+</mo><mi>b</mi></math>", "a+b"),
        ("<select><option>a</select><textarea>b</textarea><p>c</p>", "c"),
    ],
)  # fmt: skip
def test_lines_and_blocks(markup: str, expected: str) -> None:
    assert md(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ul><li>a<ul><li>b<ol><li>c</ol></ul><li>d</ul>", "- a\n  - b\n    1. c\n- d"),
        ("<ul><li><p>a</p><p>b</p><pre>c</pre></ul>", "- a\n\n  b\n\n  ```\n  c\n  ```"),
        ("<ul><li># a<li>- b<li>1. c</ul>", "- \\# a\n- \\- b\n- 1\\. c"),
        ("<ul><li><input type=checkbox checked>a<li><input type=checkbox>b</ul>", "- [x] a\n- [ ] b"),
        ("<dl><dt>a<dd>b<dd>c<dt><code>d</code><dd><p>e</p></dl>", "- **a**\n\n  b\n\n  c\n\n- `d`\n\n  e"),
        ("<dl><div><dt>a<dd>b</div><div><dt>c<dd>d</div></dl>", "- **a**\n\n  b\n\n- **c**\n\n  d"),
        ("<dl><dt>a<dt>b</dl>", "- a\n- b"),
    ],
)
def test_lists(markup: str, expected: str) -> None:
    assert md(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<table><tr><td>1<td>2</table>", "|  |  |\n| --- | --- |\n| 1 | 2 |"),
        ("<table><caption>c</caption><tr><th>a</table>", "c\n\n| a |\n| --- |"),
        ("<table><tr><th>a|b<tr><td><code>c|d</code></table>", "| a\\|b |\n| --- |\n| `c\\|d` |"),
        (
            "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td colspan=2>2<tr><td>3<td>4</table>",
            "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 |  |\n|  | 3 | 4 |",
        ),
        (
            "<table><tr><th>a<tr><td><p>one</p>\n<p>two</p>three<tr><td><ul><li>x<li>y</ul></table>",
            "| a |\n| --- |\n| one<br>two<br>three |\n| • x<br>• y |",
        ),
        ("<table><tr><th colspan=99999999999>a<th rowspan=-1>b</table>", "| a |  | b |\n| --- | --- | --- |"),
        ("<table><tr><td><h2>a</h2><p>b</p><td><pre>c</pre></table>", "## a\n\nb\n\n```\nc\n```"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a\n\nb"),
    ],
)
def test_tables(markup: str, expected: str) -> None:
    assert md(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>```\n*x* &lt;b&gt;</pre>", "````\n```\n*x* <b>\n````"),
        ("<pre><code class=language-python>x</code></pre>", "```python\nx\n```"),
        ("<pre class='lang-JS wide'>x</pre>", "```js\nx\n```"),
        ("<pre class='brush: css; toolbar: false'>x</pre>", "```css\nx\n```"),
        ("<pre><code class='hljs c++'>x</code></pre>", "```c++\nx\n```"),
        ("<div class='highlight-sql notranslate'><div class=highlight><pre>x</pre></div></div>", "```sql\nx\n```"),
        ("<div class='highlight highlight-source-shell'><pre>x</pre></div>", "```shell\nx\n```"),
        ("<pre data-lang=go>x</pre>", "```go\nx\n```"),
        ("<pre class=language-plaintext>x</pre><pre data-lang='a b'>y</pre>", "```plaintext\nx\n```\n\n```\ny\n```"),
        ("<pre class=programlisting>x</pre>", "```\nx\n```"),
        ("<p><code>a`b</code> <code>*c*</code> <kbd>k</kbd> <tt>t</tt></p>", "``a`b`` `*c*` `k` `t`"),
    ],
)
def test_code(markup: str, expected: str) -> None:
    assert md(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=a.html>t</a>", "[t](http://site.test/docs/a.html)"),
        ("<a href='../a?b=1&amp;c#d' title=T>t</a>", "[t](http://site.test/a?b=1&c#d)"),
        ("<a href=#d>t</a>", "[t](http://site.test/docs/page?v=1#d)"),
        ("<a href='/a b(c)'>t</a>", "[t](http://site.test/a%20b(c))"),
        ("<a href=/a>t [x] *y*</a>", "[t \\[x\\] \\*y\\*](http://site.test/a)"),
        ("<a href=http://x.test/>http://x.test/</a>", "<http://x.test/>"),
        ("<a href=mailto:a@b.test>m</a> <a href=tel:123>t</a>", "[m](mailto:a@b.test) [t](tel:123)"),
        ("<a href='javascript:x()'>j</a> <a name=n>n</a> <a href=http://>h</a>", "j n h"),
        ("x <a href=/a></a><a href=/b> </a>y", "x y"),
        ("<a href=/a><h3>Card</h3><p>text</p></a>", "### [Card](http://site.test/a)\n\ntext"),
        ("<img src=i.png alt='a ] b'>", "![a \\] b](http://site.test/docs/i.png)"),
        ("<img src=i.png>", "![](http://site.test/docs/i.png)"),
        ("<img src='data:image/png;base64,AA' alt=a> <img alt=b>", "a b"),
        ("<img src='data:image/gif;base64,AA' data-src=i.png alt=a>", "![a](http://site.test/docs/i.png)"),
        ("x<img src=i.png alt=''><img src=i.png width=1 height=1>", "x"),
        ("x<img src=i.png width=1 height=90><img src=i.png width=90 height=0>", "x"),
        ("<a href=/a><img src=/i.png alt=i></a>", "[![i](http://site.test/i.png)](http://site.test/a)"),
        ("<a href=/a><img src=/i.png alt=''></a>x", "x"),
        ("<b><img src=/i.png alt=i></b>", "![i](http://site.test/i.png)"),
        ("<figure><img src=/i.png alt=i><figcaption>c</figcaption></figure>", "![i](http://site.test/i.png)\n\nc"),
    ],
)
def test_links_and_images(markup: str, expected: str) -> None:
    assert md(markup) == expected


def test_links_go_by_the_base_of_the_page() -> None:
    assert md("<base href=/b/><a href=x>t</a>") == "[t](http://site.test/b/x)"
    assert md("<a href=x>t</a><a href=http://a.test/>u</a>", "no address") == "t[u](http://a.test/)"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<em>a</em> <i>b</i> <strong>c</strong> <b>d</b> <del>e</del> <s>f</s>", "*a* *b* **c** **d** ~~e~~ ~~f~~"),
        ("Die <strong>Größe</strong> und <em>été</em>", "Die **Größe** und *été*"),
        ("これは<strong>日本</strong>です", "これは**日本**です"),
        ("a<b>b</b>c d<b> e </b>f", "a**b**c d **e** f"),
        ("<b><i>a</i></b> <i>a <b>b</b></i> <b>a <b>b</b> c</b>", "***a*** *a **b*** **a b c**"),
        ("<b>a</b><b>b</b> <i>a</i><b>b</b>", "**ab** *a*b"),
        ("a<b>(b)</b>c", "a(b)c"),
        ("<b>see <a href=/a>a</a></b>", "**see [a](http://site.test/a)**"),
        ("<code><b>a</b></code> <b><code>b</code></b>", "`a` **`b`**"),
        ("<h2><b>a</b> <i>b</i></h2>", "## a *b*"),
        ("<b></b><i class=icon></i>x<b> </b>y", "x y"),
        ("<b>1. a<span> </span></b>b", "1\\. a b"),
        ("<b>a\ufdd0b</b>", "**ab**"),
    ],
)
def test_emphasis(markup: str, expected: str) -> None:
    assert md(markup) == expected


@pytest.mark.parametrize(
    "text",
    [
        "5 * 3 * 2 and a_b_c and _d_ and **e**",
        "# no heading",
        "1. no list",
        "1) no list",
        "- no list",
        "+ no list",
        "> no quote",
        "---",
        "***",
        "===",
        "`no code` and ```",
        "~~~",
        "~~not struck~~",
        "[no](link) and ![no](image)",
        "[no]: link",
        "<div> & &amp; &copy; <http://x.test>",
        "a | b",
        "back\\slash and \\* and trailing\\",
        "    no code",
    ],
)
def test_signs_in_text_read_the_same(text: str) -> None:
    for markup in (
        "<p>{}</p>",
        "<ul><li>{}</ul>",
        "<p>x<br>{}</p>",
        "<table><tr><th>{}</table>",
        "<h2>{}</h2>",
        "<b>{}</b>",
    ):
        page = turbohtml.parse(READER.render(md(markup.format(escape(text)))))
        assert " ".join(page.text.split()).removeprefix("x ") == " ".join(text.split())


def test_much_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARS", 100)
    assert len(md("<p>word</p>" * 100)) == 100
    assert len(module.of_html("<p>word</p>" * 100)) == 100


@pytest.mark.parametrize(
    "markup",
    [
        "<ul><li>x",
        "<ol><li>x",
        "<blockquote>x",
        "<table><tr><td>x",
        "<table><tr><td colspan=50 rowspan=50>x",
        "<tr><td rowspan=50>x",
        "<dl><dt>x",
        "<svg><a href=/x>x",
        "<a href=/x><object>x",
        "<h1><div>x",
        "<pre>x",
        "<b>x<i>y",
        "<b>x</b>",
        "<br>x<br><br>",
        "<details><summary>x",
        "<button>x<h1>",
        "<sup>2</sup>x",
    ],
)
def test_nests_and_heaps_without_end(markup: str) -> None:
    for page in (markup * 3_000, "<table>" + markup * 3_000, "<ul><li>" + markup * 3_000):
        assert "x" in md(page)


# ---- pages that nobody made

TAGS = (
    "p,h1,h2,ul,ol start=9,li,dl,dt,dd,table,tr,td,td colspan=3,th rowspan=2,pre,pre class=language-x,code,blockquote"
)
TAGS += (
    ",a href=/x,a href=#,a href='javascript:',img src=i alt=a,img,b,i,del,em,sup,br,hr,svg,math,summary,details,button"
)
TAGS += (
    ",template,template shadowrootmode=open,select,object,iframe,frameset,base href=//,html hidden,body role=main,nav"
)
SIGNS = "1. 1) # - + > * ** _ ` ``` ~~ | \\ [ ] ( ) ! < & &nbsp; &#xd800; <!-- --> word Größe 日本 \ufdd0 \0"
PIECES = st.sampled_from(
    [f"<{tag}>" for tag in TAGS.split(",")] + [f"</{tag.split()[0]}>" for tag in TAGS.split(",")] + SIGNS.split()
)


@settings(max_examples=300)
@given(
    st.lists(PIECES, max_size=30).map(" ".join) | st.text(),
    st.sampled_from([HTML, "text/plain", ""]),
    st.text(max_size=5),
)
def test_markdown_takes_anything(markup: str, content_type: str, url: str) -> None:
    body = markup.encode("utf-8", "surrogatepass")
    written = markdown(body, content_type, url)
    assert written == markdown(body, content_type, url)
    written.encode()
    READER.render(written)


@settings(max_examples=100)
@given(
    st.binary(max_size=200), st.sampled_from(["text/html", "text/plain", "text/html; charset=utf-16", "image/png", ""])
)
def test_markdown_takes_any_bytes(body: bytes, content_type: str) -> None:
    markdown(body, content_type, URL).encode()


WORDS = st.lists(
    st.sampled_from(
        ["word", "a_b", "*c*", "# d", "- e", "1. f", "`g`", "[h](i)", "<j>", "&k;", "|", "\\", "été", "日本", "2)", "!"]
    ),
    min_size=1,
    max_size=4,
).map(" ".join)
INLINE = st.recursive(
    WORDS.map(escape),
    lambda inner: st.builds(
        lambda tag, text: f" <{tag}>{text}</{tag.split()[0]}> ",
        st.sampled_from(["b", "i", "em", "strong", "code", "span", "a href=/x", "sub"]),
        inner,
    ),
    max_leaves=3,
)
LINES = st.lists(INLINE, min_size=1, max_size=3).map(" ".join)


def solid(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(["h1", "h2", "h3", "p", "li", "pre", "td", "dd", "blockquote"]), LINES),
        min_size=1,
        max_size=6,
    )
)
def test_what_a_page_says_survives(parts: list[tuple[str, str]]) -> None:
    around = {"li": "<ul>{}</ul>", "td": "<table><tr>{}</table>", "dd": "<dl><dt>t{}</dl>"}
    markup = "".join(around.get(tag, "{}").format(f"<{tag}>{text}</{tag}>") for tag, text in parts)
    page = turbohtml.parse(READER.render(md(markup)))
    main, _ = parse.main_of(f"<main>{markup}</main>".encode(), HTML, URL)
    assert solid(page.text) == solid(main.text)
    for tag in ("h1", "h2", "h3", "li", "pre"):
        wanted = [solid(element.text) for element in main.iter_elements(tag)]
        found = [solid(element.text) for element in page.iter_elements(tag)]
        assert [text for text in found if text in wanted] == wanted
    code = {solid(element.text) for element in page.iter_elements("code")}
    assert {solid(element.text) for element in main.iter_elements("code") if not element.closest("pre")} <= code
