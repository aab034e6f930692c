"""Every setting as one row: default, unit, help, and whether it belongs to the run, to the session or to the service.

A *run* setting is frozen when its run starts, because changing it half way would make the record
meaningless. A *session* setting is free on every resume. A *service* setting is `inchworm serve`'s. Flags, environment,
file and reference page are all made from these rows.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from inchworm.errors import WrongUse

RUN = "run"
SESSION = "session"
SERVICE = "service"

SettingValue: TypeAlias = bool | int | float | str | Sequence[str] | Mapping[str, str]
"""What a setting may be given as; `check` says what it comes to. A mapping is for lists of name=value."""

NamedSettings: TypeAlias = Mapping[str, SettingValue]
"""Some of the settings, by their names."""

USER_AGENT = "inchworm/0.1 (+https://github.com/inchworm/inchworm)"


def _row(default: Any, belongs: str, unit: str, text: str, **extra: Any) -> Any:
    """A setting. `extra`: `flag` when it is not --its-name, `least` and `most`, `choices`, `once` when it is about the
    session that it was named for and never belongs to the crawl, `kept` when whoever names it means all sessions from
    now on, `reads` when the `links` or the `text` of pages that were read with another value have to be read again,
    `pairs` for a list whose items are name=value, and may come as a mapping."""
    return dataclasses.field(default=default, metadata={"belongs": belongs, "unit": unit, "help": text, **extra})


@dataclass(frozen=True, slots=True)
class Settings:
    """The values one session works with."""

    scope: str = _row(
        "path", RUN, "", "how far the crawl may go from its seeds", choices=("path", "host", "domain", "any")
    )
    loose_paths: bool = _row(False, RUN, "", "let /docs also take /docs-old, not only /docs/…")
    include: tuple[str, ...] = _row((), RUN, "pattern", "crawl only URLs that match (glob, or re:regex)")
    exclude: tuple[str, ...] = _row((), RUN, "pattern", "never crawl URLs that match (glob, or re:regex)")
    external_hops: int = _row(0, RUN, "hops", "follow links out of scope this far (0: not at all)", least=0, most=5)
    max_depth: int = _row(0, RUN, "links", "follow links this deep from a seed (0: no limit)", least=0)
    trap_depth: int = _row(
        1000,
        RUN,
        "links",
        "deeper than this, URLs that only count on are a trap (0: look for no traps)",
        least=0,
    )
    order: str = _row("breadth", RUN, "", "what comes first", choices=("breadth", "best", "freshness"))
    query: str = _row("", RUN, "text", "what the crawl looks for: pages that promise most for it come first")
    page_limit: int = _row(0, RUN, "pages", "keep at most this many unique pages per seed (0: no limit)", least=0)
    resources: bool = _row(False, RUN, "", "also fetch scripts, styles, images and fonts", reads="links")
    sitemap: bool = _row(True, RUN, "", "read sitemaps", flag="--no-sitemap")
    robots: bool = _row(True, RUN, "", "obey robots.txt and meta robots", flag="--ignore-robots")
    cookies: bool = _row(True, RUN, "", "keep cookies and send them back", flag="--no-cookies")
    strict_order: bool = _row(False, RUN, "", "one exact order over all hosts, at the pace of the slowest")
    drop_params: tuple[str, ...] = _row(
        (),
        RUN,
        "names",
        "query parameters that do not tell pages apart (default: a list of trackers)",
        reads="links",
    )
    user_agent: str = _row(USER_AGENT, RUN, "text", "what to call ourselves")
    rotate_user_agent: bool = _row(False, RUN, "", "call ourselves by the names of common browsers, in turn")
    compare_by: str = _row(
        "text", RUN, "", "what makes a page modified: its text, title and links, or any byte", choices=("text", "bytes")
    )
    ignore_text: tuple[str, ...] = _row(
        (),
        RUN,
        "pattern",
        "text that does not count when pages are compared (words with *, or re:regex)",
        reads="text",
    )
    max_redirects: int = _row(10, RUN, "hops", "give up after this many redirects in a row", least=0, most=50)
    replay: tuple[str, ...] = _row((), RUN, "warc", "crawl from these WARC files instead of the network")

    workers: int = _row(5, SESSION, "fetches", "how many pages to fetch at once", least=1, most=1000)
    budget: int = _row(
        0, SESSION, "requests", "stop this session after so many requests (0: no limit)", least=0, once=True
    )
    max_bytes: int = _row(
        0, SESSION, "bytes", "stop this session after so many bytes (0: no limit)", least=0, once=True
    )
    max_time: float = _row(0.0, SESSION, "seconds", "stop this session after so long (0: no limit)", least=0, once=True)
    stop_below: float = _row(
        0.0,
        SESSION,
        "share",
        "stop when less than this share of the last pages is new, or matches the query",
        least=0,
        most=1,
        once=True,
    )
    stop_window: int = _row(100, SESSION, "pages", "how many pages --stop-below looks back on", least=1, once=True)
    delay: float = _row(0.5, SESSION, "seconds", "least time between two requests to one host", least=0)
    connections_per_host: int = _row(
        0, SESSION, "fetches", "most fetches at once from one host (0: all but one for every other host)", least=0
    )
    max_delay: float = _row(60.0, SESSION, "seconds", "never wait longer for a robots.txt Crawl-delay", least=0)
    proxies: tuple[str, ...] = _row(
        (), SESSION, "url", "go through this proxy (http, https, socks5); several are taken in turn", flag="--proxy"
    )
    checkpoint_every: int = _row(100, SESSION, "pages", "make a checkpoint every so many pages (0: never)", least=0)
    max_retries: int = _row(2, SESSION, "tries", "try again this often after a passing failure", least=0, most=100)
    timeout: float = _row(30.0, SESSION, "seconds", "total time for one request", least=0.1)
    connect_timeout: float = _row(10.0, SESSION, "seconds", "time to connect", least=0.1)
    first_byte_timeout: float = _row(20.0, SESSION, "seconds", "time until the answer begins", least=0.1)
    max_body: int = _row(20_000_000, SESSION, "bytes", "largest body, after decompression (0: no limit)", least=0)
    max_age: float = _row(0.0, SESSION, "duration", "reuse pages of this crawl younger than this", least=0)
    skip_cache: bool = _row(False, SESSION, "", "reuse nothing and send no validators")
    allow_private: bool = _row(False, SESSION, "", "allow private, loopback and link-local addresses", once=True)
    host_patience: float = _row(
        86_400.0, SESSION, "seconds", "wait so long for a host that stopped answering before its URLs fail", least=0
    )
    max_wait: float = _row(
        300.0, SESSION, "seconds", "pause the run when all that is left must wait longer", least=0, once=True
    )
    grace: float = _row(10.0, SESSION, "seconds", "time for requests in flight to finish on a pause", least=0)
    index: str = _row("", SESSION, "url", "keep an index of the pages on this Elasticsearch or OpenSearch server")
    extract: tuple[str, ...] = _row(
        (), SESSION, "name=selector", "take this field out of every page (CSS or XPath)", kept=True, pairs=True
    )
    each: str = _row("", SESSION, "selector", "make a row of fields for every match of this on a page", kept=True)
    frame: str = _row(
        "drop",
        SESSION,
        "",
        "what exports, search and indexes do with blocks that stand on most pages of a host",
        kept=True,
        choices=("drop", "keep"),
    )
    stale: float = _row(60.0, SESSION, "seconds", "take a run over when its owner stood still for so long", least=0.5)

    executions: int = _row(4, SERVICE, "processes", "how many executions of jobs to run at once", least=1, most=256)
    poll: float = _row(10.0, SERVICE, "seconds", "how often to look for jobs that are due", least=0.05)
    stale_check: float = _row(60.0, SERVICE, "seconds", "how often to look for jobs whose process is gone", least=0.05)
    stale_lock: float = _row(300.0, SERVICE, "seconds", "give a job to another process after so long", least=0.5)
    metrics_every: float = _row(30.0, SERVICE, "seconds", "how often to sum up what the service does", least=0.1)
    host_names: tuple[str, ...] = _row((), SERVICE, "names", "names under which browsers may reach the service")
    allowed_proxies: tuple[str, ...] = _row(
        (), SERVICE, "url", "a proxy that callers of the HTTP API may name", flag="--allowed-proxy"
    )
    allowed_indexes: tuple[str, ...] = _row(
        (), SERVICE, "url", "a search server that callers of the HTTP API may name", flag="--allowed-index"
    )


FIELDS: Mapping[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(Settings)}
_TYPES: Mapping[str, Any] = typing.get_type_hints(Settings)

ALIASES: Mapping[str, str] = {
    "CRAWLER_RESPECT_ROBOTS_TXT": "robots",
    "CRAWLER_USE_RANDOM_USER_AGENT": "rotate_user_agent",
    "FETCHER_MAX_REDIRECTS": "max_redirects",
}
"""Environment names of other crawlers that mean the same."""

_UNSERVED: Mapping[str, str] = {
    "CRAWLER_SOURCES_API_URL": "no list of sources is imported",
    "CRAWLER_READABILITY_FALLBACK_ENABLED": "there is one reader of pages, and no other to fall back on",
    "CRAWLER_MINIO_ENABLED": "archives are kept in the home",
    "CRAWLER_FEED_DISCOVERY_ENABLED": "no feeds are looked for",
    "CRAWLER_FEED_POLL_ENABLED": "no feeds are polled",
    "REDIS_EVENTS_ENABLED": "nobody listens to Redis",
}
"""Environment names of other crawlers that are known and do nothing yet, and what happens instead."""

_OURS = "INCHWORM_"
_OTHER_NAMES = frozenset(
    [
        *("HOME", "NOTIFY_SECRET", "EXECUTION_TOKEN", "FAULT"),
        # What our tests and benchmarks read.
        *("ARTEFACTS", "CHAOS_JOBS", "CHAOS_SECONDS", "KILLS", "LOG_LINES", "NAME", "ROUNDS", "SEED"),
        *("FUZZ_PAGES", "FUZZ_SEED", "HOSTILE_DOCUMENTS", "TEST_SITES", "TEST_HISTORIES", "TEST_SITES_FROM"),
    ]
)
"""What may stand behind INCHWORM_ beside the settings."""

_LINK = re.compile(r"SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?")
"""What Kubernetes puts behind INCHWORM_ for a service of that name, whether one likes it or not."""

DEEP = 5
"""Links: whoever goes deeper is warned."""


def flag_of(name: str) -> str:
    return str(FIELDS[name].metadata.get("flag", "--" + name.replace("_", "-")))


def belongs_to_run(name: str) -> bool:
    return belongs_to(name, RUN)


def belongs_to(name: str, whom: str) -> bool:
    return bool(FIELDS[name].metadata["belongs"] == whom)


def belongs_to_crawl(name: str) -> bool:
    """Whether a session setting that was named when a crawl was made holds for all its sessions. What ends a session is
    about that session, and a permission is given anew."""
    return belongs_to(name, SESSION) and not FIELDS[name].metadata.get("once")


def of_reading(values: Settings, what: str) -> dict[str, SettingValue]:
    """Those that say how the `links` or the `text` of pages is read, where they are not as usual."""
    found = {name: getattr(values, name) for name, row in FIELDS.items() if row.metadata.get("reads") == what}
    return {name: value for name, value in found.items() if value != FIELDS[name].default}


def is_kept(name: str) -> bool:
    """Whether naming it for one session sets it for all from then on."""
    return bool(FIELDS[name].metadata.get("kept"))


def make(given: NamedSettings) -> Settings:
    """Settings with these values, every one checked. Whoever looks for something wants the best first."""
    checked = _checked(given)
    if checked.get("query") and "order" not in checked:
        checked["order"] = "best"
    return Settings(**checked)


def changed(values: Settings, given: NamedSettings) -> Settings:
    """Settings with some of them as they are given, every one checked."""
    return dataclasses.replace(values, **_checked(given))


def _checked(given: NamedSettings) -> dict[str, Any]:
    return {name: check(name, value) for name, value in given.items()}


def of_run(given: NamedSettings) -> dict[str, SettingValue]:
    """Those that belong to the run, every one checked."""
    return {name: check(name, value) for name, value in given.items() if belongs_to_run(name)}


def texts(given: NamedSettings, name: str) -> tuple[str, ...]:
    """A setting that is a list of texts; none when it is not named."""
    found: tuple[str, ...] = check(name, given.get(name, ()))
    return found


def plain(value: SettingValue) -> SettingValue:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def check(name: str, value: Any) -> Any:
    """The value in its right type, or an error that says what would be right."""
    if name not in FIELDS:
        raise WrongUse(f"There is no setting called {name!r}.", "`inchworm crawl --help` lists them.")
    wanted, meta = _TYPES[name], FIELDS[name].metadata
    if meta.get("pairs") and isinstance(value, Mapping):
        value = [f"{key}={text}" for key, text in value.items()]
    try:
        result = _convert(value, wanted)
    except (OverflowError, TypeError, ValueError):
        raise WrongUse(f"{name} cannot be {value!r}.", f"It takes {_describe(name)}.") from None
    below = "least" in meta and result < meta["least"]
    above = "most" in meta and result > meta["most"]
    unlisted = "choices" in meta and result not in meta["choices"]
    texts = (result,) if isinstance(result, str) else result if isinstance(result, tuple) else ()
    unprintable = any(ord(mark) < 32 or ord(mark) == 127 for text in texts for mark in text)
    if below or above or unlisted or unprintable or result != result:
        raise WrongUse(f"{name} cannot be {value!r}.", f"It takes {_describe(name)}.")
    return result


def _convert(value: Any, wanted: Any) -> Any:
    if isinstance(wanted, types.GenericAlias):
        return (value,) if isinstance(value, str) else tuple(str(v) for v in value)
    if wanted is bool:
        return value if isinstance(value, bool) else _boolean(str(value))
    if wanted is float:
        return duration(value) if isinstance(value, str) else float(value)
    if value is None or (wanted is int and isinstance(value, float) and value != int(value)):
        raise ValueError(value)
    return wanted(value)


_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off", "")


def _boolean(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise ValueError(text)


_UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def duration(text: str) -> float:
    """Seconds of '90', '1.5h', '1h30m', '7d'."""
    pieces = re.findall(r"\s*(\d+(?:\.\d+)?)\s*(ms|min|[smhdw]?)", text)
    whole = "".join(number + unit for number, unit in pieces) == re.sub(r"\s+", "", text)
    if not pieces or not whole or any(not unit for _, unit in pieces[:-1]):
        raise ValueError(text)
    return float(sum(float(number) * _UNITS[unit] for number, unit in pieces))


def _describe(name: str) -> str:
    meta = FIELDS[name].metadata
    if "choices" in meta:
        return "one of " + ", ".join(meta["choices"])
    kind = {int: "a whole number", float: "a number or a duration such as 90, 1.5h or 7d", bool: "yes or no"}
    limits = [f"at least {meta['least']}"] if "least" in meta else []
    limits += [f"at most {meta['most']}"] if "most" in meta else []
    return " ".join([kind.get(_TYPES[name], "text"), *([", ".join(limits)] if limits else [])])


def from_environment(environment: Mapping[str, str]) -> dict[str, SettingValue]:
    """What INCHWORM_… variables and their aliases say."""
    refuse_unknown(environment)
    names = dict(ALIASES) | {f"INCHWORM_{name.upper()}": name for name in FIELDS}
    found = {name: check(name, environment[key]) for key, name in names.items() if key in environment}
    if environment.get("FETCHER_FOLLOW_REDIRECTS", "").lower() in ("0", "false", "no", "off"):
        found["max_redirects"] = 0
    for name in _ADDRESSES:
        if (key := f"INCHWORM_{name.upper()}") in environment:
            found[name] = check(name, _words(environment[key]))
    if "proxies" not in found and _is_on(environment, "CRAWLER_PROXIES_ENABLED"):
        found["proxies"] = _words(environment.get("CRAWLER_PROXY_URLS", ""))
    return found


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """A variable with our name on it that nobody reads is a slip of the pen, as it would be in config.toml."""
    known = {name.upper() for name in FIELDS} | _OTHER_NAMES
    for key, value in environment.items():
        name = key.removeprefix(_OURS)
        is_link = _LINK.fullmatch(name) or (name == "PORT" and "://" in value)
        if key.startswith(_OURS) and name not in known and not is_link:
            near = difflib.get_close_matches(name, sorted(known), 1)
            hint = f"Did you mean {_OURS}{near[0]}?" if near else "`inchworm crawl --help` lists the settings."
            raise WrongUse(f"The environment has {key}, and there is no such setting.", hint)


_ADDRESSES = ("proxies", "allowed_proxies", "allowed_indexes")
"""Lists that a variable may hold more than one item of."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in _YES


