"""A collector of spans that keeps none: services send to it as to a real one, and pay what that costs.

`python -m podyard.bench.collector` listens on a free port of the loopback, and tells it on a line.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import PIPE
from threading import Thread
from typing import Any, Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from podyard.cli.errors import CliError

BEGINS_WITHIN_S: Final = 10.0
LONGEST_LINE: Final = 100
USUAL: Final = 0.01
"""Share of the traces."""
SAMPLER: Final = "parentbased_traceidratio"
DELAY_MS: Final = "500"
"""As docker-compose.yml has these."""


class _Handler(BaseHTTPRequestHandler):
    """Reads what comes, and takes it: an empty answer is an ExportTraceServiceResponse without a fault."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Requests are not told."""


def environment(share: float, endpoint: str) -> dict[str, str]:
    """What services are told, so that they keep this share of the traces; 0: no tracing at all. Pure."""
    if not share:
        return {"OTEL_SDK_DISABLED": "true"}
    return {
        "OTEL_SDK_DISABLED": "false",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{endpoint}/v1/traces",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": DELAY_MS,
        "OTEL_TRACES_SAMPLER": SAMPLER,
        "OTEL_TRACES_SAMPLER_ARG": f"{share:g}",
    }


@asynccontextmanager
async def collecting() -> AsyncGenerator[str]:
    """A collector in a process of its own; where it listens.

    :raises CliError: it does not begin
    """
    # in a session of its own: Ctrl-C is for who began it, with whom its standard input ends
    words = [sys.executable, "-m", __name__]
    async with await anyio.open_process(words, stdin=PIPE, stdout=PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(BEGINS_WITHIN_S):
                line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", LONGEST_LINE)
        except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream) as error:
            process.kill()
            raise CliError("the collector of spans has not begun", "run it without: --tracing 0") from error
        try:
            yield f"http://127.0.0.1:{int(line)}"
        finally:
            process.kill()


def main() -> None:
    """Serve until the standard input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
