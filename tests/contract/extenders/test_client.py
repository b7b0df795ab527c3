"""The extender protocol against a real HTTP server: what is sent, and what its answers and failures
become."""

import gzip
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from podyard.configuration.wire import Extender as Configured
from podyard.extenders import ExtenderClients, clients_of, described
from podyard.framework.extenders import (
    Extender,
    FilterAnswer,
    FilterCall,
    MetaVictims,
    PreemptAnswer,
    PreemptCall,
    PrioritizeAnswer,
    PrioritizeCall,
)
from podyard.framework.interfaces import NodeVictims
from tests.support.extender_server import ExtenderServer, extender_server
from tests.unit.framework.builders import make_node, make_pod, on, table_of

NODES = table_of(make_node("a", cpu="4"), make_node("b"))
POD = make_pod("p", cpu="1", labels={"app": "x"})
VICTIM = on(make_pod("victim", cpu="2"), "a")


@pytest.fixture
def server() -> Iterator[ExtenderServer]:
    with extender_server() as running:
        yield running


class Talk:
    """A client and the extender that it knows."""

    def __init__(self, configured: Configured, clients: ExtenderClients) -> None:
        self.extender: Extender = described([configured])[0]
        self.clients = clients

    async def filter(self) -> Any:
        return await self._one(FilterCall(extender=self.extender, pod=POD, nodes=("a", "b")))

    async def prioritize(self) -> Any:
        return await self._one(PrioritizeCall(extender=self.extender, pod=POD, nodes=("a", "b")))

    async def preempt(self) -> Any:
        victims = {"a": NodeVictims(pods=(VICTIM,), pdb_violations=1)}
        return await self._one(PreemptCall(extender=self.extender, pod=POD, victims=victims))

    async def bind(self) -> str:
        return await self.clients.bind(self.extender.name, POD, "a")

    async def _one(self, call: Any) -> Any:
        (answer,) = await self.clients.ask((call,), NODES)
        return answer


def configured(url: str, **more: Any) -> Configured:
    verbs = {"filter_verb": "f", "prioritize_verb": "p", "preempt_verb": "e", "bind_verb": "b"}
    return Configured(**{"url_prefix": url, "weight": 2, "http_timeout": "30s", **verbs, **more})


@pytest.fixture
async def talk(server: ExtenderServer) -> AsyncIterator[Talk]:
    one = configured(server.url)
    async with clients_of([one]) as clients:
        yield Talk(one, clients)


@pytest.fixture
async def by_name(server: ExtenderServer) -> AsyncIterator[Talk]:
    one = configured(server.url, node_cache_capable=True)
    async with clients_of([one]) as clients:
        yield Talk(one, clients)


