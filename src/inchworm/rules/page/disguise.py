"""Pages that are something else than their status says: a login form, or "page not found" served as found.

Both are only a first look. It may be wrong, so it decides nothing and leads to a closer one.
"""

from __future__ import annotations

import re
import unicodedata

import re2

from inchworm.rules.metadata.describe import squeeze

# ---- a form that asks for a password

MAX_LOOK = 1_000_000
MAX_TAG = 2_000
_MAX_TRIES = 200
_WORD = b"password"
_TYPE = re.compile(rb"""[\s"'/]type\s*=\s*["']?\s*\Z""")
_QUOTED = re.compile(rb""""[^"]*"|'[^']*'""")
_END_OR_QUOTE = re.compile(rb"""[>"']""")


def has_password_field(body: bytes) -> bool:
    """Whether there is an `<input type=password>` in the raw bytes, however it is written."""
    page = body[:MAX_LOOK].lower()
    at = page.find(_WORD)
    for _ in range(_MAX_TRIES):
        if at < 0:
            return False
        tag = page.rfind(b"<input", max(0, at - MAX_TAG), at)
        if tag >= 0 and _is_type(page[tag:at]) and page[at + len(_WORD) :][:1] in b"\"'>/ \t\n\f\r":
            return True
        at = page.find(_WORD, at + 1)
    return False


def _is_type(tag: bytes) -> bool:
    """Whether this beginning of a tag has not ended yet and leads up to the value of its type."""
    name = _TYPE.search(tag)
    return name is not None and not _END_OR_QUOTE.search(_QUOTED.sub(b"", tag[: name.start() + 1]))


# ---- a page that says that it is not there

SHORT = 600
ORDINARY = 3_000
_BEGINNING = 400
_OPENING = 300
_TITLE_CHARS = 200
_NUMBER_CHARS = 40
_LONGEST_ENDING = 3
"""What a phrase may leave of its last word: "no encontrad" of "no encontrada"."""

# Without accents and with straight apostrophes; words that bend are cut short.
PHRASES = frozenset(
    "|".join(
        (
            "not found|not be found|n't be found|cannot be found|nothing found|nothing was found|no page found",
            "can't find|cannot find|couldn't find|could not find|unable to find|not exist|n't exist|no longer exist",
            "no longer available|not available|n't available|page unavailable|missing page|page missing",
            "page is missing|page is gone|been removed|been deleted|been moved|has moved|was removed|was deleted",
            "nicht gefunden|nicht finden|existiert nicht|gibt es nicht|nicht vorhanden|nicht verfugbar",
            "nicht mehr verfugbar|wurde entfernt|wurde geloscht",
            "introuvable|non trouve|pas trouve|pas ete trouve|pas pu etre trouve|n'existe pas|n'existe plus",
            "plus disponible|pas disponible|ete supprime",
            "no encontrad|no se encontr|no se ha encontrad|no se pudo encontrar|no hemos encontrado|no existe",
            "no esta disponible|no disponible|sido eliminad",
            "nao encontrad|nao foi encontrad|nao foi possivel encontrar|nao encontramos|nao existe|indisponivel",
            "nao esta disponivel|nao esta mais disponivel|foi removid|foi eliminad",
            "non trovat|non e stata trovat|non e stato trovat|non abbiamo trovat|impossibile trovare|non esiste",
            "non e disponibile|non e piu disponibile|stata rimossa",
            "niet gevonden|niet worden gevonden|niet vinden|bestaat niet|niet beschikbaar",
            "niet meer beschikbaar|is verwijderd",
        )
    ).split("|")
)
_SAYS = "|".join(sorted(PHRASES))
_PHRASE = re.compile(_SAYS)
# Every short page is asked this, and one pass over all phrases at once costs a few microseconds.
_SIGN = re2.compile(f"404|410|{_SAYS}".encode())
# What is said not to be there. "IF NOT EXISTS" on a page about a language is something else.
_SUBJECT = re.compile(
    r"\b(?:page|pages|seite|pagina|url|address|adresse|document|dokument|link|content|inhalt|site|article|artikel"
    r"|product|produkt|item|position|job|file|datei)\b|404|410"
)
_NUMBER = re.compile(r"(?<!\d)4(?:04|10)(?!\d)")
_BETWEEN_TITLES = re.compile(r"\s[|·»–—-]\s|[:.!] ")
# What a title of such a page may have besides.
_FILLERS = re.compile(
    r"\b(?:http|error|erreur|fehler|errore|erro|fout|oops|ooops|sorry|uh|oh|we|you|are|looking|for|the|this|that|page"
    r"|file|requested|was|is|has|could|does|die|diese|seite|angeforderte|wurde|konnte|werden|la|le|cette|page|demandee"
    r"|est|esta|pagina|solicitada|foi|a|e|stata|de|deze|gevraagde|kan|kon|worden)\b|[\W\d_]+"
)


def looks_missing(title: str, text: str) -> bool:
    """Whether a page reads like "page not found": its title is that, or it is short and begins like that."""
    name, beginning = title[:_TITLE_CHARS], _plain(text.lstrip()[:_BEGINNING])[:_OPENING]
    both = f"{_plain(name)}\n{beginning}"
    if not _SIGN.search(both.encode()):
        return False
    size = len(squeeze(text[: 10 * ORDINARY]))
    if size <= SHORT:
        return bool(
            (_PHRASE.search(both) and _SUBJECT.search(both))
            or _NUMBER.search(both[: len(both) - len(beginning) + _NUMBER_CHARS])
        )
    return size <= ORDINARY and any(_says_only_that(_plain(part)) for part in _BETWEEN_TITLES.split(name))


def _plain(text: str) -> str:
    """In lower case, without accents and with straight apostrophes, so that one spelling is enough."""
    text = squeeze(text).lower().replace("’", "'")
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _says_only_that(part: str) -> bool:
    rest, phrases = _PHRASE.subn("", part, count=1)
    return bool(phrases or _NUMBER.search(part)) and len(_FILLERS.sub("", rest)) <= _LONGEST_ENDING
