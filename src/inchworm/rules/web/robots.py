"""robots.txt as RFC 9309 describes it and as Google's parser reads it, forgivingness included.

Our own matcher, because the verdict hangs on details in which libraries differ (docs/decisions/0002).
Parsing is one pass over at most 500 KiB, and matching a rule is one walk over the path without going back. Of many
rules only those are tried of which a telling piece is in the path, so that thousands of them cost little more than ten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, KeysView
from dataclasses import dataclass, field
from typing import NamedTuple

from inchworm.rules.web import url as urls

MAX_BYTES = 512_000
_FEW_RULES = 64
"""So many are tried one after the other in less time than it takes to look them up."""
_FEW_PIECES = 32

_MAX_LINE_BYTES = 2083 * 8 - 1
_BOM = b"\xef\xbb\xbf"

# Keys are known by how they begin, with the typing mistakes that are common enough to have a meaning.
_AGENT = (b"user-agent", b"useragent", b"user agent")
_ALLOW = b"allow"
_DISALLOW = (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")
_SITEMAP = (b"sitemap", b"site-map")
_DELAY = b"crawl-delay"

_LINE_END = re.compile(rb"[\r\n]+")
_HTML = re.compile(rb"<(?:!doctype|html|head|body|title)\b", re.IGNORECASE)
_TOKEN = re.compile("[A-Za-z_-]*")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_SECONDS = re.compile(rb"\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}")
_BEFORE_PATH = re.compile("(?://)?(?:[^/?;]*://)?[^/?;]*")


class Rule(NamedTuple):
    """An allow or disallow line, its pattern cut at the stars: a beginning, pieces, perhaps an end."""

    allow: bool
    length: int
    beginning: str
    middle: tuple[str, ...] = ()
    end: str | None = None
    exact: bool = False

    def matches(self, path: str) -> bool:
        if self.exact or not path.startswith(self.beginning):
            return path == self.beginning
        # The first place of each piece is enough: what a later one would allow, the next star reaches too.
        at = len(self.beginning)
        for piece in self.middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return self.end is None or (len(path) - len(self.end) >= at and path.endswith(self.end))


class _Rules:
    """An agent's rules, those that decide first: the longest, and allow before disallow."""

    def __init__(self, groups: list[list[Rule]]) -> None:
        rules = {rule for group in groups for rule in group}
        self._rules = tuple(sorted(rules, key=lambda rule: (-rule.length, not rule.allow)))
        self._index = _RuleIndex(self._rules) if len(rules) > _FEW_RULES else None

    def __bool__(self) -> bool:
        return bool(self._rules)

    def allow(self, path: str) -> bool:
        rules = self._rules if self._index is None else self._index.find(path)
        for rule in rules:
            if rule.matches(path):
                return rule.allow
        return True


_Sizes = dict[int, dict[str, list[int]]]


