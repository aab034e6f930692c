"""Pages: what became of each URL of a run, and why."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from inchworm import settings
from inchworm.app.read.runs import MOST_RUNS
from inchworm.app.workspace import Workspace, identity, settings_of_run
from inchworm.archive import reader as warc_reader
from inchworm.engine.session.hosts import Hosts
from inchworm.errors import NotNow, Unknown, WrongUse
from inchworm.fetch import replay
from inchworm.model import CrawlInfo, Entry, Failure, Found, Kind, Reason, RunInfo, Source
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import Judge, Patterns, Scope
from inchworm.rules.words.explain import REASONS, explanation, prospect
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.sink.columns import shown
from inchworm.store.crawl.browse import LINK_STEP, Browse
from inchworm.store.crawl.session import CrawlStore
from inchworm.store.crawl.view import SPAN, Sought, View

MOST_MEANT = 5
"""So many URLs are named when somebody may mean several."""


class Part(NamedTuple):
    """Which part of a list is wanted: from behind this number on, at most so much."""

    after: int = 0
    limit: int = 50


class Listed(NamedTuple):
    """A part of a list, and behind which number the next one begins, if there is one. A part may hold less than was
    wanted though there is more, but never nothing."""

    items: list[dict[str, Any]]
    next_after: int | None


MOST_LINKS = 100
LINK_SECONDS = 0.1

MATTER = (
    *("content-type", "content-language", "content-encoding", "last-modified", "etag", "cache-control", "expires"),
    *("age", "vary", "location", "link", "x-robots-tag", "retry-after", "server"),
)
"""The headers that say something of a page."""


class Pages:
    """What is known of the URLs of a run."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def url_of(self, word: str, part: str, number: int | None = None) -> str:
        """The URL that somebody means by a part of it: the only one that a run visited with this in it, or that ends
        so. A whole URL means itself."""
        if urls.parse(part) is not None:
            return part
        found, after = dict[str, str](), 0
        while len(found) <= MOST_MEANT:
            listed = self.listed(word, {"text": part}, number, Part(after, MOST_MEANT + 1))
            found |= {one["canonical_url"]: one["url"] for one in listed.items}
            if listed.next_after is None:
                break
            after = listed.next_after
        ending = [url for url in found.values() if url.rstrip("/").endswith(part.rstrip("/"))]
        meant = ending if len(ending) == 1 else list(found.values())
        if len(meant) == 1:
            return meant[0]
        if not meant:
            raise Unknown(f"No URL that was visited has {part!r} in it.", "`inchworm export --format urls` lists them.")
        some = ", ".join(meant[:MOST_MEANT]) + (", …" if len(meant) > MOST_MEANT else "")
        raise WrongUse(f"{part!r} may mean several URLs.", f"Give more of it: {some}")

    def show(self, word: str, url: str, number: int | None = None) -> dict[str, Any]:
        """What is known of one URL."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            address = identity(current, url)
            names = (address, control.robots_file(urls.origin_of(address)).url, control.sitemap_file(address).url)
            found = (View(store).entry(current.run_id, name) for name in names if name.endswith(address))
            entry = next((one for one in found if one), None)
        if entry is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.",
                "Check the spelling, or look whether the page that should link to it was reached.",
            )
        return entry

    def page(self, word: str, url: str, number: int | None = None) -> dict[str, Any]:
        """What is known of one URL, with times as they are written."""
        found = self.show(word, url, number)
        waits_until, asked_for = found.pop("not_before_ms"), found.pop("request_url")
        found |= {"url": asked_for or found["url"], "canonical_url": found["url"]}
        visits = [{**visit_json(one), "alternate_urls": one["alternate_urls"]} for one in found["visits"]]
        return {**found, "not_before": iso(waits_until) if waits_until else None, "visits": visits}

    def listed(self, word: str, wanted: Mapping[str, str], number: int | None, part: Part) -> Listed:
        """What became of the pages and resources of a run, in the order of record. `wanted`: `outcome`, `failure`,
        `change`, and `text`, a part of the URL."""
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            view, after = View(store), part.after
            found = view.settled(current.run_id, Sought(**wanted), after, part.limit + 1)
            while not found and after + SPAN < current.seq:
                after += SPAN
                found = view.settled(current.run_id, Sought(**wanted), after, part.limit + 1)
        shown = [visit_json(one) for one in found[: part.limit]]
        if len(found) > part.limit:
            return Listed(shown, shown[-1]["seq"])
        return Listed(shown, after + SPAN if after + SPAN < current.seq else None)

    def why(self, word: str, url: str, number: int | None = None) -> dict[str, Any]:
        """Why a URL was or was not crawled; of one that is not known, what would become of it."""
        try:
            found = self.show(word, url, number)
        except Unknown as error:
            error.message += self._prospect(word, url, number)
            raise
        told = {"url": found["request_url"] or found["url"], "canonical_url": found["url"]}
        return {**told, "state": found["state"], "reason": found["reason"], "why": explanation(found)}

    def _prospect(self, word: str, url: str, number: int | None) -> str:
        crawl = self._workspace.find(word)
        with contextlib.suppress(Unknown, NotNow), self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            values, address = settings.changed(Settings(), settings_of_run(current)), identity(current, url)
            hosts = Hosts(values, store.robots(current.run_id, urls.origin_of(address)))
            reason = _linked_by_a_seed(current, values, address)
            if reason is None and hosts.is_known(address) and not hosts.trouble(address) and not hosts.allows(address):
                reason = Reason.ROBOTS
            return " " + prospect(reason, hosts.is_known(address))
        return ""

    def failed(self, word: str, kind: str | None = None) -> list[dict[str, Any]]:
        crawl = self._workspace.find(word)
        with self._workspace.reading(crawl) as store:
            return list(View(store).failures(self._workspace.run_of(crawl, store).run_id, kind))

    # One page

    def leaf(self, crawl: CrawlInfo, url: str, number: int | None = None) -> dict[str, Any]:
        """All that is known of one URL: in a run, in the others, where it leads, and what came with it."""
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            found = self.known(crawl, store, current, url)
            url_id = store.known(current.run_id, [found["url"]], rows=False)[found["url"]].url_id
            look, visits = Browse(store), found.pop("visits")
            last = visits[-1] if visits else None
            ids = look.links_of(current.run_id, last["seq"]) if last else []
            return {
                **found,
                "run": current.number,
                "why": explanation({**found, "visits": visits}),
                "not_before": iso(found["not_before_ms"]) if found["not_before_ms"] else None,
                "visit": _whole(last) if last else None,
                "tries": [visit_json(one) for one in visits[:-1]],
                "history": _with_baselines(look.history(url_id, MOST_RUNS)),
                "links": look.standing(current.run_id, ids[:MOST_LINKS]),
                "link_count": len(ids),
                "headers": self._headers(crawl, last) if last else {},
            }

    def known(self, crawl: CrawlInfo, store: CrawlStore, current: RunInfo, url: str) -> dict[str, Any]:
        address = identity(current, url)
        found = Browse(store).entry(current.run_id, address)
        if found is None:
            raise Unknown(
                f"{address} is not known to run {current.number} of {crawl.name!r}: no page it read links to it.",
                "Look whether another run knows it.",
            )
        return found

    def _headers(self, crawl: CrawlInfo, visit: Mapping[str, Any]) -> dict[str, str]:
        """The headers that matter, of this visit's own answer."""
        if not visit["file"]:
            return {}
        try:
            record = warc_reader.record_at(
                self._workspace.crawl_folder(crawl) / "archive" / visit["file"], visit["offset"]
            )
        except WrongUse:
            return {}
        reply = replay.answer_of(record)
        response = reply.answer if isinstance(reply, Failure) else reply
        return {name: response.headers[name] for name in MATTER if name in response.headers} if response else {}

    def links_to(
        self, crawl: CrawlInfo, url: str, number: int | None = None, after: int = 0
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Pages of a run that link to a URL, from behind a step on; and behind which step there is more to see. As many
        as are found in a moment."""
        until = time.monotonic() + LINK_SECONDS
        with self._workspace.reading(crawl) as store:
            current = self._workspace.run_of(crawl, store, number)
            address = identity(current, url)
            known = store.known(current.run_id, [address], rows=False).get(address)
            if known is None:
                return [], None
            look = Browse(store)
            found: list[tuple[int, int]] = []
            while after < current.seq and len(found) <= MOST_LINKS and time.monotonic() < until:
                found += look.linking_to(current.run_id, known.url_id, after, after + LINK_STEP)
                after += LINK_STEP
            if len(found) > MOST_LINKS:
                found = found[:MOST_LINKS]
                after = found[-1][0]
            ids = list(dict.fromkeys(url_id for _, url_id in found))
            return look.standing(current.run_id, ids), after if after < current.seq else None


def _linked_by_a_seed(current: RunInfo, values: Settings, address: str) -> Reason | None:
    """Why a URL would be refused if a seed linked to it."""
    scope = Scope(values.scope, current.seeds, values.loose_paths)
    patterns = Patterns(values.include, values.exclude)
    judge = Judge(scope, patterns, values.max_depth, values.external_hops, values.trap_depth)
    seed = current.seeds[0]
    page = Entry(0, seed.url, seed.url, Kind.PAGE, Source.INITIAL, seed.number, 0, 0, 0, (0, 0))
    return judge.judge(Found(address, address), page).reason


def visit_json(visit: Mapping[str, Any]) -> dict[str, Any]:
    """A visit as it is shown."""
    return {**shown(visit), **{name: visit[name] for name in ("session", "kind", "missing")}}


def _whole(visit: dict[str, Any]) -> dict[str, Any]:
    return {
        **visit_json(visit),
        "alternates": [url for url in visit["alternate_urls"] if url != visit["url"]],
        "is_stored": bool(visit["payload"]) and bool(visit["size"]),
        "requested": bool(visit["requested"]),
    }


def _with_baselines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row with the run before it that has a text to compare with, if both have one."""
    before: int | None = None
    for row in reversed(rows):
        has_text = row["outcome"] in ("page", "duplicate")
        row["baseline"] = before if has_text else None
        row["at"] = iso(row.pop("at_ms")) if row["at_ms"] else None
        row["why"] = REASONS.get(row["reason"]) if row["reason"] else None
        before = row["run"] if has_text else before
    return rows
