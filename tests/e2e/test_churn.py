"""Names that come and go, also while they are in flight: when all is quiet, nothing of what has gone is left
anywhere."""

from collections.abc import Iterable
from random import Random
from typing import Any, Final

import anyio
import msgspec
import pytest_asyncio

from podyard.bus import Delivery, WatchSpec
from podyard.bus.errors import TemporaryError, Unclear
from podyard.cli.demo.evidence import NotSeenError
from podyard.proto import codec, streams, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, DeleteRequest, ObjectResult, ObjectsReply
from podyard.proto.placement import Binding, Placement
from podyard.shell.snapshot import snapshot
from tests.e2e import ledger
from tests.e2e.stage import WITHIN_S, Stand, jetstream, node, paused, state_of
from tests.e2e.test_story_with_kills import metric, queue_list
from tests.support.waiting import eventually

NODES: Final = tuple(f"node-{number}" for number in range(30))
PEOPLE: Final = 6
NAMES_EACH: Final = 50
ROUNDS: Final = 5
SURVIVES: Final = 5
"""One in so many names lives at the end."""

QUIET_S: Final = 40.0
"""Records of a deleted pod are purged a second time after 10 s; the rest is for a busy machine."""


@pytest_asyncio.fixture(loop_scope="session")
async def here(here: Stand) -> Stand:
    await here.join(*map(node, NODES))
    return here


async def test_long_names_and_namesakes_in_two_namespaces_live_and_leave(here: Stand) -> None:
    long = ("n1." + "a.b" * 84)[:253].rstrip(".")
    assert len(long) == 253
    only = {"nodeSelector": {"big": "yes"}, "terminationGracePeriodSeconds": 1}
    own = here.namespace
    keys = [(own, long), ("other", long), (own, "same"), ("other", "same"), (own, "dots.in.it")]
    await here.do.apply([node(long, labels={"kubernetes.io/hostname": "long", "big": "yes"})], "a long name")
    await here.do.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}], "a second one")
    await here.do.apply([made(here._replace(namespace=space), name, **only) for space, name in keys], "a test")
    pods = here.seen.view.pods

    def run() -> bool:
        return all(key in pods and (one := pods[key].status) is not None and one.phase == "Running" for key in keys)

    await here.seen.until("all running", run, WITHIN_S)
    assert {pods[key].node_name for key in keys} == {long}
    for space, name in keys:
        await here.do.delete("pods", space, name, "its time is over")
    await here.seen.until("all gone", lambda: not any(key in pods for key in keys), WITHIN_S)
    await quiet(here)


async def test_nothing_is_left_of_names_that_came_and_went(here: Stand) -> None:
    after = ledger.beginning(here.seen.view)
    people = [Person(here, number) for number in range(PEOPLE)]
    async with anyio.create_task_group() as tasks:
        for person in people:
            tasks.start_soon(person.churn)
        tasks.start_soon(kill_the_binder, here)
        tasks.start_soon(take_nodes_away, here)
    await replace_in_flight(here)
    await leave_some(here)
    await here.lab.until_ready(WITHIN_S)
    await quiet(here)
    await check_sums(here, after)
    living = {key[1] for key, one in here.seen.view.pods.items() if not one.ended}
    assert living, "the sums above were of nothing"


