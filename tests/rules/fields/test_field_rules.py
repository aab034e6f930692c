"""Fields: how they are written, what is refused, what they find in a page, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inchworm.errors import WrongUse
from inchworm.rules.fields import convert, extract
from inchworm.rules.fields.selectors import (
    MAX_FIELDS,
    MAX_LENGTH,
    ElementPart,
    Rules,
    ValueType,
    from_json,
    parsed,
    to_json,
)
from inchworm.rules.words.times import iso

PAGE = """<!doctype html><base href="/shop/"><title>Shop</title>
<h1>A <b>big</b>
   title</h1>
<ul id="list">
  <li class="item" lang="en"><a href="one?x=1" title="The first">One</a> <i class="price">€ 12,50 <s>20,00</s></i>
  <li class="item"><a href="mailto:two@h.test">Two</a> <i class="price">7</i>
  <li class="item"><a href="#">Three</a>
</ul>
<table><tr><td>x<td>y</table><p>first<br>second</p><p class="empty"> </p>
<time datetime="2024-03-05T10:00:00+02:00">today</time>
<script id="state">{"a": "x  y", "b": [1, 2]}</script>
<img src="a.png" alt=""><div data-note="a  b" data-mail="x@y"></div>
"""
URL = "http://h.test/deep/page"


def rows(*fields: str, each: str = "", page: str = PAGE, content_type: str = "text/html; charset=utf-8") -> Any:
    """The rows that these fields find, by rules that have been through JSON, as whoever reads pages gets them."""
    rules = from_json(to_json(parsed(fields, each)))
    assert extract.faults(rules) == []
    return extract.rows(rules, page.encode("utf-8", "surrogatepass"), content_type, URL)


def value(selector: str, page: str = PAGE) -> Any:
    ((found,),) = rows(f"x={selector}", page=page)
    return found


# ---- what is found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        # The whole text, the element's own, its HTML, its attributes.
        ("h1", "A big title"),
        ("h1::text", "A title"),
        ("h1 ::text", "A big title"),
        ("h1::html", "<h1>A <b>big</b>\n   title</h1>"),
        (".price", "€ 12,50 20,00"),
        (".price::text", "€ 12,50"),
        ("li a@title", "The first"),
        ("li a::attr(title)", "The first"),
        ("li a @title", "The first"),
        ("[data-note]@data-note", "a b"),
        ("[data-mail='x@y']@data-mail", "x@y"),
        ("li.item[lang|=en]", "One € 12,50 20,00"),
        # Words of different cells and lines do not run together.
        ("table", "x y"),
        ("p", "first second"),
        ("#list::text | list", []),
        # Addresses are absolute, unless they lead nowhere or are wanted as they stand.
        ("li a@href", "http://h.test/shop/one?x=1"),
        ("li a@href | text", "one?x=1"),
        ("li a@href | list", ["http://h.test/shop/one?x=1", "mailto:two@h.test", "http://h.test/shop/#"]),
        ("li a@href | url | list", ["http://h.test/shop/one?x=1", "http://h.test/shop/#"]),
        ("img@src", "http://h.test/shop/a.png"),
        ("li a@href | re:x=([0-9])", "1"),
        ("//li/a/@href", "http://h.test/shop/one?x=1"),
        # XPath.
        ("//h1", "A big title"),
        ("//h1/text()", "A"),
        ("(//li)[2]/a", "Two"),
        ("//h1 | //time | list", ["A big title", "today"]),
        ("(//time | //h1) | list", ["A big title", "today"]),
        ("xpath:count(//li)", "3"),
        ("xpath:count(//li) | integer", 3),
        ("xpath:1 div 4 | number", 0.25),
        ("xpath:1 div 0", None),
        ("xpath:boolean(//li)", "true"),
        ("xpath: string(//li[2]/i)", "7"),
        ("//*[@class='price'] | number | list", [12.5, 7.0]),
        ("//li[a | i]/a", "One"),
        # Types.
        (".price | number", 12.5),
        (".price::text | number:,", 12.5),
        (".price|number", 12.5),
        (".price | integer | list", [7]),
        ("time@datetime | date", 1709625600000),
        ("#state | json", {"a": "x  y", "b": [1, 2]}),
        ("h1 | json", None),
        ("#state | re:(\\[.*\\]) | json", [1, 2]),
        # Regular expressions: a group or all of it, one after the other, with a | of their own.
        ("h1 | re:b(.)g", "i"),
        ("h1 | re:b.g", "big"),
        ("h1 | re:(small|big) title", "big"),
        ("h1 | re:(small | big)", "big"),
        ("h1 | re:A (.*) | re:(.*) title | text", "big"),
        ("h1 | re:nothing", None),
        (".price | re:([0-9]+),([0-9]+) | integer | list", [12]),
        # Nothing is nothing.
        (".nowhere", None),
        (".nowhere | list", []),
        (".empty", None),
        ("img@alt", None),
        ("h1@nothing", None),
        ("//nowhere/@x", None),
    ],
)
def test_what_is_found(selector: str, found: Any) -> None:
    assert value(selector) == found


def test_a_row_for_each_match() -> None:
    found = rows("name=a", "link=@lang", "price=> .price | number", "all=:scope", "up=./@class", each="li.item")
    assert found == [
        ["One", "en", 12.5, "One € 12,50 20,00", "item"],
        ["Two", None, 7.0, "Two 7", "item"],
        ["Three", None, None, "Three", "item"],
    ]
    assert rows("x=a", each="//li[2]") == [["Two"]]
    assert rows("x=a", each=".nowhere") == []
    assert rows("x=//h1", "y=.//h1", each="li[lang]") == [["A big title", None]], "from the root, and from below"


def test_only_pages_of_html_have_fields() -> None:
    assert rows("x=h1", "y=p | list", content_type="application/pdf") == [[None, None]]
    assert rows("x=h1", each="p", content_type="application/pdf") == []


def test_more_than_anybody_wants_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MAX_ROWS", 2)
    with pytest.raises(extract.TooMuch):
        rows("x=a", each="li")
    monkeypatch.setattr(extract, "MAX_ROWS", 3)
    monkeypatch.setattr(extract, "MAX_CHARS", 10)
    with pytest.raises(extract.TooMuch):
        rows("x=a", each="li")


@given(st.text(st.characters(codec=None)))
@example("\ud800<h1>\udfff</h1>")
def test_whatever_a_page_is_it_has_fields(text: str) -> None:
    page = f"<h1>{text}</h1><a href='{text}'>"
    fields = ("a=h1", "b=h1::text | number", "c=a@href", "d=h1 | re:(.+) | date", "e=//h1 | list", "f=h1 | json")
    ((a, b, *_),) = rows(*fields, page=page)
    assert a is None or (a == " ".join(a.split()) and a)
    assert b is None or isinstance(b, float)


# ---- what is written


def test_rules_are_values() -> None:
    rules = parsed(["a=h1 | list", " b = //x | number:, "], " li ")
    assert (rules.names, rules.each_as_written) == (("a", "b"), "li")
    assert [(one.selector.text, one.selector.is_xpath, one.selector.part) for one in rules.fields] == [
        ("h1", False, ElementPart.TEXT),
        ("//x", True, ElementPart.TEXT),
    ]
    assert [(one.kind, one.form, one.is_list) for one in rules.fields] == [
        (None, "", True),
        (ValueType.NUMBER, ",", False),
    ]
    assert from_json(to_json(rules)) == rules
    others = (parsed(["a=h1"], "li"), parsed(["a=h1 | list", "b=//x | number:,"]), parsed(["b=h1 | list"], "li"))
    assert len({rules.digest, *(one.digest for one in others)}) == 4
    assert from_json(to_json(rules)).digest == rules.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h1", "is no field"),
        ("=h1", "is no field"),
        ("a=", "is no field"),
        ("1a=h1", "cannot be called"),
        ("a b=h1", "cannot be called"),
        ("a-b=h1", "cannot be called"),
        ("a.b=h1", "cannot be called"),
        (f"{'a' * 64}=h1", "cannot be called"),
        ("a=h1 | numbr", "no filter 'numbr'"),
        ("a=h1 | re:small | big", "no filter 'big'"),
        ("a=h1 |", "no filter behind"),
        ("a=h1 | | list", "no filter behind"),
        ("a=h1 | number list", "stands behind"),
        ("a=h1 | number | date", "both number and date"),
        ("a=h1 | list:2", "nothing after a colon"),
        ("a=h1 | number:x", "no decimal sign"),
        ("a=h1 | date:%Q", "not how a date is written"),
        ("a=h1 | date:day", "not how a date is written"),
        ("a=h1 | date:%", "not how a date is written"),
        ("a=h1 | re:", "nothing behind re:"),
        ("a=h1 | re:(", "no regular expression"),
        ("a=h1 | re:(?=x)", "no regular expression"),
        ("a=h1::first", "no ::first"),
        ("a=//h1 | h2", "no filter 'h2'"),
        (f"a={'x' * MAX_LENGTH}", "too long"),
    ],
)
def test_what_is_wrong_is_refused(text: str, said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        parsed([text])
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("extract", "each", "said"),
    [
        (["a=h1", "b=h2", "A=h3"], "", "two fields called 'A'"),
        (["a=h1", "URL=a@href"], "", "there is a column"),
        ([], "li", "no field"),
        (["a=h1"], "li | list", "suffix or a filter"),
        (["a=h1"], "li@class", "suffix or a filter"),
        (["a=h1"], "li::text", "suffix or a filter"),
        (["a=h1"], "li ::text", "suffix or a filter"),
        ([f"a{number}=h1" for number in range(MAX_FIELDS + 1)], "", "At most"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(extract: list[str], each: str, said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        parsed(extract, each, taken=("url", "title"))
    assert said in f"{refused.value.message} {refused.value.hint}"


@given(st.text() | st.text(st.sampled_from("ab =|:@[]()'\"/.#>re:listnumber,\\ ")), st.text())
def test_whatever_is_written_is_a_field_or_refused(text: str, each: str) -> None:
    try:
        rules = parsed([f"a={text}"], each)
    except WrongUse:
        return
    assert from_json(to_json(rules)) == rules


@pytest.mark.parametrize(
    ("extract_", "each", "wrong"),
    [
        (["a=h1", "b=a[", "c=//x["], "", ["b", "c"]),
        (["a=xpath:nothing()"], "", ["a"]),
        (["a=xpath:$x"], "", ["a"]),
        (["a=//x:y"], "", ["a"]),
        (["a=p:contains('x')"], "", ["a"]),
        (["a=h1"], "li[", ["--each"]),
        (["a=h1"], "//li/@class", ["--each"]),
        (["a=h1"], "xpath:count(//li)", ["--each"]),
        (["a=h1", "b=//a/@href", "c=> b"], "ul", []),
    ],
)
def test_selectors_that_cannot_be_used(extract_: list[str], each: str, wrong: list[str]) -> None:
    found = extract.faults(parsed(extract_, each))
    assert [name for name, _ in found] == wrong
    assert all(why for _, why in found)


def test_fields_of_their_own() -> None:
    assert extract.faults(Rules(())) == []


# ---- numbers and dates


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12", 12),
        ("$1,299.00", 1299),
        ("1.299,00 €", 1299),
        ("12 990 kr", 12990),
        ("12\u00a0990,50", 12990.5),
        ("1'299.5", 1299.5),
        ("1,299", 1299),
        ("1.299", 1.299),
        ("0,299", 0.299),
        ("12,5", 12.5),
        ("1,00,000", 100000),
        ("1.299.000", 1299000),
        ("$.99", 0.99),
        ("-5", -5),
        ("\u22125 °C", -5),
        ("-$5.20", -5.2),
        ("10-20", 10),
        ("A-5", 5),
        ("1e3", 1000),
        ("4.5 out of 5", 4.5),
        ("iPhone 12 128GB", 12),
        # Versions, dates and lists are no numbers.
        ("1.2.3", None),
        ("12.03.2024", None),
        ("1,2,3", None),
        ("none", None),
        ("", None),
        ("1e999", None),
    ],
)
def test_numbers(text: str, found: float | None) -> None:
    assert convert.number(text) == found
    assert convert.integer(text) == (int(found) if found is not None and found == int(found) else None)


def test_a_decimal_sign_that_is_said() -> None:
    assert [convert.number("1.299", sign) for sign in ("", ",", ".")] == [1.299, 1299, 1.299]
    assert [convert.number("1,299", sign) for sign in ("", ",", ".")] == [1299, 1.299, 1299]


def test_integers_are_as_large_as_tables_hold() -> None:
    assert convert.integer(str(2**63 - 1)) == 2**63 - 1
    assert convert.integer(str(2**63)) is None
    assert convert.integer("9" * 900) is None
    assert convert.integer("1e30") is None


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9), st.sampled_from([".", ","]))
def test_numbers_as_they_are_written(number: float, decimal: str) -> None:
    text = f"{number:,.2f}"
    text = text.translate(str.maketrans(",.", ".,")) if decimal == "," else text
    assert convert.number(f"EUR {text}", decimal) == pytest.approx(round(number, 2))


@given(st.text())
def test_numbers_of_anything(text: str) -> None:
    whole, found = convert.integer(text), convert.number(text)
    assert found is None or found == found
    assert whole is None or found == pytest.approx(whole)


@pytest.mark.parametrize(
    ("text", "form", "found"),
    [
        ("2024", "", "2024-01-01T00:00:00.000Z"),
        ("2024-03", "", "2024-03-01T00:00:00.000Z"),
        ("2024-03-05", "", "2024-03-05T00:00:00.000Z"),
        ("2024-03-05T10:00:00+02:00", "", "2024-03-05T08:00:00.000Z"),
        ("Tue, 05 Mar 2024 10:00:00 GMT", "", "2024-03-05T10:00:00.000Z"),
        ("5 March 2024", "", "2024-03-05T00:00:00.000Z"),
        ("Tuesday,  March 5th, 2024", "", "2024-03-05T00:00:00.000Z"),
        ("Sept. 3, 2020", "", "2020-09-03T00:00:00.000Z"),
        ("05.03.2024", "%d.%m.%Y", "2024-03-05T00:00:00.000Z"),
        ("05.03.2024 10:00 +0200", "%d.%m.%Y %H:%M %z", "2024-03-05T08:00:00.000Z"),
        ("2999-12-31T23:59:59.999999Z", "", "2999-12-31T23:59:59.999Z"),
        ("31 February 2024", "", None),
        ("05.03.2024", "", None),
        ("5.3.24", "%d.%m.%Y", None),
        ("01.01.0001 +1400", "%d.%m.%Y %z", None),
        ("yesterday", "", None),
    ],
)
def test_dates(text: str, form: str, found: str | None) -> None:
    at_ms = convert.moment(text, form)
    assert (None if at_ms is None else iso(at_ms)) == found


def test_the_last_moment_can_be_told() -> None:
    at_ms = convert.moment("9999-12-31T23:59:59.999999Z")
    assert at_ms is not None
    assert iso(at_ms).startswith("9999-12-31T23:59:59")
