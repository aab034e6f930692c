"""inchworm as a library: one class, plain functions as callbacks, nothing to subclass.

Whatever the command line can do to a crawl is a method here, and calls the same verb of `app`. Only `run` crawls; what
goes back, branches off or opens failed URLs again is carried on by the next `run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, Unpack, cast, get_args

from inchworm import settings as all_settings
from inchworm import told
from inchworm.app import FORMATS, App, Start, Target, whole_file
from inchworm.app.act.configure import Configuration
from inchworm.app.act.content.selection import ExportOptions
from inchworm.app.fields import NAMES, FieldRequest, Function, OwnFields
from inchworm.app.read.checkpoints import Back
from inchworm.app.read.content.bodies import Watching
from inchworm.app.read.content.visits import url_line
from inchworm.engine.caller import Hooks, Summary
from inchworm.engine.loop_thread import LoopThread, has_loop
from inchworm.engine.run import shown
from inchworm.errors import Unknown, WrongUse
from inchworm.model import CrawlInfo, LiveProgress
from inchworm.page import Page
from inchworm.rules.words.json_form import json_form, json_object

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from inchworm.app.act.plan import Plan

T = TypeVar("T")

Beginning = Literal["", "resume", "next", "fresh"]
"""Which run a session is to work on."""

Mode = Literal["", "incremental", "full"]
"""How a new run relates to the ones before it."""

OnPage = Callable[[Page], None]
OnProgress = Callable[[told.Progress], None]


class Crawl:
    """A crawl of one or more seeds. Settings are those of `inchworm crawl`, by their names.

    The same seeds in the same home are the same crawl: running it again resumes it, or starts its next run. Without
    seeds it is the one that has this name.
    """

    def __init__(
        self,
        *seeds: str,
        name: str = "",
        home: Path | str | None = None,
        fields: Function | None = None,
        **settings: Any,
    ) -> None:
        """`fields`: a function of yours that takes fields out of a page, as a dict or a list of them, instead of what
        `extract` says. It is called when they are asked for; one that raises costs that page its fields."""
        given = {name: value for name, value in settings.items() if name in NAMES}
        self._fields = FieldRequest(given, OwnFields(fields) if fields else None)
        self._start = Start(seeds, name, settings)
        self._home = Path(home) if home else None

    def __repr__(self) -> str:
        return f"<Crawl {self._start.name or ', '.join(map(shown, self._start.seeds))}>"

    # Crawling

    async def run(
        self,
        on_page: OnPage | None = None,
        on_progress: OnProgress | None = None,
        *,
        start: Beginning = "",
        mode: Mode = "",
    ) -> Summary:
        """One session: until its run is complete, at a limit, or paused. To cancel it is to pause it.

        It goes on with the run that is open, or starts the next one. `start`: only "resume" the open one, end it and
        start the "next" one, or give up what is open and start over "fresh". `on_page` is shown every page and resource
        when it is on record, failed ones too; `on_progress` how it goes, a few times a second and at the end.
        """
        _refuse_other(start, mode)
        with self._app() as app, _watched(app, on_page, on_progress) as hooks:
            return await app.sessions.work(self._plan(app, start, mode), hooks)

    def _plan(self, app: App, start: Beginning, mode: Mode) -> Plan:
        if self._start.seeds and start in ("", "fresh"):
            return app.plan.crawl(dataclasses.replace(self._start, fresh=start == "fresh", mode=mode))
        crawl, given = self._crawl(app), self._start.given
        seeds = self._start.seeds or crawl.seeds
        if start == "resume":
            return app.plan.resume(crawl.crawl_id, given, seeds=seeds)
        if start == "next":
            return app.plan.recrawl(crawl.crawl_id, mode, given, seeds=seeds)
        return app.plan.crawl(Start(seeds, crawl.name, given, start == "fresh", mode))

    def run_sync(
        self,
        on_page: OnPage | None = None,
        on_progress: OnProgress | None = None,
        *,
        start: Beginning = "",
        mode: Mode = "",
    ) -> Summary:
        """`run` for programs without an event loop, and for notebooks, which have one that runs already. Ctrl-C pauses
        the crawl, and is raised as `KeyboardInterrupt` when that is done. Callbacks are called in this thread."""
        if not has_loop():
            return asyncio.run(self.run(on_page, on_progress, start=start, mode=mode))
        thread = LoopThread[Summary]()
        page = thread.relay(on_page) if on_page else None
        progress = thread.relay(on_progress) if on_progress else None
        return thread.run(lambda: self.run(page, progress, start=start, mode=mode))

    def pause(self) -> str:
        """Ask the process that works on this crawl to pause; the state of its run then."""
        with self._app() as app:
            return str(app.steer.pause(self._crawl(app).crawl_id))

    def cancel(self) -> str:
        """End the open run for good; its pages stay."""
        with self._app() as app:
            return str(app.steer.cancel(self._crawl(app).crawl_id))

    def retry(self, kind: str | None = None, url: str | None = None) -> int:
        """Open failed URLs again, those of a kind, one, or all; how many. The next session fetches them."""
        with self._app() as app:
            return app.queue.retry(self._crawl(app).crawl_id, kind, url)

    # Checkpoints

    def checkpoints(self) -> list[told.Checkpoint]:
        """All there are, oldest first."""
        with self._app() as app:
            return _each_told(told.Checkpoint, app.checkpoints.list(self._crawl(app)))

    def checkpoint(self) -> told.Checkpoint:
        """Make one now: a place to come back to."""
        with self._app() as app:
            return _told(told.Checkpoint, app.steer.checkpoint(self._crawl(app).crawl_id))

    def delete_checkpoint(self, checkpoint: int | str) -> None:
        with self._app() as app:
            app.steer.delete_checkpoint(self._crawl(app).crawl_id, checkpoint)

    def keep_checkpoints(self, last: int) -> int:
        """Delete all but the last so many; how many went."""
        with self._app() as app:
            return app.steer.keep_checkpoints(self._crawl(app).crawl_id, last)

    def export_checkpoint(self, checkpoint: int | str, target: Path | str | BinaryIO) -> int:
        """Write the whole state at a checkpoint as gzipped JSON; how many URLs are in it."""
        with self._app() as app, _written(target, is_binary=True) as out:
            return app.checkpoints.export(self._crawl(app), checkpoint, out)

    def go_back(self, checkpoint: int | str, validate: bool = True) -> int:
        """Undo what came after a checkpoint, pages, discoveries and archive; the run that is open again. The next
        session crawls on from there. `validate`: see first that state and archive are what they were."""
        with self._app() as app:
            back = Back(checkpoint, False, validate)
            return app.sessions.go_back(app.plan.continue_from(self._crawl(app).crawl_id, back)).number

    def branch(self, checkpoint: int | str | None = None, validate: bool = True, **settings: Any) -> Crawl:
        """Leave the run as it is and branch off a new one, at a checkpoint or where it stands, with settings of its
        own. Returns the crawl as it runs with these: its `run` crawls on from there."""
        with self._app() as app:
            crawl = self._crawl(app)
            back = Back(checkpoint, True, validate)
            app.sessions.go_back(app.plan.continue_from(crawl.crawl_id, back, settings))
        kept = {name: value for name, value in self._start.given.items() if not all_settings.belongs_to_run(name)}
        function, values = self._fields.own.function if self._fields.own else None, {**kept, **settings}
        return Crawl(*self._start.seeds, name=self._start.name, home=self._home, fields=function, **values)

    # Pages

    def pages(self, **wanted: Unpack[told.Which]) -> Iterator[Page]:
        """The pages of the crawl as it is now, one after the other; `only=`, `since=`, `run=` and `unique=` choose
        others (`told.Which`). Each is read from the archive when it is asked for something.

        Pages may be kept: they hold no file open, and can be asked for more while others are taken and afterwards,
        in any thread, until the crawl is deleted or goes back behind them; then they are lost (`is_lost`). Nothing
        stays open when the iterator is dropped.
        """
        asked = self._wanted(wanted, told.Which)
        with self._app() as app:
            word = self._crawl(app).crawl_id
            app.export.check_wanted(word, asked)
        return self._streamed(lambda app: app.export.stored_pages(word, asked))

    def page(self, url: str, run: int | None = None, frame: told.Frame | None = None) -> Page:
        """One page by its address: what the crawl has of it now, or what a run has. One that was there and is gone says
        so (`is_gone`), and has its last text as `previous`. `frame`: "keep" for a text with what stands on most pages
        of its host."""
        with self._app() as app:
            return app.bodies.page(self._crawl(app).crawl_id, url, run, self._fields, frame or "")

    def rows(self, **wanted: Unpack[told.Which]) -> Iterator[dict[str, Any]]:
        """The fields of these pages, as `extract` says or your function takes them: a dict for each page, or for each
        match, with the `url` of its page."""
        asked = self._wanted(wanted, told.Which)
        with self._app() as app:
            word = self._crawl(app).crawl_id
            app.export.check_fields(word, asked)
        return self._streamed(lambda app: app.export.field_rows(word, asked))

    def extract(
        self, extract: told.Fields | None = None, each: str | None = None, rebuild: bool = False
    ) -> told.Extracted:
        """Take the fields of all pages from the archive, without a request; how many pages have each. Rules that are
        named are kept with the crawl. `rebuild`: also those that were taken by the same rules."""
        with self._app() as app:
            found = app.extract.extract(self._crawl(app).crawl_id, _rules(extract, each), rebuild)
        return _told(told.Extracted, found)

    def try_fields(self, url: str = "", extract: told.Fields | None = None, each: str | None = None) -> dict[str, Any]:
        """What these rules find on one page, or on the first pages where they find something. Nothing is kept."""
        with self._app() as app:
            return _told(dict[str, Any], app.extract.try_fields(self._crawl(app).crawl_id, url, _rules(extract, each)))

    @property
    def field_errors(self) -> int:
        """How many times a page had no fields, because your function raised."""
        return self._fields.own.failed if self._fields.own else 0

    def to_arrow(self, **wanted: Unpack[told.Table]) -> pyarrow.Table:
        """The table that an export holds, in memory; `columns=`, `with_=` and what `pages` takes choose (`told.Table`).
        For a crawl that is larger than memory there is `to_batches`."""
        return self.to_batches(**wanted).read_all()

    def to_batches(self, **wanted: Unpack[told.Table]) -> pyarrow.RecordBatchReader:
        """The same in parts of a bounded size, which are made while they are read: for a loop, for DuckDB, for
        writers."""
        asked = self._wanted(wanted, told.Table)
        with self._app() as app:
            word = self._crawl(app).crawl_id
            schema = app.export.table_schema(word, asked)
        made = self._streamed(lambda app: app.export.batches(word, asked))
        return _needed("pyarrow", "parquet").RecordBatchReader.from_batches(schema, made)

    def to_pandas(self, **wanted: Unpack[told.Table]) -> pandas.DataFrame:
        """The same as a DataFrame of pandas."""
        _needed("pandas")
        return self.to_batches(**wanted).read_pandas()

    def to_polars(self, **wanted: Unpack[told.Table]) -> polars.DataFrame:
        """The same as a DataFrame of polars."""
        made = _needed("polars").from_arrow(self.to_batches(**wanted))
        return cast("polars.DataFrame", made)

    def export(
        self,
        format: str,  # noqa: A002 - what everybody calls it
        target: Path | str | BinaryIO,
        **wanted: Unpack[told.Export],
    ) -> told.Exported:
        """Write the crawl in a format of `inchworm export`, to a file, or to a folder where the format takes one. A
        file is there when it is whole, and is compressed when its name ends in .gz or .zst."""
        asked, form = self._wanted(wanted, told.Export), FORMATS.get(format)
        with self._app() as app:
            word = self._crawl(app).crawl_id
            if isinstance(target, (str, Path)) and form and _takes_folder(form.target, Path(target)):
                written = app.export.to_folder(word, format, Path(target), asked)
            else:
                with _written(target, is_binary=bool(form and form.is_binary)) as out:
                    written = app.export.to_file(word, format, out, asked)
            return told.Exported(written.files, written.skipped, written.lost, app.export.next_since(word))

    # Looking

    def status(self) -> told.Status:
        """Where the crawl stands."""
        with self._app() as app:
            found = json_object(app.crawls.status(self._crawl(app)))
        found |= {"bytes": found.pop("size"), "saved_bytes": found.pop("saved")}
        return _told(told.Status, found)

    def runs(self) -> list[told.Run]:
        """Every run with what it found and what it saved."""
        with self._app() as app:
            return _each_told(told.Run, app.runs.list(self._crawl(app)))

    def statistics(self) -> dict[str, Any]:
        """What all runs together cost, and what they saved against full crawls."""
        with self._app() as app:
            return _told(dict[str, Any], app.iterations.costs(self._crawl(app)))

    def make_line(self, run: int) -> None:
        """Have later runs build on this one and go by its settings; the others stay, beside the line."""
        with self._app() as app:
            app.steer.make_line(self._crawl(app).crawl_id, run)

    def compare(self, first: int | None = None, second: int | None = None) -> told.Comparison:
        """What changed between two runs; without numbers between the last one and the one it builds on."""
        with self._app() as app:
            return _told(told.Comparison, app.changes.compare(self._crawl(app).crawl_id, first, second))

    def diff(self, url: str, first: int | None = None, second: int | None = None) -> told.Diff:
        """What changed on one page between two runs: title, text and links, line by line."""
        with self._app() as app:
            return _told(told.Diff, app.changes.diff(self._crawl(app).crawl_id, url, first, second))

    def feed(self) -> bytes:
        """The feed of what the last runs found changed, with what differs (Atom)."""
        with self._app() as app:
            return app.feeds.written(self._crawl(app))

    def search(self, text: str, limit: int = 10, frame: told.Frame | None = None) -> told.Results:
        """Pages that say this, in their newest version. `frame`: "keep" to find also what stands on most pages of a
        host."""
        with self._app() as app:
            return _told(told.Results, app.search.find(self._crawl(app).crawl_id, text, limit, frame=frame or ""))

    def report(self, name: str, run: int | None = None, limit: int | None = None) -> dict[str, Any]:
        """What a run found wrong, and what is slow: broken-links, redirects, duplicates, errors or slow."""
        with self._app() as app:
            return _told(dict[str, Any], app.reports.one(self._crawl(app).crawl_id, name, run, limit))

    def why(self, url: str, run: int | None = None) -> told.Why:
        """Why a URL was or was not crawled."""
        with self._app() as app:
            return _told(told.Why, app.pages.why(self._crawl(app).crawl_id, url, run))

    def show(self, url: str, run: int | None = None) -> dict[str, Any]:
        """All that a run knows of a URL, whatever became of it, with every visit."""
        with self._app() as app:
            return _told(dict[str, Any], url_line(app.pages.one(self._crawl(app).crawl_id, url, run)))

    def failed(self, kind: str | None = None) -> list[told.Visit]:
        """What failed in the last run, and why."""
        with self._app() as app:
            found = app.pages.failed(self._crawl(app).crawl_id, kind)
            return _each_told(told.Visit, [one.line for one in found])

    def urls(self, run: int | None = None) -> Iterator[str]:
        """Every URL requested, as requested, once, in the order of record."""
        with self._app() as app:
            yield from app.pages.requested_urls(self._crawl(app).crawl_id, run)

    def visits(self, run: int | None = None) -> Iterator[told.Visit]:
        """Every visit to a page or resource, in the order of record."""
        with self._app() as app:
            for visit in app.pages.visits(self._crawl(app).crawl_id, run):
                yield _told(told.Visit, visit)

    # The frontier

    def queue(self) -> told.Queue:
        """The frontier of the last run in numbers."""
        with self._app() as app:
            return _told(told.Queue, app.frontier.numbers(self._crawl(app)))

    def entries(self, state: str = "", reason: str = "", after: int = 0, limit: int = 50) -> list[told.Entry]:
        """URLs of the last run in the order in which it met them, from behind a `url_id` on: all, those in a state
        (pending, done, refused), or those that were refused for a reason."""
        chosen = {name: value for name, value in (("state", state), ("reason", reason)) if value}
        with self._app() as app:
            return _each_told(told.Entry, app.frontier.list(self._crawl(app), chosen, None, after, limit))

    def add(self, url: str, depth: int = 0) -> told.Added:
        """Put a URL into the last run that nobody links to. It is judged like any other, and waits for its turn."""
        with self._app() as app:
            return _told(told.Added, app.queue.add(self._crawl(app), url, depth))

    def take_out(self, url: str) -> None:
        """Refuse a pending URL, so that it is not visited."""
        with self._app() as app:
            app.queue.take_out(app.frontier.entry_id(self._crawl(app), url))

    def dismiss(self, url: str) -> None:
        """Let nothing make the run follow a link any more that was not followed."""
        with self._app() as app:
            app.queue.dismiss(app.frontier.entry_id(self._crawl(app), url))

    def clear_queue(self) -> int:
        """Refuse every pending URL and complete the run; how many."""
        with self._app() as app:
            return app.queue.clear(self._crawl(app).crawl_id)

    # The crawl itself

    def settings(self) -> dict[str, Any]:
        """The settings that the open run, or the next one, works with."""
        with self._app() as app:
            return _told(dict[str, Any], app.crawls.settings_of(self._crawl(app)))

    def configure(
        self, *, name: str | None = None, enabled: bool | None = None, incremental: bool | None = None, **settings: Any
    ) -> None:
        """Set what holds for every session, whoever starts it; a setting that is None is taken away. `name`: what to
        call the crawl from now on; `enabled`: whether its jobs run; `incremental`: whether a start goes on with an
        open run."""
        with self._app() as app:
            app.configure.change(self._crawl(app).crawl_id, Configuration(name, settings or None, incremental, enabled))
        if name is not None and self._start.name:
            self._start = dataclasses.replace(self._start, name=name)

    def index(self, rebuild: bool = False) -> dict[str, Any]:
        """Bring the search server that the crawl was given up to date; what it was told."""
        with self._app() as app:
            return _told(dict[str, Any], app.index.update(self._crawl(app).crawl_id, rebuild))

    def delete(self) -> None:
        """Remove the crawl: its record, its archive, everything."""
        with self._app() as app:
            app.configure.delete(self._crawl(app).crawl_id)

    # The ground

    def _streamed(self, stream: Callable[[App], Iterator[T]]) -> Iterator[T]:
        with self._app() as app:
            yield from stream(app)

    def _wanted(self, asked: Mapping[str, Any], known: type) -> ExportOptions:
        return _wanted(asked, known)._replace(fields=self._fields)

    @contextlib.contextmanager
    def _app(self) -> Iterator[App]:
        app = App(self._home)
        try:
            yield app
        finally:
            app.close()

    def _crawl(self, app: App) -> CrawlInfo:
        """This crawl, which has its name or all of its seeds, and no other that shares one of them."""
        if not self._start.seeds and self._start.name:
            return app.workspace.find(self._start.name)
        found = app.workspace.find_by_seeds(self._start.seeds, self._start.name)
        if found is None:
            what = self._start.name or ", ".join(shown(seed) for seed in self._start.seeds)
            raise Unknown(f"{what} has not been crawled in {app.folder} yet.", "Call run() first.")
        return found


def _refuse_other(start: str, mode: str) -> None:
    for said, known in ((start, Beginning), (mode, Mode)):
        if said not in get_args(known):
            raise WrongUse(f"{said!r} is no way to run.", f"Known ones: {', '.join(filter(None, get_args(known)))}.")
    if start == "resume" and mode:
        raise WrongUse("A run that goes on keeps its mode.", "Leave `mode` out.")


@contextlib.contextmanager
def _watched(app: App, on_page: OnPage | None, on_progress: OnProgress | None) -> Iterator[Hooks]:
    """How callbacks take part in a session. Nobody pays for one that is not there."""
    moved = (lambda progress: on_progress(_progress(progress))) if on_progress else None
    if on_page is None:
        yield Hooks(None, moved)
        return
    with contextlib.closing(Watching(app.workspace, on_page)) as watching:
        yield Hooks(watching.started, moved, watching.visited)


def _told(_kind: type[T], found: object) -> T:
    """What `app` answers with as the dict that is promised: by the names of its fields."""
    return cast(T, json_form(found))


def _each_told(kind: type[T], found: Iterable[object]) -> list[T]:
    return [_told(kind, one) for one in found]


_COUNTED = ("known", "pending", "pages", "duplicates", "unchanged", "failed", "refused")


def _progress(now: LiveProgress) -> told.Progress:
    numbers = {name: getattr(now.counters, name) for name in _COUNTED}
    own = {name: getattr(now, name) for name in ("requests", "seconds", "in_flight", "order", "is_ending")}
    return told.Progress(**numbers, **own, bytes=now.size)


_OTHERWISE = {"with_": "more", "bom": "mark"}


def _wanted(asked: Mapping[str, Any], known: type) -> ExportOptions:
    """What was asked for, in the words of `app`; of what can be asked for here."""
    if unknown := asked.keys() - known.__annotations__.keys():
        raise TypeError(f"there is no argument {min(unknown)!r}; known ones: {', '.join(known.__annotations__)}")
    values = {_OTHERWISE.get(name, name): value for name, value in asked.items()}
    for name in ("only", "columns", "more", "types"):
        values[name] = _names(values.get(name, ()))
    return ExportOptions(**{**values, "since": _moment(values.get("since"))})


def _rules(extract: told.Fields | None, each: str | None) -> dict[str, Any]:
    given = {"extract": extract, "each": each}
    return {name: value for name, value in given.items() if value is not None}


def _names(said: told.Names) -> tuple[str, ...]:
    several = said.split(",") if isinstance(said, str) else said
    return tuple(name.strip() for name in several if name.strip())


def _moment(said: told.When) -> str | None:
    return said.isoformat() if isinstance(said, date) else None if said is None else str(said)


def _takes_folder(target: Target, path: Path) -> bool:
    return target is Target.FOLDER or (target is Target.EITHER and path.is_dir())


@contextlib.contextmanager
def _written(target: Path | str | BinaryIO, is_binary: bool) -> Iterator[BinaryIO]:
    if isinstance(target, (str, Path)):
        with whole_file(Path(target), is_binary) as out:
            yield out
    else:
        yield target


def _needed(package: str, extra: str = "") -> Any:
    """A package that only some need, or how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        extra = extra or package
        raise WrongUse(f"This needs {package}.", f"Install it: pip install 'inchworm[{extra}]'") from error
