"""The code blocks of our documents, and a site to run them against."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inchworm.testing import Page, Pages, Served, Site

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = "https://example.org"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of every block that names a language."""
    return _BLOCK.findall(path.read_text())


def pages() -> Pages:
    """What the documents speak of: /docs with some pages, a dead link, and a blog that is out of scope."""
    names = ["install", "start", "limits", "export", "print/all"]
    links = "".join(f"<a href='/docs/{name}'>{name}</a>" for name in [*names, "gone"])
    site: dict[str, str | Page] = {"/docs": f"<title>Docs</title>{links}<a href='/blog'>blog</a>"}
    site |= {f"/docs/{name}": f"<title>{name}</title><p>{f'All about {name}. ' * 9}</p>" for name in names}
    return {**site, "/blog": "<title>Blog</title>"}


@contextmanager
def served() -> Iterator[Served]:
    with Site(pages()).serve() as serving:
        yield serving


def run(text: str, serving: Served, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the example's address replaced, in a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INCHWORM_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text.replace(EXAMPLE, serving.url(""))],
        cwd=home,
        env={**kept, "PATH": path, "HOME": str(home), "INCHWORM_DELAY": "0", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
