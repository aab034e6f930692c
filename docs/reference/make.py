"""Writes the reference pages beside this file from the code: settings, commands, failures, reasons, jobs, routes.

    python docs/reference/make.py

A test makes them again and compares, so a page cannot fall behind the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from inchworm import errors, settings
from inchworm.cli.commands import main as commands
from inchworm.rules.schedule import states
from inchworm.rules.words import explain, failures
from inchworm.service import build, reference
from inchworm.service.api.web import Verbs

FOLDER = Path(__file__).parent
_MADE = "<!-- Made by docs/reference/make.py. Change the code, then run it again. -->\n\n"

_TYPES = {int: "whole number", float: "number", bool: "yes or no", str: "text", tuple: "list of texts"}


def settings_page() -> str:
    parts = [
        "# Settings",
        "Every setting is a flag of `inchworm crawl` or `inchworm serve`, a line in `config.toml` in the home folder,"
        " and a variable `INCHWORM_NAME`. A flag wins over what the crawl remembers, that over the environment, that"
        " over the file.",
        "Times are seconds, or durations such as `90`, `1.5h`, `1h30m`, `7d`. 0 means no limit where the text says so.",
        "## Of the run",
        "Frozen when a run starts, and remembered by the crawl where they were given. A different value on resume is"
        " refused by name; `--fresh` starts over with it.",
        _settings_table(settings.RUN),
        "## Of the session",
        "Free on every start. `inchworm resume` goes on with those that were given last.",
        _settings_table(settings.SESSION),
        "## Of the service",
        "Flags of `inchworm serve`.",
        _settings_table(settings.SERVICE),
        "## Names of other crawlers",
        "These environment variables are understood too:",
        _table(
            ("variable", "setting"),
            [(f"`{name}`", f"`{setting}`") for name, setting in sorted(settings.ALIASES.items())],
        ),
        "`FETCHER_FOLLOW_REDIRECTS=false` means `max_redirects` 0. `CRAWLER_PROXIES_ENABLED=true` takes proxies from",
        "`CRAWLER_PROXY_URLS`, separated by commas. `CRAWLER_REDIS_STORAGE_ENABLED` changes nothing.",
    ]
    return _page(parts)


def _settings_table(belongs: str) -> str:
    fields = [field for field in settings.FIELDS.values() if field.metadata["belongs"] == belongs]
    rows = [
        (
            f"`{field.name}`",
            f"`{settings.flag_of(field.name)}`",
            _default(field.default),
            _kind(field.name),
            str(field.metadata["help"]),
        )
        for field in fields
    ]
    return _table(("name", "flag", "default", "takes", "meaning"), rows)


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in ((), ""):
        return "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _kind(name: str) -> str:
    meta, default = settings.FIELDS[name].metadata, settings.FIELDS[name].default
    if "choices" in meta:
        return ", ".join(f"`{choice}`" for choice in meta["choices"])
    limits = [f"at least {meta['least']:g}"] if meta.get("least") else []
    limits += [f"at most {meta['most']:g}"] if "most" in meta else []
    if meta["unit"] == "duration":
        return "duration"
    unit = f" of {meta['unit']}" if meta["unit"] and not isinstance(default, str | tuple) else ""
    return ", ".join([_TYPES[type(default)] + unit, *limits])


def commands_page() -> str:
    parts = [
        "# Commands",
        "`CRAWL` is a crawl's name, its id, or its seed URL. `--json` prints JSON for machines. What was asked for goes"
        " to standard output; progress and errors go to standard error.",
    ]
    for name in commands.list_commands(click.Context(commands)):
        parts += list(_command(name, commands.commands[name]))
        if isinstance(group := commands.commands[name], click.Group):
            for under in group.list_commands(click.Context(group)):
                parts += [
                    f"#{part}" if part.startswith("## ") else part
                    for part in _command(f"{name} {under}", group.commands[under])
                ]
    codes = [
        ("0", "complete, stopped at a limit, or paused by another process"),
        *(
            (str(kind.exit_code), f"{kind.code}: {(kind.__doc__ or '').strip()}")
            for kind in sorted(_errors(), key=lambda kind: (kind.exit_code, kind.code))
        ),
        ("129, 130, 143", "paused by SIGHUP, Ctrl-C, SIGTERM"),
    ]
    return _page([*parts, "## Exit codes", _table(("code", "meaning"), codes)])


def _errors() -> Iterable[type[errors.InchwormError]]:
    found = [getattr(errors, name) for name in dir(errors)]
    return (one for one in found if isinstance(one, type) and one.__bases__[0] is not Exception and one is not object)


_FEW = 8


def _command(name: str, command: click.Command) -> Iterable[str]:
    arguments = [p.metavar or (p.name or "").upper() for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    own = [option for option in options if option.name not in settings.FIELDS]
    shared = {option.name for option in options} & set(settings.FIELDS)
    yield f"## inchworm {name}"
    yield f"`inchworm {' '.join([name, *arguments])}`"
    yield from (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    if own:
        names = (", ".join([*option.opts, *option.secondary_opts]) for option in own)
        rows = [(f"`{name}{_metavar(option)}`", str(option.help)) for name, option in zip(names, own, strict=True)]
        yield _table(("option", "meaning"), rows)
    if len(shared) > _FEW:
        yield f"Every [setting](settings.md){_which(shared)} is a flag here."
    elif shared:
        flags = ", ".join(f"`{settings.flag_of(name)}`" for name in settings.FIELDS if name in shared)
        yield f"These [settings](settings.md) are flags here: {flags}."


def _which(names: set[str]) -> str:
    """Of whom the settings are that a command has as flags."""
    if any(settings.belongs_to(name, settings.SERVICE) for name in names):
        return " of the service"
    return "" if any(settings.belongs_to_run(name) for name in names) else " of the session"


def _metavar(option: click.Option) -> str:
    if option.is_flag:
        return ""
    choices = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else ""
    return f" {option.metavar or choices or option.type.name.upper()}"


def failures_page() -> str:
    rows = [
        (f"`{name}`", kind.sentence, "yes" if kind.transient else "no", kind.advice)
        for name, kind in failures.KINDS.items()
    ]
    return _page(
        [
            "# Kinds of failure",
            "A URL that was asked for and brought nothing usable has failed. `inchworm failed CRAWL` lists such URLs,"
            " `inchworm retry CRAWL --kind KIND` opens them again.",
            "A kind that may pass is tried again by itself, up to `max_retries` times. Where the server gave a status,"
            " the status decides: 408, 425, 429 and most 5xx may pass, others do not.",
            _table(("kind", "what happened", "may pass", "what to do"), rows),
        ]
    )


def reasons_page() -> str:
    rows = [(f"`{name}`", text) for name, text in explain.REASONS.items()]
    return _page(
        [
            "# Reasons for a refusal",
            "A URL that a run knows and does not ask for is refused, and its row says why. `inchworm why CRAWL URL`"
            " tells it for one URL, `inchworm queue CRAWL` counts them all.",
            _table(("reason", "not crawled because"), rows),
        ]
    )


def jobs_page() -> str:
    return _page(
        [
            "# Jobs",
            "A job is in one of seven states. What people do to it, by state (409: not possible, and nothing changes):",
            states.table().strip(),
            "Everything else happens by itself. *claim*: its time has come. *try again*: a try failed, and there are"
            " retries left. *hand back*: the service stopped, or whoever ran it is gone; the next one goes on with the"
            " same planned time. *recur*: it has an interval, or runs after another job.",
            f"```mermaid\n{states.diagram().strip()}\n```",
        ]
    )


def http_page() -> str:
    schema = build.api(Verbs(FOLDER, settings.Settings(), lambda: None)).openapi()
    parts = [
        "# HTTP API",
        "The service documents itself at `/docs`, and for machines at `/openapi.json`. Every path but `/health` and"
        " `/login` needs a token: `inchworm token`.",
    ]
    for topic, operations in reference.groups(schema).items():
        rows = [(f"`{one['method']} {one['path']}`", " ".join(one["text"].split())) for one in operations]
        parts += [f"## {topic}", _table(("route", "what it does"), rows)]
    return _page(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _page(parts: Iterable[str]) -> str:
    return _MADE + "\n\n".join(parts) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "failures.md": failures_page,
    "reasons.md": reasons_page,
    "jobs.md": jobs_page,
    "http.md": http_page,
}


if __name__ == "__main__":
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make())
