"""What belongs to a crawl: how far its seeds reach, what the patterns say, and the verdict on each URL found.

Seeds have a place (host and path). A scope of kind `path` takes what lies under it, `host` and `domain` take
more, `any` takes all. What is not taken is refused with a reason that can be asked for. Schemes never matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple, Protocol

import re2

from inchworm.errors import WrongUse
from inchworm.model import FoundUrl, FrontierEntry, Kind, Reason, Seed, Source
from inchworm.rules.web import trap
from inchworm.rules.web.url import host_of, hostname_of, path_of, shorten

KINDS = ("path", "host", "domain", "any")
MAX_URL_LENGTH = 8192

# A letter first, and two characters at least: `/v1.2` and `/6.x` are directories of manuals, not files.
_FILE = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{1,8}\Z")
_IP_ADDRESS = re.compile(r"\[.*\]|[0-9.]+")
_GLOB_PART = re.compile(r"\[[!^]?+.[^\[\]]*\]|.", re.DOTALL)
_SYNTAX = "a glob knows * ? and [...]; after re: comes an RE2 expression, which has no look-around"
_IN_CLASS = re.compile(r"[\\\[\]^]")


def scope_of_seed(url: str) -> tuple[str, str]:
    """The host and the path that a seed stands for; a file stands for its directory."""
    path = path_of(url)
    if _FILE.search(path):
        path = path.rpartition("/")[0]
    return host_of(url), path.rstrip("/") or "/"


def widen(seed: Seed, target: str) -> Seed:
    """The seed after it redirected to `target`: it moves to that host, and has the path there beside its own."""
    host, path = scope_of_seed(target)
    is_inside = any(_holds(own, path) for own in seed.paths)
    return seed._replace(host=host, path=seed.path if is_inside else f"{seed.path} {path}")


def _holds(directory: str, path: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def said_of_move(seed: Seed) -> str:
    """What people are to know of a seed that redirected; nothing when its scope is where it was."""
    host, _ = scope_of_seed(seed.url)
    more = " and ".join(f"{path.rstrip('/')}/" for path in seed.paths[1:])
    if not more and host == seed.host:
        return ""
    then = f"its scope now has {more} too" if more else "its scope moved along"
    return f"The seed {shorten(seed.url, 200)} redirects to {seed.host}; {then}."


@lru_cache(maxsize=4096)
def domain_of(host: str) -> str:
    """The registrable domain: `a.b.co.uk:8080` gives `b.co.uk`. Addresses and single labels stay whole."""
    name = hostname_of(f"http://{host}/").rstrip(".")
    if _IP_ADDRESS.fullmatch(name):
        return host
    return _registrable()(name) or host


def is_public_suffix(name: str) -> bool:
    """Whether everybody can have a name below this one, so that it belongs to nobody."""
    return _registrable()(name) is None


@cache
def _registrable() -> Callable[[str], str | None]:
    # Only crawls of kind `domain`, and those that are given cookies for a domain, pay for the list.
    from publicsuffixlist import PublicSuffixList

    look_up: Callable[[str], str | None] = PublicSuffixList().privatesuffix
    return look_up


@dataclass(frozen=True, slots=True)
class Scope:
    """How far the seeds reach, and which of them a URL belongs to: the one whose path holds it closest."""

    kind: str
    seeds: tuple[Seed, ...]
    loose_paths: bool = False
    _paths: dict[str, dict[str, int]] = field(init=False, repr=False, compare=False)
    _hosts: dict[str, int] = field(init=False, repr=False, compare=False)
    _domains: dict[str, int] = field(init=False, repr=False, compare=False)
    _longest: int = field(init=False, repr=False, compare=False)
    _inside: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise WrongUse(f"unknown scope '{self.kind}'", hint=f"use one of {', '.join(KINDS)}")
        paths: dict[str, dict[str, int]] = {}
        hosts: dict[str, int] = {}
        domains: dict[str, int] = {}
        for seed in sorted(self.seeds, key=lambda seed: seed.number):
            for path in seed.paths:
                paths.setdefault(seed.host, {}).setdefault(path, seed.number)
            hosts.setdefault(seed.host, seed.number)
            if self.kind == "domain":
                domains.setdefault(domain_of(seed.host), seed.number)
        longest = max((len(path) for seed in self.seeds for path in seed.paths), default=0)
        only = self.seeds if len(self.seeds) == 1 else ()
        # What begins like this lies within the only seed there is, as nearly everything does; no need to look closer.
        inside = tuple(
            f"{scheme}://{seed.host}{path.rstrip('/')}/"
            for seed in only
            for path in seed.paths
            for scheme in ("http", "https")
        )
        for name, value in (
            ("_paths", paths),
            ("_hosts", hosts),
            ("_domains", domains),
            ("_longest", longest),
            ("_inside", inside),
        ):
            object.__setattr__(self, name, value)

    def seed_of(self, url: str) -> int | None:
        """The number of the seed that the URL belongs to; None when no seed reaches it."""
        if url.startswith(self._inside):
            return self.seeds[0].number
        host = host_of(url)
        if (paths := self._paths.get(host)) is not None:
            for directory in self._directories(path_of(url)):
                if directory in paths:
                    return paths[directory]
        if self.kind in ("path", "any"):
            return None
        number = self._hosts.get(host)
        return self._domains.get(domain_of(host)) if number is None and self.kind == "domain" else number

    def covers(self, url: str) -> bool:
        return self.kind == "any" or self.seed_of(url) is not None

    def covers_host(self, url: str) -> bool:
        """Whether the URL's host is one of ours, wherever its path lies."""
        if self.kind == "any":
            return True
        host = host_of(url)
        return host in self._hosts or (self.kind == "domain" and domain_of(host) in self._domains)

    def _directories(self, path: str) -> Iterator[str]:
        """Every scope path that would hold this path, longest first: cheap, however many the seeds."""
        if self.loose_paths:
            yield from (path[:end] for end in range(min(len(path), self._longest), 0, -1))
            return
        # What is longer than any seed's path needs no look: a URL of thousands of segments costs no more.
        directory = path[: self._longest + 1]
        while directory:
            yield directory
            directory = directory.rpartition("/")[0]
        yield "/"