async def test_filter_sends_pod_and_whole_nodes_and_takes_nodes_back(talk: Talk, server: ExtenderServer) -> None:
    server.answers["f"] = lambda body: {
        "nodes": {"items": [body["Nodes"]["items"][1]]},
        "failedNodes": {"a": "too loud"},
        "FailedAndUnresolvableNodes": {"c": "too old"},
    }
    assert await talk.filter() == FilterAnswer(
        nodes=("b",), failed={"a": "too loud"}, failed_and_unresolvable={"c": "too old"}
    )
    (body,) = server.bodies("f")
    assert body["Pod"]["metadata"]["name"] == "p"
    assert body["Pod"]["metadata"]["labels"] == {"app": "x"}
    assert body["Pod"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["a", "b"]
    assert body["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"
    assert body["NodeNames"] is None


async def test_one_that_keeps_nodes_is_told_names(by_name: Talk, server: ExtenderServer) -> None:
    server.answers["f"] = lambda body: {"NodeNames": body["NodeNames"][:1], "Nodes": None, "Error": ""}
    assert await by_name.filter() == FilterAnswer(nodes=("a",))
    (body,) = server.bodies("f")
    assert (body["NodeNames"], body["Nodes"]) == (["a", "b"], None)


async def test_scores_come_by_host(talk: Talk, server: ExtenderServer) -> None:
    server.answers["p"] = lambda body: [{"Host": "a", "Score": 3}, {"host": "b", "score": 10}]
    assert await talk.prioritize() == PrioritizeAnswer(scores={"a": 3, "b": 10})


async def test_preempt_sends_victims_whole_or_by_uid(talk: Talk, by_name: Talk, server: ExtenderServer) -> None:
    server.answers["e"] = lambda body: {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "uid-victim"}], "NumPDBViolations": 1}}
    }
    expected = PreemptAnswer(victims={"a": MetaVictims(uids=("uid-victim",), pdb_violations=1)})
    assert await talk.preempt() == expected
    assert await by_name.preempt() == expected
    whole, names = server.bodies("e")
    assert whole["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["name"] == "victim"
    assert whole["NodeNameToVictims"]["a"]["NumPDBViolations"] == 1
    assert whole["NodeNameToMetaVictims"] is None
    assert names["NodeNameToMetaVictims"] == {"a": {"Pods": [{"UID": "uid-victim"}], "NumPDBViolations": 1}}


async def test_bind_names_pod_and_node(talk: Talk, server: ExtenderServer) -> None:
    server.answers["b"] = lambda body: {"error": "" if body["Node"] == "b" else "not there"}
    assert await talk.bind() == "not there"
    assert server.bodies("b") == [{"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "a"}]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(503, "code 503", id="a status"),
        pytest.param(b"{nodes", "malformed", id="no JSON"),
        pytest.param([], "ExtenderFilterResult: must be an object", id="a list"),
        pytest.param({"nodes": {"items": [7]}}, "Nodes.items: must be an object, is 7", id="nodes that are none"),
        pytest.param({"failedNodes": 3}, "failednodes: must be an object", id="reasons that are none"),
        pytest.param({"error": "out of order"}, "out of order", id="its own error"),
        pytest.param(b'{"error": "\xff\xfe"}', "extender at http://", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "nested too deep", id="nested"),
        pytest.param(b'{"nodes": ' * 50_000, "nested too deep", id="nested objects"),
        pytest.param(b"", "truncated", id="nothing"),
        pytest.param(b" " * 6_000_000, "the answer has more than 41", id="huge"),
        pytest.param(
            {"failedNodes": {"a": {}}}, "failednodes.a: must be text, is an object", id="a reason that is none"
        ),
        pytest.param({"nodes": [[[]]]}, "Nodes: must be an object, is a list", id="a list of nodes"),
    ],
)
async def test_what_goes_wrong_is_an_answer_with_an_error(
    talk: Talk, server: ExtenderServer, answer: Any, words: str
) -> None:
    server.answers["f"] = lambda body: answer
    found = await talk.filter()
    assert isinstance(found, FilterAnswer)
    assert words in found.error
    assert found.nodes == ()


@pytest.mark.parametrize("score", ["1.5", "NaN", "1e400", str(2**63), str(-(10**30)), "true", '"7"', "null", "[]"])
async def test_a_score_must_be_a_whole_number(talk: Talk, server: ExtenderServer, score: str) -> None:
    server.answers["p"] = lambda body: b'[{"Host": "a", "Score": %b}]' % score.encode()
    found = await talk.prioritize()
    assert found.scores == {}
    assert "Score: must be a whole number" in found.error or score in ("NaN", "1e400")
    assert found.error


async def test_an_answer_is_read_no_further_than_to_its_bound(server: ExtenderServer) -> None:
    """One that never ends: the server writes until the client hangs up."""
    sent = 0

    def endless(body: dict[str, Any]) -> Any:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 65_536

    server.answers["f"] = endless
    one = configured(server.url, http_timeout="30s")
    async with clients_of([one]) as clients:
        found = await Talk(one, clients).filter()
    assert "the answer has more than" in found.error
    assert sent < 400


async def test_a_packed_answer_is_not_unpacked(talk: Talk, server: ExtenderServer) -> None:
    server.encoding = "gzip"
    packed = gzip.compress(b" " * 10_000_000, 1)
    server.answers["f"] = lambda body: packed
    found = await talk.filter()
    assert "the answer is packed (gzip)" in found.error


@pytest.mark.parametrize("answer", [b"\xff", b"[" * 100_000, b"", [], 503, {"error": 7}, b" " * 6_000_000])
async def test_whatever_is_wrong_with_an_answer_to_bind_is_the_pods_error(
    talk: Talk, server: ExtenderServer, answer: Any
) -> None:
    server.answers["b"] = lambda body: answer
    assert await talk.bind()


async def test_who_does_not_answer_in_time_is_told_of(server: ExtenderServer) -> None:
    over = threading.Event()

    def slow(body: dict[str, Any]) -> Any:
        over.wait(10)
        return {}

    server.answers["f"] = slow
    one = configured(server.url, http_timeout="100ms")
    async with clients_of([one]) as clients:
        found = await Talk(one, clients).filter()
    over.set()
    assert found.error == f"extender at {server.url}: no answer within 0.1 s (httpTimeout)"


async def test_who_is_not_there_is_told_of() -> None:
    one = configured("http://127.0.0.1:1/nobody")
    async with clients_of([one]) as clients:
        found = await Talk(one, clients).filter()
    assert found.error.startswith("extender at http://127.0.0.1:1/nobody: ")


async def test_calls_are_made_at_the_same_time(server: ExtenderServer) -> None:
    """Each waits for the other: one after the other would never end."""
    both = threading.Barrier(2, timeout=10)

    def meet(body: dict[str, Any]) -> Any:
        both.wait()
        return []

    server.answers["p"] = meet
    one, two = configured(server.url), configured(f"{server.url}/two")
    async with clients_of([one, two]) as clients:
        calls = tuple(PrioritizeCall(extender=extender, pod=POD, nodes=("a",)) for extender in described([one, two]))
        assert await clients.ask(calls, NODES) == (PrioritizeAnswer(), PrioritizeAnswer())