class _RuleIndex:
    """Where each rule stands, by the piece of it that the fewest others have: its beginning, its end or one between.

    Pieces of one length are looked up together, so the cost of a verdict goes by the length of the path and by the
    number of different lengths. An automaton of all patterns at once (RE2's) takes tens of megabytes for such a file,
    and gives up in silence when they are used up.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._beginnings: _Sizes = {}
        self._ends: _Sizes = {}
        self._middles: _Sizes = {}
        have = Counter(piece for rule in rules for _, piece in self._pieces(rule))
        for number, rule in enumerate(rules):
            sizes, piece = min(self._pieces(rule), key=lambda one: (have[one[1]], -len(one[1])))
            sizes.setdefault(len(piece), {}).setdefault(piece, []).append(number)

    def _pieces(self, rule: Rule) -> Iterator[tuple[_Sizes, str]]:
        yield self._beginnings, rule.beginning
        if rule.end:
            yield self._ends, rule.end
        for piece in rule.middle:
            yield self._middles, piece

    def find(self, path: str) -> Iterator[Rule]:
        """The rules that may match, in their order."""
        found: list[int] = []
        places = _Places(path)
        for size, numbers in self._beginnings.items():
            found += numbers.get(path[:size], ())
        for size, numbers in self._ends.items():
            found += numbers.get(path[-size:], ())
        for size, numbers in self._middles.items():
            for piece in places.find(size, numbers.keys()):
                found += numbers[piece]
        return (rule for number in sorted(found) if places.allow_for(rule := self._rules[number]))


class _Places(dict[str, tuple[int, int]]):
    """Where in a path each piece begins for the first and for the last time, searched for once for all rules."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __missing__(self, piece: str) -> tuple[int, int]:
        found = self[piece] = (self._path.find(piece), self._path.rfind(piece))
        return found

    def find(self, size: int, wanted: KeysView[str]) -> set[str]:
        """Those of the wanted pieces, which have this size, that are there."""
        path, every = self._path, range(len(self._path) - size + 1)
        # To search for one piece takes as long as to cut off many, and in the worst of paths (`aaaa…`) far longer.
        if _FEW_PIECES * len(wanted) < len(every):
            return {piece for piece in wanted if piece in path}
        last = {path[at : at + size]: at for at in every}
        if found := last.keys() & wanted:
            first = {path[at : at + size]: at for at in reversed(every)}
            self.update((piece, (first[piece], last[piece])) for piece in found)
        return found

    def allow_for(self, rule: Rule) -> bool:
        """Whether the rule's pieces are there, as far as can be said without a look between them."""
        at = len(rule.beginning)
        for piece in rule.middle:
            first, last = self[piece]
            if last < at:
                return False
            at = max(at, first) + len(piece)
        return True


@dataclass(frozen=True, slots=True)
class Robots:
    """A parsed robots.txt. Agents are product tokens in lower case; `*` stands for all that are not named."""

    groups: dict[str, list[list[Rule]]] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    sitemaps: tuple[str, ...] = ()
    # An agent's groups are merged when it first asks, not per URL; askers are one or a handful.
    _merged: dict[str, _Rules] = field(default_factory=dict, init=False, repr=False, compare=False)

    def allows(self, user_agent: str, url: str) -> bool:
        """Whether this agent (a User-Agent header, or its product token alone) may fetch the URL."""
        rules = self._rules(user_agent)
        path = _path_and_query(url) if rules else "/robots.txt"
        return path == "/robots.txt" or rules.allow(path)

    def delay(self, user_agent: str) -> float | None:
        """The Crawl-delay of this agent's groups in seconds, however long."""
        return self.delays.get(self._agent(user_agent)) if self.delays else None

    def _agent(self, user_agent: str) -> str:
        token = _token(user_agent)
        return token if token in self.groups else "*"

    def _rules(self, user_agent: str) -> _Rules:
        if user_agent not in self._merged:
            self._merged[user_agent] = _Rules(self.groups.get(self._agent(user_agent), []))
        return self._merged[user_agent]


def parse(data: bytes) -> Robots:
    """The rules in a robots.txt. Never raises: what makes no sense is no rule, and a web page has none."""
    reader = _Reader()
    for key, value in _lines(data):
        if key.startswith(_AGENT):
            reader.agent(value)
        elif key.startswith(_ALLOW):
            reader.rule(True, value)
        elif key.startswith(_DISALLOW):
            reader.rule(False, value)
        elif key.startswith(_SITEMAP):
            reader.sitemap(value)
        elif key.startswith(_DELAY):
            reader.delay(value)
    return Robots(reader.groups, reader.delays, tuple(reader.sitemaps))


def whole_lines(data: bytes, is_cut: bool = False) -> bytes:
    """What counts of a file: its first 500 KiB, without a line of which only the beginning is there.

    `/a/b` cut to `/` would forbid the whole site. `is_cut`: somebody cut it already, wherever that was.
    """
    if len(data) <= MAX_BYTES and not is_cut:
        return data
    # The byte behind the limit says whether the last line ends there.
    end = max(data.rfind(b"\n", 0, MAX_BYTES + 1), data.rfind(b"\r", 0, MAX_BYTES + 1))
    return data[: min(end + 1, MAX_BYTES)]


