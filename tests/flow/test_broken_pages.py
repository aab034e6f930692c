"""Pages that our reading chokes on: each costs its own URL, and the crawl goes on."""

from __future__ import annotations

import pytest
from tests.flow.crawling import Home, page

from inchworm.testing import Page, Site

ADDRESSES = ["http://a:b/", "http://", "http://{{ host }}/", "https://example.com:99999/", "http://[::1", "//x:y/"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_refresh_to_no_address_is_a_page_like_any_other(home: Home, address: str) -> None:
    refresh = f'<meta http-equiv=refresh content="0;url={address}">'
    site = {"/": page("home", "/odd", "/last"), "/odd": page("odd", "/behind", head=refresh), "/last": page("last")}
    with Site({**site, "/behind": page("behind")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
    assert (ended.pages, ended.failed, ended.run_state) == (4, 0, "completed")


def test_a_head_that_is_no_text_is_told_as_text(home: Home) -> None:
    odd = Page(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x82b\r\n\r\n")
    with Site({"/": page("home", "/odd", "/last"), "/odd": odd, "/last": page("last")}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, max_retries=0)
        assert (ended.pages, ended.failed, ended.run_state) == (2, 1, "completed")
        assert "Transfer-Encoding" in home.show(served.url("/odd"))["visits"][0]["message"]
