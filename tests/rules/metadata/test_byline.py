"""Who wrote a page, and when, as it shows to people. Each page here is one way of showing it."""

from __future__ import annotations

import pytest

from inchworm import read

URL = "https://worms.example/walk"


def page(*above: str, behind: str = "") -> bytes:
    return f"<main><h1>A walk</h1>{''.join(above)}<p>Worms walk at night.</p></main>{behind}".encode()


@pytest.mark.parametrize(
    ("shown", "author"),
    [
        ('<p class="byline">By Ada Worm</p>', "Ada Worm"),
        ('<p class="byline">By Ada Worm, May 6, 2024</p>', "Ada Worm"),
        ('<p class="author">6 May 2024 by Ada</p>', None),
        ('<div class="entry-meta">by <a rel="author" href="/ada">Ada Worm</a> on Monday</div>', "Ada Worm"),
        ('<span itemprop="author"><span itemprop="name">Ada Worm</span>, gardener</span>', "Ada Worm"),
        ('<meta itemprop="author" content="Ada Worm">', "Ada Worm"),
        ('<span class="post-author-name">Ada Worm | 3 min</span>', "Ada Worm"),
        ('<span class="postAuthor">Von Ada Worm</span>', "Ada Worm"),
        ('<div class="author">Written by Ada Worm and Bob Worm</div>', "Ada Worm and Bob Worm"),
        ('<p>From <a href="https://worms.example/author/ada">Ada Worm</a></p>', "Ada Worm"),
        ('<time datetime="2024-05-06"></time><span class="byLine">by J. R. Worm, Jr.</span>', "J. R. Worm, Jr"),
        # Nobody is named.
        ('<p class="author">Sign in to follow</p>', None),
        ('<p class="author-box">About the author</p>', None),
        ('<p class="author">admin</p>', None),
        (f'<p class="author">{"Ada loves worms. " * 20}</p>', None),
        ('<div class="comments"><p class="author">Bob Worm</p></div>', None),
        ('<aside><p class="author">Bob Worm</p></aside>', None),
        ('<article class="card"><p class="author">Bob Worm</p></article>', None),
        # A list of articles has no author, a thread belongs to whoever opened it.
        ("".join(f'<p class="author">Worm {name}</p>' for name in "ABCD"), None),
        (
            '<div itemscope itemtype="https://schema.org/DiscussionForumPosting">'
            + "".join(f'<p class="author">Worm {name}</p>' for name in "ABCD")
            + "</div>",
            "Worm A",
        ),
    ],
)
def test_who_is_shown_to_have_written_it(shown: str, author: str | None) -> None:
    assert read(page(shown), URL, "text/html").author == author


@pytest.mark.parametrize(
    ("shown", "published"),
    [
        ('<i itemprop="datePublished" content="2024-05-06T10:00:00+02:00"></i>', "2024-05-06"),
        ('<time datetime="2024-05-06T23:30:00Z">yesterday</time>', "2024-05-06"),
        ('<p class="post-date">May 6, 2024</p>', "2024-05-06"),
        ('<p class="published">6th of September 2024</p>', "2024-09-06"),
        ('<p class="byline">Ada, 2024-05-06</p>', "2024-05-06"),
        # Another date than the one wanted, or none.
        ('<p class="date">Last updated May 6, 2024</p>', None),
        ('<time class="updated" datetime="2024-05-06">today</time>', None),
        ('<p class="date">Copyright 6 May 2024</p>', None),
        ('<p class="date">February 31, 2024</p>', None),
        ('<p class="date">05/06/2024</p>', None),
        ("<p>On May 6, 2024 a worm walked.</p>", None),
        ('<div class="comment"><time datetime="2024-05-06"></time></div>', None),
        ('<div class="release-date"><p class="date">May 6, 2024</p></div>', None),
        ("".join(f'<time datetime="2024-05-0{day}"></time>' for day in range(1, 5)), None),
    ],
)
def test_when_it_is_shown_to_have_been_published(shown: str, published: str | None) -> None:
    assert read(page(shown), URL, "text/html").published == published


@pytest.mark.parametrize(
    ("url", "published"),
    [
        ("https://worms.example/2024/05/06/walk", "2024-05-06"),
        ("https://worms.example/news/2024-05-06-walk.html", "2024-05-06"),
        ("https://worms.example/2024/13/06/walk", None),
        ("https://worms.example/2024/02/31/walk", None),
        ("https://worms.example/2024/05/", None),
    ],
)
def test_an_address_may_tell_the_day(url: str, published: str | None) -> None:
    assert read(page('<p class="author">Ada Worm</p>'), url, "text/html").published == published


def test_what_is_said_for_machines_counts_more() -> None:
    head = b'<meta name="author" content="Ada"><meta name="article:published_time" content="2024-01-01">'
    shown = page('<p class="author">Bob</p><time datetime="2024-05-06"></time>')
    found = read(head + shown, URL, "text/html")
    assert (found.author, found.published) == ("Ada", "2024-01-01")
