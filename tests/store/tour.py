"""A tour of everything that the store can be asked, so that its statements can be noted as they are asked.

What is answered does not matter here, only that it is asked: every public method of every reader is called, with values
that go by the names of its arguments, on a small crawl with two runs and on a home with a job.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inchworm.errors import InchwormError, Lost, NotNow, Unknown
from inchworm.job import Job, JobFilter, JobState, Task
from inchworm.model import (
    CheckpointType,
    Choice,
    Counters,
    CrawlInfo,
    Mode,
    RunInfo,
    RunState,
    Seed,
    SessionInfo,
    SessionState,
)
from inchworm.ports import Commit
from inchworm.rules.change.groups import GroupPlace
from inchworm.rules.schedule.occurrence import Ended
from inchworm.rules.schedule.redelivery import DeliveryTry
from inchworm.rules.schedule.timetable import Shift
from inchworm.rules.web.url import hash64
from inchworm.store.crawl.history import History
from inchworm.store.crawl.read.archive import RecordReader
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.crawl.read.compare import ComparisonReader
from inchworm.store.crawl.read.copies import Copies
from inchworm.store.crawl.read.counts import CountReader
from inchworm.store.crawl.read.failures import FailureReader
from inchworm.store.crawl.read.frontier import _FILTERS, FrontierReader
from inchworm.store.crawl.read.now import LineOfRuns, Now, Since
from inchworm.store.crawl.read.progress import AlikeReader, ProgressReader, Whole
from inchworm.store.crawl.read.reports import Reports
from inchworm.store.crawl.read.urls import LinkReader, UrlReader
from inchworm.store.crawl.read.visits import VisitReader, WantedVisits
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.crawl.visits import KeptText
from inchworm.store.follow.log import URL, VISIT, CrawlLog, pages_by_text, run_ends
from inchworm.store.home.access import Access
from inchworm.store.home.claims import Claims
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.events import Events, Tallies
from inchworm.store.home.executions import Executions
from inchworm.store.home.home import Home
from inchworm.store.home.inbox import OwnerRequests
from inchworm.store.home.jobs import Jobs
from inchworm.store.home.logs import ExecutionLogs, LogLine
from inchworm.store.home.outbox import DeliveryShare, Outbox, OutgoingMessage, RunPromise, RunPromises
from inchworm.store.home.services import Service, Services
from inchworm.store.home.slots import Slots
from inchworm.store.lock import Life
from inchworm.store.sqlite import SqliteDatabase

HASH = b"\1" * 32
HERE = "http://a.example/1"

Asked = set[tuple[str, str]]
"""Schema and text of each statement."""


def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Everything that is asked on a tour."""
    found: Asked = set()
    for name in ("execute", "executemany"):
        monkeypatch.setattr(SqliteDatabase, name, _noted(getattr(SqliteDatabase, name), found))
    _crawl(folder / "crawl.db")
    _home(folder / "home")
    return found


def _noted(method: Any, found: Asked) -> Any:
    def noting(self: SqliteDatabase, sql: str, *arguments: Any) -> Any:
        found.add((self.schema, sql))
        return method(self, sql, *arguments)

    return noting


# ---- a crawl

RUN = RunInfo(1, 0, Mode.BASELINE, None, RunState.IN_PROGRESS, 9, {}, Counters(), (), "", 0, None)
NEXT = replace(RUN, run_id=2, number=1, mode=Mode.INCREMENTAL, parent=0, horizon=2, follows=1)
OUTCOMES = ("page", "duplicate", "redirect", "failed", "deleted", "resource", "page", "page", "page")


def _crawl(path: Path) -> None:
    store = CrawlStore(path)
    token = store.take(Life.of_this_process())
    seeds = (Seed(0, HERE, "a.example", "/"),)
    for run in (RUN, NEXT):
        store.runs.create(token, run, Commit(run.run_id, 1, seq=9, seeds=seeds))
        store.sessions.start(token, run, "{}", 0)
    _fill(store)
    names = _names(token)
    history, now = History(store), Now(store)
    point = history.add(token, RUN, CheckpointType.MANUAL, 0)
    names |= {"point": replace_seq(point), "line": now.line(NEXT), "since": Since(RUN)}
    for reader in (
        *(store.owner, store.commits, store.runs, store.sessions, store.queue, store.frontier, store.visits),
        *(store.archive, store.hosts, store.earlier, store.evidence, store.ranks),
        *(
            *(made(store) for made in (RecordReader, RecordChecks, Copies, CountReader, FailureReader)),
            *(made(store) for made in (LinkReader, UrlReader, VisitReader)),
            ProgressReader(store, 2),
            AlikeReader(store, 2),
            Whole(store),
            Reports(store, 1),
            FrontierReader(store, 1),
        ),
        *(ComparisonReader(store, RUN, NEXT), now, CrawlLog(store), history),
    ):
        _call_all(reader, names)
    list(ComparisonReader(store, RUN, NEXT))
    list(pages_by_text(CrawlLog(store), 1, 9, are_copies=True))
    run_ends(CrawlLog(store))
    _more(store, token)
    _ask(lambda: history.branch(point, replace(NEXT, run_id=3, number=2, origin=0, origin_seq=5)))
    _ask(lambda: store.runs.newest_branch(0))
    _ask(lambda: history.now(replace(NEXT, counters=Counters(pending=1))))
    _ask(lambda: history.set_line(token, [1], 0))
    store.close()


