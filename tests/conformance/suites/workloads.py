"""Suite `workloads`: what the controllers of DaemonSets, StatefulSets, ReplicationControllers and CronJobs
make of scripts, step by step.

Compared is what there is when everything has come to rest: pods, claims, jobs, revisions, the status of the
object and what its spec was filled in with. Names with random ends, and hashes, are left out. Which of alike
nodes or pods is chosen is up to the reference: there only how many of which sort there are is compared.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from podyard.cluster.intents import Author, Put
from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.daemon_sets import GENERATION_LABEL, target_of
from podyard.workloads.core.revisions import POD_LABEL
from podyard.workloads.core.stateful_sets import HASH_LABEL
from tests.conformance import shapes
from tests.conformance.differences import Difference, between
from tests.unit.workloads.stage import Stage

Document: TypeAlias = dict[str, Any]

RESOURCES: Final = {
    "DaemonSet": "daemonsets",
    "StatefulSet": "statefulsets",
    "ReplicationController": "replicationcontrollers",
    "CronJob": "cronjobs",
    "Job": "jobs",
    "Node": "nodes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
_NOT_COMPARED: Final = ("template", "jobTemplate", "volumeClaimTemplates")
"""Of a spec: what pods and claims are made from is seen in these."""
_APART_S: Final = 2.0
"""Between steps of a DaemonSet: which of two pods is the older one is told in whole seconds."""
_ANY: Final = "n1"
"""The node of pods that are for none."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pods a step is about: all that are so; of these the first in the order of nodes and names."""

    name: str = ""
    node: str = ""
    image: str = ""
    terminating: bool | None = None
    started: bool | None = None
    first: int = 0


_ALL: Final = Chosen()


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a person, a scheduler or a kubelet does."""

    op: str
    object: Document = {}
    kind: str = ""
    name: str = ""
    pods: Chosen = _ALL
    ready: bool = True
    ready_for_s: int = 0
    phase: str = ""


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind, the time, and steps: after each list of them everything comes to rest."""

    kind: str
    now: int
    steps: list[list[Step]]


check = shapes.of(Given, list[dict[str, Any]])


def run(given: dict[str, Any]) -> list[Document]:
    """What Podyard makes of it, after each list of steps."""
    asked = msgspec.convert(given, Given)
    play = _Play(asked.kind, asked.now)
    return [play.after(steps) for steps in asked.steps]


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """State by state."""
    yield from between(_by_step(expected), _by_step(got))


def _by_step(states: Sequence[Document]) -> Document:
    """So that differences say after which step they are."""
    return {f"after {number}": _sorted(state) for number, state in enumerate(states, start=1)}


def _sorted(state: Document) -> Document:
    """Pods in an order that both sides know; those of a DaemonSet that was changed by how many nodes have
    which: the reference takes any first."""
    pods: list[Document] = state["pods"]
    if pods and "node" in pods[0]:
        by_node: dict[str, list[Document]] = {}
        for pod in pods:
            by_node.setdefault(pod["node"], []).append(pod)
        if max(state["revisions"]) > 1:
            nodes = [sorted((_without_place(pod) for pod in found), key=_text) for found in by_node.values()]
            return {**state, "pods": sorted(nodes, key=_text)}
    return {**state, "pods": sorted(pods, key=_text)}


