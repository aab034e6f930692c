"""The settings that may come over HTTP, as fields of a body, made from the one table."""

from __future__ import annotations

import json
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, create_model

from inchworm import settings
from inchworm.errors import WrongUse
from inchworm.rules.web import proxies
from inchworm.service.api.web import Body, given
from inchworm.settings import Settings

_MOST_SHOWN = 100

LOCAL = ("allow_private", "replay", "stale")
"""Settings that reach into this machine or its network: only its operator sets them."""

LISTED = {"proxies": "allowed_proxies", "index": "allowed_indexes"}
"""Settings that lead elsewhere, and the lists of the operator that say where to."""

SETTINGS = {
    name: field
    for name, field in settings.FIELDS.items()
    if name not in LOCAL and not settings.belongs_to(name, settings.SERVICE)
}


def named(body: Body | None, values: Settings) -> dict[str, Any]:
    """The settings that a body names, of which those that lead elsewhere are on the operator's lists."""
    found = given(body, SETTINGS) if body is not None else {}
    for name, allowed in LISTED.items():
        if found.get(name) is not None:
            wanted = found[name] if isinstance(found[name], list) else [found[name]]
            _refuse_unlisted(name, wanted, allowed, getattr(values, allowed))
    return found


def _refuse_unlisted(name: str, wanted: Sequence[str], allowed: str, listed: Sequence[str]) -> None:
    if not any(wanted):
        # It would take away what the operator has every crawl go through.
        raise WrongUse(f"{name} cannot be empty.", "Leave it out to have it as the operator has set it.")
    for one in wanted:
        if proxies.has_secret(one):
            raise WrongUse(
                f"{name} is named with a user or a password, which are not taken over HTTP.",
                "Leave them out: the operator's list has them.",
            )
        if proxies.among(one, listed) is None:
            raise WrongUse(
                f"{name} cannot be {one[:_MOST_SHOWN]!r}: it is not on the operator's list.",
                f"Have it put into {allowed}, in config.toml or for `inchworm serve`.",
            )


def _field(name: str) -> tuple[Any, Any]:
    meta, default = SETTINGS[name].metadata, SETTINGS[name].default
    unit = f" ({meta['unit']})" if meta["unit"] else ""
    limits = {bound: meta[key] for key, bound in (("least", "ge"), ("most", "le")) if key in meta}
    kind = _kind(default) | types.GenericAlias(dict, (str, str)) if meta.get("pairs") else _kind(default)
    return kind | None, Field(None, description=f"{meta['help']}{unit}; default: {json.dumps(default)}", **limits)


def _kind(default: Any) -> Any:
    if isinstance(default, tuple):
        return types.GenericAlias(list, (str,))
    return type(default)


class _Settings(Body):
    """Every setting that a caller may name."""

    model_config = ConfigDict(json_schema_extra={"example": {"workers": 10, "budget": 500, "exclude": ["*/print/*"]}})


if TYPE_CHECKING:

    class SettingsBody(Body):
        """Every setting that a caller may name."""

else:
    SettingsBody = create_model("Settings", __base__=_Settings, **{name: _field(name) for name in SETTINGS})
