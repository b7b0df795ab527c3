"""A cluster for plans: nodes and pods that lie in CLUSTER, one cycle of the descheduler's core over them, and
a scheduler that places what comes in the place of each pod that went."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.configuration.model import Configuration, default
from podyard.descheduler.core.cycle import Attempt, CycleRecord
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.effects import CycleEnded, Evict, List, Remember
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionResult
from podyard.descheduler.core.framework import Answer, Plugin
from podyard.descheduler.core.messages import EvictionAnswered, Listed, Tick
from podyard.descheduler.core.policy import Policy
from podyard.framework.cycle import Cycle
from podyard.framework.snapshot import Snapshot
from podyard.objects.errors import QuantityError
from podyard.objects.pod import PodStatus
from podyard.proto.moves import MoveRecord
from podyard.proto.placement import BoundPod, Usage
from tests.support import objects, stored
from tests.support.stream import ClusterStream
from tests.unit.descheduler.make import NOW, known

Document = dict[str, Any]


def owned(owner: str) -> Document:
    """Metadata of a pod of this ReplicaSet."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"rs-{owner}", "controller": True}
    return {"ownerReferences": [reference], "labels": {"app": owner}}


def pod(name: str, owner: str = "web", *, metadata: Mapping[str, Any] | None = None, **more: Any) -> Document:
    """A pod of a ReplicaSet; `more` as of `objects.pod`, `owner=""` makes it bare."""
    made = {**(owned(owner) if owner else {}), **(metadata or {})}
    return objects.pod(name, metadata=made, **more)


def view_of(
    nodes: Iterable[Document],
    placed: Mapping[str, Iterable[Document]],
    others: Iterable[tuple[str, Document]] = (),
    now: float = NOW,
) -> ClusterView:
    """The cluster as a listing finds it.

    :param placed: pods by their node; those of "" have none
    :param others: resource and object
    """
    stream, commits = ClusterStream(lambda: now), 0
    for one in nodes:
        stream.put(stored.version("nodes", one))
    for resource, document in others:
        stream.put(stored.version(resource, document))
    for node, pods in placed.items():
        for document in pods:
            stream.put(stored.version("pods", document))
            if not node:
                continue
            metadata, commits = document["metadata"], commits + 1
            view = objects.view(document)
            bound = BoundPod(
                namespace=metadata["namespace"],
                name=metadata["name"],
                uid=metadata["uid"],
                node=node,
                attempt=metadata["name"],
                usage=_usage(view),
                labels=view.labels,
                priority=view.priority,
            )
            stream.put_all(stored.commit(commits, bindings=[bound]))
    found = ClusterView()
    found.begin_listing()
    for delivery in stream.listed():
        found.apply(delivery)
    found.end_listing(stream.last)
    return found


def _usage(view: PodView) -> Usage:
    """What the binder would write; nothing of what is no amount."""
    try:
        return view.usage
    except QuantityError:
        return Usage()


class Scheduler:
    """Places what comes in the place of pods that went, at once."""

    def __init__(self, view: ClusterView, configuration: Configuration) -> None:
        self.table = NodeTable()
        for node in view.nodes.values():
            self.table.set_node(node.node)
        for one in view.pods.values():
            if one.bound is not None:
                self.table.place(one)
        snapshot = Snapshot(self.table, view)
        profiles = configuration.profiles()
        self._cycles = {name: Cycle(replace(made, post_filter=()), snapshot) for name, made in profiles.items()}

    def replace(self, wanted: Eviction) -> str:
        """The pod goes, and another one comes; its node, empty if nothing takes it.

        Its uid is the one that the plan gives it, by which one of several nodes that are as good is chosen.
        """
        going = wanted.pod
        self.table.remove(going.metadata.uid)
        uid = f"{going.metadata.uid}-planned"
        metadata = replace(going.metadata, uid=uid)
        stored_pod = replace(going, metadata=metadata, spec=replace(going.spec, node_name=""), status=PodStatus())
        comes = PodView(stored_pod, going.key, uid, 1)
        node = self._cycles[going.spec.scheduler_name or "default-scheduler"].run(comes).node
        if node:
            self.table.place(comes.with_placement(comes.bound_to(node), None))
        return node


class Play:
    """One cycle."""

    def __init__(
        self,
        policy: Policy,
        view: ClusterView,
        *plugins: type[Plugin],
        obey: bool = True,
        dry_run: bool = False,
        earlier: tuple[MoveRecord, ...] = (),
        configuration: Configuration | None = None,
        answer: Callable[[Eviction], EvictionResult] = lambda _: EvictionDone(),
        now: float = NOW,
        loaded: Mapping[str, type[Plugin]] | None = None,
    ) -> None:
        """
        :param answer: what becomes of an eviction that is asked for
        :param loaded: all plugins, by the names that the policy has for them
        """
        chosen = configuration or default()
        core = Descheduler(
            policy,
            loaded or known(*plugins),
            interval_s=None,
            once=True,
            dry_run=dry_run,
            profiles=chosen.profiles,
            obey=obey,
        )
        self.remembered: list[MoveRecord] = []
        self.asked: list[Eviction] = []
        wanted = core.step(Tick(), now)
        while True:
            for one in wanted:
                if isinstance(one, Remember):
                    self.remembered += one.moves
            asked = next(one for one in wanted if not isinstance(one, Remember))
            match asked:
                case List(ticket=ticket):
                    wanted = core.step(Listed(ticket, view, earlier), now)
                case Evict(ticket=ticket, eviction=eviction):
                    self.asked.append(eviction)
                    wanted = core.step(EvictionAnswered(ticket, answer(eviction)), now)
                case CycleEnded(record=record):
                    self.record: CycleRecord = record
                    return
                case other:
                    raise AssertionError(f"the cycle broke off: {other}")

    @property
    def attempts(self) -> list[Attempt]:
        return [one for step in self.record.steps for one in step.attempts]

    @property
    def moved(self) -> dict[str, str]:
        """Where pods that go are planned to go, by name."""
        return {one.name: one.planned_node for one in self.attempts if one.answer is Answer.EVICTED}

    @property
    def kept(self) -> dict[str, str]:
        """Why pods stay, by name."""
        return {one.name: one.problem for one in self.attempts if one.answer is Answer.STAYS}
