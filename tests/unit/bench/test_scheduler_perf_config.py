"""The reference's benchmark files: what is read, and what is refused with its place."""

from pathlib import Path

import pytest

from podyard.bench.scheduler_perf import config, gates, planning
from podyard.bench.scheduler_perf.config import (
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from podyard.cli.errors import InputError

EVERYTHING = """
- name: Everything
  featureGates: {SchedulerQueueingHints: true}
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - {opcode: createNamespaces, prefix: room, count: 2}
  - opcode: createPodSets
    countParam: $sets
    namespacePrefix: room
    createPodsOp: {opcode: createPods, countParam: $each, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted, labelSelector: {a: b}}
  - {opcode: createAny, templatePath: any.yaml, namespace: room-0}
  - {opcode: churn, mode: recreate, number: 1, templatePaths: [pod.yaml], intervalMilliseconds: 100}
  - {opcode: updateAny, templatePath: any.yaml, countParam: $each, updatePerSecond: 10, subresources: [resize]}
  - {opcode: startCollectingMetrics, namespaces: [room-0], name: x}
  - {opcode: createPods, count: 1, steadyStateParam: $steady, durationParam: $lasts}
  - {opcode: deletePods, namespace: room-0, deletePodsPerSecond: 5, skipWaitToCompletion: true}
  - {opcode: sleep, durationParam: $lasts}
  - opcode: stopCollectingMetrics
  workloads:
  - name: small/one
    labels: [short]
    threshold: 3
    params: {nodes: 3, sets: 2, each: 4, steady: true, lasts: 1m30s}
"""


def read(text: str) -> tuple[config.Case, ...]:
    return config.decode("config.yaml", text)


def plan(text: str, name: str) -> list[config.Step]:
    return planning.plan(*config.chosen(read(text), name))


def simple(
    op: str = "{opcode: createPods, count: 1, collectMetrics: true}", params: str = "{}", gate: str = "{}"
) -> str:
    return f"""
- name: One
  workloadTemplate:
  - {op}
  - {{opcode: createPods, count: 1, collectMetrics: true}}
  workloads:
  - {{name: w, params: {params}, featureGates: {gate}}}
"""


def test_parameters_are_filled_in_and_sets_unrolled():
    steps = plan(EVERYTHING, "Everything/small/one")
    kinds = [CreateNodes, CreateNamespaces, CreatePods, CreatePods, Barrier, CreateAny, Churn, UpdateAny]
    kinds += [StartCollectingMetrics, CreatePods, DeletePods, Sleep, StopCollectingMetrics]
    assert [type(step) for step in steps] == kinds
    nodes, _, first, second, *_ = steps
    assert isinstance(nodes, CreateNodes)
    assert (nodes.count, nodes.count_param) == (3, "")
    assert isinstance(first, CreatePods)
    assert isinstance(second, CreatePods)
    assert [(one.namespace, one.count) for one in (first, second)] == [("room-0", 4), ("room-1", 4)]
    steady = steps[9]
    assert isinstance(steady, CreatePods)
    assert (steady.steady_state, steady.duration) == (True, "1m30s")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(simple("{opcode: dance}"), "workloadTemplate[0]", id="opcode"),
        pytest.param(simple("{opcode: sleep, duration: 1s, loud: true}"), "unknown field `loud`", id="field"),
        pytest.param(simple("{opcode: barrier, stageRequirement: Tried}"), "stageRequirement", id="stage"),
        pytest.param(simple("{opcode: createPods, count: many}"), "Expected `int`", id="type"),
        pytest.param("a: b", "a list of cases", id="no list"),
        pytest.param(simple() + simple(), "two of the case One", id="twice"),
        pytest.param("- {name: x, name: y}", "name", id="duplicate key"),
    ],
)
def test_what_is_not_known_is_refused_with_its_place(text: str, told: str):
    with pytest.raises(InputError) as raised:
        read(text)
    assert raised.value.message.startswith("config.yaml: ")
    assert told in raised.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            simple("{opcode: createPods, countParam: $size}"), "parameter $size is not defined", id="undefined"
        ),
        pytest.param(
            simple("{opcode: createPods, countParam: size}", "{size: 1}"), "must begin with $", id="no dollar"
        ),
        pytest.param(simple("{opcode: createPods, countParam: $size}", "{size: a}"), "of the wrong type", id="type"),
        pytest.param(simple(params="{size: 1}"), "parameters that no op uses: size", id="unused"),
        pytest.param(simple("{opcode: createPods, count: -1}"), "count is -1", id="below 0"),
        pytest.param(simple("{opcode: createPods, count: 9000000}"), "count is 9000000", id="too many"),
        pytest.param(
            simple("{opcode: createPods, collectMetrics: true, skipWaitToCompletion: true}"), "exclude", id="both"
        ),
        pytest.param(simple("{opcode: sleep, duration: soon}"), "'soon' is no duration", id="duration"),
        pytest.param(simple("{opcode: churn, mode: recreate, templatePaths: [a]}"), "number 0", id="churn"),
        pytest.param(simple("{opcode: createResourceClaims, count: 1}"), "dynamic resource allocation", id="devices"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_with_its_op(text: str, told: str):
    with pytest.raises(InputError) as raised:
        plan(text, "One/w")
    assert raised.value.message.startswith("One/w: ")
    assert told in raised.value.message


def test_a_case_that_measures_nothing_is_refused():
    text = "- {name: One, workloadTemplate: [{opcode: sleep, duration: 1s}], workloads: [{name: w}]}"
    with pytest.raises(InputError, match="no op measures anything"):
        plan(text, "One/w")


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ("{SchedulerQueueingHints: false}", "locks it to true"),
        ("{DRAExtendedResource: true}", "devices"),
        ("{DRADeviceTaints: true}", "cannot allocate devices"),
        ("{Nonsense: true}", "Nonsense is not known"),
    ],
)
def test_gates_that_cannot_be_set_are_refused_with_the_reason(gate: str, told: str):
    with pytest.raises(InputError) as raised:
        plan(simple(gate=gate), "One/w")
    assert told in raised.value.message


def test_gates_that_change_nothing_here_are_told():
    assert gates.refusal({"SchedulerAsyncPreemption": False, "SchedulerQueueingHints": True}) == ""
    assert gates.of_no_effect({"SchedulerAsyncPreemption": False}, {"DRAExtendedResource": False}) == [
        "SchedulerAsyncPreemption"
    ]


def test_a_gate_for_what_is_always_done_changes_nothing_and_off_it_is_told():
    assert gates.refusal({"NodeDeclaredFeatures": True}) == gates.refusal({"NodeDeclaredFeatures": False}) == ""
    assert gates.of_no_effect({"NodeDeclaredFeatures": True}) == []
    assert gates.of_no_effect({"NodeDeclaredFeatures": False}) == ["NodeDeclaredFeatures"]


def test_a_workload_overrides_the_gates_of_its_case():
    assert gates.refusal({"SchedulerQueueingHints": False}, {"SchedulerQueueingHints": True}) == ""


@pytest.mark.parametrize("name", ["Two/w", "One/v", "One"])
def test_a_case_that_is_not_there_is_told(name: str):
    with pytest.raises(InputError, match="--case"):
        config.chosen(read(simple()), name)


@pytest.mark.parametrize(("text", "value"), [("90s", 90.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("200ms", 0.2)])
def test_durations_are_read_as_go_writes_them(text: str, value: float):
    assert planning.seconds(text) == pytest.approx(value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="No such file"):
        config.read(tmp_path / "none.yaml")
