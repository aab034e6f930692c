"""Where the text of a page is: one small page for each cause."""

from __future__ import annotations

import pytest
from tests.rules.page.test_reading_quality import html

from inchworm.rules.page import frame, parse

P = "<p>The lighthouse at Whitby was built of granite in 1842, and its keeper lit it every night but one.</p>"
"""One paragraph of a story. `KEPT` is in none."""
STORY = P * 5
LINKS = "".join(f"<li><a href=/{number}>Another story of number {number}</a>" for number in range(6))
CARD = "<div class=card><a href=/x><p>Somebody else wrote a teaser here that is long enough to look like text.</p></a>"


def words(markup: str) -> str:
    return " ".join(html(markup).text.split())


@pytest.mark.parametrize(
    "page",
    [
        "<div><div class=a>{story}</div><div class=b>GONE <p>Short.</p></div></div>",
        "<div><div class=b>GONE</div><div class=a>{story}</div></div>",
        "<main><div class=a><div>{story}</div></div><div class=b><h3>GONE</h3><ul>{links}</ul></div></main>",
        "<table><tr><td width=9>GONE<td>{story}<tr><td colspan=2>GONE</table>",
    ],
)
def test_the_block_with_nearly_all_paragraphs_stands_for_the_page(page: str) -> None:
    said = words(page.format(story=STORY, links=LINKS))
    assert said.count("lighthouse") == 5
    assert "GONE" not in said


@pytest.mark.parametrize(
    "before",
    [
        "<h1>KEPT</h1>",
        "<div class=top><h1>KEPT</h1></div>",
        "<div><h2>KEPT</h2></div>",
        "<p>KEPT, he said, and lit the lamp once more.</p>",
        "<div class=intro>KEPT, he said, and lit the lamp once more. Nobody saw it.</div>",
        "<strong>KEPT, he said, and lit the lamp once more.</strong>",
    ],
)
def test_title_and_lead_stay_before_it(before: str) -> None:
    assert "KEPT" in words(f"<main>{before}<div class=body>{STORY}</div></main>")


@pytest.mark.parametrize(
    "page",
    [
        "<div class=post>KEPT?</div><div class=post>{0}</div><div class=post>KEPT.</div>",
        "<section><h2>KEPT</h2>Short.</section><section id=long>{0}</section><section id=b>KEPT</section>",
        "<article><p>KEPT</article><article>{0}</article><article>KEPT</article>",
    ],
)
def test_those_of_its_kind_stay_beside_it(page: str) -> None:
    assert words(f"<div>{page.format(STORY)}</div>").count("KEPT") == 2


@pytest.mark.parametrize(
    "named",
    [
        "<div class='entry-meta small'>GONE</div>",
        "<div class=postAuthor>GONE</div>",
        "<ul class=tag-list><li>GONE</ul>",
        "<div id=share_bar>GONE</div>",
        "<section class=c-newsletter>GONE</section>",
        "<div class=related-stories><p>GONE</div>",
        "<div class=comment-respond>GONE</div>",
        "<form class=newsletter>GONE</form>",
    ],
)
def test_small_blocks_go_by_their_names(named: str) -> None:
    assert "GONE" not in words(f"<main><h1>Whitby</h1>{P}{named}{STORY}{named}</main>")


def test_a_section_with_the_name_of_its_heading_says_nothing_by_it() -> None:
    """Manuals name their sections by what they are about, be that views, filters or tags."""
    section = "<div class=sect id=SQL-UPDATABLE-VIEWS><h2>Updatable Views</h2><p>KEPT, as it is a part of it all.</div>"
    assert "KEPT" in words(f"<div>{STORY}{section}</div>")
    assert "KEPT" not in words(f"<div>{STORY}{section.replace('Updatable Views', 'How often')}</div>")


def test_what_is_called_so_elsewhere_says_nothing_of_what_is_in_the_text() -> None:
    elsewhere = "".join(f"<div class=author><a href=/{who}>{'They wrote much, too. ' * 9}</a></div>" for who in "abcd")
    said = words(f"<div>{elsewhere}</div><main><h1>Whitby</h1>{P}<div class=author>GONE</div>{STORY}</main>")
    assert (said.count("lighthouse"), "GONE" in said) == (6, False)


