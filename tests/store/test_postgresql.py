"""Every statement that the store shares with another database is one that PostgreSQL takes.

How they are collected: `tour` asks everything that the readers, the session and the home can be asked, and each
statement is noted as it is asked. So that none is missed silently, every piece of SQL that stands in the source of the
shared modules has to occur in a statement that was noted: whoever adds one that the tour does not pass is told which.
Each is then prepared, with PostgreSQL's marks for values, by a real server that has the tables of the migrations.

Not shared, and therefore not prepared, is what `OWN` and `OWN_STATEMENTS` name, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store import postgresql, tour

from inchworm.store.sqlite import _statements

ROOT = postgresql.ROOT
STORE = ROOT / "src" / "inchworm" / "store"

OWN = {
    "database.py": "the port: it describes statements and has none",
    "sqlite.py": "how SQLite opens a file, checks it, sizes its cache and keeps numbers for a while",
    "scratch.py": "what an export notes for itself lies in a file without a name, on this machine",
    "follow/follower.py": "what follows a crawl's log is a local file, whatever the crawl lies in",
    "follow/search.py": "a local file, with SQLite's full-text search",
    "follow/fields.py": "a local file",
    "follow/index.py": "a local file",
    "follow/frames.py": "a local file",
    "follow/framed.py": "a part of local files",
}
"""Modules whose statements only SQLite is asked, and why."""

OWN_STATEMENTS = re.compile(r"PRAGMA |BEGIN|COMMIT|ROLLBACK|CREATE (TABLE|INDEX|UNIQUE)|ALTER ")
"""How the adapter speaks to SQLite on its own behalf: its settings, its transactions, and the tables of a migration.
What a migration changes in rows is asked of files that are there already, so no other database ever has to."""

_SQL = re.compile(
    r"\b(SELECT|FROM|WHERE|JOIN|INSERT INTO|UPDATE|SET|DELETE|VALUES|AND|OR|NOT|ORDER BY|GROUP BY|HAVING|LIMIT|OFFSET"
    r"|UNION|EXISTS|CASE|WHEN|THEN|ELSE|COALESCE|COUNT|MAX|MIN|SUM|FILTER|RETURNING|ON CONFLICT|IS NULL|DESC|ANY)\b"
)


def shared_modules() -> Iterator[Path]:
    for path in sorted(STORE.rglob("*.py")):
        if str(path.relative_to(STORE)) not in OWN:
            yield path


def pieces(path: Path) -> Iterator[str]:
    """Every piece of SQL in a module: texts with SQL's words in them, without what is put into them."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield from (piece for piece in re.split(r"\{\w*\}", node.value) if _SQL.search(piece))


def missing(asked: set[str]) -> list[str]:
    everything = "\n".join(asked)
    return [
        f"{path.relative_to(STORE)}: {piece!r}"
        for path in shared_modules()
        for piece in pieces(path)
        if piece not in everything
    ]


def shared(found: tour.Asked, schema: str) -> set[str]:
    migrations = {
        statement for path in postgresql.MIGRATIONS.glob("*.sql") for statement in _statements(path.read_text())
    }
    return {sql for name, sql in found if name == schema and sql not in migrations and not OWN_STATEMENTS.match(sql)}


def test_the_tour_passes_every_piece_of_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tour.asked(tmp_path, monkeypatch)
    assert not missing({sql for name, sql in found if name})


@pytest.mark.skipif(postgresql.programs() is None, reason="PostgreSQL is not installed: apt-get install postgresql")
@pytest.mark.parametrize("schema", ["crawl", "home"])
def test_postgresql_takes_every_shared_statement(schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    found = shared(tour.asked(tmp_path, monkeypatch), schema)
    monkeypatch.undo()
    assert len(found) > 50
    refused = []
    with postgresql.server() as where, psycopg.connect(where, autocommit=True) as connection:
        for statement in (*postgresql.schema(schema), *sorted(sql for sql in found if sql.startswith("CREATE TEMP"))):
            connection.execute(statement)
        for sql in sorted(found):
            if not sql.startswith("CREATE TEMP"):
                try:
                    connection.execute(f"PREPARE one AS {postgresql.numbered(sql)}")
                    connection.execute("DEALLOCATE one")
                except psycopg.Error as error:
                    refused.append(f"{str(error).splitlines()[0]}\n    {sql}")
    assert not refused, "\n".join(refused)