def _without_place(pod: Document) -> Document:
    return {key: value for key, value in pod.items() if key not in ("node", "affinity")}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class _Play:
    """One script on the stage of workloads."""

    def __init__(self, kind: str, now: int) -> None:
        self._kind = kind
        self._stage = Stage(now=float(now))

    def after(self, steps: Sequence[Step]) -> Document:
        """What there is after these steps."""
        if self._kind == "DaemonSet":
            self._stage.pass_time(_APART_S)
        for step in steps:
            self._take(step)
        self._stage.settle()
        return self._state()

    # ---- steps ---------------------------------------------------------------------------------------------

    def _take(self, step: Step) -> None:
        match step.op:
            case "apply":
                self._apply(step.object)
            case "delete":
                self._stage.remove(RESOURCES[step.kind], step.name, namespace="" if step.kind == "Node" else "default")
            case "start":
                self._start(step)
            case "end":
                self._end(step)
            case "evict":
                self._evict(step)
            case "gone":
                for pod in self._chosen(step.pods):
                    self._stage.release_pod(pod.name, node=pod.node_name)
            case _:
                raise ValueError(f"no step is called {step.op}")
        self._stage.follow()

    def _apply(self, document: Document) -> None:
        stage, kind, given = self._stage, document["kind"], document["metadata"]
        is_new = kind == "Node" or not stage.exists(RESOURCES[kind], given["name"])
        admitted = stage.apply(document if kind != "Job" else _without_selector(document))
        if is_new and kind in ("Job", "CronJob"):
            for field in ("uid", "creationTimestamp"):
                admitted["metadata"][field] = given.get(field, admitted["metadata"][field])
            admitted["status"] = document.get("status", {})
            stage.put(ObjectKey(RESOURCES[kind], "default", given["name"]), Put(admitted), Author("test"))

    def _start(self, step: Step) -> None:
        self._stage.agents_ahead_s = float(-step.ready_for_s)
        for pod in self._chosen(step.pods):
            node = target_of(pod) or _ANY
            if pod.bound is None:
                self._stage.bind(pod.name, node=node)
            self._stage.report(pod.name, node=node, ready=step.ready)
        self._stage.agents_ahead_s = 0.0

    def _end(self, step: Step) -> None:
        """A pod that is leaving is not gone with that: `gone` says it."""
        for pod in self._chosen(step.pods):
            self._stage.report(pod.name, node=pod.node_name, phase=step.phase, ready=False, ended=True)
            if not pod.deleting:
                self._stage.release_pod(pod.name, "completed", node=pod.node_name)

    def _evict(self, step: Step) -> None:
        for pod in self._chosen(step.pods):
            if pod.bound is not None:
                self._stage.evict(pod.name)
            else:
                self._stage.remove("pods", pod.name)

    def _chosen(self, which: Chosen) -> list[PodView]:
        wanted = {
            "name": which.name,
            "node": which.node,
            "image": which.image,
            "terminating": which.terminating,
            "started": which.started,
        }
        found: list[PodView] = []
        for pod in self._stage.pods():
            facts = {
                "name": pod.name,
                "node": target_of(pod),
                "image": pod.stored.spec.containers[0].image,
                "terminating": pod.deleting,
                "started": bool(pod.node_name),
            }
            if all(value in ("", None) or facts[key] == value for key, value in wanted.items()):
                found.append(pod)
        found.sort(key=lambda pod: (target_of(pod), pod.name))
        return found[: which.first] if which.first else found

    # ---- what there is -------------------------------------------------------------------------------------

    def _state(self) -> Document:
        stored = self._stage.all("controllerrevisions")
        revisions: dict[str, int] = {}
        for one in stored:
            labels = one["metadata"]["labels"]
            for name in (one["metadata"]["name"], labels.get(POD_LABEL), labels.get(HASH_LABEL)):
                revisions |= {name: one["revision"]} if name else {}
        found: Document = {
            "pods": [self._pod(pod, revisions) for pod in self._stage.pods() if not pod.gone],
            "revisions": sorted(one["revision"] for one in stored),
        }
        if self._kind == "StatefulSet":
            claims = self._stage.all("persistentvolumeclaims")
            found["claims"] = sorted(map(_claim, claims), key=itemgetter("name"))
        if self._kind == "CronJob":
            found |= {"jobs": sorted(map(_job, self._stage.all("jobs")), key=itemgetter("name")), "pods": []}
        for document in self._stage.all(RESOURCES[self._kind]):
            found["status"] = _status(document.get("status") or {}, revisions)
            found["spec"] = {key: value for key, value in document["spec"].items() if key not in _NOT_COMPARED}
        return found

    def _pod(self, pod: PodView, revisions: Mapping[str, int]) -> Document:
        document = self._stage.document("pods", pod.name)
        spec = document["spec"]
        found: Document = {
            "labels": {key: value for key, value in pod.labels.items() if key not in (POD_LABEL, GENERATION_LABEL)},
            "image": spec["containers"][0]["image"],
            "bound": bool(pod.node_name),
            "terminating": pod.deleting,
            "phase": pod_facts.phase(pod),
        }
        if self._kind != "ReplicationController":
            found["revision"] = revisions.get(pod.labels.get(POD_LABEL, ""), 0)
        if self._kind == "StatefulSet":
            claims = (one for one in spec.get("volumes") or [] if "persistentVolumeClaim" in one)
            found |= {
                "name": pod.name,
                "hostname": spec.get("hostname", ""),
                "subdomain": spec.get("subdomain", ""),
                "volumes": sorted(f"{one['name']}={one['persistentVolumeClaim']['claimName']}" for one in claims),
            }
        if self._kind == "DaemonSet":
            found |= {"node": target_of(pod), "tolerations": spec["tolerations"], "affinity": spec["affinity"]}
        return found


def _without_selector(job: Document) -> Document:
    """The door makes it; one that is given is refused."""
    return {**job, "spec": {key: value for key, value in job["spec"].items() if key != "selector"}}


def _status(status: Document, revisions: Mapping[str, int]) -> Document:
    found = dict(status)
    for key in ("currentRevision", "updateRevision"):
        if key in found:
            found[key] = revisions.get(found[key], 0)
    if "active" in found:
        found["active"] = [one["name"] for one in found["active"]]
    return found


def _claim(claim: Document) -> Document:
    return {"name": claim["metadata"]["name"], "labels": claim["metadata"].get("labels"), "owners": _owners(claim)}


def _job(job: Document) -> Document:
    meta = job["metadata"]
    given = {"labels": meta.get("labels"), "annotations": meta.get("annotations")}
    return {"name": meta["name"], **given, "owners": _owners(job)}


def _owners(document: Document) -> list[str]:
    owners = document["metadata"].get("ownerReferences") or []
    return sorted(f"{one['kind']}/{one['name']}/{str(one.get('controller', False)).lower()}" for one in owners)
