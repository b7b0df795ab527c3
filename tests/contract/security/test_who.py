"""Who is named as the author of a write: in a lab with accounts whom the server knows, whatever the request
says."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from podyard.api.service import SERVICE
from podyard.api.settings import ApiSettings
from podyard.bus import connect
from podyard.cli.security import directory
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.objects_api import ApplyRequest, ObjectsReply
from podyard.runtime import clock
from tests.contract.security.visitors import site
from tests.support import objects
from tests.support.services import make_service, running
from tests.support.waiting import eventually

POD = ("pods", "default", "a"), objects.pod("a", cpu="1"), subjects.OBJECTS_APPLY
NODE = ("nodes", "", "node-1"), objects.node("node-1"), subjects.node_apply("node-1")


@pytest.mark.parametrize(
    ("name", "said", "what"),
    [("person", "root", POD), ("bridge", "", POD), ("person", "x" * 100, POD), ("agent-rack1", "root", NODE)],
    ids=["person", "bridge", "long", "agent"],
)
async def test_the_author_is_who_the_server_says(tmp_path: Path, name: str, said: str, what: tuple[Any, ...]):
    key, written, subject = what
    async with site(tmp_path) as here:
        api = here.identity("api")
        file = directory.environment(here.security, api)["PODYARD_API_IDENTITIES_FILE"]
        bus_settings = directory.bus_settings(here.security, api, (here.server.url,))
        async with connect(bus_settings, now=clock.now) as bus:
            service = make_service(SERVICE, bus, ApiSettings(identities_file=file))
            async with running(service), here.visit(name) as visitor:
                await eventually("the api answers", lambda: service.health.checks["requests"].ok)
                document = msgspec.Raw(msgspec.json.encode(objects.written(written)))
                request = ApplyRequest(objects=(document,), who=said, why="a test")
                forged = {headers.REQUEST_INFO: '{"user": "somebody else"}'}
                answer = await visitor.ask(subject, codec.encode(request), headers=forged)
                assert msgspec.convert(answer, ObjectsReply).results[0].outcome == "created"
            stored = await bus.get("CLUSTER", subjects.object_(*key))
            assert stored is not None
            event = codec.decode(ClusterEvent, stored.payload)
            assert (event.who, event.why) == (name, "a test")
