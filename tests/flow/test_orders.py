"""What another process asked for is carried out once, also when the owner dies between doing it and saying so."""

import sqlite3

import pytest
from tests.flow.crawling import Home

from inchworm.testing import Page, Site, linked_site


@pytest.mark.parametrize("was_committed", [True, False])
def test_a_retry_whose_answer_was_lost(home: Home, was_committed: bool) -> None:
    site = {**linked_site(30), "/p1": Page("gone", 410)}
    with Site(site).serve() as served:
        assert home.crawl(served.url("/"), sitemap=False, budget=10).failed == 1
        crawl = home.app.workspace.find(home.word)
        inbox_id = home.app.workspace.requests.ask(crawl.crawl_id, "retry", {"kind": None, "url": None}, 1)
        if was_committed:
            with sqlite3.connect(home.app.workspace.place(crawl).folder / "crawl.db") as store:
                store.execute("UPDATE run SET inbox_id = ?", (inbox_id,))
            store.close()
        home.crawl(served.url("/"), delay=0.05)
        assert home.app.workspace.requests.answer_to(inbox_id) is not None
        assert served.paths().count("/p1") == (1 if was_committed else 2)
