"""SQLite files: migrations, durability, who may write, damage, and data that older versions left behind."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest

from inchworm.engine.ledger.commit import Author, Ledger
from inchworm.engine.own.owner import NoArchive
from inchworm.errors import Broken, InchwormError, NotNow, TooNew, Unknown
from inchworm.job import JobFilter, JobRepetition, Task
from inchworm.model import FinishedVisit, Mode, Outcome
from inchworm.settings import check, make
from inchworm.store import sqlite
from inchworm.store.crawl.read.checks import RecordChecks
from inchworm.store.crawl.read.frontier import FrontierReader
from inchworm.store.crawl.read.visits import VisitReader
from inchworm.store.crawl.store import CrawlStore
from inchworm.store.home.crawls import KnownCrawls
from inchworm.store.home.home import Home
from inchworm.store.home.jobs import Jobs
from inchworm.store.lock import Life, OwnerLock
from inchworm.store.sqlite import open_file

DATA = Path(__file__).parent / "data"
ONE = "CREATE TABLE one (a INTEGER); INSERT INTO one VALUES (1);"
TWO = "CREATE TABLE two (b INTEGER); INSERT INTO two SELECT a + 1 FROM one;"


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.fixture
def steps(monkeypatch):
    """Sets the migrations that there are."""

    def set_steps(*texts: str) -> None:
        monkeypatch.setattr(sqlite, "_migrations", lambda schema: list(texts))

    return set_steps


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawl.db"


# Migrations


@pytest.mark.parametrize("schema", ["crawl", "home"])
def test_migrations_are_numbered_without_a_gap_and_taken_in_order(schema):
    folder = resources.files("inchworm.store") / "migrations"
    files = {file.name: file.read_text() for file in folder.iterdir() if file.name.startswith(f"{schema}_")}
    assert sorted(files) == [f"{schema}_{number:04}.sql" for number in range(1, len(files) + 1)]
    assert sqlite._migrations(schema) == [files[name] for name in sorted(files)]


@pytest.mark.parametrize("schema", ["crawl", "home"])
def test_splitting_a_migration_into_statements_changes_nothing(schema, tmp_path):
    """Statements are split at every semicolon, so none may stand in a text or a trigger."""
    open_file(tmp_path / "split.db", schema).close()
    whole = sqlite3.connect(":memory:")
    for text in sqlite._migrations(schema):
        whole.executescript(text)
    with closing(whole), closing(sqlite3.connect(tmp_path / "split.db")) as split:
        master = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name"
        assert split.execute(master).fetchall() == whole.execute(master).fetchall()


def test_a_file_is_brought_up_to_date_step_by_step(path, steps):
    steps(ONE)
    open_file(path, "crawl").close()
    assert (version_of(path), tables_of(path)) == (1, {"one"})
    steps(ONE, TWO)
    with closing(open_file(path, "crawl")) as db:
        assert db.execute("SELECT b FROM two").fetchall() == [(2,)]
    open_file(path, "crawl").close()
    assert version_of(path) == 2


@pytest.mark.parametrize(
    "failing", [f"{TWO} INSERT INTO nowhere VALUES (1);", "CREATE TABLE two (b INTEGER); CREATE TABLE one (c INTEGER);"]
)
def test_a_step_that_fails_leaves_nothing_behind_and_can_be_taken_again(path, steps, failing):
    steps(ONE, failing)
    with pytest.raises(Broken) as raised:
        open_file(path, "crawl")
    assert raised.value.hint
    assert (version_of(path), tables_of(path)) == (1, {"one"})
    steps(ONE, TWO)
    open_file(path, "crawl").close()
    assert (version_of(path), tables_of(path)) == (2, {"one", "two"})


@pytest.mark.parametrize("read_only", [False, True])
def test_files_of_a_newer_version_are_refused_untouched(path, read_only):
    CrawlStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(TooNew) as raised:
        CrawlStore(path, read_only=read_only)
    assert "999" in raised.value.message
    assert "pgrade" in raised.value.hint
    assert path.read_bytes() == before


OPEN = """
import sys
from pathlib import Path
from inchworm.store.crawl.store import CrawlStore
print("ready", flush=True)
sys.stdin.readline()
CrawlStore(Path(sys.argv[1])).close()
"""


def test_processes_that_migrate_at_once_all_succeed(path):
    command = [sys.executable, "-c", OPEN, str(path)]
    many = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for one in many:
        assert one.stdout.readline() == "ready\n"
    for one in many:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in many:
        one.communicate(timeout=30)
    assert [one.returncode for one in many] == [0] * 4
    assert version_of(path) == len(sqlite._migrations("crawl"))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT COUNT(*) FROM owner").fetchone() == (1,)


# Durability and readers


def test_commits_survive_a_power_cut_and_let_others_read(path):
    with closing(CrawlStore(path)) as store:
        assert store.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store.db.execute("PRAGMA synchronous").fetchone() == (2,)
    with closing(open_file(path.with_name("home.db"), "home")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_reading_a_file_that_is_not_there_makes_none(path):
    with pytest.raises(Unknown) as raised:
        CrawlStore(path, read_only=True)
    assert raised.value.hint
    assert list(path.parent.iterdir()) == []


def test_a_reader_cannot_write_and_leaves_the_file_as_it_is(path):
    with closing(CrawlStore(path)) as store:
        token = store.take(Life.of_this_process())
    before = path.read_bytes()
    with closing(CrawlStore(path, read_only=True)) as reader:
        assert (reader.runs.list(), reader.commits.next_ids()) == ([], (1, 1, 1))
        for write in (lambda: reader.take(Life.of_this_process()), lambda: reader.owner.beat(token)):
            with pytest.raises(Broken) as raised:
                write()
            assert "written" in raised.value.hint
    assert path.read_bytes() == before


def test_whoever_reads_first_after_an_upgrade_brings_the_file_up_to_date(path, steps):
    steps(ONE)
    open_file(path, "crawl").close()
    steps(ONE, TWO)
    with closing(open_file(path, "crawl", read_only=True)) as reader, pytest.raises(Broken):
        reader.execute("CREATE TABLE three (n)")
    assert (version_of(path), tables_of(path)) == (2, {"one", "two"})


def test_a_reader_works_while_the_owner_is_in_a_transaction(path):
    with closing(CrawlStore(path)) as store, closing(CrawlStore(path, read_only=True)) as reader:
        token = store.take(Life(7, "here", "boot", 1))
        with store.commits.committing(token):
            store.db.execute("UPDATE owner SET pid = 8")
            assert reader.owner.life().pid == 7
        assert reader.owner.life().pid == 8


def test_a_reader_brings_an_older_file_up_to_date_unless_somebody_works_on_it(path, steps):
    """Only an owner changes the tables: whoever reads is it for a moment, and leaves alone who is it already."""
    steps(ONE)
    open_file(path, "crawl").close()
    steps(ONE, TWO)
    owner = OwnerLock(path.parent)
    assert owner.acquire()
    with pytest.raises(NotNow):
        open_file(path, "crawl", read_only=True)
    assert (version_of(path), tables_of(path)) == (1, {"one"})
    owner.release()
    open_file(path, "crawl", read_only=True).close()
    assert version_of(path) == 2
    assert owner.acquire(), "it is the owner for no longer than that takes"
    owner.release()


# Damage


def test_a_file_that_is_no_database_is_named_with_a_way_out(path):
    path.write_bytes(b"This is not a database, however long one looks at it. " * 100)
    for read_only in (False, True):
        with pytest.raises(Broken) as raised:
            CrawlStore(path, read_only=read_only)
        assert str(path) in raised.value.message
        assert "damaged" in raised.value.hint


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.owner.beat(1),
        lambda store: store.owner.life(),
        lambda store: store.runs.list(),
        lambda store: store.queue.lanes(1),
        lambda store: store.queue.pending(1, 1, None, 10),
    ],
    ids=["beat", "owner", "runs", "lanes", "pending"],
)
def test_damaged_pages_are_told_in_our_words_whoever_meets_them(path, act):
    CrawlStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        roots = [number for (number,) in db.execute("SELECT rootpage FROM sqlite_master")]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        for number in roots:
            file.seek((number - 1) * size)
            file.write(b"\xff" * size)
    with closing(CrawlStore(path)) as store, pytest.raises(Broken) as raised:
        act(store)
    assert "damaged" in raised.value.hint


def test_an_empty_file_is_what_a_crash_may_leave_and_its_owner_goes_on(path):
    path.touch()
    with closing(CrawlStore(path)) as store:
        assert store.take(Life.of_this_process()) == 1


def test_an_empty_file_tells_a_reader_so(path):
    path.touch()
    with pytest.raises(InchwormError) as raised, closing(CrawlStore(path, read_only=True)) as store:
        store.owner.life()
    assert raised.value.hint
    assert path.read_bytes() == b""


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(Broken) as raised:
        CrawlStore(tmp_path / "missing" / "crawl.db")
    assert "folder" in raised.value.hint


def test_a_file_that_stays_locked_is_told_with_its_owner(path, monkeypatch):
    CrawlStore(path).close()
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, closing(CrawlStore(path)) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Broken) as raised:
            store.take(Life.of_this_process())
        assert "status" in raised.value.hint


def test_a_full_disk_is_told_and_nothing_is_lost(path):
    with closing(CrawlStore(path)) as store:
        token = store.take(Life.of_this_process())
        pages = store.db.execute("PRAGMA page_count").fetchone()[0]
        store.db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(Broken) as raised, store.commits.committing(token):
            store.db.execute("INSERT INTO host (name) VALUES (?)", ("x" * 1_000_000,))
        assert "disk space" in raised.value.hint
        store.owner.beat(token)
        assert store.hosts.all() == {}


# What older versions wrote


def loaded(dump: Path, folder: Path) -> Path:
    path = folder / "crawl.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump.read_text())
    return path


CRAWLS = sorted(DATA.glob("crawl_*.sql"))
HOMES = sorted(DATA.glob("home_*.sql"))
SITE = "http://127.0.0.1:8765"


@pytest.mark.parametrize("schema", ["crawl", "home"])
def test_there_is_old_data_of_every_version_that_is_upgraded(schema):
    numbers = {int(re.search(r"\d+", dump.name)[0]) for dump in DATA.glob(f"{schema}_*.sql")}
    assert numbers >= {1, *range(1, len(sqlite._migrations(schema)))}


@pytest.mark.parametrize("dump", CRAWLS, ids=lambda dump: dump.stem)
def test_an_old_crawl_is_upgraded_and_tells_what_it_knew(dump, tmp_path):
    path = loaded(dump, tmp_path)
    assert version_of(path) == int(re.search(r"\d+", dump.name)[0])
    with closing(CrawlStore(path)) as store:
        assert version_of(path) == len(sqlite._migrations("crawl"))
        checks, run = RecordChecks(store), store.runs.get()
        counted = checks.recount(run.run_id)
        assert counted == {name: getattr(run.counters, name) for name in counted}
        assert (checks.faults(run.run_id), checks.integrity()) == ([], "ok")
        frontier = FrontierReader(store, run.run_id)
        page = frontier.find(f"{SITE}/b")
        assert (page.facts.state, page.request_url, page.facts.found_on) == ("done", f"{SITE}/b/", f"{SITE}/")
        assert [visit.title for visit in VisitReader(store).of_url(run.run_id, page.url_id)] == ["B"]
        assert frontier.find(f"{SITE}/private").facts.reason == "robots"
        assert [one.ended_by for one in store.sessions.of(run.run_id)] == ["budget"]


@pytest.mark.parametrize("dump", CRAWLS, ids=lambda dump: dump.stem)
def test_an_old_crawl_goes_on_where_it_was(dump, tmp_path):
    with closing(CrawlStore(loaded(dump, tmp_path))) as store:
        token, run = store.take(Life.of_this_process()), store.runs.get()
        number = store.sessions.start(token, run, "{}", 0)
        waiting = store.queue.pending(run.run_id, store.queue.lanes(run.run_id)[0], None, 100)
        assert [entry.url for entry in waiting] == [f"{SITE}/n", f"{SITE}/from-sitemap", f"{SITE}/flaky"]
        frozen = make({name: value for name, value in run.settings.items() if name != "replay"})
        ledger = Ledger(store, NoArchive(), run, Author(number, token), frozen)
        ledger.commit([FinishedVisit(entry, 0, Outcome.PAGE, text_hash=entry.url.encode()) for entry in waiting])
        assert (store.runs.get().seq, store.runs.get().counters.pending) == (run.seq + 3, 0)
        assert RecordChecks(store).faults(run.run_id) == []


def branched(*origins: int | None) -> str:
    """More runs beside the one in a dump, each a branch of another, or none."""
    rows = [(number + 1, number, origin) for number, origin in enumerate(origins, 1)]
    insert = "INSERT INTO run (run_id, number, mode, state, settings, created_ms, horizon, origin) VALUES "
    return insert + ", ".join(
        f"({run_id}, {number}, 'full', 'completed', '{{}}', 1, {run_id if origin is None else origin + 1}, {origin})"
        if origin is not None
        else f"({run_id}, {number}, 'full', 'completed', '{{}}', 1, {run_id}, NULL)"
        for run_id, number, origin in rows
    )


@pytest.mark.parametrize(
    ("origins", "line", "follows"),
    [
        ((None, None), [0, 1, 2], [None, 1, 2]),
        ((None, 0, 1), [0, 1], [None, 1, None, 1]),
        # What was built on a branch stays as it was judged: by all runs before it.
        ((0, None, 2), [0, 1, 2], [None, 1, 2, 2]),
    ],
    ids=["no branch", "branches at the end", "a branch in between"],
)
def test_branches_of_old_crawls_lie_beside_the_line_unless_something_builds_on_them(origins, line, follows, tmp_path):
    path = loaded(DATA / "crawl_0005.sql", tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(branched(*origins))
    with closing(CrawlStore(path)) as store:
        runs = store.runs.list()
        assert [run.number for run in runs if not run.beside] == line
        assert [run.follows for run in runs] == follows
        assert store.runs.line_end().number == line[-1]


@pytest.mark.parametrize("dump", HOMES, ids=lambda dump: dump.stem)
def test_an_old_home_knows_its_crawls(dump, tmp_path):
    shutil.move(loaded(dump, tmp_path), tmp_path / "home.db")
    with closing(Home(tmp_path)) as home:
        crawls = KnownCrawls(home)
        crawl = crawls.find("old")
        assert (crawl.seeds, check("delay", crawl.settings["delay"])) == ((f"{SITE}/",), 0)
        assert crawls.find("", f"{SITE}/") == crawl
    assert version_of(tmp_path / "home.db") == len(sqlite._migrations("home"))


def test_an_old_home_knows_its_jobs(tmp_path):
    """The last dumps are of an older version with the tables of today: what stands in them as JSON is read, too."""
    shutil.move(loaded(DATA / "home_0003.sql", tmp_path), tmp_path / "home.db")
    with closing(Home(tmp_path)) as home:
        (job,) = Jobs(home).find(JobFilter(), None, 10)
    assert (job.state, job.interval_count, job.interval_unit, job.max_retries) == ("scheduled", 6, "hours", 5)
    assert job.task == Task(mode=Mode.FULL, settings={"budget": 9})
    assert job.repetition == JobRepetition(3, stop_if_no_changes=True)
