"""A real Jaeger on free ports, with the configuration that the compose stack uses."""

import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from podyard.runtime import ports

CONFIG: Final = Path(__file__).parents[2] / "deploy" / "jaeger.yaml"
START_S: Final = 60.0
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

    :raises AssertionError: if it does not become healthy in time, with the end of its log
    """
    free = ports.free_ports(len(ENDPOINTS))
    places = {name: f"127.0.0.1:{port}" for name, port in zip(ENDPOINTS, free, strict=True)}
    settings = [f"--set={path}={places[name]}" for name, path in ENDPOINTS.items()]
    with log.open("wb") as out:
        process = subprocess.Popen([program, "--config", CONFIG, *settings], stdout=out, stderr=out)
        try:
            _until_healthy(process, f"http://{places['health']}/status", log)
            yield JaegerServer(f"http://{places['query']}", f"http://{places['otlp']}")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_healthy(process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    reason = ""
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError as error:
            reason = str(error)
            time.sleep(0.05)
    raise AssertionError(f"Jaeger is not healthy: {reason}\n{log.read_text(errors='replace')[-2000:]}")