def replace_seq(point: Any) -> Any:
    """A checkpoint with something behind it."""
    return point._replace(seq=2)


def _names(token: int) -> dict[str, Any]:
    """A value for every name that an argument of a reader has."""
    return {
        "token": token, "run_id": 1, "number": 1, "earlier": 1, "horizon": 2, "url": HERE, "urls": [HERE], "url_id": 1,
        "url_ids": [1, 2], "lane": 1, "after": None, "limit": 3, "choice": Choice(5, True), "skip": set(), "upto": 9,
        "page_limit": 1, "kind": None, "hashes": [HASH], "payloads": [HASH], "payload": HASH, "origin": None, "seed": 0,
        "text_hash": HASH, "last": 2, "seq": 2, "until": 9, "text_hashes": [HASH.hex()], "reason": "robots",
        "arguments": (1,), "wanted": [50],
        "examples": 1, "seqs": [1], "at_ms": 1, "first": 0, "change": "new", "before": 5, "runs": (1, 2), "end": NEXT,
        "subject": URL, "seen": 0, "log_ids": [1, 2], "run": NEXT, "state": RunState.PAUSED, "now_ms": 1, "me": None,
        "settings": "{}", "session": _SESSION, "run_state": RunState.PAUSED, "file_id": 1, "name": "one",
        "numbers": [9], "changes": Commit(2, 1, seq=9), "run_ids": [1, 2], "resources": True, "rows": True,
        "by_bytes": False, "reader": "5 turbohtml=1",
        "page": KeptText(2, HERE, 1, "", HASH, HASH, "4"),
    }  # fmt: skip


_SESSION = SessionInfo(1, 1, 1, SessionState.COMPLETED, None, 0, 1, 0, 0)
_NOT_CALLED = {"close", "take", "create", "branch", "set_line", "start", "snapshot"}
_NOT_CALLED |= {"committing", "transaction", "write"}


def _call_all(reader: Any, names: dict[str, Any]) -> None:
    own = {**names}
    if isinstance(reader, FrontierReader):
        own |= {"wanted": dict.fromkeys(_FILTERS, "page"), "after": 0}
    if isinstance(reader, VisitReader | UrlReader | FailureReader | LinkReader | ProgressReader | ComparisonReader):
        own["after"] = 0
    if isinstance(reader, AlikeReader):
        own |= {"after": 0, "last": GroupPlace(2, 1)}
    if isinstance(reader, Copies | Now):
        own["text_hash"] = HASH.hex()
    if isinstance(reader, VisitReader):
        own["wanted"] = WantedVisits("page", text="a")
    if isinstance(reader, History):
        own["kind"] = CheckpointType.MANUAL
    if isinstance(reader, CrawlLog):
        own |= {"query": "SELECT run_id FROM run WHERE run_id = ?", "after": 0}
    if isinstance(reader, Whole):
        own["before"] = 100
    for name, method in inspect.getmembers(reader, inspect.ismethod):
        if not name.startswith("_") and name not in _NOT_CALLED:
            _ask(lambda method=method: _called(method, own))


def _called(method: Any, names: dict[str, Any]) -> Any:
    given, more = [], ()
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            more = names[parameter.name]
        elif parameter.name in names:
            given.append(names[parameter.name])
        else:
            assert parameter.default is not parameter.empty, f"{method.__qualname__}: {parameter.name}?"
            given.append(parameter.default)
    return method(*given, *more)


def _ask(question: Any) -> None:
    """What is refused was asked all the same; what a database cannot carry out is an error here, too."""
    with contextlib.suppress(Unknown, NotNow, Lost):
        found = question()
        if isinstance(found, Iterator):
            list(found)


