"""The node agent's metrics."""

from collections.abc import Sized

import prometheus_client


class Instruments:
    """Counters of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self.evicted = prometheus_client.Counter(
            "podyard_node_agent_evictions", "Pods evicted, by the signal that was low", ["signal"], registry=registry
        )
        self.refused = prometheus_client.Counter(
            "podyard_node_agent_refusals", "Pods that their node did not take, by reason", ["reason"], registry=registry
        )
        self.facts = prometheus_client.Counter(
            "podyard_node_agent_facts_stored", "Facts about pods and nodes that were stored", registry=registry
        )
        self._collected = prometheus_client.Counter(
            "podyard_node_agent_collected_image_bytes",
            "Images that nodes collected by themselves, by the kubelet's reason: age or space",
            ["reason"],
            registry=registry,
        )
        self._nodes = prometheus_client.Gauge("podyard_node_agent_nodes", "Nodes it plays", registry=registry)
        self._awaited = prometheus_client.Gauge(
            "podyard_node_agent_awaited_nodes",
            "Nodes it is to play, and another agent plays",
            registry=registry,
        )
        self._pods = prometheus_client.Gauge(
            "podyard_node_agent_pods", "Pods on its nodes whose object lives", registry=registry
        )
        self.start_delay = prometheus_client.Histogram(
            "podyard_node_agent_pod_start_seconds",
            "From the binding to the moment when the pod runs",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=registry,
        )

    def collected(self, for_age: int, for_space: int) -> None:
        """A node has collected so many bytes of images."""
        self._collected.labels("age").inc(for_age)
        self._collected.labels("space").inc(for_space)

    def plays(self, nodes: Sized, pods: Sized, awaited: Sized) -> None:
        """What it plays from now on, and what it waits for; empty ones when a term has ended."""
        self._awaited.set_function(lambda: len(awaited))
        self._nodes.set_function(lambda: len(nodes))
        self._pods.set_function(lambda: len(pods))
