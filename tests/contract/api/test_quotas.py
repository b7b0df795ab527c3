"""Resource quotas: what is used is written with what uses it, whoever writes."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from podyard.bus import Bus, Outgoing
from podyard.bus.delivery import Delivery
from podyard.bus.watch import WatchSpec
from podyard.proto import codec, streams, subjects
from podyard.proto.facts import QuotaUsageFact
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectsReply
from podyard.shell import stream_reading
from podyard.workloads.service import SERVICE as WORKLOADS
from tests.contract.api.conftest import Api, StartApi, outcomes, pod
from tests.support.holding import Hold
from tests.support.objects import Document
from tests.support.services import make_service, running
from tests.support.waiting import eventually

ConnectBus = Callable[..., Awaitable[Bus]]


def quota(name: str = "q", hard: dict[str, str] | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard or {"pods": "3"}, **spec},
    }


def service(name: str, **spec: Any) -> Document:
    ports = [{"port": 80}, {"port": 81}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


def message(reply: ObjectsReply) -> str:
    (result,) = reply.results
    return result.message


@pytest.fixture
async def counting(connect_bus: ConnectBus, hold: Hold[None]) -> None:
    """Workloads, which counts."""
    bus = await connect_bus("workloads")

    @asynccontextmanager
    async def run() -> AsyncIterator[None]:
        async with running(make_service(WORKLOADS, bus)):
            yield

    await hold(run())


async def used(bus: Bus, name: str = "q") -> dict[str, str] | None:
    """What is stored as used of the quota that lives under a name; None: nothing."""
    facts = await all_facts(bus, name)
    assert len(facts) <= 1
    return facts[0].used if facts else None


async def all_facts(bus: Bus, name: str) -> list[QuotaUsageFact]:
    wanted = subjects.any_uid(subjects.quota_usage, "default", name)
    found = await stream_reading.listing(bus, streams.CLUSTER.name, (wanted,))
    last = {one.subject: one for one in found}  # what was written meanwhile comes twice
    return [codec.decode(QuotaUsageFact, one.payload) for one in last.values() if not one.deleted]


async def comes(bus: Bus, amounts: dict[str, str] | None, name: str = "q") -> None:
    async def same() -> bool:
        return await used(bus, name) == amounts

    await eventually(f"{name} uses {amounts}", same)


async def put_quota(api: Api, document: Document, amounts: dict[str, str]) -> None:
    """Apply a quota, and wait until it is counted."""
    reply = await api.apply(document)
    assert outcomes(reply) in (["created"], ["configured"]), reply
    await comes(api.bus, amounts, document["metadata"]["name"])


class Living:
    """How many pods lived at once, and how many were said to be used, at most: in the stream's own order."""

    def __init__(self) -> None:
        self.pods: set[str] = set()
        self.most = self.most_used = 0

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        if delivery.subject.startswith("cluster.pods."):
            (self.pods.discard if delivery.deleted else self.pods.add)(delivery.subject)
            self.most = max(self.most, len(self.pods))
        elif not delivery.deleted:
            fact = codec.decode(QuotaUsageFact, delivery.payload)
            self.most_used = max(self.most_used, int(fact.used["pods"]))

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


