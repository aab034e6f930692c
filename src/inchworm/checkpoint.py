"""Group commit: how visits become part of the record, and why nothing can be lost between two of them.

The theory, in four sentences. A run is a sequence of visits numbered by `seq`. Marking a URL done, storing its
page and adding the URLs it gave is one transaction, so a URL is always pending, done or refused and never in
between. Whatever a visit finds gets its place (seq, index) here and keeps it, and all decisions that depend on
others (is this text new? is this URL known? may its seed keep another page?) are made here, one visit after the
other; the record therefore depends on the order of commits only, never on who fetched what when. Bodies go to
the archive and are synced before the transaction ends, so every committed page has its bytes.

Rows are added and settled with the seq at which that happened. A row that changes in place leaves its old
values in `undo`, so a position in the sequence is all that a checkpoint needs to be.

When anything here fails, the session ends and memory is rebuilt from the store: there is no half-done state
to repair.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from inchworm import fault, rows
from inchworm.draft import Committed, Draft, Outcomes, Session
from inchworm.model import (
    Entry,
    Found,
    Kind,
    Outcome,
    Place,
    Reason,
    Refusal,
    RunInfo,
    Source,
    State,
    Stored,
    Turn,
    Visit,
)
from inchworm.ports import Archive, Changes, Known, NewEntry, Original, Row, Standing, Store
from inchworm.rules import content, control, cookies
from inchworm.rules import url as urls
from inchworm.rules.limits import exhausted
from inchworm.rules.scope import Judge, Patterns, Scope, Verdict, widen
from inchworm.settings import Settings

SITEMAP_DEPTH = 5
_DEPENDS_ON_PATH = (Reason.MAX_DEPTH, Reason.HOPS, Reason.NOFOLLOW)
"""Refusals that another page's link may overrule."""

_COUNTED = {
    Outcome.PAGE: "pages",
    Outcome.DUPLICATE: "duplicates",
    Outcome.RESOURCE: "resources",
    Outcome.REDIRECT: "redirects",
    Outcome.FAILED: "failed",
}


