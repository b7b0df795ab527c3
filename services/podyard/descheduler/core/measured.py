"""What nodes and pods really use, measured by somebody before the cycle began: values, no clients.

Amounts are nano-units by resource, as `podyard.objects.quantity` has them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from podyard.cluster.keys import NamespacedName

Amounts: TypeAlias = Mapping[str, int]


class ContainerUsage(NamedTuple):
    """What one container uses."""

    name: str
    amounts: Amounts


class KubernetesMetrics(NamedTuple):
    """The source KubernetesMetrics: what metrics.k8s.io tells of nodes, and of the containers of pods."""

    nodes: Mapping[str, Amounts]
    pods: Mapping[NamespacedName, tuple[ContainerUsage, ...]]
    lacking: str = ""
    """Why some nodes are not among them."""


class Sample(NamedTuple):
    """One element of the vector that a query of Prometheus returned."""

    labels: Mapping[str, str]
    value: float


class QueryFailed(NamedTuple):
    """A query of Prometheus that returned no vector."""

    reason: str


QueryResult: TypeAlias = tuple[Sample, ...] | QueryFailed


class Measured(NamedTuple):
    """Usage by source. None: nobody asks this source."""

    kubernetes: KubernetesMetrics | None = None
    prometheus: Mapping[str, QueryResult] | None = None
    """By the text of the query."""


NOTHING_MEASURED: Final = Measured()
