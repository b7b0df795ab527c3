"""Reading a policy file: what is accepted, and how faults are told."""

import pytest

from podyard.descheduler.core import building, loading, registry
from podyard.descheduler.core.errors import PolicyError, Stage
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.state import CycleState
from podyard.objects.meta import ObjectMeta
from podyard.objects.scheduling import PriorityClass

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
"""Aliases of aliases: 200 million values, in 500 bytes."""
HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
TAINTS = "RemovePodsViolatingNodeTaints"


def load(text: str, **priority_classes: int) -> Policy:
    classes = {
        name: PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in priority_classes.items()
    }
    policy = loading.load(text, registry.by_name(), classes, source="policy.yaml")
    building.build(policy, registry.by_name(), CycleState(nodes=(), pods=()), 0.0)
    return policy


def profile(args: str = "{}", evictor: str = "{}", enabled: str = f"[{TAINTS}]") -> str:
    return f"""{HEAD}
profiles:
- name: p
  pluginConfig:
  - {{name: DefaultEvictor, args: {evictor}}}
  - {{name: {TAINTS}, args: {args}}}
  plugins:
    deschedule: {{enabled: {enabled}}}
"""


def failing(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as error:
        load(text)
    assert error.value.source == ("" if error.value.stage == "build" else "policy.yaml")
    return error.value


@pytest.mark.parametrize("text", ["", "kind: DeschedulerPolicy\nprofiles: [{name: p}]", f"{HEAD}profiles: []", HEAD])
def test_documents_that_load_as_an_empty_policy(text: str):
    """Without apiVersion all the rest is dropped, as in the reference."""
    assert load(text).profiles == ()


def test_the_evictor_is_added_first_everywhere():
    text = f"{HEAD}profiles: [{{name: p, plugins: {{filter: {{disabled: [DefaultEvictor]}}}}}}]"
    (found,) = load(text).profiles
    assert [one.name for one in found.plugin_config] == ["DefaultEvictor"]
    assert found.plugins.filter.enabled == found.plugins.pre_eviction_filter.enabled == ("DefaultEvictor",)
    assert found.plugin_config[0].args.priority_threshold.value == 2_000_000_000


def test_a_priority_class_is_looked_up():
    text = profile(evictor="{priorityThreshold: {name: gold}}")
    (found,) = load(text, gold=1000).profiles
    assert (found.plugin_config[0].args.priority_threshold.value, found.plugin_config[0].args.priority_threshold.name) == (
        1000, ""
    )  # fmt: skip


def test_unknown_fields_are_ignored_but_not_in_arguments():
    load(HEAD + "whatever: 1\nprofiles: [{name: p, more: x}]")
    assert failing(profile(args="{labelSelectors: {}}")).stage == "decode"


def test_a_document_of_another_kind_is_none_even_without_a_version():
    assert "no kind 'Foo'" in failing("kind: Foo").errors[0]
    assert load("apiVersion: ''\nprofiles: [{name: p}]").profiles == ()


def test_a_float_without_a_fraction_is_a_whole_number_in_yaml_but_not_in_json():
    text = HEAD + "maxNoOfPodsToEvictTotal: 2.0\nmaxNoOfPodsToEvictPerNode: 1e1"
    assert (load(text).max_no_of_pods_to_evict_total, load(text).max_no_of_pods_to_evict_per_node) == (2, 10)
    json = '{"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "maxNoOfPodsToEvictTotal": %s}'
    assert load(json % 2).max_no_of_pods_to_evict_total == 2
    assert failing(json % "2.0").stage == "decode"
    assert failing(HEAD + "maxNoOfPodsToEvictTotal: 1e300").stage == "decode"


def test_arguments_are_completed_where_the_reference_completes_them():
    names = ("RemoveFailedPods", "RemovePodsViolatingTopologySpreadConstraint")
    configs = ", ".join(f"{{name: {name}}}" for name in names)
    (found,) = load(f"{HEAD}profiles: [{{name: p, pluginConfig: [{configs}]}}]").profiles
    _, failed, spread = (one.args for one in found.plugin_config)
    assert failed.min_pod_lifetime_seconds == 3600
    assert (spread.constraints, spread.topology_balance_node_fit) == (("DoNotSchedule",), True)


def test_arguments_may_name_their_kind():
    load(profile(args="{apiVersion: descheduler/v1alpha2, kind: Whatever}"))


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (
            "{key: a, operator: In}",
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        ("{key: a, operator: NotIn, values: []}", "values: Invalid value: null: for 'in', 'notin' operators"),
        ("{key: a, operator: Exists, values: ['1', x]}", 'values: Invalid value: ["1","x"]: values set must be empty'),
        ("{key: a b, operator: Exists}", 'key: Invalid value: "a b": name part must consist of alphanumeric'),
        ("{key: a, operator: In, values: [x y]}", 'values[0][a]: Invalid value: "x y": a valid label must be'),
        ("{key: a b, operator: In}", '[key: Invalid value: "a b": name part must consist of'),
        ("{operator: Exists}", 'key: Invalid value: "": name part must be non-empty'),
        ("{key: a}", '"" is not a valid label selector operator'),
    ],
)
def test_selectors_are_held_to_what_labels_may_be(expression: str, sentence: str):
    error = failing(profile(args=f"{{labelSelector: {{matchExpressions: [{expression}]}}}}"))
    assert error.stage == "validate"
    assert sentence in error.errors[0]
    assert failing(profile(args="{labelSelector: {matchLabels: {a: b c}}}")).stage == "validate"
    unknown = failing(profile(args="{labelSelector: {matchExpression: []}}"))
    assert 'unknown field "matchExpression"' in unknown.errors[0]


