"""Protobuf bodies say the same as JSON, and whatever is wrong with them is refused as a bad request."""

import base64
import gzip
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.protobuf import MAGIC, MOST_PARTS, decode
from podyard.objects import bounds
from podyard.objects.documents import Document, strip_nulls

DATA = Path(__file__).parent / "data/protobuf.jsonl.gz"
PAIRS = [msgspec.json.decode(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
BODIES = [base64.b64decode(pair["protobuf"]) for pair in PAIRS]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def part(field: int, value: bytes | str) -> bytes:
    """A text, bytes or a message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + part(1, part(1, api_version) + part(2, kind)) + part(2, raw) + part(3, "") + part(4, "")


def pod(spec: bytes = b"", metadata: bytes = b"") -> Document:
    found = decode(body("v1", "Pod", part(1, metadata) + part(2, spec)))
    assert (found["apiVersion"], found["kind"]) == ("v1", "Pod")
    return found


def refused(whole: bytes, kind: str = "") -> str:
    with pytest.raises(ApiError) as caught:
        decode(whole, kind=kind)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    return caught.value.message


def refused_pod(raw: bytes) -> str:
    message = refused(body("v1", "Pod", raw))
    lead = 'Pod in version "v1" cannot be handled as a Pod: '
    assert message.startswith(lead)
    return message.removeprefix(lead)


# ---- what the reference writes -----------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['json']['apiVersion']}-{pair['json']['kind']}")
def test_a_body_is_the_document_that_the_reference_reads(pair: dict[str, Any]):
    found = decode(base64.b64decode(pair["protobuf"]))
    assert msgspec.json.encode(strip_nulls(found), order="sorted") == msgspec.json.encode(
        strip_nulls(pair["json"]), order="sorted"
    )


def test_there_are_pairs_of_all_that_clients_send():
    kinds = {(pair["json"]["apiVersion"], pair["json"]["kind"]) for pair in PAIRS}
    assert len(kinds) == len(PAIRS) == 136
    assert kinds > {
        ("v1", "Pod"),
        ("v1", "Binding"),
        ("v1", "Event"),
        ("v1", "DeleteOptions"),
        ("apps/v1", "DeleteOptions"),
        ("v1", "CreateOptions"),
        ("apps/v1", "Deployment"),
        ("autoscaling/v1", "Scale"),
        ("policy/v1", "Eviction"),
        ("events.k8s.io/v1", "Event"),
        ("coordination.k8s.io/v1", "Lease"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    }


# ---- zeros -------------------------------------------------------------------------------------------------


def test_a_zero_that_go_points_to_is_kept():
    found = decode(body("apps/v1", "Deployment", part(2, number(1, 0) + number(5, 0) + number(7, 0))))
    assert found["spec"] == {"replicas": 0}, "minReadySeconds and paused are zeros that JSON leaves out"


def test_a_zero_that_json_never_leaves_out_is_kept():
    assert pod(part(2, part(1, "") + part(2, "")))["spec"] == {"containers": [{"name": ""}]}


def test_what_is_absent_stays_absent():
    assert decode(body("v1", "Pod", b"")) == {"apiVersion": "v1", "kind": "Pod"}
    assert pod() == {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}


def test_no_time_is_absent_and_the_beginning_of_1970_is_not():
    assert pod(metadata=part(8, b"") + part(9, number(1, 0)))["metadata"] == {
        "deletionTimestamp": "1970-01-01T00:00:00Z"
    }


def test_an_entry_without_a_value_has_the_zero():
    secret = part(2, part(1, "a")) + part(4, part(2, "b"))
    assert decode(body("v1", "Secret", secret)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "data": {"a": ""},
        "stringData": {"": "b"},
    }
    quota = decode(body("v1", "ResourceQuota", part(2, part(1, part(1, "cpu")))))
    assert quota["spec"] == {"hard": {"cpu": "0"}}


# ---- the same field again, numbers that nobody knows -------------------------------------------------------


def test_a_message_that_comes_twice_is_joined():
    raw = part(1, part(1, "a") + part(11, part(1, "x") + part(2, "1"))) + part(1, part(3, "b") + part(11, part(1, "y")))
    assert decode(body("v1", "Pod", raw))["metadata"] == {"name": "a", "namespace": "b", "labels": {"x": "1", "y": ""}}


def test_the_last_of_a_scalar_counts_a_zero_too():
    assert pod(metadata=part(1, "a") + part(1, "b"))["metadata"] == {"name": "b"}
    assert pod(metadata=part(1, "a") + part(1, ""))["metadata"] == {}


@pytest.mark.parametrize(
    "unknown",
    [
        number(1000, 2**64 - 1),
        varint(1000 << 3 | 1) + bytes(8),
        part(1000, b"\xff"),
        varint(1000 << 3 | 3) + number(1, 5) + varint(1 << 3 | 3) + varint(1 << 3 | 4) + varint(1000 << 3 | 4),
        varint(1000 << 3 | 5) + bytes(4),
    ],
    ids=["varint", "64 bits", "bytes", "group", "32 bits"],
)
def test_unknown_numbers_are_ignored(unknown: bytes):
    assert pod(metadata=unknown + part(1, "a") + unknown)["metadata"] == {"name": "a"}


def test_numbers_of_lists_are_packed_or_not():
    context = part(14, number(4, 1) + part(4, varint(2) + varint(-3)) + number(4, 4))
    assert pod(context)["spec"]["securityContext"] == {"supplementalGroups": [1, 2, -3, 4]}


def test_numbers_wrap_at_their_size():
    spec = number(4, 2**63) + number(25, 2**31)
    assert pod(spec)["spec"] == {"terminationGracePeriodSeconds": -(2**63), "priority": -(2**31)}
    too_many_bits = b"\x20" + b"\xff" * 9 + b"\x7f"
    assert pod(too_many_bits)["spec"] == {"terminationGracePeriodSeconds": -1}


def test_of_a_field_number_32_bits_are_looked_at():
    assert pod(metadata=varint(1 << 35 | 1 << 3 | 2) + b"\x01a")["metadata"] == {"name": "a"}


# ---- which kind --------------------------------------------------------------------------------------------


def test_a_body_that_names_no_kind_is_of_the_expected_one():
    assert decode(body("", "", part(1, part(1, "a"))), "v1", "Pod") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
    }


def test_the_body_says_its_kind_itself():
    assert decode(body("v1", "Node", b""), "v1", "Pod")["kind"] == "Node"


# ---- refusals ----------------------------------------------------------------------------------------------


NO_PROTOBUF = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (b"", "empty data (<empty>)"),
        (b'{"kind":"Pod"}', f"{NO_PROTOBUF} (7b226b696e64223a22506f64227d)"),
        (MAGIC, "empty body (6b387300)"),
        (MAGIC + part(9, bytes(60))[:40], f"unexpected EOF (6b3873004a3c{'00' * 24} ...)"),
    ],
    ids=["nothing", "JSON", "the magic number alone", "a piece"],
)
def test_what_is_no_body(whole: bytes, words: str):
    assert refused(whole, "Pod") == f"the object provided is unrecognized (must be of type Pod): {words}"


def test_a_body_must_say_what_it_is():
    assert refused(body("v1", "", b"")).startswith("Object 'Kind' is missing")
    assert refused(body("", "Pod", b"")).startswith("Object 'apiVersion' is missing")


@pytest.mark.parametrize(("version", "kind"), [("example.com/v1", "Widget"), ("v1", "Container"), ("v1", "Status")])
def test_kinds_without_a_message_are_refused(version: str, kind: str):
    assert refused(body(version, kind, b"")).startswith(f'no kind "{kind}" is registered for version "{version}"')


def test_a_long_kind_is_not_told_back():
    assert len(refused(body("v1" * 10_000, "K" * 100_000, b""))) < 300


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (part(1, b"")[:1], "unexpected EOF"),
        (b"\x0a\x05abc", "unexpected EOF"),
        (part(1, b"\x0a\x05ab") + part(1, b""), "unexpected EOF"),
        (b"\x80", "unexpected EOF"),
        (b"\x80" * 11, "proto: integer overflow"),
        (part(2, b"\x20" + b"\x80" * 10 + b"\x00"), "proto: integer overflow"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (number(1, 1), "proto: wrong wireType = 0 for field metadata"),
        (part(1, number(1, 1)), "proto: wrong wireType = 0 for field name"),
        (part(1, part(11, number(1, 1))), "proto: wrong wireType = 0 for field key"),
        (part(2, part(4, "")), "proto: wrong wireType = 2 for field terminationGracePeriodSeconds"),
        (varint(9 << 3 | 4), "proto: Pod: wiretype end group for non-group"),
        (b"\x00\x00", "proto: Pod: illegal tag 0 (wire type 0)"),
        (varint((2**32 - 1) << 3) + b"\x00", "proto: Pod: illegal tag -1 (wire type 34359738360)"),
        (varint(9 << 3 | 3), "unexpected EOF"),
        (varint(9 << 3 | 6), "proto: illegal wireType 6"),
        (varint(9 << 3 | 1) + b"1234567", "unexpected EOF"),
        (varint(9 << 3 | 5) + b"123", "unexpected EOF"),
        (part(1, part(1, b"a\xff")), "text is not UTF-8: invalid start byte at byte 1"),
        (part(1, part(8, number(1, 2**62))), f"a time is not of the years 1 to 9999: {2**62} s since 1970"),
        (part(1, part(17, part(7, part(1, "{")))), "not valid JSON inside: Input data was truncated"),
    ],
)
def test_what_is_wrong_with_a_message(raw: bytes, words: str):
    assert refused_pod(raw) == words


def test_an_int_or_string_is_one_of_both():
    budget = body("policy/v1", "PodDisruptionBudget", part(2, part(3, number(1, 2))))
    assert refused(budget).endswith("impossible IntOrString.Type")


def crd(schema: bytes) -> bytes:
    """A CustomResourceDefinition with a schema: spec.versions[0].schema.openAPIV3Schema."""
    return body("apiextensions.k8s.io/v1", "CustomResourceDefinition", part(2, part(7, part(4, part(1, schema)))))


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def schema_of(raw: bytes) -> Document:
    return decode(crd(raw))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_doubles_are_as_json_writes_them():
    found = schema_of(double(9, 10) + double(11, -0.5) + double(19, 1e30))
    assert msgspec.json.encode(found) == b'{"maximum":10,"minimum":-0.5,"multipleOf":1e30}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_doubles_that_json_does_not_know_are_refused(value: float):
    assert refused(crd(double(9, value))).endswith(f": json: unsupported value: {value}")


def test_a_schema_or_something_else_is_what_it_holds():
    typed = part(5, "string")
    assert schema_of(part(24, part(1, typed)))["items"] == {"type": "string"}
    assert schema_of(part(24, part(2, typed) + part(2, b"")))["items"] == [{"type": "string"}, {}]
    assert schema_of(part(30, number(1, 1)))["additionalProperties"] is True
    assert schema_of(part(30, number(1, 0)))["additionalProperties"] is False
    assert schema_of(part(30, number(1, 1) + part(2, typed)))["additionalProperties"] == {"type": "string"}
    assert schema_of(part(32, part(1, "a") + part(2, part(2, "b"))))["dependencies"] == {"a": ["b"]}
    assert schema_of(part(32, part(1, "a") + part(2, part(1, typed))))["dependencies"] == {"a": {"type": "string"}}


@pytest.mark.parametrize("field", [28, 30, 24, 25], ids=["not", "additionalProperties", "items", "allOf"])
@pytest.mark.parametrize("levels", [bounds.NESTING, 5_000])
def test_schemas_nest_only_so_deep(field: int, levels: int):
    schema = part(5, "object")
    for _ in range(levels):
        inner = {30: part(2, schema), 24: part(1, schema)}.get(field, schema)
        schema = part(field, inner)
    assert "is nested too deep: more than 100 levels" in refused(crd(schema))


def test_schemas_nest_as_deep_as_objects_may():
    schema = part(5, "object")
    for _ in range(90):
        schema = part(28, schema)
    assert decode(crd(schema))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["not"]


@pytest.mark.parametrize("levels", [101, 100_000])
def test_json_inside_nests_only_so_deep(levels: int):
    raw = part(1, part(17, part(7, part(1, '{"a":[' * (levels // 2) + "{" + "}" + "]}" * (levels // 2)))))
    assert "nested too deep" in refused_pod(raw)


# ---- anything at all ---------------------------------------------------------------------------------------


def only_refuses(whole: bytes) -> None:
    """`decode` gives a document that JSON can write, or refuses."""
    refusal: ApiError | None = None
    found: Document = {}
    try:
        found = decode(whole, "v1", "Pod")
    except ApiError as error:
        refusal = error
    if refusal is None:
        assert isinstance(msgspec.json.decode(msgspec.json.encode(found)), dict)
    else:
        assert (refusal.code, refusal.reason) == (400, "BadRequest")
        assert len(refusal.message) < 500


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(raw: bytes):
    only_refuses(raw)
    only_refuses(MAGIC + raw)
    only_refuses(body("v1", "Pod", raw))


@given(
    st.sampled_from(BODIES),
    st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 3), st.binary(max_size=4)), min_size=1, max_size=5),
)
def test_bodies_with_faults_are_read_or_refused(whole: bytes, faults: list[tuple[int, int, bytes]]):
    changed = bytearray(whole)
    for at, taken, put in faults:
        place = at % len(changed) if changed else 0
        changed[place : place + taken] = put
    only_refuses(bytes(changed))


@given(st.sampled_from(BODIES), st.integers(0, 100_000))
def test_a_body_cut_off_is_read_or_refused(whole: bytes, at: int):
    only_refuses(whole[: at % len(whole)])


# ---- how long, how much ------------------------------------------------------------------------------------


def nested(field: int, levels: int) -> bytes:
    """A field within itself, so often: in linear time, with lengths of five bytes."""
    lengths = range(6 * levels - 6, -1, -6)
    return b"".join(
        bytes([field << 3 | 2, *(length >> shift & 127 | 128 for shift in (0, 7, 14, 21)), length >> 28])
        for length in lengths
    )


FULL = (1, 2, 3, 5, 13, 14, 20)
"""Fields of a container that are a text, or a list of texts."""

GROWING: dict[str, Callable[[int], bytes]] = {
    "labels": lambda n: body(
        "v1", "Pod", part(1, b"".join(part(11, part(1, str(i)) + part(2, "b")) for i in range(n)))
    ),
    "empty containers": lambda n: body("v1", "Pod", part(2, part(2, b"") * n)),
    "containers without a name": lambda n: body("v1", "Pod", part(2, part(2, part(1, "")) * n)),
    "full containers": lambda n: body("v1", "Pod", part(2, part(2, b"".join(part(i, "a") for i in FULL)) * n)),
    "metadata again and again": lambda n: body("v1", "Pod", part(1, part(14, "a")) * n),
    "packed numbers": lambda n: body("v1", "Pod", part(2, part(14, part(4, b"\x01" * n)))),
    "numbers one by one": lambda n: body("v1", "Pod", part(2, part(14, number(4, 1) * n))),
    "unknown groups within groups": lambda n: body("v1", "Pod", varint(9 << 3 | 3) * n + varint(9 << 3 | 4) * n),
    "unknown groups without end": lambda n: body("v1", "Pod", varint(9 << 3 | 3) * n),
    "schemas": lambda n: crd(nested(25, n)),
    "long numbers": lambda n: body("v1", "Pod", part(2, (b"\x20" + b"\x80" * 9 + b"\x00") * n)),
    "a text": lambda n: body("v1", "Pod", part(1, part(1, "a" * n))),
    "JSON inside": lambda n: body("v1", "Pod", part(1, part(17, part(7, part(1, "[" + "[1]," * n + "1]"))))),
}


def steps(whole: bytes) -> int:
    """Lines of Python that run while a body is read."""
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decode(whole)
    except ApiError:
        pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("grown", GROWING)
def test_twice_the_body_takes_twice_as_long_at_most(grown: str):
    make = GROWING[grown]
    decode(body("v1", "Pod", b""))  # the table is read
    small, large = make(500), make(1000)
    steps(small)  # what is made once is made
    assert steps(large) <= 2.1 * steps(small)


@pytest.mark.parametrize("grown", ["empty containers", "packed numbers"])
def test_parts_are_counted(grown: str):
    assert f"it has more than {MOST_PARTS} parts" in refused(GROWING[grown](MOST_PARTS + 10))


@pytest.mark.parametrize("grown", ["empty containers", "containers without a name", "full containers", "labels"])
def test_a_body_takes_no_more_than_is_said(grown: str):
    parts = 5_000
    whole = GROWING[grown](parts)
    decode(whole)
    tracemalloc.start()
    try:
        decode(whole)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300 * parts + 12 * len(whole)
