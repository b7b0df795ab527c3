"""The history on a real server is complete, or says what it lacks; and the checker sees in it what no binder
may write.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from podyard.bus import Bus, BusSettings, Outgoing, _heads, connect
from podyard.bus.bootstrap import ensure_streams
from podyard.bus.embedded import embedded_server
from podyard.proto import codec, headers, subjects
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Fence, Release, Tombstone, Usage
from tests.faults import recorder
from tests.faults.load import node
from tests.faults.overhearing import Overheard
from tests.faults.proxy import Proxy, serving
from tests.faults.recorder import Recorder
from tests.memory_nats.stream import Stored
from tests.support import objects, stored

VERSIONS = 300
WITHIN_S = 10.0


class Desk:
    """Somebody who writes into CLUSTER as services do, and what is recorded of it."""

    def __init__(self, bus: Bus, overheard: Bus, record: Recorder) -> None:
        self.bus = bus
        """Past the proxy."""
        self.overheard = overheard
        """Through it."""
        self.record = record
        self.sequences: dict[str, int] = {}

    async def put(self, document: dict[str, Any], resource: str, bus: Bus | None = None) -> int:
        """A version of an object."""
        message = stored.version(resource, document)
        return await self.write([(message.subject, message.payload)], bus)

    async def write(self, messages: Sequence[tuple[str, bytes]], bus: Bus | None = None) -> int:
        """All at once, each as a compare-and-set; returns the last one's sequence."""
        outgoing = [Outgoing(subject, payload, self.sequences.get(subject, 0)) for subject, payload in messages]
        bus = bus or self.bus
        ack = await (bus.publish_batch(outgoing) if len(outgoing) > 1 else bus.publish(outgoing[0]))
        for back, (subject, _) in enumerate(reversed(messages)):
            self.sequences[subject] = ack.sequence - back
        return ack.sequence

    async def seen(self, position: int) -> None:
        """Wait until the checker has seen everything to there."""
        await self.record.complete(position, WITHIN_S)


@asynccontextmanager
async def desk(*, read: bool = True) -> AsyncGenerator[Desk]:
    """A server, a recorder, a writer.

    :param read: whether the recorder reads the stream from the beginning; else it only overhears, until
        `read_now`
    """
    record = Recorder()
    async with (
        embedded_server() as server,
        serving(Proxy("test", [server.port], lambda text: None)) as proxy,
        connect(BusSettings(servers=(server.url,), name="past", service="test")) as past,
        connect(BusSettings(servers=(proxy.url,), name="through", service="test")) as through,
    ):
        await ensure_streams(past)
        Overheard(record.note).listen(proxy)
        watch = asyncio.ensure_future(past.watch(recorder.SPEC, record).run()) if read else None
        try:
            yield Desk(past, through, record)
        finally:
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)


async def test_versions_that_nobody_could_read_any_more_are_overheard():
    async with desk(read=False) as here:
        for version in range(VERSIONS):
            await here.put(named(node(0, note=str(version))), "nodes", here.overheard)
        await here.seen(VERSIONS)
        assert here.record.missed == []
        assert here.record.next == VERSIONS + 1
        assert here.record.objects["nodes", "n0"]["metadata"]["annotations"]["note"] == str(VERSIONS - 1)


async def test_versions_that_nobody_saw_are_named():
    """They were overwritten before anybody read, and not overheard: the one that followed says what they
    were.
    """
    async with desk(read=False) as here:
        for version in range(3):
            await here.put(named(node(0, note=str(version))), "nodes")
        last = await here.put(pod("one"), "pods")
        watch = asyncio.ensure_future(here.bus.watch(recorder.SPEC, here.record).run())
        await asyncio.wait_for(here.record.read_to(last), WITHIN_S)
        await here.record.complete(last, 0.1)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        assert here.record.missed == ["@1 of an unknown subject", "@2 cluster.nodes._.n0"]
        assert here.record.overwritten == ["@2 cluster.nodes._.n0"]
        assert ("pods", "one") in here.record.objects


async def test_a_write_that_looks_at_nothing_is_a_violation():
    async with desk() as here:
        await here.seen(await here.put(named(node(0)), "nodes"))
        subject = subjects.object_("nodes", "", "n0")
        found = await here.bus.get("CLUSTER", subject)
        assert found is not None
        last = await here.bus.publish(Outgoing(subject, found.payload))
        await here.seen(last.sequence)
        assert here.record.checker.violations == ["@2 cluster.nodes._.n0 is written without a compare-and-set"]


