"""The composition root: every read and every act of one home, made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inchworm.app.workspace import Workspace

if TYPE_CHECKING:
    from inchworm.app.act.admit import Admission
    from inchworm.app.act.check import Checker
    from inchworm.app.act.choice import RunChooser
    from inchworm.app.act.configure import Configurer
    from inchworm.app.act.content.export import Exporter
    from inchworm.app.act.content.extract import Extractor
    from inchworm.app.act.content.index import Indexer
    from inchworm.app.act.deliver import Deliverer
    from inchworm.app.act.jobs.change import JobActs
    from inchworm.app.act.jobs.dispatch import Dispatcher
    from inchworm.app.act.jobs.execute import Executor
    from inchworm.app.act.jobs.hand_over import HandOver
    from inchworm.app.act.jobs.repetition import Repetitions
    from inchworm.app.act.plan import Planner
    from inchworm.app.act.queue import QueueActs
    from inchworm.app.act.repeat import Repeater
    from inchworm.app.act.steer import Steering
    from inchworm.app.act.work import SessionWorker
    from inchworm.app.read.changes import Changes
    from inchworm.app.read.checkpoints import Checkpoints
    from inchworm.app.read.comparisons import Comparisons
    from inchworm.app.read.content.bodies import PageBodies
    from inchworm.app.read.content.feed import Feeds
    from inchworm.app.read.content.pages import Pages
    from inchworm.app.read.content.search import TextSearch
    from inchworm.app.read.content.site import SiteTree
    from inchworm.app.read.crawls import Crawls
    from inchworm.app.read.executions import ExecutionReads
    from inchworm.app.read.frontier import FrontierRows
    from inchworm.app.read.health import HomeHealth
    from inchworm.app.read.iterations import Iterations
    from inchworm.app.read.jobs import JobReads
    from inchworm.app.read.notifications import Notifications
    from inchworm.app.read.progress import RunProgress
    from inchworm.app.read.reports import RunReports
    from inchworm.app.read.runs import Runs
    from inchworm.ports import Clock


class App:
    """Everything that can be read and done in one home. Parts are loaded when they are asked for: whoever looks at a
    crawl does not wait for what exports need."""

    def __init__(self, folder: Path | None = None, clock: Clock | None = None) -> None:
        self.workspace = Workspace(folder, clock)
        self.home, self.folder = self.workspace.home, self.workspace.folder

    @property
    def clock(self) -> Clock:
        return self.workspace.clock

    def close(self) -> None:
        self.workspace.close()

    # Reads

    @cached_property
    def runs(self) -> Runs:
        from inchworm.app.read.runs import Runs

        return Runs(self.workspace)

    @cached_property
    def jobs(self) -> JobReads:
        from inchworm.app.read.jobs import JobReads

        return JobReads(self.workspace)

    @cached_property
    def executions(self) -> ExecutionReads:
        from inchworm.app.read.executions import ExecutionReads

        return ExecutionReads(self.workspace, self.jobs)

    @cached_property
    def crawls(self) -> Crawls:
        from inchworm.app.read.crawls import Crawls

        return Crawls(self.workspace, self.runs, lambda: self.jobs)

    @cached_property
    def iterations(self) -> Iterations:
        from inchworm.app.read.iterations import Iterations

        return Iterations(self.workspace, self.runs)

    @cached_property
    def progress(self) -> RunProgress:
        from inchworm.app.read.progress import RunProgress

        return RunProgress(self.workspace)

    @cached_property
    def comparisons(self) -> Comparisons:
        from inchworm.app.read.comparisons import Comparisons

        return Comparisons(self.workspace)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        from inchworm.app.read.checkpoints import Checkpoints

        return Checkpoints(self.workspace)

    @cached_property
    def frontier(self) -> FrontierRows:
        from inchworm.app.read.frontier import FrontierRows

        return FrontierRows(self.workspace, self.runs)

    @cached_property
    def changes(self) -> Changes:
        from inchworm.app.read.changes import Changes

        return Changes(self.workspace)

    @cached_property
    def feeds(self) -> Feeds:
        from inchworm.app.read.content.feed import Feeds

        return Feeds(self.workspace, self.comparisons)

    @cached_property
    def reports(self) -> RunReports:
        from inchworm.app.read.reports import RunReports

        return RunReports(self.workspace)

    @cached_property
    def notifications(self) -> Notifications:
        from inchworm.app.read.notifications import Notifications

        return Notifications(self.workspace)

    @cached_property
    def health(self) -> HomeHealth:
        from inchworm.app.read.health import HomeHealth

        return HomeHealth(self.workspace, self.jobs, self.executions, self.crawls)

    @cached_property
    def pages(self) -> Pages:
        from inchworm.app.read.content.pages import Pages

        return Pages(self.workspace)

    @cached_property
    def bodies(self) -> PageBodies:
        from inchworm.app.read.content.bodies import PageBodies

        return PageBodies(self.workspace)

    @cached_property
    def search(self) -> TextSearch:
        from inchworm.app.read.content.search import TextSearch

        return TextSearch(self.workspace)

    @cached_property
    def site(self) -> SiteTree:
        from inchworm.app.read.content.site import SiteTree

        return SiteTree(self.workspace)

    # Acts

    @cached_property
    def admission(self) -> Admission:
        from inchworm.app.act.admit import Admission

        return Admission(self.workspace)

    @cached_property
    def plan(self) -> Planner:
        from inchworm.app.act.plan import Planner

        return Planner(self.workspace)

    @cached_property
    def chooser(self) -> RunChooser:
        from inchworm.app.act.choice import RunChooser

        return RunChooser(self.workspace)

    @cached_property
    def sessions(self) -> SessionWorker:
        from inchworm.app.act.work import SessionWorker

        return SessionWorker(self.workspace, self.chooser)

    @cached_property
    def steer(self) -> Steering:
        from inchworm.app.act.steer import Steering

        return Steering(self.workspace, self.runs, self.checkpoints)

    @cached_property
    def queue(self) -> QueueActs:
        from inchworm.app.act.queue import QueueActs

        return QueueActs(self.workspace, self.frontier)

    @cached_property
    def schedule(self) -> JobActs:
        from inchworm.app.act.jobs.change import JobActs

        return JobActs(self.workspace, self.jobs, self.plan)

    @cached_property
    def hand_over(self) -> HandOver:
        from inchworm.app.act.jobs.hand_over import HandOver

        return HandOver(self.workspace, self.chooser, self.jobs, self.executions, self.checkpoints, self.schedule)

    @cached_property
    def configure(self) -> Configurer:
        from inchworm.app.act.configure import Configurer

        return Configurer(self.workspace, self.executions, self.plan, self.schedule)

    @cached_property
    def repetition(self) -> Repetitions:
        from inchworm.app.act.jobs.repetition import Repetitions

        return Repetitions(self.workspace, self.runs, self.jobs, self.schedule)

    @cached_property
    def deliver(self) -> Deliverer:
        from inchworm.app.act.deliver import Deliverer

        return Deliverer(self.workspace, self.runs, self.changes, self.notifications)

    @cached_property
    def repeat(self) -> Repeater:
        from inchworm.app.act.repeat import Repeater

        return Repeater(self.workspace, self.sessions, self.runs, self.deliver)

    @cached_property
    def dispatch(self) -> Dispatcher:
        from inchworm.app.act.jobs.dispatch import Dispatcher

        return Dispatcher(self.workspace, self.executions, self.admission, self.deliver)

    @cached_property
    def execute(self) -> Executor:
        from inchworm.app.act.jobs.execute import Executor

        return Executor(self.workspace, self.runs, self.sessions, self.deliver)

    @cached_property
    def check(self) -> Checker:
        from inchworm.app.act.check import Checker

        return Checker(self.workspace, self.crawls)

    @cached_property
    def export(self) -> Exporter:
        from inchworm.app.act.content.export import Exporter

        return Exporter(self.workspace)

    @cached_property
    def extract(self) -> Extractor:
        from inchworm.app.act.content.extract import Extractor

        return Extractor(self.workspace, self.configure)

    @cached_property
    def index(self) -> Indexer:
        from inchworm.app.act.content.index import Indexer

        return Indexer(self.workspace)
