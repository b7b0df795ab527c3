"""An HTTP extender for tests: a real server in a thread that answers as it is told and keeps what it was
asked."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Answer = Callable[[dict[str, Any]], Any]
"""From a request's body to the answer: something JSON-able, bytes as they are, a status code, or an iterator
of bytes without an end."""


class Asked(NamedTuple):
    """A request that came."""

    verb: str
    body: dict[str, Any]


class ExtenderServer:
    """Answers by verb; a verb without an answer is 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.url = ""
        self.encoding = ""
        """What its answers say that they are packed with."""

    def bodies(self, verb: str) -> list[dict[str, Any]]:
        """What it was asked at one verb."""
        return [one.body for one in self.asked if one.verb == verb]


@contextmanager
def extender_server() -> Iterator[ExtenderServer]:
    """A server on a free port of the loopback address."""
    extender = ExtenderServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            verb = self.path.rpartition("/")[2]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            extender.asked.append(Asked(verb, body))
            answer = extender.answers[verb](body) if verb in extender.answers else 404
            status, payload = (answer, b"") if isinstance(answer, int) else (200, answer)
            if isinstance(payload, Iterator):
                self.send_endlessly(payload)
                return
            if not isinstance(payload, bytes):
                payload = json.dumps(payload).encode()
            self.send_response(status)
            if extender.encoding:
                self.send_header("Content-Encoding", extender.encoding)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def send_endlessly(self, parts: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in parts:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

        def log_message(self, *args: Any) -> None:
            del args

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients here hang up when they have waited enough: nothing to print into the tests' report."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    extender.url = f"http://127.0.0.1:{server.server_address[1]}/scheduler"
    try:
        yield extender
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
