"""The node agent's metrics."""

from typing import Final

import prometheus_client

START_SPAN: Final = "start pod"
EVICT_SPAN: Final = "evict pod"


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self.evicted = prometheus_client.Counter(
            "podyard_node_agent_evictions", "Pods evicted, by the signal that was low", ["signal"], registry=registry
        )
        self.facts = prometheus_client.Counter(
            "podyard_node_agent_facts_stored", "Facts about pods and nodes that were stored", registry=registry
        )
        self.nodes = prometheus_client.Gauge("podyard_node_agent_nodes", "Nodes it plays", registry=registry)
        self.pods = prometheus_client.Gauge(
            "podyard_node_agent_pods", "Pods on its nodes whose object lives", registry=registry
        )
        self.start_delay = prometheus_client.Histogram(
            "podyard_node_agent_pod_start_seconds",
            "From the binding to the moment when the pod runs",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=registry,
        )
