"""Commands about the service: running it, and letting people in."""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import Any

import click

from inchworm import settings
from inchworm.app.root import App
from inchworm.app.workspace import base_settings_of, home_folder
from inchworm.cli.commands import main
from inchworm.cli.options import SERVICE_OPTIONS, given, json_flag, opened, setting_options
from inchworm.cli.screen.door import print_json, say
from inchworm.errors import NoEntry, WrongUse
from inchworm.settings import duration

LISTS = ("allowed_proxies", "allowed_indexes")
_LONGEST_SECONDS = 3660 * 86_400


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8060, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--no-scheduler", is_flag=True, help="Answer requests and run no jobs.")
@click.option("--log-json", is_flag=True, help="Log lines as JSON, also on a terminal.")
@setting_options((*SERVICE_OPTIONS, "allow_private"))
def serve(host: str, port: int, no_scheduler: bool, log_json: bool, **values: Any) -> None:
    """Run the service: the HTTP API, and the scheduler that runs jobs.

    It listens on this machine only; to listen elsewhere, set AUTH_JWT_SECRET first. It makes a secret of its own and
    prints a link to log in with, if there is a terminal. Tokens of others that name no role may only look, unless
    AUTH_DEFAULT_ROLE=full. Stop it with Ctrl-C or SIGTERM: what runs is paused, and goes on at the next start.

    \b
    Exit codes: 4 the secret cannot be used; 5 the port cannot; 6 the home cannot.
    """
    # It would look through every package that is installed for plugins of the one that checks requests.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What is loaded now stays: it need not be looked through for what may go, until the service has all its routes.
    gc.disable()
    from inchworm.service import serve as service

    folder = home_folder()
    named = given(values)
    chosen = settings.make({**base_settings_of(folder), **named})
    # Executions go through the proxies and to the search servers that callers name, and look them up.
    os.environ |= {f"INCHWORM_{name.upper()}": " ".join(named[name]) for name in LISTS if name in named}
    service.log_to(sys.stderr, as_json=log_json or not sys.stderr.isatty())
    for note in settings.notes(os.environ):
        service.log.warning(note)
    service.serve(folder, chosen, service.Address(host, port, not no_scheduler), os.environ)


@main.command()
@click.option("--ttl", default="12h", show_default=True, metavar="DURATION", help="How long it is good for.")
@click.option("--read-only", is_flag=True, help="For looking only.")
@click.option("--revoke", metavar="TOKEN", default=None, help="Make this token worthless instead.")
@click.option("--link", is_flag=True, help="A link for a browser instead, good once, for 15 minutes.")
@click.option("--url", default="http://127.0.0.1:8060", show_default=True, help="Where the service is, for --link.")
@json_flag
def token(ttl: str, read_only: bool, revoke: str | None, link: bool, url: str, as_json: bool) -> None:
    """Make a token for the HTTP API.

    \b
      curl -H "Authorization: Bearer $(inchworm token)" http://localhost:8060/api/v1/jobs

    Whoever has it can do everything, or with --read-only see everything, until its time is over.
    """
    from inchworm.service.access import auth

    with opened() as app:
        if link:
            code, digest = auth.login_code()
            app.admission.invite(digest, auth.LINK_SECONDS)
            say(f"{url.rstrip('/')}/login?code={code}")
            return
        secret, _ = auth.secret_of(app.folder, os.environ, is_public=False)
        if revoke is not None:
            _revoke(app, revoke, secret)
            return
        role = auth.Role.READ_ONLY if read_only else auth.Role.FULL
        seconds = _seconds(ttl)
        made = auth.issue(secret, role, seconds, int(time.time()))
    print_json({"token": made, "role": role, "expires_in": seconds}) if as_json else say(made)


def _revoke(app: App, text: str, secret: bytes) -> None:
    from inchworm.service.access import auth

    try:
        found = auth.verify(text, secret, lambda _: False)
    except NoEntry:
        say("That token is worth nothing already.")
        return
    app.admission.store.revoke(found.token_id, 1000 * found.expires_s)
    say("Revoked.")


def _seconds(text: str) -> int:
    try:
        seconds = int(duration(text))
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise WrongUse(f"A token cannot be good for {text!r}.", "Give a duration such as 30m, 12h or 90d.")
    return seconds
