"""What dashboards ask: ours, and those that others made for Kubernetes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

DASHBOARD: Final = Path(__file__).parents[2] / "deploy" / "grafana" / "podyard.json"
WINDOW: Final = "15s"
"""For `$__rate_interval`: fifteen scrapes, where Grafana takes four at least."""
VARIABLES: Final = {
    "$__rate_interval": WINDOW,
    "$__range": "10m",
    "$service": ".*",
    "$instance": ".*",
}


class Query(NamedTuple):
    """One target of a panel."""

    panel: str
    text: str
    """As Prometheus gets it."""


def panels() -> list[dict[str, Any]]:
    """Of our dashboard, without the headings of rows."""
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in found["panels"] if panel["type"] != "row"]


def ours() -> Iterator[Query]:
    """Every target of every panel, as somebody sees it who chose nothing."""
    for panel in panels():
        for target in panel["targets"]:
            yield Query(f"{panel['title']} {target['refId']}", filled(target["expr"]))


def filled(text: str) -> str:
    """A query with the values of its variables.

    :raises AssertionError: if it names one that is not known
    """
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    assert "$" not in text, text
    return text


METRIC: Final = re.compile(r"\b(?:podyard|scheduler|kubelet|descheduler|leader_election|process|python)_\w+")


def metrics(text: str) -> set[str]:
    """Families that a query names, histograms by their own name."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in METRIC.findall(re.sub(r'"[^"]*"', '""', text))}


PUBLIC: Final = (
    # kube-scheduler: kubernetes-mixin's dashboard "Scheduler", and what tutorials and other dashboards ask
    'sum(up{job="kube-scheduler"})',
    'sum(rate(scheduler_scheduling_algorithm_duration_seconds_count{job="kube-scheduler"}[W])) by (instance)',
    (
        "histogram_quantile(0.99, sum(rate("
        'scheduler_scheduling_algorithm_duration_seconds_bucket{job="kube-scheduler"}[W])) by (instance, le))'
    ),
    'process_resident_memory_bytes{job="kube-scheduler"}',
    'rate(process_cpu_seconds_total{job="kube-scheduler"}[W])',
    'sum by (result) (rate(scheduler_schedule_attempts_total{job="kube-scheduler"}[W]))',
    'sum by (profile, result) (rate(scheduler_schedule_attempts_total{profile="default-scheduler"}[W]))',
    (
        'sum(rate(scheduler_schedule_attempts_total{result="scheduled"}[W]))'
        " / sum(rate(scheduler_schedule_attempts_total[W]))"
    ),
    'sum(rate(scheduler_schedule_attempts_total{result="unschedulable"}[W]))',
    (
        "sum(rate(scheduler_scheduling_attempt_duration_seconds_sum[W]))"
        " / sum(rate(scheduler_scheduling_attempt_duration_seconds_count[W]))"
    ),
    "histogram_quantile(0.99, sum by (le) (rate(scheduler_scheduling_attempt_duration_seconds_bucket[W])))",
    (
        "histogram_quantile(0.95, sum by (le, profile) (rate("
        'scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled"}[W])))'
    ),
    "histogram_quantile(0.99, sum by (le) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[W])))",
    "histogram_quantile(0.90, sum by (le, attempts) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[W])))",
    "sum(rate(scheduler_pod_scheduling_attempts_sum[W])) / sum(rate(scheduler_pod_scheduling_attempts_count[W]))",
    (
        "histogram_quantile(0.99, sum by (le, extension_point) (rate("
        "scheduler_framework_extension_point_duration_seconds_bucket[W])))"
    ),
    (
        "histogram_quantile(0.99, sum by (le, plugin, extension_point) (rate("
        "scheduler_plugin_execution_duration_seconds_bucket[W])))"
    ),
    "topk(10, sum by (plugin) (rate(scheduler_plugin_evaluation_total[W])))",
    "sum(rate(scheduler_preemption_attempts_total[W]))",
    "histogram_quantile(0.99, sum by (le) (rate(scheduler_preemption_victims_bucket[W])))",
    "sum by (queue) (scheduler_pending_pods)",
    'scheduler_pending_pods{queue="unschedulable"}',
    "sum by (queue, event) (rate(scheduler_queue_incoming_pods_total[W]))",
    "sum by (plugin) (scheduler_unschedulable_pods)",
    "sum by (type) (scheduler_cache_size)",
    (
        "histogram_quantile(0.99, sum by (le, plugin) (rate("
        "scheduler_queueing_hint_execution_duration_seconds_bucket[W])))"
    ),
    "histogram_quantile(0.99, sum by (le, event) (rate(scheduler_event_handling_duration_seconds_bucket[W])))",
    "leader_election_master_status == 1",
    # kubelet: kubernetes-mixin's rules (less their join with kubelet_node_name), and others
    'sum(up{job="kubelet"})',
    'sum(rate(kubelet_evictions{job="kubelet"}[W])) by (eviction_signal, instance)',
    "sum by (eviction_signal) (increase(kubelet_evictions[W]))",
    "histogram_quantile(0.99, sum by (le, eviction_signal) (rate(kubelet_eviction_stats_age_seconds_bucket[W])))",
    "sum by (preemption_signal) (rate(kubelet_preemptions[W]))",
    # descheduler: its documentation's table of metrics, and dashboards of both times of its names
    'sum(up{job="descheduler"})',
    "sum by (strategy, result) (rate(descheduler_pods_evicted_total[W]))",
    'sum by (strategy, profile) (increase(descheduler_pods_evicted_total{result="success"}[W]))',
    'topk(10, sum by (namespace, node) (descheduler_pods_evicted_total{result="success"}))',
    "sum by (strategy, result) (rate(descheduler_pods_evicted[W]))",
    "sum by (node) (descheduler_pods_evicted)",
    "histogram_quantile(0.99, sum by (le) (rate(descheduler_loop_duration_seconds_bucket[W])))",
    "histogram_quantile(0.99, sum by (le, strategy) (rate(descheduler_strategy_duration_seconds_bucket[W])))",
    "histogram_quantile(0.99, sum by (le) (rate(descheduler_descheduler_loop_duration_seconds_bucket[W])))",
    (
        "histogram_quantile(0.99, sum by (le, strategy) (rate("
        "descheduler_descheduler_strategy_duration_seconds_bucket[W])))"
    ),
    "descheduler_build_info",
)
"""`W` is the window that the dashboard has: minutes there, `WINDOW` here."""


def public() -> Iterator[Query]:
    """Those of other dashboards."""
    for text in PUBLIC:
        yield Query("public", text.replace("[W]", f"[{WINDOW}]"))
