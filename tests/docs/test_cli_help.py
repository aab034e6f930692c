"""Every command and every option says what it is for."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from inchworm import settings
from inchworm.cli.commands import main

COMMANDS = sorted(main.list_commands())


def test_help_lists_every_command() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "inchworm", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    listed = ended.stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "] == (
        main.list_commands()
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_explain_themselves(name: str) -> None:
    command = main.commands[name]
    assert command.help and command.help[0].isupper() and command.help.rstrip()[-1] in ".?"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("demo", "demo-serve", "serve")])
def test_every_command_speaks_json(name: str) -> None:
    command = main.commands[name]
    below = command.commands.values() if isinstance(command, click.Group) else [command]
    for one in below:
        assert one.name == "delete" or any("--json" in parameter.opts for parameter in one.params), one.name


def test_every_setting_is_a_flag_of_crawl_or_of_serve() -> None:
    for command, whose in (("crawl", (settings.RUN, settings.SESSION)), ("serve", (settings.SERVICE,))):
        flags = {flag for parameter in main.commands[command].params for flag in parameter.opts}
        names = [name for name, field in settings.FIELDS.items() if field.metadata["belongs"] in whose]
        assert {settings.flag_of(name) for name in names} <= flags


@pytest.mark.parametrize("arguments", ["--help", "crawl -h", "export --help", "--version"])
def test_asking_for_help_is_no_error(arguments: str) -> None:
    command = [sys.executable, "-m", "inchworm", *arguments.split()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "inchworm" in ended.stdout and not ended.stderr
