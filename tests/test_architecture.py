"""The shape of the code: who may import whom, what may stand where, and that ARCHITECTURE.md tells the truth.

A new folder has to be given a place in `LAYERS` and in ARCHITECTURE.md; until then these tests fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests import shrinking

from inchworm.app.root import App

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "inchworm"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"

LAYERS = """
__main__
cli | library
service
app
engine
fetch | store | archive | sink | testing
page
apart
reader
ports | rules
job
model | told
settings
errors | fault | __init__
"""
"""Top to bottom. A module imports only from lower layers; `|` marks siblings that do not import each other."""

# `__init__` stands at the bottom for its version number; it names these only to hand out their names when asked.
HANDED_OUT = ("library", "page", "told", "engine.caller", "rules.page.document", "rules.page.element")
LAZY = {("__init__", name) for name in HANDED_OUT}

ADAPTERS = ("fetch", "store", "archive", "sink", "reader", "testing")
PICKS_ADAPTERS = ("app", "engine")
ALSO_ALLOWED = {
    ("apart", "reader"),
    ("cli.demo.story", "testing"),
    ("cli.demo.serve", "testing"),
    ("cli.demo.site", "testing"),
}
SPEAKS_TO_PORTS = ("engine.visit", "engine.run", "engine.ranking", "engine.session", "engine.ledger")
"""Rooms and modules of `engine` that are the same whatever the adapters are."""

IMPURE = {"asyncio", "time", "random", "os", "socket", "sqlite3", "logging"}
SPEAKS_SQLITE = {"store.sqlite", "cli.doctor"}
"""The adapter, and `inchworm doctor`, which says what version there is of this library as of all others."""

DANGEROUS = {"pickle", "marshal", "shelve", "dill"}

MAX_FILE_LINES = 600
MAX_MODULES = 13
"""In one folder: what one takes in at a glance."""
MAX_FUNCTION_LINES = 80

SQL = re.compile(
    r"\bSELECT\s.+\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bUPDATE\s+\w+\s+SET\b|\bDELETE\s+FROM\b"
    r"|\bCREATE\s+(TABLE|INDEX|UNIQUE)\b|\bALTER\s+TABLE\b|\bDROP\s+(TABLE|INDEX)\b|\bPRAGMA\s+\w",
    re.DOTALL,
)


def name_of(path: Path) -> str:
    """`rules.web.url` for src/inchworm/rules/web/url.py; a package goes by its own name."""
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(), str(MODULES[name]))


def imports(name: str) -> Iterator[str]:
    """Dotted names of everything a module imports, wherever the import stands."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} uses a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def inner_imports(name: str) -> frozenset[str]:
    """Our own modules that a module imports."""
    found = set()
    for target in imports(name):
        if target.split(".")[0] != "inchworm":
            continue
        path = target.split(".")[1:]
        while path and ".".join(path) not in MODULES:
            path.pop()
        found.add(".".join(path) or "__init__")
    return frozenset(found - {name})


def part_of(name: str) -> str:
    """The entry of `LAYERS` that a module belongs to."""
    return name.split(".")[0]


def layers() -> list[list[str]]:
    return [[part.strip() for part in line.split("|")] for line in LAYERS.split("\n") if line]


def level_of() -> dict[str, int]:
    return {part: level for level, parts in enumerate(layers()) for part in parts}


def test_every_module_has_a_layer() -> None:
    listed = [part for parts in layers() for part in parts]
    assert len(listed) == len(set(listed))
    assert {part_of(name) for name in MODULES} == set(listed)


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name: str) -> None:
    levels, own = level_of(), part_of(name)
    wrong = [
        f"{name} imports {target}"
        for target in inner_imports(name)
        if part_of(target) != own and levels[part_of(target)] <= levels[own] and (name, target) not in LAZY
    ]
    assert not wrong


