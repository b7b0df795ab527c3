"""Scenario files: what they may say, and every fault of one told at once."""

from pathlib import Path

import pytest

from podyard.cli.errors import InputError
from podyard.cli.scenario import load, model
from podyard.cli.scenario.play import merge
from podyard.proto.signals import Failing, Unused, UnusedImage

EXAMPLES = Path(__file__).parents[3] / "examples" / "scenarios"
HEAD = "scenario: s\nsteps:\n"


def only(step: str) -> model.Step:
    (found,) = load.load("s.yaml", HEAD + step, Path()).steps
    return found


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_have_no_faults(path):
    story = load.read(str(path))
    assert story.name == path.stem
    assert story.steps


def test_the_promised_examples_are_there():
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} >= {
        "taint-and-untaint",
        "scale-out",
        "memory-pressure",
        "event-storm",
    }


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2.0), ("500ms", 0.5), ("1.5m", 90.0), ("1h", 3600.0), ("3", 3.0)])
def test_durations(text, seconds):
    assert only(f"  - {{after: {text}, publish: Node/Add}}").after_s == seconds
    assert only(f"  - {{at: {text}, publish: Node/Add}}").at_s == seconds


def test_objects_in_place_and_in_files(tmp_path):
    (tmp_path / "n.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: b}\n")
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}"
    story = load.load("s.yaml", f"{HEAD}  - apply: [{pod}, {{file: n.yaml}}]", tmp_path)
    action = story.steps[0].action
    assert isinstance(action, model.Apply)
    assert [document["metadata"] for document in action.documents] == [
        {"name": "a", "namespace": "default"},
        {"name": "b"},
    ]


def test_deletes_name_kind_namespace_and_name():
    action = only("  - delete: {objects: [pod/a, pod/x/b, node/c], gracePeriod: 0}").action
    assert isinstance(action, model.Delete)
    assert [(ref.resource, ref.namespace, ref.name) for ref in action.refs] == [
        ("pods", "default", "a"),
        ("pods", "x", "b"),
        ("nodes", "", "c"),
    ]
    assert action.grace_period_s == 0


def test_signals_say_what_a_node_cannot_do():
    action = only("  - signals: {node: n1, failing: {kill: no runtime}}").action
    assert isinstance(action, model.Signals)
    assert action.said.failing == (Failing(what="kill", why="no runtime"),)


def test_signals_in_quantities():
    action = only(
        "  - signals: {node: n1, memory.available: 200Mi of 8Gi, pods: {web: 1Gi, x/db: 2Gi}, every: 500ms, for: 3s}"
    ).action
    assert isinstance(action, model.Signals)
    level = action.said.signals["memory.available"]
    assert (level.available, level.capacity) == (200 * 2**20, 8 * 2**30)
    assert [(pod.namespace, pod.name, pod.memory_bytes) for pod in action.said.pods] == [
        ("default", "web", 2**30),
        ("x", "db", 2 * 2**30),
    ]
    assert (action.every_s, action.for_s) == (0.5, 3.0)


def test_waits_by_name_by_label_and_for_all():
    by_name = only("  - wait: {pods: web, are: Running}").action
    by_label = only("  - wait: {nodes: pool=a, are: Ready, count: 2, within: 5s}").action
    everything = only("  - wait: {nodes: all, are: Ready}").action
    assert isinstance(by_name, model.Wait)
    assert isinstance(by_label, model.Wait)
    assert isinstance(everything, model.Wait)
    assert (by_name.name, by_name.count) == ("web", None)
    assert (by_label.name, by_label.count, by_label.within_s) == ("", 2, 5.0)
    assert by_label.selector.matches({"pool": "a"})
    assert not by_label.selector.matches({"pool": "b"})
    assert everything.name == ""
    assert everything.selector.matches({})


def test_repetitions_count_in_every_text():
    step = only('  - {repeat: 3, rate: 10, steps: [{delete: "pod/a-${n}"}]}')
    assert isinstance(step.action, model.Repeat)
    (inner,) = load.body(step.action, 2, Path())
    assert isinstance(inner.action, model.Delete)
    assert inner.action.refs[0].name == "a-2"


