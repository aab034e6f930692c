"""The main part of a page as Markdown, for people and for language models.

The parser writes good Markdown from a good tree. So the tree is put in order first: links and images lead somewhere or
go, tables are plain grids or no tables, definitions become lists, code says its language, and what nobody reads goes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice

import turbohtml
from turbohtml import Element, Markdown, Node, Text

from inchworm.rules.metadata.describe import address
from inchworm.rules.page import parse
from inchworm.rules.text.recurring import NO_FRAME, Frame

MAX_CHARS = 10_000_000

# More than this of anything is not for people. What is beyond stays as the page has it.
_MOST = 50_000
_MOST_SPANNED = 50
_MOST_CELLS = 10_000
_MOST_DRAWINGS = 5_000

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

_OPTIONS = Markdown(tables=Markdown.Tables(header="detect"))


def markdown(body: bytes, content_type: str, url: str, frame: Frame = NO_FRAME) -> str:
    """The main part of an HTML page without the frame of its host as Markdown."""
    main, base = parse.main_of(body, content_type, url, frame)
    return _written(main, base)


def of_html(html: str) -> str:
    """HTML of our own making as Markdown, all of it."""
    return _written(turbohtml.parse(html), "")


def _written(main: Node, base: str) -> str:
    _put_in_order(main, base)
    return _write_marks(main.to_markdown(_OPTIONS))[:MAX_CHARS]


def _put_in_order(main: Node, base: str) -> None:
    main.remove("select,textarea,td.linenos,td.gutter,.mw-editsection")
    for node in main.descendants:
        if isinstance(node, Text) and _NOT_WRITTEN.search(node.data):
            node.data = node.data.translate(_WRITTEN)
    for element in _all(main, "svg", "math")[:_MOST_DRAWINGS]:
        _replace_by_text(element, element.attr("alttext") or " ".join(element.stripped_strings))
    for element in _all(main, "img"):
        _image(element, base)
    for element in _all(main, "a"):
        _link(element, base)
    for tags, put_in_order in _STEPS:
        for element in _all(main, *tags):
            put_in_order(element)
    for element in reversed(_all(main, *_EMPHASIS)):
        _emphasize(element)


def _all(main: Node, *tags: str) -> list[Element]:
    return list(islice(main.iter_elements(tags), _MOST))


def _has(element: Element, *tags: str) -> bool:
    return next(element.iter_elements(tags), None) is not None


def _replace_by_text(element: Element, text: str) -> None:
    if element.parent is not None:
        element.replace_with(Text(text))


# ---- words and lines

_POWER = re.compile(r"[-+−]?(?:\d{1,4}|[a-z])")
_OWN_BREAKS = "pre,td,th,h1,h2,h3,h4,h5,h6,a,b,strong,i,em,code"
_BREAKS = frozenset({"br", "div", "p"})


def _raised(word: Element) -> None:
    if word.tag == "sup" and _POWER.fullmatch(word.text) and not word.closest("a"):
        word.insert_before(Text("^"))
    word.unwrap()


def _button(button: Element) -> None:
    """Nobody can press it here; but what opens a paragraph is often made a button, and is its heading."""
    title = button.closest("h1,h2,h3,h4,h5,h6,dt,summary")
    if _has(button, *_HEADINGS) or (title is not None and title.text.strip() == button.text.strip()):
        button.unwrap()
    else:
        button.decompose()


def _typewriter(word: Element) -> None:
    word.tag = "code"


def _heading(heading: Element) -> None:
    if not next(heading.stripped_strings, "") and not _has(heading, "img"):
        heading.decompose()


def _line_break(line_break: Element) -> None:
    """Two in a row are what people write for a new paragraph; one at the beginning of something is nothing."""
    if line_break.parent is None or line_break.closest(_OWN_BREAKS):
        return
    before, after = _beside(line_break.previous_siblings), _beside(line_break.next_siblings)
    if before is None or (isinstance(before, Element) and before.tag in _BREAKS):
        line_break.decompose()
    elif isinstance(after, Element) and after.tag == "br":
        line_break.replace_with(Element("div"))


def _beside(siblings: Iterator[Node]) -> Node | None:
    """The nearest of them that is to be seen."""
    return next((node for node in siblings if isinstance(node, Element) or node.text.strip()), None)


_BLOCKS = (*_HEADINGS, "blockquote", "div", "dl", "ol", "p", "pre", "section", "table", "ul")


def _embolden(element: Element) -> None:
    if next(element.stripped_strings, "") and not _has(element, *_BLOCKS, "b", "code", "strong"):
        element.wrap_children(Element("strong"))


# ---- emphasis

# The parser gives up on emphasis where it meets letters that are not ASCII, and writes tags. So we hold its place with
# characters that cannot be in a text, and write the marks ourselves.
_EMPHASIS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_PLACES = {"**": ("\ufdd0", "\ufdd1"), "*": ("\ufdd2", "\ufdd3"), "~~": ("\ufdd4", "\ufdd5")}
_CLOSING = frozenset(closing for _, closing in _PLACES.values())
_SAME = {"**": "b,strong", "*": "em,i", "~~": "del,s"}
_STRUCK = frozenset(_PLACES["~~"])
_STARTS = re.compile(r" *(?:\d{1,9}(?=[.)])|(?=[-+#>=]))")
_PLACE = re.compile("([\ufdd0-\ufdd5]+)")
# A space that may not break says nothing here, and would be written as an entity.
_NOT_WRITTEN = re.compile("[\xa0\ufdd0-\ufdd5]")
_WRITTEN = {0xA0: " ", **dict.fromkeys(range(0xFDD0, 0xFDD6))}


def _emphasize(element: Element) -> None:
    mark = _EMPHASIS[element.tag]
    is_empty = not next(element.stripped_strings, "")
    is_inside = element.parent is not None and element.parent.closest(f"{_SAME[mark]},code,kbd,pre,samp")
    is_title = mark == "**" and element.closest("h1,h2,h3,h4,h5,h6")
    if not (is_empty or is_inside or is_title or _has(element, *_BLOCKS)):
        opening, closing = _PLACES[mark]
        first, last = _beside(iter(element.children)), _beside(reversed(element.children))
        if isinstance(last, Text):
            kept = last.data.rstrip()
            last.data = kept + closing + last.data[len(kept) :]
        elif last is not None:
            last.insert_after(Text(closing))
        if isinstance(first, Text):
            kept = first.data.lstrip()
            first.data = first.data[: len(first.data) - len(kept)] + opening + kept
        elif first is not None:
            first.insert_before(Text(opening))
    element.unwrap()


def _write_marks(text: str) -> str:
    """Marks for the places that were held, but where Markdown would not take them for marks: those are left out."""
    for opening, closing in _PLACES.values():
        text = text.replace(closing + opening, "")
    pieces = _PLACE.split(text)
    written = [[""] * len(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    for mark in _PLACES:
        for opened, closed in _pairs(pieces, mark):
            written[opened[0]][opened[1]] = written[closed[0]][closed[1]] = mark
    for at in range(1, len(pieces), 2):
        if not any(written[at]):
            written[at + 1] = [_as_text(pieces[at - 1], pieces[at], pieces[at + 1])]
    return "".join(part for piece in written for part in piece)


def _pairs(pieces: list[str], mark: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a mark opens and closes, as piece and place in it; only what a reader of Markdown would pair too."""
    opening, closing = _PLACES[mark]
    opened: tuple[int, int] | None = None
    for at in range(1, len(pieces), 2):
        before, signs, after = pieces[at - 1][-1:], pieces[at], pieces[at + 1][:1]
        if mark == "~~" and not _STRUCK.issuperset(signs):
            # Beside stars it would be told from them by rules that nobody knows.
            opened = None
            continue
        for place, sign in enumerate(signs):
            if sign == opening:
                # Where one ends and another begins, nobody could tell whose the stars are.
                is_clear = _CLOSING.isdisjoint(signs[:place])
                opened = (at, place) if is_clear and _holds(after, before) else None
            elif sign == closing and opened is not None:
                if _holds(before, after):
                    yield opened, (at, place)
                opened = None