def _more(store: CrawlStore, token: int) -> None:
    """What one call does not show: the other ways of asking."""
    visits, now, log = VisitReader(store), Now(store), CrawlLog(store)
    both = LineOfRuns((1, 2), 100)
    with store.commits.committing(token):
        store.commits.write(Commit(2, 1, seq=9))
    for questions in (
        (lambda: store.runs.get(None), lambda: store.runs.get(7), lambda: store.hosts.robots(1, "http://a.example")),
        (
            lambda: store.queue.choose(1, 9, Choice(5, False), set()),
            lambda: store.frontier.known(1, [HERE], rows=False),
        ),
        (
            lambda: visits.settled(1, WantedVisits("failed", "timeout", "new"), 0, 3),
            lambda: visits.that_failed(1, "timeout"),
        ),
        (lambda: visits.of_run(1, 9), lambda: RecordReader(store).of_run(1, 9)),
        (lambda: now.page(both, HERE), lambda: now.version(both, HERE), lambda: now.there(both, [HERE])),
        (lambda: now.pages(both, resources=False), lambda: now.has_text(both, HERE, HASH.hex())),
        (
            lambda: now.changed(Since(RUN, 0), both, by_bytes=False),
            lambda: now.changed(Since(RUN), both, by_bytes=True),
        ),
        (lambda: log.visits(VISIT, 0, 9), lambda: log.judged(VISIT, 1, 0)),
        (lambda: AlikeReader(store, 1).groups(None, 3),),
        (lambda: ProgressReader(store, 1).changed("unchanged", 0, 0, 3), lambda: store.evidence.believed(1, 1)),
        (
            lambda: store.evidence.shared_validators(2),
            lambda: store.earlier.version(5, 2),
            lambda: store.earlier.histories(None),
        ),
    ):
        for question in questions:
            _ask(question)


def _fill(store: CrawlStore) -> None:
    """Rows, so that what is asked about what was found is asked, too."""
    put = store.db.execute
    put("INSERT INTO host (host_id, name) VALUES (1, 'a.example')")
    put("INSERT INTO archive (file_id, run_id, token, name, length) VALUES (1, 1, 1, 'one', 900)")
    for number in range(1, 10):
        url = f"http://a.example/{number}"
        put("INSERT INTO url (url_id, hash, url) VALUES (?, ?, ?)", (number, hash64(url), url))
    log_id = 0
    for run_id in (1, 2):
        put("INSERT INTO lane (run_id, lane, pending) VALUES (?, 1, 1)", (run_id,))
        for number, outcome in enumerate(OUTCOMES, 1):
            if (run_id, number) == (1, 9):
                continue  # Only the later run knows it.
            log_id += 1
            put(
                "INSERT INTO frontier (run_id, url_id, state, kind, source, seed, depth, hops, lane, found, place_seq,"
                " place_idx, done, rank) VALUES (?, ?, ?, 'page', 'spider', 0, 0, 0, 1, ?, ?, 0, ?, 5)",
                (run_id, number, "pending" if number == 8 else "done", number, number, None if number == 8 else number),
            )
            put(
                "INSERT INTO visit (log_id, run_id, seq, session, url_id, kind, at_ms, outcome, requested, failure,"
                ' status, millis, size, payload, text_hash, links, file_id, "offset", length, change, etag, note,'
                " revisit, redirect)"
                " VALUES (?, ?, ?, 1, ?, 'page', 1, ?, 1, ?, 200, 1, 1, ?, ?, ?, 1, 0, 9, ?, 'same', ?, ?, 1)",
                (
                    *(log_id, run_id, number, number, outcome, "timeout" if outcome == "failed" else None, HASH, HASH),
                    *(b"\4\0\0\0", "modified" if run_id == 2 else None, "same_validator", int(number > 6)),
                ),
            )
            put("INSERT INTO promise (run_id, url_id, own, first) VALUES (?, ?, 1, 1)", (run_id, number))
    put("UPDATE run SET state = 'completed' WHERE run_id = 1")
    put("UPDATE visit SET share = 1 WHERE run_id = 1")
    put("INSERT INTO distrust (run_id, host_id, validator, seq, why) VALUES (2, 1, 'etag', 0, 'shared')")
    put("INSERT INTO withdrawn VALUES (5, 1, 'http://a.example/3', 'http://a.example/3')")
    put("INSERT INTO undone VALUES (90, 1, 8, 9)")


# ---- a home

JOB = Job("j1", "c1", JobState.SCHEDULED, Task(), interval_count=1, interval_unit="hours", due_ms=1, occurrence_ms=1)


