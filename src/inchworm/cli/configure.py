"""`inchworm configure`: what holds for every session of a crawl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from inchworm import settings
from inchworm.app.act.configure import Configuration
from inchworm.cli.commands import main
from inchworm.cli.options import RUN_OPTIONS, SESSION_OPTIONS, given, json_flag, opened, setting_options
from inchworm.cli.screen import display
from inchworm.cli.screen.door import print_json
from inchworm.errors import WrongUse

if TYPE_CHECKING:
    from inchworm.app.read.crawls import CrawlDetail

_NAMES = (*SESSION_OPTIONS[:4], *RUN_OPTIONS, *SESSION_OPTIONS[4:])


@main.command()
@click.argument("word", metavar="CRAWL")
@click.option("--name", metavar="NEW", help="What to call the crawl from now on.")
@click.option("--enable/--disable", "enabled", default=None, help="Let its jobs run by themselves, or pause them.")
@click.option(
    "--incremental/--no-incremental",
    default=None,
    help="Go on with an open run, or have no budget and begin a new run at every start.",
)
@click.option("--unset", multiple=True, metavar="SETTING", help="Set this no longer for every session; repeatable.")
@setting_options(_NAMES)
@json_flag
def configure(word: str, name: str | None, unset: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Set what holds for every session of a crawl, and show it.

    What a start names wins over it. Settings of the run hold from the next run on, those of the session from the next
    session on.
    """
    enabled, incremental = values.pop("enabled"), values.pop("incremental")
    changes = _changes(given(values), unset)
    with opened() as app:
        wanted = Configuration(name, changes or None, incremental, enabled)
        found = app.crawls.get(app.configure.change(app.workspace.find(word).crawl_id, wanted))
    print_json(found) if as_json else display.settings_table(_rows(found))


def _changes(named: Mapping[str, Any], unset: Sequence[str]) -> dict[str, Any]:
    taken_away = {_setting(text): None for text in unset}
    if both := sorted(named.keys() & taken_away.keys()):
        raise WrongUse(f"{both[0]} is to be set and not to be set.", "Leave one of them out.")
    return {**named, **taken_away}


def _setting(text: str) -> str:
    """The setting that is meant, by its name or by its flag."""
    for name in _NAMES:
        flag = settings.flag_of(name)
        if text in (name, flag, flag.removeprefix("--")):
            return name
    raise WrongUse(f"There is no setting called {text!r}.", "`inchworm show-settings` lists them.")


def _rows(found: CrawlDetail) -> dict[str, str]:
    lines = [f"{name} = {value}" for name, value in found.defaults.items()]
    is_incremental = found.goes_on.incremental_crawling_enabled
    return {
        "crawl": f"{found.summary.name}  ({found.summary.crawl_id})",
        "enabled": "yes" if found.enabled else "no: its jobs are paused",
        "incremental": "yes" if is_incremental else "no: every start begins a new run",
        "settings": "\n".join(lines) or "none of its own",
    }
