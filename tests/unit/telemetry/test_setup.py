import prometheus_client
import pytest

from podyard.telemetry.setup import TracingError, choose_exporter, start_tracing

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({}, "none"),
        (ENDPOINT, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:4318/v1/traces"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, "none"),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, "none"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "otlp"),
    ],
)
def test_the_standard_variables_choose(environment, chosen):
    assert choose_exporter(environment) == chosen


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
        ({**ENDPOINT, "OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "OTEL_BSP_MAX_QUEUE_SIZE=0"),
    ],
)
def test_what_cannot_be_done_is_named(environment, named):
    with pytest.raises(TracingError, match=named):
        start_tracing(
            environment, service="x", instance="x", version="1", registry=prometheus_client.CollectorRegistry()
        )
