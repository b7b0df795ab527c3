"""The binder: what it writes, and that races, lost acknowledgements and take-overs do no harm."""

import anyio
import msgspec
import pytest

from podyard.binder.service import SERVICE
from podyard.binder.term import Term
from podyard.bus import Busy, Delivery, Outgoing, RemoteError, RequestTimeout
from podyard.proto import codec, headers, streams, subjects
from podyard.proto.binder_api import NumberRange
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import Binding, Tombstone
from podyard.shell import stream_reading
from podyard.telemetry.tracing import Spans
from tests.contract.binder.stage import Cluster, FaultyBus, leading_term
from tests.support import objects
from tests.support.services import make_service, running
from tests.support.spans import KeptSpans
from tests.support.waiting import WITHIN_S, eventually

COMPLETED = PodStatusFact(namespace="default", name="a", uid="uid-a", node="n1", phase="Succeeded", ended=True)


@pytest.fixture
async def cluster(bus):
    cluster = Cluster(bus)
    await cluster.node()
    await cluster.pods("a", "b", "c")
    return cluster


async def test_decisions_are_bound_and_everyone_can_read_how(cluster, connect_bus):
    async with leading_term(await connect_bus("binder"), "binder-a"):
        reply = await cluster.ask(cluster.decide("a"), cluster.decide("b"))
        assert [answer.result for answer in reply.answers] == ["bound", "bound"]
        assert reply.position >= cluster.position
        (record,) = await cluster.commits()
        fence = await cluster.fence()
        assert (fence.n, fence.epoch, fence.batch) == (1, reply.epoch, record.batch)
        assert [pod.name for pod in record.bindings] == ["a", "b"]
        binding = await cluster.placement("a")
        assert isinstance(binding, Binding)
        assert binding.usage.requests == {"cpu": 1000}


async def test_extension_points_of_a_binding_show_under_kube_schedulers_name(cluster, connect_bus):
    async with leading_term(await connect_bus("binder"), "binder-a") as term:
        await cluster.bind(cluster.decide("a"))
        value = term._service.metrics.get_sample_value
        name = "scheduler_framework_extension_point_duration_seconds"
        for point in ("PreBind", "Bind", "PostBind"):
            labels = {"extension_point": point, "status": "Success", "profile": "default-scheduler"}
            assert value(f"{name}_count", labels) == 1, point
            assert bool(value(f"{name}_sum", labels)) == (point == "Bind"), "no plugin has anything to do for the pod"


async def test_what_does_not_fit_is_a_conflict_with_its_cause(cluster, connect_bus):
    await cluster.node("small", cpu="1")
    async with leading_term(await connect_bus("binder"), "binder-a"):
        reply = await cluster.ask(cluster.decide("a", node="small"), cluster.decide("b", node="small"))
        assert [(answer.result, answer.cause) for answer in reply.answers] == [("bound", ""), ("conflict", "fit")]
        assert reply.answers[1].reasons == ("Insufficient cpu",)


async def test_a_pod_that_ended_is_released_and_its_tombstone_goes_after_the_object(cluster, connect_bus):
    async with leading_term(await connect_bus("binder"), "binder-a"):
        await cluster.bind(cluster.decide("a"))
        await cluster.status(COMPLETED)

        async def released():
            found = await cluster.placement("a")
            return found if isinstance(found, Tombstone) else None

        assert (await eventually("a tombstone", released)).reason == "completed"
        assert (await cluster.bind(cluster.decide("a", attempt="2-a"))) == ["alreadyBound"]
        await cluster.remove("pods", objects.pod("a"))

        async def expiring():
            found = await cluster.last(subjects.binding("default", "a", "uid-a"))
            return found is not None and headers.TTL in found.headers

        await eventually("a TTL on the tombstone", expiring)


@pytest.mark.parametrize(
    "faults", [["lost ack"], ["lost"], ["lost ack", "lost ack", "lost"], ["lost", "lost", "lost ack"]]
)
async def test_lost_messages_and_acknowledgements_are_settled_never_guessed(cluster, connect_bus, faults):
    faulty = FaultyBus(await connect_bus("binder"))
    async with leading_term(faulty, "binder-a"):
        faulty.faults.extend(faults)
        assert await cluster.bind(cluster.decide("a"), cluster.decide("b")) == ["bound", "bound"]
        assert await cluster.bind(cluster.decide("c")) == ["bound"]
        records = await cluster.commits()
        assert sorted(pod.name for record in records for pod in record.bindings) == ["a", "b", "c"]
        assert len(set(faulty.batches)) == len(faulty.batches)