class Ledger:
    """Commits the turns of one session, in the order it is given them."""

    def __init__(self, store: Store, archive: Archive, run: RunInfo, session: Session, settings: Settings) -> None:
        self._store = store
        self._archive = archive
        self._run_id = run.run_id
        self._token = session.token
        self._settings = settings
        self._draft = Draft(store, run, session)
        self._canonicalizer = urls.canonicalizer(settings.drop_params)
        self._patterns = Patterns(settings.include, settings.exclude)
        self._judge = self._make_judge()
        self._path_matters = bool(settings.max_depth or settings.external_hops)
        self._reader = content.fingerprint(settings.resources)
        self._origins: set[str] = set()
        self._jar = cookies.Jar(store.cookies(run.run_id))
        self._transaction = ExitStack()
        self._failure: BaseException | None = None

    # One commit

    def commit(self, turns: Sequence[Turn]) -> Committed:
        """All of these turns, durably, or none of them. In one go; a session takes the three steps one by one."""
        self.begin()
        return self.finish(self.apply(turns))

    def begin(self) -> None:
        """Open the transaction. May wait for a lock."""
        self._refuse_if_failed()
        self._draft.begin()
        self._transaction.enter_context(self._store.committing(self._token))

    def apply(self, turns: Sequence[Turn]) -> Outcomes:
        """Decide what the turns come to and write their rows. Waits for nobody; the transaction stays open."""
        with self._rolled_back_on_error():
            owners, originals = self._look_up([turn for turn in turns if isinstance(turn, Visit)])
            outcomes: list[tuple[Turn, Outcome | Reason]] = []
            for turn in turns:
                if isinstance(turn, Refusal):
                    self._refuse(turn)
                    outcomes.append((turn, turn.reason))
                else:
                    outcomes.append((turn, self._record(turn, owners, originals)))
            self._draft.write()
        return tuple(outcomes)

    def finish(self, outcomes: Outcomes) -> Committed:
        """Make it last: first the archive, then the rows that point into it. Waits for the disk."""
        with self._rolled_back_on_error():
            fault.point("before_archive")
            self._archive.sync()
            fault.point("before_commit")
        with self._remembering_failure():
            self._transaction.close()
        fault.point("after_commit")
        return self._draft.committed(outcomes)

    @contextmanager
    def _rolled_back_on_error(self) -> Iterator[None]:
        with ExitStack() as undo:
            undo.push(self._transaction)
            with self._remembering_failure():
                yield
            undo.pop_all()

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """A commit that is no batch of turns."""
        self._refuse_if_failed()
        self._draft.begin()
        with self._remembering_failure(), self._store.committing(self._token):
            yield

    @contextmanager
    def _remembering_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    def _refuse_if_failed(self) -> None:
        """After a commit that failed, what we have in memory is ahead of the store: nothing more may be built on it."""
        if self._failure is not None:
            raise self._failure

    def seed(self, seeds: Sequence[Found]) -> Changes:
        """The first entries of a new run, to be written in the transaction that makes the run."""
        self._draft.look_up({seed.url for seed in seeds})
        for number, seed in enumerate(seeds):
            place = (0, number)
            parent = Entry(0, seed.url, seed.request_url, Kind.PAGE, Source.INITIAL, number, 0, 0, 0, place)
            self._enter(seed, parent, place, Verdict(number, 0, 0, None))
        return self._draft.with_totals()

    def reopen(self, kind: str | None = None, url: str | None = None, inbox_id: int = 0) -> Committed:
        """Failed rows become pending again, at the end of their lanes."""
        failed = self._store.failed(self._run_id, kind, url)
        with self._committing():
            self._draft.changes.inbox_id = inbox_id
            self._draft.skip_places()
            self._forget_robots({urls.origin_of(row.standing.request_url or row.url) for row in failed})
            for row in failed:
                self._draft.reopen(row, _unhurt(row.standing), self._draft.next_place())
                self._draft.changes.pardoned.append(row.url_id)
                self._draft.add(failed=-1, pending=1)
            self._draft.write()
        return self._draft.committed()

    def refresh_robots(self, origins: Iterable[str]) -> Committed:
        """These were read too long ago: they are asked for again, ahead of everything else."""
        self._draft.disturb("robots")
        with self._committing():
            for origin in origins:
                for _, verdict, rules in self._store.robots(self._run_id, origin):
                    # Should it not be there any more, what it said before still holds.
                    keep = verdict in ("rules", "allow", "refreshing")
                    self._ask_for_robots(origin, "refreshing" if keep else "forgotten", rules if keep else None)
            self._draft.write()
        return self._draft.committed()

    def _forget_robots(self, origins: set[str]) -> None:
        """A robots.txt that could not be read is asked for again."""
        for origin, verdict, _ in self._store.robots(self._run_id):
            if verdict in ("unreadable", "forgotten", "refreshing") and origin in origins:
                self._ask_for_robots(origin, "forgotten", None)

    def _ask_for_robots(self, origin: str, verdict: str, rules: bytes | None) -> None:
        file = control.robots_file(origin)
        known = self._store.known(self._run_id, [file.url])[file.url]
        for row in self._store.rows(self._run_id, [known.url_id]):
            if row.standing.state is not State.PENDING:
                self._draft.reopen(row, _unhurt(row.standing), (0, -1 - row.url_id))
        self._draft.learn_robots(origin, verdict, rules)

    def _learn_robots(self, visit: Visit) -> None:
        origin = urls.origin_of(visit.entry.request_url)
        verdict, said = rows.robots_verdict(visit)
        if verdict == "unreadable":
            for _, before, rules in self._store.robots(self._run_id, origin):
                if before == "refreshing":
                    verdict, said = ("rules", rules) if rules else ("allow", None)
        self._draft.learn_robots(origin, verdict, said)

    def clear(self) -> Committed:
        """Every pending row is refused: the queue is empty, the pages stay."""
        with self._committing():
            for lane in self._store.lanes(self._run_id):
                last: Entry | None = None
                while entries := self._store.pending(self._run_id, lane, last, 1000):
                    last = entries[-1]
                    for entry in entries:
                        self._refuse(Refusal(entry, Reason.CLEARED))
                    self._draft.write()
        return self._draft.committed()

    def beat(self) -> None:
        """Show that the owner lives, when there is nothing to commit."""
        self._store.beat(self._token)

    # Looking up once per batch

    def _look_up(self, visits: list[Visit]) -> tuple[set[bytes], dict[bytes, Original]]:
        known = self._draft.known
        wanted = {found.url for visit in visits for found in visit.reading.links if found.url not in known}
        wanted |= {visit.redirect.url for visit in visits if visit.redirect}
        if self._path_matters:
            wanted |= {visit.entry.url for visit in visits}
        self._draft.look_up(wanted.difference(known), self._path_matters)
        owners = self._store.owners_of(self._run_id, {v.text_hash for v in visits if v.text_hash})
        originals = self._store.originals({v.record.digest for v in visits if v.record and v.record.payload})
        return owners, originals

    # One visit

    def _record(self, visit: Visit, owners: set[bytes], originals: dict[bytes, Original]) -> Outcome:
        self._draft.next_visit()
        entry = self._fresh(visit.entry)
        self._take_cookies(visit)
        leads_back = visit.redirect is not None and self._leads_back(entry, visit.redirect)
        if visit.redirect and leads_back and not self._asks_anew(visit.redirect, visit.at_ms):
            said = f"{visit.redirect.request_url} leads back to it"
            visit = visit._replace(outcome=Outcome.FAILED, failure="redirect_loop", message=said, redirect=None)
        outcome = self._outcome(visit, owners)
        self._count_visit(visit, entry, outcome)
        redirect = self._follow_redirect(visit, entry) if outcome is Outcome.REDIRECT else None
        if redirect is not None and leads_back:
            self._ask_again(redirect, entry)
        links = self._discover_all(visit.reading.links, entry)
        if visit.quiet_ms:
            until_ms = visit.at_ms + visit.millis + visit.quiet_ms
            self._draft.changes.quiet.append((until_ms, visit.quiet_ms, self._draft.host_id(entry.request_url)))
        if outcome is Outcome.RETRY:
            self._again(entry, visit)
        elif outcome is not Outcome.REDIRECT or redirect != entry.url_id:
            self._draft.settle(entry, State.DONE, None)
            self._draft.add(**{_COUNTED[outcome]: 1} if outcome in _COUNTED else {})
            if entry.kind is Kind.ROBOTS:
                self._learn_robots(visit)
        stored = visit.stored or self._archived(visit, originals)
        row = rows.of_visit(self._draft.seq, visit, outcome, stored, links, redirect, self._reader)
        self._draft.changes.visits.append(row)
        return outcome

    def _fresh(self, entry: Entry) -> Entry:
        """The entry with the depth it has by now: a shorter way may have been found since it was dispatched."""
        known = self._draft.known.get(entry.url) if self._path_matters else None
        return entry._replace(depth=known.depth, hops=known.hops) if known else entry

    def _outcome(self, visit: Visit, owners: set[bytes]) -> Outcome:
        if visit.outcome is not Outcome.PAGE or not visit.text_hash:
            return visit.outcome
        if visit.text_hash in owners:
            return Outcome.DUPLICATE
        owners.add(visit.text_hash)
        return Outcome.PAGE

    def _leads_back(self, entry: Entry, target: Found) -> bool:
        """Whether the target is known to lead back to the entry by redirects alone."""
        known = self._draft.known.get(target.url)
        if known is None or not known.in_run or known.url_id == entry.url_id:
            return False
        self._draft.write()
        url_id = known.url_id
        for _ in range(self._settings.max_redirects):
            visit = self._store.visit_of(self._run_id, url_id)
            if visit is None or visit.redirect is None:
                return False
            url_id = visit.redirect
            if url_id == entry.url_id:
                return True
        return False

    def _take_cookies(self, visit: Visit) -> None:
        address = visit.record.url if visit.record else visit.entry.request_url
        for cookie in visit.cookies:
            if self._jar.accepts(cookie, address) and self._jar.put(cookie):
                self._draft.learn_cookie(cookie)

    def _asks_anew(self, target: Found, now_ms: int) -> bool:
        """Whether a URL that redirected would be asked with other cookies now than it was."""
        visit = self._store.visit_of(self._run_id, self._draft.known[target.url].url_id)
        sent = json.loads(visit.meta or "{}").get(rows.COOKIES, "") if visit else ""
        return bool(self._settings.cookies and rows.cookies_mark(self._jar.header(target.request_url, now_ms)) != sent)

    def _ask_again(self, url_id: int, entry: Entry) -> None:
        """A URL that redirected here to be given a cookie has one now: it gets a new place."""
        self._draft.write()
        for row in self._store.rows(self._run_id, [url_id]):
            tried = json.dumps((*entry.tried, entry.request_url))
            standing = row.standing._replace(chain=entry.chain + 1, tried=tried)
            self._draft.reopen(row, standing, self._draft.next_place())
            self._draft.add(redirects=-1, pending=1)

    def _count_visit(self, visit: Visit, entry: Entry, outcome: Outcome) -> None:
        if entry.kind in control.KINDS:
            return
        if visit.requested:
            self._draft.requests += 1
            self._draft.size += visit.size
            self._draft.add(requests=1, size=visit.size)
        seed = self._draft.seeds[entry.seed]
        requests = seed.requests + (visit.requested and entry.kind is Kind.PAGE)
        self._draft.seeds[entry.seed] = seed._replace(kept=seed.kept + (outcome is Outcome.PAGE), requests=requests)

    def _again(self, entry: Entry, visit: Visit) -> None:
        """A passing failure: a new place at the end of the lane. A robots.txt stays ahead of its host's pages."""
        place = entry.place if entry.kind is Kind.ROBOTS else (self._draft.seq, 0)
        self._replace(entry, place, attempts=entry.attempts + 1, not_before_ms=visit.retry_at_ms)
        self._draft.disturb(visit.failure)

    def _follow_redirect(self, visit: Visit, entry: Entry) -> int:
        target = visit.redirect
        assert target is not None
        tried = (*entry.tried, entry.request_url)
        if target.url == entry.url:
            self._replace(
                entry,
                (self._draft.seq, 0),
                request_url=target.request_url,
                chain=entry.chain + 1,
                tried=json.dumps(tried),
            )
            return entry.url_id
        if self._is_seed(entry):
            self._move_seed(entry, target)
        return self._discover(target, entry, 0, tried)

    def _is_seed(self, entry: Entry) -> bool:
        if entry.source is Source.INITIAL:
            return True
        first = self._canonicalizer.canonicalize(entry.tried[0]) if entry.tried else None
        return entry.source is Source.REDIRECT and first == self._draft.seeds[entry.seed].url

    def _move_seed(self, entry: Entry, target: Found) -> None:
        """A seed that redirects takes its scope along; what was outside before is judged again."""
        before = self._draft.seeds[entry.seed]
        after = widen(before, target.url)
        if (after.host, after.path) == (before.host, before.path):
            return
        undo = json.dumps({"host": before.host, "path": before.path})
        self._draft.changes.undo.append((self._draft.seq, "seed", before.number, undo))
        self._draft.seeds[entry.seed] = after
        self._judge = self._make_judge()
        self._draft.write()
        for row in self._store.outside(self._run_id):
            nofollow = row.source is Source.SPIDER and self._forbids_following(row.found_on)
            found = Found(row.url, row.standing.request_url or row.url, row.kind, row.source, nofollow)
            depth = row.standing.depth - 1 if row.source is Source.SPIDER else row.standing.depth
            verdict = self._judge.judge(found, entry._replace(depth=depth))
            if verdict.hops or row.kind is Kind.ROBOTS:
                continue
            if verdict.reason in _DEPENDS_ON_PATH and row.standing.reason is Reason.OUT_OF_SCOPE:
                # Inside by now, and refused for what another page's link may overrule.
                self._draft.nofollow = True
                self._draft.move(row, row.standing._replace(reason=verdict.reason, hops=0, seed=verdict.seed))
            else:
                self._judge_again(row.url_id, verdict)

    def _forbids_following(self, url_id: int | None) -> bool:
        """Whether a page that is done says that its links are not to be followed."""
        visit = self._store.visit_of(self._run_id, url_id) if url_id and self._settings.robots else None
        return visit is not None and bool(json.loads(visit.meta or "{}").get("nofollow"))

    # One URL

    def _discover_all(self, links: Sequence[Found], parent: Entry) -> list[int]:
        """The ids of a page's links, those new to the run entered. Most links are known, so they go the short way."""
        known, may_change = self._draft.known, self._path_matters
        found_ids: list[int] = []
        for index, found in enumerate(links):
            seen = known.get(found.url)
            if seen is None or may_change or not seen.in_run or seen.reason is not None:
                found_ids.append(self._discover(found, parent, index))
            else:
                found_ids.append(seen.url_id)
        return found_ids

    def _discover(self, found: Found, parent: Entry, index: int, tried: tuple[str, ...] = ()) -> int:
        known = self._draft.known.get(found.url)
        if known is None or not known.in_run:
            return self._enter(found, parent, (self._draft.seq, index), self._judge.judge(found, parent), tried)
        refused_by_path = known.state is State.REFUSED and known.reason in _DEPENDS_ON_PATH
        if refused_by_path or self._path_matters:
            self._look_again(known, found, parent)
        return known.url_id

    def _enter(self, found: Found, parent: Entry, place: Place, verdict: Verdict, tried: tuple[str, ...] = ()) -> int:
        """A URL that this run meets for the first time."""
        known = self._draft.known.get(found.url)
        url_id = known.url_id if known else self._draft.new_url(found.url)
        reason = verdict.reason
        if reason is None and self._settings.page_limit:
            reason = self._exhausted(verdict.seed, found.kind)
        if found.kind is Kind.SITEMAP and parent.kind is Kind.SITEMAP and parent.chain + 1 >= SITEMAP_DEPTH:
            reason = Reason.MAX_DEPTH
        state = State.REFUSED if reason else State.PENDING
        self._draft.nofollow = self._draft.nofollow or reason is Reason.NOFOLLOW
        self._draft.known[found.url] = Known(url_id, True, state, reason, verdict.depth, verdict.hops)
        if state is State.PENDING and found.kind is not Kind.ROBOTS:
            self._open_origin(found.request_url, verdict, parent, place)
        request_url = found.request_url if found.request_url != found.url else None
        nested = found.kind is Kind.SITEMAP and parent.kind is Kind.SITEMAP
        chain = parent.chain + 1 if tried or nested else 0
        standing = Standing(
            state, reason, verdict.seed, verdict.depth, verdict.hops,
            self._lane_of(found.request_url) if state is State.PENDING else 0,
            *place, request_url, 0, 0, chain, json.dumps(tried) if tried else None,
            self._draft.seq if reason else None,
        )  # fmt: skip
        found_on = parent.url_id or None
        self._draft.changes.entries.append(
            NewEntry(url_id, found.kind, found.source, self._draft.seq, found_on, found.lastmod or None, standing)
        )
        if state is State.PENDING:
            self._draft.lane(standing.lane, 1)
        if found.kind not in control.KINDS:
            self._draft.numbers["known"] += 1
            self._draft.numbers[state._value_] += 1
        return url_id

    def _open_origin(self, url: str, verdict: Verdict, parent: Entry, place: Place) -> None:
        """The first URL of an origin brings its robots.txt along, placed ahead of everything there."""
        origin = urls.origin_of(url)
        if origin in self._origins:
            return
        self._origins.add(origin)
        file = self._control_file(origin)
        if file is None:
            return
        self._draft.look_up({file.url})
        known = self._draft.known.get(file.url)
        if known is None or not known.in_run:
            ahead = (place[0], -1 - place[1])
            self._enter(
                file, parent, ahead if file.kind is Kind.ROBOTS else self._draft.next_place(), verdict._replace(depth=0)
            )

    def _control_file(self, origin: str) -> Found | None:
        if self._settings.robots:
            return control.robots_file(origin)
        is_seed_host = urls.host_of(origin + "/") in {seed.host for seed in self._draft.seeds.values()}
        return control.sitemap_file(f"{origin}/sitemap.xml") if self._settings.sitemap and is_seed_host else None

    def _exhausted(self, number: int, kind: Kind) -> Reason | None:
        return exhausted(self._draft.seeds[number], self._settings.page_limit) if kind is Kind.PAGE else None

    # A second look at a known URL

    def _look_again(self, known: Known, found: Found, parent: Entry) -> None:
        verdict = self._judge.judge(found, parent)
        if known.state is State.REFUSED:
            better = known.reason in _DEPENDS_ON_PATH and verdict.reason is None
        else:
            better = verdict.reason is None and (verdict.depth < known.depth or verdict.hops < known.hops)
        if not better:
            return
        self._judge_again(known.url_id, verdict)

    def _judge_again(self, url_id: int, verdict: Verdict) -> None:
        """Take a better verdict, and pass a shorter way on to what a page that is done already gave."""
        todo = deque([(url_id, verdict)])
        while todo:
            url_id, verdict = todo.popleft()
            self._draft.write()
            for row in self._store.rows(self._run_id, [url_id]):
                if self._improve(row, verdict) and row.standing.state is State.DONE:
                    todo.extend(self._passed_on(row, verdict))

    def _passed_on(self, row: Row, verdict: Verdict) -> Iterator[tuple[int, Verdict]]:
        """The verdicts that a done row's new place among the pages means for what it gave."""
        visit, parent = self._store.visit_of(self._run_id, row.url_id), rows.as_parent(row, verdict)
        if visit is None:
            return
        nofollow = self._forbids_following(row.url_id)
        ids = visit.links if visit.redirect is None else (visit.redirect,)
        for given in self._store.rows(self._run_id, ids):
            source = Source.RESOURCE if given.kind is Kind.RESOURCE else Source.SPIDER
            source = source if visit.redirect is None else Source.REDIRECT
            found = Found(given.url, given.url, given.kind, source, nofollow)
            yield given.url_id, self._judge.judge(found, parent)

    def _improve(self, row: Row, verdict: Verdict) -> bool:
        old = row.standing
        too_nested = row.kind is Kind.SITEMAP and old.reason is Reason.MAX_DEPTH
        if verdict.reason or too_nested:
            return False
        if old.state is State.REFUSED:
            if old.reason not in (*_DEPENDS_ON_PATH, Reason.OUT_OF_SCOPE) or self._exhausted(verdict.seed, row.kind):
                return False
            place, address = self._draft.next_place(), old.request_url or row.url
            nearer = _nearer(old, verdict)._replace(lane=self._lane_of(address), seed=verdict.seed)
            self._draft.reopen(row, nearer, place)
            if row.kind not in control.KINDS:
                self._draft.add(refused=-1, pending=1)
            self._open_origin(address, verdict, rows.as_parent(row, verdict), place)
            return True
        if verdict.depth >= old.depth and verdict.hops >= old.hops:
            return False
        self._draft.move(row, _nearer(old, verdict))
        return True

    # Rows

    def _refuse(self, refusal: Refusal) -> None:
        self._draft.settle(refusal.entry, State.REFUSED, refusal.reason)
        if refusal.entry.kind not in control.KINDS:
            self._draft.add(refused=1)

    def _replace(self, entry: Entry, place: Place, **values: Any) -> None:
        """Change a pending row in place; its lane keeps its number of rows."""
        row = rows.of_entry(entry)
        self._draft.move(row, row.standing._replace(place_seq=place[0], place_idx=place[1], **values))

    def _archived(self, visit: Visit, originals: dict[bytes, Original]) -> Stored:
        """Put the answer into the archive; a payload that is there already becomes a revisit."""
        record = visit.record
        meta = json.dumps(visit.reading.meta, ensure_ascii=False) if visit.reading.meta else None
        if record is None:
            return Stored(None, None, None, None, 0, meta)
        original = originals.get(record.digest) if record.payload else None
        spot = self._archive.append(record, visit.at_ms, original)
        if original is None and record.payload:
            originals[record.digest] = Original(record.url, visit.at_ms)
        file_id = self._draft.file_id(spot)
        return Stored(record.digest, file_id, spot.offset, spot.length, int(original is not None), meta)

    def _lane_of(self, url: str) -> int:
        return 0 if self._settings.strict_order else self._draft.host_id(url)

    def _make_judge(self) -> Judge:
        values = self._settings
        scope = Scope(values.scope, tuple(self._draft.seeds.values()), values.loose_paths)
        return Judge(scope, self._patterns, values.max_depth, values.external_hops, values.trap_depth)


def _unhurt(old: Standing) -> Standing:
    """As if it had never been tried."""
    return old._replace(attempts=0, not_before_ms=0)


def _nearer(old: Standing, verdict: Verdict) -> Standing:
    return old._replace(depth=min(old.depth, verdict.depth), hops=min(old.hops, verdict.hops))
