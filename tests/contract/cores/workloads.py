"""Workloads: a Deployment is rolled out, changed, and loses pods; a Job runs."""

import itertools
import random

from podyard.cluster.documents import DocumentView
from podyard.cluster.view import ClusterView
from podyard.shell.folds import Folds
from podyard.workloads.core import actions
from podyard.workloads.core.controller import Workloads
from podyard.workloads.core.templates import Maker
from podyard.workloads.reading import ViewLookup, folds
from tests.contract.cores.recording import Case
from tests.unit.workloads.stage import Stage, deployment, job, replica_set


def begin() -> tuple[Workloads, Folds]:
    cluster, documents = ClusterView(), DocumentView()
    uids = itertools.count(1)
    maker = Maker(ViewLookup(documents), lambda: f"made-{next(uids)}", random.Random(7))
    return Workloads(cluster, documents, maker), folds(cluster, documents)


def play() -> None:
    stage = Stage()
    stage.apply(deployment(3))
    stage.settle()
    stage.run_all()
    stage.apply(deployment(3, image="web:2"))
    for _ in range(6):
        stage.settle()
        stage.run_all()
    stage.apply(replica_set(2, "alone"))
    stage.apply(job())
    stage.settle()
    names = stage.run_all()
    stage.evict(names[0], trace="00-1-2-01")
    stage.settle()
    fail(stage)
    stage.remove("replicasets", "alone")
    stage.pass_time(5.0)
    stage.pass_time(301.0)


def fail(stage: Stage) -> None:
    """Writes fail; their owner is looked at again after a while."""
    stage.hold = True
    stage.change("replicasets", "alone", lambda found: found["spec"].update(replicas=3))
    stage.pass_time(0.1)
    failed = list(stage.held)
    stage.held.clear()
    assert failed
    for work in failed:
        stage.step(actions.Done(work.owner, 0, ("not now",)))
    stage.hold = False
    for _ in range(10):
        stage.pass_time(0.1)


CASE = Case("workloads", Workloads, Folds, play, begin, actions.Tick(), (actions.Done,))