def test_what_is_called_so_stays_where_it_holds_much_of_the_text() -> None:
    posts = "".join(f"<div class=comment><b>{who}</b>{P}</div>" for who in ("KEPT", "ebb", "brine", "neap"))
    assert words(f"<h1>Who saw it?</h1><div class=question>{P}</div>{posts}").count("lighthouse") == 5
    assert "KEPT" in words(f"<div class=comments>{posts}</div>")


def test_the_title_stays_whatever_it_is_called() -> None:
    assert "KEPT" in words(f"<main><div class=post-meta><h1>KEPT</h1></div>{STORY}</main>")


@pytest.mark.parametrize(
    "links", [f"<ul>{LINKS}</ul>", f"<div>{LINKS}</div>", "<p><a href=/>GONE</a></p>", f"<section>{CARD * 3}</section>"]
)
def test_blocks_of_links_go_from_pages_of_prose(links: str) -> None:
    said = words(f"<main>{STORY}{links}{STORY}</main>")
    assert said.count("lighthouse") == 10
    assert "stor" not in said.replace("history", "")
    assert "GONE" not in said
    assert "teaser" not in said


def test_links_in_a_text_stay() -> None:
    assert "KEPT" in words(f"<main>{STORY}<p>It is told that <a href=/k>KEPT</a> saw it in the year 1843.</p></main>")


def test_a_page_of_links_keeps_them() -> None:
    cards = "".join(f"<div class=card><h3><a href=/{n}>Story {n}</a></h3><a href=/{n}>Read it</a></div>" for n in "abc")
    assert words(f"<main><h1>Stories</h1><p>All of them.</p>{cards}</main>").count("Read it") == 3


@pytest.mark.parametrize(
    "heading",
    ["Related articles", "Comments (12)", "3 comments", "Share this:", "Das könnte Sie auch interessieren", "Teilen",
     "More from the coast", "Lire aussi :", "Te puede interesar", "関連記事", "Read  more »"],
)  # fmt: skip
@pytest.mark.parametrize("page", ["{0}<h3>{1}</h3><div>GONE</div>", "{0}<div><h3>{1}</h3><ul><li>GONE</ul></div>"])
def test_what_has_such_a_heading_goes(page: str, heading: str) -> None:
    said = words(f"<main>{page.format(STORY, heading)}<h2>Sources</h2>{P}KEPT</main>")
    assert "GONE" not in said
    assert "KEPT" in said


@pytest.mark.parametrize("heading", ["Comments", "More on lists", "Tags", "Topics"])
def test_a_chapter_that_is_called_so_stays(heading: str) -> None:
    assert words(f"<main>{STORY}{STORY}<h2>{heading}</h2>{P}{P}<h2>Notes</h2>{P}</main>").count("lighthouse") == 13


@pytest.mark.parametrize("hidden", ["<div hidden>{}</div>", "<noscript>{}</noscript>", "<main hidden>{}</main>"])
def test_what_is_not_shown_is_read_where_it_is_most_of_the_page(hidden: str) -> None:
    said = words(f"<header>Menu</header><p>Please turn on scripts.</p>{hidden.format(STORY)}")
    assert said.count("lighthouse") == 5
    assert "lighthouse" not in words(f"<h1>Menu</h1>{'<p>It was shown. </p>' * 9}{hidden.format(P)}")


def test_a_main_part_that_holds_little_of_the_text_is_not_believed() -> None:
    assert words(f"<main><p>Featured</p></main><div>{STORY}</div>").count("lighthouse") == 5
    assert words(f"<main>{STORY}</main><div>{P}</div>").count("lighthouse") == 5


def test_a_main_part_that_is_called_so_by_its_role_is_believed() -> None:
    assert "GONE" not in words(f"<div role=main>{P * 2}</div><div>{P * 2}GONE</div>")
    assert "GONE" not in words(f"<div role=main><p>KEPT.</p>{P}</div><div><p>GONE {P}</p></div>")


