"""The GPUs of nodes as devices, and what of them a workload cannot use. Pure.

What is free on a node is a fragment for a request that cannot run there, whatever it lacks; for one that can,
that part is which lies on devices with less than it asks of one. The fragment of a node is the mean over the
requests of the workload.

Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent, USENIX ATC 23, section 3. There CPU is what a node may lack beside GPUs, and pods that ask for no GPU
count, too: for them all that is free is a fragment. Here memory counts as well, and pods that ask for a GPU
alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.bench.replay.rows import WHOLE_GPU, PodRow

Numbers: TypeAlias = NDArray[np.int64]


class Taken(NamedTuple):
    """Part of a device that a pod has."""

    device: int
    milli: int


class Devices:
    """The GPUs of one node, as a device plugin would give them out.

    A part of a GPU comes from the device with the least room that suffices, as Alibaba's GPU sharing does it;
    a whole GPU is a device that nobody uses.
    """

    def __init__(self, count: int) -> None:
        self.free = [WHOLE_GPU] * count

    def take(self, gpus: int, milli: int) -> tuple[list[Taken], bool]:
        """What a pod gets, and whether it is as it asked for. If no device has the room, though all together
        have it, the pod gets pieces: kube-scheduler counts by node."""
        fitting = sorted((free, device) for device, free in enumerate(self.free) if free >= milli)[:gpus]
        whole = len(fitting) == gpus
        taken = [Taken(device, milli) for _, device in fitting] if whole else self._pieces(gpus * milli)
        for device, amount in taken:
            self.free[device] -= amount
        return taken, whole

    def give_back(self, taken: Iterable[Taken]) -> None:
        """A pod has ended."""
        for device, amount in taken:
            self.free[device] += amount

    def _pieces(self, milli: int) -> list[Taken]:
        """From the freest devices; what all of them together lack comes from nowhere."""
        found: list[Taken] = []
        for free, device in sorted(((free, device) for device, free in enumerate(self.free)), reverse=True):
            amount = min(free, milli)
            if amount > 0:
                found.append(Taken(device, amount))
                milli -= amount
        return found


class Requests:
    """What the pods of a workload ask for that ask for GPUs: distinct requests, each with its share.

    :param pods: the workload
    """

    def __init__(self, pods: Iterable[PodRow]) -> None:
        counts = Counter(
            (pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models) for pod in pods if pod.gpus
        )
        shapes = list(counts)
        columns = np.array([shape[:4] for shape in shapes], dtype=np.int64).reshape(-1, 4).T
        self._cpu, self._memory, self._gpus, self._milli = columns
        self._models = [shape[4] for shape in shapes]
        total = max(1, counts.total())
        self._share = np.array([counts[shape] / total for shape in shapes], dtype=np.float64)
        self._accepted: dict[str, NDArray[np.bool_]] = {}

    def unusable(self, free: Sequence[int], cpu_milli: int, memory_mib: int, model: str) -> float:
        """Thousandths of the free GPUs of a node that are a fragment, on the average over requests.

        :param free: of each device
        :param cpu_milli: free on the node, as the memory is
        """
        devices: Numbers = np.array(free, dtype=np.int64)
        fits_device = devices[:, None] >= self._milli[None, :]
        runs = (fits_device.sum(axis=0) >= self._gpus) & self._accepting(model)
        runs &= (self._cpu <= cpu_milli) & (self._memory <= memory_mib)
        usable = (devices[:, None] * fits_device).sum(axis=0)
        return float(devices.sum() * self._share.sum() - (self._share * runs * usable).sum())

    def _accepting(self, model: str) -> NDArray[np.bool_]:
        """Which requests take GPUs of a model."""
        if model not in self._accepted:
            self._accepted[model] = np.array([not one or model in one for one in self._models], dtype=np.bool_)
        return self._accepted[model]
