"""What somebody sees who tries it for the first time, from the command to the difference of a page, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.dashboard.browser import Visitor, picture
from tests.service.running import PATIENCE, wait_for

from inchworm.testing import Site

PACE = "0.03"
WHOLE_RUN_MS = 60_000


@contextmanager
def demo(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """`inchworm demo-serve` in somebody's environment: the process, the link to log in with, the site's address."""
    said = folder / "said"
    environment = {**os.environ, "TMPDIR": str(folder), "INCHWORM_HOME": str(folder / "mine"), "INCHWORM_BUDGET": "3"}
    command = [sys.executable, "-m", "inchworm", "demo-serve", "--port", "0", "--pace", PACE]
    with said.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        way = r"To log in, get a link: INCHWORM_HOME=(\S+) inchworm (.*)\n"
        wait_for(lambda: re.search(way, said.read_text()) or process.poll() is not None, "the way in")
        found, site = re.search(way, said.read_text()), re.search(r"press Start: +(http://\S+)", said.read_text())
        assert found and site, said.read_text()
        command, environment = (
            [sys.executable, "-m", "inchworm", *found[2].split()],
            {**os.environ, "INCHWORM_HOME": found[1]},
        )
        link = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
        yield process, link, site[1]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_the_newcomers_story(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path) as (process, link, site):
        visitor = Visitor(browser, link.partition("/login")[0])
        page = visitor.open(link)
        crawled_and_paused(page, site)
        changed = change(visitor.open(site))
        crawled_again(page, changed)
        looked_at(page, changed)
        assert visitor.trouble == []
        visitor.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    left = [path.name for path in tmp_path.iterdir()]
    assert left == ["said"], "nothing is left, and nobody's home was touched"


def crawled_and_paused(page: Page, site: str) -> None:
    page.get_by_label("Address of the site").fill(site)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("127.0.0.1")
    page.evaluate("window.stayed = true")
    before = pages(page)
    wait_for(lambda: page.wait_for_timeout(20) or pages(page) > before + 5, "more pages")
    assert page.evaluate("window.stayed"), "without loading the page again"

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").filter(has_text="paused").first).to_be_visible()
    stopped = pages(page)
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.wait_for_timeout(1500)
    assert pages(page) == stopped < 100
    picture(page, "story paused")

    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Crawl again now")).to_be_visible(timeout=WHOLE_RUN_MS)
    assert pages(page) > 130
    picture(page, "story first run")


def test_no_other_address_of_this_machine_is_crawled(browser: Browser, tmp_path: Path) -> None:
    """Whoever opens the demo gets the demo's site, and nothing else that listens here."""
    with Site({"/": "<title>private</title>"}).serve() as other, demo(tmp_path) as (_, link, _site):
        visitor = Visitor(browser, link.partition("/login")[0])
        page = visitor.open(link)
        page.get_by_label("Address of the site").fill(other.url("/"))
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("an address of this machine or of a private network")
        visitor.close()
        assert other.log == []


def change(site: Page) -> dict[str, list[str]]:
    """Press the button on the demo site; what it says it has changed."""
    site.get_by_role("navigation").get_by_role("link", name="Birds").click()
    site.get_by_role("button", name="Change the site").click()
    expect(site.get_by_role("heading", level=1)).to_have_text("What changed")
    lists = ("Edited", "Added", "Removed", "Lists that changed with them")
    found = {}
    for name in lists:
        after = site.get_by_role("heading", name=name, exact=True).locator("xpath=following-sibling::ul[1]")
        found[name] = after.get_by_role("listitem").all_inner_texts()
    picture(site, "story site changed")
    site.close()
    return found


def crawled_again(page: Page, changed: dict[str, list[str]]) -> None:
    page.get_by_role("button", name="Crawl again now").click()
    expect(page.get_by_role("status").filter(has_text="Run 1 has begun.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Run 1")
    expect(row).to_contain_text("completed", timeout=WHOLE_RUN_MS)
    for kind, count in counts(changed).items():
        expect(row).to_contain_text(f"{count} {kind}")
    picture(page, "story second run")


def counts(changed: dict[str, list[str]]) -> dict[str, int]:
    modified = len({*changed["Edited"], *changed["Lists that changed with them"]})
    return {"new": len(changed["Added"]), "modified": modified, "deleted": len(changed["Removed"])}


def looked_at(page: Page, changed: dict[str, list[str]]) -> None:
    """The list of what changed, and one page in both runs."""
    page.get_by_role("row").filter(has_text="Run 1").get_by_role("link", name="compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What changed")
    for kind, names in (("new", changed["Added"]), ("deleted", changed["Removed"]), ("modified", changed["Edited"])):
        page.get_by_role("link", name=re.compile(rf"^\d+ {kind}$")).click()
        for path in names:
            expect(page.get_by_role("row").filter(has_text=path).first).to_be_visible()
    picture(page, "story what changed")
    row = page.get_by_role("row").filter(has_text=changed["Edited"][0])
    row.get_by_role("link", name="Difference").click()
    expect(page.get_by_text(re.compile("Since edition 2: the .* has been seen again")).first).to_be_visible()
    picture(page, "story difference")


def pages(page: Page) -> int:
    """The number that stands under `Pages`."""
    named = page.get_by_role("term").filter(has_text=re.compile("^Pages$")).first
    return int(named.locator("xpath=following-sibling::*[1]").inner_text().split()[0].replace(",", ""))


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "inchworm", "demo-serve", "--port", str(taken.getsockname()[1])]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 5
    assert "Address already in use" in ended.stderr
    assert "make demo-serve PORT=8070" in ended.stderr
    assert "Log in" not in ended.stderr