async def test_a_lost_acknowledgement_of_the_take_over_is_settled(cluster, connect_bus):
    faulty = FaultyBus(await connect_bus("binder"))
    faulty.faults.extend(["lost ack", "lost"])
    async with leading_term(faulty, "binder-a"):
        assert await cluster.bind(cluster.decide("a")) == ["bound"]


async def test_a_binder_that_was_paused_past_its_lease_writes_nothing(cluster, connect_bus):
    """A's batch hangs in its hands while B takes over; when A goes on, the fence refuses it."""
    faulty = FaultyBus(await connect_bus("a"))
    async with anyio.create_task_group() as tasks:
        async with leading_term(faulty, "binder-a") as paused:
            faulty.faults.append("hold")
            decision = cluster.decide("a")

            async def ask_the_paused():
                with pytest.raises(Busy):
                    await cluster.ask(decision)

            tasks.start_soon(ask_the_paused)
            await faulty.held.wait()
            async with leading_term(await connect_bus("b"), "binder-b"):
                epoch = (await cluster.fence()).epoch
                faulty.resume()
                await eventually("A is deposed", lambda: paused.core.phase.name == "DEPOSED")
                assert await cluster.placement("a") is None
                assert await cluster.commits() == []
                reply = await cluster.ask(decision)  # sent again, same attempt id
                assert (reply.epoch, [answer.result for answer in reply.answers]) == (epoch, ["bound"])
        assert [record.epoch for record in await cluster.commits()] == [epoch]


async def test_what_the_scheduler_counted_on_is_not_filtered_again(cluster, connect_bus):
    """The positions of a real stream: who has read up to the record has seen the binding, who has not claims
    it."""
    async with leading_term(await connect_bus("binder"), "binder-a") as term:

        async def read(subject: str) -> Delivery:
            """As a scheduler reads it."""
            found = await stream_reading.last(cluster.bus, streams.CLUSTER.name, subject)
            assert found is not None
            return found

        async def skipped(name: str, last: Delivery, *claims: int) -> bool:
            before = _skips(term)
            decision = msgspec.structs.replace(
                cluster.decide(name), position=last.sequence, read=last.sequence, read_at=last.stored_at
            )
            ranges = tuple(NumberRange(first=number, last=number) for number in claims)
            (answer,) = (await cluster.ask(decision, outstanding=ranges)).answers
            assert answer.result == "bound"
            return _skips(term) > before

        await cluster.pods("e")
        start = await read(subjects.object_("pods", "default", "e"))
        # it lies behind the listing with which the term began
        assert await skipped("a", start)
        assert await skipped("b", start, 1), "claimed, and there"
        await cluster.pods("d")
        record = await read(subjects.commit(2))
        assert await skipped("c", record), "both are seen at the second record"
        last = await read(subjects.object_("pods", "default", "d"))
        assert not await skipped("d", last), "the third binding came later, and is not claimed"


def _skips(term: Term) -> float:
    registry = term._service.metrics  # pyright: ignore[reportPrivateUsage] - what /metrics shows
    return registry.get_sample_value("podyard_binder_skipped_filters_total") or 0.0


async def test_two_binders_race_and_no_uid_is_bound_twice(cluster, connect_bus):
    """The fence goes back and forth between two that both believe to lead; schedulers repeat until
    answered."""
    names = [f"r{number}" for number in range(24)]
    await cluster.node("big", cpu="64")
    await cluster.pods(*names)
    decisions = {name: cluster.decide(name, node="big") for name in names}
    connections = [await connect_bus(f"b{number}") for number in range(4)]
    answered: dict[str, str] = {}

    async def scheduler(mine: list[str]) -> None:
        for name in mine:
            while name not in answered:
                try:
                    reply = await cluster.ask(decisions[name], timeout_s=0.3)
                except (Busy, RequestTimeout):
                    continue
                if reply.answers:
                    answered[name] = reply.answers[0].result

    async with anyio.create_task_group() as tasks:
        for number, connection in enumerate(connections):
            await tasks.start(_reign_until_cancelled, connection, f"binder-{number}")
        with anyio.fail_after(30):
            async with anyio.create_task_group() as schedulers:
                for number in range(3):
                    schedulers.start_soon(scheduler, names[number * 8 : number * 8 + 8])
        tasks.cancel_scope.cancel()
    assert set(answered.values()) == {"bound"}
    bound = [pod.uid for record in await cluster.commits() for pod in record.bindings]
    assert sorted(bound) == sorted(f"uid-{name}" for name in names)
    epochs = [record.epoch for record in await cluster.commits()]
    assert epochs == sorted(epochs)


