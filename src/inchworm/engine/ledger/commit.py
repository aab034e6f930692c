"""Group commit: how visits become part of the record, and why nothing can be lost between two of them.

The theory, in four sentences. A run is a sequence of steps numbered by `seq`: visits, refusals in turn, and orders
such as a retry. Marking a URL done, storing its
page and adding the URLs it gave is one transaction, so a URL is always pending, done or refused and never in
between. Whatever a visit finds gets its place (seq, index) here and keeps it, and all decisions that depend on
others (is this text new? is this URL known? may its seed keep another page?) are made here, one visit after the
other; the record therefore depends on the order of commits only, never on who fetched what when. Bodies go to
the archive and are synced before the transaction ends, so every committed page has its bytes.

Rows are added and settled with the seq at which that happened. A row that changes in place leaves its old
values in `undo`. So a position in the sequence is all that a checkpoint needs to be: going back to it deletes what was
found later, restores what was changed later, and makes pending what was settled later (`store.crawl.history`).

When anything here fails, the session ends and memory is rebuilt from the store: there is no half-done state
to repair.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from inchworm import fault
from inchworm.engine.ledger import rows
from inchworm.engine.ledger.discovery import Discovery
from inchworm.engine.ledger.draft import Committed, Draft, Outcomes
from inchworm.engine.ledger.rows import Stored
from inchworm.engine.ledger.sweep import Sweep
from inchworm.model import (
    Down,
    Entry,
    Found,
    Kind,
    Mode,
    Outcome,
    Place,
    Probe,
    Reason,
    Refusal,
    RunInfo,
    Source,
    State,
    Substate,
    Turn,
    Visit,
)
from inchworm.ports import Archive, Changes, Original, Row, Standing, Store, Unreached
from inchworm.rules.order import order
from inchworm.rules.text import content
from inchworm.rules.web import control, cookies
from inchworm.rules.web import url as urls
from inchworm.rules.web.limits import exhausted
from inchworm.rules.web.scope import Verdict
from inchworm.settings import Settings

_KEPT = (Outcome.PAGE, Outcome.DUPLICATE)
_COUNTED = {
    Outcome.PAGE: "pages",
    Outcome.DUPLICATE: "duplicates",
    Outcome.RESOURCE: "resources",
    Outcome.REDIRECT: "redirects",
    Outcome.FAILED: "failed",
}


class Author(NamedTuple):
    """Whose commits these are: a session of the run, and the token of its owner."""

    session: int
    token: int


class Ledger:
    """Commits the turns of one session, in the order it is given them."""

    def __init__(self, store: Store, archive: Archive, run: RunInfo, author: Author, settings: Settings) -> None:
        self._store = store
        self._archive = archive
        self._run_id = run.run_id
        self._token = author.token
        self._settings = settings
        self._draft = Draft(store, run, author.session)
        self.new_first = is_new_first(store, run, settings)
        self._discovery = Discovery(store, self._draft, run, settings, self.new_first)
        self._sweep = Sweep(store, self._draft, self._discovery, run)
        self._builds_on_others = run.mode != Mode.BASELINE
        self._reader = content.fingerprint(settings.resources, settings.drop_params)
        self._jar = cookies.Jar(store.cookies(run.run_id))
        self._probed = {probe.directory for probe in store.probes(run.run_id)}
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
                    self._draft.next_step()
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

    def seed(self, seeds: Sequence[Found], known: Sequence[Unreached] = ()) -> Changes:
        """The first entries of a new run, to be written in the transaction that makes the run: its seeds, and the pages
        of earlier runs that it is to begin with."""
        self._draft.look_up({seed.url for seed in seeds})
        for number, seed in enumerate(seeds):
            place = (0, number)
            parent = Entry(0, seed.url, seed.request_url, Kind.PAGE, Source.INITIAL, number, 0, 0, 0, place)
            self._discovery.enter(seed, parent, place, Verdict(number, 0, 0, None))
        self._sweep.start_from(known)
        return self._draft.with_totals()

    def reopen(self, kind: str | None = None, url: str | None = None, inbox_id: int = 0) -> Committed:
        """Failed rows become pending again, at the end of their lanes."""
        failed = self._store.failed(self._run_id, kind, url)
        with self._committing():
            self._draft.changes.inbox_id = inbox_id
            if failed:
                self._draft.next_step()
            self._forget_robots({urls.origin_of(row.standing.request_url or row.url) for row in failed})
            for row in failed:
                self._draft.reopen(row, _unhurt(row.standing), self._draft.next_place())
                self._draft.changes.pardoned.append(row.url_id)
                self._draft.add(failed=-1, pending=1)
            self._draft.write()
        return self._draft.committed()

    def add(self, found: Found, depth: int, inbox_id: int = 0) -> Committed:
        """A URL that somebody wants to be visited. One that is refused by now is judged again."""
        with self._committing():
            self._draft.changes.inbox_id = inbox_id
            self._draft.look_up({found.url})
            known = self._draft.known.get(found.url)
            # Judged like a link from a page right above it.
            linked = found._replace(source=Source.SPIDER if depth else found.source)
            above = Entry(0, found.url, found.request_url, Kind.PAGE, Source.MANUAL, 0, depth - 1, 0, 0, (0, 0))
            verdict = self._discovery.judge(linked, above)
            if known is None or not known.in_run:
                self._draft.next_step()
                self._discovery.enter(found, above, (self._draft.seq, 0), verdict)
            elif known.state is State.REFUSED and known.reason is not Reason.ROBOTS and self._may_be_open(verdict):
                self._open_again(known.url_id, linked, above)
            self._draft.write()
        return self._draft.committed()

    def _may_be_open(self, verdict: Verdict) -> bool:
        return not (verdict.reason or exhausted(self._draft.seeds[verdict.seed], self._settings.page_limit))

    def _open_again(self, url_id: int, linked: Found, above: Entry) -> None:
        self._draft.next_step()
        for row in self._store.rows(self._run_id, [url_id]):
            # Whatever it was refused for: now it is for something that a better link overrules.
            self._draft.move(row, row.standing._replace(reason=Reason.NOFOLLOW))
        self._discovery.follow(linked, above, 0)

    def dismiss(self, row: Row) -> Committed:
        """A refused row is refused for good."""
        with self._committing():
            if row.standing.state is State.REFUSED and row.standing.reason is not Reason.CLEARED:
                self._draft.next_step()
                self._draft.move(row, row.standing._replace(reason=Reason.CLEARED))
            self._draft.write()
        return self._draft.committed()

    def refresh_robots(self, origins: Iterable[str]) -> Committed | None:
        """These were read too long ago: they are asked for again, ahead of everything else. None: all of them are
        asked for already."""
        settled = [origin for origin in origins if self._robots_row(origin).standing.state is not State.PENDING]
        if not settled:
            return None
        with self._committing():
            self._draft.next_step()
            self._draft.disturb("robots")
            for origin in settled:
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
        row = self._robots_row(origin)
        if row.standing.state is not State.PENDING:
            self._draft.reopen(row, _unhurt(row.standing), (0, -1 - row.url_id))
        self._draft.learn_robots(origin, verdict, rules)

    def _robots_row(self, origin: str) -> Row:
        file = control.robots_file(origin)
        known = self._store.known(self._run_id, [file.url])[file.url]
        (row,) = self._store.rows(self._run_id, [known.url_id])
        return row

    def _learn_robots(self, visit: Visit) -> None:
        origin = urls.origin_of(visit.entry.request_url)
        verdict, said = rows.robots_verdict(visit)
        if verdict == "unreadable":
            for _, before, rules in self._store.robots(self._run_id, origin):
                if before == "refreshing":
                    verdict, said = ("rules", rules) if rules else ("allow", None)
        self._draft.learn_robots(origin, verdict, said)

    def judge_again(self, same_scope: bool) -> None:
        """A branch has settings of its own: what is not done yet is judged by them, inside the open transaction."""
        self._draft.begin()
        self._draft.next_step()
        if not self._discovery.judge_all(same_scope):
            self._draft.forget_step()
        self._draft.write()

    def clear(self) -> Committed:
        """Every pending row is refused: the queue is empty, the pages stay."""
        with self._committing():
            self._draft.next_step()
            for lane in self._store.lanes(self._run_id):
                last: Entry | None = None
                while entries := self._store.pending(self._run_id, lane, last, 1000):
                    last = entries[-1]
                    for entry in entries:
                        self._refuse(Refusal(entry, Reason.CLEARED))
                    self._draft.write()
        return self._draft.committed()

    def end_early(self) -> None:
        """What is pending is left to the next run; what is known by now is decided."""
        self.clear()
        if self._builds_on_others:
            self._conclude()

    def closing(self) -> Callable[[], Committed] | None:
        """What is left to do for a run with nothing pending: ask for what was not reached, decide what changed."""
        if not self._builds_on_others or self._draft.concluded == self._draft.seq > 0:
            return None
        return self._conclude if self._draft.swept else self._ask_for_unreached

    def _ask_for_unreached(self) -> Committed:
        with self._committing():
            self._sweep.ask()
            self._draft.write()
        return self._draft.committed()

    def _conclude(self) -> Committed:
        with self._committing():
            self._sweep.conclude()
            self._draft.write()
        return self._draft.committed()

    def count(self, upto: int) -> Committed:
        """Let the votes of pages up to this seq count, and of none after it."""
        while self._count_some(upto) != upto:
            self.beat()
        return self._draft.committed(counted=upto)

    def _count_some(self, upto: int) -> int:
        with self._committing():
            return self._store.count(self._run_id, upto)

    def note_hosts(self, down: Sequence[Down], up: Sequence[str]) -> Committed:
        """Hosts that cannot be reached any more, or can again."""
        with self._committing():
            for one in down:
                self._draft.learn_answered(one.origin)
            self._draft.changes.down.extend(down)
            self._draft.changes.up.extend(up)
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
        if self._discovery.path_matters:
            wanted |= {visit.entry.url for visit in visits}
        self._draft.look_up(wanted.difference(known), self._discovery.path_matters)
        self._discovery.expect([visit.version for visit in visits if visit.version and visit.is_version])
        owners = self._store.owners_of(self._run_id, {v.text_hash for v in visits if v.text_hash})
        payloads = {v.record.digest for v in visits if v.record and (v.record.payload or v.is_version)}
        known_originals = self._store.originals(payloads)
        originals = {digest: one for digest, one in known_originals.items() if self._archive.holds(one.file)}
        return owners, originals

    # One visit

    def _record(self, visit: Visit, owners: set[bytes], originals: dict[bytes, Original]) -> Outcome:
        self._draft.next_step()
        entry = self._fresh(visit.entry)
        if visit.status:
            self._draft.learn_answered(urls.origin_of(entry.request_url))
        self._take_cookies(visit)
        leads_back = visit.redirect is not None and self._leads_back(entry, visit.redirect)
        if visit.redirect and self._is_loop(visit, visit.redirect, leads_back):
            said = f"{visit.redirect.request_url} leads back to it"
            visit = visit._replace(outcome=Outcome.FAILED, failure="redirect_loop", message=said, redirect=None)
        outcome = self._outcome(visit, owners)
        self._count_visit(visit, entry, outcome)
        redirect = self._follow_redirect(visit, entry) if outcome is Outcome.REDIRECT else None
        if redirect is not None and leads_back:
            self._ask_again(redirect, visit)
        self._discovery.found_on(visit)
        links = self._follow_links(visit, entry)
        self._discovery.found_on(None)
        if visit.quiet_ms:
            until_ms = visit.at_ms + visit.millis + visit.quiet_ms
            self._draft.changes.quiet.append((until_ms, visit.quiet_ms, self._draft.host_id(entry.request_url)))
        if outcome is Outcome.RETRY:
            self._again(entry, visit)
        elif outcome is not Outcome.REDIRECT or redirect != entry.url_id:
            self._draft.settle(entry, State.DONE, None)
            self._draft.add(**{_COUNTED[outcome]: 1} if outcome in _COUNTED else {})
            self._count_change(visit)
            if entry.kind is Kind.ROBOTS:
                self._learn_robots(visit)
        if visit.probe:
            self._keep_probe(visit.probe)
        stored = self._archived(visit, originals)
        reader = visit.version.reader if visit.version and visit.is_version else self._reader
        row = rows.of_visit(self._draft.seq, visit, outcome, stored, links, redirect, reader)
        share, parts = self._discovery.vote(visit)
        row = row if share is None else row._replace(share=share, parts=parts)
        self._draft.changes.visits.append(row)
        if outcome in _KEPT:
            self._checkpoint(visit.at_ms)
        return outcome

    def _follow_links(self, visit: Visit, entry: Entry) -> Sequence[int]:
        if visit.version is None or not visit.is_version:
            return self._discovery.follow_all(visit.reading.links, entry)
        forbidden = self._settings.robots and rows.forbids_following(visit.version.meta)
        return self._discovery.follow_known(visit.version, entry, forbidden)

    def _count_change(self, visit: Visit) -> None:
        if visit.change is None:
            return
        self._draft.add(**{visit.change.value: 1})

    def _checkpoint(self, at_ms: int) -> None:
        """Every so many pages, counted over the whole run, so that checkpoints are the same however it is cut up."""
        every, numbers = self._settings.checkpoint_every, self._draft.numbers
        if every and (numbers["pages"] + numbers["duplicates"]) % every == 0:
            substate = Substate.FINISHING if self._draft.swept else Substate.DOWNLOADING_PAGES
            self._draft.add_checkpoint(substate, at_ms)

    def _fresh(self, entry: Entry) -> Entry:
        """The entry with the depth it has by now: a shorter way may have been found since it was dispatched."""
        known = self._draft.known.get(entry.url) if self._discovery.path_matters else None
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

    def _is_loop(self, visit: Visit, target: Found, leads_back: bool) -> bool:
        """Whether a redirect leads to where it came from, and no cookie was set on the way that might change that.

        What counts is what the answers of this chain set, and not what else is in the jar by now: that depends on when
        other pages were read.
        """
        entry = visit.entry
        if not leads_back and target.request_url not in (entry.request_url, *entry.tried):
            return False
        return not visit.cookies or rows.cookies_mark(visit.cookies) in entry.tried

    def _ask_again(self, url_id: int, visit: Visit) -> None:
        """A URL that redirected here to be given a cookie has one now: it gets a new place."""
        self._draft.write()
        for row in self._store.rows(self._run_id, [url_id]):
            standing = row.standing._replace(chain=visit.entry.chain + 1, tried=json.dumps(_tried_by_now(visit)))
            self._draft.reopen(row, standing, self._draft.next_place())
            self._draft.add(redirects=-1, pending=1)

    def _count_visit(self, visit: Visit, entry: Entry, outcome: Outcome) -> None:
        if entry.kind in control.KINDS:
            return
        if visit.requested:
            size = 0 if visit.is_version else visit.size
            self._draft.requests += 1
            self._draft.size += size
            self._draft.add(requests=1, size=size, saved=visit.size - size)
        else:
            self._draft.add(saved=visit.size)
        seed = self._draft.seeds[entry.seed]
        requests = seed.requests + (visit.requested and entry.kind is Kind.PAGE)
        self._draft.seeds[entry.seed] = seed._replace(kept=seed.kept + (outcome is Outcome.PAGE), requests=requests)

    def _again(self, entry: Entry, visit: Visit) -> None:
        """A passing failure: a new place at the end of the lane. A robots.txt stays ahead of its host's pages."""
        place = entry.place if entry.kind is Kind.ROBOTS else (self._draft.seq, 0)
        rank = entry.rank if entry.kind in control.KINDS or entry.rank is None else order.LAST
        self._replace(entry, place, attempts=entry.attempts + 1, not_before_ms=visit.retry_at_ms, rank=rank)
        self._draft.disturb(visit.failure)

    def _follow_redirect(self, visit: Visit, entry: Entry) -> int:
        target = visit.redirect
        assert target is not None
        tried = _tried_by_now(visit)
        if target.url == entry.url:
            self._replace(
                entry,
                (self._draft.seq, 0),
                request_url=target.request_url,
                chain=entry.chain + 1,
                tried=json.dumps(tried),
            )
            return entry.url_id
        if self._discovery.is_seed(entry):
            self._discovery.move_seed(entry, target)
        return self._discovery.follow(target, entry, 0, tried)

    # Rows

    def _refuse(self, refusal: Refusal) -> None:
        self._draft.settle(refusal.entry, State.REFUSED, refusal.reason)
        if refusal.entry.kind not in control.KINDS:
            self._draft.add(refused=1)

    def _replace(self, entry: Entry, place: Place, **values: Any) -> None:
        """Change a pending row in place; its lane keeps its number of rows."""
        row = rows.of_entry(entry)
        if entry.rank is not None:
            # Others may have voted since it was chosen.
            self._draft.write()
            (row,) = self._store.rows(self._run_id, [entry.url_id])
        self._draft.move(row, row.standing._replace(place_seq=place[0], place_idx=place[1], **values))

    def _keep_probe(self, probe: Probe) -> None:
        """Whichever visit asked first: it is on record with the first one in the order of record."""
        if probe.record is None or probe.directory in self._probed:
            return
        self._probed.add(probe.directory)
        spot = self._archive.append(probe.record, probe.at_ms, None)
        self._draft.changes.probes.append((probe, self._draft.seq, self._draft.file_id(spot), spot))

    def _archived(self, visit: Visit, originals: dict[bytes, Original]) -> Stored:
        """Put the answer into the archive; a payload that is there already becomes a revisit."""
        record, old = visit.record, visit.version if visit.is_version else None
        meta = json.dumps(visit.reading.meta, ensure_ascii=False) if visit.reading.meta else None
        if record is None and old is not None:
            return Stored(old.payload, old.file_id, old.offset, old.length, old.revisit, old.meta)
        if record is None:
            return Stored(None, None, None, None, 0, meta)
        if old is not None:
            known = originals.get(record.digest)
            original = known._replace(is_current=True) if known else None
            spot = self._archive.append(record, visit.at_ms, original)
            return Stored(old.payload, self._draft.file_id(spot), spot.offset, spot.length, 1, old.meta)
        original = originals.get(record.digest) if record.payload else None
        spot = self._archive.append(record, visit.at_ms, original)
        # Bytes that were cut short or wrongly labelled are no body for others to refer to.
        is_whole = not visit.failure or visit.failure.startswith("http_")
        if original is None and record.payload and is_whole:
            originals[record.digest] = Original(record.url, visit.at_ms)
        file_id = self._draft.file_id(spot)
        return Stored(record.digest, file_id, spot.offset, spot.length, int(original is not None), meta)


def is_new_first(store: Store, run: RunInfo, settings: Settings) -> bool:
    """Whether the pages of the parent alone would fill the page limit of a run."""
    return run.parent is not None and settings.page_limit > 0 and store.was_full(run.parent, settings.page_limit)


def _tried_by_now(visit: Visit) -> tuple[str, ...]:
    """The requests of a chain of redirects, and the marks of the cookies that were set on the way."""
    marks = (rows.cookies_mark(visit.cookies),) if visit.cookies else ()
    return (*visit.entry.tried, visit.entry.request_url, *marks)


def _unhurt(old: Standing) -> Standing:
    """As if it had never been tried."""
    return old._replace(attempts=0, not_before_ms=0)
