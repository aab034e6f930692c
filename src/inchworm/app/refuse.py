"""What is refused before anything is done: settings that no session could work with, and addresses that callers may not
send us to."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from inchworm.engine import run
from inchworm.errors import WrongUse
from inchworm.fetch.guard import is_public
from inchworm.rules.fields.selectors import EACH, parsed
from inchworm.rules.order import order
from inchworm.rules.text.ignored import IgnoredText
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import Patterns
from inchworm.settings import Settings


def refuse_unusable(values: Settings) -> None:
    """Refuse what no session could work with, whatever else is named for it."""
    Patterns(values.include, values.exclude)
    IgnoredText(values.ignore_text)
    refuse_fields(values.extract, values.each)


def refuse_aimless(values: Settings, hint: str) -> None:
    """Refuse an order that needs a query, when there is none. `hint`: how whoever asked can name one."""
    if values.order == order.BEST and not values.query:
        raise WrongUse("Best for what? The order `best` goes by a query.", hint)


def refuse_odd_name(name: str) -> None:
    if not name.isprintable() or not name.strip():
        raise WrongUse(f"A crawl cannot be called {name!r}.", "Give it a name that people can read.")


def refuse_secrets(targets: Sequence[str]) -> None:
    """Nobody is there to type a password again for a session that starts by itself."""
    for text in targets:
        form = (urls.seed(text) or ("",))[0]
        if urls.userinfo_of(form) is not None:
            raise WrongUse(
                f"{run.shown(text)!r} was given with a user or password, which are kept nowhere.",
                "Leave them out. `inchworm crawl` on the machine itself takes them, for one session.",
            )


def refuse_fields(extract: Sequence[str], each: str) -> None:
    """Refuse fields that cannot be taken as they are written. Selectors are tried in another process: they may do harm
    where they are used."""
    if not extract and not each:
        return
    # Whoever takes none does not wait for it.
    from inchworm.apart import shared
    from inchworm.sink.fields import TAKEN

    for name, why in shared().faults(parsed(extract, each, TAKEN)):
        who = EACH if name == EACH else f"The field {name!r}"
        raise WrongUse(f"{who} cannot be used: {why[:500]}.", "It takes a CSS selector or an XPath expression.")


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