async def _reign_until_cancelled(connection, instance: str, *, task_status=anyio.TASK_STATUS_IGNORED) -> None:
    async with leading_term(connection, instance):
        task_status.started()
        await anyio.sleep_forever()


async def test_take_over_in_the_middle_of_a_batch(cluster, connect_bus):
    """The batch was applied, its acknowledgement lost, its writer gone: the successor's listing holds it."""
    faulty = FaultyBus(await connect_bus("a"))
    decisions = [cluster.decide("a"), cluster.decide("b")]
    async with leading_term(faulty, "binder-a"):
        # the batch, then the move of the fence that would settle it
        faulty.faults.extend(["lost ack", "hold"])
        with pytest.raises(RequestTimeout):
            await cluster.ask(*decisions, timeout_s=0.5)
    async with leading_term(await connect_bus("b"), "binder-b"):
        assert await cluster.bind(*decisions) == ["bound", "bound"]
        assert len(await cluster.commits()) == 1
        await cluster.pods("d", "e")
        assert await cluster.bind(cluster.decide("d"), cluster.decide("e"), cluster.decide("c")) == [
            "bound",
            "bound",
            "conflict",
        ]


async def test_a_foreign_binding_is_named_and_its_mates_are_bound(cluster, connect_bus):
    """Error 10071: the number leads to the binding that is in the way."""
    async with leading_term(await connect_bus("binder"), "binder-a"):
        stranger = Binding(namespace="default", name="a", uid="uid-a", node="n7", attempt="9-9")
        await cluster.bus.publish(Outgoing(subjects.binding("default", "a", "uid-a"), codec.encode(stranger)))
        reply = await cluster.ask(cluster.decide("a"), cluster.decide("b"))
        assert [(answer.result, answer.node) for answer in reply.answers] == [("alreadyBound", "n7"), ("bound", "n1")]


async def test_who_waits_for_a_term_that_ends_is_told_at_once_to_ask_again(cluster, connect_bus):
    """Its commit is under way, and is applied after its end: nothing is said of it."""
    faulty = FaultyBus(await connect_bus("a"))
    decision, told = cluster.decide("a"), []

    async def ask() -> None:
        with pytest.raises(Busy) as busy:
            await cluster.ask(decision, timeout_s=WITHIN_S)
        told.append(busy.value)

    with anyio.fail_after(WITHIN_S / 2):
        async with anyio.create_task_group() as tasks, leading_term(faulty, "binder-a"):
            faulty.faults.extend(["lost ack", "hold"])
            tasks.start_soon(ask)
            await faulty.held.wait()
    assert "what it was writing may yet be applied" in str(told[0])
    async with leading_term(await connect_bus("b"), "binder-b"):
        assert await cluster.bind(decision) == ["bound"]
        assert len(await cluster.commits()) == 1


async def test_a_standby_serves_as_soon_as_the_leader_ends(cluster, connect_bus):
    first = make_service(SERVICE, await connect_bus("a"), instance="binder-a")
    second = make_service(SERVICE, await connect_bus("b"), instance="binder-b")
    async with running(first) as leading:
        await eventually("A serves", lambda: _answers(cluster, "a"))
        async with running(second):
            leading.cancel()
            with anyio.fail_after(5):  # half a lease: it was released, not waited out
                await eventually("B serves", lambda: _answers(cluster, "b"))
            assert (await cluster.fence()).holder == "binder-b"


