"""The site of `inchworm demo-serve`: an almanac of a garden that is the same every time, and that can be changed.

It has what sites have: sections, pages that link to each other, links that lead nowhere, redirects, the same text under
two addresses, a page that takes its time, and one that its robots.txt keeps crawlers from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape

from inchworm.testing import Answer, Hit, Page, redirect

NAME = "The Garden Almanac"
_HELD_BACK = 3
"""How many of each list are added only when the site changes."""
_EDITED, _ADDED, _REMOVED = 5, 3, 2
_SLOW_SECONDS = 1.5

_LISTS = {
    "birds": """blackbird robin wren starling goldfinch chaffinch siskin nuthatch treecreeper dunnock linnet swift
        swallow cuckoo jackdaw magpie jay rook kestrel buzzard heron kingfisher lapwing skylark nightingale""",
    "trees": """oak ash beech birch alder hazel hornbeam hawthorn holly yew elm lime maple rowan willow poplar aspen
        larch spruce juniper walnut chestnut cherry medlar quince""",
    "herbs": """thyme sage rosemary lavender mint parsley chervil chives dill fennel lovage marjoram oregano tarragon
        savory basil borage hyssop comfrey yarrow angelica sorrel burnet rue woodruff""",
    "butterflies": """brimstone peacock comma ringlet grayling gatekeeper red-admiral painted-lady orange-tip
        small-white large-white holly-blue common-blue small-copper wall-brown speckled-wood marbled-white swallowtail
        purple-emperor small-skipper large-skipper green-hairstreak tortoiseshell adonis-blue duke-of-burgundy""",
    "mushrooms": """chanterelle morel parasol penny-bun field-mushroom oyster-mushroom wood-blewit shaggy-ink-cap
        puffball hedgehog-fungus fly-agaric death-cap honey-fungus velvet-shank jelly-ear turkey-tail birch-polypore
        beefsteak-fungus amethyst-deceiver scarlet-elf-cup stinkhorn earthstar waxcap brittlegill milkcap""",
}
_MONTHS = """january february march april may june july august september october november december""".split()  # noqa: SIM905
_NOTES = {
    "2024/autumn/leaf-mould": "Leaf mould",
    "2024/autumn/storing-apples": "Storing apples",
    "2024/winter/feeding-birds": "Feeding birds",
    "2024/winter/sharpening-tools": "Sharpening tools",
    "2025/spring/first-sowing": "The first sowing",
    "2025/spring/pond-life": "Life in the pond",
    "2025/summer/watering": "Watering in dry weeks",
    "2025/summer/night-moths": "Moths at night",
}
_MOVED = {
    "/birds/list": "/birds/",
    "/garden-birds": "/birds/list",
    "/trees.html": "/trees/",
    "/herbs/melissa": "/herbs/mint",
}
_COPIES = {"/print/oak": "/trees/oak", "/print/robin": "/birds/robin", "/print/sage": "/herbs/sage"}
_NOWHERE = ("/birds/dodo", "/trees/money-tree", "/herbs/silphium", "/contact")

_WHERE = (
    "along the hedge at the north side",
    "near the old wall",
    "between the orchard and the brook",
    "in the damp corner behind the shed",
    "on the slope that gets the evening sun",
    "at the edge of the wood",
    "beside the path to the pond",
)
_SEEN = (
    "It is easy to overlook until one knows what to look for.",
    "Children find it sooner than anybody else.",
    "A warm day after rain is the best time to look for it.",
    "In dry years it is seen less often, and later.",
    "Two of us drew it from life, and the drawings do not agree.",
    "Nobody remembers who noticed it here first.",
    "It keeps to the same place for years and is then somewhere else.",
    "Early in the morning one has it to oneself.",
)
_DONE = (
    "We leave it alone and count it once a month.",
    "A strip of long grass is kept for its sake.",
    "The oldest entry in our book about it is from a cold spring.",
    "Visitors ask about it more than about anything else.",
    "What it needs most is that nobody tidies up too early.",
    "It comes back by itself where the ground is not dug over.",
    "The count has hardly moved in ten years.",
)


@dataclass(slots=True)
class Edition:
    """What one change of the site came to, by address."""

    number: int = 1
    edited: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def lists(self) -> list[str]:
        """The lists that are not as they were, because something was added to them or removed."""
        return sorted({path.rpartition("/")[0] + "/" for path in (*self.added, *self.removed)})


class Almanac:
    """The site: `pages` is what is served, and changes in place."""

    def __init__(self) -> None:
        self._listed = {section: names.split() for section, names in _LISTS.items()}
        self._edits: dict[str, list[int]] = {}
        self._away = {f"/{section}/{name}" for section, names in self._listed.items() for name in names[-_HELD_BACK:]}
        self.edition = Edition()
        self.pages: dict[str, Answer | Callable[[Hit], Answer]] = {}
        self._build()

    def change(self) -> Edition:
        """Edit some pages, add some, remove some."""
        number = self.edition.number + 1
        chance = random.Random(number)  # noqa: S311 - the point is that it can be foretold
        every = [f"/{section}/{name}" for section, names in self._listed.items() for name in names]
        present = [path for path in every if path not in self._away and path not in _COPIES.values()]
        picked = chance.sample(present, _EDITED + _REMOVED)
        edited, removed = sorted(picked[:_EDITED]), sorted(picked[_EDITED:])
        added = sorted(chance.sample(sorted(self._away), min(_ADDED, len(self._away))))
        for path in edited:
            self._edits.setdefault(path, []).append(number)
        self._away = (self._away - set(added)) | set(removed)
        self.edition = Edition(number, edited, added, removed)
        self._build()
        return self.edition

    # Pages

    def _build(self) -> None:
        pages: dict[str, Answer | Callable[[Hit], Answer]] = {
            "/": _page("Welcome", self._home()),
            "/about": _page("About", _ABOUT),
            "/months/": _page(
                "The months", "<p>What there is to do, month by month.</p>" + _links("/months/", _MONTHS)
            ),
            "/notes/": _page(
                "Notes", "<p>Longer pieces, by year.</p>" + _list((f"/notes/{path}", t) for path, t in _NOTES.items())
            ),
        }
        pages |= {f"/months/{month}": _page(_titled(month), _month(month)) for month in _MONTHS}
        pages |= {f"/notes/{path}": _page(title, _note(title)) for path, title in _NOTES.items()}
        for section in self._listed:
            pages |= self._section(section)
        pages["/notes/2025/summer/night-moths"] = Page(
            str(pages["/notes/2025/summer/night-moths"]), delay=_SLOW_SECONDS
        )
        pages |= {path: redirect(to, 301) for path, to in _MOVED.items()}
        pages |= {path: pages[of] for path, of in _COPIES.items()}
        pages |= {
            "/robots.txt": "User-agent: *\nDisallow: /change\nDisallow: /shed/\n",
            "/shed/": _page("The shed", _SHED),
        }
        pages |= {"/weather": Page("The thermometer is broken.", 500), "/change": self._pressed, "/changes": self._told}
        pages["*"] = Page(_page("Nothing grows here", "<p>There is no such page.</p>"), 404)
        # Whoever asks meanwhile gets the old page or the new one, and never none.
        self.pages.update(pages)
        for path in self.pages.keys() - pages.keys():
            del self.pages[path]

    def _section(self, section: str) -> dict[str, str]:
        names = [name for name in self._listed[section] if f"/{section}/{name}" not in self._away]
        top = f"<p>{len(names)} {section} of the garden, and where to look for them.</p>{_links(f'/{section}/', names)}"
        made = {f"/{section}/": _page(_titled(section), top)}
        return made | {f"/{section}/{name}": _page(_titled(name), self._entry(section, name)) for name in names}

    def _entry(self, section: str, name: str) -> str:
        chance = random.Random(f"{section}/{name}")  # noqa: S311 - as above
        what, other = _plain(name), chance.choice(self._listed[section][:-_HELD_BACK])
        seen, done = chance.sample(_SEEN, 3), chance.sample(_DONE, 2)
        edited = self._edits.get(f"/{section}/{name}", [])
        edits = "".join(f"<p>{_edit(what, number)}</p>" for number in edited)
        entries = chance.randint(2, 90) + 3 * len(edited)
        return (
            f"<p>The {what} is at home {chance.choice(_WHERE)}. {seen[0]} {seen[1]}</p>"
            f"<p>Look for the {what} from {_titled(chance.choice(_MONTHS))} on. {seen[2]} {done[0]}</p>{edits}"
            f"<p>{done[1]} In {chance.randint(1990, 2024)} there were {entries} entries on it.</p>"
            f'<p>See also: <a href="/{section}/{other}">{_plain(other)}</a>,'
            f' <a href="/months/{chance.choice(_MONTHS)}">its month</a>.</p>'
        )

    def _home(self) -> str:
        lists = _list((f"/{section}/", _titled(section)) for section in self._listed)
        copies = _list((path, f"{_titled(path.rpartition('/')[2])}, to print") for path in _COPIES)
        old = _list((path, path) for path in (*_MOVED, *_NOWHERE, "/weather", "/shed/"))
        return (
            f"<p>What grows, flies and sings in one garden.</p>{lists}<h2>To print</h2>{copies}<h2>Old links</h2>{old}"
        )

    # The button

    def _pressed(self, hit: Hit) -> Answer:
        if hit.method == "POST":
            self.change()
        return redirect("/changes", 303)

    def _told(self, _: Hit) -> Answer:
        edition = self.edition
        if edition.number == 1:
            return _page("What changed", "<p>Nothing yet. Press the button below.</p>")
        gone = "".join(f"<li>{escape(path)}</li>" for path in edition.removed)
        return _page(
            "What changed",
            f"<p>This is edition {edition.number}. Crawl the site again: does the crawler find the same?</p>"
            f"<h2>Edited</h2>{_list((path, path) for path in edition.edited)}"
            f"<h2>Added</h2>{_list((path, path) for path in edition.added)}"
            f"<h2>Removed</h2><ul>{gone}</ul>"
            f"<h2>Lists that changed with them</h2>{_list((path, path) for path in edition.lists)}",
        )


_ABOUT = (
    "<p>We are a garden with a notebook. Everybody who sees something writes it down.</p><p>None of it is real.</p>"
)
_SHED = "<p>Keep out. The robots.txt of this site says so to crawlers.</p>"
_STYLE = (
    "body{font:17px/1.6 Georgia,serif;max-width:44rem;margin:0 auto;padding:1rem;color:#233;background:#fbfaf5}"
    "nav a{margin-right:1rem}a{color:#176640}h1{line-height:1.2}ul{columns:14rem}"
    "footer{margin-top:3rem;border-top:1px solid #cdc;padding-top:1rem;color:#566}"
    "button{font:inherit;padding:.4rem 1rem;border:0;border-radius:.4rem;background:#176640;color:#fff;cursor:pointer}"
)


def _page(title: str, body: str) -> str:
    sections = "".join(f'<a href="/{name}/">{_titled(name)}</a>' for name in (*_LISTS, "months", "notes"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · {NAME}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head>\n"
        f'<body><nav><a href="/">Home</a>{sections}<a href="/about">About</a></nav>\n'
        f"<main><h1>{escape(title)}</h1>\n{body}</main>\n"
        '<footer><form method="post" action="/change"><p>This site is a demo. <button>Change the site</button></p>'
        "</form></footer></body></html>\n"
    )


def _list(links: Iterable[tuple[str, str]]) -> str:
    return "<ul>" + "".join(f'<li><a href="{escape(path)}">{escape(text)}</a></li>\n' for path, text in links) + "</ul>"


def _links(folder: str, names: Iterable[str]) -> str:
    return _list((folder + name, _titled(name)) for name in names)


def _titled(name: str) -> str:
    return _plain(name).capitalize()


def _plain(name: str) -> str:
    return name.replace("-", " ")


def _month(month: str) -> str:
    chance = random.Random(month)  # noqa: S311 - as above
    return (
        f"<p>In {_titled(month)} most of what is to be seen is {chance.choice(_WHERE)}. {chance.choice(_SEEN)}</p>"
        f"<p>{chance.choice(_DONE)} The mean of the month is {chance.randint(1, 22)} degrees.</p>"
    )


def _note(title: str) -> str:
    chance = random.Random(title)  # noqa: S311 - as above
    paragraphs = (" ".join((*chance.sample(_SEEN, 3), *chance.sample(_DONE, 2))) for _ in range(3))
    return f"<p>{title}: what we tried, and what came of it.</p>" + "".join(f"<p>{text}</p>" for text in paragraphs)


def _edit(what: str, number: int) -> str:
    return f"Since edition {number}: the {what} has been seen again, {_WHERE[number % len(_WHERE)]}, by three of us."
