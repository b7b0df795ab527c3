"""HTTP extenders end to end: real services ask a real HTTP server, and its word counts."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.e2e.labs import configuration
from tests.e2e.stage import WITHIN_S, WITHOUT_LOOPS, Stand, node, stand
from tests.support.extender_server import ExtenderServer, extender_server
from tests.support.lasting import Lasting


@pytest.fixture(scope="module")
def server() -> Iterator[ExtenderServer]:
    with extender_server() as running:
        running.answers["filter"] = _without("node-1")
        running.answers["prioritize"] = lambda body: [
            {"Host": name, "Score": int(name[-1])} for name in body["NodeNames"]
        ]
        running.answers["bind"] = lambda body: {"Error": "no" if body["PodName"] == "unlucky" else ""}
        yield running


def _without(name: str) -> Any:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        left = [one for one in body["NodeNames"] if one != name]
        if body["Pod"]["metadata"]["name"] == "nowhere":
            return {"NodeNames": [], "FailedNodes": dict.fromkeys(body["NodeNames"], "not for you")}
        return {"NodeNames": left, "FailedNodes": {name: "too loud"} if name in body["NodeNames"] else {}}

    return answer


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def labs(server: ExtenderServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lasting[Stand]]:
    """Of this module: an extender is asked about every pod of a lab."""
    extender = {
        "urlPrefix": server.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "weight": 5,
        "nodeCacheCapable": True,
        "httpTimeout": "5s",
    }
    file = tmp_path_factory.mktemp("extenders") / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration(extenders=[extender])))
    services = f"{WITHOUT_LOOPS},workloads"
    found = Lasting(lambda: stand(tmp_path_factory.mktemp("lab"), services, scheduler_config=str(file)))
    yield found
    await found.end()


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(*(node(f"node-{number}") for number in (1, 2, 3)))
    return here


async def test_its_filter_points_and_bind_count(here: Stand, server: ExtenderServer) -> None:
    await here.do.apply([here.pod("lucky")], "a test")
    await here.running("lucky")
    assert here.bound_to("lucky") == "node-3"
    bound = [body for body in server.bodies("bind") if body["PodName"] == "lucky"]
    assert [body["Node"] for body in bound] == ["node-3"]


async def test_who_it_leaves_no_node_waits_with_its_reasons(here: Stand) -> None:
    await here.do.apply([here.pod("nowhere")], "a test")
    await here.attempted("nowhere")
    record = here.attempts("nowhere")[0]
    assert "3 not for you" in record.message
    assert record.unschedulable_plugins == ("Extender",)


async def test_a_bind_that_it_refuses_is_tried_again(here: Stand, server: ExtenderServer) -> None:
    await here.do.apply([here.pod("unlucky")], "a test")

    def refused() -> bool:
        return any(one.outcome == "bindError" for one in here.attempts("unlucky"))

    await here.seen.until("a bind error", refused, WITHIN_S)
    server.answers["bind"] = lambda body: {"Error": ""}
    await here.running("unlucky")