async def _answers(cluster: Cluster, name: str) -> bool:
    try:
        reply = await cluster.ask(cluster.decide(name), timeout_s=0.3)
    except Exception as error:
        if isinstance(error, Busy | RequestTimeout | TimeoutError):
            return False
        raise
    return [answer.result for answer in reply.answers] == ["bound"]


async def test_a_request_that_cannot_be_read_is_refused_and_kept(cluster, connect_bus):
    async with leading_term(await connect_bus("binder"), "binder-a"):
        with pytest.raises(Exception, match="not a BindRequest"):
            await cluster.bus.request(subjects.BINDER_BIND, b"{}")
        assert await cluster.bind(cluster.decide("a")) == ["bound"]


async def test_bind_spans_hang_below_the_cycle_and_bad_ones_are_kept(cluster, connect_bus):
    sink = KeptSpans()
    spans = Spans(sink)
    sampled = spans.new_trace()[:-2] + "01"
    plain, refused = spans.new_trace(), spans.new_trace()
    async with leading_term(await connect_bus("binder"), "binder-a", spans=sink):
        await cluster.bind(
            cluster.decide("a", trace=sampled),
            cluster.decide("b", trace=plain),
            cluster.decide("c", node="nowhere", trace=refused),
        )
        (record,) = await cluster.commits()
    by_pod = {span.attributes["k8s.pod.name"]: span for span in sink.named("bind")}
    assert by_pod.keys() == {"a", "c"}
    assert by_pod["a"].parent is None, "the cycle is over when the binder is asked"
    assert sink.links_of(by_pod["a"]) == [f"follows {sampled[3:52]}"]
    assert by_pod["a"].kind == "consumer"
    commits = sink.named("commit")
    assert [span.parent for span in commits] == [by_pod["a"].ids, by_pod["c"].ids]
    assert str(by_pod["a"].ids) == record.bindings[0].trace
    assert record.bindings[1].trace == plain
    assert not by_pod["c"].error, "a conflict is an answer: the attempt goes on"
    assert by_pod["c"].attributes["podyard.bind.cause"] == "nodeGone"


async def test_the_decision_record_stays_with_the_binding(cluster, connect_bus):
    record = AttemptRecord(
        namespace="default", name="a", uid="uid-a", attempt="1-a", outcome="scheduled", at=1.5, node="n1"
    )
    async with leading_term(await connect_bus("binder"), "binder-a"):
        await cluster.bind(msgspec.structs.replace(cluster.decide("a"), record=record))
        assert (await cluster.placement("a")).decision == record


BEYOND = [
    pytest.param(b"", id="empty"),
    pytest.param(b"\xff", id="no utf-8"),
    pytest.param(b"[" * 50_000, id="nested"),
    pytest.param(b'{"session":"s","decisions":[NaN]}', id="NaN"),
    pytest.param(b'{"session":"s","decisions":1}', id="wrong type"),
    pytest.param(b'{"session":"%b","decisions":[]}' % (b"x" * 5_000), id="long"),
    pytest.param(b'{"session":"s","decisions":[],"outstanding":[{"first":0,"last":%d}]}' % 10**30, id="10^30"),
]


@pytest.mark.parametrize("payload", BEYOND)
async def test_a_request_beyond_the_bounds_is_refused(cluster, connect_bus, payload):
    async with leading_term(await connect_bus("binder"), "binder-a"):
        with pytest.raises(RemoteError, match="not a BindRequest"):
            await cluster.bus.request(subjects.BINDER_BIND, payload)
        assert await cluster.bind(cluster.decide("a")) == ["bound"]


async def test_decisions_with_numbers_that_nobody_has_are_answered(cluster, connect_bus):
    """A position that is never reached is waited for in vain; the others are bound meanwhile."""
    largest = 2**63 - 1
    async with leading_term(await connect_bus("binder"), "binder-a"):
        wide = (NumberRange(first=0, last=largest - 1),)
        far = msgspec.structs.replace(cluster.decide("b"), position=largest)
        strange = msgspec.structs.replace(cluster.decide("c"), number=largest, not_assumed=(largest, -largest, 0))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cluster.ask, far)
            reply = await cluster.ask(strange, outstanding=wide)
            assert [answer.result for answer in reply.answers] == ["bound"]
            assert await cluster.bind(cluster.decide("a")) == ["bound"]
            tasks.cancel_scope.cancel()
