"""Builders for tests of the descheduler's core."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podyard.descheduler.core import cycle, loading, registry
from podyard.descheduler.core.arguments import Args
from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.evictions import Eviction, EvictionDone, EvictionResult
from podyard.descheduler.core.framework import Handle, Plugin, Verdict
from podyard.descheduler.core.loading import Loaded
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.state import CycleState
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from tests.support.objects import typed_node, typed_pod

NOW = 1_800_000_000.0
OWNER = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-1", "controller": True}]


def pod(
    name: str = "web", node: str = "n1", *, phase: str = "Running", spec: dict | None = None, **metadata: Any
) -> Pod:
    """A pod of a ReplicaSet in namespace `default`; `owners=[]` makes it bare."""
    owners = metadata.pop("owners", OWNER)
    status = metadata.pop("status", {})
    more = {"ownerReferences": owners, **metadata}
    return typed_pod(name, node=node, phase=phase, metadata=more, status=status, **(spec or {}))


def node(name: str = "n1", *taints: str, ready: str = "True", unschedulable: bool = False, **metadata: Any) -> Node:
    """A node with room for 4 CPUs and 10 pods; taints as `key=value:Effect`."""
    return typed_node(
        name,
        pods="10",
        taints=[_taint(text) for text in taints],
        unschedulable=unschedulable,
        metadata=metadata,
        status={"conditions": [{"type": "Ready", "status": ready}]},
    )


def _taint(text: str) -> dict[str, str]:
    named, effect = text.split(":")
    key, _, value = named.partition("=")
    return {"key": key, "value": value, "effect": effect}


def policy(
    *plugins: type[Plugin], args: dict[str, dict] | None = None, evictor: dict | None = None, **top: Any
) -> Policy:
    """A policy of one profile called `p` that runs `plugins` at every extension point they have."""
    configs = [{"name": "DefaultEvictor", "args": evictor or {}}]
    configs += [{"name": one.NAME, "args": (args or {}).get(one.NAME, {})} for one in plugins]
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {
                "name": "p",
                "pluginConfig": configs,
                "plugins": {
                    "deschedule": {"enabled": [one.NAME for one in plugins if hasattr(one, "deschedule")]},
                    "balance": {"enabled": [one.NAME for one in plugins if hasattr(one, "balance")]},
                },
            }
        ],
        **top,
    }
    return loading.load(msgspec.json.encode(document).decode(), known(*plugins), {})


def querying(*queries: str, enabled: bool = True, provided: bool = True, eviction_limit: int | None = None) -> Policy:
    """A policy with a profile for each query, by which LowNodeUtilization moves pods from nodes above 50 % to
    those below 20 %."""
    profiles = [
        {
            "pluginConfig": [
                {
                    "name": "LowNodeUtilization",
                    "args": {
                        "thresholds": {"MetricResource": 20},
                        "targetThresholds": {"MetricResource": 50},
                        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": query}},
                        "evictionLimits": {"node": eviction_limit},
                    },
                }
            ],
            "plugins": {"balance": {"enabled": ["LowNodeUtilization"] if enabled else []}},
        }
        for query in queries
    ]
    provider = {"source": "Prometheus", "prometheus": {"url": "http://127.0.0.1:9090"}}
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": profiles,
        "metricsProviders": [provider] if provided else [],
    }
    return loading.checked(msgspec.json.encode(document).decode(), known()).policy


def known(*plugins: type[Plugin]) -> dict[str, type[Plugin]]:
    return {**registry.by_name(), **{one.NAME: one for one in plugins}}


def done(_wanted: Eviction) -> EvictionResult:
    return EvictionDone()


def run(
    chosen: Policy, state: CycleState, *plugins: type[Plugin], answer: Callable[[Eviction], EvictionResult] = done
) -> tuple[CycleRecord, list[Eviction]]:
    """One cycle; `answer` says what becomes of each eviction."""
    return _run(chosen, known(*plugins), state, answer)


def run_loaded(found: Loaded, state: CycleState, now: float = NOW) -> tuple[CycleRecord, list[Eviction]]:
    """One cycle of a policy as it was read, with the plugins that it names."""
    return _run(loading.with_defaults(found.policy, {}), found.plugins, state, done, now)


def _run(
    chosen: Policy,
    plugins: Mapping[str, type[Plugin]],
    state: CycleState,
    answer: Callable[[Eviction], EvictionResult],
    now: float = NOW,
) -> tuple[CycleRecord, list[Eviction]]:
    running = cycle.run(chosen, plugins, state, now)
    asked: list[Eviction] = []
    result: EvictionResult | None = None
    while True:
        try:
            wanted = next(running) if result is None else running.send(result)
        except StopIteration as ended:
            return ended.value, asked
        asked.append(wanted)
        result = answer(wanted)


class AnyVerdict:
    """An evictor that lets every pod go, but those named."""

    def __init__(self, refused: Mapping[str, str] | None = None) -> None:
        self._refused = refused or {}

    def filter(self, one: Pod) -> Verdict:
        reason = self._refused.get(one.metadata.name)
        return Verdict(reason is None, () if reason is None else (reason,))

    def pre_eviction_filter(self, one: Pod) -> Verdict:
        del one
        return Verdict(True)


def handle(state: CycleState, refused: Mapping[str, str] | None = None) -> Handle:
    return Handle(state, AnyVerdict(refused), NOW)


class NoArgs(Args, frozen=True, kw_only=True):
    """Arguments of the test's own plugins: none."""
