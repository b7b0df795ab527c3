"""Profiles: order, weights, digest, faults. Waits at Permit. Normalisation."""

from collections.abc import Sequence

import numpy as np
import pytest

from podyard.framework.interfaces import Plugin
from podyard.framework.normalizing import default_normalize
from podyard.framework.permits import LONGEST_WAIT_S, WaitingPods
from podyard.framework.profile import Enabled, ProfileError, resolve
from podyard.plugins.node_name.plugin import NodeName
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.plugins.taint_toleration.plugin import TaintToleration
from tests.unit.framework.builders import profile


def order_of(found: Sequence[Plugin], *reference: str) -> None:
    """What is enabled is in the reference's order."""
    names = [plugin.name for plugin in found]
    assert names == [name for name in reference if name in names]


def test_the_default_profile_has_the_references_order_and_weights() -> None:
    found = profile()
    order_of(
        found.filter,
        *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread"),
        *("InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"),
    )
    weights = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    order_of([entry.plugin for entry in found.score], *weights)
    assert {entry.plugin.name: entry.weight for entry in found.score}.items() <= weights.items()
    order_of(found.post_filter, "DynamicResources", "DefaultPreemption")
    order_of(found.pre_enqueue, "SchedulingGates", "DynamicResources", "DefaultPreemption")
    assert [plugin.name for plugin in found.bind] == ["DefaultBinder"]


def test_the_digest_tells_plugins_weights_order_and_arguments_apart() -> None:
    ignoring = profile({"NodeResourcesFit": {"ignoredResources": ["example.com/gpu"]}})
    sort, names, taints = (Enabled(plugin=plugin) for plugin in (PrioritySort(), NodeName(), TaintToleration()))
    heavy = Enabled(plugin=TaintToleration(), weight=3)
    digests = [
        profile().digest,
        ignoring.digest,
        resolve("p", [sort, names, taints]).digest,
        resolve("p", [sort, taints, names]).digest,
        resolve("p", [sort, names, heavy]).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert profile().digest == profile().digest
    assert resolve("p", [sort, names]).digest == resolve("q", [sort, names]).digest


def test_all_faults_of_a_profile_are_told_at_once() -> None:
    class Nothing:
        name = "Nothing"

    entries = [
        Enabled(plugin=NodeName()),
        Enabled(plugin=NodeName(), weight=-1),
        Enabled(plugin=Nothing()),  # pyright: ignore[reportArgumentType] - on purpose
    ]
    with pytest.raises(ProfileError) as caught:
        resolve("bad", entries)
    assert caught.value.faults == (
        "plugin NodeName is enabled twice",
        "plugin NodeName has weight -1; weights are 1 or more (0 means 1)",
        "plugin Nothing has the methods of no extension point",
        "exactly one QueueSort plugin must be enabled, there are 0 (none)",
    )


def test_a_pod_waits_for_every_plugin() -> None:
    waiting = WaitingPods()
    waiting.wait("u", {"A": 10, "B": 20}, now=100.0)
    assert waiting.next_deadline() == 110.0
    waiting.allow("u", "A")
    assert waiting.settle(now=105.0) == []
    assert waiting.pending("u") == ["B"]
    waiting.allow("u", "B")
    (settled,) = waiting.settle(now=105.0)
    assert (settled.uid, settled.status.ok) == ("u", True)
    assert waiting.next_deadline() is None


def test_one_rejection_or_the_shortest_time_ends_a_wait() -> None:
    waiting = WaitingPods()
    waiting.wait("u", {"A": 10}, now=0.0)
    waiting.wait("v", {"A": 5, "B": 99999}, now=0.0)
    assert waiting.reject("u", "A", "no") is True
    assert waiting.reject("nobody", "A", "no") is False
    settled = {one.uid: one.status for one in waiting.settle(now=5.0)}
    assert (settled["u"].plugin, settled["u"].reasons) == ("A", ("no",))
    assert settled["v"].reasons == ("rejected due to timeout after waiting at plugin A",)
    assert settled["v"].rejected
    waiting.wait("w", {"B": 99999}, now=0.0)
    assert waiting.next_deadline() == LONGEST_WAIT_S


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        pytest.param([0, 0], False, [0, 0], id="all-zero"),
        pytest.param([0, 0], True, [100, 100], id="all-zero-reverse"),
        pytest.param([1, 3, 0], False, [33, 100, 0], id="scaled-down"),
        pytest.param([1, 3, 0], True, [67, 0, 100], id="reverse-of-the-rounded"),
    ],
)
def test_default_normalisation(scores: list[int], reverse: bool, expected: list[int]) -> None:
    assert default_normalize(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == expected