def test_names_of_storage_classes_are_looked_at_only_where_their_protection_is_chosen():
    config = "config: {PodsWithPVC: {protectedStorageClasses: [{name: ''}]}}"
    load(profile(evictor=f"{{podProtections: {{{config}}}}}"))
    load(profile(evictor=f"{{podProtections: {{extraEnabled: [PodsWithoutPDB], {config}}}}}"))
    error = failing(profile(evictor=f"{{podProtections: {{extraEnabled: [PodsWithPVC], {config}}}}}"))
    assert "ProtectedStorageClasses[0] name cannot be empty" in error.errors[0]


def test_thresholds_of_a_query_are_of_one_resource():
    args = (
        "{thresholds: {cpu: 1, MetricResource: 1}, targetThresholds: {cpu: 2, MetricResource: 2}, "
        "metricsUtilization: {source: Prometheus, prometheus: {query: q}}}"
    )
    config = f"pluginConfig: [{{name: LowNodeUtilization, args: {args}}}]"
    text = f"{HEAD}profiles: [{{name: p, {config}, plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}}}]"
    error = failing(text)
    assert error.stage == "build"
    assert error.errors[0].endswith(
        'thresholds are expected to specify a single instance of "MetricResource" resource, got [MetricResource cpu] instead'
    )


def test_the_last_of_two_keys_and_the_first_document_count():
    text = HEAD + "nodeSelector: a=b\nnodeSelector: c=d\n---\nnot: a policy\n"
    assert load(text).node_selector == "c=d"


