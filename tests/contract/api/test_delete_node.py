"""`svc.objects.delete.<node>`: deleted pods that have ended on a node, which its agent may have removed."""

import pytest

from podyard.cluster.intents import living
from podyard.cluster.keys import ObjectKey
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import DeleteRequest, ObjectsReply
from podyard.shell import writes
from tests.contract.api.conftest import Api, outcomes, pod
from tests.support.cluster import Cluster, bound, released


@pytest.fixture
def cluster(api: Api) -> Cluster:
    return Cluster(api.bus)


async def on_node(api: Api, cluster: Cluster, name: str, *, finalizers: tuple[str, ...] = ()) -> str:
    """A pod that is bound to n1; its uid."""
    reply = await api.apply(pod(name, metadata={"finalizers": list(finalizers)} if finalizers else {}))
    uid = reply.results[0].uid
    await api.reached(await cluster.commit([bound(name, uid=uid)]))
    return uid


async def ended(api: Api, cluster: Cluster, name: str, uid: str) -> None:
    await api.reached(await cluster.commit(releases=[released(name, uid=uid)]))


async def ask(api: Api, node: str, *pods: ObjectRef) -> ObjectsReply:
    return await api.ask(subjects.node_delete(node), DeleteRequest(objects=pods, grace_period_s=0, who="agent"))


def ref(name: str, uid: str) -> ObjectRef:
    return ObjectRef(resource="pods", namespace="default", name=name, uid=uid)


async def is_there(api: Api, name: str) -> bool:
    return living(await writes.read(api.bus, ObjectKey("pods", "default", name))) is not None


async def test_a_deleted_pod_that_has_ended_there_is_removed(api: Api, cluster: Cluster) -> None:
    uid = await on_node(api, cluster, "a")
    assert outcomes(await api.delete(ref("a", uid))) == ["deleted"]
    assert await is_there(api, "a"), "it has its grace period"
    await ended(api, cluster, "a", uid)
    assert outcomes(await ask(api, "n1", ref("a", uid))) == ["deleted"]
    assert not await is_there(api, "a")


async def test_it_stays_for_its_finalizers(api: Api, cluster: Cluster) -> None:
    uid = await on_node(api, cluster, "a", finalizers=("a/b",))
    await api.delete(ref("a", uid))
    await ended(api, cluster, "a", uid)
    reply = await ask(api, "n1", ref("a", uid))
    assert reply.results[0].message == "it waits for its finalizers: a/b"
    assert await is_there(api, "a")


@pytest.mark.parametrize(
    ("node", "deleted", "gone", "why"),
    [
        pytest.param("n2", True, True, "it has not ended on node n2", id="another node's"),
        pytest.param("n1", True, False, "it has not ended on node n1", id="runs"),
        pytest.param("n1", False, True, "nobody has deleted it", id="not deleted"),
    ],
)
async def test_nothing_else_is(api: Api, cluster: Cluster, node: str, deleted: bool, gone: bool, why: str) -> None:
    uid = await on_node(api, cluster, "a")
    if deleted:
        await api.delete(ref("a", uid))
    if gone:
        await ended(api, cluster, "a", uid)
    reply = await ask(api, node, ref("a", uid))
    assert (outcomes(reply), reply.results[0].message) == (["refused"], why)
    assert await is_there(api, "a")


@pytest.mark.parametrize(
    "other",
    [ObjectRef(resource="pods", namespace="default", name="a"), ObjectRef(resource="nodes", name="n1", uid="u")],
)
async def test_what_is_no_pod_or_has_no_uid_is_not_removed(api: Api, other: ObjectRef) -> None:
    reply = await ask(api, "n1", other)
    assert outcomes(reply) == ["refused"]
