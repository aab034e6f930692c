"""Tokens: the secret that signs them, how they are made, and how they are checked.

A token is a JSON Web Token signed with HS256. Whoever has the secret can make one, so other services may share it; what
they put in beside the end, the role and an id is not looked at. Why a token is refused is nobody's business but ours:
every refusal reads the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import jwt

from inchworm.errors import CannotServe, NoEntry

VARIABLE = "AUTH_JWT_SECRET"
ROLE_VARIABLE = "AUTH_DEFAULT_ROLE"
ISSUER = "inchworm"
MAX_TOKEN_BYTES = 8192
BROWSER_SECONDS = 12 * 60 * 60
LINK_SECONDS = 15 * 60
MIN_SECRET_BYTES = 32

_MAX_SECRET_BYTES = 4096
_LEEWAY_SECONDS = 30
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999: beyond it, times are a mistake or an attempt at one."""

_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_MAKE_ONE = f"Make one: export {VARIABLE}=$(python3 -c 'import secrets; print(secrets.token_hex(32))')"

_PUBLISHED = {"09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7"}
"""Random ones that many have copied from a tutorial."""
_USUAL = re.compile(
    r"0123456789abcdef|abcdefghijklmnopqrstuvwxyz|0?123456789|qwertyuiop|qwerty|passphrase|password|development|production"
    r"|default|example|insecure|inchworm|changeme|changed|change|secret|secure|please|random|sample|should|string|testing"
    r"|admin|bytes|hs256|least|local|super|token|unsafe|auth|bits|long|only|test|that|this|very|with|your|256|abc|bar|baz"
    r"|bit|dev|foo|for|jwt|key|the|\d+$"
)
_MIN_UNUSUAL = 12
"""How many characters have to be left when the words that people put in such a place are taken away."""
_MIN_DISTINCT = 8


class Role(StrEnum):
    """What a token is good for."""

    FULL = "full"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as far as a token tells."""

    role: Role
    token_id: str
    expires_s: int
    parent: str = ""
    """The token that was shown for this one: it ends with it."""

    is_for_browser: bool = False
    names_role: bool = True


# The secret.


def secret_of(folder: Path, environment: Mapping[str, str], is_public: bool) -> tuple[bytes, bool]:
    """The secret of a home, and whether it was made just now: from the environment, else from a file in the home.

    A service that others can reach has to be given one, so that it is the operator who decides on it.
    """
    if given := environment.get(VARIABLE):
        return _checked(os.fsencode(given)), False
    if is_public:
        raise CannotServe(f"A service that others can reach needs a secret: {VARIABLE} is not set.", _MAKE_ONE)
    path = folder / "secret"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = not os.path.lexists(path) and _made(path)
        return _read(path), made
    except OSError as error:
        raise CannotServe(
            f"{path} cannot be used: {error.strerror}.", f"Check the folder, or set {VARIABLE}."
        ) from None


def _checked(secret: bytes) -> bytes:
    if len(secret) < MIN_SECRET_BYTES:
        raise CannotServe(f"{VARIABLE} is too short: it needs at least {MIN_SECRET_BYTES} bytes.", _MAKE_ONE)
    if _is_guessable(secret):
        raise CannotServe(f"{VARIABLE} is one that others would guess.", _MAKE_ONE)
    try:
        jwt.encode({}, secret, algorithm="HS256")
    except jwt.InvalidKeyError:
        raise CannotServe(f"{VARIABLE} is a key of another kind: it has to be a random text.", _MAKE_ONE) from None
    return secret


def _is_guessable(secret: bytes) -> bool:
    text = re.sub(r"[-_.!\s]", "", secret.decode("latin-1").lower())
    return len(set(secret)) < _MIN_DISTINCT or text in _PUBLISHED or len(_USUAL.sub("", text)) < _MIN_UNUSUAL


def _made(path: Path) -> bool:
    """Put a new secret in place, whole and readable for nobody else; False when another process was quicker."""
    part = path.with_name(f".secret-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        try:
            os.fchmod(file.fileno(), 0o600)
            file.write(secrets.token_hex(32).encode())
            file.flush()
            os.fsync(file.fileno())
            # Unlike a rename, a link never takes the place of what is there already.
            os.link(part, path)
        except FileExistsError:
            return False
        finally:
            part.unlink()
    _sync(path.parent)
    return True


def _sync(folder: Path) -> None:
    """Tokens outlive a power cut only if the name of the file does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes:
    # Without waiting, because a pipe in its place would keep us for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.is_symlink():
        raise _unfit(path, "is a link")
    with os.fdopen(os.open(path, flags), "rb") as file:
        kept = os.fstat(file.fileno())
        if not stat.S_ISREG(kept.st_mode):
            raise _unfit(path, "is not a file")
        if kept.st_uid != os.geteuid():
            raise _unfit(path, "belongs to another user")
        if kept.st_mode & 0o077:
            raise _unfit(path, "can be read by others")
        secret = file.read(_MAX_SECRET_BYTES + 1).strip()
    if not MIN_SECRET_BYTES <= len(secret) <= _MAX_SECRET_BYTES:
        raise _unfit(path, "does not hold a secret")
    return secret