def _home(folder: Path) -> None:
    home = Home(folder)
    crawls, requests = KnownCrawls(home), OwnerRequests(home)
    crawls.find_or_add(CrawlInfo("c1", "one", (HERE,), {}, 0), "key", is_named=False)
    crawls.find("c1", "key")
    crawls.all()
    crawls.change("c1", settings={})
    crawls.change("c1", name="one", settings={}, defaults={}, incremental=True, enabled=True, typed=True, started=True)
    inbox_id = requests.ask("c1", "pause", {}, 0)
    requests.unanswered("c1")
    requests.answer(inbox_id, "done", 1)
    requests.answer_to(inbox_id)
    _jobs(home)
    _events(home)
    _access(Access(home))
    _outbox(home, Outbox(home))
    crawls.remove("c1")
    home.close()


def _jobs(home: Home) -> None:
    jobs, claims, executions, slots = Jobs(home), Claims(home), Executions(home), Slots(home)
    jobs.add(JOB, has_crawl=True)
    jobs.add(replace(JOB, job_id="j2", after_job_id="j1", interval_count=None, due_ms=None, occurrence_ms=None))
    for by_next in (False, True):
        jobs.find(JobFilter(JobState.SCHEDULED, "c1"), (0, ""), 5, by_next)
    for question in (
        *(lambda: jobs.newest("c1", 5), lambda: jobs.beginning_with("j"), jobs.counts, lambda: jobs.overdue(9)),
        *(slots.loads, lambda: list(slots.waiting([1])), lambda: jobs.state_of("j1"), claims.locks, executions.running),
        *(lambda: claims.held_by("t"), lambda: claims.adopt("s", "t"), lambda: executions.of_job("j1", None, 5)),
        *(lambda: executions.totals("j1"), executions.totals, lambda: jobs.get("no"), lambda: executions.get(99)),
        *(lambda: jobs.change("j1", lambda job: job, 1), lambda: jobs.place("j1", lambda job: job, 1)),
        lambda: slots.shift([Shift("j1", jobs.get("j1").due_ms, 5)], 1),
    ):
        _ask(question)
    # The second one follows the first.
    for execution in (one for _ in range(2) for one in claims.claim("s", 10**14, 5)):
        claims.begin(execution.execution_id, execution.token, "here", 1)
        claims.beat(execution.execution_id, execution.token)
        claims.report(execution.execution_id, execution.token, run=1, session=1, pages=1, progress={})
        lines = [LogLine(1, 1, "info", "hello")]
        ExecutionLogs(home).add(execution.execution_id, execution.token, lines)
        claims.finish(execution.execution_id, execution.token, Ended(), _again, 2)
    executions.prune(10**14)
    with contextlib.suppress(InchwormError):
        jobs.delete("j2")
    jobs.delete("j1")


def _again(job: Job) -> Job:
    return replace(job, state=JobState.SCHEDULED, due_ms=None)


def _events(home: Home) -> None:
    events, logs, services, tallies = Events(home), ExecutionLogs(home), Services(home), Tallies(home)
    events.add("job", {}, 0)
    service = Service("s", "here", 1, 0, 0, 0, True, 1, 1.0)
    services.add(service)
    for question in (
        *(events.last, lambda: events.after(0), events.prune, lambda: logs.after(1), lambda: logs.last(1, 5)),
        *(lambda: services.beat("s", 1), lambda: services.remove("s"), services.all, lambda: tallies.count("x")),
        tallies.all,
    ):
        _ask(question)


def _access(access: Access) -> None:
    access.revoke("t", 5)
    access.is_revoked("t")
    access.add_login(b"code", 5, 1)
    access.take_login(b"code", 1)
    access.begin("key", b"request", 1)
    access.begin("key", b"request", 1)
    access.end("key", 200, "")
    access.forget("key")
    access.prune(1)


def _outbox(home: Home, outbox: Outbox) -> None:
    promises = RunPromises(home)
    with home.writing() as db:
        outbox.enqueue(db, [OutgoingMessage("e", "c1", "http://b.example/", b"", "", "", 0)])
        promises.keep(db, "c1", [RunPromise(1, "http://b.example/")])
    for share in (DeliveryShare("c1", ["http://b.example/"]), DeliveryShare()):
        outbox.next_due(share)
        for claimed in outbox.claim("me", 1, 5, share):
            outbox.record(claimed.delivery_id, "me", DeliveryTry(0, "gone"), 1)
    outbox.release("me")
    outbox.deliveries("c1", "waiting", 9)
    for question in (outbox.delivery, outbox.body, outbox.tries):
        question(1)
    outbox.replay(1, 1)
    outbox.prune(1)
    promises.add("c1", 1, ["http://b.example/"], 1)
    promises.of_crawl("c1")
