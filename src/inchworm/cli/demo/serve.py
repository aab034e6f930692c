"""`inchworm demo-serve`: the service with its dashboard, and a site beside it to crawl and to change.

Everything is on this machine, in a home that is removed at the end.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

import click

from inchworm import settings
from inchworm.app.act.plan import Start
from inchworm.app.root import App
from inchworm.cli.commands import main
from inchworm.cli.demo.site import Almanac
from inchworm.cli.screen.door import say
from inchworm.errors import CannotServe
from inchworm.testing import Site

PORT = 8060
_LATENCY = (0.02, 0.12)
_PACE = 0.15
"""Slow enough to watch: the site takes some 25 seconds."""

_WELCOME = """\
A demo of the dashboard. All of it is on this machine, and it is removed when you press Ctrl-C.

  1. Open the link that says "Log in", at the end.
  2. Paste this address there and press Start:   {site}
     It is a site that is served here. Watch it being crawled; pause it, and go on.
  3. Open that address in a browser, too, and press "Change the site" there.
     Then crawl it again, and see what changed.

Should you log out, get another link:   INCHWORM_HOME={home} inchworm token --link --url http://127.0.0.1:{port}
"""


@main.command("demo-serve")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--pace", default=_PACE, show_default=True, help="Seconds between two requests to the demo site.")
def demo_serve(port: int, pace: float) -> None:
    """Try the dashboard: the service, and a site to crawl with it.

    It prints a link to log in with and the address of the site. Everything happens on this machine, in a temporary
    folder; Ctrl-C ends it and removes that.
    """
    from inchworm.service import serve as service

    address = service.Address(port=port)
    try:
        service.bound(address).close()
    except CannotServe as error:
        error.hint = "Give another one: inchworm demo-serve --port 8070, or make demo-serve PORT=8070"
        raise
    # A terminal that is closed is a way to end it, too.
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    with (
        tempfile.TemporaryDirectory(prefix="inchworm-demo-") as folder,
        Site(Almanac().pages, latency=_LATENCY, validators=True).serve() as served,
    ):
        home = _home(Path(folder), pace)
        _allow(home, served.url("/"))
        say(_WELCOME.format(site=served.url("/"), home=home, port=port), err=True)
        service.log_to(sys.stderr, as_json=False)
        logging.getLogger().setLevel(logging.WARNING)
        service.serve(home, settings.make({"poll": 0.5}), address, os.environ)
    say("\nIt is over, and nothing is left of it.", err=True)


def _allow(home: Path, site: str) -> None:
    """Over HTTP no address of this machine may be crawled. That of the site is, as if it had been typed here."""
    app = App(home)
    try:
        app.plan.find_or_make(Start((site,)))
    finally:
        app.close()


def _home(folder: Path, pace: float) -> Path:
    """A home without anybody's settings, also for the processes that crawl."""
    for name in list(os.environ):
        if name.startswith("INCHWORM_") or name in (*settings.ALIASES, "AUTH_JWT_SECRET"):
            del os.environ[name]
    home = folder / "home"
    home.mkdir()
    (home / "config.toml").write_text(f"delay = {pace}\n")
    os.environ["INCHWORM_HOME"] = str(home)
    return home
