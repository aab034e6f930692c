"""Tokens: the secret that signs them, how they are made, and how they are checked."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.errors import CannotServe, NoEntry
from inchworm.service.access import auth
from inchworm.service.access.auth import Identity, Role

SECRET = b"8c1f6d0b7ae94c25b3d2f0917e6a5c48"
OTHER = b"e5b07c91d3a84f26b8f40c7d1a9e3625"
NOW = int(time.time())
DAY = 24 * 60 * 60
LATER = NOW + DAY
GOOD = {"exp": LATER, "jti": "one"}


LOOKS = Identity(Role.READ_ONLY, "one", LATER, names_role=False)


def nobody(token_id: str) -> bool:
    return False


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(header: Any, claims: Any, key: bytes = SECRET, digest: str = "sha256") -> str:
    """A token with this header and these claims, signed whatever they say."""
    signed = f"{part(header)}.{part(claims)}"
    return f"{signed}.{part(hmac.new(key, signed.encode(), digest).digest())}"


def signed(claims: Any, **header: Any) -> str:
    return forged({"alg": "HS256", "typ": "JWT", **header}, claims)


# Tokens that let in.


def test_a_token_that_was_issued_lets_in():
    token = auth.issue(SECRET, Role.FULL, DAY, NOW)
    identity = auth.verify(token, SECRET, nobody)
    assert (identity.role, identity.expires_s) == (Role.FULL, LATER)
    claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    assert claims == {
        "iss": "inchworm",
        "sub": "operator",
        "role": "full",
        "iat": NOW,
        "exp": LATER,
        "jti": identity.token_id,
    }
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}


def test_every_token_has_an_id_of_its_own():
    tokens = [auth.issue(SECRET, Role.FULL, DAY, NOW) for _ in range(50)]
    assert len({auth.verify(token, SECRET, nobody).token_id for token in tokens}) == 50


@pytest.mark.parametrize(
    ("claims", "identity"),
    [
        ({**GOOD, "role": "full"}, Identity(Role.FULL, "one", LATER)),
        ({**GOOD, "role": "read-only"}, Identity(Role.READ_ONLY, "one", LATER)),
        (GOOD, LOOKS),
        ({**GOOD, "iss": "inchworm"}, LOOKS),
        ({**GOOD, "sub": "somebody", "scope": "all", "parent": 3}, LOOKS),
        ({**GOOD, "exp": LATER + 0.5}, LOOKS),
        ({**GOOD, "nbf": NOW - 1, "iat": NOW - 1}, LOOKS),
    ],
)
def test_tokens_of_other_services_let_in(claims, identity):
    assert auth.verify(signed(claims), SECRET, nobody) == identity


def test_the_operator_says_what_a_token_without_a_role_is_good_for():
    for role in Role:
        assert auth.verify(signed(GOOD), SECRET, nobody, role).role is role
        assert auth.verify(signed({**GOOD, "role": "read-only"}), SECRET, nobody, role).role is Role.READ_ONLY
    assert auth.default_role({}) is auth.default_role({"AUTH_DEFAULT_ROLE": ""}) is Role.READ_ONLY
    assert auth.default_role({"AUTH_DEFAULT_ROLE": "full"}) is Role.FULL
    for wrong in ("admin", "FULL", "true"):
        with pytest.raises(CannotServe, match="AUTH_DEFAULT_ROLE"):
            auth.default_role({"AUTH_DEFAULT_ROLE": wrong})


def test_clocks_may_differ_by_some_seconds():
    now = int(time.time())
    claims = {"exp": now - 1, "nbf": now + 20, "iat": now + 20}
    assert auth.verify(signed(claims), SECRET, nobody).expires_s == now - 1


@pytest.mark.parametrize("kid", ["1", "../../../../dev/null", "' OR 1=1 --", "x" * 3000, "http://evil.test/key"])
def test_the_name_of_a_key_is_not_looked_at(kid):
    assert auth.verify(signed(GOOD, kid=kid), SECRET, nobody).token_id == "one"
    with pytest.raises(NoEntry):
        auth.verify(forged({"alg": "HS256", "kid": kid}, GOOD, b""), SECRET, nobody)


def test_a_token_without_an_id_can_be_revoked():
    one, other = signed({"exp": LATER}), signed({"exp": LATER + 1})
    name = auth.verify(one, SECRET, nobody).token_id
    assert len(name) == 64
    assert auth.verify(other, SECRET, name.__eq__).token_id != name
    with pytest.raises(NoEntry):
        auth.verify(one, SECRET, name.__eq__)


# Tokens that do not.


def of_size(size: int) -> str:
    return signed({**GOOD, "pad": "x" * size})


GOOD_TOKEN = signed(GOOD)
HEAD, BODY, SIGN = GOOD_TOKEN.split(".")
HOSTILE = {
    "nothing": "",
    "a word": "token",
    "dots": "..",
    "four dots": "....",
    "spaces": f" {GOOD_TOKEN} ",
    "a line after it": f"{GOOD_TOKEN}\n",
    "padding": f"{HEAD}=.{BODY}.{SIGN}",
    "a part too many": f"{GOOD_TOKEN}.x",
    "a part too many in the middle": f"{HEAD}.{BODY}.{BODY}.{SIGN}",
    "a part too few": f"{HEAD}.{BODY}",
    "no signature": f"{HEAD}.{BODY}.",
    "half a signature": f"{HEAD}.{BODY}.{SIGN[:20]}",
    "another claim": f"{HEAD}.{part({**GOOD, 'exp': LATER + 1})}.{SIGN}",
    "another header": f"{part({'alg': 'HS256', 'typ': 'jwt'})}.{BODY}.{SIGN}",
    "another character": f"{HEAD}.{BODY}.{'A' if SIGN[0] != 'A' else 'B'}{SIGN[1:]}",
    "bits that say nothing": f"{HEAD}.{BODY}.{SIGN[:-1]}{chr(ord(SIGN[-1]) + 1)}",
    "letters of another script": GOOD_TOKEN.replace("a", "а"),
    "half a character": GOOD_TOKEN + "\ud800",
    "zero": GOOD_TOKEN + "\0",
    **{f"alg {alg}": forged({"alg": alg}, GOOD) for alg in ("none", "None", "NONE", "nOnE", "", "HS384", "HS512")},
    **{f"alg {alg} unsigned": f"{part({'alg': alg})}.{BODY}." for alg in ("none", "None", "NONE", "nOnE", "HS256")},
    **{f"alg {alg!r}": forged({"alg": alg}, GOOD) for alg in (None, 1, True, [], ["HS256"], {}, "hs256", "HS256 ")},
    "no alg": forged({"typ": "JWT"}, GOOD),
    **{f"alg {alg}": forged({"alg": alg}, GOOD) for alg in ("RS256", "ES256", "PS256", "EdDSA", "ES256K")},
    "HS512 as it is": forged({"alg": "HS512"}, GOOD, digest="sha512"),
    "HS384 as it is": forged({"alg": "HS384"}, GOOD, digest="sha384"),
    "HS256 with another digest": forged({"alg": "HS256"}, GOOD, digest="sha512"),
    "empty key": forged({"alg": "HS256"}, GOOD, b""),
    "another key": forged({"alg": "HS256"}, GOOD, OTHER),
    "its own key": forged({"alg": "HS256", "jwk": {"kty": "oct", "k": part(OTHER)}}, GOOD, OTHER),
    "a key elsewhere": forged({"alg": "HS256", "jku": "http://evil.test/", "x5u": "http://evil.test/"}, GOOD, OTHER),
    "crit": signed(GOOD, crit=["exp"]),
    "crit that is empty": signed(GOOD, crit=[]),
    "crit that is nothing": signed(GOOD, crit=None),
    "crit b64": signed(GOOD, crit=["b64"], b64=True),
    "detached": forged({"alg": "HS256", "b64": False, "crit": ["b64"]}, b""),
    "a header that is a list": forged(["HS256"], GOOD),
    "a header that is no JSON": forged(b"{", GOOD),
    "a header too deep": forged(b"[" * 5000, GOOD),
    "claims too deep": forged({"alg": "HS256"}, b"[" * 5000),
    "claims that are a list": signed([GOOD]),
    "claims that are no JSON": forged({"alg": "HS256"}, b"{\xff}"),
    "a number too long": forged({"alg": "HS256"}, b'{"exp": ' + b"9" * 5000 + b"}"),
    "expired": signed({**GOOD, "exp": NOW - 61}),
    "expired long ago": signed({**GOOD, "exp": 0}),
    "no end": signed({"jti": "one"}),
    **{
        f"exp {exp!r}": signed({**GOOD, "exp": exp})
        for exp in (None, "", {}, True, -1, 1e300, 10**15, float("inf"), float("nan"), "never")
    },
    "exp that is text": signed({**GOOD, "exp": str(LATER)}),
    "exp that is a list": signed({**GOOD, "exp": [LATER]}),
    "not yet": signed({**GOOD, "nbf": NOW + DAY}),
    "never": signed({**GOOD, "nbf": float("inf")}),
    "nbf that is true": signed({**GOOD, "nbf": True}),
    "nbf that is text": signed({**GOOD, "nbf": str(NOW - 10)}),
    "issued in the future": signed({**GOOD, "iat": NOW + DAY}),
    **{f"iss {iss!r}": signed({**GOOD, "iss": iss}) for iss in ("other", "", None, "Inchworm", ["inchworm"], 1)},
    **{f"aud {aud!r}": signed({**GOOD, "aud": aud}) for aud in ("inchworm", "other", "", None, [], ["inchworm"], {})},
    **{
        f"role {role!r}": signed({**GOOD, "role": role})
        for role in ("", "admin", "Full", "FULL", "full ", "read_only", None, 1, True, ["full"], {"full": 1})
    },
    **{f"jti {jti!r}": signed({**GOOD, "jti": jti}) for jti in (None, 1, ["one"], {}, "\ud800")},
    "a parent that is no text": signed({**GOOD, "parent": "\udfff"}),
    "too long by a little": of_size(6200),
    "a megabyte": of_size(1_000_000),
    "a megabyte of nothing": "a" * 1_000_000,
    "a megabyte of dots": "." * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_everything_else_is_refused_in_the_same_words(name):
    with pytest.raises(NoEntry) as raised:
        auth.verify(HOSTILE[name], SECRET, nobody)
    assert type(raised.value) is NoEntry
    assert raised.value.message == "This needs a valid token."
    assert raised.value.hint == "Get one with `inchworm token` and send it as `Authorization: Bearer …`."
    assert raised.value.__suppress_context__


def test_the_longest_token_there_may_be():
    fits = next(size for size in range(6100, 5900, -1) if len(of_size(size)) <= auth.MAX_TOKEN_BYTES)
    assert auth.verify(of_size(fits), SECRET, nobody).token_id == "one"


@given(st.text())
def test_text_of_chance_lets_nobody_in(text):
    with pytest.raises(NoEntry):
        auth.verify(text, SECRET, nobody)


@given(st.binary(), st.binary(), st.binary())
def test_parts_of_chance_let_nobody_in(header, claims, signature):
    with pytest.raises(NoEntry):
        auth.verify(f"{part(header)}.{part(claims)}.{part(signature)}", SECRET, nobody)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
CLAIMS = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.just(LATER) for name in ("exp", "nbf", "iat", "iss", "aud", "jti", "role", "sub", "parent")
    },
)


@given(CLAIMS, st.dictionaries(st.sampled_from(["kid", "crit", "typ", "b64", "cty"]), JSON))
def test_claims_of_chance_give_an_identity_or_no_entry(claims, header):
    """Whoever shares the secret may sign anything; it must not be able to do more than come in."""
    try:
        identity = auth.verify(signed(claims, **header), SECRET, nobody)
    except NoEntry:
        return
    assert identity.role is Role(claims.get("role", "read-only"))
    assert identity.token_id.encode()


# Revoked ones, and those of browsers.


def test_a_revoked_token_does_not_let_in():
    token = auth.issue(SECRET, Role.FULL, DAY, NOW)
    name = auth.verify(token, SECRET, nobody).token_id
    with pytest.raises(NoEntry) as raised:
        auth.verify(token, SECRET, name.__eq__)
    assert raised.value.message == "This needs a valid token."


def test_a_store_that_fails_is_no_wrong_token():
    def fail(token_id: str) -> bool:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        auth.verify(GOOD_TOKEN, SECRET, fail)


@pytest.mark.parametrize(("left", "lives"), [(3600, 3600), (10**6, auth.BROWSER_SECONDS)])
@pytest.mark.parametrize("role", Role)
def test_the_token_of_a_browser_has_the_role_and_at_most_the_life_of_the_one_shown(left, lives, role):
    shown = Identity(role, "shown", NOW + left)
    identity = auth.verify(auth.issue_for_browser(SECRET, shown, NOW), SECRET, nobody)
    assert (identity.role, identity.expires_s) == (role, NOW + lives)
    assert identity.token_id != "shown"


def test_the_token_of_a_browser_ends_with_the_one_shown():
    token = auth.issue_for_browser(SECRET, Identity(Role.FULL, "shown", LATER), NOW)
    with pytest.raises(NoEntry):
        auth.verify(token, SECRET, "shown".__eq__)


def test_codes_are_long_and_known_by_their_digest():
    codes = [auth.login_code() for _ in range(50)]
    assert len({code for code, _ in codes}) == 50
    assert all(len(code) >= 43 and digest == hashlib.sha256(code.encode()).digest() for code, digest in codes)
    assert auth.digest_of("\ud800") != auth.digest_of("")


# The secret.


@pytest.mark.parametrize("is_public", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        SECRET.decode(),
        "Qk3vT8-zWm1_Rb7xLp9dHy2nGs5cJf4aUe6o",
        "correct horse battery staple and then some",
        "ünïcödé-ünd-mehr-dävön-wörter-sö-läng",
        "".join(chr(code) for code in range(33, 65)),
    ],
)
def test_the_secret_of_the_environment_is_taken_as_it_is(tmp_path, value, is_public):
    assert auth.secret_of(tmp_path, {"AUTH_JWT_SECRET": value}, is_public) == (value.encode(), False)
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_no_text_are_taken_too(tmp_path):
    value = os.fsdecode(bytes(range(128, 168)))
    assert auth.secret_of(tmp_path, {"AUTH_JWT_SECRET": value}, True) == (bytes(range(128, 168)), False)


def test_random_secrets_are_never_taken_for_usual_ones(tmp_path):
    for make in (lambda: secrets.token_hex(16), lambda: secrets.token_hex(32), lambda: secrets.token_urlsafe(24)):
        for _ in range(300):
            auth.secret_of(tmp_path, {"AUTH_JWT_SECRET": make()}, True)


@pytest.mark.parametrize(
    "value",
    [
        "secret",
        "changeme",
        "x",
        "8c1f6d0b7ae94c25b3d2f0917e6a5c4",
        "a" * 64,
        "abcabcabcabcabcabcabcabcabcabcabcabc",
        "secret" * 8,
        "changeme-changeme-changeme-changeme",
        "CHANGE_ME_CHANGE_ME_CHANGE_ME_CHANGE_ME",
        "your-256-bit-secret-your-256-bit-secret",
        "a-string-secret-at-least-256-bits-long",
        "please-change-this-secret-key-123456789",
        "my-super-secret-key-that-is-32-bytes-long!",
        "insecure-secret-key-for-local-development-only",
        "0123456789abcdef0123456789abcdef",
        "12345678901234567890123456789012",
        "abcdefghijklmnopqrstuvwxyz123456",
        "passwordpasswordpasswordpassword",
        "inchworm-inchworm-inchworm-inchworm",
        "09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8ZK1m4yq2W6m0eYw3uXk",
    ],
)
@pytest.mark.parametrize("is_public", [False, True])
def test_a_secret_that_others_could_guess_is_refused(tmp_path, value, is_public):
    with pytest.raises(CannotServe) as raised:
        auth.secret_of(tmp_path, {"AUTH_JWT_SECRET": value}, is_public)
    assert "token_hex(32)" in raised.value.hint
    assert len(value) < 6 or value not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("environment", [{}, {"AUTH_JWT_SECRET": ""}])
def test_a_service_that_others_can_reach_has_to_be_given_a_secret(tmp_path, environment):
    auth.secret_of(tmp_path, {}, is_public=False)
    with pytest.raises(CannotServe) as raised:
        auth.secret_of(tmp_path, environment, is_public=True)
    assert "AUTH_JWT_SECRET" in raised.value.message
    assert raised.value.exit_code == 4


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_a_secret_is_made_once_and_for_nobody_else(tmp_path, umask):
    home = tmp_path / "some" / "home"
    home.mkdir(parents=True)
    before = os.umask(umask)
    try:
        secret, made = auth.secret_of(home, {}, is_public=False)
    finally:
        os.umask(before)
    assert made
    assert auth.secret_of(home, {}, is_public=False) == (secret, False)
    kept = (home / "secret").stat()
    assert (stat.S_IMODE(kept.st_mode), kept.st_uid, kept.st_nlink) == (0o600, os.geteuid(), 1)
    assert [path.name for path in home.iterdir()] == ["secret"]
    assert len(bytes.fromhex(secret.decode())) == 32


def test_two_homes_have_two_secrets_and_a_home_is_made(tmp_path):
    secret = {auth.secret_of(tmp_path / name, {}, is_public=False) for name in ("one", "other")}
    assert len(secret) == 2


def test_the_secret_of_the_file_can_be_given_to_other_services(tmp_path):
    secret, _ = auth.secret_of(tmp_path, {}, is_public=False)
    value = (tmp_path / "secret").read_text()
    assert auth.secret_of(tmp_path, {"AUTH_JWT_SECRET": value}, is_public=True) == (secret, False)


def write(path: Path, text: str = "f" * 20 + "0123456789ab", mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_an_empty_line_at_the_end_does_no_harm(tmp_path):
    write(tmp_path / "secret", "f" * 20 + "0123456789ab\n")
    assert auth.secret_of(tmp_path, {}, is_public=False) == (b"f" * 20 + b"0123456789ab", False)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o777])
def test_a_file_that_others_may_read_or_write_is_refused(tmp_path, mode):
    path = write(tmp_path / "secret", mode=mode)
    with pytest.raises(CannotServe) as raised:
        auth.secret_of(tmp_path, {}, is_public=False)
    assert f"chmod 600 {path}" in raised.value.hint
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(tmp_path):
    os.chown(write(tmp_path / "secret"), 12345, -1)
    with pytest.raises(CannotServe, match="another user"):
        auth.secret_of(tmp_path, {}, is_public=False)


@pytest.mark.parametrize("target", ["real", "nowhere", "secret"])
def test_a_link_is_refused(tmp_path, target):
    write(tmp_path / "real")
    (tmp_path / "secret").symlink_to(target)
    with pytest.raises(CannotServe, match="is a link"):
        auth.secret_of(tmp_path, {}, is_public=False)
    assert not (tmp_path / "nowhere").exists()


def test_what_is_not_a_file_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(CannotServe, match="is not a file"):
        auth.secret_of(tmp_path, {}, is_public=False)
    (tmp_path / "secret").unlink()
    (tmp_path / "secret").mkdir()
    with pytest.raises(CannotServe):
        auth.secret_of(tmp_path, {}, is_public=False)


@pytest.mark.parametrize("text", ["", "short", " " * 40, "x" * 5000])
def test_a_file_without_a_secret_is_refused(tmp_path, text):
    write(tmp_path / "secret", text)
    with pytest.raises(CannotServe, match="does not hold a secret"):
        auth.secret_of(tmp_path, {}, is_public=False)


def test_a_home_that_is_none_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotServe) as raised:
        auth.secret_of(tmp_path / "file", {}, is_public=False)
    assert "AUTH_JWT_SECRET" in raised.value.hint


RACE = """
import sys
from pathlib import Path
from inchworm.service.access.auth import secret_of
print("ready", flush=True)
sys.stdin.readline()
secret, made = secret_of(Path(sys.argv[1]), {}, False)
print(secret.decode(), int(made), flush=True)
"""


def test_processes_that_come_at_once_get_the_same_secret_and_one_made_it(tmp_path):
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", RACE, str(tmp_path / "home")]
    racers = [subprocess.Popen(command, **pipe) for _ in range(6)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0].split() for racer in racers]
    assert len({secret for secret, _ in answers}) == 1
    assert sorted(made for _, made in answers) == ["0"] * 5 + ["1"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["secret"]


@pytest.mark.parametrize("round_", range(3))
def test_nobody_ever_sees_a_secret_that_is_open_or_not_whole(tmp_path, round_):
    """Whatever file there is at any moment is closed to others, and the secret is whole from its first moment on."""
    maker = subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with maker:
        assert maker.stdout.readline() == b"ready\n"
        maker.stdin.write(b"go\n")
        maker.stdin.flush()
        while maker.poll() is None:
            for entry in os.scandir(tmp_path):
                with contextlib.suppress(FileNotFoundError):
                    kept = entry.stat()
                    assert kept.st_mode & 0o077 == 0
                    assert entry.name != "secret" or kept.st_size == 64
    assert len((tmp_path / "secret").read_bytes()) == 64
