"""A request for a collector says what the SDK's encoder says of the same spans."""

import logging
from enum import StrEnum
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import float64
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource

from podyard.telemetry.console import readable
from podyard.telemetry.otlp import encode
from podyard.telemetry.traceparent import SpanIds
from podyard.telemetry.tracing import LinkedTo, SpanEvent, SpanRecord


class Pool(StrEnum):
    ACTIVE = "activeQ"


RESOURCE = {"service.name": "podyard-queue", "service.version": "1.2.3"}

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
values = (
    texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.lists(texts, max_size=3)
    | st.sampled_from((Pool.ACTIVE, HTTPStatus.OK, float64(0.5)))
    | st.tuples(st.integers(0, 9), st.integers(0, 9))
)
attributes = st.dictionaries(texts, values, max_size=4)
ids = st.builds(SpanIds, st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
records = st.builds(
    SpanRecord,
    name=texts,
    ids=ids,
    parent=st.none() | ids,
    start_ns=st.integers(0, 2**63),
    end_ns=st.integers(0, 2**63),
    kind=st.sampled_from(("internal", "server", "client", "producer", "consumer")),
    attributes=attributes,
    links=st.lists(st.builds(LinkedTo, ids, attributes), max_size=3).map(tuple),
    events=st.lists(st.builds(SpanEvent, texts, st.floats(0, 2e9), attributes), max_size=3),
    error=st.just("") | texts,
)


def span(name: str, **attributes) -> SpanRecord:
    return SpanRecord(name, SpanIds(1, 2, True), None, 1, 2, "internal", attributes, (), (), "")


def decoded(body: bytes) -> list:
    [resource] = ExportTraceServiceRequest.FromString(body).resource_spans
    [scope] = resource.scope_spans
    return list(scope.spans)


@given(st.lists(records, min_size=1, max_size=4))
def test_it_says_what_the_sdk_would_say(spans):
    expected = encode_spans([readable(one, Resource(RESOURCE)) for one in spans])
    for one in expected.resource_spans[0].scope_spans[0].spans:
        if not one.status.code:
            one.ClearField("status")  # the SDK sends an empty one, which means the same
    body, number = encode(spans, RESOURCE)
    assert ExportTraceServiceRequest.FromString(body) == expected
    assert number == len(spans)


@pytest.mark.parametrize("value", ["\ud800", 2**63, object(), [1, object()]])
def test_a_span_that_cannot_be_written_costs_no_other(value, caplog):
    with caplog.at_level(logging.WARNING):
        body, number = encode([span("before"), span("strange", what=value), span("after")], RESOURCE)
    assert [one.name for one in decoded(body)] == ["before", "after"]
    assert number == 2
    assert "'strange'" in caplog.text
