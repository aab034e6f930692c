"""The reference pages are what docs/reference/make.py makes of the code as it is now, and miss nothing."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from tests.docs.blocks import ROOT

from inchworm import settings
from inchworm.cli.commands import main
from inchworm.model import Reason
from inchworm.rules.words import explain, failures

FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_maker", FOLDER / "make.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_page_for_each_and_no_other(maker: ModuleType) -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(maker.PAGES)


@pytest.mark.parametrize("name", ["settings.md", "commands.md", "failures.md", "reasons.md", "jobs.md", "http.md"])
def test_up_to_date(maker: ModuleType, name: str) -> None:
    assert (FOLDER / name).read_text() == maker.PAGES[name](), "run: python docs/reference/make.py"


def test_every_setting_is_there() -> None:
    text = (FOLDER / "settings.md").read_text()
    assert all(f"| `{name}` | `{settings.flag_of(name)}` |" in text for name in settings.FIELDS)


def test_every_command_is_there() -> None:
    text = (FOLDER / "commands.md").read_text()
    assert all(f"## inchworm {name}\n" in text for name in main.list_commands())


def test_every_kind_of_failure_is_there() -> None:
    text = (FOLDER / "failures.md").read_text()
    assert all(f"| `{kind}` |" in text for kind in failures.KINDS)


def test_every_reason_has_a_sentence() -> None:
    assert set(explain.REASONS) == {reason.value for reason in Reason}
