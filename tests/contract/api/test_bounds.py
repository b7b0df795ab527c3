"""What no request may bring: each is refused with its field and its bound, and the api goes on, the request's
other objects too."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from podyard.api import applying
from podyard.bus import Bus
from podyard.objects import admission
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectsReply
from tests.contract.api.conftest import Api, StartApi, outcomes, pod, stored
from tests.support.cluster import Cluster, bound
from tests.support.waiting import WITHIN_S

ConnectBus = Callable[..., Awaitable[Bus]]


def ref(name: str, resource: str = "pods", **more: str) -> ObjectRef:
    return ObjectRef(resource=resource, name=name, **{"namespace": "default", **more})


def nested(levels: int) -> bytes:
    """A pod with lists within lists in a field that nobody reads."""
    text = msgspec.json.encode(pod("deep", extra="HERE"))
    return text.replace(b'"HERE"', b"[" * levels + b"]" * levels)


async def ask(api: Api, subject: str, payload: bytes) -> ObjectsReply:
    """A request as anybody may write it."""
    reply = await api.bus.request(subject, payload, timeout_s=WITHIN_S)
    return codec.decode(ObjectsReply, reply.payload)


async def apply_raw(api: Api, *documents: bytes, partial: bool = True) -> ObjectsReply:
    request = b'{"partial":%b,"objects":[%b]}' % (b"true" if partial else b"false", b",".join(documents))
    return await ask(api, subjects.OBJECTS_APPLY, request)


@pytest.mark.parametrize("verb", ["delete", "evict"])
@pytest.mark.parametrize("field", ["name", "namespace"])
async def test_a_name_of_5000_characters_costs_nobody_the_connection(api: Api, verb: str, field: str) -> None:
    await api.apply(pod("a"))
    connects = api.bus.state.connects
    wrong = ref(**{"name": "b", field: "x" * 5000})
    reply = await (api.delete if verb == "delete" else api.evict)(wrong, ref("a"))
    assert reply.results[0].outcome == "refused"
    (fault,) = reply.results[0].errors
    assert (fault.field, fault.detail) == (f"metadata.{field}", "Too long: may not be more than 253 bytes")
    assert reply.results[1].outcome in ("deleted", "evicted")
    assert api.bus.state.connects == connects


async def test_a_name_is_measured_in_bytes(api: Api) -> None:
    reply = await api.delete(ref("€" * 85), ref("€" * 84), ref("x" * 300, "x" * 3000 + ".v1.example.com"))
    assert outcomes(reply) == ["refused", "notFound", "refused"]


@pytest.mark.parametrize("levels", [99, 969, 20_000])
async def test_a_nested_pod_is_refused_alone(api: Api, levels: int) -> None:
    documents = (nested(levels), msgspec.json.encode(pod("good")))
    reply = await apply_raw(api, *documents)
    if reply.refused:
        assert levels > 900, "what can be read is refused alone"
        reply = await apply_raw(api, documents[1])
        assert outcomes(reply) == ["created"]
        return
    assert outcomes(reply) == ["refused", "created"]
    assert reply.results[0].message.endswith("nested deeper than 100 levels") or levels > 900


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priority": 10**30}, "spec.priority"),
        ({"terminationGracePeriodSeconds": 10**30}, "spec.terminationGracePeriodSeconds"),
        (
            {"tolerations": [{"operator": "Exists", "tolerationSeconds": -(10**25)}]},
            "spec.tolerations[0].tolerationSeconds",
        ),
        ({"extra": [10**19]}, "spec.extra[0]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_numbers_of_more_than_64_bits(api: Api, spec: dict[str, Any], field: str) -> None:
    reply = await api.apply(pod("a", **spec), pod("b"), partial=True)
    assert outcomes(reply) == ["refused", "created"]
    assert [one.field for one in reply.results[0].errors] == [field]
    assert "must be between" in reply.results[0].errors[0].detail


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"null",
        b"1",
        b'"pod"',
        b"{}",
        b'{"apiVersion":"v1","kind":"Pod"}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":null,"spec":null}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":[]},"spec":{"containers":{}}}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[null]}}',
        b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"},"status":{"allocatable":{"cpu":[]}}}',
        b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"},"status":{"allocatable":{"cpu":1e300}}}',
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"priority":%b}}' % (b"9" * 6000),
        b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"strategy":{"rollingUpdate":'
        b'{"maxSurge":"%b%%","maxUnavailable":"%b%%"}}}}' % (b"9" * 6000, b"9" * 6000),
    ],
    ids=lambda value: value.decode()[:60],
)
async def test_any_json_gets_an_answer(api: Api, document: bytes) -> None:
    reply = await apply_raw(api, document, msgspec.json.encode(pod("good")))
    assert reply.results[1].outcome == "created"
    assert reply.results[0].outcome in ("refused", "created")
    assert reply.results[0].outcome == "created" or reply.results[0].message


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"objects":[NaN]}',
        b'{"objects":1}',
        b'{"objects":[{"kind":"\\ud800"}]}',
        b'{"objects":[{"resource":"pods","name":"a\xff"}]}',
        b'{"objects":[],"who":"%b"}' % (b"x" * 1025),
        b'{"objects":[' + b",".join([b"{}"] * 257) + b"]}",
    ],
    ids=["empty", "no utf-8", "nested", "NaN", "no list", "half a character", "no utf-8 in a name", "who", "too many"],
)
@pytest.mark.parametrize("subject", [subjects.OBJECTS_APPLY, subjects.OBJECTS_DELETE])
async def test_a_request_that_cannot_be_read_is_answered(api: Api, payload: bytes, subject: str) -> None:
    reply = await ask(api, subject, payload)
    assert reply.refused or any(one.outcome == "refused" for one in reply.results)
    assert outcomes(await api.apply(pod("good"))) == ["created"]


@pytest.mark.parametrize("grace_s", [-1, 2**63, 10**30])
async def test_a_grace_period_has_bounds(api: Api, grace_s: int) -> None:
    await api.apply(pod("a"))
    request = b'{"objects":[{"resource":"pods","namespace":"default","name":"a"}],"gracePeriodS":%d}' % grace_s
    reply = await ask(api, subjects.OBJECTS_DELETE, request)
    assert "$.gracePeriodS" in reply.refused
    assert ">= 0" in reply.refused or "<= 9223372036854775807" in reply.refused
    assert not (await stored(api.bus, "pods", "a")).deleted


@pytest.mark.parametrize("says", ["pod", "request"])
async def test_a_grace_period_ends_with_the_year_9999(api: Api, says: str) -> None:
    longest = 2**63 - 1
    uid = (await api.apply(pod("a", terminationGracePeriodSeconds=longest if says == "pod" else 30))).results[0].uid
    await api.reached(await Cluster(api.bus).commit([bound("a", uid=uid)]))
    reply = await api.delete(ref("a"), **({} if says == "pod" else {"grace_period_s": longest}))
    assert outcomes(reply) == ["deleted"]
    metadata = (await stored(api.bus, "pods", "a")).document()["metadata"]
    assert metadata["deletionTimestamp"].startswith("9999-12-31T23:59:5")
    assert 0 < metadata["deletionGracePeriodSeconds"] < 253402300800
    await api.delete(ref("a"), grace_period_s=10)
    metadata = (await stored(api.bus, "pods", "a")).document()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 10
    assert not metadata["deletionTimestamp"].startswith("9999")


async def test_a_thousand_faults_fit_into_an_answer(api: Api) -> None:
    labels = {f"no label {number} {'x' * 600}": "?" * 600 for number in range(100)}
    reply = await api.apply(*(pod(f"p{number}", labels=labels) for number in range(24)))
    assert {one.outcome for one in reply.results} == {"refused"}
    assert {len(one.errors) for one in reply.results} == {1}
    assert "and 99 more faults" in reply.results[0].message
    alone = await api.apply(pod("alone", labels=labels))
    assert len(alone.results[0].errors) == 100


async def test_what_admission_stumbles_over_is_refused_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    real = admission.admit

    def stumbling(document: Any, *more: Any, **named: Any) -> Any:
        if document["metadata"]["name"] == "bad":
            raise ZeroDivisionError("a bug")
        return real(document, *more, **named)

    monkeypatch.setattr(applying.admission, "admit", stumbling)
    reply = await api.apply(pod("bad"), pod("good", labels={"a": "b"}), partial=True)
    assert outcomes(reply) == ["refused", "created"]
    assert reply.results[0].message == "admission failed on it (ZeroDivisionError: a bug)"


def report(name: str, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Report",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"text": "x" * size},
    }


async def test_objects_of_a_mebibyte_and_a_half_pass_every_way(
    bus: Bus, connect_bus: ConnectBus, start_api: StartApi
) -> None:
    """Written alone and two in a request, replaced, listed by an api that starts later, deleted: the marker
    holds the last version."""
    size = 1536 * 1024 - 1000
    api = await start_api(bus)
    names = [f"r{number}" for number in range(6)]
    for first, second in zip(names[::2], names[1::2], strict=True):
        assert outcomes(await api.apply(report(first, size), report(second, size))) == ["created", "created"]
    assert outcomes(await api.apply(report("r0", size - 1))) == ["configured"]
    refused = await api.apply(report("larger", size + 2000))
    assert refused.results[0].errors[0].type == "FieldValueTooLong"
    later = await start_api(await connect_bus("later"))
    assert outcomes(await later.apply(report("r0", size - 1))) == ["unchanged"]
    references = [ref(name, "reports.v1.example.com") for name in names]
    assert outcomes(await later.delete(*references)) == ["deleted"] * len(names)
    for name in names:
        assert (await stored(bus, "reports.v1.example.com", name)).deleted
