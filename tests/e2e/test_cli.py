"""The command line against a running lab: what it prints, and its exit codes."""

import json
import sys
from os import environ
from pathlib import Path

import anyio
import pytest_asyncio
import yaml
from anyio.streams.text import TextReceiveStream

from podyard.proto.requeues import PodMove
from tests.e2e.stage import WITHIN_S, Stand, node

SCENARIO = Path("examples/scenarios/taint-and-untaint.yaml").absolute()


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(node("node-1"), node("node-2"))
    return here


async def test_apply_says_what_it_did_and_repeating_changes_nothing(here: Stand, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all([here.pod("first"), here.pod("second", cpu="100")]))
    created = await here.cli("apply", "-f", str(file))
    assert (created.code, created.out) == (0, "pod/first created\npod/second created\n")
    again = await here.cli("apply", "-f", str(file))
    assert (again.code, again.out) == (0, "pod/first unchanged\npod/second unchanged\n")


async def test_get_shows_tables_documents_and_names(here: Stand) -> None:
    await here.do.apply([here.pod("shown")], "a test")
    await here.running("shown")
    table = await here.cli("get", "pods", "shown")
    assert table.code == 0
    header, row = (line.split() for line in table.out.splitlines())
    assert header[:3] == ["NAME", "READY", "STATUS"]
    assert row[:3] == ["shown", "1/1", "Running"]
    document = json.loads((await here.cli("get", "pod/shown", "-o", "json")).out)
    assert document["spec"]["nodeName"] in ("node-1", "node-2")
    assert document["status"]["phase"] == "Running"
    names = await here.cli("get", "nodes", "-o", "name")
    assert names.out == "node/node-1\nnode/node-2\n"


async def test_kinds_that_nothing_acts_on_are_stored_and_told_once(here: Stand, tmp_path: Path) -> None:
    file = tmp_path / "kinds.yaml"
    file.write_text(
        "\n---\n".join(
            f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n{more}"
            for version, kind, name, more in (
                ("v1", "ConfigMap", "one", "data: {a: b}"),
                ("v1", "ConfigMap", "two", ""),
                ("v1", "Secret", "key", "stringData: {a: planted}"),
                ("rbac.authorization.k8s.io/v1", "Role", '"some:reader"', "rules: []"),
            )
        )
    )
    done = await here.cli("apply", "-f", str(file))
    assert done.out == (
        "configmap/one created\nconfigmap/two created\nsecret/key created\nrole.rbac.authorization.k8s.io/some:reader created\n"
    )
    told = [f"warning: nothing here acts on {kind}" for kind in ("ConfigMap", "Secret", "Role")]
    assert done.err.splitlines() == told
    table = await here.cli("get", "cm")
    assert [line.split()[0] for line in table.out.splitlines()] == ["NAME", "one", "two"]
    assert (
        await here.cli("get", "role", "some:reader", "-o", "name")
    ).out == "role.rbac.authorization.k8s.io/some:reader\n"
    assert "planted" not in (await here.cli("get", "secret")).out
    assert yaml.safe_load((await here.cli("get", "secret", "key", "-o", "yaml")).out)["data"] == {"a": "cGxhbnRlZA=="}
    gone = await here.cli("delete", "role", "some:reader")
    assert (gone.code, (await here.cli("get", "role", "some:reader")).code) == (0, 1)


async def test_what_get_shows_applied_again_changes_nothing(here: Stand) -> None:
    await here.do.apply([here.pod("bound"), here.pod("parked", cpu="99")], "a test")
    await here.running("bound")
    await here.attempted("parked")
    for kinds in ("pods", "nodes"):
        shown = await here.cli("get", kinds, "-o", "yaml")
        again = await here.cli("apply", "-f", "-", stdin=shown.out)
        assert again.code == 0, again
        assert {line.split()[-1] for line in again.out.splitlines()} == {"unchanged"}


async def test_a_shell_is_told_kinds_and_names_that_may_come_next(here: Stand) -> None:
    async def offered(*words: str) -> list[str]:
        told = await here.cli("__complete", *words)
        assert told.code == 0
        return [line.partition("\t")[0] for line in told.out.replace("\x1fbegin", "").splitlines() if line]

    assert "nodes" in await offered("get", "nod")
    assert await offered("get", "nodes", "") == ["node-1", "node-2"]
    assert await offered("delete", "node/") == ["node/node-1", "node/node-2"]
    assert await offered("eviction", "preview", "") == ["node-1", "node-2"]
    assert await offered("get", "pods", "-n", "nosuch", "") == []


