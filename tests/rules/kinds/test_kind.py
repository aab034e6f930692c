"""What kind of page something is: one small page of each."""

from __future__ import annotations

import pytest
from tests.rules.page.test_main_part import LINKS, STORY, P
from tests.rules.page.test_reading_quality import html

from inchworm.rules.kinds.kind import KINDS, Counted, judge, types_said

CODE = "<pre>light --on --until=morning --at whitby --keeper ebb</pre>"
POST = f"<div class=post><time>Monday</time><div class=post-body>{P}</div></div>"
GOODS = "<li><a href=/l><h3>Lamp</h3></a> $34.50 <button>Add to cart</button></li>"
CARD = "<article><h3><a href=/s>A story of the sea that was told in Whitby</a></h3><time>Monday</time></article>"


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("article", f"<meta property=og:type content=article><h1>Whitby</h1>{STORY * 8}"),
        ("collection", f"<meta property=og:type content=product.group><h1>Lamps</h1><ul>{GOODS * 24}</ul>"),
        ("documentation", f"<meta name=generator content='Sphinx 7'><h1>light</h1>{(STORY + CODE) * 9}"),
        ("forum", f"<h1>Who saw it?</h1>{POST * 14}"),
        ("listing", f"<h1>Stories</h1>{CARD * 20}"),
        ("product", f"<meta property=og:type content=product><h1>Lamp</h1><p>$34.50</p>Add to cart{P}"),
        ("service", f"<meta property=og:type content=website><h1>We light lamps</h1>{STORY}<ul>{LINKS}</ul>"),
    ],
)
def test_a_page_of_each_kind(kind: str, page: str) -> None:
    assert kind in KINDS
    assert html(page).meta["kind"] == kind


@pytest.mark.parametrize(
    "said",
    ['{"@type": "Product"}', '{"@type":["Product","Thing"]}', '{"@graph": [{"@type": "https://schema.org/Product"}]}'],
)
def test_what_a_page_says_it_is_for_machines(said: str) -> None:
    assert "product" in types_said({}, [said])


def test_what_software_says_it_makes() -> None:
    assert types_said({"generator": "Discourse 3.2", "og:type": " Website "}, []) == {"forum", "website"}
    assert types_said({"generator": "mkdocs-1.5"}, ["no json"]) == {"manual"}


def test_a_page_without_anything_has_a_kind() -> None:
    assert judge(frozenset(), lambda: Counted(*[0] * 9)) in KINDS


def test_how_sure_a_text_is() -> None:
    clear, unclear = html(f"<main><h1>Whitby</h1>{STORY * 4}</main>"), html(f"<h1>Lamps</h1><ul>{LINKS}</ul>{P}")
    assert clear.meta["confidence"] > 0.8
    assert 0 <= unclear.meta["confidence"] < 0.5
    assert "confidence" not in html("<title>Nothing</title>").meta
