"""Random nodes with room and pods that want some."""

from hypothesis import strategies as st

from tests.unit.plugins import worlds
from tests.unit.plugins.worlds import Manifest

GPU = "example.com/gpu"
TPU = "ignored.io/tpu"
NAMES = ("cpu", "memory", "ephemeral-storage", GPU, TPU)
MIB = 1024 * 1024


def _texts(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


allocatable = st.fixed_dictionaries(
    {"cpu": st.integers(0, 8000), "memory": st.integers(0, 4096).map(lambda count: count * MIB), "pods": st.integers(0, 9)},
    optional={"ephemeral-storage": st.integers(0, 10**12), GPU: st.integers(0, 4), TPU: st.integers(0, 4)},
)  # fmt: skip
nodes: st.SearchStrategy[Manifest] = st.builds(
    lambda name, amounts: worlds.node(name, allocatable=_texts(amounts)), st.sampled_from(worlds.NAMES), allocatable
)
containers = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.integers(0, 3000),
        "memory": st.integers(0, 2048 * MIB),
        "ephemeral-storage": st.integers(0, 10**11),
        GPU: st.integers(0, 3),
        TPU: st.integers(0, 3),
    },
).map(lambda amounts: {"name": "c", "resources": {"requests": _texts(amounts)}})
pods: st.SearchStrategy[Manifest] = st.lists(containers, min_size=1, max_size=2).map(
    lambda found: worlds.pod(containers=found)
)
resources = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
