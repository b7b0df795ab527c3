"""A real Jaeger on free ports, with the configuration that the compose stack uses."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from podyard.runtime import ports
from tests.support import foreign_servers

CONFIG: Final = Path(__file__).parents[2] / "deploy" / "jaeger.yaml"
PAGES: Final = CONFIG.with_name("jaeger-ui.json")
"""What the pages show beyond their own: where the containers have it is told in CONFIG."""
ENDPOINTS: Final = {
    "query": "extensions.jaeger_query.http.endpoint",
    "query_grpc": "extensions.jaeger_query.grpc.endpoint",
    "health": "extensions.healthcheckv2.http.endpoint",
    "otlp_grpc": "receivers.otlp.protocols.grpc.endpoint",
    "otlp": "receivers.otlp.protocols.http.endpoint",
}


class JaegerServer(NamedTuple):
    """Where it listens."""

    url: str
    """Query API."""
    otlp: str
    """For OTEL_EXPORTER_OTLP_ENDPOINT."""


@contextmanager
def running(program: Path, log: Path) -> Generator[JaegerServer]:
    """A Jaeger for as long as the block runs.

    :raises AssertionError: if it does not become ready in time, with the end of its log
    """
    free = ports.free_ports(len(ENDPOINTS))
    places = {name: f"127.0.0.1:{port}" for name, port in zip(ENDPOINTS, free, strict=True)}
    settings = [f"--set={path}={places[name]}" for name, path in ENDPOINTS.items()]
    settings.append(f"--set=extensions.jaeger_query.ui.config_file={PAGES}")
    words = [program, "--config", CONFIG, *settings]
    with foreign_servers.running("Jaeger", words, f"http://{places['health']}/status", log):
        yield JaegerServer(f"http://{places['query']}", f"http://{places['otlp']}")