def test_rows_are_laid_out_with_their_table() -> None:
    """Where they are all that there is."""
    rows = "".join(f"<tr><td>Day {day}<td>High at {day}:30" for day in range(1, 9))
    page = f"<title>Tides at Whitby</title><div><table>{rows}</table></div>".encode()
    assert parse.text_of(page, "text/html").split("\n")[0] == "Day 1  High at 1:30"
    assert parse.main_html(page, "text/html", "http://h.test/").startswith("<table>")


FRAMES = (
    *("nav", "navbar", "navheader", "menu", "menubar", "breadcrumbs", "sidebar", "footer", "colophon", "toolbar"),
    *("pagination", "pager", "search", "comments", "share", "social", "related", "recommended", "recommendations"),
    *("newsletter", "subscribe", "advert", "advertisement", "advertising", "sponsored", "cookies", "consent", "gdpr"),
)


@pytest.mark.parametrize("name", FRAMES)
def test_what_is_called_like_the_frame_of_a_page_is_no_text(name: str) -> None:
    assert frame.names_of(name).is_frame and frame.names_of(f"site-{name}").is_frame
    assert not frame.names_of(f"{name}ish").is_frame


def test_text_without_paragraphs_counts_like_one() -> None:
    text = "The keeper of the lighthouse lit it every night.<br>" * 9
    said = words(f"<div><div class=x>{text}</div><div class=y><p>{'GONE ' * 12}</p></div></div>")
    assert said.count("lighthouse") == 9
    assert "GONE" not in said


def test_teasers_that_are_links_all_over_are_no_paragraphs() -> None:
    said = words(f"<div><div class=top>{CARD * 9}</div></div><div><div class=story>{STORY}</div></div>")
    assert said.count("lighthouse") == 5
    assert "teaser" not in said


@pytest.mark.parametrize(
    "control",
    [
        "<select><option>GONE</option></select>",
        "<label for=a>GONE</label>",
        "<svg><title>GONE</title></svg>",
        "<svg><symbol><desc>GONE</desc></symbol></svg>",
        "<iframe>GONE</iframe>",
        "<span class=sr-only>GONE</span>",
        "<div class='u-hidden notice'>GONE</div>",
    ],
)
def test_what_is_for_choosing_or_is_not_shown_goes(control: str) -> None:
    assert "GONE" not in words(f"<main><h1>Whitby</h1>{STORY}{control}{STORY}</main>")


def test_how_a_word_is_pronounced_goes() -> None:
    assert words(f"<p><ruby>灯台<rp>(</rp><rt>とうだい</rt><rp>)</rp></ruby>を見た。</p>{STORY}").startswith(
        "灯台を見た。"
    )


@pytest.mark.parametrize(
    "shown",
    [
        "<svg><text>KEPT</text></svg>",
        "<label for=a><h3>KEPT</h3></label>",
        "<div class='d-none d-md-block'>KEPT</div>",
        "<div role=tabpanel hidden>KEPT</div>",
        "<div hidden id=S:1f>KEPT</div>",
    ],
)
def test_what_only_resembles_that_stays(shown: str) -> None:
    assert "KEPT" in words(f"<main><h1>Whitby</h1>{STORY}{shown}{STORY}</main>")


def test_what_a_class_hides_stays_where_it_is_much_of_the_page() -> None:
    tabs = "".join(f"<div class=hide><h2>Part {part}</h2>{P}</div>" for part in range(9))
    assert words(f"<main>{P}{tabs}</main>").count("lighthouse") == 10


@pytest.mark.parametrize(
    "named",
    [
        "<section id=real-time-views-of-the-sea><h2>Views</h2>KEPT</section>",
        "<section id=time><h2>Time</h2>KEPT</section>",
        "<div class='post hentry category-time tag-author'>KEPT</div>",
        "<div class='mg-bottom-16'>KEPT</div>",
        "<div class='row page-has-toc'>KEPT</div>",
        "<div class='table_root__adKqa'>KEPT</div>",
        "<div class='block with-time'>KEPT</div>",
    ],
)
def test_names_that_say_what_a_block_is_about_or_how_it_looks_are_not_what_it_is(named: str) -> None:
    assert "KEPT" in words(f"<main><h1>Whitby</h1>{STORY}{named}{STORY}</main>")