class _Reader:
    """The state between two lines. Agents share their group: many agents with many rules stay cheap."""

    def __init__(self) -> None:
        self.groups: dict[str, list[list[Rule]]] = {}
        self.delays: dict[str, float] = {}
        self.sitemaps: dict[str, None] = {}
        self._group: list[Rule] = []
        self._has_rules = True
        self._without_delay: list[str] = []

    def agent(self, value: bytes) -> None:
        # Only allow and disallow end the list of agents; a sitemap or a delay between two of them does not.
        if self._has_rules:
            self._group, self._without_delay, self._has_rules = [], [], False
        is_everybody = value[:1] == b"*" and not value[1:2].strip()
        agent = "*" if is_everybody else _token(value.decode("latin-1"))
        groups = self.groups.setdefault(agent, [])
        if not groups or groups[-1] is not self._group:
            groups.append(self._group)
        self._without_delay.append(agent)

    def rule(self, allow: bool, value: bytes) -> None:
        self._has_rules = True
        if self.groups and value:
            self._group.extend(_rules(allow, _escaped(value)))

    def delay(self, value: bytes) -> None:
        """For the agents named before it; those named after it share the group's rules, not its delay."""
        if _SECONDS.fullmatch(value):
            for agent in self._without_delay:
                self.delays[agent] = max(self.delays.get(agent, 0.0), float(value))
            self._without_delay = []

    def sitemap(self, value: bytes) -> None:
        if href := urls.parse(value.decode("utf-8", "replace")):
            self.sitemaps[href] = None


def _lines(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each line that has both."""
    text = whole_lines(data)
    text = text[next(n for n in (3, 2, 1, 0) if text.startswith(_BOM[:n])) :]
    if text[:1024].lstrip().startswith(b"<") and _HTML.search(text[:1024]):
        return
    for line in _LINE_END.split(text):
        key, value = _key_and_value(line[:_MAX_LINE_BYTES].partition(b"\0")[0].partition(b"#")[0].strip())
        if key:
            yield key.strip().lower(), value.strip()


def _key_and_value(line: bytes) -> tuple[bytes, bytes]:
    key, colon, value = line.partition(b":")
    if colon:
        return key, value
    # Without a colon, two words are still a key and a value; more are a sentence.
    words = line.split()
    return (words[0], words[1]) if len(words) == 2 else (b"", b"")


def _token(user_agent: str) -> str:
    """The product token: `FooBot` of `FooBot/2.1 (+https://foo.example/bot)`."""
    found = _TOKEN.match(user_agent)
    return found[0].lower() if found else ""


def _escaped(value: bytes) -> str:
    """As URLs are written: bytes beyond ASCII as escapes, escapes in capitals, none of them decoded."""
    if value.isascii():
        text = value.decode("ascii")
    else:
        text = "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in value)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), text) if "%" in text else text


def _rules(allow: bool, pattern: str) -> Iterator[Rule]:
    yield _rule(allow, pattern)
    directory, slash, page = pattern.rpartition("/")
    if allow and slash and page.startswith("index.htm"):
        yield _rule(allow, f"{directory}/$")


def _rule(allow: bool, pattern: str) -> Rule:
    body = pattern.removesuffix("$")
    is_anchored = body != pattern
    beginning, *rest = body.split("*")
    if not rest:
        return Rule(allow, len(pattern), beginning, exact=is_anchored)
    end = rest.pop() if is_anchored else None
    return Rule(allow, len(pattern), beginning, tuple(filter(None, rest)), end)


def _path_and_query(url: str) -> str:
    address = url.partition("#")[0]
    before = _BEFORE_PATH.match(address)
    rest = address[before.end() :] if before else ""
    path = rest if rest.startswith("/") else "/" + rest
    return _ESCAPE.sub(lambda escape: escape[0].upper(), path) if "%" in path else path