def _as_text(before: str, signs: str, after: str) -> str:
    """What the parser would have written had it not seen signs before this: it minds how a line begins, and that code
    does not run into code."""
    if before.endswith("`") and after.startswith("`"):
        return f" {after}"
    is_start = not _CLOSING.issuperset(signs) or before.rstrip(" ").endswith("\n")
    start = _STARTS.match(after) if is_start else None
    return after if start is None else f"{start[0]}\\{after[start.end() :]}"


def _holds(inside: str, outside: str) -> bool:
    """Whether a mark between these two characters is one: it clings to a word."""
    if not inside.strip():
        return False
    return not _is_sign(inside) or not outside.strip() or _is_sign(outside)


def _is_sign(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


# ---- what leads elsewhere

_ALSO_KEPT = re.compile(r"(?:mailto|tel|ftps?):[^\s<>]+", re.IGNORECASE)
_PERMALINKS = frozenset({"", "#", "¶", "§", "🔗", "⚓"})


def _link(link: Element, base: str) -> None:
    """Make it absolute. One that leads nowhere, or to the heading it stands in, is only its text; one that nobody can
    see is nothing."""
    href = (link.attr("href") or "").strip()
    text = " ".join(islice(link.stripped_strings, 2))
    if text in _PERMALINKS and (not text or href.startswith("#")) and not _has(link, "img"):
        link.decompose()
        return
    target = href if _ALSO_KEPT.fullmatch(href) else address(href, base)
    if not target or (href.startswith("#") and isinstance(link.parent, Element) and link.parent.tag in _HEADINGS):
        _forget(link, "href")
        return
    link.attrs["href"] = target
    _forget(link, "title")
    if heading := next(link.iter_elements(_HEADINGS), None):
        # A card that is a link all over: a line of text would be all that is left of it.
        heading.wrap_children(Element("a", {"href": target}))
        link.unwrap()


def _image(image: Element, base: str) -> None:
    alt = image.attr("alt")
    source = address(image.attr("src") or "", base) or address(image.attr("data-src") or "", base)
    is_decoration = alt == "" or image.attr("width") in ("0", "1") or image.attr("height") in ("0", "1")
    if source and not is_decoration:
        image.attrs["src"] = source
    else:
        _replace_by_text(image, alt or "")


def _forget(element: Element, name: str) -> None:
    if element.attr(name) is not None:
        del element.attrs[name]


# ---- code

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|src)-|brush:\s*|(?:hljs|sourceCode)\s+|highlight-(?=\S+\snotranslate))"
    r"([a-z][a-z0-9+#_.-]{0,19})(?=\s|;|$)",
    re.IGNORECASE,
)
_NO_LANGUAGE = frozenset({"default", "none", "notranslate", "plain", "plaintext", "text", "txt"})