class _Pattern(Protocol):
    def search(self, text: bytes) -> object: ...


@dataclass(frozen=True, slots=True)
class Patterns:
    """Include and exclude patterns over the whole canonical URL: globs, or regular expressions after `re:`.

    All run in RE2, so no pattern can make matching slow. Exclude wins; no include pattern means all.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    _include: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_include", tuple(map(_compile, self.include)))
        object.__setattr__(self, "_exclude", tuple(map(_compile, self.exclude)))

    def reason(self, url: str) -> Reason | None:
        if not (self._include or self._exclude):
            return None
        data = url.encode("utf-8", "replace")
        if any(pattern.search(data) for pattern in self._exclude):
            return Reason.EXCLUDED
        if self._include and not any(pattern.search(data) for pattern in self._include):
            return Reason.NOT_INCLUDED
        return None


def _compile(pattern: str) -> _Pattern:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    text = pattern[3:] if pattern.startswith("re:") else rf"(?s)\A{_regex_of_glob(pattern)}\z"
    try:
        compiled: _Pattern = re2.compile(text.encode(), options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if isinstance(error, re2.error) else "it is not text"
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise WrongUse(f"the pattern {shorten(repr(pattern), 200)} cannot be used: {said}", _SYNTAX) from error
    return compiled


def _regex_of_glob(glob: str) -> str:
    return "".join(map(_regex_of_part, _GLOB_PART.findall(glob)))


def _regex_of_part(part: str) -> str:
    if len(part) == 1:
        return {"*": ".*", "?": "."}.get(part) or re.escape(part)
    negation = "^" if part[1] in "!^" else ""
    members = part[1 + len(negation) : -1]
    return f"[{negation}{_IN_CLASS.sub(_escaped, members)}]"


def _escaped(char: re.Match[str]) -> str:
    return "\\" + char[0]


class ScopeVerdict(NamedTuple):
    """Where a found URL would stand, and why it will not be crawled, if so."""

    seed: int
    depth: int
    hops: int
    reason: Reason | None


class Judge(NamedTuple):
    """The rules of a run that say whether a URL found on a page becomes pending or refused."""

    scope: Scope
    patterns: Patterns = Patterns()
    max_depth: int = 0
    external_hops: int = 0
    trap_depth: int = 0

    def judge(self, found: FoundUrl, parent: FrontierEntry) -> ScopeVerdict:
        depth = _depth(found, parent)
        if max(len(found.url), len(found.request_url)) > MAX_URL_LENGTH:
            return ScopeVerdict(parent.seed, depth, parent.hops, Reason.URL_TOO_LONG)
        number = self.scope.seed_of(found.url)
        hops = 0 if self._is_inside(found, number) else self._hops(found, parent)
        seed = parent.seed if number is None else number
        reason = self._reason(found, depth, hops)
        return ScopeVerdict(seed, depth, hops, reason or self._trap(found, parent, depth))

    def _trap(self, found: FoundUrl, parent: FrontierEntry, depth: int) -> Reason | None:
        if not self.trap_depth or found.source is not Source.SPIDER:
            return None
        goes_on = depth > self.trap_depth and trap.counts_on(found.url, parent.url)
        return Reason.TRAP if goes_on or trap.repeats_itself(found.url) else None

    def _is_inside(self, found: FoundUrl, number: int | None) -> bool:
        if number is not None or self.scope.kind == "any" or found.kind is Kind.ROBOTS:
            return True
        # Styles and sitemaps lie where they lie on a host; only pages are bound by the path.
        return found.kind is not Kind.PAGE and self.scope.covers_host(found.url)

    def _hops(self, found: FoundUrl, parent: FrontierEntry) -> int:
        """How far outside. Hops lead over links: what only a sitemap names is further away than any of them goes."""
        if found.source is Source.SITEMAP:
            return self.external_hops + 1
        return max(parent.hops, 1) if found.source is Source.REDIRECT else parent.hops + 1

    def _reason(self, found: FoundUrl, depth: int, hops: int) -> Reason | None:
        if hops > self.external_hops:
            return Reason.HOPS if self.external_hops else Reason.OUT_OF_SCOPE
        if found.kind in (Kind.ROBOTS, Kind.SITEMAP):
            return None
        if reason := self.patterns.reason(found.url):
            return reason
        if found.nofollow:
            return Reason.NOFOLLOW
        is_too_deep = 0 < self.max_depth < depth and found.kind is not Kind.RESOURCE
        return Reason.MAX_DEPTH if is_too_deep else None


def _depth(found: FoundUrl, parent: FrontierEntry) -> int:
    if found.source is Source.SPIDER:
        return parent.depth + 1
    return parent.depth if found.source in (Source.REDIRECT, Source.RESOURCE) else 0
