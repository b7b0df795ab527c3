"""What would help a pod that waits: a sentence for each cause."""

import pytest

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
from podyard.proto.queue_api import QueuedPodInfo
from podyard.telling import advice
from podyard.telling.advice import Help

SENTENCES = [
    ("NodeResourcesFit", "Insufficient cpu", "ask for less, add a node, or end pods on a node that is large enough"),
    ("NodeResourcesFit", "Too many pods", "free a place there, add a node, or raise the node's limit of pods"),
    (taints.NAME, taints.REASON, "add a toleration to the pod, or take the taint off: `kubectl taint node NAME KEY-`"),
    (cordon.NAME, cordon.REASON, "uncordon the node: `kubectl uncordon NAME`"),
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
]


def attempt(*rejections: Rejection, **more: object) -> AttemptRecord:
    return AttemptRecord(
        namespace="default",
        name="web",
        uid="u",
        attempt="1",
        at=1.0,
        outcome="unschedulable",
        rejections=rejections,
        **{"nodes_total": 3, **more},  # pyright: ignore[reportArgumentType] - fields of the record
    )


@pytest.mark.parametrize(("plugin", "reason", "sentence"), SENTENCES)
def test_each_cause_has_its_sentence(plugin: str, reason: str, sentence: str) -> None:
    record = attempt(Rejection(plugin=plugin, reason=reason, nodes=3))
    assert advice.of_waiting(record, None) == (Help(plugin=plugin, text=sentence),)


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
    (wait,) = advice.of_waiting(attempt(nominated_node="n2"), None)
    assert wait.text == "nothing to do: it gets the room on n2 when its victims have gone"


def test_of_a_plugin_of_somebody_else_and_of_an_error_nothing_is_claimed() -> None:
    assert advice.of_waiting(attempt(Rejection(plugin="Mine", reason="no", nodes=3)), None) == ()
    assert advice.of_waiting(None, None) == ()
