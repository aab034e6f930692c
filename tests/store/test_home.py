"""home.db: which crawls there are, and what others ask of their owners."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from inchworm.engine.own.owner import CrawlOwner
from inchworm.errors import Broken, WrongUse
from inchworm.model import CrawlInfo
from inchworm.store.crawl.place import CrawlPlace
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.home import Home
from inchworm.store.home.inbox import OwnerRequest, OwnerRequests

DOCS = CrawlInfo("c1", "docs", ("https://a.test/docs",), {"budget": 5, "include": ["*.html"]}, 100)
BLOG = CrawlInfo("c2", "blog", ("a.test/blog", "b.test"), {}, 50)


@pytest.fixture
def home(tmp_path):
    with closing(Home(tmp_path / "home")) as made:
        crawls = KnownCrawls(made)
        crawls.find_or_add(DOCS, "https://a.test/docs", is_named=True)
        crawls.find_or_add(BLOG, "https://a.test/blog\nhttps://b.test/", is_named=True)
        yield made


@pytest.fixture
def crawls(home):
    return KnownCrawls(home)


@pytest.fixture
def requests(home):
    return OwnerRequests(home)


def test_a_home_is_made_where_there_is_none_and_found_again(tmp_path):
    with closing(Home(tmp_path / "some" / "where")) as home:
        assert KnownCrawls(home).all() == []
        KnownCrawls(home).find_or_add(DOCS, "key", is_named=True)
    with closing(Home(tmp_path / "some" / "where")) as home:
        assert KnownCrawls(home).all() == [DOCS]


def test_a_folder_that_cannot_be_made_is_wrong_use(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WrongUse) as raised:
        Home(tmp_path / "file" / "home")
    assert "INCHWORM_HOME" in raised.value.hint


def test_crawls_are_listed_by_age_and_come_back_as_they_were(crawls):
    assert crawls.all() == [BLOG, DOCS]


@pytest.mark.parametrize(
    ("word", "key", "found"),
    [
        ("docs", None, DOCS),
        ("c2", None, BLOG),
        ("", "https://a.test/docs", DOCS),
        ("https://a.test/docs", "https://a.test/docs", DOCS),
        ("blog", "https://a.test/docs", BLOG),
        ("doc", None, None),
        ("", None, None),
        ("", "https://b.test/", None),
    ],
)
def test_a_crawl_is_found_by_id_then_name_then_all_its_seeds(crawls, word, key, found):
    assert crawls.find(word, key) == found


def test_an_id_wins_over_a_name_and_the_oldest_over_the_others(crawls):
    crawls.change("c2", name="c1")
    crawls.find_or_add(CrawlInfo("c4", "docs again", (), {}, 1), "https://a.test/docs", is_named=True)
    assert crawls.find("c1").crawl_id == "c1", "nobody takes the place of another crawl by its name"
    assert crawls.find("", "https://a.test/docs").crawl_id == "c4"


def test_who_comes_second_with_a_name_gets_the_crawl_that_is_there(crawls):
    assert crawls.find_or_add(CrawlInfo("c9", "docs", (), {}, 1), "key", is_named=True) == DOCS
    assert crawls.all() == [BLOG, DOCS]


def test_who_comes_second_with_the_same_seeds_gets_the_crawl_that_is_there(crawls):
    assert crawls.find_or_add(CrawlInfo("c9", "a.test", (), {}, 1), "https://a.test/docs", is_named=False) == DOCS
    assert crawls.all() == [BLOG, DOCS]


def test_a_name_that_nobody_chose_gets_a_number_when_it_is_taken(crawls):
    for number, crawl_id in enumerate(("c3", "c4"), 2):
        made = crawls.find_or_add(CrawlInfo(crawl_id, "docs", (), {}, 9), f"seed {crawl_id}", is_named=False)
        assert made.name == f"docs ({number})" and crawls.find(crawl_id) == made


def test_settings_are_remembered(crawls):
    crawls.change("c1", settings={"workers": 7, "exclude": ["a", "b"]})
    assert crawls.find("docs").settings == {"workers": 7, "exclude": ["a", "b"]}
    assert crawls.find("blog") == BLOG


def test_a_removed_crawl_takes_what_was_asked_of_it_along(crawls, requests):
    mine, other = requests.ask("c1", "pause", {}, 1), requests.ask("c2", "pause", {}, 1)
    crawls.remove("c1")
    assert crawls.all() == [BLOG]
    assert (requests.unanswered("c1"), [asked.inbox_id for asked in requests.unanswered("c2")]) == ([], [other])
    assert requests.answer_to(mine) == ""


def test_only_its_owner_reads_a_home(tmp_path):
    with closing(Home(tmp_path / "home")) as home:
        KnownCrawls(home).find_or_add(DOCS, "key", is_named=True)
        for name in ("home.db", "home.db-wal"):
            assert (home.folder / name).stat().st_mode & 0o077 == 0
        assert home.folder.stat().st_mode & 0o077 == 0


def test_the_folder_of_a_crawl_is_for_its_owner_only(tmp_path):
    """Also in a home that was there before, and is open to others."""
    folder = tmp_path / "crawls" / "abc"
    CrawlOwner(CrawlPlace(folder), 60.0).close()
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700


def test_requests_wait_in_order_until_they_are_answered(requests):
    first = requests.ask("c1", "retry", {"kind": "dns", "url": None}, 1)
    second = requests.ask("c1", "pause", {}, 2)
    requests.ask("c2", "cancel", {}, 3)
    again = OwnerRequest(first, "retry", {"kind": "dns", "url": None})
    assert requests.unanswered("c1") == [again, OwnerRequest(second, "pause", {})]
    assert requests.answer_to(first) is None
    requests.answer(first, "reopened", 4)
    assert (requests.answer_to(first), requests.unanswered("c1")) == ("reopened", [OwnerRequest(second, "pause", {})])


def test_the_first_answer_stands(requests):
    asked = requests.ask("c1", "pause", {}, 1)
    requests.answer(asked, "stopping", 2)
    requests.answer(asked, "too late", 3)
    assert requests.answer_to(asked) == "stopping"


def test_processes_share_a_home(home, requests):
    """Everybody writes at once; nobody's request is lost."""

    def ask(crawl_id: str) -> None:
        with closing(Home(home.folder)) as other:
            for number in range(10):
                OwnerRequests(other).ask(crawl_id, "pause", {"n": number}, number)

    threads = [threading.Thread(target=ask, args=(crawl_id,)) for crawl_id in ("c1", "c2", "c1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(requests.unanswered("c1")), len(requests.unanswered("c2"))) == (20, 10)


def test_a_damaged_home_is_told_with_a_way_out(tmp_path):
    (tmp_path / "home.db").write_bytes(b"not a database" * 100)
    with pytest.raises(Broken) as raised:
        Home(tmp_path)
    assert "damaged" in raised.value.hint