def test_all_faults_are_told_with_their_paths():
    text = """
scenario: s
colour: blue
steps:
  - apply: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, resources: {requests: {cpu: much}}}]}}]
  - delete: [pod, nonsense/a]
  - publish: {event: Node/Nonsense, count: 0}
  - wait: {pods: a, are: Happy}
  - signals: {node: n1, memory.available: lots, failing: {wish: no, kill: no runtime}}
  - {at: 1s, after: 2s, publish: Node/Add}
  - {publish: Node/Add, delete: pod/a}
  - repeat: 2
    steps: [{wait: {pods: a, nodes: b, are: Ready}}]
  - apply: {file: missing.yaml}
"""
    with pytest.raises(InputError) as raised:
        load.load("s.yaml", text, Path())
    told = raised.value.message
    for path in (
        "s.yaml: colour:",
        "steps[0].apply[0].spec.containers[0].resources.requests",
        "steps[1].delete[0]:",
        "steps[1].delete[1]:",
        "steps[2].publish.event:",
        "steps[2].publish.count:",
        "steps[3].wait.are:",
        "steps[4].signals.memory.available:",
        "steps[4].signals.failing.wish:",
        "steps[5]: has both",
        "steps[6]: must have exactly one",
        "steps[7].steps[0].wait: must name either",
        "steps[8].apply[0].file:",
    ):
        assert path in told, path


@pytest.mark.parametrize(
    "text", ["a: [", "[]", "scenario: s", "scenario: s\nsteps: []", "steps: [{publish: Node/Add}]"]
)
def test_what_is_no_scenario_is_refused(text):
    with pytest.raises(InputError):
        load.load("s.yaml", text, Path())


@pytest.mark.parametrize(
    ("document", "change", "merged"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_patches_are_json_merge_patches(document, change, merged):
    assert merge(document, change) == merged


SHAPED = """
  - signals:
      node: node-1
      memory.available: {ramp: 1Gi of 8Gi, over: 30s}
      cpu: {constant: 2}
      pods:
        db:
          cpu: 500m
          memory: {leak: 10Mi, from: 1Gi, to: 6Gi}
          containers: {main: {disk: {replay: {0s: 1, 10s: 5}}}}
          volumes: {cache: {disk: {spike: 7, for: 5s}}}
      images: 2Gi
      singleImages:
        app:v1: {disk: 1Gi, inodes: 900, pulled: 10m, used: 5m}
        app:v2: 1Ki
      deadContainers: {disk: 1, inodes: 3}
"""


def test_amounts_of_signals_may_change_by_themselves():
    action = only(SHAPED).action
    assert isinstance(action, model.Signals)
    said = action.said
    assert said.standing
    assert (said.images, said.dead_containers) == (Unused(disk_bytes=2 * 2**30), Unused(disk_bytes=1, inodes=3))
    assert said.single_images == (
        UnusedImage(name="app:v1", disk_bytes=2**30, inodes=900, pulled_s=600, used_s=300),
        UnusedImage(name="app:v2", disk_bytes=1024, pulled_s=0, used_s=None),
    )
    assert said.pods[0].cpu_nanocores == 500_000_000
    shown = [
        (
            one.signal or one.container or one.volume or one.pod,
            one.resource,
            [(at.after_s, at.amount) for at in one.points],
        )
        for one in said.courses
    ]
    gibibyte = 2**30
    assert shown == [
        ("memory.available", "memory", [(30, gibibyte)]),
        ("", "cpu", [(0, 2 * 10**9)]),
        ("main", "disk", [(0, 1), (10, 5)]),
        ("cache", "disk", [(0, 7), (5, 7), (5, None)]),
        ("db", "memory", [(0, gibibyte), (512, 6 * gibibyte)]),
    ]


@pytest.mark.parametrize(
    ("amount", "path"),
    [
        ("{ramp: 1Gi}", "memory.over: a ramp must say it"),
        ("{ramp: 1Gi, over: soon}", "memory.over: 'soon'"),
        ("{leak: 0, to: 1Gi}", "memory.leak: 0"),
        ("{replay: {10s: 1, 5s: 2}}", "memory.replay: must be in order of time"),
        ("{replay: {}}", "memory.replay: has 0 points"),
        ("{spike: 1, for: 1s, over: 2s}", "memory.over: unknown"),
        ("{ramp: 1, spike: 2}", "memory: must have exactly one of"),
        ("-1", "memory: "),
    ],
)
def test_an_amount_that_makes_no_sense_is_told_with_its_path(amount, path):
    with pytest.raises(InputError) as told:
        load.load("s.yaml", f"{HEAD}  - signals: {{node: node-1, pods: {{db: {{memory: {amount}}}}}}}\n", Path())
    assert f"steps[0].signals.pods.db.{path}" in told.value.message
