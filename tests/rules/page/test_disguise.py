"""Pages that are something else than their status says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inchworm.rules.page import disguise
from inchworm.rules.page.parse import has_password_field, looks_missing

# ---- a form that asks for a password


@pytest.mark.parametrize(
    "markup",
    [
        "<input type=password>",
        '<input type="password">',
        "<INPUT TYPE='PassWord' NAME=p>",
        '<input name="p" id=x type="password"/>',
        "<input\n\tname=p\n\ttype = password >",
        "<input/type=password/>",
        '<input placeholder="your password > 8" type="password">',
        "<input data-x='a>b' required type=password>",
        '<input name="password" type="password">',
        "<p>password</p>" * 50 + "<input type=password>",
        "x" * 500_000 + "<input type=password>",
    ],
    ids=lambda markup: markup[-40:],
)
def test_password_fields(markup: str) -> None:
    assert has_password_field(markup.encode())


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "password",
        "<input type=text name=password>",
        "<input name=password>",
        "<input type=password-reset>",
        "<input data-type=password>",
        "<input type=text> type=password",
        '<input value="x"> <a type="password">',
        "<button type=password>",
        '<input title="type=password">',
        "<p>Choose type = password in the form.</p>",
        "x" * disguise.MAX_LOOK + "<input type=password>",
    ],
    ids=lambda markup: markup[-40:],
)
def test_no_password_fields(markup: str) -> None:
    assert not has_password_field(markup.encode())


@given(
    st.binary()
    | st.lists(st.sampled_from([b"<input ", b"type", b"=", b'"', b"'", b"password", b">", b" "])).map(b"".join)
)
def test_a_look_for_a_password_takes_anything(body: bytes) -> None:
    assert has_password_field(body) in (True, False)


def test_passwords_without_end_are_not_looked_at() -> None:
    assert not has_password_field(b"<input password " * 60_000)


# ---- a page that says that it is not there


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("404", ""),
        ("404 Not Found", "nginx"),
        ("Error 404 (Not Found)!!1", "The requested URL was not found on this server. That’s all we know."),
        ("Page not found", ""),
        ("Page Not Found | ACME", "Products that you may like, and more of them. " * 40),
        ("Error 404 – ACME", "Products that you may like, and more of them. " * 40),
        ("ACME - Page not found", "Search our site. " * 60),
        ("ACME", "404\n\nPage not found"),
        ("", "404Page not foundThe page you are looking for"),
        ("Shop", "Sorry, we couldn’t find that page. Try the search."),
        ("Oops! That page can’t be found.", "It looks like nothing was found at this location."),
        ("Docs", "This page does not exist (yet)."),
        ("Docs", "The page has been removed."),
        ("Jobs", "This position is no longer available."),
        ("Seite nicht gefunden – Rathaus", ""),
        ("Rathaus", "Die angeforderte Seite wurde leider nicht gefunden."),
        ("Fehler 404", "Diese Seite gibt es nicht (mehr)."),
        ("Shop", "Dieser Artikel ist nicht mehr verfügbar."),
        ("Page introuvable - Mairie", ""),
        ("Mairie", "La page que vous demandez n’existe plus."),
        ("Mairie", "Erreur : la page demandée n'a pas été trouvée"),
        ("Página no encontrada", ""),
        ("Tienda", "Lo sentimos, la página que busca no existe."),
        ("Tienda", "No se encontró la página"),
        ("Página não encontrada - Loja", ""),
        ("Loja", "A página que procura não está disponível."),
        ("Pagina non trovata", ""),
        ("Comune", "La pagina richiesta non è stata trovata"),
        ("Pagina niet gevonden", ""),
        ("Gemeente", "Deze pagina bestaat niet meer."),
    ],
)
def test_pages_that_are_not_there(title: str, text: str) -> None:
    assert looks_missing(title, text)
    assert looks_missing(title.upper(), "\n\n \t" + text.replace(" ", " \n "))


ARTICLE = "When a visitor asks for a file that is not there, the server answers with an error page. " * 60


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("", ""),
        ("Welcome", "Our shop sells bread and cheese."),
        ("How to handle 404 errors in nginx", ARTICLE),
        ("404 Not Found: what it means", ARTICLE),
        ("Page not found", ARTICLE),
        ("Not found in nature: new elements", ARTICLE[:2_000]),
        ("Lost and found", "The office for lost things is open on Mondays. " * 20),
        ("Peugeot 404", ARTICLE[:1_000]),
        ("Room 4041", "Call 1404 for a cleaner."),
        ("create-table-stmt", "CREATE TABLE IF NOT EXISTS schema-name . table-name"),
        ("Lights", "Whitby. " * 60 + "The keeper was not found."),
        ("Seite 2 – Suche", "Ergebnisse"),
        ("日本の天気", "今日は晴れです。"),
    ],
)
def test_pages_that_are_there(title: str, text: str) -> None:
    assert not looks_missing(title, text)


@pytest.mark.parametrize("phrase", sorted(disguise.PHRASES))
def test_every_phrase_is_seen_in_title_and_text(phrase: str) -> None:
    assert looks_missing(f"Oops, page {phrase}", "")
    assert looks_missing("", f"Sorry: page {phrase}, try again")
    assert not looks_missing("", ARTICLE + phrase)


@given(st.text(st.characters()), st.text(st.characters()))
def test_a_look_for_excuses_takes_anything(title: str, text: str) -> None:
    assert looks_missing(title, text) in (True, False)
