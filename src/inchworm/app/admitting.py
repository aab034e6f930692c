"""Admitting: who may come in, where those outside may send us, and requests that must not be carried out twice."""

from __future__ import annotations

from ipaddress import ip_address

from inchworm.app.desk import Desk
from inchworm.errors import WrongUse
from inchworm.fetch.guard import is_public
from inchworm.rules.web import url as urls
from inchworm.store.home.access import Access, Answer, Standing

_NOT_NOW = 409
Given = Answer
"""What was answered already."""

Unanswered = Standing
"""How a request stands that has no answer yet."""


class Admitting(Desk):
    """Verbs about access to the service."""

    @property
    def access(self) -> Access:
        return Access(self.home)

    def invite(self, digest: bytes, seconds: float) -> None:
        """A code lets somebody in once, for so long."""
        now_ms = self.clock.now_ms()
        self.access.add_login(digest, now_ms + round(seconds * 1000), now_ms)

    def begin_once(self, key: str, request: bytes) -> Given | Unanswered:
        """What to do with a request under this key: only one that is fresh is carried out."""
        return self.access.begin(key, request, self.clock.now_ms())

    def end_once(self, key: str, status: int, body: str) -> None:
        """Keep its answer. Where nothing was done, because it failed or was not the time, it can be tried again."""
        if status >= 500 or status == _NOT_NOW:
            self.access.forget(key)
        else:
            self.access.end(key, status, body)


def refuse_private(href: str, shown: str) -> None:
    """Whoever is not the operator must not send us to this machine or its network. Where a name leads to is seen when
    it is dialled; what is an address already is refused when it is asked for."""
    if _is_private(urls.hostname_of(href)):
        raise WrongUse(
            f"{shown!r} is an address of this machine or of a private network.",
            "Give a public one, or have the service started with --allow-private.",
        )


def _is_private(host: str) -> bool:
    name = host.strip("[]").rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or (_is_address(name) and not is_public(name))


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
