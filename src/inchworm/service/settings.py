"""The settings that may come over HTTP, as fields of a body, made from the one table."""

from __future__ import annotations

import json
import types
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, create_model

from inchworm import settings
from inchworm.service.web import Body

LOCAL = ("allow_private", "proxies", "replay", "stale", "index")
"""Settings that reach into this machine or its network: only its operator sets them."""

SETTINGS = {
    name: field
    for name, field in settings.FIELDS.items()
    if name not in LOCAL and not settings.belongs_to(name, settings.SERVICE)
}


def _field(name: str) -> tuple[Any, Any]:
    meta, default = SETTINGS[name].metadata, SETTINGS[name].default
    unit = f" ({meta['unit']})" if meta["unit"] else ""
    limits = {bound: meta[key] for key, bound in (("least", "ge"), ("most", "le")) if key in meta}
    return _kind(default) | None, Field(
        None, description=f"{meta['help']}{unit}; default: {json.dumps(default)}", **limits
    )


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
