"""Prints the shape of the code: sizes of files and functions, comments and docstrings, per package.

    python bench/shape.py

It alarms and does not gate: a `!` marks a file above 600 lines or a function above 80.
"""

from __future__ import annotations

import ast
import io
import statistics
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "inchworm"
LONG_FILE = 600
LONG_FUNCTION = 80
HEAD = ("package", "files", "lines", "median", "largest file", "fn median/p90/max", "comments", "docstrings")


@dataclass(frozen=True, slots=True)
class Shape:
    """One file."""

    path: Path
    lines: int
    functions: tuple[int, ...]
    comments: int
    docstrings: int


def measure(path: Path) -> Shape:
    text = path.read_text()
    nodes = list(ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef)] + functions
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Shape(
        path,
        len(text.splitlines()),
        tuple(_length(node) for node in functions),
        len({token.start[0] for token in tokens if token.type == tokenize.COMMENT}),
        sum(_length(node.body[0]) for node in documented if ast.get_docstring(node, clean=False) is not None),
    )


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def row(name: str, shapes: Iterable[Shape]) -> tuple[str, ...]:
    files = list(shapes)
    lines = sum(shape.lines for shape in files) or 1
    functions = sorted(length for shape in files for length in shape.functions) or [0]
    largest = max(files, key=lambda shape: shape.lines)
    p90 = functions[min(len(functions) - 1, len(functions) * 9 // 10)]
    return (
        name,
        str(len(files)),
        f"{lines:,}",
        f"{statistics.median(shape.lines for shape in files):.0f}",
        f"{largest.path.name} {largest.lines}{'!' if largest.lines > LONG_FILE else ''}",
        f"{statistics.median(functions):.0f} / {p90} / {functions[-1]}{'!' if functions[-1] > LONG_FUNCTION else ''}",
        f"{100 * sum(shape.comments for shape in files) / lines:.0f} %",
        f"{100 * sum(shape.docstrings for shape in files) / lines:.0f} %",
    )


def main() -> None:
    source = [measure(path) for path in sorted(SOURCE.rglob("*.py"))]
    tests = [measure(path) for path in sorted((ROOT / "tests").rglob("*.py"))]
    packages: dict[str, list[Shape]] = {}
    for shape in source:
        parts = shape.path.relative_to(SOURCE).parts
        packages.setdefault(parts[0] if len(parts) > 1 else "(top)", []).append(shape)
    rows = [HEAD, *(row(name, shapes) for name, shapes in sorted(packages.items())), row("inchworm", source)]
    if tests:
        rows.append(row("tests", tests))
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEAD))]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    ratio = sum(shape.lines for shape in tests) / sum(shape.lines for shape in source)
    print(f"\n{ratio:.1f} lines of tests for each line of source")


if __name__ == "__main__":
    main()