async def test_queue_and_explain_tell_why_a_pod_waits(here: Stand) -> None:
    await here.do.apply([here.pod("waiting", cpu="99")], "a test")
    await here.attempted("waiting")
    listed = await here.cli("queue", "--name", "waiting")
    assert listed.code == 0
    assert "unschedulable" in listed.out
    assert "2 Insufficient cpu" in listed.out
    told = await here.cli("explain", "pod", "waiting")
    assert told.code == 0
    assert "NodeResourcesFit rejected 2 nodes: Insufficient cpu  (node-1, node-2)" in told.out


async def test_explain_tells_where_a_pod_runs_and_the_best_scores(here: Stand) -> None:
    await here.do.apply([here.pod("placed")], "a test")
    await here.running("placed")
    told = await here.cli("explain", "pod", "placed")
    chosen = here.bound_to("placed")
    assert f"Pod {here.namespace}/placed  bound to {chosen}, Running" in told.out
    assert f"best nodes: {chosen} " in told.out
    assert f"started on {chosen}, now Running" in told.out


async def test_deschedule_tells_who_would_move_and_evicts_nobody_in_a_dry_run(here: Stand, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "turning"}}, "spec": here.pod("any")["spec"]}
    made = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "turning", "namespace": here.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "turning"}}, "template": template},
    }
    await here.do.apply([made], "a test")
    (pod,) = await here.seen.until("a pod that runs", lambda: here.seen.running("turning"), WITHIN_S)
    args = {"maxPodLifeTimeSeconds": 1, "namespaces": {"include": [here.namespace]}}
    plugins = {"deschedule": {"enabled": ["PodLifeTime"]}}
    profile = {"name": "p", "pluginConfig": [{"name": "PodLifeTime", "args": args}], "plugins": plugins}
    policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy))
    words = ("deschedule", "--policy", str(file), "--dry-run")
    with anyio.fail_after(WITHIN_S):
        while not (found := json.loads((await here.cli(*words, "-o", "json")).out))["moved"]:
            pass  # not old enough
    (moved,) = found["moved"]
    assert (moved["name"], moved["from_node"], moved["plugin"]) == (pod.name, pod.node_name, "PodLifeTime")
    told = await here.cli(*words)
    assert told.code == 0
    assert told.out.startswith("1 pod would move (dry run); 2 nodes, plan: report")
    assert here.runs(pod.name)


async def test_delete_ends_a_pod_once(here: Stand) -> None:
    await here.do.apply([here.pod("leaving", terminationGracePeriodSeconds=0)], "a test")
    await here.running("leaving")
    done = await here.cli("delete", "pod", "leaving")
    assert (done.code, done.out) == (0, "pod/leaving deleted\n")
    await here.seen.until("the pod gone", lambda: here.known("leaving") is None, WITHIN_S)
    again = await here.cli("delete", "pod", "leaving")
    assert again.code == 1
    assert f"pod/leaving in namespace {here.namespace}: not found" in again.err


async def test_what_is_not_there_is_an_error(here: Stand) -> None:
    for words in (("get", "pod", "nobody"), ("explain", "pod", "nobody")):
        asked = await here.cli(*words)
        assert asked.code == 1
        assert "nobody" in asked.err
        assert asked.err.startswith("error: ")


async def test_a_bare_event_reaches_the_hint_of_a_parked_pod(here: Stand, tmp_path: Path) -> None:
    await here.do.apply([here.pod("eventful", cpu="42")], "a test")
    await here.attempted("eventful")
    file = tmp_path / "node.yaml"
    file.write_text(yaml.safe_dump(node("imagined", cpu="64")))
    said = await here.cli("publish", "Node/Add", "-f", str(file))
    assert said.code == 0
    await here.attempted("eventful", 2)

    def moves() -> list[PodMove]:
        return [move for record in here.seen.requeues for move in record.moved if move.name == "eventful"]

    moved = await here.seen.until("the record of its move", moves, WITHIN_S)
    assert [(move.plugin, move.hints[0].answer) for move in moved] == [("NodeResourcesFit", "Queue")]


