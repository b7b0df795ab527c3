"""What would help a pod that waits: a sentence for each cause."""

import msgspec
import pytest

from podyard.objects import taints as objects_taints
from podyard.plugins.default_preemption import plugin as preemption
from podyard.plugins.dynamic_resources import plugin as devices
from podyard.plugins.inter_pod_affinity import plugin as affinity
from podyard.plugins.node_affinity import plugin as node_affinity
from podyard.plugins.node_name import plugin as node_name
from podyard.plugins.node_ports import plugin as ports
from podyard.plugins.node_unschedulable import plugin as cordon
from podyard.plugins.node_volume_limits import plugin as limits
from podyard.plugins.pod_topology_spread import plugin as spread
from podyard.plugins.taint_toleration import plugin as taints
from podyard.plugins.volume_binding import plugin as binding
from podyard.plugins.volume_binding.claims_on_nodes import OUT_OF_REACH
from podyard.plugins.volume_binding.pod_claims import REASON_IMMEDIATE
from podyard.plugins.volume_restrictions import plugin as restrictions
from podyard.plugins.volume_zone import plugin as zones
from podyard.proto.decisions import AttemptRecord, Rejection
from podyard.proto.pools import Pool
from podyard.proto.queue_api import OutsidePod, QueuedPodInfo
from podyard.telling import advice
from podyard.telling.advice import Help

SENTENCES = [
    ("NodeResourcesFit", "Insufficient cpu", "ask for less, add a node, or end pods on a node that is large enough"),
    ("NodeResourcesFit", "Too many pods", "free a place there, add a node, or raise the node's limit of pods"),
    (
        taints.NAME,
        taints.REASON,
        "add a toleration to the pod, or apply the node without the taint (spec.taints)",
    ),
    (cordon.NAME, cordon.REASON, "uncordon the node: apply it without spec.unschedulable"),
    (node_name.NAME, node_name.REASON, "create a node of that name, or take nodeName out of the pod"),
    (node_affinity.NAME, node_affinity.REASON_POD, "give a node these labels, or ask for others"),
    (
        node_affinity.NAME,
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "make room on the nodes that it names, create them, or name others",
    ),
    (ports.NAME, ports.REASON, "another host port, or a node where it is free"),
    (affinity.NAME, affinity.REASON_AFFINITY, "place such a pod first, or make the affinity preferred"),
    (
        affinity.NAME,
        affinity.REASON_ANTI_AFFINITY,
        "add a node in another domain, or make the anti-affinity preferred",
    ),
    (affinity.NAME, affinity.REASON_EXISTING, "add a node in another domain, or make the anti-affinity preferred"),
    (spread.NAME, spread.REASON, "make room in the emptiest domain, raise maxSkew, or choose ScheduleAnyway"),
    (spread.NAME, spread.REASON_NO_LABEL, "give the node this label"),
    *(
        (name, 'persistentvolumeclaim "data" not found', "create what is not found, or name one that there is")
        for name in (binding.NAME, restrictions.NAME, zones.NAME, limits.NAME)
    ),
    (binding.NAME, REASON_IMMEDIATE, "create a volume that fits, or a claim of a class that makes one"),
    (
        binding.NAME,
        binding.REASONS[OUT_OF_REACH],
        "make room where the volume is, or a volume where there is room",
    ),
    (zones.NAME, zones.REASON, "make room in the zone of the volume"),
    (
        restrictions.NAME,
        restrictions.REASON_CLAIM,
        "wait for the other pod to end, or give this one a claim of its own",
    ),
    (limits.NAME, limits.REASON, "use fewer volumes on the node, or add a node"),
    (
        devices.NAME,
        devices.REASON_NOT_SUPPORTED,
        "make the pod without spec.resourceClaims: nobody here has devices",
    ),
]
DETAILED = [
    (
        taints.NAME,
        taints.REASON,
        f"taint {objects_taints.UNREACHABLE}:NoSchedule",
        "start the node's agent again, or add a node",
    ),
    (
        taints.NAME,
        taints.REASON,
        f"taint {objects_taints.NOT_READY}:NoExecute",
        "wait until the node's agent reports it ready, or add a node",
    ),
    (
        taints.NAME,
        taints.REASON,
        "taint node.kubernetes.io/memory-pressure:NoSchedule",
        "wait until the node's pressure has gone, or add a node",
    ),
    (
        taints.NAME,
        taints.REASON,
        "taint example.com/memory-pressure:NoSchedule",
        "add a toleration to the pod, or apply the node without the taint (spec.taints)",
    ),
    (
        binding.NAME,
        REASON_IMMEDIATE,
        "claim data wants storage class fast, and there is no such class",
        "create that storage class, or a claim of one that there is",
    ),
    (
        binding.NAME,
        REASON_IMMEDIATE,
        "claim data has no storage class, and no volume without one fits it",
        "create a volume that fits it, or a claim with a storageClassName",
    ),
]
"""What is in the way says more than the reason."""