def test_no_cycles_anywhere() -> None:
    graph = {name: {target for target in inner_imports(name) if (name, target) not in LAZY} for name in MODULES}
    # A package's own module may hand out the names of its parts.
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    graph = {name: targets - (packages if "." in name else set()) for name, targets in graph.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("name", MODULES)
def test_only_app_and_engine_pick_adapters(name: str) -> None:
    if part_of(name) in PICKS_ADAPTERS and not _is_in(name, SPEAKS_TO_PORTS):
        return
    wrong = [
        f"{name} names {target}"
        for target in inner_imports(name)
        if part_of(target) in ADAPTERS
        and part_of(target) != part_of(name)
        and (name, part_of(target)) not in ALSO_ALLOWED
    ]
    assert not wrong


def _is_in(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize("name", [name for name in MODULES if part_of(name) == "rules"])
def test_rules_are_pure(name: str) -> None:
    assert {target.split(".")[0] for target in imports(name)}.isdisjoint(IMPURE)


@pytest.mark.parametrize("name", [name for name in MODULES if part_of(name) != "store"])
def test_sql_only_in_the_store(name: str) -> None:
    strings = (node for node in ast.walk(tree(name)) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    assert not [f"{name}:{node.lineno}: {node.value}" for node in strings if SQL.search(str(node.value))]


def test_the_sql_pattern_finds_sql() -> None:
    assert all(SQL.search(text) for text in ("SELECT a FROM b", "INSERT INTO a", "UPDATE a SET b = 1", "DELETE FROM a"))
    assert not SQL.search("Select a page from the list and update it.")


@pytest.mark.parametrize("name", [name for name in MODULES if name not in SPEAKS_SQLITE])
def test_only_the_adapter_knows_sqlite(name: str) -> None:
    """All others ask the port; nobody outside of the store has that in hand either."""
    assert "sqlite3" not in {target.split(".")[0] for target in imports(name)}
    if part_of(name) != "store":
        attributes = (node for node in ast.walk(tree(name)) if isinstance(node, ast.Attribute))
        assert not [f"{name}:{node.lineno}" for node in attributes if node.attr == "db"]


@pytest.mark.parametrize("name", MODULES)
def test_sizes(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= MAX_FILE_LINES, f"{name} has {lines} lines"
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{name}.{node.name} has {length} lines"


@pytest.mark.parametrize("name", MODULES)
def test_nothing_dangerous(name: str) -> None:
    assert {target.split(".")[0] for target in imports(name)}.isdisjoint(DANGEROUS)
    calls = (node.func for node in ast.walk(tree(name)) if isinstance(node, ast.Call))
    assert not [call.id for call in calls if isinstance(call, ast.Name) and call.id in ("eval", "exec", "compile")]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    assert ast.get_docstring(tree(name))


def test_no_drawers() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc", "base", "manager", "core", "compat"}
    assert not [name for name in MODULES if name.split(".")[-1] in drawers]


ROOMS = sorted(name for name, path in MODULES.items() if path.name == "__init__.py" and name != "__init__")


@pytest.mark.parametrize("room", ROOMS)
def test_a_folder_can_be_taken_in_at_a_glance(room: str) -> None:
    modules = [path for path in MODULES[room].parent.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES


@pytest.mark.parametrize("room", ROOMS)
def test_a_folder_says_where_to_start_reading(room: str) -> None:
    start = re.search(r"[Ss]tart\s+with\s+`([\w.]+)`|Start there", ast.get_docstring(tree(room)) or "")
    assert start
    assert not start[1] or f"{room}.{start[1]}" in MODULES


def test_tests_of_rules_lie_in_the_rooms_of_the_rules() -> None:
    rooms = {room.removeprefix("rules.") for room in ROOMS if room.startswith("rules.")}
    assert {path.parent.name for path in (ROOT / "tests" / "rules").rglob("test_*.py")} == rooms


# ARCHITECTURE.md


def test_the_drawn_layers_are_the_real_ones() -> None:
    assert LAYERS.strip() in ARCHITECTURE.read_text()


def test_the_map_is_short() -> None:
    words = (word for word in ARCHITECTURE.read_text().split() if word.strip("|-"))
    assert len(list(words)) < 900


def test_every_way_to_change_something_leads_somewhere() -> None:
    """Each row of the table names files or folders that are there, and values that are defined in them."""
    table = ARCHITECTURE.read_text().partition("## Where to change what")[2]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for what, where in rows:
        quoted = re.findall(r"`([^`]+)`", where)
        files = [base / word for word in quoted for base in (SOURCE, ROOT) if (base / word).exists()]
        assert files, f"{what}: {where}"
        text = "".join(path.read_text() for path in files if path.is_file())
        values = [word for word in quoted if re.fullmatch(r"[A-Z]\w+", word)]
        assert all(re.search(rf"^(class )?{value}\b", text, re.MULTILINE) for value in values), f"{what}: {where}"


def test_architecture_names_no_file_that_does_not_exist() -> None:
    text = re.sub(r"```.*?```", "", ARCHITECTURE.read_text(), flags=re.DOTALL)
    words = {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in quoted.split()}
    files = {word for word in words if re.fullmatch(r"[\w./-]+\.(py|md|sql|toml)|\w+/[\w/]+", word)}
    missing = [word for word in files if not any((base / word).exists() for base in (ROOT, SOURCE))]
    dotted = {word for word in words if re.fullmatch(r"[a-z]+\.[a-z_]+", word) and part_of(word) in level_of()}
    missing += [word for word in dotted - files if word not in MODULES and not _is_attribute(word)]
    assert not missing


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_are_spoken_of_are_there(name: str) -> None:
    """`rules.web.url` or `url.py` in a comment or docstring leads to a file."""
    text, beside = MODULES[name].read_text(), MODULES[name].parent
    files = re.findall(r"`([\w/]+\.py)`", text)
    missing = [word for word in files if not any((base / word).exists() for base in (ROOT, SOURCE, beside))]
    packages = "|".join(room for room in ROOMS if "." not in room)
    dotted = re.findall(rf"`((?:{packages})(?:\.\w+)+)`", text)
    plain = MODULES.keys() - set(ROOMS)
    missing += [word for word in dotted if word not in MODULES and word.rpartition(".")[0] not in plain]
    assert not missing


def _is_attribute(word: str) -> bool:
    """Whether `settings.FIELDS` or `app.App` is something that its module defines."""
    module, _, attribute = word.partition(".")
    defined = rf"^(def |class |async def )?{attribute}\b"
    return module in MODULES and re.search(defined, MODULES[module].read_text(), re.MULTILINE) is not None


# The parts of app

PARTS = sorted(name for name, made in vars(App).items() if isinstance(made, cached_property))
MAX_METHODS = 12


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_app_is_made_of_others_and_is_small(name: str, tmp_path: Path) -> None:
    app = App(tmp_path)
    made = type(getattr(app, name))
    app.close()
    assert made.__bases__ == (object,), "no part inherits from another"
    assert len([verb for verb in vars(made) if not verb.startswith("_")]) <= MAX_METHODS


# Classes and values. What is not yet so stands in `tests/shrinking.py`, whose lists may only become shorter.


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class of the package with its module, those that stand inside functions and classes too."""
    for name in MODULES:
        yield from ((name, node) for node in ast.walk(tree(name)) if isinstance(node, ast.ClassDef))


@cache
def classes_by_name() -> dict[str, dict[str, ast.ClassDef]]:
    """Where a class of that name is written, by module."""
    found: dict[str, dict[str, ast.ClassDef]] = {}
    for name, node in classes():
        found.setdefault(node.name, {})[name] = node
    return found


def public_methods(module: str, node: ast.ClassDef) -> set[str]:
    """The names of its methods and properties, and of those that it inherits from classes of ours."""
    own = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    found = {name for name in own if not name.startswith("_")}
    for base in node.bases:
        written = classes_by_name().get(ast.unparse(base).partition("[")[0].rpartition(".")[2], {})
        near = [one for one in written if one == module or one in inner_imports(module)]
        found.update(*(public_methods(one, written[one]) for one in near if written[one] is not node))
    return found


def test_no_class_has_more_methods_than_one_can_know() -> None:
    many = {
        f"{module}.{node.name}"
        for module, node in classes()
        if module != "ports" and len(public_methods(module, node)) > MAX_METHODS
    }
    assert many == shrinking.LARGE_FOR_A_REASON.keys() | shrinking.LARGE_CLASSES
    assert not shrinking.LARGE_FOR_A_REASON.keys() & shrinking.LARGE_CLASSES


def test_inherited_methods_count() -> None:
    heir = ast.parse("class Heir(Page):\n    def more(self): ...").body[0]
    assert isinstance(heir, ast.ClassDef)
    inherited = public_methods("page", classes_by_name()["Page"]["page"])
    assert public_methods("library", heir) == inherited | {"more"}


def test_a_name_is_given_to_one_class() -> None:
    twice = {name: sorted(written) for name, written in classes_by_name().items() if len(written) > 1}
    assert twice.keys() == shrinking.CLASS_NAMES_GIVEN_TWICE, twice


def speaks_of_any(name: str) -> int:
    """How often a module says `Any`, in what it takes, answers with and keeps, in aliases and in casts."""
    nodes = list(ast.walk(tree(name)))
    texts = (one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str))
    named = sum(isinstance(one, ast.Name) and one.id == "Any" for one in nodes)
    return named + sum(bool(re.search(r"\[.*\bAny\]", text)) for text in texts)


def test_values_of_app_and_store_have_types() -> None:
    said = {name: speaks_of_any(name) for name in MODULES if part_of(name) in ("app", "engine", "store")}
    said = {name: times for name, times in said.items() if times}
    most = {**shrinking.SPEAKS_OF_ANY, **dict.fromkeys(shrinking.ANY_FOR_A_REASON, 1)}
    assert said.keys() == most.keys()
    more = {name: times for name, times in said.items() if times > most[name]}
    assert not more


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("app.read")])
def test_reads_change_nothing(name: str) -> None:
    assert not [one for one in imports(name) if one.startswith(("inchworm.app.act", "app.act"))]
    assert ".owning(" not in MODULES[name].read_text()


@pytest.mark.parametrize("name", [name for name in MODULES if part_of(name) == "cli" and name != "cli.screen.door"])
def test_commands_speak_through_one_door(name: str) -> None:
    """What pages made steers no terminal, so nothing is printed past `cli.screen.door`; rich draws what is ours."""
    called = {ast.unparse(node.func) for node in ast.walk(tree(name)) if isinstance(node, ast.Call)}
    past = {"print", "click.echo", "click.secho", "click.style", "sys.stdout.write", "sys.stderr.write"}
    assert not called & past