async def test_explain_tells_what_an_event_would_do_and_publishes_nothing(here: Stand, tmp_path: Path) -> None:
    await here.do.apply([here.pod("curious", cpu="43")], "a test")
    await here.attempted("curious")
    file = tmp_path / "node.yaml"
    answers = {}
    for cpu in ("64", "42"):
        file.write_text(yaml.safe_dump(node("imagined", cpu=cpu)))
        told = await here.cli("explain", "pod", "curious", "--would", "Node/Add", "-f", str(file))
        assert told.code == 0, told.err
        answers[cpu] = told.out
    assert "NodeAdd would wake it: to " in answers["64"]
    assert "NodeResourcesFit's hint Queue: " in answers["64"]
    assert "NodeAdd would not wake it" in answers["42"]
    assert "NodeResourcesFit's hint QueueSkip: the whole of imagined is 42 cpu, the pod needs 43 cpu" in answers["42"]
    assert len(here.attempts("curious")) == 1
    unknown = await here.cli("explain", "pod", "nobody", "--would", "Node/Add", "-f", str(file))
    assert unknown.code == 1
    assert 'the queue has no pod "nobody"' in unknown.err
    lonely = await here.cli("explain", "pod", "curious", "-f", str(file))
    assert lonely.code == 2
    assert "--would" in lonely.err


async def test_explain_tells_where_pods_would_go_and_creates_nothing(here: Stand, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "imagined", "namespace": here.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "imagined"}},
            "template": {"metadata": {"labels": {"app": "imagined"}}, "spec": here.pod("x")["spec"]},
        },
    }
    file.write_text(yaml.safe_dump_all([here.pod("small"), here.pod("huge", cpu="43"), deployment]))
    told = await here.cli("explain", "-f", str(file), "--would", "--nodes")
    assert told.code == 0, told.err
    assert "Pod small" in told.out
    assert "would go to node-" in told.out
    assert "Deployment imagined" in told.out
    assert "NodeResourcesFit rejects 2 nodes: Insufficient cpu  (node-1, node-2)" in told.out
    assert not json.loads((await here.cli("get", "pods", "-o", "json")).out)["items"]
    shown = json.loads((await here.cli("explain", "-f", str(file), "--would", "-o", "json")).out)
    assert [one["reply"].get("nodesFeasible", 0) for one in shown["pods"]] == [2, 0, 2]
    await here.do.apply([here.pod("huge", cpu="43")], "a test")
    await here.attempted("huge")
    each = await here.cli("explain", "pod", "huge", "--nodes", "--all")
    assert [line.split()[:2] for line in each.out.splitlines()[-2:]] == [
        ["node-1", "NodeResourcesFit:"],
        ["node-2", "NodeResourcesFit:"],
    ]
    assert len(here.attempts("huge")) == 1
    file.write_text(yaml.safe_dump(here.pod("bad", cpu="-1")))
    bad = await here.cli("explain", "-f", str(file), "--would")
    assert bad.code == 2
    assert "would not be scheduled" in bad.out


async def test_a_scenario_is_played_to_its_end(here: Stand) -> None:
    played = await here.cli("publish", "--scenario", str(SCENARIO))
    assert played.code == 0, played.err
    at_default = here._replace(namespace="default")
    assert at_default.runs("trainer")
    told = await at_default.cli("explain", "pod", "trainer")
    assert "TaintToleration" in told.out
    assert "NodeUpdateNodeTaint" in told.out


async def test_watch_shows_a_pod_come_and_be_bound(here: Stand) -> None:
    command = [sys.executable, "-m", "podyard.cli", "watch", "--name", "watched", "-o", "json"]
    printed = ""
    async with await anyio.open_process(command, env={**environ, "PODYARD_NATS_SERVERS": here.lab.url}) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        with anyio.fail_after(WITHIN_S):
            assert "watching" in await TextReceiveStream(process.stderr).receive()
            await here.do.apply([here.pod("watched")], "a test")
            async for text in TextReceiveStream(process.stdout):
                printed += text
                if "bound to" in printed and printed.endswith("\n"):
                    break
        process.terminate()
    told = [json.loads(line) for line in printed.splitlines()]
    assert [line["kind"] for line in told if "PodAdd" in line["text"]] == ["change"], told
