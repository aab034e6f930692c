"""Opening and closing a pass over a crawl: which run a start means, its seeds, what its end is called."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote

from inchworm.errors import Frozen, WrongUse
from inchworm.model import Counters, EndedBy, FoundUrl, Kind, Mode, RunInfo, RunState, Seed, SessionState, Source
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import scope_of_seed
from inchworm.rules.words.figures import clip
from inchworm.settings import NamedSettings, flag_of

_PASSWORD = re.compile(r"^(\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]*)?[^:@]*:).*@", re.DOTALL)


def seeds_of(typed: Sequence[str], drop_params: tuple[str, ...] = ()) -> tuple[FoundUrl, ...]:
    """The seeds as entries, each once; a host without a scheme means https first."""
    found: dict[str, FoundUrl] = {}
    canonicalize = urls.canonicalizer(drop_params).canonicalize
    for text in typed:
        forms = urls.seed(text)
        canonical = canonicalize(forms[0]) if forms else None
        if forms is None or canonical is None:
            raise WrongUse(
                f"{shown(text)!r} is not a web address.",
                "Give a URL such as https://example.org/docs, or a host name.",
            )
        found.setdefault(canonical, FoundUrl(canonical, urls.request_form(forms[0]), Kind.PAGE, Source.INITIAL))
    return tuple(found.values())


def refuse_words(typed: Sequence[str]) -> None:
    """Whoever types a word means something else; a host in the user's own network can be named in full."""
    for text in typed:
        if urls.is_word(text):
            name = clip(text, 60)
            raise WrongUse(f"{name!r} is not the address of a site.", f"If it is one, write http://{name.rstrip('/')}/")


def bare_seeds(typed: Sequence[str]) -> frozenset[str]:
    """Request URLs of the seeds that were typed without a scheme."""
    forms = (urls.seed(text) for text in typed)
    return frozenset(urls.request_form(form[0]) for form in forms if form and len(form) > 1)


def credentials(typed: Sequence[str]) -> dict[str, str]:
    """The value of Authorization for each origin whose URL was typed with user and password.

    They are used in the session that they were typed for and kept nowhere.
    """
    found = {}
    for text in typed:
        form = (urls.seed(text) or ("",))[0]
        if (userinfo := urls.userinfo_of(form)) is not None:
            user, _, password = userinfo.partition(":")
            pair = f"{unquote(user)}:{unquote(password)}".encode()
            found[urls.origin_of(urls.request_form(form))] = f"Basic {base64.b64encode(pair).decode()}"
    return found


def without_secrets(text: str) -> str:
    """What the user typed, to be stored: no user, no password, as the parser sees them."""
    forms = urls.seed(text)
    if not forms or urls.userinfo_of(forms[0]) is None:
        return text
    address = urls.request_form(forms[0])
    return address if len(forms) == 1 else address.partition("://")[2]


def shown(text: str) -> str:
    """What the user typed, to be shown to whoever looks, whether or not it can be understood."""
    return without_secrets(text) if urls.seed(text) else _PASSWORD.sub(r"\1…@", text, count=1)


def seeds_key(seeds: Sequence[FoundUrl]) -> str:
    """One text for one set of seeds, whatever their order."""
    return "\n".join(sorted({seed.url for seed in seeds}))


def default_name(seeds: Sequence[FoundUrl]) -> str:
    """Host and path of the first seed."""
    first = seeds[0].url.partition("://")[2].rstrip("/")
    return first if len(seeds) == 1 else f"{first} and {len(seeds) - 1} more"


def is_open(run: RunInfo | None) -> bool:
    return run is not None and run.state in (RunState.IN_PROGRESS, RunState.PAUSED)


def line_of(runs: Sequence[RunInfo]) -> list[RunInfo]:
    """The runs that later ones build on, in their order; branches lie beside them."""
    return [run for run in runs if not run.beside]


def line_to(runs: Sequence[RunInfo], end: RunInfo) -> list[RunInfo]:
    """A run and all those before it on its line, in their order."""
    known, found = {run.run_id: run for run in runs}, [end]
    while (before := found[-1].follows) is not None:
        found.append(known[before])
    return found[::-1]


def next_run(runs: Sequence[RunInfo], mode: Mode, settings: NamedSettings, now_ms: int) -> RunInfo:
    """The run after the last one. Its parent is the last completed run of the line; without one it is a baseline."""
    number, line = runs[-1].number + 1 if runs else 0, line_of(runs)
    completed = [run.number for run in line if run.state is RunState.COMPLETED]
    parent = completed[-1] if completed else None
    mode = mode if completed else Mode.BASELINE
    run_id = max((run.run_id for run in runs), default=0) + 1
    state, counters = RunState.IN_PROGRESS, Counters()
    new = RunInfo(run_id, number, mode, parent, state, 0, settings, counters, (), "", now_ms, None)
    return replace(new, horizon=run_id, follows=line[-1].run_id if line else None)


def branch_of(old: RunInfo, runs: Sequence[RunInfo], settings: NamedSettings, now_ms: int) -> RunInfo:
    """A run that goes on from within another one, beside the line."""
    number, run_id = runs[-1].number + 1, max(run.run_id for run in runs) + 1
    return replace(old, run_id=run_id, number=number, settings=settings, created_ms=now_ms, beside=True)


def as_baseline(run: RunInfo) -> RunInfo:
    """A run that starts over: it builds on no other."""
    return replace(run, mode=Mode.BASELINE, parent=None)


def with_seeds(run: RunInfo, seeds: Sequence[FoundUrl]) -> RunInfo:
    rows = tuple(Seed(number, seed.url, *scope_of_seed(seed.url)) for number, seed in enumerate(seeds))
    return replace(run, seeds=rows)


def refuse_changes(frozen: NamedSettings, wanted: NamedSettings) -> None:
    """A run setting cannot change half way."""
    for name, value in wanted.items():
        plain = list(value) if isinstance(value, tuple) else value
        if name in frozen and frozen[name] != plain:
            raise Frozen(
                f"{name} is {frozen[name]!r} in the run that is open and cannot become {plain!r} half way.",
                f"Leave {_flag(name)} out to go on, or add --fresh to start over with it.",
            )


def _flag(name: str) -> str:
    return "--mode" if name == "mode" else flag_of(name)


def state_of(run: RunInfo, has_owner: bool) -> RunState:
    """The state of a run as it is shown: one whose owner is dead is paused."""
    return RunState.PAUSED if run.state is RunState.IN_PROGRESS and not has_owner else run.state


def states_after(by: EndedBy) -> tuple[RunState, SessionState]:
    """How a run and its session stand when a session ended so."""
    if by in (EndedBy.FINISHED, EndedBy.PAGE_LIMIT):
        return RunState.COMPLETED, SessionState.COMPLETED
    if by is EndedBy.CANCELLED:
        return RunState.CANCELLED, SessionState.FAILED
    if by in (EndedBy.ERROR, EndedBy.CRASHED):
        return RunState.PAUSED, SessionState.FAILED
    return RunState.PAUSED, SessionState.COMPLETED


def word_for(run: RunInfo) -> str:
    """What people are told a whole run came to."""
    if run.state is not RunState.COMPLETED:
        return "interrupted"
    return "completed_with_errors" if run.counters.failed else "completed"
