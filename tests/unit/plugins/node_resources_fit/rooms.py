"""Random nodes with room and pods that want some."""

from hypothesis import strategies as st

from tests.unit.plugins import worlds
from tests.unit.plugins.worlds import Manifest

GPU = "example.com/gpu"
TPU = "ignored.io/tpu"
NAMES = ("cpu", "memory", "ephemeral-storage", GPU, TPU)
MIB = 1024 * 1024


HUGE = st.sampled_from((2**63 - 1, 2**62 + 1, 2**57 + 3, 2**53 + 1))
"""Amounts of which two or a hundred times one are more than 64 bits hold."""


def _memory(most_mib: int) -> st.SearchStrategy[int]:
    return st.integers(0, most_mib).map(lambda count: count * MIB) | HUGE


def _texts(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


allocatable = st.fixed_dictionaries(
    {"cpu": st.integers(0, 8000), "memory": _memory(4096), "pods": st.integers(0, 9)},
    optional={"ephemeral-storage": st.integers(0, 10**12), GPU: st.integers(0, 4), TPU: st.integers(0, 4)},
)  # fmt: skip
nodes: st.SearchStrategy[Manifest] = st.builds(
    lambda name, amounts: worlds.node(name, allocatable=_texts(amounts)), st.sampled_from(worlds.NAMES), allocatable
)
containers = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.integers(0, 3000),
        "memory": st.integers(0, 2048 * MIB) | HUGE,
        "ephemeral-storage": st.integers(0, 10**11),
        GPU: st.integers(0, 3),
        TPU: st.integers(0, 3),
    },
).map(lambda amounts: {"name": "c", "resources": {"requests": _texts(amounts)}})
pods: st.SearchStrategy[Manifest] = st.lists(containers, min_size=1, max_size=2).map(
    lambda found: worlds.pod(containers=found)
)
resources = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
