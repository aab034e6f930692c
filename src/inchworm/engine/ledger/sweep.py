"""The end of a run that builds on earlier ones: what was not reached is asked for, and then it is decided what changed.

A page that earlier runs know and that no link leads to any more may be gone, or may only have lost its links: it is
asked for once. Some verdicts need the whole run: whether a difference is a stamp that most pages bear, and whether a
page that redirects has moved or is gone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from inchworm.engine.ledger.bounds import Bounds
from inchworm.engine.ledger.draft.draft import Draft
from inchworm.engine.ledger.entering import Entering
from inchworm.model import (
    Change,
    ChangeVerdict,
    FoundUrl,
    FrontierEntry,
    Kind,
    Note,
    Outcome,
    Place,
    Reason,
    RunInfo,
    Source,
)
from inchworm.ports import Believed, Differing, Judgement, Redirected, Store, Unreached
from inchworm.rules.change import change, validators
from inchworm.rules.text import content

_CHUNK = 500
_MOST_HOPS = 50
_BEHIND_SEEDS = 1 << 20


class Sweep:
    """Closes one run, through the draft of its next commit."""

    def __init__(self, store: Store, draft: Draft, bounds: Bounds, entering: Entering, run: RunInfo) -> None:
        self._store = store
        self._draft = draft
        self._bounds = bounds
        self._entering = entering
        self._run_id = run.run_id
        self._horizon = run.horizon
        # Runs are numbered without gaps, by both of their numbers.
        self._parent_id = 0 if run.parent is None else run.run_id - run.number + run.parent
        self._has_begun = False

    def start_from(self, pages: Sequence[Unreached]) -> None:
        """Begin with known pages, in this order."""
        for start in range(0, len(pages), _CHUNK):
            chunk = pages[start : start + _CHUNK]
            self._draft.known.look_up(page.url for page in chunk)
            for index, page in enumerate(chunk, start):
                known = self._draft.known.get(page.url)
                if known is None or not known.in_run:
                    self._enter(page, (0, _BEHIND_SEEDS + index), rank=len(pages) - index)

    # Asking for what was not reached

    def enter_unreached(self) -> None:
        """Enter every known page that was not reached, and take back what was believed of servers that lie."""
        pages = self._store.earlier.unreached(self._run_id, self._horizon)
        # A duplicate may be one of what several of them said: it is doubted once.
        doubted = {
            one.seq: one
            for lane in sorted(self._lanes_that_lie())
            for one in self._store.evidence.believed(self._run_id, lane)
        }
        if pages or doubted:
            self._draft.steps.next()
        for start in range(0, len(pages), _CHUNK):
            chunk = pages[start : start + _CHUNK]
            self._draft.known.look_up(page.url for page in chunk)
            for index, page in enumerate(chunk, start):
                self._enter(page, (self._draft.steps.seq, index))
        for believed in doubted.values():
            self._ask_again_in_full(believed)
        self._draft.milestones.sweep()

    def _lanes_that_lie(self) -> set[int]:
        """Lanes with pages that changed under the same validator, as far as one can tell now: by more than stamps."""
        from inchworm.rules.change import stamps  # only where something differs

        suspects = self._store.evidence.contradicted(self._run_id)
        recurring = self._recurring() if suspects else {}
        return {
            page.lane
            for page in suspects
            if page.differences is None
            or not stamps.explained(page.differences, recurring.get((page.lane, page.is_html), frozenset()))
        }

    def _enter(self, page: Unreached, place: Place, rank: int | None = None) -> None:
        unlinked = page.unlinked + page.finder_was_read
        depth = page.depth - 1 if page.source is Source.SPIDER else page.depth
        found = FoundUrl(page.url, page.request_url, Kind.PAGE, page.source, rank=rank)
        parent = FrontierEntry(page.found_on or 0, page.url, page.url, Kind.PAGE, page.source, 0, depth, 0, 0, (0, 0))
        verdict = self._bounds.judge(found, parent)
        if unlinked > change.UNLINKED_RUNS and verdict.reason is None:
            verdict = verdict._replace(reason=Reason.UNLINKED)
        self._entering.enter(found, parent, place, verdict, unlinked=unlinked)

    def _ask_again_in_full(self, believed: Believed) -> None:
        """A server was found out: what it said is unchanged is asked for again, and in full."""
        before = believed.judgement
        after = before._replace(outcome=Outcome.RETRY.value, change=None, note=Note.DISTRUSTED.value)
        self._draft.judge(believed.seq, before, after)
        for row in self._draft.rows([believed.url_id]):
            self._draft.frontier.reopen(row, row.standing._replace(attempts=1), self._draft.steps.place_behind())
        self._uncount(believed.seed, before, believed.saved)

    def _uncount(self, seed: int, before: Judgement, saved: int) -> None:
        name = {"page": "pages", "duplicate": "duplicates", "resource": "resources"}[before.outcome]
        self._draft.totals.add(**{name: -1, "pending": 1, "saved": -saved})
        if before.change:
            self._draft.totals.add(**{before.change: -1})
        if before.outcome == Outcome.PAGE:
            self._draft.seeds.use(seed, kept=-1)

    # Deciding what changed

    def conclude(self) -> None:
        """Give the verdicts that had to wait for the whole run."""
        self._has_begun = False
        for page in self._store.earlier.redirected(self._run_id, self._horizon):
            self._judge_redirect(page)
        self._judge_stamps()
        learned, totals = self._draft.learned, self._draft.totals
        for liar in self._draft.store().evidence.contradicted(self._run_id):
            learned.distrust(liar.lane, liar.validator, "lies")
        # Once is no habit: a site that is put on its server anew has other tags, and keeps them.
        for lane in sorted(self._store.evidence.useless(self._run_id) & self._store.evidence.useless(self._parent_id)):
            learned.distrust(lane, validators.ETAG, "useless")
        totals.set_unknown(self._store.earlier.count_unknown(self._run_id, self._horizon))
        deleted = totals.number("deleted")
        known = deleted + sum(map(totals.number, ("unchanged", "modified", "unknown")))
        self._draft.milestones.conclude(change.alarm(deleted, known))

    def _judge_redirect(self, page: Redirected) -> None:
        is_permanent, url_id = page.status in change.PERMANENT, page.redirect
        target = self._draft.visit_of(url_id)
        for _ in range(_MOST_HOPS):
            if target is None or target.redirect is None:
                break
            is_permanent = is_permanent and target.status in change.PERMANENT
            url_id = target.redirect
            target = self._draft.visit_of(url_id)
        is_comparable = (
            target is not None
            and target.failure is None
            and content.reads_texts_alike(target.reader or "", page.reader or "")
        )
        text = target.text_hash if target is not None and is_comparable else None
        is_login = any(change.is_login(row.url) for row in self._draft.rows([url_id]))
        is_login = is_login or bool(target is not None and json.loads(target.meta or "{}").get("login"))
        self._rejudge(page.seq, page.judgement, change.of_redirect(is_permanent, page.text_hash, text or b"", is_login))

    def _judge_stamps(self) -> None:
        """Pages that differ only by what most pages of their host differ by are unchanged."""
        alike, recurring = self._differing(), self._recurring()
        for key, pages in alike.items():
            self._judge_as_unchanged(pages, recurring[key])

    def _differing(self) -> dict[tuple[int, bool], list[Differing]]:
        """By lane, those in HTML apart from the rest: no text file bears the stamp of a template."""
        alike: dict[tuple[int, bool], list[Differing]] = defaultdict(list)
        for page in self._store.evidence.differing(self._run_id):
            alike[page.lane, page.is_html].append(page)
        return alike

    def _recurring(self) -> dict[tuple[int, bool], frozenset[int]]:
        """What most pages of each lane differ by."""
        from inchworm.rules.change import stamps  # only a run that builds on others needs it

        compared = self._store.evidence.compared(self._run_id)
        return {
            key: stamps.recurring((page.differences for page in pages), compared.get(key, 0))
            for key, pages in self._differing().items()
        }

    def _judge_as_unchanged(self, pages: Sequence[Differing], recurring: frozenset[int]) -> None:
        from inchworm.rules.change import stamps

        for page in pages:
            if recurring and stamps.explained(page.differences, recurring):
                self._rejudge(page.seq, page.judgement, ChangeVerdict(Change.UNCHANGED, (Note.STAMP,)))

    def _rejudge(self, seq: int, before: Judgement, verdict: ChangeVerdict) -> None:
        note = " ".join(verdict.notes) or before.note
        after = before._replace(change=verdict.change.value, note=note)
        if after == before:
            return
        if not self._has_begun:
            # A step of its own, but only where there is something to take back.
            self._draft.steps.next()
            self._has_begun = True
        self._draft.judge(seq, before, after)
        for word, step in ((before.change, -1), (after.change, 1)):
            if word:
                self._draft.totals.add(**{word: step})