def _unfit(path: Path, trouble: str) -> CannotServe:
    hint = f"Delete it: a new one is made, and the tokens that the old one signed end. Or set {VARIABLE}."
    if trouble == "can be read by others":
        hint = f"If nobody can have read it: chmod 600 {path}. Otherwise delete it, and a new one is made."
    return CannotServe(f"{path} {trouble}.", hint)


# Tokens.


def default_role(environment: Mapping[str, str]) -> Role:
    """What a token is good for that names no role: for looking, unless the operator says otherwise."""
    given = environment.get(ROLE_VARIABLE, "")
    try:
        return Role(given or Role.READ_ONLY)
    except ValueError:
        known = " or ".join(Role)
        raise CannotServe(f"{ROLE_VARIABLE} cannot be {given[:50]!r}.", f"It takes {known}.") from None


def issue(secret: bytes, role: Role, ttl_seconds: int, now_s: int) -> str:
    """A new token."""
    return _signed(secret, {"role": role.value, "iat": now_s, "exp": now_s + ttl_seconds})


def issue_for_browser(secret: bytes, whose: Identity | None, now_s: int) -> str:
    """A token for a browser to keep. It lives for half a day, and never longer than the one that was shown for it; none
    was if somebody came by a link. Browsers show it to whoever listens on another port of the same host, so it is good
    in a cookie only."""
    ends_s = now_s + BROWSER_SECONDS if whose is None else min(whose.expires_s, now_s + BROWSER_SECONDS)
    about = {"role": Role.FULL.value} if whose is None else {"role": whose.role.value, "parent": whose.token_id}
    return _signed(secret, {**about, "iat": now_s, "exp": ends_s, "use": "browser"})


def _signed(secret: bytes, claims: dict[str, Any]) -> str:
    own = {"iss": ISSUER, "sub": "operator", "jti": secrets.token_hex(12)}
    return jwt.encode({**own, **claims}, secret, algorithm="HS256")


def verify(token: str, secret: bytes, is_revoked: Callable[[str], bool], otherwise: Role = Role.READ_ONLY) -> Identity:
    """Whose token this is; `otherwise` is the role of one that names none. Raises NoEntry, always the same, for
    everything that is not a valid token."""
    try:
        claims = _claims(token, secret)
        parent = claims["parent"] if isinstance(claims.get("parent"), str) else ""
        role, name = Role(claims.get("role", otherwise)), _id_of(token, claims)
        is_for_browser, names_role = claims.get("use") == "browser", "role" in claims
        identity = Identity(role, name, int(claims["exp"]), parent, is_for_browser, names_role)
        f"{name}{parent}".encode()
    # Whatever a token can do to a parser, it does not get in.
    except Exception:
        raise no_entry() from None
    if is_over(identity, is_revoked):
        raise no_entry()
    return identity


def is_over(identity: Identity, is_revoked: Callable[[str], bool]) -> bool:
    """Whether a token, or the one that it was made for, was made worthless."""
    return is_revoked(identity.token_id) or bool(identity.parent and is_revoked(identity.parent))


def no_entry() -> NoEntry:
    hint = "Get one with `inchworm token` and send it as `Authorization: Bearer …`."
    return NoEntry("This needs a valid token.", hint)


def _claims(token: str, secret: bytes) -> dict[str, Any]:
    """What a token says, when its form, its signature and its times are in order."""
    if len(token) > MAX_TOKEN_BYTES or not _FORM.fullmatch(token):
        raise ValueError("form")
    decoded = jwt.decode_complete(
        token, secret, algorithms=["HS256"], options={"require": ["exp"]}, leeway=_LEEWAY_SECONDS
    )
    claims: dict[str, Any] = decoded["payload"]
    if "crit" in decoded["header"] or "aud" in claims or claims.get("iss", ISSUER) != ISSUER:
        raise ValueError("not for us")
    if not all(_is_time(claims[name]) for name in ("exp", "nbf", "iat") if name in claims):
        raise ValueError("times")
    return claims


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LAST_SECOND


def _id_of(token: str, claims: Mapping[str, Any]) -> str:
    """The id a token is revoked by. One that bears none goes by what was signed, which nobody can write differently."""
    given = claims.get("jti")
    return given or hashlib.sha256(token.rpartition(".")[0].encode()).hexdigest()


# One-time codes.


def login_code() -> tuple[str, bytes]:
    """A code for a link that lets in once, and its digest: what is kept of it must not let anybody in."""
    code = secrets.token_urlsafe(32)
    return code, digest_of(code)


def digest_of(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()