def test_what_stood_under_a_heading_at_the_end_takes_it_along() -> None:
    assert "GONE" not in words(f"<main>{STORY}<section><h2>GONE</h2><ul>{LINKS}</ul></section></main>")
    assert "KEPT" in words(f"<main>{STORY}<h2>KEPT</h2></main>")


@pytest.mark.parametrize("line", ["<p>Read also</p>", "<p><strong>Related articles:</strong></p>"])
def test_a_paragraph_that_says_what_such_a_heading_says_goes(line: str) -> None:
    said = words(f"<main>{STORY}{line}{STORY}</main>")
    assert "also" not in said
    assert "Related" not in said


@pytest.mark.parametrize("line", ["p class=image-copyright", "em class=credits", "figcaption class=credit"])
def test_a_line_that_is_called_so_goes(line: str) -> None:
    assert "GONE" not in words(f"<main>{STORY}<div><{line}>GONE</{line.split()[0]}></div>{STORY}</main>")


# ---- kinds of pages

POST = "<div class=post><div class=user-extras>GONE {0}</div><div class=post-body>{1}</div></div>"
SHOP = '<script type="application/ld+json">{"@type": "Product", "name": "Lamp", "description": "%s"}</script>'


def test_a_post_is_read_once_and_not_where_another_quotes_it() -> None:
    first = "<p>Who saw the lamp of Whitby that night, and who was it that lit it after the keeper had gone?</p>"
    answer = f"<blockquote>Ebb said: {first}</blockquote><p>It was me, and nobody else was there to see it at all.</p>"
    said = words(f"<h1>Who?</h1>{POST.format(1, first)}{POST.format(2, answer)}{POST.format(3, P)}")
    assert said.count("the lamp of Whitby") == 1
    assert said.count("It was me") == 1


def test_what_a_forum_tells_of_its_users_goes() -> None:
    assert "GONE" not in words(f"<h1>Who?</h1>{''.join(POST.format(n, P) for n in range(9))}")


def test_a_thread_that_is_called_comments_is_the_text() -> None:
    thread = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'
    posts = f"<div class=comments>{'<div class=comment>KEPT and little more.</div>' * 3}</div>"
    assert words(f"{thread}<main><h1>Who?</h1>{P}{posts}</main>").count("KEPT") == 3


def test_what_a_product_is_described_as_for_machines_only_is_read() -> None:
    said = "It stands on gas, on induction and on the stove of a lighthouse and holds eight cups of coffee since 1842."
    price = "<h1>Lamp</h1><p>34.50 €</p><button>Add to cart</button>"
    assert said in words(f"{SHOP % said}<main>{price}</main>")
    assert words(f"{SHOP % said}<main>{price}<p>{said}</p></main>").count("eight cups") == 1


def test_reviews_of_a_product_are_no_text_of_it() -> None:
    page = f"{SHOP % 'A lamp.'}<main><h1>Lamp</h1><p>34.50 €</p><p>Add to cart</p>{STORY}"
    assert "GONE" not in words(f"{page}<div class=reviews><p>GONE</p></div></main>")


def test_a_manual_keeps_its_links() -> None:
    manual = "<meta name=generator content=Sphinx>"
    code = "<pre>light --on --until=morning --at whitby --keeper ebb</pre>"
    links = "<p><a href=/k>KEPT by whom</a></p><h2>See Also</h2><ul><li><a href=/l>KEPT</a><li><a href=/m>KEPT</a></ul>"
    assert words(f"{manual}<main><h1>Light</h1>{STORY}{code * 9}{P}{links}</main>").count("KEPT") == 3


@pytest.mark.parametrize("length", [1, 4, 40])
@pytest.mark.parametrize("heading", ["See also", "Topics"])
def test_every_page_of_a_manual_keeps_where_to_read_on(length: int, heading: str) -> None:
    box = (
        f"<div id=quickview><h3>{heading}</h3><ul class=seealso><li><a href=/k>KEPT: the lamp of Whitby</a></ul></div>"
    )
    assert "KEPT" in words(f"<div id=page><h1>Light</h1>{box}<div class=section>{P * length}</div></div>")
