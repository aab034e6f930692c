"""The kinds of failure: which of them may pass by waiting, what each means, and what to do about it.

One word per cause, because people list failed URLs by kind and open them again by kind. A kind is all that is
decided upon; the message beside it is for reading only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class FailureKind(NamedTuple):
    """One row of the table. A transient failure is worth another try later."""

    transient: bool
    sentence: str
    advice: str


KINDS: Mapping[str, FailureKind] = MappingProxyType(
    {
        "dns": FailureKind(True, "The host name could not be looked up.", "Check the spelling and DNS."),
        "connect": FailureKind(
            True,
            "The server could not be reached or hung up without an answer.",
            "Check that it runs and that nothing blocks the way.",
        ),
        "tls": FailureKind(
            False,
            "No secure connection: the certificate or the TLS version is not acceptable.",
            "Look at the site with a browser; its owner has to renew or correct the certificate.",
        ),
        "timeout": FailureKind(True, "The answer took too long.", "Raise the time limit or crawl with fewer workers."),
        "http_4xx": FailureKind(
            False, "The server says that the request is wrong.", "Usually a dead link; the status says more."
        ),
        "http_429": FailureKind(True, "The server asks us to slow down.", "Raise the delay."),
        "http_5xx": FailureKind(True, "The server failed.", "Try again later."),
        "too_large": FailureKind(False, "The body is over the size limit.", "Raise the limit to keep it."),
        "truncated": FailureKind(True, "Only a part of the body came.", "Try again later."),
        "decode_error": FailureKind(
            False,
            "The body is not compressed the way its Content-Encoding says.",
            "The server is misconfigured; tell its owner.",
        ),
        "protocol_error": FailureKind(
            True, "The answer is not valid HTTP.", "Check that a web server listens on that port."
        ),
        "too_many_redirects": FailureKind(
            False, "The chain of redirects is too long.", "Start from the address that it leads to."
        ),
        "redirect_loop": FailureKind(
            False,
            "The redirects lead back to where they started.",
            "The site may want cookies or a login.",
        ),
        "bad_redirect": FailureKind(
            False, "The redirect leads to no usable address.", "The link is broken on the server's side."
        ),
        "address_refused": FailureKind(
            False,
            "The address or port is not one a crawler may connect to.",
            "Allow private addresses if the site is your own.",
        ),
        "robots": FailureKind(
            False, "The site's robots.txt could not be read, which means: keep out.", "Try again later."
        ),
        "soft_404": FailureKind(
            False,
            "The page says that it is not there, though the server says that all is well.",
            "Usually a dead link; the server should answer 404.",
        ),
        "reader_crashed": FailureKind(
            False,
            "Reading the page took more time or memory than it may, or broke the reader.",
            "Please report the page.",
        ),
        "blocked": FailureKind(
            False,
            "The site wants to know whether a person is asking: a challenge or captcha came instead of the page.",
            "Crawl more slowly, ask the site's owner to let you in, and then: inchworm retry CRAWL --kind blocked.",
        ),
        "not_in_archive": FailureKind(
            False, "The archive that is replayed has no answer for this URL.", "Crawl it live, or add files."
        ),
        "unsupported": FailureKind(False, "Not an http or https URL.", "It cannot be fetched."),
    }
)


_LONGEST_CAUSE = 300


def cause(host: str, kind: str, message: str) -> str:
    """What went wrong with a URL of this host, in a sentence, and what to do about it."""
    said = (message or KINDS[kind].sentence)[:_LONGEST_CAUSE].rstrip(".")
    return f"{host}: {said}. {KINDS[kind].advice}"


_TRANSIENT_4XX = frozenset({408, 425, 429})
_PERMANENT_5XX = frozenset({501, 505})


def for_status(status: int) -> str | None:
    """The kind of failure a status stands for; None when it stands for none."""
    if status < 400:
        return None
    if status == 429:
        return "http_429"
    return "http_4xx" if status < 500 else "http_5xx"


def is_transient(kind: str, status: int = 0) -> bool:
    """May another try bring an answer? The status, where there is one, knows better than its kind."""
    if status >= 500:
        return status not in _PERMANENT_5XX
    if status >= 400:
        return status in _TRANSIENT_4XX
    return KINDS[kind].transient