@pytest.mark.parametrize(
    ("text", "stage", "sentence"),
    [
        ("{", "decode", "not JSON, though it begins with {"),
        ("a: [", "decode", "document 1, line 2: not valid YAML"),
        (BOMB, "decode", "more than 500000 values (aliases expanded)"),
        ("- a", "decode", "a policy is a mapping, this is a list"),
        ("apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy", "decode", "'descheduler/v1alpha1'"),
        (HEAD + "maxNoOfPodsToEvictPerNode: -1", "decode", "maxNoOfPodsToEvictPerNode"),
        (HEAD + "maxNoOfPodsToEvictTotal: 1.5", "decode", "maxNoOfPodsToEvictTotal"),
        (profile(evictor="{nodefit: true}"), "decode", 'profiles[0].pluginConfig[0].args: unknown field "nodefit"'),
        (profile(args="{namespaces: {Include: [a]}}"), "decode", 'args.namespaces: unknown field "Include"'),
        (profile(evictor="{minPodAge: soon}"), "decode", 'invalid duration "soon"'),
        (profile(evictor="{minPodAge: 5}"), "decode", "minPodAge"),
        (
            profile(args="{includedTaints: [a], excludedTaints: [b]}"),
            "validate",
            "in profile p: either includedTaints or excludedTaints can be set, but not both",
        ),
        (
            profile(args="{namespaces: {include: [a], exclude: [b]}, labelSelector: {matchExpressions: "
                         "[{key: a, operator: Foo}]}}"),
            "validate",
            ("in profile p: [only one of Include/Exclude namespaces can be set, failed to get label selectors from "
            'strategy\'s params: "Foo" is not a valid label selector operator]'),
        ),
        (f"{HEAD}profiles: [{{name: p, pluginConfig: [{{name: Nope}}]}}]", "validate",
         "in profile p: plugin Nope in pluginConfig not registered"),
        (
            HEAD + "metricsProviders: [{source: Prometheus}]",
            "validate",
            "prometheus configuration is required when prometheus source is enabled",
        ),
        (
            profile(evictor="{priorityThreshold: {name: nope}}"),
            "default",
            'unable to get priority value from the priority class: priorityclasses.scheduling.k8s.io "nope" not found',
        ),
        (
            profile(evictor="{priorityThreshold: {value: 2000000001}}"),
            "default",
            "priority threshold can't be greater than 2000000000",
        ),
        (
            profile(enabled="[Nope]"),
            "build",
            ('unable to create "p" profile: profile "p" configures deschedule extension point of non-existing plugins: '
            "map[Nope:{}]"),
        ),
        (
            profile(enabled="[DefaultEvictor]"),
            "build",
            ('unable to create "p" profile: profile "p" configures deschedule extension point of non-existing plugins: '
            "map[DefaultEvictor:{}]"),
        ),
        (
            f"{HEAD}profiles: [{{name: p, plugins: {{deschedule: {{enabled: [{TAINTS}]}}}}}}]",
            "build",
            f'unable to create "p" profile: unable to build {TAINTS} plugin: unable to find "{TAINTS}" plugin config',
        ),
        (
            profile(evictor="{labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}"),
            "build",
            ('unable to create "p" profile: unable to build DefaultEvictor plugin: unable to initialize "DefaultEvictor" '
            'plugin: "Foo" is not a valid label selector operator'),
        ),
        (HEAD + "nodeSelector: a in (b", "build", "unable to parse requirement: found '', expected: ',' or ')'"),
        (HEAD + "nodeSelector: a b", "build", "unable to parse requirement: found 'b', expected: in, notin"),
    ],
)  # fmt: skip
def test_faults(text: str, stage: Stage, sentence: str):
    error = failing(text)
    assert error.stage == stage
    assert sentence in error.errors[0]


def test_all_faults_of_all_profiles_are_told_each_once():
    bad = "{name: Nope}, {name: DefaultEvictor, args: {noEvictionPolicy: x}}"
    text = f"{HEAD}profiles: [{{name: a, pluginConfig: [{bad}]}}, {{name: b, pluginConfig: [{bad}, {{name: Nope}}]}}]"
    sentence = 'noEvictionPolicy accepts only ["Preferred" "Mandatory"] values'
    assert failing(text).errors == (
        "in profile a: plugin Nope in pluginConfig not registered", f"in profile a: {sentence}",
        "in profile b: plugin Nope in pluginConfig not registered", f"in profile b: {sentence}",
    )  # fmt: skip


def test_a_grace_period_beyond_all_numbers_is_told_when_the_policy_is_read():
    """Else each eviction would break off."""
    error = failing(f"apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\ngracePeriodSeconds: {10**400}")
    assert error.stage == "decode"
    assert "gracePeriodSeconds" in str(error)


def test_a_plugin_name_is_taken_once():
    with pytest.raises(ValueError, match="two plugins are called DefaultEvictor"):
        registry.by_name((*registry.PLUGINS, registry.DefaultEvictor))
