"""A lab at work as a real Prometheus sees it: every service, every query of the dashboards, every rule."""

import pytest

from tests.prometheus import acts, queries
from tests.prometheus.queries import Query
from tests.prometheus.server import PrometheusServer, finite

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVICES = {"api", "kube-api", "queue", "scheduler", "binder", "node-agent", "descheduler", "workloads"}
JOBS = {
    "kube-scheduler": {"queue", "scheduler", "binder"},
    "kubelet": {"node-agent"},
    "descheduler": {"descheduler"},
    "podyard": {"api", "kube-api", "workloads"},
}


def values(server: PrometheusServer, query: str, label: str) -> dict[str, float]:
    """The largest value since the start, by a label."""
    found: dict[str, float] = {}
    for labels, value in finite(server.since_the_start(query)):
        found[labels[label]] = max(found.get(labels[label], 0.0), value)
    return found


async def test_all_services_are_scraped_over_tls(prometheus: PrometheusServer) -> None:
    targets = prometheus.targets()
    assert [target for target in targets if target["health"] != "up"] == []
    assert {target["labels"]["service"] for target in targets} == SERVICES
    assert {target["scrapeUrl"].partition(":")[0] for target in targets} == {"https"}
    for job, services in JOBS.items():
        assert {one["labels"]["service"] for one in targets if one["labels"]["job"] == job} == services


@pytest.mark.parametrize("query", tuple(queries.ours()), ids=lambda query: query.panel)
async def test_each_query_of_our_dashboard_returns_data(prometheus: PrometheusServer, query: Query) -> None:
    assert any(True for _ in finite(prometheus.since_the_start(query.text))), query.text


@pytest.mark.parametrize("query", tuple(queries.public()), ids=lambda query: query.text[:70])
async def test_each_query_of_public_dashboards_returns_data(prometheus: PrometheusServer, query: Query) -> None:
    assert any(True for _ in finite(prometheus.since_the_start(query.text))), query.text


async def test_attempts_are_told_apart_by_result(prometheus: PrometheusServer) -> None:
    found = values(prometheus, "sum by (result) (scheduler_schedule_attempts_total)", "result")
    assert found["scheduled"] >= 35 + acts.BATCHES * acts.MANY, "those of the story, and of the acts"
    assert found["unschedulable"] >= 3, "trainer, report, and the pod that preempts"


async def test_pending_pods_are_told_apart_by_queue(prometheus: PrometheusServer) -> None:
    found = values(prometheus, "sum by (queue) (scheduler_pending_pods)", "queue")
    assert found.keys() == {"active", "backoff", "unschedulable", "gated"}
    assert found["unschedulable"] >= 1, "one fits nowhere"


async def test_evictions_under_pressure_are_told_apart_by_signal(prometheus: PrometheusServer) -> None:
    found = values(prometheus, "sum by (eviction_signal) (kubelet_evictions)", "eviction_signal")
    assert {signal for signal, number in found.items() if number} == {"memory.available"}
    assert found["memory.available"] >= 2
    ages = values(prometheus, "kubelet_eviction_stats_age_seconds_count", "eviction_signal")
    assert ages["memory.available"] >= 2
    gone = values(prometheus, "sum by (preemption_signal) (kubelet_preemptions)", "preemption_signal")
    assert gone == {"cpu": 1}


@pytest.mark.parametrize("name", ["descheduler_pods_evicted_total", "descheduler_pods_evicted"])
async def test_evictions_of_the_descheduler_are_told_apart(prometheus: PrometheusServer, name: str) -> None:
    found = prometheus.now(f"sum by (result, strategy, profile, namespace) ({name})")
    labels = {tuple(sorted(series["metric"].items())) for series in found}
    success = {
        "result": "success",
        "strategy": "RemovePodsViolatingNodeTaints",
        "profile": "demo",
        "namespace": "default",
    }
    assert tuple(sorted(success.items())) in labels
    assert len(prometheus.now(f'count by (node) ({name}{{result="success"}})')) == 1


async def test_a_preemption_is_counted_with_its_victim(prometheus: PrometheusServer) -> None:
    attempts, victims = "scheduler_preemption_attempts_total", "scheduler_preemption_victims_sum"
    assert max(value for _, value in finite(prometheus.since_the_start(f"sum({attempts})"))) >= 1
    assert max(value for _, value in finite(prometheus.since_the_start(f"sum({victims})"))) >= 1


async def test_one_instance_leads_each_lease(prometheus: PrometheusServer) -> None:
    found = prometheus.now("sum by (name) (leader_election_master_status)")
    assert len(found) == 5
    assert {series["value"][1] for series in found} == {"1"}


async def test_all_rules_are_evaluated_without_an_error(prometheus: PrometheusServer) -> None:
    rules = prometheus.rules()
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    # of faults of plugins there are none in this lab
    assert {name for name in recorded if not prometheus.since_the_start(name)} <= {"podyard:plugin_faults:sum"}


async def test_a_lab_that_is_well_alarms_nobody_but_about_what_happened(prometheus: PrometheusServer) -> None:
    firing = {
        alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"
    }
    assert firing == {"PodyardEvictions"}
