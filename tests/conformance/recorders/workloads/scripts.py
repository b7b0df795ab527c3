"""Writes the scripts that `main.go` plays: `python -m tests.conformance.recorders.workloads.scripts`.

A script is a kind and lists of steps; what there is, is written down after each list.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

Step: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[str, str, str, list[list[Step]]]
"""Category, what it is about, kind, steps."""

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}


def template(image: str = "web:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def apply(document: dict[str, Any]) -> Step:
    return {"op": "apply", "object": document}


def node(name: str, taints: tuple[tuple[str, str], ...] = (), **labels: str) -> Step:
    given = [{"key": key, "effect": effect} for key, effect in taints]
    spec = {"taints": given} if given else {}
    return apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec})


def workload(kind: str, api_version: str = "apps/v1", annotations: dict[str, str] | None = None, **spec: Any) -> Step:
    meta = {"name": "web", **({"annotations": annotations} if annotations else {})}
    return apply({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})


def start(**pods: Any) -> Step:
    """Pods that no node has get theirs, run, and are ready."""
    more = {key: pods.pop(key) for key in ("ready", "readyForS") if key in pods}
    return {"op": "start", "pods": {"started": False, "terminating": False, **pods}, **more}


def say(ready: bool, **pods: Any) -> Step:
    return {"op": "start", "pods": pods, "ready": ready}


def end(phase: str, **pods: Any) -> Step:
    return {"op": "end", "phase": phase, "pods": pods}


def evict(**pods: Any) -> Step:
    return {"op": "evict", "pods": pods}


GONE: Step = {"op": "gone", "pods": {"terminating": True}}
"""All that are leaving have left."""
ROUND: list[Step] = [start(), GONE]
"""What was made runs, and what is leaving has left. In this order: nothing is made in between."""
NODES = [node("a", zone="1"), node("b", zone="1"), node("c", zone="2"), node("d", zone="2")]


# ---- DaemonSet ---------------------------------------------------------------------------------------------


def daemon_set(image: str = "web:1", rolling: dict[str, Any] | None = None, **more: Any) -> Step:
    pod = more.pop("pod", {})
    strategy = {} if rolling is None else {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    return workload("DaemonSet", selector=SELECTOR, template=template(image, **pod), **strategy, **more)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


PREFERRED = {"weight": 3, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}}
PLACES: dict[str, dict[str, Any]] = {
    "plain": {},
    "nodeSelector": {"nodeSelector": {"zone": "1"}},
    "nodeSelector that none has": {"nodeSelector": {"zone": "9"}},
    "nodeName": {"nodeName": "b"},
    "nodeName that is not there": {"nodeName": "nowhere"},
    "required In": required({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}),
    "required NotIn": required({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["2"]}]}),
    "required by name": required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}),
    "one of two": required(
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["d"]}]},
    ),
    "both": {**required({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), "nodeSelector": {"zone": "2"}},
    "preferred stays": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}},
    "pods' affinity stays": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "other"}}}
                ]
            }
        }
    },
    "host network": {"hostNetwork": True},
    "tolerations": {
        "tolerations": [
            {"key": "odd", "operator": "Exists"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 30,
            },
        ]
    },
    "tolerates all": {"tolerations": [{"operator": "Exists"}]},
}
TAINTS = {
    "NoSchedule": (("odd", "NoSchedule"),),
    "NoExecute": (("odd", "NoExecute"),),
    "PreferNoSchedule": (("odd", "PreferNoSchedule"),),
    "unschedulable": (("node.kubernetes.io/unschedulable", "NoSchedule"),),
    "unreachable": (("node.kubernetes.io/unreachable", "NoExecute"), ("node.kubernetes.io/unreachable", "NoSchedule")),
    "network": (("node.kubernetes.io/network-unavailable", "NoSchedule"),),
    "both": (("node.kubernetes.io/not-ready", "NoExecute"), ("odd", "NoSchedule")),
}


def daemon_placement() -> Iterator[Case]:
    for about, pod in PLACES.items():
        for name, taints in (("no taint", ()), *TAINTS.items()):
            if taints and about not in ("plain", "host network", "tolerations", "tolerates all"):
                continue
            tainted = [node("b", taints, zone="1")]
            yield (
                "daemonPlacement",
                f"{about}; {name} before",
                "DaemonSet",
                [[NODES[0], *tainted, *NODES[2:]], [daemon_set(pod=pod)], [start()], [node("e", taints, zone="2")]],
            )
            if taints:
                yield (
                    "daemonPlacement",
                    f"{about}; {name} later",
                    "DaemonSet",
                    [
                        [
                            *NODES,
                            daemon_set(pod=pod),
                        ],
                        [start()],
                        tainted,
                        [GONE],
                        [node("b", zone="1")],
                    ],
                )
    for name in ("zone", "other"):
        yield (
            "daemonPlacement",
            f"a label of a node changes: {name}",
            "DaemonSet",
            [[*NODES, daemon_set(pod={"nodeSelector": {"zone": "1"}})], [start()], [node("a", **{name: "2"})], [GONE]],
        )
    yield (
        "daemonPlacement",
        "a node goes before its pod is bound",
        "DaemonSet",
        [[*NODES, daemon_set()], [{"op": "delete", "kind": "Node", "name": "a"}]],
    )
    yield (
        "daemonPlacement",
        "a node goes with its pod",
        "DaemonSet",
        [[*NODES, daemon_set()], [start()], [{"op": "delete", "kind": "Node", "name": "a"}]],
    )
    yield ("daemonPlacement", "no node", "DaemonSet", [[daemon_set()], [node("a")], [start()]])


def daemon_life() -> Iterator[Case]:
    for phase in ("Failed", "Succeeded"):
        yield (
            "daemonLife",
            f"a pod {phase}",
            "DaemonSet",
            [[*NODES, daemon_set()], [start()], [end(phase, node="b")], [start()]],
        )
        yield (
            "daemonLife",
            f"a pod {phase} on a node that takes no more",
            "DaemonSet",
            [
                [*NODES, daemon_set()],
                [start()],
                [node("b", TAINTS["NoSchedule"], zone="1")],
                [end(phase, node="b")],
                [GONE],
            ],
        )
    yield (
        "daemonLife",
        "a pod is evicted",
        "DaemonSet",
        [[*NODES, daemon_set()], [start()], [evict(node="b")], [GONE], [start()]],
    )
    yield (
        "daemonLife",
        "a pod that leaves has ended",
        "DaemonSet",
        [[*NODES, daemon_set()], [start()], [evict(node="b")], [end("Succeeded", node="b")], [GONE]],
    )
    yield (
        "daemonLife",
        "pods that are not ready",
        "DaemonSet",
        [[*NODES, daemon_set()], [start(ready=False)], [say(True, node="a")]],
    )
    yield (
        "daemonLife",
        "not available yet",
        "DaemonSet",
        [[*NODES, daemon_set(minReadySeconds=3600)], [start(node="a"), start(readyForS=7200)]],
    )


def daemon_updates() -> Iterator[Case]:
    rollings: list[dict[str, Any] | None] = [
        None,
        {"maxUnavailable": 2},
        {"maxUnavailable": "50%"},
        {"maxUnavailable": "30%"},
        {"maxUnavailable": "100%"},
        {"maxSurge": 1, "maxUnavailable": 0},
        {"maxSurge": 2, "maxUnavailable": 0},
        {"maxSurge": "50%", "maxUnavailable": 0},
        {"maxSurge": "100%", "maxUnavailable": 0},
    ]
    for rolling in rollings:
        told = json.dumps(rolling)
        first = [*NODES, daemon_set(rolling=rolling)]
        change = daemon_set("web:2", rolling)
        yield ("daemonUpdate", f"all at once: {told}", "DaemonSet", [first, [start()], [change], *[ROUND] * 5])
        yield (
            "daemonUpdate",
            f"in small steps: {told}",
            "DaemonSet",
            [first, [start()], [change], [GONE], [start(first=1)], [GONE], [start()], [GONE]],
        )
        yield (
            "daemonUpdate",
            f"two are not ready: {told}",
            "DaemonSet",
            [first, [start(node="a"), start(node="c"), start(ready=False)], [change], ROUND, ROUND],
        )
        yield (
            "daemonUpdate",
            f"new ones are not ready: {told}",
            "DaemonSet",
            [
                first,
                [start()],
                [change],
                [GONE],
                [start(ready=False)],
                [say(True, started=True, terminating=False)],
                ROUND,
            ],
        )
        yield (
            "daemonUpdate",
            f"changed twice: {told}",
            "DaemonSet",
            [first, [start()], [change], [daemon_set("web:3", rolling)], ROUND, ROUND, ROUND],
        )
        yield (
            "daemonUpdate",
            f"and back: {told}",
            "DaemonSet",
            [first, [start()], [change], [daemon_set(rolling=rolling)], ROUND, ROUND],
        )
        if rolling is not None and (rolling.get("maxSurge") or rolling["maxUnavailable"] == "100%"):  # else any node
            yield (
                "daemonUpdate",
                f"with a tainted node: {told}",
                "DaemonSet",
                [first, [start()], [node("b", TAINTS["NoSchedule"], zone="1")], [change], ROUND, ROUND],
            )
        yield (
            "daemonUpdate",
            f"with a selector that leaves two: {told}",
            "DaemonSet",
            [
                first,
                [start()],
                [daemon_set("web:2", rolling, pod={"nodeSelector": {"zone": "2"}})],
                ROUND,
                ROUND,
                ROUND,
            ],
        )
    delete = {"updateStrategy": {"type": "OnDelete"}}
    yield (
        "daemonUpdate",
        "on delete",
        "DaemonSet",
        [[*NODES, daemon_set(**delete)], [start()], [daemon_set("web:2", **delete)], [evict(node="b")], ROUND],
    )
    for limit in (0, 1, 2):
        several = [[daemon_set(f"web:{at}", revisionHistoryLimit=limit)] for at in (2, 3, 1, 4)]
        rounds = list(itertools.chain.from_iterable([one, ROUND] for one in several))
        yield (
            "daemonUpdate",
            f"history of {limit}",
            "DaemonSet",
            [[node("a"), daemon_set(revisionHistoryLimit=limit)], [start()], *rounds],
        )


# ---- StatefulSet -------------------------------------------------------------------------------------------


def stateful_set(replicas: int, image: str = "web:1", **more: Any) -> Step:
    return workload(
        "StatefulSet",
        **{"serviceName": "web", "replicas": replicas, "selector": SELECTOR, "template": template(image), **more},
    )


def claims(deleted: str = "", scaled: str = "", *names: str) -> dict[str, Any]:
    templates = [
        {
            "metadata": {"name": name, "labels": {"of": "us"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        for name in names or ("data",)
    ]
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}} if deleted else {}
    return {"volumeClaimTemplates": templates, **policy}


def partition(number: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


POLICIES = {"ordered": {}, "parallel": {"podManagementPolicy": "Parallel"}}


def stateful_scale() -> Iterator[Case]:
    for name, policy in POLICIES.items():

        def one(replicas: int, image: str = "web:1", policy: dict[str, Any] = policy, **more: Any) -> Step:
            return stateful_set(replicas, image, **policy, **more)

        up = [[one(3)], [start()], [start()], [start()]]
        yield ("statefulScale", f"{name}: up", "StatefulSet", [*up, [one(5)], [start()], [start()]])
        yield ("statefulScale", f"{name}: down", "StatefulSet", [*up, [one(1)], [GONE], [GONE], [one(2)], [start()]])
        yield ("statefulScale", f"{name}: to none", "StatefulSet", [*up, [one(0)], [GONE], [GONE], [GONE]])
        yield (
            "statefulScale",
            f"{name}: up while one leaves",
            "StatefulSet",
            [*up, [one(2)], [one(4)], [GONE], [start()], [start()]],
        )
        yield (
            "statefulScale",
            f"{name}: from five",
            "StatefulSet",
            [[one(2, ordinals={"start": 5})], [start()], [start()], [one(2, ordinals={"start": 6})], ROUND, ROUND],
        )
        yield (
            "statefulScale",
            f"{name}: not ready",
            "StatefulSet",
            [
                [one(3)],
                [start(ready=False)],
                [say(True, name="web-0")],
                [start()],
                [say(False, name="web-0")],
                [one(1)],
                [say(True, name="web-0")],
                [GONE],
            ],
        )
        yield (
            "statefulScale",
            f"{name}: the last is not ready and surplus",
            "StatefulSet",
            [*up, [say(False, name="web-2")], [one(1)], [GONE], [GONE]],
        )
        yield (
            "statefulScale",
            f"{name}: the middle is not ready and surplus",
            "StatefulSet",
            [*up, [say(False, name="web-1")], [one(1)], [GONE], [GONE]],
        )
        yield (
            "statefulScale",
            f"{name}: the first is not ready and one is missing",
            "StatefulSet",
            [*up, [say(False, name="web-0")], [evict(name="web-2")], [GONE], [say(True, name="web-0")]],
        )
        for phase in ("Failed", "Succeeded"):
            yield (
                "statefulScale",
                f"{name}: the middle {phase}",
                "StatefulSet",
                [*up, [end(phase, name="web-1")], [start()]],
            )
            yield (
                "statefulScale",
                f"{name}: surplus and {phase}",
                "StatefulSet",
                [*up, [end(phase, name="web-2"), one(2)], [GONE]],
            )
        yield (
            "statefulScale",
            f"{name}: the middle is evicted",
            "StatefulSet",
            [*up, [evict(name="web-1")], [GONE], [start()]],
        )
        yield (
            "statefulScale",
            f"{name}: all are evicted",
            "StatefulSet",
            [*up, [evict()], [GONE], [start()], [start()], [start()]],
        )
        yield (
            "statefulScale",
            f"{name}: not available yet",
            "StatefulSet",
            [[one(3, minReadySeconds=3600)], [start()], [say(True, name="web-0")], [start(readyForS=7200)]],
        )
        yield (
            "statefulScale",
            f"{name}: available for long",
            "StatefulSet",
            [[one(3, minReadySeconds=3600)], [start(readyForS=7200)], [start(readyForS=7200)], [start()]],
        )


def stateful_updates() -> Iterator[Case]:
    for name, policy in POLICIES.items():
        for number in (0, 1, 2, 3, 5):
            more = {**policy, **partition(number)}
            up = [[stateful_set(3, **more)], [start()], [start()], [start()]]
            change = stateful_set(3, "web:2", **more)
            yield ("statefulUpdate", f"{name}, partition {number}", "StatefulSet", [*up, [change], *[ROUND] * 4])
            yield (
                "statefulUpdate",
                f"{name}, partition {number}: one below is made again",
                "StatefulSet",
                [*up, [change], ROUND, [evict(name="web-0")], ROUND, ROUND],
            )
            yield (
                "statefulUpdate",
                f"{name}, partition {number}: scaled meanwhile",
                "StatefulSet",
                [*up, [change], [stateful_set(5, "web:2", **more)], ROUND, ROUND, ROUND],
            )
        more = {**policy}
        up = [[stateful_set(3, **more)], [start()], [start()], [start()]]
        change = stateful_set(3, "web:2", **more)
        yield (
            "statefulUpdate",
            f"{name}: changed twice",
            "StatefulSet",
            [*up, [change], [stateful_set(3, "web:3", **more)], *[ROUND] * 4],
        )
        yield (
            "statefulUpdate",
            f"{name}: and back",
            "StatefulSet",
            [*up, [change], ROUND, [stateful_set(3, **more)], *[ROUND] * 3],
        )
        yield (
            "statefulUpdate",
            f"{name}: one is not ready",
            "StatefulSet",
            [*up, [say(False, name="web-1")], [change], ROUND, ROUND, [say(True, name="web-1")], ROUND],
        )
        yield (
            "statefulUpdate",
            f"{name}: the new one is not ready",
            "StatefulSet",
            [*up, [change], [GONE], [start(ready=False)], [stateful_set(3, "web:3", **more)], ROUND, ROUND],
        )
        yield (
            "statefulUpdate",
            f"{name}: a rollout without its strategy's details",
            "StatefulSet",
            [
                [stateful_set(3, updateStrategy={"type": "RollingUpdate"}, **policy)],
                [start()],
                [start()],
                [start()],
                [stateful_set(3, "web:2", updateStrategy={"type": "RollingUpdate"}, **policy)],
                [evict(name="web-0")],
                ROUND,
                ROUND,
                ROUND,
            ],
        )
        delete = {**policy, "updateStrategy": {"type": "OnDelete"}}
        yield (
            "statefulUpdate",
            f"{name}: on delete",
            "StatefulSet",
            [
                [stateful_set(2, **delete)],
                [start()],
                [start()],
                [stateful_set(2, "web:2", **delete)],
                [evict(name="web-0")],
                ROUND,
                ROUND,
            ],
        )
        for limit in (0, 1, 2):
            several = [[stateful_set(1, f"web:{at}", revisionHistoryLimit=limit, **policy)] for at in (2, 3, 1, 4)]
            rounds = list(itertools.chain.from_iterable([one, ROUND, ROUND] for one in several))
            yield (
                "statefulUpdate",
                f"{name}: history of {limit}",
                "StatefulSet",
                [[stateful_set(1, revisionHistoryLimit=limit, **policy)], [start()], *rounds],
            )


def stateful_claims() -> Iterator[Case]:
    for name, policy in POLICIES.items():
        for deleted, scaled in (("", ""), *itertools.product(("Retain", "Delete"), repeat=2)):
            more = {**policy, **claims(deleted, scaled)}
            up = [[stateful_set(2, **more)], [start()], [start()]]
            yield (
                "statefulClaims",
                f"{name}: {deleted or 'no policy'} {scaled}",
                "StatefulSet",
                [*up, [stateful_set(1, **more)]],
            )
            later = {**policy, **claims("Delete", "Delete")}
            yield (
                "statefulClaims",
                f"{name}: {deleted or 'no policy'} {scaled}, later both Delete",
                "StatefulSet",
                [*up, [stateful_set(2, **later)], [stateful_set(1, **later)]],
            )
        more = {**policy, **claims("", "", "data", "logs")}
        yield (
            "statefulClaims",
            f"{name}: two a pod beside another volume",
            "StatefulSet",
            [
                [stateful_set(2, template=template(volumes=[{"name": "tmp", "emptyDir": {}}]), **more)],
                [start()],
                [start()],
            ],
        )
        yield (
            "statefulClaims",
            f"{name}: one is taken away while its pod waits",
            "StatefulSet",
            [
                [stateful_set(1, **more)],
                [
                    {"op": "delete", "kind": "PersistentVolumeClaim", "name": "data-web-0"},
                    say(False, name="web-9"),
                    evict(name="web-0"),
                ],
            ],
        )


# ---- ReplicationController ---------------------------------------------------------------------------------


def controller(replicas: int, **more: Any) -> Step:
    return workload("ReplicationController", "v1", replicas=replicas, selector=LABELS, template=template(), **more)


def controllers() -> Iterator[Case]:
    up = [[controller(4)], [start()]]
    yield (
        "controller",
        "up and down",
        "ReplicationController",
        [*up, [controller(6)], [start()], [controller(2)], [GONE]],
    )
    yield ("controller", "to none", "ReplicationController", [*up, [controller(0)], [GONE]])
    yield (
        "controller",
        "pods that no node has go first",
        "ReplicationController",
        [[controller(4)], [start(first=2)], [controller(2)], [controller(1)], [GONE]],
    )
    yield (
        "controller",
        "pods that are not ready go first",
        "ReplicationController",
        [[controller(4)], [start(first=2)], [start(ready=False)], [controller(2)], [GONE]],
    )
    yield (
        "controller",
        "not available yet",
        "ReplicationController",
        [[controller(3, minReadySeconds=3600)], [start(first=1), start(readyForS=7200)]],
    )
    for phase in ("Failed", "Succeeded"):
        yield ("controller", f"one {phase}", "ReplicationController", [*up, [end(phase, first=1)], [start()]])
    yield ("controller", "one is evicted", "ReplicationController", [*up, [evict(first=1)], [GONE], [start()]])


# ---- CronJob -----------------------------------------------------------------------------------------------


def cron_job(schedule: str, **more: Any) -> Step:
    created, last = more.pop("created", 150), more.pop("last", None)
    active, zone = more.pop("active", ()), more.pop("zone", None)
    job = {
        "metadata": {"labels": {"made": "by-clock"}, "annotations": {"note": "x"}},
        "spec": {"template": template(restartPolicy="Never")},
    }
    status: dict[str, Any] = {} if last is None else {"lastScheduleTime": f"<now-{last}>"}
    if active:
        status["active"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": one, "uid": f"u-{one}"}
            for one in active
        ]
    spec = {"schedule": schedule, "jobTemplate": job, **({"timeZone": zone} if zone else {}), **more}
    meta = {"name": "web", "uid": "cron", "creationTimestamp": f"<now-{created}>"}
    return apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec, "status": status})


def job(name: str, condition: str = "", started: int = 100, owned: bool = True) -> Step:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "web",
        "uid": "cron",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    status: dict[str, Any] = {"startTime": f"<now-{started}>"}
    if condition:
        status["conditions"] = [{"type": condition, "status": "True"}]
    if condition == "Complete":
        status["completionTime"] = f"<now-{started - 10}>"
    meta = {"name": name, "uid": f"u-{name}", **({"ownerReferences": [owner]} if owned else {})}
    spec = {"template": template(restartPolicy="Never"), "selector": {"matchLabels": {"controller-uid": "x"}}}
    return apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec, "status": status})


def cron_jobs() -> Iterator[Case]:
    for schedule in ("* * * * *", "*/2 * * * *", "@hourly", "@every 1m", "@every 45s", "0 0 31 2 *", "* * * * SUN-SAT"):
        for created in (5, 150, 4000, 8000):
            yield ("cron", f"{schedule} of {created} s ago", "CronJob", [[cron_job(schedule, created=created)]])
        yield ("cron", f"{schedule}, the last one 200 s ago", "CronJob", [[cron_job(schedule, created=8000, last=200)]])
    for zone in ("Europe/Paris", "America/St_Johns", "UTC"):
        yield ("cron", f"in {zone}", "CronJob", [[cron_job("* * * * *", zone=zone)]])
    for deadline in (0, 10, 90, 600):
        yield (
            "cron",
            f"deadline of {deadline} s",
            "CronJob",
            [[cron_job("@hourly", created=9000, startingDeadlineSeconds=deadline)]],
        )
        yield (
            "cron",
            f"deadline of {deadline} s each minute",
            "CronJob",
            [[cron_job("* * * * *", created=9000, startingDeadlineSeconds=deadline)]],
        )
    yield (
        "cron",
        "suspended, then not",
        "CronJob",
        [[cron_job("* * * * *", suspend=True)], [cron_job("* * * * *", suspend=False)]],
    )
    for policy in ("Allow", "Forbid", "Replace"):
        more: dict[str, Any] = {"concurrencyPolicy": policy, "active": ("old",), "last": 120}
        waits, goes = cron_job("* * * * *", suspend=True), cron_job("* * * * *", suspend=False, **more)
        yield ("cron", f"{policy}: one runs", "CronJob", [[waits], [job("old")], [goes]])
        yield ("cron", f"{policy}: one has ended", "CronJob", [[waits], [job("old", "Complete")], [goes]])
        yield ("cron", f"{policy}: two run, one is forgotten", "CronJob", [[waits], [job("old"), job("lost")], [goes]])
    yield (
        "cron",
        "an active one is gone",
        "CronJob",
        [[cron_job("@hourly", concurrencyPolicy="Forbid", created=60, active=("old",))]],
    )
    for good, bad in itertools.product((0, 1, 3), repeat=2):
        several = [job(f"good-{at}", "Complete", 1000 - at) for at in range(3)] + [
            job(f"bad-{at}", "Failed", 900 - at) for at in range(3)
        ]
        yield (
            "cron",
            f"history of {good} and {bad}",
            "CronJob",
            [
                [
                    cron_job("@every 24h", created=60, successfulJobsHistoryLimit=good, failedJobsHistoryLimit=bad),
                ],
                [
                    *several,
                    job("stranger", "Complete", owned=False),
                ],
            ],
        )


ALL = (
    daemon_placement,
    daemon_life,
    daemon_updates,
    stateful_scale,
    stateful_updates,
    stateful_claims,
    controllers,
    cron_jobs,
)


def main() -> None:
    """All scripts, one a line."""
    found = itertools.chain.from_iterable(make() for make in ALL)
    for number, (category, about, kind, steps) in enumerate(found, 1):
        script = {
            "id": f"workloads-{number:03d}",
            "category": category,
            "about": about,
            "input": {"kind": kind, "steps": steps},
        }
        sys.stdout.write(json.dumps(script) + "\n")


if __name__ == "__main__":
    main()