def attempt(*rejections: Rejection, **more: object) -> AttemptRecord:
    return AttemptRecord(
        namespace="default",
        name="web",
        uid="u",
        attempt="1",
        at=1.0,
        rejections=rejections,
        **{"nodes_total": 3, "outcome": "unschedulable", **more},  # pyright: ignore[reportArgumentType] - fields of the record
    )


@pytest.mark.parametrize(("plugin", "reason", "sentence"), SENTENCES)
def test_each_cause_has_its_sentence(plugin: str, reason: str, sentence: str) -> None:
    record = attempt(Rejection(plugin=plugin, reason=reason, nodes=3))
    assert advice.of_waiting(record, None) == (Help(plugin=plugin, text=sentence),)


@pytest.mark.parametrize(("plugin", "reason", "detail", "sentence"), DETAILED)
def test_what_is_in_the_way_may_say_more_than_the_reason(plugin: str, reason: str, detail: str, sentence: str) -> None:
    record = attempt(Rejection(plugin=plugin, reason=reason, detail=detail, nodes=3))
    assert advice.of_waiting(record, None) == (Help(plugin=plugin, text=sentence),)


def test_no_sentence_names_a_tool_that_does_not_reach_this_cluster() -> None:
    assert [text for text in advice.OF_REASONS.values() if "kubectl" in text] == []


def test_a_pod_that_may_not_preempt_is_told_so_where_preemption_might_help() -> None:
    message = f"0/3 nodes are available: 3 Insufficient cpu. preemption: {preemption.REASON_NEVER}"
    full = Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=3)
    *_, last = advice.of_waiting(attempt(full, message=message), None)
    assert last.plugin == preemption.NAME
    assert last.text.startswith("a priority class whose preemptionPolicy is not Never would let it take the place")
    firm = msgspec.structs.replace(full, unresolvable=True)
    assert preemption.NAME not in {one.plugin for one in advice.of_waiting(attempt(firm, message=message), None)}


def test_a_pod_that_nobody_schedules_is_told_whom_it_may_ask_for() -> None:
    stranger = OutsidePod(namespace="default", name="web", uid="u", scheduler="batch")
    assert advice.of_outside(stranger, ("default-scheduler", "gpu")).text == (
        "make the pod anew with schedulerName default-scheduler or gpu, "
        "or add a profile of that name (--scheduler-config)"
    )
    forced = OutsidePod(namespace="default", name="web", uid="u", node="n9")
    assert (
        advice.of_outside(forced, ()).text == "create a node of that name, or make the pod anew without spec.nodeName"
    )


def test_a_request_above_every_node_is_not_helped_by_the_end_of_pods() -> None:
    record = attempt(Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=3, unresolvable=True))
    assert [one.text for one in advice.of_waiting(record, None)] == [advice.TOO_SMALL]


def test_what_helps_against_two_reasons_is_said_once() -> None:
    amounts = [Rejection(plugin="NodeResourcesFit", reason=f"Insufficient {one}", nodes=1) for one in ("cpu", "memory")]
    assert len(advice.of_waiting(attempt(*amounts), None)) == 1


def test_a_gate_is_told_before_what_an_earlier_attempt_met() -> None:
    queued = QueuedPodInfo(
        namespace="default",
        name="web",
        uid="u",
        pool=Pool.GATED,
        gating_plugin="SchedulingGates",
    )
    record = attempt(Rejection(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=3))
    assert advice.of_waiting(record, queued) == (
        Help(plugin="SchedulingGates", text="remove the gate from spec.schedulingGates when the pod may go"),
    )


def test_without_nodes_and_with_a_nomination() -> None:
    assert [one.text for one in advice.of_waiting(attempt(nodes_total=0), None)] == ["add a node: there is none"]
    error = attempt(nodes_total=0, message="no nodes available to schedule pods", outcome="error")
    assert [one.text for one in advice.of_waiting(error, None)] == ["add a node: there is none"]
    (wait,) = advice.of_waiting(attempt(nominated_node="n2"), None)
    assert wait.text == "nothing to do: it gets the room on n2 when its victims have gone"


def test_of_a_plugin_of_somebody_else_and_of_an_error_nothing_is_claimed() -> None:
    assert advice.of_waiting(attempt(Rejection(plugin="Mine", reason="no", nodes=3)), None) == ()
    assert advice.of_waiting(attempt(nodes_total=0, message="plugin Mine failed", outcome="error"), None) == ()
    assert advice.of_waiting(None, None) == ()
