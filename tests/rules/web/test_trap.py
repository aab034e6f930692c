"""Where a site has a new URL for ever."""

import pytest

from inchworm.rules.web.trap import counts_on, repeats_itself


@pytest.mark.parametrize(
    ("path", "is_trap"),
    [
        ("/a/b/a/b/a/b", True),
        ("/docs/en/en/en", True),
        ("/x/a/b/c/a/b/c/a/b/c", True),
        ("/1/1/1/1/1", True),
        ("/a/b/a/b", False),
        ("/en/en", False),
        ("/2011/11/11/11", False),
        ("/a/b/a/b/a/b/c", False),
        ("/", False),
        ("", False),
        ("/" + "/".join(map(str, range(3000))), False),
    ],
)
def test_repeats_itself(path: str, is_trap: bool) -> None:
    assert repeats_itself(f"https://h.test{path}") is is_trap


def test_counting_on() -> None:
    assert counts_on("https://h.test/cal?month=2&year=2031", "https://h.test/cal?month=12&year=2030")
    assert not counts_on("https://h.test/cal/may", "https://h.test/cal/april")
