"""Bad input: files are refused as a whole and by field; messages that nobody can read end as dead letters,
and work goes on."""

from pathlib import Path

import anyio
import msgspec
import pytest
import pytest_asyncio

from podyard.bus import Outgoing
from podyard.bus.errors import TooLarge
from podyard.proto import codec, streams, subjects
from podyard.proto.events import ClusterEvent
from tests.e2e.stage import WITHIN_S, Stand, dead_letters, node

GOOD = """\
apiVersion: v1
kind: Pod
metadata: {name: innocent}
spec: {containers: [{name: main, image: test}]}
---
"""


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(node("node-1"))
    return here


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x\nspec: {}\n",
            ["document 2", "line 9"],
            id="malformed YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: main, image: 7}]}\n",
            ["document 2", "spec.containers[0].image"],
            id="a wrong type",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
            "spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1.5.0}}}]}\n",
            ["document 2", "spec.containers[0].resources.requests"],
            id="an impossible quantity",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
            "spec: {containers: [{name: main, image: x, resources: {requests: {cpu: -1}}}]}\n",
            ["document 2", "spec.containers[0].resources.requests"],
            id="a negative quantity",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Widget\nmetadata: {name: x}\n",
            ["document 2", "kind", "Widget"],
            id="an unknown kind without a group",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: nowhere}\n"
            "spec: {containers: [{name: main, image: x}]}\n",
            ["document 2", "nowhere"],
            id="a namespace that is not there",
        ),
    ],
)
async def test_a_wrong_document_refuses_its_whole_file(
    here: Stand, tmp_path: Path, wrong: str, told: list[str]
) -> None:
    before = dict(here.seen.view.pods)
    file = tmp_path / "wrong.yaml"
    file.write_text(GOOD + wrong)
    done = await here.cli("apply", "-f", str(file))
    assert done.code == 2, done
    assert done.out == ""
    for words in (str(file), *told):
        assert words in done.err, (words, done.err)
    assert (await here.cli("get", "pod", "innocent")).code == 1
    assert dict(here.seen.view.pods) == before


async def test_of_two_files_neither_is_applied_if_one_is_wrong(here: Stand, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "wrong.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: [x]}\n")
    done = await here.cli("apply", "-f", str(tmp_path))
    assert done.code == 2
    assert "wrong.yaml" in done.err
    assert "metadata.name" in done.err
    assert (await here.cli("get", "pod", "innocent")).code == 1


async def test_all_faults_of_all_files_are_told_in_one_answer(here: Stand, tmp_path: Path) -> None:
    """Those that the file shows, and those that only the api knows."""
    (tmp_path / "a.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replica: 3\n  replicas: 1\n  replicas: 2\n"
        "  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n"
        "    spec: {containers: [{name: main, image: x, imagePullpolicy: Always}]}\n"
    )
    (tmp_path / "b.yaml").write_text(
        f"{GOOD}---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {{name: x}}\n---\n"
        "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {port: 80}\n"
    )
    done = await here.cli("apply", "-f", str(tmp_path))
    assert done.code == 2
    for words in (
        "a.yaml: document 1 (line 7): spec.replicas: duplicate field",
        'a.yaml: document 1 (line 1): spec.replica: unknown field: did you mean "replicas"?',
        'spec.template.spec.containers[0].imagePullpolicy: unknown field: did you mean "imagePullPolicy"?',
        "use kind Ingress with apiVersion networking.k8s.io/v1",
        'spec.port: unknown field: did you mean "ports"?',
    ):
        assert words in done.err, (words, done.err)
    assert (await here.cli("get", "pod", "innocent")).code == 1
    told = await here.cli("apply", "-f", str(tmp_path / "a.yaml"), "--validate=warn")
    assert (told.code, told.out) == (0, "deployment.apps/web created\n")
    assert 'warning: duplicate field "spec.replicas"\n' in told.err
    assert 'warning: unknown field "spec.replica": did you mean "replicas"?\n' in told.err
    ignored = await here.cli("apply", "-f", str(tmp_path / "a.yaml"), "--validate=false")
    assert (ignored.code, ignored.out, ignored.err) == (0, "deployment.apps/web unchanged\n", "")


async def test_an_object_that_nobody_can_read_is_reported_once_by_each_reader(here: Stand) -> None:
    readers = {"queue", "scheduler", "binder", "node_agent"}
    subject = subjects.object_("pods", here.namespace, "garbage")
    async with dead_letters(here.bus) as dead:
        await here.bus.publish(Outgoing(subject, b'{"op": "put", "object": {"spec": 7'))
        found = await dead.until(
            f"a letter of each of {readers}", lambda letters: readers <= {one.service for one in letters}
        )
        await here.do.apply([here.pod("after-garbage")], "neighbours go on")
        await here.running("after-garbage")
        for reader in readers:
            mine = [one for one in dead.letters if one.service == reader and one.subject == subject]
            assert len(mine) == 1, (reader, mine)
    marker = ClusterEvent(
        resource=subjects.PODS,
        namespace=here.namespace,
        name="garbage",
        uid="",
        op="delete",
        who="test",
        object=codec.NULL,
    )
    await here.bus.publish(Outgoing(subject, codec.encode(marker), ttl_s=streams.MARKER_TTL_S, deleted=True))
    letter = next(one for one in found if one.service == "queue")
    assert letter.payload == b'{"op": "put", "object": {"spec": 7'
    assert letter.reason
    assert letter.sequence > 0


async def test_a_request_that_nobody_can_read_is_refused_and_reported(here: Stand) -> None:
    asked = {
        subjects.queue_verb("pop"): "queue",
        subjects.BINDER_BIND: "binder",
        subjects.OBJECTS_APPLY: "api",
    }
    async with dead_letters(here.bus) as dead:
        for subject in asked:
            here.bus.send(subject, b"\xff not a message")
        found = await dead.until(
            f"a letter for each of {sorted(asked)}", lambda letters: asked.keys() <= {one.subject for one in letters}
        )
    for subject, service in asked.items():
        mine = [one for one in found if one.subject == subject]
        assert [one.service for one in mine] == [service]
        assert mine[0].reason
        withheld = b"(withheld: 15 bytes, it may hold a Secret)"
        assert mine[0].payload == (withheld if service == "api" else b"\xff not a message")
    await here.do.apply([here.pod("after-requests")], "neighbours go on")
    await here.running("after-requests")


async def test_signals_that_nobody_can_read_are_reported_once(here: Stand) -> None:
    subject = subjects.signals("node-1")
    async with dead_letters(here.bus) as dead:
        here.bus.send(subject, b'{"node": 1}')
        found = await dead.until(
            "a letter about the signals", lambda letters: any(o.subject == subject for o in letters)
        )
        await here.do.apply([here.pod("after-signals")], "neighbours go on")
        await here.running("after-signals")
        assert [one.service for one in dead.letters if one.subject == subject] == ["node_agent"]
    assert "node" in next(one for one in found if one.subject == subject).reason


async def test_what_is_too_large_is_refused_before_it_is_sent(here: Stand, tmp_path: Path) -> None:
    large = here.pod("large", metadata={"annotations": {"data": "x" * (streams.MAX_PAYLOAD_BYTES + 1)}})
    with pytest.raises(TooLarge):
        await here.bus.publish(Outgoing(subjects.object_("pods", here.namespace, "large"), msgspec.json.encode(large)))
    file = tmp_path / "large.json"
    file.write_bytes(msgspec.json.encode(large))
    with anyio.fail_after(WITHIN_S):
        done = await here.cli("apply", "-f", str(file))
    assert done.code == 2, done
    assert "large" in done.err
    assert here.known("large") is None
