"""Bot walls: a challenge or a captcha that comes instead of the page.

Two looks. An answer that is an error may be one by its headers, or by what the usual vendors write into its body. An
answer with status 200 is one only when a vendor's header says so, or when it is short, speaks of robots or people, and
has the vendor's script: many a good page has a captcha in its contact form.
"""

from __future__ import annotations

from collections.abc import Mapping

import re2

ERRORS = frozenset({401, 403, 405, 406, 429, 503})
"""Statuses that walls answer with. A page that is not there, or a server that broke, is something else."""

SHORT_WORDS = 1_500
_LOOK_BYTES = 128 * 1024

_STANDS = ("cf-mitigated", "x-amzn-waf-action", "x-vercel-mitigated", "x-sucuri-block", "x-px-block")
"""Headers that only an answer of the wall's own has."""

_GUARDS = ("x-datadome", "x-dd-b", "x-kpsdk-ct", "x-iinfo")
"""Headers that every answer behind such a wall has; with an error it is the wall's."""

_BODY = re2.compile(
    b"(?i)"
    + b"|".join(
        (
            rb"/cdn-cgi/challenge-platform/|cf-chl-|cf_chl_|_cf_chl_opt|<title>attention required! \| cloudflare",
            rb"cf-error-details|<title>just a moment\.\.\.",
            rb"captcha-delivery\.com|datadome",
            rb"_incapsula_resource|incapsula incident id|imperva",
            rb"px-captcha|_pxappid|perimeterx|human\.com/px|press &amp; hold|press & hold",
            rb"awswafintegration|awswaf\.com|gokuprops|aws-waf-token",
            rb"kpsdk|/149e9513-01fa-4fb0-aad4-566afd725d1b/",
            rb"errors\.edgesuite\.net|akamai(?:ghost)?[^<]{0,40}reference|sec-if-cpt-container|bm-verify",
            rb"sucuri website firewall",
            rb"vercel security checkpoint",
            rb"anubis_challenge|/\.within\.website/|techaro\.lol/anubis",
            rb"ddos-guard|check\.ddos-guard\.net",
            rb"g-recaptcha|google\.com/recaptcha|recaptcha/api|hcaptcha\.com|h-captcha|cf-turnstile|friendly-?captcha",
            rb"funcaptcha|arkoselabs|geetest|mtcaptcha|altcha",
            rb"the requested url was rejected\. please consult with your administrator",
            rb"request unsuccessful\. incapsula",
            rb"unusual traffic from your computer network",
        )
    )
)
_PHRASE = re2.compile(
    "(?i)"
    + "|".join(
        (
            r"captcha|are you (?:a )?(?:robot|human)|not a (?:robot|bot)|you(?:'|’)?re not a bot",
            r"verify(?:ing)? (?:that )?you(?:'re| are)|prove (?:that )?you(?:'re| are) (?:a )?human|human verification",
            r"(?:security|browser) (?:check|verification)|checking your browser|just a moment|one more step",
            r"access (?:to this page )?(?:has been |was |is )?(?:denied|blocked)|you have been blocked|unusual traffic",
            r"enable javascript and cookies to continue|automated (?:access|requests|queries)|bot (?:detection|check)",
            r"pardon our interruption|request(?:ed url was)? (?:rejected|blocked|unsuccessful)|press (?:&|and) hold",
            r"robot(?:er)? oder|sicherheits(?:prüfung|überprüfung)|vérifi(?:ez|cation) que vous",
            r"no (?:soy|eres) un robot|não sou um robô|人机验证",
        )
    )
)


def is_error_wall(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether an answer that is an error comes from a wall."""
    if status not in ERRORS:
        return False
    return stands(headers) or any(name in headers for name in _GUARDS) or bool(_BODY.search(body[:_LOOK_BYTES]))


def stands(headers: Mapping[str, str]) -> bool:
    """Whether a wall says of itself that it stands in the way, whatever the status."""
    return any(name in headers for name in _STANDS)


def is_page_wall(title: str, words: str, body: bytes) -> bool:
    """Whether a page that came with status 200 is a wall: short, speaks of it, and has what walls are made of."""
    if len(words) > SHORT_WORDS:
        return False
    said = f"{title}\n{words}".encode("utf-8", "replace").decode()
    return bool(_PHRASE.search(said)) and bool(_BODY.search(body[:_LOOK_BYTES]))
