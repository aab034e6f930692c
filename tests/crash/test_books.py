"""What one commit must get right although several visits in it speak of the same row."""

from __future__ import annotations

from tests.crash import website
from tests.crash.conftest import Trials
from tests.crash.website import Website, article

from inchworm.testing import Page

_SITEMAP = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://{host}/{name}</loc></url></urlset>'
)


def test_a_shorter_way_to_a_page_that_is_settled_in_the_same_commit(trials: Trials) -> None:
    """/far is found over /detour at depth 2, then at depth 1 by /late, in whose commit it is settled itself."""
    pages = {
        "/": article("home", ("/detour",)),
        "/detour": article("detour", ("/far",)),
        "/late": Page(article("late", ("/far",)), delay=0.5),
        "/far": article("far", ("/behind",)),
        "/behind": article("behind"),
        "/sitemap.xml": lambda hit: _SITEMAP.format(host=hit.host, name="late"),
    }
    ends = {path: "page" for path in pages if path != "/sitemap.xml"}
    with website.serving(Website(pages, ends)) as web:
        trial = trials("--max-depth", "9", web=web)
        trial.complete()
        trial.check()
