"""What says of itself that it is the frame of a page and not its text: tags, roles, names, and headings such as
"Related articles".

Names come in two lists. Who bears a name of the first is frame wherever it stands, as long as most of the text is
elsewhere. The second is for small things in and beside a text (a byline, a bar to share it, a box of related articles):
those names are also given to much else, so they count for blocks that hold little, and only if all that bear one
hold little together: the answers of a forum are called comments, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from turbohtml import Document, Element

from inchworm.rules.kinds.kind import FORUM, PRODUCT

FRAME_TAGS = ("aside", "dialog", "footer", "header", "nav", "noscript", "search")
UNSEEN_TAGS = ("datalist", "script", "style", "template")

_LONGEST_NAME = 40
_LONGEST_NAMES = 500


class Names(NamedTuple):
    """What a class attribute or an id says: whether it is what people call a frame, its telling words,
    whether it is what people call a post, and whether it is one that hides things."""

    is_frame: bool
    words: frozenset[str]
    is_post: bool = False
    is_veiled: bool = False


TELLS_NOTHING = Names(False, frozenset())
"""What most names say."""


@dataclass(slots=True)
class Marks:
    """What the pass over the elements of a page met that says what it is."""

    mains: list[Element] = field(default_factory=list)
    articles: list[Element] = field(default_factory=list)
    frames: list[Element] = field(default_factory=list)
    named: list[Element] = field(default_factory=list)
    small: list[tuple[Element, frozenset[str]]] = field(default_factory=list)
    unseen: list[Element] = field(default_factory=list)
    controls: list[Element] = field(default_factory=list)
    posts: list[Element] = field(default_factory=list)
    types: frozenset[str] = frozenset()
    described: str = ""
    item_types: set[str] = field(default_factory=set)
    veiled: list[Element] = field(default_factory=list)
    heading: Element | None = None


class Title(NamedTuple):
    """What a page is called: its last heading, as the first may be the name of the site, and its title without that."""

    heading: Element | None
    topic: str

    def is_in(self, block: Element) -> bool:
        """Whether a block is the title, or has it and little else."""
        if is_title(block, self.heading):
            return True
        size = len(block.text.strip())
        said = next(block.iter_elements(_TITLES, include_self=True), None)
        if said is not None:
            return size <= _MOSTLY_HEADING * len(said.text.strip())
        return size <= _LITTLE_MORE * len(self.topic) and self.topic in " ".join(block.text.split())


_TITLES = ("h1", "h2", "h3")
_MOSTLY_HEADING = 1.5
_LITTLE_MORE = 5

# ---- names

_ROLES = frozenset({"alertdialog", "banner", "complementary", "contentinfo", "dialog", "main", "navigation", "search"})
_WHERE = "site page main global top bottom primary secondary left right side mobile desktop sticky app layout"
_WHOSE = "local docs? blog post entry article print"
_WHAT = "nav navbar navheader navfooter navigation menu menubar breadcrumbs? crumbs sidebar footer colophon toolbar"
_WHAT += " pagination pager search comments comment-?list share sharing social related recommended recommendations"
_WHAT += " newsletter subscribe adverts? advertisements? advertising sponsored cookies? consent gdpr catlinks skip"
_SHAPE = "area banner bar block box buttons column container content icons inner left links? list menu nav"
_SHAPE += " notice popup posts right section stories topics widgets? wrap wrapper top bottom"


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NAME = re.compile(
    rf"(?:(?:{_any(_WHERE + ' ' + _WHOSE)}[-_]*)*{_any(_WHAT)}"
    rf"|(?:{_any(_WHERE)}[-_]*)*(?P<banner>header|masthead|banner))"
    rf"(?:[-_]*{_any(_SHAPE)})*",
    re.IGNORECASE,
)
_NOTE = re.compile("note|warn|tip|hint|caution|important|danger|info|admonition|callout|example", re.IGNORECASE)
_SEARCH = re.compile("search|suche|recherche|busca|ricerca|zoek", re.IGNORECASE)

SMALL_ANYWHERE = _words(
    """
    addthis addtoany advert advertisement advertising author authorbox banner bio breadcrumb breadcrumbs byline
    categories consent contact cookie cookies copyright counter credit credits crumb crumbs date datetime disclaimer
    disqus donate donation dropdown feedback filter filters footer gdpr kontakt likes login menu meta modal nav navbar
    navigation newsletter outbrain overlay pager pagination paywall poll popular popup posted postmeta prev previous
    print promo promos published rating ratings reactions readmore recommend recommendation recommendations
    recommended register related respond share sharebar sharedaddy shares sharethis sharing sidebar signin signup
    social socials sort sorting sponsor sponsored subscribe subscription taboola tag tagcloud taglist tags timestamp
    toolbar tooltip trending vote votes widgets yarpp
    """
)
SMALL_BESIDE_PROSE = _words(
    """
    ad ads adv category comment commentlist comments legend more next recirculation search teaser teasers time
    toc views
    """
)
SMALL_LINES = _words("copyright credit credits disclaimer newsletter")
"""What a single line is called that is no text."""

SMALL_BY_KIND = {
    FORUM: _words("browser expand extras notice notices signature statistics"),
    PRODUCT: _words("carousel modal qty quantity recently review reviews swatches upsell wishlist"),
}
"""What goes from pages of one kind only."""

COMMENTS = frozenset({"comment", "commentlist", "comments", "disqus", "review", "reviews"})
_SMALL = SMALL_ANYWHERE.union(SMALL_BESIDE_PROSE, *SMALL_BY_KIND.values())
_POST = re.compile(
    r"(?:^|[\s_-]|c(?=C))(?:post|message|comment|reply|answer|topic-post)s?(?:[-_]*(?:body|content|cell|item|stream|text|inner))?(?:$|\s)",
    re.IGNORECASE,
)
# What a block has, how it looks, and the hashes that tools add: none of it says what the block is. Nor do those of what
# a post is about.
_TELLS_NOTHING = re.compile(
    r"(?:(?<=\s)|^)(?:has|is|no|with|page-has|p[btxy]|m[btxy]|mg|padding|margin)-\S*|"
    r"[\w-]*(?:-has-|[-_]with[-_]|[-_](?:padding|margin|mg|pad)-)\S*|__?(?=[a-z\d]*[A-Z\d])\w{5,8}(?=\s|$)"
)
_ABOUT = re.compile(r"(?:(?<=\s)|^)(?:category|tag|type|format|status)-\S*")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_WORD = re.compile("[a-z0-9]+")


@lru_cache(maxsize=16_384)
def names_of(names: str) -> Names:
    """What class names (or an id) say."""
    is_frame = len(names) <= _LONGEST_NAMES and any(
        len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) for name in names.split()
    )
    names = names[:_LONGEST_NAMES]
    humps = _TELLS_NOTHING.sub(" ", names)
    if "hentry" in names or "type-post" in names:
        humps = _ABOUT.sub(" ", humps)
    words = _WORD.findall((humps if humps.islower() else _HUMP.sub(" ", humps)).lower())
    found = Names(is_frame, _SMALL.intersection(words), _POST.search(names) is not None, _is_veiled(names.split()))
    return TELLS_NOTHING if found == TELLS_NOTHING else found


def is_search(form: Element) -> bool:
    return any(_SEARCH.search(form.attr(name) or "") for name in ("role", "action", "id", "class"))


# ---- elements


_CONTROLS = ("label", "rp", "rt", "select", "svg")
_CONTENT = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "table", "ul")
SMALL_TAGS = ("em", "figcaption", "p")
_VEILED = _words(
    """
    a11y-hidden d-none element-invisible hidden hide is-hidden screen-reader screen-reader-only screen-reader-text
    screenreader sr-only u-hidden u-visually-hidden visually-hidden visuallyhidden
    """
)
_SHOWN = re.compile(
    r"d-\w+-(?!none)|(?:sm|md|lg|xl|2xl):(?!hidden)|(?:js-)?tab|(?:js-)?panel|accordion|collaps", re.IGNORECASE
)
_VEILED_SPANS = "span.sr-only,span.visually-hidden,span.visuallyhidden,span.screen-reader-text,span.hidden"
_MARKED = "[role],[hidden],[itemtype]"
# Elements of one tag are found ten times faster than those of several.
_SMALL_NAMED = tuple(f"{tag}[class]" for tag in SMALL_TAGS)


def mark_roles(document: Document, marks: Marks) -> None:
    """Note what roles and attributes say, and what is a control, or only said to those who cannot see."""
    by_role = []
    marks.controls = [element for element in document.iter_elements(_CONTROLS) if _is_control(element)]
    marks.veiled += document.select(_VEILED_SPANS)
    marks.small += _small_lines(document)
    for element in document.select(_MARKED):
        if item := element.attr("itemtype"):
            marks.item_types.add(item.rstrip("/").rpartition("/")[2].lower())
        role = _role(element)
        hidden = element.attr("hidden")
        if hidden is not None and hidden.lower() != "until-found":
            by_role.append(element)
        elif role == "main" and element.tag != "main":
            marks.mains.append(element)
        elif role in _ROLES:
            by_role.append(element)
    marks.frames += by_role


def _small_lines(document: Document) -> list[tuple[Element, frozenset[str]]]:
    """Lines whose names tell that they are no text, in the order of the page."""
    found = [lines for selector in _SMALL_NAMED if (lines := _lines(document, selector))]
    return found[0] if len(found) == 1 else _lines(document, ",".join(_SMALL_NAMED)) if found else []


def _lines(document: Document, selector: str) -> list[tuple[Element, frozenset[str]]]:
    named = ((line, names_of(line.attr("class") or "").words) for line in document.select(selector))
    return [(line, words & SMALL_LINES) for line, words in named if words and not words.isdisjoint(SMALL_LINES)]


def _is_veiled(names: list[str]) -> bool:
    """Whether a class hides something on every screen: "d-none d-md-block" is only for small ones."""
    return not _VEILED.isdisjoint(names) and not any(_SHOWN.match(name) for name in names)


def _is_control(element: Element) -> bool:
    """Whether an element is for choosing something, says how a word is pronounced, or is a drawing without words."""
    if element.tag == "svg":
        return next(element.iter_elements(("a", "text", "foreignObject")), None) is None
    if element.tag == "label":
        return next(element.iter_elements(_CONTENT), None) is None and element.closest("h1,h2,h3,h4,h5,h6") is None
    return True


def _role(element: Element) -> str:
    return (element.attr("role") or "").lower().strip().partition(" ")[0]


def is_unseen(element: Element) -> bool:
    """Whether nobody would see it who has a browser with scripts."""
    return element.tag == "noscript" or element.attr("hidden") is not None


def is_frame(element: Element, heading: Element | None) -> bool:
    """Whether an element is frame by its tag or role."""
    tag = element.tag
    if element.attr("hidden") is not None:
        return tag not in ("body", "html") and not _is_shown_later(element)
    if tag == "aside":
        return not _NOTE.search(element.attr("class") or "")
    if tag == "footer":
        return not element.closest("blockquote,figure")
    if tag == "header" or _role(element) == "banner":
        return not (element.closest("article,main,section") or is_title(element, heading))
    if tag == "dialog":
        return element.attr("open") is None
    return tag not in ("body", "html", "main", "article")


def _is_shown_later(element: Element) -> bool:
    """Whether people see it on a click, or a script moves it to its place as soon as it came."""
    return _role(element) == "tabpanel" or _STREAMED.match(element.attr("id") or "") is not None


_STREAMED = re.compile(r"S:[\da-f]+$")


def is_called_frame(element: Element, heading: Element | None) -> bool:
    """Whether an element is frame by its name."""
    if is_title(element, heading):
        return False
    names = f"{element.attr('class') or ''} {element.attr('id') or ''}"
    # Sections and articles have headers of their own, and those are text.
    return not (_is_banner(names[:_LONGEST_NAMES]) and element.closest("article,main,section"))


@lru_cache(maxsize=4_096)
def _is_banner(names: str) -> bool:
    """Whether these are names of headers, and of no other frame."""
    said = [_NAME.fullmatch(name) for name in names.split()]
    return all(match is None or match["banner"] for match in said) and any(said)


def is_called_comments(element: Element) -> bool:
    """Whether it is called as what readers write is."""
    return not COMMENTS.isdisjoint(
        names_of(element.attr("class") or "").words | names_of(element.attr("id") or "").words
    )


def is_title(element: Element, heading: Element | None) -> bool:
    """Whether it holds the heading of the page: the last one, as the first may be the name of the site."""
    return heading is not None and any(found == heading for found in element.iter_elements("h1", include_self=True))


# ---- headings of what stands beside a text

_LONGEST_HEADING = 80
_EDGES = " \t\n\r\f\v.:!?…»«›‹>|–—-+#\u00a0\u200b"
_COUNT = re.compile(r"^\(?\d[\d.,]*\)?\s+|\s*\(?\d[\d.,]*\)?$")


def _phrases(phrases: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in phrases.split(";")]


_HEADINGS = frozenset(
    _phrases(
        """
        about author; about the author; about the authors; add a comment; advertisement; also read; articles connexes;
        articles liés; articles récents; articles similaires; articoli correlati; artigos relacionados; artikel teilen;
        artículos relacionados; auch interessant; beitrag teilen; beitrags-navigation; beitragsnavigation; beliebte
        artikel; beliebte beiträge; bilder zum thema; categories; comentario; comentarios; comentários; comment;
        commentaire; commentaires; commenti; comments; comparte; compartir; condividi; contenido relacionado; correlati;
        další články; das könnte dich auch interessieren; das könnte sie auch interessieren; deja un comentario; deja
        una respuesta; der nächste beitrag; discover more; entradas relacionadas; explore more; featured articles;
        featured news; featured posts; featured stories; filed under; follow us; gerelateerd; gerelateerde artikelen;
        ilgili haberler; join the conversation; join the discussion; keep reading; keine kommentare; komentarze;
        komentáře; kommentar; kommentar hinterlassen; kommentar schreiben; kommentar verfassen; kommentare; kommentarer;
        laisser un commentaire; latest articles; latest news; latest posts; latest stories; latest videos; leave a
        comment; leave a reply; leave your comment; leggi anche; leia mais; leia também; lesen sie auch; lesen sie mehr;
        liknande artiklar; links zum thema; lire aussi; lo más leído; lo más visto; mais lidas; mehr zum thema;
        meistgelesen; meistgelesene artikel; meistkommentiert; more articles; more news; more posts; more stories; most
        popular; most read; más leídas; más leídos; más noticias; neueste artikel; neueste beiträge; neueste kommentare;
        neueste nachrichten; newsletter; next article; next post; next story; no comments; noticias relacionadas;
        notícias relacionadas; nächster artikel; nächster beitrag; partager; podobne artykuły; podobne wpisy; popular;
        popular articles; popular now; popular posts; popular stories; post a comment; post navigation; powiązane;
        previous article; previous post; previous story; reacties; read also; read more; read next; recent articles;
        recent comments; recent news; recent posts; recent stories; recommended; recommended articles; recommended for
        you; recommended reading; recommended stories; relacionados; related; related articles; related content; related
        coverage; related items; related links; related news; related posts; related products; related questions;
        related reading; related searches; related stories; related topics; related videos; relaterade artiklar;
        replies; responses; schlagworte; schlagwörter; schreib einen kommentar; schreibe einen kommentar; share; share
        this; similar articles; similar posts; související články; sur le même sujet; sur le même thème; tagged; tags;
        teilen; temas relacionados; top stories; topics; trending; trending now; trending stories; udostępnij; up next;
        veja também; verwandte artikel; verwandte beiträge; verwandte themen; videos zum thema; voir aussi; vorheriger
        artikel; vorheriger beitrag; vos réactions; what to read next; write a comment; yorumlar; you may also like; you
        might also like; zum thema; à lire aussi; à lire également; ähnliche artikel; ähnliche beiträge; ähnliche
        produkte; ähnliche themen; últimas noticias; über den autor; über die autorin; комментарии; поделиться; похожие
        статьи; см. также; читайте также; コメント; 相关文章; 相關文章; 评论; 関連記事; 관련 기사; 댓글
        """
    )
)
_BEGINNINGS = tuple(
    f"{phrase} "
    for phrase in _phrases(
        """
        abonniere; also on; compartir; condividi; czytaj również; czytaj także; czytaj też; czytaj więcej; das könnte;
        deja tu; deja un; deja una; diesen artikel; diesen beitrag; don't miss; don’t miss; laisser un commentaire;
        leave a comment; leave a reply; lees meer; lees ook; lees verder; leggi anche; leia também; les også; lesen sie
        auch; lire aussi; lire également; lo más; läs mer; läs också; meer nieuws; meer over; mehr aus; mehr von; mehr
        zu; mehr zum; mehr über; mohlo by; more about; more from; more in; more like; more on; más de; más sobre;
        newsletter; partager; partagez; plus d'; plus de; plus d’; potrebbe; recommended by; recommended from; schreib
        einen kommentar; schreibe einen kommentar; share on; share this; sign up for; sign up to; subscribe to; también
        te; te puede; te recomendamos; teilen sie; thoughts on; ti potrebbe; veja mais; veja também; weitere artikel;
        weitere beiträge; weitere informationen; weitere infos; weitere meldungen; weitere nachrichten; weitere news;
        weitere themen; you may also; you may be interested; you may like; you might also; you might be interested; you
        might like; zobacz również; zobacz także; zobacz też; zobacz więcej; à lire aussi; читайте
        """
    )
)
_FIRST_WORDS = frozenset(beginning.partition(" ")[0] for beginning in _BEGINNINGS)


def is_beside(heading: str) -> bool:
    """Whether this is the heading of what stands beside a text: related articles, comments, ways to share it."""
    if len(heading) > 2 * _LONGEST_HEADING:
        return False
    said = " ".join(heading.split()).lower().strip(_EDGES)
    if not 1 < len(said) <= _LONGEST_HEADING:
        return False
    if said in _HEADINGS:
        return True
    # Few headings get beyond the first look, and those take longer.
    if said.partition(" ")[0] in _FIRST_WORDS and f"{said} ".startswith(_BEGINNINGS):
        return True
    may_have_count = said[0] == "(" or said[-1] in "),." or said[0].isdigit() or said[-1].isdigit()
    return may_have_count and _COUNT.sub("", said) in _HEADINGS