def notes(environment: Mapping[str, str]) -> list[str]:
    """What to tell a user about variables of other crawlers that are set and have no effect here."""
    found = [
        f"{name} does nothing in this version: {instead}."
        for name, instead in _UNSERVED.items()
        if environment.get(name, "").lower() not in _NO
    ]
    if _is_on(environment, "CRAWLER_REDIS_STORAGE_ENABLED"):
        found.append("CRAWLER_REDIS_STORAGE_ENABLED changes nothing: state is always durable here.")
    is_on, addresses = _is_on(environment, "CRAWLER_PROXIES_ENABLED"), environment.get("CRAWLER_PROXY_URLS", "")
    if addresses and not is_on:
        found.append("CRAWLER_PROXY_URLS does nothing without CRAWLER_PROXIES_ENABLED=true.")
    if is_on and not addresses:
        found.append("CRAWLER_PROXIES_ENABLED does nothing without CRAWLER_PROXY_URLS.")
    return found


def cautions(values: NamedSettings) -> list[str]:
    """What to tell a user about settings that are allowed and seldom meant."""
    if check("max_depth", values.get("max_depth", 0)) > DEEP:
        return [
            f"max_depth is {values['max_depth']}: more than {DEEP} links from a seed, most sites have no end."
            " A page limit or a budget keeps the crawl in bounds."
        ]
    return []


def from_file(path: Path) -> dict[str, SettingValue]:
    """What a TOML file of `name = value` lines says; nothing when there is no file."""
    try:
        text = path.read_text()
        values = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}.", "Mend or remove it.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} is not valid TOML: {error}.", "Mend or remove it.") from None
    return {name: _check_line(path, text, name, value) for name, value in values.items()}


def _check_line(path: Path, text: str, name: str, value: Any) -> Any:
    """A value of a file; what is wrong with it is said with its line, and a name that is none with the nearest one."""
    try:
        return check(name, value)
    except WrongUse as error:
        key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
        lines = (number for number, line in enumerate(text.splitlines(), 1) if key.match(line))
        nearest = difflib.get_close_matches(name, FIELDS, 1) if name not in FIELDS else []
        hint = f"Did you mean {nearest[0]}? " if nearest else ""
        raise WrongUse(f"{path}, line {next(lines, '?')}: {error.message}", hint + error.hint) from None


def to_json(settings: Settings, belongs: str | None = None) -> dict[str, SettingValue]:
    """Settings as plain values, all or only those of the run or of the session."""
    values = dataclasses.asdict(settings)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if belongs in (None, FIELDS[name].metadata["belongs"])
    }