@asynccontextmanager
async def watching(bus: Bus, watcher: Living) -> AsyncIterator[None]:
    followed = (subjects.objects("pods"), subjects.ALL_QUOTA_USAGE)
    watch = bus.watch(WatchSpec(stream="CLUSTER", list_subjects=followed, follow_subjects=followed), watcher)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        yield
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("counting")
class TestOneApi:
    async def test_what_exceeds_a_quota_is_refused_in_the_words_of_kubernetes(self, api: Api) -> None:
        await put_quota(api, quota(hard={"requests.cpu": "250m", "pods": "5"}), {"pods": "0", "requests.cpu": "0"})
        assert outcomes(await api.apply(pod("a"), pod("b"))) == ["created", "created"]
        reply = await api.apply(pod("c"))
        assert outcomes(reply) == ["refused"]
        assert reply.results[0].errors[0].type == "Forbidden"
        assert message(reply) == (
            'pods "c" is forbidden: exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=200m, '
            "limited: requests.cpu=250m"
        )
        assert await used(api.bus) == {"pods": "2", "requests.cpu": "200m"}

    async def test_of_a_request_nothing_is_written_if_its_last_object_exceeds(self, api: Api) -> None:
        await put_quota(api, quota(hard={"pods": "1"}), {"pods": "0"})
        assert outcomes(await api.apply(pod("a"), pod("b"))) == ["refused", "refused"]
        assert await used(api.bus) == {"pods": "0"}
        assert outcomes(await api.apply(pod("a"), pod("b"), partial=True)) == ["created", "refused"]
        assert await used(api.bus) == {"pods": "1"}

    async def test_a_dry_run_is_judged_and_charges_nothing(self, api: Api) -> None:
        await put_quota(api, quota(hard={"pods": "1"}), {"pods": "0"})
        assert outcomes(await api.apply(pod("a"), dry_run=True)) == ["created"]
        assert outcomes(await api.apply(pod("a"), pod("b"), dry_run=True)) == ["refused", "refused"]
        assert await used(api.bus) == {"pods": "0"}

    async def test_a_pod_must_say_what_is_limited(self, api: Api) -> None:
        await put_quota(api, quota(hard={"limits.cpu": "1", "memory": "1Gi"}), {"limits.cpu": "0", "memory": "0"})
        assert message(await api.apply(pod("a"))) == (
            'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: main; memory for: main'
        )

    async def test_what_is_not_counted_yet_is_refused(self, api: Api) -> None:
        await put_quota(api, quota(hard={"pods": "9"}), {"pods": "0"})
        found = (await all_facts(api.bus, "q"))[0]
        subject = subjects.quota_usage("default", "q", found.uid)
        last = await api.bus.get(streams.CLUSTER.name, subject)
        assert last is not None
        await api.bus.publish(
            Outgoing(subject, codec.encode(QuotaUsageFact(namespace="default", name="q", uid=found.uid)),
                     expect=last.sequence)
        )  # fmt: skip
        assert message(await api.apply(pod("a"))) == (
            'pods "a" is forbidden: status unknown for quota: q, resources: pods; '
            "workloads has not counted it yet: try again"
        )

    async def test_what_was_there_before_counts(self, api: Api) -> None:
        await api.apply(pod("a"), pod("b"))
        await put_quota(api, quota(hard={"pods": "2"}), {"pods": "2"})
        assert "used: pods=2, limited: pods=2" in message(await api.apply(pod("c")))

    async def test_what_is_deleted_is_free_again(self, api: Api) -> None:
        await put_quota(api, quota(hard={"pods": "1"}), {"pods": "0"})
        assert outcomes(await api.apply(pod("a"))) == ["created"]
        assert outcomes(await api.apply(pod("b"))) == ["refused"]
        await api.delete(ObjectRef(resource="pods", namespace="default", name="a"))
        await comes(api.bus, {"pods": "0"})
        assert outcomes(await api.apply(pod("b"))) == ["created"]

    async def test_a_change_takes_what_it_adds(self, api: Api) -> None:
        await put_quota(api, quota(hard={"services": "1", "services.nodeports": "3"}),
                        {"services": "0", "services.nodeports": "0"})  # fmt: skip
        assert outcomes(await api.apply(service("a"))) == ["created"]
        assert outcomes(await api.apply(service("a", type="NodePort"))) == ["configured"]
        assert await used(api.bus) == {"services": "1", "services.nodeports": "2"}
        more = [{"port": port} for port in (1, 2, 3, 4)]
        assert "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2" in message(
            await api.apply(service("a", type="NodePort", ports=more))
        )
        assert outcomes(await api.apply(service("a", type="ClusterIP"))) == ["configured"]
        await comes(api.bus, {"services": "1", "services.nodeports": "0"})

    async def test_kinds_that_nobody_acts_on_are_counted_by_number(self, api: Api) -> None:
        hard = {"count/configmaps": "1", "configmaps": "9", "count/things.example.org": "1"}
        await put_quota(api, quota(hard=hard), dict.fromkeys(sorted(hard), "0"))
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        assert outcomes(await api.apply(config)) == ["created"]
        assert outcomes(await api.apply({**config, "data": {"a": "b"}})) == ["configured"]
        assert "count/configmaps=1" in message(await api.apply({**config, "metadata": {"name": "b"}}))
        thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "default"}}
        assert outcomes(await api.apply(thing)) == ["created"]
        assert await used(api.bus) == {"configmaps": "1", "count/configmaps": "1", "count/things.example.org": "1"}

    async def test_a_quota_of_another_namespace_costs_no_message(self, api: Api) -> None:
        elsewhere = quota()
        elsewhere["metadata"]["namespace"] = "kube-system"
        await api.apply(elsewhere)
        before = await api.bus.last_sequence(streams.CLUSTER.name)

        async def still() -> bool:
            nonlocal before
            last, before = before, await api.bus.last_sequence(streams.CLUSTER.name)
            return last == before

        await eventually("the quota is counted", still)
        await api.apply(pod("a"), pod("b"), pod("c"), pod("d"))
        assert await api.bus.last_sequence(streams.CLUSTER.name) == before + 4

    async def test_a_quota_that_goes_takes_its_usage_with_it(self, api: Api) -> None:
        await put_quota(api, quota(), {"pods": "0"})
        await api.delete(ObjectRef(resource="resourcequotas", namespace="default", name="q"))
        await comes(api.bus, None)
        await put_quota(api, quota(), {"pods": "0"})

    async def test_a_status_is_nobodys_wish(self, api: Api) -> None:
        await put_quota(api, quota(), {"pods": "0"})
        reply = await api.apply({**quota(), "status": {"used": {"pods": "7"}}})
        assert outcomes(reply) == ["unchanged"]


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("apis", [4])
async def test_several_apis_at_once_never_exceed_a_quota_while_pods_are_deleted(
    start_api: StartApi, connect_bus: ConnectBus, bus: Bus, apis: int
) -> None:
    """The highest number of pods that ever lived together, by the stream's own order, is the limit."""
    limit = 4
    started = [await start_api(await connect_bus(f"api-{number}")) for number in range(apis)]
    await put_quota(
        started[0], quota(hard={"pods": str(limit), "requests.cpu": "10"}), {"pods": "0", "requests.cpu": "0"}
    )
    position = await bus.last_sequence(streams.CLUSTER.name)
    for one in started:
        await one.reached(position - 1)
    dice, created = random.Random(3), 0

    async def work(number: int) -> None:
        nonlocal created
        api = started[number % apis]
        for turn in range(12):
            name = f"p-{number}-{turn}"
            reply = await api.apply(pod(name))
            if outcomes(reply) == ["created"]:
                created += 1
                await anyio.sleep(dice.uniform(0.03, 0.06))
                await api.delete(ObjectRef(resource="pods", namespace="default", name=name))

    watcher = Living()
    async with watching(bus, watcher):
        async with anyio.create_task_group() as tasks:
            for number in range(3 * apis):
                tasks.start_soon(work, number)
        await comes(bus, {"pods": "0", "requests.cpu": "0"})
        await eventually("all is seen", lambda: not watcher.pods)
    assert created > 2 * limit
    assert watcher.most == limit
    assert watcher.most_used == limit
