"""Looking: where crawls stand, what is known of a URL, what is wrong."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inchworm import settings
from inchworm.app.desk import Desk, defaults_of, identity, presentable, settings_of_run
from inchworm.engine import run
from inchworm.engine.session.hosts import Hosts
from inchworm.errors import InchwormError, NotNow, Unknown, WrongUse
from inchworm.model import (
    CrawlInfo,
    Down,
    EndedBy,
    Entry,
    Found,
    Kind,
    Reason,
    RunInfo,
    RunState,
    SessionInfo,
    SessionState,
    Source,
)
from inchworm.rules.order import order
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.web.scope import Judge, Patterns, Scope
from inchworm.rules.words.explain import explanation, prospect
from inchworm.rules.words.times import iso
from inchworm.settings import Settings
from inchworm.sink.columns import shown
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


class Looking(Desk):
    """Verbs that change nothing."""

    def crawls(self) -> list[dict[str, Any]]:
        """Every crawl with the state of its last run."""
        listed = []
        for crawl in self.home.crawls():
            try:
                listed.append(self.status(crawl))
            except InchwormError as error:
                listed.append({"crawl_id": crawl.crawl_id, "name": crawl.name, "run_state": "", "note": error.message})
        return listed

    def status(self, crawl: CrawlInfo) -> dict[str, Any]:
        """Where a crawl stands. A run whose owner is dead is paused."""
        with self.reading(crawl) as store:
            current, end = self.run_of(crawl, store), store.line_end()
            sessions = store.sessions(current.run_id)
            owner = store.owner()
            down = store.down()
            blocked = View(store).count_failed(current.run_id, "blocked") if current.counters.failed else 0
            several = store.has_several_lanes(current.run_id)
            lost = self._lost_files(crawl, store)
        running = self.is_running(crawl)
        state = run.state_of(current, running)
        last = sessions[-1] if sessions else None
        return {
            "crawl_id": crawl.crawl_id,
            "name": crawl.name,
            "seeds": list(crawl.seeds),
            "run": current.number,
            "mode": current.mode,
            "branch_of": current.origin,
            "on_line": not current.beside,
            "line_end": end.number if end else None,
            "run_state": str(state),
            "word": run.word_for(dataclasses.replace(current, state=state)),
            "owner": {"pid": owner.pid, "machine": owner.machine} if running else None,
            "sessions": [session_json(one, running) for one in sessions],
            "ended_by": str(last.ended_by) if last and last.ended_by else None,
            "order": order.word(current.disturbed, several),
            "created_at": iso(current.created_ms),
            **dataclasses.asdict(current.counters),
            "seed_pages": {seed.url: seed.kept for seed in current.seeds},
            "message": last.message if last else "",
            "blocked": blocked,
            "down": [down_json(one) for one in down],
            "lost_files": lost,
        }

    def _lost_files(self, crawl: CrawlInfo, store: CrawlStore) -> list[str]:
        """Files of the archive that are missing, or shorter than what was committed."""
        archive = self.crawl_folder(crawl) / "archive"
        files = [(name, length, archive / name) for _, _, name, length in store.files()]
        return [name for name, length, path in files if not path.exists() or path.stat().st_size < length]

    def queue(self, word: str) -> dict[str, Any]:
        """The frontier in numbers."""
        crawl = self.find(word)
        status = self.status(crawl)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store)
            counts = View(store).queue_counts(current.run_id)
        visited = status["known"] - status["pending"] - status["refused"]
        can_resume = status["run_state"] == RunState.PAUSED and status["pending"] > 0
        return {
            "crawl_id": crawl.crawl_id,
            "has_queue": status["known"] > 0,
            "visited": visited,
            "pending": status["pending"],
            "refused": status["refused"],
            "total": status["known"],
            "can_resume": can_resume,
            "current_run": status["run"],
            "run_state": status["run_state"],
            "sessions": [one["session"] for one in status["sessions"]],
            "counts": counts,
        }

    def url_of(self, word: str, part: str, number: int | None = None) -> str:
        """The URL that somebody means by a part of it: the only one that a run visited with this in it, or that ends
        so. A whole URL means itself."""
        if urls.parse(part) is not None:
            return part
        found, after = dict[str, str](), 0
        while len(found) <= MOST_MEANT:
            listed = self.pages(word, {"text": part}, number, Part(after, MOST_MEANT + 1))
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
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
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

    def pages(self, word: str, wanted: Mapping[str, str], number: int | None, part: Part) -> Listed:
        """What became of the pages and resources of a run, in the order of record. `wanted`: `outcome`, `failure`,
        `change`, and `text`, a part of the URL."""
        crawl = self.find(word)
        with self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
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
        crawl = self.find(word)
        with contextlib.suppress(Unknown, NotNow), self.reading(crawl) as store:
            current = self.run_of(crawl, store, number)
            values, address = dataclasses.replace(Settings(), **settings_of_run(current)), identity(current, url)
            hosts = Hosts(values, store.robots(current.run_id, urls.origin_of(address)))
            reason = _linked_by_a_seed(current, values, address)
            if reason is None and hosts.is_known(address) and not hosts.trouble(address) and not hosts.allows(address):
                reason = Reason.ROBOTS
            return " " + prospect(reason, hosts.is_known(address))
        return ""

    def failed(self, word: str, kind: str | None = None) -> list[dict[str, Any]]:
        crawl = self.find(word)
        with self.reading(crawl) as store:
            return list(View(store).failures(self.run_of(crawl, store).run_id, kind))

    def effective_settings(self, word: str) -> dict[str, Any]:
        """The settings that the open run, or the next one, works with."""
        crawl = self.find(word)
        values = settings.make({**self.ground(), **defaults_of(crawl), **crawl.settings})
        with contextlib.suppress(NotNow), self.reading(crawl) as store:
            last = store.run()
            if last is not None and run.is_open(last):
                values = dataclasses.replace(values, **settings_of_run(last))
        return presentable(settings.to_json(values))

    def check(self, crawl: CrawlInfo, store: CrawlStore) -> list[str]:
        """What is wrong with a crawl's store and archive; nothing for a healthy one."""
        view, problems = View(store), []
        if (said := view.integrity()) != "ok":
            problems.append(f"the database is damaged: {said}")
        for current in store.runs():
            problems += [f"run {current.number}: {fault_found}" for fault_found in view.faults(current.run_id)]
            kept, counted = dataclasses.asdict(current.counters), view.recount(current.run_id)
            wrong = [
                f"{name} {kept[name]} (counted {counted[name]})" for name in counted if kept[name] != counted[name]
            ]
            if wrong and not self.is_running(crawl):
                problems.append(f"run {current.number}: counters differ from a recount: {', '.join(wrong)}")
        lost = self._lost_files(crawl, store)
        return problems + [f"the archive file {name} is missing or shorter than what was committed" for name in lost]

    def check_archive(self, crawl: CrawlInfo, store: CrawlStore, progress: Callable[[int, int], None]) -> list[str]:
        """Read every record that a visit points to; which pages are lost. `progress` is told how many were read, of how
        many."""
        from inchworm.archive import reader, warc  # only who reads the archive needs it

        view, folder = View(store), self.crawl_folder(crawl) / "archive"
        total, lost = view.count_records(), list[str]()
        bodies: set[bytes | None] = set()
        for done, one in enumerate(view.records(), 1):
            try:
                record = reader.record_at(folder / one.file, one.offset)
                said = record.headers.get("warc-payload-digest")
                is_whole = record.length == one.length and (one.payload is None or said == warc.digest(one.payload))
            except WrongUse:
                is_whole = False
            if not is_whole or (one.is_revisit and one.payload in bodies):
                lost.append(f"the archive has lost {one.url} of run {one.run} (in {one.file} at {one.offset})")
                bodies |= {one.payload}
            progress(done, max(done, total))
        return lost


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


def down_json(one: Down) -> dict[str, Any]:
    """A host that cannot be reached, as it is shown."""
    return {
        "host": one.origin,
        "kind": one.kind,
        "message": one.message,
        "since": iso(one.since_ms),
        "sessions": one.sessions,
    }


def session_json(one: SessionInfo, running: bool) -> dict[str, Any]:
    """A session as it is shown. One that nobody ended, and nobody works on, has crashed."""
    crashed = one.state is SessionState.IN_PROGRESS and not running
    return {
        "session": one.number,
        "state": str(SessionState.FAILED if crashed else one.state),
        "ended_by": str(EndedBy.CRASHED) if crashed else (str(one.ended_by) if one.ended_by else None),
        "requests": one.requests,
        "unanswered": one.unanswered,
        "bytes": one.size,
        "started_at": iso(one.started_ms),
        "ended_at": iso(one.ended_ms) if one.ended_ms else None,
        "message": one.message,
    }
