"""Complete: on a real manual behind a real server we ask for what wget asks for; every difference has a name."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from inchworm.rules.web.url import canonicalize

MANUAL = Path("/usr/share/doc/sqlite3")
START = "/start.html"
CONFIG = """
{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; image/gif gif; image/png png; image/svg+xml svg; }}
  default_type application/octet-stream; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  log_format plain '$request_uri $status $sent_http_content_type';
  access_log {folder}/access.log plain;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite manual, with a page in front that links to directories without their slash."""
    root = tmp_path_factory.mktemp("site") / "root"
    shutil.copytree(MANUAL, root, ignore=shutil.ignore_patterns("*.gz"), symlinks=False)
    for name in ("plain", "deep/er"):
        (root / name).mkdir(parents=True)
        (root / name / "index.html").write_text(f"<title>{name}</title><p>{name} <a href='sub.html'>sub</a>")
        (root / name / "sub.html").write_text(f"<title>sub of {name}</title><p>below {name} <a href='../'>up</a>")
    links = " ".join(f"<a href='{href}'>{href}</a>" for href in ("index.html", "plain", "deep/er", "plain/"))
    (root / START[1:]).write_text(f"<title>start</title>{links}")
    return root


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def nginx(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The site's address and the server's own log."""
    folder.mkdir()
    port = free_port()
    user = "user root;" if os.getuid() == 0 else ""  # the folders of a test are closed to others
    (folder / "conf").write_text(CONFIG.format(user=user, folder=folder, port=port, root=root))
    server = subprocess.Popen(["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/conf"])
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", folder / "access.log"
    finally:
        server.terminate()
        server.wait()


def asked_for(log: Path, base: str) -> dict[str, str]:
    """What the server was asked for: canonical URL and content type of its last answer."""
    time.sleep(0.2)
    found = {}
    for line in log.read_text().splitlines():
        path, status, kind = line.split(" ", 2)
        found[canonicalize(path, base) or path] = kind if status != "404" else "missing"
    return found


def crawl(address: str, home: Path, *options: str) -> dict:
    command = [sys.executable, "-m", "inchworm", "crawl", address, "--scope", "host", "--ignore-robots", "--no-sitemap"]
    done = subprocess.run(
        [*command, "--delay", "0", "--workers", "16", "--json", *options],
        env={"INCHWORM_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def reason(url: str, other: dict[str, str]) -> str | None:
    """The name of a difference, or None for one that nobody can explain."""
    if "%5C" in url and (canonicalize(unquote(url)) or "") in other:
        return "wget escapes a backslash, browsers read it as a slash"
    if url.endswith("/") and any(canonicalize(escaped) == url for escaped in map(unquote, other)):
        return "the same, seen from the other side"
    return None


def test_the_same_pages_as_wget(root: Path, tmp_path: Path) -> None:
    with nginx(root, tmp_path / "wget") as (base, log):
        command = ["wget", "-q", "-r", "-l", "inf", "-e", "robots=off", "--follow-tags=a", "-P", str(tmp_path / "copy")]
        subprocess.run([*command, base + START], check=False)
        theirs = {url.removeprefix(base): kind for url, kind in asked_for(log, base).items()}
    with nginx(root, tmp_path / "inchworm") as (base, log):
        summary = crawl(base + START, tmp_path / "home")
        ours = {url.removeprefix(base): kind for url, kind in asked_for(log, base).items()}
    assert summary["run_state"] == "completed"
    assert len(ours) > 1000
    assert {"/plain", "/plain/sub.html", "/deep/er", "/deep/er/sub.html"} <= ours.keys()
    explained = {path: why(path, ours, theirs) for path in ours.keys() ^ theirs.keys()}
    assert all(explained.values()), explained
    assert len(explained) <= 2


def why(path: str, ours: dict[str, str], theirs: dict[str, str]) -> str | None:
    base = "http://site.test"
    mine, other = (ours, theirs) if path in ours else (theirs, ours)
    assert path in mine
    return reason(base + path, {base + one: kind for one, kind in other.items()})


def test_with_resources_everything_a_page_needs(root: Path, tmp_path: Path) -> None:
    with nginx(root, tmp_path / "inchworm") as (base, log):
        crawl(base + START, tmp_path / "home", "--resources")
        ours = {url.removeprefix(base) for url in asked_for(log, base)}
    for path in root.rglob("*.html"):
        text = re.sub(r"(?s)<script>.*?</script>", "", path.read_text(errors="replace"))
        page = "/" + str(path.relative_to(root))
        if page not in ours:
            continue
        for source in re.findall(r"""<(?:img|script)\b[^>]*?\ssrc=["']([^"'<>]+)["']""", text):
            target = canonicalize(source, f"http://site.test{page}")
            if target and target.startswith("http://site.test/"):
                assert target.removeprefix("http://site.test") in ours, (page, source)
    assert any(path.endswith((".gif", ".png", ".svg", ".jpg")) for path in ours)