class Person:
    """Makes and deletes the same names again and again, without looking what became of them."""

    def __init__(self, here: Stand, number: int) -> None:
        self._here = here
        self._random = Random(number)
        self._names = [f"churn-{index}" for index in range(number * NAMES_EACH, (number + 1) * NAMES_EACH)]

    async def churn(self) -> None:
        for turn in range(ROUNDS):
            position = self._here.seen.view.position
            await create(self._here, [self._like(name) for name in self._sample()])
            if turn % 2:  # else what was made is deleted wherever it is
                await moved_on(self._here, position)
            await delete(self._here, self._sample(), self._random.choice((0, 0, None)))

    def _sample(self) -> list[str]:
        return self._random.sample(self._names, NAMES_EACH * 3 // 5)

    def _like(self, name: str) -> dict[str, Any]:
        kind = int(name.rpartition("-")[2]) % 10
        if kind == 0:
            return made(self._here, name, nodeName=self._random.choice(NODES))
        if kind == 1:
            return made(self._here, name, nodeName="nowhere")
        if kind == 2:
            return made(self._here, name, schedulerName="nobody")
        return made(self._here, name, cpu="900" if kind == 3 else "1m")


def made(here: Stand, name: str, *, cpu: str = "1m", **spec: Any) -> dict[str, Any]:
    """A pod's manifest without labels, as a name may be too long for one."""
    found = here.pod(name, cpu=cpu, **{"terminationGracePeriodSeconds": 1, **spec})
    del found["metadata"]["labels"]
    return found


async def kill_the_binder(here: Stand) -> None:
    """Once, while it has work."""
    fence = here.seen.view.fence
    since = fence.n if fence is not None else 0
    await here.seen.until("commits", lambda: (one := here.seen.view.fence) is not None and one.n > since + 3, WITHIN_S)
    child = here.lab.child("binder")
    starts = child.starts
    child.kill()
    await state_of(here.lab, lambda one: one is not child or (one.starts > starts and one.state == "ready"), "a binder")


async def take_nodes_away(here: Stand) -> None:
    """Three nodes with pods on them go, and come back: at once, when that is known, and when their room has
    been given away."""
    view = here.seen.view

    def busiest() -> str:
        name = max((name for name in NODES if name in view.nodes), key=lambda one: len(view.pods_on(one)))
        return name if view.pods_on(name) else ""

    for moment in ("at once", "known", "released"):
        await take_away(here, await here.seen.until("a node with pods", busiest, WITHIN_S), moment)


async def take_away(here: Stand, name: str, moment: str) -> None:
    view = here.seen.view
    uid, there = view.nodes[name].uid, set(view.pods_on(name))
    await here.do.delete("nodes", "", name, "it broke")
    if moment != "at once":
        await here.seen.until("the node gone", lambda: name not in view.nodes, WITHIN_S)
    if moment == "released":
        await here.seen.until("its pods released", lambda: not there & set(view.pods_on(name)), WITHIN_S)
    await here.do.apply([node(name)], "it was mended")
    await here.seen.until("the node back", lambda: name in view.nodes and view.nodes[name].uid != uid, WITHIN_S)


async def replace_in_flight(here: Stand) -> None:
    """Pods are deleted and made again under their names while a scheduler has them in its hands."""
    names = [f"flying-{number}" for number in range(20)]
    with paused(here.lab, "scheduler"):
        await create(here, [made(here, name) for name in names])
        await queue_holds_in_flight(here)
        await delete(here, names, 0)
        await create(here, [made(here, name, cpu="900" if name.endswith("0") else "1m") for name in names])
    fitting = [name for name in names if not name.endswith("0")]
    await here.running(*fitting)
    await delete(here, [name for name in names if name not in fitting], None)


async def leave_some(here: Stand) -> None:
    """One name in five is there at the end, none of them one that waits for room for ever."""
    for number in range(PEOPLE):
        mine = range(number * NAMES_EACH, (number + 1) * NAMES_EACH)
        kept = [index for index in mine if index % SURVIVES == 0]
        await delete(here, [f"churn-{index}" for index in mine if index not in kept], 0 if number % 2 else None)
        await create(here, [made(here, f"churn-{index}") for index in kept])


# -- at the api, which may be asked for what is there already or there no more


async def create(here: Stand, documents: list[dict[str, Any]]) -> None:
    request = ApplyRequest(
        objects=tuple(msgspec.Raw(msgspec.json.encode(one)) for one in documents), create_only=True, partial=True
    )
    for result in await ask(here, subjects.OBJECTS_APPLY, request):
        assert result.outcome in ("created", "refused"), result


async def delete(here: Stand, names: Iterable[str], grace_s: int | None) -> None:
    pods = tuple(ObjectRef(resource="pods", namespace=here.namespace, name=name) for name in names)
    request = DeleteRequest(objects=pods, grace_period_s=grace_s)
    for result in await ask(here, subjects.OBJECTS_DELETE, request):
        assert result.outcome in ("deleted", "notFound"), result


async def ask(here: Stand, subject: str, request: ApplyRequest | DeleteRequest) -> tuple[ObjectResult, ...]:
    reply = await here.bus.request(subject, codec.encode(request), timeout_s=WITHIN_S)
    found = codec.decode(ObjectsReply, reply.payload)
    assert not found.refused, found.refused
    return found.results


async def moved_on(here: Stand, position: int) -> None:
    """Wait until something was bound after `position`, if anything is to be."""
    bound = here.seen.view.placements
    before = len(bound)
    try:
        await here.seen.until("a binding", lambda: len(bound) != before, 1.0)
    except NotSeenError:
        assert here.seen.view.position >= position


async def queue_holds_in_flight(here: Stand) -> None:
    async def in_flight() -> int:
        return (await queue_list(here)).counts.get("inFlight", 0)

    await eventually("pods in flight", in_flight, WITHIN_S)


# -- what is left


async def quiet(here: Stand) -> None:
    """Wait until nothing of what has gone is left, and nothing is under way.

    :raises AssertionError: with what is left
    """
    left: list[str] = []

    async def nothing_left() -> bool:
        left[:] = await remains(here)
        return not left

    try:
        await eventually("nothing left", nothing_left, QUIET_S)
    except AssertionError as error:
        error.add_note(f"{len(left)}: {left[:10]}")
        raise


async def remains(here: Stand) -> list[str]:
    """What should not be there once all is quiet."""
    stored = await everything(here)
    pods = subjects.objects(subjects.PODS).removesuffix(">")
    living = {uid_of(one) for subject, one in stored.items() if subject.startswith(pods) and not one.deleted}
    left: list[str] = []
    for subject, one in stored.items():
        if one.deleted or not subject.startswith(ABOUT_PODS):
            continue
        if subject.startswith("placement."):
            left += wrong_placement(one, living)
        elif subjects.parse_pod(subject).uid not in living:
            left.append(f"{subject} is about a pod that has gone")
    try:
        counts = (await queue_list(here)).counts
        records = await subjects_of(here, streams.DECISIONS.name)
    except (TemporaryError, Unclear) as error:
        return [f"{error}"]
    left += [f"the queue holds {number} in {pool}" for pool, number in counts.items() if number]
    left += [f"{one} is left" for one in records if subjects.parse_pod(one).uid not in living]
    left += [f"{one.namespace}/{one.name} is leaving" for one in here.seen.view.pods.values() if one.deleting]
    return left


ABOUT_PODS: Final = tuple(
    wildcard.removesuffix(">")
    for wildcard in (subjects.ALL_BINDINGS, subjects.ALL_POD_STATUS, subjects.ALL_NOMINATIONS)
)


def uid_of(stored: Delivery) -> str:
    """The uid of the object in a stored version."""
    return msgspec.json.decode(stored.payload)["object"]["metadata"]["uid"]


def wrong_placement(stored: Delivery, living: set[str]) -> list[str]:
    """A binding belongs to a living pod; a tombstone too, or it has a time to live."""
    placement = codec.decoder(Placement).decode(stored.payload)
    if placement.uid in living or (not isinstance(placement, Binding) and "Nats-TTL" in stored.headers):
        return []
    return [f"{stored.subject} is a {type(placement).__name__} that stays for ever"]


async def subjects_of(here: Stand, stream: str) -> list[str]:
    """Subjects that have messages in a stream."""
    return list(
        (await jetstream(here.bus, f"STREAM.INFO.{stream}", {"subjects_filter": ">"}))["state"].get("subjects") or {}
    )


class _Everything:
    """Keeps the last message of each subject."""

    def __init__(self) -> None:
        self.stored: dict[str, Delivery] = {}
        self.complete = anyio.Event()

    def listing(self, target: int, reason: str) -> None:
        self.stored.clear()

    def deliver(self, delivery: Delivery) -> None:
        self.stored[delivery.subject] = delivery

    def synced(self, position: int) -> None:
        self.complete.set()

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


async def everything(here: Stand) -> dict[str, Delivery]:
    """The CLUSTER stream as it is now."""
    found = _Everything()
    spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=(">",), follow_subjects=(">",))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.bus.watch(spec, found).run)
        with anyio.fail_after(WITHIN_S):
            await found.complete.wait()
        tasks.cancel_scope.cancel()
    return found.stored


async def check_sums(here: Stand, after: int) -> None:
    """No uid was bound twice, no node was ever overloaded, and everyone's sums are those of the live
    bindings."""
    found = await ledger.read_back(here.bus, after)
    view = await snapshot(here.bus)
    ledger.check_commits(found, view.nodes)
    for name in view.nodes:
        held_there = [one.bound for one in view.pods_on(name).values() if one.bound is not None]
        assert ledger.usage(held_there) == ledger.usage(one for one in found.live.values() if one.node == name)
    assert {one.uid for one in view.pods.values() if one.bound is not None} == set(found.live)
    assert await metric(here, "binder", "podyard_binder_usage_drifts_total") == 0
