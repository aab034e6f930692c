"""Every example runs, from the outside, against a real site."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inchworm.testing import Site, linked_site

EXAMPLES = sorted(Path("examples").glob("*.py"))
QUESTION = "Is this new?"

JSON_LD = (
    '{"@type": "Product", "name": "A worm", "image": "/worm.png", "offers": {"price": "2.50", "priceCurrency": "EUR"}}'
)
SHOP = {
    "/": "<title>Shop</title><main><a href='/worm'>worm</a> <a href='/list'>all</a></main>",
    "/worm": f"<title>Worm</title><script type='application/ld+json'>{JSON_LD}</script><main><h1>A worm</h1></main>",
    "/list": "<title>All</title><main>"
    + "".join(
        f"<div class=product><img src='/{name}.png'><h2>{name}</h2><p class=price>EUR {price}</p></div>"
        for name, price in (("An apple", "0.30"), ("A leaf", "0.05"))
    )
    + "<div class=product>sold out</div></main>",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    site = Site(dict(linked_site(30)) if path.stem != "products" else SHOP, validators=True)
    with site.serve() as served:
        words = [served.url("/"), *{"vectors": [QUESTION]}.get(path.stem, [])]
        first = run(path, tmp_path, *words)
        if "/p7" in site.pages:
            site.pages["/p7"] = site.pages["/p7"].replace("<p>", "<p>This is new. ", 1)
        second = run(path, tmp_path, *words, *{"yesterday": ["0"]}.get(path.stem, []))
    if path.stem == "changes":
        assert "30 pages" in first
        assert f"modified   {served.url('/p7')}" in second
    elif path.stem == "products":
        assert list(csv.reader(first.splitlines())) == [
            ["name", "price", "currency", "image", "url"],
            ["A worm", "2.50", "EUR", "/worm.png", served.url("/worm")],
            ["An apple", "0.30", "EUR", served.url("/An%20apple.png"), served.url("/list")],
            ["A leaf", "0.05", "EUR", served.url("/A%20leaf.png"), served.url("/list")],
        ]
        assert second == first
    elif path.stem == "vectors":
        assert first.startswith("30 pages embedded, 0 gone")
        assert second.startswith(f"1 pages embedded, 0 gone\n\nPage 7  {served.url('/p7')}\n")
    elif path.stem == "yesterday":
        assert first.count(f"new        {served.url('/')}") == 30
        assert second.splitlines()[0] == f"modified   {served.url('/p7')}"
        assert "+This is new." in second
    else:
        assert len([line for line in first.splitlines() if "age" in line]) >= 30


def run(path: Path, folder: Path, *words: str) -> str:
    environment = {**os.environ, "INCHWORM_HOME": str(folder), "INCHWORM_DELAY": "0"}
    command = [sys.executable, str(path.resolve()), *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
