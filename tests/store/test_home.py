"""home.db: which crawls there are, and what others ask of their owners."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from inchworm.engine.own.owner import CrawlOwner
from inchworm.errors import Broken, WrongUse
from inchworm.model import CrawlInfo
from inchworm.store.home.crawls import Asked, Home

DOCS = CrawlInfo("c1", "docs", ("https://a.test/docs",), {"budget": 5, "include": ["*.html"]}, 100)
BLOG = CrawlInfo("c2", "blog", ("a.test/blog", "b.test"), {}, 50)


@pytest.fixture
def home(tmp_path):
    with closing(Home(tmp_path / "home")) as made:
        made.find_or_add(DOCS, "https://a.test/docs", is_named=True)
        made.find_or_add(BLOG, "https://a.test/blog\nhttps://b.test/", is_named=True)
        yield made


def test_a_home_is_made_where_there_is_none_and_found_again(tmp_path):
    with closing(Home(tmp_path / "some" / "where")) as home:
        assert home.crawls() == []
        home.find_or_add(DOCS, "key", is_named=True)
    with closing(Home(tmp_path / "some" / "where")) as home:
        assert home.crawls() == [DOCS]


def test_a_folder_that_cannot_be_made_is_wrong_use(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WrongUse) as raised:
        Home(tmp_path / "file" / "home")
    assert "INCHWORM_HOME" in raised.value.hint


def test_crawls_are_listed_by_age_and_come_back_as_they_were(home):
    assert home.crawls() == [BLOG, DOCS]


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
def test_a_crawl_is_found_by_id_then_name_then_all_its_seeds(home, word, key, found):
    assert home.find(word, key) == found


def test_an_id_wins_over_a_name_and_the_oldest_over_the_others(home):
    home.configure("c2", name="c1")
    home.find_or_add(CrawlInfo("c4", "docs again", (), {}, 1), "https://a.test/docs", is_named=True)
    assert home.find("c1").crawl_id == "c1", "nobody takes the place of another crawl by its name"
    assert home.find("", "https://a.test/docs").crawl_id == "c4"


def test_who_comes_second_with_a_name_gets_the_crawl_that_is_there(home):
    assert home.find_or_add(CrawlInfo("c9", "docs", (), {}, 1), "key", is_named=True) == DOCS
    assert home.crawls() == [BLOG, DOCS]


def test_who_comes_second_with_the_same_seeds_gets_the_crawl_that_is_there(home):
    assert home.find_or_add(CrawlInfo("c9", "a.test", (), {}, 1), "https://a.test/docs", is_named=False) == DOCS
    assert home.crawls() == [BLOG, DOCS]


def test_a_name_that_nobody_chose_gets_a_number_when_it_is_taken(home):
    for number, crawl_id in enumerate(("c3", "c4"), 2):
        made = home.find_or_add(CrawlInfo(crawl_id, "docs", (), {}, 9), f"seed {crawl_id}", is_named=False)
        assert made.name == f"docs ({number})" and home.find(crawl_id) == made


def test_settings_are_remembered(home):
    home.remember("c1", {"workers": 7, "exclude": ["a", "b"]})
    assert home.find("docs").settings == {"workers": 7, "exclude": ["a", "b"]}
    assert home.find("blog") == BLOG


def test_a_removed_crawl_takes_what_was_asked_of_it_along(home):
    mine, other = home.ask("c1", "pause", {}, 1), home.ask("c2", "pause", {}, 1)
    home.remove("c1")
    assert home.crawls() == [BLOG]
    assert (home.asked("c1"), [asked.inbox_id for asked in home.asked("c2")]) == ([], [other])
    assert home.answer_to(mine) == ""


def test_only_its_owner_reads_a_home(tmp_path):
    with closing(Home(tmp_path / "home")) as home:
        home.find_or_add(DOCS, "key", is_named=True)
        for name in ("home.db", "home.db-wal"):
            assert (home.folder / name).stat().st_mode & 0o077 == 0
        assert home.folder.stat().st_mode & 0o077 == 0


def test_the_folder_of_a_crawl_is_for_its_owner_only(tmp_path):
    """Also in a home that was there before, and is open to others."""
    folder = tmp_path / "crawls" / "abc"
    CrawlOwner(folder, 60.0).close()
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700


def test_requests_wait_in_order_until_they_are_answered(home):
    first = home.ask("c1", "retry", {"kind": "dns", "url": None}, 1)
    second = home.ask("c1", "pause", {}, 2)
    home.ask("c2", "cancel", {}, 3)
    assert home.asked("c1") == [Asked(first, "retry", {"kind": "dns", "url": None}), Asked(second, "pause", {})]
    assert home.answer_to(first) is None
    home.answer(first, "reopened", 4)
    assert (home.answer_to(first), home.asked("c1")) == ("reopened", [Asked(second, "pause", {})])


def test_the_first_answer_stands(home):
    asked = home.ask("c1", "pause", {}, 1)
    home.answer(asked, "stopping", 2)
    home.answer(asked, "too late", 3)
    assert home.answer_to(asked) == "stopping"


def test_processes_share_a_home(home):
    """Everybody writes at once; nobody's request is lost."""

    def ask(crawl_id: str) -> None:
        with closing(Home(home.folder)) as other:
            for number in range(10):
                other.ask(crawl_id, "pause", {"n": number}, number)

    threads = [threading.Thread(target=ask, args=(crawl_id,)) for crawl_id in ("c1", "c2", "c1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(home.asked("c1")), len(home.asked("c2"))) == (20, 10)


def test_a_damaged_home_is_told_with_a_way_out(tmp_path):
    (tmp_path / "home.db").write_bytes(b"not a database" * 100)
    with pytest.raises(Broken) as raised:
        Home(tmp_path)
    assert "damaged" in raised.value.hint
