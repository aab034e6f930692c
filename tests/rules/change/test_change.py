"""What a run finds out about a page: new, modified, unchanged, or nothing certain."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.model import Change, Note, Substance, Version
from inchworm.rules.change import change
from inchworm.rules.change.change import ChangeVerdict, Print, by_print, by_substance, of_redirect

OLD = Print(b"payload", b"text", b"links", "reader")


@pytest.mark.parametrize(
    ("new", "by_bytes", "verdict"),
    [
        (OLD, False, ChangeVerdict(Change.UNCHANGED)),
        (OLD, True, ChangeVerdict(Change.UNCHANGED)),
        (OLD._replace(text_hash=b"?", link_hash=b"?", reader="?"), False, ChangeVerdict(Change.UNCHANGED)),
        (OLD._replace(payload=b"?"), False, ChangeVerdict(Change.UNCHANGED, (Note.BYTES,))),
        (OLD._replace(payload=b"?"), True, ChangeVerdict(Change.MODIFIED)),
        (OLD._replace(payload=b"?", text_hash=b"?"), False, None),
        (OLD._replace(payload=b"?", link_hash=b"?"), False, None),
        (OLD._replace(payload=b"?", reader="?"), False, None),
    ],
    ids=["same", "same-bytes", "another-reader", "only-bytes", "any-byte", "text", "links", "reader-and-bytes"],
)
def test_hashes_decide_where_they_can(new: Print, by_bytes: bool, verdict: ChangeVerdict | None) -> None:
    assert by_print(OLD, new, by_bytes) == verdict


def test_without_a_text_hash_both_have_to_be_read() -> None:
    old, new = Print(b"a", b"", b"", "reader"), Print(b"b", b"", b"", "reader")
    assert by_print(old, new, False) is None


def test_the_print_of_a_version_is_its_hashes() -> None:
    empty: dict[str, object] = dict.fromkeys(Version._fields, "")
    version = Version(**{**empty, "payload": b"p", "text_hash": b"t", "link_hash": b"l", "reader": "r"})
    assert change.print_of(version) == Print(b"p", b"t", b"l", "r")


WORDS = st.text("abc d", max_size=40)
SUBSTANCES = st.builds(Substance, WORDS, WORDS, st.lists(WORDS, max_size=3).map(tuple))


@given(SUBSTANCES)
def test_e11_a_page_with_the_same_substance_is_unchanged(page: Substance) -> None:
    verdict = by_substance(page, page)
    has_any = bool(page.title or page.text)
    assert verdict == (ChangeVerdict(Change.UNCHANGED, (Note.BYTES,)) if has_any else ChangeVerdict(Change.MODIFIED))


@given(SUBSTANCES, SUBSTANCES)
def test_which_of_two_versions_came_first_makes_no_difference(one: Substance, other: Substance) -> None:
    assert by_substance(one, other).change is by_substance(other, one).change


PAGE = Substance("Title", "Some words that make up the text of a page.", ("http://a.test/1", "http://a.test/2"))


@pytest.mark.parametrize(
    ("new", "is_modified"),
    [
        (PAGE, False),
        (PAGE._replace(text=PAGE.text.replace("make up", "makeup")), True),
        (PAGE._replace(title="Tit le"), True),
        (PAGE._replace(title="Another"), True),
        (PAGE._replace(text=PAGE.text.replace("words", "signs")), True),
        (PAGE._replace(text=PAGE.text + " And more."), True),
        (PAGE._replace(text=""), True),
        (PAGE._replace(targets=PAGE.targets[:1]), True),
        (PAGE._replace(targets=PAGE.targets[::-1]), True),
        (PAGE._replace(targets=()), True),
    ],
    ids=[
        "same",
        "spaces",
        "title-spaces",
        "title",
        "word",
        "more",
        "nothing-left",
        "link-gone",
        "links-turned",
        "no-links",
    ],
)
def test_title_text_and_targets_make_a_page(new: Substance, is_modified: bool) -> None:
    verdict = by_substance(PAGE, new)
    assert verdict.change is (Change.MODIFIED if is_modified else Change.UNCHANGED)
    assert bool(verdict.message) is is_modified
    assert verdict.notes == (() if is_modified else (Note.BYTES,))


@pytest.mark.parametrize("is_permanent", [True, False], ids=["for-good", "for-a-while"])
@pytest.mark.parametrize("is_login", [True, False], ids=["login", "no-login"])
@pytest.mark.parametrize(("text", "target"), list(itertools.product([b"", b"a"], [b"", b"a", b"b"])))
def test_e14_only_another_text_for_good_is_evidence(
    is_permanent: bool, is_login: bool, text: bytes, target: bytes
) -> None:
    verdict = of_redirect(is_permanent, text, target, is_login)
    if is_login:
        assert verdict == ChangeVerdict(Change.UNKNOWN, (Note.LOGIN,))
    elif text and text == target:
        assert verdict == ChangeVerdict(Change.UNCHANGED, (Note.MOVED,))
    else:
        is_gone = is_permanent and bool(target)
        assert verdict == ChangeVerdict(Change.DELETED if is_gone else Change.UNKNOWN, (Note.MOVED,))


@pytest.mark.parametrize(
    ("path", "is_login"),
    [
        ("/login", True),
        ("/login/", True),
        ("/Login.aspx", True),
        ("/wp-login.php", True),
        ("/log-in", True),
        ("/logon", True),
        ("/signin?next=/a", True),
        ("/account/sign-in", True),
        ("/sso/start", True),
        ("/oauth2/authorize", True),
        ("/auth", True),
        ("/users/sign_in", True),
        ("/", False),
        ("/blogging", False),
        ("/author/a", False),
        ("/catalogin", False),
        ("/assign-in-class", False),
        ("/authentic", False),
    ],
)
def test_addresses_where_people_are_asked_who_they_are(path: str, is_login: bool) -> None:
    assert change.is_login(f"https://a.test{path}") is is_login


def test_the_host_does_not_make_it_a_login() -> None:
    assert not change.is_login("https://login.a.test/page")


@pytest.mark.parametrize(
    ("deleted", "known", "is_alarming"),
    [(0, 0, False), (0, 9, False), (1, 1, True), (1, 2, False), (2, 3, True), (500, 1000, False), (501, 1000, True)],
)
def test_more_than_half_gone_is_alarming(deleted: int, known: int, is_alarming: bool) -> None:
    said = change.alarm(deleted, known)
    assert bool(said) is is_alarming
    assert not said or said.startswith(f"{deleted:,} of {known:,} known pages are gone.")
