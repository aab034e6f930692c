"""Bot walls are told from pages, and pages from bot walls."""

from __future__ import annotations

import pytest

from inchworm.rules.page import parse, wall

ERRORS = {
    "cloudflare": (403, {"cf-mitigated": "challenge"}, b""),
    "cloudflare body": (503, {}, b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"),
    "cloudflare 1020": (403, {}, b"<title>Attention Required! | Cloudflare</title>"),
    "datadome": (403, {"x-datadome": "protected"}, b"<script src='https://ct.captcha-delivery.com/c.js'></script>"),
    "imperva": (403, {}, b'<iframe src="/_Incapsula_Resource?x=1">Incapsula incident ID: 1</iframe>'),
    "perimeterx": (403, {}, b"<div id='px-captcha'></div>"),
    "aws waf": (405, {"x-amzn-waf-action": "captcha"}, b""),
    "kasada": (429, {"x-kpsdk-ct": "1"}, b""),
    "akamai": (403, {}, b"Access Denied. Reference #18.1 https://errors.edgesuite.net/18.1"),
    "sucuri": (403, {}, b"<title>Sucuri WebSite Firewall - Access Denied</title>"),
    "vercel": (429, {"x-vercel-mitigated": "challenge"}, b"<title>Vercel Security Checkpoint</title>"),
    "anubis": (401, {}, b'<script id="anubis_challenge" type="application/json">{}</script>'),
    "hcaptcha": (403, {}, b"<script src=https://js.hcaptcha.com/1/api.js></script>"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_that_a_wall_gives(name: str) -> None:
    assert wall.is_error_wall(*ERRORS[name])


@pytest.mark.parametrize("status", [400, 402, 404, 410, 500, 502, 504])
def test_other_errors_are_no_walls(status: int) -> None:
    assert not wall.is_error_wall(status, {}, ERRORS["cloudflare body"][2])


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (403, {"server": "nginx"}, b"<title>403 Forbidden</title><h1>Forbidden</h1><hr>nginx"),
        (403, {"server": "cloudflare", "cf-ray": "1"}, b"<h1>Members only</h1>"),
        (401, {"www-authenticate": "Basic"}, b"<h1>Unauthorized</h1>"),
        (429, {"retry-after": "9"}, b"Too many requests"),
        (503, {}, b"<h1>Down for maintenance</h1>"),
    ],
)
def test_a_plain_error_is_no_wall(status: int, headers: dict[str, str], body: bytes) -> None:
    assert not wall.is_error_wall(status, headers, body)


def page_wall(body: bytes) -> bool:
    read = parse.read(body, "text/html; charset=utf-8", "http://h.test/")
    return wall.is_page_wall(read.title, read.words, body)


@pytest.mark.parametrize(
    "body",
    [
        b"<title>Are you a robot?</title><div class=g-recaptcha></div><p>Please confirm.",
        b"<title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/h/b/orchestrate></script>",
        b"<title>Shop</title><p>Verify you are human to continue<div class=cf-turnstile></div>",
        b"<title>Making sure you&#39;re not a bot!</title><script id=anubis_challenge></script>",
        b"<title>Request Rejected</title>The requested URL was rejected. Please consult with your administrator.",
        "<title>人机验证</title><div id=captcha class=geetest></div>".encode(),
        "<title>Sicherheitsüberprüfung</title><script src=//hcaptcha.com/1/api.js></script>".encode(),
    ],
)
def test_a_captcha_with_status_200(body: bytes) -> None:
    assert page_wall(body)


LONG = b"<p>" + b"A sentence about gardens and how to keep them. " * 60


@pytest.mark.parametrize(
    "body",
    [
        b"<title>Contact</title><form><textarea></textarea><div class=g-recaptcha></div></form><p>Write to us.",
        b"<title>What is a captcha?</title><main>" + LONG + b"<div class=g-recaptcha></div></main>",
        b"<title>Captcha</title><p>A captcha tells people from machines.",
        b"<title>Access denied</title><p>You have no rights here.",
    ],
    ids=["a contact form", "an article about them", "a short entry", "no rights"],
)
def test_a_page_is_no_wall(body: bytes) -> None:
    assert not page_wall(body)


def test_the_header_of_a_wall_counts_whatever_the_status() -> None:
    assert wall.stands({"cf-mitigated": "challenge"})
    assert not wall.stands({"x-datadome": "protected"}), "every answer behind it has that"
