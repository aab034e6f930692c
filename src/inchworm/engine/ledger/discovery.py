"""What becomes of the URLs that a visit found: judged, entered into the frontier, or looked at a second time.

Each gets its place when its finder is committed and keeps it. A refusal that another page's link may overrule (too
deep, too many hops, nofollow) is judged again when such a link comes, and a shorter way is passed on to what a page
gave.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from inchworm.engine.ledger import rows
from inchworm.engine.ledger.draft import Draft, link_index
from inchworm.model import Entry, Found, Kind, Outcome, Place, Reason, RunInfo, Source, State, Version, Visit
from inchworm.ports import Known, NewEntry, Row, Standing, Store
from inchworm.rules.order import focus, freshness, order
from inchworm.rules.web import control
from inchworm.rules.web import url as urls
from inchworm.rules.web.limits import exhausted
from inchworm.rules.web.scope import Judge, Patterns, Scope, Verdict, widen
from inchworm.settings import Settings

SITEMAP_DEPTH = 5
_DEPENDS_ON_PATH = (Reason.MAX_DEPTH, Reason.HOPS, Reason.NOFOLLOW)
"""Refusals that another page's link may overrule."""

_MADE_WAY = "it made way for a page that no run had met before"


class Discovery:
    """Decides about found URLs, for one run, in the order it is given them.

    `new_first`: what no run has met before comes before what is only looked at again, because the old pages alone would
    fill the page limit, and news would never be found.
    """

    def __init__(self, store: Store, draft: Draft, run: RunInfo, settings: Settings, new_first: bool = False) -> None:
        self._store = store
        self._draft = draft
        self._run_id = run.run_id
        self._run_horizon = run.horizon
        self._settings = settings
        self._canonicalizer = urls.canonicalizer(settings.drop_params)
        self._patterns = Patterns(settings.include, settings.exclude)
        self._judge = self._make_judge()
        self.path_matters = bool(settings.max_depth or settings.external_hops)
        self._origins: set[str] = set()
        self.new_first = new_first
        self._query = focus.Query(settings.query) if settings.order == order.BEST else None
        self._share = 0
        self._links: dict[int, dict[int, Found | None]] = {}

    def _make_judge(self) -> Judge:
        values = self._settings
        scope = Scope(values.scope, tuple(self._draft.seeds.values()), values.loose_paths)
        return Judge(scope, self._patterns, values.max_depth, values.external_hops, values.trap_depth)

    # Seeds

    def is_seed(self, entry: Entry) -> bool:
        if entry.source is Source.INITIAL:
            return True
        first = self._canonicalizer.canonicalize(entry.tried[0]) if entry.tried else None
        return entry.source is Source.REDIRECT and first == self._draft.seeds[entry.seed].url

    def move_seed(self, entry: Entry, target: Found) -> None:
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
        return visit is not None and rows.forbids_following(visit.meta)

    # One URL

    def follow_all(self, links: Sequence[Found], parent: Entry) -> list[int]:
        """The ids of a page's links, those new to the run entered. Most links are known, so they go the short way."""
        known, may_change = self._draft.known, self.path_matters or self._settings.order == order.FRESHNESS
        found_ids: list[int] = []
        for index, found in enumerate(links):
            seen = known.get(found.url)
            if seen is None or may_change or not seen.in_run or seen.reason is not None:
                found_ids.append(self.follow(found, parent, index))
            else:
                found_ids.append(seen.url_id)
        return found_ids

    def follow(self, found: Found, parent: Entry, index: int, tried: tuple[str, ...] = ()) -> int:
        known = self._draft.known.get(found.url)
        if known is None or not known.in_run:
            verdict, place = self._judge.judge(found, parent), (self._draft.seq, index)
            if known is None and self.new_first and verdict.reason is None and found.kind is Kind.PAGE:
                place = self._draft.place_ahead(index, self._lane_of(found.request_url))
                self._make_room(verdict.seed)
            return self.enter(found, parent, place, verdict, tried)
        if found.lastmod and self._settings.order == order.FRESHNESS and known.state is State.PENDING:
            self._announce(found, known)
        refused_by_path = known.state is State.REFUSED and known.reason in _DEPENDS_ON_PATH
        if refused_by_path or self.path_matters:
            self._look_again(known, found, parent)
        return known.url_id

    def judge(self, found: Found, parent: Entry) -> Verdict:
        return self._judge.judge(found, parent)

    def expect(self, versions: Iterable[Version]) -> None:
        """The links of these pages are followed next, as an earlier run has them: they are looked up together."""
        self._links = {}
        fresh: dict[int, set[int]] = {}
        for version in versions:
            fresh.setdefault(version.run_id, set()).update(self._fresh(version.links))
        for run_id, ids in fresh.items():
            self._look_up_links(run_id, ids)

    def follow_known(self, version: Version, parent: Entry, nofollow: bool) -> Sequence[int]:
        """The links of a page as an earlier run has them. Those that this run knows already go the shortest way."""
        fresh = version.links if nofollow else self._fresh(version.links)
        if not fresh:
            return version.links
        found = self._links.setdefault(version.run_id, {})
        self._look_up_links(version.run_id, [url_id for url_id in fresh if url_id not in found])
        wanted = set(fresh)
        for index, url_id in enumerate(version.links):
            if url_id in wanted and (one := found.get(url_id)) is not None:
                self.follow(one._replace(nofollow=True) if nofollow else one, parent, index)
        self._draft.known_ids.update(fresh)
        return version.links

    def _fresh(self, ids: Sequence[int]) -> Sequence[int]:
        """Those that have to be looked at: where the way there matters that is all of them."""
        if self.path_matters or self._draft.nofollow:
            return ids
        known = self._draft.known_ids
        return () if known.issuperset(ids) else [url_id for url_id in ids if url_id not in known]

    def _look_up_links(self, run_id: int, ids: Collection[int]) -> None:
        if not ids:
            return
        found = self._links.setdefault(run_id, {})
        found.update(dict.fromkeys(ids))
        for link, known in self._store.links(self._run_id, run_id, ids):
            found[known.url_id] = link
            # What is known in here may be ahead of the store.
            self._draft.known.setdefault(link.url, known)

    def enter(
        self,
        found: Found,
        parent: Entry,
        place: Place,
        verdict: Verdict,
        tried: tuple[str, ...] = (),
        unlinked: int = 0,
    ) -> int:
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
            self._draft.seq if reason else None, None,
        )  # fmt: skip
        if self._settings.order != order.BREADTH:
            standing = standing._replace(rank=self._rank(found, parent, url_id, link_index(place)))
        found_on = parent.url_id or None
        self._draft.changes.entries.append(
            NewEntry(
                url_id, found.kind, found.source, self._draft.seq, found_on, found.lastmod or None, standing, unlinked
            )
        )
        if state is State.PENDING:
            self._draft.lane(standing.lane, 1)
        if found.kind not in control.KINDS:
            self._draft.numbers["known"] += 1
            self._draft.numbers[state._value_] += 1
        return url_id

    def found_on(self, visit: Visit | None) -> None:
        """What comes now was found on this page, and gets its share of what the page promises; or it was on none."""
        if self._query is not None:
            self._share = _share(visit) if visit else 0

    def vote(self, visit: Visit) -> tuple[int | None, bytes | None]:
        """What a page that was read says of its links, in a run that goes by that: `share` and `parts` of its row."""
        links = visit.reading.links
        if self._query is None or not links or visit.is_version or visit.entry.kind is not Kind.PAGE:
            return None, None
        parts = bytes(found.parts for found in links)
        return _share(visit), parts if max(parts) > 1 else None

    def _rank(self, found: Found, parent: Entry, url_id: int, index: int) -> int:
        """By what a URL is to be chosen, in a run that goes by that."""
        fixed = order.fixed_rank(found.kind, found.source)
        if fixed is not None:
            return fixed
        if found.rank is None and self._query is not None:
            if found.source is Source.REDIRECT and parent.rank and parent.rank > 0:
                # It is what was chosen for that rank.
                return parent.rank
            return self._promise(self._query, found, url_id, index)
        return found.rank or order.NEW

    def _promise(self, query: focus.Query, found: Found, url_id: int, index: int) -> int:
        """Its rank as long as nobody but its finder has voted."""
        own = query.own(found.anchor, found.url, (self._draft.seq, index))
        first = focus.rank(own, focus.Votes(1, found.parts, self._share))
        self._draft.changes.promises.append((url_id, own, first))
        return first

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
            self.enter(
                file, parent, ahead if file.kind is Kind.ROBOTS else self._draft.next_place(), verdict._replace(depth=0)
            )

    def _control_file(self, origin: str) -> Found | None:
        if self._settings.robots:
            return control.robots_file(origin)
        is_seed_host = urls.host_of(origin + "/") in {seed.host for seed in self._draft.seeds.values()}
        return control.sitemap_file(f"{origin}/sitemap.xml") if self._settings.sitemap and is_seed_host else None

    def _exhausted(self, number: int, kind: Kind) -> Reason | None:
        return exhausted(self._draft.seeds[number], self._settings.page_limit) if kind is Kind.PAGE else None

    def _make_room(self, number: int) -> None:
        """A page that no run has met before gets a place in a limit that is full: the last page that was only looked at
        again, and is as it was, gives its own back. Its server may say the same of it in the next run."""
        limit, pending = self._settings.page_limit, self._draft.numbers["pending"]
        if self._draft.seeds[number].kept + pending < limit:
            return
        self._draft.write()
        seed = self._draft.seeds[number]
        if seed.kept + self._store.news_waiting(self._run_id, number) < limit:
            return
        old = self._store.last_unchanged(self._run_id, number)
        for row in self._store.rows(self._run_id, [old.url_id]) if old else ():
            assert old is not None
            after = old.judgement._replace(outcome=Outcome.RETRY.value, change=None, message=_MADE_WAY)
            self._draft.judge(old.seq, old.judgement, after)
            refused = row.standing._replace(state=State.REFUSED, reason=Reason.PAGE_LIMIT, done=self._draft.seq)
            self._draft.move(row, refused)
            self._draft.add(pages=-1, unchanged=-1, refused=1, saved=-old.saved)
            self._draft.seeds[number] = seed._replace(kept=seed.kept - 1)

    # A second look at a known URL

    def _announce(self, found: Found, known: Known) -> None:
        """A sitemap says that a known page changed after we last saw it: it comes ahead of what we only guess."""
        version = self._store.version(known.url_id, self._run_horizon)
        if version is None or not freshness.is_later(found.lastmod, version.at_ms):
            return
        self._draft.write()
        for row in self._store.rows(self._run_id, [known.url_id]):
            rank = order.ANNOUNCED + (row.standing.rank or 0)
            if row.standing.state is State.PENDING and (row.standing.rank or 0) < order.ANNOUNCED:
                self._draft.move(row, row.standing._replace(rank=rank))

    def _look_again(self, known: Known, found: Found, parent: Entry) -> None:
        verdict = self._judge.judge(found, parent)
        if known.state is State.REFUSED:
            better = known.reason in _DEPENDS_ON_PATH and verdict.reason is None
        else:
            better = verdict.reason is None and (verdict.depth < known.depth or verdict.hops < known.hops)
        if not better:
            return
        self._judge_again(known.url_id, verdict)

    def judge_all(self, same_scope: bool) -> bool:
        """Judge every row that is not done by the rules of this run, in the order of their places. Did it matter?

        A row has the least depth at which it was found, and in the same scope the fewest hops; in another one its hops
        go by the page that found it.
        """
        parents: dict[int, Entry] = {}
        mattered = False
        lacks_ranks = self._settings.order != order.BREADTH
        for found in self._store.all_rows(self._run_id):
            row = self._with_rank(found) if lacks_ranks and found.standing.rank is None else found
            mattered = mattered or row is not found
            verdict = self._verdict_on(row, parents.get(row.found_on or 0), same_scope)
            parents[row.url_id] = rows.as_parent(row, verdict)
            if row.standing.state is not State.DONE and row.kind not in control.KINDS:
                mattered = self._judge_anew(row, verdict) or mattered
        return mattered

    def _with_rank(self, row: Row) -> Row:
        """A row of a run that had no use for ranks: without one it would never be chosen."""
        found = Found(row.url, row.standing.request_url or row.url, row.kind, row.source)
        parent = rows.as_parent(row, Verdict(row.standing.seed, row.standing.depth, row.standing.hops, None))
        index = link_index((row.standing.place_seq, row.standing.place_idx))
        ranked = row.standing._replace(rank=self._rank(found, parent, row.url_id, index))
        self._draft.move(row, ranked)
        return row._replace(standing=ranked)

    def _verdict_on(self, row: Row, finder: Entry | None, same_scope: bool) -> Verdict:
        old, source = row.standing, row.source
        if source is Source.SITEMAP and old.hops and old.reason not in (Reason.HOPS, Reason.OUT_OF_SCOPE):
            # A sitemap named it first, and a link led there.
            source = Source.SPIDER
        linked = source is Source.SPIDER
        if source is Source.INITIAL:
            return Verdict(old.seed, 0, 0, None)
        hops = max(0, old.hops - linked) if same_scope or finder is None else finder.hops
        parent = rows.as_parent(row, Verdict(old.seed, old.depth - linked, hops, None))
        found = Found(row.url, old.request_url or row.url, row.kind, source, old.reason is Reason.NOFOLLOW)
        return self._judge.judge(found, parent)

    def _judge_anew(self, row: Row, verdict: Verdict) -> bool:
        """Whether a row that is not done stands differently now."""
        old, reason = row.standing, verdict.reason or self._exhausted(verdict.seed, row.kind)
        if old.reason is Reason.CLEARED or (old.reason is Reason.ROBOTS and self._settings.robots):
            return False
        address = old.request_url or row.url
        standing = old._replace(seed=verdict.seed, depth=verdict.depth, hops=verdict.hops)
        if old.state is State.PENDING and reason is None:
            return self._stay(row, standing, verdict)
        if reason == old.reason:
            return False
        if old.state is State.PENDING:
            self._draft.move(row, standing._replace(state=State.REFUSED, reason=reason, done=self._draft.seq))
            self._draft.lane(old.lane, -1)
            self._draft.add(pending=-1, refused=1)
        elif reason is not None:
            self._draft.move(row, standing._replace(reason=reason))
        else:
            place = self._draft.next_place()
            self._draft.reopen(row, standing._replace(lane=self._lane_of(address)), place)
            self._draft.add(pending=1, refused=-1)
            self._open_origin(address, verdict, rows.as_parent(row, verdict), place)
        return True

    def _stay(self, row: Row, standing: Standing, verdict: Verdict) -> bool:
        """A row that stays pending may be in another lane now, and there may be a robots.txt to be read before it."""
        before = self._draft.numbers.copy(), len(self._draft.changes.entries)
        address = standing.request_url or row.url
        place = (standing.place_seq, standing.place_idx)
        self._open_origin(address, verdict, rows.as_parent(row, verdict), place)
        lane = self._lane_of(address)
        if lane == standing.lane:
            return before != (self._draft.numbers, len(self._draft.changes.entries))
        self._draft.move(row, standing._replace(lane=lane))
        self._draft.lane(standing.lane, -1)
        self._draft.lane(lane, 1)
        return True

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

    def _lane_of(self, url: str) -> int:
        return 0 if self._settings.strict_order else self._draft.host_id(url)


def _share(visit: Visit) -> int:
    return focus.share(visit.relevance, len(visit.reading.links))


def _nearer(old: Standing, verdict: Verdict) -> Standing:
    return old._replace(depth=min(old.depth, verdict.depth), hops=min(old.hops, verdict.hops))
