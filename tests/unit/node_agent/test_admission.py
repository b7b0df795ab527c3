"""Which pods a node under pressure refuses."""

import pytest

from podyard.node_agent.core.eviction.admission import refusal
from podyard.node_agent.core.eviction.critical import quality_of_service
from tests.unit.node_agent.make import pod

TOLERATION = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
MEMORY, DISK = "MemoryPressure", "DiskPressure"


@pytest.mark.parametrize(
    ("candidate", "conditions", "told"),
    [
        (pod(), set(), ""),
        (pod(), {MEMORY}, "The node had condition: [MemoryPressure]. "),
        (pod(tolerations=[TOLERATION]), {MEMORY}, ""),
        (pod(requests={"cpu": "1"}), {MEMORY}, ""),
        (pod(requests={"cpu": "1"}), {DISK}, "The node had condition: [DiskPressure]. "),
        (pod(tolerations=[TOLERATION]), {MEMORY, DISK}, "The node had condition: [DiskPressure MemoryPressure]. "),
        (pod(priority=2_000_000_000), {MEMORY, DISK}, ""),
    ],
    ids=["no pressure", "best effort", "tolerates", "burstable", "disk takes none", "both", "critical"],
)
def test_admission(candidate, conditions: set[str], told: str):
    assert refusal(candidate, conditions) == told


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (pod(), "BestEffort"),
        (pod(requests={"cpu": "0"}), "BestEffort"),
        (pod(requests={"cpu": "1"}), "Burstable"),
        (pod(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}), "Guaranteed"),
        (pod(limits={"cpu": "1000m", "memory": "1Gi"}, requests={"cpu": "1"}), "Guaranteed"),
        (pod(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}), "Burstable"),
        (pod(requests={"nvidia.com/gpu": "1"}), "BestEffort"),
    ],
    ids=["nothing", "zero", "request", "all equal", "limits alone", "limit above", "other resource"],
)
def test_quality_of_service(one, expected: str):
    assert quality_of_service(one) == expected
