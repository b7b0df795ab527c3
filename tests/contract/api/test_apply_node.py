"""`svc.objects.apply.<node>`: what the agent of a node may write of it, and of nothing else."""

from typing import Any

import msgspec
import pytest

from podyard.proto import streams, subjects
from podyard.proto.objects_api import ApplyRequest, ObjectsReply
from tests.contract.api.conftest import Api, outcomes, pod, stored
from tests.support import objects
from tests.support.objects import written


async def apply(api: Api, node: str, *documents: dict[str, Any]) -> ObjectsReply:
    raws = tuple(msgspec.Raw(msgspec.json.encode(document)) for document in documents)
    return await api.ask(subjects.node_apply(node), ApplyRequest(objects=raws, who="agent-rack1"))


async def test_a_node_is_created_and_replaced_by_its_agent(api: Api) -> None:
    created = await apply(api, "rack-1.example", written(objects.node("rack-1.example")))
    replaced = await apply(api, "rack-1.example", written(objects.node("rack-1.example", labels={"zone": "a"})))
    assert [outcomes(one) for one in (created, replaced)] == [["created"], ["configured"]]
    found = await stored(api.bus, "nodes", "rack-1.example", "")
    assert found.event.who == "agent-rack1"


@pytest.mark.parametrize("foreign", [written(objects.node("n2")), pod("n1"), {"kind": "Node"}, 7], ids=str)
async def test_nothing_else_is_written_beside_it_either(api: Api, foreign: Any) -> None:
    reply = await apply(api, "n1", written(objects.node("n1")), foreign)
    assert outcomes(reply) == ["refused", "refused"]
    assert reply.results[0].message == "nothing was written: another object of the request may not be written here"
    assert await api.bus.last_sequence(streams.CLUSTER.name) == 0
