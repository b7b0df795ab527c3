"""What services are told of the collector of spans."""

from pathlib import Path

from podyard.bench import collector
from podyard.telemetry.setup import choose_exporter

ROOT = Path(__file__).parents[3]


def test_without_tracing_services_send_nothing_whatever_the_user_has_set():
    own = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere:4318", "OTEL_TRACES_EXPORTER": "otlp"}
    assert choose_exporter(own | collector.environment(0.0, "http://127.0.0.1:9")) == "none"


def test_with_tracing_they_send_to_the_collector_whatever_the_user_has_set():
    own = {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}
    told = own | collector.environment(1.0, "http://127.0.0.1:9")
    assert choose_exporter(told) == "otlp"
    assert told["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == "http://127.0.0.1:9/v1/traces"
    assert told["OTEL_TRACES_SAMPLER_ARG"] == "1"


def test_traces_are_sampled_and_sent_as_by_docker_compose():
    told = collector.environment(0.25, "http://127.0.0.1:9")
    assert told["OTEL_TRACES_SAMPLER_ARG"] == "0.25"
    assert f"OTEL_TRACES_SAMPLER={told['OTEL_TRACES_SAMPLER']}\n" in (ROOT / ".env").read_text()
    compose = (ROOT / "docker-compose.yml").read_text()
    assert f'OTEL_BSP_SCHEDULE_DELAY: "{told["OTEL_BSP_SCHEDULE_DELAY"]}"' in compose