def _name_language(block: Element) -> None:
    """Say it where the parser looks for it, on the block itself; pages say it in many places."""
    places = [*islice(block.iter_elements("code"), 1), block, *islice(_around(block), 2)]
    for place in places:
        said = _LANGUAGE.search((place.attr("class") or "")[:1_000])
        name = said[1] if said else place.attr("data-lang") or place.attr("data-language") or ""
        if name and name.isprintable() and " " not in name and name.lower() not in _NO_LANGUAGE:
            for code in block.iter_elements("code"):
                _forget(code, "class")
            block.attrs["class"] = f"language-{name[:20].lower()}"
            return


def _around(element: Element) -> Iterator[Element]:
    return (parent for parent in islice(element.ancestors, 2) if isinstance(parent, Element))


# ---- tables, definitions

_NO_CELL_HOLDS = (*_HEADINGS, "table", "pre", "blockquote", "hr", "dl")


def _table(table: Element) -> None:
    """A grid if it can be one. What holds more than a cell can is only layout, and reads better as plain blocks."""
    rows = [row for part in _parts(table, "tbody", "tfoot", "thead") for row in _parts(part, "tr")]
    if table.attr("role") == "presentation" or _has(table, *_NO_CELL_HOLDS):
        cells = [cell for row in rows for cell in _cells(row)]
        for part in (*cells, *rows, *_parts(table, "caption", "tbody", "tfoot", "thead"), table):
            part.tag = "div"
        return
    room, columns = _MOST_CELLS, max((len(_cells(row)) for row in rows), default=1)
    for row in rows:
        for cell in _cells(row):
            wide, high = min(_span(cell, "colspan"), columns), _span(cell, "rowspan")
            room -= wide * high
            if room > 0 and (wide, high) != (1, 1):
                _spread(cell, row, wide, high)
            _forget(cell, "colspan")
            _forget(cell, "rowspan")
            _flatten(cell)