async def test_a_version_that_does_not_follow_the_one_before_it_is_a_violation():
    """No server takes it; one that has lost an acknowledged write does."""
    record = Recorder()
    for sequence, expected in ((1, 0), (2, 1), (3, 1)):
        head = _heads.build({headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(expected)})
        record.note(Stored("cluster.nodestatus.n1", b"", head, sequence, 0.0))
    assert record.checker.violations == ["@3 cluster.nodestatus.n1 follows @1 and overwrites @2"]


class Forgery(NamedTuple):
    """What a rogue writes after one good commit, and what the checker is to say."""

    bindings: Sequence[tuple[str, str]]
    """Pod and node."""
    says: str
    epoch: int = 5
    holder: str = "binder-1"
    record: bool = True
    fence: bool = True
    releases: Sequence[tuple[str, str]] = ()


FORGERIES = {
    "a deposed binder writes": Forgery([("two", "n1")], "writes after", epoch=4, holder="binder-2"),
    "two binders share an epoch": Forgery([("two", "n1")], "writes after", holder="binder-2"),
    "a pod is bound again": Forgery([("one", "n2")], "which was bound before"),
    "a node is overcommitted": Forgery([("two", "n1"), ("three", "n1")], "overload"),
    "mates of a batch do not go together": Forgery([("alone", "n1"), ("alone-2", "n1")], "anti-affinity"),
    "the node is not there": Forgery([("two", "n9")], "a node that is not there"),
    "the pod is not there": Forgery([("nobody", "n1")], "which is not there at"),
    "a binding has no record": Forgery([("two", "n1")], "has no record of it", record=False),
    "a batch has no fence": Forgery([("two", "n1")], "without the fence", fence=False),
    "a release is of another node": Forgery([], "where it is not", releases=[("one", "n2")]),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
async def test_the_checker_sees_on_a_real_server_what_no_binder_may_write(forgery: Forgery):
    async with desk() as here:
        for index in (1, 2):
            await here.put(named(node(index)), "nodes")
        for name in ("one", "two", "three"):
            await here.put(pod(name), "pods")
        for name in ("alone", "alone-2"):
            await here.put(pod(name, cpu="100m", alone=True), "pods")
        last = await here.write(commit(Forgery([("one", "n1")], ""), 1))
        await here.seen(last)
        assert here.record.checker.violations == []
        assert here.record.checker.commits == 1
        await here.seen(await here.write(commit(forgery, 2)))
        found = here.record.checker.violations
        assert any(forgery.says in text for text in found), found
        assert here.record.missed == []


def commit(forgery: Forgery, n: int) -> list[tuple[str, bytes]]:
    """The messages of a batch."""
    bound = [bound_pod(name, to) for name, to in forgery.bindings]
    fields = [{field: getattr(one, field) for field in BoundPod.__struct_fields__} for one in bound]
    messages = [
        (subjects.binding("default", one.name, one.uid), codec.encode(Binding(**known)))
        for one, known in zip(bound, fields, strict=True)
    ]
    ended = [{"namespace": "default", "name": name, "uid": f"uid-{name}", "node": of} for name, of in forgery.releases]
    messages += [
        (
            subjects.binding("default", known["name"], known["uid"]),
            codec.encode(Tombstone(**known, reason="completed")),
        )
        for known in ended
    ]
    releases = tuple(Release(**known, reason="completed") for known in ended)
    if forgery.record:
        record = CommitRecord(
            n=n, epoch=forgery.epoch, batch=f"batch-{n}", bindings=tuple(bound), releases=releases, position=7
        )
        messages.append((subjects.commit(n), codec.encode(record)))
    if forgery.fence:
        fence = Fence(epoch=forgery.epoch, n=n, batch=f"batch-{n}", holder=forgery.holder)
        messages.append((subjects.FENCE, codec.encode(fence)))
    return messages


def bound_pod(name: str, to: str) -> BoundPod:
    """As the binder of a pod made by `pod` would tell it."""
    cpu_milli = 100 if name.startswith("alone") else 2000
    return BoundPod(
        namespace="default", name=name, uid=f"uid-{name}", node=to, usage=Usage(requests={"cpu": cpu_milli})
    )


def pod(name: str, cpu: str = "2", *, alone: bool = False) -> dict[str, Any]:
    """A pod as it is stored."""
    if not alone:
        return objects.pod(name, cpu=cpu)
    term = {"topologyKey": objects.HOSTNAME, "labelSelector": {"matchLabels": {"app": "alone"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return objects.pod(name, cpu=cpu, labels={"app": "alone"}, affinity=affinity)


def named(document: dict[str, Any]) -> dict[str, Any]:
    """A node as it is stored."""
    document["metadata"]["uid"] = f"uid-{document['metadata']['name']}"
    return document
