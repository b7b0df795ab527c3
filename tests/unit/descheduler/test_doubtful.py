"""What a policy says that cannot be meant: told with its field, at the start or when a cycle sees it."""

import pytest

from podyard.descheduler.core import doubtful, loading, registry
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.state import CycleState
from tests.unit.descheduler.make import node, pod, run_loaded

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
THRESHOLDS = "thresholds: {cpu: 20}, targetThresholds: {cpu: 60}"
QUERIED = "thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 60}"
PLAIN = """
profiles:
- name: p
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 100}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""


def found(text: str) -> dict[str, str]:
    loaded = loading.checked(text, registry.by_name())
    return {one.field: one.reason for one in doubtful.found(loaded.document, loaded.policy)}


def low(metrics: str, top: str = "", thresholds: str = THRESHOLDS) -> str:
    return f"""{HEAD}{top}
profiles:
- pluginConfig: [{{name: LowNodeUtilization, args: {{{thresholds}, metricsUtilization: {metrics}}}}}]
  plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}
"""


def test_nothing_is_told_of_a_policy_that_can_be_meant() -> None:
    assert found(HEAD + PLAIN) == {}


def test_no_file_and_a_policy_without_profiles_are_told() -> None:
    reason = "there are none: nothing is evicted"
    assert doubtful.found({}, Policy()) == (("profiles", reason),)
    assert found(HEAD) == {"profiles": reason}


def test_a_file_of_which_nothing_counts_is_told() -> None:
    assert found(PLAIN) == {"apiVersion": "it is missing: nothing of the file counts, and nothing is evicted"}


def test_fields_that_nobody_reads_are_told_where_they_stand() -> None:
    text = (
        HEAD + "nodeselector: a=b\nmetadata: {name: x}\n" + PLAIN.replace("deschedule:", "reschedule: {}, deschedule:")
    )
    text = text.replace("name: p\n", "name: p\n  pluginConfigs: []\n")
    assert set(found(text)) == {
        "nodeselector",
        "metadata",
        "profiles[0].pluginConfigs",
        "profiles[0].plugins.reschedule",
    }
    assert set(found(text).values()) == {"there is no such field: it is not read"}


def test_what_a_profile_has_without_effect_is_told() -> None:
    text = (
        HEAD
        + """
profiles:
- pluginConfig:
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 100}}
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 200}}
  - {name: RemoveDuplicates}
  plugins:
    presort: {enabled: [Any]}
    deschedule: {enabled: [PodLifeTime], disabled: ["*"]}
- name: idle
  pluginConfig: [{name: DefaultEvictor}]
"""
    )
    assert found(text) == {
        "profiles[0].plugins.presort.enabled": "no plugin has this extension point: it is not asked",
        "profiles[0].plugins.deschedule.disabled": "it has no effect: a plugin runs if it is enabled",
        "profiles[0].pluginConfig[1]": "PodLifeTime is configured before: these arguments do not count",
        "profiles[0].pluginConfig[2]": "RemoveDuplicates is configured and enabled nowhere: it does nothing",
        "profiles[1].plugins": "no plugin is enabled at deschedule or balance: nothing is evicted",
    }


def test_two_plugins_that_work_against_each_other_are_told() -> None:
    text = (
        HEAD
        + f"""
profiles:
- pluginConfig:
  - {{name: LowNodeUtilization, args: {{{THRESHOLDS}}}}}
  - {{name: HighNodeUtilization, args: {{thresholds: {{cpu: 20}}}}}}
  plugins: {{balance: {{enabled: [LowNodeUtilization, HighNodeUtilization]}}}}
"""
    )
    (told,) = found(text).items()
    assert told[0] == "profiles[0].plugins.balance.enabled"
    assert told[1].endswith("enable one of them")


@pytest.mark.parametrize(
    ("metrics", "field", "reason"),
    [
        ("{}", ".source", "there is no source '', only KubernetesMetrics and Prometheus: the plugin does nothing"),
        ("{source: Other}", ".source", "there is no source 'Other', only KubernetesMetrics and Prometheus"),
        ("{source: KubernetesMetrics}", "", "KubernetesMetrics: no metrics provider has this source"),
        ("{metricsServer: true}", "", "KubernetesMetrics: no metrics provider has this source"),
    ],
)
def test_a_source_that_nobody_provides_is_told(metrics: str, field: str, reason: str) -> None:
    (told,) = found(low(metrics)).items()
    assert told[0] == f"profiles[0].pluginConfig[0].args.metricsUtilization{field}"
    assert told[1].startswith(reason)


def test_prometheus_is_told_where_it_is_asked_and_not_provided() -> None:
    asked = "{source: Prometheus, prometheus: {query: up}}"
    (told,) = found(low(asked, thresholds=QUERIED)).values()
    assert told == "Prometheus: no metrics provider has this source, so the plugin does nothing"
    provided = "metricsProviders: [{source: Prometheus, prometheus: {url: http://127.0.0.1:9090}}]"
    assert found(low(asked, provided, QUERIED)) == {}


def test_a_provider_that_nothing_knows_is_told_and_agents_are_one() -> None:
    assert found(f"{HEAD}metricsCollector: {{enabled: true}}\n{PLAIN}") == {}
    assert found(f"{HEAD}metricsProviders: [{{source: KubernetesMetrics}}, {{source: Other}}]\n{PLAIN}") == {
        "metricsProviders[1].source": "no plugin knows a source 'Other'"
    }
    provided = "metricsProviders: [{source: KubernetesMetrics}]"
    assert found(low("{source: KubernetesMetrics}", provided)) == {}


def seen(text: str) -> dict[str, str]:
    """What a cycle over two nodes of zone `a` tells."""
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "a"})]
    record, _ = run_loaded(loading.checked(text, registry.by_name()), CycleState(nodes=nodes, pods=[pod()]))
    return {one.field: one.reason for one in record.doubtful}


def test_a_selector_that_takes_no_node_is_told_by_the_cycle() -> None:
    top = "'zone=b' takes none of the ready nodes: nothing is evicted"
    assert seen(f"{HEAD}nodeSelector: zone=b\n{PLAIN}") == {"nodeSelector": top}
    assert seen(f"{HEAD}nodeSelector: zone=a\n{PLAIN}") == {}


def test_a_selector_of_the_evictor_that_takes_no_node_is_told_if_it_is_asked() -> None:
    def of(evictor: str) -> dict[str, str]:
        return seen(HEAD + PLAIN.replace("[{name: Pod", f"[{{name: DefaultEvictor, args: {{{evictor}}}}}, {{name: Pod"))

    (told,) = of("nodeSelector: zone=b, nodeFit: true").items()
    assert told[0] == "profiles[0].pluginConfig[0].args.nodeSelector"
    assert told[1].startswith("'zone=b' takes none of the ready nodes: ")
    assert of("nodeSelector: zone=b") == of("nodeSelector: zone=a, nodeFit: true") == {}


def test_no_selector_is_told_where_no_node_is_ready() -> None:
    loaded = loading.checked(f"{HEAD}nodeSelector: zone=b\n{PLAIN}", registry.by_name())
    record, _ = run_loaded(loaded, CycleState(nodes=[node("n1", ready="False")], pods=()))
    assert record.doubtful == ()
