"""Links in a page's Markdown: where they lead, and putting others in their place. What stands in code is no link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# An escape, code between single ticks, where other code begins, or the text of a link, or where that ends, or an
# address that is a link by itself. Each begins with a letter, and not with something that may be there: so `re` looks
# for those letters first, which is four times as fast.
_SIGN = re.compile(r"\\.|`[^`]+`(?!`)|``*|!\[|\[|\](?:\()?|<(https?://[^\s<>\[\]`]+)>", re.DOTALL)
_IN_ADDRESS = re.compile(r"\\.|[()]|\s|[^\\()\s]+", re.DOTALL)
_BEHIND = re.compile(r'(?:[ \t]+"(?:\\.|[^"\\])*")?\)')
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_WEB = ("http://", "https://")
# Nobody writes more of these; what is beyond is text.
_DEEPEST = 100
_LONGEST = 20_000
_MOST_TICKS = 20
_MOST_BRACKETS = 32


class LinkSpan(NamedTuple):
    """A link or an image, and where in the text its address stands; of one that is only an address, all of it."""

    start: int
    end: int
    url: str
    is_image: bool = False
    is_bare: bool = False


def links(markdown: str) -> list[LinkSpan]:
    """All links to web addresses, in their order."""
    found: list[LinkSpan] = []
    opened: list[bool] = []
    at = 0
    while sign := _SIGN.search(markdown, at):
        at, text = sign.end(), sign[0]
        if text[0] == "`":
            at = at if text.strip("`") else _behind_code(markdown, at, text)
        elif text[0] == "<":
            found.append(LinkSpan(sign.start(), at, sign[1], is_bare=True))
        elif text.endswith("["):
            opened = [*opened[-_DEEPEST:], text[0] == "!"]
        elif text[0] == "]" and opened:
            is_image = opened.pop()
            if text == "](" and markdown.startswith(_WEB, at) and (end := _end_of_address(markdown, at)):
                found.append(LinkSpan(at, end, _ESCAPE.sub(r"\1", markdown[at:end]), is_image))
                at = end
    return found


def _behind_code(markdown: str, at: int, ticks: str) -> int:
    """Code ends with as many ticks as it began with; without them they were only ticks."""
    end = re.compile(f"(?<!`){ticks}(?!`)").search(markdown, at) if len(ticks) <= _MOST_TICKS else None
    return end.end() if end else at


def _end_of_address(markdown: str, at: int) -> int | None:
    """Where an address ends that begins here, if what stands behind it is the end of a link."""
    depth = 0
    for part in _IN_ADDRESS.finditer(markdown, at, at + _LONGEST):
        text = part[0]
        depth += (text == "(") - (text == ")")
        if depth < 0 or text.isspace():
            return part.start() if _BEHIND.match(markdown, part.start()) else None
        if depth > _MOST_BRACKETS:
            break
    return None


def leading(markdown: str, found: Iterable[LinkSpan], targets: Mapping[str, str]) -> str:
    """The text with other addresses for some of its links."""
    parts, at = [], 0
    for link in found:
        if (target := targets.get(link.url)) is not None:
            parts += [markdown[at : link.start], f"[{link.url}]({target})" if link.is_bare else target]
            at = link.end
    return "".join((*parts, markdown[at:]))