def _parts(element: Element, *tags: str) -> list[Element]:
    return [part for part in element.children if isinstance(part, Element) and part.tag in tags]


def _cells(row: Element) -> list[Element]:
    return _parts(row, "td", "th")


def _span(cell: Element, name: str) -> int:
    said = (cell.attr(name) or "1").strip()[:4]
    return min(max(int(said), 1), _MOST_SPANNED) if said.isascii() and said.isdigit() else 1


def _spread(cell: Element, row: Element, wide: int, high: int) -> None:
    """Fill the room that a cell takes beyond its own with empty ones."""
    column = _cells(row).index(cell)
    cell.insert_after(*(Element(cell.tag) for _ in range(wide - 1)))
    rows = (below for below in row.next_siblings if isinstance(below, Element) and below.tag == "tr")
    for below in islice(rows, high - 1):
        cells = _cells(below)
        empty = [Element("td") for _ in range(wide)]
        if column < len(cells):
            cells[column].insert_before(*empty)
        else:
            below.extend(empty)


_IN_CELLS = ("div", "figure", "li", "ol", "p", "section", "ul")


def _flatten(cell: Element) -> None:
    """A cell is one line: what stands in blocks there is parted by breaks."""
    blocks = list(islice(cell.iter_elements(_IN_CELLS), _MOST_CELLS))
    for block in blocks:
        if block.tag == "li":
            block.insert(0, Text("• "))
        if _beside(block.previous_siblings):
            space = block.previous_sibling
            block.insert_before(Element("br"))
            if isinstance(space, Text) and not space.data.strip():
                space.decompose()
        if isinstance(_beside(block.next_siblings), Text):
            block.insert_after(Element("br"))
    for block in blocks:
        block.unwrap()


def _definitions(list_: Element) -> None:
    """A list of terms in bold, each with what is said about it."""
    parts = [part for group in (list_, *_parts(list_, "div")) for part in _parts(group, "dd", "dt")]
    defines = any(part.tag == "dd" for part in parts)
    item: Element | None = None
    for part in parts:
        if part.tag == "dt" or item is None:
            item = Element("li")
            part.insert_before(item)
        if part.tag == "dt" and defines:
            _embolden(part)
        part.tag = "div"
        item.append(part)
    list_.tag = "ul"


_STEPS: tuple[tuple[tuple[str, ...], Callable[[Element], None]], ...] = (
    (("button",), _button),
    (("sub", "sup"), _raised),
    (("tt",), _typewriter),
    (("br",), _line_break),
    (("pre",), _name_language),
    (_HEADINGS, _heading),
    (("table",), _table),
    (("dl",), _definitions),
    (("summary",), _embolden),
)
