"""The text of a part as it is kept: as people would see it, or with its white space as it shows."""

from __future__ import annotations

from turbohtml import Element, Node, Text

from inchworm.rules.text.content import as_written


def laid_out(part: Node) -> str:
    """The text of a part as people would see it. The tree is put in order for it, as nothing is read from it after."""
    for caption in list(part.iter_elements("caption")):
        _put_first(caption, part)
    return part.to_text()


def _put_first(caption: Element, part: Node) -> None:
    """Tables are laid out without their captions, so those go before them, where they are shown."""
    table = caption.parent
    if isinstance(table, Element) and table != part:
        caption.tag = "p"
        table.insert_before(caption)


_BLOCK = "address article aside blockquote caption center dd details dialog dir div dl dt fieldset figcaption figure"
_BLOCK += " footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option"
_BLOCK += " p plaintext pre search section select summary table tbody td textarea tfoot th thead tr ul xmp"
_BLOCKS = frozenset(_BLOCK.split())
_BLOCK_TAGS = tuple(_BLOCKS)
_LAID_OUT = (
    "blockquote caption center dialog dir fieldset form hgroup legend menu ol optgroup option search select table"
)
_LAID_OUT += " tbody td tfoot th thead tr ul"
_LAID_OUT_TAGS = frozenset(_LAID_OUT.split())
"""Blocks that the parser lays out with bullets, indented or in columns, or that it does not take for blocks."""
_OTHERWISE = frozenset({"caption", "listing", "plaintext", "pre", "textarea", "xmp"})
# White space that has to survive until all other is folded. These characters have no meaning in a text.
_KEPT = ((" ", "\x01"), ("\n", "\x02"), ("\t", "\x03"))


def shown(part: Node) -> str:
    """The text of a part with its white space as it shows: one space between words and between blocks, and lines as
    they are in what is set as it was written. The tree is changed for it: nothing can be read from it after."""
    has_lines = False
    # The parser folds white space ten times faster than we could, and lays out plain blocks by lines and no more.
    seen: Node | None = part
    for block in list(part.iter_elements(_BLOCK_TAGS, include_self=True)):
        if (tag := block.tag) in _OTHERWISE:
            if tag == "caption":
                _put_first(block, part)
            else:
                _keep_lines(block)
                has_lines = True
        elif tag in _LAID_OUT_TAGS:
            block.tag = "div"
        # Neighbors have the same around them.
        if (around := block.parent) is not seen and block != part:
            if type(around) is Element and around.tag not in _BLOCKS:
                _spread(around, part)
            seen = around
    text = " ".join(part.to_text().split("\n\n")).replace("\n", " ").replace("\xa0", " ")
    for character, mark in _KEPT if has_lines else ():
        text = text.replace(mark, character)
    return text


def _spread(around: Node | None, part: Node) -> None:
    """What has a block inside is one, whatever it is called, as a link around a card."""
    while type(around) is Element and around.tag not in _BLOCKS and around != part:
        around.tag = "div"
        around = around.parent


def _keep_lines(element: Element) -> None:
    element.tag = "div"
    if next(element.iter_elements(_BLOCK_TAGS), None) is None:
        element.set_text(_kept(as_written(element.text)))
        return
    for node in list(element.descendants):
        if isinstance(node, Text):
            node.data = _kept(node.data)


def _kept(text: str) -> str:
    text = text.replace("\u00a0", " ")
    for character, mark in _KEPT:
        text = text.replace(character, mark)
    return text
