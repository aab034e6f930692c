"""Sites that never end: the trap is named, the rest of the site is complete."""

from tests.flow.crawling import Home

from inchworm.testing import Hit, Site


def words(text: str, *links: str) -> str:
    anchors = " ".join(f"<a href='{link}'>{link}</a>" for link in links)
    return f"<title>{text}</title><p>{text} {'and more of it ' * 20}</p>{anchors}"


def test_a_calendar_without_end_u4(home: Home) -> None:
    def month(hit: Hit) -> str:
        number = int(hit.path.partition("=")[2])
        return words(f"month {number}", f"/cal?m={number + 1}")

    with Site({"/": words("home", "/cal?m=1", "/about"), "/about": words("about"), "/cal": month}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False, trap_depth=30)
        assert (ended.run_state, ended.pages) == ("completed", 32)
        assert home.reasons() == {"trap": 1}


def test_a_relative_link_that_goes_deeper_and_deeper_u6(home: Home) -> None:
    site = {"/": words("home", "/a/b/"), "*": lambda hit: words(f"page {hit.path}", "a/b/")}
    with Site(site).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert ended.run_state == "completed"
        assert home.reasons() == {"trap": 1}
        assert ended.pages < 10


def test_a_session_in_every_link_u5(home: Home) -> None:
    count = iter(range(10_000))

    def page(hit: Hit) -> str:
        sid = next(count)
        return words(f"page {hit.path.partition(';')[0]}", f"/one;jsessionid={sid}", f"/two?PHPSESSID={sid}&x=1")

    with Site({"*": page, "/robots.txt": ""}).serve() as served:
        ended = home.crawl(served.url("/"), sitemap=False)
        assert (ended.run_state, ended.known, ended.fetched) == ("completed", 3, 3)
