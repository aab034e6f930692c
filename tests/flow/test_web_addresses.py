"""Where pages try to send a crawler: other schemes, private addresses in every spelling, names that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.flow.crawling import Home, page
from tests.flow.hostile import Door, door, knows, names, secret_file, sound

from inchworm.testing import Answer, Page, Served, Site, redirect

SCHEMES = ("file", "ftp", "gopher", "data", "javascript", "view-source", "chrome")


def in_scheme(scheme: str, knock: Door, file: str) -> str:
    """A URL of this scheme that would be noticed if anybody followed it."""
    return {
        "file": file,
        "data": f"data:text/html,<a href='http://127.0.0.1:{knock.port}/'>in</a>",
        "javascript": f"javascript:location='http://127.0.0.1:{knock.port}/'",
        "view-source": f"view-source:http://127.0.0.1:{knock.port}/",
    }.get(scheme, f"{scheme}://127.0.0.1:{knock.port}/")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_s1_a_seed_of_another_scheme_is_refused_before_anything_happens(
    home: Home, tmp_path: Path, scheme: str
) -> None:
    with door() as inside:
        file, word = secret_file(tmp_path)
        told = home.cli("crawl", in_scheme(scheme, inside, file), "--allow-private", code=2)
        assert "not a web address" in told.stderr
        assert home.app.crawls.statuses() == []
        assert inside.count() == 0
        assert not any(word.encode() in path.read_bytes() for path in home.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_s2_nothing_on_a_page_leads_to_another_scheme(home: Home, tmp_path: Path, scheme: str) -> None:
    """Even where private addresses are allowed."""
    with door() as inside:
        file, word = secret_file(tmp_path)
        target = in_scheme(scheme, inside, file)
        shown = target.replace("<", "&lt;").replace("'", "&#39;")
        pages: dict[str, Answer] = {
            "/": page("home", "/moved", "/refresh", "/header", shown, body=f"<iframe src='{shown}'></iframe>"),
            "/moved": redirect(target),
            "/refresh": page("refresh", head=f"<meta http-equiv='refresh' content='0;url={shown}'>"),
            "/header": Page(page("header"), headers={"Link": f'<{target}>; rel="next"', "Refresh": f"0;url={target}"}),
            "/good": page("good"),
        }
        with Site(pages).serve() as served:
            pages["/robots.txt"] = f"Sitemap: {target}\nSitemap: {served.url('/sitemap.xml')}"
            listed = "".join(f"<url><loc>{url}</loc></url>" for url in (shown, served.url("/good")))
            pages["/sitemap.xml"] = f"<urlset>{listed}</urlset>"
            ended = home.crawl(served.url("/"), scope="any")
            assert sorted(home.outcomes()) == [
                ("/", "page"),
                ("/good", "page"),
                ("/header", "page"),
                ("/moved", "bad_redirect"),
                ("/refresh", "page"),
            ]
            assert (ended.run_state, ended.known, ended.refused) == ("completed", 5, 0)
            assert (inside.count(), knows(home, word)) == (0, False)
            sound(home)


# Private addresses. The seed is one too: it may be asked because the user typed it, and nothing else may.


def inward(served: Served, knock: Door, hosts: list[str]) -> dict[str, str]:
    """A link to the door for each of these hosts, with a path of its own."""
    return {host: f"http://{host}:{knock.port}/{number}" for number, host in enumerate(hosts)}


def refused(home: Home, hosts: list[str]) -> None:
    """A page links to all of these; each link ends as `address_refused`, and nobody knocks."""
    pages: dict[str, Answer] = {"/good": page("good")}
    with door() as inside, Site(pages).serve() as served:
        links = inward(served, inside, hosts)
        # A header is bytes; these are the ones that browsers take for UTF-8.
        moved = {f"/to{number}": redirect(url.encode().decode("latin-1")) for number, url in enumerate(links.values())}
        pages.update({**moved, "/": page("home", *links.values(), *moved, "/good")})
        ended = home.crawl(served.url("/"), scope="any", allow_private=False)
        found = {one["url"]: one["failure"] for one in home.ask("failed", home.word)["failed"]}
        assert found == {home.show(url)["url"]: "address_refused" for url in links.values()}
        assert (ended.run_state, ended.pages, ended.failed) == ("completed", 2, len(hosts))
        assert inside.count() == 0
        sound(home)


def test_s3_private_addresses_are_refused(home: Home) -> None:
    refused(
        home,
        [
            "127.0.0.1",
            "127.8.9.10",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "localhost",
            "app.localhost",
        ],
    )


def test_s4_however_they_are_spelled(home: Home) -> None:
    refused(
        home,
        [
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "017700000001",
            "１２７.0.0.1",
            "127。0。0。1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "[0:0:0:0:0:ffff:7f00:1]",
            "LOCALHOST",
        ],
    )


def test_s3_unless_the_operator_allows_them(home: Home) -> None:
    with Site({"/secret": page("secret")}).serve() as inside:
        with Site({"/": page("home", inside.url("/secret"))}).serve() as served:
            assert home.crawl(served.url("/"), scope="any", allow_private=True, sitemap=False).pages == 2
        assert "/secret" in inside.paths()


def test_s5_the_host_that_is_dialled_is_the_one_that_is_judged(home: Home) -> None:
    """`seed` was typed by the user, so what leads there is fetched; the rest leads to the door."""
    pages: dict[str, Answer] = {"*": lambda hit: page(hit.path)}  # type: ignore[dict-item]
    with door() as inside, Site(pages).serve() as served:
        seed, private = f"seed.localhost:{served.port}", f"127.0.0.1:{inside.port}"
        dialled = {
            f"http://{private}\\@{seed}/a": f"http://{private}/@{seed}/a",
            f"http://{private}#@{seed}/b": f"http://{private}/",
            f"http://{seed}@{private}/c": f"http://{private}/c",
            f"http://{seed}:80@{private}/d": f"http://{private}/d",
            f"http://user:pass@{seed}@{private}/e": f"http://{private}/e",
            f"http://{private}%2f@{seed}/f": f"http://{seed}/f",
            f"http://{private}@{seed}/g": f"http://{seed}/g",
        }
        pages["/"] = page("home", *dialled)
        home.crawl(f"http://{seed}/", scope="any", allow_private=False, sitemap=False)
        ends = {visit["url"]: visit["failure"] or visit["outcome"] for visit in home.record()}
        wanted = {url: "address_refused" if private in url.split("/")[2] else "page" for url in dialled.values()}
        assert ends == {f"http://{seed}/": "page", **wanted}
        assert inside.count() == 0
        assert {hit.host for hit in served.log} == {seed}


# Names

PUBLIC = "2000::1"
"""An address that counts as public and was never given to anybody."""


def test_s6_one_private_address_of_a_name_rejects_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    names({"mixed.test": [PUBLIC, "127.0.0.1"], "inside.test": ["10.1.2.3"]}, monkeypatch)
    refused(home, ["mixed.test", "inside.test"])


def test_s6_a_name_that_turns_inward_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Public when it is first looked up, and nobody answers there. Private when it is tried again."""
    table = {"rebind.test": [PUBLIC]}
    asked = names(table, monkeypatch)
    pages: dict[str, Answer] = {}
    with door() as inside, Site(pages).serve() as served:
        target = f"http://rebind.test:{inside.port}/"
        pages["/"] = page("home", target)
        settings: dict[str, Any] = {"allow_private": False, "connect_timeout": 0.3, "max_retries": 0}
        home.crawl(served.url("/"), scope="any", sitemap=False, robots=False, **settings)
        assert home.show(target)["visits"][-1]["failure"] in ("connect", "timeout"), "it was dialled, in vain"
        table["rebind.test"] = ["127.0.0.1"]
        assert home.app.queue.retry(home.word) == 1
        home.resume(**settings)
        assert home.show(target)["visits"][-1]["failure"] == "address_refused"
        assert (inside.count(), asked) == (0, ["rebind.test", "rebind.test"])


def test_s6_the_connection_goes_to_the_address_that_was_checked(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name answers otherwise from the second time on. There is no second time within one crawl."""

    class Fickle(dict[str, list[str]]):
        def __getitem__(self, host: str) -> list[str]:
            return ["127.0.0.1"] if asked.count(host) == 1 else ["127.0.0.2"]

    asked: list[str] = []
    asked = names(Fickle({"rebind.test": []}), monkeypatch)
    # Every answer ends its connection, so every request makes a new one.
    pages = {f"/{number}": Page(page(f"{number}"), headers={"Connection": "close"}) for number in range(5)}
    with Site({"/": page("home", *pages), **pages}).serve() as served:
        ended = home.crawl(served.url("/", "rebind.test"), sitemap=False, allow_private=False)
        assert (ended.pages, ended.failed) == (6, 0)
        assert asked == ["rebind.test"]
