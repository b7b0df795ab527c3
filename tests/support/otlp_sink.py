"""A real OTLP receiver for tests: an HTTP server that decodes what exporters send and keeps resource, kind,
links, status.

with OtlpSink() as sink:
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = sink.endpoint
    ...
    spans = sink.wait_for(lambda spans: len(spans) >= 3, timeout_s=10)
"""

import gzip
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


class Ids(NamedTuple):
    """Which span is meant, in hex."""

    trace_id: str
    span_id: str


class SinkEvent(NamedTuple):
    """An event within a span; time in nanoseconds since 1970."""

    name: str
    at_ns: int
    attributes: dict[str, Any]


class SinkSpan(NamedTuple):
    """A span as it came over the wire. Times in nanoseconds since 1970."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    links: tuple[Ids, ...]
    events: tuple[SinkEvent, ...]
    error: str
    """Status message of a span with status ERROR; None-like empty text otherwise."""
    resource: dict[str, Any]

    @property
    def service(self) -> str:
        """`service.name` of the sender."""
        return self.resource.get("service.name", "")


class OtlpSink:
    """Listens on a free port of the loopback; a context manager. Threads add spans, tests read copies."""

    def __init__(self, *, status: int = 200, hangs: bool = False) -> None:
        """:param status: HTTP status to answer with; above 299 nothing is kept
        :param hangs: whether it answers only when the block ends
        """
        self.status = status
        self.answers = threading.Event()
        if not hangs:
            self.answers.set()
        self.requests = 0
        self.encodings: list[str] = []
        self._spans: list[SinkSpan] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def endpoint(self) -> str:
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def spans(self) -> list[SinkSpan]:
        """All so far, in order of arrival."""
        with self._changed:
            return list(self._spans)

    def named(self, name: str) -> list[SinkSpan]:
        """Spans of one name."""
        return [span for span in self.spans if span.name == name]

    def wait_for(self, satisfied: Callable[[list[SinkSpan]], bool], *, timeout_s: float = 10) -> list[SinkSpan]:
        """Block until `satisfied(spans)`.

        :raises AssertionError: after `timeout_s` seconds, with the names that arrived
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not satisfied(list(self._spans)):
                if not self._changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"after {timeout_s} s only {[span.name for span in self._spans]} arrived")
            return list(self._spans)

    def receive(self, body: bytes, encoding: str) -> None:
        """Keep what one request carries."""
        with self._changed:
            self.requests += 1
            self.encodings.append(encoding)
            if self.status < 300:
                payload = gzip.decompress(body) if encoding == "gzip" else body
                self._spans.extend(decode(ExportTraceServiceRequest.FromString(payload)))
            self._changed.notify_all()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


def of_pod(spans: Iterable[SinkSpan], name: str, namespace: str, pod: str) -> list[SinkSpan]:
    """Spans of one name that are about one pod, in order of time."""
    about = {"k8s.namespace.name": namespace, "k8s.pod.name": pod}
    found = [span for span in spans if span.name == name and about.items() <= span.attributes.items()]
    return sorted(found, key=lambda span: span.start_ns)


def _handler(sink: OtlpSink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.receive(body, self.headers.get("Content-Encoding", "identity"))
            sink.answers.wait()
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(sink.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            pass

    return Handler


def decode(request: ExportTraceServiceRequest) -> Iterator[SinkSpan]:
    """The spans of one export."""
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield SinkSpan(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    kind=KINDS[span.kind],
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    attributes=_attributes(span.attributes),
                    links=tuple(Ids(link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    events=tuple(
                        SinkEvent(event.name, event.time_unix_nano, _attributes(event.attributes))
                        for event in span.events
                    ),
                    error=span.status.message if span.status.code == 2 else "",
                    resource=resource,
                )


def _attributes(pairs: Sequence[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
