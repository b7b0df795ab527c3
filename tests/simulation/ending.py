"""The last questions, once all faults are over: is every accepted pod bound, or parked for a reason and
fitting nowhere?"""

from collections.abc import Mapping
from typing import Any

from podyard.bench.checking.checker import Checker
from podyard.bench.checking.selecting import labels
from podyard.proto.placement import Binding, Tombstone
from podyard.proto.queue_api import QueueListReply
from tests.simulation.hesitating import LABEL


def unsettled(
    checker: Checker,
    pods: Mapping[str, dict[str, Any]],
    placed: Mapping[str, Binding | Tombstone],
    listed: QueueListReply | None,
) -> list[str]:
    """Why the cluster is not settled, in sentences; empty if it is.

    :param pods: objects of all pods that there are, by name
    :param placed: what the subjects of bindings hold, by uid of the pod
    :param listed: what the queue's leader says is where; `None`: nobody answered
    """
    if listed is None:
        return ["no queue answers"]
    pools = {pod.uid: pod for pod in listed.pods}
    waiting: list[dict[str, Any]] = []
    found: list[str] = []
    for name, pod in pods.items():
        if pod["metadata"]["uid"] in placed:
            continue
        info = pools.get(pod["metadata"]["uid"])
        if info is None:
            found.append(f"pod {name} is lost: neither bound nor in the queue")
        elif info.pool != "unschedulable":
            found.append(f"pod {name} is still in {info.pool}: {info.message}")
        elif not info.unschedulable_plugins:
            found.append(f"pod {name} is parked without a reason")
        waiting.append(pod)
    # what a user's plugin thinks of them nobody knows
    decided = [pod for pod in waiting if LABEL not in labels(pod)]
    found += [f"missed wake-up: {text}, and waits in the queue" for text in checker.unbound_that_fit(decided)]
    live = {uid for uid, one in placed.items() if isinstance(one, Binding)}
    if live != checker.live.keys():
        found.append(f"records and bindings differ in {sorted(live ^ checker.live.keys())}")
    found += [
        f"{placed[uid].name} is bound to {placed[uid].node}, and is not there"
        for uid in live
        if placed[uid].name not in pods
    ]
    return found
